/* An API server for tests of the page of the cluster: so many nodes with so many NUMA nodes, in
 * three pools; of the first nodes some are odd. It prints the path of a kubeconfig and serves until
 * it is killed; with SIGUSR1 the cluster goes on: pods are refused, a node becomes stale, one goes;
 * and the next time a node has an event about a hint. usage: ui_cluster NODES ZONES */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../unit/extender_rig.h"

enum { NAME_ROOM = 280, CPUS = 16, GIB = 64, ODD = 5 };

static struct rig rig;
static unsigned nr_zones;

static const char *const pools[] = {"latency", "batch", "\"><script>alert(2)</script>"};
static const char *const odd[ODD] = {"<img src=x onerror=alert(1)>",
	("a-name-that-is-as-long-as-those-of-nodes-may-be-in-kubernetes.0123456789012345678901234567890123456789012345678901."
	 "01234567890123456789012345678901234567890123456789.example.com"),
	"unnamed", "unreported", "goes-away"};

static const char *node_name(char out[NAME_ROOM], unsigned i)
{
	(void)snprintf(out, NAME_ROOM, "node-%u", i);
	return i < ODD ? odd[i] : out;
}

/* What looks like a cluster in use: most zones full or almost, some empty. */
static int cpus_left(unsigned node, unsigned zone)
{
	unsigned mixed = (node * 2654435761u) ^ (zone * 40503u + node / 7);

	mixed = (mixed ^ (mixed >> 13)) % 100;
	return mixed < 35 ? 0 : mixed < 80 ? (int)(mixed % 12) : CPUS;
}

static json_t *cluster_node(unsigned i)
{
	char name[NAME_ROOM];
	json_t *v = rig_node(node_name(name, i));

	(void)json_object_set_new(json_object_get(v, "metadata"), "labels",
		json_pack("{s:s}", "example.com/pool", pools[i % 10 == 0 ? 2 : i % 2]));
	return v;
}

static json_t *cluster_report(unsigned i, unsigned generation)
{
	char name[NAME_ROOM], number[16];

	(void)snprintf(number, sizeof number, "%u", generation);
	json_t *v = json_pack("{s:{s:s}, s:[{s:s, s:s}, {s:s, s:s}], s:[]}", "metadata", "name",
		node_name(name, i), "attributes", "name", "topologyManagerPolicy", "value",
		"single-numa-node", "name", "numafit.io/generation", "value", number, "zones");
	if (i != 2)
		(void)json_array_append_new(json_object_get(v, "attributes"),
			json_pack("{s:s, s:s}", "name", "numafit.io/pods", "value", ""));
	for (unsigned z = 0; z < nr_zones; z++) {
		int cpus = cpus_left(i + generation - 1, z);

		(void)snprintf(number, sizeof number, "node-%u", z);
		(void)snprintf(name, sizeof name, "%dGi", cpus * GIB / CPUS);
		(void)json_array_append_new(json_object_get(v, "zones"),
			json_pack("{s:s, s:s, s:[{s:s, s:i, s:i, s:i}, {s:s, s:s, s:s, s:s}]}",
				"name", number, "type", "Node", "resources", "name", "cpu",
				"capacity", CPUS, "allocatable", CPUS, "available", cpus, "name",
				"memory", "capacity", "64Gi", "allocatable", "64Gi", "available",
				name));
	}
	return v;
}

static void refuse_pod(const char *name, const char *node, const char *reason)
{
	rig_put(&rig, PODS, rig_pod(name, 4, NULL));
	json_t *bound = rig_pod(name, 4, NULL);
	(void)json_object_set_new(json_object_get(bound, "spec"), "nodeName", json_string(node));
	(void)json_object_set_new(bound, "status",
		json_pack("{s:s, s:s, s:s}", "phase", "Failed", "reason", reason, "qosClass",
			"Guaranteed"));
	rig_put(&rig, PODS, bound);
}

/* What the node says of the hint of the pod that another scheduler has bound there. */
static void judge_hint(void)
{
	rig_put(&rig, EVENTS,
		json_pack("{s:{s:s, s:s, s:{s:s}}, s:{s:s, s:s}, s:s, s:s, s:s, s:{s:s}}",
			"metadata", "name", "hint", "namespace", "default", "annotations",
			"numafit.io/hint-verdict", "repaired", "involvedObject", "kind", "Pod",
			"uid", "uid-of-by-another-scheduler", "reportingComponent", "numafitd",
			"type", "Normal", "reason", "NUMAHint", "source", "host", odd[2]));
}

static void go_on(void *ctx)
{
	static unsigned generation = 1;

	(void)ctx;
	if (generation++ > 1) {
		judge_hint();
		return;
	}
	refuse_pod("refused-0", odd[0], "TopologyAffinityError");
	refuse_pod("<b onclick=alert(3)>refused-1</b>", "node-7", "TopologyAffinityError");
	json_t *stranger = rig_pod("by-another-scheduler", 4, NULL);
	(void)json_object_set_new(
		json_object_get(stranger, "spec"), "nodeName", json_string(odd[2]));
	rig_put(&rig, PODS, stranger);
	rig_send_event(&rig, NODES, "DELETED", rig_find(&rig.list[NODES], odd[ODD - 1]));
	rig_put(&rig, REPORTS, cluster_report(6, generation));
}

static bool over;

static void end(void *ctx)
{
	(void)ctx;
	over = true;
	loop_stop(rig.f.loop);
}

int main(int argc, char **argv)
{
	unsigned nr = argc == 3 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;

	nr_zones = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	if (!nr || !nr_zones)
		return 2;
	rig_init(&rig);
	loop_timer_stop(rig.f.deadline);
	for (unsigned i = 0; i < nr; i++) {
		(void)json_array_append_new(rig.list[NODES].items, cluster_node(i));
		if (i != 3)
			(void)json_array_append_new(rig.list[REPORTS].items, cluster_report(i, 1));
	}
	assert_int_equal(loop_on_signal(rig.f.loop, SIGUSR1, go_on, NULL), 0);
	assert_int_equal(loop_on_signal(rig.f.loop, SIGTERM, end, NULL), 0);
	(void)printf("%s\n", rig.f.kubeconfig);
	(void)fflush(stdout);
	while (!over)
		loop_run(rig.f.loop);
	rig_fini(&rig);
	return 0;
}
