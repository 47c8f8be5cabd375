#include <numafit-sim/cluster_queue.h>

static bool is_before(const struct event *a, const struct event *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->turn < b->turn;
}

void event_queue_put(struct event_queue *q, int64_t at_ms, unsigned kind, unsigned what)
{
	const struct event e = {at_ms, q->turn++, kind, what};
	size_t i = q->nr;

	(void)vec_push(q);
	for (; i && is_before(&e, &q->at[(i - 1) / 2]); i = (i - 1) / 2)
		q->at[i] = q->at[(i - 1) / 2];
	q->at[i] = e;
}

bool event_queue_take(struct event_queue *q, struct event *out)
{
	if (!q->nr)
		return false;
	*out = q->at[0];
	const struct event last = q->at[--q->nr];
	size_t i = 0;
	for (size_t child; (child = 2 * i + 1) < q->nr; i = child) {
		if (child + 1 < q->nr && is_before(&q->at[child + 1], &q->at[child]))
			child++;
		if (!is_before(&q->at[child], &last))
			break;
		q->at[i] = q->at[child];
	}
	q->at[i] = last;
	return true;
}
