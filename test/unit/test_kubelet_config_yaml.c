#include <daemon-files/kubelet_config_yaml.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* As kubeadm writes it, and more: keys that are no words, anchors, quotes, lists. */
static const char real[] =
	"apiVersion: kubelet.config.k8s.io/v1beta1\n"
	"kind: KubeletConfiguration\n"
	"authentication:\n"
	"  anonymous: {enabled: false}\n"
	"  x509: &ca {clientCAFile: /etc/kubernetes/pki/ca.crt}\n"
	"again: *ca\n"
	"clusterDNS:\n"
	"- 10.96.0.10\n"
	"cpuManagerPolicy: static\n"
	"cpuManagerPolicyOptions:\n"
	"  full-pcpus-only: \"true\"\n"
	"evictionHard:\n"
	"  memory.available: 100Mi\n"
	"  nodefs.available: \"10%\"\n"
	"logging: {flushFrequency: 0, options: {json: {infoBufferSize: \"0\"}}}\n"
	"topologyManagerPolicy: single-numa-node\n"
	"topologyManagerPolicyOptions:\n"
	"  prefer-closest-numa-nodes: \"true\"\n"
	"  max-allowable-numa-nodes: \"16\"\n"
	"  some-day: \"yes\"\n"
	"topologyManagerScope: pod\n";

static struct report_policy read_good(const char *text)
{
	struct report_policy p;
	struct err e;

	if (kubelet_config_yaml_read(text, strlen(text), &p, &e))
		fail_msg("%s", e.text);
	return p;
}

static void a_real_file_is_read(void **state)
{
	struct report_policy p = read_good(real);

	(void)state;
	assert_int_equal(p.policy, POLICY_SINGLE_NUMA_NODE);
	assert_int_equal(p.scope, SCOPE_POD);
	assert_int_equal(p.cpu_manager, MANAGER_STATIC);
	assert_true(p.prefer_closest_numa_nodes);
	assert_int_equal(p.max_allowable_numa_nodes, 16);
}

static void missing_keys_have_the_kubelets_defaults(void **state)
{
	static const char *const texts[] = {
		"kind: KubeletConfiguration\n",
		"{}",
		"topologyManagerPolicy:\ntopologyManagerScope: \"\"\ncpuManagerPolicy: ~\n"
		"topologyManagerPolicyOptions: null\n",
		"topologyManagerPolicy: none\ntopologyManagerScope: container\n"
		"cpuManagerPolicy: none\ntopologyManagerPolicyOptions:\n"
		"  prefer-closest-numa-nodes: \"false\"\n  numa-allocation-strategy: none\n",
		"nested: {topologyManagerPolicy: restricted, cpuManagerPolicy: static}\n",
		"topologyManagerPolicyOptions: {topologyManagerPolicy: restricted}\n",
		"? [a, list]\n: topologyManagerPolicy\n",
	};
	const struct report_policy none = {0};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct report_policy p = read_good(texts[i]);

		assert_memory_equal(&p, &none, sizeof p);
	}
}

static void json_is_read_as_well(void **state)
{
	struct report_policy p =
		read_good("{\n\t\"kind\": \"KubeletConfiguration\",\n\t\"topologyManagerPolicy\": "
			  "\"restricted\",\n\t\"topologyManagerPolicyOptions\": "
			  "{\"numa-allocation-strategy\": \"least-allocated\"}}\n");

	(void)state;
	assert_int_equal(p.policy, POLICY_RESTRICTED);
	assert_int_equal(p.strategy, ALLOCATION_LEAST);
}

static void values_that_stop_a_kubelet_are_errors(void **state)
{
	static const struct {
		const char *text, *says;
	} table[] = {
		{"", "is no KubeletConfiguration"},
		{"- a\n", "is no KubeletConfiguration"},
		{"a: [\n", "line 2: "},
		{"kind: KubeProxyConfiguration\n",
			"kind: should be KubeletConfiguration, is KubeProxyConfiguration"},
		{"topologyManagerPolicy: strict\n", "topologyManagerPolicy: \"strict\""},
		{"topologyManagerPolicy: [none]\n", "topologyManagerPolicy: should be a word"},
		{"topologyManagerScope: node\n", "topologyManagerScope: \"node\""},
		{"cpuManagerPolicy: Static\n", "cpuManagerPolicy: \"Static\""},
		{"topologyManagerPolicyOptions:\n  prefer-closest-numa-nodes: perhaps\n",
			"option \"prefer-closest-numa-nodes\": "},
		{"topologyManagerPolicyOptions:\n  max-allowable-numa-nodes: \"-1\"\n",
			"\"max-allowable-numa-nodes\" should not be less than 8"},
		{"topologyManagerPolicyOptions:\n  numa-allocation-strategy: any\n",
			"option \"numa-allocation-strategy\": \"any\" must be one of"},
	};
	const struct report_policy before = {.policy = POLICY_RESTRICTED};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct report_policy p = before;
		struct err e = {0};
		int rc = kubelet_config_yaml_read(table[i].text, strlen(table[i].text), &p, &e);

		if (rc != -EINVAL || !strstr(e.text, table[i].says))
			fail_msg("case %zu: %d, %s", i, rc, e.text);
		assert_memory_equal(&p, &before, sizeof p);
	}
}

static void a_file_that_is_too_large_is_not_read(void **state)
{
	char *text = calloc(1, KUBELET_CONFIG_BYTES_MAX + 1);
	struct report_policy p;

	(void)state;
	memset(text, ' ', KUBELET_CONFIG_BYTES_MAX + 1);
	assert_int_equal(
		kubelet_config_yaml_read(text, KUBELET_CONFIG_BYTES_MAX + 1, &p, NULL), -E2BIG);
	memcpy(text, "{}", 2);
	assert_int_equal(kubelet_config_yaml_read(text, KUBELET_CONFIG_BYTES_MAX, &p, NULL), 0);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_real_file_is_read),
		cmocka_unit_test(missing_keys_have_the_kubelets_defaults),
		cmocka_unit_test(json_is_read_as_well),
		cmocka_unit_test(values_that_stop_a_kubelet_are_errors),
		cmocka_unit_test(a_file_that_is_too_large_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
