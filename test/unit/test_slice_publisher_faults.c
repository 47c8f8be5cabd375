/* What an API server and others may do while the ResourceSlice of this node is written. */
#include "slice_publisher_rig.h"

static void a_conflict_waits_for_the_watch(void **state)
{
	struct world *w = *state;

	w->retry_ms = NEVER_MS;
	start(w);
	settle(w);
	FAKE_UNTIL(&w->f, find_watch(w));
	w->watch_is_late = true;
	json_t *object = json_deep_copy(ours(w));
	add_label(object);
	put(w, object);
	change(w, 5);
	FAKE_UNTIL(&w->f, w->puts == 1);
	fake_api_stay_quiet(&w->f);
	assert_int_equal(w->puts, 1);
	assert_int_equal(state_of(w).failed, 1);
	w->watch_is_late = false;
	send_event(w, "MODIFIED", ours(w));
	settle(w);
	assert_int_equal(cpus_of_first(w), 5);
	assert_null(strstr(w->f.log, "refused"));
}

/* Deleted, and the watch does not say so yet. */
static void what_is_gone_already_is_written_anew_or_needs_no_deletion(void **state)
{
	struct world *w = *state;

	put(w, slice_of("old-1", "numafit.io", "n1", "n1", 1));
	w->fault[0] = (struct fault){"DELETE", SLICES, 1, 404, "NotFound", false, false};
	start(w);
	settle(w);
	FAKE_UNTIL(&w->f, find_watch(w));
	FAKE_UNTIL(&w->f, !w->fault[0].times);
	w->watch_is_late = true;
	remove_object(w, OURS);
	change(w, 5);
	FAKE_UNTIL(&w->f, w->posts == 2);
	settle(w);
	assert_int_equal(w->puts, 1);
	assert_int_equal(cpus_of_first(w), 5);
	assert_int_equal(w->deletes, 0); /* it was asked for once */
	assert_int_equal(state_of(w).failed, 0);
	assert_null(strstr(w->f.log, "refused"));
}

static void a_name_that_is_taken_is_reported(void **state)
{
	struct world *w = *state;

	put(w, slice_of(OURS, "gpu.example.com", "n1", "n1", 1));
	start(w);
	FAKE_UNTIL(&w->f, strstr(w->f.log, "claims-slice-refused!"));
	assert_string_equal(w->f.last_text,
		"ResourceSlice n1-numafit.io: there is one of that name, "
		"of another driver or node: delete it");
	remove_object(w, OURS);
	settle(w);
	assert_non_null(strstr(w->f.log, " claims-slice-written"));
}

/* The watch may be a moment late each time. */
static void a_name_that_is_taken_for_a_moment_is_no_news(void **state)
{
	struct world *w = *state;

	for (unsigned i = 1; i <= 3; i++) {
		w->fault[0] = (struct fault){"POST", SLICES, 1, 409, "AlreadyExists", false, false};
		if (i == 1)
			start(w);
		else
			remove_object(w, OURS);
		FAKE_UNTIL(&w->f, w->posts == i);
		settle(w);
	}
	assert_int_equal(state_of(w).failed, 3);
	assert_null(strstr(w->f.log, "refused"));
}

static void a_refusal_says_what_is_missing_and_is_tried_again(void **state)
{
	static const struct {
		const char *method;
		int status;
		const char *reason, *text;
	} rows[] = {
		{"POST", 403, "Forbidden",
			"ResourceSlice n1-numafit.io: Forbidden; the right to create "
			"resourceslices.resource.k8s.io is missing"},
		{"POST", 404, "NotFound",
			"ResourceSlice n1-numafit.io: NotFound; is Kubernetes older than 1.34?"},
		{"POST", 422, "Invalid", "ResourceSlice n1-numafit.io: Invalid"},
		{"PUT", 403, "Forbidden",
			"ResourceSlice n1-numafit.io: Forbidden; the right to update "
			"resourceslices.resource.k8s.io is missing"},
		{"DELETE", 403, "Forbidden",
			"ResourceSlice n1-numafit.io: Forbidden; the right to delete "
			"resourceslices.resource.k8s.io is missing"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct world *w = *state;

		if (i) {
			(void)teardown(state);
			(void)setup(state);
			w = *state;
		}
		w->fault[0] = (struct fault){
			rows[i].method, SLICES, 2, rows[i].status, rows[i].reason, false, false};
		start(w);
		if (strcmp(rows[i].method, "POST") != 0) {
			settle(w);
			w->nr_nodes = !strcmp(rows[i].method, "DELETE") ? 0 : 1;
			slice_publisher_changed(w->p);
		}
		FAKE_UNTIL(&w->f, strstr(w->f.log, "claims-slice-refused!"));
		assert_string_equal(w->f.last_text, rows[i].text);
		settle(w);
		assert_int_equal(count(w->f.log, "refused"), 1);
		assert_int_equal(state_of(w).failed, 2);
	}
}

static void what_may_pass_is_no_bad_news(void **state)
{
	struct world *w = *state;

	w->fault[0] = (struct fault){"POST", SLICES, 2, 503, "ServiceUnavailable", false, false};
	start(w);
	settle(w);
	assert_string_equal(
		w->f.log, " claims-watch-synced claims-slice-refused claims-slice-written");
}

static void without_the_right_to_list_nothing_is_written(void **state)
{
	struct world *w = *state;

	w->fault[0] = (struct fault){"GET", SLICES, 2, 403, "Forbidden", false, false};
	start(w);
	FAKE_UNTIL(&w->f, *w->f.log);
	assert_string_equal(w->f.log, " claims-watch-waiting!");
	assert_non_null(strstr(w->f.last_text, "Forbidden"));
	assert_int_equal(w->posts, 0);
	settle(w);
}

static void without_its_node_the_slice_has_no_owner(void **state)
{
	static const struct {
		int status;
		const char *log;
	} rows[] = {{403, " claims-watch-synced claims-slice-without-owner! claims-slice-written"},
		{404, " claims-watch-synced claims-slice-without-owner claims-slice-written"}};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct world *w = *state;

		if (i) {
			(void)teardown(state);
			(void)setup(state);
			w = *state;
		}
		w->fault[0] = (struct fault){
			"GET", "/nodes/n1", UINT_MAX, rows[i].status, "no", false, false};
		start(w);
		settle(w);
		assert_string_equal(w->f.log, rows[i].log);
		assert_null(json_object_get(meta_of(ours(w)), "ownerReferences"));
		remove_object(w, OURS);
		FAKE_UNTIL(&w->f, w->posts == 2);
		settle(w);
		unsigned before = w->nodes_read;
		FAKE_UNTIL(&w->f, w->nodes_read > before); /* now and then */
		assert_int_equal(count(w->f.log, "without-owner"), 1);
		assert_int_equal(w->puts, 0);
		w->fault[0].times = 0; /* the Node is there now */
		FAKE_UNTIL(&w->f, w->puts == 1);
		settle(w);
		assert_non_null(json_object_get(meta_of(ours(w)), "ownerReferences"));
	}
}

static void a_node_that_cannot_be_read_now_is_waited_for(void **state)
{
	struct world *w = *state;

	w->fault[0] = (struct fault){"GET", "/nodes/n1", 2, 500, "InternalError", false, false};
	start(w);
	settle(w);
	assert_int_equal(w->nodes_read, 3);
	assert_string_equal(
		w->f.log, " claims-watch-synced claims-slice-refused claims-slice-written");
	assert_non_null(json_object_get(meta_of(ours(w)), "ownerReferences"));
}

static void a_write_that_is_not_answered_in_time_is_tried_again(void **state)
{
	struct world *w = *state;

	w->fault[0] = (struct fault){"POST", SLICES, 1, 0, NULL, true, false};
	start_with(w, 1, LONG_MS);
	settle(w);
	assert_int_equal(w->posts, 1);
	assert_int_equal(state_of(w).failed, 1);
	assert_int_equal(state_of(w).written, 1);
	assert_null(strstr(w->f.log, "refused")); /* the connection reports it */
}

static void a_write_that_was_done_without_an_answer_is_not_repeated(void **state)
{
	struct world *w = *state;

	w->fault[0] = (struct fault){"POST", SLICES, 1, 0, NULL, true, true};
	start_with(w, 1, LONG_MS);
	settle(w);
	fake_api_stay_quiet(&w->f);
	assert_int_equal(w->posts, 1);
	assert_int_equal(w->puts, 0);
}

static void delete_before_answer(struct world *w)
{
	w->before_answer = NULL;
	remove_object(w, OURS);
}

static void change_before_answer(struct world *w)
{
	json_t *object = json_deep_copy(ours(w));

	w->before_answer = NULL;
	set_cpus(object);
	put(w, object);
}

/* Answers and the watch come by two connections. */
static void an_answer_that_is_older_than_the_watch_does_not_count(void **state)
{
	struct world *w = *state;

	start(w);
	FAKE_UNTIL(&w->f, find_watch(w));
	w->before_answer = delete_before_answer;
	FAKE_UNTIL(&w->f, !w->before_answer);
	settle(w);
	fake_api_stay_quiet(&w->f);
	settle(w);
	assert_int_equal(find(w, OURS), 0);
	assert_int_equal(w->posts, 2);
	w->before_answer = change_before_answer;
	change(w, 5);
	FAKE_UNTIL(&w->f, !w->before_answer);
	fake_api_stay_quiet(&w->f);
	settle(w);
	assert_int_equal(cpus_of_first(w), 5);
	assert_int_equal(w->puts, 2);
	assert_null(strstr(w->f.log, "refused"));
}

static void a_server_that_keeps_another_slice_is_reported(void **state)
{
	struct world *w = *state;
	enum { SOME = 5 };

	w->drops_sharing = true;
	start(w);
	FAKE_UNTIL(&w->f, strstr(w->f.log, "claims-slice-refused!") || w->puts == SOME);
	assert_string_equal(w->f.last_text,
		"ResourceSlice n1-numafit.io: the API server keeps another one than was written: "
		"devices[0]: allowMultipleAllocations: should be true; is its feature gate "
		"DRAConsumableCapacity off?");
	FAKE_UNTIL(&w->f, w->puts == 2); /* with the longest delay */
	assert_int_equal(count(w->f.log, "refused"), 1);
	w->drops_sharing = false;
	settle(w);
}

static void what_such_a_server_keeps_is_not_written_again_at_once(void **state)
{
	struct world *w = *state;

	w->drops_sharing = true;
	w->retry_ms = NEVER_MS;
	start(w);
	FAKE_UNTIL(&w->f, strstr(w->f.log, "claims-slice-refused!"));
	fake_api_stay_quiet(&w->f);
	assert_int_equal(w->posts, 1);
	assert_int_equal(w->puts, 0);
	assert_false(state_of(w).current);
}

static void a_server_that_comes_back_has_the_slice_again(void **state)
{
	struct world *w = *state;

	start(w);
	settle(w);
	fake_api_down(&w->f);
	change(w, 6);
	FAKE_UNTIL(&w->f, state_of(w).failed > 0);
	fake_api_up(&w->f);
	settle(w);
	assert_int_equal(cpus_of_first(w), 6);
	assert_int_equal(generation(w), 2);
}

static void closing_is_allowed_at_any_time(void **state)
{
	struct world *w = *state;

	slice_publisher_close(NULL);
	w->fault[0] = (struct fault){"POST", SLICES, 1, 0, NULL, true, false};
	start(w);
	slice_publisher_close(steal(w->p)); /* before anything was */
	api_free(steal(w->api));
	start(w);
	FAKE_UNTIL(&w->f, !w->fault[0].times);
	slice_publisher_changed(w->p);
	slice_publisher_close(steal(w->p)); /* a write under way, another one to come */
	api_free(steal(w->api));
	w->fault[0] = (struct fault){"POST", SLICES, 1, 403, "Forbidden", false, false};
	start(w);
	FAKE_UNTIL(&w->f, state_of(w).failed == 1);
	slice_publisher_close(steal(w->p)); /* waiting to try again */
	api_free(steal(w->api));
	start(w);
	settle(w);
	slice_publisher_close(steal(w->p)); /* the slice stays */
	fake_api_stay_quiet(&w->f);
	assert_int_equal(w->nr, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(a_conflict_waits_for_the_watch),
		IN_WORLD(what_is_gone_already_is_written_anew_or_needs_no_deletion),
		IN_WORLD(a_name_that_is_taken_is_reported),
		IN_WORLD(a_name_that_is_taken_for_a_moment_is_no_news),
		IN_WORLD(a_refusal_says_what_is_missing_and_is_tried_again),
		IN_WORLD(what_may_pass_is_no_bad_news),
		IN_WORLD(without_the_right_to_list_nothing_is_written),
		IN_WORLD(without_its_node_the_slice_has_no_owner),
		IN_WORLD(a_node_that_cannot_be_read_now_is_waited_for),
		IN_WORLD(a_write_that_is_not_answered_in_time_is_tried_again),
		IN_WORLD(a_write_that_was_done_without_an_answer_is_not_repeated),
		IN_WORLD(an_answer_that_is_older_than_the_watch_does_not_count),
		IN_WORLD(a_server_that_keeps_another_slice_is_reported),
		IN_WORLD(what_such_a_server_keeps_is_not_written_again_at_once),
		IN_WORLD(a_server_that_comes_back_has_the_slice_again),
		IN_WORLD(closing_is_allowed_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
