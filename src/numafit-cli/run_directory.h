#ifndef NUMAFIT_CLI_RUN_DIRECTORY_H
#define NUMAFIT_CLI_RUN_DIRECTORY_H

#include <numafit/err.h>
#include <stdio.h>

/* The daemon's run directory, as a verb that reads its journal sees it. */

#define RUN_DIRECTORY "/run/numafit"

enum { RUN_PATH_MAX = 4096 };

/* "DIRECTORY/journal", or with a suffix ("1") "DIRECTORY/journal.1". Returns buf. */
const char *journal_path(const char *directory, const char *suffix, char buf[RUN_PATH_MAX]);
/* Print why there may be no journal that can be read, after that error, and which ones were set
 * aside. */
void advise_on_journal(FILE *to, const char *directory, const struct err *e);
/* Name the journals that the daemon has set aside; nothing where there are none. */
void list_set_aside(FILE *to, const char *directory);

#endif
