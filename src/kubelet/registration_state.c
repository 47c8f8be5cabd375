/* What every state may do: enter another, report, wait, end the streams. */
#include <kubelet/registration_state.h>

#include <numafit/number.h>
#include <numafit/text.h>

enum { SELDOM = 10 }; /* times connect_max_ms: a look in case that a watch missed something */

void registration_enter(struct registration *r, enum registration_state state, unsigned ms)
{
	r->state = state;
	loop_timer_set(r->timer, ms);
}

unsigned registration_seldom_ms(const struct registration *r)
{
	return SELDOM * r->o.connect_max_ms;
}

void registration_report(struct registration *r, bool bad, const char *event, const struct err *e)
{
	if (text_equal(r->reported, event) && text_equal(r->reported_text.text, e->text))
		return;
	r->reported = event;
	r->reported_text = *e;
	r->handler->on_event(r->handler->ctx, bad, event, e->text);
}

bool registration_is_another(const struct registration *r)
{
	return plugin_files_kubelet(r->files) == KUBELET_SOCKET_ANOTHER;
}

/* A kubelet handles the end of a stream beside everything else; a Register that overtakes it is
 * torn down with the stream (still so in 1.36). Therefore there is a pause after it. */
void registration_end_streams(struct registration *r)
{
	r->hurry = false;
	registration_enter(r, REGISTRATION_ENDING, registration_seldom_ms(r));
	r->handler->end_streams(r->handler->ctx);
}

void registration_go_up(struct registration *r)
{
	struct err e;

	(void)err_set(&e, 0, "the kubelet watches %s", r->o.resource);
	registration_enter(r, REGISTRATION_UP, registration_seldom_ms(r));
	r->up_ns = loop_monotonic_ns();
	registration_report(r, false, "device-plugin-up", &e);
}

unsigned registration_grow(unsigned *ms, unsigned max)
{
	unsigned now = *ms;

	*ms = now < max / 2 ? now * 2 : max;
	return now;
}

void registration_reset_waits(struct registration *r)
{
	r->connect_ms = r->o.connect_min_ms;
	r->refused_ms = r->o.refused_min_ms;
}

unsigned registration_ms_since(uint64_t ns)
{
	uint64_t ms = (loop_monotonic_ns() - ns) / NS_PER_MS;

	return ms < UINT32_MAX ? (unsigned)ms : UINT32_MAX;
}
