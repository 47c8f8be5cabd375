#include <numafit-extender/extender_yaml.h>

#include <errno.h>
#include <numafit/settings.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void an_empty_file_is_enough(void **state)
{
	static const char *const rows[] = {"", "---\n", "tls: {}\nplugins: []\nhint:\n"};
	struct extender_config c;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (extender_yaml_read(rows[i], strlen(rows[i]), &c, NULL, &e))
			fail_msg("row %zu: %s", i, e.text);
		assert_int_equal(c.profile.nr, 1);
		assert_string_equal(
			sched_plugin_name(c.profile.use[0].plugin), "NodeResourceTopologyMatch");
		assert_int_equal(c.profile.use[0].weight, 1);
		assert_int_equal(c.profile.use[0].args.nrt.strategy, NRT_LEAST_NUMA_NODES);
		assert_true(c.profile.check_restricted);
		assert_true(c.cluster.over_reserve);
		assert_false(c.cluster.discard_reserved);
		assert_int_equal(c.cluster.foreign, FOREIGN_PODS_EXCLUSIVE);
		assert_int_equal(c.cluster.assume_ms, 90000);
		assert_int_equal(c.score_max, 10);
		assert_true(c.advice);
		assert_int_equal(c.advice_mode, ADVICE_PREFER);
		assert_int_equal(c.advice_ttl_ms, 120000);
		assert_int_equal(c.stale, STALE_HOLD);
		assert_int_equal(c.log_level, LOG_INFO);
		assert_int_equal(c.log_format, LOG_FORMAT_AUTO);
		extender_config_fini(&c);
	}
}

static const char whole[] = "apiVersion: numafit.io/v1\n"
			    "kind: ExtenderConfiguration\n"
			    "listen: 127.0.0.1:8443\n"
			    "tls: {certFile: c.crt, keyFile: c.key, clientCAFile: ca.crt}\n"
			    "metrics: {address: \":9468\"}\n"
			    "ui: {address: localhost:9469, poolLabel: example.com/pool}\n"
			    "kubeconfig: /etc/kubeconfig\n"
			    "context: here\n"
			    "apiTimeout: 7s\n"
			    "maxRequestBytes: 1Mi\n"
			    "maxHeldBytes: 3Mi\n"
			    "scoreMax: 100\n"
			    "hint: {enabled: false, ttl: 90s, mode: require}\n"
			    "assumeTTL: 2m\n"
			    "staleNodes: pass\n"
			    "avoid: {enabled: false}\n"
			    "logLevel: debug\n"
			    "logFormat: json\n"
			    "checkRestricted: false\n"
			    "plugins:\n"
			    "- name: NodeResourceTopologyMatch\n"
			    "  weight: 5\n"
			    "  args:\n"
			    "    scoringStrategy:\n"
			    "      type: MostAllocated\n"
			    "      resources: [{name: cpu, weight: 3}, {name: example.com/gpu}]\n"
			    "    cacheResyncPeriodSeconds: 5\n"
			    "    discardReservedNodes: true\n"
			    "    cache: {foreignPodsDetect: All, informerMode: Shared}\n"
			    "- name: numa-aware\n"
			    "  args: {weight: 3}\n"
			    "- name: GenericNodeResources\n"
			    "  weight: 2\n"
			    "  args:\n"
			    "    left: {values: RatioToAllocatable, prefer: Most}\n";

static void all_keys_are_read(void **state)
{
	struct extender_config c;
	struct err e;

	(void)state;
	if (extender_yaml_read(whole, sizeof whole - 1, &c, NULL, &e))
		fail_msg("%s", e.text);
	assert_string_equal(c.listen, "127.0.0.1:8443");
	assert_string_equal(c.cert_file, "c.crt");
	assert_string_equal(c.key_file, "c.key");
	assert_string_equal(c.client_ca_file, "ca.crt");
	assert_string_equal(c.metrics_address, ":9468");
	assert_string_equal(c.ui_address, "localhost:9469");
	assert_string_equal(c.pool_label, "example.com/pool");
	assert_false(c.ui_insecure);
	assert_string_equal(c.kubeconfig, "/etc/kubeconfig");
	assert_string_equal(c.context, "here");
	assert_int_equal(c.api_timeout_ms, 7000);
	assert_int_equal(c.request_bytes_max, 1 << 20);
	assert_int_equal(c.held_bytes_max, 3 << 20);
	assert_int_equal(c.score_max, 100);
	assert_false(c.advice);
	assert_int_equal(c.advice_ttl_ms, 90000);
	assert_int_equal(c.advice_mode, ADVICE_REQUIRE);
	assert_int_equal(c.cluster.assume_ms, 120000);
	assert_int_equal(c.stale, STALE_PASS);
	assert_false(c.avoid);
	assert_int_equal(c.log_level, LOG_DEBUG);
	assert_int_equal(c.log_format, LOG_FORMAT_JSON);
	assert_false(c.profile.check_restricted);
	assert_true(c.cluster.over_reserve);
	assert_true(c.cluster.discard_reserved);
	assert_int_equal(c.cluster.foreign, FOREIGN_PODS_ALL);
	assert_int_equal(c.profile.nr, 3);
	assert_int_equal(c.profile.use[0].weight, 5);
	const struct nrt_args *nrt = &c.profile.use[0].args.nrt;
	assert_int_equal(nrt->strategy, NRT_MOST_ALLOCATED);
	assert_int_equal(nrt->nr_weights, 2);
	assert_int_equal(nrt->weights[0].resource, RESOURCE_CPU);
	assert_int_equal(nrt->weights[0].weight, 3);
	assert_string_equal(c.names.at[nrt->weights[1].resource].name, "example.com/gpu");
	assert_int_equal(c.profile.use[1].weight, 3);
	assert_int_equal(c.profile.use[2].weight, 2);
	assert_int_equal(c.profile.use[2].args.generic.nr, 1);
	extender_config_fini(&c);
}

/* Who may ask may bind any pod anywhere. */
static void clients_without_certificates_are_served_on_the_loopback_only(void **state)
{
#define TLS  "tls: {certFile: c, keyFile: k, clientCAFile: ca}\n"
#define OPEN "tls: {certFile: c, keyFile: k}\n"
	static const char no[] = "";
	static const struct {
		const char *text, *listen; /* no: it is refused */
	} rows[] = {
		{"", "127.0.0.1:9467"},
		{OPEN, "127.0.0.1:9467"},
		{TLS, ":9467"},
		{"insecure: true\n", ":9467"},
		{"insecure: false\n", "127.0.0.1:9467"},
		{"listen: \"\"\n", "127.0.0.1:9467"},
		{"listen: :9467\n", no},
		{"listen: 0.0.0.0:9467\n", no},
		{"listen: 10.0.0.1:9467\n", no},
		{"listen: \"[::]:9467\"\n", no},
		{"listen: 1271.0.0.1:9467\n", no},
		{"listen: 127.0.0.7:1\n", "127.0.0.7:1"},
		{"listen: \"[::1]:1\"\n", "[::1]:1"},
		{OPEN "listen: :9467\n", no},
		{OPEN "listen: :9467\ninsecure: true\n", ":9467"},
		{TLS "listen: :1\n", ":1"},
		{"listen: :1\ninsecure: true\n", ":1"},
	};
	struct extender_config c;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int rc = extender_yaml_read(rows[i].text, strlen(rows[i].text), &c, NULL, &e);

		if ((rc == 0) == (rows[i].listen == no))
			fail_msg("row %zu: %s", i, rc ? e.text : "it is taken");
		if (rc)
			assert_non_null(strstr(e.text, "tls.clientCAFile"));
		if (rc)
			assert_non_null(strstr(e.text, "insecure: true"));
		if (rc)
			continue;
		assert_string_equal(c.listen, rows[i].listen);
		extender_config_fini(&c);
	}
}

static void the_page_is_off_and_is_served_on_the_loopback_only(void **state)
{
	static const struct {
		const char *address, *insecure;
		bool taken;
	} rows[] = {
		{"", "false", true},
		{"127.0.0.1:9469", "false", true},
		{"127.8.0.1:0", "false", true},
		{"localhost:9469", "false", true},
		{"[::1]:9469", "false", true},
		{":9469", "false", false},
		{"0.0.0.0:9469", "false", false},
		{"[::]:9469", "false", false},
		{"10.0.0.1:9469", "false", false},
		{"node1.example.com:9469", "false", false},
		{"localhost.example.com:9469", "false", false},
		{":9469", "true", true},
		{"10.0.0.1:9469", "true", true},
	};
	struct extender_config c;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char text[128];

		/* whoever may bind by listen is another matter */
		(void)snprintf(text, sizeof text,
			"insecure: true\nui: {address: \"%s\", insecure: %s}\n", rows[i].address,
			rows[i].insecure);
		int rc = extender_yaml_read(text, strlen(text), &c, NULL, &e);
		if ((rc == 0) != rows[i].taken)
			fail_msg("%s: %s", text, rc ? e.text : "it is taken");
		if (rc)
			assert_non_null(strstr(e.text, "ui.insecure: true"));
		else
			extender_config_fini(&c);
	}
	assert_int_equal(extender_yaml_read("", 0, &c, NULL, NULL), 0);
	assert_string_equal(c.ui_address, "");
	extender_config_fini(&c);
}

static void a_resync_period_of_zero_takes_reports_as_they_are(void **state)
{
	static const char text[] = "plugins:\n- name: NodeResourceTopologyMatch\n"
				   "  args: {cacheResyncPeriodSeconds: 0}\n";
	struct extender_config c;

	(void)state;
	assert_int_equal(extender_yaml_read(text, sizeof text - 1, &c, NULL, NULL), 0);
	assert_false(c.cluster.over_reserve);
	assert_int_equal(c.profile.use[0].args.nrt.strategy, NRT_LEAST_ALLOCATED);
	extender_config_fini(&c);
}

static void mistakes_are_named_with_their_line(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"listn: x\n", "line 1: unknown key \"listn\""},
		{"\nhint: {tll: 5s}\n", "line 2: unknown key \"hint.tll\""},
		{"hint: {ttl: soon}\n", "line 1: hint.ttl: \"soon\" is not a duration"},
		{"hint: {ttl: 5}\n", "hint.ttl: \"5\" is not a duration"},
		{"hint: {ttl: 1ms}\n", "hint.ttl: \"1ms\" is not a duration from 1s to 24h"},
		{"hint: {mode: off}\n", "hint.mode: \"off\" is not one of prefer, require"},
		{"hint: {enabled: maybe}\n", "hint.enabled: "},
		{"scoreMax: 101\n", "scoreMax: \"101\" is not a number from 1 to 100"},
		{"scoreMax: ten\n", "is not a number"},
		{"maxRequestBytes: 1Q\n", "is not a quantity from 64Ki to 1Gi"},
		{"apiVersion: v1\n", "expected is numafit.io/v1"},
		{"kind: KubeSchedulerConfiguration\n", "expected is ExtenderConfiguration"},
		{"maxRequestBytes: 2Mi\nmaxHeldBytes: 1Mi\n",
			"maxHeldBytes: less than maxRequestBytes"},
		{"tls: {certFile: a}\n", "certFile and keyFile go together"},
		{"tls: {clientCAFile: a}\n", "clientCAFile goes with"},
		{"plugins: {name: a}\n", "plugins: 8 at most"},
		{"plugins: [a]\n", "name, weight and args are expected"},
		{"plugins:\n- weight: 3\n", "line 2: plugins: one has no name"},
		{"plugins:\n- name: NodeResourcesFits\n", "line 2: plugins: there is no"},
		{"plugins:\n- name: numa-aware\n- name: numa-aware\n",
			"line 3: plugins: numa-aware is "
			"there twice"},
		{"plugins:\n- name: numa-aware\n  weight: 0\n", "is not within 1 and 1000000"},
		{"plugins:\n- name: numa-aware\n  args: {weight: 0}\n",
			"line 2: numa-aware: weight: Invalid value"},
		{"plugins:\n- name: NodeResourceTopologyMatch\n  args: {scoringStrategy: {type: "
		 "Best}}\n",
			"scoringStrategy.type: Invalid value: \"Best\""},
		{"plugins:\n- name: NodeResourceTopologyMatch\n  args: {cacheResyncPeriodSeconds: "
		 "often}\n",
			"cannot unmarshal string into Go struct field"},
		{"plugins:\n- name: NodeResourceTopologyMatch\n  args: {cache: {foreignPodsDetect: "
		 "Some}}\n",
			"cache.foreignPodsDetect: Unsupported value: \"Some\""},
		{"plugins:\n- name: NodeResourceTopologyMatch\n  args: {strategy: 1}\n",
			"unknown field \"strategy\""},
		{"plugins:\n- name: NodeResourceTopologyMatch\n  args: [1]\n",
			"cannot unmarshal array"},
		{"plugins:\n- name: GenericNodeResources\n", "at least one must be specified"},
		{"a: [\n", "line "},
	};
	struct extender_config c;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int rc = extender_yaml_read(rows[i].text, strlen(rows[i].text), &c, NULL, &e);

		if (rc >= 0 || !strstr(e.text, rows[i].says))
			fail_msg("row %zu: %d %s", i, rc, rc ? e.text : "is taken");
	}
}

static void every_key_can_be_printed(void **state)
{
	struct extender_config c;
	struct extender_doc doc;
	unsigned i;

	(void)state;
	assert_int_equal(extender_yaml_read("", 0, &c, NULL, NULL), 0);
	for (i = 0; extender_doc(&c, i, &doc); i++) {
		assert_string_equal(
			doc.value, text_equal(doc.key, "listen") ? "127.0.0.1:9467" : doc.fallback);
		assert_true(strlen(doc.help) > 0 && strlen(doc.type) > 0);
	}
	assert_true(i > 10);
	extender_config_fini(&c);
	assert_int_equal(extender_yaml_read(whole, sizeof whole - 1, &c, NULL, NULL), 0);
	for (i = 0; extender_doc(&c, i, &doc); i++)
		if (text_equal(doc.key, "hint.mode"))
			assert_string_equal(doc.value, "require");
		else if (text_equal(doc.key, "assumeTTL"))
			assert_string_equal(doc.value, "2m");
	extender_config_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_file_is_enough),
		cmocka_unit_test(all_keys_are_read),
		cmocka_unit_test(clients_without_certificates_are_served_on_the_loopback_only),
		cmocka_unit_test(the_page_is_off_and_is_served_on_the_loopback_only),
		cmocka_unit_test(a_resync_period_of_zero_takes_reports_as_they_are),
		cmocka_unit_test(mistakes_are_named_with_their_line),
		cmocka_unit_test(every_key_can_be_printed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
