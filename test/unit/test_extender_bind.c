/* numafit-extender binds pods: conflicts, failures, lost answers, pods that are made again. */
#include "extender_cases.h"

static void a_node_that_has_filled_up_meanwhile_is_a_conflict(void **state)
{
	struct rig *r = *state;

	start(r);
	prioritize(r, new_pod(r, "a", 4));
	filter(r, new_pod(r, "b", 4), FITS_N1);
	bind_pod(r, "b", "n1", OK);
	bind_pod(r, "a", "n1", "{\"Error\":\"numafit: n1 changed since the decision, try again\"}");
	assert_int_equal(r->nr_binds, 1);
}

static json_t *best_effort(unsigned generation, int cpus0, int cpus1)
{
	json_t *report = rig_report("n1", generation, cpus0, cpus1, "");

	(void)json_object_set_new(json_array_get(json_object_get(report, "attributes"), 0), "value",
		json_string("best-effort"));
	return report;
}

static void a_node_that_would_now_spread_the_pod_is_a_conflict(void **state)
{
	struct rig *r = *state;

	rig_put(r, REPORTS, best_effort(9, 2, 6));
	start(r);
	json_t *probe = rig_pod("probe", 4, NULL);
	prioritize(r, new_pod(r, "a", 4));
	auto_free char *before = xstrdup(r->answer);
	rig_put(r, REPORTS, best_effort(10, 2, 2));
	do
		prioritize(r, probe);
	while (text_equal(r->answer, before)); /* until the watch has sent it */
	bind_pod(r, "a", "n1", "{\"Error\":\"numafit: n1 changed since the decision, try again\"}");
	prioritize(r, rig_find(&r->list[PODS], "a")); /* with this known it is as good as it gets */
	bind_pod(r, "a", "n1", OK);
	assert_non_null(strstr(hint_of(r), "\"gen\":10,"));
	assert_non_null(strstr(hint_of(r), "\"numa\":\"0-1\",\"dist\":1500,"));
	json_decref(probe);
}

static void a_node_that_can_no_longer_place_the_pod_is_a_conflict(void **state)
{
	struct rig *r = *state;

	rig_put(r, REPORTS, best_effort(9, 2, 6));
	start(r);
	prioritize(r, new_pod(r, "a", 4));
	prioritize(r, new_pod(r, "b", 4));
	bind_pod(r, "b", "n1", OK); /* memory of one NUMA node is then no part of a larger group */
	bind_pod(r, "a", "n1", "{\"Error\":\"numafit: n1 changed since the decision, try again\"}");
	prioritize(r, rig_find(&r->list[PODS], "a"));
	bind_pod(r, "a", "n1", OK); /* such a node takes it all the same */
	assert_null(hint_of(r));
}

static void a_bind_that_fails_gives_back_what_it_held(void **state)
{
	static const struct {
		int status;
		const char *wanted;
	} rows[] = {
		{403, "{\"Error\":\"numafit: binding pod a: no such luck\"}"},
		{409, "{\"Error\":\"numafit: binding pod a: no such luck\"}"},
	};
	struct rig *r = *state;

	start(r);
	json_t *b = new_pod(r, "b", 4);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		filter(r, new_pod(r, "a", 4), FITS_N1);
		r->bind_status = rows[i].status;
		bind_pod(r, "a", "n1", rows[i].wanted);
		filter(r, b, FITS_N1);
	}
	r->bind_status = 0;
	bind_pod(r, "b", "n1", OK);
}

static void a_bind_whose_answer_was_lost_is_looked_up(void **state)
{
	struct rig *r = *state;

	start(r);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	r->bind_goes_unsaid = true;
	bind_pod(r, "a", "n1", OK);
	assert_int_equal(r->nr_binds, 1);
	bind_pod(r, "a", "n1", OK); /* who asks again gets the same */
}

/* An error of the API server does not say that nothing has happened. */
static void a_bind_that_happened_in_spite_of_an_error_is_one(void **state)
{
	struct rig *r = *state;
	auto_free char *args = rig_bind_args("a", "n1");

	start(r);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	r->bind_waits = r->bind_unseen = true;
	rig_begin(r, "/bind", args, strlen(args));
	FAKE_UNTIL(&r->f, r->unanswered);
	fake_api_answer(r->unanswered, 504, NULL, "{\"kind\":\"Status\",\"message\":\"too late\"}");
	rig_wait(r);
	assert_string_equal(r->answer, OK);
	filter(r, new_pod(r, "b", 4), FITS_NONE);
}

#define LATER                                                                                      \
	"{\"Error\":\"numafit: binding pod a: no such luck; whether it is bound is looked up later\"}"
#define N1_ALONE                                                                                            \
	"{\"Nodes\":null,\"NodeNames\":[\"n1\"],\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{\"n2\":" \
	"\"numafit: the pod may be bound to another node already\"},\"Error\":\"\"}"

static void fail_to_bind(struct rig *r, int status, int look_up_status, const char *says)
{
	filter(r, new_pod(r, "a", 4), FITS_N1);
	r->bind_status = status;
	r->look_up_status = look_up_status;
	bind_pod(r, "a", "n1", says);
}

static void await_log(struct rig *r, const char *word)
{
	while (!rig_said(r, word))
		assert_int_equal(rig_ask(r, "/healthz", NULL), FAKE_OK);
}

static unsigned unsettled(struct rig *r)
{
	const char *at;
	unsigned nr;

	assert_int_equal(rig_ask(r, "/metrics", NULL), FAKE_OK);
	at = strstr(r->answer, "\nnumafit_extender_binds_unsettled ");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "\nnumafit_extender_binds_unsettled %u", &nr), 1);
	return nr;
}

/* Whichever of the two the API server carries out: they are the same. */
static void assert_posted_again(struct rig *r, int look_up_status)
{
	start(r);
	json_t *other = new_pod(r, "b", 4);
	fail_to_bind(r, 503, look_up_status, LATER);
	json_t *first = json_incref(r->binding);
	filter(r, other, FITS_NONE);
	filter(r, rig_find(&r->list[PODS], "a"), N1_ALONE); /* its room is its own */
	bind_pod(r, "a", "n2", "{\"Error\":\"numafit: pod a is being bound to n1\"}");
	bind_pod(r, "a", "n1", LATER);
	assert_int_equal(unsettled(r), 1);
	assert_true(json_equal(r->binding, first));
	r->bind_status = 0;
	bind_pod(r, "a", "n1", OK);
	assert_true(json_equal(r->binding, first));
	json_decref(first);
	assert_int_equal(unsettled(r), 0);
	filter(r, other, FITS_NONE);
}

static void a_binding_that_cannot_be_looked_up_is_posted_again_as_it_was(void **state)
{
	assert_posted_again(*state, 503);
}

/* It is not bound, yet: the first attempt may be on its way still. */
static void a_binding_that_may_still_happen_is_posted_again_as_it_was(void **state)
{
	assert_posted_again(*state, 0);
}

static void nobody_makes_room_for_a_pod_that_may_be_bound(void **state)
{
	static const char victims[] =
		"{\"n2\":{\"Pods\":[{\"UID\":\"uid-of-z\"}],\"NumPDBViolations\":0}}";
	struct rig *r = *state;

	start(r);
	filter(r, new_pod(r, "z", 3), FITS_BOTH);
	bind_pod(r, "z", "n2", OK);
	json_t *a = new_pod(r, "a", 3);
	filter(r, a, FITS_N1);
	preempt(r, a, victims,
		"{\"NodeNameToMetaVictims\":{\"n2\":{\"Pods\":[{\"UID\":\"uid-of-z\"}],"
		"\"NumPDBViolations\":0}}}");
	r->bind_status = r->look_up_status = 503;
	bind_pod(r, "a", "n1", LATER);
	preempt(r, a, victims, "{\"NodeNameToMetaVictims\":{}}");
}

static void room_stays_held_while_the_api_server_is_away(void **state)
{
	enum { LOOK_UPS = 3 }; /* after 1, 2 and 4 s */
	struct rig *r = *state;

	rig_write_config(r, "assumeTTL: 2s\n");
	start(r);
	fail_to_bind(r, 503, 503, LATER);
	while (r->nr_look_ups <= LOOK_UPS)
		assert_int_equal(rig_ask(r, "/healthz", NULL), FAKE_OK);
	filter(r, new_pod(r, "b", 4), FITS_NONE);
	assert_int_equal(unsettled(r), 1);
}

static void a_pod_that_is_gone_has_no_room(void **state)
{
	struct rig *r = *state;

	start(r);
	json_t *other = new_pod(r, "b", 4);
	fail_to_bind(r, 503, 404, LATER); /* of a program before the API server: it has no reason */
	assert_int_equal(unsettled(r), 1);
	filter(r, other, FITS_NONE);
	(void)json_array_remove(r->list[PODS].items, 1); /* "a" */
	r->look_up_status = 0;
	await_log(r, "error=\"numafit: binding pod a: the server could not find");
	filter(r, other, FITS_N1);
}

static void a_binding_whose_answer_was_lost_is_found_by_a_look_up(void **state)
{
	struct rig *r = *state;

	start(r);
	json_t *other = new_pod(r, "b", 4);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	r->bind_goes_unsaid = r->bind_unseen = true;
	r->look_up_status = 403; /* of an API server that is not ready yet */
	auto_free char *args = rig_bind_args("a", "n1");
	assert_int_equal(rig_ask(r, "/bind", args), FAKE_OK);
	assert_non_null(strstr(r->answer, "whether it is bound is looked up later"));
	filter(r, other, FITS_NONE);
	r->look_up_status = 0;
	await_log(r, "event=bind pod=default/a ");
	assert_int_equal(unsettled(r), 0);
	filter(r, other, FITS_NONE);
	filter(r, rig_find(&r->list[PODS], "a"), N1_ALONE);
	bind_pod(r, "a", "n1", OK);
}

static void a_bound_pod_keeps_its_room_when_it_is_to_be_bound_again(void **state)
{
	struct rig *r = *state;

	start(r);
	filter(r, new_pod(r, "a", 3), FITS_BOTH);
	r->bind_unseen = true;
	bind_pod(r, "a", "n1", OK);
	bind_pod(r, "a", "n2", "{\"Error\":\"numafit: pod a is bound to n1 already\"}");
	bind_pod(r, "a", "n1", OK);
	assert_int_equal(r->nr_binds, 1);
	filter(r, new_pod(r, "b", 4), FITS_NONE);
}

/* Looked up, it is not bound; or the API server forbids to look. */
static void room_is_given_back_after_assume_ttl(void **state)
{
	static const int look_ups[] = {0, 403};
	struct rig *r = *state;

	rig_write_config(r, "assumeTTL: 2s\n");
	start(r);
	json_t *other = new_pod(r, "b", 4);
	for (size_t i = 0; i < sizeof look_ups / sizeof *look_ups; i++) {
		fail_to_bind(r, 503, look_ups[i], LATER);
		filter(r, other, FITS_NONE);
		while (unsettled(r)) {
		}
		await_log(r, "error=\"numafit: pod a was not bound to n1 within assumeTTL\"");
		filter(r, other, FITS_N1);
	}
}

/* The hint with NUMA node 1 in place of 0, and the reverse. */
static char *on_the_other_numa_node(const char *hint)
{
	static const char *const before[] = {"\"numa\":\"", "\"node\":"};
	char *text = xstrdup(hint);

	for (size_t i = 0; i < sizeof before / sizeof *before; i++)
		for (char *at = text; (at = strstr(at, before[i]));) {
			at += strlen(before[i]);
			if (*at == '0' || *at == '1')
				*at ^= 1;
		}
	assert_string_not_equal(text, hint);
	return text;
}

/* Another replica has bound it: its hint says where the pod is. */
static void another_ones_binding_counts_by_its_own_hint(void **state)
{
	struct rig *r = *state;

	start(r);
	filter(r, new_pod(r, "a", 2), FITS_BOTH);
	r->bind_status = r->look_up_status = 503;
	bind_pod(r, "a", "n1", LATER);
	assert_non_null(strstr(hint_of(r), "\"numa\":\"0\""));
	json_t *six = new_pod(r, "b", 6);
	filter(r, six, FITS_N1);
	auto_free char *hint = on_the_other_numa_node(hint_of(r));
	json_t *pod = json_deep_copy(rig_find(&r->list[PODS], "a"));
	(void)json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string("n1"));
	(void)json_object_set_new(json_object_get(pod, "metadata"), "annotations",
		json_pack("{s:s}", "numafit.io/numa-hint", hint));
	rig_put(r, PODS, pod);
	await_log(r, "event=bind pod=default/a ");
	filter(r, six, FITS_NONE);
}

static void a_stop_does_not_wait_for_a_binding_that_cannot_be_looked_up(void **state)
{
	struct rig *r = *state;

	start(r);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	r->bind_status = r->look_up_status = 503;
	bind_pod(r, "a", "n1", LATER);
	assert_int_equal(rig_end(r, SIGTERM), 0);
	assert_false(rig_said(r, "event=stopping"));
}

static void a_recreated_pod_is_another_pod(void **state)
{
	struct rig *r = *state;
	json_t *again = rig_pod("a", 4, NULL);

	start(r);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	r->bind_status = 409;
	(void)json_object_set_new(
		json_object_get(again, "metadata"), "uid", json_string("another"));
	rig_put(r, PODS, again);
	bind_pod(r, "a", "n1", "{\"Error\":\"numafit: pod a is another one by now\"}");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(r->binding, "metadata"), "uid")),
		"uid-of-a");
	filter(r, again, FITS_N1); /* nothing is held for the one before */
}

/* Of "a", by another name or namespace. */
static void a_uid_belongs_to_one_pod(void **state)
{
	static const struct {
		const char *ns, *name;
	} rows[] = {{"default", "b"}, {"kube-system", "a"}};
	struct rig *r = *state;

	start(r);
	(void)new_pod(r, "b", 6);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		auto_free char *bind = NULL, *says = NULL;

		assert_true(asprintf(&bind,
				    "{\"PodName\":\"%s\",\"PodNamespace\":\"%s\",\"PodUID\":"
				    "\"uid-of-a\",\"Node\":\"n1\"}",
				    rows[i].name, rows[i].ns) > 0);
		assert_true(asprintf(&says,
				    "{\"Error\":\"numafit: uid-of-a is pod default/a, not %s/%s\"}",
				    rows[i].ns, rows[i].name) > 0);
		assert_int_equal(rig_ask(r, "/bind", bind), FAKE_OK);
		assert_string_equal(r->answer, says);
		json_t *other = rig_pod("a", 4, NULL), *meta = json_object_get(other, "metadata");
		(void)json_object_set_new(meta, "namespace", json_string(rows[i].ns));
		(void)json_object_set_new(meta, "name", json_string(rows[i].name));
		auto_free char *args = rig_args(other, both);
		assert_int_equal(rig_ask(r, "/filter", args), 400);
		assert_non_null(strstr(r->answer, "uid-of-a is pod default/a, not "));
		json_decref(other);
	}
	assert_int_equal(r->nr_binds, 0);
	filter(r, rig_find(&r->list[PODS], "a"), FITS_N1); /* nothing is held for it */
	bind_pod(r, "a", "n1", OK);
}

/* That it is bound already is the API server's to say, of that name. */
static void a_bound_uid_does_not_bind_another_name(void **state)
{
	struct rig *r = *state;

	start(r);
	(void)new_pod(r, "b", 1);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	bind_pod(r, "a", "n1", OK);
	assert_int_equal(rig_ask(r, "/bind",
				 "{\"PodName\":\"b\",\"PodNamespace\":\"default\",\"PodUID\":"
				 "\"uid-of-a\",\"Node\":\"n1\"}"),
		FAKE_OK);
	assert_string_equal(r->answer, "{\"Error\":\"numafit: pod b is another one by now\"}");
	bind_pod(r, "a", "n1", OK); /* it is sent again */
	assert_int_equal(r->nr_binds, 1);
}

static void a_pod_of_another_node_is_not_bound_again(void **state)
{
	struct rig *r = *state;
	auto_free char *args = rig_bind_args("a", "n2");

	start(r);
	filter(r, new_pod(r, "a", 3), FITS_BOTH);
	bind_pod(r, "a", "n1", OK);
	/* by the watch, or, before that has come, by the API server */
	assert_int_equal(rig_ask(r, "/bind", args), FAKE_OK);
	assert_non_null(strstr(r->answer, "numafit: pod a is bound to n1 already"));
	bind_pod(r, "x", "n2",
		"{\"Error\":\"numafit: binding pod x: the server could not find the requested "
		"resource\"}");
}

/* A pod whose owner's uid has so many bytes. */
static json_t *pod_of_bytes(const char *name, size_t bytes)
{
	auto_free char *owner = xcalloc(bytes + 1, 1);

	memset(owner, 'o', bytes);
	return rig_pod(name, 0, owner);
}

/* Others' large pods, which nothing schedules, take all the memory that is for pods. */
static void a_pod_that_there_is_no_room_for_is_bound_all_the_same(void **state)
{
	static const size_t sizes[] = {1 << 20, 1 << 14, 1 << 8, 1}; /* less and less is left */
	enum { EACH = 64, PODS_PUT = EACH * (sizeof sizes / sizeof *sizes) };
	struct rig *r = *state;
	char name[16];

	start(r);
	for (unsigned i = 0; i < PODS_PUT; i++) {
		(void)snprintf(name, sizeof name, "waits-%u", i);
		rig_put(r, PODS, pod_of_bytes(name, sizes[i / EACH]));
	}
	(void)new_pod(r, "a", 4);
	await_log(r, "event=pods-crowded-out pod=default/waits-");
	bind_pod(r, "a", "n1", OK); /* nobody has asked about it: no decision is kept, either */
	assert_int_equal(r->nr_look_ups, 1);
	assert_non_null(strstr(hint_of(r), "\"numa\":\"1\""));
}

/* The scheduler's watch is ahead of ours. */
static void a_pod_that_the_watch_has_not_shown_yet_is_bound(void **state)
{
	struct rig *r = *state;

	start(r);
	(void)json_array_append_new(r->list[PODS].items, rig_pod("a", 4, NULL));
	bind_pod(r, "a", "n1", OK);
	assert_int_equal(r->nr_look_ups, 1);
	r->look_up_status = 503;
	bind_pod(r, "b", "n1", "{\"Error\":\"numafit: binding pod b: not now\"}");
	r->look_up_status = 0;
	json_t *b = rig_pod("b", 1, NULL);
	(void)json_object_set_new(json_object_get(b, "metadata"), "uid", json_string("another"));
	(void)json_array_append_new(r->list[PODS].items, b);
	bind_pod(r, "b", "n1", "{\"Error\":\"numafit: pod b is another one by now\"}");
	assert_int_equal(r->nr_binds, 1);
}

static void a_restarted_extender_continues_after_kill_9(void **state)
{
	struct rig *r = *state;

	start(r);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	bind_pod(r, "a", "n1", OK);
	(void)new_pod(r, "b", 2);
	assert_int_equal(rig_end(r, SIGKILL), -SIGKILL);
	start(r);
	filter(r, new_pod(r, "c", 4), FITS_NONE); /* the hint on a says what it holds */
	bind_pod(r, "b", "n1", OK);               /* nobody has asked this life about it */
	assert_non_null(hint_of(r));
	bind_pod(r, "a", "n1", OK);
	assert_int_equal(r->nr_binds, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_node_that_has_filled_up_meanwhile_is_a_conflict),
		T(a_node_that_would_now_spread_the_pod_is_a_conflict),
		T(a_node_that_can_no_longer_place_the_pod_is_a_conflict),
		T(a_bind_that_fails_gives_back_what_it_held),
		T(a_bind_whose_answer_was_lost_is_looked_up),
		T(a_bind_that_happened_in_spite_of_an_error_is_one),
		T(a_binding_that_cannot_be_looked_up_is_posted_again_as_it_was),
		T(a_binding_that_may_still_happen_is_posted_again_as_it_was),
		T(nobody_makes_room_for_a_pod_that_may_be_bound),
		T(room_stays_held_while_the_api_server_is_away),
		T(a_pod_that_is_gone_has_no_room),
		T(a_binding_whose_answer_was_lost_is_found_by_a_look_up),
		T(another_ones_binding_counts_by_its_own_hint),
		T(a_bound_pod_keeps_its_room_when_it_is_to_be_bound_again),
		T(room_is_given_back_after_assume_ttl),
		T(a_stop_does_not_wait_for_a_binding_that_cannot_be_looked_up),
		T(a_recreated_pod_is_another_pod),
		T(a_uid_belongs_to_one_pod),
		T(a_bound_uid_does_not_bind_another_name),
		T(a_pod_of_another_node_is_not_bound_again),
		T(a_pod_that_there_is_no_room_for_is_bound_all_the_same),
		T(a_pod_that_the_watch_has_not_shown_yet_is_bound),
		T(a_restarted_extender_continues_after_kill_9),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
