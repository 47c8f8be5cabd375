#include <daemon-files/options.h>

#include <stdio.h>

/* nodeName=NAME, among the others: the last one counts. */
static int read_node_name(const struct option_row *o, void *member, char *value, struct err *e)
{
	static char set[512];

	(void)snprintf(set, sizeof set, "nodeName=%s", value);
	return option_texts(o, member, set, e);
}

static int read_check(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o, (void)value, (void)e;
	*(enum action *)member = CHECK;
	return 0;
}

static int read_print(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o, (void)value, (void)e;
	*(enum action *)member = PRINT;
	return 0;
}

#define AT(member) offsetof(struct options, member)
const struct option_row options_rows[] = {
	{.letter = 'c',
		.name = "config",
		.value = "FILE",
		.help = "read settings from this YAML file, again when it changes and on SIGHUP",
		.read = option_text,
		.at = AT(file),
		.completes = COMPLETE_FILE},
	{.letter = 's',
		.name = "set",
		.value = "KEY=VALUE",
		.help = "override one setting; keys inside a map are written with dots",
		.read = option_texts,
		.at = AT(sets),
		.completes = COMPLETE_SETTING,
		.repeats = true},
	{.name = "node-name",
		.value = "NAME",
		.help = "this node's name: the same as --set nodeName=NAME",
		.read = read_node_name,
		.at = AT(sets)},
	{.name = "node-label",
		.value = "KEY=VALUE",
		.help = "one of its labels, for the file's sections; when none is given the API "
			"server is asked",
		.read = option_assignment,
		.at = AT(labels),
		.repeats = true},
	{.name = "check-config",
		.help = "check all that a start checks, on this node, say what would run, or all that is "
			"wrong, and exit",
		.read = read_check,
		.at = AT(action)},
	{.name = "print-config",
		.help = "print every setting: value in force, type and meaning",
		.read = read_print,
		.at = AT(action)},
	{0},
};

const struct section options_sections[] = {
	{"ENVIRONMENT",
		"NRI_PLUGIN_SOCKET, NRI_PLUGIN_NAME and NRI_PLUGIN_IDX are what a runtime sets that "
		"starts numafitd as one of its plugins; /etc/numafit/numafitd.yaml is the config file "
		"then. NODE_NAME is the node's name where the setting nodeName is not there."},
	{"SIGNALS",
		"SIGHUP reads the config file again. SIGTERM and SIGINT end numafitd: containers "
		"keep their CPUs and memory, and the next numafitd takes them over."},
	{"FILES", " /etc/numafit/numafitd.yaml     settings, see numafitd.yaml(5)\n"
		  " /run/numafit/journal           what was decided since the last start\n"
		  " /run/numafit/journal.1         and in the time before\n"
		  " /run/numafit/numafitd.sock     for numafit status\n"
		  " /var/run/nri/nri.sock          the container runtime"},
	{"SEE ALSO", "numafitd.yaml(5), numafit(1), numafit-extender(8)"},
	{0},
};

void options_fini(struct options *o)
{
	vec_fini(&o->sets);
	vec_fini(&o->labels);
}
