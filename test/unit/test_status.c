#include <numafit-cli/verbs.h>

#include <numafit-cli/ask.h>
#include <numafit/mem.h>
#include <numafit-cli/table.h>
#include <numafit/text.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "verb_call.h"

enum { PATH_BYTES = 100, PRINTED_MAX = 8192, PIECE = 7, CHILD_SECONDS = 30 };

static char dir[PATH_BYTES], path[PATH_BYTES];

static int make_dir(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)snprintf(dir, sizeof dir, "%s/numafit.XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

/* A daemon in a process of its own that answers once, piece by piece; NULL: it hangs up. */
static pid_t serve(const char *answer)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(path, sizeof path, "%.80s/s", dir);
	assert_true(text_copy(at.sun_path, sizeof at.sun_path, path));
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(listener, 1), 0);
	pid_t child = fork();
	if (child) {
		(void)close(listener);
		return child;
	}
	(void)alarm(CHILD_SECONDS);
	char word[32] = "";
	int fd = accept(listener, NULL, NULL);
	ssize_t len = read(fd, word, sizeof word - 1);
	bool asked = len > 0 && text_equal(word, "status\n");
	for (size_t i = 0; answer && i < strlen(answer); i += PIECE)
		if (write(fd, answer + i, strnlen(answer + i, PIECE)) < 0)
			asked = false;
	_exit(asked ? 0 : 1);
}

static void assert_served(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(unlink(path), 0);
}

static void an_answer_in_pieces_arrives_whole(void **state)
{
	pid_t child = serve("a long answer, longer than one piece");
	auto_free char *answer = NULL;
	struct err e = {0};
	size_t len = 0;

	(void)state;
	assert_int_equal(ask_daemon(path, "status", &answer, &len, &e), 0);
	assert_string_equal(answer, "a long answer, longer than one piece");
	assert_int_equal(len, strlen(answer));
	assert_served(child);
}

static void a_daemon_that_closes_the_connection_is_reported_as_no_answer(void **state)
{
	pid_t child = serve(NULL);
	char *answer = NULL;
	size_t len;

	(void)state;
	assert_int_equal(ask_daemon(path, "status", &answer, &len, NULL), -ENODATA);
	assert_null(answer);
	assert_served(child);
}

static void a_socket_that_cannot_be_reached_is_named(void **state)
{
	char *answer = NULL;
	char longer[PATH_BYTES * 2];
	struct err e;
	size_t len;

	(void)state;
	(void)snprintf(path, sizeof path, "%.80s/none", dir);
	assert_int_equal(ask_daemon(path, "status", &answer, &len, &e), -ENOENT);
	assert_non_null(strstr(e.text, path));
	memset(longer, 'x', sizeof longer);
	longer[sizeof longer - 1] = '\0';
	assert_int_equal(ask_daemon(longer, "status", &answer, &len, &e), -ENAMETOOLONG);
	assert_null(answer);
}

/* What the verb prints for that document, in that form. */
static int print_status(const char *document, const char *form, char *printed)
{
	char verb[] = "status", option[] = "--socket", output[] = "-o", word[16];
	FILE *to = tmpfile();
	int saved = dup(STDOUT_FILENO);
	pid_t child = serve(document);
	char *argv[] = {verb, option, path, output, word, NULL};

	assert_non_null(to);
	assert_true(text_copy(word, sizeof word, form));
	(void)fflush(stdout);
	(void)dup2(fileno(to), STDOUT_FILENO);
	int code = verb_call(&verb_status, 5, argv);
	(void)fflush(stdout);
	(void)dup2(saved, STDOUT_FILENO);
	(void)close(saved);
	rewind(to);
	printed[fread(printed, 1, PRINTED_MAX - 1, to)] = '\0';
	(void)fclose(to);
	assert_served(child);
	return code;
}

static const char document[] =
	"{\"version\":\"0.1.0\",\"machine\":\"two\",\"connection\":\"ready\",\"runtime\":"
	"\"containerd v2.1\","
	"\"uptime_ms\":93784000,\"generation\":77,\"pod_facts\":\"sandbox\",\"kubelet\":{\"device_plugin\":\"up\","
	"\"tokens\":62,\"unhealthy\":4,\"leased\":8,\"waiting\":3,\"pod_resources\":\"up\","
	"\"pods_api\":\"waiting\",\"pods\":7},\"counters\":{\"creates\":12,\"refused\":1,\"cut_"
	"short\":0,"
	"\"adopted\":2,"
	"\"updates\":3,"
	"\"released\":4,\"compared\":0,\"disagreed\":0,\"drifted\":0,\"relocated\":0,"
	"\"hints_accepted\":5,\"hints_repaired\":1,\"hints_rejected\":2,\"connects\":"
	"1,\"log_dropped\":0},\"settings\":{\"mode\":\"manage\","
	"\"topologyManagerPolicy\":\"restricted\",\"topologyManagerScope\":\"container\","
	"\"topologyManagerPolicyOptions.prefer-closest-numa-nodes\":\"true\","
	"\"cpuManagerPolicyOptions.align-by-socket\":\"false\","
	"\"cpuManagerPolicyOptions.full-pcpus-only\":\"true\","
	"\"cpuManagerPolicyOptions.strict-cpu-reservation\":\"true\"},\"pool\":\"0-3\","
	"\"reserved\":\"0\","
	"\"fragmentation\":{\"ratio_milli\":250,\"free_cpus\":5,\"largest_cpus\":3,"
	"\"possible_cpus\":4,\"largest_memory\":1073741824,\"not_preferred\":0},"
	"\"nodes\":[{\"id\":0,\"cpus\":4,\"cpus_held\":0,\"cpus_reserved\":1,\"cpus_pool\":4,"
	"\"memory_group\":\"0,8\","
	"\"memory\":[{\"type\":\"memory\",\"allocatable\":17179869184,\"free\":1073741824}]},"
	"{\"id\":8,\"cpus\":4,\"cpus_held\":2,\"cpus_reserved\":0,\"cpus_pool\":0,\"memory_group\":"
	"\"8\","
	"\"memory\":[{\"type\":\"memory\",\"allocatable\":17179869184,\"free\":0}]}],"
	"\"containers\":[{\"namespace\":\"default\",\"pod\":\"p\\u001b1\",\"container\":\"web\","
	"\"id\":\"c1\","
	"\"qos\":\"Guaranteed\",\"source\":\"decided\",\"exclusive\":true,\"cpus\":\"4-5\","
	"\"mems\":\"8\",\"nodes\":\"8\","
	"\"preferred\":true},{\"namespace\":\"kube-system\",\"pod\":\"helper\",\"container\":\"h\","
	"\"id\":\"c2\","
	"\"qos\":\"Burstable\",\"source\":\"adopted\",\"exclusive\":false,\"cpus\":\"0-3\","
	"\"mems\":\"0,8\","
	"\"preferred\":false}]}";

static const char table[] =
	"numafitd 0.1.0 on machine two, up 1d2h\n"
	"mode manage, policy restricted, scope container, prefer-closest-numa-nodes true\n"
	"CPU manager options: full-pcpus-only, strict-cpu-reservation\n"
	"runtime containerd v2.1: ready\n"
	"kubelet: device plugin up, 62 of numafit.io/cpu (4 unhealthy), 8 given out (3\n"
	"  wait for their container); PodResources up; Pods API waiting, 7 pods\n"
	"pods are known from their sandboxes' totals alone\n"
	"containers: 12 created, 1 refused, 2 adopted, 3 moved, 4 released, since\n"
	"  numafitd started\n"
	"numafit refusals lists what was refused, also before that, and resizes\n"
	"schedulers' hints: 5 accepted, 1 repaired, 2 rejected\n"
	"shared pool: CPUs 0-3; reserved: 0\n"
	"fragmentation 0.25: 5 CPUs are free, a container on one NUMA node can have 3 of\n"
	"  them (4 if they lay together); at most 1Gi of memory are free on one NUMA node\n"
	"\n"
	"NODE  CPUS  EXCLUSIVE  RESERVED  FREE  POOL  FREE memory  TOGETHER WITH\n"
	"0     4     0          1         3     4     1Gi of 16Gi  0,8\n"
	"8     4     2          0         2     0     0 of 16Gi    -\n"
	"\n"
	"CONTAINER             QOS         CPUS  OWN     MEMS  AFFINITY  PREFERRED\n"
	"default/p?1/web       Guaranteed  4-5   yes     8     8         yes\n"
	"kube-system/helper/h  Burstable   0-3   shared  0,8   any       no\n"
	"\n"
	"-o wide shows what does not fit into this width\n";

static void the_default_output_is_a_table(void **state)
{
	char printed[PRINTED_MAX];

	(void)state;
	assert_int_equal(print_status(document, "table", printed), EXIT_DONE);
	assert_string_equal(printed, table);
}

/* A document of one NUMA node with those members and containers, and what is printed of it. */
static void print_document(
	const char *members, const char *containers, const char *form, char *printed)
{
	static const char before[] =
		"{\"version\":\"0.1.0\",\"machine\":\"one\",\"runtime\":\"\",\"uptime_ms\":1,"
		"\"generation\":1,\"counters\":{\"creates\":0,\"refused\":0,\"cut_short\":0,"
		"\"adopted\":0,\"updates\":0,\"released\":0,\"compared\":0,\"disagreed\":0,"
		"\"drifted\":0,\"relocated\":0,\"hints_accepted\":0,\"hints_repaired\":0,"
		"\"hints_rejected\":0,\"connects\":1,\"log_dropped\":0},"
		"\"nodes\":[{\"id\":0,\"cpus\":8,\"cpus_held\":0,\"cpus_reserved\":1,"
		"\"cpus_pool\":4,\"threads\":[{\"cpus\":\"0-3\"},{\"cpus\":\"6-9\"}],"
		"\"memory_group\":\"0\",\"memory\":[{\"type\":\"memory\",\"allocatable\":8,"
		"\"free\":8}]}],";
	char text[PRINTED_MAX];

	assert_true(snprintf(text, sizeof text, "%s%s,\"containers\":[%s]}", before, members,
			    containers) < (int)sizeof text);
	assert_int_equal(print_status(text, form, printed), EXIT_DONE);
}
static void fragmentation_is_said_where_the_daemon_says_it(void **state)
{
	static const char members[] =
		"\"settings\":{\"mode\":\"manage\"},\"pool\":\"0-3\",\"reserved\":\"0\","
		"\"fragmentation\":{\"ratio_milli\":0,\"free_cpus\":7,\"largest_cpus\":7,"
		"\"possible_cpus\":7,\"largest_memory\":8,\"not_preferred\":%u},"
		"\"connection\":\"ready\"";
	char printed[PRINTED_MAX], some[sizeof members];

	(void)state;
	(void)snprintf(some, sizeof some, members, 1);
	print_document(some, "", "wide", printed);
	assert_non_null(strstr(printed, "\nfragmentation 0: 7 CPUs are free, a container on one "
					"NUMA node can have 7 of them; at most 8 of memory are "
					"free on one NUMA node; 1 of the containers with own CPUs "
					"is on too many NUMA nodes\n"));
	(void)snprintf(some, sizeof some, members, 2);
	print_document(some, "", "wide", printed);
	assert_non_null(strstr(printed, "2 of the containers with own CPUs are on too many"));
	print_document("\"settings\":{},\"pool\":\"\",\"reserved\":\"\",\"connection\":\"ready\"",
		"", "wide", printed); /* an older daemon */
	assert_null(strstr(printed, "fragmentation"));
}

#define SETTINGS(strict)                                                                                 \
	"\"settings\":{\"mode\":\"manage\",\"cpuManagerPolicyOptions.strict-cpu-reservation\":\"" strict \
	"\"}"
#define CONTAINER(ns, pod, name, cpus)                                                             \
	"{\"namespace\":\"" ns "\",\"pod\":\"" pod "\",\"container\":\"" name                      \
	"\",\"id\":\"i\",\"qos\":\"Burstable\",\"source\":\"decided\",\"exclusive\":false,"        \
	"\"cpus\":\"" cpus "\",\"mems\":\"0\",\"preferred\":false}"

static void containers_are_sorted_by_namespace_pod_and_name(void **state)
{
	static const char *const order[] = {"a/b/c ", "a/b/d ", "a/c/a ", "b/a/a "};
	char printed[PRINTED_MAX];
	const char *at = printed;

	(void)state;
	print_document(
		"\"connection\":\"ready\",\"pool\":\"0\",\"reserved\":\"\"," SETTINGS("false"),
		CONTAINER("b", "a", "a", "0") "," CONTAINER("a", "c", "a", "0") "," CONTAINER(
			"a", "b", "d", "0") "," CONTAINER("a", "b", "c", "0"),
		"table", printed);
	for (unsigned i = 0; i < sizeof order / sizeof *order; i++) {
		at = strstr(at, order[i]);
		assert_non_null(at);
	}
}

static void a_runtime_that_is_not_connected_is_the_first_line(void **state)
{
	static const char line[] = "the runtime is not connected: containers start unpinned\n\n";
	char printed[PRINTED_MAX];

	(void)state;
	print_document(
		"\"connection\":\"connecting\",\"pool\":\"0\",\"reserved\":\"\"," SETTINGS("false"),
		"", "table", printed);
	assert_memory_equal(printed, line, sizeof line - 1);
}

static void cpus_that_nobody_may_use_are_listed_with_the_reason(void **state)
{
	char printed[PRINTED_MAX];

	(void)state;
	print_document(
		"\"connection\":\"ready\",\"pool\":\"1-2\",\"reserved\":\"0\",\"isolated\":\"6-7\","
		"\"held\":\"3,7\",\"left\":\"2\",\"offline\":\"4-5\",\"nodeless\":\"10\"," SETTINGS(
			"true"),
		"", "wide", printed);
	assert_non_null(strstr(printed,
		"\nCPUs that nobody may use: 4-5 (offline), 10 (on no NUMA node), 0 (reserved: "
		"strict-cpu-reservation)\n"
		"CPUs that no container uses now: 6 (isolated), 8-9 (free, outside the shared pool)\n"
		"CPUs that no container gets for its own: 2 (containers are left on them as they were "
		"found)\n"));
	print_document("\"connection\":\"ready\",\"pool\":\"0-3,6-9\",\"reserved\":\"0\"," SETTINGS(
			       "false"),
		"", "wide", printed);
	assert_null(strstr(printed, "CPUs that"));
	print_document("\"connection\":\"ready\",\"pool\":\"1-3,6-9\",\"reserved\":\"0\"," SETTINGS(
			       "true"),
		CONTAINER("a", "on", "reserved", "0"), "wide", printed);
	assert_null(strstr(printed, "CPUs that"));
}

#define LONG "a-name-that-is-much-longer-than-a-table-for-eighty-columns-can-show"
#define CPUS "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,42,44,46,48,50,52"

static void no_line_is_longer_than_80_columns_unless_all_is_asked_for(void **state)
{
	char printed[PRINTED_MAX];

	(void)state;
	print_document("\"connection\":\"ready\",\"pool\":\"" CPUS
		       "\",\"reserved\":\"\"," SETTINGS("false"),
		CONTAINER("kube-system", LONG, "the-end", CPUS), "table", printed);
	for (const char *line = printed; *line; line += strcspn(line, "\n") + 1)
		assert_in_range(strcspn(line, "\n"), 0, 80);
	assert_non_null(strstr(printed, "\nkube-system/a-name"));
	assert_non_null(strstr(printed, "the-end  0,2,4,"));
	assert_non_null(strstr(printed, "...  shared"));
	print_document("\"connection\":\"ready\",\"pool\":\"" CPUS
		       "\",\"reserved\":\"\"," SETTINGS("false"),
		CONTAINER("kube-system", LONG, "the-end", CPUS), "wide", printed);
	assert_non_null(strstr(printed, "kube-system/" LONG "/the-end"));
	assert_non_null(strstr(printed, "shared pool: CPUs " CPUS ";"));
	assert_null(strstr(printed, "does not fit"));
}

static void nothing_that_comes_from_outside_commands_the_terminal(void **state)
{
	char printed[PRINTED_MAX];

	(void)state;
	print_document(
		"\"connection\":\"x\\u001b[2J\\u009b2J\",\"pool\":\"0\",\"reserved\":\"\"," SETTINGS(
			"false"),
		CONTAINER("a\\n", "b\\u001b]0;x\\u0007", "c\\u009d", "0"), "table", printed);
	assert_non_null(strstr(printed, "runtime unknown: x?[2J??2J\n"));
	assert_non_null(strstr(printed, "\na?/b?]0;x?/c?? "));
	for (const char *c = printed; *c; c++)
		assert_true(*c == '\n' || (unsigned char)*c >= ' ');
}

static void the_json_output_is_the_document_of_the_daemon(void **state)
{
	char printed[PRINTED_MAX];

	(void)state;
	assert_int_equal(print_status(document, "json", printed), EXIT_DONE);
	assert_int_equal(printed[strlen(printed) - 1], '\n');
	printed[strlen(printed) - 1] = '\0';
	assert_string_equal(printed, document);
}

static void an_answer_that_is_no_status_is_an_error(void **state)
{
	char printed[PRINTED_MAX];

	(void)state;
	assert_int_equal(
		print_status("{\"error\":\"no such word\"}", "json", printed), EXIT_CANNOT);
	assert_string_equal(printed, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_in_pieces_arrives_whole),
		cmocka_unit_test(a_daemon_that_closes_the_connection_is_reported_as_no_answer),
		cmocka_unit_test(a_socket_that_cannot_be_reached_is_named),
		cmocka_unit_test(the_default_output_is_a_table),
		cmocka_unit_test(fragmentation_is_said_where_the_daemon_says_it),
		cmocka_unit_test(containers_are_sorted_by_namespace_pod_and_name),
		cmocka_unit_test(a_runtime_that_is_not_connected_is_the_first_line),
		cmocka_unit_test(cpus_that_nobody_may_use_are_listed_with_the_reason),
		cmocka_unit_test(no_line_is_longer_than_80_columns_unless_all_is_asked_for),
		cmocka_unit_test(nothing_that_comes_from_outside_commands_the_terminal),
		cmocka_unit_test(the_json_output_is_the_document_of_the_daemon),
		cmocka_unit_test(an_answer_that_is_no_status_is_an_error),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
