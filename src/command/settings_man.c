#include <command/print.h>
#include <command/settings_man.h>

#include <string.h>

enum { SAID_MAX = 1024 };

static const char about[] =
	"The settings of numafitd(8): YAML, one map. Where the kubelet has a setting of the same "
	"meaning, it has the same name and form here, so that parts of the kubelet's own file can "
	"be copied. A key that there is not is an error, and so is a value that does not fit: then "
	"numafitd does not start, or a running one goes on with what it has.\n"
	"\n"
	"The file is read again when it changes and on SIGHUP. What is reloadable then counts for what is "
	"decided from then on; containers that run keep what they have. What is not needs a restart: "
	"numafit status lists what waits for one.\n"
	"\n"
	"In this page a key inside a map is written with dots, as for the option --set: "
	"nri.socketPath is\n"
	"  nri:\n"
	"    socketPath: /run/nri/nri.sock\n"
	"What the command line sets counts before the file.";

static const struct section sections[] = {
	{"ONE FILE FOR MANY NODES",
		"A file may have sections for some of the nodes, by their names or labels. The first "
		"one that fits a node has settings that count before those of the rest of the file:\n"
		"  topologyManagerPolicy: restricted\n"
		"  nodes:\n"
		"  - names: [gpu-*]\n"
		"    settings: {topologyManagerPolicy: single-numa-node}\n"
		"  - labels: {node.kubernetes.io/instance-type: m5.metal}\n"
		"    settings: {mode: shadow}\n"
		"  unmatchedNodes: off\n"
		"nodes is the list of sections, each with names (patterns with * and ?), labels or both, "
		"and settings. unmatchedNodes says what a node does that no section is for: as-above, the "
		"default, what stands beside the sections; off, nothing (mode off)."},
	{"FILES",
		" /etc/numafit/numafitd.yaml          where a plugin that the runtime starts looks\n"
		" /etc/numafit/numafitd.yaml.example  every key with its default"},
	{"EXAMPLES",
		"A node whose system has two CPUs, and whose pods must each be on one NUMA node:\n"
		"  topologyManagerPolicy: single-numa-node\n"
		"  topologyManagerScope: pod\n"
		"  reservedSystemCPUs: 0,64\n"
		"  memoryManagerPolicy: Static\n"
		"numafit config --check FILE, or numafitd --check-config, says what a file means."},
	{"SEE ALSO", "numafitd(8), numafit(1)"},
	{0},
};

void settings_man_print(FILE *to)
{
	struct setting_doc doc;
	char text[SAID_MAX];

	man_title(to, "numafitd.yaml", 5, "settings of numafitd");
	(void)fputs(".SH DESCRIPTION\n", to);
	man_text(to, about);
	(void)fputs(".SH SETTINGS\n", to);
	for (unsigned i = 0; settings_doc(i, &doc); i++) {
		man_tag(to, doc.key, NULL);
		(void)snprintf(text, sizeof text, "%s.", doc.help);
		man_text(to, text);
		(void)fputs(".IP\n", to);
		(void)snprintf(text, sizeof text, "Takes: %s. Default: %s. %s.", doc.type,
			*doc.fallback ? doc.fallback : "not set",
			doc.reloadable ? "Reloadable" : "Needs a restart");
		man_text(to, text);
	}
	man_sections(to, sections);
}
