#include <numafit-sim/node.h>

#include <codec/placement_json.h>
#include <errno.h>
#include <nri/session.h>
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
	if (!other) {
		unsigned nr = ++n->nr_sandboxes;

		make_id(c->sandbox_id, "sandbox", nr);
		snprintf(c->pod_uid, sizeof c->pod_uid, "00000000-0000-4000-8000-%012u", nr);
		kubelet_cgroup_parent(c->cgroup_parent, c->asked.qos, c->pod_uid);
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
		err_set(e, EINVAL, "pod %s/%s is %s", c->ns, c->pod, qos_name(other->asked.qos));
		return NULL;
	}
	*new = *c;
	new->state = CONTAINER_CREATING;
	if (kubelet_resources(n->topo, &c->asked, &new->resources, e) < 0)
		return NULL;
	enter_sandbox(n, new, other);
	make_id(new->id, "container", (unsigned)n->nr + 1);
	new->cpus = n->topo->cpus;
	new->mems = n->topo->nodes_with_memory;
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
	struct cpuset set = c->cpus;
	struct nodeset nodes = c->mems;
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
	c->cpus = set;
	c->mems = nodes;
	c->pinned = c->pinned || sets_cpus;
	c->mems_pinned = c->mems_pinned || sets_mems;
	return 0;
}

struct remembered container_now(const struct container *c)
{
	return (struct remembered){.pinned = c->pinned,
		.mems_pinned = c->mems_pinned,
		.cpus = c->cpus,
		.mems = c->mems,
		.resources = c->resources};
}

void container_remember(struct container *c, bool resources)
{
	const struct linux_resources before = c->known.resources;

	c->known = container_now(c);
	if (!resources)
		c->known.resources = before;
}

void container_write_down(struct container *c)
{
	c->first = c->known = container_now(c);
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
	return kubelet_resources(t, &c->asked, &c->resources, e);
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

bool container_exclusive(const struct container *c)
{
	if (c->placed)
		return c->says.exclusive;
	return c->pinned && whole_cpus_of(&c->asked) == cpuset_count(&c->cpus);
}

struct nodeset container_nodes(const struct topo *t, const struct container *c)
{
	struct nodeset nodes = {0};

	if (container_exclusive(c))
		nodes = topo_nodes_of(t, &c->cpus);
	if (c->mems_pinned &&
		!nodeset_within(nodeset_minus(t->nodes_with_memory, t->device_memory), c->mems))
		nodes = nodeset_or(nodes, c->mems);
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

static int check_exclusive(const struct sim_node *n, const struct container *c, struct err *e)
{
	unsigned asked = whole_cpus_of(&c->asked), given = cpuset_count(&c->cpus);

	if (asked != given)
		return err_set(e, EINVAL, "%s/%s/%s asked for %u CPUs of its own and has %u", c->ns,
			c->pod, c->name, asked, given);
	if (cpuset_intersects(&c->cpus, &n->reserved))
		return err_set(e, EINVAL, "%s/%s/%s has a reserved CPU for itself", c->ns, c->pod,
			c->name);
	for (size_t i = 0; i < n->nr; i++) {
		const struct container *o = n->at[i];
		struct cpuset both = cpuset_and(o->cpus, &c->cpus);

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
	for (size_t i = 0; i < n->nr; i++) {
		const struct container *c = n->at[i];
		int rc = 0;

		if (c->state == CONTAINER_RUNNING && container_exclusive(c))
			rc = check_exclusive(n, c, e);
		if (rc)
			return rc;
	}
	return 0;
}
