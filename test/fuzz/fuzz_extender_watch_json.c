#include <stddef.h>
#include <stdint.h>

#include <assert.h>
#include <codec/api_json.h>
#include <numafit-extender/extender_watch_json.h>
#include <sched/sched_cluster_state.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever a hint says, no more than the pod asks for is believed of it. */
static void fuzz_claim(const struct extender_pod *p, const struct resource_table *names)
{
	const struct sched_bound b = {.pod = &p->pod, .taken = p->taken, .nr_taken = p->nr_taken};
	struct sched_claim claim;

	sched_claim_of(&b, names, &claim);
	assert(!claim.nr || p->nr_taken);
	assert(sched_claim_is_within(&claim, &p->pod, names));
	sched_claim_fini(&claim);
}

static void fuzz_pod(json_t *v, const struct sched_reader *r)
{
	static struct topo every_node;
	struct extender_pod p, again;
	struct err e = {0};

	if (!every_node.ids.nr)
		extender_every_node(&every_node);
	int rc = extender_pod_json_read(v, r, &every_node, &p, &e);
	char *text = extender_pod_json_keep(v);
	json_t *kept = NULL;

	if (text)
		assert(api_json_parse(text, strlen(text), &kept, NULL) == 0);
	free(text);
	if (rc) {
		assert(e.text[0]);
	} else {
		assert(*p.pod.uid && (p.ours || !p.nr_taken));
		for (size_t i = 0; i < p.nr_taken; i++)
			assert(p.taken[i].zone_id < ZONES_MAX &&
				p.taken[i].resource < r->names->nr);
		assert(p.bound_ms >= 0);
		fuzz_claim(&p, r->names);
		/* what is kept of it reads the same */
		assert(kept && extender_pod_json_read(kept, r, &every_node, &again, NULL) == 0);
		assert(strcmp(p.pod.uid, again.pod.uid) == 0 && p.nr_taken == again.nr_taken &&
			p.pod.nr_containers == again.pod.nr_containers &&
			p.pod.qos == again.pod.qos);
	}
	json_decref(kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sched_report report;
	struct resource_table names;
	struct volcano_node *node;
	struct arena a;
	void *memory;
	json_t *v;

	if (api_json_parse((const char *)data, size, &v, NULL))
		return 0;
	arena_init(&a, EXTENDER_POD_BYTES_MAX);
	resource_table_init(&names);
	const struct sched_reader r = {&names, &a};
	fuzz_pod(v, &r);
	if (extender_report_json_read(v, &r, &report, NULL) == 0) {
		assert(report.topology && (report.names_pods || !report.nr_pods));
		assert(report.names_pods || !report.pod_zones || !report.nr_pods);
		sched_topology_free(report.topology);
	}
	struct extender_event event;
	if (extender_event_json_read(v, &event))
		assert(event.ns && event.uid && event.pod && event.reason && event.verdict &&
			*event.node);
	assert(extender_node_json_label(v, "numafit.io/pool"));
	if (extender_numatopology_json_read(v, &node, &memory, NULL) == 0)
		free(memory);
	resource_table_fini(&names);
	arena_fini(&a);
	json_decref(v);
	return 0;
}
