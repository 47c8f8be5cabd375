#include <codec/fields_json.h>
#include <numafit-cli/verbs.h>

static const struct command *const verbs[] = {
	&verb_status,
	&verb_top,
	&verb_explain,
	&verb_refusals,
	&verb_whatif,
	&verb_defrag,
	&verb_topology,
	&verb_config,
	&verb_decide,
	&verb_score,
	&verb_hint_encode,
	&verb_hint_check,
	&verb_replay,
	&verb_bundle,
	&command_version,
	&command_help,
};

static const struct section sections[] = {
	{"FILES",
		" /run/numafit/journal          what numafitd has decided since it was last started\n"
		" /run/numafit/journal.1        and the time before\n"
		" /run/numafit/numafitd.sock    where numafitd answers numafit status\n"
		" /usr/share/numafit/machines   machines by name, for --machine\n"
		"\n"
		"The journal can be read by root, and by the group that numafitd's setting journalGroup "
		"names."},
	{"SEE ALSO", "numafitd(8), numafitd.yaml(5), numafit-extender(8), numafit-sim(1)"},
	{0},
};

static const struct program program = {
	.name = "numafit",
	.man = 1,
	.summary = "show, explain and try what numafit decides",
	.about =
		"What numafitd, the node daemon that pins containers to NUMA nodes, has decided on "
		"this node and why; and what it would decide. No verb but defrag --apply changes "
		"the node.",
	.commands = verbs,
	.nr = sizeof verbs / sizeof *verbs,
	.sections = sections,
};

int main(int argc, char **argv)
{
	json_seed();
	return program_run(&program, argc, argv);
}
