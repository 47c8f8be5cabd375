/* Containers that are set without being asked (Runtime.UpdateContainers), byte for byte. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "nri_wire.h"
#include <nri/nri_runtime_pb.h>
#include <nri/session.h>

struct plugin {
	struct nri_handler handler;
	struct nri_session *session;
	unsigned answers;
	char problem[128];
};

static void on_synchronize(void *ctx, const struct nri_inventory *what, struct nri_reply *reply)
{
	(void)ctx, (void)what, (void)reply;
}

static void on_updated(void *ctx, const char *problem)
{
	struct plugin *p = ctx;

	p->answers++;
	(void)snprintf(p->problem, sizeof p->problem, "%s", problem ? problem : "");
}

static void feed(struct plugin *p, struct bytes *bytes)
{
	assert_int_equal(nri_session_feed(p->session, bytes->at, bytes->len, 0), 0);
	bytes_fini(bytes);
}

static void feed_hex(struct plugin *p, const char *hex)
{
	struct bytes line = {0};

	add_hex(&line, hex);
	feed(p, &line);
}

static void forget_sent(struct plugin *p)
{
	const void *data;

	while (nri_session_take(p->session, &data) > 0)
		continue;
}

/* A session with a runtime of that NRI version, up to Configure. */
static void configure(struct plugin *p, const char *nri_version)
{
	static const struct nri_plugin as = {.name = "numapin", .index = "10"};
	const struct nri_configuration conf = {.runtime_name = "containerd",
		.runtime_version = "v2.3",
		.nri_version = nri_version};
	struct bytes call = {0}, payload = {0};
	struct blob encoded;
	struct arena a;

	*p = (struct plugin){.handler = {.ctx = p, .synchronize = on_synchronize}};
	p->session = nri_session_new(&as, &p->handler, 0);
	arena_init(&a, 1 << 20);
	assert_int_equal(nri_configuration_encode(&conf, &a, &encoded, NULL), 0);
	bytes_append(&payload, encoded.data, encoded.len);
	arena_fini(&a);
	put_call(&call, 1, "Configure", &payload);
	feed(p, &call);
}

static void be_ready(struct plugin *p, const char *nri_version)
{
	configure(p, nri_version);
	feed_hex(p, registered_hex);
	feed_hex(p, synchronize_hex);
	assert_int_equal(nri_session_state(p->session), NRI_READY);
	forget_sent(p);
}

static const struct nri_cpuset c7 = {"c7", "8-15", "1", false};

static void update(struct plugin *p)
{
	assert_int_equal(nri_session_update(p->session, &c7, 1, on_updated, NULL), 0);
}

static void unsolicited_updates_are_only_sent_to_runtimes_that_handle_them(void **state)
{
	static const struct {
		const char *version;
		bool want;
	} cases[] = {
		{"", false},
		{"0.0.0-unknown", false},
		{"v0.6.1", false},
		{"v0.11.9", false},
		{"v0.12.0", false},
		{"v0.12.1", true},
		{"0.12.1", true},
		{"v0.12.5-rc.1", true},
		{"v0.13.0", true},
		{"v1.0.0", true},
		{"v0.12", false},
		{"unknown", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct plugin p;

		be_ready(&p, cases[i].version);
		if (nri_session_takes_updates(p.session) != cases[i].want)
			fail_msg("\"%s\"", cases[i].version);
		nri_session_free(p.session);
	}
}

static void a_session_takes_no_updates_before_it_is_ready(void **state)
{
	struct plugin p;

	(void)state;
	configure(&p, "v0.12.5");
	assert_false(nri_session_takes_updates(p.session));
	feed_hex(&p, synchronize_hex); /* the answer to the registration is still to come */
	assert_int_equal(nri_session_state(p.session), NRI_READY);
	assert_false(nri_session_takes_updates(p.session));
	feed_hex(&p, registered_hex);
	assert_true(nri_session_takes_updates(p.session));
	nri_session_free(p.session);

	configure(&p, "v0.12.5");
	feed_hex(&p, registered_hex);
	assert_false(nri_session_takes_updates(p.session));
	nri_session_free(p.session);
}

static bool waits = true;

static bool wait_for_ever(void *ctx, enum nri_event event, const struct request *req)
{
	(void)ctx, (void)event, (void)req;
	return waits;
}

static void note_removed(void *ctx, const struct request *req)
{
	(void)ctx, (void)req;
}

static void a_session_takes_no_updates_while_an_events_answer_waits(void **state)
{
	struct plugin p;

	(void)state;
	be_ready(&p, "v0.12.5");
	p.handler.wait = wait_for_ever;
	p.handler.remove = note_removed;
	feed_hex(&p, remove_hex);
	assert_false(nri_session_takes_updates(p.session));
	assert_int_equal(nri_session_resume(p.session, 1), 0);
	assert_false(nri_session_takes_updates(p.session));
	waits = false;
	assert_int_equal(nri_session_resume(p.session, 1), 0);
	assert_true(nri_session_takes_updates(p.session));
	nri_session_free(p.session);
}

static void an_update_call_equals_the_recorded_one_and_only_one_is_pending(void **state)
{
	struct plugin p;
	const void *data;

	(void)state;
	be_ready(&p, "v0.12.5");
	update(&p);
	assert_false(nri_session_takes_updates(p.session));
	size_t len = nri_session_take(p.session, &data);
	struct blob sent = {data, len};
	assert_next_sent_is(&sent, update_containers_hex);
	assert_int_equal(sent.len, 0);
	assert_int_equal(p.answers, 0);
	nri_session_free(p.session);
}

static void a_failed_update_is_reported_and_the_session_goes_on(void **state)
{
	static const char updated_hex[] = "000000020000000a 00000000000000050200";
	struct plugin p;

	(void)state;
	be_ready(&p, "v0.12.5");
	update(&p);
	feed_hex(&p, update_failed_hex);
	assert_int_equal(p.answers, 1);
	assert_string_equal(p.problem, "NRI update of some containers failed");
	assert_int_equal(nri_session_state(p.session), NRI_READY);
	update(&p);
	feed_hex(&p, updated_hex);
	assert_int_equal(p.answers, 2);
	assert_string_equal(p.problem, "");
	nri_session_free(p.session);
}

static void a_session_is_idle_only_between_messages(void **state)
{
	struct bytes line = {0};
	struct plugin p;

	(void)state;
	be_ready(&p, "v0.12.5");
	add_hex(&line, update_failed_hex); /* of a call that nobody made: passed over */
	assert_true(nri_session_is_idle(p.session));
	for (size_t i = 0; i < MUX_HEADER_BYTES; i++) {
		assert_int_equal(nri_session_feed(p.session, line.at + i, 1, 0), 0);
		assert_false(nri_session_is_idle(p.session));
	}
	assert_int_equal(nri_session_feed(p.session, line.at + MUX_HEADER_BYTES,
				 line.len - MUX_HEADER_BYTES, 0),
		0);
	assert_true(nri_session_is_idle(p.session));
	bytes_fini(&line);

	/* whole frames, but of a message that goes on in the next one */
	struct bytes whole = {0}, first = {0}, second = {0};
	put_ttrpc(&whole, 5, TYPE_REQUEST, (struct blob){"\0\0\0", 3});
	put_frame(&first, MUX_PLUGIN, whole.at, whole.len - 2);
	put_frame(&second, MUX_PLUGIN, whole.at + whole.len - 2, 2);
	feed(&p, &first);
	assert_false(nri_session_is_idle(p.session));
	feed(&p, &second);
	assert_true(nri_session_is_idle(p.session));
	bytes_fini(&whole);
	nri_session_free(p.session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unsolicited_updates_are_only_sent_to_runtimes_that_handle_them),
		cmocka_unit_test(a_session_takes_no_updates_before_it_is_ready),
		cmocka_unit_test(a_session_takes_no_updates_while_an_events_answer_waits),
		cmocka_unit_test(an_update_call_equals_the_recorded_one_and_only_one_is_pending),
		cmocka_unit_test(a_failed_update_is_reported_and_the_session_goes_on),
		cmocka_unit_test(a_session_is_idle_only_between_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
