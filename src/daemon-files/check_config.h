#ifndef NUMAFIT_DAEMON_FILES_CHECK_CONFIG_H
#define NUMAFIT_DAEMON_FILES_CHECK_CONFIG_H

#include <codec/config_yaml.h>
#include <numafit/mistakes.h>
#include <numafit/settings.h>

/* numafitd --check-config: what a start would find on this node beyond what settings_check_daemon()
 * does: addresses and ports that may be used, the kubeconfig, the run directory, the kubelet's
 * files. Nothing is left behind. Mistakes are added to *all. */
void check_config(const struct settings *s, struct mistakes *all);
/* What the settings come to on that machine, and what is no mistake but worth knowing; on stdout.
 * asked: the settings before anything about the machine was put in; of_file: which of the file's
 * sections count. */
void check_config_print(const struct settings *s, const struct topo *t,
	const struct settings *asked, const struct config_sections *of_file);
/* Whether a run directory that failed so may come: a disk that is full or read-only, a directory
 * that is not there yet. */
bool run_directory_may_come(int rc);
/* The run directory's journal says which container has which CPUs, and numafitd believes the
 * journal. The next reason from *at (0 at first) on why others than root and this process's user
 * could have written the journal: the directory, the journal, or a directory above lets them. True
 * with text in *e, which begins with the path; false: there is no more. */
bool run_directory_next_writer(const char *dir, unsigned *at, struct err *e);

#endif
