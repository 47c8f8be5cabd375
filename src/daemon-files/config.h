#ifndef NUMAFIT_NUMAFITD_CONFIG_H
#define NUMAFIT_NUMAFITD_CONFIG_H

#include <codec/config_yaml.h>
#include <numafit/vec.h>

/* What the config file and the command line say for this node; nothing here is in force. */

enum kubelet_source { KUBELET_UNKNOWN, KUBELET_REMEMBERED, KUBELET_SAID };

struct config {
	struct config_source from; /* the file as it was read last */
	char *text;                /* from.text */
	bool knows_labels, labels_given;
	enum kubernetes_version kubelet; /* the node's; AUTO: not known */
	enum kubelet_source kubelet_from;
	bool by_kubelet; /* what was read last leaves the version to that */
	struct {
		VEC(struct key_value);
	} labels; /* its own copies */
};

/* What this node is called when no setting says so: NODE_NAME, else the host's name; in
 * small letters, as the kubelet has it. */
void config_usual_name(char name[NODE_NAME_MAX]);

/* Read the file, if there is one. 1: it is another one than before; 0: the same; or -errno with
 * text, and all as it was. */
int config_read_file(struct config *c, struct err *e);
/* The settings that it comes to, kubernetesVersion resolved. Labels and the kubelet's version that
 * are not known yet are those that an earlier life left in its run directory. 0, or as
 * config_settings(). */
int config_read(
	struct config *c, struct settings *s, struct config_sections *sections, struct err *e);
/* The node's labels, from the command line: nobody else is believed then. */
void config_give_labels(struct config *c, const struct key_value *labels, size_t nr);
/* As the API server has them. 1: they are others than were known, and are left in the directory for
 * a later life; -errno with text: that failed, but they are known from here on; 0: nothing new. */
int config_take_labels(struct config *c, const struct key_value *labels, size_t nr,
	const char *directory, struct err *e);
/* The version of the node's kubelet, as the API server has it, is likewise left for a later life,
 * before anybody decides by it. 0; -errno with text: that failed, but it is known from here on. */
int config_take_kubelet(
	struct config *c, const char *kubelet_version, const char *directory, struct err *e);
void config_fini(struct config *c);

#endif
