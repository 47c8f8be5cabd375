/* A pod that no node has room for is looked at twice. kube-scheduler asks again when it hears of a
 * pod's end, at the same moment as we hear of it, and perhaps some milliseconds earlier; and when
 * it is refused then, there may be no other reason to ask again for minutes. kube-scheduler asks
 * about one pod at a time: so one is held at a time, and not more than half of the time, or a long
 * queue of pods that wait would take longer to go through. */
#include "extender.h"

#include <numafit/mem.h>
#include <numafit/number.h>

struct hold {
	struct extender *x;
	struct loop_timer *timer;
	struct http_exchange *exchange; /* NULL: none is held */
	struct http_request request;    /* its body is the exchange's */
	uint64_t since_ns, ended_ns;
	hold_over *over;
};

static void hold_end(struct hold *h)
{
	h->exchange = NULL;
	h->ended_ns = loop_monotonic_ns();
}

static void on_hold_time(void *ctx)
{
	struct hold *h = ctx;
	struct http_exchange *exchange = h->exchange;

	hold_end(h);
	h->over(h->x, exchange, &h->request, h->since_ns);
}

bool hold_begin(struct extender *x, struct http_exchange *exchange, const struct http_request *r,
	uint64_t since_ns, hold_over *over)
{
	struct hold *h = x->hold;
	uint64_t delay_ns = x->config.refusal_delay_ms * (uint64_t)NS_PER_MS;

	if (h->exchange || x->stopping || !delay_ns || loop_monotonic_ns() - h->ended_ns < delay_ns)
		return false;
	h->exchange = exchange;
	h->request = (struct http_request){.body = r->body, .len = r->len};
	h->since_ns = since_ns;
	h->over = over;
	loop_timer_set(h->timer, x->config.refusal_delay_ms);
	return true;
}

void hold_gone(struct extender *x, const struct http_exchange *exchange)
{
	if (x->hold->exchange != exchange)
		return;
	loop_timer_stop(x->hold->timer);
	hold_end(x->hold);
}

void hold_start(struct extender *x)
{
	x->hold = xcalloc(1, sizeof *x->hold);
	x->hold->x = x;
	x->hold->timer = loop_timer_new(x->loop, on_hold_time, x->hold);
}

void hold_stop(struct extender *x)
{
	if (!x->hold)
		return;
	loop_timer_close(x->hold->timer);
	free(x->hold);
	x->hold = NULL;
}
