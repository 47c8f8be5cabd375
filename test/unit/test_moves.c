/* Containers that the daemon moves to make room, with cgroups that are files of a folder. What the
 * kernel makes of them is seen in a virtual machine. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <codec/journal_json.h>
#include <mover/moves.h>
#include <numafit/number.h>

#include "sweep_rig.h"

enum {
	WHILE_MS = 400,
	LOOK_AGAIN_US = 1100 * 1000, /* one refused pod a second is looked at */
	LINE_BYTES = 8192,
	QUESTION_BYTES = LINE_BYTES + 64,
	ARENA_BYTES = 1 << 20
};

/* What was document last. */
static struct document {
	bool is_there;
	int rc; /* of reading it */
	struct err error;
	struct moves moves;
	struct arena arena;
	char *text;
} document;

static void on_document(void *asker, const char *text)
{
	struct document *a = asker;

	a->is_there = true;
	free(a->text);
	a->text = xstrdup(text);
	arena_init(&a->arena, ARENA_BYTES);
	a->rc = moves_json_parse(a->text, strlen(a->text), &a->arena, &a->moves, &a->error);
}

static bool is_answered(struct rig *r)
{
	(void)r;
	return document.is_there;
}

static bool is_at_rest(struct rig *r)
{
	return !mover_is_busy(moves_mover(r->d.follow.moves)) && is_quiet(r) && all_are_as_held(r);
}

static void ask(struct rig *r, const char *question)
{
	struct err e;

	arena_fini(&document.arena);
	document.is_there = false;
	if (moves_ask(r->d.follow.moves, question, on_document, &document, &e))
		fail_msg("%s", e.text);
	wait_until(r, is_answered);
}

static struct pod pod_of(const struct ask *container)
{
	return (struct pod){.sandbox_id = "s",
		.uid = "new",
		.ns = "default",
		.name = "new",
		.qos = QOS_GUARANTEED,
		.nr = 1,
		.container = container};
}

/* The question for a pod of one container with so many CPUs. */
static const char *question_for(
	const struct rig *r, const char *what, unsigned cpus, char question[QUESTION_BYTES])
{
	const struct ask container = {.name = "main",
		.cpu_milli = (uint64_t)cpus * MILLI_PER_CPU,
		.nr_memory = 1,
		.memory = {{0, 1 << 20}}};
	const struct pod pod = pod_of(&container);
	char line[LINE_BYTES];

	assert_true(journal_json_refused(NULL, &pod, &r->d.topo.ids, line, sizeof line, NULL) > 0);
	(void)snprintf(question, QUESTION_BYTES, "%s 3 %s", what, line);
	return question;
}

static void ask_for(struct rig *r, const char *what, unsigned cpus)
{
	char question[QUESTION_BYTES];

	ask(r, question_for(r, what, cpus, question));
}

/* Of two NUMA nodes of eight CPUs the first has six in use, and the second two: no eight, and no
 * seven, are free on either, before the second container goes to the first. */
static struct rig *fragmented_node(struct box **small)
{
	struct rig *r = rig_new_by(true, "v0.12.5", true);

	put_unbounded(r);
	r->memory_limit = 1 << 20; /* so that it is pinned */
	r->d.settings.topology_policy = POLICY_RESTRICTED;
	r->d.settings.defrag.mode = DEFRAG_ON_DEMAND;
	recorder_write_anew(&r->d); /* with these settings */
	(void)start_box(r, 1, 7);
	*small = start_box(r, 2, 2);
	call(r, NRI_CALL_STOP, &r->box[1]);
	r->box[1].c.runs = false;
	wait_until(r, is_quiet);
	(void)start_box(r, 3, 6);
	assert_true(cpus_are(r, *small, "8-9"));
	assert_true(cpus_are(r, &r->box[3], "0-5"));
	document = (struct document){0};
	return r;
}

/* The first NUMA node is full meanwhile. */
static struct box *place_on_second(struct rig *r)
{
	(void)start_box(r, 6, 2);
	struct box *b = start_box(r, 7, 2);

	call(r, NRI_CALL_STOP, &r->box[6]);
	r->box[6].c.runs = false;
	wait_until(r, is_quiet);
	assert_true(cpus_are(r, b, "8-9"));
	return b;
}

static void end(struct rig *r)
{
	arena_fini(&document.arena);
	free(steal(document.text));
	rig_free(r);
}

static const char *mems_of(const struct rig *r, const struct box *b)
{
	char name[PATH_BYTES / 2];

	(void)snprintf(name, sizeof name, "sys/fs/cgroup%s/cpuset.mems", b->cgroup);
	return content(r, name);
}

static void a_plan_says_what_would_move_and_moves_nothing(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);

	(void)state;
	ask_for(r, "plan", 7);
	assert_int_equal(document.rc, 0);
	const struct moves *m = &document.moves;
	assert_true(m->found);
	assert_int_equal(m->nr, 1);
	assert_string_equal(m->pod, "default/new");
	assert_null(m->cannot);
	assert_string_equal(m->at[0].id, small->c.id);
	assert_string_equal(m->at[0].from_nodes, "1");
	assert_string_equal(m->at[0].to_nodes, "0");
	assert_int_equal(m->at[0].state, MOVE_PLANNED);
	assert_true(cpus_are(r, small, "8-9"));
	ask_for(r, "plan", 6);
	assert_true(document.moves.found);
	assert_int_equal(document.moves.nr, 0);
	ask_for(r, "plan", 15); /* not even an empty machine */
	assert_false(document.moves.found);
	end(r);
}

/* What was decided can be decided again from the journal alone, the plan as well. */
static void assert_the_replay_is_the_same(const struct rig *r)
{
	char command[2 * PATH_BYTES];
	char self[PATH_BYTES] = "";

	assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	assert_int_equal(count_lines(r, "journal", "\"basis\":{\"moves\":3"), 1);
	(void)snprintf(command, sizeof command, "%.*s/../numafit replay %s/journal >%s/replayed",
		(int)(strrchr(self, '/') - self), self, r->dir, r->dir);
	assert_int_equal(system(command), 0);
	(void)snprintf(command, sizeof command,
		"%.*s/../numafit explain --run-directory %s default/p2 >%s/replayed",
		(int)(strrchr(self, '/') - self), self, r->dir, r->dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(count_lines(r, "replayed", "CPUs 6-7 on NUMA node 0"), 1);
}

static void only_memory_that_is_in_use_and_pinned_counts(void **state)
{
	(void)state;
	for (int is_pinned = 0; is_pinned <= 1; is_pinned++) {
		struct box *small;
		struct rig *r = fragmented_node(&small);

		if (!is_pinned) {
			call(r, NRI_CALL_STOP, small);
			small->c.runs = false;
			wait_until(r, is_quiet);
			r->memory_limit = 0;
			small = place_on_second(r);
		}
		put_cgroup(r, small, "memory.numa_stat",
			"anon N0=0 N1=409600\nfile N0=0 N1=0\n"
			"file_mapped N0=0 N1=0\n");
		ask_for(r, "plan", 7);
		assert_int_equal(document.moves.nr, 1);
		assert_int_equal(document.moves.at[0].bytes, is_pinned ? 409600 : 0);
		end(r);
	}
}

/* As one that maps what is in a file of hugetlbfs does, which no limit of the container shows. */
static void one_that_uses_huge_pages_stays_whatever_it_asked_for(void **state)
{
	(void)state;
	for (int uses = 0; uses <= 1; uses++) {
		struct box *small;
		struct rig *r = fragmented_node(&small);

		r->d.topo.page_bytes[1] = 2 << 20; /* all of that size are in use */
		r->d.topo.nr_kinds = 2;
		put_cgroup(r, small, "memory.numa_stat",
			"anon N0=0 N1=409600\nfile N0=0 N1=0\n"
			"file_mapped N0=0 N1=0\n");
		put_cgroup(r, small, "hugetlb.2MB.numa_stat",
			uses ? "total=2097152 N0=0 N1=2097152\n" : "total=0 N0=0 N1=0\n");
		ask_for(r, "plan", 7);
		assert_int_equal(document.rc, 0);
		assert_int_equal(document.moves.nr, 1);
		assert_string_equal(document.moves.at[0].pod, uses ? "p3" : "p2");
		end(r);
	}
}

static void a_plan_that_is_applied_moves_cpus_and_memory_and_then_the_pod_fits(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);

	(void)state;
	ask_for(r, "apply", 7);
	assert_int_equal(document.rc, 0);
	assert_int_equal(document.moves.state, MOVES_UNDER_WAY);
	wait_until(r, is_at_rest);
	assert_true(cpus_are(r, small, "6-7"));
	assert_string_equal(mems_of(r, small), "0");
	assert_string_equal(content(r, "sys/fs/cgroup/kubepods/podp2/cpuset.cpus"), "6-7");
	assert_true(r->unasked > 0); /* the runtime knows the new cpuset, too */
	ask(r, "show");
	assert_int_equal(document.moves.state, MOVES_DONE);
	assert_int_equal(document.moves.at[0].state, MOVE_DONE);
	struct box *new = create_box(r, 4, 7);
	assert_int_equal(cpuset_count(&held(r, new)->decision.cpus), 7);
	assert_true(held(r, new)->decision.preferred);
	assert_int_equal(ledger_check(engine_ledger(r->d.engine), NULL), 0);
	assert_int_equal(count_lines(r, "journal", "\"op\":\"move\""), 1);
	assert_int_equal(count_lines(r, "journal", "\"op\":\"moved\""), 1);
	assert_the_replay_is_the_same(r);
	end(r);
}

static void in_mode_advise_nothing_is_moved(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);

	(void)state;
	r->d.settings.defrag.mode = DEFRAG_ADVISE;
	ask_for(r, "apply", 7);
	assert_int_equal(document.rc, 0);
	assert_int_equal(document.moves.state, MOVES_ONLY_PLANNED);
	assert_string_equal(
		document.moves.cannot, "defragment.mode is advise: it is to be on-demand or auto");
	assert_true(cpus_are(r, small, "8-9"));
	end(r);
}

/* A folder in the file's place refuses root, too. */
static void break_file(const struct rig *r, const struct box *b, const char *file)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/%s", r->root, b->cgroup, file);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0755), 0);
}

static void a_write_of_mems_that_fails_is_undone(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);

	(void)state;
	break_file(r, small, "cpuset.mems");
	r->ignores = true; /* the runtime's own write would fail as well */
	ask_for(r, "apply", 7);
	while (mover_is_busy(moves_mover(r->d.follow.moves)))
		wait_until(r, is_quiet);
	assert_true(cpus_are(r, small, "8-9"));
	assert_null(ledger_view(engine_ledger(r->d.engine))->moving);
	ask(r, "show");
	assert_int_equal(document.moves.state, MOVES_FAILED);
	assert_int_equal(document.moves.at[0].state, MOVE_UNDONE);
	assert_non_null(strstr(document.moves.at[0].why, "cpuset.mems"));
	assert_int_equal(ledger_check(engine_ledger(r->d.engine), NULL), 0);
	end(r);
}

/* Its CPUs cannot be set: its memory is left on the NUMA node that the container stays on. */
static void a_write_of_cpus_that_fails_leaves_memory_where_it_was(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);
	char path[PATH_BYTES], mems[16] = "";

	(void)state;
	break_file(r, small, "cpuset.cpus");
	r->ignores = true; /* the runtime writes nothing either */
	ask_for(r, "apply", 7);
	while (mover_is_busy(moves_mover(r->d.follow.moves)))
		wait_until(r, is_quiet);
	(void)snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/cpuset.mems", r->root, small->cgroup);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(mems, sizeof mems, file));
	(void)fclose(file);
	mems[strcspn(mems, "\n")] = '\0';
	assert_string_equal(mems, "1");
	ask(r, "show");
	assert_int_equal(document.moves.at[0].state, MOVE_UNDONE);
	assert_int_equal(ledger_check(engine_ledger(r->d.engine), NULL), 0);
	end(r);
}

static void a_container_whose_cgroup_is_gone_has_ended_and_its_move_is_not_undone(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);

	(void)state;
	remove_tree(r, "sys/fs/cgroup/kubepods/podp2/c2");
	small->c.runs = false;
	ask_for(r, "apply", 7);
	while (mover_is_busy(moves_mover(r->d.follow.moves)))
		wait_until(r, is_quiet);
	ask(r, "show");
	assert_int_equal(document.moves.at[0].state, MOVE_GONE);
	assert_int_equal(mover_counters(moves_mover(r->d.follow.moves)).undone, 0);
	assert_int_equal(ledger_check(engine_ledger(r->d.engine), NULL), 0);
	end(r);
}

static bool has_moved(struct rig *r)
{
	return !mover_is_busy(moves_mover(r->d.follow.moves));
}

/* No round of the sweep and no event of the runtime comes after the move. */
static void the_end_of_a_move_gives_the_pool_what_the_container_has_left(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);

	(void)state;
	sweep_stop(&r->d);
	(void)start_box(r, 4, 0);
	ask_for(r, "apply", 7);
	wait_until(r, has_moved);
	assert_true(cpus_are(r, small, "6-7"));
	assert_string_equal(content(r, "sys/fs/cgroup/kubepods/podp2/cpuset.cpus"), "6-7");
	assert_string_equal(content(r, burstable), "8-15");
	end(r);
}

/* The kernel takes its time for a write into a pipe that nobody reads. */
static void slow_down(const struct rig *r, const struct box *b, char path[PATH_BYTES])
{
	(void)snprintf(path, PATH_BYTES, "%s/sys/fs/cgroup%s/cpuset.mems", r->root, b->cgroup);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0644), 0);
}

static bool is_copying(struct rig *r)
{
	return mover_is_copying(moves_mover(r->d.follow.moves));
}

static bool all_are_updated(struct rig *r)
{
	return !ledger_view(engine_ledger(r->d.engine))->nr_misplaced;
}

/* Longer than the updater gathers. */
static void wait_a_while(struct rig *r)
{
	const uint64_t until = loop_monotonic_ns() + (uint64_t)WHILE_MS * NS_PER_MS;

	while (loop_monotonic_ns() < until)
		wait_until(r, is_quiet);
}

static void create_refused_box(struct rig *r, unsigned i, unsigned cpus, const char *why)
{
	r->refusal = why;
	(void)create_box(r, i, cpus);
	assert_null(held(r, &r->box[i]));
	r->refusal = NULL;
}

static void while_memory_moves_no_event_writes_a_cpuset(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);
	char path[PATH_BYTES];

	(void)state;
	(void)start_box(r, 4, 0);
	sweep_stop(&r->d); /* it would read the pipe */
	slow_down(r, small, path);
	ask_for(r, "apply", 7);
	wait_until(r, is_copying);
	create_refused_box(r, 5, 1, "the memory of a container is being moved");
	engine_must_update(r->d.engine, r->box[3].c.id);
	updater_note_change(&r->d);
	const unsigned set = r->set;
	(void)start_box(
		r, 6, 0); /* what is bounded already needs no write, and its reply has none */
	wait_a_while(r);
	assert_true(is_copying(r));
	assert_int_equal(r->set, set); /* the runtime is asked for nothing, either */
	assert_false(all_are_updated(r));
	int reader = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(reader >= 0);
	while (mover_is_busy(moves_mover(r->d.follow.moves)))
		wait_until(r, is_quiet);
	wait_until(r, all_are_updated);
	assert_true(r->set > set);
	assert_true(cpus_are(r, small, "6-7"));
	(void)create_box(r, 5, 1);
	assert_non_null(held(r, &r->box[5]));
	assert_int_equal(ledger_check(engine_ledger(r->d.engine), NULL), 0);
	end(r);
	(void)close(reader); /* the runtime wrote into it as well */
}

static bool is_enforced(struct rig *r)
{
	return pool_is_enforced(&r->d);
}

/* The runtime comes with nothing more, and nobody looks at cgroups by himself. */
static void bounds_that_wait_for_a_copy_are_written_after_it(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);
	char path[PATH_BYTES];

	(void)state;
	sweep_stop(&r->d);
	slow_down(r, small, path);
	ask_for(r, "apply", 7);
	wait_until(r, is_copying);
	create_refused_box(r, 5, 1, "the memory of a container is being moved");
	call(r, NRI_CALL_STOP, small); /* its move ends with it */
	small->c.runs = false;
	assert_true(is_copying(r));
	assert_false(is_enforced(r));
	int reader = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(reader >= 0);
	wait_until(r, is_enforced);
	assert_false(is_copying(r));
	assert_int_equal(ledger_check(engine_ledger(r->d.engine), NULL), 0);
	end(r);
	(void)close(reader);
}

static void a_second_plan_waits_for_the_first_ones_end(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);

	(void)state;
	ask_for(r, "apply", 7);
	ask_for(r, "apply", 7);
	if (document.rc != -EREMOTEIO && document.moves.nr)
		fail_msg("%s", document.text);
	wait_until(r, is_at_rest);
	end(r);
}

/* Else it would set for others what the container gets. */
static void a_move_waits_until_the_runtime_has_done_what_it_was_answered(void **state)
{
	enum { RUNTIME_MS = 500 };
	struct box *small;
	struct rig *r = fragmented_node(&small);
	const uint64_t before = loop_monotonic_ns();

	(void)state;
	(void)create_box(r, 4, 0);
	ask_for(r, "apply", 7);
	assert_int_equal(document.moves.state, MOVES_UNDER_WAY);
	wait_until(r, has_moved);
	assert_true(cpus_are(r, small, "6-7"));
	assert_true(loop_monotonic_ns() - before >= (uint64_t)RUNTIME_MS * NS_PER_MS);
	end(r);
}

static bool is_updating_small(struct rig *r)
{
	return updater_is_updating(&r->d, r->box[2].c.id);
}

static bool is_lost(struct rig *r)
{
	return !is_ready(r);
}

/* A move waits for the runtime's answer, and that never comes from one that has gone meanwhile. */
static void an_update_that_its_connection_takes_along_is_waited_for_no_more(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);

	(void)state;
	engine_must_update(r->d.engine, small->c.id);
	updater_note_change(&r->d);
	r->runtime.silent = true;
	wait_until(r, is_updating_small);
	fake_runtime_hang_up(&r->runtime);
	wait_until(r, is_lost);
	r->runtime.silent = false;
	wait_until(r, is_ready);
	assert_false(is_updating_small(r));
	ask_for(r, "apply", 7);
	wait_until(r, has_moved);
	assert_true(cpus_are(r, small, "6-7"));
	end(r);
}

static void what_is_no_question_is_refused(void **state)
{
	static const char *const bad[] = {"", "plan", "plan x", "plan 9", "apply 0 {", "move 1"};
	struct box *small;
	struct rig *r = fragmented_node(&small);
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		document.is_there = false;
		if (moves_ask(r->d.follow.moves, bad[i], on_document, &document, &e)) {
			assert_true(*e.text);
			continue;
		}
		wait_until(r, is_answered);
		if (document.rc != -EREMOTEIO)
			fail_msg("%s is taken", bad[i]);
		arena_fini(&document.arena);
	}
	assert_int_equal(moves_ask(r->d.follow.moves, "show", on_document, &document, &e), -ENOENT);
	document.arena = (struct arena){0};
	end(r);
}

static void who_hangs_up_is_not_answered_and_nothing_is_moved_for_it(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);
	char question[QUESTION_BYTES];
	struct err e;

	(void)state;
	assert_int_equal(moves_ask(r->d.follow.moves, question_for(r, "apply", 7, question),
				 on_document, &document, &e),
		0);
	moves_forget(r->d.follow.moves, &document);
	for (unsigned i = 0; i < 100; i++)
		wait_until(r, is_quiet);
	assert_false(document.is_there);
	assert_int_equal(moves_ask(r->d.follow.moves, "show", on_document, &document, &e), -ENOENT);
	assert_true(cpus_are(r, small, "8-9"));
	end(r);
}

/* A pod of so many CPUs, as it was refused: numafitd makes a plan for it. */
static void plan_for_refused(struct rig *r, unsigned cpus)
{
	const struct ask container = {.name = "main", .cpu_milli = (uint64_t)cpus * MILLI_PER_CPU};
	const struct pod pod = pod_of(&container);
	const struct admit_question q = {.pod = &pod};

	moves_note_refused(r->d.follow.moves, &q);
}

static void a_question_waits_while_a_plan_for_a_refused_pod_is_made(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);
	struct document gone = {0};
	char question[QUESTION_BYTES];
	struct err e;

	(void)state;
	plan_for_refused(r, 15);
	(void)question_for(r, "apply", 7, question);
	assert_int_equal(moves_ask(r->d.follow.moves, question, on_document, &gone, &e), 0);
	moves_forget(r->d.follow.moves, &gone); /* it makes room for the next one, as it waits */
	ask(r, question);
	assert_int_equal(document.rc, 0);
	wait_until(r, has_moved);
	assert_true(cpus_are(r, small, "6-7"));
	assert_false(gone.is_there);
	end(r);
}

/* Which is refused at once where no plan is being made. */
static void a_bad_question_that_waited_is_answered_with_an_error(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);

	(void)state;
	plan_for_refused(r, 15);
	ask(r, "plan x");
	assert_int_equal(document.rc, -EREMOTEIO);
	end(r);
}

static void one_question_waits_and_others_are_refused(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);
	struct document refused = {0};
	struct err e;

	(void)state;
	plan_for_refused(r, 15);
	document.is_there = false;
	assert_int_equal(moves_ask(r->d.follow.moves, "plan 3", on_document, &document, &e), 0);
	assert_int_equal(
		moves_ask(r->d.follow.moves, "plan 3", on_document, &refused, &e), -EAGAIN);
	moves_forget(r->d.follow.moves, &document);
	assert_int_equal(moves_ask(r->d.follow.moves, "plan 3", on_document, &document, &e), 0);
	wait_until(r, is_answered);
	assert_false(refused.is_there);
	end(r);
}

/* By itself */

static bool small_has_moved(struct rig *r)
{
	return cpus_are(r, &r->box[2], "6-7") && is_at_rest(r);
}

static void a_refused_pod_makes_room_by_itself_where_that_is_allowed(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);

	(void)state;
	r->d.settings.defrag.mode = DEFRAG_AUTO;
	r->d.settings.defrag.movable = MOVABLE_ALL;
	create_refused_box(r, 4, 7, "NUMA"); /* it comes again */
	wait_until(r, small_has_moved);
	(void)create_box(r, 4, 7);
	assert_non_null(held(r, &r->box[4]));
	end(r);
}

/* Plans for refused pods do not follow one another at once, however many are refused. */
static void a_pod_that_is_refused_while_another_ones_plan_is_made_has_its_own_later(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);

	(void)state;
	r->d.settings.defrag.mode = DEFRAG_AUTO;
	r->d.settings.defrag.movable = MOVABLE_ALL;
	create_refused_box(r, 4, 15, "NUMA"); /* for which there is no plan */
	create_refused_box(r, 5, 7, "NUMA");
	wait_until(r, small_has_moved);
	end(r);
}

static void wait_for_the_plan(struct rig *r)
{
	for (unsigned i = 0; i < 250; i++) /* with the rest that may come before it */
		wait_until(r, is_quiet);
}

/* The kubelet has the pod created again and again, and in the meantime another container ends. */
static void a_pod_that_is_refused_again_on_a_node_that_has_changed_has_another_plan(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);

	(void)state;
	r->d.settings.defrag.mode = DEFRAG_AUTO;
	r->d.settings.defrag.movable = MOVABLE_ALL;
	(void)start_box(r, 6, 2); /* no plan gives a pod more CPUs than are free */
	create_refused_box(r, 4, 7, "6 of 16 CPUs are free");
	wait_for_the_plan(r);
	assert_true(cpus_are(r, small, "8-9"));
	call(r, NRI_CALL_STOP, &r->box[6]);
	r->box[6].c.runs = false;
	wait_until(r, is_quiet);
	create_refused_box(r, 4, 7, "NUMA");
	wait_until(r, small_has_moved);
	end(r);
}

static void nothing_moves_by_itself_beyond_its_limits_or_without_leave(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);

	(void)state;
	r->d.settings.defrag.mode = DEFRAG_AUTO; /* no pod has the annotation */
	create_refused_box(r, 4, 7, "NUMA");
	wait_for_the_plan(r);
	assert_true(cpus_are(r, small, "8-9"));
	r->d.settings.defrag.movable = MOVABLE_ALL;
	r->d.settings.defrag.moves_per_hour = 0;
	(void)usleep(LOOK_AGAIN_US);
	create_refused_box(r, 5, 7, "NUMA");
	wait_for_the_plan(r);
	assert_true(cpus_are(r, small, "8-9"));
	end(r);
}

/* A daemon that ends amid a move, and begins again */

/* CPUs 6 and 7 of NUMA node 0, for who is elsewhere. */
static struct decision place_on_node_0(const struct rig *r, const struct box *b)
{
	struct decision to = held(r, b)->decision;

	(void)cpuset_parse(&to.cpus, "6-7", 3, NULL);
	to.mems = to.nodes = nodeset_of(0);
	for (unsigned i = 0; i < to.nr_blocks; i++)
		to.blocks[i].nodes = nodeset_of(0);
	return to;
}

static void a_move_that_a_daemon_did_not_end_goes_on_in_its_next_life(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);
	const struct decision to = place_on_node_0(r, small);

	(void)state;
	assert_int_equal(engine_begin_move(r->d.engine, 1, small->c.id, &to, NULL, NULL), 0);
	stop_daemon(r);
	set_cpus(r, small, "6-9"); /* as far as it had come */
	read_machine(r, machine);
	start_daemon(r);
	wait_until(r, small_has_moved);
	assert_string_equal(mems_of(r, small), "0");
	assert_null(ledger_view(engine_ledger(r->d.engine))->moving);
	end(r);
}

static void a_runtime_that_has_not_heard_of_a_move_is_given_the_new_place(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);
	const struct decision to = place_on_node_0(r, small);

	(void)state;
	assert_int_equal(engine_begin_move(r->d.engine, 1, small->c.id, &to, NULL, NULL), 0);
	assert_int_equal(engine_end_move(r->d.engine, 2, false, NULL), 0);
	stop_daemon(r); /* which was about to update it */
	set_cpus(r, small, "6-7");
	set_mems(r, small, "0");
	read_machine(r, machine);
	r->nr_updates = 0;
	start_daemon(r);
	wait_until(r, small_has_moved);
	assert_int_equal(r->nr_updates, 1); /* of the Synchronize, which reports the old one */
	end(r);
}

/* The runtime has yet to learn the end of the first move, and the kernel takes its time for the
 * second. */
static void no_answer_to_synchronize_has_a_cpuset_while_a_move_goes_on(void **state)
{
	struct box *small;
	struct rig *r = fragmented_node(&small);
	const struct decision to = place_on_node_0(r, small);
	char path[PATH_BYTES];

	(void)state;
	assert_int_equal(engine_begin_move(r->d.engine, 1, small->c.id, &to, NULL, NULL), 0);
	assert_int_equal(engine_end_move(r->d.engine, 2, false, NULL), 0);
	set_cpus(r, small, "6-7");
	set_mems(r, small, "0");
	struct box *second = start_box(r, 4, 2);
	assert_true(cpus_are(r, second, "8-9"));
	struct decision beside = held(r, second)->decision;
	(void)cpuset_parse(&beside.cpus, "10-11", 5, NULL);
	assert_int_equal(engine_begin_move(r->d.engine, 3, second->c.id, &beside, NULL, NULL), 0);
	stop_daemon(r);
	slow_down(r, second, path);
	read_machine(r, machine);
	r->nr_updates = 0;
	start_daemon(r);
	wait_until(r, is_copying);
	assert_int_equal(r->nr_updates, 0);
	int reader = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(reader >= 0);
	wait_until(r, has_moved);
	wait_until(r, all_are_updated);
	assert_true(cpus_are(r, small, "6-7"));
	assert_true(cpus_are(r, second, "10-11"));
	end(r);
	(void)close(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plan_says_what_would_move_and_moves_nothing),
		cmocka_unit_test(only_memory_that_is_in_use_and_pinned_counts),
		cmocka_unit_test(one_that_uses_huge_pages_stays_whatever_it_asked_for),
		cmocka_unit_test(
			a_plan_that_is_applied_moves_cpus_and_memory_and_then_the_pod_fits),
		cmocka_unit_test(in_mode_advise_nothing_is_moved),
		cmocka_unit_test(a_write_of_mems_that_fails_is_undone),
		cmocka_unit_test(a_write_of_cpus_that_fails_leaves_memory_where_it_was),
		cmocka_unit_test(
			a_container_whose_cgroup_is_gone_has_ended_and_its_move_is_not_undone),
		cmocka_unit_test(the_end_of_a_move_gives_the_pool_what_the_container_has_left),
		cmocka_unit_test(while_memory_moves_no_event_writes_a_cpuset),
		cmocka_unit_test(bounds_that_wait_for_a_copy_are_written_after_it),
		cmocka_unit_test(a_second_plan_waits_for_the_first_ones_end),
		cmocka_unit_test(a_move_waits_until_the_runtime_has_done_what_it_was_answered),
		cmocka_unit_test(an_update_that_its_connection_takes_along_is_waited_for_no_more),
		cmocka_unit_test(what_is_no_question_is_refused),
		cmocka_unit_test(a_question_waits_while_a_plan_for_a_refused_pod_is_made),
		cmocka_unit_test(a_bad_question_that_waited_is_answered_with_an_error),
		cmocka_unit_test(one_question_waits_and_others_are_refused),
		cmocka_unit_test(who_hangs_up_is_not_answered_and_nothing_is_moved_for_it),
		cmocka_unit_test(a_refused_pod_makes_room_by_itself_where_that_is_allowed),
		cmocka_unit_test(
			a_pod_that_is_refused_while_another_ones_plan_is_made_has_its_own_later),
		cmocka_unit_test(
			a_pod_that_is_refused_again_on_a_node_that_has_changed_has_another_plan),
		cmocka_unit_test(nothing_moves_by_itself_beyond_its_limits_or_without_leave),
		cmocka_unit_test(a_move_that_a_daemon_did_not_end_goes_on_in_its_next_life),
		cmocka_unit_test(a_runtime_that_has_not_heard_of_a_move_is_given_the_new_place),
		cmocka_unit_test(no_answer_to_synchronize_has_a_cpuset_while_a_move_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
