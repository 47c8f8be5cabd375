#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "nri_wire.h"
#include <nri/nri_runtime_pb.h>
#include <nri/session.h>
#include <numafit/text.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A plugin that writes down what it is told, and the session around it. */
struct plugin {
	struct nri_handler handler;
	struct nri_session *session;
	struct bytes sent; /* all that the session gave out */
	char calls[1024];  /* "create c1;live c1;" */
	char events[1024];
	struct nri_cpuset updates[2];
	size_t nr_updates;
	const char *note; /* the annotation's value */
	const char *refusal;
	size_t nr_running;
	bool notes_around;   /* began, ended and after are written down, too */
	const char *created; /* the id of the last one, in the call's memory */
};

static void note(char *text, size_t cap, const char *word, const char *what)
{
	size_t len = strlen(text);

	(void)snprintf(text + len, cap - len, "%s %s;", word, what);
}
#define note_call(p, word, what) note((p)->calls, sizeof(p)->calls, word, what)

static void give_updates(struct plugin *p, struct nri_reply *reply)
{
	struct nri_cpuset *copy = arena_array(reply->arena, 2, sizeof *copy);

	memcpy(copy, p->updates, sizeof p->updates);
	reply->updates = copy;
	reply->nr_updates = p->nr_updates;
}

static void on_synchronize(void *ctx, const struct nri_inventory *what, struct nri_reply *reply)
{
	struct plugin *p = ctx;

	p->nr_running = what->nr;
	note_call(p, "synchronize", what->nr ? what->containers[0].container_id : "-");
	for (size_t i = 1; i < what->nr && i < 3; i++)
		note_call(p, "and", what->containers[i].container_id);
	give_updates(p, reply);
}

static int on_run_pod(void *ctx, const struct pod *pod, struct err *e)
{
	struct plugin *p = ctx;

	note_call(p, "run-pod", pod->sandbox_id);
	return p->refusal ? err_set(e, ENOSPC, "%s", p->refusal) : 0;
}

static int on_create(void *ctx, const struct request *req, struct nri_reply *reply, struct err *e)
{
	struct plugin *p = ctx;

	note_call(p, "create", req->container_id);
	p->created = req->container_id;
	if (p->refusal)
		return err_set(e, ENOSPC, "%s", p->refusal);
	reply->adjust = true;
	reply->cpus = "0-7";
	reply->mems = "0";
	if (p->note)
		reply->annotation = (struct key_value){NRI_PLACEMENT_ANNOTATION, p->note};
	give_updates(p, reply);
	return 0;
}

static void on_update(void *ctx, const struct request *req, struct nri_reply *reply)
{
	note_call((struct plugin *)ctx, "update", req->container_id);
	give_updates(ctx, reply);
}

static void on_stop(void *ctx, const struct request *req, struct nri_reply *reply)
{
	note_call((struct plugin *)ctx, "stop", req->container_id);
	give_updates(ctx, reply);
}

static void on_remove(void *ctx, const struct request *req)
{
	note_call((struct plugin *)ctx, "remove", req->container_id);
}

static void on_live(void *ctx, const struct request *req)
{
	note_call((struct plugin *)ctx, "live", req->container_id);
}

static void on_started(void *ctx, const struct request *req)
{
	note_call((struct plugin *)ctx, "started", req->container_id);
}

static void on_remove_pod(void *ctx, const struct pod *pod)
{
	note_call((struct plugin *)ctx, "remove-pod", pod->sandbox_id);
}

static void on_event(void *ctx, const char *event, const char *text)
{
	struct plugin *p = ctx;

	note(p->events, sizeof p->events, event, text);
}

static void on_began(void *ctx)
{
	struct plugin *p = ctx;

	if (p->notes_around)
		note_call(p, "began", "-");
}

static void on_ended(void *ctx, enum nri_event event)
{
	struct plugin *p = ctx;

	if (p->notes_around)
		note_call(p, "ended", event == NRI_EVENT_CREATE ? "create" : "other");
}

/* What was decoded is there still. */
static void on_after(void *ctx)
{
	struct plugin *p = ctx;

	if (p->notes_around)
		note_call(p, "after", p->created);
}

static void init_as(struct plugin *p, const struct nri_plugin *plugin)
{
	*p = (struct plugin){.handler = {p, on_synchronize, on_run_pod, on_create, on_update,
				     on_stop, on_remove, on_live, on_started, on_remove_pod,
				     on_began, on_ended, on_after, on_event}};
	p->session = nri_session_new(plugin, &p->handler, 0);
}

static void plugin_init(struct plugin *p)
{
	init_as(p, &(struct nri_plugin){.name = "numapin", .index = "10"});
}

static void plugin_fini(struct plugin *p)
{
	nri_session_free(p->session);
	bytes_fini(&p->sent);
}

static int feed(struct plugin *p, const void *data, size_t len, uint64_t now_ms)
{
	const void *out;
	int rc = nri_session_feed(p->session, data, len, now_ms);
	size_t n = nri_session_take(p->session, &out);

	bytes_append(&p->sent, out, n);
	return rc;
}

/* Feed what was built, and free it. */
static int feed_bytes(struct plugin *p, struct bytes *in, uint64_t now_ms)
{
	int rc = feed(p, in->at, in->len, now_ms);

	bytes_fini(in);
	return rc;
}

static int feed_hex(struct plugin *p, const char *hex, uint64_t now_ms)
{
	struct bytes in = {0};

	add_hex(&in, hex);
	return feed_bytes(p, &in, now_ms);
}

static int feed_call(struct plugin *p, uint32_t id, const char *method, struct bytes *payload)
{
	struct bytes in = {0};

	put_call(&in, id, method, payload);
	return feed_bytes(p, &in, 0);
}

/* Bring the session to where events come in, and forget what was said until then. */
static void make_ready(struct plugin *p)
{
	assert_int_equal(feed_hex(p, registered_hex, 0), 0);
	assert_int_equal(feed_hex(p, configure_0_12_hex, 0), 0);
	assert_int_equal(feed_hex(p, synchronize_hex, 0), 0);
	assert_int_equal(nri_session_state(p->session), NRI_READY);
	p->sent.len = 0;
	p->calls[0] = p->events[0] = '\0';
}

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

static const struct {
	const char *in, *out; /* out NULL: nothing is answered */
} conversation[] = {
	{"", register_hex},
	{registered_hex, NULL},
	{configure_0_8_hex, configured_hex},
	{synchronize_hex, synchronized_hex},
	{create_hex, created_c7_hex},
	{state_change_hex, "000000010000000a 000000000000000b0200"},
	{remove_hex, "000000010000000a 000000000000000d0200"},
};
enum { NR_CONVERSATION = sizeof conversation / sizeof *conversation };

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
		p.updates[0] = (struct nri_cpuset){"c7", "8-15", "1"};
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

static void a_handshake_without_progress_fails_the_session(void **state)
{
	static const struct {
		const char *configure; /* at 1,000 ms; NULL: it never comes */
		uint64_t deadline;
		const char *error;
	} cases[] = {
		{NULL, 5000, "the runtime sent no Configure within 5000 ms"},
		{configure_0_6_hex, 8000,
			"the runtime sent no (complete) Synchronize within 7000 ms"},
		{configure_0_12_hex, 8000,
			"the runtime sent no (complete) Synchronize within 7000 ms"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct plugin p;

		plugin_init(&p);
		if (cases[i].configure)
			assert_int_equal(feed_hex(&p, cases[i].configure, 1000), 0);
		assert_int_equal(nri_session_deadline(p.session), cases[i].deadline);
		nri_session_tick(p.session, cases[i].deadline - 1);
		assert_int_not_equal(nri_session_state(p.session), NRI_FAILED);
		nri_session_tick(p.session, cases[i].deadline);
		assert_int_equal(nri_session_state(p.session), NRI_FAILED);
		assert_string_equal(nri_session_error(p.session), cases[i].error);
		plugin_fini(&p);
	}
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
	p.updates[0] = (struct nri_cpuset){"c7", "8-15", "1"};
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
	p.updates[0] = (struct nri_cpuset){"c7", "\xc3", "0"};
	p.nr_updates = 1;
	put_subject(&payload, "p1", "c1");
	assert_int_equal(feed_call(&p, 9, "UpdateContainer", &payload), 0);
	assert_status(&p, 9, TTRPC_INTERNAL, "LinuxCPU.cpus is not UTF-8");
	assert_non_null(strstr(p.events, "nri-call-refused LinuxCPU.cpus"));
	plugin_fini(&p);
	plugin_init(&p);
	p.updates[0] = (struct nri_cpuset){"c\xff", "0", "0"};
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
	p.updates[0] = (struct nri_cpuset){"c7", "8-15", ""};
	p.updates[1] = (struct nri_cpuset){"c8", "", "1"};
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
		p.updates[0] = (struct nri_cpuset){first, "0", "0"};
		p.updates[1] = (struct nri_cpuset){second, "0", "0"};
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
		cmocka_unit_test(the_recorded_conversation_goes_as_recorded),
		cmocka_unit_test(the_conversation_may_be_split_at_any_byte),
		cmocka_unit_test(the_answer_to_the_registration_may_come_last),
		cmocka_unit_test(frames_of_both_streams_may_alternate_within_messages),
		cmocka_unit_test(a_refused_registration_fails_the_session),
		cmocka_unit_test(a_handshake_without_progress_fails_the_session),
		cmocka_unit_test(the_runtimes_own_timeouts_count),
		cmocka_unit_test(a_ready_session_waits_without_end),
		cmocka_unit_test(the_failure_policy_is_sent_to_runtimes_that_know_it),
		cmocka_unit_test(a_failure_policy_is_sent_as_it_is_wanted),
		cmocka_unit_test(a_launched_plugin_of_an_old_runtime_is_ready_without_synchronize),
		cmocka_unit_test(a_launched_plugin_waits_for_synchronize_without_a_deadline),
		cmocka_unit_test(chunks_are_acknowledged_and_handled_as_one),
		cmocka_unit_test(a_synchronize_of_15_mb_is_taken),
		cmocka_unit_test(too_many_running_containers_fail_the_session),
		cmocka_unit_test(both_ways_to_send_an_event_call_the_same_handler),
		cmocka_unit_test(malformed_calls_are_answered_with_a_status),
		cmocka_unit_test(no_event_is_handled_before_synchronize),
		cmocka_unit_test(a_refused_container_is_answered_with_the_reason),
		cmocka_unit_test(a_container_of_odd_resources_is_refused_but_may_stop),
		cmocka_unit_test(a_second_call_may_come_before_the_first_is_answered),
		cmocka_unit_test(
			work_after_a_call_runs_once_its_answer_is_sent_or_the_next_call_arrives),
		cmocka_unit_test(text_that_is_not_utf8_is_never_sent),
		cmocka_unit_test(each_update_may_fail_alone),
		cmocka_unit_test(
			a_reply_with_two_updates_of_one_container_is_refused_as_our_own_error),
		cmocka_unit_test(a_frame_above_the_limit_fails_the_session_in_every_state),
		cmocka_unit_test(the_connection_may_end_after_any_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
