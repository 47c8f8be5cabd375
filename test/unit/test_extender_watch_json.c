#include <numafit-extender/extender_watch_json.h>

#include <codec/api_json.h>
#include <numafit-extender/binding_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

struct world {
	struct topo every_node;
	struct resource_table names;
	struct arena a;
	json_t *v;
};

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);

	extender_every_node(&w->every_node);
	resource_table_init(&w->names);
	arena_init(&w->a, EXTENDER_POD_BYTES_MAX);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	json_decref(w->v);
	arena_fini(&w->a);
	resource_table_fini(&w->names);
	free(w);
	return 0;
}

static json_t *parse(struct world *w, const char *text)
{
	struct err e;

	json_decref(w->v);
	w->v = NULL;
	if (api_json_parse(text, strlen(text), &w->v, &e))
		fail_msg("%s", e.text);
	return w->v;
}

static void read_pod(struct world *w, json_t *v, struct extender_pod *out)
{
	struct err e;

	if (extender_pod_json_read(
		    v, &(struct sched_reader){&w->names, &w->a}, &w->every_node, out, &e))
		fail_msg("%s", e.text);
}

#define HINT                                                                                       \
	"{\\\"v\\\":1,\\\"node\\\":\\\"n1\\\",\\\"uid\\\":\\\"u1\\\",\\\"at\\\":5000,\\\"ttl\\\":" \
	"60,\\\"containers\\\":{\\\"c\\\":{\\\"numa\\\":\\\"0,63\\\",\\\"res\\\":[{\\\"node\\\":"  \
	"63,\\\"resources\\\":{\\\"cpu\\\":\\\"1500m\\\",\\\"memory\\\":\\\"1Gi\\\"}}]}}}"
#define POD(node, uid, hint)                                                                       \
	"{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"" uid                        \
	"\",\"annotations\":{\"numafit.io/numa-hint\":\"" hint                                     \
	"\",\"other\":\"x\"},\"managedFields\":[{\"manager\":\"kubectl\"}]},\"spec\":{"            \
	"\"nodeName\":\"" node "\",\"containers\":[{\"name\":\"c\",\"image\":\"i\","               \
	"\"resources\":{\"requests\":{\"cpu\":\"1500m\"}}}]},\"status\":{\"phase\":\"Pending\"}}"

static void the_hint_of_a_bound_pod_gives_its_zones(void **state)
{
	struct world *w = *state;
	struct extender_pod p;

	read_pod(w, parse(w, POD("n1", "u1", HINT)), &p);
	assert_true(p.ours);
	assert_true(p.pending);
	assert_string_equal(p.node, "n1");
	assert_string_equal(p.workload, "ns/u1");
	assert_int_equal(p.nr_taken, 2);
	assert_int_equal(p.taken[0].zone_id, 63);
	assert_string_equal(p.taken[0].container, "c");
	assert_int_equal(p.taken[0].resource, RESOURCE_CPU);
	assert_int_equal(quantity_milli(p.taken[0].q), 1500);
	assert_int_equal(p.taken[1].resource, RESOURCE_MEMORY);
	assert_int_equal(p.taken[1].q.whole, 1 << 30);
}

static void a_hint_for_another_pod_or_node_is_ignored(void **state)
{
	static const char *const rows[] = {POD("n2", "u1", HINT), POD("n1", "u2", HINT),
		POD("", "u1", HINT), POD("n1", "u1", "x")};
	struct world *w = *state;
	struct extender_pod p;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		read_pod(w, parse(w, rows[i]), &p);
		assert_false(p.ours);
		assert_int_equal(p.nr_taken, 0);
	}
}

/* A hint says when it was made, too, and is its author's to change. */
static void the_time_of_binding_is_that_of_the_api_server(void **state)
{
	static const struct {
		const char *more;
		int64_t bound_ms;
	} rows[] = {
		{"", 0},
		{",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\","
		 "\"lastTransitionTime\":\"2026-11-22T16:47:06Z\"}]",
			INT64_C(1795366026999)},
		{",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","
		 "\"lastTransitionTime\":\"2026-11-22T16:47:06Z\"}]",
			0},
		{",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","
		 "\"lastTransitionTime\":\"2026-11-22T16:47:06Z\"}]",
			0},
		{",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\","
		 "\"lastTransitionTime\":\"yesterday\"}]",
			0},
	};
	struct world *w = *state;
	struct extender_pod p;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		auto_free char *text = NULL;

		assert_true(asprintf(&text, "%.*s%s}}", (int)strlen(POD("n1", "u1", HINT)) - 2,
				    POD("n1", "u1", HINT), rows[i].more) > 0);
		read_pod(w, parse(w, text), &p);
		assert_true(p.ours);
		assert_int_equal(p.bound_ms, rows[i].bound_ms);
	}
	read_pod(w,
		parse(w, "{\"metadata\":{\"uid\":\"u\",\"creationTimestamp\":"
			 "\"1970-01-01T00:01:00Z\"},\"spec\":{\"nodeName\":\"n\"}}"),
		&p);
	assert_int_equal(p.bound_ms, 60999);
}

static void hints_are_compared_by_their_text(void **state)
{
	static const struct {
		const char *a, *b;
		bool same;
	} rows[] = {
		{POD("", "u1", "x"), POD("n1", "u1", "x"), true},
		{POD("", "u1", "x"), POD("n1", "u1", "y"), false},
		{"{}", POD("n1", "u1", "x"), false},
		{POD("", "u1", "x"), "{}", false},
		{"{}", "{\"metadata\":{}}", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *a = json_loads(rows[i].a, 0, NULL), *b = json_loads(rows[i].b, 0, NULL);

		assert_int_equal(extender_pod_json_same_advice(a, b), rows[i].same);
		json_decref(a);
		json_decref(b);
	}
}

/* Annotations can be written again and again: their words are not kept. */
static void a_hint_with_an_unknown_resource_is_ignored(void **state)
{
	struct world *w = *state;
	struct extender_pod p;
	size_t before = w->names.nr;
	auto_free char *text = xstrdup(POD("n1", "u1", HINT));

	memcpy(strstr(text, "memory"), "xemory", strlen("xemory"));
	read_pod(w, parse(w, text), &p);
	assert_true(p.ours);
	assert_int_equal(p.nr_taken, 0);
	assert_int_equal(w->names.nr, before);
}

static void phases_and_refusals_are_distinguished(void **state)
{
	static const struct {
		const char *status;
		bool running, ended;
		const char *refused;
	} rows[] = {
		{"{}", false, false, NULL},
		{"{\"phase\":\"Running\"}", true, false, NULL},
		{"{\"phase\":\"Succeeded\"}", false, true, NULL},
		{"{\"phase\":\"Failed\",\"reason\":\"OutOfcpu\"}", false, true, NULL},
		{"{\"phase\":\"Failed\",\"reason\":\"TopologyAffinityError\"}", false, true,
			"TopologyAffinityError"},
		{"{\"containerStatuses\":[{},{\"state\":{\"waiting\":{\"reason\":"
		 "\"CreateContainerError\",\"message\":\"numafit: full\"}}}]}",
			false, false, "CreateContainerError"},
		{"{\"initContainerStatuses\":[{\"state\":{\"waiting\":{\"reason\":"
		 "\"CreateContainerError\",\"message\":\"nri: numafit: full\"}}}]}",
			false, false, "CreateContainerError"},
		{"{\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":"
		 "\"CreateContainerError\",\"message\":\"no such image\"}}}]}",
			false, false, NULL},
		{"{\"containerStatuses\":7}", false, false, NULL},
	};
	struct world *w = *state;
	struct extender_pod p;
	char text[512];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		(void)snprintf(text, sizeof text, "{\"metadata\":{\"uid\":\"u\"},\"status\":%s}",
			rows[i].status);
		read_pod(w, parse(w, text), &p);
		assert_int_equal(p.running, rows[i].running);
		assert_int_equal(p.ended, rows[i].ended);
		assert_true(text_equal(p.refused, rows[i].refused));
	}
}

static void an_event_says_what_numafitd_made_of_a_pod(void **state)
{
#define EVENT(type, reason, more)                                                                  \
	"{\"metadata\":{\"name\":\"e\",\"namespace\":\"a\"" more                                   \
	"},\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"u\"},\"type\":\"" type    \
	"\",\"reason\":\"" reason "\",\"reportingComponent\":\"numafitd\",\"source\":{\"host\":"   \
	"\"n\"},\"count\":2}"
	static const struct {
		const char *text;
		bool refuses;
		const char *verdict;
	} rows[] = {
		{EVENT("Warning", "TopologyAffinityError", ""), true, ""},
		{EVENT("Normal", "TopologyAffinityError", ""), false, ""},
		{EVENT("Warning", "NUMAWish", ""), false, ""},
		{EVENT("Warning", "NUMAHint",
			 ",\"annotations\":{\"numafit.io/hint-verdict\":\"rejected:uid\"}"),
			true, "rejected:uid"},
		{EVENT("Normal", "NUMAHint",
			 ",\"annotations\":{\"numafit.io/hint-verdict\":\"repaired\"}"),
			false, "repaired"},
		{EVENT("Normal", "NUMAHint", ",\"annotations\":{\"numafit.io/hint-verdict\":7}"),
			false, ""},
	};
	struct world *w = *state;
	struct extender_event event, other;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_true(extender_event_json_read(parse(w, rows[i].text), &event));
		assert_string_equal(event.ns, "a");
		assert_string_equal(event.pod, "p");
		assert_string_equal(event.uid, "u");
		assert_string_equal(event.node, "n");
		assert_int_equal(event.refuses, rows[i].refuses);
		assert_string_equal(event.verdict, rows[i].verdict);
	}
	auto_free char *text = xstrdup(rows[0].text);
	*strstr(text, "2}") = '3'; /* it has happened once more */
	assert_true(extender_event_json_read(parse(w, text), &other));
	assert_int_not_equal(other.number, event.number);
	*strstr(text, "numafitd") = 'N';
	assert_false(extender_event_json_read(parse(w, text), &other));
}

static void a_label_of_a_node_is_read(void **state)
{
	struct world *w = *state;
	json_t *v = parse(w, "{\"metadata\":{\"labels\":{\"a/b\":\"c\",\"d\":1}}}");

	assert_string_equal(extender_node_json_label(v, "a/b"), "c");
	assert_string_equal(extender_node_json_label(v, "d"), "");
	assert_string_equal(extender_node_json_label(v, ""), "");
	assert_string_equal(extender_node_json_label(parse(w, "{}"), "a/b"), "");
}

static void the_workload_of_a_pod_is_its_controller(void **state)
{
	struct world *w = *state;
	struct extender_pod p;

	read_pod(w,
		parse(w, "{\"metadata\":{\"uid\":\"u\",\"namespace\":\"ml\","
			 "\"ownerReferences\":[{\"uid\":\"other\"},"
			 "{\"uid\":\"rs\",\"controller\":true}]}}"),
		&p);
	assert_string_equal(p.workload, "ml/rs");
}

static void the_kept_part_of_a_pod_reads_the_same(void **state)
{
	struct world *w = *state;
	struct extender_pod before, after;

	read_pod(w, parse(w, POD("n1", "u1", HINT)), &before);
	auto_free char *text = extender_pod_json_keep(w->v);
	assert_non_null(text);
	json_t *kept = json_loads(text, 0, NULL);
	read_pod(w, kept, &after);
	assert_string_equal(after.pod.name, "p");
	assert_string_equal(after.pod.uid, "u1");
	assert_string_equal(after.node, "n1");
	assert_int_equal(after.nr_taken, before.nr_taken);
	assert_int_equal(after.pod.nr_containers, 1);
	assert_int_equal(after.pod.container[0].requests.nr, 1);
	assert_int_equal(after.pod.nr_annotations, 1);
	assert_null(json_object_get(json_object_get(kept, "metadata"), "managedFields"));
	json_decref(kept);
	assert_null(extender_pod_json_keep(parse(w, "{}")));
}

static void malformed_pods_are_refused(void **state)
{
	static const char *const rows[] = {"{}", "{\"metadata\":{\"uid\":7}}",
		"{\"metadata\":{\"uid\":\"u\"},\"spec\":{\"containers\":{}}}"};
	struct world *w = *state;
	struct extender_pod p;
	struct err e;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		e.text[0] = '\0';
		assert_int_equal(
			extender_pod_json_read(parse(w, rows[i]),
				&(struct sched_reader){&w->names, &w->a}, &w->every_node, &p, &e),
			-EINVAL);
		assert_true(e.text[0] != '\0');
	}
}

#define REPORT(attributes)                                                                         \
	"{\"metadata\":{\"name\":\"n\"},\"attributes\":[" attributes                               \
	"],\"zones\":[{\"name\":\"node-0\",\"type\":\"Node\"}]}"

static void a_report_says_what_is_in_it(void **state)
{
	struct world *w = *state;
	struct sched_report r;

	parse(w, REPORT("{\"name\":\"numafit.io/generation\",\"value\":\"18446744073709551615\"},"
			"{\"name\":\"numafit.io/pods\",\"value\":"
			"\"00000000000000ff123456789abcdef0\"},"
			"{\"name\":\"numafit.io/pod-zones\",\"value\":"
			"\"00000000000000018000000000000001\"}"));
	assert_int_equal(
		extender_report_json_read(w->v, &(struct sched_reader){&w->names, &w->a}, &r, NULL),
		0);
	assert_true(r.generation == UINT64_MAX && r.names_pods);
	assert_int_equal(r.nr_pods, 2);
	assert_true(r.pod[0] == 0xff && r.pod[1] == 0x123456789abcdef0);
	assert_true(r.pod_zones[0] == 1 && r.pod_zones[1] == 0x8000000000000001);
	assert_int_equal(r.topology->nr_zones, 1);
	sched_topology_free(r.topology);
}

static void reports_of_other_writers_and_malformed_ones_are_recognised(void **state)
{
	static const struct {
		const char *text;
		int rc;
		bool names_pods;
	} rows[] = {
		{REPORT(""), 0, false},
		{REPORT("{\"name\":\"numafit.io/pods\",\"value\":\"\"}"), 0, true},
		{REPORT("{\"name\":\"numafit.io/fragmentation\",\"value\":\"much\"},"
			"{\"name\":\"numafit.io/free-cpus\",\"value\":\"-1\"},"
			"{\"name\":\"numafit.io/largest-free-cpus\",\"value\":\"\"}"),
			0, false}, /* for others: the extender does not look at them */
		{REPORT("{\"name\":\"numafit.io/pods\",\"value\":\"12\"}"), -EINVAL, false},
		{REPORT("{\"name\":\"numafit.io/pods\",\"value\":\"123456789ABCDEF0\"}"), -EINVAL,
			false},
		{REPORT("{\"name\":\"numafit.io/generation\",\"value\":\"-1\"}"), -EINVAL, false},
		{REPORT("{\"name\":\"numafit.io/pod-zones\",\"value\":\"0000000000000001\"}"),
			-EINVAL, false},
		{"{\"zones\":{}}", -EINVAL, false},
	};
	struct world *w = *state;
	struct sched_report r;
	struct err e;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int rc = extender_report_json_read(
			parse(w, rows[i].text), &(struct sched_reader){&w->names, &w->a}, &r, &e);

		assert_int_equal(rc, rows[i].rc);
		if (rc)
			continue;
		assert_int_equal(r.names_pods, rows[i].names_pods);
		assert_int_equal(r.generation, 0);
		sched_topology_free(r.topology);
	}
}

static void a_numatopology_is_one_block(void **state)
{
	struct world *w = *state;
	struct volcano_node *n;
	void *memory;

	parse(w, "{\"spec\":{\"policies\":{\"CPUManagerPolicy\":\"static\","
		 "\"TopologyManagerPolicy\":\"best-effort\"},\"cpuDetail\":{\"0\":{},\"1\":{"
		 "\"numa\":1,\"core\":1}},\"numares\":{\"cpu\":{\"allocatable\":\"0-1\"}}}}");
	assert_int_equal(extender_numatopology_json_read(w->v, &n, &memory, NULL), 0);
	json_decref(w->v);
	w->v = NULL; /* nothing is borrowed */
	assert_string_equal(n->cpu_manager_policy, "static");
	assert_string_equal(n->topology_manager_policy, "best-effort");
	assert_int_equal(n->nr_cpus, 2);
	assert_int_equal(n->ids.nr, 2);
	free(memory);
	assert_true(
		extender_numatopology_json_read(
			parse(w, "{\"spec\":{\"cpuDetail\":{\"x\":{}}}}"), &n, &memory, NULL) < 0);
}

static void a_binding_is_written_as_the_api_server_accepts_it(void **state)
{
	const struct key_value annotation = {"numafit.io/numa-hint", "{\"v\":1}"};
	struct binding b = {"default", "db-0", "u", "worker-0", &annotation, 1};

	(void)state;
	auto_free char *text = binding_json_write(&b);
	assert_string_equal(text,
		"{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"db-0\","
		"\"namespace\":\"default\",\"uid\":\"u\",\"annotations\":{\"numafit.io/"
		"numa-hint\":\"{\\\"v\\\":1}\"}},\"target\":{\"apiVersion\":\"v1\",\"kind\":"
		"\"Node\",\"name\":\"worker-0\"}}");
	b.nr_annotations = 0;
	auto_free char *plain = binding_json_write(&b);
	assert_null(strstr(plain, "annotations"));
	b.node = "\xff";
	assert_null(binding_json_write(&b));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_hint_of_a_bound_pod_gives_its_zones),
		T(a_hint_for_another_pod_or_node_is_ignored),
		T(the_time_of_binding_is_that_of_the_api_server),
		T(hints_are_compared_by_their_text),
		T(a_hint_with_an_unknown_resource_is_ignored),
		T(phases_and_refusals_are_distinguished),
		T(an_event_says_what_numafitd_made_of_a_pod),
		T(a_label_of_a_node_is_read),
		T(the_workload_of_a_pod_is_its_controller),
		T(the_kept_part_of_a_pod_reads_the_same),
		T(malformed_pods_are_refused),
		T(a_report_says_what_is_in_it),
		T(reports_of_other_writers_and_malformed_ones_are_recognised),
		T(a_numatopology_is_one_block),
		T(a_binding_is_written_as_the_api_server_accepts_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
