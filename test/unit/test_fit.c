#include <numafit/fit.h>

#include <codec/sched_json.h>

#include "score_questions.h"

#include <setjmp.h>

#include <cmocka.h>

#define CONTAINER(requests) "{'name':'c','resources':{'requests':{" requests "}}}"
#define SIDECAR(requests)                                                                          \
	"{'name':'s','restartPolicy':'Always','resources':{'requests':{" requests "}}}"

__attribute__((format(printf, 1, 2))) static json_t *json_of(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	json_t *v = question_of(fmt, args);
	va_end(args);
	return v;
}

/* What the spec asks for of the resource. */
static int64_t request_of(const char *spec, const char *resource, enum fit_missing missing)
{
	json_t *v = json_of("{'spec':{%s}}", spec);
	struct resource_table names;
	struct sched_pod pod;
	struct arena a;

	arena_init(&a, QUESTION_ARENA_BYTES);
	resource_table_init(&names);
	assert_int_equal(sched_pod_json_read(v, &(struct sched_reader){&names, &a}, &pod, NULL), 0);
	int64_t got = fit_request(&names, &pod, resource_number(&names, resource), missing);
	resource_table_fini(&names);
	arena_fini(&a);
	json_decref(v);
	return got;
}

/* component-helpers/resource, PodRequests; framework.PodInfo.CalculateResource */
static void a_pod_requests_what_kubernetes_computes(void **state)
{
	static const struct {
		const char *spec, *resource;
		int64_t nothing, some; /* by what a missing request counts as */
	} rows[] = {
		{"", "cpu", 0, 0},
		{"'containers':[" CONTAINER("") "]", "cpu", 0, 100},
		{"'containers':[" CONTAINER("") "]", "memory", 0, 200 << 20},
		{"'containers':[" CONTAINER("") "]", "a.b/c", 0, 0},
		{"'containers':[" CONTAINER("'cpu':0") "]", "cpu", 0, 0},
		{"'containers':[" CONTAINER("'cpu':'0.5'") "," CONTAINER("'cpu':'1500m'") "]",
			"cpu", 2000, 2000},
		{"'containers':[" CONTAINER("'cpu':1") "," CONTAINER("") "]", "cpu", 1000, 1100},
		/* rounded up once, after the sum */
		{"'containers':[" CONTAINER("'cpu':'0.5m'") "," CONTAINER("'cpu':'0.5m'") "]",
			"cpu", 1, 1},
		{"'containers':[" CONTAINER("'a.b/c':'500m'") "," CONTAINER("'a.b/c':'600m'") "]",
			"a.b/c", 2, 2},
		/* one init container at a time, beside the sidecars before it */
		{"'initContainers':[" CONTAINER("'cpu':3") "],'containers':[" CONTAINER(
			 "'cpu':2") "]",
			"cpu", 3000, 3000},
		{"'initContainers':[" SIDECAR("'cpu':1") "," CONTAINER(
			 "'cpu':3") "],'containers':[" CONTAINER("'cpu':2") "]",
			"cpu", 4000, 4000},
		{"'initContainers':[" CONTAINER("'cpu':3") "," SIDECAR(
			 "'cpu':1") "],'containers':[" CONTAINER("'cpu':1") "]",
			"cpu", 3000, 3000},
		{"'initContainers':[" CONTAINER("'cpu':3") "," SIDECAR(
			 "'cpu':1") "],'containers':[" CONTAINER("'cpu':4") "]",
			"cpu", 5000, 5000},
		/* an overhead comes on top, a pod's own resources in place of its containers' */
		{"'overhead':{'cpu':'250m'},'containers':[" CONTAINER("'cpu':1") "]", "cpu", 1250,
			1250},
		{"'overhead':{'cpu':'250m'},'resources':{'requests':{'cpu':5}},"
		 "'containers':[" CONTAINER("'cpu':1") "]",
			"cpu", 5250, 5250},
		{"'resources':{'requests':{'a.b/c':5}},'containers':[" CONTAINER("'a.b/c':1") "]",
			"a.b/c", 1, 1},
		{"'resources':{'requests':{'hugepages-2Mi':'4Mi'}},'containers':[]",
			"hugepages-2Mi", 4 << 20, 4 << 20},
		/* with resources of its own, a pod that speaks of memory anywhere has said all */
		{"'resources':{'requests':{'cpu':5}},'containers':[" CONTAINER(
			 "'memory':7") "," CONTAINER("") "]",
			"memory", 7, 7},
		{"'resources':{'requests':{'cpu':5}},'containers':[" CONTAINER("") "," CONTAINER(
			 "") "]",
			"memory", 0, 400 << 20},
		{"'resources':{'limits':{'cpu':5}},'containers':[" CONTAINER("") "]", "cpu", 0,
			100},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(request_of(rows[i].spec, rows[i].resource, FIT_MISSING_IS_NOTHING),
			rows[i].nothing);
		assert_int_equal(request_of(rows[i].spec, rows[i].resource, FIT_MISSING_IS_SOME),
			rows[i].some);
	}
}

/* "code: reason, reason" of a node with these resources and pods, for a pod of one container. */
static const char *filtered(
	const char *args, const char *allocatable, const char *pods, const char *requests)
{
	static char text[512];
	json_t *result = ask_score(
		"{'plugin':'NodeResourcesFit','args':{%s},'nodes':[{'node':{'metadata':{'name':'n'}"
		","
		"'status':{'allocatable':{%s}}},'pods':[%s]}],'pod':{'spec':{'containers':["
		"{'name':'c','resources':{'requests':{%s}}}]}}}",
		args, allocatable, pods, requests);
	json_t *node = json_array_get(json_object_get(result, "nodes"), 0), *why;
	size_t i, len;

	assert_string_equal(refusal_of(result), "");
	len = (size_t)snprintf(
		text, sizeof text, "%s:", json_string_value(json_object_get(node, "code")));
	json_array_foreach(json_object_get(node, "why"), i, why) len += (size_t)snprintf(
		text + len, sizeof text - len, "%s %s", i ? "," : "", json_string_value(why));
	json_decref(result);
	return text;
}

static void a_refusal_names_the_insufficient_resource(void **state)
{
#define HAS   "'cpu':4,'memory':'4Gi','ephemeral-storage':'4Gi','pods':2,'a.b/c':2,'vendor/x':1"
#define BOUND "{'spec':{'containers':[" CONTAINER("'cpu':2,'a.b/c':1") "]}}"
	static const struct {
		const char *args, *allocatable, *pods, *requests, *want;
	} rows[] = {
		{"", HAS, "", "'cpu':4", "Success:"},
		{"", HAS, "", "", "Success:"},
		{"", HAS, BOUND, "'cpu':2,'a.b/c':1", "Success:"},
		{"", HAS, BOUND, "'cpu':'2001m'", "Unschedulable: Insufficient cpu"},
		{"", HAS, BOUND, "'cpu':4", "Unschedulable: Insufficient cpu"},
		{"", HAS, BOUND, "'cpu':5", "UnschedulableAndUnresolvable: Insufficient cpu"},
		{"", HAS, BOUND "," BOUND, "", "Unschedulable: Too many pods"},
		{"", "'cpu':4", "", "", "Unschedulable: Too many pods"},
		{"", HAS, BOUND "," BOUND, "'cpu':1,'vendor/x':2",
			"UnschedulableAndUnresolvable: Too many pods, Insufficient cpu, "
			"Insufficient vendor/x"},
		{"", HAS, "",
			"'vendor/x':2,'memory':'5Gi','hugepages-2Mi':'2Mi','a.b/c':3,"
			"'ephemeral-storage':'5Gi'",
			"UnschedulableAndUnresolvable: Insufficient memory, Insufficient "
			"ephemeral-storage, Insufficient a.b/c, Insufficient hugepages-2Mi, "
			"Insufficient vendor/x"},
		/* names that nodes keep no account of, and amounts of 0 */
		{"", HAS, "", "'storage':'1Ti','made-up':7,'requests.cpu':9", "Success:"},
		{"", HAS, "", "'x.y/z':0", "Success:"},
		{"", HAS, "", "'kubernetes.io/z':1",
			"UnschedulableAndUnresolvable: Insufficient kubernetes.io/z"},
		{"'ignoredResources':['vendor/x']", HAS, "", "'vendor/x':2", "Success:"},
		{"'ignoredResources':['cpu']", HAS, "", "'cpu':5",
			"UnschedulableAndUnresolvable: Insufficient cpu"},
		{"'ignoredResourceGroups':['vendor']", HAS, "", "'vendor/x':2,'a.b/c':3",
			"UnschedulableAndUnresolvable: Insufficient a.b/c"},
		{"'ignoredResourceGroups':['a']", HAS, "", "'a.b/c':3",
			"UnschedulableAndUnresolvable: Insufficient a.b/c"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_string_equal(
			filtered(rows[i].args, rows[i].allocatable, rows[i].pods, rows[i].requests),
			rows[i].want);
}

/* What a pod asks for, text by text. */
static void quantities_are_read_in_every_form(void **state)
{
	static const struct {
		const char *text;
		int64_t cpu, memory;
	} rows[] = {
		{"2", 2000, 2},
		{"'2'", 2000, 2},
		{"1.5", 1500, 2},
		{"'1.5'", 1500, 2},
		{"'1500m'", 1500, 2},
		{"1e3", 1000000, 1000},
		{"'1e3'", 1000000, 1000},
		{"0.1", 100, 1},
		{"1e-3", 1, 1},
		{"'1Ki'", 1024000, 1024},
		{"'0.5Gi'", 536870912000, 536870912},
		{"'1k'", 1000000, 1000},
		{"'1u'", 1, 1},
		{"'0'", 0, 0},
		{"123456789012345678", INT64_MAX, 123456789012345678},
	};
	char spec[128];

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		(void)snprintf(spec, sizeof spec,
			"'containers':[{'resources':{'requests':{'cpu':%s,'memory':%s}}}]",
			rows[i].text, rows[i].text);
		assert_int_equal(request_of(spec, "cpu", FIT_MISSING_IS_NOTHING), rows[i].cpu);
		assert_int_equal(
			request_of(spec, "memory", FIT_MISSING_IS_NOTHING), rows[i].memory);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_requests_what_kubernetes_computes),
		cmocka_unit_test(a_refusal_names_the_insufficient_resource),
		cmocka_unit_test(quantities_are_read_in_every_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
