/* What a runtime says of a container's devices and resources, in messages that are made by hand. */
#include "nri_pb_rig.h"

static const struct device_file gpu_and_disk[] = {
	{"/dev/gpu0", 'c', 195, 0}, {"/dev/disk", 'b', 259, UINT32_MAX}};
static const char *const gpu_and_nic[] = {"v.com/gpu=0000:81:00.0", "v.com/nic=0"};

static struct nri_container with_devices(const struct key_value *note)
{
	return (struct nri_container){.sandbox_id = "p",
		.id = "c",
		.annotations = note,
		.nr_annotations = note ? 1 : 0,
		.files = gpu_and_disk,
		.nr_files = sizeof gpu_and_disk / sizeof *gpu_and_disk,
		.cdi = gpu_and_nic,
		.nr_cdi = sizeof gpu_and_nic / sizeof *gpu_and_nic};
}

static void assert_has_devices(const struct request *req)
{
	assert_int_equal(req->nr_files, 2);
	for (size_t i = 0; i < req->nr_files; i++) {
		assert_string_equal(req->file[i].path, gpu_and_disk[i].path);
		assert_int_equal(req->file[i].type, gpu_and_disk[i].type);
		assert_int_equal(req->file[i].major, gpu_and_disk[i].major);
		assert_int_equal(req->file[i].minor, gpu_and_disk[i].minor);
	}
	assert_int_equal(req->nr_cdi, 2);
	for (size_t i = 0; i < req->nr_cdi; i++)
		assert_string_equal(req->cdi[i], gpu_and_nic[i]);
	assert_string_equal(req->allocated, "v1:7:0-1");
}

static void every_message_carries_the_devices(void **state)
{
	static const struct key_value note = {NRI_ALLOCATED_ANNOTATION, "v1:7:0-1"};
	const struct nri_container c = with_devices(&note);
	const struct nri_chunk chunk = {&c, (bool[]){true}, 1, false};
	struct nri_running all;
	struct nri_subject s;
	struct blob out;

	for (int event = NRI_EVENT_CREATE; event <= NRI_EVENT_REMOVE; event++) {
		bool is_call = event == NRI_EVENT_POST_START;

		assert_int_equal(
			nri_subject_encode((enum nri_event)event, is_call, &c, *state, &out, NULL),
			0);
		assert_int_equal(is_call ? nri_state_change_decode(out, *state, &s, NULL)
					 : nri_subject_decode(out, *state, &s, NULL),
			0);
		assert_has_devices(&s.req);
	}
	assert_int_equal(nri_running_encode(&chunk, *state, &out, NULL), 0);
	assert_int_equal(nri_running_decode(out, 1, *state, &all, NULL), 0);
	assert_has_devices(&all.containers[0]);
}

static void allocated_devices_come_from_the_container_alone(void **state)
{
	static const struct {
		struct key_value of_pod, of_container;
		const char *want;
	} cases[] = {
		{{NRI_ALLOCATED_ANNOTATION, "v1:1:0-0"}, {"other", "x"}, NULL},
		{{"other", "x"}, {NRI_ALLOCATED_ANNOTATION, "v1:1:0-0"}, "v1:1:0-0"},
		/* a runtime that copies them sets the kubelet's over the pod's */
		{{NRI_ALLOCATED_ANNOTATION, "v1:1:0-0"}, {NRI_ALLOCATED_ANNOTATION, "v1:1:0-0"},
			NULL},
		{{NRI_ALLOCATED_ANNOTATION, "v1:2:0-1"}, {NRI_ALLOCATED_ANNOTATION, "v1:1:0-0"},
			"v1:1:0-0"},
		{{NRI_ALLOCATED_ANNOTATION, "v1:2:0-1"}, {NRI_ALLOCATED_ANNOTATION, ""}, ""},
		{{"other", "x"}, {NRI_ALLOCATED_ANNOTATION "/container.c", "v1:1:0-0"}, NULL},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nri_container c = with_devices(&cases[i].of_container);
		struct nri_subject s;
		struct blob out;

		c.pod_annotations = &cases[i].of_pod;
		c.nr_pod_annotations = 1;
		assert_int_equal(
			nri_subject_encode(NRI_EVENT_CREATE, false, &c, *state, &out, NULL), 0);
		assert_int_equal(nri_subject_decode(out, *state, &s, NULL), 0);
		if (cases[i].want)
			assert_string_equal(s.req.allocated, cases[i].want);
		else
			assert_null(s.req.allocated);
	}
}

/* Messages by hand, for what our own encoder does not say. */

static void put_optional(struct bytes *out, unsigned field, uint64_t value)
{
	struct bytes m = {0};

	if (value)
		put_number(&m, 1, value);
	put_message(out, field, &m);
}

static void put_cpu(struct bytes *resources, uint64_t shares, uint64_t quota)
{
	struct bytes cpu = {0};

	put_optional(&cpu, 1, shares);
	put_optional(&cpu, 2, quota);
	put_optional(&cpu, 3, 100000);
	put_message(resources, 2, &cpu);
}

static void put_hugepages(struct bytes *resources, const char *size, uint64_t limit)
{
	struct bytes h = {0};

	put_text(&h, 1, size);
	if (limit)
		put_number(&h, 2, limit);
	put_message(resources, 3, &h);
}

static void put_file(struct bytes *linux, const char *type, uint64_t major, uint64_t minor)
{
	struct bytes d = {0};

	put_text(&d, 1, "/dev/x");
	put_text(&d, 2, type);
	put_number(&d, 3, major);
	put_number(&d, 4, minor);
	put_message(linux, 2, &d);
}

/* A message about container "c" that has this LinuxContainer. */
static void decode_container(struct bytes *linux, struct arena *a, struct nri_subject *out)
{
	struct bytes m = {0}, c = {0};

	put_text(&c, 1, "c");
	put_message(&c, 11, linux);
	put_message(&m, 2, &c);
	assert_int_equal(nri_subject_decode((struct blob){m.at, m.len}, a, out, NULL), 0);
	bytes_fini(&m);
}

static void only_possible_device_nodes_are_accepted(void **state)
{
	static const struct {
		const char *type;
		uint64_t major, minor;
		bool taken;
	} cases[] = {
		{"c", 0, 0, true},
		{"b", UINT32_MAX, UINT32_MAX, true},
		{"u", 1, 3, false},
		{"p", 0, 0, false},
		{"", 1, 3, false},
		{"cc", 1, 3, false},
		{"c", (uint64_t)-1, 3, false},
		{"c", 1, (uint64_t)-1, false},
		{"c", UINT64_C(1) << 32, 3, false},
		{"c", 1, UINT64_C(1) << 32, false},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct bytes linux = {0};
		struct nri_subject s;

		put_file(&linux, cases[i].type, cases[i].major, cases[i].minor);
		put_file(&linux, "b", 7, 8);
		decode_container(&linux, *state, &s);
		assert_int_equal(s.req.nr_files, cases[i].taken ? 2 : 1);
		assert_int_equal(s.req.file[0].type, cases[i].taken ? *cases[i].type : 'b');
		assert_int_equal(s.req.file[s.req.nr_files - 1].major, 7);
		assert_int_equal(s.req.file[s.req.nr_files - 1].minor, 8);
	}
}

static void of_too_many_devices_the_first_are_kept(void **state)
{
	enum { MANY = 5000, FILES = 4096, NAMES = 1024 };
	struct bytes linux = {0}, m = {0}, c = {0}, name;
	struct nri_subject s;

	for (unsigned i = 0; i < MANY; i++) {
		put_file(&linux, "c", 200, i);
		name = (struct bytes){0};
		put_text(&name, 1, i ? "v.com/gpu=n" : "v.com/gpu=first");
		put_message(&c, 20, &name);
	}
	put_message(&c, 11, &linux);
	put_message(&m, 2, &c);
	assert_int_equal(nri_subject_decode((struct blob){m.at, m.len}, *state, &s, NULL), 0);
	assert_int_equal(s.req.nr_files, FILES);
	assert_int_equal(s.req.file[FILES - 1].minor, FILES - 1);
	assert_int_equal(s.req.nr_cdi, NAMES);
	assert_string_equal(s.req.cdi[0], "v.com/gpu=first");
	bytes_fini(&m);
}

/* A device cgroup's rule; a number of 0 is not said. */
struct rule {
	bool allow;
	const char *type;
	int64_t major, minor;
};

static void put_rule(struct bytes *resources, const struct rule *r)
{
	const int64_t numbers[] = {r->major, r->minor};
	struct bytes d = {0};

	put_number(&d, 1, r->allow);
	put_text(&d, 2, r->type);
	for (unsigned i = 0; i < 2; i++) {
		struct bytes number = {0};

		if (!numbers[i])
			continue;
		put_number(&number, 1, (uint64_t)numbers[i]);
		put_message(&d, 3 + i, &number);
	}
	put_message(resources, 7, &d);
}

static void a_container_with_access_to_all_devices_was_allocated_none(void **state)
{
	static const struct {
		struct rule in[2];
		bool all;
	} cases[] = {
		{{{true, "", 0, 0}, {true, "c", 1, 3}}, true},
		{{{true, "a", 0, 0}, {true, "c", 1, 3}}, true},
		{{{false, "", 0, 0}, {true, "a", -1, -1}}, true},
		{{{false, "", 0, 0}, {true, "c", 195, 1}}, false},
		{{{false, "a", -1, -1}, {false, "a", -1, -1}}, false},
		{{{true, "c", 0, 0}, {true, "b", -1, -1}},
			false}, /* mknod of any, as runc grants */
		{{{true, "a", 195, 0}, {true, "a", 0, 1}}, false},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct bytes linux = {0}, resources = {0};
		struct nri_subject s;

		put_rule(&resources, &cases[i].in[0]);
		put_rule(&resources, &cases[i].in[1]);
		put_message(&linux, 3, &resources);
		put_file(&linux, "c", 195, 1);
		decode_container(&linux, *state, &s);
		assert_int_equal(s.req.nr_files, cases[i].all ? 0 : 1);
	}
}

static void an_update_changes_the_values_that_are_not_zero(void **state)
{
	struct bytes m = {0}, has = {0}, asked = {0};
	struct nri_subject s;

	put_cpu(&has, 2048, 300000);
	put_hugepages(&has, "2MB", 4 * MiB);
	put_cpu(&asked, 0, 500000);
	put_hugepages(&asked, "2MB", 8 * MiB);
	put_hugepages(&asked, "1GB", 0);
	put_pod(&m, 1, "p", "/kubepods/burstable/podx");
	put_container(&m, 2, "c", "p", 3, &has);
	put_message(&m, 3, &asked);
	assert_int_equal(nri_subject_decode(blob_of(&m), *state, &s, NULL), 0);
	assert_int_equal(s.req.pod.qos, QOS_BURSTABLE);
	assert_int_equal(s.req.ask.cpu_milli, 2000);
	assert_int_equal(s.req.ask.cpu_limit_milli, 5000);
	assert_int_equal(s.req.ask.nr_memory, 1);
	assert_int_equal(s.req.ask.memory[0].bytes, 8 * MiB);
	assert_int_equal(s.req.unnamed, REQUEST_CPU);
	bytes_fini(&m);
}

static void an_update_marks_the_values_that_it_leaves_unchanged(void **state)
{
	static const struct {
		uint64_t shares, quota;
		const char *pages;
		unsigned want;
	} cases[] = {
		{0, 0, NULL, REQUEST_CPU | REQUEST_CPU_LIMIT | REQUEST_MEMORY},
		{1024, 0, NULL, REQUEST_CPU_LIMIT | REQUEST_MEMORY},
		{1024, (uint64_t)-1, NULL, REQUEST_MEMORY}, /* no limit any more */
		{0, 0, "2MB", REQUEST_CPU | REQUEST_CPU_LIMIT},
		{1024, 100000, "many", 0}, /* what cannot be read is reported beside it */
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct bytes m = {0}, has = {0}, asked = {0};
		struct nri_subject s;

		put_cpu(&has, 2048, 300000);
		put_cpu(&asked, cases[i].shares, cases[i].quota);
		if (cases[i].pages)
			put_hugepages(&asked, cases[i].pages, 4 * MiB);
		put_container(&m, 2, "c", "p", 3, &has);
		assert_int_equal(nri_subject_decode(blob_of(&m), *state, &s, NULL), 0);
		assert_int_equal(s.req.unnamed, 0); /* about the container itself */
		put_message(&m, 3, &asked);
		assert_int_equal(nri_subject_decode(blob_of(&m), *state, &s, NULL), 0);
		assert_int_equal(s.req.unnamed, cases[i].want);
		bytes_fini(&m);
	}
}

static void resources_that_are_out_of_range_are_reported_with_the_request(void **state)
{
	static const char *const nine[] = {
		"1KB", "2KB", "4KB", "8KB", "16KB", "32KB", "64KB", "128KB", "256KB"};
	struct bytes m = {0}, has = {0};
	struct nri_subject s;

	put_cpu(&has, 2048, 0);
	put_hugepages(&has, "many", 0); /* of no size, but none are asked for */
	put_hugepages(&has, "huge", 1);
	put_container(&m, 2, "c", "p", 3, &has);
	assert_int_equal(nri_subject_decode(blob_of(&m), *state, &s, NULL), 0);
	assert_int_equal(s.odd.code, EINVAL);
	assert_string_equal(
		s.odd.text, "container c: huge page size \"huge\" is not a size such as 2MB");
	assert_int_equal(s.req.ask.cpu_milli, 2000);
	m.len = 0;
	for (unsigned i = 0; i < sizeof nine / sizeof *nine; i++)
		put_hugepages(&has, nine[i], 1 << 20);
	put_container(&m, 2, "c", "p", 3, &has);
	assert_int_equal(nri_subject_decode(blob_of(&m), *state, &s, NULL), 0);
	assert_int_equal(s.odd.code, E2BIG);
	bytes_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_arena(every_message_carries_the_devices),
		in_arena(allocated_devices_come_from_the_container_alone),
		in_arena(only_possible_device_nodes_are_accepted),
		in_arena(of_too_many_devices_the_first_are_kept),
		in_arena(a_container_with_access_to_all_devices_was_allocated_none),
		in_arena(an_update_changes_the_values_that_are_not_zero),
		in_arena(an_update_marks_the_values_that_it_leaves_unchanged),
		in_arena(resources_that_are_out_of_range_are_reported_with_the_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
