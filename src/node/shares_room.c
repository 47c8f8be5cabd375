/* Why there is no room for a claim: what it asks for of its NUMA nodes, and what they have. */
#include <numafit/shares.h>

#include <numafit/decision.h>
#include <numafit/text.h>

/* CPUs, and bytes by kind, of one NUMA node. */
struct room {
	uint64_t cpus, memory[TOPO_KINDS];
};

static void add_share(const struct topo *t, const struct claim_share *s, struct room *wanted)
{
	wanted->cpus += s->cpus;
	for (unsigned i = 0; i < s->nr_memory; i++) {
		int kind = topo_kind_of_page(t, s->memory[i].page_bytes);

		if (kind >= 0)
			wanted->memory[kind] += s->memory[i].bytes;
	}
}

enum which_shares { ALL_SHARES, SHARES_NOT_HELD };

/* What the claim's shares are to have of that NUMA node. */
static struct room wanted_on(const struct ledger *l, const struct resource_claim *c, unsigned node,
	enum which_shares which)
{
	const struct topo *t = ledger_view(l)->topo;
	struct room wanted = {0};

	for (size_t i = 0; i < c->nr; i++)
		if (share_node(t, &c->share[i]) == (int)node &&
			(which == ALL_SHARES || !shares_find(l, c->uid, i)))
			add_share(t, &c->share[i], &wanted);
	return wanted;
}

static struct room free_on(const struct ledger *l, unsigned node)
{
	const struct cpuset cpus = ledger_free_cpus(l);
	const struct memory_node *m = &ledger_view(l)->memory.node[node];
	struct room out = {.cpus = cpuset_count_and(&cpus, &ledger_view(l)->topo->node[node].cpus)};

	for (unsigned k = 0; k < TOPO_KINDS; k++)
		out.memory[k] = m->free[k];
	return out;
}

static struct room all_on(const struct ledger *l, const struct settings *s, unsigned node)
{
	const struct cpuset cpus =
		cpuset_minus(ledger_view(l)->topo->node[node].cpus, &s->reserved_cpus);
	const struct memory_node *m = &ledger_view(l)->memory.node[node];
	struct room out = {.cpus = cpuset_count(&cpus)};

	for (unsigned k = 0; k < TOPO_KINDS; k++)
		out.memory[k] = m->allocatable[k];
	return out;
}

static bool is_enough(const struct room *has, const struct room *wanted)
{
	bool enough = has->cpus >= wanted->cpus;

	for (unsigned k = 0; k < TOPO_KINDS; k++)
		enough = enough && has->memory[k] >= wanted->memory[k];
	return enough;
}

/* Of what is wanted, what there is: "4 CPUs, 1Gi of memory". */
static void add_room(
	struct text *to, const struct topo *t, const struct room *wanted, const struct room *r)
{
	char size[TEXT_SIZE_MAX], page[TEXT_SIZE_MAX];

	text_add(to, "%llu CPU%s", (unsigned long long)r->cpus, text_plural(r->cpus));
	for (unsigned k = 0; k < t->nr_kinds; k++)
		if (wanted->memory[k])
			text_add(to, ", %s of %s%s", text_size_rounded(size, r->memory[k]),
				k ? "huge pages of " : "memory",
				k ? text_size(page, t->page_bytes[k]) : "");
}

static void add_node(struct text *to, const struct ledger *l, const struct settings *s,
	unsigned node, const struct room *wanted)
{
	const struct room left = free_on(l, node), all = all_on(l, s, node);
	const struct topo *t = ledger_view(l)->topo;

	text_add(to, "%sthe claim asks for ", to->len ? "; " : "");
	add_room(to, t, wanted, wanted);
	text_add(to, " of NUMA node %u, where ", t->ids.id[node]);
	add_room(to, t, wanted, &left);
	text_add(to, " are free, and ");
	add_room(to, t, wanted, &all);
	text_add(to, " if nothing else is there");
}

bool shares_fit_alone(
	const struct ledger *l, const struct settings *s, const struct resource_claim *c)
{
	nodeset_each (n, ledger_view(l)->topo->nodes) {
		const struct room wanted = wanted_on(l, c, n, ALL_SHARES), all = all_on(l, s, n);

		if (!is_enough(&all, &wanted))
			return false;
	}
	return true;
}

bool shares_fit_now(const struct ledger *l, const struct resource_claim *c)
{
	nodeset_each (n, ledger_view(l)->topo->nodes) {
		const struct room wanted = wanted_on(l, c, n, SHARES_NOT_HELD),
				  left = free_on(l, n);

		if (!is_enough(&left, &wanted))
			return false;
	}
	return true;
}

const char *shares_no_room(const struct ledger *l, const struct settings *s,
	const struct resource_claim *c, const struct decision *d, char *buf, size_t cap)
{
	struct text to;

	text_init(&to, buf, cap);
	nodeset_each (n, ledger_view(l)->topo->nodes) {
		const struct room wanted = wanted_on(l, c, n, SHARES_NOT_HELD),
				  left = free_on(l, n);

		if (!is_enough(&left, &wanted))
			add_node(&to, l, s, n, &wanted);
	}
	if (!to.len) /* in numbers there is: the shared pool's minimum, whole cores */
		text_add(&to, "the claim cannot be placed%s: %s",
			text_equal(d->reason, "SMTAlignmentError") ? " on whole cores" : "",
			d->message);
	return buf;
}
