#include <numafit/sched.h>

#include <numafit/text.h>
#include <string.h>

enum { MAX_NUMA_DEFAULT = 8, MAX_NUMA_LIMIT = 1024 };

/* What Go's strconv.Atoi takes, of numbers that are not negative: -1 for anything else. */
static int64_t atoi_like(const char *s)
{
	uint64_t v;

	s += *s == '+';
	return text_u64(s, strlen(s), INT64_MAX, &v, NULL) < 0 ? -1 : (int64_t)v;
}

int zone_numa_id(const char *type, const char *name)
{
	const char *number = text_behind(name, "node-");
	int64_t id = number && (!type || !strcmp(type, "Node")) ? atoi_like(number) : -1;

	return id >= 0 && id < ZONES_MAX ? (int)id : -1;
}

struct sched_topology *sched_topology_new(const uint8_t *zone_id, unsigned nr_zones)
{
	if (nr_zones > ZONES_MAX)
		return NULL;
	struct sched_topology *t = xcalloc(1, sizeof *t);
	unsigned nr_costs = nr_zones * nr_zones;

	t->nr_zones = nr_zones;
	if (nr_zones)
		memcpy(t->zone_id, zone_id, nr_zones);
	t->cost = xcalloc(nr_costs ? nr_costs : 1, sizeof *t->cost);
	for (unsigned i = 0; i < nr_costs; i++)
		t->cost[i] = ZONE_COST_UNKNOWN;
	t->max_numa_nodes = MAX_NUMA_DEFAULT;
	return t;
}

void sched_topology_free(struct sched_topology *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->resources.nr; i++)
		free(t->resources.at[i].available);
	vec_fini(&t->resources);
	free(t->cost);
	free(t->fingerprint);
	free(t);
}

/* The words of noderesourcetopology-api's TopologyManagerPolicy that its readers know
 * (scheduler-plugins pkg/noderesourcetopology/nodeconfig). */
void sched_topology_policy(struct sched_topology *t, const char *first)
{
	static const struct {
		const char *word;
		enum topology_policy policy;
		enum topology_scope scope;
	} words[] = {
		{"SingleNUMANodePodLevel", POLICY_SINGLE_NUMA_NODE, SCOPE_POD},
		{"SingleNUMANodeContainerLevel", POLICY_SINGLE_NUMA_NODE, SCOPE_CONTAINER},
		{"BestEffortPodLevel", POLICY_BEST_EFFORT, SCOPE_POD},
		{"BestEffortContainerLevel", POLICY_BEST_EFFORT, SCOPE_CONTAINER},
		{"RestrictedPodLevel", POLICY_RESTRICTED, SCOPE_POD},
		{"RestrictedContainerLevel", POLICY_RESTRICTED, SCOPE_CONTAINER},
	};

	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		if (!strcmp(first, words[i].word)) {
			t->policy = words[i].policy;
			t->scope = words[i].scope;
		}
}

void sched_topology_attribute(struct sched_topology *t, const char *name, const char *value)
{
	if (!strcmp(name, "topologyManagerScope")) {
		if (!strcmp(value, "container"))
			t->scope = SCOPE_CONTAINER;
		else if (!strcmp(value, "pod"))
			t->scope = SCOPE_POD;
	} else if (!strcmp(name, "topologyManagerPolicy")) {
		int policy = text_index(topology_policy_words, NR_POLICIES, value);

		if (policy >= 0)
			t->policy = (enum topology_policy)policy;
	} else if (!strcmp(name, "topologyManagerMaxNUMANodes")) {
		int64_t max = atoi_like(value);

		if (max > 1)
			t->max_numa_nodes = (unsigned)(max < MAX_NUMA_LIMIT ? max : MAX_NUMA_LIMIT);
	} else if (!strcmp(name, "topologyManagerOptionPreferClosestNumaNodes")) {
		t->prefer_closest = !strcmp(value, "true");
	} else if (!strcmp(name, "nodeTopologyPodsFingerprint") && !t->fingerprint) {
		t->fingerprint = xstrdup(value);
	} else if (!strcmp(name, "nodeTopologyPodsFingerprintMethod") &&
		   !strcmp(value, "with-exclusive-resources")) {
		t->fingerprint_method = FINGERPRINT_EXCLUSIVE;
	}
}

void sched_topology_cost(struct sched_topology *t, unsigned zone, unsigned to_id, int64_t cost)
{
	if (cost > INT32_MAX || cost < INT32_MIN)
		cost = cost < 0 ? INT32_MIN : INT32_MAX;
	for (unsigned to = 0; to < t->nr_zones; to++)
		if (t->zone_id[to] == to_id)
			t->cost[zone * t->nr_zones + to] = (int32_t)cost;
}

const struct zone_resource *sched_topology_find(const struct sched_topology *t, unsigned resource)
{
	for (size_t i = 0; i < t->resources.nr; i++)
		if (t->resources.at[i].resource == resource)
			return &t->resources.at[i];
	return NULL;
}

void sched_topology_resource(struct sched_topology *t, unsigned zone, unsigned resource,
	const struct zone_amounts *amounts)
{
	enum { AMOUNTS = 3 };
	struct zone_resource *r = (void *)(uintptr_t)sched_topology_find(t, resource);

	if (!r) {
		r = vec_push(&t->resources);
		r->resource = resource;
		r->available = xcalloc((size_t)AMOUNTS * t->nr_zones, sizeof *r->available);
		r->allocatable = r->available + t->nr_zones;
		r->capacity = r->allocatable + t->nr_zones;
	}
	r->listed |= UINT64_C(1) << zone;
	r->available[zone] = amounts->available;
	r->allocatable[zone] = amounts->allocatable;
	r->capacity[zone] = amounts->capacity;
}
