/* Pods that end, expire or are victims: what they give back, and when a report is believed about
 * it. */
#include "sched_cluster_cases.h"

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
		p.pod.uid = "successor"; /* in the node's report, as far as is known */
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

static void pods_expire_in_time_though_the_clock_is_set_back(void **state)
{
	enum { BACK_MS = 100 * RIG_ASSUME_MS };
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	r.now_ms += 2 * BACK_MS;
	rig_node(&r, "n");
	rig_report(&r, "n", 1, all_free, "");
	put(&r, "c", "n", 1, 1);
	r.now_ms += RIG_ASSUME_MS;
	sched_cluster_expire(r.c, r.now_ms);
	assume(&r, "a", "n", 4, 0);
	r.now_ms++;
	put(&r, "b", "n", 2, 1);
	assert_left(&r, "n", 12, 13);
	r.now_ms -= BACK_MS;
	sched_cluster_expire(r.c, r.now_ms);
	r.now_ms += RIG_ASSUME_MS - 1;
	sched_cluster_expire(r.c, r.now_ms);
	assert_left(&r, "n", 12, 13);
	r.now_ms++;
	sched_cluster_expire(r.c, r.now_ms);
	assert_left(&r, "n", 16, 13); /* the report is from before the other two were bound */
	rig_report(&r, "n", 2, all_free, "");
	assert_left(&r, "n", 16, 16);
	rig_fini(&r);
}

/* The pods are not followed: the node's reports alone say that it has come, and gone. */
static void a_confirmed_binding_that_a_report_named_ends_with_that_name(void **state)
{
	static const struct {
		bool confirmed, named_before, reported;
		int64_t left;
	} rows[] = {
		{true, false, true, RIG_CPUS},
		{true, false, false, RIG_CPUS - 4}, /* it has not come yet */
		{false, false, true, RIG_CPUS - 4}, /* nor is it known to be bound */
		{true, true, true, RIG_CPUS - 4},   /* another pod of its name has gone */
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		const int64_t less[RIG_ZONES] = {RIG_CPUS - 4, RIG_CPUS};
		struct rig r;

		rig_init(&r, &usual);
		rig_node(&r, "n");
		rig_report(&r, "n", 1, rows[i].named_before ? less : all_free,
			rows[i].named_before ? "a" : "");
		assume(&r, "a", "n", 4, 0);
		if (rows[i].confirmed)
			sched_cluster_confirm(r.c, "a", true);
		if (rows[i].reported) {
			rig_report(&r, "n", 2, less, "a");
			assert_left(&r, "n", RIG_CPUS - 4, RIG_CPUS);
		}
		rig_report(&r, "n", 3, all_free, "");
		if (rig_cpus(&r, "n", 0) != rows[i].left || rig_cpus(&r, "n", 1) != RIG_CPUS)
			fail_msg("row %u: %lld, %lld", i, (long long)rig_cpus(&r, "n", 0),
				(long long)rig_cpus(&r, "n", 1));
		rig_fini(&r);
	}
}

static void each_binding_expires_at_its_own_time(void **state)
{
	static const int64_t bound_ms[] = {5, 3, 9, 1, 7, 3}; /* as they are reported */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ended_or_deleted_pod_takes_nothing),
		cmocka_unit_test(an_ended_pod_gives_back_what_the_report_still_counts),
		cmocka_unit_test(an_ended_pod_gives_back_only_what_is_certainly_free),
		cmocka_unit_test(no_more_is_given_back_than_the_node_has),
		cmocka_unit_test(a_later_report_is_believed_about_an_end_after_a_time),
		cmocka_unit_test(a_list_shows_ended_pods_but_not_what_they_held),
		cmocka_unit_test(a_recreated_pod_gives_back_nothing_of_its_predecessor),
		cmocka_unit_test(pods_that_have_expired_cost_no_more_time),
		cmocka_unit_test(pods_expire_in_time_though_the_clock_is_set_back),
		cmocka_unit_test(a_confirmed_binding_that_a_report_named_ends_with_that_name),
		cmocka_unit_test(each_binding_expires_at_its_own_time),
		cmocka_unit_test(victims_make_room_in_their_own_zones),
		cmocka_unit_test(no_victims_are_needed_after_a_pod_has_ended),
		cmocka_unit_test(a_victim_gives_back_no_more_than_the_node_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
