#include <codec/nrt_write_json.h>

#include <jansson.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <stdio.h>

/* MAX_NUMA_USUAL: what readers take where nothing is said, and the kubelet's own limit. */
enum { NUMBER_TEXT_MAX = 24, MAX_NUMA_USUAL = 8 };

static const char *nrt_number_text(char *buf, uint64_t value)
{
	(void)snprintf(buf, NUMBER_TEXT_MAX, "%llu", (unsigned long long)value);
	return buf;
}

static void add_attribute(json_t *list, const char *name, const char *value)
{
	(void)json_array_append_new(list, json_pack("{s:s,s:s}", "name", name, "value", value));
}

static void nrt_add_number(json_t *list, const char *name, uint64_t value)
{
	char buf[NUMBER_TEXT_MAX];

	add_attribute(list, name, nrt_number_text(buf, value));
}

/* Attributes */

static void add_policy(json_t *list, const struct report *r)
{
	static const char *const strategies[] = {NULL, "most-allocated", "least-allocated"};
	const struct report_policy *p = &r->policy;

	if (!r->has_policy)
		return;
	add_attribute(list, "topologyManagerPolicy", topology_policy_words[p->policy]);
	add_attribute(list, "topologyManagerScope", topology_scope_words[p->scope]);
	/* The divisor of LeastNUMANodes: 1 is refused, and with fewer than there are zones scores
	 * leave their range. */
	nrt_add_number(list, "topologyManagerMaxNUMANodes",
		(unsigned)number_max(r->topo->ids.nr, MAX_NUMA_USUAL));
	add_attribute(list, "topologyManagerOptionPreferClosestNumaNodes",
		p->prefer_closest_numa_nodes ? "true" : "false");
	if (p->max_allowable_numa_nodes)
		nrt_add_number(list, "topologyManagerOptionMaxAllowableNumaNodes",
			p->max_allowable_numa_nodes);
	if (strategies[p->strategy])
		add_attribute(list, "topologyManagerOptionNumaAllocationStrategy",
			strategies[p->strategy]);
}

static void add_pods(json_t *list, const struct report *r)
{
	static const char *const methods[] = {NULL, "all", "with-exclusive-resources"};

	if (methods[r->fingerprint_of]) {
		add_attribute(list, "nodeTopologyPodsFingerprint", r->fingerprint);
		add_attribute(
			list, "nodeTopologyPodsFingerprintMethod", methods[r->fingerprint_of]);
	}
	if (r->has_placement)
		add_attribute(
			list, "topology.node.k8s.io/numaplacement-metadata", r->placement.metadata);
}

static void add_fragmentation(json_t *list, const struct node_fragmentation *f)
{
	char ratio[FRAGMENTATION_TEXT_MAX];

	add_attribute(list, "numafit.io/fragmentation",
		node_fragmentation_text(ratio, node_fragmentation_milli(f)));
	nrt_add_number(list, "numafit.io/free-cpus", f->free);
	nrt_add_number(list, "numafit.io/largest-free-cpus", f->largest);
}

static json_t *attributes(const struct report *r, uint64_t beat)
{
	json_t *list = json_array();

	add_policy(list, r);
	add_pods(list, r);
	add_attribute(list, "numafit.io/decider", decider_words[r->decider]);
	nrt_add_number(list, "numafit.io/generation", r->generation);
	add_fragmentation(list, &r->fragmentation);
	add_attribute(list, "numafit.io/pods", r->pods);
	add_attribute(list, "numafit.io/pod-zones", r->pod_zones);
	nrt_add_number(list, "numafit.io/beat", beat);
	return list;
}

/* The deprecated field's words; for all else there is none. */
static json_t *old_policies(const struct report *r)
{
	static const char *const words[NR_POLICIES][2] = {
		[POLICY_BEST_EFFORT] = {"BestEffortContainerLevel", "BestEffortPodLevel"},
		[POLICY_RESTRICTED] = {"RestrictedContainerLevel", "RestrictedPodLevel"},
		[POLICY_SINGLE_NUMA_NODE] = {"SingleNUMANodeContainerLevel",
			"SingleNUMANodePodLevel"},
	};
	const char *word = words[r->policy.policy][r->policy.scope == SCOPE_POD];

	return r->has_policy && word ? json_pack("[s]", word) : NULL;
}

/* Zones */

const char *nrt_zone_name(char buf[NRT_ZONE_NAME_MAX], unsigned node)
{
	(void)snprintf(buf, NRT_ZONE_NAME_MAX, "node-%u", node);
	return buf;
}

static json_t *costs(const struct topo *t, unsigned from)
{
	json_t *list = json_array();
	char name[NRT_ZONE_NAME_MAX];

	nodeset_each (to, t->nodes)
		(void)json_array_append_new(
			list, json_pack("{s:s,s:i}", "name", nrt_zone_name(name, to), "value",
				      (int)t->distance[from][to]));
	return list;
}

static json_t *resources(const struct report *r, unsigned node)
{
	char capacity[NUMBER_TEXT_MAX], allocatable[NUMBER_TEXT_MAX], available[NUMBER_TEXT_MAX];
	json_t *list = json_array();

	for (size_t i = 0; i < r->nr_resources; i++) {
		const struct report_amounts *on = &r->resource[i].on[node];

		(void)json_array_append_new(
			list, json_pack("{s:s,s:s,s:s,s:s}", "name", r->resource[i].name,
				      "capacity", nrt_number_text(capacity, on->capacity),
				      "allocatable", nrt_number_text(allocatable, on->allocatable),
				      "available", nrt_number_text(available, on->available)));
	}
	return list;
}

/* NULL: none. */
static json_t *zone_attributes(const struct report *r, unsigned node)
{
	json_t *list = json_array();

	if (r->topo->ids.id[node] != node)
		nrt_add_number(list, "numafit.io/numa-node-id", r->topo->ids.id[node]);
	if (r->has_placement && r->placement.vector[node])
		add_attribute(list, "topology.node.k8s.io/numaplacement-vector",
			r->placement.vector[node]);
	if (json_array_size(list))
		return list;
	json_decref(list);
	return NULL;
}

static json_t *zones(const struct report *r)
{
	json_t *list = json_array();
	char name[NRT_ZONE_NAME_MAX];

	nodeset_each (n, r->topo->nodes)
		(void)json_array_append_new(
			list, json_pack("{s:s,s:s,s:o,s:o*,s:o}", "name", nrt_zone_name(name, n),
				      "type", "Node", "costs", costs(r->topo, n), "attributes",
				      zone_attributes(r, n), "resources", resources(r, n)));
	return list;
}

char *nrt_json_write(const struct report *r, const struct nrt_write_options *o)
{
	json_t *metadata = json_pack("{s:s,s:[{s:s,s:s,s:s,s:s}]}", "name", r->node_name,
		"ownerReferences", "apiVersion", "v1", "kind", "Node", "name", r->node_name, "uid",
		r->node_uid);

	if (!metadata)
		return NULL;
	json_t *object = json_pack("{s:s,s:s,s:o,s:o*,s:o,s:o}", "apiVersion",
		"topology.node.k8s.io/v1alpha2", "kind", "NodeResourceTopology", "metadata",
		metadata, "topologyPolicies", o->topology_policies ? old_policies(r) : NULL,
		"attributes", attributes(r, o->beat), "zones", zones(r));
	char *text = json_dumps(object, JSON_COMPACT);
	json_decref(object);
	return text;
}
