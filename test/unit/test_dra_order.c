/* Events in an unusual order, over the kubelet's socket and the runtime's: a claim is unprepared
 * between create and start, and events name containers that the daemon does not know. */
#include "dra_cases.h"

/* Unprepare amid a creation */

static struct box *create_on_claim(struct rig *r, unsigned i)
{
	struct box *b = name_box(r, i, "p0", 0, "numafit.io/claim=u1-0");

	runtime_calls(r, NRI_CALL_CREATE, b);
	assert_string_equal(r->refusal, "");
	return b;
}

/* Unprepare comes; the container starts all the same, and ends. */
static void unprepare_amid_creation(enum nri_call last)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	assert_prepared(r, prepare(r, c), c);
	struct box *b = create_on_claim(r, 0);
	if (last == NRI_CALL_POST_CREATE)
		runtime_calls(r, NRI_CALL_POST_CREATE, b);
	const struct dra_call *call = begin_unprepare(r, c);
	let_pass(r, 50);
	assert_false(call->over);
	assert_held(r, 1);
	/* seven CPUs of the NUMA node would be free but for the claim */
	struct box *other = create(r, 1, "other", 7, NULL);
	if (last == NRI_CALL_CREATE)
		runtime_calls(r, NRI_CALL_POST_CREATE, b);
	runtime_calls(r, NRI_CALL_POST_START, b);
	if (!*r->refusal)
		other->c.exclusive = true;
	b->c.exclusive = true;
	fake_container_assert_apart(&b->c, &other->c);
	assert_false(call->over);
	stop(r, b);
	UNTIL(r, call->over);
	assert_unprepared(r, call, "u1");
	assert_held(r, 0);
	rig_free(r);
}

static void unprepare_waits_for_a_container_that_is_being_created(void **state)
{
	(void)state;
	unprepare_amid_creation(NRI_CALL_CREATE);
}

static void unprepare_waits_for_a_container_that_is_about_to_start(void **state)
{
	(void)state;
	unprepare_amid_creation(NRI_CALL_POST_CREATE);
}

static void unprepare_names_the_container_that_was_created_and_does_not_end(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	struct box *b = create_on_claim(r, 0);
	const struct dra_call *call = begin_unprepare(r, c);
	UNTIL(r, r->d.dra->tasks.nr && *r->d.dra->tasks.at[0]->why);
	time_is_up(r, "u1");
	UNTIL(r, call->over);
	assert_failed(call,
		"numafit: container main of pod shop/p0 was created on it, and has not ended");
	assert_held(r, 1);
	/* its sandbox ends, as it does before a kubelet unprepares; the kubelet tries again */
	b->c.runs = false;
	runtime_calls(r, NRI_CALL_STOP_POD, b);
	assert_unprepared(r, unprepare(r, c), "u1");
	assert_held(r, 0);
	rig_free(r);
}

/* Containers that the daemon does not know */

/* A container that runs everywhere, and that no event has named. */
static struct box *unknown_box(
	struct rig *r, unsigned i, const char *pod, unsigned cpus, const char *cdi)
{
	struct box *b = name_box(r, i, pod, cpus, cdi);

	b->c.runs = true;
	(void)strcpy(b->c.cpus, "0-15");
	(void)strcpy(b->c.mems, "0,4");
	return b;
}

static const enum nri_call reports[] = {NRI_CALL_POST_CREATE, NRI_CALL_POST_START, NRI_CALL_UPDATE};

static void each_event_takes_over_a_container_on_its_claim(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof reports / sizeof *reports; i++) {
		struct rig *r = begin();
		const struct api_claim *c = put_claim(r, 0, four_on_4);

		assert_prepared(r, prepare(r, c), c);
		struct box *b = unknown_box(r, 0, "p0", 0, "numafit.io/claim=u1-0");
		runtime_calls(r, reports[i], b);
		const struct holding *h = ledger_find(ledger_of(r), "c0");
		assert_true(h && h->decision.within_claims);
		UNTIL(r, cpuset_equal((struct cpuset[]){fake_container_cpus(&b->c)},
				 &held(r, c, 0)->decision.cpus));
		stop(r, b);
		assert_unprepared(r, unprepare(r, c), "u1");
		assert_held(r, 0);
		rig_free(r);
	}
}

static void each_event_takes_over_a_container_with_cpus_of_its_own(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof reports / sizeof *reports; i++) {
		struct rig *r = begin();
		struct box *b = unknown_box(r, 0, "plain", 3, NULL);

		runtime_calls(r, reports[i], b);
		const struct holding *h = ledger_find(ledger_of(r), "c0");
		assert_true(h && h->decision.exclusive);
		const struct cpuset own = h->decision.cpus;
		assert_int_equal(cpuset_count(&own), 3);
		UNTIL(r, cpuset_equal((struct cpuset[]){fake_container_cpus(&b->c)}, &own));
		struct box *next = create_plain(r, 1, "next", 3);
		b->c.exclusive = next->c.exclusive = true;
		fake_container_assert_apart(&b->c, &next->c);
		stop(r, b);
		assert_null(ledger_find(ledger_of(r), "c0"));
		rig_free(r);
	}
}

/* In containerd the end of a short-lived container can be reported before its start. */
static void a_container_whose_end_was_reported_is_not_taken_over(void **state)
{
	struct rig *r = begin();
	struct box *b = name_box(r, 0, "plain", 3, NULL);

	(void)state;
	runtime_calls(r, NRI_CALL_CREATE, b);
	runtime_calls(r, NRI_CALL_POST_CREATE, b);
	stop(r, b);
	runtime_calls(r, NRI_CALL_POST_START, b);
	assert_null(ledger_find(ledger_of(r), "c0"));
	runtime_calls(r, NRI_CALL_UPDATE, b);
	assert_null(ledger_find(ledger_of(r), "c0"));
	/* nor is one that no other event has named */
	runtime_calls(r, NRI_CALL_STOP, name_box(r, 1, "gone", 3, NULL));
	runtime_calls(r, NRI_CALL_POST_START, &r->box[1]);
	assert_int_equal(ledger_count(ledger_of(r)), 0);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unprepare_waits_for_a_container_that_is_being_created),
		cmocka_unit_test(unprepare_waits_for_a_container_that_is_about_to_start),
		cmocka_unit_test(unprepare_names_the_container_that_was_created_and_does_not_end),
		cmocka_unit_test(each_event_takes_over_a_container_on_its_claim),
		cmocka_unit_test(each_event_takes_over_a_container_with_cpus_of_its_own),
		cmocka_unit_test(a_container_whose_end_was_reported_is_not_taken_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
