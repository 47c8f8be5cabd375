#include <numafit-sim/trace_yaml.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int read_text(struct trace *t, const char *text, struct err *e)
{
	return trace_yaml_read(t, text, strlen(text), e);
}

static void a_create_step_holds_what_the_pod_asks_for(void **state)
{
	static const char text[] = "steps:\n"
				   "- create:\n"
				   "    namespace: prod\n"
				   "    pod: db\n"
				   "    container: postgres\n"
				   "    qos: guaranteed\n"
				   "    cpu: 1500m\n"
				   "    memory: 32Gi\n"
				   "    hugepages-1Gi: 4Gi\n"
				   "    hugepages-2Mi: 8Mi\n"
				   "    count: 8\n";
	struct trace t;

	(void)state;
	assert_int_equal(read_text(&t, text, NULL), 0);
	assert_int_equal(t.nr, 1);
	const struct trace_step *s = t.at;

	assert_int_equal(s->op, TRACE_CREATE);
	assert_int_equal(s->line, 3);
	assert_string_equal(s->ns, "prod");
	assert_string_equal(s->pod, "db");
	assert_string_equal(s->container, "postgres");
	assert_int_equal(s->asked.qos, QOS_GUARANTEED);
	assert_int_equal(s->asked.cpu_milli, 1500);
	assert_int_equal(s->asked.memory_bytes, 32ull << 30);
	assert_int_equal(s->asked.nr_hugepages, 2);
	assert_int_equal(s->asked.hugepages[0].page_bytes, 1ull << 30);
	assert_int_equal(s->asked.hugepages[0].bytes, 4ull << 30);
	assert_int_equal(s->asked.hugepages[1].page_bytes, 2ull << 20);
	assert_int_equal(s->count, 8);
	trace_fini(&t);
}

static void namespace_and_container_have_defaults(void **state)
{
	struct trace t;

	(void)state;
	assert_int_equal(read_text(&t, "steps:\n- create: {pod: a, qos: besteffort}\n", NULL), 0);
	assert_string_equal(t.at[0].ns, "default");
	assert_string_equal(t.at[0].container, "main");
	assert_int_equal(t.at[0].count, 0);
	trace_fini(&t);
}

static void a_kubelet_with_static_managers_gives_a_cpuset(void **state)
{
	static const char text[] = "steps:\n- create: {pod: a, qos: besteffort, cpus: '1-2,9', "
				   "mems: 0, unasked: true}\n";
	struct trace t;

	(void)state;
	assert_int_equal(read_text(&t, text, NULL), 0);
	assert_string_equal(t.at[0].cpus, "1-2,9");
	assert_string_equal(t.at[0].mems, "0");
	assert_true(t.at[0].unasked);
	trace_fini(&t);
}

static void a_kubelet_has_devices_and_containers_ask_for_them(void **state)
{
	static const char text[] =
		"kubelet:\n"
		"  topologyManagerPolicy: single-numa-node\n"
		"  topologyManagerScope: pod\n"
		"  topologyManagerPolicyOptions: {prefer-closest-numa-nodes: true}\n"
		"  devices:\n"
		"  - {resource: gpu.example/gpu, node: 0, count: 2}\n"
		"  - {count: 4, node: 252, resource: nic.example/vf}\n"
		"  - {count: 1, node: none, resource: tpm.example/tpm}\n"
		"steps:\n"
		"- create: {pod: a, container: i, kind: init, qos: besteffort}\n"
		"- create: {pod: a, container: s, kind: sidecar, qos: besteffort}\n"
		"- create: {pod: a, qos: besteffort, devices: [numafit.io/cpu=4, "
		"gpu.example/gpu=1]}\n";
	struct trace t;
	struct err e;

	(void)state;
	if (read_text(&t, text, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(t.has_kubelet);
	assert_int_equal(t.kubelet.topology_policy, POLICY_SINGLE_NUMA_NODE);
	assert_int_equal(t.kubelet.topology_scope, SCOPE_POD);
	assert_true(t.kubelet.prefer_closest_numa_nodes);
	assert_int_equal(t.devices.nr, 3);
	assert_int_equal(t.devices.at[2].node_id, TRACE_WITHOUT_NODE);
	assert_string_equal(t.devices.at[0].resource, "gpu.example/gpu");
	assert_int_equal(t.devices.at[1].node_id, 252);
	assert_int_equal(t.devices.at[1].count, 4);
	assert_int_equal(t.at[0].kind, CONTAINER_INIT);
	assert_int_equal(t.at[1].kind, CONTAINER_SIDECAR);
	assert_int_equal(t.at[2].kind, CONTAINER_APP);
	assert_int_equal(t.at[2].nr_devices, 2);
	assert_string_equal(t.at[2].device[0].resource, "numafit.io/cpu");
	assert_int_equal(t.at[2].device[0].count, 4);
	assert_int_equal(t.at[2].device[1].count, 1);
	trace_fini(&t);
}

static void a_kubelet_without_settings_aligns_nothing(void **state)
{
	struct trace t;

	(void)state;
	assert_int_equal(read_text(&t, "steps:\n- create: {pod: a, qos: besteffort}\n", NULL), 0);
	assert_false(t.has_kubelet);
	assert_int_equal(t.kubelet.topology_policy, POLICY_NONE);
	trace_fini(&t);
}

static void a_trace_may_give_hints_and_annotations(void **state)
{
	static const char text[] =
		"steps:\n"
		"- create: {pod: a, qos: besteffort, hint: {numa: '1,9-10', mode: require,\n"
		"    ttl: 60s, gen: 7, wrong: expired}}\n"
		"- create: {pod: b, qos: besteffort, hint: {numa: 3}, annotations: [x.y/z=,\n"
		"    'numafit.io/numa-hint={\"v\":1,\"a\":\"b=c\"}']}\n"
		"- create: {pod: c, qos: besteffort}\n";
	struct trace t;
	struct err e;

	(void)state;
	if (read_text(&t, text, &e) < 0)
		fail_msg("%s", e.text);
	const struct trace_advice *h = &t.at[0].advice;

	assert_string_equal(h->numa, "1,9-10");
	assert_int_equal(h->mode, ADVICE_REQUIRE);
	assert_int_equal(h->ttl_s, 60);
	assert_int_equal(h->generation, 7);
	assert_int_equal(h->wrong, ADVICE_REJECTED_EXPIRED);
	h = &t.at[1].advice;
	assert_string_equal(h->numa, "3");
	assert_int_equal(h->mode, ADVICE_PREFER);
	assert_int_equal(h->ttl_s, 120);
	assert_int_equal(h->generation, 0);
	assert_int_equal(h->wrong, ADVICE_NONE);
	assert_int_equal(t.at[1].nr_annotations, 2);
	assert_string_equal(t.at[1].annotation[0].key, "x.y/z");
	assert_string_equal(t.at[1].annotation[0].value, "");
	assert_string_equal(t.at[1].annotation[1].key, "numafit.io/numa-hint");
	assert_string_equal(t.at[1].annotation[1].value, "{\"v\":1,\"a\":\"b=c\"}");
	assert_null(t.at[2].advice.numa);
	assert_int_equal(t.at[2].nr_annotations, 0);
	trace_fini(&t);
}

static void annotations_are_bounded(void **state)
{
	static char text[4096];
	struct trace t;
	struct err e = {0};
	int len = snprintf(
		text, sizeof text, "steps:\n- create: {pod: a, qos: besteffort, annotations: [");

	(void)state;
	for (int i = 0; i <= TRACE_ANNOTATIONS_MAX; i++)
		len += snprintf(text + len, sizeof text - (size_t)len, "a%d=b, ", i);
	snprintf(text + len, sizeof text - (size_t)len, "]}\n");
	assert_int_equal(read_text(&t, text, &e), -E2BIG);
	assert_non_null(strstr(e.text, "more than 16 annotations"));
}

static void steps_keep_their_order_and_their_lines(void **state)
{
	static const char text[] =
		"steps:\n"
		"- create: {pod: a, qos: besteffort, count: 3}\n"
		"- update: {pod: a, container: main, cpus: 0-3, mems: 1, cpu: 2}\n"
		"- restart-runtime\n"
		"- stop: {pod: a-2}\n"
		"- stop-pod: {pod: a-1}\n";
	static const enum trace_op ops[] = {
		TRACE_CREATE, TRACE_UPDATE, TRACE_RESTART_RUNTIME, TRACE_STOP, TRACE_STOP_POD};
	struct trace t;

	(void)state;
	assert_int_equal(read_text(&t, text, NULL), 0);
	assert_int_equal(t.nr, 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(t.at[i].op, ops[i]);
		assert_int_equal(t.at[i].line, i + 2);
	}
	assert_string_equal(t.at[1].cpus, "0-3");
	assert_string_equal(t.at[1].mems, "1");
	assert_int_not_equal(t.at[1].asked.cpu_milli, 0);
	assert_int_equal(t.at[1].asked.memory_bytes, 0);
	trace_fini(&t);
}

static void a_mistake_is_reported_with_line_and_key(void **state)
{
#define POD "steps:\n- create: {pod: a, qos: besteffort}\n"
#define KUBELET                                                                                    \
	"kubelet: {topologyManagerPolicy: none}\nsteps:\n- create: {pod: a, qos: besteffort, "
#define HINT      "steps:\n- create: {pod: a, qos: besteffort, hint: {"
#define ANNOTATED "steps:\n- create: {pod: a, qos: besteffort, annotations: "
#define MANY      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	static const struct {
		const char *text;
		int code;
		const char *says[3];
	} bad[] = {
		{"", -EINVAL, {"no steps"}},
		{"steps: 3\n", -EINVAL, {"line 1", "a list of steps"}},
		{"stages:\n- restart-runtime\n", -EINVAL, {"line 2", "stages", "unknown key"}},
		{"steps:\n  first: {pod: a}\n", -EINVAL, {"line 2", "a list of steps"}},
		{"steps:\n- delete: {pod: a}\n", -EINVAL, {"line 2", "\"delete\" is not a step"}},
		{"steps:\n- create\n", -EINVAL, {"line 2", "\"create\" is not a step"}},
		{"steps:\n- restart-runtime: {pod: a}\n", -EINVAL, {"line 2", "not a step"}},
		{"steps:\n- create: web\n", -EINVAL,
			{"line 2", "steps.0.create", "keys such as pod"}},
		{"steps:\n- create: {pod: a, qos: besteffort, color: red}\n", -EINVAL,
			{"line 2", "steps.0.create.color", "unknown key"}},
		{POD "- stop: {pod: a, cpus: 1}\n", -EINVAL,
			{"line 3", "steps.1.stop.cpus", "stop has pod, container"}},
		{POD "- update: {pod: a, hugepages-2Mi: 2Mi}\n", -EINVAL,
			{"line 3", "hugepages-2Mi", "unknown key"}},
		{"steps:\n- create: {qos: besteffort}\n", -EINVAL,
			{"line 2", "create", "pod is missing"}},
		{"steps:\n- create: {pod: a}\n- restart-runtime\n", -EINVAL,
			{"line 2", "create", "qos is missing"}},
		{"steps:\n- create: {pod: A, qos: besteffort}\n", -EINVAL,
			{"line 2", "create.pod", "\"A\" is not a name"}},
		{"steps:\n- create: {pod: -a, qos: besteffort}\n", -EINVAL, {"create.pod"}},
		{"steps:\n- create: {pod: a-, qos: besteffort}\n", -EINVAL, {"create.pod"}},
		{"steps:\n- create: {pod: " MANY ", qos: besteffort}\n", -EINVAL,
			{"create.pod", "1 to 63"}},
		{"steps:\n- create: {pod: a, qos: golden}\n", -EINVAL,
			{"create.qos", "golden", "guaranteed, burstable"}},
		{"steps:\n- create: {pod: a, qos: guaranteed, cpu: 2}\n", -EINVAL,
			{"line 2", "needs cpu and memory"}},
		{"steps:\n- create: {pod: a, qos: burstable}\n", -EINVAL,
			{"line 2", "needs cpu or memory"}},
		{"steps:\n- create: {pod: a, qos: besteffort, cpu: 1}\n", -EINVAL,
			{"line 2", "neither cpu"}},
		{"steps:\n- create: {pod: a, qos: burstable, cpu: two}\n", -EINVAL,
			{"line 2", "create.cpu", "two"}},
		{"steps:\n- create: {pod: a, qos: burstable, cpu: 0}\n", -ERANGE,
			{"line 2", "create.cpu"}},
		{"steps:\n- create: {pod: a, qos: burstable, cpu: 1025}\n", -ERANGE,
			{"line 2", "create.cpu"}},
		{"steps:\n- create: {pod: a, qos: burstable, memory: -1}\n", -ERANGE,
			{"create.memory", "negative"}},
		{"steps:\n- create: {pod: a, qos: burstable, memory: 0}\n", -ERANGE,
			{"create.memory"}},
		{"steps:\n- create: {pod: a, hugepages-big: 1Gi}\n", -EINVAL,
			{"create.hugepages-big", "page size"}},
		{"steps:\n- create: {pod: a, hugepages-1Gi: 1536Mi}\n", -EINVAL,
			{"hugepages-1Gi", "whole number of pages"}},
		{"steps:\n- create: {pod: a, count: 0}\n", -ERANGE, {"create.count"}},
		{"steps:\n- create: {pod: a, count: 1001}\n", -ERANGE, {"create.count", "1000"}},
		{"steps:\n- create: {pod: a, qos: besteffort, count: 2, cpus: 0-1}\n", -EINVAL,
			{"line 2", "create", "count makes many"}},
		{"steps:\n- create: {pod: a, qos: besteffort, unasked: perhaps}\n", -EINVAL,
			{"line 2", "create.unasked", "perhaps"}},
		{POD "- stop-pod: {pod: a, container: main}\n", -EINVAL,
			{"line 3", "stop-pod.container", "stop-pod has pod"}},
		{POD "- stop-pod: {pod: b}\n", -EINVAL, {"line 3", "stop-pod", "creates pod b"}},
		{POD "- update: {pod: a}\n", -EINVAL, {"line 3", "update", "nothing to update"}},
		{POD "- update: {pod: a, cpus: 3-1}\n", -EINVAL, {"line 3", "update.cpus"}},
		{POD "- update: {pod: a, mems: ''}\n", -EINVAL, {"line 3", "update.mems", "empty"}},
		{POD "- stop: {pod: b}\n", -EINVAL,
			{"line 3", "stop", "no step before creates pod b"}},
		{POD "- stop: {pod: a-0}\n", -EINVAL, {"line 3", "no step before creates pod a-0"}},
		{POD "- stop: {pod: a, container: x}\n", -EINVAL, {"line 3", "with container x"}},
		{"steps:\n- create: {pod: a, qos: besteffort, count: 2}\n- stop: {pod: a-2}\n",
			-EINVAL, {"pod a-2"}},
		{"steps:\n- create: {pod: a, qos: besteffort, devices: [gpu.example/gpu=1]}\n",
			-EINVAL, {"line 2", "need a kubelet"}},
		{"steps:\n- create: {pod: a, qos: besteffort, kind: init}\n", -EINVAL,
			{"line 2", "need a kubelet"}},
		{"steps:\n- restart-kubelet\n", -EINVAL, {"line 2", "need a kubelet"}},
		{"steps:\n- restart-kubelet: {pod: a}\n", -EINVAL, {"line 2", "not a step"}},
		{KUBELET "kind: main}\n", -EINVAL, {"line 3", "create.kind", "app, init, sidecar"}},
		{KUBELET "devices: [gpu.example/gpu]}\n", -EINVAL,
			{"line 3", "create.devices.0", "RESOURCE=COUNT"}},
		{KUBELET "devices: [gpu=1]}\n", -EINVAL, {"line 3", "\"gpu\" is not a device"}},
		{KUBELET "devices: [a.b/c=0]}\n", -ERANGE, {"line 3", "1..1024"}},
		{KUBELET "devices: [a.b/c=1025]}\n", -ERANGE, {"line 3", "devices.0"}},
		{KUBELET "devices: [a.b/c=1, a.b/c=2]}\n", -EINVAL, {"devices.1", "there twice"}},
		{KUBELET "devices: [a.b/c=1], unasked: true}\n", -EINVAL,
			{"line 3", "without devices"}},
		{KUBELET "devices: 3}\n", -EINVAL, {"line 3", "create.devices", "RESOURCE=COUNT"}},
		{HINT "mode: prefer}}\n", -EINVAL, {"line 2", "hint.numa is missing"}},
		{HINT "numa: a}}\n", -EINVAL, {"line 2", "create.hint.numa"}},
		{HINT "numa: ''}}\n", -EINVAL, {"create.hint.numa", "empty"}},
		{HINT "mode: off}}\n", -EINVAL, {"create.hint.mode", "prefer, require"}},
		{HINT "ttl: 60}}\n", -EINVAL, {"create.hint.ttl", "60s"}},
		{HINT "ttl: s}}\n", -EINVAL, {"create.hint.ttl"}},
		{HINT "ttl: 0s}}\n", -ERANGE, {"create.hint.ttl", "1s at least"}},
		{HINT "ttl: 86401s}}\n", -ERANGE, {"create.hint.ttl", "86400"}},
		{HINT "gen: -1}}\n", -EINVAL, {"create.hint.gen"}},
		{HINT "wrong: numa}}\n", -EINVAL, {"create.hint.wrong", "clock, expired"}},
		{HINT "node: 3}}\n", -EINVAL, {"create.hint.node", "unknown key"}},
		{ANNOTATED "[a]}\n", -EINVAL, {"create.annotations.0", "KEY=VALUE"}},
		{ANNOTATED "['=b']}\n", -EINVAL, {"create.annotations.0", "KEY=VALUE"}},
		{ANNOTATED "[a=b, a=c]}\n", -EINVAL, {"annotations.1", "there twice"}},
		{POD "- update: {pod: a, cpu: 1, hint: {numa: 1}}\n", -EINVAL,
			{"line 3", "update.hint.numa", "unknown key"}},
		{"kubelet: {cpuManagerPolicy: static}\n", -EINVAL,
			{"line 1", "kubelet.cpuManagerPolicy", "unknown key"}},
		{"kubelet: {topologyManagerPolicy: strict}\n", -EINVAL,
			{"line 1", "topologyManagerPolicy", "strict"}},
		{"kubelet: {devices: [{resource: a.b/c, count: 1}]}\nsteps:\n- restart-runtime\n",
			-EINVAL, {"kubelet.devices.0", "node and count are needed"}},
		{"kubelet: {devices: [{resource: a.b/c, size: 1}]}\n", -EINVAL,
			{"line 1", "kubelet.devices.0.size", "unknown key"}},
		{"kubelet: {devices: [a.b/c]}\n", -EINVAL, {"kubelet.devices.0", "unknown key"}},
		{"kubelet: {devices: [{resource: a.b/c, node: 1024}]}\n", -ERANGE,
			{"kubelet.devices.0.node"}},
		{"kubelet: 3\n", -EINVAL, {"line 1", "kubelet", "unknown key"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct trace t;
		struct err e = {0};

		if (read_text(&t, bad[i].text, &e) != bad[i].code)
			fail_msg("%s: code %d: %s", bad[i].text, -e.code, e.text);
		for (size_t k = 0; k < 3 && bad[i].says[k]; k++)
			if (!strstr(e.text, bad[i].says[k]))
				fail_msg("%s: \"%s\" lacks \"%s\"", bad[i].text, e.text,
					bad[i].says[k]);
		assert_int_equal(t.nr, 0);
	}
}

static void two_operations_in_one_step_are_refused(void **state)
{
	struct trace t;
	struct err e = {0};

	(void)state;
	assert_int_equal(read_text(&t, POD "- stop: {pod: a}\n  create: {pod: b}\n", &e), -EINVAL);
	assert_non_null(strstr(e.text, "line 4"));
	assert_non_null(strstr(e.text, "both stop and create"));
}

static void a_trace_is_bounded(void **state)
{
	static char text[(TRACE_STEPS_MAX + 2) * 20];
	struct trace t;
	struct err e = {0};
	char *at = stpcpy(text, "steps:\n");

	(void)state;
	for (unsigned i = 0; i < TRACE_STEPS_MAX; i++)
		at = stpcpy(at, "- restart-runtime\n");
	assert_int_equal(read_text(&t, text, &e), 0);
	assert_int_equal(t.nr, TRACE_STEPS_MAX);
	trace_fini(&t);
	strcpy(at, "- restart-runtime\n");
	assert_int_equal(read_text(&t, text, &e), -E2BIG);
}

static void every_trace_of_the_repository_can_be_read(void **state)
{
	static const char *const paths[] = {"test/traces/demo.yaml", "test/traces/small.yaml",
		"test/traces/shadow.yaml", "test/traces/unasked.yaml", "test/traces/devices.yaml",
		"test/traces/hints.yaml"};
	static char text[1 << 16];

	(void)state;
	for (unsigned i = 0; i < sizeof paths / sizeof *paths; i++) {
		FILE *f = fopen(paths[i], "r");
		struct trace t;
		struct err e = {0};

		assert_non_null(f);
		size_t len = fread(text, 1, sizeof text, f);

		fclose(f);
		if (trace_yaml_read(&t, text, len, &e) < 0)
			fail_msg("%s: %s", paths[i], e.text);
		trace_fini(&t);
	}
}

static void the_example_for_people_is_a_trace(void **state)
{
	struct trace t;
	struct err e = {0};
	unsigned nr[NR_TRACE_OPS] = {0};

	(void)state;
	if (trace_yaml_read(&t, trace_yaml_example, strlen(trace_yaml_example), &e))
		fail_msg("%s", e.text);
	for (size_t i = 0; i < t.nr; i++)
		nr[t.at[i].op]++;
	for (unsigned op = 0; op < NR_TRACE_OPS; op++)
		assert_true(nr[op]); /* it has each step */
	trace_fini(&t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_example_for_people_is_a_trace),
		cmocka_unit_test(a_create_step_holds_what_the_pod_asks_for),
		cmocka_unit_test(namespace_and_container_have_defaults),
		cmocka_unit_test(a_kubelet_with_static_managers_gives_a_cpuset),
		cmocka_unit_test(a_kubelet_has_devices_and_containers_ask_for_them),
		cmocka_unit_test(a_kubelet_without_settings_aligns_nothing),
		cmocka_unit_test(a_trace_may_give_hints_and_annotations),
		cmocka_unit_test(annotations_are_bounded),
		cmocka_unit_test(steps_keep_their_order_and_their_lines),
		cmocka_unit_test(a_mistake_is_reported_with_line_and_key),
		cmocka_unit_test(two_operations_in_one_step_are_refused),
		cmocka_unit_test(a_trace_is_bounded),
		cmocka_unit_test(every_trace_of_the_repository_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
