#include <codec/config_yaml.h>

#include <errno.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { FILE_MAX = 64 << 10 };

static struct settings defaults(void)
{
	struct settings s;

	settings_init(&s);
	return s;
}

static int read_yaml(struct settings *s, const char *yaml, struct err *e)
{
	struct config_sections sections;

	return config_yaml_read(s, yaml, strlen(yaml), NULL, &sections, e);
}

static struct settings read_good(const char *yaml)
{
	struct settings s = defaults();
	struct err e = {0};

	if (read_yaml(&s, yaml, &e))
		fail_msg("%s: %s", yaml, e.text);
	return s;
}

/* The file at path, as a string that stays until the next call. */
static const char *file_text(const char *path)
{
	static char text[FILE_MAX];
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	size_t len = fread(text, 1, sizeof text - 1, f);

	(void)fclose(f);
	assert_true(len && len < sizeof text - 1);
	text[len] = '\0';
	return text;
}

static void an_empty_file_means_the_defaults(void **state)
{
	static const char *const yamls[] = {"", "# mode: off\n", "---\n", "{}", "nri:\n",
		"nri:\n  # socketPath: /x\nreservedMemory:\ntopologyManagerPolicyOptions: {}\n",
		"reservedMemory: []\nreservedSystemCPUs:\n"};
	const struct settings want = defaults();

	(void)state;
	for (size_t i = 0; i < sizeof yamls / sizeof *yamls; i++) {
		const struct settings s = read_good(yamls[i]);

		assert_memory_equal(&s, &want, sizeof s);
	}
}

static void every_key_reaches_its_setting(void **state)
{
	const struct settings s =
		read_good("mode: off\n"
			  "onAdopt: leave\n"
			  "besideStaticKubelet: manage\n"
			  "kubeletRootDirectory: /k\n"
			  "kubeletConfigFile: /k.yaml\n"
			  "kubernetesVersion: '1.36'\n"
			  "topologyManagerPolicy: restricted\n"
			  "topologyManagerScope: pod\n"
			  "topologyManagerPolicyOptions:\n"
			  "  prefer-closest-numa-nodes: 'true'\n"
			  "  max-allowable-numa-nodes: 16\n"
			  "  numa-allocation-strategy: most-allocated\n"
			  "cpuManagerPolicy: none\n"
			  "cpuManagerPolicyOptions:\n"
			  "  align-by-socket: 'true'\n"
			  "  distribute-cpus-across-cores: 'false'\n"
			  "  distribute-cpus-across-numa: '1'\n"
			  "  full-pcpus-only: T\n"
			  "  prefer-align-cpus-by-uncorecache: 'true'\n"
			  "  strict-cpu-reservation: 'true'\n"
			  "memoryManagerPolicy: None\n"
			  "deviceMemory: include\n"
			  "reservedSystemCPUs: 0-1,32\n"
			  "systemReserved: {cpu: 500m}\n"
			  "kubeReserved: {cpu: 2}\n"
			  "reservedMemory:\n"
			  "- numaNode: 8\n"
			  "  limits:\n"
			  "    memory: 1Gi\n"
			  "    hugepages-1Gi: 2Gi\n"
			  "- limits: {hugepages-2Mi: 4Mi}\n"
			  "  numaNode: 1\n"
			  "mergeVisitBudget: 7\n"
			  "sharedPool: {enforce: updates}\nsharedPoolStep: 0\n"
			  "sharedPoolMinimum: 2\n"
			  "exclusiveCPUs: {cfsQuota: keep}\n"
			  "defragment: {mode: auto, movable: all, maxMoves: 5, minInterval: 1h,\n"
			  "  maxMovesPerHour: 2, maxBytesPerMinute: 1Gi}\n"
			  "sweepInterval: 1m30s\nrolloutDelay: 10m\n"
			  "nodeName: n1\n"
			  "podWishes: {allowed: 'cpus, cores', unknown: ignore}\n"
			  "namespaces:\n"
			  "- names: [kube-system, kube-?]\n"
			  "  reserved: true\n"
			  "- wishes: {cpus: shared, spread: one-node}\n"
			  "  names: ['*']\n"
			  "  force: true\n"
			  "  allowed: cpus=untouched,cores\n"
			  "frequencyProfiles:\n"
			  "- {name: fast, governor: performance, minMHz: 2400}\n"
			  "- name: cool\n"
			  "  maxIdleLatencyUs: 0\n"
			  "burstable: one-node\nmemoryPolicyAcrossNodes: interleave\n"
			  "containerEnvironment: true\n"
			  "schedulerHint: {mode: require, repair: false, podPolicy: true,\n"
			  "                clockSkew: 1s, order: volcano}\n"
			  "nri: {socketPath: /run/x.sock, pluginIndex: 07,\n"
			  "      failurePolicy: drop-and-fail}\n"
			  "devicePlugin: {enabled: true, preStartContainer: false,\n"
			  "               reclaimAfter: 5m}\n"
			  "podResources: {enabled: true}\n"
			  "podsAPI: {enabled: true}\n"
			  "refusalAction: evict\n"
			  "apiServer: {kubeconfig: /kubeconfig, context: here}\n"
			  "podsWatch: {enabled: true}\n"
			  "deviceClaims: {enabled: true, wait: 1s}\n"
			  "claims: {enabled: true, capacity: share, share: 40,\n"
			  "  order: least-allocated, prepareWait: 30s, cdiDirectory: /cdi}\n"
			  "events: {enabled: true, podNames: all}\n"
			  "observedPlacement: kai\n"
			  "nodeResourceTopology: {enabled: true, interval: 1s, heartbeat: 5m,\n"
			  "  takeOver: true, topologyPolicies: true, podsFingerprint: all,\n"
			  "  numaPlacement: true}\n"
			  "numatopology: {enabled: true}\n"
			  "metrics: {address: ':1'}\n"
			  "ui: {address: ':2', insecure: true}\n"
			  "runDirectory: /run/y\n"
			  "journalMaxBytes: 1Mi\n"
			  "journalGroup: adm\n"
			  "machine: kep3545-8\n"
			  "logLevel: debug\n"
			  "logFormat: json\n"
			  "featureGates:\n"
			  "  CPUManagerPolicyAlphaOptions: true\n"
			  "  CPUManagerPolicyBetaOptions: false\n"
			  "  CPUManagerPolicyOptions: true\n"
			  "  PodLevelResourceManagers: true\n"
			  "  PodLevelResources: false\n"
			  "  TopologyManagerPolicyAlphaOptions: true\n"
			  "  TopologyManagerPolicyBetaOptions: false\n"
			  "  TopologyManagerPolicyOptions: true\n");
	static const char *const want[] = {"off", "leave", "manage", "/k", "/k.yaml", "1.36",
		"restricted", "pod", "true", "16", "most-allocated", "none", "true", "false",
		"true", "true", "true", "true", "None", "include", "0-1,32", "500m", "2",
		"8:memory=1Gi,hugepages-1Gi=2Gi;1:hugepages-2Mi=4Mi", "7", "updates", "0", "2",
		"keep", "auto", "all", "5", "1h", "2", "1Gi", "90s", "10m", "n1", "require",
		"false", "true", "1s", "volcano", "cpus,cores", "ignore",
		("names=kube-system,kube-? reserved=true; names=* cpus=shared spread=one-node "
		 "allowed=cpus=untouched,cores force=true"),
		"name=fast governor=performance minMHz=2400; name=cool maxIdleLatencyUs=0",
		"one-node", "interleave", "true", "/run/x.sock", "07", "drop-and-fail", "true",
		"false", "5m", "true", "true", "evict", "/kubeconfig", "here", "true", "true", "1s",
		"true", "share", "40", "least-allocated", "30s", "/cdi", "true", "all", "kai",
		"true", "1s", "5m", "true", "true", "all", "true", "true", ":1", ":2", "true", "/run/y",
		"1Mi", "adm", "kep3545-8", "debug", "json", "true", "false", "true", "true",
		"false", "true", "false", "true"};
	char value[SETTING_TEXT_MAX];
	unsigned nr = 0;

	(void)state;
	for (; settings_get(&s, nr, value, sizeof value); nr++) {
		assert_true(nr < sizeof want / sizeof *want);
		assert_string_equal(value, want[nr]);
	}
	assert_int_equal(nr, sizeof want / sizeof *want);
	assert_int_equal(s.nr_reserved_memory, 3);
	assert_true(s.reserved_memory[2].has_node);
}

static void keys_that_are_not_in_the_file_keep_their_value(void **state)
{
	struct settings s = defaults();

	(void)state;
	s.shared_pool_step = 9;
	assert_int_equal(read_yaml(&s, "mode: off\n", NULL), 0);
	assert_int_equal(s.shared_pool_step, 9);
	assert_int_equal(s.mode, MODE_OFF);
}

static void a_mistake_is_reported_with_line_key_value_and_the_expected_form(void **state)
{
	static const struct {
		const char *yaml;
		int code;
		const char *says;
	} bad[] = {
		{"mode: manage\n\n# the policy\ntopologyManagerPolicy: single-node\n", -EINVAL,
			"line 4: topologyManagerPolicy: \"single-node\" is not one of none, "
			"best-effort, "
			"restricted, single-numa-node"},
		{"mode:\n", -EINVAL,
			"line 1: mode: \"\" is not one of off, manage, shadow, release"},
		{"mode: {}\n", -EINVAL, "line 1: mode: an empty map or list does not belong here"},
		{"mode:\n- off\n", -ENOENT,
			"line 2: mode: one value is expected, not a map or a list"},
		{"logLevel:\n  all: info\n", -ENOENT,
			"line 2: logLevel: one value is expected, not a map or a list"},
		{"nri: /run/nri.sock\n", -EINVAL,
			"line 1: nri: a map is expected, not \"/run/nri.sock\""},
		{"nri: [a]\n", -ENOENT, "line 1: nri.0: unknown key"},
		{"nri:\n  sockPath: /x\n", -ENOENT,
			"line 2: nri.sockPath: unknown key, did you mean nri.socketPath?"},
		{"socketPath: /x\n", -ENOENT,
			"line 1: socketPath: unknown key, did you mean nri.socketPath?"},
		{"topologyMangerPolicy: none\n", -ENOENT,
			"line 1: topologyMangerPolicy: unknown key, did you mean "
			"topologyManagerPolicy?"},
		{"apiVersion: kubelet.config.k8s.io/v1beta1\n", -ENOENT,
			"line 1: apiVersion: unknown key"},
		{"kind: KubeletConfiguration\n", -ENOENT, "line 1: kind: unknown key"},
		{"evictionHard:\n  memory.available: 50Mi\n", -EINVAL,
			"line 2: \"memory.available\" is not a key: letters, digits, '-' and '_' "
			"are"},
		{"evictionSoft: {a: b}\n", -ENOENT, "line 1: evictionSoft.a: unknown key"},
		{"topologyManagerPolicyOptions:\n  prefer-closest-numa-nodes: 'yes'\n", -EINVAL,
			"line 2: bad value for option \"prefer-closest-numa-nodes\": "
			"strconv.ParseBool: parsing "
			"\"yes\": invalid syntax"},
		{"topologyManagerPolicyOptions:\n  max-allowable-numa-nodes: 4\n", -ERANGE,
			"line 2: the minimum value of \"max-allowable-numa-nodes\" should not be "
			"less than 8"},
		{"topologyManagerPolicyOptions: {shiny: 'true'}\n", -ENOENT,
			"line 1: unknown Topology Manager Policy option: \"shiny\""},
		{"cpuManagerPolicyOptions: {shiny: 'true'}\n", -ENOENT,
			"line 1: unknown CPU Manager Policy option: \"shiny\""},
		{"featureGates:\n  Shiny: true\n", -ENOENT,
			"line 2: unrecognized feature gate: Shiny"},
		{"reservedMemory: 1Gi\n", -EINVAL,
			"line 1: reservedMemory: a list is expected, not \"1Gi\""},
		{"reservedMemory:\n- numaNode: 0\n  limits:\n    memory: much\n", -EINVAL,
			"line 4: reservedMemory.0.limits.memory: \"much\" is not a quantity above "
			"0"},
		{"nri: {pluginIndex: 5}\n", -EINVAL,
			"line 1: nri.pluginIndex: \"5\" is not two digits"},
		{"mode: off\nmode: off\n", -EINVAL, "line 2: mode: the key is there twice"},
		{"mode: &m off\n", -EINVAL, "line 1: anchors (&m) are not supported"},
		{"mode: \"off\n\n", -EINVAL, "line 3: found unexpected end of stream"},
		{"- mode: off\n", -EINVAL, "line 1: a key with a colon is expected, not a list"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct settings s = defaults();
		struct err e = {0};

		assert_int_equal(read_yaml(&s, bad[i].yaml, &e), bad[i].code);
		assert_string_equal(e.text, bad[i].says);
	}
}

static void a_mistake_leaves_the_settings_as_they_were(void **state)
{
	static const char yaml[] = "mode: off\nlogLevel: loud\n";
	const struct settings want = defaults();
	struct settings s = want;

	(void)state;
	assert_int_equal(read_yaml(&s, yaml, NULL), -EINVAL);
	assert_memory_equal(&s, &want, sizeof s);
}

static void the_example_file_holds_the_defaults(void **state)
{
	const struct settings want = defaults(), s = read_good(file_text("deploy/numafitd.yaml"));

	(void)state;
	assert_memory_equal(&s, &want, sizeof s);
}

static void the_example_has_every_key(void **state)
{
	const char *text = file_text("deploy/numafitd.yaml");
	struct setting_doc doc;

	(void)state;
	for (unsigned i = 0; settings_doc(i, &doc); i++) {
		const char *dot = strrchr(doc.key, '.');
		char line[128];

		/* "  key: " or, where no value means the default, "  # key: " */
		(void)snprintf(
			line, sizeof line, "%s%s: ", dot ? " " : "\n", dot ? dot + 1 : doc.key);
		if (!strstr(text, line))
			fail_msg("%s is not in the example", doc.key);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_file_means_the_defaults),
		cmocka_unit_test(every_key_reaches_its_setting),
		cmocka_unit_test(keys_that_are_not_in_the_file_keep_their_value),
		cmocka_unit_test(a_mistake_is_reported_with_line_key_value_and_the_expected_form),
		cmocka_unit_test(a_mistake_leaves_the_settings_as_they_were),
		cmocka_unit_test(the_example_file_holds_the_defaults),
		cmocka_unit_test(the_example_has_every_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
