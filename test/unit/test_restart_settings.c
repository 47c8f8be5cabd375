/* Settings that have changed while the daemon was away, and a machine that has: its own recorder
 * folds a journal that was written with others. Nothing of it is lost, what conflicts with what is
 * in force now moves, and the runtime gets the updates. Every setting that needs a restart has a
 * row. */
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
		assert_int_equal(h->decision.left, a->left);
		if (!a->left)
			assert_true(cpuset_equal(&own, &h->decision.cpus));
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

/* A setting that needs a restart. */
struct row {
	const char *key, *value; /* value NULL: another journal or another machine is meant */
	const char *moves;       /* containers whose cpuset changes, each followed by a space */
};
static const struct row rows[] = {
	{"mode", "shadow", ""}, {"besideStaticKubelet", "manage", ""},
	{"kubeletRootDirectory", "/var/lib/other", ""},
	{"kubeletConfigFile", "/etc/kubelet.yaml", ""},
	{"reservedSystemCPUs", "0-1,32-33", "shared own "},
	{"systemReserved.cpu", "4", "shared own "}, {"kubeReserved.cpu", "4", "shared own "},
	{"reservedMemory", NULL, ""}, {"deviceMemory", "include", ""}, {"nodeName", "other", ""},
	{"nri.socketPath", "/run/other.sock", ""}, {"nri.pluginIndex", "77", ""},
	{"nri.failurePolicy", "drop-and-proceed", ""}, {"devicePlugin.enabled", "false", ""},
	{"devicePlugin.preStartContainer", "false", ""}, {"podResources.enabled", "true", ""},
	{"podsAPI.enabled", "true", ""}, {"apiServer.kubeconfig", "/etc/kubeconfig", ""},
	{"apiServer.context", "other", ""}, {"podsWatch.enabled", "true", ""},
	{"events.enabled", "true", ""}, {"nodeResourceTopology.enabled", "true", ""},
	{"numatopology.enabled", "true", ""}, {"metrics.address", "", ""},
	{"runDirectory", NULL, ""}, /* another journal */
	{"machine", NULL, ""},      /* another machine's journal is set aside */
};
enum { NR_ROWS = sizeof rows / sizeof *rows };

static void assert_updated(const struct world *w, const char *moves)
{
	for (size_t i = 0; i < w->nr; i++) {
		const struct running *r = &w->running[i];
		const char *at = strstr(moves, r->req.container_id);

		if (!at != !r->updates || r->updates > 1)
			fail_msg("%s was told %u times, and runs on %s", r->req.container_id,
				r->updates, r->cpus);
	}
}

static void every_setting_that_needs_a_restart_has_a_row(void **state)
{
	struct setting_doc doc;

	(void)state;
	for (unsigned i = 0; settings_doc(i, &doc); i++) {
		bool found = doc.reloadable;

		for (size_t k = 0; k < NR_ROWS; k++)
			found = found || strcmp(doc.key, rows[k].key) == 0;
		if (!found)
			fail_msg("what becomes of a journal when %s changes?", doc.key);
	}
}

static void change(struct settings *s, const struct row *row)
{
	struct err e;

	if (strstr(row->key, "Reserved.cpu"))
		s->reserved_cpus = (struct cpuset){0};
	if (settings_set(s, row->key, row->value, &e))
		fail_msg("%s", e.text);
}

static void no_changed_setting_takes_a_container_its_cpus(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR_ROWS; i++) {
		if (!rows[i].value)
			continue;
		struct world *w = world_new();
		const struct settings before = w->d.settings;
		struct settings after = before;

		print_message("%s\n", rows[i].key);
		change(&after, &rows[i]);
		restart_with(w, &after);
		assert_updated(w, rows[i].moves);
		restart_with(w, &w->d.settings); /* what was written anew is read again */
		assert_updated(w, "");
		restart_with(w, &before);
		assert_lease_is_kept(w);
		world_free(w);
	}
}

static void waiting_tokens_are_kept_when_the_reserved_cpus_change(void **state)
{
	struct world *w = world_new();
	struct settings s = w->d.settings;

	(void)state;
	s.reserved_cpus = list("0-3,32-35,20-21"); /* 20: a CPU of the node whose tokens wait */
	restart_with(w, &s);
	assert_lease_is_kept(w);
	world_free(w);
}

static void a_container_has_fewer_cpus_until_lost_ones_can_be_replaced(void **state)
{
	struct world *w = world_new();
	const struct settings before = w->d.settings;
	struct settings s = before;
	const struct ledger *l;

	(void)state;
	s.topology_policy = POLICY_SINGLE_NUMA_NODE;
	s.reserved_cpus = list("0-7,32-39"); /* two whole nodes: "big" has one of them */
	restart_with(w, &s);
	l = engine_ledger(w->d.engine);
	const struct holding *big = ledger_find(l, "big");
	struct cpuset reserved = cpuset_and(big->decision.cpus, &s.reserved_cpus);
	assert_true(cpuset_empty(&reserved));
	assert_non_null(strstr(big->decision.message, "CPUs are reserved now: "));
	restart_with(w, &before);
	big = ledger_find(engine_ledger(w->d.engine), "big");
	assert_true(big->decision.exclusive);
	assert_int_equal(cpuset_count(&big->decision.cpus), 8);
	world_free(w);
}

/* All is as the journal has it, and somebody has ended meanwhile. */
static void a_container_that_lacks_cpus_gets_them_at_a_restart_once_some_are_free(void **state)
{
	struct world *w = world_new();
	struct settings s = w->d.settings;
	struct update_list ups = {0};
	struct cpuset free;

	(void)state;
	free = ledger_free_cpus(engine_ledger(w->d.engine));
	const struct request rest =
		ask("rest", QOS_GUARANTEED, 1000 * (cpuset_count(&free) - 4), GIB(1));
	assert_true(create(w, &rest).exclusive);
	s.reserved_cpus = cpuset_or(
		s.reserved_cpus, &ledger_find(engine_ledger(w->d.engine), "own")->decision.cpus);
	restart_with(w, &s);
	const struct holding *own = ledger_find(engine_ledger(w->d.engine), "own");
	assert_true(!own->decision.exclusive || cpuset_count(&own->decision.cpus) < 4);
	engine_release(w->d.engine, NOW_MS, "stop", "rest", &ups);
	w->nr--;
	apply(w, &ups);
	restart_with(w, &s);
	own = ledger_find(engine_ledger(w->d.engine), "own");
	assert_true(own->decision.exclusive);
	assert_int_equal(cpuset_count(&own->decision.cpus), 4);
	world_free(w);
}

static void newly_reserved_memory_is_no_longer_booked(void **state)
{
	struct world *w = world_new();
	const struct settings before = w->d.settings;
	struct settings s = before;

	(void)state;
	assert_int_equal(settings_set(&s, "reservedMemory.0.numaNode", "0", NULL), 0);
	assert_int_equal(settings_set(&s, "reservedMemory.0.limits.memory", "30Gi", NULL), 0);
	restart_with(w, &s);
	const struct holding *own = ledger_find(engine_ledger(w->d.engine), "own");
	assert_int_equal(own->decision.blocks[0].bytes, GIB(25)); /* of 56, and the pod has 1 */
	assert_updated(w, "");
	restart_with(w, &before);
	own = ledger_find(engine_ledger(w->d.engine), "own");
	assert_int_equal(own->decision.blocks[0].bytes, GIB(40));
	world_free(w);
}

static void memory_of_devices_is_no_longer_booked_once_it_is_excluded(void **state)
{
	struct world *w = world_new();
	struct settings s = w->d.settings;
	const struct holding *own;

	(void)state;
	s.device_memory = DEVICE_MEMORY_INCLUDE;
	restart_with(w, &s);
	own = ledger_find(engine_ledger(w->d.engine), "own");
	w->d.topo.device_memory = own->decision.blocks[0].nodes;
	restart_with(w, &s);
	own = ledger_find(engine_ledger(w->d.engine), "own");
	assert_int_equal(own->decision.blocks[0].bytes, GIB(40));
	s.device_memory = DEVICE_MEMORY_EXCLUDE;
	restart_with(w, &s);
	own = ledger_find(engine_ledger(w->d.engine), "own");
	assert_int_equal(own->decision.blocks[0].bytes, 0);
	assert_true(own->decision.exclusive);
	world_free(w);
}

static void strict_reservation_with_all_else_held_takes_from_the_widest(void **state)
{
	struct world *w = world_new();
	struct settings s = w->d.settings;
	const struct request rest = ask("rest", QOS_GUARANTEED, 42000, GIB(1));
	struct update_list ups = {0};

	(void)state;
	assert_lease_is_kept(w);
	w->running[5] = w->running[--w->nr]; /* the one that is left has ended */
	w->running[5].req.cpus = w->running[5].cpus;
	w->running[5].req.mems = w->running[5].mems;
	engine_release(w->d.engine, NOW_MS, "stop", "left", &ups);
	apply(w, &ups);
	assert_true(create(w, &rest).exclusive); /* the pool has the reserved CPUs alone */
	assert_int_equal(cpuset_count(&ledger_view(engine_ledger(w->d.engine))->pool), 2);
	s.cpu_options.strict_cpu_reservation = true;
	end(w);
	w->d.settings = s;
	start(w);
	assert_int_equal(set_aside, 0);
	synchronize(w);
	assert_false(cpuset_empty(&ledger_view(engine_ledger(w->d.engine))->pool));
	assert_string_equal(w->running[0].req.container_id, "shared");
	assert_int_equal(w->running[0].updates, 1);
	world_free(w);
}

/* Fewer CPUs online than the journal knows, and other reserved ones, at once. */
static void machine_and_settings_may_change_together(void **state)
{
	struct world *w = world_new();
	const struct topo whole = w->d.topo;
	const struct settings before = w->d.settings;
	struct cpuset offline = list("0-2,32,40");
	struct topo *less = machine_without(&whole, &offline, (struct nodeset){0});
	struct settings s = before;

	(void)state;
	s.reserved_cpus = list("3,33");
	end(w);
	w->d.topo = *less;
	for (size_t i = 0; i < w->nr; i++) { /* the kernel takes them out of every cpuset */
		struct running *r = &w->running[i];
		struct cpuset now = list(r->cpus);

		now = cpuset_and(now, &less->cpus);
		(void)cpuset_format(&now, r->cpus, sizeof r->cpus);
	}
	start(w);
	end(w); /* once more at the old settings: CPU 0 is reserved and offline */
	w->d.settings = s;
	start(w);
	assert_nothing_is_lost(w);
	synchronize(w);
	end(w);
	w->d.topo = whole;
	w->d.settings = before;
	start(w);
	assert_nothing_is_lost(w);
	synchronize(w);
	assert_lease_is_kept(w);
	world_free(w);
	free(less);
}

static void only_a_damaged_journal_is_called_damaged(void **state)
{
	struct world *w = world_new();
	struct settings s = w->d.settings;

	(void)state;
	end(w);
	FILE *f = fopen(w->d.run.journal_path, "a");
	assert_non_null(f);
	assert_true(fputs("{\"seq\":1}\n{\"seq\":2}\n", f) >= 0 && fclose(f) == 0);
	s.reserved_cpus = list("0-1");
	w->d.settings = s;
	start(w);
	assert_int_equal(set_aside, 1);
	w->nr = 0;
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_setting_that_needs_a_restart_has_a_row),
		cmocka_unit_test(no_changed_setting_takes_a_container_its_cpus),
		cmocka_unit_test(waiting_tokens_are_kept_when_the_reserved_cpus_change),
		cmocka_unit_test(a_container_has_fewer_cpus_until_lost_ones_can_be_replaced),
		cmocka_unit_test(
			a_container_that_lacks_cpus_gets_them_at_a_restart_once_some_are_free),
		cmocka_unit_test(newly_reserved_memory_is_no_longer_booked),
		cmocka_unit_test(memory_of_devices_is_no_longer_booked_once_it_is_excluded),
		cmocka_unit_test(strict_reservation_with_all_else_held_takes_from_the_widest),
		cmocka_unit_test(machine_and_settings_may_change_together),
		cmocka_unit_test(only_a_damaged_journal_is_called_damaged),
	};

	json_seed();
	log_set_sink(look_at_log);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
