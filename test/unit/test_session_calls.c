/* What a session does with the calls of a runtime once it is ready. */
#include "session_rig.h"

/* The next message sent answers id; its status and, without one, its payload. */
static int next_status(struct plugin *p, uint32_t id, char *message, size_t cap)
{
	struct blob rest = {p->sent.at, p->sent.len};
	struct ttrpc_response r;
	struct arena a;
	struct sent m = next_sent(&rest);

	arena_init(&a, TTRPC_MEMORY_MAX);
	assert_int_equal(m.stream, MUX_PLUGIN);
	assert_int_equal(m.id, id);
	assert_int_equal(m.type, TYPE_RESPONSE);
	assert_int_equal(ttrpc_response_decode(m.body, &a, &r, NULL), 0);
	(void)snprintf(message, cap, "%s", r.message);
	arena_fini(&a);
	memmove(p->sent.at, rest.data, rest.len);
	p->sent.len = rest.len;
	return r.status;
}

static void assert_status(struct plugin *p, uint32_t id, int status, const char *text)
{
	char message[512];

	assert_int_equal(next_status(p, id, message, sizeof message), status);
	if (!strstr(message, text))
		fail_msg("\"%s\" does not hold \"%s\"", message, text);
}

static void put_subject(struct bytes *payload, const char *pod_id, const char *container_id)
{
	struct bytes pod = {0}, container = {0};

	put_text(&pod, 1, pod_id);
	put_message(payload, 1, &pod);
	put_text(&container, 1, container_id);
	put_message(payload, 2, &container);
}

static void both_ways_to_send_an_event_call_the_same_handler(void **state)
{
	static const struct {
		enum nri_event event;
		const char *method, *calls;
	} cases[] = {
		{NRI_EVENT_RUN_POD, "RunPodSandbox", "run-pod p1;"},
		{NRI_EVENT_STOP_POD, "StopPodSandbox", "remove-pod p1;"},
		{NRI_EVENT_REMOVE_POD, "RemovePodSandbox", "remove-pod p1;"},
		{NRI_EVENT_CREATE, "CreateContainer", "create c1;"},
		{NRI_EVENT_POST_CREATE, "PostCreateContainer", "live c1;"},
		{NRI_EVENT_START, "StartContainer", ""},
		{NRI_EVENT_POST_START, "PostStartContainer", "started c1;"},
		{NRI_EVENT_UPDATE, "UpdateContainer", "update c1;"},
		{NRI_EVENT_POST_UPDATE, "PostUpdateContainer", ""},
		{NRI_EVENT_STOP, "StopContainer", "stop c1;"},
		{NRI_EVENT_REMOVE, "RemoveContainer", "remove c1;"},
		{NRI_EVENT_UPDATE_POD, "UpdatePodSandbox", ""},
		{NRI_EVENT_POST_UPDATE_POD, "PostUpdatePodSandbox", ""},
		{NRI_EVENT_VALIDATE, "ValidateContainerAdjustment", ""},
	};
	struct plugin p;
	uint32_t id = 5;

	(void)state;
	plugin_init(&p);
	make_ready(&p);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct bytes own = {0}, change = {0}, subject = {0};

		put_subject(&own, "p1", "c1");
		put_number(&change, 1, cases[i].event);
		put_text(&subject, 1, "p1");
		put_message(&change, 2, &subject);
		put_text(&subject, 1, "c1");
		put_message(&change, 3, &subject);
		p.calls[0] = '\0';
		assert_int_equal(feed_call(&p, id, cases[i].method, &own), 0);
		assert_string_equal(p.calls, cases[i].calls);
		p.calls[0] = '\0';
		assert_int_equal(feed_call(&p, id + 2, "StateChange", &change), 0);
		assert_string_equal(p.calls, cases[i].calls);
		assert_status(&p, id, 0, "");
		assert_status(&p, id + 2, 0, "");
		id += 4;
	}
	assert_string_equal(p.events, "");
	plugin_fini(&p);
}

static void malformed_calls_are_answered_with_a_status(void **state)
{
	struct plugin p;
	struct bytes payload = {0};

	(void)state;
	plugin_init(&p);
	make_ready(&p);
	assert_int_equal(feed_call(&p, 5, "Foo", &payload), 0);
	assert_status(&p, 5, TTRPC_UNIMPLEMENTED, "method Foo");
	assert_int_equal(feed_call(&p, 7, "Shutdown", &payload), 0);
	assert_status(&p, 7, 0, "");
	assert_int_equal(feed_call(&p, 9, "Configure", &payload), 0);
	assert_status(&p, 9, TTRPC_FAILED_PRECONDITION, "second time");
	assert_int_equal(feed_call(&p, 11, "Synchronize", &payload), 0);
	assert_status(&p, 11, TTRPC_FAILED_PRECONDITION, "out of turn");
	put_subject(&payload, "p1", "");
	assert_int_equal(feed_call(&p, 13, "CreateContainer", &payload), 0);
	assert_status(&p, 13, TTRPC_INTERNAL, "names none");
	put_subject(&payload, "p1", "c\xff");
	assert_int_equal(feed_call(&p, 15, "StopContainer", &payload), 0);
	assert_status(&p, 15, TTRPC_INTERNAL, "Container.id is not UTF-8");
	bytes_append(&payload, "\x0a\x7f", 2);
	assert_int_equal(feed_call(&p, 17, "StateChange", &payload), 0);
	assert_status(&p, 17, TTRPC_INTERNAL, "no StateChangeEvent");
	assert_int_equal(feed_call(&p, 19, "RemovePodSandbox", &payload), 0); /* of no pod */
	assert_status(&p, 19, 0, "");
	assert_string_equal(p.calls, "");
	assert_int_equal(nri_session_state(p.session), NRI_READY);
	plugin_fini(&p);
}

static void no_event_is_handled_before_synchronize(void **state)
{
	struct plugin p;
	struct bytes payload = {0};

	(void)state;
	plugin_init(&p);
	p.sent.len = 0;
	assert_int_equal(nri_session_take(p.session, &(const void *){NULL}) > 0, true);
	assert_int_equal(feed_call(&p, 1, "Synchronize", &payload), 0);
	assert_status(&p, 1, TTRPC_FAILED_PRECONDITION, "out of turn");
	put_subject(&payload, "p1", "c1");
	assert_int_equal(feed_call(&p, 3, "CreateContainer", &payload), 0);
	assert_status(&p, 3, TTRPC_FAILED_PRECONDITION, "before Synchronize");
	bytes_append(&payload, "\x12\x7f", 2);
	assert_int_equal(feed_call(&p, 5, "Configure", &payload), 0);
	assert_status(&p, 5, TTRPC_INTERNAL, "no ConfigureRequest");
	assert_int_equal(feed_call(&p, 7, "Configure", &payload), 0);
	assert_status(&p, 7, 0, "");
	bytes_append(&payload, "\x18", 1);
	assert_int_equal(feed_call(&p, 9, "Synchronize", &payload), 0);
	assert_status(&p, 9, TTRPC_INTERNAL, "no SynchronizeRequest");
	bytes_append(&payload, "\x12\x01", 2);
	assert_int_equal(feed_call(&p, 11, "Synchronize", &payload), 0);
	assert_status(&p, 11, TTRPC_INTERNAL, "");
	assert_string_equal(p.calls, "");
	plugin_fini(&p);
}

static void a_refused_container_is_answered_with_the_reason(void **state)
{
	struct plugin p;
	struct bytes payload = {0};

	(void)state;
	plugin_init(&p);
	make_ready(&p);
	p.refusal = "no NUMA node fits";
	put_subject(&payload, "p1", "c1");
	assert_int_equal(feed_call(&p, 7, "CreateContainer", &payload), 0);
	assert_status(&p, 7, TTRPC_FAILED_PRECONDITION, "no NUMA node fits");
	assert_string_equal(p.calls, "create c1;");
	assert_string_equal(p.events, "");
	plugin_fini(&p);
}

static void a_container_of_odd_resources_is_refused_but_may_stop(void **state)
{
	struct plugin p;
	struct bytes payload = {0}, h = {0}, r = {0}, l = {0}, c = {0};

	(void)state;
	plugin_init(&p);
	make_ready(&p);
	put_text(&h, 1, "huge");
	put_number(&h, 2, 1);
	put_message(&r, 3, &h);
	put_message(&l, 3, &r);
	put_text(&c, 1, "c1");
	put_message(&c, 11, &l);
	put_message(&payload, 2, &c);
	struct bytes again = {0};
	bytes_append(&again, payload.at, payload.len);
	assert_int_equal(feed_call(&p, 7, "CreateContainer", &payload), 0);
	assert_status(&p, 7, TTRPC_FAILED_PRECONDITION, "container c1: huge page size \"huge\"");
	assert_int_equal(feed_call(&p, 9, "StopContainer", &again), 0);
	assert_status(&p, 9, 0, "");
	assert_string_equal(p.calls, "stop c1;");
	assert_non_null(strstr(p.events, "nri-odd-resources container c1: huge"));
	plugin_fini(&p);
}

static void a_second_call_may_come_before_the_first_is_answered(void **state)
{
	struct plugin p;
	struct bytes in = {0}, payload = {0};

	(void)state;
	plugin_init(&p);
	make_ready(&p);
	put_subject(&payload, "p1", "c1");
	put_call(&in, 9, "CreateContainer", &payload);
	put_subject(&payload, "p1", "c2");
	put_call(&in, 15, "CreateContainer", &payload);
	assert_int_equal(feed_bytes(&p, &in, 0), 0);
	assert_string_equal(p.calls, "create c1;create c2;");
	assert_status(&p, 9, 0, "");
	assert_status(&p, 15, 0, "");
	assert_int_equal(p.sent.len, 0);
	plugin_fini(&p);
}

static void work_after_a_call_runs_once_its_answer_is_sent_or_the_next_call_arrives(void **state)
{
	struct plugin p;
	struct bytes in = {0}, payload = {0};

	(void)state;
	plugin_init(&p);
	make_ready(&p);
	p.created = "-";
	nri_session_sent(p.session);
	p.notes_around = true;
	put_subject(&payload, "p1", "c1");
	put_call(&in, 9, "CreateContainer", &payload);
	put_subject(&payload, "p1", "c2");
	put_call(&in, 15, "CreateContainer", &payload);
	assert_int_equal(feed_bytes(&p, &in, 0), 0);
	assert_string_equal(p.calls, "began -;create c1;ended create;"
				     "after c1;began -;create c2;ended create;");
	nri_session_sent(p.session);
	nri_session_sent(p.session);
	assert_string_equal(p.calls, "began -;create c1;ended create;"
				     "after c1;began -;create c2;ended create;after c2;");
	plugin_fini(&p);
}

static unsigned waits; /* creates that wait before one is answered */

static bool wait_for_create(void *ctx, enum nri_event event, const struct request *req)
{
	(void)ctx;
	assert_string_equal(event == NRI_EVENT_CREATE ? req->container_id : "c1", "c1");
	return event == NRI_EVENT_CREATE && waits && waits--;
}

static void an_event_that_waits_is_handled_once_and_keeps_its_place(void **state)
{
	struct plugin p;
	struct bytes in = {0}, payload = {0};
	const void *out;

	(void)state;
	init_as(&p, &(struct nri_plugin){.name = "numapin", .index = "10"});
	p.handler.wait = wait_for_create;
	make_ready(&p);
	p.notes_around = true;
	p.created = "-";
	nri_session_sent(p.session); /* of the handshake */
	p.calls[0] = '\0';
	assert_int_equal(nri_session_patience_ms(p.session), 2000);
	waits = 2;
	put_subject(&payload, "p1", "c1");
	put_call(&in, 9, "CreateContainer", &payload);
	put_subject(&payload, "p1", "c2");
	put_call(&in, 11, "StopContainer", &payload);
	assert_int_equal(feed_bytes(&p, &in, 0), 0);
	nri_session_sent(p.session);
	assert_string_equal(p.calls, "");
	assert_int_equal(nri_session_resume(p.session, 10), 0);
	assert_string_equal(p.calls, "");
	assert_int_equal(nri_session_resume(p.session, 20), 0);
	assert_string_equal(p.calls, "began -;create c1;ended create;after c1;"
				     "began -;stop c2;ended other;");
	size_t len = nri_session_take(p.session, &out);
	bytes_append(&p.sent, out, len);
	assert_status(&p, 9, 0, "");
	assert_status(&p, 11, 0, "");
	assert_int_equal(p.sent.len, 0);
	assert_int_equal(nri_session_resume(p.session, 30), 0);
	plugin_fini(&p);
}

static void text_that_is_not_utf8_is_never_sent(void **state)
{
	struct plugin p;
	struct bytes payload = {0};

	(void)state;
	plugin_init(&p);
	make_ready(&p);
	p.note = "\xff";
	put_subject(&payload, "p1", "c1");
	assert_int_equal(feed_call(&p, 7, "CreateContainer", &payload), 0);
	assert_status(&p, 7, TTRPC_INTERNAL, "KeyValue.value is not UTF-8");
	p.updates[0] = (struct nri_cpuset){"c7", "\xc3", "0", false};
	p.nr_updates = 1;
	put_subject(&payload, "p1", "c1");
	assert_int_equal(feed_call(&p, 9, "UpdateContainer", &payload), 0);
	assert_status(&p, 9, TTRPC_INTERNAL, "LinuxCPU.cpus is not UTF-8");
	assert_non_null(strstr(p.events, "nri-call-refused LinuxCPU.cpus"));
	plugin_fini(&p);
	plugin_init(&p);
	p.updates[0] = (struct nri_cpuset){"c\xff", "0", "0", false};
	p.nr_updates = 1;
	assert_int_equal(feed_hex(&p, configure_0_12_hex, 0), 0);
	assert_int_equal(feed_hex(&p, synchronize_hex, 0), -EILSEQ);
	assert_int_equal(nri_session_state(p.session), NRI_FAILED);
	plugin_fini(&p);
}

static void each_update_may_fail_alone(void **state)
{
	struct plugin p;
	struct bytes payload = {0};
	struct nri_answer answer;
	struct ttrpc_response r;
	struct arena a;

	(void)state;
	plugin_init(&p);
	make_ready(&p);
	arena_init(&a, TTRPC_MEMORY_MAX);
	p.updates[0] = (struct nri_cpuset){"c7", "8-15", "", false};
	p.updates[1] = (struct nri_cpuset){"c8", "", "1", false};
	p.nr_updates = 2;
	put_subject(&payload, "p1", "c1");
	assert_int_equal(feed_call(&p, 7, "StopContainer", &payload), 0);
	struct blob rest = {p.sent.at, p.sent.len};
	struct sent m = next_sent(&rest);
	assert_int_equal(ttrpc_response_decode(m.body, &a, &r, NULL), 0);
	assert_int_equal(nri_updates_decode(r.payload, &a, &answer, NULL), 0);
	assert_int_equal(answer.nr_updates, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(answer.updates[i].container_id, p.updates[i].container_id);
		assert_string_equal(answer.updates[i].cpus, p.updates[i].cpus);
		assert_string_equal(answer.updates[i].mems, p.updates[i].mems);
		assert_true(answer.updates[i].ignore_failure);
	}
	arena_fini(&a);
	plugin_fini(&p);
}

/* Whether creating c1 with these updates ends the process by an assertion. */
static bool create_aborts(const char *first, const char *second)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct plugin p;
		struct bytes payload = {0};

		(void)close(STDERR_FILENO);
		(void)signal(SIGABRT, SIG_DFL);
		plugin_init(&p);
		make_ready(&p);
		p.updates[0] = (struct nri_cpuset){first, "0", "0", false};
		p.updates[1] = (struct nri_cpuset){second, "0", "0", false};
		p.nr_updates = 2;
		put_subject(&payload, "p1", "c1");
		(void)feed_call(&p, 7, "CreateContainer", &payload);
		plugin_fini(&p);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void a_reply_with_two_updates_of_one_container_is_refused_as_our_own_error(void **state)
{
	(void)state;
	assert_false(create_aborts("c7", "c8"));
	assert_true(create_aborts("c7", "c7"));
	assert_true(create_aborts("c1", "c8")); /* the one being created */
	assert_true(create_aborts("c7", ""));
}

static void a_frame_above_the_limit_fails_the_session_in_every_state(void **state)
{
	static const char *const steps[] = {
		registered_hex, configure_0_12_hex, synchronize_hex, create_hex};
	static const char oversize_hex[] = "00000001ffffffff";

	(void)state;
	for (size_t nr = 0; nr <= sizeof steps / sizeof *steps; nr++) {
		struct plugin p;

		plugin_init(&p);
		for (size_t i = 0; i < nr; i++)
			assert_int_equal(feed_hex(&p, steps[i], 0), 0);
		p.calls[0] = '\0';
		assert_int_equal(feed_hex(&p, oversize_hex, 0), -EPROTO);
		assert_int_equal(nri_session_state(p.session), NRI_FAILED);
		assert_non_null(
			strstr(nri_session_error(p.session), "a frame of 4294967295 bytes"));
		assert_int_equal(feed_hex(&p, create_hex, 0), -EPROTO);
		assert_string_equal(p.calls, "");
		plugin_fini(&p);
	}
}

static void the_connection_may_end_after_any_byte(void **state)
{
	struct bytes in = {0};

	(void)state;
	for (size_t i = 0; i < NR_CONVERSATION; i++)
		add_hex(&in, conversation[i].in);
	for (size_t cut = 0; cut < in.len; cut++) {
		struct plugin p;

		plugin_init(&p);
		assert_int_equal(feed(&p, in.at, cut, 0), 0);
		nri_session_free(p.session); /* valgrind and asan look for what is left */
		p.session = NULL;
		plugin_fini(&p);
	}
	bytes_fini(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways_to_send_an_event_call_the_same_handler),
		cmocka_unit_test(malformed_calls_are_answered_with_a_status),
		cmocka_unit_test(no_event_is_handled_before_synchronize),
		cmocka_unit_test(a_refused_container_is_answered_with_the_reason),
		cmocka_unit_test(a_container_of_odd_resources_is_refused_but_may_stop),
		cmocka_unit_test(a_second_call_may_come_before_the_first_is_answered),
		cmocka_unit_test(
			work_after_a_call_runs_once_its_answer_is_sent_or_the_next_call_arrives),
		cmocka_unit_test(an_event_that_waits_is_handled_once_and_keeps_its_place),
		cmocka_unit_test(text_that_is_not_utf8_is_never_sent),
		cmocka_unit_test(each_update_may_fail_alone),
		cmocka_unit_test(
			a_reply_with_two_updates_of_one_container_is_refused_as_our_own_error),
		cmocka_unit_test(a_frame_above_the_limit_fails_the_session_in_every_state),
		cmocka_unit_test(the_connection_may_end_after_any_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
