/* Containers that run elsewhere than they are to are updated without being asked, where the runtime
 * can bear it; elsewhere with the next reply that carries updates. */
#include "updater.h"
#include "daemon.h"
#include "pool.h"
#include "reply.h"

#include <host/cgroup.h>
#include <io/log.h>
#include <mover/moves.h>
#include <numafit/number.h>
#include <numafit/text.h>

/* How long news are gathered, and how many containers the runtime is to set at once, which it does
 * one by one while others wait for it. */
enum { GATHER_MS = 200, AFTER_COPY_MS = 500, UPDATES_AT_ONCE = 16, ARENA_BYTES = 1 << 20 };
enum { REPLY_MS = 500 }; /* until the runtime has done what a reply says */

struct updater {
	struct loop_timer *timer;
	bool gathers;
	uint64_t replied_ns;      /* when a reply last said what containers run on; 0: never */
	struct update_list asked; /* the UpdateContainers on its way; with ids of its own */
};

static void forget_asked(struct updater *t)
{
	for (size_t i = 0; i < t->asked.nr; i++)
		free((void *)(uintptr_t)t->asked.at[i].container_id); /* ours since note_asked() */
	t->asked.nr = 0;
}

/* The first nr of them. */
static void note_asked(struct updater *t, const struct update_list *ups, size_t nr)
{
	forget_asked(t);
	for (size_t i = 0; i < nr; i++) {
		struct update *u = vec_push(&t->asked);

		*u = ups->at[i];
		u->container_id = xstrdup(ups->at[i].container_id);
	}
}

static void update_within(struct updater *t, uint64_t ms)
{
	t->gathers = true;
	loop_timer_set(t->timer, ms);
}

/* Whether it is to have something else by now. A reply may have said so in the meantime, but a
 * runtime may come to what it was asked only after that: in containerd both wait for one lock
 * (internal/nri/nri.go, updateFromPlugin). */
static bool is_out_of_date(const struct daemon *d, const struct update *asked)
{
	struct update want;

	return engine_wants(d->engine, asked->container_id, &want) &&
	       (!cpuset_equal(&want.cpus, &asked->cpus) || !nodeset_equal(want.mems, asked->mems) ||
		       want.without_quota != asked->without_quota);
}

/* Those that it failed for are updated with the next news, or after the next round of the sweep. */
static void updater_on_answer(void *ctx, const char *problem)
{
	struct daemon *d = ctx;
	struct updater *t = d->follow.updater;
	bool overtaken = false;
	char buf[512];

	if (problem)
		log_line(LOG_WARN, "updates-failed", "containers=%zu error=%s", t->asked.nr,
			log_text(buf, sizeof buf, problem));
	for (size_t i = 0; i < t->asked.nr; i++) {
		bool late = !problem && is_out_of_date(d, &t->asked.at[i]);

		if (problem || late)
			engine_must_update(d->engine, t->asked.at[i].container_id);
		overtaken = overtaken || late;
	}
	forget_asked(t);
	if (overtaken) /* it may have CPUs of a container that is being started */
		update_within(t, 0);
	else if (!problem)
		updater_note_change(d);
}

/* As far as that can be seen. */
static bool has_ended(const struct daemon *d, const char *container_id)
{
	const struct holding *h = ledger_find(engine_ledger(d->engine), container_id);

	return d->follow.in_force.cgroups && h && h->request.cgroup &&
	       !cgroup_has_processes(d->follow.in_force.cgroups, h->request.cgroup);
}

/* Leaves the first that can be set now: what has ended is not to be set any more. */
static void keep_first(struct daemon *d, struct update_list *ups, size_t max)
{
	size_t nr = 0;

	for (size_t i = 0; i < ups->nr; i++)
		if (nr < max && !has_ended(d, ups->at[i].container_id))
			ups->at[nr++] = ups->at[i];
		else
			engine_must_update(d->engine, ups->at[i].container_id);
	ups->nr = nr;
}

static void send_updates(struct daemon *d, const struct update_list *ups)
{
	struct updater *t = d->follow.updater;
	struct nri_reply list = {0};
	char buf[512];
	struct arena a;
	struct err e;

	arena_init(&a, ARENA_BYTES);
	list.arena = &a;
	const size_t nr = add_updates(d, ups, &list);
	for (size_t i = nr; i < ups->nr; i++)
		engine_must_update(d->engine, ups->at[i].container_id);
	note_asked(t, ups, nr);
	if (nri_conn_update(d->runtime.conn, list.updates, list.nr_updates, updater_on_answer, &e) <
		0)
		updater_on_answer(d, e.text);
	else
		log_line(LOG_INFO, "updates-sent", "containers=%zu first=%s", nr,
			log_text(buf, sizeof buf, ups->at[0].container_id));
	arena_fini(&a);
}

static bool is_copying(const struct daemon *d)
{
	return d->follow.moves && mover_is_copying(moves_mover(d->follow.moves));
}

bool updater_may_send(const struct daemon *d)
{
	return pool_is_enforced(d) && !is_copying(d);
}

static void update_misplaced(void *ctx)
{
	struct daemon *d = ctx;
	struct update_list ups = {0};

	d->follow.updater->gathers = false;
	if (!nri_conn_takes_updates(d->runtime.conn))
		return;
	if (!updater_may_send(d)) {
		if (is_copying(d))
			update_within(d->follow.updater, AFTER_COPY_MS);
		return;
	}
	engine_take_updates(d->engine, &ups);
	keep_first(d, &ups, UPDATES_AT_ONCE);
	if (ups.nr)
		send_updates(d, &ups);
	vec_fini(&ups);
}

static bool is_in(const struct update_list *ups, const char *container_id)
{
	for (size_t i = 0; i < ups->nr; i++)
		if (text_equal(ups->at[i].container_id, container_id))
			return true;
	return false;
}

void updater_repeat(const struct daemon *d, const char *not_container_id, struct update_list *ups)
{
	for (size_t i = 0; d->follow.updater && i < d->follow.updater->asked.nr; i++) {
		const char *id = d->follow.updater->asked.at[i].container_id;
		struct update want;

		if (!text_equal(id, not_container_id) && !is_in(ups, id) &&
			engine_wants(d->engine, id, &want) && !want.untouched)
			*vec_push(ups) = want;
	}
}

void updater_note_reply(struct daemon *d)
{
	if (d->follow.updater)
		d->follow.updater->replied_ns = loop_monotonic_ns();
}

void updater_note_synchronize(struct daemon *d)
{
	if (d->follow.updater)
		forget_asked(d->follow.updater);
}

/* It holds one lock from an event to the end of what the reply says (containerd, internal/nri). */
void updater_note_event(struct daemon *d)
{
	if (d->follow.updater)
		d->follow.updater->replied_ns = 0;
}

bool updater_is_at_work(const struct daemon *d)
{
	const struct updater *t = d->follow.updater;
	const uint64_t then = t ? t->replied_ns : 0;

	return t && (t->asked.nr ||
			    (then && loop_monotonic_ns() - then < (uint64_t)REPLY_MS * NS_PER_MS));
}

bool updater_is_updating(const struct daemon *d, const char *container_id)
{
	for (size_t i = 0; d->follow.updater && i < d->follow.updater->asked.nr; i++)
		if (text_equal(d->follow.updater->asked.at[i].container_id, container_id))
			return true;
	return false;
}

void updater_note_change(struct daemon *d)
{
	struct updater *t = d->follow.updater;

	if (!t || t->gathers || !ledger_view(engine_ledger(d->engine))->nr_misplaced)
		return;
	update_within(t, GATHER_MS);
}

void updater_start(struct daemon *d)
{
	if (d->settings.mode != MODE_MANAGE)
		return;
	d->follow.updater = xcalloc(1, sizeof *d->follow.updater);
	d->follow.updater->timer = loop_timer_new(d->loop, update_misplaced, d);
}

void updater_stop(struct daemon *d)
{
	struct updater *t = d->follow.updater;

	if (!t)
		return;
	loop_timer_close(t->timer);
	forget_asked(t);
	vec_fini(&t->asked);
	free(t);
	d->follow.updater = NULL;
}
