#ifndef NUMAFIT_TOKENS_H
#define NUMAFIT_TOKENS_H

#include <numafit/arena.h>
#include <numafit/budget.h>
#include <numafit/settings.h>
#include <numafit/topo.h>

/* The devices of the resource numafit.io/cpu. A device is a token for one CPU of a NUMA node that a
 * container may have for itself, not a certain CPU: which one it becomes is decided when the
 * container is created. The tokens of a node are numbered from 0, as many as it has CPUs less the
 * reserved ones (with full-pcpus-only less all of a reserved one's core); their ids ("node8-0003":
 * the kernel's id of the node, then the number) are the same after every restart. What the kubelet
 * does with them: pkg/kubelet/cm/devicemanager of 1.36. */

#define TOKEN_RESOURCE "numafit.io/cpu"

struct token {
	uint16_t node; /* dense index */
	uint16_t number;
};
enum { TOKEN_ID_MAX = sizeof "node1023-1023" };

/* The token's id into buf of cap (>= TOKEN_ID_MAX) bytes; returns buf. */
const char *tokens_format(const struct node_ids *ids, struct token k, char *buf, size_t cap);
/* The token with exactly that id. 0; -EINVAL: it is not written like one; -ENOENT: there is no such
 * NUMA node. Whether the node has as many is not looked at. */
int tokens_parse(const struct node_ids *ids, const char *id, struct token *out, struct err *e);
/* How many tokens the node has. */
unsigned tokens_on(const struct topo *t, const struct settings *s, unsigned node);

/* A set of tokens. A plain value: copy with =; zeros are the empty one. */
struct tokenset {
	struct nodeset nodes;        /* that have any */
	struct cpuset on[NODES_MAX]; /* numbers, by node */
};

static inline bool tokenset_has(const struct tokenset *s, struct token k)
{
	return cpuset_has(&s->on[k.node], k.number);
}
static inline void tokenset_add(struct tokenset *s, struct token k)
{
	s->nodes = nodeset_or(s->nodes, nodeset_of(k.node));
	cpuset_add(&s->on[k.node], k.number);
}
unsigned tokenset_count(const struct tokenset *s);
/* The lowest token from there on, by node and then number; without one its node is
 * NODES_MAX. */
struct token tokenset_next(const struct tokenset *s, unsigned node, unsigned number);

/* for each token of *set, ascending */
#define tokenset_each(k, set)                                                                      \
	for (struct token k = tokenset_next((set), 0, 0); k.node < NODES_MAX;                      \
		k = tokenset_next((set), k.node, k.number + 1u))

enum { TOKENSET_TEXT_MAX = NODES_MAX * (sizeof "1023=;" + sizeof "1000-1001,") + CPUSET_TEXT_MAX };
/* The set as text, node by node: kernel id, "=", a kernel list of numbers ("0=0-3,5;8=2"), into buf
 * of cap bytes. Returns buf; with cap >= TOKENSET_TEXT_MAX no machine's tokens are cut. */
const char *tokenset_format(
	const struct tokenset *s, const struct node_ids *ids, char *buf, size_t cap);
/* The set that tokenset_format() writes just so. 0; -EINVAL: it is not written so; -ENOENT: there
 * is no such NUMA node. */
int tokenset_parse(
	struct tokenset *out, const struct node_ids *ids, const char *text, struct err *e);

/* What the kubelet is to know of a token (ListAndWatch). */
struct token_report {
	char id[TOKEN_ID_MAX];
	unsigned node_id; /* kernel id */
	bool healthy;
};
struct token_reports {
	size_t nr;
	struct token_report *at;
};
/* What that follows from. */
struct tokens_state {
	const struct topo *t;
	const struct settings *s;
	const struct cpuset *held;      /* CPUs that containers hold or are left on
					   (&ledger_view()->held, &ledger_view()->left) */
	const struct tokenset *leased;  /* tokens that the kubelet has given out, */
	const struct tokenset *claimed; /* and those of them whose CPUs are among the held ones */
	unsigned spare; /* CPUs that any container can get at all, beside the leased tokens */
};
/* All tokens, ascending, from *a. Leased ones are always there, even when their CPU has gone
 * offline, and always healthy: a kubelet that misses an allocated device at its next start dies of
 * it, and ends the pod of one that is not healthy. Of a node's others as many are healthy as it has
 * free CPUs less its leased tokens whose CPUs are still to be taken, and not more on all nodes
 * together than are spare; the lowest ones, so that a report differs from the one before as little
 * as can be. 0 or -ENOMEM. */
int tokens_report(const struct tokens_state *now, struct arena *a, struct token_reports *out);

/* What GetPreferredAllocation asks, for one container; ids are the kubelet's, in any order. */
struct token_wish {
	const char *const *available, *const *must_include;
	size_t nr_available, nr_must_include;
	size_t size;
};
/* Choose size of the available ids, those of must_include among them: on the fewest NUMA nodes,
 * of these the closest, then the lowest ids. Into out, which has room for size ids or for all of
 * both lists; ascending, each once. Returns how many: size, unless there are not as many. It is
 * never an error, that would end the pod: of what cannot be had so (must_include is larger, or what
 * is available has other ids than tokens and needs them) the first ones of must_include and then of
 * available are the answer. Working memory, TOKENS_PREFER_BYTES and some for each id, from *a; with
 * less the answer is none, which leaves the choice to the kubelet. The search spends *b. */
size_t tokens_prefer(const struct topo *t, const struct token_wish *w, struct budget *b,
	struct arena *a, const char **out);
enum { TOKENS_PREFER_BYTES = 512 << 10, TOKENS_PREFER_BYTES_PER_ID = 64 };

#endif
