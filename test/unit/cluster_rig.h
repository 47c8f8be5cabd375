#ifndef NUMAFIT_TEST_CLUSTER_RIG_H
#define NUMAFIT_TEST_CLUSTER_RIG_H

#include <numafit/nrt_fingerprint.h>
#include <numafit/sched_cluster.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Nodes of two zones with 16 CPUs each, and pods of whole CPUs and 1 Gi on them. */

enum {
	RIG_ZONES = 2,
	RIG_CPUS = 16,
	RIG_PARTS_MAX = 64,
	RIG_START_MS = 1000000,
	RIG_ASSUME_MS = 90000
};
#define RIG_GIB (INT64_C(1) << 30)

struct rig {
	struct resource_table names;
	struct sched_cluster *c;
	int64_t now_ms;
};

static inline void rig_init(struct rig *r, const struct sched_cluster_args *args)
{
	struct sched_cluster_args own = *args;

	*r = (struct rig){.now_ms = RIG_START_MS};
	resource_table_init(&r->names);
	own.assume_ms = RIG_ASSUME_MS;
	r->c = sched_cluster_new(&own, &r->names);
}

static inline void rig_fini(struct rig *r)
{
	struct err e = {0};

	if (sched_cluster_check(r->c, &e))
		fail_msg("%s", e.text);
	sched_cluster_free(r->c);
	resource_table_fini(&r->names);
}

static inline void rig_node(struct rig *r, const char *name)
{
	const struct amount all[] = {{RESOURCE_CPU, quantity_of(RIG_ZONES * RIG_CPUS)},
		{RESOURCE_MEMORY, quantity_of(RIG_ZONES * RIG_CPUS * RIG_GIB)}};

	sched_cluster_put_node(r->c, &(struct sched_node){.name = name, .allocatable = {all, 2}});
}

/* CPUs that are left in each zone, and as many Gi. */
static inline struct sched_topology *rig_topology(const char *policy, const int64_t *cpus)
{
	static const uint8_t id[RIG_ZONES] = {0, 1};
	const struct quantity all = quantity_of(RIG_CPUS), bytes = quantity_of(RIG_CPUS * RIG_GIB);
	struct sched_topology *t = sched_topology_new(id, RIG_ZONES);

	sched_topology_attribute(t, "topologyManagerPolicy", policy);
	for (unsigned z = 0; z < RIG_ZONES; z++) {
		sched_topology_resource(
			t, z, RESOURCE_CPU, &(struct zone_amounts){all, all, quantity_of(cpus[z])});
		sched_topology_resource(t, z, RESOURCE_MEMORY,
			&(struct zone_amounts){bytes, bytes, quantity_of(cpus[z] * RIG_GIB)});
	}
	return t;
}

static inline uint64_t rig_part(const char *pod)
{
	return fingerprint_pod("default", pod);
}

/* A report of numafitd that names these pods ("a b"). */
static inline void rig_report(
	struct rig *r, const char *node, uint64_t generation, const int64_t *cpus, const char *pods)
{
	uint64_t part[RIG_PARTS_MAX];
	size_t nr = 0;
	char own[256];

	(void)snprintf(own, sizeof own, "%s", pods);
	for (char *at = own, *word; (word = strsep(&at, " "));)
		if (*word)
			part[nr++] = rig_part(word);
	sched_cluster_put_report(r->c, node,
		&(struct sched_report){.topology = rig_topology("single-numa-node", cpus),
			.generation = generation,
			.pod = part,
			.nr_pods = nr,
			.names_pods = true},
		r->now_ms);
}

/* One that names a single pod, and where it is: zones by bits. */
static inline void rig_report_zones(struct rig *r, const char *node, uint64_t generation,
	const int64_t *cpus, const char *pod, uint64_t zones)
{
	uint64_t part = rig_part(pod);

	sched_cluster_put_report(r->c, node,
		&(struct sched_report){.topology = rig_topology("single-numa-node", cpus),
			.generation = generation,
			.pod = &part,
			.pod_zones = &zones,
			.nr_pods = 1,
			.names_pods = true},
		r->now_ms);
}

/* One of others, with the fingerprint of these pods. */
static inline void rig_foreign_report(
	struct rig *r, const char *node, const int64_t *cpus, const char *pods)
{
	struct sched_topology *t = rig_topology("single-numa-node", cpus);
	char own[256], text[FINGERPRINT_TEXT_MAX];
	uint64_t part[RIG_PARTS_MAX];
	size_t nr = 0;

	(void)snprintf(own, sizeof own, "%s", pods);
	for (char *at = own, *word; (word = strsep(&at, " "));)
		if (*word)
			part[nr++] = rig_part(word);
	sched_topology_attribute(
		t, "nodeTopologyPodsFingerprint", fingerprint_text(text, part, nr));
	sched_cluster_put_report(r->c, node, &(struct sched_report){.topology = t}, r->now_ms);
}

/* A pod of one container. */
struct rig_pod {
	struct amount asks[2];
	struct sched_container container;
	struct sched_pod pod;
	struct sched_taken taken[2], claims[4];
	struct sched_bound bound;
};

/* On zone below 0: not known; no hint then. */
static inline void rig_pod(
	struct rig_pod *p, const char *name, const char *node, int64_t cpus, int zone)
{
	*p = (struct rig_pod){.asks = {{RESOURCE_CPU, quantity_of(cpus)},
				      {RESOURCE_MEMORY, quantity_of(RIG_GIB)}}};
	p->container = (struct sched_container){.name = "main", .requests = {p->asks, 2}};
	p->pod = (struct sched_pod){.ns = "default",
		.name = name,
		.uid = name,
		.qos = QOS_GUARANTEED,
		.container = &p->container,
		.nr_containers = 1};
	p->bound = (struct sched_bound){.pod = &p->pod, .node = node};
	if (zone < 0)
		return;
	for (unsigned i = 0; i < 2; i++)
		p->taken[i] = (struct sched_taken){
			(unsigned)zone, p->asks[i].resource, p->asks[i].q, "main"};
	p->bound.taken = p->taken;
	p->bound.nr_taken = 2;
	p->bound.ours = p->bound.seen_bound = true;
}

/* What the zone has left of the resource; -1: nothing is known of it. */
static inline int64_t rig_left(struct rig *r, const char *node, unsigned zone, unsigned resource)
{
	const struct sched_candidate *c = sched_cluster_find(r->c, node);

	if (!c || !c->node->topology)
		return -1;
	return sched_topology_find(c->node->topology, resource)->available[zone].whole;
}

static inline int64_t rig_cpus(struct rig *r, const char *node, unsigned zone)
{
	return rig_left(r, node, zone, RESOURCE_CPU);
}

#define assert_left(r, node, first, second)                                                        \
	do {                                                                                       \
		assert_int_equal(rig_cpus((r), (node), 0), (first));                               \
		assert_int_equal(rig_cpus((r), (node), 1), (second));                              \
	} while (0)

#endif
