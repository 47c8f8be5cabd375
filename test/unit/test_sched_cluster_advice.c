/* A hint is its pod's author's to change. What it says counts only where it adds up to what the pod
 * asks for, and only as it was when the pod was bound. */
#include "cluster_rig.h"

enum { ASKS = 4 };

static const int64_t all_free[RIG_ZONES] = {RIG_CPUS, RIG_CPUS};
static const struct sched_cluster_args usual = {.over_reserve = true};

/* A pod of ASKS CPUs whose hint says so many of each zone. */
static void claim(struct rig_pod *p, const char *name, int64_t first, int64_t second)
{
	const int64_t cpus[RIG_ZONES] = {first, second};

	rig_pod(p, name, "n", ASKS, 0);
	p->bound.nr_taken = 0;
	p->bound.taken = p->claims;
	for (unsigned z = 0; z < RIG_ZONES; z++)
		if (cpus[z]) /* all its memory is with the first of them */
			p->claims[p->bound.nr_taken++] =
				(struct sched_taken){z, RESOURCE_CPU, quantity_of(cpus[z]), "main"};
	p->claims[p->bound.nr_taken++] =
		(struct sched_taken){first ? 0 : 1, RESOURCE_MEMORY, quantity_of(RIG_GIB), "main"};
}

static void put(struct rig *r, struct rig_pod *p)
{
	sched_cluster_put_pod(r->c, &p->bound, r->now_ms);
}

static void end(struct rig *r, struct rig_pod *p)
{
	p->bound.ended = true;
	put(r, p);
}

static void start(struct rig *r)
{
	rig_init(r, &usual);
	rig_node(r, "n");
	rig_report(r, "n", 1, all_free, "");
}

static void an_ended_pod_gives_back_no_more_than_it_asked_for(void **state)
{
	struct rig_pod p;
	struct rig r;

	(void)state;
	start(&r);
	claim(&p, "a", ASKS, ASKS); /* in every zone */
	put(&r, &p);
	assert_left(&r, "n", 12, 12); /* nobody knows where */
	rig_report(&r, "n", 2, (const int64_t[]){4, 4}, "a");
	end(&r, &p);
	assert_left(&r, "n", 4, 4);
	rig_fini(&r);
}

static void a_hint_is_believed_as_it_was_when_the_pod_was_bound(void **state)
{
	static const struct {
		const char *when;
		bool before_report, after_report, at_end;
	} rows[] = {
		{"before the report names it", true, false, false},
		{"after the report names it", false, true, false},
		{"with its end", false, false, true},
		{"all the time", true, true, true},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rig_pod honest, forged;
		struct rig r;

		start(&r);
		claim(&honest, "a", ASKS, 0);
		claim(&forged, "a", 0, ASKS);
		put(&r, &honest);
		if (rows[i].before_report)
			put(&r, &forged);
		assert_left(&r, "n", 12, 16);
		rig_report(&r, "n", 2, (const int64_t[]){4, 4}, "a");
		if (rows[i].after_report)
			put(&r, &forged);
		end(&r, rows[i].at_end ? &forged : &honest);
		if (rig_cpus(&r, "n", 0) != 8 || rig_cpus(&r, "n", 1) != 4)
			fail_msg("changed %s: %lld, %lld", rows[i].when,
				(long long)rig_cpus(&r, "n", 0), (long long)rig_cpus(&r, "n", 1));
		rig_fini(&r);
	}
}

static void our_own_binding_is_believed_whatever_the_watch_reports(void **state)
{
	struct rig_pod honest, forged;
	struct rig r;

	(void)state;
	start(&r);
	claim(&honest, "a", ASKS, 0);
	claim(&forged, "a", 0, ASKS);
	sched_cluster_assume(r.c, &honest.bound, r.now_ms);
	sched_cluster_confirm(r.c, "a", true);
	put(&r, &forged);
	assert_left(&r, "n", 12, 16);
	rig_report(&r, "n", 2, (const int64_t[]){4, 4}, "a");
	end(&r, &forged);
	assert_left(&r, "n", 8, 4);
	rig_fini(&r);
}

/* kube-scheduler's own binder, or another extender, has bound it to the node that we chose. */
static void another_ones_binding_to_the_same_node_is_not_taken_for_ours(void **state)
{
	static const struct {
		bool hint, listed;
		int zone; /* of the hint that the pod has when it is bound */
		int64_t left[RIG_ZONES];
	} rows[] = {
		{false, false, 0, {12, 16}}, /* from wherever there is room: the lowest zone */
		{false, true, 0, {12, 16}},
		{true, false, 0, {12, 16}},
		{true, false, 1, {16, 12}}, /* as posted */
		{true, true, 1, {16, 12}},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rig_pod ours, bound;
		struct rig r;

		start(&r);
		rig_pod(&ours, "a", "n", ASKS, 1);
		sched_cluster_assume(r.c, &ours.bound, r.now_ms);
		assert_left(&r, "n", 16, 12);
		rig_pod(&bound, "a", "n", ASKS, rows[i].hint ? rows[i].zone : -1);
		bound.bound.pending = true;
		bound.bound.seen_bound = false; /* that hint, or none, was there before */
		if (rows[i].listed)
			sched_cluster_begin(r.c, CLUSTER_PODS);
		put(&r, &bound);
		if (rows[i].listed)
			sched_cluster_sweep(r.c, CLUSTER_PODS);
		if (rig_cpus(&r, "n", 0) != rows[i].left[0] ||
			rig_cpus(&r, "n", 1) != rows[i].left[1])
			fail_msg("row %u: %lld, %lld", i, (long long)rig_cpus(&r, "n", 0),
				(long long)rig_cpus(&r, "n", 1));
		rig_fini(&r);
	}
}

/* One that was bound without a hint gets none later. */
static void a_hint_written_after_the_binding_is_ignored(void **state)
{
	struct rig_pod without, forged;
	struct rig r;

	(void)state;
	for (unsigned assumed = 0; assumed < 2; assumed++) {
		start(&r);
		rig_pod(&without, "a", "n", ASKS, -1);
		claim(&forged, "a", 0, ASKS);
		if (assumed)
			sched_cluster_assume(r.c, &without.bound, r.now_ms);
		else
			put(&r, &without);
		sched_cluster_confirm(r.c, "a", true);
		put(&r, &forged);
		assert_left(&r, "n", 12, 12);
		rig_report(&r, "n", 2, (const int64_t[]){4, 4}, "a");
		end(&r, &forged);
		assert_left(&r, "n", 4, 4);
		rig_fini(&r);
	}
}

static void a_hint_that_does_not_add_up_to_the_request_is_ignored(void **state)
{
	static const struct {
		const char *what;
		struct sched_taken taken[4];
		size_t nr;
		int64_t left[RIG_ZONES];
	} rows[] = {
		{"all of it",
			{{1, RESOURCE_CPU, {4, 0}, "main"},
				{1, RESOURCE_MEMORY, {RIG_GIB, 0}, "main"}},
			2, {16, 12}},
		{"of two zones",
			{{0, RESOURCE_CPU, {1, 0}, "main"}, {1, RESOURCE_CPU, {3, 0}, "main"},
				{1, RESOURCE_MEMORY, {RIG_GIB, 0}, "main"}},
			3, {15, 13}},
		{"as a whole",
			{{1, RESOURCE_CPU, {4, 0}, "*"}, {1, RESOURCE_MEMORY, {RIG_GIB, 0}, "*"}},
			2, {16, 12}},
		{"less",
			{{1, RESOURCE_CPU, {3, 0}, "main"},
				{1, RESOURCE_MEMORY, {RIG_GIB, 0}, "main"}},
			2, {12, 12}},
		{"more",
			{{1, RESOURCE_CPU, {5, 0}, "main"},
				{1, RESOURCE_MEMORY, {RIG_GIB, 0}, "main"}},
			2, {12, 12}},
		{"more in two zones",
			{{0, RESOURCE_CPU, {4, 0}, "main"}, {1, RESOURCE_CPU, {4, 0}, "main"},
				{1, RESOURCE_MEMORY, {RIG_GIB, 0}, "main"}},
			3, {12, 12}},
		{"memory alone", {{1, RESOURCE_MEMORY, {RIG_GIB, 0}, "main"}}, 1, {12, 12}},
		{"CPUs alone", {{1, RESOURCE_CPU, {4, 0}, "main"}}, 1, {12, 12}},
		{"of another container",
			{{1, RESOURCE_CPU, {4, 0}, "other"},
				{1, RESOURCE_MEMORY, {RIG_GIB, 0}, "main"}},
			2, {12, 12}},
		{"twice",
			{{1, RESOURCE_CPU, {4, 0}, "main"}, {1, RESOURCE_CPU, {4, 0}, "*"},
				{1, RESOURCE_MEMORY, {RIG_GIB, 0}, "main"}},
			3, {12, 12}},
		{"and less than nothing",
			{{0, RESOURCE_CPU, {-4, 0}, "main"}, {1, RESOURCE_CPU, {8, 0}, "main"},
				{1, RESOURCE_MEMORY, {RIG_GIB, 0}, "main"}},
			3, {12, 12}},
		{"with more than there is",
			{{0, RESOURCE_CPU, {INT64_MAX, 0}, "main"},
				{1, RESOURCE_CPU, {INT64_MAX, 0}, "main"},
				{1, RESOURCE_MEMORY, {RIG_GIB, 0}, "main"}},
			3, {12, 12}},
		{"what it does not ask for",
			{{1, RESOURCE_CPU, {4, 0}, "main"}, {1, RESOURCE_PODS, {1, 0}, "main"},
				{1, RESOURCE_MEMORY, {RIG_GIB, 0}, "main"}},
			3, {12, 12}},
		{"of a zone that is none",
			{{ZONES_MAX, RESOURCE_CPU, {4, 0}, "main"},
				{1, RESOURCE_MEMORY, {RIG_GIB, 0}, "main"}},
			2, {12, 12}},
		{"of a zone that the node has not",
			{{9, RESOURCE_CPU, {4, 0}, "main"},
				{1, RESOURCE_MEMORY, {RIG_GIB, 0}, "main"}},
			2, {12, 12}},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rig_pod p;
		struct rig r;

		start(&r);
		rig_pod(&p, "a", "n", ASKS, 1);
		p.bound.taken = rows[i].taken;
		p.bound.nr_taken = rows[i].nr;
		put(&r, &p);
		if (rig_cpus(&r, "n", 0) != rows[i].left[0] ||
			rig_cpus(&r, "n", 1) != rows[i].left[1])
			fail_msg("%s: %lld, %lld", rows[i].what, (long long)rig_cpus(&r, "n", 0),
				(long long)rig_cpus(&r, "n", 1));
		rig_fini(&r);
	}
}

/* The node may have seen another hint, or have had no room where it says. */
static void a_pod_that_its_node_placed_elsewhere_gives_back_nothing(void **state)
{
	static const struct {
		uint64_t zones[2]; /* in two reports */
		int64_t left[RIG_ZONES];
	} rows[] = {
		{{1, 1}, {8, 4}},
		{{2, 2}, {4, 4}},
		{{3, 3}, {4, 4}},
		{{0, 0}, {4, 4}},
		{{1, 2}, {4, 4}}, /* it was moved */
		{{2, 1}, {4, 4}},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rig_pod p;
		struct rig r;

		start(&r);
		claim(&p, "a", ASKS, 0);
		put(&r, &p);
		assert_left(&r, "n", 12, 16);
		for (unsigned k = 0; k < 2; k++) {
			rig_report_zones(
				&r, "n", 2 + k, (const int64_t[]){4, 4}, "a", rows[i].zones[k]);
			assert_left(&r, "n", 4, 4);
		}
		end(&r, &p);
		if (rig_cpus(&r, "n", 0) != rows[i].left[0] ||
			rig_cpus(&r, "n", 1) != rows[i].left[1])
			fail_msg("row %u: %lld, %lld", i, (long long)rig_cpus(&r, "n", 0),
				(long long)rig_cpus(&r, "n", 1));
		rig_fini(&r);
	}
}

/* Who starts does not know what was patched before. */
static void a_hint_that_is_listed_counts_until_the_report_names_the_pod(void **state)
{
	struct rig_pod p;
	struct rig r;

	(void)state;
	for (unsigned is_first = 0; is_first < 2; is_first++) {
		start(&r);
		claim(&p, "a", 0, ASKS);
		p.bound.bound_ms = r.now_ms;
		if (is_first)
			rig_report(&r, "n", 2, (const int64_t[]){4, 4}, "a");
		sched_cluster_begin(r.c, CLUSTER_PODS);
		put(&r, &p);
		sched_cluster_sweep(r.c, CLUSTER_PODS);
		if (!is_first) {
			assert_left(&r, "n", 16, 12);
			rig_report(&r, "n", 2, (const int64_t[]){4, 4}, "a");
		}
		assert_left(&r, "n", 4, 4);
		end(&r, &p);
		assert_left(&r, "n", 4, 4);
		rig_fini(&r);
	}
}

static void a_pod_that_is_first_seen_with_its_end_gives_back_nothing(void **state)
{
	struct rig_pod p;
	struct rig r;

	(void)state;
	start(&r);
	rig_report(&r, "n", 2, (const int64_t[]){4, 4}, "a");
	claim(&p, "a", 0, ASKS);
	end(&r, &p);
	assert_left(&r, "n", 4, 4);
	rig_fini(&r);
}

/* The report may mean the one before, which nobody has heard the end of. */
static void a_pod_that_was_named_before_it_was_bound_gives_back_nothing(void **state)
{
	struct rig_pod p;
	struct rig r;

	(void)state;
	start(&r);
	rig_report(&r, "n", 2, (const int64_t[]){4, 4}, "a");
	claim(&p, "a", ASKS, 0);
	sched_cluster_assume(r.c, &p.bound, r.now_ms);
	put(&r, &p);
	rig_report(&r, "n", 3, (const int64_t[]){4, 4}, "a");
	end(&r, &p);
	assert_left(&r, "n", 4, 4);
	rig_fini(&r);
	start(&r);
	rig_report(&r, "n", 2, (const int64_t[]){4, 4}, "a");
	claim(&p, "a", ASKS, 0);
	sched_cluster_assume(r.c, &p.bound, r.now_ms);
	put(&r, &p);
	rig_report(&r, "n", 3, (const int64_t[]){8, 4}, ""); /* that one is gone */
	assert_left(&r, "n", 4, 4);
	rig_report(&r, "n", 4, (const int64_t[]){4, 4}, "a"); /* this is ours */
	end(&r, &p);
	assert_left(&r, "n", 8, 4);
	rig_fini(&r);
}

static void the_hint_of_a_resized_pod_is_not_believed(void **state)
{
	static const int64_t asks[] = {ASKS - 1, ASKS + 1};

	(void)state;
	for (unsigned i = 0; i < sizeof asks / sizeof *asks; i++) {
		struct rig_pod p;
		struct rig r;

		start(&r);
		claim(&p, "a", ASKS, 0);
		put(&r, &p);
		rig_report(&r, "n", 2, (const int64_t[]){4, 4}, "a");
		p.asks[0].q = quantity_of(asks[i]); /* it is resized */
		put(&r, &p);
		end(&r, &p);
		assert_left(&r, "n", 4, 4);
		rig_fini(&r);
	}
}

static void a_uid_on_another_node_or_of_another_name_is_another_pod(void **state)
{
	struct rig_pod p;
	struct rig r;

	(void)state;
	for (unsigned is_renamed = 0; is_renamed < 2; is_renamed++) {
		start(&r);
		rig_node(&r, "m");
		rig_report(&r, "m", 1, all_free, "");
		claim(&p, "a", ASKS, 0);
		put(&r, &p);
		if (is_renamed)
			p.pod.name = "b";
		else
			p.bound.node = "m";
		put(&r, &p);
		rig_report(&r, p.bound.node, 2, (const int64_t[]){4, 4}, p.pod.name);
		end(&r, &p);
		assert_left(&r, p.bound.node, 4, 4);
		rig_fini(&r);
	}
}

/* A zone that is full by then is not where it will lie. */
static void a_hint_for_a_zone_without_room_holds_its_request_elsewhere(void **state)
{
	struct rig_pod p;
	struct rig r;

	(void)state;
	for (unsigned pending = 0; pending < 2; pending++) {
		start(&r);
		rig_report(&r, "n", 2, (const int64_t[]){2, 16}, "x");
		claim(&p, "a", ASKS, 0);
		p.bound.pending = pending;
		put(&r, &p);
		if (pending) /* the node will put it where there is room */
			assert_left(&r, "n", 2, 12);
		else
			assert_left(&r, "n", 0, 12);
		rig_fini(&r);
	}
}

/* Bound by its author, who has set spec.nodeName, and its image is not there. */
static void a_pod_that_never_starts_holds_its_request_once_and_makes_no_node_stale(void **state)
{
	static const struct {
		int64_t reported[RIG_ZONES], left[RIG_ZONES];
	} rows[] = {
		{{16, 16}, {12, 16}},
		{{3, 16}, {3, 12}}, /* where it fits */
		{{3, 3}, {0, 2}},   /* or, when it fits nowhere, from the first one on */
		{{1, 1}, {0, 0}},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rig_pod p;
		struct rig r;

		start(&r);
		rig_report(&r, "n", 2, rows[i].reported, "x");
		rig_pod(&p, "a", "n", ASKS, -1);
		p.bound.pending = true;
		put(&r, &p);
		for (unsigned days = 0; days < 3; days++) {
			assert_false(sched_cluster_find(r.c, "n")->stale);
			if (rig_cpus(&r, "n", 0) != rows[i].left[0] ||
				rig_cpus(&r, "n", 1) != rows[i].left[1])
				fail_msg("row %u: %lld, %lld", i, (long long)rig_cpus(&r, "n", 0),
					(long long)rig_cpus(&r, "n", 1));
			r.now_ms += 10 * RIG_ASSUME_MS;
			sched_cluster_expire(r.c, r.now_ms);
			rig_report(&r, "n", 3 + days, rows[i].reported, "x");
		}
		rig_fini(&r);
	}
}

/* All of them hold what they ask for, however many there are. */
static void thousands_of_pods_that_never_start_hold_no_more_than_there_is(void **state)
{
	enum { MANY = 2000 };
	struct rig_pod p;
	char name[16];
	struct rig r;

	(void)state;
	start(&r);
	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof name, "p%u", i);
		rig_pod(&p, name, "n", 1, -1);
		p.bound.pending = true;
		put(&r, &p);
		if (i < RIG_CPUS)
			assert_left(&r, "n", RIG_CPUS - 1 - i, RIG_CPUS);
	}
	assert_left(&r, "n", 0, 0);
	for (unsigned i = 0; i < MANY - 3; i++) {
		(void)snprintf(name, sizeof name, "p%u", i);
		sched_cluster_remove_pod(r.c, name);
	}
	assert_left(&r, "n", RIG_CPUS - 3, RIG_CPUS);
	rig_fini(&r);
}

/* Others' exporters write nothing while nothing changes. */
static void a_pod_of_others_makes_no_node_stale_for_ever(void **state)
{
	(void)state;
	for (unsigned pending = 0; pending < 2; pending++) {
		struct rig_pod p;
		struct rig r;

		rig_init(&r, &usual);
		rig_node(&r, "n");
		rig_foreign_report(&r, "n", all_free, "x");
		rig_pod(&p, "a", "n", ASKS, -1);
		p.bound.pending = pending;
		put(&r, &p);
		assert_true(sched_cluster_find(r.c, "n")->stale);
		sched_cluster_expire(r.c, r.now_ms + RIG_ASSUME_MS - 1);
		assert_true(sched_cluster_find(r.c, "n")->stale);
		sched_cluster_expire(r.c, r.now_ms + RIG_ASSUME_MS);
		assert_false(sched_cluster_find(r.c, "n")->stale);
		assert_left(&r, "n", 12, 12); /* it is not in the report yet */
		rig_fini(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ended_pod_gives_back_no_more_than_it_asked_for),
		cmocka_unit_test(a_hint_is_believed_as_it_was_when_the_pod_was_bound),
		cmocka_unit_test(our_own_binding_is_believed_whatever_the_watch_reports),
		cmocka_unit_test(another_ones_binding_to_the_same_node_is_not_taken_for_ours),
		cmocka_unit_test(a_hint_written_after_the_binding_is_ignored),
		cmocka_unit_test(a_hint_that_does_not_add_up_to_the_request_is_ignored),
		cmocka_unit_test(a_pod_that_its_node_placed_elsewhere_gives_back_nothing),
		cmocka_unit_test(a_hint_that_is_listed_counts_until_the_report_names_the_pod),
		cmocka_unit_test(a_pod_that_is_first_seen_with_its_end_gives_back_nothing),
		cmocka_unit_test(a_pod_that_was_named_before_it_was_bound_gives_back_nothing),
		cmocka_unit_test(the_hint_of_a_resized_pod_is_not_believed),
		cmocka_unit_test(a_uid_on_another_node_or_of_another_name_is_another_pod),
		cmocka_unit_test(a_hint_for_a_zone_without_room_holds_its_request_elsewhere),
		cmocka_unit_test(
			a_pod_that_never_starts_holds_its_request_once_and_makes_no_node_stale),
		cmocka_unit_test(thousands_of_pods_that_never_start_hold_no_more_than_there_is),
		cmocka_unit_test(a_pod_of_others_makes_no_node_stale_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
