#include <codec/pod_spec.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { LISTED_MAX = 12, SOME_MAX = 3, ARENA_MAX = 1 << 20 };

/* Resources as "cpu=2 memory=1Gi"; the text is taken apart in place. */
struct listed {
	char text[128];
	struct resource_amount amount[LISTED_MAX];
};

static struct resource_list listed(struct listed *l, const char *text)
{
	struct resource_list list = {l->amount, 0};
	char *save = NULL;

	(void)snprintf(l->text, sizeof l->text, "%s", text ? text : "");
	for (char *at = strtok_r(l->text, " ", &save); at; at = strtok_r(NULL, " ", &save)) {
		char *value = strchr(at, '=');

		*value = '\0';
		l->amount[list.nr].name = at;
		assert_int_equal(quantity_parse(&l->amount[list.nr++].q, value + 1, NULL), 0);
	}
	return list;
}

struct texts {
	const char *requests, *limits;
};

struct room {
	struct listed requests, limits;
};

static struct resource_spec spec_of(struct room *r, struct texts from)
{
	return (struct resource_spec){.requests = listed(&r->requests, from.requests),
		.limits = listed(&r->limits, from.limits)};
}

/* The classes that ComputePodQOS() gives (pkg/apis/core/v1/helper/qos of 1.37). */
static void the_class_is_kubernetes(void **state)
{
	static const struct {
		const char *status_qos;
		struct texts container[SOME_MAX], pod;
		enum qos want;
		unsigned nr;
	} cases[] = {
		{.want = QOS_BEST_EFFORT},
		{.nr = 2, .want = QOS_BEST_EFFORT},
		{.nr = 1, .container = {{"a.b/c=1", "a.b/c=1"}}, .want = QOS_BEST_EFFORT},
		{.nr = 1, .container = {{"cpu=0 memory=0", "cpu=0"}}, .want = QOS_BEST_EFFORT},
		{.nr = 1, .container = {{NULL, "cpu=1 memory=1Gi"}}, .want = QOS_GUARANTEED},
		{.nr = 1,
			.container = {{"cpu=1000m memory=1024Mi", "cpu=1 memory=1Gi"}},
			.want = QOS_GUARANTEED},
		{.nr = 1, .container = {{"cpu=1 memory=1Gi", NULL}}, .want = QOS_BURSTABLE},
		{.nr = 1,
			.container = {{"cpu=1 memory=1Gi", "cpu=2 memory=1Gi"}},
			.want = QOS_BURSTABLE},
		{.nr = 1,
			.container = {{"cpu=1 memory=1Gi", "cpu=1 memory=2Gi"}},
			.want = QOS_BURSTABLE},
		{.nr = 1, .container = {{NULL, "cpu=1"}}, .want = QOS_BURSTABLE},
		{.nr = 1,
			.container = {{NULL, "memory=1Gi hugepages-2Mi=2Mi"}},
			.want = QOS_BURSTABLE},
		{.nr = 1,
			.container = {{"hugepages-2Mi=2Mi", "hugepages-2Mi=2Mi"}},
			.want = QOS_BEST_EFFORT},
		{.nr = 2, .container = {{NULL, "cpu=1 memory=1Gi"}}, .want = QOS_BURSTABLE},
		{.nr = 2,
			.container = {{NULL, "cpu=1 memory=1Gi"}, {NULL, "cpu=2 memory=1Gi"}},
			.want = QOS_GUARANTEED},
		/* the sums decide, not each container, and exactly */
		{.nr = 2,
			.container = {{"cpu=1 memory=1Gi", "cpu=2 memory=1Gi"},
				{"cpu=2 memory=1Gi", "cpu=1 memory=1Gi"}},
			.want = QOS_GUARANTEED},
		{.nr = 1,
			.container = {{"cpu=1000001u memory=1Gi", "cpu=1001m memory=1Gi"}},
			.want = QOS_BURSTABLE},
		{.nr = 2, .container = {{0}, {NULL, "cpu=1 memory=1Gi"}}, .want = QOS_BURSTABLE},
		{.nr = 3, .container = {{0}, {"cpu=1", NULL}, {0}}, .want = QOS_BURSTABLE},
		{.nr = 2, .pod = {NULL, "cpu=1 memory=1Gi"}, .want = QOS_GUARANTEED},
		{.nr = 1,
			.container = {{NULL, "cpu=1 memory=1Gi"}},
			.pod = {"cpu=1", "cpu=2"},
			.want = QOS_BURSTABLE},
		{.nr = 1,
			.container = {{NULL, "cpu=1 memory=1Gi"}},
			.pod = {"a.b/c=1", NULL},
			.want = QOS_GUARANTEED},
		{.status_qos = "Burstable",
			.nr = 1,
			.container = {{NULL, "cpu=1 memory=1Gi"}},
			.want = QOS_BURSTABLE},
		{.status_qos = "Splendid",
			.nr = 1,
			.container = {{NULL, "cpu=1 memory=1Gi"}},
			.want = QOS_GUARANTEED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct container_spec container[SOME_MAX];
		struct room room[SOME_MAX + 1];
		struct pod_spec spec = {.uid = "u",
			.qos = cases[i].status_qos,
			.container = container,
			.nr = cases[i].nr,
			.resources = spec_of(&room[SOME_MAX], cases[i].pod)};
		struct pod ask;
		struct arena a;

		arena_init(&a, ARENA_MAX);
		for (unsigned k = 0; k < cases[i].nr; k++)
			container[k] = (struct container_spec){
				"c", CONTAINER_APP, spec_of(&room[k], cases[i].container[k])};
		assert_int_equal(
			pod_spec_ask(&spec, &(struct resource_names){0}, &a, NULL, &ask, NULL), 0);
		if (ask.qos != cases[i].want)
			fail_msg("case %zu: %s, not %s", i, qos_words[ask.qos],
				qos_words[cases[i].want]);
		arena_fini(&a);
	}
}

/* The readers' own lists say what there is: advice_source_of(), wish_rows. */
static void annotations_that_somebody_reads_are_kept_and_no_others(void **state)
{
	static const char *const read[] = {"numafit.io/numa-hint", "numafit.io/topology-policy",
		"numafit.io/cpus", "numafit.io/movable", "numafit.io/quiet", "cores.numafit.io/web",
		"numa-nodes.numafit.io/web", "irq-load-balancing.crio.io",
		"cpu-load-balancing.crio.io", "cpu-shared.crio.io/web", "cpu-c-states.crio.io",
		"cpu-freq-governor.crio.io", "scheduling.koordinator.sh/resource-status",
		"scheduling.koordinator.sh/resource-spec", "katalyst.kubewharf.io/numa_bind_result",
		"volcano.sh/topology-decision", "volcano.sh/numa-topology-policy",
		"topology.crane.io/topology-result", "godel.bytedance.com/micro-topology",
		"kai.scheduler/numa-placement-observed", "cpu-quota.crio.io",
		"irq-load-balancing.crio.io/web", "irq-typo.crio.io", "numafit.io/", "numafit.io/a",
		"a.numafit.io/web"};
	static const char *const others[] = {"", "a", "numafit.io/cpus/web", "cpus",
		"cpus.numafit.io", "example.com/numafit.io/cpus", "umask.crio.io", "cpu-.crio.i",
		"xnumafit.io/a", "kubernetes.io/config.source"};
	enum { NR = sizeof read / sizeof *read, NR_OTHERS = sizeof others / sizeof *others };
	struct key_value all[NR + NR_OTHERS];
	const struct pod_spec spec = {.uid = "u",
		.ns = "",
		.name = "",
		.qos = "",
		.phase = "",
		.annotations = all,
		.nr_annotations = NR + NR_OTHERS};
	struct known_pod known;
	struct pod pod;
	struct arena a;

	(void)state;
	for (size_t i = 0; i < NR + NR_OTHERS; i++)
		all[i] = (struct key_value){i < NR_OTHERS ? others[i] : read[i - NR_OTHERS], "x"};
	arena_init(&a, ARENA_MAX);
	assert_int_equal(pod_spec_ask(&spec, &(struct resource_names){0}, &a, NULL, &pod, NULL), 0);
	assert_int_equal(pod_spec_known(&spec, POD_FROM_KUBELET, &a, &known, NULL), 0);
	assert_int_equal(pod.nr_annotations, NR);
	assert_int_equal(known.pod.nr_annotations, NR);
	for (size_t i = 0; i < NR; i++) {
		assert_string_equal(pod.annotations[i].key, read[i]);
		assert_string_equal(known.pod.annotations[i].key, read[i]);
	}
	for (size_t i = 0; i < NR_WISH_ROWS; i++) {
		char key[64];

		(void)snprintf(key, sizeof key, "numafit.io/%s", wish_rows[i].name);
		assert_true(pod_spec_reads(key));
		(void)snprintf(key, sizeof key, "%s.numafit.io/c", wish_rows[i].name);
		assert_true(pod_spec_reads(key));
	}
	arena_fini(&a);
}

static const char *const resources[] = {"a.b/c", "numafit.io/cpu"};

/* What one container with these resources asks for. */
static int ask_of(struct texts from, struct arena *a, struct ask *out, struct err *e)
{
	struct room room;
	struct container_spec c = {"c", CONTAINER_SIDECAR, spec_of(&room, from)};
	struct pod_spec spec = {.uid = "u", .container = &c, .nr = 1};
	struct pod ask;
	int rc = pod_spec_ask(&spec, &(struct resource_names){resources, 2}, a, NULL, &ask, e);

	if (!rc)
		*out = ask.container[0];
	return rc;
}

static void requests_count_and_limits_stand_in_for_them(void **state)
{
	static const struct {
		struct texts from;
		uint64_t cpu_milli, memory, huge;
	} cases[] = {
		{{"cpu=500m", "cpu=2 memory=1Ki"}, 500, 1 << 10, 0},
		{{"cpu=0", "cpu=2"}, 0, 0, 0},
		{{"memory=1k hugepages-2Mi=4Mi", "memory=2k hugepages-2Mi=4Mi"}, 0, 1000, 4 << 20},
		{{"cpu=1 cpu=3 memory=1 memory=2", NULL}, 3000, 2, 0},
		{{"ephemeral-storage=1Gi pods=3", NULL}, 0, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct memory_ask memory[TOPO_KINDS];
		struct ask c;
		struct arena a;

		arena_init(&a, ARENA_MAX);
		assert_int_equal(ask_of(cases[i].from, &a, &c, NULL), 0);
		assert_int_equal(c.kind, CONTAINER_SIDECAR);
		assert_int_equal(c.cpu_milli, cases[i].cpu_milli);
		unsigned nr = ask_memory(&c, memory);
		assert_int_equal(nr, (cases[i].memory != 0) + (cases[i].huge != 0));
		if (cases[i].memory)
			assert_int_equal(memory[0].bytes, cases[i].memory);
		if (cases[i].huge)
			assert_int_equal(memory[nr - 1].bytes, cases[i].huge);
		arena_fini(&a);
	}
}

static void devices_go_by_limits_in_order_of_their_resources(void **state)
{
	static const struct {
		struct texts from;
		unsigned nr;
		struct device_ask want[2];
	} cases[] = {
		{{NULL, "numafit.io/cpu=4 x.y/z=1 a.b/c=2"}, 2, {{0, 2}, {1, 4}}},
		{{NULL, "a.b/c=2 numafit.io/cpu=4 a.b/c=3"}, 2, {{0, 3}, {1, 4}}},
		{{NULL, "numafit.io/cpu=0"}, 1, {{1, 0}}},
		{{"a.b/c=2", NULL}, 0, {{0, 0}}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ask c;
		struct arena a;

		arena_init(&a, ARENA_MAX);
		assert_int_equal(ask_of(cases[i].from, &a, &c, NULL), 0);
		assert_int_equal(c.nr_devices, cases[i].nr);
		for (unsigned k = 0; k < c.nr_devices; k++) {
			assert_int_equal(c.device[k].resource, cases[i].want[k].resource);
			assert_int_equal(c.device[k].count, cases[i].want[k].count);
		}
		arena_fini(&a);
	}
}

static void a_wrong_quantity_of_a_spec_is_named(void **state)
{
	static const struct {
		struct texts from;
		int rc;
		const char *text;
	} cases[] = {
		{{NULL, "memory=-1"}, -ERANGE,
			"container c: limits: memory: quantity \"-1\" is negative"},
		{{NULL, "a.b/c=-1"}, -ERANGE, "container c: a.b/c: quantity \"-1\" is negative"},
		{{"cpu=7Ei", NULL}, -ERANGE,
			"container c: requests: cpu: quantity \"7Ei\" is too large"},
		{{"hugepages-2M=1", NULL}, 0, NULL},
		{{"hugepages-=1", NULL}, -EINVAL,
			"container c: requests: hugepages-: no size of huge pages"},
		{{"memory=1 hugepages-1Mi=1 hugepages-2Mi=1 hugepages-4Mi=1 hugepages-8Mi=1",
			 "hugepages-16Mi=1 hugepages-32Mi=1 hugepages-64Mi=1"},
			0, NULL},
		{{"memory=1 hugepages-1Mi=1 hugepages-2Mi=1 hugepages-4Mi=1 hugepages-8Mi=1",
			 "hugepages-16Mi=1 hugepages-32Mi=1 hugepages-64Mi=1 hugepages-1Gi=1"},
			-ERANGE,
			"container c: requests: hugepages-8Mi: more than 8 kinds of memory"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ask c;
		struct arena a;
		struct err e;

		arena_init(&a, ARENA_MAX);
		assert_int_equal(ask_of(cases[i].from, &a, &c, &e), cases[i].rc);
		if (cases[i].rc)
			assert_string_equal(e.text, cases[i].text);
		arena_fini(&a);
	}
}

static void extended_resources_have_a_domain_of_their_own(void **state)
{
	static const struct {
		const char *name;
		bool extended;
	} cases[] = {
		{"nvidia.com/gpu", true},
		{"numafit.io/cpu", true},
		{"cpu", false},
		{"hugepages-2Mi", false},
		{"kubernetes.io/gpu", false},
		{"storage.kubernetes.io/disk", false},
		{"requests.nvidia.com/gpu", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(resource_is_extended(cases[i].name), cases[i].extended);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_class_is_kubernetes),
		cmocka_unit_test(annotations_that_somebody_reads_are_kept_and_no_others),
		cmocka_unit_test(requests_count_and_limits_stand_in_for_them),
		cmocka_unit_test(devices_go_by_limits_in_order_of_their_resources),
		cmocka_unit_test(a_wrong_quantity_of_a_spec_is_named),
		cmocka_unit_test(extended_resources_have_a_domain_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
