#include <numafit/qos.h>

static bool is_above_0(const struct quantity *q)
{
	return q && quantity_compare(*q, quantity_of(0)) > 0;
}

void qos_add(struct qos_sums *sums, const struct qos_said *said)
{
	for (unsigned r = 0; r < NR_QOS_RESOURCES; r++) {
		if (is_above_0(said->request[r]))
			sums->request[r] = quantity_add(sums->request[r], *said->request[r]);
		if (is_above_0(said->limit[r]))
			sums->limit[r] = quantity_add(sums->limit[r], *said->limit[r]);
		else
			sums->unlimited = true;
	}
}

enum qos qos_of(const struct qos_sums *sums)
{
	bool asks = false, same = true;

	for (unsigned r = 0; r < NR_QOS_RESOURCES; r++) {
		asks = asks || is_above_0(&sums->request[r]) || is_above_0(&sums->limit[r]);
		same = same && !quantity_compare(sums->request[r], sums->limit[r]);
	}
	if (!asks)
		return QOS_BEST_EFFORT;
	return same && !sums->unlimited ? QOS_GUARANTEED : QOS_BURSTABLE;
}
