/* What a journal gives back that was cut or damaged at any byte, by the daemon's own recorder:
 * never a refusal to start, and once the runtime has reported what runs, all as it was: containers
 * that came one by one, and pods that were decided as a whole. The runtime here is a list; the same
 * life goes on under a clock that jumps. JOURNAL_STRIDE=1 takes every byte. */
#include <codec/fields_json.h>
#include <io/log.h>
#include <numafitd/daemon.h>

#include "core_machine.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

enum { STRIDE = 7, RUNNING_MAX = 8, FILE_BYTES = 256 << 10, BITS = 8 };

/* A container as the runtime has it. */
struct running {
	const char *id;
	struct request req;
	struct placement placed;
	char cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX];
};

struct world {
	struct daemon d;
	char dir[64];
	int64_t (*clock)(struct world *w);
	unsigned ticks;
	struct running running[RUNNING_MAX];
	size_t nr, len;
	char file[FILE_BYTES]; /* the journal, len bytes */
	unsigned set_aside;
};

static unsigned lines_of_set_aside;

static void look_at_log(const char *line, size_t len)
{
	lines_of_set_aside += memmem(line, len, "journal-set-aside", 17) != NULL;
}

static int64_t steady(struct world *w)
{
	return 1700000000000 + w->ticks++;
}

/* To the epoch, before it, and a century on. */
static int64_t jumping(struct world *w)
{
	static const int64_t at[] = {1700000000000, 0, -1, 4800000000000, 1699999999999};

	return at[w->ticks++ % (sizeof at / sizeof *at)];
}

static void start(struct world *w)
{
	struct err e = {0};

	if (recorder_start(&w->d, &e) < 0)
		fail_msg("%s", e.text);
}

static void end(struct world *w)
{
	struct err e = {0};

	if (ledger_check(engine_ledger(w->d.engine), &e) < 0)
		fail_msg("%s", e.text);
	loop_timer_close(w->d.recorder.rotate);
	recorder_stop(&w->d);
	w->d.engine = NULL;
	w->d.machine = NULL;
	w->d.recorder.journal = NULL;
}

/* Journals live in memory, as on a node; a disk would be waited for at each of these lives. */
static const char *fast_directory(void)
{
	const char *tmp = getenv("TMPDIR"), *memory = "/dev/shm";

	if (access(memory, W_OK) == 0)
		return memory;
	return tmp ? tmp : "/tmp";
}

static struct world *world_new(int64_t (*clock)(struct world *w))
{
	struct world *w = calloc(1, sizeof *w);
	struct topo *t = machine_of_eight();

	w->clock = clock;
	w->d.topo = *t;
	free(t);
	settings_init(&w->d.settings);
	w->d.settings.shared_pool_step = 2;
	(void)cpuset_parse(&w->d.settings.reserved_cpus, "0,32", 4, NULL);
	w->d.loop = loop_new();
	(void)snprintf(w->dir, sizeof w->dir, "%.40s/numafit-fold.XXXXXX", fast_directory());
	assert_non_null(mkdtemp(w->dir));
	(void)snprintf(w->d.run.journal_path, sizeof w->d.run.journal_path, "%s/journal", w->dir);
	start(w);
	return w;
}

static void world_free(struct world *w)
{
	char command[128];

	if (w->d.engine)
		end(w);
	loop_free(w->d.loop);
	(void)snprintf(command, sizeof command, "rm -rf '%s'", w->dir);
	assert_int_equal(system(command), 0);
	free(w);
}

/* The runtime */

static void set_cpuset(
	struct world *w, struct running *r, const struct cpuset *cpus, struct nodeset mems)
{
	(void)cpuset_format(cpus, r->cpus, sizeof r->cpus);
	(void)nodeset_format(mems, &w->d.topo.ids, r->mems, sizeof r->mems);
}

static void apply(struct world *w, struct update_list *ups)
{
	for (size_t i = 0; i < ups->nr; i++)
		for (size_t j = 0; j < w->nr; j++)
			if (strcmp(w->running[j].id, ups->at[i].container_id) == 0)
				set_cpuset(w, &w->running[j], &ups->at[i].cpus, ups->at[i].mems);
	vec_fini(ups);
}

static bool create(struct world *w, struct request req)
{
	struct running *r = &w->running[w->nr];
	struct update_list ups = {0};
	struct decision d;

	req.created_at_ns = (int64_t)w->nr + 1;
	engine_create(w->d.engine, w->clock(w), &req, &d, &ups);
	apply(w, &ups);
	if (!d.admit)
		return false;
	*r = (struct running){.id = req.container_id,
		.req = req,
		.placed = {.exclusive = d.exclusive,
			.preferred = d.preferred,
			.policy = d.policy,
			.cpus = d.cpus,
			.mems = d.mems,
			.nodes = d.nodes,
			.has_nodes = d.has_affinity}};
	set_cpuset(w, r, &d.cpus, d.mems);
	r->req.cpus = r->cpus;
	r->req.mems = r->mems;
	w->nr++;
	engine_live(w->d.engine, w->clock(w), &req, NULL);
	return true;
}

static void stop(struct world *w, const char *id)
{
	struct update_list ups = {0};
	size_t i = 0;

	while (strcmp(w->running[i].id, id) != 0)
		i++;
	assert_true(i < w->nr);
	for (w->nr--; i < w->nr; i++) {
		w->running[i] = w->running[i + 1];
		w->running[i].req.cpus = w->running[i].cpus;
		w->running[i].req.mems = w->running[i].mems;
	}
	engine_release(w->d.engine, w->clock(w), "stop", id, &ups);
	apply(w, &ups);
}

static void resize(struct world *w, const char *id, uint64_t cpu_milli)
{
	struct update_list ups = {0};
	struct decision d;

	for (size_t i = 0; i < w->nr; i++)
		if (strcmp(w->running[i].id, id) == 0) {
			w->running[i].req.ask.cpu_milli = cpu_milli;
			assert_true(engine_update(
				w->d.engine, w->clock(w), &w->running[i].req, &d, &ups));
			assert_true(d.admit);
			w->running[i].placed.cpus = d.cpus;
			set_cpuset(w, &w->running[i], &d.cpus, d.mems);
		}
	apply(w, &ups);
}

#define MEMORY .nr_memory = 1, .memory = {{0, GIB(1)}}
static const struct ask known[] = {
	{.name = "init", .kind = CONTAINER_INIT, .cpu_milli = 2000, MEMORY},
	{.name = "web", .cpu_milli = 3000, MEMORY},
	{.name = "log", .cpu_milli = 1000, MEMORY},
};
static const struct pod known_ask = {
	.uid = "known", .nr = sizeof known / sizeof *known, .container = known};
static const struct pod gone_ask = {
	.uid = "gone", .nr = sizeof known / sizeof *known, .container = known};

/* A pod with resources of its own: one container has three of its CPUs alone, two share the rest.
 */
static const struct ask own = {.name = "",
	.cpu_milli = 6000,
	.nr_memory = 1,
	.memory = {{0, GIB(2)}},
	.guaranteed = true,
	.whole_pod = true};
static const struct ask team[] = {
	{.name = "main", .cpu_milli = 3000, MEMORY, .guaranteed = true},
	{.name = "side"},
	{.name = "log"},
};
static const struct pod team_ask = {.uid = "team",
	.nr = sizeof team / sizeof *team,
	.container = team,
	.pod_level = true,
	.own = &own};

static struct pod pod_of(const struct pod *ask)
{
	struct pod pod = *ask;

	pod.sandbox_id = ask->uid;
	pod.ns = "default";
	pod.name = ask->uid;
	return pod;
}

static struct request part_of(const struct pod *pod, const char *id, unsigned i)
{
	const struct ask *c = &pod->container[i];
	struct request req = ask(
		id, QOS_GUARANTEED, (unsigned)c->cpu_milli, c->nr_memory ? c->memory[0].bytes : 0);

	req.pod = pod_of(pod);
	req.ask.name = c->name;
	req.ask.guaranteed = c->guaranteed;
	return req;
}

static struct request part(const char *id, unsigned i)
{
	return part_of(&known_ask, id, i);
}

static void run_pod(struct world *w, const struct pod *ask)
{
	const struct pod pod = pod_of(ask);
	struct decision d;

	engine_run_pod(w->d.engine, w->clock(w), &pod, &d);
	if (!d.admit)
		fail_msg("%s: %s", d.reason, d.message);
}

/* A record of every kind; one container is refused, and in the end one container of the pod is
 * still to come. */
static void live_a_life(struct world *w)
{
	assert_true(create(w, ask("shared", QOS_BURSTABLE, 500, 0)));
	assert_true(create(w, ask("first", QOS_GUARANTEED, 4000, GIB(1))));
	run_pod(w, &known_ask);
	assert_true(create(w, part("p-init", 0)));
	stop(w, "p-init");
	assert_true(create(w, part("p-web", 1)));
	stop(w, "first");
	assert_true(create(w, ask("second", QOS_GUARANTEED, 6000, GIB(2))));
	assert_false(create(w, ask("too-much", QOS_GUARANTEED, 100000, 0)));
	run_pod(w, &gone_ask);
	engine_release_pod(w->d.engine, w->clock(w), "pod-gone",
		&(struct pod){.sandbox_id = "gone", .uid = ""});
	assert_int_equal(w->nr, 3);
}

static void synchronize(struct world *w)
{
	struct request requests[RUNNING_MAX];
	const struct placement *placed[RUNNING_MAX];
	const char *const sandboxes[] = {"known", "shared", "second", "team"};
	const struct inventory what = {requests, placed, w->nr, sandboxes, 4, NULL};
	struct update_list ups = {0};

	for (size_t i = 0; i < w->nr; i++) {
		requests[i] = w->running[i].req;
		requests[i].pod = pod_identity(&requests[i].pod); /* no runtime reports a spec */
		placed[i] = &w->running[i].placed;
	}
	engine_synchronize(w->d.engine, w->clock(w), &what, &ups);
	for (size_t i = 0; i < ups.nr; i++)
		if (strcmp(ups.at[i].container_id, "shared") != 0)
			fail_msg("%s is moved", ups.at[i].container_id);
	vec_fini(&ups);
}

/* What runs, as it runs; besides, only what the pod that is there has still to come. */
static void the_ledger_is_what_runs(struct world *w)
{
	const struct ledger *l = engine_ledger(w->d.engine);
	size_t waiting = 0;

	for (size_t i = 0; i < ledger_count(l); i++)
		if (ledger_at(l, i)->state == HOLDING_WAITING) {
			const char *uid = ledger_at(l, i)->request.pod.uid;

			assert_true(text_equal(uid, "known") || text_equal(uid, "team"));
			waiting++;
		}
	assert_int_equal(ledger_count(l), w->nr + waiting);
	for (size_t i = 0; i < w->nr; i++) {
		const struct running *r = &w->running[i];
		const struct holding *h = ledger_find(l, r->id);

		assert_non_null(h);
		assert_int_equal(h->decision.exclusive, r->placed.exclusive);
		if (h->decision.exclusive)
			assert_true(cpuset_equal(&h->decision.cpus, &r->placed.cpus));
	}
}

static void take_journal(struct world *w)
{
	int fd = open(w->d.run.journal_path, O_RDONLY | O_CLOEXEC);
	ssize_t len = read(fd, w->file, sizeof w->file);

	assert_true(len > 0 && len < (ssize_t)sizeof w->file);
	w->len = (size_t)len;
	(void)close(fd);
}

/* A life that begins with the first len bytes of the journal. */
static void begin_with(struct world *w, size_t len)
{
	int fd = open(w->d.run.journal_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, w->file, len), (ssize_t)len);
	(void)close(fd);
	start(w);
	synchronize(w);
	the_ledger_is_what_runs(w);
	end(w);
}

static size_t stride(void)
{
	const char *text = getenv("JOURNAL_STRIDE");

	return text && atoi(text) > 0 ? (size_t)atoi(text) : STRIDE;
}

static void a_journal_cut_at_any_byte_loses_no_answered_container(void **state)
{
	struct world *w = world_new(steady);

	(void)state;
	live_a_life(w);
	end(w);
	take_journal(w);
	lines_of_set_aside = 0;
	for (size_t len = 0; len < w->len; len += stride())
		begin_with(w, len);
	assert_int_equal(lines_of_set_aside, 0); /* a torn end is no damage */
	world_free(w);
}

/* What came after a pod's record is lost, and with it none of what the pod's containers share. */
static void a_cut_behind_a_pods_record_keeps_what_it_has_as_one(void **state)
{
	struct world *w = world_new(steady);
	size_t held;

	(void)state;
	w->d.settings.gates.pod_level_resource_managers = true;
	w->d.settings.topology_scope = SCOPE_POD;
	assert_int_equal(engine_settings_changed(w->d.engine, NULL), 0);
	assert_true(create(w, ask("shared", QOS_BURSTABLE, 500, 0)));
	run_pod(w, &team_ask);
	take_journal(w);
	held = w->len;
	assert_true(create(w, part_of(&team_ask, "t-main", 0)));
	assert_true(create(w, part_of(&team_ask, "t-side", 1)));
	struct cpuset both = cpuset_or(w->running[1].placed.cpus, &w->running[2].placed.cpus);
	assert_int_equal(cpuset_count(&w->running[1].placed.cpus), 3);
	assert_int_equal(cpuset_count(&both), 6);
	end(w);
	take_journal(w);
	for (size_t len = held; len <= w->len; len++)
		begin_with(w, len);
	world_free(w);
}

static void a_flipped_bit_anywhere_in_the_journal_loses_no_answered_container(void **state)
{
	struct world *w = world_new(steady);
	size_t last;

	(void)state;
	live_a_life(w);
	resize(w, "second", 5000);
	end(w);
	take_journal(w);
	for (last = w->len - 1; w->file[last - 1] != '\n';)
		last--;
	for (size_t at = 0; at < w->len; at += stride()) {
		char bit = (char)(1 << at % BITS);

		lines_of_set_aside = 0;
		w->file[at] ^= bit;
		begin_with(w, w->len);
		w->file[at] ^= bit;
		/* the newline before the last line makes one line of two, the last one */
		assert_int_equal(lines_of_set_aside, at < last - 1);
	}
	world_free(w);
}

static void a_whole_journal_restores_waiting_and_running_parts(void **state)
{
	struct world *w = world_new(steady);

	(void)state;
	live_a_life(w);
	resize(w, "second", 5000);
	end(w);
	take_journal(w);
	start(w);
	the_ledger_is_what_runs(w);
	synchronize(w);
	assert_non_null(ledger_find_waiting(engine_ledger(w->d.engine), "known", "log"));
	the_ledger_is_what_runs(w);
	assert_true(create(w, part("p-log", 2)));
	the_ledger_is_what_runs(w);
	world_free(w);
}

static void recovery_does_not_depend_on_the_wall_clock(void **state)
{
	struct world *w = world_new(steady), *v = world_new(jumping);

	(void)state;
	live_a_life(w);
	live_a_life(v);
	for (size_t i = 0; i < w->nr; i++) {
		assert_string_equal(w->running[i].cpus, v->running[i].cpus);
		assert_string_equal(w->running[i].mems, v->running[i].mems);
	}
	/* two calls, whatever the clock says between them */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(engine_expire(w->d.engine, w->clock(w)),
			engine_expire(v->d.engine, v->clock(v)));
	end(v);
	start(v);
	synchronize(v);
	the_ledger_is_what_runs(v);
	world_free(w);
	world_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_journal_restores_waiting_and_running_parts),
		cmocka_unit_test(a_journal_cut_at_any_byte_loses_no_answered_container),
		cmocka_unit_test(a_cut_behind_a_pods_record_keeps_what_it_has_as_one),
		cmocka_unit_test(a_flipped_bit_anywhere_in_the_journal_loses_no_answered_container),
		cmocka_unit_test(recovery_does_not_depend_on_the_wall_clock),
	};

	json_seed();
	log_set_sink(look_at_log);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
