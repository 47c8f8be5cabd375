#include "reflector_rig.h"

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
	UNTIL_NOTED(w, " begin +a:1 +b:2 +c:3 synced +d:6 +a:7");
	assert_non_null(strstr(w->f.last->path, "&resourceVersion=5"));
	seconds = strstr(w->f.last->path, "timeoutSeconds=") + strlen("timeoutSeconds=");
	assert_in_range(strtoul(seconds, NULL, 10), 300, 600);
	assert_true(reflector_synced(w->r));
	assert_string_equal(w->f.log, " watch-synced");
	assert_string_equal(w->f.last_text, "/pods: 3 objects");
	fake_api_say(w->f.last, EVENT("DELETED", "b", "8"));
	UNTIL_NOTED(w, " begin +a:1 +b:2 +c:3 synced +d:6 +a:7 -b");
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
	UNTIL_NOTED(w, " begin +a:1 synced +b:6 -b");
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
	UNTIL_NOTED(w, " begin +a:1 synced +b:6 +c:7");
}

static void an_ended_watch_is_resumed_at_its_last_version(void **state)
{
	static const struct fake_answer script[] = {
		{.body = LISTED}, {.how = FAKE_GOES_ON}, GOES_ON("6")};
	struct world *w = *state;

	BEGIN(w, script);
	UNTIL_ASKED(w, 2);
	fake_api_say(w->f.last, EVENT("ADDED", "b", "6"));
	UNTIL_NOTED(w, " begin +a:1 synced +b:6");
	fake_api_end(w->f.last);
	UNTIL_ASKED(w, 3);
	assert_true(reflector_synced(w->r));
	assert_string_equal(w->f.log, " watch-synced");
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

/* Of a list that has no page yet nothing has expired. */
static void a_list_whose_first_page_is_gone_comes_in_pages_again(void **state)
{
	static const struct fake_answer script[] = {
		{"limit=2", .status = 410, .body = STATUS(410, "gone")},
		{"GET /pods?limit=2&", .body = LISTED}, GOES_ON("5")};
	struct world *w = *state;

	BEGIN(w, script);
	UNTIL_ASKED(w, 3);
	assert_string_equal(w->reported, " begin +a:1 synced");
	assert_string_equal(w->f.log, " watch-waiting watch-synced");
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
		{"limit=2", .body = LISTED}, GOES_ON("5")};
	struct world *w = *state;

	BEGIN(w, script);
	UNTIL_ASKED(w, 6);
	assert_string_equal(w->reported, " begin +a:1 begin +a:1 synced");
	assert_string_equal(w->f.log, " watch-synced");
}

static void pages_grow_again_one_by_one(void **state)
{
	auto_free char *large = xcalloc(1, BIG + 1);
	memset(large, ' ', BIG);
	const struct fake_answer script[] = {{"limit=20&", .body = large},
		{"limit=10&", .body = LIST("5", "c", "")},
		{"limit=12&", .body = LIST("5", "c", "")},
		{"limit=14&", .body = LIST("5", "c", "")},
		{"limit=16&", .body = LIST("5", "c", "")},
		{"limit=19&", .body = LIST("5", "c", "")},
		{"limit=20&", .body = LIST("5", "c", "")}, {"limit=20&", .body = LISTED},
		GOES_ON("5")};
	struct world *w = *state;

	w->o.page = 20;
	BEGIN(w, script);
	UNTIL_ASKED(w, 9);
	assert_string_equal(w->reported, " begin +a:1 synced");
}

/* An object whose text, with an ending, is larger than a page may be. */
static char *object_of(size_t bytes, const char *beginning, const char *ending)
{
	char *text = xcalloc(1, bytes + 1);
	size_t len = strlen(beginning);

	memset(text, ' ', bytes);
	memcpy(text, beginning, len);
	memcpy(text + bytes - strlen(ending), ending, strlen(ending));
	return text;
}

static char *large_object(const char *beginning, const char *ending)
{
	return object_of(BIG, beginning, ending);
}

static void one_object_may_be_larger_than_a_page(void **state)
{
	auto_free char *page = large_object(
		"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"c\"},"
		"\"items\":[{" META("a", "1"),
		"}]}");
	auto_free char *event =
		large_object("{\"type\":\"ADDED\",\"object\":{" META("c", "6"), "}}\n");
	const struct fake_answer script[] = {{"limit=2&", .body = page}, {"limit=1&", .body = page},
		{"limit=2&fieldSelector=a%3Db&continue=c", .body = LIST("5", "", OBJECT("b", "2"))},
		{"watch=1", .how = FAKE_GOES_ON, .body = event}};
	struct world *w = *state;

	BEGIN(w, script);
	UNTIL_NOTED(w, " begin +a:1 +b:2 synced +c:6");
	assert_int_equal(w->f.asked, 4);
}

/* Half of a page of one object would be a list without pages. */
static void one_object_that_is_too_large_is_asked_for_again_alone(void **state)
{
	auto_free char *page = object_of((size_t)API_OBJECT_MAX + 1,
		"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{" META(
			"a", "1"),
		"}]}");
	const struct fake_answer script[] = {
		{"limit=1&", .body = page}, {"limit=1&", .body = LISTED}, GOES_ON("5")};
	struct world *w = *state;

	w->o.page = 1;
	BEGIN(w, script);
	UNTIL_ASKED(w, 3);
	assert_string_equal(w->reported, " begin +a:1 synced");
	assert_string_equal(w->f.log, " watch-waiting watch-synced");
}

static void what_does_not_come_in_time_is_asked_for_in_smaller_pages(void **state)
{
	static const struct fake_answer script[] = {{"limit=2&", .how = FAKE_NEVER},
		{"limit=1&", .body = LIST("5", "c", OBJECT("a", "1"))},
		{"limit=2&fieldSelector=a%3Db&continue=c", .status = 410},
		{"limit=0&", .how = FAKE_NEVER}, {"limit=2&", .body = LISTED}, GOES_ON("5")};
	struct world *w = *state;
	struct err e = {0};
	const struct api_options o = {.kubeconfig = w->f.kubeconfig,
		.user_agent = "tester/1",
		.timeout_ms = 1000,
		.on_event = on_api_event};

	api_free(w->api);
	w->api = api_new(w->f.loop, &o, &e);
	if (!w->api)
		fail_msg("%s", e.text);
	BEGIN(w, script);
	UNTIL_ASKED(w, 6);
	assert_string_equal(w->reported, " begin +a:1 begin +a:1 synced");
	assert_string_equal(w->f.log, " watch-waiting watch-synced");
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
	char *line = xcalloc(1, API_OBJECT_MAX + 2);
	memset(line, ' ', API_OBJECT_MAX + 1);
	fake_api_say(w->f.last, line);
	free(line);
	UNTIL_ASKED(w, 4);
	assert_int_equal(w->nr_synced, 2);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_list_comes_in_pages_and_a_watch_goes_on_from_there),
		CASE(lines_may_arrive_in_any_pieces),
		CASE(bookmarks_and_unknown_event_types_advance_the_version),
		CASE(an_incomplete_line_is_ignored),
		CASE(an_ended_watch_is_resumed_at_its_last_version),
		CASE(a_list_that_takes_too_long_for_pages_comes_as_a_whole),
		CASE(a_list_whose_first_page_is_gone_comes_in_pages_again),
		CASE(a_malformed_list_is_asked_for_again),
		CASE(versions_and_continue_tokens_have_a_maximum_length),
		CASE(a_page_that_is_too_large_is_asked_for_in_halves),
		CASE(pages_grow_again_one_by_one),
		CASE(one_object_may_be_larger_than_a_page),
		CASE(one_object_that_is_too_large_is_asked_for_again_alone),
		CASE(what_does_not_come_in_time_is_asked_for_in_smaller_pages),
		CASE(a_list_may_come_from_the_servers_memory),
		CASE(a_list_too_large_to_come_from_memory_comes_in_pages),
		CASE(a_line_has_a_limit),
		CASE(closing_is_allowed_in_every_state),
		CASE(the_callbacks_for_begin_and_synced_are_optional),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
