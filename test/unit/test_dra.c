/* The DRA driver in the daemon: claims are prepared, unprepared and read again, over the kubelet's
 * socket, with an API server and a container runtime. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dra_daemon_rig.h"

#include <apiserver/pods.h>
#include <io/fault.h>

static const struct api_claim four_on_4 = {
	"u1", "c1", .device = {"numa4"}, .cpus = {4}, .memory = "1Gi"};

/* The API server has that claim. */
static const struct api_claim *put_claim(struct rig *r, unsigned i, struct api_claim c)
{
	r->claim[i] = c;
	return &r->claim[i];
}

static void assert_cpus(const struct rig *r, const struct api_claim *c, unsigned place,
	unsigned node, unsigned cpus)
{
	const struct holding *h = held(r, c, place);

	assert_non_null(h);
	assert_int_equal(cpuset_count(&h->decision.cpus), cpus);
	assert_int_equal(cpuset_count_and(&h->decision.cpus, &r->d.topo.node[node].cpus), cpus);
}

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

static void a_claim_without_shares_of_ours_has_nothing(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, (struct api_claim){.uid = "u1", .name = "c1"});

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	assert_held(r, 0);
	assert_false(is_there(r, cdi_file("u1")));
	assert_unprepared(r, unprepare(r, c), "u1");
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
		{{"u1", "c1", .pool = "n2", .device = {"numa0"}, .cpus = {1}}, 0,
			"it is allocated on another node's devices"},
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

/* The time has come at which all claims that are held are read again. */
static void read_again(struct rig *r)
{
	const unsigned before = r->claims_read;

	*r->d.dra->refreshed = '\0';
	r->d.dra->round_ms = 0;
	UNTIL(r, r->claims_read > before);
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

/* Reading again */

static void a_claim_that_was_deleted_is_given_back(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);
	const struct api_claim *stays =
		put_claim(r, 1, (struct api_claim){"u2", "c2", .device = {"numa0"}, .cpus = {2}});

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	assert_prepared(r, prepare(r, stays), stays);
	r->claim[0].uid = "u3"; /* it was made anew */
	read_again(r);
	UNTIL(r, nr_held(r) == 1);
	assert_held(r, 1);
	assert_non_null(held(r, stays, 0));
	assert_false(is_there(r, cdi_file("u1")));
	assert_true(is_there(r, cdi_file("u2")));
	rig_free(r);
}

/* It is on another node since then, and nobody unprepares it here. */
static void a_claim_that_another_node_has_by_now_is_given_back(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	r->claim[0].pool = "n2";
	read_again(r);
	UNTIL(r, !r->d.dra->tasks.nr);
	assert_held(r, 0);
	assert_false(is_there(r, cdi_file("u1")));
	rig_free(r);
}

static void a_claim_that_was_deleted_is_kept_for_a_container_that_runs(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	struct box *b = create(r, 0, "p0", 0, "numafit.io/claim=u1-0");
	r->claim[0].uid = NULL;
	read_again(r);
	UNTIL(r, r->d.dra->tasks.nr && *r->d.dra->tasks.at[0]->why);
	assert_held(r, 1);
	stop(r, b);
	UNTIL(r, nr_held(r) == 0);
	assert_held(r, 0);
	rig_free(r);
}

static void a_claim_is_kept_while_the_api_server_is_away(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	r->status = 500;
	read_again(r);
	let_pass(r, 50);
	assert_held(r, 1);
	rig_free(r);
}

/* The kubelet prepares a claim once, for whichever pod comes first. */
static void a_pod_that_comes_later_gets_in_after_one_refusal(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	r->claim[0].pod = "p1";
	(void)create(r, 0, "p1", 0, "numafit.io/claim=u1-0");
	assert_non_null(strstr(r->refusal, "is not reserved for this pod"));
	UNTIL(r, r->claims_read == 2 && !r->d.dra->tasks.nr);
	struct box *b = create(r, 1, "p1", 0, "numafit.io/claim=u1-0");
	assert_string_equal(r->refusal, "");
	assert_int_equal(fake_container_cpus(&b->c).w[0], held(r, c, 0)->decision.cpus.w[0]);
	assert_held(r, 1);
	rig_free(r);
}

/* More CPUs than the machine has: decided as a whole, the pod would be refused. */
static const char pod_with_a_claim[] =
	"{\"metadata\":{\"uid\":\"p1\",\"namespace\":\"shop\",\"name\":\"p1\"},\"spec\":{"
	"\"nodeName\":\"n1\",\"containers\":[{\"name\":\"main\",\"resources\":{"
	"\"limits\":{\"cpu\":\"64\",\"memory\":\"1Gi\"},\"claims\":[{\"name\":\"cpus\"}]}}]}}";

/* Its claim is read by the time its containers come, so that none is refused. */
static void a_pod_that_comes_later_has_its_claim_read_at_its_sandbox(void **state)
{
	struct rig *r = rig_new();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	r->pod = pod_with_a_claim;
	start_daemon(r);
	UNTIL(r, r->d.api_pods && api_pods_find(r->d.api_pods, "p1"));
	assert_prepared(r, prepare(r, c), c);
	assert_int_equal(r->claims_read, 1);
	r->claim[0].pod = "p1";
	run_pod(r, 0, "p1");
	assert_string_equal(r->refusal, "");
	assert_int_equal(ledger_count(ledger_of(r)), 1); /* nothing is held for its containers */
	UNTIL(r, r->claims_read == 2 && !r->d.dra->tasks.nr);
	assert_string_equal(held(r, c, 0)->request.for_pods, "p1");
	struct box *b = create(r, 0, "p1", 0, "numafit.io/claim=u1-0");
	assert_string_equal(r->refusal, "");
	assert_int_equal(fake_container_cpus(&b->c).w[0], held(r, c, 0)->decision.cpus.w[0]);
	run_pod(r, 1, "p1"); /* it is known by now */
	let_pass(r, 50);
	assert_int_equal(r->claims_read, 2);
	rig_free(r);
}

static void a_pod_that_has_no_right_is_refused_each_time(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	for (unsigned i = 0; i < 2; i++) {
		(void)create(r, i, "stranger", 0, "numafit.io/claim=u1-0");
		assert_non_null(strstr(r->refusal, "is not reserved for this pod"));
		UNTIL(r, r->claims_read == 2 + i && !r->d.dra->tasks.nr);
	}
	rig_free(r);
}

/* In a storm of pods each would have the claims of all others read again. */
static void a_claim_from_a_template_is_not_read_again_for_another_pod(void **state)
{
	struct rig *r = begin();
	const struct pod pod = {.uid = "p2", .ns = "shop", .name = "p2"};
	const struct api_claim *c = put_claim(r, 0, four_on_4);
	const struct api_claim *own = put_claim(r, 1,
		(struct api_claim){
			"u2", "c2", .device = {"numa0"}, .cpus = {2}, .from_template = true});

	(void)state;
	assert_prepared(r, prepare(r, own), own);
	dra_note_pod(r->d.dra, &pod);
	assert_int_equal(r->d.dra->tasks.nr, 0);
	assert_prepared(r, prepare(r, c), c);
	dra_note_pod(r->d.dra, &pod);
	assert_int_equal(r->d.dra->tasks.nr, 1);
	UNTIL(r, r->claims_read == 3 && !r->d.dra->tasks.nr);
	restart_daemon(r); /* the journal has it, too */
	const unsigned before = r->claims_read;
	dra_note_pod(r->d.dra, &pod);
	UNTIL(r, r->claims_read > before && !r->d.dra->tasks.nr);
	assert_held(r, 2);
	assert_true(held(r, own, 0)->request.for_one_pod);
	assert_false(held(r, c, 0)->request.for_one_pod);
	rig_free(r);
}

static void files_of_claims_that_are_not_held_are_swept_at_the_start(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	write_text(r, cdi_file("u9"), "{}");
	write_text(r, "cdi/vendor.com-gpu.json", "{}");
	make_directory(r, metadata_of("u9"));
	restart_daemon(r);
	assert_false(is_there(r, cdi_file("u9")));
	assert_false(is_there(r, metadata_of("u9")));
	assert_true(is_there(r, "cdi/vendor.com-gpu.json"));
	assert_true(is_there(r, cdi_file("u1")));
	assert_true(is_there(r, metadata_of("u1")));
	rig_free(r);
}

/* Without the journal */

static void a_lost_journal_loses_no_claim(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	struct box *b = create(r, 0, "p0", 0, "numafit.io/claim=u1-0");
	restart_daemon_without_journal(r);
	UNTIL(r, nr_held(r) == 1 && !r->d.dra->tasks.nr);
	assert_cpus(r, c, 0, 1, 4);
	UNTIL(r, fake_container_cpus(&b->c).w[0] == held(r, c, 0)->decision.cpus.w[0]);
	assert_held(r, 1);
	assert_true(is_there(r, cdi_file("u1")));
	(void)create_plain(r, 1, "plain", 4);
	assert_prepared(r, prepare(r, c), c); /* nothing changes */
	stop(r, b);
	assert_unprepared(r, unprepare(r, c), "u1");
	assert_held(r, 0);
	rig_free(r);
}

static void a_claim_of_a_lost_journal_waits_for_the_api_server_and_for_room(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	r->status = 503;
	restart_daemon_without_journal(r);
	UNTIL(r, r->d.dra->tasks.nr && *r->d.dra->tasks.at[0]->why);
	assert_true(is_there(r, cdi_file("u1")));
	(void)create(r, 0, "p0", 0, "numafit.io/claim=u1-0");
	assert_non_null(strstr(r->refusal, "is not prepared on this node"));
	struct box *b = create_plain(r, 1, "plain", 8); /* all of the claim's NUMA node */
	r->status = 0;
	UNTIL(r, r->d.dra->tasks.nr && strstr(r->d.dra->tasks.at[0]->why, "0 CPUs"));
	stop(r, b);
	UNTIL(r, nr_held(r) == 1);
	assert_cpus(r, c, 0, 1, 4);
	rig_free(r);
}

static void a_claim_of_a_lost_journal_that_is_for_nobody_is_not_held(void **state)
{
	static const struct api_claim now[] = {
		{"u3", "c1", .device = {"numa4"}, .cpus = {4}},            /* made anew */
		{"u1", "c1", .pod = "", .device = {"numa4"}, .cpus = {4}}, /* for no pod */
		{"u1", "c1", .not_allocated = true},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof now / sizeof *now; i++) {
		struct rig *r = begin();
		const struct api_claim *c = put_claim(r, 0, four_on_4);

		assert_prepared(r, prepare(r, c), c);
		r->claim[0] = now[i];
		restart_daemon_without_journal(r);
		UNTIL(r, !is_there(r, cdi_file("u1")));
		assert_false(is_there(r, metadata_of("u1")));
		assert_held(r, 0);
		rig_free(r);
	}
}

static void an_unprepare_ends_what_would_hold_a_claim_of_a_lost_journal(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	r->silent = true;
	restart_daemon_without_journal(r);
	UNTIL(r, r->kept);
	assert_unprepared(r, unprepare(r, c), "u1");
	assert_int_equal(r->d.dra->tasks.nr, 0);
	assert_false(is_there(r, cdi_file("u1")));
	assert_held(r, 0);
	rig_free(r);
}

/* The slice */

/* The NUMA nodes as they are published, with their CPUs: "4:8 0:7". */
static const char *published(struct rig *r)
{
	static char out[64];
	struct slice_node node[SLICE_DEVICES_MAX];
	size_t nr = dra_wanted(r->d.dra, node);
	struct text t;

	text_init(&t, out, sizeof out);
	for (size_t i = 0; i < nr; i++)
		text_add(&t, "%s%u:%u", i ? " " : "", (unsigned)node[i].node_id,
			(unsigned)node[i].cpus);
	return out;
}

/* Prepare a claim of so many CPUs of that NUMA node, and see what is published then. */
static const char *after(struct rig *r, unsigned i, const char *device, unsigned cpus)
{
	static char name[CLAIMS][2][8];
	struct api_claim c = {
		.uid = name[i][0], .name = name[i][1], .device = {device}, .cpus = {cpus}};

	(void)snprintf(name[i][0], sizeof name[i][0], "u%u", i);
	(void)snprintf(name[i][1], sizeof name[i][1], "c%u", i);
	(void)put_claim(r, i, c);
	assert_prepared(r, prepare(r, &r->claim[i]), &r->claim[i]);
	return published(r);
}

static void the_numa_node_with_least_left_comes_first(void **state)
{
	struct rig *r = begin();

	(void)state;
	assert_string_equal(published(r), "0:7 4:8");
	assert_string_equal(after(r, 0, "numa4", 4), "4:8 0:7"); /* 4 of them are left, and 7 */
	assert_string_equal(after(r, 1, "numa0", 3), "4:8 0:7"); /* as many */
	assert_string_equal(after(r, 2, "numa0", 1), "4:8 0:7"); /* one less: not worth a change */
	assert_string_equal(after(r, 3, "numa0", 1), "0:7 4:8");
	assert_string_equal(after(r, 4, "numa4", 3), "0:7 4:8");
	assert_string_equal(after(r, 5, "numa4", 1), "4:8 0:7"); /* 0 and 2 */
	rig_free(r);
}

static void or_the_one_with_most_left(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	r->order = "least-allocated";
	start_daemon(r);
	assert_string_equal(published(r), "0:7 4:8");
	assert_string_equal(after(r, 0, "numa0", 1), "4:8 0:7"); /* 8 are left, and 6 */
	assert_string_equal(after(r, 1, "numa4", 3), "4:8 0:7"); /* 5 and 6 */
	assert_string_equal(after(r, 2, "numa4", 1), "0:7 4:8"); /* 4 and 6 */
	rig_free(r);
}

static void what_containers_have_is_not_published(void **state)
{
	struct rig *r = begin();

	(void)state;
	struct box *b = create_plain(r, 0, "plain", 8);
	assert_string_equal(published(r), "0:7");
	stop(r, b);
	(void)create_plain(r, 0, "plain", 3);
	assert_int_equal(strlen(published(r)), strlen("0:7 4:8"));
	rig_free(r);
}

static void the_slice_is_written_in_that_order(void **state)
{
	struct rig *r = begin();

	(void)state;
	(void)after(r, 0, "numa4", 4);
	UNTIL(r, strstr(r->slice, "\"numa4\"") && strstr(r->slice, "\"numa0\"") &&
			 strstr(r->slice, "\"numa4\"") < strstr(r->slice, "\"numa0\""));
	rig_free(r);
}

/* Its end */

static void a_daemon_that_stops_answers_what_waits(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	r->silent = true;
	const struct dra_call *call = begin_prepare(r, c);
	UNTIL(r, r->kept);
	stop_daemon(r);
	UNTIL(r, call->over);
	start_daemon(r);
	r->silent = false;
	assert_prepared(r, prepare(r, c), c);
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
		cmocka_unit_test(a_claim_without_shares_of_ours_has_nothing),
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
		cmocka_unit_test(a_claim_that_was_deleted_is_given_back),
		cmocka_unit_test(a_claim_that_another_node_has_by_now_is_given_back),
		cmocka_unit_test(a_claim_that_was_deleted_is_kept_for_a_container_that_runs),
		cmocka_unit_test(a_claim_is_kept_while_the_api_server_is_away),
		cmocka_unit_test(a_pod_that_comes_later_gets_in_after_one_refusal),
		cmocka_unit_test(a_pod_that_comes_later_has_its_claim_read_at_its_sandbox),
		cmocka_unit_test(a_pod_that_has_no_right_is_refused_each_time),
		cmocka_unit_test(a_claim_from_a_template_is_not_read_again_for_another_pod),
		cmocka_unit_test(files_of_claims_that_are_not_held_are_swept_at_the_start),
		cmocka_unit_test(a_lost_journal_loses_no_claim),
		cmocka_unit_test(a_claim_of_a_lost_journal_waits_for_the_api_server_and_for_room),
		cmocka_unit_test(a_claim_of_a_lost_journal_that_is_for_nobody_is_not_held),
		cmocka_unit_test(an_unprepare_ends_what_would_hold_a_claim_of_a_lost_journal),
		cmocka_unit_test(the_numa_node_with_least_left_comes_first),
		cmocka_unit_test(or_the_one_with_most_left),
		cmocka_unit_test(what_containers_have_is_not_published),
		cmocka_unit_test(the_slice_is_written_in_that_order),
		cmocka_unit_test(a_daemon_that_stops_answers_what_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
