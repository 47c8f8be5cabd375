/* Who may read the status page, and what its answers have besides. */
#include <ui/assets.h>
#include <ui/guard.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void only_readers_at_a_loopback_host_and_from_the_page_itself_get_in(void **state)
{
	static const struct {
		struct ui_visit visit;
		int status;
	} cases[] = {
		{{"GET", "/", "localhost:9466", "", "", UI_HOSTS_LOOPBACK}, 0},
		{{"HEAD", "/", "127.0.0.1:1", "", "", UI_HOSTS_LOOPBACK}, 0},
		{{"GET", "/", "[::1]:9466", "cross-site", "", UI_HOSTS_LOOPBACK},
			0}, /* a link to it */
		{{"GET", "/api/status", "localhost", "same-origin", "", UI_HOSTS_LOOPBACK}, 0},
		{{"GET", "/api/status", "localhost", "none", "", UI_HOSTS_LOOPBACK}, 0},
		{{"GET", "/api/status", "localhost", "", "", UI_HOSTS_LOOPBACK}, 0},
		{{"GET", "/api/status", "localhost", "cross-site", "", UI_HOSTS_LOOPBACK}, 403},
		{{"GET", "/api/whatif", "localhost", "same-site", "", UI_HOSTS_LOOPBACK}, 403},
		{{"POST", "/", "localhost", "", "", UI_HOSTS_LOOPBACK}, 405},
		{{"OPTIONS", "/api/status", "localhost", "", "", UI_HOSTS_LOOPBACK}, 405},
		{{"get", "/", "localhost", "", "", UI_HOSTS_LOOPBACK}, 405},
		{{"GET", "/", "", "", "", UI_HOSTS_LOOPBACK}, 403},
		{{"GET", "/", "rebound.example.com:9466", "", "", UI_HOSTS_LOOPBACK}, 403},
		{{"GET", "/", "localhost.example.com", "", "", UI_HOSTS_LOOPBACK}, 403},
		{{"GET", "/", "10.0.0.1:9466", "", "", UI_HOSTS_LOOPBACK}, 403},
		{{"GET", "/", "10.0.0.1:9466", "", "", UI_HOSTS_ADDRESSES}, 0},
		{{"GET", "/", "[fd00::1]:9466", "", "", UI_HOSTS_ADDRESSES}, 0},
		{{"GET", "/", "node1.example.com:9466", "", "", UI_HOSTS_ADDRESSES}, 403},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *why = NULL;

		if (ui_guard(&cases[i].visit, &why) != cases[i].status || !why != !cases[i].status)
			fail_msg("%s %s at %s from %s", cases[i].visit.method, cases[i].visit.path,
				cases[i].visit.host, cases[i].visit.site);
	}
}

static void only_programs_that_post_json_to_a_host_of_ours_may_call(void **state)
{
	static const char json[] = "application/json";
	static const struct {
		struct ui_visit visit;
		int status;
	} cases[] = {
		{{"POST", "/bind", "127.0.0.1:9467", "", json, UI_HOSTS_LOOPBACK}, 0},
		{{"POST", "/x/bind", "localhost", "", "Application/JSON; charset=utf-8",
			 UI_HOSTS_LOOPBACK},
			0},
		{{"GET", "/bind", "localhost", "", json, UI_HOSTS_LOOPBACK}, 405},
		{{"HEAD", "/bind", "localhost", "", json, UI_HOSTS_LOOPBACK}, 405},
		/* what a web page can send without asking: three types, and its site is named */
		{{"POST", "/bind", "localhost", "cross-site", json, UI_HOSTS_LOOPBACK}, 403},
		{{"POST", "/bind", "localhost", "same-site", json, UI_HOSTS_ANY}, 403},
		{{"POST", "/bind", "localhost", "", "text/plain", UI_HOSTS_LOOPBACK}, 415},
		{{"POST", "/bind", "localhost", "", "text/plain;application/json",
			 UI_HOSTS_LOOPBACK},
			415},
		{{"POST", "/bind", "localhost", "", "application/jsonp", UI_HOSTS_ANY}, 415},
		{{"POST", "/bind", "localhost", "", "", UI_HOSTS_ANY}, 415},
		/* a name that was made to point here */
		{{"POST", "/bind", "rebound.example.com:9467", "", json, UI_HOSTS_LOOPBACK}, 403},
		{{"POST", "/bind", "10.0.0.1", "", json, UI_HOSTS_LOOPBACK}, 403},
		{{"POST", "/bind", "extender.kube-system.svc", "", json, UI_HOSTS_ANY}, 0},
		{{"POST", "/bind", "", "", json, UI_HOSTS_LOOPBACK}, 403},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *why = NULL;
		int got = ui_guard_call(&cases[i].visit, &why);

		if (got != cases[i].status || !why != !cases[i].status)
			fail_msg("case %zu: %d", i, got);
	}
}

static void no_answer_can_load_frame_or_keep_anything(void **state)
{
	static const char *const wanted[] = {"default-src 'none'", "connect-src 'self'",
		"frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'",
		"X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer",
		"Cache-Control: no-store", "Cross-Origin-Resource-Policy: same-origin"};

	(void)state;
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		assert_non_null(strstr(ui_headers, wanted[i]));
	assert_null(strstr(ui_headers, "unsafe"));
	assert_null(strstr(ui_headers, "http"));
}

static bool has(const struct ui_asset *f, const char *text)
{
	return memmem(f->at, f->len, text, strlen(text)) != NULL;
}

static void the_files_are_whole_and_come_from_nowhere_else(void **state)
{
	static const struct {
		const struct ui_page *page;
		const char *path, *begins, *ends;
	} files[] = {
		{&ui_node_page, "/", "<!DOCTYPE html>", "</html>\n"},
		{&ui_node_page, "/page.css", ":root {", "}\n"},
		{&ui_node_page, "/shared.js", "\"use strict\";", "})();\n"},
		{&ui_node_page, "/page.js", "\"use strict\";", "})();\n"},
		{&ui_node_page, "/icon.svg", "<svg ", "</svg>\n"},
		{&ui_cluster_page, "/", "<!DOCTYPE html>", "</html>\n"},
		{&ui_cluster_page, "/page.css", ":root {", "}\n"},
		{&ui_cluster_page, "/cluster.css", ":root {", "}\n"},
		{&ui_cluster_page, "/shared.js", "\"use strict\";", "})();\n"},
		{&ui_cluster_page, "/cluster.js", "\"use strict\";", "})();\n"},
		{&ui_cluster_page, "/icon.svg", "<svg ", "</svg>\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		size_t begins = strlen(files[i].begins), ends = strlen(files[i].ends);
		struct ui_asset f;

		assert_true(ui_asset_find(files[i].page, files[i].path, &f));
		assert_true(f.len > begins + ends);
		assert_memory_equal(f.at, files[i].begins, begins);
		assert_memory_equal(f.at + f.len - ends, files[i].ends, ends);
		assert_false(has(&f, "https://"));
		assert_false(has(&f, "src=\"http"));
		assert_false(has(&f, "innerHTML"));
		assert_false(has(&f, " style=\""));
		assert_false(has(&f, "onclick"));
	}
	assert_false(ui_asset_find(&ui_node_page, "/page", &(struct ui_asset){0}));
	assert_false(ui_asset_find(&ui_node_page, "/cluster.js", &(struct ui_asset){0}));
	assert_false(ui_asset_find(&ui_cluster_page, "/page.js", &(struct ui_asset){0}));
	assert_false(ui_asset_find(&ui_cluster_page, "", &(struct ui_asset){0}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_readers_at_a_loopback_host_and_from_the_page_itself_get_in),
		cmocka_unit_test(only_programs_that_post_json_to_a_host_of_ours_may_call),
		cmocka_unit_test(no_answer_can_load_frame_or_keep_anything),
		cmocka_unit_test(the_files_are_whole_and_come_from_nowhere_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
