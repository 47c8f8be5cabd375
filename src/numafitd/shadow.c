/* The modes that place nothing: shadow compares with the kubelet, off looks on and knows who runs
 * where, release takes back what was done. */
#include "shadow.h"
#include "daemon.h"
#include "decision_log.h"
#include "gather.h"
#include "pool.h"
#include "quota.h"
#include "reply.h"

#include <io/log.h>
#include <numafit/text.h>

static const char *verdict(const struct comparison *c)
{
	if (!c->compared)
		return "nothing-to-compare";
	return c->agrees ? "agrees" : "disagrees";
}

static void log_comparison(const struct request *req, const struct comparison *c)
{
	char pod[512], name[256], text[2 * DECISION_MESSAGE_MAX];

	log_line(c->agrees ? LOG_INFO : LOG_WARN, "shadow",
		"namespace=%s pod=%s container=%s id=%.12s verdict=%s text=%s", req->pod.ns,
		log_text(pod, sizeof pod, req->pod.name),
		log_text(name, sizeof name, req->ask.name), req->container_id, verdict(c),
		log_text(text, sizeof text, c->text));
}

static int shadow_create(
	void *ctx, const struct request *asked, struct nri_reply *reply, struct err *e)
{
	struct daemon *d = ctx;
	uint64_t from = loop_monotonic_ns();
	struct request req = *asked;
	struct comparison c;
	struct decision ours;

	(void)e;
	gather_container(d, &req, reply->arena);
	engine_shadow(d->engine, loop_wall_ms(), &req, &ours, &c);
	d->measured.counters.creates++;
	d->measured.counters.compared += c.compared;
	d->measured.counters.disagreed += c.compared && !c.agrees;
	uint64_t took_ns = loop_monotonic_ns() - from;
	measure_admission(d, &req, &ours, took_ns);
	log_decision(d, &req, &ours, "shadow", "", 0, took_ns);
	log_comparison(&req, &c);
	return 0;
}

static int shadow_run_pod(void *ctx, const struct pod *asked, struct err *e)
{
	struct daemon *d = ctx;
	struct pod pod = *asked;
	struct decision dec;
	struct arena a;

	(void)e;
	arena_init(&a, GATHER_BYTES);
	(void)gather_pod(d, &pod, &a);
	engine_run_pod(d->engine, loop_wall_ms(), &pod, &dec);
	d->measured.counters.cut_short += !dec.admit && dec.cut_short;
	arena_fini(&a);
	return 0;
}

static void shadow_synchronize(void *ctx, const struct nri_inventory *what, struct nri_reply *reply)
{
	struct daemon *d = ctx;
	struct request *known = xcalloc(what->nr, sizeof *known);
	struct placement *in_force = xcalloc(what->nr, sizeof *in_force);
	const struct placement **placed = xcalloc(what->nr, sizeof *placed);
	struct sandboxes there = sandboxes_of(what);
	const struct inventory running = {
		known, placed, what->nr, there.id, there.nr, there.pod_uid};
	struct update_list unsent = {0};

	d->measured.counters.connects++;
	for (size_t i = 0; i < what->nr; i++) {
		known[i] = what->containers[i];
		in_force[i] = placement_in_force(&d->topo, &d->settings, &known[i]);
		placed[i] = &in_force[i];
	}
	(void)in_force_look(d, known, placed, what->nr, reply->arena);
	for (size_t i = 0; i < what->nr; i++)
		in_force[i] = placement_in_force(&d->topo, &d->settings, &known[i]);
	engine_synchronize(d->engine, loop_wall_ms(), &running, &unsent);
	log_line(LOG_INFO, "synchronized", "pods=%zu containers=%zu held=%zu", what->nr_pods,
		what->nr, ledger_count(engine_ledger(d->engine)));
	vec_fini(&unsent);
	sandboxes_free(&there);
	free(placed);
	free(in_force);
	free(known);
}

static void shadow_stop(void *ctx, const struct request *req, struct nri_reply *reply)
{
	struct daemon *d = ctx;

	(void)reply;
	engine_forget(d->engine, loop_wall_ms(), "stop", req->container_id);
}

static void shadow_remove(void *ctx, const struct request *req)
{
	struct daemon *d = ctx;

	engine_forget(d->engine, loop_wall_ms(), "remove", req->container_id);
}

static void shadow_remove_pod(void *ctx, const struct pod *pod)
{
	struct daemon *d = ctx;

	engine_release_pod(d->engine, loop_wall_ms(), "pod-gone", pod);
}

static void shadow_live(void *ctx, const struct request *req)
{
	struct daemon *d = ctx;
	const struct placement placed = placement_in_force(&d->topo, &d->settings, req);

	engine_live(d->engine, loop_wall_ms(), req, &placed);
}

static void look_on(void *ctx, const struct request *req, struct nri_reply *reply)
{
	(void)ctx, (void)req, (void)reply;
}

static void off_note(void *ctx, const struct request *req)
{
	(void)ctx, (void)req;
}

const struct nri_handler shadow_handler = {
	.synchronize = shadow_synchronize,
	.run_pod = shadow_run_pod,
	.create = shadow_create,
	.update = look_on,
	.stop = shadow_stop,
	.remove = shadow_remove,
	.live = shadow_live,
	.started = off_note,
	.remove_pod = shadow_remove_pod,
};

static int off_run_pod(void *ctx, const struct pod *pod, struct err *e)
{
	(void)ctx, (void)pod, (void)e;
	return 0;
}

static int off_create(void *ctx, const struct request *req, struct nri_reply *reply, struct err *e)
{
	(void)ctx, (void)req, (void)reply, (void)e;
	return 0;
}

static void off_remove_pod(void *ctx, const struct pod *pod)
{
	(void)ctx, (void)pod;
}

const struct nri_handler off_handler = {
	.synchronize = shadow_synchronize,
	.run_pod = off_run_pod,
	.create = off_create,
	.update = look_on,
	.stop = shadow_stop,
	.remove = shadow_remove,
	.live = shadow_live,
	.started = off_note,
	.remove_pod = shadow_remove_pod,
};

static bool is_placed(const struct daemon *d, const struct request *req)
{
	const struct holding *h = ledger_find(engine_ledger(d->engine), req->container_id);

	return req->placement || (h && (h->decision.placed_by == PLACED_BY_NUMAFIT ||
					       h->decision.placed_by == PLACED_AS_FOUND));
}

/* A container that numafit has placed, by the journal or by its annotation, gets the whole machine.
 */
static void release_synchronize(
	void *ctx, const struct nri_inventory *what, struct nri_reply *reply)
{
	struct update_list ups = {0};
	struct daemon *d = ctx;

	d->measured.counters.connects++;
	pool_give_back(d);
	quota_give_back(d);
	for (size_t i = 0; i < what->nr; i++)
		if (is_placed(d, &what->containers[i]))
			*vec_push(&ups) =
				(struct update){.container_id = what->containers[i].container_id,
					.cpus = d->topo.cpus,
					.mems = d->topo.nodes_with_memory,
					.quota_us = quota_given_back(d, &what->containers[i])};
	const size_t nr = add_updates(d, &ups, reply);
	d->runtime.answered = (struct answered){.is_due = true};
	log_line(nr < ups.nr ? LOG_WARN : LOG_INFO, "pins-released",
		"containers=%zu of=%zu text=\"they may run everywhere again; %s\"", nr, what->nr,
		nr < ups.nr ? "others keep their CPUs until they start anew, as no message has "
			      "room for all"
			    : "numafitd can be removed");
	vec_fini(&ups);
}

/* The ledger alone knows of containers that were there before numafitd. It keeps them until the
 * answer has gone out: where numafitd is killed before, it releases them when it starts again. */
static void release_answered(void *ctx)
{
	struct update_list unsent = {0};
	struct daemon *d = ctx;

	if (d->runtime.answered.is_due)
		engine_synchronize(d->engine, loop_wall_ms(), &(struct inventory){0}, &unsent);
	d->runtime.answered.is_due = false;
	vec_fini(&unsent);
}

const struct nri_handler release_handler = {
	.synchronize = release_synchronize,
	.run_pod = off_run_pod,
	.create = off_create,
	.update = look_on,
	.stop = look_on,
	.remove = off_note,
	.live = off_note,
	.started = off_note,
	.remove_pod = off_remove_pod,
	.after = release_answered,
};
