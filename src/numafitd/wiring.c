/* The runtime's events -> the engine's, and its decisions -> the runtime's words. Nothing is
 * decided here; every decision is one log line. */
#include "claims.h"
#include "cluster.h"
#include "daemon.h"
#include "decision_log.h"
#include "gather.h"
#include "late_facts.h"
#include "over.h"
#include "pool.h"
#include "quota.h"
#include "reply.h"
#include "self.h"
#include "shadow.h"
#include "sweep.h"
#include "updater.h"

#include <codec/placement_json.h>
#include <io/fault.h>
#include <io/log.h>
#include <mover/moves.h>
#include <numafit/diagnosis.h>
#include <numafit/number.h>
#include <numafit/text.h>

#include <errno.h>
#include <string.h>

enum { EXPIRE_EVERY_MS = 60 * 1000 };

static struct admit_question question_of(
	const struct daemon *d, const struct request *container, const struct pod *pod)
{
	return (struct admit_question){
		engine_ledger(d->engine), &d->settings, .container = container, .pod = pod};
}

/* The text of a refusal ends in the pod's events: say who refuses, and what was missing. */
static int refuse_with_text(
	const struct admit_question *q, const struct decision *dec, struct err *e)
{
	struct diagnosis why;

	diagnose_in_numbers(q, dec, &why);
	e->code = EPERM;
	(void)diagnosis_line(&why, dec, q, false, e->text, sizeof e->text);
	return -EPERM;
}

/* A pod that is known container by container is decided now, before any of them runs. */
static int on_run_pod(void *ctx, const struct pod *asked, struct err *e)
{
	struct daemon *d = ctx;
	struct answered *answered = &d->runtime.answered;
	struct arena *a = &answered->gathered;
	struct pod pod = *asked;
	struct decision dec;
	char name[512], why[2 * sizeof e->text];

	arena_fini(a);
	arena_init(a, GATHER_BYTES);
	const struct wishes_ignored *ignored = gather_pod(d, &pod, a);
	engine_run_pod(d->engine, loop_wall_ms(), &pod, &dec);
	if (!dec.admit || ledger_find_of_pod(engine_ledger(d->engine), pod.uid))
		gather_say_ignored(d, &pod, ignored);
	if (dec.admit && pool_follow_pod(d, pod.uid, e)) { /* others would still run on them */
		engine_take_back_pod(d->engine, loop_wall_ms(), &pod, e->text, &dec);
		pool_follow_event(d);
	}
	d->measured.counters.refused += !dec.admit;
	d->measured.counters.cut_short +=
		!dec.admit && dec.cut_short; /* else each container counts */
	advice_count(d, &dec); /* of a pod that is refused; else with each container */
	if (dec.apart)
		log_line(LOG_INFO, "pod-apart", "namespace=%s pod=%s reason=%s text=%s", asked->ns,
			log_text(name, sizeof name, asked->name), pod_apart_words[dec.apart],
			log_text(why, sizeof why, pod_apart_texts[dec.apart]));
	if (dec.admit) {
		arena_fini(a);
		return 0;
	}
	measure_verdict(d, &dec);
	const struct admit_question q = question_of(d, NULL, &pod);
	int rc = refuse_with_text(&q, &dec, e);
	log_line(LOG_WARN, "pod-refused", "namespace=%s pod=%s error=%s", asked->ns,
		log_text(name, sizeof name, asked->name), log_text(why, sizeof why, e->text));
	answered->is_due = answered->is_pod = true;
	answered->pod = pod;
	answered->dec = dec;
	answered->refusal = in_arena(a, e->text);
	return rc;
}

static void note_refused_for_moves(struct daemon *d, const struct admit_question *q)
{
	if (d->follow.moves)
		moves_note_refused(d->follow.moves, q);
}

static void note_refused_pod(struct daemon *d)
{
	struct answered *a = &d->runtime.answered;
	const struct admit_question q = question_of(d, NULL, &a->pod);

	cluster_note_decision(d, &q, &a->dec, a->refusal);
	note_refused_for_moves(d, &q);
	note_recent(d, &(struct request){.pod = a->pod, .ask = pod_ask(&a->pod)}, &a->dec,
		"run-pod", a->refusal);
	arena_fini(&a->gathered);
}

/* The decision in figures, the log and the cluster: the runtime has its answer by now. */
static void after_answer(void *ctx)
{
	struct daemon *d = ctx;
	struct answered *c = &d->runtime.answered;
	const struct request *req = &c->req;

	if (!c->is_due)
		return;
	c->is_due = false;
	if (c->is_pod) {
		note_refused_pod(d);
		return;
	}
	if (*req->cpus && !d->runtime.warned_of_cpuset)
		log_line(LOG_WARN, "cpuset-in-request",
			"namespace=%s pod=%s cpus=%s text=\"somebody set it before numafit, which "
			"sets its own\" action=\"see whether the kubelet's cpuManagerPolicy is "
			"none and "
			"no other NRI plugin sets CPUs\"",
			req->pod.ns, req->pod.name, req->cpus);
	d->runtime.warned_of_cpuset = d->runtime.warned_of_cpuset || *req->cpus;
	d->measured.counters.creates++;
	d->measured.counters.refused += !c->dec.admit;
	d->measured.counters.cut_short += c->dec.cut_short;
	advice_count(d, &c->dec);
	claims_count(d, req);
	measure_admission(d, req, &c->dec, c->took_ns);
	log_decision(d, req, &c->dec, "create", c->refusal, c->nr_updates, c->took_ns);
	const struct admit_question q = question_of(d, req, NULL);
	cluster_note_decision(d, &q, &c->dec, c->refusal);
	if (!c->dec.admit)
		note_refused_for_moves(d, &q);
}

/* What a container can read of what it has. Where something of its own is mounted there it has no
 * file. */
static void add_self(struct daemon *d, const struct request *req, const struct update *given,
	struct nri_reply *reply)
{
	reply->env = self_variables(d, given, reply->arena, &reply->nr_env);
	if (reply->env && !req->has_own_mount)
		reply->self =
			self_give(d, req->container_id, reply->env, reply->nr_env, reply->arena);
}

static const char *class_of(const char *wished)
{
	return *wished ? wished : NULL;
}

/* What the runtime is to do with the new container, which is held to have what was decided. 0, or
 * -ENOMEM with text: an empty list would leave it unpinned. */
static int adjust(struct daemon *d, const struct request *req, const struct decision *dec,
	struct nri_reply *reply, struct err *e)
{
	const struct ledger *l = engine_ledger(d->engine);
	const struct update given = engine_give(d->engine, ledger_find(l, req->container_id));
	const struct wishes *w = &req->ask.wishes;
	struct placement placed = {
		.exclusive = dec->exclusive,
		.preferred = dec->preferred,
		.policy = dec->policy,
		.cpus = dec->cpus,
		.mems = dec->mems,
		.nodes = dec->nodes,
		.has_nodes = dec->has_affinity,
		.has_advice = dec->advice.looked_at,
		.advice = dec->advice.verdict,
	};
	char text[PLACEMENT_JSON_MAX], wished[WISHES_TEXT_MAX];
	struct text wishes;

	text_init(&wishes, wished, sizeof wished);
	wishes_print(w, &wishes);
	placed.wishes = wishes.len ? wished : NULL;
	reply->adjust = true;
	reply->rdt_class = class_of(w->rdt_class);
	reply->blockio_class = class_of(w->blockio_class);
	if (given.untouched) {
		reply->cpus = reply->mems = "";
		return 0;
	}
	placement_json_format(&placed, &d->topo.ids, text, sizeof text);
	reply->cpus = cpus_text(reply->arena, &given.cpus);
	reply->mems = nodes_text(d, reply->arena, given.mems);
	reply->cpu_quota = given.without_quota ? NRI_NO_QUOTA : 0;
	reply->annotation = (struct key_value){
		NRI_PLACEMENT_ANNOTATION, arena_strndup(reply->arena, text, strlen(text))};
	reply->memory_policy = decision_memory_policy(&d->settings, req, dec);
	if (d->settings.container_environment)
		add_self(d, req, &given, reply);
	if (!*reply->cpus || !reply->annotation.value)
		return err_set(e, ENOMEM, "numafit: the answer needs more memory than it may have");
	return 0;
}

static void update_later(struct daemon *d, const struct update_list *ups, size_t from)
{
	for (size_t i = from; i < ups->nr; i++)
		engine_must_update(d->engine, ups->at[i].container_id);
	updater_note_change(d);
}

/* The runtime sets them once it has the reply; those that it may not set yet, or that do not fit,
 * are given later. Returns how many go with the reply. */
static size_t reply_with(struct daemon *d, const struct update_list *ups, struct nri_reply *reply)
{
	const bool may = updater_may_send(d);
	const size_t nr = may ? add_updates(d, ups, reply) : 0;

	update_later(d, ups, nr);
	if (nr)
		updater_note_reply(d);
	return nr;
}

/* A create that was recorded comes to nothing. The runtime gets an error, which carries no updates.
 */
static void take_back(struct daemon *d, const struct request *req, const char *why,
	struct decision *dec, const struct update_list *ups)
{
	engine_take_back(d->engine, loop_wall_ms(), req, why, dec);
	pool_follow_event(d);
	update_later(d, ups, 0);
}

/* Whether containers may still run on its CPUs that only an update takes away from them. */
static bool needs_updates(const struct daemon *d, const struct decision *dec)
{
	const struct ledger_view *now = ledger_view(engine_ledger(d->engine));

	return dec->exclusive && (!now->bounds || now->nr_unbounded);
}

/* -errno with text: it cannot be answered with all that belongs to it. */
static int answer_create(struct daemon *d, const struct request *req, const struct decision *dec,
	const struct update_list *ups, struct nri_reply *reply, struct err *e)
{
	const bool may = updater_may_send(d);
	int rc = adjust(d, req, dec, reply, e);

	if (!rc && reply_with(d, ups, reply) < ups->nr && needs_updates(d, dec))
		rc = may ? err_set(e, E2BIG,
				   "%zu container%s to be updated before it starts, and no answer "
				   "has room for that: let cgroups enforce the shared pool "
				   "(sharedPool.enforce: cgroup)",
				   ups->nr, ups->nr == 1 ? " has" : "s have")
			 : err_set(e, EBUSY,
				   "containers have to leave its CPUs first, and cannot be updated now: "
				   "try again in some seconds");
	if (!rc) {
		updater_note_reply(d);
	} else { /* an error carries none */
		d->measured.counters.updates -= reply->nr_updates;
		reply->nr_updates = 0;
	}
	return rc;
}

static int on_create(void *ctx, const struct request *asked, struct nri_reply *reply, struct err *e)
{
	struct daemon *d = ctx;
	uint64_t from = loop_monotonic_ns();
	struct update_list ups = {0};
	struct request req = *asked;
	struct decision dec;

	fault_point(FAULT_TO_DECIDE);
	gather_container(d, &req, reply->arena);
	engine_create(d->engine, loop_wall_ms(), &req, &dec, &ups);
	if (dec.admit && pool_follow_create(d, req.container_id,
				 e)) /* others would still run on what it is to have */
		take_back(d, &req, e->text, &dec, &ups);
	if (dec.admit && dec.exclusive) {
		quota_note_pod(d, req.pod.uid);
		updater_repeat(d, req.container_id, &ups);
	}
	if (dec.admit && answer_create(d, &req, &dec, &ups, reply, e))
		take_back(d, &req, e->text, &dec, &ups);
	const struct admit_question q = question_of(d, &req, NULL);
	int rc = dec.admit ? 0 : refuse_with_text(&q, &dec, e);
	arena_fini(&d->runtime.answered.gathered);
	d->runtime.answered = (struct answered){.is_due = true,
		.req = req,
		.dec = dec,
		.nr_updates = reply->nr_updates,
		.took_ns = loop_monotonic_ns() - from,
		.refusal = dec.admit ? "" : in_arena(reply->arena, e->text)};
	vec_fini(&ups);
	return rc;
}

/* What a container's annotation claims, into *p. False: it has none, or one that cannot be read,
 * which is the same. */
static bool read_placement(const struct daemon *d, const struct request *req, struct placement *p)
{
	char id[64], why[512];
	struct err e;

	if (!req->placement)
		return false;
	if (placement_json_parse(req->placement, &d->topo.ids, p, &e) == 0)
		return true;
	log_line(LOG_WARN, "placement-ignored", "id=%s error=%s",
		log_text(id, sizeof id, req->container_id), log_text(why, sizeof why, e.text));
	return false;
}

/* A container exists, whichever event says so. A container that the ledger does not know is taken
 * over as in a Synchronize. (A stop takes nothing over: the container runs nowhere by then.) */
static void on_live(void *ctx, const struct request *asked)
{
	struct daemon *d = ctx;
	struct request req = *asked;
	struct placement placed;
	struct arena a;

	if (ledger_find(engine_ledger(d->engine), req.container_id)) {
		/* what it claims and wishes for is of no account any more */
		engine_live(d->engine, loop_wall_ms(), &req, NULL);
		return;
	}
	bool has = read_placement(d, &req, &placed);
	arena_init(&a, GATHER_BYTES);
	gather_running(d, &req, 1, &a);
	engine_live(d->engine, loop_wall_ms(), &req, has ? &placed : NULL);
	arena_fini(&a);
	updater_note_change(d);
}

/* What the container is to have after a change of its resources. */
static void add_own_update(struct daemon *d, const char *container_id, struct update_list *ups)
{
	const struct update given =
		engine_give(d->engine, ledger_find(engine_ledger(d->engine), container_id));

	if (!given.untouched)
		*vec_push(ups) = given;
}

static void on_update(void *ctx, const struct request *req, struct nri_reply *reply)
{
	struct daemon *d = ctx;
	uint64_t from = loop_monotonic_ns();
	struct update_list ups = {0};
	struct decision dec;
	struct err e;

	on_live(d, req);
	if (!engine_update(d->engine, loop_wall_ms(), req, &dec, &ups))
		return;
	sweep_note_update(d, req->container_id);
	quota_note_pod(d, req->pod.uid);
	if (dec.admit) {
		if (pool_follow(d, &e)) /* it gets its CPUs once nobody else runs on them */
			engine_must_update(d->engine, req->container_id);
		else
			add_own_update(d, req->container_id, &ups);
		if (dec.exclusive)
			updater_repeat(d, req->container_id, &ups);
		reply_with(d, &ups, reply);
	} else {
		const struct admit_question q = question_of(d, req, NULL);
		(void)refuse_with_text(&q, &dec, &e);
		reply->refusal = in_arena(reply->arena, e.text);
	}
	log_decision(d, req, &dec, "update", dec.admit ? "" : e.text, reply->nr_updates,
		loop_monotonic_ns() - from);
	vec_fini(&ups);
}

/* A container has ended. The kubelet cannot unprepare its claim where the driver is off. */
static void end_claims_without_driver(struct daemon *d)
{
	if (!d->settings.claims)
		engine_end_unused_claims(d->engine, loop_wall_ms());
}

static void on_stop(void *ctx, const struct request *req, struct nri_reply *reply)
{
	struct daemon *d = ctx;
	struct update_list ups = {0};

	engine_release(d->engine, loop_wall_ms(), "stop", req->container_id, &ups);
	end_claims_without_driver(d);
	over_release_pod(d, &req->pod);
	reply_with(d, &ups, reply);
	vec_fini(&ups);
}

/* Nearly always a stop came before, and nothing is left to give back. */
static void on_remove(void *ctx, const struct request *req)
{
	struct daemon *d = ctx;

	engine_forget(d->engine, loop_wall_ms(), "remove", req->container_id);
	end_claims_without_driver(d);
	over_release_pod(d, &req->pod);
	updater_note_change(d);
}

static void on_remove_pod(void *ctx, const struct pod *pod)
{
	struct daemon *d = ctx;

	engine_release_pod(d->engine, loop_wall_ms(), "pod-gone", pod);
	cluster_note_pod_gone(d, pod->uid);
	quota_note_pod(d, pod->uid); /* its cgroup may stay, for another sandbox */
	updater_note_change(d);
}

static void on_started(void *ctx, const struct request *req)
{
	struct daemon *d = ctx;

	on_live(d, req);
	engine_started(d->engine, loop_wall_ms(), req->container_id);
	late_facts_of_pod(d, req->pod.uid);
	if (request_exclusive_cpus(req))
		quota_note_pod(d, req->pod.uid);
	updater_note_change(d);
}

/* The claims of all, each or NULL; the placements themselves are behind the pointers. */
static const struct placement **read_placements(
	const struct daemon *d, const struct request *containers, size_t nr)
{
	size_t pointers = nr * sizeof(struct placement *);
	const struct placement **placed = xcalloc(1, pointers + nr * sizeof **placed);
	struct placement *claims = (void *)((char *)placed + pointers);

	for (size_t i = 0; i < nr; i++)
		if (read_placement(d, &containers[i], &claims[i]))
			placed[i] = &claims[i];
	return placed;
}

/* What is left keeps CPUs from all others: who looks for them has to know. */
static void log_left(const struct daemon *d)
{
	const struct ledger *l = engine_ledger(d->engine);
	char cpus[CPUSET_TEXT_MAX];
	unsigned nr = 0, confined = 0;

	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct decision *dec = &ledger_at(l, i)->decision;

		nr += decision_is_left(dec);
		confined += !cpuset_empty(&dec->left_on);
	}
	if (nr)
		log_line(confined ? LOG_WARN : LOG_INFO, "left-as-it-runs",
			"containers=%u confined=%u cpus=%s text=\"no container gets these CPUs for "
			"itself\" action=\"create them again, or set onAdopt to place and restart "
			"numafitd\"",
			nr, confined, cpuset_format(&ledger_view(l)->left, cpus, sizeof cpus));
}

static void on_synchronize(void *ctx, const struct nri_inventory *what, struct nri_reply *reply)
{
	struct daemon *d = ctx;
	uint64_t from = loop_monotonic_ns();
	struct update_list ups = {0};

	d->measured.counters.connects++;
	updater_note_synchronize(d);
	const struct placement **placed = read_placements(d, what->containers, what->nr);
	struct request *known = xcalloc(what->nr, sizeof *known);
	struct sandboxes there = sandboxes_of(what);
	if (what->nr)
		memcpy(known, what->containers, what->nr * sizeof *known);
	gather_running(d, known, what->nr, reply->arena);
	const struct looks looks = in_force_look(d, known, placed, what->nr, reply->arena);
	const struct inventory running = {
		known, placed, what->nr, there.id, there.nr, there.pod_uid};
	engine_synchronize(d->engine, loop_wall_ms(), &running, &ups);
	engine_correct_moved(d->engine, what->containers, what->nr, &ups);
	end_claims_without_driver(d);
	pool_follow_event(d); /* or the reply would give CPUs to one while others still run there */
	if (d->follow.moves)  /* the reply waits for a copy that begins now */
		mover_note_synchronized(moves_mover(d->follow.moves));
	reply_with(d, &ups, reply);
	log_line(LOG_INFO, "synchronized",
		"pods=%zu containers=%zu held=%zu updates=%zu read=%zu read_later=%zu took_us=%llu",
		what->nr_pods, what->nr, ledger_count(engine_ledger(d->engine)), reply->nr_updates,
		looks.read, looks.later,
		(unsigned long long)((loop_monotonic_ns() - from) / NS_PER_US));
	log_left(d);
	quota_note_all(d);
	vec_fini(&ups);
	sandboxes_free(&there);
	free(known);
	free(placed);
}

static void before_event(void *ctx)
{
	measure_began(ctx);
	updater_note_event(ctx);
}

/* All that an event has changed for others is in force before it is answered. */
static void after_event(void *ctx, enum nri_event event)
{
	pool_follow_event(ctx);
	measure_ended(ctx, event);
}

static void on_nri_event(void *ctx, const char *event, const char *text)
{
	bool bad = text_equal(event, "nri-disconnected") || text_equal(event, "nri-call-refused");
	char buf[512];

	(void)ctx;
	log_line(bad ? LOG_WARN : LOG_INFO, event, "text=%s", log_text(buf, sizeof buf, text));
}

/* Only who decides may hold containers back when it hangs. */
static struct nri_failure_policy wanted_failure_policy(const struct settings *s)
{
	if (s->mode != MODE_MANAGE)
		return (struct nri_failure_policy){0};
	return (struct nri_failure_policy){
		.fail_request = s->nri_failure_policy & FAILURE_FAIL_REQUEST,
		.keep_connected = s->nri_failure_policy & FAILURE_KEEP_CONNECTED,
	};
}

/* The runtime that started us is gone, or has dropped us, and ends us if it still can. */
static void on_connection_ended(void *ctx)
{
	struct daemon *d = ctx;

	loop_stop(d->loop);
}

/* Placing: who decides. */
static const struct nri_handler manage_handler = {
	.synchronize = on_synchronize,
	.run_pod = on_run_pod,
	.create = on_create,
	.update = on_update,
	.stop = on_stop,
	.remove = on_remove,
	.live = on_live,
	.started = on_started,
	.remove_pod = on_remove_pod,
	.wait = claims_wait,
	.after = after_answer,
};

static const struct nri_handler *const handlers[] = {
	[MODE_OFF] = &off_handler,
	[MODE_MANAGE] = &manage_handler,
	[MODE_SHADOW] = &shadow_handler,
	[MODE_RELEASE] = &release_handler,
};

/* What was answered and never came to be. */
static void expire_unborn(void *ctx)
{
	struct daemon *d = ctx;
	unsigned nr = engine_expire(d->engine, loop_wall_ms());

	if (nr)
		log_line(LOG_WARN, "expired",
			"containers=%u text=\"their creation failed in the runtime, which did not "
			"report it\"",
			nr);
	pool_follow_event(d);
	updater_note_change(d);
	loop_timer_set(d->runtime.expire, EXPIRE_EVERY_MS);
}

/* Moves, what they need to know, and what they lead to */

static int can_move(void *ctx, struct err *e)
{
	const struct daemon *d = ctx;
	const char *why = pool_status(d).why_updates;

	if (ledger_view(engine_ledger(d->engine))->bounds)
		return 0;
	return err_set(e, ENOTSUP,
		"containers are moved where cgroups enforce the shared pool (cgroup v2, writable), "
		"and here they do not: %s",
		why ? why : "sharedPool.enforce is updates");
}

static int follow_pool_for_move(void *ctx, struct err *e)
{
	return pool_follow(ctx, e);
}

static void must_update_moved(void *ctx, const char *container_id)
{
	struct daemon *d = ctx;

	engine_must_update(d->engine, container_id);
	updater_note_change(d);
}

static bool is_updating(void *ctx)
{
	return updater_is_at_work(ctx);
}

static uint64_t generation_of(void *ctx)
{
	return ((const struct daemon *)ctx)->recorder.generation;
}

static void advise_moves(void *ctx, const struct pod *pod, const char *words)
{
	cluster_note_moves(ctx, pod, words);
}

static void start_moves(struct daemon *d)
{
	const struct cgroups *c = d->follow.in_force.cgroups;

	if (d->settings.mode != MODE_MANAGE)
		return;
	d->follow.moves = moves_new(
		&(struct moves_world){.mover = {.ctx = d,
					      .loop = d->loop,
					      .engine = &d->engine,
					      .cpuset = d->follow.pool ? pool_tree(d) : NULL,
					      .memory = c ? &c->memory : NULL,
					      .can = can_move,
					      .follow_pool = follow_pool_for_move,
					      .must_update = must_update_moved,
					      .generation = generation_of,
					      .is_updating = is_updating},
			.settings = &d->settings,
			.advise = advise_moves});
}

void wiring_start(struct daemon *d)
{
	const bool launched = d->runtime.launch.name;
	const struct nri_conn_options options = {
		.plugin = {.name = launched ? d->runtime.launch.name : "numafit",
			.index = launched ? d->runtime.launch.index : d->settings.nri_index,
			.launched = launched,
			.on_failure = wanted_failure_policy(&d->settings)},
		.socket = d->settings.nri_socket,
		.fd = d->runtime.launch.fd,
		.ended = on_connection_ended,
	};

	d->runtime.handler = *handlers[d->settings.mode];
	d->runtime.handler.ctx = d;
	d->runtime.handler.began = before_event;
	d->runtime.handler.ended = after_event;
	d->runtime.handler.on_event = on_nri_event;
	d->runtime.expire = loop_timer_new(d->loop, expire_unborn, d);
	loop_timer_set(d->runtime.expire, EXPIRE_EVERY_MS);
	d->runtime.conn = nri_conn_new(d->loop, &options, &d->runtime.handler);
	updater_start(d);
	self_start(d);
	in_force_start(d, fault_root());
	sweep_start(d, fault_root());
	start_moves(d);
}

/* Also what was never started. */
void wiring_stop(struct daemon *d)
{
	nri_conn_close(d->runtime.conn);
	moves_free(steal(d->follow.moves));
	loop_timer_close(d->runtime.expire);
	sweep_stop(d);
	in_force_stop(d);
	self_stop(d);
	updater_stop(d);
}
