/* A journal whose names command a terminal (a runtime or somebody else with access to the run
 * directory has made them): what each verb that reads it prints is safe to show. */
#include "core_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "journal_writer.h"

/* In a shell's completion each line of a list is a name. */
#define LINE "\n$(id)"
#define EVIL                                                                                       \
	"\x1b[31m\a\b\r\x7f\xc2\x9b\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa8\xef\xbb\xbf\xf3\xa0"       \
	"\x80\x81" LINE
enum { PATH_BYTES = 128, SECOND = 1000, SAID_BYTES = 1 << 20 };

static void make_journal(const char *path)
{
	struct topo *t = machine_of_eight();
	struct settings s;
	struct writer w;

	settings_init(&s);
	writer_init(&w, t, &s, path);
	for (unsigned i = 0; i < 3; i++) {
		struct update_list ups = {0};
		struct decision d;
		char id[64];

		(void)snprintf(id, sizeof id, "c%u" EVIL, i);
		struct request req = ask(id, QOS_GUARANTEED, i == 1 ? 500000 : 4000, GIB(1));
		req.ask.name = "name" EVIL;
		req.ask.odd_wish = i == 2 ? "numafit.io/cores: \"" EVIL "\" is none" : NULL;
		req.pod.sandbox_id = req.pod.uid = req.pod.name = i ? "pod" EVIL "2" : "pod" EVIL;
		req.pod.ns = "ns" EVIL;
		engine_create(w.engine, (i + 1) * SECOND, &req, &d, &ups);
		assert_int_equal(d.admit, i == 0);
		vec_fini(&ups);
	}
	writer_fini(&w);
	free(t);
}

/* Newline and tab apart. */
static void check_said(const char *what, const char *said, size_t len)
{
	uint32_t code;
	size_t nr;

	for (size_t at = 0; at < len; at += nr) {
		nr = text_character(said + at, len - at, &code);
		if (!text_is_shown(code) && code != '\n' && code != '\t')
			fail_msg("%s prints U+%04X behind %.*s", what, code,
				(int)(at > 60 ? 60 : at), said + (at > 60 ? at - 60 : 0));
	}
}

static void what_the_verbs_print_of_hostile_names_is_safe_to_show(void **state)
{
	static const struct {
		const char *verb;
		bool names; /* it prints a name */
	} cases[] = {
		{"explain --run-directory %s --list", true},
		{"explain --run-directory %s 'name" EVIL "'", true},
		{"explain --run-directory %s 'name" EVIL "' -o wide", true},
		{"explain --run-directory %s 'name" EVIL "' -o json", true},
		{"explain --run-directory %s --all 'name" EVIL "'", true},
		{"explain --run-directory %s 'no" EVIL "'", true},
		{"refusals --run-directory %s", true},
		{"refusals --run-directory %s -o wide", true},
		{"refusals --run-directory %s -o json", true},
		{"whatif --run-directory %s --cpus 4", false},
		{"whatif --run-directory %s --cpus 60 --moves 2", false},
		{"replay %s/journal", false},
		{"status --run-directory %s", false},
		{"defrag --run-directory %s", false},
	};
	const char *build = getenv("BUILD");
	char dir[] = "/tmp/numafit-hostile.XXXXXX", path[PATH_BYTES], command[1024];
	char *said = xcalloc(SAID_BYTES, 1);

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof path, "%s/journal", dir);
	make_journal(path);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int len = snprintf(
			command, sizeof command, "%s/numafit ", build ? build : "build/debug");
		const char *at = strstr(cases[i].verb, "%s");

		(void)snprintf(command + len, sizeof command - (size_t)len, "%.*s%s%s 2>&1",
			(int)(at - cases[i].verb), cases[i].verb, dir, at + 2);
		FILE *f = popen(command, "r");
		assert_non_null(f);
		size_t nr = fread(said, 1, SAID_BYTES - 1, f);
		said[nr] = '\0';
		(void)pclose(f);
		check_said(cases[i].verb, said, nr);
		if (strstr(cases[i].verb, "--list") && strstr(said, LINE))
			fail_msg("%s prints a name in two lines: %s", cases[i].verb, said);
		if (!nr || (cases[i].names && !strstr(said, "[31m")))
			fail_msg("%s prints no name: %s", cases[i].verb, said);
	}
	(void)snprintf(command, sizeof command, "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
	free(said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_verbs_print_of_hostile_names_is_safe_to_show),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
