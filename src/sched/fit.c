#include <numafit/fit.h>

#include <string.h>

static int64_t rounded(unsigned resource, struct quantity q)
{
	return resource == RESOURCE_CPU ? quantity_milli(q) : quantity_value(q);
}

static struct quantity larger(struct quantity a, struct quantity b)
{
	return quantity_compare(a, b) < 0 ? b : a;
}

/* What spec.resources may speak of (IsSupportedPodLevelResource). */
static bool is_pod_level(const struct resource_table *names, unsigned resource)
{
	return resource == RESOURCE_CPU || resource == RESOURCE_MEMORY ||
	       names->at[resource].huge_page;
}

static bool has_pod_level_requests(const struct resource_table *names, const struct sched_pod *p)
{
	for (unsigned i = 0; i < p->own_requests.nr; i++)
		if (is_pod_level(names, p->own_requests.at[i].resource))
			return true;
	return false;
}

static bool pod_asks_for(const struct sched_pod *p, unsigned resource)
{
	if (amounts_find(&p->own_requests, resource) || amounts_find(&p->overhead, resource))
		return true;
	for (unsigned i = 0; i < p->nr_containers; i++)
		if (amounts_find(&p->container[i].requests, resource))
			return true;
	return false;
}

/* What stands for a request that is not there (getNonMissingContainerRequests): with resources of
 * its own, a pod that speaks of the resource anywhere has said all. */
static struct quantity default_request(
	const struct resource_table *names, const struct sched_pod *p, unsigned resource)
{
	static const struct quantity cpu = {.nano = 100 * QUANTITY_NANOS_OF_MILLI},
				     memory = {.whole = 200 << 20};

	if (resource != RESOURCE_CPU && resource != RESOURCE_MEMORY)
		return (struct quantity){0};
	if (has_pod_level_requests(names, p) && pod_asks_for(p, resource))
		return (struct quantity){0};
	return resource == RESOURCE_CPU ? cpu : memory;
}

/* The containers' requests together (AggregateContainerRequests). */
static struct quantity of_containers(
	const struct sched_pod *p, unsigned resource, struct quantity otherwise)
{
	struct quantity all = quantity_of(0), sidecars = all, init = all;

	for (unsigned i = 0; i < p->nr_containers; i++) {
		const struct sched_container *c = &p->container[i];
		const struct quantity *asked = amounts_find(&c->requests, resource);
		struct quantity q = asked ? *asked : otherwise;

		if (c->kind != CONTAINER_INIT)
			all = quantity_add(all, q);
		if (c->kind == CONTAINER_SIDECAR)
			sidecars = quantity_add(sidecars, q);
		if (c->kind != CONTAINER_APP)
			init = larger(init,
				c->kind == CONTAINER_INIT ? quantity_add(q, sidecars) : sidecars);
	}
	return larger(all, init);
}

int64_t fit_request(const struct resource_table *names, const struct sched_pod *p,
	unsigned resource, enum fit_missing missing)
{
	const struct quantity *own = amounts_find(&p->own_requests, resource);
	const struct quantity *overhead = amounts_find(&p->overhead, resource);
	struct quantity otherwise = {0}, q;

	if (missing == FIT_MISSING_IS_SOME)
		otherwise = default_request(names, p, resource);
	if (own && is_pod_level(names, resource))
		q = *own;
	else
		q = of_containers(p, resource, otherwise);
	return rounded(resource, overhead ? quantity_add(q, *overhead) : q);
}

int64_t fit_allocated(const struct resource_table *names, const struct sched_node *n,
	unsigned resource, enum fit_missing missing)
{
	struct quantity all = {0};

	for (size_t i = 0; i < n->nr_pods; i++)
		all = quantity_add(
			all, quantity_of(fit_request(names, &n->pods[i], resource, missing)));
	return all.whole;
}

int64_t fit_allocatable(
	const struct resource_table *names, const struct sched_node *n, unsigned resource)
{
	const struct quantity *q = amounts_find(&n->allocatable, resource);

	return q && names->at[resource].of_nodes ? rounded(resource, *q) : 0;
}

bool fit_is_scalar(const struct resource_table *names, unsigned resource)
{
	bool has_field = resource == RESOURCE_CPU || resource == RESOURCE_MEMORY ||
			 resource == RESOURCE_EPHEMERAL_STORAGE || resource == RESOURCE_PODS;

	return names->at[resource].of_nodes && !has_field;
}

static bool is_ignored(
	const struct resource_table *names, const struct fit_ignored *ignored, unsigned resource)
{
	const char *name = names->at[resource].name;
	size_t group = strcspn(name, "/");

	if (!names->at[resource].extended)
		return false;
	for (unsigned i = 0; i < ignored->nr; i++)
		if (ignored->resource[i] == resource)
			return true;
	for (unsigned i = 0; i < ignored->nr_groups; i++)
		if (strlen(ignored->group[i]) == group &&
			strncmp(ignored->group[i], name, group) == 0)
			return true;
	return false;
}

struct filter {
	const struct fit_view *v;
	unsigned *lacks, nr;
	enum sched_code code;
};

static void check_resource_fits(struct filter *f, unsigned resource)
{
	const struct fit_view *v = f->v;
	int64_t asked = fit_request(v->names, v->pod, resource, FIT_MISSING_IS_NOTHING);
	int64_t has = fit_allocatable(v->names, v->node, resource);
	int64_t used = fit_allocated(v->names, v->node, resource, FIT_MISSING_IS_NOTHING);

	if (asked <= 0 || asked <= quantity_sub(quantity_of(has), quantity_of(used)).whole)
		return;
	f->lacks[f->nr++] = resource;
	if (asked > has)
		f->code = SCHED_UNRESOLVABLE;
	else if (f->code == SCHED_SUCCESS)
		f->code = SCHED_UNSCHEDULABLE;
}

/* The resources from place `from` of lacks on, by name. */
static void sort_by_name(struct filter *f, unsigned from)
{
	for (unsigned i = from + 1; i < f->nr; i++)
		for (unsigned j = i; j > from; j--) {
			unsigned a = f->lacks[j - 1], b = f->lacks[j];

			if (strcmp(f->v->names->at[a].name, f->v->names->at[b].name) <= 0)
				break;
			f->lacks[j - 1] = b;
			f->lacks[j] = a;
		}
}

enum sched_code fit_filter(
	const struct fit_view *v, const struct fit_ignored *ignored, unsigned *lacks, unsigned *nr)
{
	struct filter f = {.v = v, .lacks = lacks, .code = SCHED_SUCCESS};

	int64_t pods = fit_allocatable(v->names, v->node, RESOURCE_PODS);

	if (pods <= 0 || v->node->nr_pods >= (uint64_t)pods) {
		f.lacks[f.nr++] = RESOURCE_PODS;
		f.code = SCHED_UNSCHEDULABLE;
	}
	check_resource_fits(&f, RESOURCE_CPU);
	check_resource_fits(&f, RESOURCE_MEMORY);
	check_resource_fits(&f, RESOURCE_EPHEMERAL_STORAGE);
	unsigned usual = f.nr;
	for (unsigned r = 0; r < v->names->nr; r++)
		if (fit_is_scalar(v->names, r) && !is_ignored(v->names, ignored, r))
			check_resource_fits(&f, r);
	sort_by_name(&f, usual);
	*nr = f.nr;
	return f.code;
}
