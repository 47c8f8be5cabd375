/* The verb lives in a program, not in a library that a test could link. */
#include <numafit-cli/output.c>
#include <numafit-cli/table.c>
#include <numafit-cli/topology.c>

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#include "verb_call.h"

#define NR(a) (sizeof(a) / sizeof *(a))
enum { WORDS_MAX = 8, OUTPUT_MAX = 1 << 16 };

/* Point descriptor fd at a fresh file; returns what it was. */
static int redirect(int fd, FILE *to)
{
	int saved = dup(fd);

	assert_true(saved >= 0);
	assert_true(dup2(fileno(to), fd) == fd);
	return saved;
}

static void take_back(int fd, int saved, FILE *from, char out[OUTPUT_MAX])
{
	assert_true(dup2(saved, fd) == fd);
	assert_int_equal(close(saved), 0);
	rewind(from);
	out[fread(out, 1, OUTPUT_MAX - 1, from)] = '\0';
	assert_int_equal(fclose(from), 0);
}

/* Run the verb with these words; its exit code, and what it wrote. */
static int run(const char *words, char out[OUTPUT_MAX], char errors[OUTPUT_MAX])
{
	char line[256];
	char *argv[WORDS_MAX + 1] = {0};
	int argc = 0;
	FILE *to = tmpfile(), *err = tmpfile();

	assert_non_null(to);
	assert_non_null(err);
	assert_true(text_copy(line, sizeof line, words));
	for (char *w = strtok(line, " "); w && argc < WORDS_MAX; w = strtok(NULL, " "))
		argv[argc++] = w;
	(void)fflush(stdout);
	int saved_out = redirect(STDOUT_FILENO, to), saved_err = redirect(STDERR_FILENO, err);
	int code = verb_call(&verb_topology, argc, argv);
	(void)fflush(stdout);
	take_back(STDOUT_FILENO, saved_out, to, out);
	take_back(STDERR_FILENO, saved_err, err, errors);
	return code;
}

static void an_average_is_printed_as_the_shortest_decimal(void **state)
{
	static const struct {
		const char *words, *out;
	} cases[] = {
		{"topology --machine kep3545-4 --average 0,1", "10.5\n"},
		{"topology --machine kep3545-4 --average 0,2", "11\n"},
		{"topology --machine kep3545-8 --average 3,7", "20\n"},
		{"topology --machine kep3545-8 --average=5-7", "11.1\n"}, /* 100/9 */
		{"topology --machine kep3545-8 --average 0-7", "20.625\n"},
		{"topology --machine kep3545-8 --average 2", "10\n"},
		{"topology --machine sparse-nodes --average 2,8", "13.5\n"},
	};
	static char out[OUTPUT_MAX], errors[OUTPUT_MAX];

	(void)state;
	for (size_t i = 0; i < NR(cases); i++) {
		assert_int_equal(run(cases[i].words, out, errors), 0);
		assert_string_equal(out, cases[i].out);
		assert_string_equal(errors, "");
	}
}

static void a_wrong_command_line_is_explained(void **state)
{
	static const struct {
		const char *words;
		int code;
		const char *error;
	} cases[] = {
		{"topology --machine kep3545-4 --average 0,9", 2, "--average 0,9: "},
		{"topology --machine kep3545-4 --average x", 2, "--average x: "},
		{"topology --machine kep3545-4 --average=", 2,
			"--average needs at least one NUMA node"},
		{"topology --machine nope", EXIT_CANNOT, "no machine \"nope\""},
		{"topology --machine", 2, "--machine: MACHINE is expected"},
		{"topology --colour", 2, "unknown option --colour"},
		{"topology laptop", 2, "\"laptop\": only options are expected"},
		{"topology --average 0 --export", 2, "exclude each other"},
	};
	static char out[OUTPUT_MAX], errors[OUTPUT_MAX];

	(void)state;
	for (size_t i = 0; i < NR(cases); i++) {
		assert_int_equal(run(cases[i].words, out, errors), cases[i].code);
		assert_string_equal(out, "");
		if (!strstr(errors, cases[i].error))
			fail_msg("%s: \"%s\"", cases[i].words, errors);
	}
}

static void help_goes_to_stdout(void **state)
{
	static char out[OUTPUT_MAX], errors[OUTPUT_MAX];

	(void)state;
	assert_int_equal(run("topology --help", out, errors), 0);
	assert_memory_equal(out, "usage: numafit topology ", sizeof "usage: numafit topology " - 1);
	assert_string_equal(errors, "");
}

static void the_table_shows_nodes_and_distances(void **state)
{
	static const char want[] = "machine sparse-nodes: NUMA nodes 4, sockets 2, cores 4, CPUs "
				   "7, last-level caches 2\n"
				   "\n"
				   "node  memory  hugepages-2Mi  hugepages-1Gi  socket  cpus\n"
				   "0     8Gi     512Mi          1Gi            0       0-3\n"
				   "1     4Gi     0              0              -       -\n"
				   "2     8Gi     0              1Gi            3       4,6-7\n"
				   "8     16Gi    0              1Gi            -       -\n"
				   "\n"
				   "distance  0   1   2   8\n"
				   "0         10  30  20  40\n"
				   "1         30  10  30  50\n"
				   "2         20  30  10  17\n"
				   "8         40  50  17  10\n";
	static char out[OUTPUT_MAX], errors[OUTPUT_MAX];

	(void)state;
	assert_int_equal(run("topology --machine sparse-nodes", out, errors), 0);
	assert_string_equal(out, want);
}

static void an_exported_machine_can_be_read_again(void **state)
{
	static char out[OUTPUT_MAX], errors[OUTPUT_MAX];
	struct topo before, after;

	(void)state;
	assert_int_equal(run("topology --machine snc4-2s --export", out, errors), 0);
	assert_int_equal(machine_load("snc4-2s", &before, NULL, NULL, NULL), 0);
	assert_int_equal(machine_text_parse(out, strlen(out), &after, NULL), 0);
	assert_int_equal(topo_fingerprint(&after), topo_fingerprint(&before));
	assert_int_equal(run("topology --export", out, errors), 0);
	assert_int_equal(machine_text_parse(out, strlen(out), &after, NULL), 0);
	assert_string_equal(after.name, "this");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_average_is_printed_as_the_shortest_decimal),
		cmocka_unit_test(a_wrong_command_line_is_explained),
		cmocka_unit_test(help_goes_to_stdout),
		cmocka_unit_test(the_table_shows_nodes_and_distances),
		cmocka_unit_test(an_exported_machine_can_be_read_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
