/* Whole pods, as the kubelet admits them. For each container, or once for the pod (scope): hints of
 * its devices, CPUs and memory -> merge -> the policy's verdict; then each container is given its
 * devices, CPUs and memory, the next one seeing what the one before has taken. */
#include <numafit/node.h>

#include <numafit/cpus.h>
#include <numafit/policy.h>
#include <numafit/text.h>
#include <numafit/vec.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { MILLI_PER_CPU = 1000 };

struct node {
	const struct topo *t;
	const struct settings *s;
	const struct device_resource *resource;
	unsigned nr_resources;
	bool *held[POD_DEVICES_MAX]; /* by resource: devices that somebody holds */
	struct cpuset reserved, shared;
	struct memory_state memory;
	struct {
		VEC(struct node_pod *);
	} pods; /* in order of admission */
};

/* A pod on its way in. */
struct admission {
	struct node *n;
	const struct pod_ask *ask;
	struct node_pod *pod;
	struct arena *arena;
	unsigned place; /* the container that is dealt with */
	struct cpuset reusable_cpus;
	struct memory_reuse reuse;
	bool *reusable[POD_DEVICES_MAX];
	struct refusal *why;
};

static bool static_cpus(const struct node *n)
{
	return n->s->cpu_manager_policy == MANAGER_STATIC;
}

static bool static_memory(const struct node *n)
{
	return n->s->memory_manager_policy == MANAGER_STATIC;
}

static int reserve_cpus(struct node *n, struct err *e)
{
	const struct settings *s = n->s;
	int rc = cpus_check_options(n->t, &s->cpu_options, s->topology_policy, e);

	n->reserved = s->reserved_cpus;
	if (!rc && cpuset_empty(&n->reserved))
		rc = cpus_reserve(
			n->t, &s->cpu_options, settings_reserved_cpu_count(s), &n->reserved, e);
	if (rc)
		return err_add(e, rc, "new static policy error");
	n->shared = s->cpu_options.strict_cpu_reservation ? cpuset_minus(n->t->cpus, &n->reserved)
							  : n->t->cpus;
	return 0;
}

struct node *node_new(const struct topo *t, const struct settings *s,
	const struct device_resource *resources, unsigned nr_resources, struct err *e)
{
	int rc = policy_check_nodes(s->topology_policy, t->ids.nr, s->max_allowable_numa_nodes, e);

	if (rc || nr_resources > POD_DEVICES_MAX)
		return NULL;
	struct node *n = xcalloc(1, sizeof *n);
	n->t = t;
	n->s = s;
	n->resource = resources;
	n->nr_resources = nr_resources;
	n->shared = t->cpus;
	memory_init(&n->memory, t, s);
	for (unsigned r = 0; r < nr_resources; r++)
		n->held[r] = xcalloc(resources[r].nr, sizeof(bool));
	if (static_cpus(n) && reserve_cpus(n, e)) {
		node_free(n);
		return NULL;
	}
	return n;
}

static void pod_free(struct node_pod *p)
{
	for (unsigned c = 0; c < p->nr; c++) {
		free(p->container[c].name);
		for (unsigned r = 0; r < POD_DEVICES_MAX; r++)
			free(p->container[c].device[r]);
	}
	free(p->container);
	free(p->memory);
	free(p->uid);
	free(p);
}

void node_free(struct node *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->pods.nr; i++)
		pod_free(n->pods.at[i]);
	vec_fini(&n->pods);
	for (unsigned r = 0; r < n->nr_resources; r++)
		free(n->held[r]);
	free(n);
}

static struct node_pod *pod_new(const struct pod_ask *ask)
{
	struct node_pod *p = xcalloc(1, sizeof *p);

	p->uid = xstrdup(ask->uid);
	p->nr = ask->nr;
	p->container = xcalloc(ask->nr, sizeof *p->container);
	p->memory = xcalloc(ask->nr, sizeof *p->memory);
	for (unsigned c = 0; c < ask->nr; c++) {
		p->container[c].name = xstrdup(ask->container[c].name);
		p->container[c].kind = ask->container[c].kind;
		p->memory[c].init = ask->container[c].kind != CONTAINER_APP;
		p->memory[c].restartable = ask->container[c].kind == CONTAINER_SIDECAR;
	}
	return p;
}

/* Give back all that the pod's containers hold; init containers' CPUs and devices may be theirs and
 * a later container's at once. */
static void release_pod(struct node *n, struct node_pod *p)
{
	for (unsigned c = 0; c < p->nr; c++) {
		n->shared = cpuset_or(n->shared, &p->container[c].cpus);
		memory_release(&n->memory, p->memory[c].blocks, p->memory[c].nr_blocks);
		for (unsigned r = 0; r < n->nr_resources; r++)
			for (unsigned i = 0; p->container[c].device[r] && i < n->resource[r].nr;
				i++)
				if (p->container[c].device[r][i])
					n->held[r][i] = false;
	}
}

/* Hints */

static unsigned exclusive_cpus(const struct pod_ask *pod, const struct container_ask *c)
{
	if (pod->qos != QOS_GUARANTEED || pod->pod_level || c->cpu_milli % MILLI_PER_CPU)
		return 0;
	return (unsigned)(c->cpu_milli / MILLI_PER_CPU);
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* What a pod needs of something at once: its init containers run one after the other, each beside
 * the sidecars that have started before it; then the sidecars run beside all the others. */
static uint64_t pod_total(const struct pod_ask *pod,
	uint64_t (*of)(const struct pod_ask *pod, unsigned c, unsigned what), unsigned what)
{
	uint64_t sidecars = 0, most = 0, apps = 0;

	for (unsigned c = 0; c < pod->nr; c++) {
		uint64_t need = of(pod, c, what);

		if (pod->container[c].kind == CONTAINER_SIDECAR)
			sidecars += need;
		else if (pod->container[c].kind == CONTAINER_INIT)
			most = max(most, sidecars + need);
		else
			apps += need;
	}
	return max(most, sidecars + apps);
}

static uint64_t cpus_of(const struct pod_ask *pod, unsigned c, unsigned what)
{
	(void)what;
	return exclusive_cpus(pod, &pod->container[c]);
}

static uint64_t devices_of(const struct pod_ask *pod, unsigned c, unsigned resource)
{
	for (unsigned i = 0; i < pod->container[c].nr_devices; i++)
		if (pod->container[c].device[i].resource == resource)
			return pod->container[c].device[i].count;
	return 0;
}

static bool asks_for_device(const struct container_ask *c, unsigned resource)
{
	for (unsigned i = 0; i < c->nr_devices; i++)
		if (c->device[i].resource == resource)
			return true;
	return false;
}

/* All hints that enter one merge. */
struct hints {
	struct cpus_per_node per_node;
	struct memory_rows rows;
	unsigned nr;
	struct family family[1 + TOPO_KINDS + POD_DEVICES_MAX];
};

static struct device_claim claim(
	const struct admission *a, unsigned resource, uint64_t count, bool reuse)
{
	return (struct device_claim){
		.resource = &a->n->resource[resource],
		.count = count,
		.held = a->n->held[resource],
		.reusable = reuse ? a->reusable[resource] : NULL,
	};
}

static int device_hints(struct admission *a, bool pod_scope, struct hints *h)
{
	const struct container_ask *c = &a->ask->container[a->place];

	for (unsigned r = 0; r < a->n->nr_resources; r++) {
		bool asked = !pod_scope && asks_for_device(c, r);

		for (unsigned i = 0; i < a->ask->nr && pod_scope; i++)
			asked = asked || asks_for_device(&a->ask->container[i], r);
		if (!asked)
			continue;
		uint64_t count = pod_scope ? pod_total(a->ask, devices_of, r)
					   : devices_of(a->ask, a->place, r);
		struct device_claim what = claim(a, r, count, !pod_scope);
		int rc = devices_family(&what, a->n->t->nodes, a->arena, &h->family[h->nr++]);
		if (rc)
			return rc;
	}
	return 0;
}

static struct cpuset available_cpus(const struct node *n)
{
	return cpuset_minus(n->shared, &n->reserved);
}

static void cpu_hints(struct admission *a, bool pod_scope, struct hints *h)
{
	uint64_t count = pod_scope ? pod_total(a->ask, cpus_of, 0) : cpus_of(a->ask, a->place, 0);
	struct cpuset available = available_cpus(a->n);

	if (!static_cpus(a->n) || !count)
		return;
	cpus_family(a->n->t, &a->n->s->cpu_options, &available, &a->reusable_cpus, (unsigned)count,
		&h->per_node, &h->family[h->nr++]);
}

static bool pins_memory(const struct admission *a)
{
	return static_memory(a->n) && a->ask->qos == QOS_GUARANTEED && !a->ask->pod_level;
}

static void memory_hints(struct admission *a, bool pod_scope, struct hints *h)
{
	struct memory_demand total;

	if (!pins_memory(a))
		return;
	if (pod_scope)
		memory_pod_demand(a->pod->memory, a->pod->nr, &total);
	else
		total = a->pod->memory[a->place].demand;
	h->nr += memory_families(a->n->t, &a->n->memory, &total, pod_scope ? NULL : &a->reuse,
		&h->rows, a->arena, &h->family[h->nr]);
}

static int refuse(struct admission *a, const char *reason, const char *message)
{
	a->why->reason = reason;
	(void)text_copy(a->why->message, sizeof a->why->message, message);
	return -EPERM;
}

static int refuse_allocation(struct admission *a, const char *why)
{
	struct text t;

	a->why->reason = "UnexpectedAdmissionError";
	text_init(&t, a->why->message, sizeof a->why->message);
	text_add(&t, "Allocate failed due to %s, which is unexpected", why);
	return -EPERM;
}

/* Collect and merge: the affinity into *affinity. */
static int align(struct admission *a, bool pod_scope, struct hint *affinity)
{
	const struct settings *s = a->n->s;
	struct arena scratch = *a->arena; /* fixed memory: free again after each merge */
	const struct hint_space space = {
		.all = a->n->t->nodes,
		.distance = s->prefer_closest_numa_nodes ? a->n->t->distance : NULL,
		.visit_budget = s->merge_visit_budget,
	};
	struct admission with = *a;
	struct policy_answer answer;
	struct hints *h = arena_alloc(&scratch, sizeof *h);

	with.arena = &scratch;
	int rc = h ? device_hints(&with, pod_scope, h) : -ENOMEM;
	if (!rc) {
		cpu_hints(&with, pod_scope, h);
		memory_hints(&with, pod_scope, h);
		rc = policy_merge_families(
			s->topology_policy, &space, h->family, h->nr, &scratch, &answer);
	}
	if (rc < 0)
		return refuse_allocation(
			a, "the merge of NUMA hints needing more working memory than there is");
	*affinity = answer.affinity;
	return answer.admit ? 0
			    : refuse(a, "TopologyAffinityError",
				      "Resources cannot be allocated with Topology locality");
}

/* Allocation */

static int allocate_devices(struct admission *a, const struct hint *affinity)
{
	const struct container_ask *c = &a->ask->container[a->place];
	struct node_container *to = &a->pod->container[a->place];
	struct err e;

	for (unsigned i = 0; i < c->nr_devices; i++) {
		unsigned r = c->device[i].resource;
		struct device_claim what = claim(a, r, c->device[i].count, true);

		if (!c->device[i].count && a->n->resource[r].nr == 0)
			continue;
		to->device[r] = xcalloc(what.resource->nr, sizeof(bool));
		if (devices_allocate(&what, affinity, to->device[r], &e) < 0) {
			free(to->device[r]);
			to->device[r] = NULL;
			return refuse_allocation(a, e.text);
		}
		for (unsigned d = 0; d < what.resource->nr; d++) {
			if (!to->device[r][d])
				continue;
			a->n->held[r][d] = true;
			a->reusable[r][d] = c->kind == CONTAINER_INIT;
		}
	}
	return 0;
}

static struct cpuset available_physical(const struct node *n)
{
	struct cpuset reserved = cpus_whole_cores(n->t, &n->reserved);

	return cpuset_minus(n->shared, &reserved);
}

static int allocate_cpus(struct admission *a, const struct hint *affinity)
{
	const struct container_ask *c = &a->ask->container[a->place];
	const struct cpu_options *o = &a->n->s->cpu_options;
	unsigned count = exclusive_cpus(a->ask, c);
	struct cpuset physical = available_physical(a->n), free_cpus = available_cpus(a->n), got;
	struct err e;

	if (!static_cpus(a->n) || !count)
		return 0;
	if (cpus_check_whole_cores(a->n->t, o, &physical, count, &e) < 0)
		return refuse(a, "SMTAlignmentError", e.text);
	free_cpus = cpuset_or(free_cpus, &a->reusable_cpus);
	if (cpus_allocate(a->n->t, o, &free_cpus, count, affinity, &got, &e) < 0)
		return refuse_allocation(a, e.text);
	a->pod->container[a->place].cpus = got;
	a->n->shared = cpuset_minus(a->n->shared, &got);
	a->reusable_cpus = c->kind == CONTAINER_INIT ? cpuset_or(a->reusable_cpus, &got)
						     : cpuset_minus(a->reusable_cpus, &got);
	return 0;
}

static int allocate_memory(struct admission *a, const struct hint *affinity)
{
	struct memory_container *c = &a->pod->memory[a->place];
	struct arena scratch = *a->arena;
	struct err e;

	if (!pins_memory(a))
		return 0;
	int nr = memory_allocate(
		a->n->t, &a->n->memory, &c->demand, &a->reuse, affinity, &scratch, c->blocks, &e);
	if (nr < 0)
		return refuse_allocation(a, e.text);
	c->nr_blocks = (unsigned)nr;
	memory_hold_in_pod(&a->n->memory, &a->reuse, a->pod->memory, a->place + 1);
	return 0;
}

static int admit_container(struct admission *a, const struct hint *of_pod)
{
	struct hint *affinity = &a->pod->container[a->place].affinity;
	int rc = 0;

	if (of_pod)
		*affinity = *of_pod;
	else
		rc = align(a, false, affinity);
	if (!rc)
		rc = allocate_devices(a, affinity);
	if (!rc)
		rc = allocate_cpus(a, affinity);
	return rc ? rc : allocate_memory(a, affinity);
}

static int read_demands(struct admission *a)
{
	struct err e;

	for (unsigned c = 0; c < a->pod->nr && pins_memory(a); c++) {
		const struct container_ask *ask = &a->ask->container[c];

		if (memory_demand(a->n->t, ask->memory, ask->nr_memory, &a->pod->memory[c].demand,
			    &e) < 0)
			return refuse_allocation(a, e.text);
	}
	return 0;
}

static int admit_containers(struct admission *a)
{
	bool by_pod =
		a->n->s->topology_scope == SCOPE_POD && a->n->s->topology_policy != POLICY_NONE;
	struct hint affinity;
	int rc = read_demands(a);

	for (unsigned r = 0; r < a->n->nr_resources && !rc; r++) {
		a->reusable[r] = arena_array(a->arena, a->n->resource[r].nr, sizeof(bool));
		if (!a->reusable[r])
			rc = refuse_allocation(
				a, "the pod needing more working memory than there is");
	}
	if (!rc && by_pod)
		rc = align(a, true, &affinity);
	for (; !rc && a->place < a->ask->nr; a->place++)
		rc = admit_container(a, by_pod ? &affinity : NULL);
	return rc;
}

int node_admit(struct node *n, const struct pod_ask *pod, struct arena *a, struct refusal *why)
{
	struct admission admission = {
		.n = n, .ask = pod, .pod = pod_new(pod), .arena = a, .why = why};

	assert(a->fixed);
	int rc = admit_containers(&admission);
	if (!rc) {
		*vec_push(&n->pods) = admission.pod;
		return 0;
	}
	/* not the state from before: what a group's nodes are given back may lie elsewhere than
	 * what was taken, and the kubelet's numbers follow from that */
	release_pod(n, admission.pod);
	pod_free(admission.pod);
	return rc;
}

static size_t find(const struct node *n, const char *uid)
{
	size_t i = 0;

	while (i < n->pods.nr && !text_equal(n->pods.at[i]->uid, uid))
		i++;
	return i;
}

void node_start(struct node *n, const char *uid, const char *name)
{
	size_t i = find(n, uid);

	if (i == n->pods.nr)
		return;
	struct node_pod *p = n->pods.at[i];
	for (unsigned c = 0; c < p->nr; c++)
		if (text_equal(p->container[c].name, name))
			memory_start(&n->memory, p->memory, c + 1);
}

void node_remove(struct node *n, const char *uid)
{
	size_t i = find(n, uid);

	if (i == n->pods.nr)
		return;
	release_pod(n, n->pods.at[i]);
	pod_free(n->pods.at[i]);
	vec_remove(&n->pods, i);
}

const struct node_pod *node_find(const struct node *n, const char *uid)
{
	size_t i = find(n, uid);

	return i < n->pods.nr ? n->pods.at[i] : NULL;
}

struct cpuset node_reserved_cpus(const struct node *n)
{
	return n->reserved;
}

struct cpuset node_shared_cpus(const struct node *n)
{
	return n->shared;
}

const struct memory_state *node_memory(const struct node *n)
{
	return &n->memory;
}
