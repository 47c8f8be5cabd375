#ifndef NUMAFIT_CLI_VERBS_H
#define NUMAFIT_CLI_VERBS_H

#include <command/command.h>

/* What `numafit VERB` can be: each verb's table is in a file of its name. */
extern const struct command verb_topology, verb_status, verb_top, verb_config, verb_decide,
	verb_score, verb_explain, verb_refusals, verb_whatif, verb_hint_encode, verb_hint_check,
	verb_replay, verb_bundle, verb_defrag;

#endif
