#include <codec/pod_json.h>

#include <codec/fields_json.h>
#include <apiserver/pod_object_json.h>
#include <codec/sched_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/devices.h>
#include <numafit/text.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { ARENA_MAX = 1 << 20, TEXT_MAX = 1024 };

static json_t *parsed(const char *text)
{
	char copy[TEXT_MAX]; /* cases are written with ' for " */
	json_t *v;

	(void)snprintf(copy, sizeof copy, "%s", text);
	for (char *c = copy; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	assert_int_equal(json_parse(copy, strlen(copy), &v, NULL), 0);
	return v;
}

#define POD(more)      "{'metadata':{'uid':'u'},'spec':{" more "}}"
#define ONE(resources) "'containers':[{'name':'c','resources':{" resources "}}]"
#define WHOLE          "'limits':{'cpu':'1','memory':'1Gi'},'requests':{'cpu':'1','memory':'1Gi'}"

/* One pod, as a question to a node, as the API server's and as a scheduler's. */
static void a_pod_is_the_same_for_every_reader(void **state)
{
	static const struct {
		const char *pod;
		enum qos qos;
		uint64_t cpu_milli; /* of the first container, rounded up */
		bool pod_level;
	} cases[] = {
		{POD(ONE("")), QOS_BEST_EFFORT, 0, false},
		{POD(ONE(WHOLE)), QOS_GUARANTEED, 1000, false},
		{POD(ONE("'requests':{'cpu':'1.000000000000000000000'}")), QOS_BURSTABLE, 1000,
			false},
		{POD(ONE("'requests':{'cpu':0.25}")), QOS_BURSTABLE, 250, false},
		{POD(ONE("'requests':{'cpu':2},'limits':null")), QOS_BURSTABLE, 2000, false},
		{POD(ONE("'requests':{'cpu':'1000001u'}")), QOS_BURSTABLE, 1001, false},
		{POD("'initContainers':null,'resources':null," ONE(WHOLE)), QOS_GUARANTEED, 1000,
			false},
		/* what is neither CPUs nor memory is no resource of the pod's own */
		{POD("'resources':{'requests':{'ephemeral-storage':'1Gi'}}," ONE(WHOLE)),
			QOS_GUARANTEED, 1000, false},
		{POD("'resources':{'requests':{},'limits':{}}," ONE(WHOLE)), QOS_GUARANTEED, 1000,
			false},
		{POD("'resources':{'limits':{'hugepages-2Mi':'2Mi'}}," ONE("'requests':{'cpu':1}")),
			QOS_BEST_EFFORT, 1000, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *pod = parsed(cases[i].pod);
		struct resource_table names;
		struct sched_pod sched;
		struct known_pod known;
		struct pod ask;
		struct arena a;

		arena_init(&a, ARENA_MAX);
		resource_table_init(&names);
		assert_int_equal(pod_json_read_ask(pod, NULL, 0, &a, NULL, &ask, NULL), 0);
		assert_int_equal(pod_object_json_read(pod, &a, &known, NULL), 0);
		assert_int_equal(
			sched_pod_json_read(pod, &(struct sched_reader){&names, &a}, &sched, NULL),
			0);
		const struct quantity *cpu =
			amounts_find(&sched.container[0].requests, RESOURCE_CPU);

		if (ask.qos != cases[i].qos || known.pod.qos != cases[i].qos ||
			(!cases[i].pod_level && sched.qos != cases[i].qos))
			fail_msg("%s: %s, %s, %s", cases[i].pod, qos_words[ask.qos],
				qos_words[known.pod.qos], qos_words[sched.qos]);
		assert_int_equal(ask.pod_level, cases[i].pod_level);
		assert_int_equal(known.pod.pod_level, cases[i].pod_level);
		assert_int_equal(ask.container[0].cpu_milli, cases[i].cpu_milli);
		assert_int_equal(known.pod.container[0].cpu_milli, cases[i].cpu_milli);
		assert_int_equal(cpu ? quantity_milli(*cpu) : 0, cases[i].cpu_milli);
		resource_table_fini(&names);
		arena_fini(&a);
		json_decref(pod);
	}
}

static void every_member_that_is_read_of_a_pod_is_filled(void **state)
{
	json_t *pod = parsed("{'metadata':{'uid':'u','namespace':'ml','name':'n','annotations':"
			     "{'a':'1','b':''},'ownerReferences':[{'kind':'DaemonSet',"
			     "'controller':true}]},'spec':{'initContainers':[{'name':'i'},"
			     "{'name':'s','restartPolicy':'Always'}],'containers':[{'name':'c',"
			     "'resources':{'limits':{'a.b/c':'2'}}}],'overhead':{'cpu':'250m'}},"
			     "'status':{'phase':'Failed','qosClass':'Burstable'}}");
	static const enum container_kind kinds[] = {
		CONTAINER_INIT, CONTAINER_SIDECAR, CONTAINER_APP};
	struct pod_spec s;
	struct arena a;

	(void)state;
	arena_init(&a, ARENA_MAX);
	assert_int_equal(pod_json_read(pod, &a, &s, NULL), 0);
	assert_string_equal(s.uid, "u");
	assert_string_equal(s.ns, "ml");
	assert_string_equal(s.name, "n");
	assert_string_equal(s.qos, "Burstable");
	assert_string_equal(s.phase, "Failed");
	assert_int_equal(s.owner, POD_OWNER_DAEMON_SET);
	assert_int_equal(s.nr_annotations, 2);
	assert_string_equal(s.annotations[0].key, "a");
	assert_string_equal(s.annotations[0].value, "1");
	assert_int_equal(s.nr, 3);
	for (unsigned i = 0; i < s.nr; i++)
		assert_int_equal(s.container[i].kind, kinds[i]);
	assert_int_equal(s.container[2].resources.limits.nr, 1);
	assert_int_equal(s.container[2].resources.requests.nr, 0);
	assert_int_equal(s.container[2].resources.limits.at[0].q.whole, 2);
	assert_int_equal(quantity_milli(s.overhead.at[0].q), 250);
	arena_fini(&a);
	json_decref(pod);
}

/* It is a question that somebody wrote: the API server's objects may lack both. */
static void a_question_names_the_kinds_of_its_containers(void **state)
{
	static const struct {
		const char *pod, *want;
	} cases[] = {
		{"{'metadata':{'uid':'u'}}", "should be a v1.Pod, is an object"},
		{POD("'containers':[{'name':'c'},{}]"), "spec: containers: number 1 has no name"},
		{POD("'initContainers':[{}],'containers':[]"),
			"spec: initContainers: number 0 has no name"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *pod = parsed(cases[i].pod);
		struct known_pod known;
		struct pod ask;
		struct arena a;
		struct err e;

		arena_init(&a, ARENA_MAX);
		assert_int_equal(pod_json_read_ask(pod, NULL, 0, &a, NULL, &ask, &e), -EINVAL);
		assert_string_equal(e.text, cases[i].want);
		assert_int_equal(pod_object_json_read(pod, &a, &known, &e), 0);
		arena_fini(&a);
		json_decref(pod);
	}
}

static void devices_of_a_question_are_limited_to_those_of_the_node(void **state)
{
	static const struct device_resource resources[] = {
		{.name = "a.b/c"}, {.name = "x.y/z"}, {.name = "x.y/zz"}};
	json_t *pod = parsed(POD(ONE("'limits':{'x.y/zz':'3','no.body/has':'1','a.b/c':'2'}")));
	struct pod ask;
	struct arena a;

	(void)state;
	arena_init(&a, ARENA_MAX);
	assert_int_equal(pod_json_read_ask(pod, resources, 3, &a, NULL, &ask, NULL), 0);
	assert_int_equal(ask.container[0].nr_devices, 2);
	assert_int_equal(ask.container[0].device[0].resource, 0);
	assert_int_equal(ask.container[0].device[0].count, 2);
	assert_int_equal(ask.container[0].device[1].resource, 2);
	assert_int_equal(ask.container[0].device[1].count, 3);
	arena_fini(&a);
	json_decref(pod);
}

/* A scheduler's arithmetic has no negative amounts; nor has the API server. */
static void a_scheduler_refuses_negative_amounts_and_names_them(void **state)
{
	static const struct {
		const char *pod, *want;
	} cases[] = {
		{POD(ONE("'requests':{'cpu':'-4'}")),
			"spec: container c: requests.cpu: it is negative"},
		{POD(ONE("'limits':{'memory':'-1n'}")),
			"spec: container c: limits.memory: it is negative"},
		{POD("'resources':{'requests':{'memory':-1}}," ONE(WHOLE)),
			"spec: requests.memory: it is negative"},
		{POD("'overhead':{'cpu':'-250m'}," ONE(WHOLE)),
			"spec: overhead.cpu: it is negative"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *pod = parsed(cases[i].pod);
		struct resource_table names;
		struct sched_pod sched;
		struct arena a;
		struct err e;

		arena_init(&a, ARENA_MAX);
		resource_table_init(&names);
		assert_int_equal(
			sched_pod_json_read(pod, &(struct sched_reader){&names, &a}, &sched, &e),
			-ERANGE);
		assert_string_equal(e.text, cases[i].want);
		resource_table_fini(&names);
		arena_fini(&a);
		json_decref(pod);
	}
}

/* A pod whose one container asks for resources r<from> to r<to - 1>. */
static json_t *asking_for_many(const char *list, unsigned from, unsigned to)
{
	json_t *amounts = json_object();
	char name[32];

	for (unsigned i = from; i < to; i++) {
		(void)snprintf(name, sizeof name, "example.com/r%u", i);
		(void)json_object_set_new(amounts, name, json_integer(1));
	}
	return json_pack("{s:{s:s}, s:{s:[{s:s, s:{s:o}}]}}", "metadata", "uid", "u", "spec",
		"containers", "name", "c", "resources", list, amounts);
}

static int read_many(
	struct resource_table *names, const char *list, unsigned from, unsigned to, struct err *e)
{
	json_t *pod = asking_for_many(list, from, to);
	struct sched_pod sched;
	struct arena a;

	arena_init(&a, ARENA_MAX);
	int rc = sched_pod_json_read(pod, &(struct sched_reader){names, &a}, &sched, e);
	arena_fini(&a);
	json_decref(pod);
	return rc;
}

static void a_scheduler_refuses_a_pod_with_too_many_resources(void **state)
{
	static const char *const lists[] = {"requests", "limits"};
	struct resource_table names;
	char want[128];
	struct err e;

	(void)state;
	resource_table_init(&names);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(read_many(&names, lists[i], 0, POD_SPEC_RESOURCES_MAX, &e), 0);
		assert_int_equal(
			read_many(&names, lists[i], 0, POD_SPEC_RESOURCES_MAX + 1, &e), -E2BIG);
		(void)snprintf(want, sizeof want, "spec: container c: %s: more than 64 resources",
			lists[i]);
		assert_string_equal(e.text, want);
	}
	resource_table_fini(&names);
}

static void a_scheduler_refuses_new_names_of_resources_beyond_a_bound(void **state)
{
	struct resource_table names;
	unsigned nr = 0;
	struct err e;

	(void)state;
	resource_table_init(&names);
	for (; nr < RESOURCES_OF_PODS_MAX; nr += POD_SPEC_RESOURCES_MAX)
		assert_int_equal(
			read_many(&names, "limits", nr, nr + POD_SPEC_RESOURCES_MAX, &e), 0);
	assert_int_equal(read_many(&names, "limits", nr, nr + 1, &e), -E2BIG);
	assert_string_equal(e.text, "spec: container c: limits.example.com/r1024: no node has it, "
				    "and 1024 such names are known already");
	assert_int_equal(read_many(&names, "limits", 3, 7, &e), 0);
	(void)resource_number(&names, "example.com/r1024"); /* a node has it */
	assert_int_equal(read_many(&names, "limits", nr, nr + 1, &e), 0);
	resource_table_fini(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_is_the_same_for_every_reader),
		cmocka_unit_test(every_member_that_is_read_of_a_pod_is_filled),
		cmocka_unit_test(a_question_names_the_kinds_of_its_containers),
		cmocka_unit_test(devices_of_a_question_are_limited_to_those_of_the_node),
		cmocka_unit_test(a_scheduler_refuses_negative_amounts_and_names_them),
		cmocka_unit_test(a_scheduler_refuses_a_pod_with_too_many_resources),
		cmocka_unit_test(a_scheduler_refuses_new_names_of_resources_beyond_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
