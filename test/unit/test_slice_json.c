#include <codec/slice_json.h>

#include <codec/api_json.h>
#include <errno.h>
#include <io/file.h>
#include <numafit/cpuset.h>
#include <numafit/mem.h>
#include <numafit/text.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { BYTES_MAX = 1 << 20, TEXT_MAX = 4096 };

/* A slice and what it was read from. */
struct reading {
	struct json_t *object;
	struct arena arena;
	struct slice slice;
	struct err e;
	int rc;
};

/* Cases are written with ' for ". */
static void read_slice(struct reading *r, const char *text)
{
	auto_free char *copy = xstrdup(text);

	*r = (struct reading){0};
	for (char *c = copy; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	if (api_json_parse(copy, strlen(copy), &r->object, &r->e))
		fail_msg("%s", r->e.text);
	arena_init(&r->arena, SLICE_BYTES_MAX);
	r->rc = slice_json_read(r->object, &r->arena, &r->slice, &r->e);
}

static void done(struct reading *r)
{
	arena_fini(&r->arena);
	api_json_free(r->object);
}

/* A slice that has this as its devices. */
static void read_devices(struct reading *r, const char *devices)
{
	char text[TEXT_MAX];

	(void)snprintf(text, sizeof text,
		"{'metadata':{'name':'s'},'spec':{'driver':'d','pool':{'name':'p','generation':4,"
		"'resourceSliceCount':2},'nodeName':'n1','devices':%s}}",
		devices);
	read_slice(r, text);
}

#define ATTRIBUTE(key, value) "{'name':'a','attributes':{'" key "':" value "}}"
#define NUMA                  "resource.kubernetes.io/numaNode"
#define BUS                   "resource.kubernetes.io/pciBusID"
#define ROOT                  "resource.kubernetes.io/pcieRoot"

static void a_device_is_where_its_standard_attributes_say(void **state)
{
	static const struct {
		const char *device;
		const char *nodes; /* "": the slice says none */
		const char *bus;
	} rows[] = {
		{ATTRIBUTE(NUMA, "{'int':3}"), "3", NULL},
		{ATTRIBUTE(NUMA, "{'int':0}"), "0", NULL},
		{ATTRIBUTE(NUMA, "{'int':1023}"), "1023", NULL},
		{ATTRIBUTE(NUMA, "{'ints':[5,4,1]}"), "1,4-5", NULL},
		{ATTRIBUTE(NUMA, "{'ints':[5,5,5]}"), "5", NULL},
		{ATTRIBUTE(NUMA, "{'ints':[64,1023,1024,-1,'0',4294967296,1e3]}"), "64,1023", NULL},
		{ATTRIBUTE(NUMA, "{'ints':[-1]},'" BUS "':{'string':'0000:81:00.0'}"), "",
			"0000:81:00.0"},
		{ATTRIBUTE(NUMA, "{'ints':{'0':1}}"), "", NULL},
		{ATTRIBUTE(NUMA, "{'ints':7}"), "", NULL},
		{ATTRIBUTE(BUS, "{'string':'0000:81:00.0'}"), "", "0000:81:00.0"},
		{ATTRIBUTE(ROOT, "{'string':'pci0000:80'}"), "", "pci0000:80"},
		{ATTRIBUTE(ROOT, "{'string':'pci0000:80'},'" BUS "':{'string':'0000:81:00.0'}"), "",
			"0000:81:00.0"},
		/* what the driver says itself comes first */
		{ATTRIBUTE(BUS, "{'string':'0000:81:00.0'},'" NUMA "':{'int':2}"), "2", NULL},
		/* no node, or none that a kernel has */
		{ATTRIBUTE(NUMA, "{'int':-1},'" BUS "':{'string':'0000:81:00.0'}"), "",
			"0000:81:00.0"},
		{ATTRIBUTE(NUMA, "{'int':1024}"), "", NULL},
		{ATTRIBUTE(NUMA, "{'ints':[]}"), "", NULL},
		/* another type than theirs */
		{ATTRIBUTE(NUMA, "{'string':'1'}"), "", NULL},
		{ATTRIBUTE(NUMA, "7"), "", NULL},
		{ATTRIBUTE(NUMA, "{'int':1.5}"), "", NULL},
		{ATTRIBUTE(BUS, "{'version':'0000:81:00.0'}"), "", NULL},
		{ATTRIBUTE(BUS, "{'string':''}"), "", NULL},
		/* names of others: these are the driver's own */
		{ATTRIBUTE("numaNode", "{'int':3}"), "", NULL},
		{ATTRIBUTE("dra.net/numaNode", "{'int':3}"), "", NULL},
		{"{'name':'a'}", "", NULL},
		{"{'name':'a','attributes':null}", "", NULL},
	};
	char list[TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct reading r;

		(void)snprintf(list, sizeof list, "[%s]", rows[i].device);
		read_devices(&r, list);
		if (r.rc)
			fail_msg("%s: %s", rows[i].device, r.e.text);
		const struct slice_device *d = r.slice.device;
		struct cpuset ids = {0};
		char nodes[CPUSET_TEXT_MAX];
		for (size_t k = 0; k < d->nodes.nr; k++)
			cpuset_add(&ids, (unsigned)d->nodes.id[k]);
		if (!text_equal(cpuset_format(&ids, nodes, sizeof nodes), rows[i].nodes) ||
			!text_equal(d->bus, rows[i].bus))
			fail_msg("%s: NUMA nodes %s, bus %s", rows[i].device, nodes,
				r.slice.device->bus ? r.slice.device->bus : "none");
		done(&r);
	}
}

/* A machine has 64 NUMA nodes at most. */
static void a_list_of_more_numa_nodes_than_a_machine_can_have_says_nothing(void **state)
{
	(void)state;
	for (unsigned nr = NODES_MAX; nr <= NODES_MAX + 1; nr++) {
		char ids[TEXT_MAX / 2], list[TEXT_MAX];
		struct reading r;
		struct text t;

		text_init(&t, ids, sizeof ids);
		for (unsigned i = 0; i < nr; i++)
			text_add(&t, "%s%u", i ? "," : "", 2 * (nr - i));
		(void)snprintf(list, sizeof list, "[" ATTRIBUTE(NUMA, "{'ints':[%s]}") "]", ids);
		read_devices(&r, list);
		assert_int_equal(r.rc, 0);
		assert_int_equal(r.slice.device->nodes.nr, nr == NODES_MAX ? NODES_MAX : 0);
		done(&r);
	}
}

static void a_slice_says_of_which_pool_it_is(void **state)
{
	struct reading r;

	(void)state;
	read_devices(&r, "[]");
	assert_int_equal(r.rc, 0);
	assert_string_equal(r.slice.name, "s");
	assert_string_equal(r.slice.driver, "d");
	assert_string_equal(r.slice.pool, "p");
	assert_int_equal(r.slice.generation, 4);
	assert_int_equal(r.slice.nr_slices, 2);
	assert_int_equal(r.slice.nr, 0);
	done(&r);
}

#define POOL "'pool':{'name':'p','generation':1,'resourceSliceCount':1}"

static void an_object_that_is_no_slice_is_refused(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"{}", "resourceslice : name: should be a name, is nothing"},
		{"{'metadata':[]}", "resourceslice : metadata: should be an object, is a list"},
		{"{'metadata':{'name':7}}",
			"resourceslice : name: should be a string, is an integer"},
		{"{'metadata':{'name':'s'},'spec':7}",
			"resourceslice s: spec: should be an object, is an integer"},
		{"{'metadata':{'name':'s'},'spec':{" POOL "}}",
			"resourceslice s: spec: driver: should be a name, is nothing"},
		{"{'metadata':{'name':'s'},'spec':{'driver':'d'}}",
			"resourceslice s: spec: pool: name: should be a name, is nothing"},
		{"{'metadata':{'name':'s'},'spec':{'driver':'d','pool':{'name':'p','generation':-1}}}",
			"resourceslice s: spec: pool: generation: -1 is less than 0"},
		{"{'metadata':{'name':'s'},'spec':{'driver':'d','pool':{'name':'p','generation':1,"
		 "'resourceSliceCount':0}}}",
			"resourceslice s: spec: pool: resourceSliceCount: 0 is less than 1"},
		{"{'metadata':{'name':'s'},'spec':{'driver':'d'," POOL ",'devices':{}}}",
			"resourceslice s: spec: devices: should be a list, is an object"},
		{"{'metadata':{'name':'s'},'spec':{'driver':'d'," POOL ",'devices':[[[[]]]]}}",
			"resourceslice s: spec: devices[0]: should be an object, is a list"},
		{"{'metadata':{'name':'s'},'spec':{'driver':'d'," POOL ",'devices':[{'name':''}]}}",
			"resourceslice s: spec: devices[0]: name: should be a name, is nothing"},
		{"{'metadata':{'name':'s'},'spec':{'driver':'d'," POOL
		 ",'devices':[{'name':'a','attributes':[]}]}}",
			"resourceslice s: spec: devices[0]: attributes: should be an object, is a list"},
		{"{'metadata':{'name':'s'},'spec':{'driver':'d'," POOL
		 ",'devices':[{'name':'a'},{'name':'b'},{'name':'a'}]}}",
			"resourceslice s: spec: devices: a is there twice"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct reading r;

		read_slice(&r, rows[i].text);
		assert_int_equal(r.rc, -EINVAL);
		assert_string_equal(r.e.text, rows[i].want);
		done(&r);
	}
}

static void more_devices_than_a_slice_has_are_refused(void **state)
{
	char list[TEXT_MAX];
	struct reading r;
	struct text t;

	(void)state;
	for (unsigned nr = SLICE_DEVICES_MAX; nr <= SLICE_DEVICES_MAX + 1; nr++) {
		text_init(&t, list, sizeof list);
		for (unsigned i = 0; i < nr; i++)
			text_add(&t, "%s{'name':'d%u'}", i ? "," : "[", i);
		text_add(&t, "]");
		read_devices(&r, list);
		assert_int_equal(r.rc, nr > SLICE_DEVICES_MAX ? -E2BIG : 0);
		done(&r);
	}
}

static void a_name_that_is_too_long_is_refused(void **state)
{
	char list[TEXT_MAX];
	struct reading r;

	(void)state;
	(void)snprintf(list, sizeof list, "[{'name':'%0*d'}]", SLICE_NAME_MAX, 0);
	read_devices(&r, list);
	assert_int_equal(r.rc, 0);
	done(&r);
	(void)snprintf(list, sizeof list, "[{'name':'%0*d'}]", SLICE_NAME_MAX + 1, 0);
	read_devices(&r, list);
	assert_int_equal(r.rc, -EINVAL);
	done(&r);
}

/* What three drivers have published on a real cluster 1.37.1. */
static void recorded_slices_are_read(void **state)
{
	static const struct {
		const char *driver, *device;
		int node; /* -1: the slice says none */
	} rows[] = {
		{"dra.cpu", "cpudevnuma007", -1}, /* it has names of its own for that */
		{"gpu.example.com", "gpu0", 2},
		{"gpu.example.com", "gpu3", 7},
		{"numafit.io", "node5", 5},
	};
	struct slice_store *s = slice_store_new();
	auto_free char *text = NULL;
	struct json_t *list;
	struct api_list all;
	size_t len;

	(void)state;
	assert_int_equal(
		file_read("test/golden/resourceslices.json", BYTES_MAX, &text, &len, NULL), 0);
	assert_int_equal(api_json_parse(text, len, &list, NULL), 0);
	assert_int_equal(api_json_list(list, &all, NULL), 0);
	for (size_t i = 0; i < all.nr; i++) {
		struct slice slice;
		struct err e = {0};
		struct arena a;

		arena_init(&a, SLICE_BYTES_MAX);
		if (slice_json_read(api_json_item(list, i), &a, &slice, &e))
			fail_msg("%s", e.text);
		assert_int_equal(slice_store_put(s, &slice, NULL), 1);
		arena_fini(&a);
	}
	api_json_free(list);
	assert_int_equal(slice_store_count(s).devices, 8 + 4 + 8);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct slice_device *d =
			slice_store_find(s, rows[i].driver, "n1", rows[i].device);

		assert_non_null(d);
		assert_int_equal(d->nodes.nr, rows[i].node >= 0);
		assert_true(!d->nodes.nr || *d->nodes.id == rows[i].node);
	}
	slice_store_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_is_where_its_standard_attributes_say),
		cmocka_unit_test(a_list_of_more_numa_nodes_than_a_machine_can_have_says_nothing),
		cmocka_unit_test(a_slice_says_of_which_pool_it_is),
		cmocka_unit_test(an_object_that_is_no_slice_is_refused),
		cmocka_unit_test(more_devices_than_a_slice_has_are_refused),
		cmocka_unit_test(a_name_that_is_too_long_is_refused),
		cmocka_unit_test(recorded_slices_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
