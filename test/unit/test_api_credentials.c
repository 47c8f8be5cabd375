/* Calls of the API server: tokens and certificates, which are read again, and what is logged when
 * they cannot be. */
#include "api_rig.h"

static void a_refused_token_is_read_again_and_tried_once_more(void **state)
{
	static const struct fake_answer script[] = {{.status = 401}, {.body = OBJECT}};
	struct world *w = *state;
	char value[VALUE_MAX];

	BEGIN(w, script);
	w->token = "new";
	assert_int_equal(get(w, "/x")->status, 200);
	assert_int_equal(w->f.asked, 2);
	assert_string_equal(
		fake_api_header(w->f.last, "Authorization", value, sizeof value), "Bearer new");
	assert_string_equal(w->f.log, " apiserver-up");
}

static void old_credentials_are_read_again(void **state)
{
	static const struct fake_answer script[] = {{.body = OBJECT}, {.body = OBJECT}};
	struct world *w = *state;
	char value[VALUE_MAX];

	BEGIN(w, script);
	(void)get(w, "/x");
	assert_int_equal(w->renewed, 1);
	w->token = "new";
	w->is_old = true;
	(void)get(w, "/x");
	assert_int_equal(w->renewed, 2);
	assert_string_equal(
		fake_api_header(w->f.last, "Authorization", value, sizeof value), "Bearer new");
}

static void without_a_token_none_is_sent(void **state)
{
	static const struct fake_answer script[] = {{.body = OBJECT}};
	struct world *w = *state;
	char value[VALUE_MAX];

	w->token = NULL;
	BEGIN(w, script);
	(void)get(w, "/x");
	assert_string_equal(fake_api_header(w->f.last, "Authorization", value, sizeof value), "");
}

static void a_refusal_is_logged_once(void **state)
{
	static const struct fake_answer refused = {
		.status = 401, .body = STATUS(401, "Unauthorized", "who are you", "")};
	const struct fake_answer script[] = {refused, refused, refused, refused, {.body = OBJECT},
		{.status = 403}, {.body = OBJECT}};
	struct world *w = *state;

	BEGIN(w, script);
	const struct answered *answered = get(w, "/x");
	assert_int_equal(answered->status, 401);
	assert_false(answered->again);
	assert_int_equal(w->f.asked, 2);
	assert_string_equal(w->f.log, " apiserver-refused!");
	assert_string_equal(w->f.last_text, "who are you");
	(void)get(w, "/x");
	assert_string_equal(w->f.log, " apiserver-refused!");
	(void)get(w, "/x");
	/* what one may not do is reported by the caller */
	(void)get(w, "/x");
	(void)get(w, "/x");
	assert_string_equal(w->f.log, " apiserver-refused! apiserver-up");
}

static void unreadable_credentials_are_logged_once_and_the_old_ones_are_used(void **state)
{
	static const struct fake_answer script[] = {{.status = 401}, {.status = 401},
		{.status = 401}, {.body = OBJECT}, {.body = OBJECT}};
	struct world *w = *state;
	char value[VALUE_MAX];
	uint64_t failures = 0;

	BEGIN(w, script);
	assert_null(api_unreadable(w->api, &failures));
	w->unreadable = true;
	assert_int_equal(get(w, "/x")->status, 401);
	assert_string_equal(w->f.log, " credentials-unreadable! apiserver-refused!");
	assert_string_equal(api_unreadable(w->api, &failures), "no token");
	assert_int_equal(failures, 2); /* before it is tried once more, and after */
	assert_int_equal(get(w, "/x")->status, 200);
	assert_string_equal(
		fake_api_header(w->f.last, "Authorization", value, sizeof value), "Bearer old");
	assert_string_equal(w->f.log, " credentials-unreadable! apiserver-refused! apiserver-up");
}

static void an_absent_server_is_logged_once_and_again_as_bad_when_it_lasts(void **state)
{
	static const struct fake_answer script[] = {
		{.body = OBJECT}, {.status = 503}, {.body = OBJECT}};
	struct world *w = *state;

	w->o.patience_ms = 1;
	BEGIN(w, script);
	(void)get(w, "/x");
	fake_api_down(&w->f);
	const struct answered *answered = get(w, "/x");
	assert_int_equal(answered->status, 0);
	assert_true(answered->again);
	assert_string_equal(w->f.log, " apiserver-up apiserver-unreachable");
	fake_api_stay_quiet(&w->f);
	(void)get(w, "/x");
	(void)get(w, "/x");
	assert_string_equal(w->f.log, " apiserver-up apiserver-unreachable apiserver-unreachable!");
	fake_api_up(&w->f);
	(void)get(w, "/x"); /* a proxy before it */
	assert_string_equal(w->f.log, " apiserver-up apiserver-unreachable apiserver-unreachable!");
	(void)get(w, "/x");
	assert_string_equal(w->f.log,
		" apiserver-up apiserver-unreachable apiserver-unreachable! apiserver-up");
}

static void a_server_with_a_wrong_certificate_is_bad_at_once(void **state)
{
	struct world *w = *state;

	(void)snprintf(w->url, sizeof w->url, "https://127.0.0.1:%u", (unsigned)w->f.port);
	begin(w);
	/* its TLS handshake does not look like a request */
	(void)api_call(w->api, &(struct api_ask){.path = "/x"}, w, on_done);
	FAKE_UNTIL(&w->f, w->f.first);
	fake_api_answer(w->f.first, 400, NULL, "not TLS");
	FAKE_UNTIL(&w->f, w->answered.nr == 1);
	assert_int_equal(w->answered.status, 0);
	assert_string_equal(w->f.log, " apiserver-unreachable!");
}

static void missing_credentials_are_an_error_with_a_reason(void **state)
{
	struct world *w = *state;
	struct err e = {0};

	w->no_server = true;
	assert_null(api_new(w->f.loop, &w->o, &e));
	assert_string_equal(e.text, "no kubeconfig");
	api_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_refused_token_is_read_again_and_tried_once_more),
		CASE(old_credentials_are_read_again),
		CASE(without_a_token_none_is_sent),
		CASE(a_refusal_is_logged_once),
		CASE(unreadable_credentials_are_logged_once_and_the_old_ones_are_used),
		CASE(an_absent_server_is_logged_once_and_again_as_bad_when_it_lasts),
		CASE(a_server_with_a_wrong_certificate_is_bad_at_once),
		CASE(missing_credentials_are_an_error_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
