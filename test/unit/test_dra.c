/* The DRA driver in the daemon: claims are prepared, unprepared and read again, over the kubelet's
 * socket, with an API server and a container runtime. */
#include "dra_cases.h"

/* Prepare */

static void a_claim_is_held_and_written_down_before_it_is_answered(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	for (unsigned i = 0; i < 2; i++) { /* the second time nothing changes */
		const struct dra_call *call = prepare(r, c);

		assert_prepared(r, call, c);
		assert_int_equal(call->lines_then, 1);
		assert_int_equal(r->claims_read, i + 1);
		assert_cpus(r, c, 0, 1, 4);
		assert_held(r, 1);
		assert_int_equal(count_prepared(r), 1);
	}
	assert_int_equal(held(r, c, 0)->request.ask.memory[0].bytes, UINT64_C(1) << 30);
	assert_true(count_lines(r, cdi_file("u1"), "\"u1-0\"") > 0);
	assert_true(count_lines(r, cdi_file("u1"), "NUMAFIT_CLAIM_NUMA_NODE_u1=4") > 0);
	assert_true(is_there(r, metadata_of("u1")));
	rig_free(r);
}

static void each_share_has_its_own_device(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0,
		(struct api_claim){
			"u1", "c1", .device = {"numa4", "numa0", "numa4"}, .cpus = {3, 2, 1}});

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	assert_cpus(r, c, 0, 1, 3);
	assert_cpus(r, c, 1, 0, 2);
	assert_cpus(r, c, 2, 1, 1);
	assert_held(r, 3);
	rig_free(r);
}

static void of_a_list_of_alternatives_the_request_is_named(void **state)
{
	static const char *const request[] = {"big"}, *const cdi[] = {"numafit.io/claim=u1-0"};
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0,
		(struct api_claim){
			"u1", "c1", .request = "big/half", .device = {"numa0"}, .cpus = {1}});
	const struct dra_device device = {request, 1, "n1", "numa0", cdi, 1, "share-u1-0"};
	struct blob want;

	(void)state;
	assert_int_equal(dra_prepared_encode(&device, 1, DRA_V1, &r->a, &want, NULL), 0);
	assert_answer(r, prepare(r, c), "u1", want);
	rig_free(r);
}

static void a_container_gets_the_cpus_of_its_claim_as_often_as_it_is_created(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	for (unsigned i = 0; i < 2; i++) {
		struct box *b = create(r, i, "p0", 0, "numafit.io/claim=u1-0");
		struct cpuset cpus = fake_container_cpus(&b->c);

		assert_string_equal(r->refusal, "");
		assert_true(cpuset_equal(&cpus, &held(r, c, 0)->decision.cpus));
		stop(r, b);
		assert_held(r, 1);
	}
	rig_free(r);
}

/* The runtime is asked to take the claim's CPUs from the others, and creates the claim's container
 * before it comes to that. */
static void a_container_starts_after_others_have_left_its_claims_cpus(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);
	struct box *others = create(r, 0, "pool", 0, NULL);

	(void)state;
	r->comes_amid = name_box(r, 1, "p0", 0, "numafit.io/claim=u1-0");
	assert_prepared(r, prepare(r, c), c);
	UNTIL(r, !r->comes_amid && !r->outstanding);
	assert_string_equal(r->refusal, "");
	const struct cpuset theirs = fake_container_cpus(&others->c);
	assert_int_equal(cpuset_count_and(&theirs, &held(r, c, 0)->decision.cpus), 0);
	rig_free(r);
}

static void a_claim_that_another_pod_has_by_now_is_for_that_one(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	const struct cpuset cpus = held(r, c, 0)->decision.cpus;
	r->claim[0].pod = "p1";
	assert_prepared(r, prepare(r, c), c);
	assert_int_equal(count_prepared(r), 2);
	assert_held(r, 1);
	assert_true(cpuset_equal(&held(r, c, 0)->decision.cpus, &cpus));
	(void)create(r, 0, "p1", 0, "numafit.io/claim=u1-0");
	assert_string_equal(r->refusal, "");
	rig_free(r);
}

/* Its Unprepare was missed, and a scheduler has given it less. */
static void a_claim_that_is_allocated_anew_has_that_and_no_more(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(
		r, 0, (struct api_claim){"u1", "c1", .device = {"numa4", "numa4"}, .cpus = {4, 2}});

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	r->claim[0] = (struct api_claim){"u1", "c1", .device = {"numa0"}, .cpus = {3}};
	assert_prepared(r, prepare(r, c), c);
	assert_cpus(r, c, 0, 0, 3);
	assert_held(r, 1);
	rig_free(r);
}

static void a_claim_that_is_allocated_anew_waits_for_its_containers(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(
		r, 0, (struct api_claim){"u1", "c1", .device = {"numa4", "numa0"}, .cpus = {4, 2}});

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	struct box *b = create(r, 0, "p0", 0, "numafit.io/claim=u1-1");
	assert_string_equal(r->refusal, "");
	r->claim[0] = (struct api_claim){"u1", "c1", .device = {"numa4"}, .cpus = {4}};
	const struct dra_call *call = begin_prepare(r, c);
	UNTIL(r, r->d.dra->tasks.nr && *r->d.dra->tasks.at[0]->why);
	assert_held(r, 2);
	stop(r, b);
	UNTIL(r, call->over);
	assert_prepared(r, call, c);
	assert_held(r, 1);
	rig_free(r);
}

static void without_an_api_server_it_waits_until_that_is_back(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	fake_api_down(&r->api);
	const struct dra_call *call = begin_prepare(r, c);
	let_pass(r, 100);
	assert_false(call->over);
	fake_api_up(&r->api);
	UNTIL(r, call->over);
	assert_prepared(r, call, c);
	assert_held(r, 1);
	rig_free(r);
}

static void a_busy_api_server_is_asked_again(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	r->status = 503;
	const struct dra_call *call = begin_prepare(r, c);
	UNTIL(r, r->claims_read);
	let_pass(r, 50);
	assert_false(call->over);
	r->status = 0;
	UNTIL(r, call->over);
	assert_prepared(r, call, c);
	rig_free(r);
}

static struct rig *begin_impatient(void)
{
	struct rig *r = rig_new();

	r->prepare_wait = "300ms";
	start_daemon(r);
	return r;
}

static void without_an_api_server_for_too_long_it_fails(void **state)
{
	struct rig *r = begin_impatient();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	fake_api_down(&r->api);
	assert_failed(prepare(r, c), "numafit: resourceclaim shop/c1: ");
	assert_held(r, 0);
	rig_free(r);
}

static void an_api_server_that_is_silent_for_too_long_is_named(void **state)
{
	struct rig *r = begin_impatient();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	r->silent = true;
	assert_failed(prepare(r, c), "numafit: the API server does not answer");
	assert_held(r, 0);
	rig_free(r);
}

static void what_no_waiting_helps_fails_at_once(void **state)
{
	static const struct {
		struct api_claim claim;
		int status;
		const char *words;
	} row[] = {
		{{"u1", "gone", .device = {"numa0"}}, 404, "resourceclaim shop/gone: "},
		{{"other", "c1", .device = {"numa0"}, .cpus = {1}}, 0, "its uid is other, not u1"},
		{{"u1", "c1", .device = {"numa0"}, .cpus = {1}}, 403,
			"resourceclaim shop/c1: not now"},
		{{"u1", "c1", .pool = {"n2"}, .device = {"numa0"}, .cpus = {1}}, 0,
			"it is allocated on another node's devices"},
		{{"u1", "c1", .pool = {NULL, "n2"}, .device = {"numa0", "numa4"}, .cpus = {1, 1}},
			0, "it is allocated on another node's devices"},
		{{"u1", "c1", .device = {"numa1"}, .cpus = {1}}, 0,
			"device numa1: this machine has no such NUMA node"},
		{{"u1", "c1", .device = {"gpu0"}, .cpus = {1}}, 0,
			"device gpu0: this machine has no such NUMA node"},
		{{"u1", "c1", .device = {"numa4"}, .cpus = {9}}, 0,
			"numafit: the claim asks for 9 CPUs of NUMA node 4, where 8 CPUs are free"},
		{{"u1", "c1", .device = {"numa4"}, .cpus = {1}, .memory = "9Gi"}, 0,
			"1 CPU, 9Gi of memory of NUMA node 4, where 8 CPUs, 8Gi of memory are free, and "
			"8 CPUs, 8Gi of memory if nothing else is there"},
		/* what fits of it is given back */
		{{"u1", "c1", .device = {"numa0", "numa4"}, .cpus = {1, 9}}, 0,
			"numafit: the claim asks for 9 CPUs of NUMA node 4, "},
		/* each fits, and both never do */
		{{"u1", "c1", .device = {"numa4", "numa4"}, .cpus = {5, 4}}, 0,
			"numafit: the claim asks for 9 CPUs of NUMA node 4, "},
	};
	struct rig *r = begin();

	(void)state;
	for (unsigned i = 0; i < sizeof row / sizeof *row; i++) {
		struct api_claim asked = row[i].claim;

		(void)put_claim(r, 0, row[i].claim);
		r->status = row[i].status;
		r->claims_read = 0;
		asked.uid = "u1";
		assert_failed(prepare(r, &asked), row[i].words);
		assert_int_equal(r->claims_read, 1);
		assert_int_equal(r->d.dra->tasks.nr, 0);
		assert_held(r, 0);
		assert_false(is_there(r, cdi_file("u1")));
	}
	rig_free(r);
}

static void without_room_it_waits_and_others_are_served_meanwhile(void **state)
{
	struct rig *r = begin();
	struct box *full = create_plain(r, 0, "plain", 8);
	const struct api_claim *c = put_claim(r, 0, four_on_4),
			       *other = put_claim(r, 1,
				       (struct api_claim){
					       "u2", "c2", .device = {"numa0"}, .cpus = {2}});

	(void)state;
	const struct dra_call *call = begin_prepare(r, c);
	UNTIL(r, r->claims_read);
	assert_prepared(r, prepare(r, other), other);
	(void)create_plain(r, 1, "plain1", 2);
	let_pass(r, 50);
	assert_false(call->over);
	assert_held(r, 1);
	stop(r, full);
	UNTIL(r, call->over);
	assert_prepared(r, call, c);
	assert_cpus(r, c, 0, 1, 4);
	assert_held(r, 2);
	rig_free(r);
}

static void without_room_for_too_long_it_says_what_is_missing(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	(void)create_plain(r, 0, "plain", 8);
	const struct dra_call *call = begin_prepare(r, c);
	UNTIL(r, r->d.dra->tasks.nr && *r->d.dra->tasks.at[0]->why);
	time_is_up(r, "u1");
	UNTIL(r, call->over);
	assert_failed(call,
		"numafit: the claim asks for 4 CPUs, 1Gi of memory of NUMA node 4, where 0 CPUs, 7Gi of memory "
		"are free, and 8 CPUs, 8Gi of memory if nothing else is there");
	assert_held(r, 0);
	rig_free(r);
}

/* The journal of a disk that is full takes nothing for a while. */
static void what_cannot_be_written_down_is_not_answered_yet(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	(void)setenv("NUMAFIT_FAULT", "enospc:1:1000000", 1);
	fault_look_again();
	const struct dra_call *call = begin_prepare(r, c);
	UNTIL(r, r->d.dra->tasks.nr && *r->d.dra->tasks.at[0]->why);
	assert_false(call->over);
	assert_held(r, 0);
	(void)unsetenv("NUMAFIT_FAULT");
	fault_look_again();
	UNTIL(r, call->over);
	assert_prepared(r, call, c);
	assert_int_equal(call->lines_then, 1);
	assert_held(r, 1);
	rig_free(r);
}

static void a_restart_keeps_what_is_held(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	const struct cpuset cpus = held(r, c, 0)->decision.cpus;
	restart_daemon(r);
	assert_true(cpuset_equal(&held(r, c, 0)->decision.cpus, &cpus));
	assert_true(is_there(r, cdi_file("u1")));
	assert_prepared(r, prepare(r, c), c);
	assert_true(cpuset_equal(&held(r, c, 0)->decision.cpus, &cpus));
	assert_held(r, 1);
	rig_free(r);
}

/* Unprepare */

static void unprepare_leaves_nothing(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0,
		(struct api_claim){
			"u1", "c1", .device = {"numa4", "numa0"}, .cpus = {8, 1}, .memory = "1Gi"});

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	assert_held(r, 2);
	for (unsigned i = 0; i < 2; i++) { /* it is not known any more the second time */
		assert_unprepared(r, unprepare(r, c), "u1");
		assert_held(r, 0);
		assert_false(is_there(r, cdi_file("u1")));
		assert_false(is_there(r, metadata_of("u1")));
	}
	assert_int_equal(r->claims_read, 1); /* the claim may be gone by then */
	(void)create_plain(r, 0, "plain", 8);
	rig_free(r);
}

static void unprepare_waits_for_the_end_of_a_container(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	struct box *b = create(r, 0, "p0", 0, "numafit.io/claim=u1-0");
	assert_true(b->c.runs);
	const struct dra_call *call = begin_unprepare(r, c);
	let_pass(r, 50);
	assert_false(call->over);
	assert_held(r, 1);
	stop(r, b);
	UNTIL(r, call->over);
	assert_unprepared(r, call, "u1");
	assert_held(r, 0);
	rig_free(r);
}

static void unprepare_names_the_container_that_does_not_end(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	struct box *b = create(r, 0, "p0", 0, "numafit.io/claim=u1-0");
	const struct dra_call *call = begin_unprepare(r, c);
	UNTIL(r, r->d.dra->tasks.nr && *r->d.dra->tasks.at[0]->why);
	time_is_up(r, "u1");
	UNTIL(r, call->over);
	assert_failed(call, "numafit: container main of pod shop/p0 still runs on it");
	assert_held(r, 1);
	assert_true(is_there(r, cdi_file("u1")));
	stop(r, b);
	assert_unprepared(r, unprepare(r, c), "u1");
	assert_held(r, 0);
	rig_free(r);
}

static void unprepare_ends_a_prepare_of_the_claim(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	r->silent = true;
	const struct dra_call *call = begin_prepare(r, c);
	UNTIL(r, r->kept);
	assert_unprepared(r, unprepare(r, c), "u1");
	UNTIL(r, call->over);
	assert_failed(call, "numafit: the claim is unprepared meanwhile");
	answer_kept(r);
	let_pass(r, 50);
	assert_held(r, 0);
	assert_false(is_there(r, cdi_file("u1")));
	rig_free(r);
}

/* A Prepare that waits for room is ended, too. */
static void unprepare_ends_a_prepare_that_waits_for_room(void **state)
{
	struct rig *r = begin();
	struct box *full = create_plain(r, 0, "plain", 8);
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	const struct dra_call *call = begin_prepare(r, c);
	UNTIL(r, r->d.dra->tasks.nr && *r->d.dra->tasks.at[0]->why);
	assert_unprepared(r, unprepare(r, c), "u1");
	UNTIL(r, call->over);
	stop(r, full);
	let_pass(r, 50);
	assert_held(r, 0);
	rig_free(r);
}

static void unprepare_ends_a_reading_of_the_claim(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	r->silent = true;
	read_again(r);
	assert_unprepared(r, unprepare(r, c), "u1");
	answer_kept(r);
	let_pass(r, 50);
	assert_held(r, 0);
	assert_false(is_there(r, cdi_file("u1")));
	assert_int_equal(r->d.dra->tasks.nr, 0);
	rig_free(r);
}

/* As a kubelet does that was started anew, and has another pod for the claim. */
static void prepare_ends_an_unprepare_that_waits(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	struct box *b = create(r, 0, "p0", 0, "numafit.io/claim=u1-0");
	const struct dra_call *call = begin_unprepare(r, c);
	UNTIL(r, r->d.dra->tasks.nr && *r->d.dra->tasks.at[0]->why);
	assert_prepared(r, prepare(r, c), c);
	UNTIL(r, call->over);
	assert_failed(call, "numafit: the claim is prepared meanwhile");
	stop(r, b);
	let_pass(r, 250);
	assert_held(r, 1);
	assert_true(is_there(r, cdi_file("u1")));
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_claim_is_held_and_written_down_before_it_is_answered),
		cmocka_unit_test(each_share_has_its_own_device),
		cmocka_unit_test(of_a_list_of_alternatives_the_request_is_named),
		cmocka_unit_test(a_container_gets_the_cpus_of_its_claim_as_often_as_it_is_created),
		cmocka_unit_test(a_container_starts_after_others_have_left_its_claims_cpus),
		cmocka_unit_test(a_claim_that_another_pod_has_by_now_is_for_that_one),
		cmocka_unit_test(a_claim_that_is_allocated_anew_has_that_and_no_more),
		cmocka_unit_test(a_claim_that_is_allocated_anew_waits_for_its_containers),
		cmocka_unit_test(without_an_api_server_it_waits_until_that_is_back),
		cmocka_unit_test(a_busy_api_server_is_asked_again),
		cmocka_unit_test(without_an_api_server_for_too_long_it_fails),
		cmocka_unit_test(an_api_server_that_is_silent_for_too_long_is_named),
		cmocka_unit_test(what_no_waiting_helps_fails_at_once),
		cmocka_unit_test(without_room_it_waits_and_others_are_served_meanwhile),
		cmocka_unit_test(without_room_for_too_long_it_says_what_is_missing),
		cmocka_unit_test(what_cannot_be_written_down_is_not_answered_yet),
		cmocka_unit_test(a_restart_keeps_what_is_held),
		cmocka_unit_test(unprepare_leaves_nothing),
		cmocka_unit_test(unprepare_waits_for_the_end_of_a_container),
		cmocka_unit_test(unprepare_names_the_container_that_does_not_end),
		cmocka_unit_test(unprepare_ends_a_prepare_of_the_claim),
		cmocka_unit_test(unprepare_ends_a_prepare_that_waits_for_room),
		cmocka_unit_test(unprepare_ends_a_reading_of_the_claim),
		cmocka_unit_test(prepare_ends_an_unprepare_that_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
