#ifndef NUMAFIT_TEST_JOURNAL_WRITER_H
#define NUMAFIT_TEST_JOURNAL_WRITER_H

#include "verb_call.h"

#include <codec/journal_json.h>
#include <codec/machine_text.h>
#include <io/journal.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <numafit-cli/verbs.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* An engine that writes a real journal, as numafitd's recorder does, for tests of what reads it.
 * Include it after <cmocka.h>. */

struct writer {
	const struct topo *t;
	const struct settings *s;
	struct engine *engine;
	struct journal *journal;
};

static inline int writer_record(void *ctx, const struct record *r, struct err *e)
{
	static char line[JOURNAL_LINE_MAX];
	struct writer *w = ctx;
	int len = journal_json_record(r, &w->t->ids, line, sizeof line, e);

	return len < 0 ? len : journal_append(w->journal, line, (size_t)len, e);
}

/* The journal at path starts (anew) with what the engine holds; the one before stays as path.1. */
static inline void writer_start_journal(struct writer *w, const char *path, int64_t now_ms)
{
	static char line[JOURNAL_LINE_MAX], machine[JOURNAL_LINE_MAX];
	const struct ledger *l = engine_ledger(w->engine);
	struct record pool = {.time_ms = now_ms, .op = RECORD_RELEASE, .cause = "snapshot"};
	struct journal_header h = {.version = "0.1.0",
		.boot_id = "boot",
		.machine = w->t->name,
		.fingerprint = topo_fingerprint(w->t),
		.core_rule = w->s->cpu_options.core_rule,
		.topology = machine};
	struct journal *old = w->journal;
	struct arena a;
	struct text t;
	struct err e;

	text_init(&t, machine, sizeof machine);
	machine_text_write(w->t, &t);
	arena_init(&a, 1 << 20);
	assert_int_equal(words_of_settings(w->s, &a, &h.settings, NULL), 0);
	int len = journal_json_header(&h, line, sizeof line, NULL);
	arena_fini(&a);
	w->journal = journal_create(path, &e);
	if (len < 0 || !w->journal || journal_append(w->journal, line, (size_t)len, &e) ||
		engine_dump(w->engine, now_ms, writer_record, w, &e))
		fail_msg("%s", e.text);
	pool.container_id = "";
	pool.pool = ledger_view(l)->pool;
	if (!ledger_count(l))
		assert_int_equal(writer_record(w, &pool, NULL), 0);
	assert_int_equal(journal_keep(path, JOURNAL_PREVIOUS, NULL), 0);
	assert_int_equal(journal_publish(w->journal, NULL), 0);
	journal_close(old);
}

static inline void writer_init(
	struct writer *w, const struct topo *t, const struct settings *s, const char *path)
{
	const struct engine_hooks hooks = {.ctx = w, .record = writer_record};

	*w = (struct writer){.t = t, .s = s, .engine = engine_new(t, s, &hooks)};
	writer_start_journal(w, path, 0);
}

static inline void writer_fini(struct writer *w)
{
	engine_free(w->engine);
	journal_close(w->journal);
}

enum { PRINTED_MAX = 1 << 20 };

/* Run a verb in a process of its own; what it prints goes to out, and errors behind it. Returns its
 * exit code. The caller frees *out. */
static inline int run_verb(const struct command *verb, char **argv, char **out)
{
	char path[] = "/tmp/numafit-verb.XXXXXX";
	int fd = mkstemp(path), argc = 0, status;

	assert_true(fd >= 0);
	(void)unlink(path);
	while (argv[argc])
		argc++;
	(void)fflush(stdout);
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
			_exit(127);
		int code = verb_call(verb, argc, argv);
		(void)fflush(stdout);
		_exit(code);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	*out = xcalloc(PRINTED_MAX, 1);
	assert_true(pread(fd, *out, PRINTED_MAX - 1, 0) >= 0);
	(void)close(fd);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
