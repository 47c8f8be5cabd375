#ifndef EVENTS_RIG_H
#define EVENTS_RIG_H

#include <numafitd/daemon.h>

#include <codec/machine_text.h>
#include <io/fault.h>
#include <io/log.h>
#include <numafit/shares.h>
#include <numafit/text.h>

#include "core_machine.h"
#include "core_random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

enum { CLAIMS = 2, BOXES = 5, ID_MAX = 24, ARENA_BYTES = 1 << 20, NO_CLAIM = -1 };

/* Events of a node in any order, through the daemon's own handlers and recorder, for
 * test_events_random.c. What is asserted is known from outside alone: which container runs on which
 * CPUs, by what the runtime was answered, and which CPUs a claim was answered with. */

static const char machine[] = "machine two\n"
			      "node 0 memory 8Gi cpus 0-7\n"
			      "node 4 memory 8Gi cpus 8-15 socket 1\n";

enum stage { ABSENT, CREATED, POSTED, RUNS, ENDED }; /* of a container, to the runtime */

/* A place for one container after another. */
struct box {
	int claim;     /* NO_CLAIM: it comes with none */
	unsigned cpus; /* of its own that it asks for, where it has no claim; 0: it shares the pool
			*/
	const char *pod;
	enum stage stage;
	bool end_is_known; /* by the daemon that there is now */
	bool unsettled; /* it may have to be updated first: the daemon does not know of it, or the
			   runtime has passed over its update, as it does before a process runs */
	char id[ID_MAX], cpus_text[CPUSET_TEXT_MAX], mems_text[NODESET_TEXT_MAX];
	struct cpuset on; /* that it runs on, or will */
	const char *cdi[1];
};

struct claim_here {
	const char *uid, *device, *pods[2], *cdi;
	unsigned cpus;
	bool shared, prepared;
	struct cpuset on; /* the answer to its Prepare */
};

struct world {
	struct daemon d;
	char dir[64], told[512]; /* the events so far */
	struct claim_here claim[CLAIMS];
	struct box box[BOXES];
	unsigned next_id;
	bool refused_while_used; /* an Unprepare was */
	struct random r;
	struct {
		unsigned events, sequences, ran, prepared, waited, taken_over;
	} count;
};

static void no_log(const char *line, size_t len)
{
	(void)line, (void)len;
}

/* What must hold */

static bool is_there(const struct box *b)
{
	return b->stage == CREATED || b->stage == POSTED || b->stage == RUNS;
}

static unsigned wanted_cpus(const struct world *w, const struct box *b)
{
	return b->claim == NO_CLAIM ? b->cpus : w->claim[b->claim].cpus;
}

/* The shared pool is always larger than what a container asks for. */
static bool has_own(const struct world *w, const struct box *b)
{
	return is_there(b) && wanted_cpus(w, b) && cpuset_count(&b->on) == wanted_cpus(w, b);
}

static bool may_share(const struct world *w, const struct box *a, const struct box *b)
{
	return a->claim != NO_CLAIM && a->claim == b->claim && w->claim[a->claim].shared;
}

static void assert_apart(const struct world *w, const struct box *a, const struct box *b)
{
	/* before its process runs, a container of the pool runs nowhere */
	if (a == b || a->unsettled || b->unsettled || !has_own(w, a) || !is_there(b) ||
		(b->stage != RUNS && !has_own(w, b)) || may_share(w, a, b))
		return;
	if (cpuset_intersects(&a->on, &b->on))
		fail_msg("%s (place %d) has %s for itself, %s (place %d) runs on %s:%s", a->id,
			(int)(a - w->box), a->cpus_text, b->id, (int)(b - w->box), b->cpus_text,
			w->told);
}

static void assert_claim(const struct world *w, const struct claim_here *c)
{
	if (!c->prepared)
		return;
	for (size_t i = 0; i < CLAIMS; i++)
		if (&w->claim[i] != c && w->claim[i].prepared &&
			cpuset_intersects(&c->on, &w->claim[i].on))
			fail_msg("claims %s and %s have a CPU in common:%s", c->uid,
				w->claim[i].uid, w->told);
	for (size_t i = 0; i < BOXES; i++) {
		const struct box *b = &w->box[i];
		const bool uses = b->claim == c - w->claim;

		if (!is_there(b) || b->unsettled || (b->stage != RUNS && !has_own(w, b)))
			continue;
		if (uses ? !cpuset_equal(&b->on, &c->on) : cpuset_intersects(&b->on, &c->on))
			fail_msg("%s runs on %s, and claim %s is prepared:%s", b->id, b->cpus_text,
				c->uid, w->told);
	}
}

static void check(const struct world *w)
{
	struct err e;

	if (ledger_check(engine_ledger(w->d.engine), &e))
		fail_msg("%s:%s", e.text, w->told);
	for (size_t i = 0; i < CLAIMS; i++)
		assert_claim(w, &w->claim[i]);
	for (size_t i = 0; i < BOXES; i++)
		if (w->box[i].stage == ENDED && w->box[i].end_is_known &&
			ledger_find(engine_ledger(w->d.engine), w->box[i].id))
			fail_msg("%s has ended, and has an entry:%s", w->box[i].id, w->told);
	for (size_t i = 0; i < BOXES; i++)
		for (size_t j = 0; j < BOXES; j++)
			assert_apart(w, &w->box[i], &w->box[j]);
}

/* The runtime */

static void set_cpus(struct box *b, const char *cpus, const char *mems)
{
	assert_true(text_copy(b->cpus_text, sizeof b->cpus_text, cpus));
	assert_true(text_copy(b->mems_text, sizeof b->mems_text, mems));
	assert_int_equal(cpuset_parse(&b->on, cpus, strlen(cpus), NULL), 0);
}

/* A runtime may pass over an update of a container whose process does not run yet: this one does.
 */
static void take_update(struct world *w, const struct nri_cpuset *u)
{
	for (size_t i = 0; i < BOXES; i++) {
		struct box *b = &w->box[i];

		if (!is_there(b) || !text_equal(b->id, u->container_id))
			continue;
		b->unsettled = b->unsettled || b->stage != RUNS;
		if (b->stage == RUNS)
			set_cpus(b, u->cpus, u->mems);
	}
}

static void take_reply(struct world *w, const struct nri_reply *reply)
{
	for (size_t i = 0; i < reply->nr_updates; i++)
		take_update(w, &reply->updates[i]);
}

/* What the daemon's updater would send by now. */
static void take_late_updates(struct world *w)
{
	struct update_list ups = {0};

	engine_take_updates(w->d.engine, &ups);
	for (size_t i = 0; i < ups.nr; i++) {
		char cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX];

		take_update(w,
			&(struct nri_cpuset){ups.at[i].container_id,
				cpuset_format(&ups.at[i].cpus, cpus, sizeof cpus),
				nodeset_format(ups.at[i].mems, &w->d.topo.ids, mems, sizeof mems),
				0});
	}
	vec_fini(&ups);
}

static struct request shown(const struct world *w, struct box *b)
{
	struct request req = ask(
		b->id, b->cpus ? QOS_GUARANTEED : QOS_BURSTABLE, b->cpus ? 1000 * b->cpus : 100, 0);

	req.pod.uid = req.pod.name = req.pod.sandbox_id = b->pod;
	req.cpus = b->cpus_text;
	req.mems = b->mems_text;
	req.in_creation = b->stage == CREATED || b->stage == POSTED;
	req.created_at_ns = atoi(b->id + 1);
	if (b->claim != NO_CLAIM)
		b->cdi[0] = w->claim[b->claim].cdi;
	req.cdi = b->cdi;
	req.nr_cdi = b->claim != NO_CLAIM;
	return req;
}

typedef void nri_note(void *ctx, const struct request *req);
typedef void nri_answered(void *ctx, const struct request *req, struct nri_reply *reply);

/* An event about the container, in the order in which a session calls the handlers. */
static void report(struct world *w, struct box *b, nri_note *note, nri_answered *ask_for)
{
	const struct nri_handler *h = &w->d.runtime.handler;
	const struct request req = shown(w, b);
	struct nri_reply reply = {0};
	struct arena a;

	arena_init(&a, ARENA_BYTES);
	reply.arena = &a;
	h->began(h->ctx);
	if (note)
		note(h->ctx, &req);
	else
		ask_for(h->ctx, &req, &reply);
	h->ended(h->ctx, NRI_EVENT_NONE);
	h->after(h->ctx);
	b->unsettled = b->unsettled && b->stage != RUNS; /* it is known, and takes its updates */
	take_reply(w, &reply);
	take_late_updates(w);
	arena_fini(&a);
}

static void synchronize(struct world *w)
{
	const struct nri_handler *h = &w->d.runtime.handler;
	struct request list[BOXES];
	struct pod pods[BOXES];
	struct nri_reply reply = {0};
	struct arena a;
	size_t nr = 0;

	for (size_t i = 0; i < BOXES; i++)
		if (is_there(&w->box[i])) {
			list[nr] = shown(w, &w->box[i]);
			pods[nr] = list[nr].pod;
			nr++;
		}
	arena_init(&a, ARENA_BYTES);
	reply.arena = &a;
	h->began(h->ctx);
	h->synchronize(h->ctx, &(struct nri_inventory){list, nr, pods, nr}, &reply);
	h->ended(h->ctx, NRI_EVENT_NONE);
	take_reply(w, &reply);
	take_late_updates(w);
	arena_fini(&a);
}

/* Events. False: nothing like it can happen now. */

static bool prepare(struct world *w, unsigned i)
{
	struct claim_here *c = &w->claim[i];
	const struct claim_share share = {.request = "r",
		.pool = "n1",
		.device = c->device,
		.cpus = c->cpus,
		.shared = c->shared};
	const struct resource_claim claim = {.uid = c->uid,
		.ns = "shop",
		.name = c->uid,
		.nr = 1,
		.share = &share,
		.nr_pods = c->pods[1] ? 2 : 1,
		.pod_uid = c->pods};
	struct decision d;
	struct err e;
	int rc = engine_prepare(w->d.engine, 1, &claim, &d, &e);

	if (rc && rc != -EPERM)
		fail_msg("%s:%s", e.text, w->told);
	if (rc)
		return true; /* plain containers have all that is left */
	c->prepared = true;
	c->on = shares_find(engine_ledger(w->d.engine), c->uid, 0)->decision.cpus;
	w->count.prepared++;
	take_late_updates(w);
	return true;
}

static bool unprepare(struct world *w, unsigned i)
{
	struct claim_here *c = &w->claim[i];
	bool used = false;
	struct err e;

	for (size_t k = 0; k < BOXES; k++)
		used = used || (w->box[k].claim == (int)i && has_own(w, &w->box[k]) &&
				       !w->box[k].unsettled && c->prepared);
	if (engine_unprepare(w->d.engine, 1, c->uid, &e)) {
		w->count.waited++;
		return true;
	}
	if (used)
		fail_msg(
			"claim %s is unprepared, and a container has its CPUs:%s", c->uid, w->told);
	c->prepared = false;
	take_late_updates(w);
	return true;
}

static void create(struct world *w, struct box *b)
{
	const struct nri_handler *h = &w->d.runtime.handler;
	struct nri_reply reply = {0};
	struct arena a;
	struct err e;

	(void)snprintf(b->id, sizeof b->id, "c%u", ++w->next_id);
	b->cpus_text[0] = b->mems_text[0] = '\0';
	const struct request req = shown(w, b);
	arena_init(&a, ARENA_BYTES);
	reply.arena = &a;
	h->began(h->ctx);
	if (!h->create(h->ctx, &req, &reply, &e)) {
		b->stage = CREATED;
		b->unsettled = false;
		set_cpus(b, reply.cpus, reply.mems);
		take_reply(w, &reply);
	}
	h->ended(h->ctx, NRI_EVENT_CREATE);
	h->after(h->ctx);
	take_late_updates(w);
	arena_fini(&a);
}

/* A step of its life: it is created, post-created, started. */
static bool step(struct world *w, unsigned i)
{
	const struct nri_handler *h = &w->d.runtime.handler;
	struct box *b = &w->box[i];

	if (b->stage > POSTED)
		return false;
	if (b->stage == ABSENT) {
		create(w, b);
		return true;
	}
	b->stage++;
	report(w, b, b->stage == POSTED ? h->live : h->started, NULL);
	w->count.ran += b->stage == RUNS;
	return true;
}

static bool update(struct world *w, unsigned i)
{
	if (w->box[i].stage != RUNS)
		return false;
	report(w, &w->box[i], NULL, w->d.runtime.handler.update);
	return true;
}

static bool stop(struct world *w, unsigned i)
{
	if (!is_there(&w->box[i]))
		return false;
	w->box[i].stage = ENDED;
	w->box[i].end_is_known = true;
	report(w, &w->box[i], NULL, w->d.runtime.handler.stop);
	return true;
}

static bool remove_box(struct world *w, unsigned i)
{
	if (w->box[i].stage == ABSENT)
		return false;
	report(w, &w->box[i], w->d.runtime.handler.remove, NULL);
	w->box[i].stage = ABSENT;
	return true;
}

/* Its start is reported behind its end. */
static bool start_late(struct world *w, unsigned i)
{
	if (w->box[i].stage != ENDED)
		return false;
	report(w, &w->box[i], w->d.runtime.handler.started, NULL);
	return true;
}

static bool end_sandbox(struct world *w, unsigned i)
{
	const struct nri_handler *h = &w->d.runtime.handler;
	const struct pod pod = shown(w, &w->box[i]).pod;

	if (w->box[i].stage == ABSENT)
		return false;
	w->box[i].stage = ABSENT;
	h->began(h->ctx);
	h->remove_pod(h->ctx, &pod);
	h->ended(h->ctx, NRI_EVENT_STOP_POD);
	take_late_updates(w);
	return true;
}

static void end_daemon(struct world *w)
{
	wiring_stop(&w->d);
	recorder_stop(&w->d);
}

static void start_daemon(struct world *w)
{
	struct daemon *d = &w->d;
	struct loop *loop = d->loop;
	struct topo topo = d->topo;
	struct settings s = d->settings;
	struct run_directory run = d->run;
	struct err e = {0};

	for (size_t i = 0; i < BOXES; i++)
		w->box[i].end_is_known = false;
	*d = (struct daemon){.loop = loop, .topo = topo, .settings = s, .run = run};
	if (recorder_start(d, &e))
		fail_msg("%s", e.text);
	wiring_start(d);
}

static bool restart(struct world *w, unsigned i)
{
	(void)i;
	end_daemon(w);
	start_daemon(w);
	synchronize(w);
	return true;
}

static void lose_journal(struct world *w)
{
	end_daemon(w);
	assert_int_equal(unlink(w->d.run.journal_path), 0);
	for (size_t i = 0; i < CLAIMS; i++)
		w->claim[i].prepared = false;
	start_daemon(w);
}

static bool restart_without_journal(struct world *w, unsigned i)
{
	(void)i;
	lose_journal(w);
	synchronize(w);
	return true;
}

/* A runtime that has started the daemon itself, and does not say what runs (NRI up to 0.6.1). */
static bool restart_without_synchronize(struct world *w, unsigned i)
{
	(void)i;
	lose_journal(w);
	for (size_t k = 0; k < BOXES; k++)
		w->box[k].unsettled = true;
	return true;
}

static bool live_at_once(struct world *w, unsigned i)
{
	if (w->box[i].stage != ABSENT)
		return false;
	while (step(w, i) && w->box[i].stage != ABSENT && w->box[i].stage != RUNS)
		;
	return true;
}

struct event {
	const char *name;
	bool (*happen)(struct world *w, unsigned i);
	unsigned nr; /* of what it happens to, at random */
	unsigned weight;
};

static const struct event events[] = {
	{"prepare", prepare, CLAIMS, 8},
	{"unprepare", unprepare, CLAIMS, 8},
	{"step", step, BOXES, 40},
	{"update", update, BOXES, 8},
	{"stop", stop, BOXES, 14},
	{"remove", remove_box, BOXES, 10},
	{"start-late", start_late, BOXES, 4},
	{"end-sandbox", end_sandbox, BOXES, 2},
	{"restart", restart, 1, 2},
	{"restart-without-journal", restart_without_journal, 1, 1},
	{"restart-without-synchronize", restart_without_synchronize, 1, 1},
	{"live", live_at_once, BOXES, 0},
};
enum { NR_EVENTS = sizeof events / sizeof *events };

static bool happen(struct world *w, const struct event *e, unsigned i)
{
	const size_t len = strlen(w->told), room = sizeof w->told / 2;

	if (len > room) /* the last ones */
		memmove(w->told, w->told + len - room, room + 1);
	(void)snprintf(
		w->told + strlen(w->told), sizeof w->told - strlen(w->told), " %s-%u", e->name, i);
	if (!e->happen(w, i))
		return false;
	w->count.events++;
	check(w);
	return true;
}

/* All ends, and nothing is left. */
static void drain(struct world *w)
{
	for (unsigned i = 0; i < BOXES; i++) {
		(void)stop(w, i);
		(void)remove_box(w, i);
	}
	check(w);
	for (unsigned i = 0; i < CLAIMS; i++) {
		(void)unprepare(w, i);
		if (w->claim[i].prepared)
			fail_msg("claim %s is held for nobody:%s", w->claim[i].uid, w->told);
	}
	if (ledger_count(engine_ledger(w->d.engine)))
		fail_msg("%s is left:%s",
			ledger_at(engine_ledger(w->d.engine), 0)->request.container_id, w->told);
	assert_true(cpuset_empty(&ledger_view(engine_ledger(w->d.engine))->held));
	w->told[0] = '\0';
	w->count.sequences++;
}

static struct world *world_new(void)
{
	const char *seed = getenv("SEED"), *fast = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
	struct world *w = calloc(1, sizeof *w);
	struct settings *s = &w->d.settings;

	log_set_sink(no_log);
	w->r = (struct random){seed ? strtoull(seed, NULL, 10) : 1};
	w->claim[0] = (struct claim_here){.uid = "ua",
		.device = "numa0",
		.cpus = 3,
		.pods = {"p0"},
		.cdi = "numafit.io/claim=ua-0"};
	w->claim[1] = (struct claim_here){.uid = "ub",
		.device = "numa4",
		.cpus = 2,
		.pods = {"p1", "p2"},
		.cdi = "numafit.io/claim=ub-0",
		.shared = true};
	w->box[0] = (struct box){.claim = 0, .pod = "p0"};
	w->box[1] = (struct box){.claim = 1, .pod = "p1"};
	w->box[2] = (struct box){.claim = 1, .pod = "p2"};
	w->box[3] = (struct box){.claim = NO_CLAIM, .pod = "p3", .cpus = 4};
	w->box[4] = (struct box){.claim = NO_CLAIM, .pod = "p4"};
	assert_int_equal(machine_text_parse(machine, strlen(machine), &w->d.topo, NULL), 0);
	settings_init(s);
	s->mode = MODE_MANAGE;
	s->sweep_interval_ms = 0; /* it looks for cgroups that there are not */
	s->shared_pool_step = 1;
	s->claims = true;
	(void)cpuset_parse(&s->reserved_cpus, "0", 1, NULL);
	(void)snprintf(w->dir, sizeof w->dir, "%s/numafit-events-XXXXXX", fast);
	assert_non_null(mkdtemp(w->dir));
	(void)snprintf(s->nri_socket, sizeof s->nri_socket, "%s/nri.sock", w->dir);
	(void)snprintf(w->d.run.journal_path, sizeof w->d.run.journal_path, "%s/journal", w->dir);
	w->d.loop = loop_new();
	start_daemon(w);
	synchronize(w);
	return w;
}

static void world_free(struct world *w)
{
	end_daemon(w);
	loop_free(w->d.loop);
	(void)unlink(w->d.run.journal_path);
	(void)rmdir(w->dir);
	free(w);
}

#endif
