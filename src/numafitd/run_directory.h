#ifndef NUMAFIT_NUMAFITD_RUN_DIRECTORY_H
#define NUMAFIT_NUMAFITD_RUN_DIRECTORY_H

#include <numafit/settings.h>

struct daemon;

struct run_directory {
	int lock; /* descriptor that keeps a second daemon out */
	char journal_path[SETTINGS_PATH_MAX + sizeof "/journal"];
	char status_path[SETTINGS_PATH_MAX + sizeof "/numafitd.sock"];
};

/* The run directory is made where it is not there, and locked: only one daemon can
 * hold it (lock). The paths in it are named in any case. 0; -EBUSY: another daemon runs with it;
 * -errno with text. */
int run_directory_claim(struct daemon *d, struct err *e);
/* Let the members of the setting journalGroup, if there is one, read the journal that is in place
 * now, and the one before it. What cannot be done is logged. No name service is asked: this may be
 * called while a container waits. */
void run_directory_share(const struct daemon *d);

#endif
