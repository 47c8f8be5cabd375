#include <daemon-files/metrics_text.h>

#include <numafit/mem.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { GIB = 1 << 30, SPARSE = 4, NODES = 3 };

struct world {
	struct topo t;
	struct settings s;
	struct snapshot snapshot;
	struct metrics m;
	char *text;
};

/* Nodes 0, 4, 8 with two CPUs each. */
static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);

	topo_init(&w->t, "made-up");
	for (unsigned n = 0; n < NODES; n++) {
		assert_int_equal(topo_add_node(&w->t, n * SPARSE, NULL), n);
		for (unsigned c = 2 * n; c < 2 * n + 2; c++)
			assert_int_equal(topo_add_cpu(&w->t, c, n, c, 0, 0, NULL), 0);
		assert_int_equal(topo_set_memory(&w->t, n, 0, GIB, NULL), 0);
	}
	assert_int_equal(topo_seal(&w->t, NULL), 0);
	settings_init(&w->s);
	w->snapshot.topo = &w->t;
	for (unsigned n = 0; n < NODES; n++)
		w->snapshot.node[n].cpus = 2;
	w->m = (struct metrics){.version = "1.2.3", .settings = &w->s, .snapshot = &w->snapshot};
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	free(w->text);
	free(w);
	return 0;
}

static void make(struct world *w)
{
	size_t len;

	free(w->text);
	w->text = metrics_text(&w->m, &len);
	assert_int_equal(len, strlen(w->text));
	assert_int_equal(w->text[len - 1], '\n');
}

/* Whether the text has that line. */
static bool has(const struct world *w, const char *line)
{
	size_t len = strlen(line);

	for (const char *at = strstr(w->text, line); at; at = strstr(at + 1, line))
		if ((at == w->text || at[-1] == '\n') && at[len] == '\n')
			return true;
	return false;
}

static void must_have(const struct world *w, const char *line)
{
	if (!has(w, line))
		fail_msg("\"%s\" is missing in\n%s", line, w->text);
}

static void the_same_metrics_give_the_same_text(void **state)
{
	struct world *w = *state;

	make(w);
	auto_free char *first = xstrdup(w->text);
	make(w);
	assert_string_equal(first, w->text);
	w->m.generation++;
	make(w);
	assert_string_not_equal(first, w->text);
}

static void a_metric_has_its_help_and_type_before_it(void **state)
{
	struct world *w = *state;

	w->m.counters.updates = UINT64_MAX;
	make(w);
	assert_non_null(strstr(w->text,
		"# HELP numafit_container_updates_total Cpusets of other containers that were set "
		"anew.\n# TYPE numafit_container_updates_total counter\n"
		"numafit_container_updates_total 18446744073709551615\n"));
}

static void labels_are_escaped(void **state)
{
	static const struct {
		const char *in, *want;
	} cases[] = {
		{"", ""},
		{"a b", "a b"},
		{"say \"hi\"", "say \\\"hi\\\""},
		{"C:\\", "C:\\\\"},
		{"two\nlines", "two\\nlines"},
		{"M\xc3\xbcnchen", "M\xc3\xbcnchen"},
		{"\xff broken \xc3", "? broken ?"},
	};
	struct world *w = *state;
	char line[128];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		w->m.version = cases[i].in;
		make(w);
		(void)snprintf(
			line, sizeof line, "numafit_build_info{version=\"%s\"} 1", cases[i].want);
		must_have(w, line);
	}
}

static void seconds_are_exact(void **state)
{
	static const struct {
		uint64_t ns;
		const char *want;
	} cases[] = {
		{0, "0"},
		{1, "0.000000001"},
		{12500, "0.0000125"},
		{1000000000, "1"},
		{10000000000, "10"},
		{1700000000123000000, "1700000000.123"},
		{UINT64_MAX, "18446744073.709551615"},
	};
	struct world *w = *state;
	char line[128];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		w->m.process.start_ns = cases[i].ns;
		make(w);
		(void)snprintf(line, sizeof line, "process_start_time_seconds %s", cases[i].want);
		must_have(w, line);
	}
}

static void a_histogram_counts_up_to_and_with_its_bounds(void **state)
{
#define DURATION "numafit_topology_manager_admission_duration_seconds"
	static const uint64_t ns[] = {
		0, 12500, 12501, 25000, 50000, 819200000, 819200001, 5000000000};
	static const char *const want[] = {
		DURATION "_bucket{le=\"0.0000125\"} 2",
		DURATION "_bucket{le=\"0.000025\"} 4",
		DURATION "_bucket{le=\"0.00005\"} 5",
		DURATION "_bucket{le=\"0.0001\"} 5",
		DURATION "_bucket{le=\"0.4096\"} 5",
		DURATION "_bucket{le=\"0.8192\"} 6",
		DURATION "_bucket{le=\"+Inf\"} 8",
		DURATION "_sum 6.638500002",
		DURATION "_count 8",
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof ns / sizeof *ns; i++)
		histogram_add(&w->m.measured.admission, ns[i]);
	make(w);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		must_have(w, want[i]);
}

static void nodes_are_labelled_with_their_kernel_ids(void **state)
{
	struct world *w = *state;

	w->snapshot.node[2].cpus_held = 1;
	w->snapshot.node[1].allocatable[0] = GIB;
	w->snapshot.node[1].free[0] = GIB / 4;
	make(w);
	must_have(w, "numafit_numa_node_cpus{numa_node=\"8\",state=\"exclusive\"} 1");
	must_have(w, "numafit_numa_node_cpus{numa_node=\"8\",state=\"free\"} 1");
	must_have(w, "numafit_numa_node_memory_bytes{numa_node=\"4\",type=\"memory\",state="
		     "\"free\"} 268435456");
	must_have(w, "numafit_numa_node_memory_bytes{numa_node=\"4\",type=\"memory\",state="
		     "\"held\"} 805306368");
	assert_null(strstr(w->text, "numa_node=\"1\""));
}

static void states_of_a_node_add_up(void **state)
{
	struct world *w = *state;

	w->snapshot.node[0].cpus = 16;
	w->snapshot.node[0].cpus_held = 4;
	w->snapshot.node[0].cpus_reserved = 2;
	w->m.promised[0] = 3;
	w->snapshot.node[1].cpus_held = 2;
	w->m.promised[1] = 1; /* more than there are: a CPU has gone offline */
	make(w);
	must_have(w, "numafit_numa_node_cpus{numa_node=\"0\",state=\"exclusive\"} 4");
	must_have(w, "numafit_numa_node_cpus{numa_node=\"0\",state=\"reserved\"} 2");
	must_have(w, "numafit_numa_node_cpus{numa_node=\"0\",state=\"promised\"} 3");
	must_have(w, "numafit_numa_node_cpus{numa_node=\"0\",state=\"free\"} 7");
	must_have(w, "numafit_numa_node_cpus{numa_node=\"4\",state=\"free\"} 0");
}

static void fragmentation_is_a_ratio_beside_its_cpus(void **state)
{
	static const struct {
		struct node_fragmentation is;
		const char *ratio;
	} rows[] = {
		{{.free = 8, .largest = 2, .possible = 8}, "numafit_fragmentation_ratio 0.75"},
		{{.free = 7, .largest = 4, .possible = 6}, "numafit_fragmentation_ratio 0.333"},
		{{.free = 64, .largest = 8, .possible = 8}, "numafit_fragmentation_ratio 0"},
		{{0}, "numafit_fragmentation_ratio 0"},
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char line[64];

		w->snapshot.fragmentation = rows[i].is;
		make(w);
		must_have(w, rows[i].ratio);
		(void)snprintf(line, sizeof line, "numafit_largest_free_cpus %u",
			(unsigned)rows[i].is.largest);
		must_have(w, line);
		(void)snprintf(line, sizeof line, "numafit_free_exclusive_cpus %u",
			(unsigned)rows[i].is.free);
		must_have(w, line);
	}
	must_have(w, "# TYPE numafit_fragmentation_ratio gauge");
}

/* Names and labels of kubelet 1.37 (pkg/kubelet/metrics/metrics.go), after numafit_. */
static void what_the_kubelet_measures_has_its_name(void **state)
{
	struct world *w = *state;

	for (unsigned c = 0; c < 2 * NODES; c++)
		cpuset_add(&w->snapshot.pool, c);
	cpuset_add(&w->snapshot.reserved, 0);
	w->snapshot.pool = cpuset_minus(w->snapshot.pool, &w->t.node[2].cpus);
	w->snapshot.held = w->t.node[2].cpus;
	w->snapshot.node[2].cpus_held = 2;
	for (unsigned p = 0; p < NR_POLICIES; p++)
		w->m.measured.verdicts[p][VERDICT_REFUSED] = 1U << p;
	w->m.measured.verdicts[POLICY_RESTRICTED][VERDICT_ADMITTED] = 100;
	make(w);
	must_have(w, "# TYPE numafit_cpu_manager_shared_pool_size_millicores gauge");
	must_have(w, "numafit_cpu_manager_shared_pool_size_millicores 3000"); /* not CPU 0 */
	must_have(w, "numafit_cpu_manager_exclusive_cpu_allocations 2");
	must_have(w, "numafit_cpu_manager_allocation_per_numa{numa_node=\"0\"} 0");
	must_have(w, "numafit_cpu_manager_allocation_per_numa{numa_node=\"8\"} 2");
	char line[128];
	(void)snprintf(line, sizeof line, "numafit_topology_manager_admission_errors_total %u",
		(1U << NR_POLICIES) - 1);
	must_have(w, line);
}

static void metrics_of_a_service_that_is_off_are_left_out(void **state)
{
	static const char *const absent[] = {"numafit_device_plugin_tokens", "numafit_config_",
		"numafit_apiserver_", "numafit_device_claims_", "numafit_events_",
		"numafit_evictions_", "numafit_observed_", "numafit_shadow_"};
	struct world *w = *state;

	make(w);
	for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
		assert_null(strstr(w->text, absent[i]));
}

static void metrics_of_a_service_that_is_on_are_printed(void **state)
{
	static const struct status_kubelet kubelet = {
		.tokens = 10, .unhealthy = 1, .leased = 4, .waiting = 3};
	static const struct status_config config = {
		.file = "f", .refused = "line 3", .restart = NULL, .reloads = 2, .refusals = 1};
	static const struct status_apiserver apiserver = {.unusable = "no file", .failures = 4};
	static const char *const want[] = {
		"numafit_device_plugin_tokens{state=\"claimed\"} 1",
		"numafit_device_plugin_tokens{state=\"waiting\"} 3",
		"numafit_device_plugin_tokens{state=\"unhealthy\"} 1",
		"numafit_device_plugin_tokens{state=\"free\"} 5",
		"numafit_config_reloads_total{result=\"in-force\"} 2",
		"numafit_config_reloads_total{result=\"refused\"} 1",
		"numafit_config_last_reload_successful 0",
		"numafit_config_needs_restart 0",
		"numafit_apiserver_credentials_usable 0",
		"numafit_apiserver_credential_failures_total 4",
		"numafit_apiserver_writes_total{object=\"NodeResourceTopology\",result=\"written\"}"
		" "
		"7",
		"numafit_apiserver_writes_total{object=\"NodeResourceTopology\",result="
		"\"conflict\"} 1",
		"numafit_apiserver_write_lag_seconds{object=\"NodeResourceTopology\"} 0.25",
		"numafit_apiserver_write_behind_seconds{object=\"NodeResourceTopology\"} 0",
		"numafit_device_claims_slices 3",
		"numafit_device_claims_devices 12",
		"numafit_device_claims_incomplete_pools 1",
		"numafit_device_claims_unknown_total{why=\"not-shown-yet\"} 4",
		"numafit_device_claims_unknown_total{why=\"not-published\"} 5",
		"numafit_device_claims_waits_total 2",
		"numafit_device_claims_wait_seconds_total 0.5",
		"numafit_events_total{result=\"sent\"} 5",
		"numafit_evictions_total{result=\"evicted\"} 2",
		"numafit_observed_placements_total{result=\"written\"} 3",
		"numafit_shadow_comparisons_total{result=\"agrees\"} 8",
		"numafit_shadow_comparisons_total{result=\"disagrees\"} 1",
		"numafit_settings_info{mode=\"shadow\",policy=\"best-effort\",scope=\"container\"} "
		"1",
	};
	struct world *w = *state;

	w->s.mode = MODE_SHADOW;
	w->m.kubelet = kubelet;
	w->m.has_config = w->m.has_apiserver = true;
	w->m.config = config;
	w->m.has_claims = true;
	w->m.claims = (struct status_claims){.slices_watch = "up",
		.slices = 3,
		.devices = 12,
		.incomplete_pools = 1,
		.unknown = {4, 5},
		.waits = 2,
		.waited_ns = 500000000};
	w->m.apiserver = apiserver;
	w->m.counters.compared = 9;
	w->m.counters.disagreed = 1;
	w->m.cluster = (struct metrics_cluster){
		.object[OBJECT_NRT] = {true, 7, 1, 0, 250000000, 0},
		.events = true,
		.evictions = true,
		.annotations = true,
		.event = {5},
		.eviction = {2},
		.observed = {3},
	};
	make(w);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		must_have(w, want[i]);
	assert_null(strstr(w->text, "Numatopology"));
}

static void each_verdict_has_its_label(void **state)
{
	struct world *w = *state;

	w->m.measured.advice[ADVICE_REJECTED_NOT_FIT] = 3;
	w->m.measured.verdicts[POLICY_RESTRICTED][VERDICT_ADMITTED] = 4;
	w->m.measured.verdicts[POLICY_RESTRICTED][VERDICT_REFUSED] = 5;
	make(w);
	must_have(w, "numafit_scheduler_hints_total{verdict=\"rejected:not-fit\"} 3");
	must_have(w, "numafit_topology_manager_admission_requests_total{policy=\"restricted\","
		     "result=\"admitted\"} 4");
	must_have(w, "numafit_topology_manager_admission_requests_total{policy=\"restricted\","
		     "result=\"refused\"} 5");
}

static void what_is_enforced_and_what_fails_is_shown(void **state)
{
	struct world *w = *state;

	make(w);
	assert_null(strstr(w->text, "numafit_shared_pool_enforced")); /* it is not known */
	w->m.pool = (struct status_pool){
		.enforced = "cgroup", .cgroups = 3, .writes = 9, .problem = "EIO"};
	make(w);
	must_have(w, "numafit_shared_pool_enforced{by=\"cgroup\"} 1");
	must_have(w, "numafit_shared_pool_cgroups 3");
	must_have(w, "numafit_shared_pool_writes_total 9");
	must_have(w, "numafit_shared_pool_failing 1");
	must_have(w, "numafit_cfs_quota_failing 0");
	w->m.quota = (struct status_quota){.pods = 2, .rewritten = 7, .problem = "EIO"};
	make(w);
	must_have(w, "numafit_cfs_quota_lifted_pods 2");
	must_have(w, "numafit_cfs_quota_rewrites_total 7");
	must_have(w, "numafit_cfs_quota_failing 1");
}

static void the_largest_machine_fits(void **state)
{
	struct world *w = *state;

	topo_init(&w->t, "largest");
	for (unsigned n = 0; n < NODES_MAX; n++) {
		(void)topo_add_node(&w->t, n * SPARSE, NULL);
		assert_int_equal(topo_add_cpu(&w->t, n, n, n, 0, 0, NULL), 0);
		for (unsigned k = 0; k < TOPO_KINDS; k++)
			assert_int_equal(topo_set_memory(&w->t, n, k ? UINT64_C(1) << (20 + k) : 0,
						 k ? 0 : UINT64_C(1) << 40, NULL),
				0);
	}
	assert_int_equal(topo_seal(&w->t, NULL), 0);
	make(w);
	must_have(w, "numafit_build_info{version=\"1.2.3\"} 1");
	must_have(w, "process_max_fds 0"); /* the last one */
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_same_metrics_give_the_same_text),
		CASE(a_metric_has_its_help_and_type_before_it),
		CASE(labels_are_escaped),
		CASE(seconds_are_exact),
		CASE(a_histogram_counts_up_to_and_with_its_bounds),
		CASE(nodes_are_labelled_with_their_kernel_ids),
		CASE(states_of_a_node_add_up),
		CASE(fragmentation_is_a_ratio_beside_its_cpus),
		CASE(what_the_kubelet_measures_has_its_name),
		CASE(metrics_of_a_service_that_is_off_are_left_out),
		CASE(metrics_of_a_service_that_is_on_are_printed),
		CASE(each_verdict_has_its_label),
		CASE(what_is_enforced_and_what_fails_is_shown),
		CASE(the_largest_machine_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
