/* Whether some positions have room for all demands together. Each demand alone is easy: its largest
 * weights have enough or nothing has. Several are a knapsack of many sides. Any mix of them is a
 * demand like one alone, and when even the mix's largest weights are not enough nothing is; and the
 * nodes with the mix's largest weights are often a set that will do. So the mix is moved towards
 * the demand that is not met until one of both is seen. The few cases in between are left to a walk
 * through the sets. */
#include "search_state.h"

#include <string.h>

bool search_spend(struct search *s, uint64_t steps)
{
	if (!budget_spend(s->budget, steps))
		s->exhausted = true;
	return !s->exhausted;
}

/* How often a mix is tried; what the shares in it are. */
enum { TRIES = 24, SHARE = 1 << 12, SHARE_MAX = 1 << 20, NUMBERS_PER_STEP = 16 };

/* One question. */
struct question {
	struct search *s;
	unsigned hi, left;
	unsigned nr;
	uint8_t row[SEARCH_DEMANDS];   /* whose need the chosen nodes do not meet */
	uint64_t lack[SEARCH_DEMANDS]; /* of SEARCH_WHOLE */
	uint64_t share[SEARCH_DEMANDS];
	uint8_t order[NODES_MAX]; /* positions, those with most of the mix first */
	uint64_t mix[NODES_MAX];
};

/* False: one demand alone cannot be met. */
static bool ask_room(struct question *x, struct search *s, unsigned hi, unsigned left)
{
	*x = (struct question){.s = s, .hi = hi, .left = left};
	for (unsigned i = 0; i < s->nr_rows; i++) {
		const struct row *r = &s->row[i];

		if (r->sum >= r->need)
			continue;
		if (r->sum + r->top[hi * s->width + left] < r->need)
			return false;
		x->lack[x->nr] = r->parts < SEARCH_WHOLE ? SEARCH_WHOLE - r->parts : 0;
		x->share[x->nr] = SHARE_MAX / 2;
		x->row[x->nr++] = (uint8_t)i;
	}
	for (unsigned q = 0; q < hi; q++)
		x->order[q] = (uint8_t)q;
	return true;
}

/* Sort the positions, those with most of it first; from one try to the next it changes little. */
static void sort_positions(struct question *x, const uint64_t *by)
{
	for (unsigned i = 1; i < x->hi; i++) {
		uint8_t q = x->order[i];
		unsigned at = i;

		for (; at && by[x->order[at - 1]] < by[q]; at--)
			x->order[at] = x->order[at - 1];
		x->order[at] = q;
	}
}

/* Whether the mix's largest weights are less than the mix's need: then nothing has room. */
static bool mix_is_short(const struct question *x)
{
	uint64_t need = 0, have = 0;

	for (unsigned i = 0; i < x->nr; i++)
		need += x->share[i] * x->lack[i];
	for (unsigned c = 0; c < x->left; c++)
		have += x->mix[x->order[c]];
	return have < need;
}

/* What the first ones in order have of each demand, less what it lacks, in 1/SHARE of what it
 * lacks. True: they meet all. */
static bool mix_suffices(const struct question *x, int64_t beyond[SEARCH_DEMANDS])
{
	bool all = true;

	for (unsigned i = 0; i < x->nr; i++) {
		const struct row *r = &x->s->row[x->row[i]];
		uint64_t have = r->sum, parts = 0, lack = x->lack[i] / SHARE + 1;

		for (unsigned c = 0; c < x->left; c++) {
			have += r->weight[x->order[c]];
			parts += r->part[x->order[c]];
		}
		all = all && have >= r->need;
		beyond[i] = ((int64_t)parts - (int64_t)x->lack[i]) / (int64_t)lack;
		if (have < r->need && beyond[i] >= 0)
			beyond[i] = -1; /* by less than what rounding adds */
	}
	return all;
}

/* Of two demands: the share of the first is between these. */
struct bracket {
	uint64_t low, high;
};

/* Move the mix towards what is not met. False: it has nowhere to go. */
static bool move_mix(struct question *x, const int64_t beyond[SEARCH_DEMANDS], struct bracket *b)
{
	if (x->nr == 2) {
		if (beyond[0] < beyond[1])
			b->low = x->share[0];
		else
			b->high = x->share[0];
		x->share[0] = (b->low + b->high) / 2;
		x->share[1] = SHARE_MAX - x->share[0];
		return b->high - b->low > 1;
	}
	for (unsigned i = 0; i < x->nr; i++) {
		int64_t by = -beyond[i];

		by = by < -SHARE / 2 ? -SHARE / 2 : by > SHARE ? SHARE : by;
		x->share[i] = (uint64_t)((int64_t)x->share[i] * (2 * SHARE + by) / (2 * SHARE)) + 1;
		if (x->share[i] > SHARE_MAX)
			x->share[i] = SHARE_MAX;
	}
	return true;
}

static struct nodeset first_in_order(const struct question *x)
{
	struct nodeset nodes = x->s->required;

	for (unsigned c = 0; c < x->left; c++)
		nodes = nodeset_or(nodes, nodeset_of(x->s->node[x->order[c]]));
	return nodes;
}

static enum room answer_room(struct question *x, struct nodeset *found)
{
	struct bracket b = {0, SHARE_MAX};
	int64_t beyond[SEARCH_DEMANDS];

	for (unsigned try = 0; try < TRIES; try++) {
		memset(x->mix, 0, x->hi * sizeof *x->mix);
		for (unsigned i = 0; i < x->nr; i++)
			for (unsigned q = 0; q < x->hi; q++)
				x->mix[q] += x->share[i] * x->s->row[x->row[i]].part[q];
		sort_positions(x, x->mix);
		if (mix_suffices(x, beyond)) {
			*found = first_in_order(x);
			return ROOM_FOUND;
		}
		if (mix_is_short(x))
			return ROOM_NONE;
		if (!search_spend(x->s, 1 + x->hi * x->nr / NUMBERS_PER_STEP) ||
			!move_mix(x, beyond, &b))
			break;
	}
	return ROOM_UNKNOWN;
}

enum room search_room(struct search *s, unsigned hi, unsigned left, struct nodeset *found)
{
	struct question x;

	if (left > hi || !ask_room(&x, s, hi, left))
		return ROOM_NONE;
	if (x.nr > 1)
		return answer_room(&x, found);
	if (x.nr) /* the largest are enough: ask_room() has seen it */
		sort_positions(&x, s->row[x.row[0]].weight);
	*found = first_in_order(&x);
	return ROOM_FOUND;
}
