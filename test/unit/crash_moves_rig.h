#ifndef NUMAFIT_TEST_CRASH_MOVES_RIG_H
#define NUMAFIT_TEST_CRASH_MOVES_RIG_H

#include <codec/journal_json.h>
#include <codec/moves_json.h>

#include "crash_cgroups.h"
#include "crash_rig.h"

/* What test_crash_moves knows of containers, of what each has in the files of its cgroup, and of
 * what the journal says: what must hold at any time, and at rest. */

enum { BOXES = 14, CPUS = 24, NODES = 4, TEXT = 256, TRY_US = 50, LOOKS = 4 };

/* The one container of its pod. */
struct box {
	struct fake_container c; /* c.cpu_milli 0: of a Burstable pod */
	bool loose; /* nobody has answered how it is to run, or it is left as it runs */
	bool stays; /* its cpuset.mems cannot be written in this life */
	char pod[TEXT], dir[TEXT], cgroup[TEXT]; /* the pod's cgroup and its own, both from the
						    root; and as the runtime shows the latter */
	char seen[CGROUP_TEXT_BYTES], seen_of_pod[CGROUP_TEXT_BYTES];
	/* What the journal had for it when the daemon died. */
	struct {
		bool known, moving;
		struct cpuset cpus, from, to;
		struct nodeset mems, from_mems, to_mems;
	} was;
};

struct asked {
	struct rig *rig;
	struct stream *stream; /* NULL: nobody is asked */
	char question[CGROUP_FILE_BYTES];
	struct {
		VEC(char);
	} document;
};

struct rig {
	struct crash_rig crash;
	struct cgroups_made made;
	char root[CGROUP_FILE_BYTES], seen[CGROUP_TEXT_BYTES];
	struct box box[BOXES];
	struct box *created;
	struct asked asked;
	struct loop_timer *poll, *later;
	bool amid_plan; /* its moves are about to begin: there is time for it */
	bool looks;     /* the life's first rest is still to come */
	char unrest[2 * TEXT];
	unsigned creates, owners, rests, asks, plans, moves, amid, ended_amid, ended_there,
		ended_back, came_away, went_away, errors, kept;
	unsigned deaths[NR_DEATHS + 1];
};

#define EACH_BOX(r, b)                                                                             \
	for (struct box *b = ((struct rig *)(uintptr_t)(r))->box; b < (r)->box + BOXES; b++)       \
		if (b->c.runs)

static const char burstable[] = "/kubepods/burstable";

static inline bool owns(const struct box *b)
{
	return b->c.exclusive && !b->loose;
}

/* The system */

static inline void make_system(struct rig *r)
{
	static const char description[] = "machine four\n"
					  "node 0 memory 8Gi cpus 0-5\n"
					  "node 1 memory 8Gi cpus 6-11\n"
					  "node 2 memory 8Gi cpus 12-17 socket 1\n"
					  "node 3 memory 8Gi cpus 18-23 socket 1\n";
	static const struct {
		const char *name, *text;
	} files[] = {
		{"proc/self/mountinfo", "29 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
		{"sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n"},
		{"sys/fs/cgroup/cgroup.procs", ""},
		{"sys/devices/system/cpu/online", "0-23\n"},
	};
	char path[CGROUP_FILE_BYTES], text[TEXT];

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		(void)snprintf(path, sizeof path, "%s/%s", r->made.root, files[i].name);
		make_file(path, files[i].text);
	}
	for (unsigned n = 0; n < NODES; n++) {
		(void)snprintf(path, sizeof path, "%s/sys/devices/system/node/node%u/meminfo",
			r->made.root, n);
		(void)snprintf(text, sizeof text, "Node %u MemTotal: 8388608 kB\n", n);
		make_file(path, text);
	}
	made_write(&r->made, burstable, "cpuset.cpus", "");
	made_write(&r->made, "/kubepods/besteffort", "cpuset.cpus", "");
	make_file(r->crash.daemon.machine, description);
}

/* The runtime sets it; what is in force follows, as the kernel has it. */
static inline void set_cpuset(const struct rig *r, const struct box *b)
{
	char cpus[TEXT], mems[TEXT];

	assert_true(text_copy(cpus, sizeof cpus, b->c.cpus));
	assert_true(text_copy(mems, sizeof mems, b->c.mems));
	made_write(&r->made, b->dir, "cpuset.cpus", cpus);
	if (!b->stays)
		made_write(&r->made, b->dir, "cpuset.mems", mems);
}

/* The kernel has no memory for it elsewhere: a folder is in the file's place, which root cannot
 * write either. */
static inline void let_it_stay(const struct rig *r, struct box *b, bool stays)
{
	char path[CGROUP_FILE_BYTES], aside[CGROUP_FILE_BYTES];

	made_path(&r->made, b->dir, "cpuset.mems", path);
	made_path(&r->made, b->dir, "cpuset.mems.aside", aside);
	if (stays && !b->stays)
		assert_int_equal(rename(path, aside) || mkdir(path, 0755), 0);
	if (!stays && b->stays)
		assert_int_equal(rmdir(path) || rename(aside, path), 0);
	b->stays = stays;
}

static inline void make_cgroup(const struct rig *r, const struct box *b)
{
	static const char *const files[] = {"cpuset.cpus", "cpuset.mems"};
	char path[CGROUP_FILE_BYTES], in_force[CGROUP_FILE_BYTES + sizeof ".effective"];

	made_write(&r->made, b->pod, "cpuset.cpus", "");
	set_cpuset(r, b);
	made_write(&r->made, b->dir, "memory.max", "1073741824");
	made_write(&r->made, b->dir, "cgroup.events", "populated 1");
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		made_path(&r->made, b->dir, files[i], path);
		(void)snprintf(in_force, sizeof in_force, "%s.effective", path);
		assert_int_equal(symlink(files[i], in_force), 0);
	}
}

/* What was written into cpuset.mems. */
static inline struct nodeset written_mems(const struct rig *r, const struct box *b)
{
	static const struct node_ids ids = {.nr = NODES, .id = {0, 1, 2, 3}};
	char text[CGROUP_TEXT_BYTES];
	struct nodeset mems = {0};

	(void)made_read(&r->made, b->dir, b->stays ? "cpuset.mems.aside" : "cpuset.mems", text);
	if (nodeset_parse(&mems, &ids, text, strlen(text), NULL))
		fail_msg("%s: cpuset.mems is \"%s\"", b->dir, text);
	return mems;
}

/* A plain file that is written when its writer is killed may be left empty; of the kernel's that is
 * not so. */
static inline void remember_files(struct rig *r)
{
	const bool dead = r->crash.dead;

	made_remember(&r->made, burstable, "cpuset.cpus", r->seen, dead);
	EACH_BOX(r, b)
	{
		made_remember(&r->made, b->pod, "cpuset.cpus", b->seen_of_pod, dead);
		made_remember(&r->made, b->dir, "cpuset.cpus", b->seen, dead);
	}
}

/* At any time */

/* It has died, be it that nobody has looked yet. */
static inline bool is_dead(const struct rig *r)
{
	siginfo_t info = {0};

	return r->crash.dead ||
	       waitid(P_PID, (id_t)r->crash.daemon.pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
	       info.si_pid;
}

/* What was written there, whole: a daemon that lives may be writing it. */
static inline struct cpuset written_cpus(const struct rig *r, const char *dir)
{
	struct cpuset cpus;

	while (!made_cpus(&r->made, dir, &cpus) && !is_dead(r))
		usleep(TRY_US);
	return cpus;
}

/* As made_in_force(), with a daemon that writes meanwhile. */
static inline struct cpuset in_force(const struct rig *r, const struct box *b)
{
	const char *const dirs[] = {b->c.cpu_milli ? b->pod : burstable, b->pod, b->dir};
	struct cpuset cpus = r->made.all;

	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		const struct cpuset own = written_cpus(r, dirs[i]), both = cpuset_and(own, &cpus);

		cpus = cpuset_empty(&both) ? cpus : both;
	}
	return cpus;
}

static inline void say_files(const struct rig *r, const struct box *b)
{
	const char *const dirs[] = {b->c.cpu_milli ? b->pod : burstable, b->pod, b->dir};
	char text[CGROUP_TEXT_BYTES];

	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		(void)made_read(&r->made, dirs[i], "cpuset.cpus", text);
		print_message("%s: \"%s\"\n", dirs[i], text);
	}
	print_message("the runtime has \"%s\" for it\n", b->c.cpus);
}

/* A daemon that lives may take CPUs from one and give them to the other between two looks. */
static inline void is_apart_from(const struct rig *r, const struct box *a, const struct box *b)
{
	char x[CPUSET_TEXT_MAX], y[CPUSET_TEXT_MAX];
	struct cpuset own, has;
	unsigned looks = 0;

	do {
		own = in_force(r, a);
		has = in_force(r, b);
	} while (cpuset_intersects(&own, &has) && !is_dead(r) && ++looks < LOOKS);
	/* what a daemon that has just died has left half written is mended first */
	if (!cpuset_intersects(&own, &has) || is_dead(r) != r->crash.dead)
		return;
	say_files(r, a);
	say_files(r, b);
	fail_msg("%s has %s for itself, and %s runs on %s (the daemon %s)", a->dir,
		cpuset_format(&own, x, sizeof x), b->dir, cpuset_format(&has, y, sizeof y),
		r->crash.dead ? "is dead" : "lives");
}

/* By what is in force nobody runs on CPUs of another one. */
static inline void containers_are_apart(const struct rig *r)
{
	EACH_BOX(r, a)
	EACH_BOX(r, b)
	if (a != b && owns(a) && !b->loose)
		is_apart_from(r, a, b);
}

/* Whoever has CPUs of its own runs on these, and has its memory where the journal says; one that
 * is being moved perhaps on a part. */
static inline void is_within_the_ledger(
	const struct rig *r, const struct box *b, const struct ledger *l)
{
	const struct holding *h = ledger_find(l, b->c.id);
	const struct cpuset has = in_force(r, b);
	char x[CPUSET_TEXT_MAX], y[CPUSET_TEXT_MAX];

	if (!h || !h->decision.exclusive)
		fail_msg("%s has CPUs of its own, and none in the journal", b->dir);
	if (!cpuset_within(&has, &h->decision.cpus))
		fail_msg("%s runs on %s, and the journal has %s for it", b->dir,
			cpuset_format(&has, x, sizeof x),
			cpuset_format(&h->decision.cpus, y, sizeof y));
	if (!ledger_is_moving(l, b->c.id) && !cpuset_equal(&has, &h->decision.cpus))
		fail_msg("%s is not being moved, runs on %s, and not on %s", b->dir,
			cpuset_format(&has, x, sizeof x),
			cpuset_format(&h->decision.cpus, y, sizeof y));
	const struct nodeset mems = written_mems(r, b);
	if (!b->stays && !nodeset_within(mems, h->decision.mems))
		fail_msg("%s has memory where the journal has none for it", b->dir);
}

/* CPUs of a container that would fit on no NUMA node, and on the whole machine; 0: there are none.
 */
static inline unsigned cpus_that_need_room(const struct rig *r)
{
	struct journal_fold f;
	unsigned most = 0, nr;

	crash_read_journal(&r->crash, &f);
	const struct cpuset free = ledger_free_cpus(engine_ledger(f.engine));
	for (unsigned n = 0; n < NODES; n++) {
		nr = cpuset_count_and(&free, &f.topo.node[n].cpus);
		most = nr > most ? nr : most;
	}
	nr = cpuset_count(&free);
	journal_fold_fini(&f);
	return most < CPUS / NODES && nr > most + 1 ? most + 1 : 0;
}

/* The daemon is dead: what it has left behind. */
static inline void look_at_what_is_left(struct rig *r)
{
	struct journal_fold f;

	crash_read_journal(&r->crash, &f);
	const struct ledger *l = engine_ledger(f.engine);
	const struct moving *m = ledger_view(l)->moving;
	r->amid += m != NULL;
	EACH_BOX(r, b)
	{
		const struct holding *h = ledger_find(l, b->c.id);

		if (owns(b))
			is_within_the_ledger(r, b, l);
		memset(&b->was, 0, sizeof b->was);
		if (!owns(b) || !h)
			continue;
		b->was.known = true;
		b->was.cpus = h->decision.cpus;
		b->was.mems = h->decision.mems;
		b->was.moving = m && ledger_is_moving(l, b->c.id);
		if (!b->was.moving)
			continue;
		b->was.from = m->from.cpus;
		b->was.to = m->to.cpus;
		b->was.from_mems = m->from.mems;
		b->was.to_mems = m->to.mems;
	}
	journal_fold_fini(&f);
	containers_are_apart(r);
}

/* At rest */

static inline const char *unrest_of_box(const struct rig *r, const struct box *b, struct ledger *l)
{
	const struct holding *h = ledger_find(l, b->c.id);

	if (!h)
		return "is not in the journal";
	if (ledger_is_moving(l, b->c.id))
		return "is being moved";
	if (decision_is_left(&h->decision))
		return NULL;
	const struct cpuset want = ledger_cpus_of(l, h), has = in_force(r, b),
			    given = fake_container_cpus(&b->c);
	if (!cpuset_equal(&has, &want))
		return "runs on other CPUs";
	if (h->decision.exclusive && !cpuset_equal(&given, &want))
		return "has other CPUs in the runtime";
	const struct nodeset mems = written_mems(r, b);
	if (h->decision.exclusive && !b->stays && !nodeset_equal(mems, h->decision.mems))
		return "has memory on other NUMA nodes";
	return NULL;
}

static inline bool is_at_rest(struct rig *r)
{
	struct journal_fold f;

	crash_read_journal(&r->crash, &f);
	struct ledger *l = (struct ledger *)(uintptr_t)engine_ledger(f.engine);
	*r->unrest = '\0';
	if (ledger_view(l)->moving)
		(void)text_copy(r->unrest, sizeof r->unrest, "a container is being moved");
	EACH_BOX(r, b)
	{
		const char *why = unrest_of_box(r, b, l);

		if (why)
			(void)snprintf(r->unrest, sizeof r->unrest, "%s %s", b->dir, why);
	}
	EACH_BOX(r, c)
	{
		const struct holding *h = *r->unrest ? NULL : ledger_find(l, c->c.id);

		c->c.exclusive = h ? h->decision.exclusive : c->c.exclusive;
		c->loose = h ? decision_is_left(&h->decision) : c->loose;
	}
	journal_fold_fini(&f);
	return !*r->unrest;
}

/* A life's first rest: the move of the life before has ended, one way or the other, and all others
 * have what they had. */
static inline void the_move_has_ended_and_others_are_untouched(struct rig *r)
{
	EACH_BOX(r, b)
	{
		const struct cpuset has = in_force(r, b);
		const struct nodeset mems = written_mems(r, b);

		if (!b->was.known || is_dead(r))
			continue;
		if (!b->was.moving) {
			if (!cpuset_equal(&has, &b->was.cpus) ||
				(!b->stays && !nodeset_equal(mems, b->was.mems)))
				fail_msg("%s was not being moved, and has been", b->dir);
			r->kept++;
			continue;
		}
		const bool there = cpuset_equal(&has, &b->was.to),
			   back = cpuset_equal(&has, &b->was.from);
		const struct nodeset want = there ? b->was.to_mems : b->was.from_mems;
		if (!(there || back) || !(b->stays || nodeset_equal(mems, want)))
			fail_msg("%s is neither where it was nor where it was to go", b->dir);
		r->ended_there += there;
		r->ended_back += back;
	}
}

#endif
