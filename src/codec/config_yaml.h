#ifndef NUMAFIT_CODEC_CONFIG_YAML_H
#define NUMAFIT_CODEC_CONFIG_YAML_H

#include <numafit/mistakes.h>
#include <numafit/pod.h>
#include <numafit/settings.h>

/* The config file: settings.h's keys as YAML, nested where they have dots; and, so that one file
 * serves a fleet, sections for some of its nodes:
 *
 *	topologyManagerPolicy: restricted
 *	nodes:                      # read in order: what comes later counts
 *	- names: [gpu-*, train-0?]  # exactly, or with * and ?
 *	  labels: {pool: latency}   # all of these; with names, too, both
 *	  settings:                 # the same keys once more, but for nodeName and runDirectory
 *	    topologyManagerPolicy: single-numa-node
 *	    reservedMemory:         # a list replaces the one above
 *	    - {numaNode: 0, limits: {memory: 1Gi}}
 *	    cpuManagerPolicyOptions: {}  # as if nothing were said above
 *	unmatchedNodes: as-above    # or off: mode off on nodes that no section is for
 *
 * All sections are checked on every node, whichever they are for. */

/* A node, as far as sections distinguish nodes. */
struct config_node {
	const char *name;
	bool knows_labels;
	const struct key_value *labels;
	size_t nr_labels;
};

enum config_match {
	CONFIG_OTHER_NODES,
	CONFIG_THIS_NODE,
	CONFIG_NEEDS_LABELS /* which are not known; until then it is for other nodes */
};

/* What became of the file's sections. */
enum { CONFIG_SECTIONS_MAX = 64 };
struct config_sections {
	unsigned nr;
	struct config_section {
		unsigned line;
		enum config_match match;
	} at[CONFIG_SECTIONS_MAX];
	bool by_labels; /* one of them has labels */
	bool off;       /* none is for this node, and so its mode is off */
};

/* A line for each section, and what it means when none is for the node: for people. */
enum { CONFIG_SECTIONS_TEXT_MAX = 8 << 10 };
const char *config_sections_text(
	const struct config_sections *s, char buf[CONFIG_SECTIONS_TEXT_MAX]);

/* Put what the len bytes at text say for the node (NULL: for none, sections are only checked) into
 * *s; keys that are not there keep their value, so start from settings_init(). An empty file says
 * nothing. 0, or -EINVAL and others of settings_set() and flat_yaml_read(): the text names line,
 * key, value and what was expected, and *s is unchanged. */
int config_yaml_read(struct settings *s, const char *text, size_t len,
	const struct config_node *node, struct config_sections *sections, struct err *e);

/* Where a daemon's settings come from: a file, and above it "KEY=VALUE" from its command line. */
struct config_source {
	const char *file; /* its name, for errors; NULL: there is none */
	const char *text;
	size_t len;
	const char *const *sets;
	size_t nr_sets;
	struct mistakes *all; /* NULL: the first mistake ends the reading */
};
/* All settings of the node, from the defaults on. Where nodeName is set it counts instead of
 * node->name. 0, or as config_yaml_read() and settings_set(). With a list, *s is then what was
 * right, and the list knows where each key was set. */
int config_settings(struct settings *s, const struct config_source *from,
	const struct config_node *node, struct config_sections *sections, struct err *e);

#endif
