#include <apiserver/reflector.h>

#include <codec/api_json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include "fake_api.h"

enum { SOON_MS = 50, RETRY_MIN_MS = 1, RETRY_MAX_MS = 4, NEVER_MS = 3600000, BIG = 5 << 20 };

struct world {
	struct fake_api f;
	struct api *api;
	struct reflector_options o;
	struct reflector *r;
	char reported[4096]; /* "begin", "+name:version", "-name", "synced", each after a blank */
	unsigned nr_synced;
};

static void note(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(struct world *w, const char *fmt, ...)
{
	size_t had = strlen(w->reported);
	va_list ap;

	va_start(ap, fmt);
	int len = vsnprintf(w->reported + had, sizeof w->reported - had, fmt, ap);
	va_end(ap);
	assert_true(len > 0 && (size_t)len < sizeof w->reported - had);
	loop_stop(w->f.loop);
}

static void on_begin(void *ctx)
{
	note(ctx, " begin");
}

static void on_object(void *ctx, enum reflector_change change, struct json_t *object)
{
	struct api_meta m;

	api_json_meta(object, &m);
	if (change == REFLECTOR_PUT)
		note(ctx, " +%s:%s", m.name, m.version);
	else
		note(ctx, " -%s", m.name);
}

static void on_synced(void *ctx)
{
	struct world *w = ctx;

	w->nr_synced++;
	note(w, " synced");
}

static void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	fake_api_log(&w->f, bad, event, text);
}

/* What the calls say is another test's. */
static void on_api_event(void *ctx, bool bad, const char *event, const char *text)
{
	(void)ctx, (void)bad, (void)event, (void)text;
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);
	struct err e = {0};

	fake_api_init(&w->f);
	const struct api_options o = {.kubeconfig = w->f.kubeconfig,
		.user_agent = "tester/1",
		.timeout_ms = NEVER_MS,
		.on_event = on_api_event};
	w->api = api_new(w->f.loop, &o, &e);
	if (!w->api)
		fail_msg("%s", e.text);
	w->o = (struct reflector_options){.path = "/pods",
		.query = "fieldSelector=a%3Db",
		.page = 2,
		.retry_min_ms = RETRY_MIN_MS,
		.retry_max_ms = RETRY_MAX_MS,
		.idle_ms = NEVER_MS};
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	reflector_close(w->r);
	api_free(w->api);
	fake_api_fini(&w->f);
	free(w);
	return 0;
}

static void begin_with(struct world *w, const struct fake_answer *script, size_t nr)
{
	fake_api_script(&w->f, script, nr);
	w->r = reflector_new(w->api, &w->o,
		&(struct reflector_handler){w, on_begin, on_object, on_synced, on_event});
}
#define BEGIN(w, script) begin_with((w), (script), sizeof(script) / sizeof *(script))

#define UNTIL_TOLD(w, want)                                                                        \
	do {                                                                                       \
		FAKE_UNTIL(&(w)->f, strlen((w)->reported) >= strlen(want));                        \
		assert_string_equal((w)->reported, want);                                          \
	} while (0)
/* So many requests came. */
#define UNTIL_ASKED(w, want) FAKE_UNTIL(&(w)->f, (w)->f.asked >= (want))

#define META(name, version)                                                                        \
	"\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}"
#define OBJECT(name, version) "{" META(name, version) "}"
#define LIST(version, more, items)                                                                 \
	"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version                       \
	"\",\"continue\":\"" more "\"},\"items\":[" items "]}"
#define EVENT(type, name, version) "{\"type\":\"" type "\",\"object\":" OBJECT(name, version) "}\n"
#define STATUS(code, message)      "{\"kind\":\"Status\",\"code\":" #code ",\"message\":\"" message "\"}"
#define ERROR(code, message)       "{\"type\":\"ERROR\",\"object\":" STATUS(code, message) "}\n"

#define LISTED LIST("5", "", OBJECT("a", "1"))
#define GOES_ON(version)                                                                           \
	{                                                                                          \
		.ask = "resourceVersion=" version, .how = FAKE_GOES_ON                             \
	}

static void a_list_comes_in_pages_and_a_watch_goes_on_from_there(void **state)
{
	static const struct fake_answer script[] = {
		{"GET /pods?limit=2&fieldSelector=a%3Db",
			.body = LIST("5", "x y/", OBJECT("a", "1") "," OBJECT("b", "2"))},
		{"GET /pods?limit=2&fieldSelector=a%3Db&continue=x%20y%2F",
			.body = LIST("5", "", OBJECT("c", "3"))},
		{"GET /pods?watch=1&allowWatchBookmarks=true&fieldSelector=a%3Db&timeoutSeconds=",
			.how = FAKE_GOES_ON,
			.body = EVENT("ADDED", "d", "6") EVENT("MODIFIED", "a", "7")},
	};
	struct world *w = *state;
	const char *seconds;

	BEGIN(w, script);
	assert_false(reflector_synced(w->r));
	UNTIL_TOLD(w, " begin +a:1 +b:2 +c:3 synced +d:6 +a:7");
	assert_non_null(strstr(w->f.last->path, "&resourceVersion=5"));
	seconds = strstr(w->f.last->path, "timeoutSeconds=") + strlen("timeoutSeconds=");
	assert_in_range(strtoul(seconds, NULL, 10), 300, 600);
	assert_true(reflector_synced(w->r));
	assert_string_equal(w->f.log, " watch-synced");
	assert_string_equal(w->f.last_text, "/pods: 3 objects");
	fake_api_say(w->f.last, EVENT("DELETED", "b", "8"));
	UNTIL_TOLD(w, " begin +a:1 +b:2 +c:3 synced +d:6 +a:7 -b");
	assert_int_equal(w->f.asked, 3);
}

static void lines_may_arrive_in_any_pieces(void **state)
{
	static const struct fake_answer script[] = {{.body = LISTED}, GOES_ON("5")};
	static const char events[] = EVENT("ADDED", "b", "6") "\n" EVENT("DELETED", "b", "7");
	struct world *w = *state;
	char byte[2] = "";

	BEGIN(w, script);
	UNTIL_ASKED(w, 2);
	for (const char *at = events; *at; at++) {
		*byte = *at;
		fake_api_say(w->f.last, byte);
	}
	UNTIL_TOLD(w, " begin +a:1 synced +b:6 -b");
}

static void bookmarks_and_unknown_event_types_advance_the_version(void **state)
{
	static const struct fake_answer script[] = {{.body = LISTED},
		{.how = FAKE_CUTS, .body = EVENT("BOOKMARK", "", "77")},
		{"resourceVersion=77", .how = FAKE_CUTS, .body = EVENT("NEWFANGLED", "a", "78")},
		GOES_ON("78")};
	struct world *w = *state;

	BEGIN(w, script);
	UNTIL_ASKED(w, 4);
	assert_string_equal(w->reported, " begin +a:1 synced");
	assert_string_equal(w->f.log, " watch-synced");
}

static void an_incomplete_line_is_ignored(void **state)
{
	static const struct fake_answer script[] = {{.body = LISTED},
		{.how = FAKE_CUTS,
			.body = EVENT("ADDED", "b", "6") "{\"type\":\"ADDED\",\"object\":{"},
		{"resourceVersion=6", .how = FAKE_GOES_ON, .body = EVENT("ADDED", "c", "7")}};
	struct world *w = *state;

	BEGIN(w, script);
	UNTIL_TOLD(w, " begin +a:1 synced +b:6 +c:7");
}

static void an_ended_watch_is_resumed_at_its_last_version(void **state)
{
	static const struct fake_answer script[] = {
		{.body = LISTED}, {.how = FAKE_GOES_ON}, GOES_ON("6")};
	struct world *w = *state;

	BEGIN(w, script);
	UNTIL_ASKED(w, 2);
	fake_api_say(w->f.last, EVENT("ADDED", "b", "6"));
	UNTIL_TOLD(w, " begin +a:1 synced +b:6");
	fake_api_end(w->f.last);
	UNTIL_ASKED(w, 3);
	assert_true(reflector_synced(w->r));
	assert_string_equal(w->f.log, " watch-synced");
}

/* One is told, the other is not: a watch that was cut once says nothing, twice in a row does. */
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

static void a_list_that_takes_too_long_for_pages_comes_as_a_whole(void **state)
{
	static const struct fake_answer script[] = {
		{"limit=2", .body = LIST("5", "c", OBJECT("a", "1"))},
		{"continue=c", .status = 410, .body = STATUS(410, "continue expired")},
		{"GET /pods?limit=0&fieldSelector=a%3Db",
			.body = LIST("7", "", OBJECT("a", "1") "," OBJECT("b", "6"))},
		{"resourceVersion=7", .status = 410},
		{"GET /pods?limit=2&", .body = LIST("8", "", "")}, /* the next one is another */
		GOES_ON("8")};
	struct world *w = *state;

	BEGIN(w, script);
	UNTIL_ASKED(w, 6);
	assert_string_equal(w->reported, " begin +a:1 begin +a:1 +b:6 synced begin synced");
	assert_string_equal(w->f.log, " watch-synced");
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

static void a_malformed_list_is_asked_for_again(void **state)
{
	static const struct fake_answer script[] = {{.body = "{}"}, {.body = "<html>"},
		{.status = 204}, {.body = LIST("5", "c", "7")},
		{"limit=2&fieldSelector=a%3Db", .body = LIST("", "", "")}, {.body = LISTED},
		GOES_ON("5")};
	struct world *w = *state;

	BEGIN(w, script);
	UNTIL_ASKED(w, 7);
	assert_string_equal(w->reported, " begin +a:1 synced");
}

static void versions_and_continue_tokens_have_a_maximum_length(void **state)
{
	static char version[2048], lists[2][4096], event[4096];
	struct world *w = *state;

	memset(version, '7', sizeof version - 1);
	(void)snprintf(lists[0], sizeof lists[0],
		"{\"metadata\":{\"resourceVersion\":\"%s\"},\"items\":[]}", version);
	(void)snprintf(lists[1], sizeof lists[1],
		"{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"%s\"},\"items\":[{}]}",
		version);
	(void)snprintf(event, sizeof event,
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"%s\"}}}\n",
		version);
	const struct fake_answer script[] = {{.body = lists[0]}, {.body = lists[1]},
		{.body = LISTED}, {"watch=1", .how = FAKE_GOES_ON, .body = event},
		{"limit=2", .body = LISTED}, GOES_ON("5")};
	BEGIN(w, script);
	UNTIL_ASKED(w, 6);
	assert_string_equal(w->reported, " begin +a:1 synced begin +a:1 synced");
}

/* A dozen pods may be as large as etcd takes them. */
static void a_page_that_is_too_large_is_asked_for_in_halves(void **state)
{
	auto_free char *large = xcalloc(1, BIG + 1);
	memset(large, ' ', BIG);
	const struct fake_answer script[] = {{"limit=2", .body = large},
		{"limit=1&fieldSelector=a%3Db", .body = LIST("5", "c", OBJECT("a", "1"))},
		{"continue=c", .status = 410}, {"limit=0", .body = large},
		{"limit=1", .body = LISTED}, GOES_ON("5")};
	struct world *w = *state;

	BEGIN(w, script);
	UNTIL_ASKED(w, 6);
	assert_string_equal(w->reported, " begin +a:1 begin +a:1 synced");
	assert_string_equal(w->f.log, " watch-synced");
}

static void a_list_may_come_from_the_servers_memory(void **state)
{
	static const struct fake_answer script[] = {
		{"GET /pods?limit=2&fieldSelector=a%3Db&resourceVersion=0", .body = LISTED},
		{"watch=1", .status = 410}, {"&resourceVersion=0", .body = LIST("9", "", "")},
		GOES_ON("9")};
	struct world *w = *state;

	w->o.from_memory = true;
	BEGIN(w, script);
	UNTIL_ASKED(w, 4);
	assert_string_equal(w->reported, " begin +a:1 synced begin synced");
}

/* It knows no pages there: as large as it is it never comes. */
static void a_list_too_large_to_come_from_memory_comes_in_pages(void **state)
{
	auto_free char *large = xcalloc(1, BIG + 1);
	memset(large, ' ', BIG);
	const struct fake_answer script[] = {{"&resourceVersion=0", .body = large},
		{"GET /pods?limit=2&fieldSelector=a%3Db", .body = LIST("5", "c", OBJECT("a", "1"))},
		{"limit=2&fieldSelector=a%3Db&continue=c", .body = LIST("5", "", OBJECT("b", "2"))},
		GOES_ON("5")};
	struct world *w = *state;

	w->o.from_memory = true;
	BEGIN(w, script);
	UNTIL_ASKED(w, 2);
	assert_null(strstr(w->f.last->path, "resourceVersion"));
	UNTIL_ASKED(w, 4);
	assert_string_equal(w->reported, " begin +a:1 +b:2 synced");
}

static void a_line_has_a_limit(void **state)
{
	static const struct fake_answer script[] = {
		{.body = LISTED}, {.how = FAKE_GOES_ON}, {"limit=2", .body = LISTED}, GOES_ON("5")};
	struct world *w = *state;

	BEGIN(w, script);
	UNTIL_ASKED(w, 2);
	char *line = xcalloc(1, BIG + 1);
	memset(line, ' ', BIG);
	fake_api_say(w->f.last, line);
	free(line);
	UNTIL_ASKED(w, 4);
	assert_int_equal(w->nr_synced, 2);
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
	UNTIL_TOLD(w, " begin +a:1 synced +b:6");
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
	UNTIL_TOLD(w, " begin +a:1 synced +b:6");
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

static void closing_is_allowed_in_every_state(void **state)
{
	static const struct fake_answer script[] = {{.body = LIST("5", "c", OBJECT("a", "1"))},
		{.status = 500}, {.body = LISTED}, {.how = FAKE_CUTS},
		{.how = FAKE_GOES_ON, .body = EVENT("ADDED", "b", "6") "{"}};
	struct world *w = *state;
	unsigned nr = sizeof script / sizeof *script;

	reflector_close(NULL);
	for (unsigned asked = 0; asked <= nr; asked++) {
		unsigned before = w->f.asked;

		BEGIN(w, script);
		UNTIL_ASKED(w, before + asked);
		if (asked == nr) /* half a line is kept */
			FAKE_UNTIL(&w->f, strstr(w->reported, "+b:6"));
		reflector_close(w->r);
		w->r = NULL;
	}
	unsigned before = w->f.asked;
	fake_api_stay_quiet(&w->f);
	assert_int_equal(w->f.asked, before);
}

/* begin() and synced() are optional. */
static void the_callbacks_for_begin_and_synced_are_optional(void **state)
{
	static const struct fake_answer script[] = {{.body = LISTED}, GOES_ON("5")};
	struct world *w = *state;

	w->o.query = NULL;
	fake_api_script(&w->f, script, 2);
	w->r = reflector_new(w->api, &w->o,
		&(struct reflector_handler){.ctx = w, .object = on_object, .on_event = on_event});
	UNTIL_ASKED(w, 2);
	assert_string_equal(w->reported, " +a:1");
	assert_non_null(strstr(w->f.last->path, "allowWatchBookmarks=true&timeoutSeconds="));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_list_comes_in_pages_and_a_watch_goes_on_from_there),
		CASE(lines_may_arrive_in_any_pieces),
		CASE(bookmarks_and_unknown_event_types_advance_the_version),
		CASE(an_incomplete_line_is_ignored),
		CASE(an_ended_watch_is_resumed_at_its_last_version),
		CASE(a_watch_that_cannot_be_resumed_is_logged_once),
		cmocka_unit_test(an_expired_version_causes_a_new_list),
		CASE(a_server_whose_watches_always_fail_is_logged_once),
		CASE(a_list_that_takes_too_long_for_pages_comes_as_a_whole),
		CASE(a_failed_page_is_asked_for_again),
		CASE(a_malformed_list_is_asked_for_again),
		CASE(versions_and_continue_tokens_have_a_maximum_length),
		CASE(a_page_that_is_too_large_is_asked_for_in_halves),
		CASE(a_list_may_come_from_the_servers_memory),
		CASE(a_list_too_large_to_come_from_memory_comes_in_pages),
		CASE(a_line_has_a_limit),
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
		CASE(closing_is_allowed_in_every_state),
		CASE(the_callbacks_for_begin_and_synced_are_optional),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
