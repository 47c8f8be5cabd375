#include <numafit/sched_avoid.h>

#include <numafit/mem.h>
#include <numafit/nrt_fingerprint.h>
#include <string.h>

/* One workload on one node. Names are kept as hashes, so that an entry is as large whatever they
 * are; a mix-up only costs one node for a while. */
struct refusal {
	uint64_t workload, node, last_pod;
	uint64_t turn; /* grows with each refusal of any */
	int64_t until_ms, delay_ms;
};

struct sched_avoid {
	size_t nr;
	uint64_t turn;
	struct refusal at[SCHED_AVOID_MAX + 1]; /* ascending by workload, then node */
};

struct sched_avoid *sched_avoid_new(void)
{
	return xcalloc(1, sizeof(struct sched_avoid));
}

void sched_avoid_free(struct sched_avoid *a)
{
	free(a);
}

/* Where the refusal of this workload and node is, or would be; *found says which. */
static size_t refusal_place(const struct sched_avoid *a, const struct refusal *r, bool *found)
{
	size_t low = 0, high = a->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct refusal *there = &a->at[mid];

		if (there->workload != r->workload ? there->workload < r->workload
						   : there->node < r->node)
			low = mid + 1;
		else
			high = mid;
	}
	*found = low < a->nr && a->at[low].workload == r->workload && a->at[low].node == r->node;
	return low;
}

static struct refusal refusal_of(const char *workload, const char *node)
{
	return (struct refusal){.workload = xxh64_text(workload), .node = xxh64_text(node)};
}

static void refusal_remove(struct sched_avoid *a, size_t i)
{
	a->nr--;
	memmove(&a->at[i], &a->at[i + 1], (a->nr - i) * sizeof a->at[0]);
}

void sched_avoid_refused(struct sched_avoid *a, const char *workload, const char *node,
	const char *pod_uid, int64_t now_ms)
{
	struct refusal r = refusal_of(workload, node);
	bool found;
	size_t i = refusal_place(a, &r, &found), oldest = 0;

	r.last_pod = xxh64_text(pod_uid);
	if (found && a->at[i].last_pod == r.last_pod)
		return;
	r.delay_ms = found ? 2 * a->at[i].delay_ms : SCHED_AVOID_FIRST_MS;
	if (r.delay_ms > SCHED_AVOID_MOST_MS)
		r.delay_ms = SCHED_AVOID_MOST_MS;
	r.until_ms = now_ms + r.delay_ms;
	r.turn = ++a->turn;
	if (!found)
		memmove(&a->at[i + 1], &a->at[i], (a->nr++ - i) * sizeof a->at[0]);
	a->at[i] = r;
	if (a->nr <= SCHED_AVOID_MAX)
		return;
	for (i = 1; i < a->nr; i++)
		if (a->at[i].turn < a->at[oldest].turn)
			oldest = i;
	refusal_remove(a, oldest);
}

void sched_avoid_took(struct sched_avoid *a, const char *workload, const char *node)
{
	struct refusal r = refusal_of(workload, node);
	bool found;
	size_t i = refusal_place(a, &r, &found);

	if (found)
		refusal_remove(a, i);
}

/* A clock that was set back prolongs it by no more than once more. */
static bool refusal_holds(const struct refusal *r, int64_t now_ms)
{
	int64_t left_ms = r->until_ms - now_ms;

	return left_ms > 0 && left_ms < 2 * r->delay_ms;
}

bool sched_avoid_is(
	const struct sched_avoid *a, const char *workload, const char *node, int64_t now_ms)
{
	struct refusal r;
	bool found;

	if (!a->nr)
		return false;
	r = refusal_of(workload, node);
	size_t i = refusal_place(a, &r, &found);
	return found && refusal_holds(&a->at[i], now_ms);
}

size_t sched_avoid_count(const struct sched_avoid *a, int64_t now_ms)
{
	size_t nr = 0;

	for (size_t i = 0; i < a->nr; i++)
		nr += refusal_holds(&a->at[i], now_ms);
	return nr;
}
