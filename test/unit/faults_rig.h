#ifndef NUMAFIT_TEST_FAULTS_RIG_H
#define NUMAFIT_TEST_FAULTS_RIG_H

#include <codec/fields_json.h>
#include <io/fault.h>
#include <io/journal.h>
#include <numafit-cli/journal_fold.h>

#include "live_rig.h"

#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>

/* A live daemon whose journal is small, and what is checked of it. */

enum { PIPE_BYTES = 4096 };

static inline void await_end_of_log(struct rig *r)
{
	loop_timer_set(r->watchdog, PATIENCE_MS);
	while (r->reader)
		loop_run(r->loop);
	loop_timer_stop(r->watchdog);
}

/* The journal has what runs, and nothing else. */
static inline void the_journal_is_what_runs(struct rig *r)
{
	struct journal_fold f;
	struct err e = {0};
	char cpus[CPUSET_TEXT_MAX];
	unsigned nr = 0;

	if (journal_fold(&f, r->daemon.journal, NULL, NULL, &e) < 0)
		fail_msg("%s", e.text);
	for (unsigned i = 0; i < BOXES; i++) {
		const struct holding *h;

		if (!r->box[i].runs)
			continue;
		h = ledger_find(engine_ledger(f.engine), r->box[i].id);
		assert_non_null(h);
		assert_string_equal(r->box[i].cpus,
			cpuset_format((struct cpuset[]){ledger_cpus_of(engine_ledger(f.engine), h)},
				cpus, sizeof cpus));
		nr++;
	}
	assert_int_equal(ledger_count(engine_ledger(f.engine)), nr);
	journal_fold_fini(&f);
}

static inline int setup(void **state)
{
	struct rig *r = rig_new();

	r->daemon.setting[0] = "journalMaxBytes=64Ki";
	*state = r;
	return 0;
}

static inline int teardown(void **state)
{
	struct rig *r = *state;

	if (r->daemon.pid)
		(void)rig_end(&r->daemon, SIGKILL);
	(void)umount2(r->daemon.run, MNT_DETACH);
	rig_free(r);
	return 0;
}

static inline void make_garbage(const char *path);
static inline void spill(const char *path, const char *text, size_t len);

/* Start it where it cannot run: what it says, and its exit status. */
static inline void fails_with(struct rig *r, const char *text)
{
	launch(r, NULL);
	read_log(r);
	await_end_of_log(r);
	int status = rig_end(&r->daemon, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
	if (!strstr(r->log, text))
		fail_msg("it says %s, not %s", r->log, text);
}

/* Damage of the journal at start: what is done to it, and the word in the name that it is set aside
 * under; NULL: it is used as far as it goes. */

static inline void spill(const char *path, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	(void)close(fd);
}

static inline void make_garbage(const char *path)
{
	static const char garbage[] = "PK\003\004\0\n\n\n\xff\xfe";

	spill(path, garbage, sizeof garbage);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
