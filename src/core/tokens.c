#include <numafit/number.h>
#include <numafit/tokens.h>

#include <numafit/cpus.h>
#include <numafit/search.h>
#include <numafit/text.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NODE "node"
enum { NUMBER_DIGITS = 4 };

const char *tokens_format(const struct node_ids *ids, struct token k, char *buf, size_t cap)
{
	struct text to;

	text_init(&to, buf, cap);
	text_add(&to, NODE "%u-%0*u", ids->id[k.node], NUMBER_DIGITS, k.number);
	return buf;
}

int tokens_parse(const struct node_ids *ids, const char *id, struct token *out, struct err *e)
{
	size_t len = strnlen(id, TOKEN_ID_MAX);
	const char *digits = id + sizeof NODE - 1;
	const char *dash = memchr(id, '-', len);
	uint64_t node_id, number;

	if (!dash || dash < digits || memcmp(id, NODE, sizeof NODE - 1) != 0 ||
		len - (size_t)(dash + 1 - id) != NUMBER_DIGITS ||
		text_u64(digits, (size_t)(dash - digits), NODE_ID_MAX, &node_id, NULL) ||
		(*digits == '0' && dash - digits != 1) || /* a leading zero */
		text_u64(dash + 1, NUMBER_DIGITS, CPUSET_BITS - 1, &number, NULL))
		return err_set(e, EINVAL,
			"\"%.*s\" is not the id of a CPU token, such as node0-0003", TOKEN_ID_MAX,
			id);
	int node = node_index(ids, (unsigned)node_id);
	if (node < 0)
		return err_set(e, ENOENT, "%s: there is no NUMA node %u", id, (unsigned)node_id);
	*out = (struct token){(uint16_t)node, (uint16_t)number};
	return 0;
}

/* CPUs of the node that a container may have for itself; of a core that is reserved in part no
 * container gets the rest when all get whole cores. */
static struct cpuset allocatable_on(const struct topo *t, const struct settings *s, unsigned node)
{
	struct cpuset reserved = s->cpu_options.full_pcpus_only
					 ? cpus_whole_cores(t, &s->reserved_cpus)
					 : s->reserved_cpus;

	return cpuset_minus(t->node[node].cpus, &reserved);
}

unsigned tokens_on(const struct topo *t, const struct settings *s, unsigned node)
{
	struct cpuset cpus = allocatable_on(t, s, node);

	return cpuset_count(&cpus);
}

unsigned tokenset_count(const struct tokenset *s)
{
	unsigned nr = 0;

	nodeset_each (n, s->nodes)
		nr += cpuset_count(&s->on[n]);
	return nr;
}

struct token tokenset_next(const struct tokenset *s, unsigned node, unsigned number)
{
	for (unsigned n = nodeset_next(s->nodes, node); n < NODES_MAX;
		n = nodeset_next(s->nodes, n + 1)) {
		unsigned next = cpuset_next(&s->on[n], n == node ? number : 0);

		if (next < CPUSET_BITS)
			return (struct token){(uint16_t)n, (uint16_t)next};
	}
	return (struct token){.node = NODES_MAX};
}

const char *tokenset_format(
	const struct tokenset *s, const struct node_ids *ids, char *buf, size_t cap)
{
	char list[CPUSET_TEXT_MAX];
	struct text to;

	text_init(&to, buf, cap);
	nodeset_each (n, s->nodes)
		text_add(&to, "%s%u=%s", to.len ? ";" : "", ids->id[n],
			cpuset_format(&s->on[n], list, sizeof list));
	return buf;
}

/* One node's part of the text. */
static int parse_node_tokens(
	struct tokenset *out, const struct node_ids *ids, const char *s, size_t len, struct err *e)
{
	const char *equals = memchr(s, '=', len);
	struct cpuset numbers;
	uint64_t id = 0;
	int rc, node;

	if (!equals)
		return err_set(e, EINVAL, "\"=\" is missing behind a NUMA node");
	rc = text_u64(s, (size_t)(equals - s), NODE_ID_MAX, &id, e);
	if (rc)
		return rc;
	node = node_index(ids, (unsigned)id);
	if (node < 0)
		return err_set(e, ENOENT, "there is no NUMA node %u", (unsigned)id);
	rc = cpuset_parse(&numbers, equals + 1, len - (size_t)(equals + 1 - s), e);
	if (rc)
		return err_add(e, rc, "tokens of NUMA node %u", (unsigned)id);
	if (cpuset_empty(&numbers))
		return err_set(e, EINVAL, "no tokens of NUMA node %u", (unsigned)id);
	out->nodes = nodeset_or(out->nodes, nodeset_of((unsigned)node));
	out->on[node] = numbers;
	return 0;
}

int tokenset_parse(
	struct tokenset *out, const struct node_ids *ids, const char *text, struct err *e)
{
	char again[TOKENSET_TEXT_MAX];
	struct tokenset set = {0};

	for (const char *s = text; *s;) {
		size_t len = strcspn(s, ";");
		int rc = parse_node_tokens(&set, ids, s, len, e);

		if (rc)
			return rc == -ERANGE ? -EINVAL : rc;
		s += len + (s[len] == ';');
	}
	if (!text_equal(tokenset_format(&set, ids, again, sizeof again), text))
		return err_set(
			e, EINVAL, "tokens are written as \"%.64s\", not \"%.64s\"", again, text);
	*out = set;
	return 0;
}

static void report_node(const struct tokens_state *now, unsigned node, unsigned nr, unsigned *spare,
	struct token_reports *out)
{
	unsigned promised = cpuset_count(&now->leased->on[node]) -
			    cpuset_count_and(&now->leased->on[node], &now->claimed->on[node]);
	struct cpuset here = allocatable_on(now->t, now->s, node);
	unsigned left = cpuset_count(&here) - cpuset_count_and(&here, now->held);
	/* of those that are not given out */
	unsigned healthy = (unsigned)number_min(left > promised ? left - promised : 0, *spare);

	*spare -= healthy;
	for (unsigned number = 0; number < CPUSET_BITS; number++) {
		struct token k = {(uint16_t)node, (uint16_t)number};
		struct token_report *r = &out->at[out->nr];
		bool leased = tokenset_has(now->leased, k);

		if (number >= nr && !leased)
			continue;
		r->node_id = now->t->ids.id[node];
		r->healthy = leased || healthy > 0;
		if (!leased && healthy)
			healthy--;
		(void)tokens_format(&now->t->ids, k, r->id, sizeof r->id);
		out->nr++;
	}
}

int tokens_report(const struct tokens_state *now, struct arena *a, struct token_reports *out)
{
	size_t most = tokenset_count(now->leased);
	unsigned spare = now->spare;

	nodeset_each (n, now->t->nodes)
		most += tokens_on(now->t, now->s, n);
	*out = (struct token_reports){.at = arena_array(a, most, sizeof *out->at)};
	if (!out->at)
		return -ENOMEM;
	nodeset_each (n, now->t->nodes)
		report_node(now, n, tokens_on(now->t, now->s, n), &spare, out);
	return 0;
}

/* The tokens among the ids that the kubelet offers. */
struct offer {
	struct tokenset must, may; /* nothing is in both */
	unsigned nr_must, nr_may;
};

/* False: one of the ids that must be included is no token, or what there is does not suffice. */
static bool read_offer(const struct topo *t, const struct token_wish *w, struct offer *o)
{
	struct token k;

	for (size_t i = 0; i < w->nr_must_include; i++) {
		if (tokens_parse(&t->ids, w->must_include[i], &k, NULL))
			return false;
		tokenset_add(&o->must, k);
	}
	for (size_t i = 0; i < w->nr_available; i++)
		if (!tokens_parse(&t->ids, w->available[i], &k, NULL) && !tokenset_has(&o->must, k))
			tokenset_add(&o->may, k);
	o->nr_must = tokenset_count(&o->must);
	o->nr_may = tokenset_count(&o->may);
	return w->size >= o->nr_must && w->size <= (size_t)o->nr_must + o->nr_may;
}

/* The fewest nodes that have so many tokens, those that must be among them: the fullest. */
static unsigned fewest_offer_nodes(const struct offer *o, size_t size)
{
	struct nodeset chosen = o->must.nodes;
	size_t left = size - o->nr_must;

	nodeset_each (n, chosen)
		left -= number_min(left, cpuset_count(&o->may.on[n]));
	while (left) {
		unsigned fullest = NODES_MAX, most = 0;

		nodeset_each (n, nodeset_minus(o->may.nodes, chosen))
			if (cpuset_count(&o->may.on[n]) > most) {
				most = cpuset_count(&o->may.on[n]);
				fullest = n;
			}
		chosen = nodeset_or(chosen, nodeset_of(fullest));
		left -= number_min(left, most);
	}
	return nodeset_count(chosen);
}

/* The NUMA nodes for size tokens of the offer. */
static bool choose_token_nodes(const struct topo *t, const struct offer *o, size_t size,
	struct budget *b, struct arena *a, struct nodeset *best)
{
	const struct hint_space space = {.all = t->nodes, .distance = t->distance};
	uint64_t weight[NODES_MAX] = {0};
	const struct family_demand enough = {.weight = weight, .base = o->nr_must, .need = size};
	struct search *s = search_new(&space, b, a);

	nodeset_each (n, o->may.nodes)
		weight[n] = cpuset_count(&o->may.on[n]);
	if (!s)
		return false;
	search_begin(s, nodeset_or(o->may.nodes, o->must.nodes));
	search_require(s, o->must.nodes);
	if (!search_add(s, &enough))
		return false;
	(void)search_best(s, fewest_offer_nodes(o, size), best);
	if (nodeset_empty(*best)) /* the budget ran out: any that do */
		*best = nodeset_or(o->may.nodes, o->must.nodes);
	return true;
}

/* How many tokens of the set come before this one, when those of lower nodes are `before`. */
static unsigned token_rank(const struct tokenset *s, const unsigned *before, struct token k)
{
	const uint64_t *w = s->on[k.node].w;
	unsigned nr = before[k.node];

	for (unsigned i = 0; i < k.number / 64; i++)
		nr += (unsigned)__builtin_popcountll(w[i]);
	return nr + (unsigned)__builtin_popcountll(
			    w[k.number / 64] & ((UINT64_C(1) << k.number % 64) - 1));
}

static void enter_tokens(const struct topo *t, const struct tokenset *chosen,
	const char *const *ids, size_t nr, const char **out)
{
	unsigned before[NODES_MAX] = {0}, sum = 0;

	nodeset_each (n, chosen->nodes) {
		before[n] = sum;
		sum += cpuset_count(&chosen->on[n]);
	}
	for (size_t i = 0; i < nr; i++) {
		struct token k;

		if (!tokens_parse(&t->ids, ids[i], &k, NULL) && tokenset_has(chosen, k))
			out[token_rank(chosen, before, k)] = ids[i];
	}
}

static bool prefer_tokens(const struct topo *t, const struct token_wish *w, struct budget *b,
	struct arena *a, const char **out)
{
	struct offer o = {0};
	struct nodeset nodes = {0};

	if (!read_offer(t, w, &o) || !choose_token_nodes(t, &o, w->size, b, a, &nodes))
		return false;
	size_t needed = w->size - o.nr_must;
	tokenset_each (k, &o.may) {
		if (!needed)
			break;
		if (!nodeset_has(nodes, k.node))
			continue;
		tokenset_add(&o.must, k);
		needed--;
	}
	enter_tokens(t, &o.must, w->available, w->nr_available, out);
	enter_tokens(t, &o.must, w->must_include, w->nr_must_include, out);
	return true;
}

struct place {
	const char *id;
	size_t at;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int c = strcmp(x->id, y->id);

	return c ? c : (x->at > y->at) - (x->at < y->at);
}

/* The first ids of both lists, each once. */
static size_t first_ids(const struct token_wish *w, struct arena *a, const char **out)
{
	size_t nr = w->nr_must_include + w->nr_available, taken = 0;
	struct place *sorted = arena_array(a, nr, sizeof *sorted);
	bool *again = arena_array(a, nr, sizeof *again);

	if (!sorted || !again)
		return 0;
	for (size_t i = 0; i < nr; i++)
		sorted[i] = (struct place){i < w->nr_must_include
						   ? w->must_include[i]
						   : w->available[i - w->nr_must_include],
			i};
	qsort(sorted, nr, sizeof *sorted, compare_places);
	for (size_t i = 1; i < nr; i++)
		again[sorted[i].at] = text_equal(sorted[i].id, sorted[i - 1].id);
	for (size_t i = 0; i < nr && taken < w->size; i++)
		if (!again[i])
			out[taken++] = i < w->nr_must_include
					       ? w->must_include[i]
					       : w->available[i - w->nr_must_include];
	return taken;
}

size_t tokens_prefer(const struct topo *t, const struct token_wish *w, struct budget *b,
	struct arena *a, const char **out)
{
	if (!w->size)
		return 0;
	return prefer_tokens(t, w, b, a, out) ? w->size : first_ids(w, a, out);
}
