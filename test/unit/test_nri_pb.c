#include "nri_pb_rig.h"

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

static void encoded_messages_equal_the_recorded_ones(void **state)
{
	static const struct nri_cpuset c7 = {"c7", "8-15", "1", false};
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

static void a_quota_is_set_where_that_is_said_and_nowhere_else(void **state)
{
	const struct nri_cpuset sets[] = {{"c7", "8-15", "1", 400000}, {"c8", "0-7", "0", 0}};
	const struct nri_reply lifted = {.adjust = true,
				       .cpus = "4",
				       .mems = "0",
				       .cpu_quota = NRI_NO_QUOTA,
				       .updates = sets,
				       .nr_updates = 2},
			       kept = {.adjust = true, .cpus = "4", .mems = "0"};
	struct nri_answer answer;
	struct blob out;

	assert_int_equal(nri_created_encode(&lifted, *state, &out, NULL), 0);
	assert_int_equal(nri_created_decode(out, *state, &answer, NULL), 0);
	assert_int_equal(answer.cpu_quota, NRI_NO_QUOTA);
	assert_int_equal(answer.updates[0].cpu_quota, 400000);
	assert_int_equal(answer.updates[1].cpu_quota, 0);
	assert_int_equal(nri_created_encode(&kept, *state, &out, NULL), 0);
	assert_int_equal(nri_created_decode(out, *state, &answer, NULL), 0);
	assert_int_equal(answer.cpu_quota, 0);
}

/* The wire's bytes, by hand: a tag, a length, what it holds. */
static bool has_bytes(struct blob in, const char *bytes, size_t len)
{
	return memmem(in.data, in.len, bytes, len) != NULL;
}
#define HAS(in, bytes) has_bytes(in, bytes, sizeof(bytes) - 1)

static void wishes_and_variables_are_in_the_answer_where_there_are_any(void **state)
{
	static const struct {
		enum wish_memory policy;
		const char *bytes; /* of LinuxMemoryPolicy, field 12 */
		size_t len;
	} policies[] = {
		{WISH_MEMORY_BIND, "\x62\x07\x08\x02\x12\x03" "0-1", 9},
		{WISH_MEMORY_INTERLEAVE, "\x62\x07\x08\x03\x12\x03" "0-1", 9},
		{WISH_MEMORY_PREFERRED, "\x62\x07\x08\x05\x12\x03" "0-1", 9},
		{WISH_MEMORY_LOCAL, "\x62\x02\x08\x04", 4},
	};
	const struct key_value env[] = {{"NUMAFIT_CPUS", "4"}, {"B", ""}};
	struct nri_reply reply = {.adjust = true, .cpus = "4", .mems = "0-1"};
	struct blob out;

	assert_int_equal(nri_created_encode(&reply, *state, &out, NULL), 0);
	assert_false(HAS(out, "\x62"));
	for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
		reply.memory_policy = policies[i].policy;
		assert_int_equal(nri_created_encode(&reply, *state, &out, NULL), 0);
		assert_true(has_bytes(out, policies[i].bytes, policies[i].len));
	}
	reply.rdt_class = "gold";
	reply.blockio_class = "slow";
	reply.env = env;
	reply.nr_env = 2;
	assert_int_equal(nri_created_encode(&reply, *state, &out, NULL), 0);
	assert_true(HAS(out, "\x22\x06\x0a\x04" "slow" "\x2a\x06\x0a\x04" "gold"));
	assert_true(HAS(out, "\x22\x11\x0a\x0c" "NUMAFIT_CPUS" "\x12\x01" "4" "\x22\x03\x0a\x01" "B"));
	reply.env = (const struct key_value[]){{"A", "\xed\xa0\x80"}};
	reply.nr_env = 1;
	assert_int_equal(nri_created_encode(&reply, *state, &out, NULL), -EILSEQ);
}

/* A container "c" with something mounted there, by its fields. */
static bool has_own_mount(const char *destination, struct arena *a)
{
	const unsigned char len = (unsigned char)strlen(destination);
	unsigned char bytes[256] = {0x12, (unsigned char)(len + 7), 0x0a, 1, 'c', 0x4a,
		(unsigned char)(len + 2), 0x0a, len};
	struct nri_subject s;

	memcpy(bytes + 9, destination, len);
	assert_int_equal(nri_subject_decode((struct blob){bytes, 9U + len}, a, &s, NULL), 0);
	assert_string_equal(s.req.container_id, "c");
	return s.req.has_own_mount;
}

static void a_mount_of_its_own_where_its_file_would_be_is_seen(void **state)
{
	assert_true(has_own_mount("/run/numafit", *state));
	assert_true(has_own_mount("/run/numafit/self", *state));
	assert_false(has_own_mount("/run/numafit2", *state));
	assert_false(has_own_mount("/run", *state));
	assert_false(has_own_mount("", *state));
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
	static const struct key_value pod_notes[] = {{"a", "1"}, {"numafit.io/cpus", "2"}};
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
		NULL, 0, 6 * 1024};
	struct blob payload;
	struct nri_subject s;
	struct err e;

	assert_int_equal(nri_subject_encode(NRI_EVENT_CREATE, false, &c, *state, &payload, &e), 0);
	assert_int_equal(nri_subject_decode(payload, *state, &s, &e), 0);
	assert_int_equal(s.odd.code, 0);
	assert_string_equal(s.req.pod.sandbox_id, "s1");
	assert_string_equal(pod_annotation(&s.req.pod, "numafit.io/cpus"), "2");
	assert_true(s.req.pod.totals.known);
	assert_int_equal(s.req.pod.totals.cpu_milli, 6000);
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

/* A pod with so many annotations of three bytes and one that is read, and containers of it. */
static void put_pod_with_notes(struct bytes *m, unsigned nr_notes, unsigned nr_containers)
{
	struct bytes pod = {0}, none = {0};
	char text[16];

	put_text(&pod, 1, "p");
	for (unsigned i = 0; i <= nr_notes; i++) {
		struct bytes note = {0};

		(void)snprintf(text, sizeof text, "%03x", i);
		put_text(&note, 1, i < nr_notes ? text : "numafit.io/cpus");
		put_text(&note, 2, i < nr_notes ? "" : "shared");
		put_message(&pod, 6, &note);
	}
	put_message(m, 1, &pod);
	for (unsigned i = 0; i < nr_containers; i++) {
		(void)snprintf(text, sizeof text, "c%03u", i);
		put_container(m, 2, text, "p", 3, &none);
	}
}

/* Bytes that a container takes beside the pod. */
static size_t bytes_of_each(unsigned nr_notes, struct nri_running *all, struct arena *a)
{
	enum { CONTAINERS = 100 };
	size_t bytes[2];

	for (unsigned many = 0; many < 2; many++) {
		struct bytes m = {0};
		size_t before = a->given;

		put_pod_with_notes(&m, nr_notes, many ? 1 + CONTAINERS : 1);
		assert_int_equal(nri_running_decode(blob_of(&m), 999, a, all, NULL), 0);
		bytes[many] = a->given - before;
		bytes_fini(&m);
	}
	return (bytes[1] - bytes[0]) / CONTAINERS;
}

static void a_pod_is_read_once_for_all_its_containers(void **state)
{
	enum { NOTES = 4000 };
	struct nri_running all;
	size_t without = bytes_of_each(0, &all, *state);

	assert_int_equal(bytes_of_each(NOTES, &all, *state), without);
	assert_int_equal(all.nr_pods, 1);
	for (size_t i = 0; i < all.nr; i++) {
		assert_ptr_equal(all.containers[i].pod.annotations, all.pods[0].annotations);
		assert_string_equal(all.containers[i].pod.sandbox_id, "p");
	}
}

static void annotations_that_nobody_reads_are_left_out(void **state)
{
	struct bytes m = {0};
	struct nri_running all;

	put_pod_with_notes(&m, 50, 1);
	assert_int_equal(nri_running_decode(blob_of(&m), 9, *state, &all, NULL), 0);
	assert_int_equal(all.pods[0].nr_annotations, 1);
	assert_int_equal(all.containers[0].pod.nr_annotations, 1);
	assert_string_equal(pod_annotation(&all.containers[0].pod, "numafit.io/cpus"), "shared");
	bytes_fini(&m);
}

static void strings_that_are_not_utf8_are_neither_read_nor_written(void **state)
{
	static const struct nri_cpuset bad = {"c\xff", "0", "0", false};
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_arena(encoded_messages_equal_the_recorded_ones),
		in_arena(a_quota_is_set_where_that_is_said_and_nowhere_else),
		in_arena(wishes_and_variables_are_in_the_answer_where_there_are_any),
		in_arena(a_mount_of_its_own_where_its_file_would_be_is_seen),
		in_arena(recorded_configurations_are_read),
		in_arena(recorded_events_are_read),
		in_arena(a_container_is_the_same_after_encoding_and_decoding),
		cmocka_unit_test(the_flag_for_more_chunks_is_read_from_the_outermost_fields),
		in_arena(chunks_join_in_any_order_and_without_their_pods),
		in_arena(a_container_that_is_reported_twice_counts_once),
		in_arena(a_pod_is_read_once_for_all_its_containers),
		in_arena(annotations_that_nobody_reads_are_left_out),
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
