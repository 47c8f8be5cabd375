#include <apiserver/pod_object_json.h>
#include <codec/pod_spec.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <numafit/text.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* A pod and what it was read from. */
struct reading {
	json_t *object;
	struct arena arena;
	struct known_pod pod;
	struct err e;
	int rc;
};

static void read_pod(struct reading *r, const char *text)
{
	*r = (struct reading){0};
	if (json_parse(text, strlen(text), &r->object, &r->e))
		fail_msg("%s", r->e.text);
	arena_init(&r->arena, POD_OBJECT_BYTES_MAX);
	r->rc = pod_object_json_read(r->object, &r->arena, &r->pod, &r->e);
}

static void done(struct reading *r)
{
	arena_fini(&r->arena);
	json_decref(r->object);
}

static const char training[] =
	"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'train-0','namespace':'ml','uid':'u-1',"
	"'deletionTimestamp':'2026-01-02T03:04:05Z','annotations':{"
	"'example.com/large':'0123456789','numafit.io/numa-hint':'v1',"
	"'volcano.sh/topology-decision':'{}'},"
	"'ownerReferences':[{'kind':'Set','controller':false},"
	"{'apiVersion':'batch/v1','kind':'Job','controller':true,'name':'train','uid':'j'}]},"
	"'spec':{'nodeName':'n1','initContainers':[{'name':'fetch','resources':{}},"
	"{'name':'proxy','restartPolicy':'Always','resources':{'requests':{'cpu':'500m'},"
	"'limits':{'cpu':'500m','memory':'64Mi'}}}],"
	"'containers':[{'name':'main','image':'x','resources':{'limits':{'cpu':'4','memory':'8Gi',"
	"'hugepages-1Gi':'2Gi','example.com/nic':'1','example.com/gpu':'2'},"
	"'requests':{'cpu':'4','memory':'8Gi','hugepages-1Gi':'2Gi','example.com/gpu':'2'}}}]},"
	"'status':{'phase':'Running','qosClass':'Burstable'}}";

/* Cases are written with ' for ". */
static char *quoted(const char *text)
{
	char *copy = xstrdup(text);

	for (char *c = copy; *c; c++)
		if (*c == '\'')
			*c = '"';
	return copy;
}

static void read_quoted(struct reading *r, const char *text)
{
	auto_free char *copy = quoted(text);

	read_pod(r, copy);
}

static void a_pod_is_read_as_the_api_server_has_it(void **state)
{
	struct reading r;

	(void)state;
	read_quoted(&r, training);
	assert_int_equal(r.rc, 0);
	assert_string_equal(r.pod.pod.uid, "u-1");
	assert_string_equal(r.pod.pod.ns, "ml");
	assert_string_equal(r.pod.pod.name, "train-0");
	assert_int_equal(r.pod.pod.source, POD_FROM_API_SERVER);
	assert_int_equal(r.pod.pod.qos, QOS_BURSTABLE);
	assert_int_equal(r.pod.owner, POD_OWNER_CONTROLLER);
	assert_false(r.pod.ended);
	const struct pod *ask = &r.pod.pod;
	assert_string_equal(ask->uid, "u-1");
	assert_int_equal(ask->nr, 3);
	assert_int_equal(ask->container[0].kind, CONTAINER_INIT);
	assert_int_equal(ask->container[1].kind, CONTAINER_SIDECAR);
	assert_int_equal(ask->container[1].cpu_milli, 500);
	assert_int_equal(ask->container[1].memory[0].bytes, 64 << 20);
	const struct ask *main_ask = &ask->container[2];
	assert_string_equal(main_ask->name, "main");
	assert_int_equal(main_ask->kind, CONTAINER_APP);
	assert_int_equal(main_ask->cpu_milli, 4000);
	assert_int_equal(main_ask->nr_memory, 2);
	assert_int_equal(main_ask->nr_devices, 2);
	assert_int_equal(r.pod.nr_resources, 2);
	assert_string_equal(r.pod.resource[0], "example.com/gpu");
	assert_string_equal(r.pod.resource[main_ask->device[1].resource], "example.com/nic");
	assert_int_equal(main_ask->device[0].count, 2);
	done(&r);
}

static void a_container_with_claims_is_known_as_such(void **state)
{
	struct reading r;

	(void)state;
	read_quoted(&r,
		"{'metadata':{'uid':'u'},'spec':{'resourceClaims':[{'name':'gpu',"
		"'resourceClaimTemplateName':'one-gpu'}],'containers':["
		"{'name':'app','resources':{'claims':[{'name':'gpu'}]}},"
		"{'name':'side','resources':{'claims':[]}},{'name':'other'}]}}");
	assert_int_equal(r.rc, 0);
	assert_true(r.pod.pod.container[0].has_claims);
	assert_false(r.pod.pod.container[1].has_claims);
	assert_false(r.pod.pod.container[2].has_claims);
	done(&r);
	read_quoted(&r,
		"{'metadata':{'uid':'u'},'spec':{'containers':["
		"{'name':'app','resources':{'claims':{}}}]}}");
	assert_int_equal(r.rc, -EINVAL);
	done(&r);
}

static void only_annotations_that_are_used_are_kept(void **state)
{
	struct reading r;

	(void)state;
	read_quoted(&r, training);
	assert_int_equal(r.pod.pod.nr_annotations, 2);
	assert_string_equal(pod_annotation(&r.pod.pod, "numafit.io/numa-hint"), "v1");
	assert_string_equal(pod_annotation(&r.pod.pod, "volcano.sh/topology-decision"), "{}");
	done(&r);
}

#define OWNED(more) "{'metadata':{'uid':'u'," more "}}"
#define OWNER(kind)                                                                                \
	OWNED("'ownerReferences':[{'kind':'ConfigMap'},{'kind':'" kind "','controller':true}]")

static void the_owner_of_a_pod_is_its_controller(void **state)
{
	static const struct {
		const char *text;
		enum pod_owner want;
	} cases[] = {
		{OWNER("ReplicaSet"), POD_OWNER_CONTROLLER},
		{OWNER("StatefulSet"), POD_OWNER_CONTROLLER},
		{OWNER("DaemonSet"), POD_OWNER_DAEMON_SET},
		{OWNER("Node"), POD_OWNER_NODE},
		{OWNED("'ownerReferences':[{'kind':'Job','controller':false}]"), POD_OWNER_NONE},
		{OWNED("'ownerReferences':[{'kind':'Job'}]"), POD_OWNER_NONE},
		{OWNED("'ownerReferences':null"), POD_OWNER_NONE},
		{OWNED("'ownerReferences':[7]"), POD_OWNER_NONE},
		{OWNED("'annotations':{'kubernetes.io/config.mirror':'h'}"), POD_OWNER_NODE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct reading r;

		read_quoted(&r, cases[i].text);
		assert_int_equal(r.rc, 0);
		if (r.pod.owner != cases[i].want)
			fail_msg("%s: %d", cases[i].text, r.pod.owner);
		done(&r);
	}
}

/* As seen at a kubelet of 1.36: NRI says the hash, and nobody the mirror's own uid. */
static void a_static_pod_has_the_uid_that_the_runtime_reports(void **state)
{
	static const char text[] =
		"{'metadata':{'name':'web-n1','namespace':'default','uid':'7d1c-of-the-mirror',"
		"'annotations':{'kubernetes.io/config.hash':'9b2e','kubernetes.io/config.mirror':"
		"'9b2e','kubernetes.io/"
		"config.source':'file'},'ownerReferences':[{'apiVersion':'v1',"
		"'kind':'Node','name':'n1','uid':'n','controller':true}]}}";
	struct reading r;

	(void)state;
	read_quoted(&r, text);
	assert_string_equal(r.pod.pod.uid, "9b2e");
	assert_string_equal(r.pod.pod.uid, "9b2e");
	assert_int_equal(r.pod.owner, POD_OWNER_NODE);
	done(&r);
}

static void a_pod_in_a_final_phase_has_ended(void **state)
{
	static const struct {
		const char *text;
		bool want;
	} cases[] = {
		{"{'metadata':{'uid':'u'},'status':{'phase':'Pending'}}", false},
		{"{'metadata':{'uid':'u'},'status':{'phase':'Running'}}", false},
		{"{'metadata':{'uid':'u'},'status':{'phase':'Succeeded'}}", true},
		{"{'metadata':{'uid':'u'},'status':{'phase':'Failed'}}", true},
		{"{'metadata':{'uid':'u'},'status':{}}", false},
		{"{'metadata':{'uid':'u','deletionTimestamp':'2026-01-02T03:04:05Z'}}", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct reading r;

		read_quoted(&r, cases[i].text);
		assert_int_equal(r.rc, 0);
		assert_int_equal(r.pod.ended, cases[i].want);
		done(&r);
	}
}

static void the_class_is_computed_while_the_status_is_empty(void **state)
{
	static const char text[] =
		"{'metadata':{'uid':'u'},'spec':{'containers':[{'name':'a','resources':{'limits':"
		"{'cpu':'1','memory':'1Gi'}}}]},'status':{}}";
	struct reading r;

	(void)state;
	read_quoted(&r, text);
	assert_int_equal(r.pod.pod.qos, QOS_GUARANTEED);
	assert_int_equal(r.pod.pod.qos, QOS_GUARANTEED);
	done(&r);
}

#define SPEC(more) "{'metadata':{'uid':'u','name':'n','namespace':'s'},'spec':{" more "}}"

static void a_malformed_pod_is_refused_with_its_name(void **state)
{
	static const struct {
		const char *text;
		int rc;
		const char *said;
	} cases[] = {
		{"[]", -EINVAL, "pod /: should be a v1.Pod, is a list"},
		{"{'metadata':{'name':'n','namespace':'s'}}", -EINVAL,
			"pod s/n: no v1.Pod with a uid"},
		{"{'metadata':{'uid':7}}", -EINVAL,
			"pod /: metadata: uid: should be a string, is an integer"},
		{"{'metadata':{'uid':null}}", -EINVAL, "pod /: no v1.Pod with a uid"},
		{"{'metadata':{'uid':'u','annotations':[]}}", -EINVAL,
			"pod /: metadata: annotations: should be an object, is a list"},
		{SPEC("'containers':{}"), -EINVAL,
			"pod s/n: spec: containers: should be a list, is an object"},
		{SPEC("'initContainers':7"), -EINVAL,
			"pod s/n: spec: initContainers: should be a list, is an integer"},
		{SPEC("'containers':[{'name':'c','resources':[]}]"), -EINVAL,
			"pod s/n: spec: containers[0]: c: resources: should be an object, is a "
			"list"},
		{SPEC("'containers':[{'name':'c','resources':{'limits':{'cpu':true}}}]"), -EINVAL,
			"pod s/n: spec: containers[0]: c: resources: limits.cpu: should be a "
			"quantity, is true"},
		{SPEC("'containers':[{'name':'c','resources':{'limits':{'cpu':'1x'}}}]"), -EINVAL,
			NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct reading r;

		read_quoted(&r, cases[i].text);
		if (r.rc != cases[i].rc || (cases[i].said && !text_equal(r.e.text, cases[i].said)))
			fail_msg("%s: %d: %s", cases[i].text, r.rc, r.e.text);
		assert_true(*r.e.text);
		done(&r);
	}
}

static json_t *pod_of(unsigned containers, unsigned limits)
{
	json_t *list = json_array(), *of_pod = json_object();

	for (unsigned i = 0; i < containers; i++)
		assert_int_equal(json_array_append_new(list, json_object()), 0);
	for (unsigned i = 0; i < limits; i++) {
		char name[TEXT_SIZE_MAX];

		(void)snprintf(name, sizeof name, "example.com/%u", i);
		assert_int_equal(json_object_set_new(of_pod, name, json_string("1")), 0);
	}
	return json_pack("{s:{s:s}, s:{s:o, s:{s:o}}}", "metadata", "uid", "u", "spec",
		"containers", list, "resources", "limits", of_pod);
}

static void too_many_containers_or_resources_are_refused(void **state)
{
	static const struct {
		unsigned containers, limits;
		int rc;
	} cases[] = {
		{POD_SPEC_CONTAINERS_MAX, POD_SPEC_RESOURCES_MAX, 0},
		{POD_SPEC_CONTAINERS_MAX + 1, 0, -E2BIG},
		{0, POD_SPEC_RESOURCES_MAX + 1, -E2BIG},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *object = pod_of(cases[i].containers, cases[i].limits);
		struct known_pod pod;
		struct arena a;

		arena_init(&a, POD_OBJECT_BYTES_MAX);
		assert_int_equal(pod_object_json_read(object, &a, &pod, NULL), cases[i].rc);
		arena_fini(&a);
		json_decref(object);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_is_read_as_the_api_server_has_it),
		cmocka_unit_test(a_container_with_claims_is_known_as_such),
		cmocka_unit_test(only_annotations_that_are_used_are_kept),
		cmocka_unit_test(the_owner_of_a_pod_is_its_controller),
		cmocka_unit_test(a_static_pod_has_the_uid_that_the_runtime_reports),
		cmocka_unit_test(a_pod_in_a_final_phase_has_ended),
		cmocka_unit_test(the_class_is_computed_while_the_status_is_empty),
		cmocka_unit_test(a_malformed_pod_is_refused_with_its_name),
		cmocka_unit_test(too_many_containers_or_resources_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
