#ifndef NUMAFIT_CLI_JOURNAL_FOLD_H
#define NUMAFIT_CLI_JOURNAL_FOLD_H

#include <codec/journal_json.h>

/* A daemon's journal, read once more in this process: the machine and the settings from its first
 * line, and record by record the ledger that the daemon had. The daemon is not asked for anything:
 * it may be dead, or busy, or on another machine. */
struct journal_fold {
	struct journal_header header; /* strings live in `arena` */
	struct topo topo;
	struct settings settings;
	struct engine *engine; /* NULL until there was a first line */
	unsigned nr_records;
	int64_t last_ms; /* when the last one was written */
	struct arena arena;
};

/* Read the journal at path ("-": the standard input, a pipe or a file) into *f. record (NULL:
 * nobody looks), with the line that it came from, is shown each record before it is entered into
 * the ledger; a negative return of it ends the reading. 0; -ENOENT: there is no journal; -EBADMSG,
 * -EINVAL, -EBUSY, ...: a line is damaged or contradicts those before it, the text says which one;
 * -ENOTSUP: another numafit's; -errno: it cannot be read. *f then has all before that, and needs
 * journal_fold_fini() in any case. */
int journal_fold(struct journal_fold *f, const char *path,
	int (*record)(void *ctx, const struct journal_fold *f, const struct record *r,
		const char *line, struct err *e),
	void *ctx, struct err *e);
void journal_fold_fini(struct journal_fold *f);

#endif
