#include <numafit-sim/node.h>

#include <codec/placement_json.h>
#include <errno.h>
#include <nri/session.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

enum { TEXTS_MAX = 256 << 20 }; /* some 500,000 hints */

void sim_node_init(struct sim_node *n, const struct topo *t)
{
	*n = (struct sim_node){.topo = t, .name = ""};
	arena_init(&n->texts, TEXTS_MAX);
}

void sim_node_fini(struct sim_node *n)
{
	for (size_t i = 0; i < n->nr; i++) {
		free(n->at[i]->placement);
		free(n->at[i]->devices);
		free(n->at[i]);
	}
	vec_fini(n);
	arena_fini(&n->texts);
}

/* The kubelet's part: what a pod asks for, in the numbers that a container runtime gets. */

/* pkg/kubelet/cm/helpers_linux.go: MinShares, MaxShares, SharesPerCPU; QuotaPeriod and its least */
enum { SHARES_MIN = 2, SHARES_MAX = 262144, SHARES_PER_CPU = 1024 };
enum { QUOTA_PERIOD_US = 100000, QUOTA_MIN_US = 1000 };

static struct memory_ask *limit_of_page(struct linux_resources *r, uint64_t page_bytes)
{
	for (unsigned i = 0; i < r->nr_hugepages; i++)
		if (r->hugepages[i].page_bytes == page_bytes)
			return &r->hugepages[i];
	if (r->nr_hugepages == sizeof r->hugepages / sizeof *r->hugepages)
		return NULL;
	r->hugepages[r->nr_hugepages] = (struct memory_ask){.page_bytes = page_bytes};
	return &r->hugepages[r->nr_hugepages++];
}

int kubelet_resources(
	const struct topo *t, const struct asked *a, struct linux_resources *out, struct err *e)
{
	bool limited = a->qos == QOS_GUARANTEED;
	struct linux_resources r = {
		.has_shares = true,
		.cpu_shares = number_max(SHARES_MIN,
			number_min(a->cpu_milli * SHARES_PER_CPU / MILLI_PER_CPU, SHARES_MAX)),
		.has_period = true,
		.cpu_period = QUOTA_PERIOD_US,
		.has_quota = limited,
		.has_memory_limit = limited,
	};

	if (limited) {
		r.cpu_quota = (int64_t)number_max(
			a->cpu_milli * QUOTA_PERIOD_US / MILLI_PER_CPU, QUOTA_MIN_US);
		r.memory_limit = (int64_t)a->memory_bytes;
	}
	/* sizes that are not asked for get a limit of 0 (GetHugepageLimitsFromResources) */
	for (unsigned kind = 1; kind < t->nr_kinds; kind++)
		(void)limit_of_page(&r, t->page_bytes[kind]);
	for (unsigned i = 0; i < a->nr_hugepages; i++) {
		struct memory_ask *limit = limit_of_page(&r, a->hugepages[i].page_bytes);

		if (!limit)
			return err_set(e, E2BIG, "more than %d sizes of huge pages", TOPO_KINDS);
		limit->bytes = a->hugepages[i].bytes;
	}
	*out = r;
	return 0;
}

/* Containers */

static bool container_exists(const struct container *c)
{
	return c->state == CONTAINER_CREATING || c->state == CONTAINER_RUNNING;
}

static bool is_of_same_pod(const struct container *a, const struct container *b)
{
	return text_equal(a->ns, b->ns) && text_equal(a->pod, b->pod);
}

/* A container of that pod which is there, or NULL. */
static struct container *find_in_pod(const struct sim_node *n, const struct container *c)
{
	for (size_t i = 0; i < n->nr; i++)
		if (n->at[i] != c && container_exists(n->at[i]) && is_of_same_pod(n->at[i], c))
			return n->at[i];
	return NULL;
}

bool sim_node_shares_sandbox(const struct sim_node *n, const struct container *c)
{
	return find_in_pod(n, c) != NULL;
}

enum { SPREAD = 0x1e3779b1 }; /* odd: different numbers give different ids */

/* 64 hex digits as of a real runtime, of which the first 12 differ between things. */
static void make_id(char id[SIM_ID_MAX], const char *what, unsigned nr)
{
	snprintf(id, SIM_ID_MAX, "%08x%04x%052x", text_crc32c(what, strlen(what)) + nr * SPREAD,
		nr & UINT16_MAX, nr);
}

/* The container is in the sandbox of the other one, or in a new one where that is NULL. */
static void enter_sandbox(struct sim_node *n, struct container *c, const struct container *other)
{
	static const char *const parents[NR_QOS] = {
		[QOS_GUARANTEED] = "/kubepods",
		[QOS_BURSTABLE] = "/kubepods/burstable",
		[QOS_BEST_EFFORT] = "/kubepods/besteffort",
	};

	if (!other) {
		unsigned nr = ++n->nr_sandboxes;

		make_id(c->sandbox_id, "sandbox", nr);
		snprintf(c->pod_uid, sizeof c->pod_uid, "00000000-0000-4000-8000-%012u", nr);
		snprintf(c->cgroup_parent, sizeof c->cgroup_parent, "%s/pod%s",
			parents[c->asked.qos], c->pod_uid);
		return;
	}
	memcpy(c->sandbox_id, other->sandbox_id, sizeof c->sandbox_id);
	memcpy(c->pod_uid, other->pod_uid, sizeof c->pod_uid);
	memcpy(c->cgroup_parent, other->cgroup_parent, sizeof c->cgroup_parent);
	c->annotations = other->annotations;
	c->nr_annotations = other->nr_annotations;
}

struct container *sim_node_add(struct sim_node *n, const struct container *c, struct err *e)
{
	auto_free struct container *new = xcalloc(1, sizeof *new);
	const struct container *other = find_in_pod(n, c);

	for (size_t i = 0; i < n->nr; i++)
		if (container_exists(n->at[i]) && is_of_same_pod(n->at[i], c) &&
			text_equal(n->at[i]->name, c->name)) {
			err_set(e, EEXIST, "%s/%s/%s runs already", c->ns, c->pod, c->name);
			return NULL;
		}
	if (other && other->asked.qos != c->asked.qos) {
		err_set(e, EINVAL, "pod %s/%s is %s", c->ns, c->pod, qos_words[other->asked.qos]);
		return NULL;
	}
	*new = *c;
	new->state = CONTAINER_CREATING;
	if (kubelet_resources(n->topo, &c->asked, &new->now.resources, e) < 0)
		return NULL;
	enter_sandbox(n, new, other);
	make_id(new->id, "container", (unsigned)n->nr + 1);
	new->now.cpus = n->topo->cpus;
	new->now.mems = n->topo->nodes_with_memory;
	*vec_push(n) = new;
	return steal(new);
}

struct container *sim_node_find(const struct sim_node *n, const char *id)
{
	for (size_t i = 0; i < n->nr; i++)
		if (container_exists(n->at[i]) && text_equal(n->at[i]->id, id))
			return n->at[i];
	return NULL;
}

int container_set(const struct topo *t, struct container *c, const char *cpus, const char *mems,
	struct err *e)
{
	struct cpuset set = c->now.cpus;
	struct nodeset nodes = c->now.mems;
	bool sets_cpus = cpus && *cpus, sets_mems = mems && *mems;
	int rc = 0;

	if (sets_cpus)
		rc = cpuset_parse(&set, cpus, strlen(cpus), e);
	if (!rc && sets_mems)
		rc = nodeset_parse(&nodes, &t->ids, mems, strlen(mems), e);
	/* what cpuset.cpus and cpuset.mems would refuse: nothing, and what is not there */
	if (!rc && (cpuset_empty(&set) || !cpuset_within(&set, &t->cpus)))
		rc = err_set(e, EINVAL, "cpus \"%.80s\" are not CPUs of machine %s", cpus, t->name);
	if (!rc && (nodeset_empty(nodes) || !nodeset_within(nodes, t->nodes_with_memory)))
		rc = err_set(e, EINVAL, "mems \"%.80s\" are not nodes with memory", mems);
	if (rc)
		return err_add(e, rc, "container %s/%s/%s", c->ns, c->pod, c->name);
	c->now.cpus = set;
	c->now.mems = nodes;
	c->now.pinned = c->now.pinned || sets_cpus;
	c->now.mems_pinned = c->now.mems_pinned || sets_mems;
	return 0;
}

void container_remember(struct container *c, bool resources)
{
	const struct linux_resources before = c->known.resources;

	c->known = c->now;
	if (!resources)
		c->known.resources = before;
}

int container_resize(const struct topo *t, struct container *c, uint64_t cpu_milli,
	uint64_t memory_bytes, struct err *e)
{
	if (!cpu_milli && !memory_bytes)
		return 0;
	if (c->asked.qos == QOS_BEST_EFFORT)
		return err_set(e, EINVAL, "container %s/%s/%s asks for nothing and stays so", c->ns,
			c->pod, c->name);
	if (cpu_milli)
		c->asked.cpu_milli = cpu_milli;
	if (memory_bytes)
		c->asked.memory_bytes = memory_bytes;
	c->placed = false;
	return kubelet_resources(t, &c->asked, &c->now.resources, e);
}

int container_annotate(const struct topo *t, struct container *c,
	const struct key_value *annotations, size_t nr, struct err *e)
{
	for (size_t i = 0; i < nr; i++) {
		if (!text_equal(annotations[i].key, NRI_PLACEMENT_ANNOTATION))
			continue;
		free(c->placement);
		c->placement = xstrdup(annotations[i].value);
		int rc = placement_json_parse(c->placement, &t->ids, &c->says, e);

		if (rc)
			return err_add(e, rc, "container %s/%s/%s: annotation %s", c->ns, c->pod,
				c->name, NRI_PLACEMENT_ANNOTATION);
		c->placed = true;
	}
	return 0;
}

/* What the kubelet's static CPU manager would give it for itself. */
static unsigned whole_cpus_of(const struct asked *a)
{
	bool whole = a->qos == QOS_GUARANTEED && a->cpu_milli % MILLI_PER_CPU == 0;

	return whole ? (unsigned)(a->cpu_milli / MILLI_PER_CPU) : 0;
}

/* With wishes a container's cpuset has others than its own CPUs, or not all of these; which ones are
 * its own is in the daemon's annotation. */
static bool may_have_wishes(const struct container *c)
{
	return c->placed && c->nr_annotations;
}

static struct cpuset own_cpus_of(const struct container *c)
{
	return may_have_wishes(c) ? c->says.cpus : c->now.cpus;
}

bool container_exclusive(const struct container *c)
{
	if (c->placed)
		return c->says.exclusive;
	return c->now.pinned && whole_cpus_of(&c->asked) == cpuset_count(&c->now.cpus);
}

struct nodeset container_nodes(const struct topo *t, const struct container *c)
{
	struct nodeset nodes = {0};

	const struct cpuset own = own_cpus_of(c);

	if (container_exclusive(c))
		nodes = topo_nodes_of(t, &own);
	if (c->now.mems_pinned &&
		!nodeset_within(nodeset_minus(t->nodes_with_memory, t->device_memory), c->now.mems))
		nodes = nodeset_or(nodes, c->now.mems);
	return nodes;
}

bool nodes_are_nearest(const struct topo *t, struct nodeset nodes)
{
	uint64_t sum = topo_distance_sum(t, nodes);

	nodeset_each (in, nodes)
		nodeset_each (out, nodeset_minus(t->nodes_with_cpus, nodes)) {
			struct nodeset rest = nodeset_minus(nodes, nodeset_of(in));

			if (topo_distance_sum(t, nodeset_or(rest, nodeset_of(out))) < sum)
				return false;
		}
	return true;
}

/* Whether what the container has for itself is what it asked for, and nobody else's. */
static int check_exclusive(const struct sim_node *n, const struct container *c, struct err *e)
{
	const struct cpuset own = own_cpus_of(c);
	unsigned asked = whole_cpus_of(&c->asked), given = cpuset_count(&own);

	if (may_have_wishes(c))
		asked = (unsigned)(c->asked.cpu_milli / MILLI_PER_CPU);
	if (asked != given)
		return err_set(e, EINVAL, "%s/%s/%s asked for %u CPU%s of its own and has %u",
			c->ns, c->pod, c->name, asked, text_plural(asked), given);
	if (cpuset_intersects(&own, &n->reserved))
		return err_set(e, EINVAL, "%s/%s/%s has a reserved CPU for itself", c->ns, c->pod,
			c->name);
	for (size_t i = 0; i < n->nr; i++) {
		const struct container *o = n->at[i];
		struct cpuset both = cpuset_and(o->now.cpus, &own);

		if (o != c && o->state == CONTAINER_RUNNING && !cpuset_empty(&both))
			return err_set(e, EINVAL,
				"CPU %u is %s/%s/%s's own and in the cpuset of %s/%s/%s",
				cpuset_next(&both, 0), c->ns, c->pod, c->name, o->ns, o->pod,
				o->name);
	}
	return 0;
}

int sim_node_check(const struct sim_node *n, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n->nr && !rc; i++)
		if (n->at[i]->state == CONTAINER_RUNNING && container_exclusive(n->at[i]))
			rc = check_exclusive(n, n->at[i], e);
	return rc;
}
