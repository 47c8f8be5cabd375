#ifndef NUMAFIT_NUMAFITD_CHECK_CONFIG_H
#define NUMAFIT_NUMAFITD_CHECK_CONFIG_H

#include <numafit/mistakes.h>

struct daemon;

/* numafitd --check-config: what a start would find on this node beyond what settings_check_daemon()
 * does: addresses and ports that may be used, the kubeconfig, the run directory, the kubelet's
 * files. Nothing is left behind. Mistakes are added to *all. */
void check_config(const struct daemon *d, struct mistakes *all);
/* What the settings come to, and what is no mistake but worth knowing; on stdout. */
void check_config_print(const struct daemon *d);

#endif
