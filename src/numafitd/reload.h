#ifndef NUMAFIT_NUMAFITD_RELOAD_H
#define NUMAFIT_NUMAFITD_RELOAD_H

#include <codec/config_yaml.h>
#include <codec/status_json.h>
#include <numafit/settings.h>

struct daemon;

/* What file and command line asked for when the settings came into force; sections as they were
 * read last. */
struct configured {
	struct settings asked;
	struct config_sections sections;
	struct config *config;
	struct reload *reload;
};

/* Settings that change while the daemon runs. */

/* Read the config file again when it changes, or is swapped like a ConfigMap's, and on SIGHUP. What
 * is wrong changes nothing, and is logged; what needs a restart is logged, too. reloaded is called
 * each time that a file was put in force. 0, or -errno with text. */
int reload_start(struct daemon *d, void (*reloaded)(struct daemon *d), struct err *e);
void reload_stop(struct daemon *d);
/* Whether the file has sections by labels: somebody should ask for the node's. */
bool reload_wants_labels(const struct daemon *d);
/* The node's labels, as the API server has them now: others than before choose other sections. When
 * they are known for the first time and choose what needs a restart, the daemon ends itself, to be
 * started again with them; not where the runtime has started it, which would not do so again. */
void reload_set_labels(struct daemon *d, const struct key_value *labels, size_t nr);
/* The version of the node's kubelet, as the API server has it now: kubernetesVersion auto follows
 * it. */
void reload_set_kubelet(struct daemon *d, const char *kubelet_version);
/* Why the daemon has ended itself: 0, nothing of that, or -EAGAIN with text. */
int reload_verdict(const struct daemon *d, struct err *e);
/* How many of these ms a changed file waits on the node of that name: the same at each change, and
 * spread evenly over nodes, as the name's SHA-256 chooses it. */
uint64_t reload_turn_of_node(uint64_t delay_ms, const char *node);
/* For `numafit status`; false: there is no file. The texts are borrowed until the next turn. */
bool reload_status(const struct daemon *d, struct status_config *out);

#endif
