#include "sched_cluster_cases.h"

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
	put(&r, "a", "n", 4, 1); /* the watch sends it */
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

static void a_renewed_binding_counts_from_then_on(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_report(&r, "n", 1, all_free, "");
	assume(&r, "a", "n", 4, 0);
	put(&r, "b", "n", 1, 1);
	sched_cluster_renew(r.c, "a", r.now_ms + RIG_ASSUME_MS - 1);
	sched_cluster_renew(r.c, "b", r.now_ms + RIG_ASSUME_MS - 1); /* it is bound: unchanged */
	sched_cluster_renew(r.c, "nobody", r.now_ms);
	sched_cluster_expire(r.c, r.now_ms + 2 * RIG_ASSUME_MS - 2);
	assert_left(&r, "n", 12, 15);
	sched_cluster_expire(r.c, r.now_ms + 2 * RIG_ASSUME_MS - 1);
	assert_left(&r, "n", 16, 15);
	rig_fini(&r);
}

static void a_confirmed_binding_is_neither_assumed_again_nor_forgotten(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_node(&r, "m");
	rig_report(&r, "n", 1, all_free, "");
	rig_report(&r, "m", 1, all_free, "");
	assume(&r, "a", "n", 4, 0);
	assert_string_equal(sched_cluster_assumed_on(r.c, "a"), "n");
	assert_null(sched_cluster_node_of(r.c, "a"));
	sched_cluster_confirm(r.c, "a", true);
	assert_string_equal(sched_cluster_assumed_on(r.c, "a"), "n");
	assert_string_equal(sched_cluster_node_of(r.c, "a"), "n");
	assume(&r, "a", "m", 4, 0);
	assume(&r, "a", "n", 4, 1);
	sched_cluster_forget(r.c, "a");
	sched_cluster_expire(r.c, r.now_ms + 2 * RIG_ASSUME_MS);
	assert_left(&r, "n", 12, 16);
	assert_left(&r, "m", 16, 16);
	put(&r, "a", "n", 4, 0);
	assert_left(&r, "n", 12, 16);
	sched_cluster_remove_pod(r.c, "a");
	assert_left(&r, "n", 16, 16);
	rig_fini(&r);
}

static void a_binding_by_somebody_else_counts_where_the_node_would_put_it(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_report(&r, "n", 1, all_free, "");
	assume(&r, "a", "n", 4, 1);
	assert_left(&r, "n", 16, 12);
	sched_cluster_confirm(r.c, "a", false);
	assert_left(&r, "n", 12, 16);
	rig_fini(&r);
}

static void a_confirmed_binding_ends_when_no_list_has_it_for_a_time(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, &usual);
	rig_node(&r, "n");
	rig_report(&r, "n", 1, all_free, "");
	assume(&r, "a", "n", 4, 0);
	sched_cluster_confirm(r.c, "a", true);
	sched_cluster_begin(r.c, CLUSTER_PODS); /* it may be older than the binding */
	assume(&r, "b", "n", 1, 0);
	sched_cluster_confirm(r.c, "b", true);
	assume(&r, "c", "n", 2, 1);
	sched_cluster_sweep(r.c, CLUSTER_PODS);
	assert_left(&r, "n", 11, 14);
	sched_cluster_begin(r.c, CLUSTER_PODS);
	sched_cluster_note_unbound(r.c, "b"); /* it is in that list, from before it was bound */
	sched_cluster_note_unbound(r.c, "nobody");
	sched_cluster_sweep(r.c, CLUSTER_PODS);
	sched_cluster_expire(r.c, r.now_ms + RIG_ASSUME_MS);
	assert_left(&r, "n", 15, 16); /* a and c were in no list, and c was not confirmed either */
	sched_cluster_begin(r.c, CLUSTER_PODS);
	sched_cluster_sweep(r.c, CLUSTER_PODS);
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
		{false, false, 1, RIG_ASSUME_MS, 12}, /* the same one: says nothing new */
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
		cmocka_unit_test(a_renewed_binding_counts_from_then_on),
		cmocka_unit_test(a_confirmed_binding_is_neither_assumed_again_nor_forgotten),
		cmocka_unit_test(a_binding_by_somebody_else_counts_where_the_node_would_put_it),
		cmocka_unit_test(a_confirmed_binding_ends_when_no_list_has_it_for_a_time),
		cmocka_unit_test(a_pod_with_unknown_zones_is_subtracted_from_all_zones),
		cmocka_unit_test(
			a_pod_without_exclusive_resources_is_not_waited_for_on_nodes_that_name_pods),
		cmocka_unit_test(a_matching_fingerprint_means_that_all_pods_are_in_the_report),
		cmocka_unit_test(a_later_report_is_believed_after_a_time),
		cmocka_unit_test(a_binding_in_the_future_counts_as_bound_now),
		cmocka_unit_test(foreign_pods_make_a_node_stale_as_configured),
		cmocka_unit_test(a_new_list_removes_what_it_lacks),
		cmocka_unit_test(pods_of_the_first_list_count_as_old),
		cmocka_unit_test(what_init_containers_leave_is_not_counted_twice),
		cmocka_unit_test(a_numatopology_comes_and_goes),
		cmocka_unit_test(a_pod_that_this_extender_bound_is_not_foreign),
		cmocka_unit_test(a_node_without_object_report_and_pods_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
