#ifndef NUMAFIT_CLI_WHATIF_CLAIM_H
#define NUMAFIT_CLI_WHATIF_CLAIM_H

#include <command/command.h>
#include <numafit-cli/journal_fold.h>
#include <numafit-cli/output.h>
#include <numafit/resource_claim.h>

/* A ResourceClaim of driver numafit.io that is asked about: would it be prepared? */
struct whatif_claim {
	bool asked, whole_cores;
	bool has_node; /* the NUMA node with that kernel id; else all of them are tried */
	unsigned node_id;
};

/* For the table of options: --numa-node of the struct whatif_claim at *member. */
int whatif_claim_read_node(const struct option_row *o, void *member, char *value, struct err *e);

/* So many CPUs and bytes of one NUMA node. *share, which has all but its device, is tried on the
 * node in *f with these settings; empty: the machine is none that numafitd runs on. Prints the
 * answer and returns the exit code. */
int whatif_claim_answer(const struct call *c, const struct whatif_claim *q,
	const struct claim_share *share, struct journal_fold *f, const struct settings *s,
	enum output output, bool empty);

#endif
