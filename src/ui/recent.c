#include <ui/recent.h>

#include <numafit/mem.h>
#include <string.h>
#include <ui/document.h>

enum {
	RECENT_NS_MAX = 64,
	RECENT_NAME_MAX = 256, /* of a pod, the longest name there is */
	RECENT_CAUSE_MAX = 24,
	RECENT_REASON_MAX = 64,
	RECENT_WHY_MAX = 1024
};

/* What a decision had to choose from, of one resource. */
struct recent_resource {
	char resource[REASONS_NAME_MAX];
	unsigned smallest, preferred_size; /* as in reasons_resource */
};

struct recent_decision {
	int64_t time_ms;
	bool admitted, exclusive;
	char cause[RECENT_CAUSE_MAX], ns[RECENT_NS_MAX], pod[RECENT_NAME_MAX],
		container[RECENT_NAME_MAX];
	enum topology_policy policy;
	struct cpuset cpus;
	struct nodeset mems;
	char reason[RECENT_REASON_MAX], message[DECISION_MESSAGE_MAX], why[RECENT_WHY_MAX];
	unsigned nr_resources;
	struct recent_resource resource[REASONS_RESOURCES];
};

struct recent {
	uint64_t nr; /* since the start; the newest is at nr - 1, modulo RECENT_MAX */
	struct recent_decision at[RECENT_MAX];
};

#define AT(member) offsetof(struct recent_resource, member)
static const struct field resource_rows[] = {
	FIELD("resource", CHARS, AT(resource), .max = REASONS_NAME_MAX),
	FIELD("nodes_free", UNSIGNED, AT(smallest)),
	FIELD("nodes_all", UNSIGNED, AT(preferred_size)),
};
static const struct fields resource_fields = FIELDS(resource_rows, struct recent_resource);
#undef AT

#define AT(member) offsetof(struct recent_decision, member)
static const struct field recent_rows[] = {
	FIELD("time_ms", I64, AT(time_ms)),
	FIELD("admitted", BOOL, AT(admitted)),
	FIELD("cause", CHARS, AT(cause), .max = RECENT_CAUSE_MAX),
	FIELD("namespace", CHARS, AT(ns), .max = RECENT_NS_MAX),
	FIELD("pod", CHARS, AT(pod), .max = RECENT_NAME_MAX),
	FIELD("container", CHARS, AT(container), .max = RECENT_NAME_MAX),
	FIELD("policy", NAME, AT(policy), .words = topology_policy_words, .max = NR_POLICIES),
	FIELD("exclusive", BOOL, AT(exclusive)),
	FIELD("cpus", CPUS, AT(cpus)),
	FIELD("mems", NODES, AT(mems)),
	FIELD("reason", CHARS, AT(reason), .max = RECENT_REASON_MAX),
	FIELD("message", CHARS, AT(message), .max = DECISION_MESSAGE_MAX),
	FIELD("why", CHARS, AT(why), .max = RECENT_WHY_MAX),
	FIELD("resources", ARRAY, AT(resource), .count = AT(nr_resources), .max = REASONS_RESOURCES,
		.fields = &resource_fields),
};
static const struct fields recent_fields = FIELDS(recent_rows, struct recent_decision);
#undef AT

struct recent_list {
	uint64_t nr; /* since the daemon's start */
	const struct recent_decision *at;
	size_t nr_kept;
};

#define AT(member) offsetof(struct recent_list, member)
static const struct field list_rows[] = {
	FIELD("count", U64, AT(nr)),
	FIELD("decisions", LIST, AT(at), .count = AT(nr_kept), .fields = &recent_fields),
};
static const struct fields list_fields = FIELDS(list_rows, struct recent_list);
#undef AT

struct recent *recent_new(void)
{
	return xcalloc(1, sizeof(struct recent));
}

void recent_free(struct recent *r)
{
	free(r);
}

static void keep_resources(struct recent_decision *to, const struct reasons *from)
{
	to->nr_resources = from ? from->nr : 0;
	for (unsigned i = 0; i < to->nr_resources; i++) {
		const struct reasons_resource *r = &from->resource[i];

		(void)text_copy(to->resource[i].resource, REASONS_NAME_MAX, r->resource);
		to->resource[i].smallest = r->smallest;
		to->resource[i].preferred_size = r->preferred_size;
	}
}

void recent_add(struct recent *r, const struct recent_note *n, const struct request *req,
	const struct decision *d)
{
	struct recent_decision *to = &r->at[r->nr++ % RECENT_MAX];

	*to = (struct recent_decision){.time_ms = n->time_ms,
		.admitted = d->admit,
		.exclusive = d->exclusive,
		.policy = d->policy,
		.cpus = d->cpus,
		.mems = d->mems};
	(void)text_copy(to->cause, sizeof to->cause, n->cause);
	(void)text_copy(to->ns, sizeof to->ns, req->pod.ns);
	(void)text_copy(to->pod, sizeof to->pod, req->pod.name);
	(void)text_copy(to->container, sizeof to->container, req->ask.name);
	(void)text_copy(to->reason, sizeof to->reason, d->admit ? "" : d->reason);
	(void)text_copy(to->message, sizeof to->message, d->message);
	(void)text_copy(to->why, sizeof to->why, n->why);
	keep_resources(to, d->reasons);
}

char *recent_json(const struct recent *r, const struct node_ids *ids)
{
	size_t kept = r->nr < RECENT_MAX ? (size_t)r->nr : RECENT_MAX;
	auto_free struct recent_decision *newest_first = xcalloc(RECENT_MAX, sizeof *newest_first);
	const struct recent_list list = {r->nr, newest_first, kept};

	for (size_t i = 0; i < kept; i++)
		newest_first[i] = r->at[(r->nr - 1 - i) % RECENT_MAX];
	return ui_document(&list_fields, &list, ids);
}
