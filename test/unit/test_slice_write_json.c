#include <apiserver/slice_write_json.h>

#include <codec/api_json.h>
#include <codec/slice_json.h>
#include <ctype.h>
#include <errno.h>
#include <io/file.h>
#include <numafit/mem.h>
#include <numafit/text.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { BYTES_MAX = 1 << 20 };
#define GI UINT64_C(0x40000000)
#define MI UINT64_C(0x100000)

static struct slice_written read_back;

static const struct slice_node two_nodes[] = {
	{.node_id = 0,
		.socket = 0,
		.nr_caches = 2,
		.threads = 2,
		.cpus = 14,
		.nr_memory = 3,
		.memory = {{0, 62 * GI}, {2 * MI, 512 * MI}, {GI, 4 * GI}}},
	{.node_id = 5,
		.socket = 1,
		.nr_caches = 1,
		.threads = 1,
		.cpus = 1,
		.nr_memory = 1,
		.memory = {{0, 12345678}},
		.closed = true},
};

static struct slice_to_write two(void)
{
	return (struct slice_to_write){.name = "n1-numafit.io",
		.node_name = "n1",
		.node_uid = "u-1",
		.generation = 7,
		.nr = 2,
		.node = two_nodes};
}

#define POLICY(default_, min, step)                                                                \
	"'requestPolicy':{'default':'" default_ "','validRange':{'min':'" min "','step':'" step    \
	"'}}"
#define NODE0                                                                                      \
	"{'name':'numa0','allowMultipleAllocations':true,'attributes':{"                           \
	"'resource.kubernetes.io/numaNode':{'int':0},'socket':{'int':0},'l3Caches':{'int':2},"     \
	"'threadsPerCore':{'int':2}},'capacity':{"                                                 \
	"'cpu':{'value':'14'," POLICY("1", "1",                                                    \
		"1") "},"                                                                          \
		     "'memory':{'value':'62Gi'," POLICY("0", "0",                                  \
			     "4Ki") "},"                                                           \
				    "'hugepages_2Mi':{'value':'512Mi'," POLICY("0", "0",           \
					    "2Mi") "},"                                            \
						   "'hugepages_1Gi':{'value':'4Gi'," POLICY(       \
							   "0", "0", "1Gi") "}}}"
#define NODE5                                                                                      \
	"{'name':'numa5','allowMultipleAllocations':true,'attributes':{"                           \
	"'resource.kubernetes.io/numaNode':{'int':5},'socket':{'int':1},'l3Caches':{'int':1},"     \
	"'threadsPerCore':{'int':1}},'capacity':{"                                                 \
	"'cpu':{'value':'1','requestPolicy':{'default':'1','validValues':['1']}},"                 \
	"'memory':{'value':'12345678'," POLICY(                                                    \
		"0", "0", "4Ki") "}},"                                                             \
				 "'taints':[{'key':'numafit.io/closed','effect':'NoSchedule'}]}"
#define SPEC(devices)                                                                              \
	"'spec':{'driver':'numafit.io','nodeName':'n1','pool':{'name':'n1','generation':7,"        \
	"'resourceSliceCount':1},'devices':[" devices "]}}"

static char *double_quoted(const char *text)
{
	char *copy = xstrdup(text);

	for (char *c = copy; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	return copy;
}

static void a_slice_is_written_as_kubernetes_wants_it(void **state)
{
	auto_free char *want = double_quoted(
		"{'apiVersion':'resource.k8s.io/v1','kind':'ResourceSlice','metadata':{"
		"'name':'n1-numafit.io','ownerReferences':[{'apiVersion':'v1','kind':'Node',"
		"'name':'n1','uid':'u-1'}]}," SPEC(NODE0 "," NODE5));
	struct slice_to_write s = two();
	auto_free char *text = slice_write_json(&s);

	(void)state;
	assert_string_equal(text, want);
}

static void an_owner_and_a_version_are_written_where_they_are_known(void **state)
{
	struct slice_to_write s = two();

	(void)state;
	s.node_uid = NULL;
	s.resource_version = "831";
	auto_free char *text = slice_write_json(&s);
	auto_free char *want =
		double_quoted("'metadata':{'name':'n1-numafit.io','resourceVersion':'831'},'spec'");
	assert_non_null(strstr(text, want));
}

static void a_text_that_is_not_utf8_is_not_written(void **state)
{
	struct slice_to_write s = two();

	(void)state;
	s.node_name = "\xff";
	assert_null(slice_write_json(&s));
	s = two();
	s.node_uid = "\xff";
	assert_null(slice_write_json(&s));
	s = two();
	s.name = "\xff";
	assert_null(slice_write_json(&s));
}

static void nodes_that_differ_in_one_thing_are_not_equal(void **state)
{
	struct slice_node other[11];

	(void)state;
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		other[i] = two_nodes[0];
	assert_true(slice_node_equal(&other[0], &two_nodes[0]));
	other[0].node_id++;
	other[10].many_sockets = true;
	other[1].socket++;
	other[2].nr_caches++;
	other[3].threads++;
	other[4].cpus++;
	other[5].nr_memory--;
	other[6].memory[2].bytes++;
	other[7].memory[2].page_bytes++;
	other[8].closed = true;
	other[9].whole_cores = true;
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		assert_false(slice_node_equal(&other[i], &two_nodes[0]));
}

/* Kubernetes refuses a capacity of less than a step of its requests. */
static void what_is_less_than_a_page_is_left_out(void **state)
{
	const struct slice_node node = {.node_id = 1,
		.cpus = 2,
		.nr_memory = 4,
		.memory = {{0, 4095}, {2 * MI, 2 * MI - 1}, {32 * MI, 32 * MI}, {GI, 0}}};
	struct slice_node w = slice_node_writable(&node);

	(void)state;
	assert_int_equal(w.nr_memory, 1);
	assert_int_equal(w.memory[0].page_bytes, 32 * MI);
	assert_false(slice_node_equal(&node, &w));
	struct slice_to_write s = two();
	s.nr = 1;
	s.node = &node;
	auto_free char *text = slice_write_json(&s);
	assert_null(strstr(text, "\"memory\""));
	assert_null(strstr(text, "hugepages_2Mi"));
	assert_non_null(strstr(text, "hugepages_32Mi"));
}

static void cpus_are_written_as_a_plain_number(void **state)
{
	const struct slice_node node = {.cpus = 2048};
	struct slice_to_write s = two();

	(void)state;
	s.nr = 1;
	s.node = &node;
	auto_free char *text = slice_write_json(&s);
	assert_non_null(strstr(text, "\"value\":\"2048\""));
}

static void a_node_without_cpus_is_no_device(void **state)
{
	struct slice_node nodes[] = {{.node_id = 3, .closed = true}, two_nodes[0], {.node_id = 4}};
	struct slice_to_write s = two();

	(void)state;
	s.nr = 3;
	s.node = nodes;
	auto_free char *text = slice_write_json(&s);
	assert_null(strstr(text, "numa3"));
	assert_null(strstr(text, "numa4"));
	assert_non_null(strstr(text, "\"numa0\""));
}

static bool is_subdomain(const char *s)
{
	for (const char *c = s; *c; c++) {
		bool alone = isdigit((unsigned char)*c) || islower((unsigned char)*c);

		if (!alone && *c != '-' && *c != '.')
			return false;
		if (!alone && (c == s || !c[1] || c[1] == '.' || (*c == '.' && c[1] == '-')))
			return false;
	}
	return *s && strlen(s) <= 253;
}

static void the_name_of_the_object_is_valid_for_every_name_of_a_node(void **state)
{
	char node[254], name[SLICE_OBJECT_NAME_MAX], other[SLICE_OBJECT_NAME_MAX];

	(void)state;
	assert_string_equal(slice_object_name(name, "n1.example.com"), "n1.example.com-numafit.io");
	for (size_t len = 1; len <= 253; len++)
		for (size_t dot = 1; dot < len - (len > 1); dot++) {
			memset(node, 'a', len);
			node[dot] = '.';
			node[len] = '\0';
			assert_true(is_subdomain(slice_object_name(name, node)));
			node[len - 1] = 'b';
			assert_string_not_equal(slice_object_name(other, node), name);
		}
}

static void a_slice_that_was_written_is_read_back(void **state)
{
	struct slice_to_write s = two();
	auto_free char *text = slice_write_json(&s);
	struct slice_head head;
	struct json_t *v;
	struct err e = {0};

	(void)state;
	assert_int_equal(api_json_parse(text, strlen(text), &v, NULL), 0);
	if (slice_written_read(v, &read_back, &e))
		fail_msg("%s", e.text);
	assert_string_equal(read_back.owner_uid, "u-1");
	assert_int_equal(read_back.nr, 2);
	assert_true(slice_node_equal(&read_back.node[0], &two_nodes[0]));
	assert_true(slice_node_equal(&read_back.node[1], &two_nodes[1]));
	assert_false(slice_node_equal(&read_back.node[0], &two_nodes[1]));
	slice_head_read(v, &head);
	assert_string_equal(head.name, "n1-numafit.io");
	assert_string_equal(head.version, "");
	assert_string_equal(head.driver, "numafit.io");
	assert_string_equal(head.node_name, "n1");
	assert_string_equal(head.pool, "n1");
	assert_int_equal(head.generation, 7);
	api_json_free(v);
}

/* The capacity as it is written, and that it is read back. */
static void assert_capacity(const struct slice_node *node, const char *want)
{
	auto_free char *quoted = double_quoted(want);
	struct slice_to_write s = two();
	struct json_t *v;

	s.nr = 1;
	s.node = node;
	auto_free char *text = slice_write_json(&s);
	assert_non_null(strstr(text, quoted));
	assert_int_equal(api_json_parse(text, strlen(text), &v, NULL), 0);
	assert_int_equal(slice_written_read(v, &read_back, NULL), 0);
	assert_true(slice_node_equal(&read_back.node[0], node));
	api_json_free(v);
}

/* A device on several sockets has no attribute by which a constraint could match. */
static void a_device_on_several_sockets_has_no_socket(void **state)
{
	struct slice_node nodes[] = {two_nodes[0], two_nodes[1]};
	struct slice_to_write s = two();
	struct json_t *v;
	struct err e;

	(void)state;
	nodes[1].socket = 0;
	nodes[1].many_sockets = true;
	s.node = nodes;
	auto_free char *text = slice_write_json(&s);
	auto_free char *want = double_quoted("{'resource.kubernetes.io/numaNode':{'int':5},"
					     "'l3Caches':{'int':1},'threadsPerCore':{'int':1}}");

	assert_non_null(strstr(text, want));
	assert_int_equal(api_json_parse(text, strlen(text), &v, NULL), 0);
	if (slice_written_read(v, &read_back, &e))
		fail_msg("%s", e.text);
	assert_true(slice_node_equal(&read_back.node[0], &nodes[0]));
	assert_true(slice_node_equal(&read_back.node[1], &nodes[1]));
	api_json_free(v);
}

static void whole_cores_are_asked_for_by_their_threads(void **state)
{
	struct slice_node node = {.cpus = 7, .threads = 2, .whole_cores = true};

	(void)state;
	assert_capacity(&node, "'cpu':{'value':'7'," POLICY("2", "2", "2"));
	node.cpus = 3; /* no range of so little */
	assert_capacity(
		&node, "'cpu':{'value':'3','requestPolicy':{'default':'2','validValues':['2']}}");
	node.cpus = 1;
	assert_int_equal(slice_node_writable(&node).cpus, 0);
	node = (struct slice_node){.cpus = 2, .threads = 1, .whole_cores = true};
	node = slice_node_writable(&node); /* each CPU is a core */
	assert_capacity(&node, "'cpu':{'value':'2'," POLICY("1", "1", "1"));
}

static int read_quoted(const char *text, struct err *e)
{
	auto_free char *copy = double_quoted(text);
	struct json_t *v;

	if (api_json_parse(copy, strlen(copy), &v, e))
		fail_msg("%s: %s", e->text, text);
	int rc = slice_written_read(v, &read_back, e);
	read_back.owner_uid = NULL; /* the value's */
	api_json_free(v);
	return rc;
}

/* The text with its first `from` replaced. */
static char *replaced(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	char *out = NULL;

	if (!at)
		fail_msg("\"%s\" is not there", from);
	assert_true(asprintf(&out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
	return out;
}

#define META "{'metadata':{'name':'n1-numafit.io'},"
static const char good[] = META SPEC(NODE0 "," NODE5);

/* By the API server, or another spelling of the same. */
static void what_the_server_adds_makes_no_difference(void **state)
{
	static const struct {
		const char *from, *to;
	} rows[] = {
		{"'name':'n1-numafit.io'",
			"'name':'n1-numafit.io','uid':'x','resourceVersion':'9','managedFields':[{}],"
			"'labels':{'a':'b'}"},
		{"'effect':'NoSchedule'",
			"'effect':'NoSchedule','timeAdded':'2026-11-22T15:51:20Z'"},
		{"'62Gi'", "'63488Mi'"},
		{"'62Gi'", "'66571993088'"},
		{"'14'", "14"},
		{"'14'", "'14000m'"},
		{"'4Ki'", "'4096'"},
		{"'hugepages_2Mi'", "'hugepages_2048Ki'"},
		{"'devices'", "'fieldOfTheFuture':7,'devices'"},
		{"'attributes'", "'fieldOfTheFuture':7,'attributes'"},
		{"'devices'", "'allNodes':false,'sharedCounters':[],'devices'"},
		{"'taints'", "'consumesCounters':null,'taints'"},
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		auto_free char *text = replaced(good, rows[i].from, rows[i].to);

		if (read_quoted(text, &e))
			fail_msg("%s: %s", rows[i].to, e.text);
		assert_int_equal(read_back.nr, 2);
		assert_true(slice_node_equal(&read_back.node[0], &two_nodes[0]));
		assert_true(slice_node_equal(&read_back.node[1], &two_nodes[1]));
	}
}

static void what_others_have_changed_is_found(void **state)
{
	static const struct {
		const char *from, *to, *want;
	} rows[] = {
		{"'driver':'numafit.io'", "'driver':'x'", "driver: should be numafit.io"},
		{"'nodeName':'n1'", "'allNodes':true", "pool: should have the node's name"},
		{"'pool':{'name':'n1'", "'pool':{'name':'n2'", "pool: should have the node's name"},
		{"'resourceSliceCount':1", "'resourceSliceCount':2",
			"pool: resourceSliceCount: should be 1"},
		{"'devices'", "'perDeviceNodeSelection':true,'devices'",
			"perDeviceNodeSelection: should not be there"},
		{"'name':'n1-numafit.io'",
			"'name':'n1-numafit.io','ownerReferences':[{'kind':'Pod'}]",
			"ownerReferences: should be the Node"},
		{"'allowMultipleAllocations':true", "'x':1",
			"devices[0]: allowMultipleAllocations: should be true"},
		{"'attributes'", "'bindsToNode':true,'attributes'",
			"devices[0]: bindsToNode: should not be there"},
		{"'name':'numa0'", "'name':'node0'", "devices[0]: name: should be numa0"},
		{"'name':'numa0'", "'name':null", "devices[0]: name: should be numa0"},
		{"'socket':{'int':0}", "'socket':{'string':'0'}",
			"devices[0]: attributes: socket: should be a number"},
		{"'socket':{'int':0}", "'socket':{'int':-1}",
			"devices[0]: attributes: socket: should be a number"},
		{"'socket':{'int':0}", "'socket':{'int':4294967296}",
			"devices[0]: attributes: socket: should be a number"},
		{"'socket':", "'x':{'int':1},'socket':",
			"devices[0]: attributes: 5 of them, not 4"},
		{"'cpu'", "'cpus'", "devices[0]: capacity: cpus: should not be there"},
		{"'value':'14'", "'value':'1500m'",
			"devices[0]: capacity: cpu: value: should be a whole number above 0"},
		{"'value':'14'", "'value':'0'",
			"devices[0]: capacity: cpu: value: should be a whole number above 0"},
		{"'value':'14'", "'value':[]",
			"devices[0]: capacity: cpu: value: should be a quantity, is a list"},
		{"'default':'1'", "'default':'2'",
			"devices[0]: capacity: cpu: requestPolicy: min: should be 2"}, /* by cores
											*/
		{"'default':'1'", "'default':'3'",
			"devices[0]: capacity: cpu: requestPolicy: default: should be 1"},
		{"'default':'1'", "'defaults':'2'",
			"devices[0]: capacity: cpu: requestPolicy: default: should be a quantity, is "
			"nothing"},
		{"'min':'1'", "'min':'1','max':'2'",
			"devices[0]: capacity: cpu: requestPolicy: max: should not be there"},
		{"'min':'1'", "'min':'0'",
			"devices[0]: capacity: cpu: requestPolicy: min: should be 1"},
		{"'step':'4Ki'", "'step':'8Ki'",
			"devices[0]: capacity: memory: requestPolicy: step: should be 4096"},
		{"'validRange'", "'validValues':['1'],'validRange'",
			"devices[0]: capacity: cpu: requestPolicy: validValues: should not be there"},
		{"'validValues':['1']", "'validValues':['1','1']",
			"devices[1]: capacity: cpu: requestPolicy: validValues: should be [\"1\"]"},
		{"'validValues':['1']", "'validValues':['2']",
			"devices[1]: capacity: cpu: requestPolicy: validValues: should be [\"1\"]"},
		{"'hugepages_2Mi':{'value':'512Mi'," POLICY("0", "0", "2Mi"),
			"'hugepages_1024Mi':{'value':'512Mi'," POLICY("0", "0", "1Gi"),
			"devices[0]: capacity: hugepages_1Gi: it is there twice"},
		{"'key':'numafit.io/closed'", "'key':'x'",
			"devices[1]: taints: another one than numafit.io/closed"},
		{"'NoSchedule'", "'NoExecute'",
			"devices[1]: taints: another one than numafit.io/closed"},
		{"'NoSchedule'}", "'NoSchedule'},{}",
			"devices[1]: taints: another one than numafit.io/closed"},
		{"'NoSchedule'", "'NoSchedule','value':'x'",
			"devices[1]: taints: another one than numafit.io/closed"},
	};
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		auto_free char *text = replaced(good, rows[i].from, rows[i].to);

		if (read_quoted(text, &e) != -EINVAL)
			fail_msg("%s is passed by", rows[i].to);
		assert_string_equal(e.text, rows[i].want);
	}
	assert_int_equal(read_quoted(META SPEC(""), &e), -EINVAL);
	assert_string_equal(e.text, "devices: 0 of them");
	assert_int_equal(read_quoted("{}", &e), -EINVAL);
	assert_int_equal(read_quoted(META SPEC("7"), &e), -EINVAL);
	assert_int_equal(read_quoted(META SPEC("{'allowMultipleAllocations':true}"), &e), -EINVAL);
}

static void a_number_that_cannot_be_is_none(void **state)
{
	static const char *const texts[] = {"{}", "{'spec':7}",
		"{'spec':{'pool':{'generation':-1}}}", "{'spec':{'pool':{'generation':1.5}}}",
		"{'metadata':{'name':{}},'spec':{'pool':[]}}"};
	struct slice_head head;
	struct json_t *v;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		auto_free char *copy = double_quoted(texts[i]);

		assert_int_equal(api_json_parse(copy, strlen(copy), &v, NULL), 0);
		slice_head_read(v, &head);
		assert_int_equal(head.generation, 0);
		assert_string_equal(head.name, "");
		assert_string_equal(head.pool, "");
		api_json_free(v);
	}
}

/* The reader of all drivers' slices finds these devices, too. */
static void devices_are_where_they_are_for_other_readers(void **state)
{
	struct slice_to_write s = two();
	auto_free char *text = slice_write_json(&s);
	struct slice slice;
	struct json_t *v;
	struct arena a;

	(void)state;
	arena_init(&a, SLICE_BYTES_MAX);
	assert_int_equal(api_json_parse(text, strlen(text), &v, NULL), 0);
	assert_int_equal(slice_json_read(v, &a, &slice, NULL), 0);
	assert_int_equal(slice.nr, 2);
	assert_int_equal(slice.nr_slices, 1);
	assert_string_equal(slice.device[1].name, "numa5");
	assert_int_equal(slice.device[1].nodes.nr, 1);
	assert_int_equal(*slice.device[1].nodes.id, 5);
	arena_fini(&a);
	api_json_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slice_is_written_as_kubernetes_wants_it),
		cmocka_unit_test(a_device_on_several_sockets_has_no_socket),
		cmocka_unit_test(an_owner_and_a_version_are_written_where_they_are_known),
		cmocka_unit_test(a_text_that_is_not_utf8_is_not_written),
		cmocka_unit_test(nodes_that_differ_in_one_thing_are_not_equal),
		cmocka_unit_test(what_is_less_than_a_page_is_left_out),
		cmocka_unit_test(cpus_are_written_as_a_plain_number),
		cmocka_unit_test(a_node_without_cpus_is_no_device),
		cmocka_unit_test(the_name_of_the_object_is_valid_for_every_name_of_a_node),
		cmocka_unit_test(a_slice_that_was_written_is_read_back),
		cmocka_unit_test(whole_cores_are_asked_for_by_their_threads),
		cmocka_unit_test(what_the_server_adds_makes_no_difference),
		cmocka_unit_test(what_others_have_changed_is_found),
		cmocka_unit_test(a_number_that_cannot_be_is_none),
		cmocka_unit_test(devices_are_where_they_are_for_other_readers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
