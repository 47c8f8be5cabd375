#ifndef NUMAFIT_CLI_VERBS_H
#define NUMAFIT_CLI_VERBS_H

/* What `numafit VERB` runs. argv[0] is the verb; each knows --help. Returns the exit code. */
enum verb_exit {
	EXIT_DONE,
	EXIT_FAILED,
	EXIT_USAGE
}; /* done; what was asked for failed; bad usage */

/* numafit topology: show a machine, write it as text, or answer a distance. */
int verb_topology(int argc, char **argv);
/* numafit status [--socket PATH | --config FILE] [--json]: what the daemon on this node does. */
int verb_status(int argc, char **argv);
/* numafit config --explain [KEY] | --check FILE | --markdown: what can be set for numafitd. */
int verb_config(int argc, char **argv);
/* numafit decide [--check] [FILE|-]: answer recorded or imagined questions, one JSON line each. */
int verb_decide(int argc, char **argv);
/* numafit score [--check] [--explain] [FILE|-]: what schedulers' plugins say of nodes for a pod. */
int verb_score(int argc, char **argv);
/* numafit explain [--all] [--json] CONTAINER: what was decided for it and why, by the journal. */
int verb_explain(int argc, char **argv);
/* numafit whatif --cpus N --memory SIZE ...: would it fit now, and where? */
int verb_whatif(int argc, char **argv);
/* numafit hint encode|check ...: write a scheduler's advice, or check one. */
int verb_hint(int argc, char **argv);
/* numafit replay FILE|-: decide everything in a journal once more, and compare. */
int verb_replay(int argc, char **argv);

#endif
