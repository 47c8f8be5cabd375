#include <kubelet/dra_pb.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "kubelet_wire.h"

#define UID   "a1c3ee55-4ca0-4fb0-9732-1e353b9cc659"
#define SHARE "6d5b1c4e-0000-4000-8000-000000000001"

static const char *const numa[] = {"numa"}, *const two[] = {"numa/whole", "b"};
static const char *const cdi[] = {"numafit.io/claim=" UID "-0"};
static const struct dra_device devices[] = {
	{.request = numa,
		.nr_requests = 1,
		.pool = "n1",
		.device = "numa2",
		.cdi = cdi,
		.nr_cdi = 1,
		.share_id = SHARE},
	{.request = two, .nr_requests = 2, .pool = "n1", .device = "numa3"},
};

static void gos_request_is_read(void **state)
{
	const struct dra_claim_ref *list;
	size_t nr;

	assert_int_equal(
		dra_claims_decode(recorded("dra_request", *state), *state, &list, &nr, NULL), 0);
	assert_int_equal(nr, 2);
	assert_string_equal(list[0].ns, "default");
	assert_string_equal(list[0].uid, UID);
	assert_string_equal(list[0].name, "c1");
	assert_string_equal(list[1].name, "c\xc3\xbc");
}

static void prepared_and_failed_claims_are_written_as_go_writes_them(void **state)
{
	struct dra_claim_answer answer[] = {{.uid = UID}, {.uid = "b"}};
	struct blob out;

	assert_int_equal(
		dra_prepared_encode(devices, 2, DRA_V1, *state, &answer[0].bytes, NULL), 0);
	assert_int_equal(
		dra_prepare_error_encode("no room on NUMA node 2", *state, &answer[1].bytes, NULL),
		0);
	assert_int_equal(dra_answers_encode(answer, 2, *state, &out, NULL), 0);
	assert_bytes(out, "dra_prepared", *state);
}

static void v1beta1_has_no_share_id(void **state)
{
	struct dra_claim_answer answer = {.uid = UID};
	struct blob out;

	assert_int_equal(
		dra_prepared_encode(devices, 1, DRA_V1BETA1, *state, &answer.bytes, NULL), 0);
	assert_int_equal(dra_answers_encode(&answer, 1, *state, &out, NULL), 0);
	assert_bytes(out, "dra_prepared_v1beta1", *state);
}

static void unprepared_and_failed_claims_are_written_as_go_writes_them(void **state)
{
	struct dra_claim_answer answer[] = {{.uid = UID}, {.uid = "b"}};
	struct blob out;

	assert_int_equal(dra_unprepare_error_encode("busy", *state, &answer[1].bytes, NULL), 0);
	assert_int_equal(dra_answers_encode(answer, 2, *state, &out, NULL), 0);
	assert_bytes(out, "dra_unprepared", *state);
}

static void health_is_written_as_go_writes_it(void **state)
{
	static const struct dra_health health[] = {
		{"n1", "numa0", true, 1764118800, 60, NULL},
		{"n1", "numa1", false, 0, 0, "it is offline"},
	};
	struct blob out;

	assert_int_equal(dra_health_encode(health, 2, *state, &out, NULL), 0);
	assert_bytes(out, "dra_health", *state);
}

static void a_string_that_is_not_utf8_is_not_sent(void **state)
{
	static const struct dra_device odd = {.pool = "n1", .device = "numa\xff"};
	static const struct dra_health health = {.pool = "\xff", .device = "numa0"};
	static const struct dra_claim_answer answer = {.uid = "\xff"};
	struct blob out;
	struct err e;

	assert_int_equal(dra_prepared_encode(&odd, 1, DRA_V1, *state, &out, &e), -EILSEQ);
	assert_string_equal(e.text, "Device.device_name is not UTF-8");
	assert_int_equal(dra_prepare_error_encode("\xff", *state, &out, NULL), -EILSEQ);
	assert_int_equal(dra_unprepare_error_encode("\xff", *state, &out, NULL), -EILSEQ);
	assert_int_equal(dra_health_encode(&health, 1, *state, &out, NULL), -EILSEQ);
	assert_int_equal(dra_answers_encode(&answer, 1, *state, &out, NULL), -EILSEQ);
}

static void more_claims_than_there_may_be_are_refused(void **state)
{
	static const unsigned char empty[] = {1 << 3 | 2, 0};
	unsigned char *at = arena_array(*state, DRA_CLAIMS_MAX + 1, sizeof empty);
	const struct dra_claim_ref *list;
	struct err e;
	size_t nr;

	for (size_t i = 0; i <= DRA_CLAIMS_MAX; i++)
		memcpy(at + sizeof empty * i, empty, sizeof empty);
	struct blob most = {at, sizeof empty * DRA_CLAIMS_MAX};
	struct blob more = {at, sizeof empty * (DRA_CLAIMS_MAX + 1)};
	assert_int_equal(dra_claims_decode(most, *state, &list, &nr, NULL), 0);
	assert_int_equal(nr, DRA_CLAIMS_MAX);
	assert_string_equal(list[0].uid, "");
	assert_int_equal(dra_claims_decode(more, *state, &list, &nr, &e), -E2BIG);
	assert_string_equal(e.text, "257 claims, more than 256");
}

static void a_malformed_request_is_refused(void **state)
{
	static const unsigned char cut[] = {0x0a, 5, 'x'}, latin[] = {0x0a, 3, 0x12, 1, 0xfc};
	static const struct blob bad[] = {{cut, sizeof cut}, {latin, sizeof latin}};
	const struct dra_claim_ref *list;
	struct err e;
	size_t nr;

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(dra_claims_decode(bad[i], *state, &list, &nr, &e), -EBADMSG);
		assert_int_equal(e.code, EBADMSG);
	}
}

/* Of a claim whose namespace or name is not UTF-8 the others in its call know nothing. */
static void a_name_that_is_not_utf8_is_its_claims_alone(void **state)
{
	static const unsigned char latin[] = {
		0x0a, 7, 0x0a, 1, 0xfc, 0x12, 0, 0x1a, 0, 0x0a, 3, 0x12, 1, 'u'};
	const struct dra_claim_ref *list;
	size_t nr;

	assert_int_equal(
		dra_claims_decode((struct blob){latin, sizeof latin}, *state, &list, &nr, NULL), 0);
	assert_int_equal(nr, 2);
	assert_string_equal(list[0].ns, "\xfc");
	assert_string_equal(list[1].uid, "u");
	assert_string_equal(list[1].name, "");
}

static void an_answer_that_the_kubelet_would_not_take_is_refused(void **state)
{
	static char large[DRA_MESSAGE_MAX / 2];
	struct dra_claim_answer answer[] = {
		{"a", {large, sizeof large}}, {"b", {large, sizeof large}}};
	struct blob out;

	assert_int_equal(dra_answers_encode(answer, 1, *state, &out, NULL), 0);
	assert_int_equal(dra_answers_encode(answer, 2, *state, &out, NULL), -EMSGSIZE);
}

static void what_does_not_fit_the_arena_is_refused(void **state)
{
	static const struct dra_health health;
	static const struct dra_claim_answer answer;
	const struct dra_claim_ref *list;
	struct arena small;
	struct blob out;
	char memory[64];
	size_t nr;

	arena_init_fixed(&small, memory, sizeof memory);
	assert_int_equal(dra_prepared_encode(devices, 2, DRA_V1, &small, &out, NULL), -ENOMEM);
	assert_int_equal(dra_health_encode(&health, 1, &small, &out, NULL), -ENOMEM);
	assert_int_equal(dra_answers_encode(&answer, 1, &small, &out, NULL), -ENOMEM);
	assert_int_equal(
		dra_claims_decode(recorded("dra_request", *state), &small, &list, &nr, NULL),
		-EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_ARENA(gos_request_is_read),
		ON_ARENA(prepared_and_failed_claims_are_written_as_go_writes_them),
		ON_ARENA(v1beta1_has_no_share_id),
		ON_ARENA(unprepared_and_failed_claims_are_written_as_go_writes_them),
		ON_ARENA(health_is_written_as_go_writes_it),
		ON_ARENA(a_string_that_is_not_utf8_is_not_sent),
		ON_ARENA(more_claims_than_there_may_be_are_refused),
		ON_ARENA(a_malformed_request_is_refused),
		ON_ARENA(a_name_that_is_not_utf8_is_its_claims_alone),
		ON_ARENA(an_answer_that_the_kubelet_would_not_take_is_refused),
		ON_ARENA(what_does_not_fit_the_arena_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
