#ifndef NUMAFIT_UI_WHATIF_H
#define NUMAFIT_UI_WHATIF_H

#include <numafit/engine.h>

/* Would a pod fit now, and where? The status page asks as `numafit whatif` does. An answer has a
 * budget of steps; a question that takes more is not answered. */

enum { UI_CONTAINERS_MAX = 16 };

struct ui_question {
	uint64_t cpu_milli; /* of each container */
	unsigned nr_memory; /* likewise: at most one ask of each size of pages */
	struct memory_ask memory[TOPO_KINDS];
	unsigned containers; /* 1 to UI_CONTAINERS_MAX, all alike */
	enum qos qos;
	bool has_policy; /* another topologyManagerPolicy than the one in force: */
	enum topology_policy policy;
};

/* Read a URL's query, such as
 * "cpus=8&memory=16Gi&hugepages-1Gi=2Gi&containers=2&qos=Guaranteed&policy=restricted". What is
 * missing, or empty, is nothing asked for, 1 container, Guaranteed, and the policy in force. 0;
 * -EINVAL, -ERANGE with text. */
int ui_question_read(const char *query, struct ui_question *out, struct err *e);

/* Answer it on that node, of which nothing is changed: the document that `numafit whatif -o json`
 * prints, for the caller to free; now_ms is its time. NULL with text: -EBUSY it takes more steps
 * than there are, -EINVAL the settings do not go with that policy, -EMSGSIZE the answer is too
 * long. */
struct ui_node {
	const struct ledger *ledger;
	const struct settings *settings;
	int64_t now_ms;
	uint64_t steps; /* of all its searches (budget.h) */
	/* Whose ledger that is: for a pod that is refused moves are planned on a copy of it
	 * (defrag.h), at most `trials`. NULL: none are. */
	struct engine *engine;
	uint64_t trials;
};
char *ui_whatif(const struct ui_node *node, const struct ui_question *q, struct err *e);

#endif
