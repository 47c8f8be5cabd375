/* Settings are checked together: against each other, against the machine, and options as the
 * kubelet checks them. */
#include "settings_cases.h"

/* Two nodes with ids 0 and 8, two CPUs each, 4 GiB each of which 1 GiB is one huge page. */
static struct topo *machine(void)
{
	static struct topo t;
	const uint64_t gib = UINT64_C(1) << 30;

	topo_init(&t, "twin");
	for (unsigned n = 0; n < 2; n++) {
		assert_int_equal(topo_add_node(&t, n * 8, NULL), (int)n);
		assert_int_equal(topo_set_memory(&t, n, 0, 4 * gib, NULL), 0);
		assert_int_equal(topo_set_memory(&t, n, gib, gib, NULL), 0);
		for (unsigned c = 0; c < 2; c++)
			assert_int_equal(topo_add_cpu(&t, n * 2 + c, n, n * 2 + c, n, n, NULL), 0);
	}
	assert_int_equal(topo_seal(&t, NULL), 0);
	return &t;
}

static void all_settings_are_checked_together_and_against_the_machine(void **state)
{
	static const struct {
		const char *pairs[4][2];
		const char *alone, *here; /* texts; NULL: fine */
	} table[] = {
		{{{NULL}}, NULL, NULL},
		{{{"topologyManagerScope", "pod"}}, NULL, NULL},
		{{{"reservedSystemCPUs", "0,2"}}, NULL, NULL},
		{{{"refusalAction", "evict"}},
			"refusalAction: evict needs to know what made a pod: podsWatch.enabled "
			"must "
			"be true",
			"refusalAction: evict needs to know what made a pod: podsWatch.enabled "
			"must "
			"be true"},
		{{{"refusalAction", "evict"}, {"podsWatch.enabled", "true"}}, NULL, NULL},
		{{{"deviceClaims.enabled", "true"}},
			"deviceClaims.enabled needs to know which devices containers have: "
			"podResources.enabled must be true",
			"deviceClaims.enabled needs to know which devices containers have: "
			"podResources.enabled must be true"},
		{{{"deviceClaims.enabled", "true"}, {"podResources.enabled", "true"}}, NULL, NULL},
		{{{"observedPlacement", "kai"}, {"podsWatch.enabled", "true"}},
			"observedPlacement: kai needs to know what pods have: podsWatch.enabled "
			"and podResources.enabled must be true",
			"observedPlacement: kai needs to know what pods have: podsWatch.enabled "
			"and podResources.enabled must be true"},
		{{{"observedPlacement", "kai"}, {"podsWatch.enabled", "true"},
			 {"podResources.enabled", "true"}},
			NULL, NULL},
		{{{"reservedSystemCPUs", "0,4-5"}}, NULL,
			"reservedSystemCPUs: twin has no CPU 4-5"},
		{{{"reservedSystemCPUs", "0-3"}}, NULL,
			"reservedSystemCPUs: no CPU is left for containers"},
		{{{"systemReserved.cpu", "3"}}, NULL, NULL},
		{{{"systemReserved.cpu", "3"}, {"kubeReserved.cpu", "1m"}}, NULL,
			"systemReserved.cpu, kubeReserved.cpu: no CPU is left for containers"},
		{{{"reservedMemory.0.limits.memory", "1Gi"}},
			"reservedMemory.0: numaNode is missing",
			"reservedMemory.0: numaNode is missing"},
		{{{"reservedMemory.0.numaNode", "0"}}, "reservedMemory.0: limits is missing",
			"reservedMemory.0: limits is missing"},
		{{{"reservedMemory.0.numaNode", "8"}, {"reservedMemory.0.limits.memory", "3Gi"},
			 {"reservedMemory.0.limits.hugepages-1Gi", "1Gi"}},
			NULL, NULL},
		{{{"reservedMemory.0.numaNode", "1"}, {"reservedMemory.0.limits.memory", "1Gi"}},
			NULL,
			"reservedMemory.0: the reserved memory configuration references a NUMA "
			"node 1 that does not exist on this machine"},
		{{{"reservedMemory.0.numaNode", "0"}, {"reservedMemory.0.limits.memory", "3073Mi"}},
			NULL,
			"reservedMemory.0: 3073Mi of memory are reserved, NUMA node 0 has 3Gi"},
		{{{"reservedMemory.0.numaNode", "0"},
			 {"reservedMemory.0.limits.hugepages-1Gi", "2Gi"}},
			NULL,
			"reservedMemory.0: 2Gi of hugepages-1Gi are reserved, NUMA node 0 has 1Gi"},
		{{{"reservedMemory.0.numaNode", "0"},
			 {"reservedMemory.0.limits.hugepages-2Mi", "2Mi"}},
			NULL, "reservedMemory.0: the machine has no hugepages-2Mi"},
		{{{"reservedMemory.0.numaNode", "0"}, {"reservedMemory.0.limits.memory", "1Gi"},
			 {"reservedMemory.1.numaNode", "0"},
			 {"reservedMemory.1.limits.memory", "1Gi"}},
			"reservedMemory.1: memory of NUMA node 0 is reserved in entry 0 already",
			"reservedMemory.1: memory of NUMA node 0 is reserved in entry 0 already"},
	};
	const struct topo *t = machine();

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct settings s = defaults();
		struct err alone = {0}, here = {0};

		for (size_t n = 0; n < 4 && table[i].pairs[n][0]; n++)
			set_all(&s, &table[i].pairs[n], 1);
		assert_int_equal(settings_check(&s, NULL, &alone), table[i].alone ? -EINVAL : 0);
		assert_string_equal(alone.text, table[i].alone ? table[i].alone : "");
		assert_int_equal(settings_check(&s, t, &here), table[i].here ? -EINVAL : 0);
		assert_string_equal(here.text, table[i].here ? table[i].here : "");
	}
}

static void options_are_refused_as_the_kubelet_refuses_them(void **state)
{
	static const struct {
		const char *pairs[4][2], *text; /* NULL: fine */
	} table[] = {
		{{{CPU "align-by-socket", "true"}},
			"new static policy error: CPU Manager Policy Alpha-level Options not "
			"enabled, but option \"align-by-socket\" provided"},
		{{{CPU "align-by-socket", "false"}},
			"new static policy error: CPU Manager Policy Alpha-level Options not "
			"enabled, but option \"align-by-socket\" provided"},
		{{{CPU "align-by-socket", "true"},
			 {"featureGates.CPUManagerPolicyAlphaOptions", "true"}},
			NULL},
		{{{CPU "distribute-cpus-across-cores", "true"}},
			"new static policy error: CPU Manager Policy Alpha-level Options not "
			"enabled, but option \"distribute-cpus-across-cores\" provided"},
		{{{CPU "distribute-cpus-across-numa", "true"}}, NULL},
		{{{"featureGates.CPUManagerPolicyBetaOptions", "false"},
			 {CPU "distribute-cpus-across-numa", "true"}},
			"new static policy error: CPU Manager Policy Beta-level Options not "
			"enabled, but option \"distribute-cpus-across-numa\" provided"},
		{{{"featureGates.CPUManagerPolicyBetaOptions", "false"},
			 {CPU "full-pcpus-only", "true"}, {CPU "strict-cpu-reservation", "true"},
			 {CPU "prefer-align-cpus-by-uncorecache", "true"}},
			NULL},
		{{{CPU "distribute-cpus-across-numa", "true"},
			 {CPU "prefer-align-cpus-by-uncorecache", "true"}},
			"new static policy error: static policy options "
			"prefer-align-cpus-by-uncorecache and distribute-cpus-across-numa can not "
			"be used at the same time"},
		{{{"featureGates.CPUManagerPolicyAlphaOptions", "true"},
			 {CPU "align-by-socket", "true"},
			 {"topologyManagerPolicy", "single-numa-node"}},
			"new static policy error: Topolgy manager single-numa-node policy is "
			"incompatible with CPUManager align-by-socket policy option"},
		{{{CPU "align-by-socket", "true"}, {CPU "full-pcpus-only", "0"},
			 {"cpuManagerPolicy", "none"}},
			"new none policy error: None policy: received unsupported "
			"options=map[align-by-socket:true full-pcpus-only:false]"},
		{{{"cpuManagerPolicy", "none"}}, NULL},
		{{{TOPOLOGY "numa-allocation-strategy", "none"}},
			"topology manager policy alpha-level options not enabled, but option "
			"\"numa-allocation-strategy\" provided"},
		{{{TOPOLOGY "numa-allocation-strategy", "none"},
			 {"featureGates.TopologyManagerPolicyAlphaOptions", "true"}},
			NULL},
		{{{TOPOLOGY "numa-allocation-strategy", "none"}, {"topologyManagerPolicy", "none"}},
			NULL},
		{{{TOPOLOGY "prefer-closest-numa-nodes", "true"},
			 {"featureGates.TopologyManagerPolicyBetaOptions", "false"}},
			NULL},
		{{{TOPOLOGY "numa-allocation-strategy", "none"}, {CPU "align-by-socket", "true"}},
			"topology manager policy alpha-level options not enabled, but option "
			"\"numa-allocation-strategy\" provided"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct settings s = defaults();
		struct err e = {0};

		for (size_t n = 0; n < 4 && table[i].pairs[n][0]; n++)
			set_all(&s, &table[i].pairs[n], 1);
		assert_int_equal(settings_check(&s, machine(), &e), table[i].text ? -EINVAL : 0);
		assert_string_equal(e.text, table[i].text ? table[i].text : "");
	}
}

static void too_many_nodes_are_refused_before_the_options_of_the_cpu_manager(void **state)
{
	struct settings s = defaults();
	struct topo *t = machine();
	struct err e = {0};

	(void)state;
	s.max_allowable_numa_nodes = t->ids.nr - 1;
	assert_int_equal(settings_set(&s, CPU "align-by-socket", "true", NULL), 0);
	assert_int_equal(settings_check(&s, t, &e), -E2BIG);
	assert_string_equal(e.text, "unsupported on machines with more than 1 NUMA Nodes");
	s.topology_policy = POLICY_NONE;
	assert_int_equal(settings_check(&s, t, &e), -EINVAL);
}

static void resources_of_pods_are_shared_out_only_where_they_are_known(void **state)
{
#define OWN "featureGates.PodLevelResource"
	static const struct {
		const char *set[3][2], *text;
	} cases[] = {
		{{{OWN "Managers", "true"}}, NULL},
		{{{OWN "Managers", "true"}, {"podsAPI.enabled", "true"}}, NULL},
		{{{OWN "Managers", "true"}, {"podsAPI.enabled", "false"}},
			"featureGates.PodLevelResourceManagers: no runtime says what a pod has as "
			"resources of its own: podsAPI.enabled (true or auto) or "
			"podsWatch.enabled must be set as well"},
		{{{OWN "Managers", "true"}, {"podsAPI.enabled", "false"},
			 {"podsWatch.enabled", "true"}},
			NULL},
		{{{OWN "Managers", "true"}, {OWN "s", "false"}},
			"PodLevelResourceManagers is enabled, but depends on features that are "
			"disabled: [PodLevelResources]"},
	};
#undef OWN

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct settings s = defaults();
		struct err e = {0};

		for (unsigned k = 0; k < 3 && cases[i].set[k][0]; k++)
			set_all(&s, &cases[i].set[k], 1);
		assert_int_equal(settings_check(&s, NULL, &e), cases[i].text ? -EINVAL : 0);
		if (cases[i].text)
			assert_string_equal(e.text, cases[i].text);
	}
}

static void an_alpha_strategy_is_accepted_with_its_feature_gate(void **state)
{
	static const char *const words[] = {"none", "most-allocated", "least-allocated"};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct settings s = defaults();
		struct err e = {0};
		const char *const set[][2] = {{TOPOLOGY "numa-allocation-strategy", words[i]}};

		set_all(&s, set, 1);
		assert_int_equal(settings_check(&s, NULL, &e), -EINVAL);
		assert_string_equal(e.text,
			"topology manager policy alpha-level options not enabled, but option "
			"\"numa-allocation-strategy\" provided");
		s.gates.topology_alpha_options = true;
		assert_int_equal(settings_check(&s, NULL, NULL), 0);
		assert_int_equal(s.allocation_strategy, i);
	}
}

static void reserved_cpus_are_counted_as_the_kubelet_counts_them(void **state)
{
	static const struct {
		const char *cpus, *system, *kube;
		unsigned count;
	} table[] = {
		{"", "0", "0", 0},
		{"", "1", "0", 1},
		{"", "1m", "0", 1},
		{"", "500m", "500m", 1},
		{"", "500m", "501m", 2},
		{"", "1024", "1024", 2048},
		{"0,2", "3", "4", 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const char *const pairs[][2] = {{"reservedSystemCPUs", table[i].cpus},
			{"systemReserved.cpu", table[i].system},
			{"kubeReserved.cpu", table[i].kube}};
		struct settings s = defaults();

		set_all(&s, pairs, 3);
		assert_int_equal(settings_reserved_cpu_count(&s), table[i].count);
	}
}

static void a_daemons_shared_pool_leaves_cpus_to_containers(void **state)
{
	static const struct {
		const char *minimum, *strict, *manager, *text;
	} table[] = {
		{"1", "true", "static", NULL},
		{"2", "true", "static", NULL},
		{"3", "false", "static", NULL},
		{"3", "true", "static",
			"sharedPoolMinimum: with 3 CPUs kept shared beside the reserved ones no "
			"container could have one for itself: twin has 4 CPUs"},
		{"4", "false", "static",
			"sharedPoolMinimum: with 4 CPUs kept shared no container could have one "
			"for itself: twin has 4 CPUs"},
		{"4", "false", "none", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const char *const pairs[][2] = {{"reservedSystemCPUs", "0"},
			{"sharedPoolMinimum", table[i].minimum},
			{"cpuManagerPolicy", table[i].manager},
			{"cpuManagerPolicyOptions.strict-cpu-reservation", table[i].strict}};
		bool none = text_equal(table[i].manager, "none"); /* it takes no options */
		struct settings s = defaults();
		struct err e = {.text = ""};

		set_all(&s, pairs, none ? 3 : 4);
		int rc = settings_check_daemon(&s, machine(), NULL, &e);
		assert_int_equal(rc, table[i].text ? -EINVAL : 0);
		if (table[i].text)
			assert_string_equal(e.text, table[i].text);
		assert_int_equal(settings_check(&s, machine(), &e), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_settings_are_checked_together_and_against_the_machine),
		cmocka_unit_test(options_are_refused_as_the_kubelet_refuses_them),
		cmocka_unit_test(too_many_nodes_are_refused_before_the_options_of_the_cpu_manager),
		cmocka_unit_test(a_daemons_shared_pool_leaves_cpus_to_containers),
		cmocka_unit_test(resources_of_pods_are_shared_out_only_where_they_are_known),
		cmocka_unit_test(an_alpha_strategy_is_accepted_with_its_feature_gate),
		cmocka_unit_test(reserved_cpus_are_counted_as_the_kubelet_counts_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
