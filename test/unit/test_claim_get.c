#include <apiserver/claim_get.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "fake_api.h"

enum { SOON_MS = 50, NEVER_MS = 3600000 };

#define PATH "GET /apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c1-numa"

struct world {
	struct fake_api f;
	struct api *api;
	struct claim_get *g;
	unsigned done;
	enum claim_got got;
	unsigned after_ms;
	uint64_t cpus;
	size_t nr;
	char text[512], pod[CLAIM_UID_MAX];
};

static void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	fake_api_log(&w->f, bad, event, text);
}

static void on_done(void *ctx, const struct claim_answer *a)
{
	struct world *w = ctx;

	w->g = NULL;
	w->done++;
	w->got = a->got;
	w->after_ms = a->after_ms;
	(void)text_copy(w->text, sizeof w->text, a->text);
	if (a->got == CLAIM_GOT) {
		w->nr = a->claim.nr;
		w->cpus = a->claim.share[0].cpus;
		(void)text_copy(w->pod, sizeof w->pod, a->claim.pod_uid[0]);
	}
	loop_stop(w->f.loop);
}

static void begin(struct world *w, unsigned timeout_ms)
{
	const struct api_options o = {.kubeconfig = w->f.kubeconfig,
		.user_agent = "tester/1",
		.timeout_ms = timeout_ms,
		.ctx = w,
		.on_event = on_event};
	struct err e = {0};

	w->api = api_new(w->f.loop, &o, &e);
	if (!w->api)
		fail_msg("%s", e.text);
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);

	fake_api_init(&w->f);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	claim_get_cancel(w->g);
	api_free(w->api);
	fake_api_fini(&w->f);
	free(w);
	return 0;
}

static void ask(struct world *w)
{
	unsigned before = w->done;

	w->g = claim_get(w->api, "default", "c1-numa", "u-1", w, on_done);
	assert_int_equal(w->done, before); /* in a later turn */
}

/* Asks once; the server answers like this. */
static void ask_once(struct world *w, const struct fake_answer *answer)
{
	if (!w->api)
		begin(w, NEVER_MS);
	fake_api_script(&w->f, answer, 1);
	ask(w);
	FAKE_UNTIL(&w->f, !w->g);
}

#define CLAIM(uid, status)                                                                          \
	"{\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":\"c1-numa\",\"namespace\":\"default\"," \
	"\"uid\":\"" uid "\"},\"status\":{" status "}}"
#define ALLOCATED                                                                                  \
	"\"allocation\":{\"devices\":{\"results\":[{\"driver\":\"numafit.io\",\"request\":\"r\","  \
	"\"pool\":\"n1\",\"device\":\"numa2\",\"consumedCapacity\":{\"cpu\":\"4\"}}]}},"           \
	"\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"pod-1\"}]"
#define STATUS(code, reason, message)                                                              \
	"{\"kind\":\"Status\",\"code\":" #code ",\"reason\":\"" reason "\",\"message\":\"" message \
	"\"}"

static void an_allocated_claim_is_read(void **state)
{
	static const struct fake_answer answer = {PATH, .body = CLAIM("u-1", ALLOCATED)};
	struct world *w = *state;

	ask_once(w, &answer);
	assert_int_equal(w->got, CLAIM_GOT);
	assert_int_equal(w->nr, 1);
	assert_int_equal(w->cpus, 4);
	assert_string_equal(w->pod, "pod-1");
	assert_string_equal(w->text, "");
	assert_int_equal(w->done, 1);
}

static void what_came_of_it_is_said(void **state)
{
	static const struct {
		struct fake_answer answer;
		enum claim_got got;
		const char *text;
	} rows[] = {
		{{PATH, .status = 404, .body = STATUS(404, "NotFound", "not found")}, CLAIM_GONE,
			"resourceclaim default/c1-numa: not found"},
		{{PATH, .body = CLAIM("u-2", ALLOCATED)}, CLAIM_GONE,
			"resourceclaim default/c1-numa: its uid is u-2, not u-1: it was deleted and "
			"created again"},
		{{PATH, .body = CLAIM("u-1", "")}, CLAIM_NOT_ALLOCATED,
			"resourceclaim default/c1-numa: status: allocation: it is not allocated yet"},
		{{PATH, .status = 403,
			 .body = STATUS(403, "Forbidden", "User x cannot get resourceclaims")},
			CLAIM_REFUSED,
			"resourceclaim default/c1-numa: User x cannot get resourceclaims"},
		{{PATH, .body = CLAIM("u-1", "\"allocation\":7")}, CLAIM_REFUSED,
			"resourceclaim default/c1-numa: status: allocation: should be an object, is "
			"an integer"},
		{{PATH, .status = 429, .extra = "Retry-After: 7\r\n",
			 .body = STATUS(429, "TooManyRequests", "too many")},
			CLAIM_NOT_NOW, "resourceclaim default/c1-numa: too many"},
		{{PATH, .status = 503, .body = STATUS(503, "ServiceUnavailable", "not now")},
			CLAIM_NOT_NOW, "resourceclaim default/c1-numa: not now"},
		{{PATH, .status = 422, .body = STATUS(422, "Invalid", "no")}, CLAIM_REFUSED,
			"resourceclaim default/c1-numa: no"},
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		ask_once(w, &rows[i].answer);
		if (w->got != rows[i].got || !text_equal(w->text, rows[i].text))
			fail_msg("case %zu: %d, %s", i, w->got, w->text);
		assert_int_equal(w->after_ms, rows[i].answer.status == 429 ? 7000 : 0);
	}
}

/* Whatever is wrong with it, there is a text for the pod's event. */
static void an_answer_that_is_no_object_is_not_taken_for_a_claim(void **state)
{
	static const struct fake_answer answers[] = {{PATH, .body = "[]"},
		{PATH, .body = "not JSON"}, {PATH, .body = ""}, {PATH, .body = "{}"},
		{PATH, .how = FAKE_CUTS, .body = "{"}};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		ask_once(w, &answers[i]);
		assert_true(w->got == CLAIM_REFUSED || w->got == CLAIM_NOT_NOW);
		assert_true(strlen(w->text) > strlen("resourceclaim default/c1-numa: "));
	}
}

static void expired_credentials_may_pass(void **state)
{
	static const struct fake_answer script[] = {
		{PATH, .status = 401, .body = STATUS(401, "Unauthorized", "who are you?")},
		{PATH, .status = 401, .body = STATUS(401, "Unauthorized", "who are you?")}};
	struct world *w = *state;

	begin(w, NEVER_MS);
	fake_api_script(&w->f, script, sizeof script / sizeof *script);
	ask(w);
	FAKE_UNTIL(&w->f, !w->g);
	assert_int_equal(w->got, CLAIM_NOT_NOW);
}

static void a_server_that_does_not_answer_is_asked_again_later(void **state)
{
	static const struct fake_answer answer = {PATH, .how = FAKE_NEVER};
	struct world *w = *state;

	begin(w, SOON_MS);
	ask_once(w, &answer);
	assert_int_equal(w->got, CLAIM_NOT_NOW);
	assert_true(*w->text);
	fake_api_down(&w->f);
	ask(w);
	FAKE_UNTIL(&w->f, !w->g);
	assert_int_equal(w->got, CLAIM_NOT_NOW);
	assert_true(*w->text);
}

static void odd_names_stay_within_the_path(void **state)
{
	static const struct fake_answer answer = {
		"GET /apis/resource.k8s.io/v1/namespaces/a%2Fb/resourceclaims/..%2Fc%3Fd",
		.status = 404, .body = STATUS(404, "NotFound", "not found")};
	struct world *w = *state;

	begin(w, NEVER_MS);
	fake_api_script(&w->f, &answer, 1);
	w->g = claim_get(w->api, "a/b", "../c?d", "u", w, on_done);
	FAKE_UNTIL(&w->f, !w->g);
	assert_int_equal(w->got, CLAIM_GONE);
}

static void nothing_is_heard_of_what_was_cancelled(void **state)
{
	static const struct fake_answer answer = {PATH, .how = FAKE_NEVER};
	struct world *w = *state;

	claim_get_cancel(NULL);
	begin(w, SOON_MS);
	fake_api_script(&w->f, &answer, 1);
	ask(w);
	claim_get_cancel(steal(w->g)); /* before it is sent */
	ask(w);
	FAKE_UNTIL(&w->f, w->f.asked == 1);
	claim_get_cancel(steal(w->g)); /* while the server thinks of it */
	fake_api_stay_quiet(&w->f);
	assert_int_equal(w->done, 0);
}

#define IN_WORLD(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(an_allocated_claim_is_read),
		IN_WORLD(what_came_of_it_is_said),
		IN_WORLD(an_answer_that_is_no_object_is_not_taken_for_a_claim),
		IN_WORLD(expired_credentials_may_pass),
		IN_WORLD(a_server_that_does_not_answer_is_asked_again_later),
		IN_WORLD(odd_names_stay_within_the_path),
		IN_WORLD(nothing_is_heard_of_what_was_cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
