/* The DRA plugin API as a kubelet calls it, over a real socket. */
#include "dra_rig.h"
#include "dra_wire.h"

enum { ARENA_MAX = 64 << 20, NR_JOBS = DRA_CLAIMS_MAX };

#define PREPARE         DRA_PLUGIN_PATH("v1", "NodePrepareResources")
#define PREPARE_V1BETA1 DRA_PLUGIN_PATH("v1beta1", "NodePrepareResources")
#define UNPREPARE       DRA_PLUGIN_PATH("v1", "NodeUnprepareResources")

struct world {
	struct dra_world base;
	struct acceptor *door;
	struct dra_plugin *plugin;
	struct arena arena; /* for messages of the test's own */
	bool later;         /* jobs are kept */
	const char *refuse; /* NULL: no */
	const char *device;
	struct dra_job *job[NR_JOBS];
	unsigned nr_jobs, nr_asked, nr_unprepared, nr_health;
	char uid[TEXT_MAX], name[TEXT_MAX];
	struct dra_health health[2];
};

static const char *const requests[] = {"numa"}, *const cdi[] = {"numafit.io/claim=x-0"};

static struct dra_device device_of(const struct world *w)
{
	return (struct dra_device){.request = requests,
		.nr_requests = 1,
		.pool = "n1",
		.device = w->device,
		.cdi = cdi,
		.nr_cdi = 1,
		.share_id = "s"};
}

/* Whether it was kept, or refused. */
static bool note_job(struct world *w, struct dra_job *job, const struct dra_claim_ref *ref)
{
	w->nr_asked++;
	snprintf(w->uid, sizeof w->uid, "%s", ref->uid);
	snprintf(w->name, sizeof w->name, "%s/%s", ref->ns, ref->name);
	if (w->later) {
		assert_true(w->nr_jobs < NR_JOBS);
		w->job[w->nr_jobs++] = job;
		loop_stop(w->base.l);
	} else if (w->refuse) {
		dra_failed(job, w->refuse);
	}
	return w->later || w->refuse;
}

static void prepare(void *ctx, struct dra_job *job, const struct dra_claim_ref *ref)
{
	struct world *w = ctx;
	struct dra_device device = device_of(w);

	if (!note_job(w, job, ref))
		dra_prepared(job, &device, 1);
}

static void unprepare(void *ctx, struct dra_job *job, const struct dra_claim_ref *ref)
{
	struct world *w = ctx;

	w->nr_unprepared++;
	if (!note_job(w, job, ref))
		dra_unprepared(job);
}

static size_t health(void *ctx, struct arena *a, struct dra_health **out)
{
	struct world *w = ctx;

	(void)a;
	w->nr_health++;
	*out = w->health;
	return 2;
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);
	struct dra_plugin_handler handler = {w, prepare, unprepare, health};
	struct err e = {0};

	dra_world_init(&w->base);
	arena_init(&w->arena, ARENA_MAX);
	w->device = "numa2";
	w->health[0] = (struct dra_health){"n1", "numa0", true, 1, 0, NULL};
	w->health[1] = (struct dra_health){"n1", "numa1", true, 1, 0, NULL};
	w->plugin = dra_plugin_new(w->base.server, &handler);
	w->door = rpc_server_listen(w->base.server, w->base.path, &e);
	assert_string_equal(e.text, "");
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	dra_world_hang_up(&w->base);
	acceptor_close(w->door);
	rpc_server_free(w->base.server);
	dra_plugin_free(w->plugin);
	dra_plugin_free(NULL);
	rpc_pump_free(w->base.pump);
	loop_free(w->base.l);
	assert_int_equal(rmdir(w->base.dir), 0);
	arena_fini(&w->arena);
	free(w);
	return 0;
}

static struct blob request(struct world *w, const struct dra_claim_ref *ref, size_t nr)
{
	return dra_wire_request(&w->arena, ref, nr);
}

static struct blob request_of(struct world *w, const char *uid)
{
	return request(w, &(struct dra_claim_ref){"default", uid, "c1"}, 1);
}

/* Answers. */

static struct blob prepared(struct world *w, enum dra_version version)
{
	struct dra_device device = device_of(w);
	struct blob out;

	assert_int_equal(dra_prepared_encode(&device, 1, version, &w->arena, &out, NULL), 0);
	return out;
}

static struct blob failed(struct world *w, const char *text)
{
	struct blob out;

	assert_int_equal(dra_prepare_error_encode(text, &w->arena, &out, NULL), 0);
	return out;
}

static struct blob answers(struct world *w, const struct dra_claim_answer *answer, size_t nr)
{
	struct blob out;

	assert_int_equal(dra_answers_encode(answer, nr, &w->arena, &out, NULL), 0);
	return out;
}

static void assert_answer(
	struct world *w, const struct seen *s, const char *uid, struct blob answer)
{
	assert_int_equal(s->code, RPC_OK);
	assert_true(is_message(s, answers(w, &(struct dra_claim_answer){uid, answer}, 1)));
}

/* The cases. */

static void a_claim_is_prepared(void **state)
{
	struct world *w = *state;
	struct seen *s = call(&w->base, PREPARE, request_of(w, "u"));

	assert_answer(w, s, "u", prepared(w, DRA_V1));
	assert_string_equal(w->uid, "u");
	assert_string_equal(w->name, "default/c1");
}

static void a_claim_is_prepared_by_the_older_version_without_its_share_id(void **state)
{
	struct world *w = *state;
	struct seen *s = call(&w->base, PREPARE_V1BETA1, request_of(w, "u"));

	assert_answer(w, s, "u", prepared(w, DRA_V1BETA1));
}

static void a_claim_is_unprepared_by_either_version(void **state)
{
	static const char *const method[] = {
		UNPREPARE, DRA_PLUGIN_PATH("v1beta1", "NodeUnprepareResources")};
	struct world *w = *state;

	for (unsigned i = 0; i < 2; i++) {
		struct seen *s = call(&w->base, method[i], request_of(w, "u"));

		assert_answer(w, s, "u", (struct blob){0});
		assert_int_equal(w->nr_unprepared, i + 1);
	}
}

static void a_refusal_is_in_the_claims_answer(void **state)
{
	struct world *w = *state;
	struct blob want;

	w->refuse = "no room on NUMA node 2";
	assert_answer(w, call(&w->base, PREPARE, request_of(w, "u")), "u", failed(w, w->refuse));
	assert_int_equal(dra_unprepare_error_encode(w->refuse, &w->arena, &want, NULL), 0);
	assert_answer(w, call(&w->base, UNPREPARE, request_of(w, "u")), "u", want);
}

static void a_refusal_has_words_and_they_are_utf8(void **state)
{
	struct world *w = *state;

	w->refuse = "";
	assert_answer(w, call(&w->base, PREPARE, request_of(w, "u")), "u",
		failed(w, "numafit does not say why"));
	w->refuse = "\xff!";
	assert_answer(w, call(&w->base, PREPARE, request_of(w, "u")), "u", failed(w, "?!"));
}

static void a_device_that_is_not_utf8_is_an_error_of_its_claim(void **state)
{
	struct world *w = *state;

	w->device = "\xff";
	assert_answer(w, call(&w->base, PREPARE, request_of(w, "u")), "u",
		failed(w, "Device.device_name is not UTF-8"));
}

static void a_request_without_claims_is_answered(void **state)
{
	struct world *w = *state;
	struct seen *s = call(&w->base, PREPARE, (struct blob){0});

	assert_int_equal(s->code, RPC_OK);
	assert_int_equal(s->message.nr, 0);
	assert_int_equal(w->nr_asked, 0);
}

static void claims_that_cannot_be_are_answered_with_an_error_each(void **state)
{
	static char long_uid[65];
	static const struct {
		struct dra_claim_ref ref;
		const char *error;
	} cases[] = {
		{{"default", "", "c1"}, "\"\" is no uid of a claim"},
		{{"default", "../x", "c1"}, "\"../x\" is no uid of a claim"},
		{{"default", "a\nb", "c1"}, "\"a?b\" is no uid of a claim"},
		{{"default", "A", "c1"}, "\"A\" is no uid of a claim"},
		{{"default", "a-", "c1"}, "\"a-\" is no uid of a claim"},
		{{"default", long_uid, "c1"},
			"\"uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu\" is no uid of "
			"a claim"},
		{{"Default", "u", "c1"}, "\"Default\" is no namespace"},
		{{"default", "v", "c/1"}, "\"c/1\" is no name of a claim"},
		/* one that is not UTF-8 is refused alone */
		{{"default", "w", "c\xff"}, "\"c?\" is no name of a claim"},
		{{"\xff", "x", "c1"}, "\"?\" is no namespace"},
	};
	enum { NR = sizeof cases / sizeof cases[0] };
	struct world *w = *state;
	struct dra_claim_ref ref[NR + 1];
	struct dra_claim_answer want[NR + 1];

	memset(long_uid, 'u', sizeof long_uid - 1);
	for (size_t i = 0; i < NR; i++) {
		ref[i] = cases[i].ref;
		want[i] = (struct dra_claim_answer){ref[i].uid, failed(w, cases[i].error)};
	}
	ref[NR] = (struct dra_claim_ref){"default", long_uid + 1, "c1"}; /* the longest there is */
	want[NR] = (struct dra_claim_answer){long_uid + 1, prepared(w, DRA_V1)};
	struct seen *s = call(&w->base, PREPARE, request(w, ref, NR + 1));
	assert_int_equal(s->code, RPC_OK);
	assert_true(is_message(s, answers(w, want, NR + 1)));
	assert_int_equal(w->nr_asked, 1);
}

static void every_claim_is_unprepared_whatever_its_names_are(void **state)
{
	static const struct dra_claim_ref ref[] = {{"", "", ""}, {"Default", "A", "C"},
		{"\xff", "a-", "\xff"}, {"default", "../x", "c1"}};
	enum { NR = sizeof ref / sizeof *ref };
	struct dra_claim_answer want[NR];
	struct world *w = *state;
	struct seen *s = call(&w->base, UNPREPARE, request(w, ref, NR));

	for (size_t i = 0; i < NR; i++)
		want[i] = (struct dra_claim_answer){ref[i].uid, {0}};
	assert_int_equal(s->code, RPC_OK);
	assert_true(is_message(s, answers(w, want, NR)));
	assert_int_equal(w->nr_unprepared, NR);
}

/* It would be the key of its answer. */
static void a_uid_that_is_not_utf8_is_an_invalid_argument(void **state)
{
	struct world *w = *state;
	static const char *const method[] = {PREPARE, UNPREPARE};

	for (size_t i = 0; i < 2; i++) {
		struct seen *s = call(&w->base, method[i], request_of(w, "u\xff"));

		assert_int_equal(s->code, RPC_INVALID_ARGUMENT);
		assert_non_null(strstr(s->text, "uid is not UTF-8"));
	}
	assert_int_equal(w->nr_asked + w->nr_unprepared, 0);
}

static void a_claim_that_is_there_twice_is_asked_for_once(void **state)
{
	static const struct dra_claim_ref ref[] = {
		{"default", "u", "c1"}, {"other", "u", "c2"}, {"default", "u", "c1"}};
	struct world *w = *state;
	struct seen *s = call(&w->base, PREPARE, request(w, ref, 3));

	assert_answer(w, s, "u", prepared(w, DRA_V1));
	assert_int_equal(w->nr_asked, 1);
	assert_string_equal(w->name, "default/c1");
}

static void a_call_is_answered_when_all_its_claims_are(void **state)
{
	static const struct dra_claim_ref ref[] = {
		{"default", "u", "c1"}, {"default", "v", "c2"}, {"default", "", "c3"}};
	struct world *w = *state;
	struct dra_device device = device_of(w);

	w->later = true;
	struct seen *s = start(&w->base, PREPARE, RPC_UNARY, request(w, ref, 3));
	UNTIL(&w->base, w->nr_jobs == 2);
	dra_failed(w->job[1], "no");
	(void)call(&w->base, UNPREPARE, (struct blob){0}); /* another one is answered meanwhile */
	assert_int_equal(s->nr_ended, 0);
	dra_prepared(w->job[0], &device, 1);
	UNTIL(&w->base, s->nr_ended);
	struct dra_claim_answer want[] = {{"u", prepared(w, DRA_V1)}, {"v", failed(w, "no")},
		{"", failed(w, "\"\" is no uid of a claim")}};
	assert_int_equal(s->code, RPC_OK);
	assert_true(is_message(s, answers(w, want, 3)));
}

static void a_job_may_be_answered_when_nobody_waits_any_more(void **state)
{
	struct world *w = *state;

	w->later = true;
	struct seen *s = start(&w->base, UNPREPARE, RPC_UNARY, request_of(w, "u"));
	UNTIL(&w->base, w->nr_jobs);
	leave(s);
	(void)call(&w->base, PREPARE, (struct blob){0});
	dra_unprepared(w->job[0]);
	assert_int_equal(call(&w->base, PREPARE, (struct blob){0})->code, RPC_OK);
}

static void a_job_may_be_owed_at_the_end(void **state)
{
	struct world *w = *state;

	w->later = true;
	for (unsigned n = 1; n < 4; n++) {
		(void)start(&w->base, PREPARE, RPC_UNARY, request_of(w, "u"));
		UNTIL(&w->base, w->nr_jobs == n);
	}
	dra_unprepared(w->job[1]);
}

static void the_most_claims_are_answered_and_one_more_is_not(void **state)
{
	static struct dra_claim_ref ref[DRA_CLAIMS_MAX + 1];
	static char uid[DRA_CLAIMS_MAX + 1][16];
	struct world *w = *state;

	for (unsigned n = 0; n <= DRA_CLAIMS_MAX; n++) {
		snprintf(uid[n], sizeof uid[n], "u%u", n);
		ref[n] = (struct dra_claim_ref){"default", uid[n], "c"};
	}
	assert_int_equal(call(&w->base, PREPARE, request(w, ref, DRA_CLAIMS_MAX))->code, RPC_OK);
	assert_int_equal(w->nr_asked, DRA_CLAIMS_MAX);
	struct seen *s = call(&w->base, PREPARE, request(w, ref, DRA_CLAIMS_MAX + 1));
	assert_int_equal(s->code, RPC_RESOURCE_EXHAUSTED);
	assert_string_equal(s->text, "257 claims, more than 256");
	assert_int_equal(w->nr_asked, DRA_CLAIMS_MAX);
}

static void garbage_is_an_invalid_argument(void **state)
{
	struct world *w = *state;
	struct seen *s = call(&w->base, PREPARE, (struct blob){"\x0a\x05x", 3});

	assert_int_equal(s->code, RPC_INVALID_ARGUMENT);
}

static void an_answer_that_is_too_large_is_an_error_of_its_claim(void **state)
{
	struct world *w = *state;
	auto_free char *large = xcalloc(DRA_MESSAGE_MAX + 1, 1);

	memset(large, 'x', DRA_MESSAGE_MAX);
	w->device = large;
	struct seen *s = call(&w->base, PREPARE, request_of(w, "u"));
	assert_int_equal(s->code, RPC_OK);
	assert_non_null(memmem(s->message.at, s->message.nr, "the kubelet takes", 17));
}

/* Two large claims fit, each alone, and not together. */
static void answers_that_are_too_large_together_end_the_call(void **state)
{
	static const struct dra_claim_ref ref[] = {{"default", "u", "c1"}, {"default", "v", "c2"}};
	struct world *w = *state;
	auto_free char *large = xcalloc(DRA_MESSAGE_MAX, 1);

	memset(large, 'x', DRA_MESSAGE_MAX * 2L / 3);
	w->device = large;
	struct seen *s = call(&w->base, PREPARE, request(w, ref, 2));
	assert_int_equal(s->code, RPC_RESOURCE_EXHAUSTED);
}

/* Health. */

static struct blob healths(struct world *w)
{
	struct blob out;

	assert_int_equal(dra_health_encode(w->health, 2, &w->arena, &out, NULL), 0);
	return out;
}

static struct seen *watch(struct world *w, const char *method)
{
	struct seen *s = start(&w->base, method, RPC_STREAM, (struct blob){0});

	UNTIL(&w->base, is_message(s, healths(w)));
	return s;
}

static void both_versions_of_health_get_all_devices_and_every_change(void **state)
{
	struct world *w = *state;
	struct seen *s = watch(w, DRA_HEALTH_PATH("v1"));
	struct seen *older = watch(w, DRA_HEALTH_PATH("v1alpha1"));

	w->health[1].healthy = false;
	w->health[1].text = "it is offline";
	dra_plugin_health_changed(w->plugin);
	UNTIL(&w->base, is_message(s, healths(w)) && is_message(older, healths(w)));
	leave(older);
	w->health[1].healthy = true;
	dra_plugin_health_changed(w->plugin);
	UNTIL(&w->base, is_message(s, healths(w)));
}

/* A message that says the same again is what keeps a device from being unknown. */
static void health_that_has_not_changed_is_sent_again(void **state)
{
	struct world *w = *state;
	struct seen *s = watch(w, DRA_HEALTH_PATH("v1"));

	for (unsigned n = 2; n < 5; n++) {
		dra_plugin_health_changed(w->plugin);
		UNTIL(&w->base, s->nr_messages == n);
	}
}

static void a_burst_of_changes_makes_few_messages(void **state)
{
	struct world *w = *state;
	struct seen *s = watch(w, DRA_HEALTH_PATH("v1"));

	for (unsigned n = 0; n < 1000; n++) {
		w->health[0].last_updated_s = n;
		dra_plugin_health_changed(w->plugin);
	}
	UNTIL(&w->base, is_message(s, healths(w)));
	assert_in_range(s->nr_messages, 2, 3);
	assert_int_equal(w->nr_health, s->nr_messages);
}

static void changes_without_a_watcher_are_not_looked_up(void **state)
{
	struct world *w = *state;

	dra_plugin_health_changed(w->plugin);
	assert_int_equal(w->nr_health, 0);
}

static void health_that_is_not_utf8_ends_the_streams(void **state)
{
	struct world *w = *state;
	struct seen *s = watch(w, DRA_HEALTH_PATH("v1"));
	struct seen *another = watch(w, DRA_HEALTH_PATH("v1alpha1"));

	w->health[0].pool = "\xff";
	/* again and again, as what was sent before may not have left yet */
	while (!s->nr_ended || !another->nr_ended) {
		dra_plugin_health_changed(w->plugin);
		loop_run(w->base.l);
	}
	assert_int_equal(s->code, RPC_INTERNAL);
	assert_string_equal(s->text, "DeviceIdentifier.pool_name is not UTF-8");
	w->health[0].pool = "n1";
	(void)watch(w, DRA_HEALTH_PATH("v1"));
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(a_claim_is_prepared),
		WITH_WORLD(a_claim_is_prepared_by_the_older_version_without_its_share_id),
		WITH_WORLD(a_claim_is_unprepared_by_either_version),
		WITH_WORLD(a_refusal_is_in_the_claims_answer),
		WITH_WORLD(a_refusal_has_words_and_they_are_utf8),
		WITH_WORLD(a_device_that_is_not_utf8_is_an_error_of_its_claim),
		WITH_WORLD(a_request_without_claims_is_answered),
		WITH_WORLD(claims_that_cannot_be_are_answered_with_an_error_each),
		WITH_WORLD(every_claim_is_unprepared_whatever_its_names_are),
		WITH_WORLD(a_uid_that_is_not_utf8_is_an_invalid_argument),
		WITH_WORLD(a_claim_that_is_there_twice_is_asked_for_once),
		WITH_WORLD(a_call_is_answered_when_all_its_claims_are),
		WITH_WORLD(a_job_may_be_answered_when_nobody_waits_any_more),
		WITH_WORLD(a_job_may_be_owed_at_the_end),
		WITH_WORLD(the_most_claims_are_answered_and_one_more_is_not),
		WITH_WORLD(garbage_is_an_invalid_argument),
		WITH_WORLD(an_answer_that_is_too_large_is_an_error_of_its_claim),
		WITH_WORLD(answers_that_are_too_large_together_end_the_call),
		WITH_WORLD(both_versions_of_health_get_all_devices_and_every_change),
		WITH_WORLD(health_that_has_not_changed_is_sent_again),
		WITH_WORLD(a_burst_of_changes_makes_few_messages),
		WITH_WORLD(changes_without_a_watcher_are_not_looked_up),
		WITH_WORLD(health_that_is_not_utf8_ends_the_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
