#ifndef RESTART_RIG_H
#define RESTART_RIG_H

#include <codec/fields_json.h>
#include <io/log.h>
#include <numafit/cpus.h>
#include <numafit/leases.h>
#include <numafit/text.h>
#include <numafitd/daemon.h>

#include "core_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

/* A daemon's recorder that is started anew on the journal of the one before, for test_restart_*.c.
 */

enum { RUNNING_MAX = 16, NOW_MS = 1700000000 };

/* A container as the runtime has it. */
struct running {
	bool exclusive, left;
	unsigned updates; /* how many updates it has had */
	struct request req;
	char cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX];
};

struct world {
	struct daemon d;
	char dir[64];
	struct running running[RUNNING_MAX];
	size_t nr;
	char runs_on_tokens[LEASE_TEXT_MAX], waits[LEASE_TEXT_MAX]; /* annotations */
};

static unsigned set_aside;

static void look_at_log(const char *line, size_t len)
{
	set_aside += memmem(line, len, "journal-set-aside", 17) != NULL;
}

static struct cpuset list(const char *text)
{
	struct cpuset c;

	assert_int_equal(cpuset_parse(&c, text, strlen(text), NULL), 0);
	return c;
}

/* A life */

static void start(struct world *w)
{
	struct err e = {0};

	if (recorder_start(&w->d, &e) < 0)
		fail_msg("%s", e.text);
}

static void check(const struct world *w)
{
	struct err e = {0};

	if (ledger_check(engine_ledger(w->d.engine), &e) < 0)
		fail_msg("%s", e.text);
}

static void end(struct world *w)
{
	check(w);
	loop_timer_close(w->d.recorder.rotate);
	recorder_stop(&w->d);
	w->d.engine = NULL;
	w->d.machine = NULL;
	w->d.recorder.journal = NULL;
}

static void apply(struct world *w, struct update_list *ups)
{
	for (size_t i = 0; i < ups->nr; i++)
		for (size_t j = 0; j < w->nr; j++) {
			struct running *r = &w->running[j];

			if (strcmp(r->req.container_id, ups->at[i].container_id) != 0)
				continue;
			(void)cpuset_format(&ups->at[i].cpus, r->cpus, sizeof r->cpus);
			(void)nodeset_format(
				ups->at[i].mems, &w->d.topo.ids, r->mems, sizeof r->mems);
			r->updates++;
		}
	vec_fini(ups);
}

static struct running *add(struct world *w, const struct request *req)
{
	struct running *r = &w->running[w->nr++];

	*r = (struct running){.req = *req};
	r->req.created_at_ns = (int64_t)w->nr;
	r->req.cpus = r->cpus;
	r->req.mems = r->mems;
	return r;
}

static struct decision create(struct world *w, const struct request *req)
{
	struct update_list ups = {0};
	struct decision d;

	engine_create(w->d.engine, NOW_MS, (struct request[]){*req}, &d, &ups);
	apply(w, &ups);
	check(w);
	if (!d.admit)
		return d;
	struct running *r = add(w, req);
	r->exclusive = d.exclusive;
	(void)cpuset_format(&d.cpus, r->cpus, sizeof r->cpus);
	(void)nodeset_format(d.mems, &w->d.topo.ids, r->mems, sizeof r->mems);
	engine_live(w->d.engine, NOW_MS, req, NULL);
	engine_started(w->d.engine, NOW_MS, req->container_id);
	return d;
}

/* No CPU twice, as the runtime was answered; and every container has what it is held to have. */
static void assert_apart(const struct world *w)
{
	const struct ledger *l = engine_ledger(w->d.engine);

	for (size_t i = 0; i < w->nr; i++) {
		const struct running *a = &w->running[i];
		const struct holding *h = ledger_find(l, a->req.container_id);
		const struct cpuset own = list(a->cpus);

		assert_non_null(h);
		assert_int_equal(decision_is_left(&h->decision), a->left);
		if (!a->left)
			assert_true(cpuset_equal(&own, (struct cpuset[]){ledger_cpus_of(l, h)}));
		if (!h->decision.exclusive)
			continue;
		assert_false(cpuset_intersects(&own, &w->d.settings.reserved_cpus));
		for (size_t j = 0; j < w->nr; j++) {
			const struct cpuset other = list(w->running[j].cpus);

			if (i != j && cpuset_intersects(&own, &other))
				fail_msg("%s has %s for itself, %s runs on %s", a->req.container_id,
					a->cpus, w->running[j].req.container_id,
					w->running[j].cpus);
		}
	}
}

static void synchronize(struct world *w)
{
	static const char *const pods[] = {
		"known", "own", "big", "shared", "tokens", "late", "left"};
	struct request requests[RUNNING_MAX];
	const struct placement *placed[RUNNING_MAX] = {NULL}; /* the journal alone knows them */
	const struct inventory what = {
		requests, placed, w->nr, pods, sizeof pods / sizeof *pods, pods};
	struct update_list ups = {0};

	for (size_t i = 0; i < w->nr; i++) {
		w->running[i].updates = 0;
		requests[i] = w->running[i].req;
		requests[i].pod = pod_identity(&requests[i].pod); /* no runtime reports a spec */
	}
	engine_synchronize(w->d.engine, NOW_MS, &what, &ups);
	apply(w, &ups);
	check(w);
	assert_apart(w);
}

/* The world before */

static const struct ask known[] = {
	{.name = "web", .cpu_milli = 3000, .nr_memory = 1, .memory = {{0, GIB(1)}}},
	{.name = "log", .cpu_milli = 1000, .nr_memory = 1, .memory = {{0, GIB(1)}}},
};
static const struct pod known_pod = {.sandbox_id = "known",
	.uid = "known",
	.ns = "default",
	.name = "known",
	.qos = QOS_GUARANTEED,
	.nr = sizeof known / sizeof *known,
	.container = known};

static void allocate(struct world *w, const char *text, char *annotation)
{
	struct tokenset tokens;
	struct err e;

	assert_int_equal(tokenset_parse(&tokens, &w->d.topo.ids, text, NULL), 0);
	if (engine_allocate(w->d.engine, NOW_MS, &tokens, annotation, &e))
		fail_msg("%s", e.text);
}

static struct request with_tokens(const char *id, const char *annotation)
{
	struct request req = ask(id, QOS_GUARANTEED, 2000, GIB(1));

	req.allocated = annotation;
	return req;
}

/* Not placed by us: on CPUs that somebody has confined it to. */
static void leave(struct world *w, const char *cpus)
{
	const struct request req = ask("left", QOS_BURSTABLE, 100, 0);
	struct running *r = add(w, &req);

	r->left = true;
	(void)text_copy(r->cpus, sizeof r->cpus, cpus);
	(void)text_copy(r->mems, sizeof r->mems, "0-7");
	engine_live(w->d.engine, NOW_MS, &r->req, NULL);
	engine_started(w->d.engine, NOW_MS, "left");
}

/* One of each: shared, with CPUs of its own (on a part of a NUMA node and on a whole one), held
 * with its pod, on tokens; tokens whose container is still to come; left as it runs. */
static void live_a_life(struct world *w)
{
	const struct request shared = ask("shared", QOS_BURSTABLE, 500, 0),
			     own = ask("own", QOS_GUARANTEED, 4000, GIB(40)),
			     big = ask("big", QOS_GUARANTEED, 8000, GIB(1));
	struct request part = ask("p-web", QOS_GUARANTEED, 3000, GIB(1));
	struct decision d;

	part.pod = known_pod;
	part.ask.name = "web";
	assert_true(create(w, &shared).admit);
	assert_true(create(w, &own).exclusive);
	assert_true(create(w, &big).exclusive);
	engine_run_pod(w->d.engine, NOW_MS, &known_pod, &d);
	assert_true(d.admit);
	assert_true(create(w, &part).exclusive);
	allocate(w, "4=0-1", w->runs_on_tokens);
	allocate(w, "5=0-1", w->waits);
	const struct request tokens = with_tokens("tokens", w->runs_on_tokens);
	d = create(w, &tokens);
	if (!d.exclusive || !d.lease)
		fail_msg("%s %s", d.message, w->runs_on_tokens);
	leave(w, "28-29");
	assert_int_equal(w->nr, 6);
	assert_apart(w);
}

static struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof *w);
	struct topo *t = machine_of_eight();

	w->d.topo = *t;
	free(t);
	settings_init(&w->d.settings);
	w->d.settings.shared_pool_step = 2;
	w->d.settings.device_plugin = true;
	w->d.settings.on_adopt = ADOPT_LEAVE;
	w->d.settings.reserved_cpus = list("0,32");
	w->d.loop = loop_new();
	(void)snprintf(w->dir, sizeof w->dir, "/tmp/numafit-restart.XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	(void)snprintf(w->d.run.journal_path, sizeof w->d.run.journal_path, "%s/journal", w->dir);
	start(w);
	live_a_life(w);
	set_aside = 0;
	return w;
}

static void world_free(struct world *w)
{
	char command[128];

	end(w);
	loop_free(w->d.loop);
	(void)snprintf(command, sizeof command, "rm -rf '%s'", w->dir);
	assert_int_equal(system(command), 0);
	free(w);
}

static void assert_nothing_is_lost(struct world *w)
{
	const struct ledger *l = engine_ledger(w->d.engine);

	assert_int_equal(set_aside, 0);
	assert_int_equal(ledger_count(l), w->nr + 1); /* what waits for "log" of the known pod */
	assert_non_null(ledger_find_waiting(l, "known", "log"));
	assert_true(leases_has_pod(ledger_view(l)->leases, "tokens"));
	assert_int_equal(leases_nr_running(ledger_view(l)->leases), 1);
	assert_string_not_equal(w->waits, "");
	check(w);
}

/* As main() does: which CPUs, where only their number is given. */
static void take_effect(struct world *w)
{
	struct settings *s = &w->d.settings;
	unsigned nr = settings_reserved_cpu_count(s);
	struct err e;

	if (settings_check(s, &w->d.topo, &e))
		fail_msg("%s", e.text);
	if (nr && cpuset_empty(&s->reserved_cpus))
		assert_int_equal(
			cpus_reserve(&w->d.topo, &s->cpu_options, nr, &s->reserved_cpus, NULL), 0);
}

static void restart_with(struct world *w, const struct settings *s)
{
	end(w);
	w->d.settings = *s;
	take_effect(w);
	start(w);
	assert_nothing_is_lost(w);
	synchronize(w);
	assert_nothing_is_lost(w);
}

/* What comes for the tokens that were given out before is not refused. */
static void assert_lease_is_kept(struct world *w)
{
	const struct request late = with_tokens("late", w->waits);
	struct decision d = create(w, &late);

	if (!d.admit || !d.lease)
		fail_msg("%s", d.message);
	assert_int_equal(cpuset_count(&d.cpus), 2);
	assert_apart(w);
}

static void assert_updated(const struct world *w, const char *moves)
{
	for (size_t i = 0; i < w->nr; i++) {
		const struct running *r = &w->running[i];
		const char *at = strstr(moves, r->req.container_id);

		if (!at != !r->updates || r->updates > 1)
			fail_msg("%s was updated %u times, and runs on %s", r->req.container_id,
				r->updates, r->cpus);
	}
}

#endif
