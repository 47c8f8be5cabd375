#include <numafit/decision.h>

#include <numafit/request.h>

#include <numafit/text.h>

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

const char *const decision_source_words[NR_DECISION_SOURCES] = {
	[SOURCE_DECIDED] = "decided",
	[SOURCE_ADOPTED] = "adopted",
	[SOURCE_INHERITED] = "inherited",
	[SOURCE_HELD] = "held",
};
const char *const placed_by_words[NR_PLACED_BY] = {
	[PLACED_BY_NUMAFIT] = "numafit",
	[PLACED_IN_SHADOW] = "shadow",
	[PLACED_AS_FOUND] = "adopted",
	[PLACED_LEFT] = "left",
};

/* The kubelet's words for a pod's status.reason (topologymanager, lifecycle/handlers.go). */
static const char *const reasons[] = {
	"TopologyAffinityError", "UnexpectedAdmissionError", "SMTAlignmentError",
	"EmptyPodSharedPoolError"};

const char *decision_reason(const char *name)
{
	int i = text_index(reasons, sizeof reasons / sizeof *reasons, name);

	return i < 0 ? NULL : reasons[i];
}

int decision_refuse(
	struct decision *d, enum refusal_cause cause, const char *reason, const char *fmt, ...)
{
	va_list ap;

	d->admit = false;
	d->cause = cause;
	d->reason = decision_reason(reason);
	assert(d->reason || !reason);
	va_start(ap, fmt);
	(void)vsnprintf(d->message, sizeof d->message, fmt, ap);
	va_end(ap);
	return -EPERM;
}

void decision_begin_anew(struct decision *d)
{
	d->message[0] = '\0';
	d->lost_cpus = false;
	if (d->placed_by != PLACED_IN_SHADOW)
		d->placed_by = PLACED_BY_NUMAFIT;
	d->left_on = (struct cpuset){0};
}

enum wish_memory decision_memory_policy(
	const struct settings *s, const struct request *req, const struct decision *d)
{
	const struct wishes *w = &req->ask.wishes;
	const bool across = d->exclusive && nodeset_count(d->mems) > 1;

	if (req->no_memory_policy || wishes_untouched(w))
		return WISH_MEMORY_UNSAID;
	if (w->memory)
		return w->memory;
	return across && s->across_nodes == ACROSS_INTERLEAVE ? WISH_MEMORY_INTERLEAVE
							      : WISH_MEMORY_UNSAID;
}

struct nodeset decision_nodes_used(const struct topo *t, const struct decision *d)
{
	struct nodeset nodes = d->exclusive ? topo_nodes_of(t, &d->cpus) : (struct nodeset){0};

	for (unsigned i = 0; i < d->nr_blocks; i++)
		nodes = nodeset_or(nodes, d->blocks[i].nodes);
	return nodes;
}
