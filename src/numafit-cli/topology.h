#ifndef NUMAFIT_CLI_TOPOLOGY_H
#define NUMAFIT_CLI_TOPOLOGY_H

/* numafit topology: show a machine, write it as text, or answer a distance. argv[0] is the verb.
 * Returns the exit code: 0; 1 the machine cannot be read; 2 bad usage. */
int verb_topology(int argc, char **argv);

#endif
