#ifndef NUMAFIT_CLI_RUN_DIRECTORY_H
#define NUMAFIT_CLI_RUN_DIRECTORY_H

#include <command/command.h>
#include <numafit-cli/journal_fold.h>

/* The daemon's run directory, as a verb that reads its journal sees it. */

#define RUN_DIRECTORY "/run/numafit"

enum { RUN_PATH_MAX = 4096 };

/* "DIRECTORY/journal", or with a suffix ("1") "DIRECTORY/journal.1". Returns buf. */
const char *journal_path(const char *directory, const char *suffix, char buf[RUN_PATH_MAX]);
/* What a verb gathers from all the journals that there are. */
struct gathering {
	void *ctx;
	/* As journal_fold()'s. */
	int (*record)(void *ctx, const struct journal_fold *f, const struct record *r,
		const char *line, struct err *e);
	void (*forget)(void *ctx); /* everything: the reading begins anew */
};
enum { NR_JOURNALS = 2 };
/* Of their names, the oldest first; NULL: the present one's. */
extern const char *const journal_suffixes[NR_JOURNALS];
/* Read the journal before the present one, which there need not be, then the present one, and both
 * again when numafitd has begun another one meanwhile. f needs journals_fini() in any case. What is
 * wrong is printed, with advice; 0, or -errno of the present one. */
int journals_gather(const struct call *c, const char *directory, const struct gathering *g,
	struct journal_fold f[NR_JOURNALS]);
void journals_fini(struct journal_fold f[NR_JOURNALS]);

/* Print how to ask the verb in a cluster, without rights on the node. */
void advise_kubectl(FILE *to, const char *verb);
/* Print why there may be no journal that the verb can read, after that error, and which ones were
 * set aside. */
void advise_on_journal(FILE *to, const char *verb, const char *directory, const struct err *e);
/* Name the journals that the daemon has set aside; nothing where there are none. */
void list_set_aside(FILE *to, const char *directory);

#endif
