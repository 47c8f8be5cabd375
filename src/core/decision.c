#include <numafit/decision.h>

#include <numafit/text.h>

const char *const decision_source_words[NR_DECISION_SOURCES] = {
	[SOURCE_DECIDED] = "decided",
	[SOURCE_ADOPTED] = "adopted",
	[SOURCE_INHERITED] = "inherited",
	[SOURCE_HELD] = "held",
};

/* The kubelet's words for a pod's status.reason (topologymanager, lifecycle/handlers.go). */
static const char *const reasons[] = {
	"TopologyAffinityError", "UnexpectedAdmissionError", "SMTAlignmentError"};

const char *decision_source_name(enum decision_source s)
{
	return decision_source_words[s];
}

const char *decision_reason(const char *name)
{
	for (unsigned i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (text_equal(name, reasons[i]))
			return reasons[i];
	return NULL;
}

void decision_begin_anew(struct decision *d)
{
	d->message[0] = '\0';
	d->left = d->lost_cpus = false;
	d->left_on = (struct cpuset){0};
}

struct nodeset decision_nodes_used(const struct topo *t, const struct decision *d)
{
	struct nodeset nodes = d->exclusive ? topo_nodes_of(t, &d->cpus) : (struct nodeset){0};

	for (unsigned i = 0; i < d->nr_blocks; i++)
		nodes = nodeset_or(nodes, d->blocks[i].nodes);
	return nodes;
}
