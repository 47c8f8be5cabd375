#include <numafit-cli/whatif_claim.h>

#include <errno.h>
#include <codec/refusal_line.h>
#include <numafit-cli/whatif_print.h>
#include <numafit-cli/wording.h>
#include <numafit/mem.h>
#include <numafit/shares.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

#define CLAIM_NAME "whatif"

enum { DEVICE_NAME_MAX = 16, WHY_MAX = 512, LABEL_MAX = 16 };

int whatif_claim_read_node(const struct option_row *o, void *member, char *value, struct err *e)
{
	struct whatif_claim *q = member;
	uint64_t id;
	int rc = text_u64(value, strlen(value), NODE_ID_MAX, &id, e);

	(void)o;
	if (rc)
		return rc;
	q->has_node = true;
	q->node_id = (unsigned)id;
	return 0;
}

/* The claim on one NUMA node, and what becomes of it. */
struct tried {
	struct resource_claim claim;
	struct claim_share share;
	char device[DEVICE_NAME_MAX], id[SHARE_ID_MAX];
	bool offered; /* a scheduler may give it that */
	struct request request;
	struct answer answer;
	char why[WHY_MAX]; /* it is refused */
	void *work;
};

/* All that is tried on: the node, the settings, what schedulers are offered, and in which order. */
struct trial {
	struct journal_fold *f;
	const struct settings *s;
	const struct claim_share *share;
	struct share_offer offer[NODES_MAX];
	unsigned order[NODES_MAX], nr;
	struct tried *on; /* in that order */
};

static void try_on(const struct trial *x, unsigned node, struct tried *t)
{
	const struct ledger *l = engine_ledger(x->f->engine);
	struct arena a;

	(void)snprintf(
		t->device, sizeof t->device, CLAIM_DEVICE_PREFIX "%u", x->f->topo.ids.id[node]);
	t->share = *x->share;
	t->share.device = t->device;
	t->claim = (struct resource_claim){.uid = CLAIM_NAME,
		.ns = CLAIM_NAME,
		.name = CLAIM_NAME,
		.nr = 1,
		.share = &t->share};
	t->offered = share_is_offered(&x->f->topo, &t->share, &x->offer[node]);
	t->request = share_request(&t->claim, 0, node, share_id(CLAIM_NAME, 0, t->id), "0", "");
	t->work = xcalloc(1, ADMIT_ARENA_BYTES);
	arena_init_fixed(&a, t->work, ADMIT_ARENA_BYTES);
	decide_share(l, x->s, &t->request, &a, &t->answer);
	t->answer.record.cause = "whatif";
	t->answer.record.time_ms = x->f->last_ms;
	if (!t->answer.decision.admit)
		(void)shares_no_room(l, x->s, &t->claim, &t->answer.decision, t->why, WHY_MAX);
}

/* Which NUMA nodes: the one that is asked for, or all in the order of the ResourceSlice. */
static void order_nodes(struct trial *x, const struct whatif_claim *q)
{
	shares_offer(engine_ledger(x->f->engine), x->s, x->offer);
	nodeset_each (n, x->f->topo.nodes)
		if (!q->has_node || x->f->topo.ids.id[n] == q->node_id)
			x->order[x->nr++] = n;
	shares_order(x->s->claims_order, x->offer, x->order, x->nr);
}

/* One NUMA node */

static const char not_offered[] = "the node's ResourceSlice offers less of that NUMA node: no "
				  "scheduler sends it here";

static int print_one(const struct trial *x, const struct tried *t, struct err *e)
{
	const struct answer *a = &t->answer;
	const struct scene scene = {
		.to = stdout, .t = &x->f->topo, .s = x->s, .pool = &a->record.pool};

	(void)printf("it would %sbe prepared\n", a->decision.admit ? "" : "not ");
	wording_print_request(&scene, &t->request);
	if (!a->decision.admit) {
		wording_print(stdout, "why", "%s", t->why);
		return 0;
	}
	wording_print_grant(&scene, &t->request, &a->decision);
	if (!t->offered)
		wording_print(stdout, "note", "%s", not_offered);
	return whatif_print_left(x->f, a, e);
}

/* All of them */

static struct nodeset nodes_of_yes(const struct trial *x)
{
	struct nodeset yes = {0};

	for (unsigned i = 0; i < x->nr; i++)
		if (x->on[i].answer.decision.admit)
			yes = nodeset_or(yes, nodeset_of(x->order[i]));
	return yes;
}

static void print_all(const struct trial *x)
{
	const struct nodeset yes = nodes_of_yes(x);
	const struct scene scene = {.to = stdout, .t = &x->f->topo, .s = x->s};
	char list[NODESET_TEXT_MAX], cpus[CPUSET_TEXT_MAX], label[LABEL_MAX];

	if (nodeset_empty(yes))
		(void)puts("it would not be prepared on any NUMA node");
	else
		(void)printf("it would be prepared on NUMA node%s %s; schedulers try them in the "
			     "order of this list\n",
			text_plural(nodeset_count(yes)),
			nodeset_format(yes, &x->f->topo.ids, list, sizeof list));
	wording_print_request(&scene, &x->on[0].request);
	for (unsigned i = 0; i < x->nr; i++) {
		const struct tried *t = &x->on[i];

		(void)snprintf(label, sizeof label, "node %u", x->f->topo.ids.id[x->order[i]]);
		if (t->answer.decision.admit)
			wording_print(stdout, label, "yes: CPUs %s%s%s",
				cpuset_format(&t->answer.decision.cpus, cpus, sizeof cpus),
				t->offered ? "" : "; but ", t->offered ? "" : not_offered);
		else
			wording_print(stdout, label, "no: %s", t->why);
	}
}

static int print_records(const struct trial *x, struct err *e)
{
	int rc = 0;

	for (unsigned i = 0; i < x->nr && !rc; i++) {
		struct decision refused = x->on[i].answer.decision;

		(void)text_copy(refused.message, sizeof refused.message, x->on[i].why);
		auto_free char *members = refused.admit ? NULL : refusal_members_recorded(&refused);
		rc = whatif_print_record(x->f, &x->on[i].answer, members, e);
	}
	return rc;
}

int whatif_claim_answer(const struct call *c, const struct whatif_claim *q,
	const struct claim_share *share, struct journal_fold *f, const struct settings *s,
	enum output output, bool empty)
{
	struct trial x = {.f = f, .s = s, .share = share};
	struct err e;
	int rc = 0;

	order_nodes(&x, q);
	if (!x.nr)
		return call_misused(c, "--numa-node %u: machine %s has no such NUMA node",
			q->node_id, f->topo.name);
	if (!s->claims && !empty)
		(void)fprintf(stderr,
			"numafit whatif: note: claims.enabled is false: numafitd prepares none\n");
	x.on = xcalloc(x.nr, sizeof *x.on);
	for (unsigned i = 0; i < x.nr; i++)
		try_on(&x, x.order[i], &x.on[i]);
	int code = nodeset_empty(nodes_of_yes(&x)) ? EXIT_NO : EXIT_DONE;
	if (output != OUTPUT_JSON)
		whatif_print_head(f, empty);
	if (output == OUTPUT_JSON)
		rc = print_records(&x, &e);
	else if (q->has_node)
		rc = print_one(&x, x.on, &e);
	else
		print_all(&x);
	for (unsigned i = 0; i < x.nr; i++)
		free(x.on[i].work);
	free(x.on);
	return rc ? call_fail(c, EXIT_CANNOT, &e) : code;
}
