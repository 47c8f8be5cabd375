/* What the parts of the made-up kubelet all do to it. */
#include <numafit-sim/sim_kubelet_state.h>

#include <stdarg.h>
#include <stdio.h>

void sim_kubelet_broken(struct sim_kubelet *k, const char *fmt, ...)
{
	char text[sizeof(struct err)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	k->ev.broken(k->ev.ctx, text);
}

void sim_kubelet_visited(struct sim_kubelet *k)
{
	if (!k->ready && k->nr_lists && k->watchers.nr)
		loop_timer_set(k->youth, 0);
}
