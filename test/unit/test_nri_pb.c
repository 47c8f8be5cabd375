#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "nri_wire.h"
#include <nri/nri_runtime_pb.h>

static const uint64_t MiB = UINT64_C(1) << 20, GiB = UINT64_C(1) << 30;

/* The NRI payload of a recorded line; the line lives in the arena. */
static struct blob payload_of(const char *hex, struct arena *a)
{
	struct bytes line = {0};
	struct ttrpc_request req;
	struct ttrpc_response r;

	add_hex(&line, hex);
	bool call = line.at[MUX_HEADER_BYTES + 8] == TYPE_REQUEST;
	int rc = call ? ttrpc_request_decode(body_of(&line), a, &req, NULL)
		      : ttrpc_response_decode(body_of(&line), a, &r, NULL);
	assert_int_equal(rc, 0);
	bytes_fini(&line);
	return call ? req.payload : r.payload;
}

static void assert_payload(struct blob got, const char *hex, struct arena *a)
{
	struct blob want = payload_of(hex, a);

	assert_int_equal(got.len, want.len);
	assert_memory_equal(got.data, want.data, want.len);
}

static int arena_setup(void **state)
{
	struct arena *a = xcalloc(1, sizeof *a);

	arena_init(a, TTRPC_MEMORY_MAX);
	*state = a;
	return 0;
}

static int arena_teardown(void **state)
{
	arena_fini(*state);
	free(*state);
	return 0;
}

static void encoded_messages_equal_the_recorded_ones(void **state)
{
	static const struct nri_cpuset c7 = {"c7", "8-15", "1"};
	struct nri_reply none = {0}, one = {.updates = &c7, .nr_updates = 1};
	struct nri_reply adjust = {.adjust = true, .cpus = "0-7", .mems = "0"}, both = adjust;
	struct blob out;

	both.updates = &c7;
	both.nr_updates = 1;
	assert_int_equal(nri_register_encode("numapin", "10", *state, &out, NULL), 0);
	assert_payload(out, register_hex, *state);
	assert_int_equal(nri_configured_encode(0x7ff, NULL, *state, &out, NULL), 0);
	assert_payload(out, all_events_hex, *state);
	assert_int_equal(nri_configured_encode(0x6df, NULL, *state, &out, NULL), 0);
	assert_payload(out, configured_hex, *state);
	assert_int_equal(nri_updates_encode(&none, *state, &out, NULL), 0);
	assert_payload(out, synchronized_hex, *state);
	assert_int_equal(nri_chunk_encode(*state, &out, NULL), 0);
	assert_payload(out, chunk_taken_hex, *state);
	assert_int_equal(nri_updates_encode(&one, *state, &out, NULL), 0);
	assert_payload(out, synchronized_c7_hex, *state);
	assert_payload(out, update_containers_hex, *state); /* the same list, unasked */
	assert_int_equal(nri_created_encode(&none, *state, &out, NULL), 0);
	assert_int_equal(out.len, 0);
	assert_int_equal(nri_created_encode(&adjust, *state, &out, NULL), 0);
	assert_payload(out, created_hex, *state);
	assert_int_equal(nri_created_encode(&both, *state, &out, NULL), 0);
	assert_payload(out, created_c7_hex, *state);
}

static void recorded_configurations_are_read(void **state)
{
	static const struct {
		const char *hex, *version, *nri_version;
		int64_t registration_ms, request_ms;
	} cases[] = {
		{configure_0_6_hex, "v1.7.24", "", 0, 0},
		{configure_0_8_hex, "v1.7.26", "", 5000, 2000},
		{configure_0_12_hex, "v1.7.24", "0.0.0-unknown", 5000, 2000},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nri_configuration conf;

		assert_int_equal(nri_configuration_decode(
					 payload_of(cases[i].hex, *state), *state, &conf, NULL),
			0);
		assert_string_equal(conf.runtime_name, "containerd");
		assert_string_equal(conf.runtime_version, cases[i].version);
		assert_string_equal(conf.nri_version, cases[i].nri_version);
		assert_string_equal(conf.config, "");
		assert_int_equal(conf.registration_timeout_ms, cases[i].registration_ms);
		assert_int_equal(conf.request_timeout_ms, cases[i].request_ms);
	}
}

static void assert_is_pod0(const struct pod *p)
{
	assert_string_equal(p->sandbox_id, "p0");
	assert_string_equal(p->uid, "u0");
	assert_string_equal(p->ns, "default");
	assert_string_equal(p->name, "pod0");
	assert_int_equal(p->qos, QOS_GUARANTEED);
	assert_int_equal(p->source, POD_FROM_RUNTIME);
}

static void recorded_events_are_read(void **state)
{
	struct nri_subject s;
	struct nri_running all;

	assert_int_equal(
		nri_running_decode(payload_of(synchronize_hex, *state), 9, *state, &all, NULL), 0);
	assert_int_equal(all.nr, 0);
	assert_int_equal(nri_subject_decode(payload_of(create_hex, *state), *state, &s, NULL), 0);
	assert_is_pod0(&s.req.pod);
	assert_string_equal(s.req.container_id, "c1");
	assert_string_equal(s.req.ask.name, "c0");
	assert_int_equal(s.req.ask.cpu_milli, 2000);
	assert_int_equal(s.req.ask.cpu_limit_milli, 2000);
	assert_int_equal(s.req.ask.nr_memory, 0);
	assert_string_equal(s.req.cpus, "");
	assert_null(s.req.placement);
	assert_int_equal(
		nri_state_change_decode(payload_of(state_change_hex, *state), *state, &s, NULL), 0);
	assert_int_equal(s.event, NRI_EVENT_REMOVE);
	assert_is_pod0(&s.req.pod);
	assert_string_equal(s.req.container_id, "c1");
	assert_int_equal(nri_subject_decode(payload_of(remove_hex, *state), *state, &s, NULL), 0);
	assert_int_equal(s.event, NRI_EVENT_NONE);
	assert_is_pod0(&s.req.pod);
	assert_string_equal(s.req.container_id, "c1");
}

static void a_container_is_the_same_after_encoding_and_decoding(void **state)
{
	static const struct key_value pod_notes[] = {{"a", "1"}, {"b", "2"}};
	static const struct key_value notes[] = {
		{"other", "x"}, {NRI_PLACEMENT_ANNOTATION, "{\"cpus\":\"2-3\"}"}};
	const struct nri_container c = {"s1", "uid1", "ns1", "pod1", "/kubepods/pod1", pod_notes, 2,
		"id1", "web",
		{.has_shares = true,
			.cpu_shares = 4096,
			.has_quota = true,
			.cpu_quota = 400000,
			.has_period = true,
			.cpu_period = 100000,
			.has_memory_limit = true,
			.memory_limit = (int64_t)(3 * GiB),
			.nr_hugepages = 3,
			.hugepages = {{GiB, 2 * GiB}, {2 * MiB, 0}, {64 << 10, 128 << 10}}},
		"2-3", "0", notes, 2, INT64_C(1700000000000000001), "/kubepods/pod1/id1", NULL, 0,
		NULL, 0};
	struct blob payload;
	struct nri_subject s;
	struct err e;

	assert_int_equal(nri_subject_encode(NRI_EVENT_CREATE, false, &c, *state, &payload, &e), 0);
	assert_int_equal(nri_subject_decode(payload, *state, &s, &e), 0);
	assert_int_equal(s.odd.code, 0);
	assert_string_equal(s.req.pod.sandbox_id, "s1");
	assert_string_equal(pod_annotation(&s.req.pod, "b"), "2");
	assert_string_equal(s.req.container_id, "id1");
	assert_string_equal(s.req.ask.name, "web");
	assert_int_equal(s.req.created_at_ns, INT64_C(1700000000000000001));
	assert_int_equal(s.req.ask.cpu_milli, 4000);
	assert_int_equal(s.req.ask.cpu_limit_milli, 4000);
	assert_int_equal(s.req.ask.nr_memory, 3);
	assert_int_equal(s.req.ask.memory[0].bytes, 3 * GiB);
	assert_int_equal(s.req.ask.memory[1].page_bytes, 64 << 10);
	assert_int_equal(s.req.ask.memory[1].bytes, 128 << 10);
	assert_int_equal(s.req.ask.memory[2].page_bytes, GiB);
	assert_int_equal(s.req.ask.memory[2].bytes, 2 * GiB);
	assert_string_equal(s.req.cpus, "2-3");
	assert_string_equal(s.req.mems, "0");
	assert_string_equal(s.req.placement, "{\"cpus\":\"2-3\"}");
	assert_string_equal(s.req.cgroup, "/kubepods/pod1/id1");
}

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

static void put_container(struct bytes *out, unsigned field, const char *id, const char *pod,
	unsigned container_state, struct bytes *resources)
{
	struct bytes c = {0}, linux = {0};

	put_text(&c, 1, id);
	put_text(&c, 2, pod);
	put_number(&c, 4, container_state);
	put_message(&linux, 3, resources);
	put_text(&linux, 5, "kubepods-burstable-pod1.slice:cri-containerd:c");
	put_message(&c, 11, &linux);
	put_message(out, field, &c);
}

static void put_pod(struct bytes *out, unsigned field, const char *id, const char *cgroup_parent)
{
	struct bytes pod = {0}, linux = {0};

	put_text(&pod, 1, id);
	put_text(&linux, 3, cgroup_parent);
	put_message(&pod, 8, &linux);
	put_message(out, field, &pod);
}

static struct blob blob_of(const struct bytes *b)
{
	return (struct blob){b->at, b->len};
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

static void the_flag_for_more_chunks_is_read_from_the_outermost_fields(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		int rc;
		bool more;
	} cases[] = {
		{"", 0, 0, false}, {"\x18\x01", 2, 0, true}, {"\x18\x00", 2, 0, false},
		{"\x18\x01\x18\x00", 4, 0, false}, /* the last one counts */
		{"\x12\x02\x18\x01", 4, 0, false}, /* a container's own field 3 */
		{"\x12\x02\x18\x00\x18\x01\x0a\x00", 8, 0, true},
		{"\x21"
		 "12345678"
		 "\x2d"
		 "1234"
		 "\x18\x81\x00",
			17, 0, true},
		{"\x18", 1, -EBADMSG, false},
		{"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, -EBADMSG, false},
		{"\x12\x01", 2, -EBADMSG, false},
		{"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, -EBADMSG, false},
		{"\x2d"
		 "123",
			4, -EBADMSG, false},
		{"\x1a\x00", 2, -EBADMSG, false}, /* no number */
		{"\x1b\x1c", 2, -EBADMSG, false}, /* a group */
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct blob payload = {cases[i].bytes, cases[i].len};
		bool more = false;

		assert_int_equal(nri_chunk_decode(payload, &more, NULL), cases[i].rc);
		assert_int_equal(more, cases[i].more);
	}
}

static void chunks_join_in_any_order_and_without_their_pods(void **state)
{
	struct bytes m = {0}, none = {0};
	struct nri_running all;
	struct err e;

	put_container(&m, 2, "early", "p2", 3, &none);
	put_number(&m, 3, 1); /* more */
	put_pod(&m, 1, "p2", "/kubepods/besteffort/pod2");
	put_container(&m, 2, "stopped", "p2", 4, &none);
	put_number(&m, 3, 1);
	put_pod(&m, 1, "p1", "/kubepods/pod1");
	put_container(&m, 2, "late", "p1", 1, &none);
	put_container(&m, 2, "", "p1", 3, &none);
	put_container(&m, 2, "orphan", "p9", 2, &none);
	assert_int_equal(nri_running_decode(blob_of(&m), 5, *state, &all, &e), 0);
	assert_int_equal(all.nr, 3);
	assert_string_equal(all.containers[0].container_id, "early");
	assert_int_equal(all.containers[0].pod.qos, QOS_BEST_EFFORT);
	assert_string_equal(all.containers[1].container_id, "late");
	assert_int_equal(all.containers[1].pod.qos, QOS_GUARANTEED);
	assert_string_equal(all.containers[2].container_id, "orphan");
	assert_false(all.containers[0].in_creation || all.containers[2].in_creation);
	assert_true(all.containers[1].in_creation);
	assert_string_equal(all.containers[2].pod.sandbox_id, "p9");
	assert_string_equal(all.containers[2].pod.name, "");
	assert_int_equal(all.containers[2].pod.qos, QOS_BURSTABLE); /* from its own cgroup */
	assert_int_equal(nri_running_decode(blob_of(&m), 4, *state, &all, &e), -E2BIG);
	assert_string_equal(e.text, "5 containers: the limit is 4");
	bytes_fini(&m);
}

static void a_container_that_is_reported_twice_counts_once(void **state)
{
	struct bytes m = {0}, none = {0};
	struct nri_running all;

	put_container(&m, 2, "b", "p1", 3, &none);
	put_container(&m, 2, "a", "p1", 4, &none);
	put_container(&m, 2, "b", "p1", 3, &none);
	put_container(&m, 2, "a", "p1", 3, &none);
	assert_int_equal(nri_running_decode(blob_of(&m), 9, *state, &all, NULL), 0);
	assert_int_equal(all.nr, 2);
	assert_string_equal(all.containers[0].container_id, "a");
	assert_string_equal(all.containers[1].container_id, "b");
	bytes_fini(&m);
}

static void strings_that_are_not_utf8_are_neither_read_nor_written(void **state)
{
	static const struct nri_cpuset bad = {"c\xff", "0", "0"};
	struct nri_reply update = {.updates = &bad, .nr_updates = 1};
	struct nri_reply note = {.adjust = true, .annotation = {"k", "\xed\xa0\x80"}};
	struct bytes m = {0}, none = {0};
	struct nri_subject s;
	struct blob out;
	struct err e;

	put_container(&m, 2, "c\xc0\x80", "p", 3, &none);
	assert_int_equal(nri_subject_decode(blob_of(&m), *state, &s, &e), -EBADMSG);
	assert_string_equal(e.text, "Container.id is not UTF-8");
	assert_int_equal(nri_updates_encode(&update, *state, &out, &e), -EILSEQ);
	assert_string_equal(e.text, "ContainerUpdate.container_id is not UTF-8");
	assert_int_equal(nri_created_encode(&note, *state, &out, &e), -EILSEQ);
	assert_string_equal(e.text, "KeyValue.value is not UTF-8");
	bytes_fini(&m);
}

static void a_malformed_message_is_refused(void **state)
{
	struct nri_subject s;
	struct nri_running all;
	struct nri_configuration conf;
	struct err e;

	assert_int_equal(
		nri_subject_decode((struct blob){"\x0a\x05p", 3}, *state, &s, &e), -EBADMSG);
	assert_string_equal(e.text, "3 bytes are no UpdateContainerRequest");
	assert_int_equal(
		nri_state_change_decode((struct blob){"\x08", 1}, *state, &s, &e), -EBADMSG);
	assert_int_equal(
		nri_running_decode((struct blob){"\x12\x01", 2}, 9, *state, &all, &e), -EBADMSG);
	assert_int_equal(nri_configuration_decode((struct blob){"\x12\x01", 2}, *state, &conf, &e),
		-EBADMSG);
}

static void a_message_that_expands_too_much_hits_the_limit_of_the_arena(void **state)
{
	enum { EMPTY_CONTAINERS = 4 << 20 };
	struct bytes m = {0};
	struct nri_running all;
	struct err e;

	for (unsigned i = 0; i < EMPTY_CONTAINERS; i++)
		bytes_append(&m, "\x12", 2); /* with its NUL: an empty container */
	assert_int_equal(nri_running_decode(blob_of(&m), SIZE_MAX, *state, &all, &e), -EBADMSG);
	bytes_fini(&m);
}

static void an_unknown_event_is_read_as_none(void **state)
{
	struct bytes m = {0};
	struct nri_subject s;

	put_number(&m, 1, NR_NRI_EVENTS);
	assert_int_equal(nri_state_change_decode(blob_of(&m), *state, &s, NULL), 0);
	assert_int_equal(s.event, NRI_EVENT_NONE);
	m.len = 0;
	put_number(&m, 1, UINT64_MAX);
	assert_int_equal(nri_state_change_decode(blob_of(&m), *state, &s, NULL), 0);
	assert_int_equal(s.event, NRI_EVENT_NONE);
	bytes_fini(&m);
}

static void recorded_answers_are_read_by_the_runtimes_side(void **state)
{
	struct nri_answer answer;
	uint32_t events;
	bool more;
	const char *name, *index;

	assert_int_equal(nri_registration_decode(
				 payload_of(register_hex, *state), *state, &name, &index, NULL),
		0);
	assert_string_equal(name, "numapin");
	assert_string_equal(index, "10");
	assert_int_equal(
		nri_events_decode(payload_of(configured_hex, *state), *state, &events, NULL), 0);
	assert_int_equal(events, 0x6df);
	assert_int_equal(nri_synchronized_decode(
				 payload_of(chunk_taken_hex, *state), *state, &answer, &more, NULL),
		0);
	assert_true(more);
	assert_int_equal(answer.nr_updates, 0);
	assert_int_equal(
		nri_created_decode(payload_of(created_c7_hex, *state), *state, &answer, NULL), 0);
	assert_string_equal(answer.cpus, "0-7");
	assert_string_equal(answer.mems, "0");
	assert_int_equal(answer.nr_updates, 1);
	assert_string_equal(answer.updates[0].container_id, "c7");
	assert_string_equal(answer.updates[0].cpus, "8-15");
	assert_string_equal(answer.updates[0].mems, "1");
	assert_true(answer.updates[0].ignore_failure);
	assert_int_equal(
		nri_updates_decode(payload_of(synchronized_c7_hex, *state), *state, &answer, NULL),
		0);
	assert_int_equal(answer.nr_updates, 1);
}

static void the_annotation_goes_with_the_adjustment(void **state)
{
	struct nri_reply reply = {
		.adjust = true, .cpus = "1", .mems = "0", .annotation = {"key", "value"}};
	struct nri_answer answer;
	struct blob out;

	assert_int_equal(nri_created_encode(&reply, *state, &out, NULL), 0);
	assert_int_equal(nri_created_decode(out, *state, &answer, NULL), 0);
	assert_int_equal(answer.nr_annotations, 1);
	assert_string_equal(answer.annotations[0].key, "key");
	assert_string_equal(answer.annotations[0].value, "value");
}

static void a_configuration_goes_out_as_recorded(void **state)
{
	struct nri_configuration old = {"containerd", "v1.7.24", 0, 0, "", ""},
				 newer = {"containerd", "v1.7.26", 5000, 2000, "", ""};
	struct blob out;

	assert_int_equal(nri_configuration_encode(&old, *state, &out, NULL), 0);
	assert_payload(out, configure_0_6_hex, *state);
	assert_int_equal(nri_configuration_encode(&newer, *state, &out, NULL), 0);
	assert_payload(out, configure_0_8_hex, *state);
}

#define in_arena(test) cmocka_unit_test_setup_teardown(test, arena_setup, arena_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_arena(encoded_messages_equal_the_recorded_ones),
		in_arena(recorded_configurations_are_read),
		in_arena(recorded_events_are_read),
		in_arena(a_container_is_the_same_after_encoding_and_decoding),
		in_arena(every_message_carries_the_devices),
		in_arena(allocated_devices_come_from_the_container_alone),
		in_arena(only_possible_device_nodes_are_accepted),
		in_arena(of_too_many_devices_the_first_are_kept),
		in_arena(a_container_with_access_to_all_devices_was_allocated_none),
		in_arena(an_update_changes_the_values_that_are_not_zero),
		in_arena(an_update_marks_the_values_that_it_leaves_unchanged),
		in_arena(resources_that_are_out_of_range_are_reported_with_the_request),
		cmocka_unit_test(the_flag_for_more_chunks_is_read_from_the_outermost_fields),
		in_arena(chunks_join_in_any_order_and_without_their_pods),
		in_arena(a_container_that_is_reported_twice_counts_once),
		in_arena(strings_that_are_not_utf8_are_neither_read_nor_written),
		in_arena(a_malformed_message_is_refused),
		in_arena(a_message_that_expands_too_much_hits_the_limit_of_the_arena),
		in_arena(an_unknown_event_is_read_as_none),
		in_arena(recorded_answers_are_read_by_the_runtimes_side),
		in_arena(the_annotation_goes_with_the_adjustment),
		in_arena(a_configuration_goes_out_as_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
