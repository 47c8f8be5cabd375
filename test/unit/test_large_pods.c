/* Pods that are too large for a line of the journal, or for the working memory of a decision: they
 * are decided container by container, and in pod scope recorded in several lines. By the daemon's
 * own recorder; what it has written is cut anywhere, as a kill would leave it, and read by the
 * verbs that read a journal. */
#include <codec/fields_json.h>
#include <io/log.h>
#include <numafitd/daemon.h>

#include "core_machine.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "journal_writer.h"

enum { INITS = 249, INIT_CPUS = 40, MANY_MAX = 4000, NAME_BYTES = 16 };

struct world {
	struct daemon d;
	char dir[64];
	struct pod pod;
	struct pod ask;
	struct ask container[MANY_MAX];
	char name[MANY_MAX][NAME_BYTES];
};

static char logged[1 << 16];

static void look_at_log(const char *line, size_t len)
{
	size_t at = strlen(logged);

	if (at + len < sizeof logged)
		(void)snprintf(logged + at, sizeof logged - at, "%.*s", (int)len, line);
}

static void start(struct world *w)
{
	struct err e = {0};

	logged[0] = '\0';
	if (recorder_start(&w->d, &e) < 0)
		fail_msg("%s", e.text);
}

static void end(struct world *w)
{
	struct err e = {0};

	if (ledger_check(engine_ledger(w->d.engine), &e) < 0)
		fail_msg("%s", e.text);
	loop_timer_close(w->d.recorder.rotate);
	recorder_stop(&w->d);
	w->d.engine = NULL;
	w->d.machine = NULL;
	w->d.recorder.journal = NULL;
}

static const char *fast_directory(void)
{
	const char *tmp = getenv("TMPDIR"), *memory = "/dev/shm";

	if (access(memory, W_OK) == 0)
		return memory;
	return tmp ? tmp : "/tmp";
}

/* A Guaranteed pod of so many init containers and an app container, before its sandbox starts. */
static struct world *world_new(enum topology_scope scope, unsigned inits)
{
	struct world *w = calloc(1, sizeof *w);
	struct topo *t = machine_of_eight();

	w->d.topo = *t;
	free(t);
	settings_init(&w->d.settings);
	w->d.settings.topology_policy = POLICY_BEST_EFFORT;
	w->d.settings.topology_scope = scope;
	(void)cpuset_parse(&w->d.settings.reserved_cpus, "0,32", 4, NULL);
	for (unsigned i = 0; i <= inits; i++) {
		(void)snprintf(w->name[i], NAME_BYTES, i < inits ? "init%u" : "app", i);
		w->container[i] = (struct ask){.name = w->name[i],
			.kind = i < inits ? CONTAINER_INIT : CONTAINER_APP,
			.cpu_milli = INIT_CPUS * 1000,
			.nr_memory = 1,
			.memory = {{0, GIB(1)}}};
	}
	w->ask = (struct pod){.uid = "big", .nr = inits + 1, .container = w->container};
	w->pod = (struct pod){.sandbox_id = "sandbox",
		.uid = "big",
		.ns = "default",
		.name = "big",
		.nr = w->ask.nr,
		.container = w->ask.container};
	w->d.loop = loop_new();
	(void)snprintf(w->dir, sizeof w->dir, "%.40s/numafit-large.XXXXXX", fast_directory());
	assert_non_null(mkdtemp(w->dir));
	(void)snprintf(w->d.run.journal_path, sizeof w->d.run.journal_path, "%s/journal", w->dir);
	start(w);
	return w;
}

static void world_free(struct world *w)
{
	char command[128];

	end(w);
	loop_free(w->d.loop);
	(void)snprintf(command, sizeof command, "rm -rf '%s'", w->dir);
	assert_int_equal(system(command), 0);
	free(w);
}

static struct decision run_pod(struct world *w)
{
	struct decision d;

	engine_run_pod(w->d.engine, 1, &w->pod, &d);
	return d;
}

static struct decision create(struct world *w, unsigned i)
{
	struct request req = ask(w->name[i], QOS_GUARANTEED, INIT_CPUS * 1000, GIB(1));
	struct update_list ups = {0};
	struct decision d;

	req.ask.name = w->name[i];
	req.pod = pod_identity(&w->pod); /* no runtime reports a spec */
	engine_create(w->d.engine, 2, &req, &d, &ups);
	vec_fini(&ups);
	return d;
}

static void stop(struct world *w, unsigned i)
{
	struct update_list ups = {0};

	engine_release(w->d.engine, 3, "stop", w->name[i], &ups);
	vec_fini(&ups);
}

static size_t held(const struct world *w)
{
	return ledger_count(engine_ledger(w->d.engine));
}

static char *take_journal(const struct world *w, size_t *len)
{
	int fd = open(w->d.run.journal_path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	char *file = xcalloc((size_t)st.st_size + 1, 1);
	*len = (size_t)st.st_size;
	assert_int_equal(read(fd, file, *len), st.st_size);
	(void)close(fd);
	return file;
}

static void put_journal(const struct world *w, const char *file, size_t len)
{
	int fd = open(w->d.run.journal_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, file, len), (ssize_t)len);
	(void)close(fd);
}

/* Lines that do not end their text. */
static unsigned count_pieces(const char *file, size_t len)
{
	unsigned nr = 0;

	for (const char *at = file; at && at < file + len;) {
		nr += at[8] == '+';
		at = memchr(at, '\n', len - (size_t)(at - file));
		at = at ? at + 1 : NULL;
	}
	return nr;
}

static char *read_by(const struct command *verb, char **argv, int code)
{
	char *out;

	assert_int_equal(run_verb(verb, argv, &out), code);
	return out;
}

static char *arg(const char *text)
{
	return (char *)(uintptr_t)text;
}

/* The verbs that read a journal understand it, and would decide all of it again just so. */
static void the_verbs_read_it(
	struct world *w, const char *container, const char *words, const char *decided)
{
	char *replay[] = {arg("replay"), w->d.run.journal_path, NULL};
	char *explain[] = {arg("explain"), arg("--run-directory"), w->dir, arg(container), NULL};
	char *whatif[] = {
		arg("whatif"), arg("--run-directory"), w->dir, arg("--cpus"), arg("2"), NULL};
	char *out = read_by(&verb_replay, replay, 0);

	if (!strstr(out, " 0 differ") || !strstr(out, decided))
		fail_msg("%s", out);
	free(out);
	out = read_by(&verb_explain, explain, 0);
	if (!strstr(out, words))
		fail_msg("%s", out);
	free(out);
	free(read_by(&verb_whatif, whatif, 0));
}

static void a_pod_too_long_for_one_line_is_decided_container_by_container(void **state)
{
	struct world *w = world_new(SCOPE_CONTAINER, INITS);
	struct decision d = run_pod(w);
	size_t len;

	(void)state;
	if (!d.admit)
		fail_msg("%s", d.message);
	assert_int_equal(d.apart, POD_APART_TOO_LONG);
	assert_int_equal(held(w), 0);
	assert_null(strstr(logged, "journal-not-written"));
	for (unsigned i = 0; i <= INITS; i += INITS / 3) {
		d = create(w, i);
		assert_true(d.admit && d.exclusive);
		assert_int_equal(d.source, SOURCE_DECIDED);
		assert_int_equal(d.apart, POD_APART_TOO_LONG);
		assert_non_null(strstr(d.message, "container by container"));
		assert_int_equal(held(w), 1);
		stop(w, i);
	}
	assert_true(create(w, INITS).admit);
	the_verbs_read_it(w, "big/app", "container by container", " 5 decided again");
	free(take_journal(w, &len));
	end(w);
	start(w); /* and it is known after a restart */
	const struct holding *h = ledger_find(engine_ledger(w->d.engine), "app");
	assert_int_equal(h->decision.apart, POD_APART_TOO_LONG);
	d = create(w, 1);
	assert_int_equal(d.apart, POD_APART_TOO_LONG);
	world_free(w);
}

static void a_pod_that_fits_is_held_as_a_whole(void **state)
{
	struct world *w = world_new(SCOPE_CONTAINER, 20);
	struct decision d = run_pod(w);

	(void)state;
	assert_true(d.admit);
	assert_int_equal(d.apart, POD_APART_NOT);
	assert_int_equal(held(w), 21);
	d = create(w, 0);
	assert_int_equal(d.source, SOURCE_HELD);
	assert_int_equal(d.apart, POD_APART_NOT);
	world_free(w);
}

static void in_pod_scope_it_is_recorded_as_several_lines(void **state)
{
	struct world *w = world_new(SCOPE_POD, INITS);
	struct decision d = run_pod(w);
	size_t len;

	(void)state;
	if (!d.admit)
		fail_msg("%s", d.message);
	assert_int_equal(d.apart, POD_APART_NOT);
	assert_int_equal(held(w), INITS + 1);
	char *file = take_journal(w, &len);
	assert_true(count_pieces(file, len) > 0);
	free(file);
	d = create(w, 0);
	assert_true(d.admit);
	assert_int_equal(d.source, SOURCE_HELD);
	stop(w, 0);
	assert_true(create(w, INITS).admit);
	the_verbs_read_it(w, "big/app", "decided with its whole pod", " 1 decided again");
	end(w);
	start(w);
	assert_int_equal(held(w), INITS + 1);
	assert_null(strstr(logged, "journal-set-aside"));
	the_verbs_read_it(w, "big/app", "decided with its whole pod", " 0 decided"); /* anew */
	world_free(w);
}

static void a_journal_that_ends_between_the_lines_forgets_the_pod(void **state)
{
	struct world *w = world_new(SCOPE_POD, INITS);
	size_t before, len;

	(void)state;
	free(take_journal(w, &before));
	assert_true(run_pod(w).admit);
	char *file = take_journal(w, &len);
	end(w);
	for (size_t cut = before; cut <= len;) {
		put_journal(w, file, cut);
		start(w);
		assert_int_equal(held(w), cut < len ? 0 : INITS + 1);
		assert_null(strstr(logged, "journal-set-aside"));
		assert_true(run_pod(w).admit); /* the runtime asks once more */
		assert_int_equal(held(w), INITS + 1);
		end(w);
		cut += cut < len && cut + 50021 > len ? len - cut : 50021;
	}
	free(file);
	start(w);
	world_free(w);
}

static void a_pod_too_large_for_working_memory_is_decided_container_by_container(void **state)
{
	static const enum topology_scope scopes[] = {SCOPE_CONTAINER, SCOPE_POD};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct world *w = world_new(scopes[i], MANY_MAX - 1);
		struct decision d = run_pod(w);

		if (!d.admit)
			fail_msg("%s", d.message);
		assert_int_equal(d.apart, POD_APART_TOO_LARGE);
		assert_int_equal(held(w), 0);
		d = create(w, 0);
		assert_true(d.admit);
		assert_int_equal(d.apart, POD_APART_TOO_LARGE);
		assert_non_null(strstr(d.message, "container by container"));
		the_verbs_read_it(w, "init0", "container by container", " 1 decided again");
		world_free(w);
	}
}

static void a_refused_large_pod_is_recorded_and_the_journal_stays_good(void **state)
{
	struct world *w = world_new(SCOPE_CONTAINER, INITS);

	(void)state;
	w->container[INITS].cpu_milli = 100 * 1000;
	struct decision d = run_pod(w);
	assert_false(d.admit);
	assert_null(strstr(logged, "journal-not-written"));
	char *explain[] = {arg("explain"), arg("--run-directory"), w->dir, arg("big"), NULL};
	char *out = read_by(&verb_explain, explain, 0);
	assert_non_null(strstr(out, "(the whole pod)"));
	free(out);
	world_free(w);
}

static void a_pod_too_long_for_any_record_is_refused_and_the_journal_stays_good(void **state)
{
	struct world *w = world_new(SCOPE_CONTAINER, 1);
	struct request req = ask("c", QOS_GUARANTEED, 2000, GIB(1));
	struct update_list ups = {0};
	struct decision d;
	enum { LONG = 5 << 20 };
	char *name = xcalloc(LONG + 1, 1);

	(void)state;
	memset(name, 'n', LONG);
	req.ask.name = name;
	engine_create(w->d.engine, 2, &req, &d, &ups);
	assert_false(d.admit);
	assert_non_null(strstr(d.message, "longer than"));
	assert_null(strstr(logged, "journal-not-written"));
	assert_int_equal(w->d.recorder.error.code, 0); /* readyz */
	/* it runs all the same, as it was found: it is not in the journal, all others are */
	struct placement placed = {.exclusive = false};
	engine_live(w->d.engine, 3, &req, &placed);
	recorder_write_anew(&w->d);
	assert_false(w->d.recorder.behind);
	assert_non_null(strstr(logged, "journal-entry-left-out"));
	req = ask("d", QOS_GUARANTEED, 2000, GIB(1));
	engine_create(w->d.engine, 4, &req, &d, &ups);
	assert_true(d.admit);
	vec_fini(&ups);
	free(name);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_too_long_for_one_line_is_decided_container_by_container),
		cmocka_unit_test(a_pod_that_fits_is_held_as_a_whole),
		cmocka_unit_test(in_pod_scope_it_is_recorded_as_several_lines),
		cmocka_unit_test(a_journal_that_ends_between_the_lines_forgets_the_pod),
		cmocka_unit_test(
			a_pod_too_large_for_working_memory_is_decided_container_by_container),
		cmocka_unit_test(a_refused_large_pod_is_recorded_and_the_journal_stays_good),
		cmocka_unit_test(
			a_pod_too_long_for_any_record_is_refused_and_the_journal_stays_good),
	};

	json_seed();
	log_set_sink(look_at_log);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
