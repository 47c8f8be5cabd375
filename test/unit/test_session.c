#include "session_rig.h"

static void assert_conversation(struct plugin *p)
{
	struct blob rest = {p->sent.at, p->sent.len};

	for (size_t i = 0; i < NR_CONVERSATION; i++)
		if (conversation[i].out)
			assert_next_sent_is(&rest, conversation[i].out);
	assert_int_equal(rest.len, 0);
	assert_string_equal(p->calls, "synchronize -;create c1;remove c1;remove c1;");
	assert_string_equal(p->events,
		"nri-registered ;nri-configured containerd v1.7.26;nri-synchronized 0 containers;");
}

/* c7 goes along with the create, but not with Synchronize. */
static void converse(struct plugin *p, const struct bytes *in, size_t step)
{
	for (size_t at = 0; at < in->len; at += step) {
		size_t n = in->len - at < step ? in->len - at : step;

		assert_int_equal(feed(p, in->at + at, n, 0), 0);
	}
}

static void the_recorded_conversation_goes_as_recorded(void **state)
{
	static const size_t steps[] = {1, 2, 3, 7, 17, 18, 19, 64, 4096, 1 << 20};

	(void)state;
	for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
		struct plugin p;
		struct bytes before = {0}, after = {0};

		plugin_init(&p);
		for (size_t i = 0; i < NR_CONVERSATION; i++)
			add_hex(i < 4 ? &before : &after, conversation[i].in);
		converse(&p, &before, steps[k]);
		p.updates[0] = (struct nri_cpuset){"c7", "8-15", "1", false};
		p.nr_updates = 1;
		converse(&p, &after, steps[k]);
		assert_conversation(&p);
		bytes_fini(&before);
		bytes_fini(&after);
		plugin_fini(&p);
	}
}

static void the_conversation_may_be_split_at_any_byte(void **state)
{
	struct bytes in = {0};

	(void)state;
	for (size_t i = 0; i < NR_CONVERSATION; i++)
		add_hex(&in, conversation[i].in);
	for (size_t cut = 0; cut <= in.len; cut++) {
		struct plugin p;

		plugin_init(&p);
		assert_int_equal(feed(&p, in.at, cut, 0), 0);
		assert_int_equal(feed(&p, in.at + cut, in.len - cut, 0), 0);
		assert_string_equal(p.calls, "synchronize -;create c1;remove c1;remove c1;");
		plugin_fini(&p);
	}
	bytes_fini(&in);
}

static void the_answer_to_the_registration_may_come_last(void **state)
{
	struct plugin p;

	(void)state;
	plugin_init(&p);
	assert_int_equal(feed_hex(&p, configure_0_6_hex, 0), 0);
	assert_int_equal(feed_hex(&p, synchronize_hex, 0), 0);
	assert_int_equal(nri_session_state(p.session), NRI_READY);
	assert_int_equal(feed_hex(&p, create_hex, 0), 0);
	assert_int_equal(feed_hex(&p, registered_hex, 0), 0);
	assert_string_equal(p.calls, "synchronize -;create c1;");
	assert_non_null(strstr(p.events, "nri-registered"));
	plugin_fini(&p);
}

static void frames_of_both_streams_may_alternate_within_messages(void **state)
{
	struct plugin p;
	struct bytes answer = {0}, call = {0}, in = {0};

	(void)state;
	plugin_init(&p);
	add_hex(&answer, registered_hex);
	add_hex(&call, configure_0_12_hex);
	for (size_t i = MUX_HEADER_BYTES; i < call.len; i++) {
		put_frame(&in, MUX_PLUGIN, call.at + i, 1);
		if (i < answer.len)
			put_frame(&in, MUX_RUNTIME, answer.at + i, 1);
		put_frame(&in, 7, "noise", 5);
		put_frame(&in, MUX_PLUGIN, "", 0);
	}
	assert_int_equal(feed_bytes(&p, &in, 0), 0);
	assert_string_equal(p.events, "nri-registered ;nri-configured containerd v1.7.24;");
	assert_string_equal(nri_session_runtime(p.session), "containerd v1.7.24");
	bytes_fini(&answer);
	bytes_fini(&call);
	plugin_fini(&p);
}

static void a_refused_registration_fails_the_session(void **state)
{
	struct plugin p;
	struct bytes in = {0};

	(void)state;
	plugin_init(&p);
	add_hex(&in, update_failed_hex);
	in.at[MUX_HEADER_BYTES + 7] = 1; /* as the answer to our first call */
	assert_int_equal(feed_bytes(&p, &in, 0), -EPROTO);
	assert_int_equal(nri_session_state(p.session), NRI_FAILED);
	assert_string_equal(nri_session_error(p.session),
		"the runtime refuses the registration: NRI update of some containers failed");
	assert_int_equal(feed_hex(&p, configure_0_6_hex, 0), -EPROTO);
	assert_int_equal(nri_session_deadline(p.session), 0);
	nri_session_tick(p.session, UINT64_MAX - 1);
	assert_non_null(strstr(nri_session_error(p.session), "refuses the registration"));
	plugin_fini(&p);
}

static void a_handshake_without_progress_is_logged_and_fails_in_the_end(void **state)
{
	static const struct {
		const char *configure; /* at 1,000 ms; NULL: it never comes */
		uint64_t late, more;
		const char *logged, *error;
	} cases[] = {
		{NULL, 5000, 50000, "the runtime has sent no Configure within 5000 ms",
			"the runtime sent no Configure within 55000 ms"},
		{configure_0_6_hex, 8000, 70000,
			"the runtime has sent no (complete) Synchronize within 7000 ms",
			"the runtime sent no (complete) Synchronize within 77000 ms"},
		{configure_0_12_hex, 8000, 70000,
			"the runtime has sent no (complete) Synchronize within 7000 ms",
			"the runtime sent no (complete) Synchronize within 77000 ms"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct plugin p;

		plugin_init(&p);
		if (cases[i].configure)
			assert_int_equal(feed_hex(&p, cases[i].configure, 1000), 0);
		assert_int_equal(nri_session_deadline(p.session), cases[i].late);
		nri_session_tick(p.session, cases[i].late - 1);
		assert_null(strstr(p.events, "nri-waiting"));
		nri_session_tick(p.session, cases[i].late);
		char *said = strstr(p.events, "nri-waiting");
		assert_true(said && strstr(said, cases[i].logged));
		assert_int_equal(nri_session_deadline(p.session), cases[i].late + cases[i].more);
		nri_session_tick(p.session, cases[i].late + cases[i].more - 1);
		assert_int_not_equal(nri_session_state(p.session), NRI_FAILED);
		assert_null(strstr(said + 1, "nri-waiting"));
		nri_session_tick(p.session, cases[i].late + cases[i].more);
		assert_int_equal(nri_session_state(p.session), NRI_FAILED);
		assert_string_equal(nri_session_error(p.session), cases[i].error);
		plugin_fini(&p);
	}
}

/* containerd synchronizes no plugin while it stops a container: for 30 s and more. */
static void a_handshake_that_comes_late_is_served(void **state)
{
	enum { CONFIGURE_MS = 20000, SYNCHRONIZE_MS = 40000 };
	struct plugin p;

	(void)state;
	plugin_init(&p);
	for (uint64_t now = 0; now < CONFIGURE_MS; now += 1000)
		nri_session_tick(p.session, now);
	assert_int_equal(feed_hex(&p, registered_hex, CONFIGURE_MS), 0);
	assert_int_equal(feed_hex(&p, configure_0_12_hex, CONFIGURE_MS), 0);
	assert_int_equal(nri_session_state(p.session), NRI_SYNCHRONIZING);
	assert_int_equal(nri_session_deadline(p.session), CONFIGURE_MS + 7000);
	for (uint64_t now = CONFIGURE_MS; now < SYNCHRONIZE_MS; now += 1000)
		nri_session_tick(p.session, now);
	assert_int_equal(feed_hex(&p, synchronize_hex, SYNCHRONIZE_MS), 0);
	assert_int_equal(nri_session_state(p.session), NRI_READY);
	assert_int_equal(nri_session_deadline(p.session), UINT64_MAX);
	plugin_fini(&p);
}

static void the_runtimes_own_timeouts_count(void **state)
{
	static const struct {
		int64_t registration, request;
		uint64_t deadline;
	} cases[] = {
		{9000, 1500, 10500},
		{0, 30000, 35000},
		{-1, INT64_MIN, 7000},
		{INT64_MAX, 1, 600001},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct plugin p;
		struct bytes conf = {0};

		plugin_init(&p);
		put_number(&conf, 4, (uint64_t)cases[i].registration);
		put_number(&conf, 5, (uint64_t)cases[i].request);
		put_text(&conf, 99, "a field of the future");
		assert_int_equal(feed_call(&p, 1, "Configure", &conf), 0);
		assert_int_equal(nri_session_deadline(p.session), cases[i].deadline);
		assert_string_equal(nri_session_runtime(p.session), "");
		plugin_fini(&p);
	}
}

static void a_ready_session_waits_without_end(void **state)
{
	struct plugin p;

	(void)state;
	plugin_init(&p);
	make_ready(&p);
	assert_int_equal(nri_session_deadline(p.session), UINT64_MAX);
	nri_session_tick(p.session, UINT64_MAX - 1);
	assert_int_equal(nri_session_state(p.session), NRI_READY);
	plugin_fini(&p);
}

/* Configure as a runtime of that NRI version sends it; NULL: one before 0.7. */
static void feed_configure(struct plugin *p, const char *nri_version, const char *config)
{
	enum { CONFIG = 1, NAME = 2, REGISTRATION_MS = 4, REQUEST_MS = 5, NRI_VERSION = 6 };
	struct bytes conf = {0};

	put_text(&conf, NAME, "cri-o");
	if (*config)
		put_text(&conf, CONFIG, config);
	if (nri_version) {
		put_number(&conf, REGISTRATION_MS, 5000);
		put_number(&conf, REQUEST_MS, 2000);
		put_text(&conf, NRI_VERSION, nri_version);
	}
	assert_int_equal(feed_call(p, 1, "Configure", &conf), 0);
}

/* The ConfigureResponse is the last that was sent; what follows the events in it is the policy. */
static void assert_policy_sent(struct plugin *p, const char *want, size_t len)
{
	static const unsigned char events[] = {0x10, 0xdf, 0x0d};
	const unsigned char *end = p->sent.at + p->sent.len;

	assert_true(p->sent.len > len + sizeof events);
	assert_memory_equal(end - len, want, len);
	assert_memory_equal(end - len - sizeof events, events, sizeof events);
}

static void the_failure_policy_is_sent_to_runtimes_that_know_it(void **state)
{
	static const struct {
		const char *nri_version;
		bool sent;
	} cases[] = {
		{NULL, false},
		{"", false},
		{"v0.12.0", false},
		{"v0.12.3", false},
		{"0.12.3-12-gabcdef", false},
		{"v0.12.4", true},
		{"0.12.4", true},
		{"v0.12.5", true},
		{"v0.13", true},
		{"v0.13.0-rc.1", true},
		{"v1.0.0", true},
		{"v0.2.99", false},
		{"0.0.0-unknown", true}, /* built without a version: it may */
		{"v", false},
		{"none", false},
		{"v-1.0.0", false},
		{"v0.12.", false},
		{"v99999999999999999999999.0.0", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct plugin p;

		init_as(&p, &(struct nri_plugin){.name = "numafit",
				    .index = "50",
				    .on_failure = {.fail_request = true, .keep_connected = true}});
		feed_configure(&p, cases[i].nri_version, "");
		if (cases[i].sent)
			assert_policy_sent(&p, "\x1a\x04\x08\x01\x10\x01", 6);
		else
			assert_policy_sent(&p, "", 0);
		if (!strstr(p.events,
			    cases[i].sent ? "nri-failure-policy fail_request=1 keep_connected=1;"
					  : "nri-failure-policy this runtime has none"))
			fail_msg("NRI version %s: %s", cases[i].nri_version, p.events);
		plugin_fini(&p);
	}
}

static void a_failure_policy_is_sent_as_it_is_wanted(void **state)
{
	static const struct {
		struct nri_failure_policy policy;
		const char *want;
		size_t len;
	} cases[] = {
		{{false, false}, "", 0},
		{{true, false}, "\x1a\x02\x08\x01", 4},
		{{false, true}, "\x1a\x02\x10\x01", 4},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct plugin p;

		init_as(&p,
			&(struct nri_plugin){
				.name = "numafit", .index = "50", .on_failure = cases[i].policy});
		feed_configure(&p, "v0.12.5", "");
		assert_policy_sent(&p, cases[i].want, cases[i].len);
		assert_int_equal(!strstr(p.events, "nri-failure-policy"), !cases[i].len);
		plugin_fini(&p);
	}
}

static const struct nri_plugin launched = {.name = "numafit", .index = "50", .launched = true};

static void a_launched_plugin_of_an_old_runtime_is_ready_without_synchronize(void **state)
{
	struct plugin p;

	(void)state;
	init_as(&p, &launched);
	assert_int_equal(nri_session_deadline(p.session), UINT64_MAX);
	feed_configure(&p, NULL, "mode: off\n");
	assert_int_equal(nri_session_state(p.session), NRI_READY);
	assert_int_equal(nri_session_deadline(p.session), UINT64_MAX);
	assert_non_null(strstr(p.events, "nri-config-ignored"));
	assert_non_null(strstr(p.events, "nri-not-synchronized"));
	assert_int_equal(feed_hex(&p, create_hex, 0), 0);
	assert_string_equal(p.calls, "create c1;");
	plugin_fini(&p);
}

static void a_launched_plugin_waits_for_synchronize_without_a_deadline(void **state)
{
	struct plugin p;

	(void)state;
	init_as(&p, &launched);
	feed_configure(&p, "v0.12.5", "");
	assert_int_equal(nri_session_state(p.session), NRI_SYNCHRONIZING);
	assert_int_equal(nri_session_deadline(p.session), UINT64_MAX);
	nri_session_tick(p.session, UINT64_MAX - 1);
	assert_int_equal(nri_session_state(p.session), NRI_SYNCHRONIZING);
	assert_int_equal(feed_hex(&p, synchronize_hex, 0), 0);
	assert_int_equal(nri_session_state(p.session), NRI_READY);
	plugin_fini(&p);
}

static void put_running(struct bytes *out, const char *id, const char *pod_id)
{
	struct bytes c = {0};

	put_text(&c, 1, id);
	put_text(&c, 2, pod_id);
	put_message(out, 2, &c);
}

static void chunks_are_acknowledged_and_handled_as_one(void **state)
{
	struct plugin p;
	struct bytes chunk = {0}, pod = {0};
	uint32_t id = 5; /* the runtime burnt an id */

	(void)state;
	plugin_init(&p);
	p.updates[0] = (struct nri_cpuset){"c7", "8-15", "1", false};
	p.nr_updates = 1;
	assert_int_equal(feed_hex(&p, configure_0_12_hex, 0), 0);
	p.sent.len = 0;
	put_running(&chunk, "before-its-pod", "p1");
	put_number(&chunk, 3, 1);
	assert_int_equal(feed_call(&p, id, "Synchronize", &chunk), 0);
	for (unsigned i = 0; i < 100; i++) {
		put_number(&chunk, 3, 1);
		assert_int_equal(feed_call(&p, id += 2, "Synchronize", &chunk), 0);
	}
	assert_string_equal(p.calls, "");
	put_text(&pod, 1, "p1");
	put_message(&chunk, 1, &pod);
	put_running(&chunk, "last", "p1");
	assert_int_equal(feed_call(&p, id += 2, "Synchronize", &chunk), 0);
	assert_string_equal(p.calls, "synchronize before-its-pod;and last;");
	struct blob rest = {p.sent.at, p.sent.len};
	for (unsigned i = 0; i < 101; i++) {
		struct sent m = next_sent(&rest);

		assert_int_equal(m.id, 5 + 2 * i);
		assert_int_equal(m.body.len, 4);
		assert_memory_equal(m.body.data, "\x12\x02\x10\x01", 4); /* more, and no update */
	}
	struct sent last = next_sent(&rest);
	assert_int_equal(last.body.len, 0x19);
	assert_int_equal(rest.len, 0);
	plugin_fini(&p);
}

static void a_synchronize_of_15_mb_is_taken(void **state)
{
	enum { CONTAINERS = 1500, FILL = 10000 };
	static const char fill[FILL];
	struct plugin p;
	struct bytes payload = {0};

	(void)state;
	plugin_init(&p);
	assert_int_equal(feed_hex(&p, configure_0_6_hex, 0), 0);
	for (unsigned i = 0; i < CONTAINERS; i++) {
		struct bytes c = {0};
		char id[16];

		(void)snprintf(id, sizeof id, "c%u", i);
		put_text(&c, 1, id);
		put_bytes(&c, 8, fill, FILL); /* env, which we do not read */
		put_message(&payload, 2, &c);
	}
	assert_true(payload.len > 15000000);
	assert_int_equal(feed_call(&p, 3, "Synchronize", &payload), 0);
	assert_int_equal(p.nr_running, CONTAINERS);
	assert_int_equal(nri_session_state(p.session), NRI_READY);
	plugin_fini(&p);
}

static void too_many_running_containers_fail_the_session(void **state)
{
	enum { CHUNK = 30 << 20, MANY = 16385 };
	struct plugin p;
	struct bytes payload = {0};
	auto_free char *fill = xcalloc(CHUNK, 1);

	(void)state;
	plugin_init(&p);
	assert_int_equal(feed_hex(&p, configure_0_12_hex, 0), 0);
	for (uint32_t id = 3; id <= 7; id += 2) {
		put_number(&payload, 3, 1);
		put_bytes(&payload, 9, fill, CHUNK);
		assert_int_equal(feed_call(&p, id, "Synchronize", &payload), id < 7 ? 0 : -EPROTO);
	}
	assert_string_equal(nri_session_error(p.session),
		"Synchronize: more than 67108864 bytes of pods and containers");
	plugin_fini(&p);
	plugin_init(&p);
	assert_int_equal(feed_hex(&p, configure_0_12_hex, 0), 0);
	for (unsigned i = 0; i < MANY; i++)
		put_running(&payload, "c", "p");
	assert_int_equal(feed_call(&p, 3, "Synchronize", &payload), -E2BIG);
	assert_string_equal(
		nri_session_error(p.session), "Synchronize: 16385 containers: the limit is 16384");
	assert_string_equal(p.calls, "");
	plugin_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_recorded_conversation_goes_as_recorded),
		cmocka_unit_test(the_conversation_may_be_split_at_any_byte),
		cmocka_unit_test(the_answer_to_the_registration_may_come_last),
		cmocka_unit_test(frames_of_both_streams_may_alternate_within_messages),
		cmocka_unit_test(a_refused_registration_fails_the_session),
		cmocka_unit_test(a_handshake_without_progress_is_logged_and_fails_in_the_end),
		cmocka_unit_test(a_handshake_that_comes_late_is_served),
		cmocka_unit_test(the_runtimes_own_timeouts_count),
		cmocka_unit_test(a_ready_session_waits_without_end),
		cmocka_unit_test(the_failure_policy_is_sent_to_runtimes_that_know_it),
		cmocka_unit_test(a_failure_policy_is_sent_as_it_is_wanted),
		cmocka_unit_test(a_launched_plugin_of_an_old_runtime_is_ready_without_synchronize),
		cmocka_unit_test(a_launched_plugin_waits_for_synchronize_without_a_deadline),
		cmocka_unit_test(chunks_are_acknowledged_and_handled_as_one),
		cmocka_unit_test(a_synchronize_of_15_mb_is_taken),
		cmocka_unit_test(too_many_running_containers_fail_the_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
