/* Claims that are not prepared, over the kubelet's socket: without a device of ours, reserved for
 * no pod, with names that are refused. None of them holds anything. */
#include "dra_cases.h"

static void a_claim_without_a_device_of_ours_is_not_prepared(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, (struct api_claim){.uid = "u1", .name = "c1"});

	(void)state;
	assert_failed(prepare(r, c), "numafit: it is allocated no device of driver numafit.io");
	assert_held(r, 0);
	assert_false(is_there(r, cdi_file("u1")));
	assert_unprepared(r, unprepare(r, c), "u1");
	rig_free(r);
}

/* It looks at what others have: the kubelet is answered with no device, and goes on. */
static void a_claim_with_admin_access_holds_nothing(void **state)
{
	struct rig *r = begin();
	struct api_claim admin = four_on_4;

	(void)state;
	admin.admin_access = true;
	const struct api_claim *c = put_claim(r, 0, admin);
	assert_prepared(r, prepare(r, c), &(struct api_claim){.uid = "u1", .name = "c1"});
	assert_held(r, 0);
	assert_unprepared(r, unprepare(r, c), "u1");
	rig_free(r);
}

#define POD "{\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"p0\"}"
#define POD_GROUP                                                                                  \
	"{\"apiGroup\":\"scheduling.k8s.io\",\"resource\":\"podgroups\",\"name\":\"g\",\"uid\":\"g0\"}"

static void a_claim_that_is_reserved_for_no_pod_holds_nothing(void **state)
{
	static const struct {
		const char *reserved_for, *words;
	} row[] = {
		{"[" POD_GROUP "]",
			"it is reserved for podgroups.scheduling.k8s.io g and no pod, and numafit gives "
			"CPUs and memory to claims of pods alone"},
		{"[{\"resource\":\"jobs\",\"name\":\"j\",\"uid\":\"p0\"}]",
			"it is reserved for jobs j and no pod"},
		{"[]", "it is reserved for no pod"},
		{"null", "it is reserved for no pod"},
	};
	struct rig *r = begin();

	(void)state;
	for (unsigned i = 0; i < sizeof row / sizeof *row; i++) {
		struct api_claim claim = four_on_4;

		claim.reserved_for = row[i].reserved_for;
		assert_failed(prepare(r, put_claim(r, 0, claim)), row[i].words);
		assert_held(r, 0);
		assert_false(is_there(r, cdi_file("u1")));
	}
	rig_free(r);
}

static void pods_beside_other_consumers_have_their_claim(void **state)
{
	static const char *const lists[] = {"[" POD_GROUP "," POD "]", "[" POD "," POD_GROUP "]",
		"[{\"resource\":\"pods\",\"name\":\"q\",\"uid\":\"q0\"}," POD "]"};

	(void)state;
	for (unsigned i = 0; i < sizeof lists / sizeof *lists; i++) {
		struct rig *r = begin();
		struct api_claim claim = four_on_4;

		claim.reserved_for = lists[i];
		const struct api_claim *c = put_claim(r, 0, claim);
		assert_prepared(r, prepare(r, c), c);
		(void)create(r, 0, "p0", 0, "numafit.io/claim=u1-0");
		assert_string_equal(r->refusal, "");
		/* while it is held, its pods may go one by one */
		r->claim[0].reserved_for = "[" POD_GROUP "]";
		read_again(r);
		UNTIL(r, !r->d.dra->tasks.nr);
		assert_held(r, 1);
		rig_free(r);
	}
}

/* One check for all paths: what it refuses holds nothing, and is given back all the same. */
static void a_claim_with_a_name_that_is_refused_holds_nothing(void **state)
{
	static const struct {
		struct api_claim claim;
		const char *words;
	} row[] = {
		{{"Ab", "c1", .device = {"numa4"}, .cpus = {4}}, "\"Ab\" is no uid of a claim"},
		{{"ab-", "c1", .device = {"numa4"}, .cpus = {4}}, "\"ab-\" is no uid of a claim"},
		{{"-ab", "c1", .device = {"numa4"}, .cpus = {4}}, "\"-ab\" is no uid of a claim"},
		{{"a b", "c1", .device = {"numa4"}, .cpus = {4}}, "\"a b\" is no uid of a claim"},
		{{"u1", "C1", .device = {"numa4"}, .cpus = {4}}, "\"C1\" is no name of a claim"},
		{{"u1", "c1", .request = "R", .device = {"numa4"}, .cpus = {4}},
			"\"R\" is no name of a request"},
	};
	struct rig *r = begin();

	(void)state;
	for (unsigned i = 0; i < sizeof row / sizeof *row; i++) {
		const struct api_claim *c = put_claim(r, 0, row[i].claim);
		const struct dra_call *call = prepare(r, c);

		assert_int_equal(call->code, RPC_OK);
		assert_non_null(
			memmem(call->message, call->len, row[i].words, strlen(row[i].words)));
		assert_held(r, 0);
		assert_unprepared(r, unprepare(r, c), c->uid);
	}
	assert_int_equal(count_prepared(r), 0);
	rig_free(r);
}

/* Four CPUs of NUMA node 4 are held as a journal leads to, which an earlier version wrote. */
static void hold_from_journal(struct rig *r, const char *uid)
{
	const struct claim_share share = {
		.request = "cpus", .pool = "n1", .device = "numa4", .cpus = 4};
	const struct resource_claim claim = {
		.uid = uid, .ns = "shop", .name = "c1", .nr = 1, .share = &share};
	char id[SHARE_ID_MAX];
	struct record_part part = {share_request(&claim, 0, 1, share_id(uid, 0, id), "0", "p0"),
		{.admit = true,
			.exclusive = true,
			.source = SOURCE_HELD,
			.mems = ledger_view(ledger_of(r))->memory.usable}};
	struct record hold = {.op = RECORD_HOLD,
		.cause = "prepare",
		.container_id = id,
		.parts = &part,
		.nr_parts = 1};
	struct err e;

	assert_int_equal(cpuset_parse(&part.decision.cpus, "8-11", 4, NULL), 0);
	hold.pool = ledger_pool_without(ledger_of(r), &part.decision.cpus);
	if (engine_replay(r->d.engine, &hold, &e))
		fail_msg("%s", e.text);
}

/* An earlier version took such uids. */
static void a_claim_that_is_held_is_given_back_whatever_its_uid_is(void **state)
{
	static const char *const uids[] = {"AB", "ab-", "-", "a_b"};

	(void)state;
	for (unsigned i = 0; i < sizeof uids / sizeof *uids; i++) {
		struct rig *r = begin();
		const struct api_claim odd = {.uid = uids[i], .name = "c1"};

		hold_from_journal(r, odd.uid);
		assert_non_null(held(r, &odd, 0));
		assert_unprepared(r, unprepare(r, &odd), odd.uid);
		assert_held(r, 0);
		rig_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_claim_without_a_device_of_ours_is_not_prepared),
		cmocka_unit_test(a_claim_with_admin_access_holds_nothing),
		cmocka_unit_test(a_claim_that_is_reserved_for_no_pod_holds_nothing),
		cmocka_unit_test(pods_beside_other_consumers_have_their_claim),
		cmocka_unit_test(a_claim_with_a_name_that_is_refused_holds_nothing),
		cmocka_unit_test(a_claim_that_is_held_is_given_back_whatever_its_uid_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
