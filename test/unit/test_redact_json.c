/* Names and ids of pods that are replaced in documents and lines of the log, and what is left. */
#include <numafit-cli/redact_json.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define UID "8d9b1c2d-1111-4222-8333-444455556666"
#define ID  "642ad0a100080000000000000000000000000000000000000000000000000008"

static const char *const learned[] = {
	("{\"pod_namespace\":\"shop\",\"pod_name\":\"web-0\",\"container_name\":\"nginx\","
	 "\"pod_uid\":\"" UID "\",\"container_id\":\"" ID "\"}"),
	("{\"containers\":[{\"name\":\"sidecar\",\"cpu_milli\":1}],"
	 "\"resources\":[{\"name\":\"nvidia.com/gpu\"}]}"),
	("{\"pods\":[{\"namespace\":\"ai\",\"name\":\"a\",\"uid\":\"u1\"},"
	 "{\"namespace\":\"ai\",\"name\":\"7777\",\"uid\":\"u2\"}],\"nodes\":[{\"id\":\"0\"}]}"),
	"time=T level=info event=decision pod=admitted container=\"x y\" claim=gpus id=cafe00112233",
};

static struct redaction *redaction_of_these(void)
{
	struct redaction *r = redaction_new();

	for (size_t i = 0; i < sizeof learned / sizeof *learned; i++)
		redaction_learn(r, learned[i]);
	return r;
}

static void names_are_replaced_and_nothing_else_is(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"{\"pod_name\":\"web-0\",\"verdict\":\"admitted\"}",
			"{\"pod_name\":\"pod-1\",\"verdict\":\"admitted\"}"},
		{"{\"message\":\"shop/web-0/nginx: web-0.\"}",
			"{\"message\":\"namespace-1/pod-1/container-1: pod-1.\"}"},
		{"{\"message\":\"web-01 a-web-0 workshop 7777 a\"}",
			"{\"message\":\"web-01 a-web-0 workshop 7777 a\"}"},
		{"{\"name\":\"a\",\"uid\":\"u1\"}", "{\"name\":\"pod-2\",\"uid\":\"id-3\"}"},
		{"{\"name\":\"nvidia.com/gpu\",\"devices\":[1,null,true,1.5]}",
			"{\"name\":\"nvidia.com/gpu\",\"devices\":[1,null,true,1.5]}"},
		{"{\"name\":\"sidecar\",\"cpu_milli\":5}",
			"{\"name\":\"container-2\",\"cpu_milli\":5}"},
		{"{\"id\":\"0\"}", "{\"id\":\"0\"}"},
		{"{\"cgroup\":\"/kubepods.slice/kubepods-pod8d9b1c2d_1111_4222_8333_444455556666.slice/"
		 "cri-containerd-" ID ".scope\"}",
			"{\"cgroup\":\"/kubepods.slice/kubepods-podid-1.slice/cri-containerd-id-2.scope\"}"},
		{"{\"for_pods\":\"" UID "\"}", "{\"for_pods\":\"id-1\"}"},
		{"time=T level=warn event=decision pod=web-0 id=642ad0a10008 verdict=admitted "
		 "why=\"web-0 of shop\" cpus=0-3",
			"time=T level=warn event=decision pod=pod-1 id=id-2 verdict=admitted "
			"why=\"pod-1 of namespace-1\" cpus=0-3"},
		{"<6>time=T container=\"x y\" claim=gpus pod=never-seen pod=",
			"<6>time=T container=\"container-3\" claim=claim-1 pod= pod="},
		{"why=\"a \\\"web-0\\\" quoted\" x= =y", "why=\"a \\\"pod-1\\\" quoted\" x= =y"},
		{"{\"topology\":\"nginx 0\",\"machine\":\"/nginx\",\"settings\":{\"a\":\"/nginx/b\","
		 "\"namespaces\":\"names=shop,ai,x-* cpus=shop; names=shop\"}}",
			"{\"topology\":\"nginx 0\",\"machine\":\"/nginx\",\"settings\":{\"a\":\"/nginx/b\","
			"\"namespaces\":\"names=namespace-1,namespace-2,x-* cpus=shop; "
			"names=namespace-1\"}}"},
		{"{\"of\":{\"topology\":\"nginx 0\"}}",
			"{\"of\":{\"topology\":\"container-1 0\"}}"},
		{"", ""},
		{"{\"torn\":\"web-0", "{\"torn\":\"web-0"},
	};
	struct redaction *r = redaction_of_these();

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *got = redaction_apply(r, cases[i].text);

		assert_string_equal(got, cases[i].want);
		free(got);
	}
	redaction_free(r);
}

/* No pod of them need be on the node. */
static void namespaces_that_only_the_settings_name_are_redacted(void **state)
{
	static const char status[] =
		"{\"settings\":{\"namespaces\":\"names=secret,kube-*,kube?system,of.two "
		"cpus=shared; names=third; names=secret,fourth reserved=true\"}}";
	struct redaction *r = redaction_new();

	(void)state;
	redaction_learn(r, status);
	assert_int_equal(redaction_names(r), 4);
	char *got = redaction_apply(r, status);
	assert_string_equal(got,
		"{\"settings\":{\"namespaces\":\"names=namespace-1,kube-*,kube?system,namespace-2 cpus=shared; "
		"names=namespace-3; names=namespace-1,namespace-4 reserved=true\"}}");
	free(got);
	redaction_free(r);
}

/* replay compares that sentence. */
static void the_namespace_default_is_no_name_in_a_sentence(void **state)
{
	struct redaction *r = redaction_new();

	(void)state;
	redaction_learn(r, "{\"namespace\":\"default\"}");
	char *got = redaction_apply(
		r, "{\"namespace\":\"default\",\"message\":\"no default NUMA affinity\"}");
	assert_string_equal(
		got, "{\"namespace\":\"namespace-1\",\"message\":\"no default NUMA affinity\"}");
	free(got);
	redaction_free(r);
}

static void a_name_is_counted_once(void **state)
{
	struct redaction *r = redaction_of_these();
	size_t before = redaction_names(r);

	(void)state;
	for (size_t i = 0; i < sizeof learned / sizeof *learned; i++)
		redaction_learn(r, learned[i]);
	assert_int_equal(redaction_names(r), before);
	redaction_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_replaced_and_nothing_else_is),
		cmocka_unit_test(namespaces_that_only_the_settings_name_are_redacted),
		cmocka_unit_test(the_namespace_default_is_no_name_in_a_sentence),
		cmocka_unit_test(a_name_is_counted_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
