#ifndef NUMAFIT_TEST_CRASH_RIG_H
#define NUMAFIT_TEST_CRASH_RIG_H

#include <io/fault.h>
#include <numafit-cli/journal_fold.h>

#include <stdio.h>
#include <stdarg.h>

#include "core_random.h"
#include "daemon_rig.h"
#include "fake_runtime.h"

/* A daemon that lives again and again, and is killed each time: at a step of its work (io/fault.h),
 * or at any moment. CRASH_ROUNDS=n changes how often, SEED=n how. */

enum { CRASH_STARTUP_MS = 20000 };

/* From where a life may know of earlier ones. */
enum memory { JOURNAL_AND_ANNOTATIONS, JOURNAL_ONLY, ANNOTATIONS_ONLY, NEITHER, NR_MEMORIES };

struct crash_rig {
	struct daemon_rig daemon;
	struct fake_runtime runtime;
	struct loop *loop;
	struct loop_timer *watchdog;
	struct random random;
	void (*died)(void *ctx); /* the daemon is dead */
	void *ctx;
	enum memory memory;
	bool dead, killed;  /* killed: by the test, not at a step of its own */
	bool journal_whole; /* it has all that was placed; else it was lost and is being made */
	unsigned fault, nr_faults; /* where it dies; nr_faults: at any moment */
	char fault_text[64];
	unsigned calls, next; /* calls: how many are left in this life; next: for names */
	unsigned kill_us;     /* at any moment: at most so much later */
};

static inline void crash_on_child(void *ctx)
{
	struct crash_rig *c = ctx;

	if (c->dead)
		return;
	int status = rig_end(&c->daemon, 0);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		fail_msg("the daemon ended by itself (status %#x)", (unsigned)status);
	c->dead = true;
	c->died(c->ctx);
}

/* on_watchdog gets ctx, too. */
static inline void crash_init(
	struct crash_rig *c, void *ctx, void (*died)(void *ctx), void (*on_watchdog)(void *ctx))
{
	const char *seed = getenv("SEED");

	(void)signal(SIGPIPE, SIG_IGN);
	rig_init(&c->daemon);
	c->ctx = ctx;
	c->died = died;
	c->random.state = seed ? strtoull(seed, NULL, 0) : 20261121;
	c->journal_whole = true;
	c->loop = loop_new();
	c->watchdog = loop_timer_new(c->loop, on_watchdog, ctx);
	assert_int_equal(loop_on_signal(c->loop, SIGCHLD, crash_on_child, c), 0);
}

static inline void crash_fini(struct crash_rig *c)
{
	loop_free(c->loop);
	rig_fini(&c->daemon);
}

/* The daemon's log, and what the test does in between, go to the file CRASH_LOG, where that is set.
 */
static inline void crash_log_to_file(struct crash_rig *c)
{
	const char *path = getenv("CRASH_LOG");

	c->daemon.log =
		open(path ? path : "/dev/null", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	assert_true(c->daemon.log >= 0);
}

__attribute__((format(printf, 2, 3))) static inline void crash_note(
	const struct crash_rig *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vdprintf(c->daemon.log, format, args);
	va_end(args);
}

/* How many lives a case has. */
static inline unsigned crash_rounds(unsigned otherwise)
{
	const char *text = getenv("CRASH_ROUNDS");

	return text ? (unsigned)atoi(text) : otherwise;
}

/* At the last call of a life the daemon dies before, while or shortly after it works on it, unless
 * it has died before. */
static inline void crash_perhaps_kill(struct crash_rig *c)
{
	if (--c->calls > 0 || c->dead)
		return;
	if (c->fault == c->nr_faults)
		usleep(random_below(&c->random, c->kill_us));
	c->killed = true;
	assert_int_equal(kill(c->daemon.pid, SIGKILL), 0);
}

/* What a container has in the journal's ledger, whose text is checked against what it runs on. */
static inline void crash_assert_as_held(
	const struct fake_container *b, const struct holding *h, const struct journal_fold *f)
{
	char cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX];

	assert_string_equal(b->cpus,
		cpuset_format((struct cpuset[]){ledger_cpus_of(engine_ledger(f->engine), h)}, cpus,
			sizeof cpus));
	assert_string_equal(
		b->mems, nodeset_format(h->decision.mems, &f->topo.ids, mems, sizeof mems));
}

/* The journal's ledger, which is sound. */
static inline void crash_read_journal(const struct crash_rig *c, struct journal_fold *f)
{
	struct err e = {0};

	if (journal_fold(f, c->daemon.journal, NULL, NULL, &e) < 0)
		fail_msg("%s", e.text);
	if (ledger_check(engine_ledger(f->engine), &e) < 0)
		fail_msg("%s", e.text);
}

static inline void crash_assert_no_journal_set_aside(const struct crash_rig *c)
{
	char aside[sizeof c->daemon.journal + sizeof ".damaged"];

	(void)snprintf(aside, sizeof aside, "%s.damaged", c->daemon.journal);
	assert_int_equal(access(aside, F_OK), -1);
}

/* Start a life. The listener is of this life alone, lest one that died before its connection was
 * accepted is accepted in the next life. */
static inline void crash_begin(struct crash_rig *c)
{
	fake_runtime_listen(&c->runtime, c->daemon.socket);
	rig_start(&c->daemon);
}

/* Until the loop is stopped: the life is over. */
static inline void crash_live(struct crash_rig *c)
{
	loop_timer_set(c->watchdog, CRASH_STARTUP_MS);
	loop_run(c->loop);
	listener_close(c->runtime.listener);
	fake_runtime_fini(&c->runtime);
}

#endif
