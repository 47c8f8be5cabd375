#ifndef NUMAFIT_CORE_SEARCH_STATE_H
#define NUMAFIT_CORE_SEARCH_STATE_H

#include <numafit/search.h>

/* What search.c and its helpers share: the nodes of one search at positions 0..n-1, ascending. */

/* One demand, base and what the required nodes bring taken off. A node's weight is all that it
 * could bring: with devices that lie on several nodes a set may bring less than that (overlaps). */
struct row {
	struct family_demand demand;
	bool overlaps;
	uint64_t need, sum;          /* what the chosen nodes must bring, what they bring now */
	uint64_t parts;              /* part[] of the chosen nodes, added up */
	uint64_t of_node[NODES_MAX]; /* by dense node, what there are of devices once */
	uint64_t weight[NODES_MAX];  /* by position */
	uint64_t part[NODES_MAX]; /* the same as a part of the need, which is SEARCH_WHOLE; rounded
				     up: it must never seem to be less than it is */
	uint64_t *top; /* [hi * width + c]: the c largest weights below position hi, added up */
};

#define SEARCH_WHOLE (UINT64_C(1) << 30)

enum { NEAR_DEPTH = 16 };

struct search {
	const struct hint_space *space;
	struct budget *budget;
	struct arena *arena;
	size_t width; /* of a row's table: nodes of the space + 1 */
	struct nodeset ground, required;
	unsigned prepared_for; /* the size that all below is right for; 0: for none */
	bool any_will_do;      /* the lowest set will do, however far apart its nodes are */
	bool closest, overlaps;
	bool rows_are_all; /* a set that satisfies the rows will do */
	unsigned n;
	uint8_t node[NODES_MAX];             /* position -> dense index, ascending */
	struct nodeset below[NODES_MAX + 1]; /* the nodes of all lower positions */
	unsigned nr_rows, rows_cap;
	struct row *row;
	struct nodeset except;      /* a set that will not do */
	const uint64_t *sockets_of; /* by dense node, bits; NULL: sockets do not matter */
	unsigned nr_sockets;
	bool (*possible)(void *ctx, struct nodeset m);
	void *ctx;
	bool limit_by_rows;      /* possible() likes those nodes best that have most by the rows */
	uint64_t cost;           /* of the required nodes */
	uint32_t own[NODES_MAX]; /* what a position adds to it */
	uint32_t (*apart)[NODES_MAX]; /* distance there and back */
	/* [hi * width + q][c]: the c smallest apart[q][p] with p below hi, added up */
	uint16_t (*near)[NEAR_DEPTH + 1];
	unsigned near_depth;        /* the largest such c; see near_sum() */
	uint64_t better[NODES_MAX]; /* lower positions that can always take its place */
	uint32_t link[NODES_MAX];   /* what position q would add to the chosen ones' cost */
	bool exhausted;
	uint64_t visit_steps; /* of one visit, with all that is asked there */
	struct nodeset best;
	uint64_t limit;                /* only sets that cost less are of interest */
	const struct scoring *scoring; /* decides between sets of one cost; NULL: their number */
	unsigned rank;                 /* of the best one */
	uint8_t *share; /* [family * width + hi]: the share most wanted of a node below hi */
};

/* Set all that depends on the demands and on k. */
void search_prepare(struct search *s, unsigned k);

/* A good set of k nodes by a greedy walk: true with s->limit its cost and *start the set; false
 * when the walk found none, which does not mean that there is none. */
bool search_start(struct search *s, unsigned k, struct nodeset *start);

/* Whether `left` positions below hi have room for all that the rows still need beside the chosen
 * ones: with ROOM_FOUND such nodes are in *found, and the required ones. */
enum room { ROOM_NONE, ROOM_FOUND, ROOM_UNKNOWN };
enum room search_room(struct search *s, unsigned hi, unsigned left, struct nodeset *found);

/* Look through the sets of so many nodes more than the required ones that may beat s->limit, or
 * s->best by the scoring: the best goes into s->best. */
void search_walk(struct search *s, unsigned more);
/* What the walk needs for the scoring once the rows are prepared; the rank of s->best is the one to
 * beat. False: the arena's limit is reached. */
bool search_prepare_scoring(struct search *s);
/* Whether a whole set that satisfies the rows keeps what these do not say: devices on several
 * nodes, sockets, the caller's own limit. */
bool search_accepts(const struct search *s, struct nodeset m);

#endif
