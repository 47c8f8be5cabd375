/* A list or a watch that fails, ends or is silent: when it is asked for again, and what is logged.
 */
#include "reflector_rig.h"

/* One is logged, the other is not: a watch that was cut once says nothing, twice in a row does. */
static void a_watch_that_cannot_be_resumed_is_logged_once(void **state)
{
	static const struct fake_answer script[] = {{.body = LISTED}, {.how = FAKE_CUTS},
		{.status = 503}, {.status = 503}, {.status = 503},
		{"resourceVersion=5", .how = FAKE_GOES_ON}};
	struct world *w = *state;

	BEGIN(w, script);
	FAKE_UNTIL(&w->f, w->f.log[0]);
	assert_true(reflector_synced(w->r));
	UNTIL_ASKED(w, 6);
	assert_string_equal(w->f.log, " watch-synced watch-lost");
	assert_string_equal(w->f.last_text, "/pods: HTTP status 503");
	assert_false(reflector_synced(w->r));
	fake_api_say(w->f.last, EVENT("BOOKMARK", "", "9"));
	FAKE_UNTIL(&w->f, text_equal(w->f.log, " watch-synced watch-lost watch-synced"));
	assert_true(reflector_synced(w->r));
}

static void an_expired_version_causes_a_new_list(void **state)
{
	static const struct fake_answer gone[] = {
		{.status = 410, .body = STATUS(410, "too old")},
		{.how = FAKE_GOES_ON, .body = ERROR(410, "too old")},
		{.how = FAKE_GOES_ON, .body = ERROR(500, "RequestWatchProgress is disabled")},
		{.how = FAKE_GOES_ON, .body = ERROR(0, "")},
		{.how = FAKE_GOES_ON, .body = "no JSON\n"},
		{.how = FAKE_GOES_ON, .body = "{\"type\":\"ADDED\"}\n"},
		{.status = 400, .body = STATUS(400, "invalid resource version")},
	};

	for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
		const struct fake_answer script[] = {{.body = LISTED}, gone[i],
			{"GET /pods?limit=2&fieldSelector=a%3Db",
				.body = LIST("9", "", OBJECT("b", "8"))},
			GOES_ON("9")};
		struct world *w = NULL;

		(void)setup((void **)&w);
		BEGIN(w, script);
		UNTIL_ASKED(w, 4);
		assert_string_equal(w->reported, " begin +a:1 synced begin +b:8 synced");
		assert_true(reflector_synced(w->r));
		assert_string_equal(w->f.log, " watch-synced");
		(void)teardown((void **)&w);
	}
	(void)state;
}

/* As etcd 3.4 has it. */
static void a_server_whose_watches_always_fail_is_logged_once(void **state)
{
	static const struct fake_answer failed = {
		.how = FAKE_GOES_ON, .body = ERROR(500, "RequestWatchProgress is disabled")};
	const struct fake_answer script[] = {{.body = LISTED}, failed, {.body = LISTED}, failed,
		{.body = LISTED}, failed, {.body = LISTED}, failed, {.body = LISTED}, GOES_ON("5")};
	struct world *w = *state;

	BEGIN(w, script);
	UNTIL_ASKED(w, 10);
	assert_string_equal(w->f.log, " watch-synced watch-waiting");
	assert_string_equal(w->f.last_text, "/pods: RequestWatchProgress is disabled");
	assert_false(reflector_synced(w->r));
	assert_int_equal(w->nr_synced, 5);
}

static void a_failed_page_is_asked_for_again(void **state)
{
	static const struct fake_answer script[] = {
		{"limit=2", .body = LIST("5", "c", OBJECT("a", "1"))},
		{"continue=c", .status = 500}, {"continue=c", .how = FAKE_CUTS},
		{"continue=c", .body = LIST("5", "", OBJECT("b", "2"))}, GOES_ON("5")};
	struct world *w = *state;

	BEGIN(w, script);
	UNTIL_ASKED(w, 5);
	assert_string_equal(w->reported, " begin +a:1 +b:2 synced");
}

/* A fresh CRD's first watch is answered like that, and each one's after the server started. */
static void a_retry_after_header_is_obeyed(void **state)
{
	static const struct fake_answer script[] = {{.status = 429, .extra = "Retry-After: 1\r\n"},
		{.body = LISTED},
		{.status = 429,
			.body = "{\"kind\":\"Status\",\"code\":429,\"message\":\"storage is "
				"(re)initializing\",\"details\":{\"retryAfterSeconds\":1}}"},
		{"resourceVersion=5", .how = FAKE_GOES_ON, .body = EVENT("ADDED", "b", "6")}};
	struct world *w = *state;
	uint64_t at[4];

	BEGIN(w, script);
	for (unsigned i = 0; i < 4; i++) {
		UNTIL_ASKED(w, i + 1);
		at[i] = loop_monotonic_ns();
	}
	assert_true(at[1] - at[0] >= 990000000 && at[3] - at[2] >= 990000000);
	UNTIL_NOTED(w, " begin +a:1 synced +b:6");
	assert_string_equal(w->f.log, " watch-waiting watch-synced");
}

static void a_retry_time_in_an_error_event_is_obeyed(void **state)
{
	static const struct fake_answer script[] = {{.body = LISTED},
		{.how = FAKE_GOES_ON,
			.body = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":429,"
				"\"message\":\"later\",\"details\":{\"retryAfterSeconds\":1}}}\n"},
		{"limit=2", .body = LISTED}, GOES_ON("5")};
	struct world *w = *state;

	BEGIN(w, script);
	UNTIL_ASKED(w, 2);
	uint64_t before = loop_monotonic_ns();
	UNTIL_ASKED(w, 3);
	assert_true(loop_monotonic_ns() - before >= 990000000);
	UNTIL_ASKED(w, 4);
}

static void a_missing_or_forbidden_resource_is_logged_once_and_retried(void **state)
{
	static const int statuses[] = {404, 403, 401};

	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
		const struct fake_answer no = {
			.status = statuses[i], .body = STATUS(0, "words of the server")};
		/* a 401 is asked twice, with new credentials */
		const struct fake_answer script[] = {
			no, no, no, no, {.body = LISTED}, GOES_ON("5")};
		struct world *w = NULL;

		(void)setup((void **)&w);
		BEGIN(w, script);
		UNTIL_ASKED(w, 4);
		assert_false(reflector_synced(w->r));
		assert_string_equal(w->f.log, " watch-waiting!");
		assert_string_equal(w->f.last_text, "/pods: words of the server");
		UNTIL_ASKED(w, 6);
		assert_string_equal(w->f.log, " watch-waiting! watch-synced");
		assert_true(reflector_synced(w->r));
		(void)teardown((void **)&w);
	}
	(void)state;
}

/* Its CRD was removed while we watched, and comes back. */
static void a_resource_that_goes_away_is_logged_and_retried(void **state)
{
	static const struct fake_answer script[] = {{.body = LISTED}, {.how = FAKE_CUTS},
		{"watch=1", .status = 404, .body = STATUS(404, "no such resource")},
		{"limit=2", .status = 404, .body = STATUS(404, "no such resource")},
		{"limit=2", .body = LIST("1", "", "")},
		{"resourceVersion=1", .how = FAKE_GOES_ON, .body = EVENT("BOOKMARK", "", "2")}};
	struct world *w = *state;

	BEGIN(w, script);
	FAKE_UNTIL(&w->f, text_equal(w->f.log, " watch-synced watch-waiting! watch-synced"));
	assert_string_equal(w->reported, " begin +a:1 synced begin synced");
	assert_true(reflector_synced(w->r));
}

static void requests_that_are_refused_are_retried_at_a_steady_pace(void **state)
{
	static const int statuses[] = {404, 403};

	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
		const struct fake_answer script[] = {
			{.status = statuses[i]}, {.body = LISTED}, GOES_ON("5")};
		struct world *w = NULL;

		(void)setup((void **)&w);
		w->o.retry_max_ms = 400;
		BEGIN(w, script);
		UNTIL_ASKED(w, 1);
		uint64_t before = loop_monotonic_ns();
		UNTIL_ASKED(w, 2);
		assert_true(loop_monotonic_ns() - before >= 290000000); /* a quarter less */
		UNTIL_ASKED(w, 3);
		(void)teardown((void **)&w);
	}
	(void)state;
}

static void a_temporary_error_causes_no_new_list(void **state)
{
	static const int statuses[] = {302, 401, 403, 408, 429, 500, 502, 503, 504};

	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
		const struct fake_answer no = {.status = statuses[i]};
		const struct fake_answer script[] = {{.body = LISTED}, no, no, GOES_ON("5")};
		struct world *w = NULL;

		(void)setup((void **)&w);
		BEGIN(w, script);
		UNTIL_ASKED(w, 4);
		assert_int_equal(w->nr_synced, 1);
		(void)teardown((void **)&w);
	}
	(void)state;
}

static void a_silent_watch_is_ended_and_started_again(void **state)
{
	static const struct fake_answer script[] = {{.body = LISTED}, {.how = FAKE_NEVER},
		{.how = FAKE_GOES_ON, .body = EVENT("BOOKMARK", "", "6")},
		{"resourceVersion=6", .how = FAKE_GOES_ON}};
	struct world *w = *state;

	w->o.idle_ms = SOON_MS;
	BEGIN(w, script);
	UNTIL_ASKED(w, 4);
	assert_int_equal(w->nr_synced, 1);
}

static void a_server_that_comes_back_is_watched_again(void **state)
{
	static const struct fake_answer script[] = {{.body = LISTED}, GOES_ON("5"),
		{"resourceVersion=5", .how = FAKE_GOES_ON, .body = EVENT("ADDED", "b", "6")}};
	struct world *w = *state;

	BEGIN(w, script);
	UNTIL_ASKED(w, 2);
	fake_api_down(&w->f);
	FAKE_UNTIL(&w->f, text_equal(w->f.log, " watch-synced watch-lost"));
	fake_api_up(&w->f);
	UNTIL_NOTED(w, " begin +a:1 synced +b:6");
	assert_string_equal(w->f.log, " watch-synced watch-lost watch-synced");
}

static void a_server_that_is_not_there_at_first_is_waited_for(void **state)
{
	static const struct fake_answer script[] = {{.body = LISTED}, GOES_ON("5")};
	struct world *w = *state;

	fake_api_down(&w->f);
	BEGIN(w, script);
	FAKE_UNTIL(&w->f, text_equal(w->f.log, " watch-waiting"));
	fake_api_up(&w->f);
	UNTIL_ASKED(w, 2);
	assert_string_equal(w->f.log, " watch-waiting watch-synced");
}

/* A server that ends each watch at once is not asked as fast as it can. */
static void short_watches_are_started_later_and_later(void **state)
{
	static const struct fake_answer ends = {.extra = "", .body = ""};
	const struct fake_answer script[] = {{.body = LISTED}, ends, ends, ends, GOES_ON("5")};
	struct world *w = *state;

	w->o.retry_min_ms = 40;
	w->o.retry_max_ms = 1000;
	BEGIN(w, script);
	UNTIL_ASKED(w, 1);
	uint64_t before = loop_monotonic_ns();
	UNTIL_ASKED(w, 5);
	/* 40, 80 and 160 ms, a quarter less each */
	assert_true(loop_monotonic_ns() - before >= 200000000);
	assert_string_equal(w->f.log, " watch-synced");
	assert_true(reflector_synced(w->r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_watch_that_cannot_be_resumed_is_logged_once),
		cmocka_unit_test(an_expired_version_causes_a_new_list),
		CASE(a_server_whose_watches_always_fail_is_logged_once),
		CASE(a_failed_page_is_asked_for_again),
		CASE(a_retry_after_header_is_obeyed),
		CASE(a_retry_time_in_an_error_event_is_obeyed),
		cmocka_unit_test(a_missing_or_forbidden_resource_is_logged_once_and_retried),
		CASE(a_resource_that_goes_away_is_logged_and_retried),
		cmocka_unit_test(requests_that_are_refused_are_retried_at_a_steady_pace),
		cmocka_unit_test(a_temporary_error_causes_no_new_list),
		CASE(a_silent_watch_is_ended_and_started_again),
		CASE(a_server_that_comes_back_is_watched_again),
		CASE(a_server_that_is_not_there_at_first_is_waited_for),
		CASE(short_watches_are_started_later_and_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
