#include "cluster_rig.h"

#include <time.h>

static const int64_t all_free[RIG_ZONES] = {RIG_CPUS, RIG_CPUS};
static const struct sched_cluster_args usual = {.over_reserve = true};

static void put(struct rig *r, const char *name, const char *node, int64_t cpus, int zone)
{
	struct rig_pod p;

	rig_pod(&p, name, node, cpus, zone);
	sched_cluster_put_pod(r->c, &p.bound, r->now_ms);
}

static void assume(struct rig *r, const char *name, const char *node, int64_t cpus, int zone)
{
	struct rig_pod p;

	rig_pod(&p, name, node, cpus, zone);
	sched_cluster_assume(r->c, &p.bound, r->now_ms);
}

static void an_assumed_pod_is_taken_from_its_zones_until_it_is_reported(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_report(&r, "n", 1, all_free, "");
	assume(&r, "a", "n", 4, 1);
	assert_left(&r, "n", 16, 12);
	assert_int_equal(rig_left(&r, "n", 1, RESOURCE_MEMORY), 15 * RIG_GIB);
	put(&r, "a", "n", 4, 1); /* the watch tells of it */
	assert_left(&r, "n", 16, 12);
	rig_report(&r, "n", 2, all_free, ""); /* it is not in it yet */
	assert_left(&r, "n", 16, 12);
	rig_report(&r, "n", 3, (const int64_t[]){16, 12}, "a");
	assert_left(&r, "n", 16, 12);
	rig_fini(&r);
}

static void a_failed_binding_is_forgotten(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_report(&r, "n", 1, all_free, "");
	assume(&r, "a", "n", 4, 0);
	assert_left(&r, "n", 12, 16);
	assert_null(sched_cluster_node_of(r.c, "a"));
	sched_cluster_forget(r.c, "a");
	assert_left(&r, "n", 16, 16);
	put(&r, "a", "n", 4, 0);
	sched_cluster_forget(r.c, "a"); /* it is bound: too late */
	assert_left(&r, "n", 12, 16);
	assert_string_equal(sched_cluster_node_of(r.c, "a"), "n");
	assume(&r, "a", "n", 8, 0); /* likewise */
	assert_left(&r, "n", 12, 16);
	rig_fini(&r);
}

static void a_binding_that_is_never_confirmed_is_dropped_after_a_time(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_report(&r, "n", 1, all_free, "");
	assume(&r, "a", "n", 4, 0);
	sched_cluster_expire(r.c, r.now_ms + RIG_ASSUME_MS - 1);
	assert_left(&r, "n", 12, 16);
	sched_cluster_expire(r.c, r.now_ms + RIG_ASSUME_MS);
	assert_left(&r, "n", 16, 16);
	rig_fini(&r);
}

static void a_pod_with_unknown_zones_is_subtracted_from_all_zones(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_node(&r, "foreign");
	rig_report(&r, "n", 1, all_free, "");
	rig_foreign_report(&r, "foreign", all_free, "");
	put(&r, "a", "n", 4, -1);
	assert_left(&r, "n", 12, 12);
	put(&r, "b", "foreign", 4, 0); /* nobody there follows hints */
	assert_left(&r, "foreign", 12, 12);
	put(&r, "c", "foreign", 14, 0); /* never below 0 */
	assert_left(&r, "foreign", 0, 0);
	rig_fini(&r);
}

static void a_pod_without_exclusive_resources_is_not_waited_for_on_nodes_that_name_pods(
	void **state)
{
	struct rig_pod p;
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_report(&r, "n", 1, all_free, "");
	rig_pod(&p, "a", "n", 4, -1);
	p.pod.qos = QOS_BURSTABLE;
	sched_cluster_put_pod(r.c, &p.bound, r.now_ms);
	assert_left(&r, "n", 16, 16);
	assert_false(sched_cluster_find(r.c, "n")->stale);
	rig_fini(&r);
}

static void a_matching_fingerprint_means_that_all_pods_are_in_the_report(void **state)
{
	struct rig_pod p;
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_foreign_report(&r, "n", all_free, "");
	put(&r, "a", "n", 4, -1);
	assert_left(&r, "n", 12, 12);
	rig_foreign_report(&r, "n", (const int64_t[]){12, 16}, "a");
	assert_left(&r, "n", 12, 16);
	/* one more: the report has those before it all the same */
	put(&r, "b", "n", 2, -1);
	assert_left(&r, "n", 10, 14);
	/* the report comes before the pod is known to have started: with it */
	rig_pod(&p, "c", "n", 1, -1);
	p.bound.pending = true;
	sched_cluster_put_pod(r.c, &p.bound, r.now_ms);
	assert_left(&r, "n", 9, 13);
	rig_foreign_report(&r, "n", (const int64_t[]){12, 13}, "a b c");
	assert_left(&r, "n", 12, 13);
	/* and without it */
	rig_pod(&p, "d", "n", 1, -1);
	p.bound.pending = true;
	sched_cluster_put_pod(r.c, &p.bound, r.now_ms);
	put(&r, "e", "n", 1, -1);
	rig_foreign_report(&r, "n", (const int64_t[]){12, 12}, "a b e c");
	assert_left(&r, "n", 10, 10); /* c is pending, too, but not d: no such set is looked for */
	put(&r, "c", "n", 1, -1);
	assert_left(&r, "n", 11, 11);
	/* the report has what is left once one is gone */
	put(&r, "f", "n", 1, -1);
	assert_left(&r, "n", 10, 10);
	sched_cluster_remove_pod(r.c, "f");
	assert_left(&r, "n", 11, 11);
	rig_fini(&r);
}

static void a_later_report_is_believed_after_a_time(void **state)
{
	static const struct {
		bool foreign, pending;
		uint64_t generation; /* of the report that comes in the end */
		int64_t after_ms, left;
	} rows[] = {
		{true, false, 0, RIG_ASSUME_MS, 16}, {true, true, 0, RIG_ASSUME_MS, 16},
		{true, false, 0, RIG_ASSUME_MS - 1, 12}, {false, false, 2, RIG_ASSUME_MS, 16},
		{false, false, 1, RIG_ASSUME_MS, 12}, /* the same one: tells nothing new */
		{false, true, 2, RIG_ASSUME_MS, 12},  /* it may not have started yet */
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rig_pod p;
		struct rig r;

		rig_init(&r, &usual);
		rig_node(&r, "n");
		if (rows[i].foreign)
			rig_foreign_report(&r, "n", all_free, "x");
		else
			rig_report(&r, "n", 1, all_free, "");
		rig_pod(&p, "a", "n", 4, 0);
		p.bound.pending = rows[i].pending;
		sched_cluster_put_pod(r.c, &p.bound, r.now_ms);
		sched_cluster_expire(r.c, r.now_ms + 10 * RIG_ASSUME_MS); /* no report since */
		assert_int_equal(rig_cpus(&r, "n", 0), 12);
		r.now_ms += rows[i].after_ms;
		if (rows[i].foreign)
			rig_foreign_report(&r, "n", all_free, "x");
		else
			rig_report(&r, "n", rows[i].generation, all_free, "");
		sched_cluster_expire(r.c, r.now_ms);
		if (rig_cpus(&r, "n", 0) != rows[i].left)
			fail_msg("row %u: %lld", i, (long long)rig_cpus(&r, "n", 0));
		rig_fini(&r);
	}
}

static void an_ended_or_deleted_pod_takes_nothing(void **state)
{
	struct sched_cluster_counts counts;
	struct rig_pod p;
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_report(&r, "n", 1, all_free, "");
	rig_pod(&p, "a", "n", 4, 0);
	sched_cluster_put_pod(r.c, &p.bound, r.now_ms);
	put(&r, "b", "n", 4, 0);
	assert_left(&r, "n", 8, 16);
	assert_int_equal(sched_cluster_find(r.c, "n")->node->nr_pods, 2);
	p.bound.ended = true;
	sched_cluster_put_pod(r.c, &p.bound, r.now_ms);
	assert_left(&r, "n", 12, 16);
	assert_int_equal(sched_cluster_find(r.c, "n")->node->nr_pods, 1);
	sched_cluster_remove_pod(r.c, "b");
	assert_left(&r, "n", 16, 16);
	sched_cluster_remove_pod(r.c, "b");
	sched_cluster_count(r.c, &counts);
	assert_int_equal(counts.pods, 1);
	assert_int_equal(counts.waiting, 0);
	rig_fini(&r);
}

static void end(struct rig *r, const char *name, const char *node, int64_t cpus, int zone)
{
	struct rig_pod p;

	rig_pod(&p, name, node, cpus, zone);
	p.bound.ended = true;
	sched_cluster_put_pod(r->c, &p.bound, r->now_ms);
}

static void an_ended_pod_gives_back_what_the_report_still_counts(void **state)
{
	struct sched_cluster_counts counts;
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_report(&r, "n", 1, all_free, "");
	put(&r, "a", "n", 4, 1);
	put(&r, "b", "n", 6, 0);
	assert_left(&r, "n", 10, 12);
	rig_report(&r, "n", 2, (const int64_t[]){10, 12}, "a b");
	assert_left(&r, "n", 10, 12);
	end(&r, "a", "n", 4, 1);
	assert_left(&r, "n", 10, 16);
	assert_int_equal(rig_left(&r, "n", 1, RESOURCE_MEMORY), 13 * RIG_GIB);
	sched_cluster_remove_pod(r.c, "a"); /* which changes nothing */
	assert_left(&r, "n", 10, 16);
	assert_null(sched_cluster_node_of(r.c, "a"));
	sched_cluster_count(r.c, &counts);
	assert_int_equal(counts.pods, 1);
	assume(&r, "c", "n", 3, 1); /* who comes takes of it */
	assert_left(&r, "n", 10, 13);
	rig_report(&r, "n", 3, (const int64_t[]){10, 12}, "b a"); /* it is in it still */
	assert_left(&r, "n", 10, 13);
	rig_report(&r, "n", 4, (const int64_t[]){10, 13}, "b c");
	assert_left(&r, "n", 10, 13);
	rig_report(&r, "n", 5, (const int64_t[]){10, 9}, "a b c"); /* another one of that name */
	assert_left(&r, "n", 10, 9);
	rig_fini(&r);
}

static void an_ended_pod_gives_back_only_what_is_certainly_free(void **state)
{
	static const struct {
		struct sched_cluster_args args;
		const char *named;
		int zone;
		bool is_foreign, is_alive, has_successor;
		int64_t left[RIG_ZONES];
	} rows[] = {
		{{.over_reserve = true}, "a", 0, false, false, false, {16, 12}}, /* it is */
		{{.over_reserve = true}, "", 0, false, false, false, {12, 12}},
		{{.over_reserve = true}, "a", -1, false, false, false, {12, 12}},
		{{.over_reserve = true}, "a", 7, false, false, false, {12, 12}},
		{{.over_reserve = true}, "a", 0, true, false, false, {12, 12}},
		{{.over_reserve = true}, "a", 0, false, true, false, {12, 12}},
		{{.over_reserve = true}, "a", 0, false, false, true, {12, 12}},
		{{0}, "a", 0, false, false, false, {12, 12}},
		{{.over_reserve = true, .discard_reserved = true}, "a", 0, false, false, false,
			{12, 12}},
	};
	const int64_t reported[] = {12, 12};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rig_pod p;
		struct rig r;

		rig_init(&r, &rows[i].args);
		rig_node(&r, "n");
		rig_report(&r, "n", 1, all_free, "");
		rig_pod(&p, "a", "n", 4, rows[i].zone);
		sched_cluster_put_pod(r.c, &p.bound, r.now_ms);
		if (rows[i].is_foreign)
			rig_foreign_report(&r, "n", reported, rows[i].named);
		else
			rig_report(&r, "n", 2, reported, rows[i].named);
		p.bound.ended = !rows[i].is_alive;
		sched_cluster_put_pod(r.c, &p.bound, r.now_ms);
		sched_cluster_remove_pod(r.c, "a");
		p.pod.uid = "successor"; /* in the node's report, for all that one can tell */
		p.bound.ended = false;
		if (rows[i].has_successor)
			sched_cluster_assume(r.c, &p.bound, r.now_ms);
		if (rig_cpus(&r, "n", 0) != rows[i].left[0] ||
			rig_cpus(&r, "n", 1) != rows[i].left[1])
			fail_msg("row %u: %lld, %lld", i, (long long)rig_cpus(&r, "n", 0),
				(long long)rig_cpus(&r, "n", 1));
		rig_fini(&r);
	}
}

static void no_more_is_given_back_than_the_node_has(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_report(&r, "n", 1, all_free, "");
	put(&r, "a", "n", 4, 0);
	rig_report(&r, "n", 2, (const int64_t[]){14, 16}, "a");
	end(&r, "a", "n", 4, 0); /* the node had it elsewhere in part */
	assert_left(&r, "n", 16, 16);
	put(&r, "b", "n", 3, 0);
	assert_left(&r, "n", 13, 16);
	rig_fini(&r);
}

static void a_later_report_is_believed_about_an_end_after_a_time(void **state)
{
	static const int64_t reported[] = {12, 16};

	(void)state;
	for (unsigned is_gone = 0; is_gone < 2; is_gone++) {
		struct rig r;

		rig_init(&r, &usual);
		rig_node(&r, "n");
		rig_report(&r, "n", 1, all_free, "");
		put(&r, "a", "n", 4, 0);
		rig_report(&r, "n", 2, reported, "a");
		r.now_ms += 10 * RIG_ASSUME_MS;
		end(&r, "a", "n", 4, 0);
		if (is_gone)
			sched_cluster_remove_pod(r.c, "a");
		r.now_ms += RIG_ASSUME_MS;
		sched_cluster_expire(r.c, r.now_ms); /* no report since */
		assert_left(&r, "n", 16, 16);
		rig_report(&r, "n", 2, reported, "a"); /* the same once more */
		assert_left(&r, "n", 16, 16);
		rig_report(&r, "n", 3, reported, "a");
		assert_left(&r, "n", 12, 16);
		rig_fini(&r);
		rig_init(&r, &usual);
		rig_node(&r, "n");
		rig_report(&r, "n", 1, all_free, "");
		put(&r, "a", "n", 4, 0);
		rig_report(&r, "n", 2, reported, "a");
		end(&r, "a", "n", 4, 0);
		if (is_gone)
			sched_cluster_remove_pod(r.c, "a");
		r.now_ms += 1;
		rig_report(&r, "n", 3, reported, "a"); /* it may not know yet */
		sched_cluster_expire(r.c, r.now_ms + RIG_ASSUME_MS - 2);
		assert_left(&r, "n", 16, 16);
		sched_cluster_expire(r.c, r.now_ms + RIG_ASSUME_MS - 1);
		assert_left(&r, "n", 12, 16);
		rig_fini(&r);
	}
}

/* What is known stays known, and who is new in a list gives back nothing. */
static void a_list_shows_ended_pods_but_not_what_they_held(void **state)
{
	struct sched_cluster_counts counts;
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_report(&r, "n", 1, all_free, "");
	put(&r, "a", "n", 4, 0);
	put(&r, "b", "n", 2, 0);
	put(&r, "c", "n", 4, 1);
	rig_report(&r, "n", 2, (const int64_t[]){4, 8}, "a b c new");
	sched_cluster_begin(r.c, CLUSTER_PODS);
	end(&r, "a", "n", 4, 0);
	end(&r, "b", "n", 2, 0);
	end(&r, "new", "n", 2, 0);
	put(&r, "c", "n", 4, 1);
	sched_cluster_sweep(r.c, CLUSTER_PODS);
	assert_left(&r, "n", 10, 8);
	sched_cluster_begin(r.c, CLUSTER_PODS);
	end(&r, "b", "n", 2, 0);
	sched_cluster_sweep(r.c, CLUSTER_PODS); /* who knows how c came to its end? */
	assert_left(&r, "n", 10, 8);
	sched_cluster_count(r.c, &counts);
	assert_int_equal(counts.pods, 1);
	sched_cluster_remove_report(r.c, "n");
	sched_cluster_remove_pod(r.c, "b");
	sched_cluster_remove_node(r.c, "n");
	sched_cluster_count(r.c, &counts);
	assert_int_equal(counts.nodes + counts.pods, 0);
	rig_fini(&r);
}

static void a_recreated_pod_gives_back_nothing_of_its_predecessor(void **state)
{
	struct rig_pod p;
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_report(&r, "n", 1, all_free, "");
	put(&r, "a", "n", 4, 0);
	rig_report(&r, "n", 2, (const int64_t[]){12, 16}, "a");
	end(&r, "a", "n", 4, 0);
	sched_cluster_remove_pod(r.c, "a");
	assert_left(&r, "n", 16, 16);
	rig_pod(&p, "a", "n", 4, 0); /* as of a StatefulSet */
	p.pod.uid = "next";
	sched_cluster_assume(r.c, &p.bound, r.now_ms);
	assert_left(&r, "n", 12, 16);
	sched_cluster_put_pod(r.c, &p.bound, r.now_ms);
	p.bound.ended = true;
	sched_cluster_put_pod(r.c, &p.bound, r.now_ms);
	sched_cluster_remove_pod(r.c, "next");
	assert_left(&r, "n", 12, 16); /* it may never have been there */
	rig_fini(&r);
}

static double cpu_seconds(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/* Beside making them: many times the looks of their whole lives. */
static void pods_that_have_expired_cost_no_more_time(void **state)
{
	enum { MANY = 20000, LOOKS = 50000 };
	char name[16];
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	double began = cpu_seconds();
	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof name, "p%u", i);
		put(&r, name, name, 1, 0);
	}
	r.now_ms += RIG_ASSUME_MS;
	sched_cluster_expire(r.c, r.now_ms);
	double making = cpu_seconds() - began;
	put(&r, "young", "n", 1, 0); /* it has its time yet */
	began = cpu_seconds();
	for (unsigned i = 0; i < LOOKS; i++)
		sched_cluster_expire(r.c, r.now_ms);
	double looking = cpu_seconds() - began;
	if (looking > making)
		fail_msg("%.3f s, where making them took %.3f s", looking, making);
	rig_fini(&r);
}

static void each_binding_expires_at_its_own_time(void **state)
{
	static const int64_t bound_ms[] = {5, 3, 9, 1, 7, 3}; /* as they are told of */
	enum { NR = sizeof bound_ms / sizeof *bound_ms };
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	for (unsigned i = 0; i < NR; i++) {
		struct rig_pod p;
		char name[16];

		(void)snprintf(name, sizeof name, "p%u", i);
		rig_pod(&p, name, "n", 1, 0);
		p.bound.bound_ms = RIG_START_MS + bound_ms[i];
		sched_cluster_put_pod(r.c, &p.bound, RIG_START_MS + 10);
	}
	r.now_ms += 10;
	sched_cluster_remove_pod(r.c, "p4");
	rig_report(&r, "n", 1, all_free, "");
	for (int64_t ms = 0; ms < 10; ms++) {
		int64_t left = RIG_CPUS;

		for (unsigned i = 0; i < NR; i++)
			left -= i != 4 && bound_ms[i] > ms;
		sched_cluster_expire(r.c, RIG_START_MS + RIG_ASSUME_MS + ms);
		assert_left(&r, "n", left, 16);
	}
	rig_fini(&r);
}

/* Clocks of replicas differ. */
static void a_binding_in_the_future_counts_as_bound_now(void **state)
{
	struct rig_pod p;
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_pod(&p, "a", "n", 4, 0);
	p.bound.bound_ms = INT64_MAX - 1;
	sched_cluster_put_pod(r.c, &p.bound, r.now_ms++);
	rig_report(&r, "n", 1, all_free, "");
	assert_left(&r, "n", 12, 16);
	sched_cluster_expire(r.c, r.now_ms + RIG_ASSUME_MS);
	assert_left(&r, "n", 16, 16);
	rig_fini(&r);
}

static void foreign_pods_make_a_node_stale_as_configured(void **state)
{
	enum { FRACTIONAL = 1, EXCLUSIVE = 2 };
	static const struct {
		struct sched_cluster_args args;
		int kind;
		bool ours, assumed, stale;
	} rows[] = {
		{{.over_reserve = true}, EXCLUSIVE, false, false, true},
		{{.over_reserve = true}, FRACTIONAL, false, false, true},
		{{.over_reserve = true}, 0, false, false, false},
		{{.over_reserve = true}, EXCLUSIVE, true, false, false},
		{{.over_reserve = true}, EXCLUSIVE, false, true, false},
		{{.over_reserve = true, .foreign = FOREIGN_PODS_EXCLUSIVE}, EXCLUSIVE, false, false,
			true},
		{{.over_reserve = true, .foreign = FOREIGN_PODS_EXCLUSIVE}, 0, false, false, false},
		{{.over_reserve = true, .foreign = FOREIGN_PODS_NONE}, EXCLUSIVE, false, false,
			false},
		{{0}, EXCLUSIVE, false, false, false},
		{{.discard_reserved = true}, EXCLUSIVE, false, false, false},
		{{.discard_reserved = true}, EXCLUSIVE, false, true, true},
		{{.discard_reserved = true, .over_reserve = true}, EXCLUSIVE, true, true, true},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rig_pod p;
		struct rig r;

		rig_init(&r, &rows[i].args);
		rig_node(&r, "n");
		rig_foreign_report(&r, "n", all_free, "x");
		rig_pod(&p, "a", "n", 4, rows[i].ours ? 0 : -1);
		if (rows[i].kind == FRACTIONAL)
			p.asks[0].q = (struct quantity){0, QUANTITY_NANOS / 2};
		if (!rows[i].kind)
			p.pod.qos = QOS_BURSTABLE;
		if (rows[i].assumed)
			sched_cluster_assume(r.c, &p.bound, r.now_ms);
		else
			sched_cluster_put_pod(r.c, &p.bound, r.now_ms);
		if (sched_cluster_find(r.c, "n")->stale != rows[i].stale)
			fail_msg("row %u", i);
		if (rows[i].args.discard_reserved || !rows[i].args.over_reserve)
			assert_left(&r, "n", 16, 16);
		rig_foreign_report(&r, "n", all_free, "a");
		if (!rows[i].assumed)
			assert_false(sched_cluster_find(r.c, "n")->stale);
		rig_fini(&r);
	}
}

static void a_new_list_removes_what_it_lacks(void **state)
{
	struct sched_cluster_counts counts;
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	for (unsigned i = 0; i < NR_CLUSTER_KINDS; i++)
		sched_cluster_begin(r.c, (enum sched_cluster_kind)i);
	rig_node(&r, "n");
	rig_node(&r, "m");
	rig_report(&r, "n", 7, all_free, "");
	rig_report(&r, "m", 8, all_free, "");
	put(&r, "a", "n", 4, 0);
	put(&r, "b", "m", 4, 0);
	assume(&r, "c", "n", 1, 0);
	for (unsigned i = 0; i < NR_CLUSTER_KINDS; i++)
		sched_cluster_sweep(r.c, (enum sched_cluster_kind)i);
	assert_int_equal(sched_cluster_generation(r.c, "n"), 7);
	sched_cluster_begin(r.c, CLUSTER_PODS);
	put(&r, "b", "m", 4, 0);
	sched_cluster_sweep(r.c, CLUSTER_PODS);
	assert_null(sched_cluster_node_of(r.c, "a"));
	assert_string_equal(sched_cluster_node_of(r.c, "b"), "m");
	assert_left(&r, "n", 15, 16);
	sched_cluster_begin(r.c, CLUSTER_REPORTS);
	sched_cluster_sweep(r.c, CLUSTER_REPORTS);
	assert_int_equal(rig_cpus(&r, "n", 0), -1);
	assert_int_equal(sched_cluster_generation(r.c, "n"), 0);
	sched_cluster_begin(r.c, CLUSTER_NODES);
	rig_node(&r, "n");
	sched_cluster_sweep(r.c, CLUSTER_NODES);
	assert_non_null(sched_cluster_find(r.c, "n"));
	assert_null(sched_cluster_find(r.c, "m"));
	sched_cluster_count(r.c, &counts);
	assert_int_equal(counts.nodes, 1);
	assert_int_equal(counts.reports, 0);
	assert_int_equal(counts.pods, 2);
	rig_fini(&r);
}

static void pods_of_the_first_list_count_as_old(void **state)
{
	struct rig_pod p;
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_foreign_report(&r, "n", all_free, "x");
	sched_cluster_begin(r.c, CLUSTER_PODS);
	put(&r, "old", "n", 4, -1);
	assert_left(&r, "n", 16, 16);
	rig_pod(&p, "young", "n", 2, -1);
	p.bound.bound_ms = r.now_ms - 1;
	sched_cluster_put_pod(r.c, &p.bound, r.now_ms);
	assert_left(&r, "n", 14, 14);
	sched_cluster_sweep(r.c, CLUSTER_PODS);
	put(&r, "new", "n", 1, -1);
	assert_left(&r, "n", 13, 13);
	rig_fini(&r);
}

static void what_init_containers_leave_is_not_counted_twice(void **state)
{
	static const struct {
		int64_t init, app, left;
	} rows[] = {{4, 2, 12}, {2, 4, 12}, {4, 4, 12}};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct amount init = {RESOURCE_CPU, quantity_of(rows[i].init)};
		struct sched_container container[2];
		struct sched_taken taken[3];
		struct rig_pod p;
		struct rig r;

		rig_init(&r, &usual);
		rig_node(&r, "n");
		rig_report(&r, "n", 1, all_free, "");
		rig_pod(&p, "a", "n", rows[i].app, 0);
		container[0] = (struct sched_container){
			.name = "init", .kind = CONTAINER_INIT, .requests = {&init, 1}};
		container[1] = p.container;
		p.pod.container = container;
		p.pod.nr_containers = 2;
		taken[0] = (struct sched_taken){0, RESOURCE_CPU, init.q, "init"};
		taken[1] = p.taken[0];
		taken[2] = p.taken[1];
		p.bound.taken = taken;
		p.bound.nr_taken = 3;
		sched_cluster_put_pod(r.c, &p.bound, r.now_ms);
		assert_left(&r, "n", rows[i].left, 16);
		rig_fini(&r);
	}
}

static void a_numatopology_comes_and_goes(void **state)
{
	struct volcano_node volcano = {.topology_manager_policy = "restricted"};
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	assert_null(sched_cluster_find(r.c, "n")->volcano);
	sched_cluster_put_numatopology(r.c, "n", &volcano, malloc(1));
	sched_cluster_put_numatopology(r.c, "n", &volcano, malloc(1));
	assert_string_equal(
		sched_cluster_find(r.c, "n")->volcano->topology_manager_policy, "restricted");
	sched_cluster_put_numatopology(r.c, "n", NULL, NULL);
	assert_null(sched_cluster_find(r.c, "n")->volcano);
	sched_cluster_put_numatopology(r.c, "gone", NULL, NULL);
	sched_cluster_begin(r.c, CLUSTER_NUMATOPOLOGIES);
	sched_cluster_put_numatopology(r.c, "n", &volcano, malloc(1));
	sched_cluster_put_numatopology(r.c, "m", &volcano, malloc(1));
	sched_cluster_sweep(r.c, CLUSTER_NUMATOPOLOGIES);
	assert_non_null(sched_cluster_find(r.c, "n")->volcano);
	sched_cluster_begin(r.c, CLUSTER_NUMATOPOLOGIES);
	sched_cluster_sweep(r.c, CLUSTER_NUMATOPOLOGIES);
	assert_null(sched_cluster_find(r.c, "n")->volcano);
	rig_fini(&r);
}

static void victims_make_room_in_their_own_zones(void **state)
{
	static const struct {
		const char *victim[2];
		int64_t cpus;
		bool fits;
	} rows[] = {
		{{NULL}, 8, true}, /* zone 1 has 8 */
		{{NULL}, 9, false},
		{{"a"}, 10, true}, /* zone 0: 4 and its 6 */
		{{"a"}, 11, false},
		{{"b"}, 10, false},      /* zone 0: 4 and its 4 */
		{{"a", "b"}, 14, true},  /* both are of zone 0 */
		{{"a", "b"}, 15, false}, /* c waits there */
		{{"a", "c"}, 12, true},  /* c is not in the report: what it waits for is free */
		{{"a", "c"}, 13, false},
		{{"unhinted"}, 16, true}, /* nobody knows where it is */
		{{"nobody"}, 9, false},
	};
	const struct sched_profile profile = {
		.use = {{.plugin = sched_plugin_find("NodeResourceTopologyMatch"), .weight = 1}},
		.nr = 1};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t nr = 0;
		struct rig_pod p;
		struct rig r;

		rig_init(&r, &usual);
		rig_node(&r, "n");
		rig_report(&r, "n", 1, (const int64_t[]){6, 8}, "a b unhinted");
		put(&r, "a", "n", 6, 0);
		put(&r, "b", "n", 4, 0);
		put(&r, "c", "n", 2, 0);
		put(&r, "unhinted", "n", 8, -1);
		rig_pod(&p, "p", "", rows[i].cpus, -1);
		while (nr < 2 && rows[i].victim[nr])
			nr++;
		struct sched_plan *plan = sched_plan_new(&profile, &p.pod, &r.names);
		if (sched_cluster_fits_without(r.c, plan, "n", rows[i].victim, nr) != rows[i].fits)
			fail_msg("row %u", i);
		assert_false(sched_cluster_fits_without(r.c, plan, "m", rows[i].victim, nr));
		assert_left(&r, "n", 4, 8);
		sched_plan_free(plan);
		rig_fini(&r);
	}
}

static void no_victims_are_needed_after_a_pod_has_ended(void **state)
{
	const struct sched_profile profile = {
		.use = {{.plugin = sched_plugin_find("NodeResourceTopologyMatch"), .weight = 1}},
		.nr = 1};
	const char *ended = "a";

	(void)state;
	for (int64_t cpus = 12; cpus < 14; cpus++) {
		struct rig_pod p;
		struct rig r;

		rig_init(&r, &usual);
		rig_node(&r, "n");
		rig_report(&r, "n", 1, (const int64_t[]){8, 12}, "");
		put(&r, "a", "n", 4, 1);
		rig_report(&r, "n", 2, (const int64_t[]){8, 8}, "a");
		end(&r, "a", "n", 4, 1);
		rig_pod(&p, "p", "", cpus, -1);
		struct sched_plan *plan = sched_plan_new(&profile, &p.pod, &r.names);
		for (size_t nr = 0; nr < 2; nr++) /* nor does it give back twice */
			assert_int_equal(
				sched_cluster_fits_without(r.c, plan, "n", &ended, nr), cpus == 12);
		sched_plan_free(plan);
		rig_fini(&r);
	}
}

static void a_victim_gives_back_no_more_than_the_node_has(void **state)
{
	const struct sched_profile profile = {
		.use = {{.plugin = sched_plugin_find("NodeResourceTopologyMatch"), .weight = 1}},
		.nr = 1};
	const char *victim = "a";
	struct rig_pod p;
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_report(&r, "n", 1, all_free, "a");
	put(&r, "a", "n", 4, 0);
	rig_pod(&p, "p", "", RIG_CPUS + 1, -1);
	struct sched_plan *plan = sched_plan_new(&profile, &p.pod, &r.names);
	assert_false(sched_cluster_fits_without(r.c, plan, "n", &victim, 1));
	sched_plan_free(plan);
	rig_fini(&r);
}

static void a_pod_that_this_extender_bound_is_not_foreign(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_report(&r, "n", 1, all_free, "");
	assume(&r, "a", "n", 4, -1); /* without a hint */
	put(&r, "a", "n", 4, -1);
	assert_left(&r, "n", 12, 12);
	assert_false(sched_cluster_find(r.c, "n")->stale);
	rig_fini(&r);
}

static void a_node_without_object_report_and_pods_is_forgotten(void **state)
{
	struct sched_cluster_counts counts;
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_report(&r, "n", 1, all_free, ""); /* before the node */
	put(&r, "a", "n", 4, 0);
	assert_null(sched_cluster_find(r.c, "n"));
	rig_node(&r, "n");
	assert_left(&r, "n", 12, 16);
	assert_null(sched_cluster_fingerprint(r.c, "n"));
	rig_foreign_report(&r, "n", all_free, "a");
	assert_non_null(sched_cluster_fingerprint(r.c, "n"));
	sched_cluster_remove_report(r.c, "n");
	assert_int_equal(rig_cpus(&r, "n", 0), -1);
	sched_cluster_remove_node(r.c, "n");
	sched_cluster_remove_pod(r.c, "a");
	sched_cluster_remove_node(r.c, "n");
	sched_cluster_count(r.c, &counts);
	assert_int_equal(counts.nodes + counts.pods + counts.reports, 0);
	rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_assumed_pod_is_taken_from_its_zones_until_it_is_reported),
		cmocka_unit_test(a_failed_binding_is_forgotten),
		cmocka_unit_test(a_binding_that_is_never_confirmed_is_dropped_after_a_time),
		cmocka_unit_test(a_pod_with_unknown_zones_is_subtracted_from_all_zones),
		cmocka_unit_test(
			a_pod_without_exclusive_resources_is_not_waited_for_on_nodes_that_name_pods),
		cmocka_unit_test(a_matching_fingerprint_means_that_all_pods_are_in_the_report),
		cmocka_unit_test(a_later_report_is_believed_after_a_time),
		cmocka_unit_test(an_ended_or_deleted_pod_takes_nothing),
		cmocka_unit_test(an_ended_pod_gives_back_what_the_report_still_counts),
		cmocka_unit_test(an_ended_pod_gives_back_only_what_is_certainly_free),
		cmocka_unit_test(no_more_is_given_back_than_the_node_has),
		cmocka_unit_test(a_later_report_is_believed_about_an_end_after_a_time),
		cmocka_unit_test(a_list_shows_ended_pods_but_not_what_they_held),
		cmocka_unit_test(a_recreated_pod_gives_back_nothing_of_its_predecessor),
		cmocka_unit_test(pods_that_have_expired_cost_no_more_time),
		cmocka_unit_test(each_binding_expires_at_its_own_time),
		cmocka_unit_test(a_binding_in_the_future_counts_as_bound_now),
		cmocka_unit_test(foreign_pods_make_a_node_stale_as_configured),
		cmocka_unit_test(a_new_list_removes_what_it_lacks),
		cmocka_unit_test(pods_of_the_first_list_count_as_old),
		cmocka_unit_test(what_init_containers_leave_is_not_counted_twice),
		cmocka_unit_test(a_numatopology_comes_and_goes),
		cmocka_unit_test(victims_make_room_in_their_own_zones),
		cmocka_unit_test(no_victims_are_needed_after_a_pod_has_ended),
		cmocka_unit_test(a_victim_gives_back_no_more_than_the_node_has),
		cmocka_unit_test(a_pod_that_this_extender_bound_is_not_foreign),
		cmocka_unit_test(a_node_without_object_report_and_pods_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
