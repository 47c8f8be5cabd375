#include <numafit/sched.h>

#include <string.h>

static bool starts(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

static struct resource_kind kind_of(const char *name)
{
	bool prefixed = strstr(name, "kubernetes.io/") != NULL;
	struct resource_kind k = {
		.native = prefixed || !strchr(name, '/'),
		.huge_page = starts(name, "hugepages-"),
		.attachable = starts(name, "attachable-volumes-"),
	};

	k.extended = !k.native && !starts(name, "requests.");
	k.of_nodes = k.extended || k.huge_page || k.attachable || prefixed;
	return k;
}

void resource_table_init(struct resource_table *t)
{
	static const char *const usual[NR_USUAL_RESOURCES] = {
		[RESOURCE_CPU] = "cpu",
		[RESOURCE_MEMORY] = "memory",
		[RESOURCE_EPHEMERAL_STORAGE] = "ephemeral-storage",
		[RESOURCE_PODS] = "pods",
		[RESOURCE_STORAGE] = "storage",
	};

	*t = (struct resource_table){0};
	for (unsigned i = 0; i < NR_USUAL_RESOURCES; i++) {
		(void)resource_number(t, usual[i]);
		t->at[i].of_nodes = i != RESOURCE_STORAGE;
	}
}

void resource_table_fini(struct resource_table *t)
{
	for (size_t i = 0; i < t->nr; i++)
		free(t->at[i].name);
	vec_fini(t);
}

bool resource_find(const struct resource_table *t, const char *name, unsigned *number)
{
	for (size_t i = 0; i < t->nr; i++)
		if (!strcmp(t->at[i].name, name)) {
			*number = (unsigned)i;
			return true;
		}
	return false;
}

unsigned resource_number(struct resource_table *t, const char *name)
{
	unsigned number;

	if (resource_find(t, name, &number))
		return number;
	struct resource_kind *k = vec_push(t);

	*k = kind_of(name);
	k->name = xstrdup(name);
	return (unsigned)t->nr - 1;
}

const struct quantity *amounts_find(const struct amounts *a, unsigned resource)
{
	for (unsigned i = 0; i < a->nr; i++)
		if (a->at[i].resource == resource)
			return &a->at[i].q;
	return NULL;
}

/* The resources that decide the class, and what all containers together say of each. */
enum { QOS_CPU, QOS_MEMORY, NR_QOS_RESOURCES };
static const unsigned qos_resource[NR_QOS_RESOURCES] = {RESOURCE_CPU, RESOURCE_MEMORY};
struct qos_sums {
	struct quantity sum[NR_QOS_RESOURCES];
	unsigned said; /* bit = resource: some container says more than 0 */
};

/* Which ones the container says. */
static unsigned add_said(struct qos_sums *sums, const struct amounts *a)
{
	unsigned said = 0;

	for (unsigned r = 0; r < NR_QOS_RESOURCES; r++) {
		const struct quantity *q = amounts_find(a, qos_resource[r]);

		if (!q || quantity_compare(*q, quantity_of(0)) <= 0)
			continue;
		sums->sum[r] = quantity_add(sums->sum[r], *q);
		said |= 1u << r;
	}
	sums->said |= said;
	return said;
}

enum qos sched_pod_qos(const struct sched_pod *p)
{
	const unsigned all = (1u << NR_QOS_RESOURCES) - 1;
	struct qos_sums requests = {0}, limits = {0};
	bool limited = true;

	for (unsigned i = 0; i < p->nr_containers; i++) {
		(void)add_said(&requests, &p->container[i].requests);
		limited = add_said(&limits, &p->container[i].limits) == all && limited;
	}
	if (!requests.said && !limits.said)
		return QOS_BEST_EFFORT;
	if (!limited || requests.said != limits.said)
		return QOS_BURSTABLE;
	for (unsigned r = 0; r < NR_QOS_RESOURCES; r++)
		if (quantity_compare(requests.sum[r], limits.sum[r]))
			return QOS_BURSTABLE;
	return QOS_GUARANTEED;
}

const char *sched_code_name(enum sched_code c)
{
	static const char *const names[NR_SCHED_CODES] = {
		[SCHED_SUCCESS] = "Success",
		[SCHED_ERROR] = "Error",
		[SCHED_UNSCHEDULABLE] = "Unschedulable",
		[SCHED_UNRESOLVABLE] = "UnschedulableAndUnresolvable",
	};

	return names[c];
}
