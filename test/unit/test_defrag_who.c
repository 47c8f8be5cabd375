/* Which running containers may be moved: what is known as they come lasts in their entries, and in
 * those that a journal leads to. */
#include <codec/journal_json.h>
#include <numafit/defrag.h>

#include "core_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

enum { LINE_MAX_BYTES = 1 << 16, ARENA_BYTES = 1 << 20, INTERVAL_MS = 600000 };

/* An engine, and one that reads the first one's journal. */
struct world {
	struct topo *t;
	struct settings s;
	struct engine *g, *again;
	bool old; /* the journal is of a numafit that did not note devices */
};

static int record(void *ctx, const struct record *r, struct err *e)
{
	static char line[LINE_MAX_BYTES];
	const struct world *w = ctx;
	struct decoded_record back;
	struct arena a;
	int len = journal_json_record(r, &w->t->ids, line, sizeof line, e);

	assert_true(len > 0);
	arena_init(&a, ARENA_BYTES);
	assert_int_equal(journal_json_parse(line, (size_t)len, &w->t->ids, &a, &back, e), 0);
	back.request.ask.has_devices = back.request.ask.has_devices && !w->old;
	assert_int_equal(engine_replay(w->again, &back.record, e), 0);
	arena_fini(&a);
	return 0;
}

static struct world *world_new(void)
{
	static const struct engine_hooks none;
	struct world *w = calloc(1, sizeof *w);
	const struct engine_hooks hooks = {.record = record, .ctx = w};

	w->t = machine_of_eight();
	w->s = settings_of(POLICY_RESTRICTED);
	w->s.defrag.min_interval_ms = INTERVAL_MS;
	w->g = engine_new(w->t, &w->s, &hooks);
	w->again = engine_new(w->t, &w->s, &none);
	return w;
}

static void world_free(struct world *w)
{
	engine_free(w->g);
	engine_free(w->again);
	free(w->t);
	free(w);
}

static struct request asks(const char *id)
{
	return ask(id, QOS_GUARANTEED, 2000, GIB(1));
}

static void create(struct world *w, struct request req)
{
	struct update_list ups = {0};
	struct decision d;

	engine_create(w->g, 1, &req, &d, &ups);
	engine_started(w->g, 1, req.container_id);
	assert_true(d.admit);
	vec_fini(&ups);
}

static void adopt(struct world *w, const struct request *req)
{
	const struct placement *none = NULL;
	const struct inventory there = {.requests = req,
		.placed = &none,
		.nr = 1,
		.sandbox_ids = &req->pod.sandbox_id,
		.nr_sandboxes = 1};
	struct update_list ups = {0};

	engine_synchronize(w->g, 1, &there, &ups);
	vec_fini(&ups);
}

static bool can_move(const struct world *w, const char *id)
{
	const struct holding *h = ledger_find(engine_ledger(w->g), id),
			     *again = ledger_find(engine_ledger(w->again), id);

	assert_non_null(h);
	assert_non_null(again);
	assert_int_equal(defrag_can_move(h), defrag_can_move(again));
	return defrag_can_move(h);
}

static const struct device_resource gpu = {
	.name = "example.com/gpu",
	.nr = 1,
	.device = &(struct device){.id = "0",
		.has_topology = true,
		.placed = true,
		.nodes = {1},
		.healthy = true},
};
static const struct device_file infiniband = {"/dev/infiniband/uverbs0", 'c', 231, 192};
static const char *const cdi = "example.com/net=nic0";

static void with_attached_device(struct request *r)
{
	r->pod.attached = &gpu;
	r->pod.nr_attached = 1;
}

static void with_device_of_unknown_place(struct request *r)
{
	r->ask.has_devices = true; /* as gather.c has it */
}

static void with_device_node(struct request *r)
{
	r->file = &infiniband;
	r->nr_files = 1;
}

static void with_cdi_device(struct request *r)
{
	r->cdi = &cdi;
	r->nr_cdi = 1;
}

static void with_claim(struct request *r)
{
	r->ask.has_claims = true;
}

static void (*const with[])(struct request *r) = {with_attached_device,
	with_device_of_unknown_place, with_device_node, with_cdi_device, with_claim};
enum { NR_WITH = sizeof with / sizeof *with };

static void a_container_with_a_device_cannot_move_after_the_event_that_showed_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR_WITH; i++) {
		struct world *w = world_new();
		struct request req = asks("with");

		create(w, asks("without"));
		with[i](&req);
		create(w, req);
		assert_true(can_move(w, "without"));
		assert_false(can_move(w, "with"));
		world_free(w);
	}
}

static void devices_that_an_old_journal_shows_count(void **state)
{
	struct world *w = world_new();
	struct request req = asks("with");

	(void)state;
	w->old = true;
	with_attached_device(&req);
	create(w, req);
	assert_false(can_move(w, "with"));
	world_free(w);
}

static void nor_can_one_that_was_found_running_with_a_device(void **state)
{
	(void)state;
	for (size_t i = 0; i <= NR_WITH; i++) {
		struct world *w = world_new();
		struct request req = asks("found");

		req.cpus = "0-1";
		req.mems = "0";
		if (i < NR_WITH)
			with[i](&req);
		adopt(w, &req);
		assert_int_equal(can_move(w, "found"), i == NR_WITH);
		world_free(w);
	}
}

static void what_a_part_of_a_pod_asks_for_lasts_as_well(void **state)
{
	struct world *w = world_new();
	struct ask list[2] = {asks("a").ask, asks("b").ask};
	struct pod pod = asks("pod").pod;
	struct update_list ups = {0};
	struct decision d;

	(void)state;
	list[0].name = "with";
	list[0].nr_devices = 1;
	list[0].device[0] = (struct device_ask){0, 1};
	list[1].name = "without";
	pod.container = list;
	pod.nr = 2;
	pod.attached = &gpu;
	pod.nr_attached = 1;
	engine_run_pod(w->g, 1, &pod, &d);
	assert_true(d.admit);
	assert_true(ledger_find_waiting(engine_ledger(w->again), pod.uid, "with")
			    ->request.ask.has_devices);
	for (unsigned i = 0; i < 2; i++) {
		struct request req = asks(list[i].name);

		req.ask.name = list[i].name;
		req.pod = pod_identity(&pod);
		create(w, req);
	}
	assert_false(can_move(w, "with"));
	assert_true(can_move(w, "without"));
	vec_fini(&ups);
	world_free(w);
}

static void a_restarted_container_has_its_predecessors_devices_and_wishes(void **state)
{
	struct world *w = world_new();
	struct request req = asks("first");

	(void)state;
	with_attached_device(&req);
	req.ask.wishes.movable = WISH_MOVABLE_YES;
	create(w, req);
	req = asks("second");
	req.pod = asks("first").pod;
	create(w, req);
	assert_null(ledger_find(engine_ledger(w->g), "first"));
	assert_false(can_move(w, "second"));
	assert_int_equal(ledger_find(engine_ledger(w->g), "second")->request.ask.wishes.movable,
		WISH_MOVABLE_YES);
	world_free(w);
}

/* It was resized while nobody listened: its entry is replaced as the runtime reports it. */
static void a_synchronize_forgets_neither_devices_nor_moves(void **state)
{
	struct world *w = world_new();
	struct request req = asks("with");

	(void)state;
	with_device_of_unknown_place(&req);
	create(w, req);
	struct decision d = ledger_find(engine_ledger(w->g), "with")->decision;
	d.moved_ms = 7;
	ledger_move((struct ledger *)(uintptr_t)engine_ledger(w->g), "with", &d);
	assert_int_equal(ledger_find(engine_ledger(w->g), "with")->decision.moved_ms, 7);
	req = asks("with");
	req.ask.cpu_milli = 3000;
	req.cpus = "0-2";
	req.mems = "0";
	adopt(w, &req);
	assert_int_equal(ledger_find(engine_ledger(w->g), "with")->request.ask.cpu_milli, 3000);
	assert_int_equal(ledger_find(engine_ledger(w->g), "with")->decision.moved_ms, 7);
	assert_false(can_move(w, "with"));
	world_free(w);
}

static void one_that_was_sent_where_it_is_stays_there(void **state)
{
	static const struct {
		enum advice_mode mode;
		bool wish;
		unsigned node;
		bool fits, moves;
	} cases[] = {
		{ADVICE_REQUIRE, false, 3, true, false}, {ADVICE_PREFER, false, 3, true, true},
		{ADVICE_PREFER, true, 3, true, false},
		{ADVICE_PREFER, true, 3, false, true}, /* it got another one */
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct world *w = world_new();
		struct request req = asks("sent"), other = asks("other");
		const struct advice_ask advice = {.so_far = ADVICE_ACCEPTED,
			.mode = cases[i].mode,
			.asked = nodeset_of(cases[i].node)};
		const struct advice_ask same = {
			.so_far = ADVICE_ACCEPTED, .mode = ADVICE_REQUIRE, .asked = advice.asked};

		if (!cases[i].fits) {
			other.ask.cpu_milli = 8000;
			other.ask.advice = &same;
			create(w, other);
		}
		req.ask.advice = &advice;
		req.ask.wishes_nodes = cases[i].wish;
		create(w, req);
		assert_int_equal(can_move(w, "sent"), cases[i].moves);
		world_free(w);
	}
}

static void one_whose_wish_for_numa_nodes_nobody_has_judged_stays(void **state)
{
	struct world *w = world_new();
	struct request req = asks("found");

	(void)state;
	req.cpus = "0-1";
	req.mems = "0";
	req.ask.wishes_nodes = true;
	adopt(w, &req);
	assert_false(can_move(w, "found"));
	world_free(w);
}

static void others_that_cannot_move(void **state)
{
	struct world *w = world_new();
	struct request req = asks("pooled");

	(void)state;
	req.ask.cpu_milli = 500;
	create(w, req);
	assert_false(can_move(w, "pooled"));
	req = asks("init");
	req.ask.kind = CONTAINER_INIT;
	create(w, req);
	assert_false(can_move(w, "init"));
	req = asks("huge");
	req.ask.memory[req.ask.nr_memory++] = (struct memory_ask){GIB(1), GIB(1)};
	create(w, req);
	assert_false(can_move(w, "huge"));
	req = asks("plain");
	create(w, req);
	assert_true(can_move(w, "plain"));
	struct holding h = *ledger_find(engine_ledger(w->g), "plain");
	h.decision.placed_by = PLACED_LEFT;
	assert_false(defrag_can_move(&h));
	h.decision.placed_by = PLACED_BY_NUMAFIT;
	h.request.ask.tokens = 1;
	assert_false(defrag_can_move(&h));
	h.request.ask.tokens = 0;
	h.request.shares = "share";
	assert_false(defrag_can_move(&h));
	world_free(w);
}

static void its_author_the_settings_and_the_last_move_say_whether_it_may_be_moved_now(void **state)
{
	enum { NOW = 10 * INTERVAL_MS };
	static const struct {
		enum wish_movable wish;
		enum movable_use use;
		int64_t moved_ms;
		bool asked, by_itself; /* may it? */
	} cases[] = {
		{WISH_MOVABLE_UNSAID, MOVABLE_ANNOTATED, 0, true, false},
		{WISH_MOVABLE_UNSAID, MOVABLE_ALL, 0, true, true},
		{WISH_MOVABLE_YES, MOVABLE_ANNOTATED, 0, true, true},
		{WISH_MOVABLE_NO, MOVABLE_ANNOTATED, 0, false, false},
		{WISH_MOVABLE_NO, MOVABLE_ALL, 0, false, false},
		{WISH_MOVABLE_YES, MOVABLE_ALL, NOW - INTERVAL_MS, true, true},
		{WISH_MOVABLE_YES, MOVABLE_ALL, NOW - INTERVAL_MS + 1, false, false},
		{WISH_MOVABLE_YES, MOVABLE_ALL, NOW + 1, false, false}, /* the clock was set back */
		{WISH_MOVABLE_YES, MOVABLE_ALL, INT64_MAX, false, false},
		{WISH_MOVABLE_YES, MOVABLE_ALL, INT64_MIN, true, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct world *w = world_new();
		struct request req = asks("one");

		w->s.defrag.movable = cases[i].use;
		req.ask.wishes.movable = cases[i].wish;
		create(w, req);
		assert_true(can_move(w, "one"));
		struct holding h = *ledger_find(engine_ledger(w->g), "one");
		h.decision.moved_ms = cases[i].moved_ms;
		assert_int_equal(defrag_may_move(&h, &w->s, NOW, false), cases[i].asked);
		assert_int_equal(defrag_may_move(&h, &w->s, NOW, true), cases[i].by_itself);
		h.state = HOLDING_TENTATIVE;
		assert_false(defrag_may_move(&h, &w->s, NOW, false));
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_container_with_a_device_cannot_move_after_the_event_that_showed_it),
		cmocka_unit_test(devices_that_an_old_journal_shows_count),
		cmocka_unit_test(nor_can_one_that_was_found_running_with_a_device),
		cmocka_unit_test(what_a_part_of_a_pod_asks_for_lasts_as_well),
		cmocka_unit_test(a_restarted_container_has_its_predecessors_devices_and_wishes),
		cmocka_unit_test(a_synchronize_forgets_neither_devices_nor_moves),
		cmocka_unit_test(one_that_was_sent_where_it_is_stays_there),
		cmocka_unit_test(one_whose_wish_for_numa_nodes_nobody_has_judged_stays),
		cmocka_unit_test(others_that_cannot_move),
		cmocka_unit_test(
			its_author_the_settings_and_the_last_move_say_whether_it_may_be_moved_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
