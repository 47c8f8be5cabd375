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

static uint64_t hash_of(const char *name)
{
	return xxh64(name, strlen(name), 0);
}

struct sched_avoid *sched_avoid_new(void)
{
	return xcalloc(1, sizeof(struct sched_avoid));
}

void sched_avoid_free(struct sched_avoid *a)
{
	free(a);
}

static bool is_before(const struct refusal *a, const struct refusal *b)
{
	return a->workload != b->workload ? a->workload < b->workload : a->node < b->node;
}

static bool is_of(const struct refusal *a, const struct refusal *b)
{
	return a->workload == b->workload && a->node == b->node;
}

/* Where it is, or would be; *found says which. */
static size_t place_of(const struct sched_avoid *a, const struct refusal *r, bool *found)
{
	size_t low = 0, high = a->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (is_before(&a->at[mid], r))
			low = mid + 1;
		else
			high = mid;
	}
	*found = low < a->nr && is_of(&a->at[low], r);
	return low;
}

static struct refusal refusal_of(const char *workload, const char *node)
{
	return (struct refusal){.workload = hash_of(workload), .node = hash_of(node)};
}

static void drop(struct sched_avoid *a, size_t i)
{
	a->nr--;
	memmove(&a->at[i], &a->at[i + 1], (a->nr - i) * sizeof a->at[0]);
}

static void drop_oldest(struct sched_avoid *a)
{
	size_t oldest = 0;

	for (size_t i = 1; i < a->nr; i++)
		if (a->at[i].turn < a->at[oldest].turn)
			oldest = i;
	drop(a, oldest);
}

static void insert(struct sched_avoid *a, size_t i, const struct refusal *r)
{
	memmove(&a->at[i + 1], &a->at[i], (a->nr - i) * sizeof a->at[0]);
	a->at[i] = *r;
	a->nr++;
}

void sched_avoid_refused(struct sched_avoid *a, const char *workload, const char *node,
	const char *pod_uid, int64_t now_ms)
{
	struct refusal r = refusal_of(workload, node);
	bool found;
	size_t i = place_of(a, &r, &found);

	r.last_pod = hash_of(pod_uid);
	if (found && a->at[i].last_pod == r.last_pod)
		return;
	r.delay_ms = found ? 2 * a->at[i].delay_ms : SCHED_AVOID_FIRST_MS;
	if (r.delay_ms > SCHED_AVOID_MOST_MS)
		r.delay_ms = SCHED_AVOID_MOST_MS;
	r.until_ms = now_ms + r.delay_ms;
	r.turn = ++a->turn;
	if (found)
		a->at[i] = r;
	else
		insert(a, i, &r);
	if (a->nr > SCHED_AVOID_MAX)
		drop_oldest(a);
}

void sched_avoid_took(struct sched_avoid *a, const char *workload, const char *node)
{
	struct refusal r = refusal_of(workload, node);
	bool found;
	size_t i = place_of(a, &r, &found);

	if (found)
		drop(a, i);
}

/* A clock that was set back prolongs it by no more than once more. */
static bool is_on(const struct refusal *r, int64_t now_ms)
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
	size_t i = place_of(a, &r, &found);
	return found && is_on(&a->at[i], now_ms);
}

size_t sched_avoid_count(const struct sched_avoid *a, int64_t now_ms)
{
	size_t nr = 0;

	for (size_t i = 0; i < a->nr; i++)
		nr += is_on(&a->at[i], now_ms);
	return nr;
}
