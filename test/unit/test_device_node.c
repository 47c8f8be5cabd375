#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <codec/machine_text.h>
#include <ftw.h>
#include <host/device_node.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A machine of two NUMA nodes, and a /sys for it with devices of all sorts. */
static const char machine[] = "machine two\n"
			      "node 0 memory 8Gi cpus 0-3\n"
			      "node 4 memory 8Gi cpus 4-7 socket 1\n"
			      "distances\n10 21\n21 10\n";
enum { NODE_0, NODE_4 };

#define GPU    "pci0000:80/0000:80:01.0/0000:81:00.0"
#define BRIDGE "pci0000:80/0000:80:01.0"
#define AUDIO  "pci0000:80/0000:80:01.0/0000:81:00.1"
#define NIC    "pci0000:00/0000:00:02.0"
#define FAR    "pci10000:00/10000:00:1f.7"
#define UP     "../../devices/"
#define LONG_NAME                                                                                  \
	"a-long-name-a-long-name-a-long-name-a-long-name-a-long-name-a-long-name-a-long-name-a-"   \
	"long-name-a-long-name-a-long-name"

static const struct {
	const char *name, *content;
} files[] = {
	{BRIDGE "/numa_node", "4\n"}, {GPU "/numa_node", "4\n"}, {GPU "/drm/card0/dev", "226:0\n"},
	{AUDIO "/numa_node", "4\n"}, {NIC "/numa_node", "0\n"},
	{NIC "/nvme/nvme0/numa_node", "0\n"}, {FAR "/numa_node", "0\n"},
	{"pci0000:00/0000:00:03.0/numa_node", "-1\n"}, {"pci0000:00/0000:00:04.0/numa_node", "3\n"},
	{"pci0000:00/0000:00:05.0/numa_node", "four\n"}, {"pci0000:00/0000:00:06.0/numa_node", ""},
	{"pci0000:00/0000:00:07.0/numa_node", "99999999999999999999999999999999999\n"},
	{"pci0000:00/0000:00:08.0/numa_node/is_a_directory", ""},
	{"platform/hmem.0/dax0.0/numa_node", "4\n"}, {"platform/serial/tty/ttyS0/dev", "4:64\n"},
	{BRIDGE "/0000:82:00.0/numa_node/is_a_directory", ""},
	{BRIDGE "/0000:83:00.0/dev", "240:2\n"}, {"platform/" LONG_NAME "/numa_node", "4\n"},
	{"virtual/mem/null/numa_node", "0\n"}, /* no kernel has this: nobody must look */
};

static const struct {
	const char *name, *target;
} links[] = {
	{"dev/char/226:0", UP GPU "/drm/card0"},
	{"dev/char/226:128", UP GPU "/drm/renderD128"},
	{"dev/char/231:0", UP NIC "/infiniband_verbs/uverbs0"},
	{"dev/block/259:0", UP NIC "/nvme/nvme0/nvme0n1"},
	{"dev/char/240:0", UP FAR "/misc/far"},
	{"dev/char/241:3", UP "pci0000:00/0000:00:03.0/x"},
	{"dev/char/241:4", UP "pci0000:00/0000:00:04.0/x"},
	{"dev/char/241:5", UP "pci0000:00/0000:00:05.0/x"},
	{"dev/char/241:6", UP "pci0000:00/0000:00:06.0/x"},
	{"dev/char/241:7", UP "pci0000:00/0000:00:07.0/x"},
	{"dev/char/241:8", UP "pci0000:00/0000:00:08.0/x"},
	{"dev/char/240:1", UP BRIDGE "/0000:82:00.0/x"},
	{"dev/char/240:2", UP BRIDGE "/0000:83:00.0/x"},
	{"dev/char/242:0", UP "platform/hmem.0/dax0.0"},
	{"dev/char/242:1", UP "platform/" LONG_NAME},
	{"dev/char/4:64", UP "platform/serial/tty/ttyS0"},
	{"dev/char/1:3", UP GPU},
	{"dev/char/5:2", UP GPU},
	{"dev/char/10:200", UP "virtual/misc/tun"},
	{"dev/char/10:1", UP "virtual/mem/null"},
	{"dev/char/10:196", UP "virtual/vfio/vfio"},
	{"dev/char/243:0", UP "virtual/vfio/12"},
	{"dev/char/243:1", UP "virtual/vfio/13"},
	{"dev/char/243:2", UP "virtual/vfio/noiommu-0"},
	{"dev/char/244:0", UP GPU "/vfio-dev/vfio0"},
	{"dev/char/250:0", "/sys/devices/" GPU},
	{"dev/char/250:1", UP "../../etc/" GPU},
	{"dev/char/250:2", "../../../etc/devices/" GPU},
	{"dev/char/250:3", "250:3"},
	{"dev/char/250:4", UP},
	{"dev/char/250:5", UP "platform/loop/x"},
	{"dev/char/250:6", UP "platform/../" GPU},
	{"dev/char/250:7", "../../devicez/" GPU},
	{"devices/platform/loop", "loop"},
	{"kernel/iommu_groups/12/devices/0000:81:00.0", "../../../../devices/" GPU},
	{"kernel/iommu_groups/12/devices/0000:81:00.1", "../../../../devices/" AUDIO},
	{"kernel/iommu_groups/12/devices/away", "../../../../../etc/" GPU},
	{"kernel/iommu_groups/14/devices/0000:00:02.0", "../../../../devices/" NIC},
	{"bus/pci/devices/0000:81:00.0", "../../../devices/" GPU},
	{"bus/pci/devices/0000:00:02.0", "../../../devices/" NIC},
	{"bus/pci/devices/10000:00:1f.7", "../../../devices/" FAR},
	{"bus/pci/devices/0000:00:03.0", "../../../devices/pci0000:00/0000:00:03.0"},
};

struct tree {
	char dir[64];
	struct topo t;
	struct arena a;
};

/* The path of name, below /sys, with the directories that lead there. */
static const char *path_of(const struct tree *tree, const char *name)
{
	static char path[512];

	(void)snprintf(path, sizeof path, "%s/sys/%s", tree->dir, name);
	for (char *at = strchr(path + strlen(tree->dir) + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		(void)mkdir(path, 0755);
		*at = '/';
	}
	return path;
}

static void put(const struct tree *tree, const char *name, const char *content)
{
	FILE *f = fopen(path_of(tree, name), "w");

	assert_non_null(f);
	assert_true(fputs(content, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
	struct tree *tree = xcalloc(1, sizeof *tree);
	const char *tmp = getenv("TMPDIR");
	char name[256];

	(void)snprintf(tree->dir, sizeof tree->dir, "%s/numafit-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(tree->dir));
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		(void)snprintf(name, sizeof name, "devices/%s", files[i].name);
		put(tree, name, files[i].content);
	}
	for (size_t i = 0; i < sizeof links / sizeof *links; i++)
		assert_int_equal(symlink(links[i].target, path_of(tree, links[i].name)), 0);
	assert_int_equal(machine_text_parse(machine, sizeof machine - 1, &tree->t, NULL), 0);
	arena_init(&tree->a, 1 << 20);
	*state = tree;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st, (void)flag, (void)at;
	return remove(path);
}

static int tear_down(void **state)
{
	struct tree *tree = *state;

	(void)nftw(tree->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	arena_fini(&tree->a);
	free(tree);
	return 0;
}

/* "id@node id@node", or "" when there is nothing; nodes as the kernel numbers them. */
static const char *found_devices(struct tree *tree, const struct request *req)
{
	static char buf[1024];
	struct text text;
	const struct device_resource *r = device_nodes_of(tree->dir, &tree->t, req, &tree->a);

	text_init(&text, buf, sizeof buf);
	for (unsigned i = 0; r && i < r->nr; i++) {
		char nodes[NODESET_TEXT_MAX];
		const struct device *d = &r->device[i];

		assert_true(d->healthy && d->placed && d->has_topology);
		text_add(&text, "%s%s@%s", i ? " " : "", d->id,
			nodeset_format(d->nodes, &tree->t.ids, nodes, sizeof nodes));
	}
	assert_false(r && !r->nr);
	return buf;
}

static void a_device_node_leads_to_its_devices_numa_node(void **state)
{
	static const struct {
		struct device_file in;
		const char *want;
	} cases[] = {
		{{"/dev/dri/card0", 'c', 226, 0}, "0000:81:00.0@4"},
		{{"/dev/dri/renderD128", 'c', 226, 128}, "0000:81:00.0@4"},
		{{"/dev/infiniband/uverbs0", 'c', 231, 0}, "0000:00:02.0@0"},
		{{"/dev/xvda", 'b', 259, 0}, "0000:00:02.0@0"},
		{{"/dev/xvda", 'c', 259, 0}, ""}, /* of the other type */
		{{"/dev/far", 'c', 240, 0}, "10000:00:1f.7@0"},
		{{"/dev/dax0.0", 'c', 242, 0}, "platform/hmem.0/dax0.0@4"},
		{{"/dev/below_bridge", 'c', 240, 1}, ""}, /* unreadable; not its bridge's */
		{{"/dev/without", 'c', 240, 2}, "0000:80:01.0@4"},
		{{"/dev/ttyS0", 'c', 4, 64}, ""},
		{{"/dev/net/tun", 'c', 10, 200}, ""},
		{{"/dev/x", 'c', 10, 1}, ""},
		{{"/dev/null", 'c', 1, 3}, ""}, /* not even looked at */
		{{"/dev/ptmx", 'c', 5, 2}, ""},
		{{"/dev/unknown", 'c', UINT32_MAX, UINT32_MAX}, ""},
		{{"/dev/minus_one", 'c', 241, 3}, ""},
		{{"/dev/no_such_node", 'c', 241, 4}, ""},
		{{"/dev/no_number", 'c', 241, 5}, ""},
		{{"/dev/empty", 'c', 241, 6}, ""},
		{{"/dev/too_long", 'c', 241, 7}, ""},
		{{"/dev/unreadable", 'c', 241, 8}, ""},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(found_devices(*state,
					    &(struct request){.file = &cases[i].in, .nr_files = 1}),
			cases[i].want);
}

static void a_vfio_group_leads_to_its_devices(void **state)
{
	static const char group_12[] = "0000:81:00.0@4 0000:81:00.1@4";
	static const struct {
		struct device_file in;
		const char *want;
	} cases[] = {
		{{"/dev/vfio/12", 'c', 243, 0}, group_12},
		{{"/dev/whatever", 'c', 243, 0}, group_12},
		{{"/dev/vfio/14", 'c', 243, 0}, group_12}, /* the number beats the name */
		{{"/dev/vfio/14", 'c', 243, 99}, "0000:00:02.0@0"},
		{{"/dev/vfio/13", 'c', 243, 1}, ""}, /* nothing is known of it */
		{{"/dev/vfio/vfio", 'c', 10, 196}, ""},
		{{"/dev/vfio/noiommu-0", 'c', 243, 2}, ""},
		{{"/dev/vfio/../14", 'c', 243, 99}, ""},
		{{"/dev/vfio/", 'c', 243, 99}, ""},
		{{"/dev/vfio/devices/vfio0", 'c', 244, 0}, "0000:81:00.0@4"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(found_devices(*state,
					    &(struct request){.file = &cases[i].in, .nr_files = 1}),
			cases[i].want);
}

static void a_cdi_name_with_a_pci_address_leads_to_that_device(void **state)
{
	static const struct {
		const char *in, *want;
	} cases[] = {
		{"vendor.com/gpu=0000:81:00.0", "0000:81:00.0@4"},
		{"vendor.com/gpu=pci-0000-81-00-0", "0000:81:00.0@4"},
		{"vendor.com/gpu=0000-81-00-0-0x56c0", "0000:81:00.0@4"},
		{"vendor.com/gpu=10000:00:1F.7", "10000:00:1f.7@0"},
		{"0000:00:02.0", "0000:00:02.0@0"},
		{"vendor.com/gpu=0000:00:03.0", ""}, /* -1 */
		{"vendor.com/gpu=0000:81:00.7", ""}, /* there is none */
		{"vendor.com/gpu=81:00.0", ""},
		{"vendor.com/gpu=0000:81-00.0", ""},
		{"vendor.com/gpu=0000:81:000.0", ""},
		{"vendor.com/gpu=0000:81:00.00", ""},
		{"vendor.com/gpu=0000:81:00.", ""},
		{"vendor.com/gpu=000000000:81:00.0", ""},
		{"vendor.com/gpu=../../../devices/" GPU, ""},
		{"vendor.com/gpu=9c8e2a40-1b3f-4e2d-9c8e-2a401b3f4e2d", ""},
		{"vendor.com/gpu=0", ""},
		{"vendor.com/gpu=", ""},
		{"", ""},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(
			found_devices(*state, &(struct request){.cdi = &cases[i].in, .nr_cdi = 1}),
			cases[i].want);
}

static void links_that_lead_elsewhere_lead_nowhere(void **state)
{
	for (unsigned minor = 0; minor < 8; minor++) {
		struct device_file f = {"/dev/x", 'c', 250, minor};

		assert_string_equal(
			found_devices(*state, &(struct request){.file = &f, .nr_files = 1}), "");
	}
}

static const struct device_file all_files[] = {
	{"/dev/null", 'c', 1, 3},
	{"/dev/dri/renderD128", 'c', 226, 128},
	{"/dev/dri/card0", 'c', 226, 0},
	{"/dev/net/tun", 'c', 10, 200},
	{"/dev/vfio/12", 'c', 243, 0},
	{"/dev/infiniband/uverbs0", 'c', 231, 0},
};
static const char *const all_cdi[] = {"v.com/gpu=0", "v.com/gpu=0000:81:00.0"};
static const struct request everything = {.file = all_files,
	.nr_files = sizeof all_files / sizeof *all_files,
	.cdi = all_cdi,
	.nr_cdi = sizeof all_cdi / sizeof *all_cdi};

static void a_device_that_is_found_by_several_ways_is_counted_once(void **state)
{
	assert_string_equal(
		found_devices(*state, &everything), "0000:00:02.0@0 0000:81:00.0@4 0000:81:00.1@4");
}

static void found_devices_make_a_family_that_can_be_merged(void **state)
{
	struct tree *tree = *state;
	static const bool none_held[3];
	static char memory[1 << 20];
	struct arena decision;
	struct family f;
	const struct device_resource *r =
		device_nodes_of(tree->dir, &tree->t, &everything, &tree->a);

	assert_non_null(r);
	assert_string_equal(r->name, "devices");
	struct device_claim claim = {.resource = r, .count = r->nr, .held = none_held};
	arena_init_fixed(&decision, memory, sizeof memory);
	assert_int_equal(devices_family(&claim, tree->t.nodes, &(struct budget){.endless = true},
				 &decision, &f),
		0);
	assert_int_equal(f.kind, FAMILY_CAPACITY);
	assert_false(family_has(&f, nodeset_of(NODE_0)));
	assert_false(family_has(&f, nodeset_of(NODE_4)));
	assert_true(family_has(&f, tree->t.nodes));
}

static void no_devices_are_found_in_an_arena_that_is_too_small(void **state)
{
	static const struct device_file near_and_long[] = {
		{"/dev/infiniband/uverbs0", 'c', 231, 0}, {"/dev/x", 'c', 242, 1}};
	const struct request req = {.file = near_and_long, .nr_files = 2};
	struct tree *tree = *state;
	_Alignas(max_align_t) char memory[512];
	unsigned nr_given = 0;

	for (size_t len = 0; len < sizeof memory; len += sizeof(max_align_t)) {
		struct arena a;

		arena_init_fixed(&a, memory, len);
		const struct device_resource *r = device_nodes_of(tree->dir, &tree->t, &req, &a);
		assert_true(!r || r->nr == 2);
		nr_given += r != NULL;
	}
	assert_in_range(nr_given, 1, sizeof memory / sizeof(max_align_t) - 1);
}

static void the_search_for_devices_is_bounded(void **state)
{
	enum { MANY = 5000 };
	struct device_file *many = xcalloc(MANY, sizeof *many);

	for (unsigned i = 0; i < MANY; i++)
		many[i] = (struct device_file){"/dev/x", 'c', 10, 200};
	many[0] = (struct device_file){"/dev/infiniband/uverbs0", 'c', 231, 0};
	many[MANY - 1] = (struct device_file){"/dev/dri/card0", 'c', 226, 0};
	assert_string_equal(
		found_devices(*state, &(struct request){.file = many, .nr_files = MANY}),
		"0000:00:02.0@0");
	free(many);
}

static void more_devices_than_can_be_held_are_left_out(void **state)
{
	enum { MANY = 300, KEPT = 256 };
	struct tree *tree = *state;
	struct device_file *many = xcalloc(MANY, sizeof *many);

	for (unsigned i = 0; i < MANY; i++) {
		char name[128], target[128];

		(void)snprintf(name, sizeof name, "devices/platform/many%u/numa_node", i);
		put(tree, name, "4\n");
		(void)snprintf(name, sizeof name, "dev/char/300:%u", i);
		(void)snprintf(target, sizeof target, UP "platform/many%u", i);
		assert_int_equal(symlink(target, path_of(tree, name)), 0);
		many[i] = (struct device_file){"/dev/x", 'c', 300, i};
	}
	struct request req = {.file = many, .nr_files = MANY};
	const struct device_resource *r = device_nodes_of(tree->dir, &tree->t, &req, &tree->a);
	assert_non_null(r);
	assert_int_equal(r->nr, KEPT);
	for (unsigned i = 1; i < r->nr; i++)
		assert_true(strcmp(r->device[i - 1].id, r->device[i].id) < 0);
	free(many);
}

static void without_a_sysfs_no_node_is_known(void **state)
{
	struct tree *tree = *state;

	assert_null(device_nodes_of("/nonexistent", &tree->t, &everything, &tree->a));
	assert_null(device_nodes_of(tree->dir, &tree->t, &(struct request){0}, &tree->a));
}

static void a_bus_of_a_resource_slice_leads_to_its_numa_node(void **state)
{
	static const struct {
		const char *bus;
		int node;
	} rows[] = {
		{"0000:81:00.0", NODE_4},
		{"0000:00:02.0", NODE_0},
		{"10000:00:1F.7", NODE_0},
		{"pci0000:80", NODE_4},
		{"pci0000:00", NODE_0}, /* of its devices some are nowhere */
		{"pci10000:00", NODE_0},
		{"0000:00:03.0", -1}, /* the kernel knows none */
		{"0000:99:00.0", -1},
		{"pci0000:99", -1},
		{"0000:81:00.0 ", -1},
		{"81:00.0", -1},
		{"pci0000:80/", -1},
		{"pci../../pci0000:80", -1},
		{"pci0000:../pci0000:80", -1},
		{"pci0000:", -1},
		{"pci:80", -1},
		{"pci", -1},
		{"", -1},
	};
	struct tree *tree = *state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int node = device_node_of_bus(tree->dir, &tree->t, rows[i].bus);

		if (node != rows[i].node)
			fail_msg("%s: %d", rows[i].bus, node);
	}
	assert_int_equal(device_node_of_bus("/nonexistent", &tree->t, "0000:81:00.0"), -1);
}

#define in_tree(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_tree(a_device_node_leads_to_its_devices_numa_node),
		in_tree(a_vfio_group_leads_to_its_devices),
		in_tree(a_cdi_name_with_a_pci_address_leads_to_that_device),
		in_tree(links_that_lead_elsewhere_lead_nowhere),
		in_tree(a_device_that_is_found_by_several_ways_is_counted_once),
		in_tree(found_devices_make_a_family_that_can_be_merged),
		in_tree(no_devices_are_found_in_an_arena_that_is_too_small),
		in_tree(the_search_for_devices_is_bounded),
		in_tree(more_devices_than_can_be_held_are_left_out),
		in_tree(without_a_sysfs_no_node_is_known),
		in_tree(a_bus_of_a_resource_slice_leads_to_its_numa_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
