/* What the runtime's half and the kubelet's half of a play both do to it. */
#include <numafit-sim/play_state.h>

#include <numafit-sim/advised.h>
#include <numafit/text.h>

void play_end(struct play *p, int rc)
{
	p->rc = rc;
	p->over = p->busy = true;
	loop_timer_stop(p->timer);
	loop_stop(p->loop);
}

void play_refuse_rest(struct play *p, const struct container *of, const char *why)
{
	script_drop(&p->script, of->sandbox_id);
	for (size_t i = 0; i < p->node->nr; i++) {
		struct container *c = p->node->at[i];

		if (c->state != CONTAINER_CREATING || !text_equal(c->sandbox_id, of->sandbox_id))
			continue;
		c->state = CONTAINER_REFUSED;
		advised_note(p->node, c, why);
		report_create(p->report, c, why, 0);
	}
}
