/* The ResourceSlice of this node is written, followed and put right. */
#include "slice_publisher_rig.h"

static void a_missing_slice_is_written_and_belongs_to_the_node(void **state)
{
	struct world *w = *state;
	json_t *owner;

	start(w);
	assert_false(state_of(w).synced);
	settle(w);
	assert_int_equal(w->posts, 1);
	assert_int_equal(generation(w), 1);
	assert_int_equal(cpus_of_first(w), 14);
	owner = json_array_get(json_object_get(meta_of(ours(w)), "ownerReferences"), 0);
	assert_string_equal(json_string_value(json_object_get(owner, "uid")), "node-1");
	assert_string_equal(w->f.log, " claims-watch-synced claims-slice-written");
	assert_string_equal(w->f.last_text, "ResourceSlice n1-numafit.io: generation 1");
	assert_true(state_of(w).synced);
	assert_int_equal(state_of(w).generation, 1);
	assert_int_equal(state_of(w).written, 1);
	assert_int_equal(state_of(w).failed, 0);
	fake_api_stay_quiet(&w->f);
	assert_int_equal(w->posts + w->puts + w->deletes, 1);
}

static void only_our_drivers_slices_of_the_node_are_watched(void **state)
{
	struct world *w = *state;

	start(w);
	FAKE_UNTIL(&w->f, find_watch(w));
	assert_non_null(strstr(find_watch(w)->path,
		"fieldSelector=spec.driver%3Dnumafit.io%2Cspec.nodeName%3Dn1"));
}

/* Another instance of us, with what the server has made of it. */
static void a_slice_that_is_right_already_is_left_alone(void **state)
{
	struct world *w = *state;

	start(w);
	settle(w);
	slice_publisher_close(w->p);
	api_free(w->api);
	start(w);
	settle(w);
	fake_api_stay_quiet(&w->f);
	assert_int_equal(w->posts + w->puts + w->deletes, 1);
	assert_int_equal(state_of(w).written, 0);
	assert_int_equal(state_of(w).generation, 1);
}

static void a_change_is_written_with_the_version_that_it_replaces(void **state)
{
	struct world *w = *state;

	start(w);
	settle(w);
	change(w, 7);
	assert_false(state_of(w).current);
	settle(w);
	assert_int_equal(w->puts, 1);
	assert_int_equal(cpus_of_first(w), 7);
	assert_int_equal(generation(w), 2);
	slice_publisher_changed(w->p); /* it is the same */
	settle(w);
	assert_int_equal(w->puts, 1);
	assert_int_equal(count(w->f.log, "claims-slice-written"), 1);
}

static void changes_within_the_interval_are_one_write_at_its_end(void **state)
{
	struct world *w = *state;
	enum { CHANGES = 20 };

	start_with(w, LONG_MS, NEVER_MS);
	uint64_t began = loop_monotonic_ns();
	settle(w);
	unsigned asked = w->asked_wanted;
	for (unsigned i = 1; i <= CHANGES; i++) {
		change(w, i);
		change(w, i);
	}
	fake_api_stay_quiet(&w->f);
	settle(w);
	assert_int_equal(w->puts, 1);
	assert_int_equal(cpus_of_first(w), CHANGES);
	assert_true(loop_monotonic_ns() - began >= (uint64_t)LONG_MS * NS_PER_MS);
	assert_true(w->asked_wanted - asked <= 3);
}

/* The kubelet deletes all slices of its node when it starts. */
static void a_slice_that_the_kubelet_deletes_comes_back(void **state)
{
	struct world *w = *state;

	start(w);
	settle(w);
	for (unsigned i = 2; i <= 4; i++) {
		remove_object(w, OURS);
		FAKE_UNTIL(&w->f, w->posts == i);
		settle(w);
		assert_int_equal(generation(w), i);
		assert_int_equal(w->nodes_read, i); /* it may be another Node by now */
	}
	assert_int_equal(count(w->f.log, "claims-slice-written"), 4);
}

static void a_slice_that_was_deleted_while_the_watch_was_away_comes_back(void **state)
{
	struct world *w = *state;

	start(w);
	settle(w);
	FAKE_UNTIL(&w->f, find_watch(w));
	w->watch_is_late = true;
	remove_object(w, OURS);
	w->watch_is_late = false;
	fake_api_say(find_watch(w), "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":"
				    "410,\"reason\":\"Expired\",\"message\":\"too old\"}}\n");
	FAKE_UNTIL(&w->f, w->posts == 2);
	settle(w);
	assert_int_equal(generation(w), 2);
	assert_int_equal(w->nodes_read, 2);
	assert_int_equal(count(w->f.log, "claims-slice-written"), 2);
}

static void drop_owner(json_t *object)
{
	(void)json_object_del(meta_of(object), "ownerReferences");
}

static void drop_devices(json_t *object)
{
	(void)json_object_set_new(json_object_get(object, "spec"), "devices", json_array());
}

static void lower_generation(json_t *object)
{
	(void)json_object_set_new(json_object_get(json_object_get(object, "spec"), "pool"),
		"generation", json_integer(0));
}

static void add_attribute(json_t *object)
{
	json_t *device =
		json_array_get(json_object_get(json_object_get(object, "spec"), "devices"), 1);

	(void)json_object_set_new(json_object_get(device, "attributes"), "example.com/x",
		json_pack("{s:i}", "int", 1));
}

static void respell(json_t *object)
{
	json_t *device =
		json_array_get(json_object_get(json_object_get(object, "spec"), "devices"), 0);

	(void)json_object_set_new(json_object_get(json_object_get(device, "capacity"), "memory"),
		"value", json_string("63488Mi"));
}

static void what_somebody_else_has_changed_is_put_right(void **state)
{
	static const struct {
		void (*change)(json_t *object);
		bool matters;
	} rows[] = {{set_cpus, true}, {drop_owner, true}, {drop_devices, true},
		{lower_generation, true}, {add_attribute, true}, {add_label, false},
		{respell, false}};
	struct world *w = *state;
	unsigned puts = 0;

	start(w);
	settle(w);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_int_t before = generation(w);
		json_t *object = json_deep_copy(ours(w));

		rows[i].change(object);
		put(w, object);
		puts += rows[i].matters;
		if (rows[i].matters)
			FAKE_UNTIL(&w->f, w->puts == puts);
		else
			fake_api_stay_quiet(&w->f);
		settle(w);
		assert_int_equal(w->puts, puts);
		assert_int_equal(cpus_of_first(w), 14);
		assert_int_equal(generation(w), before + rows[i].matters);
	}
	assert_int_equal(count(w->f.log, "claims-slice-written"), 1 + puts);
}

static void without_any_node_there_is_no_slice(void **state)
{
	struct world *w = *state;

	start(w);
	settle(w);
	w->nr_nodes = 0;
	slice_publisher_changed(w->p);
	settle(w);
	assert_int_equal(w->nr, 0);
	assert_int_equal(state_of(w).generation, 0);
	w->nr_nodes = 1;
	w->node[0].cpus = 0; /* which is no device */
	slice_publisher_changed(w->p);
	settle(w);
	assert_int_equal(w->nr, 0);
	change(w, 3);
	settle(w);
	assert_int_equal(cpus_of_first(w), 3);
	assert_int_equal(generation(w), 2);
}

static void extra_slices_of_ours_are_deleted_and_those_of_others_are_not(void **state)
{
	struct world *w = *state;

	put(w, slice_of("old-1", "numafit.io", "n1", "n1", 41));
	put(w, slice_of("old-2", "numafit.io", "n1", "elsewhere", 1));
	put(w, slice_of("gpu", "gpu.example.com", "n1", "n1", 1)); /* a server without selectors */
	put(w, slice_of("n2-numafit.io", "numafit.io", "n2", "n2", 7));
	start(w);
	FAKE_UNTIL(&w->f, w->deletes == 2);
	fake_api_stay_quiet(&w->f);
	settle(w);
	assert_int_equal(w->nr, 3);
	assert_true(find(w, "gpu") < w->nr);
	assert_true(find(w, "n2-numafit.io") < w->nr);
	assert_int_equal(generation(w), 42);
	put(w, slice_of("new", "numafit.io", "n1", "n1", 43)); /* its generation is in force */
	FAKE_UNTIL(&w->f, w->deletes == 3);
	settle(w);
	assert_int_equal(generation(w), 44);
}

static void an_extra_slice_that_cannot_be_deleted_does_not_stop_the_others(void **state)
{
	struct world *w = *state;

	w->fault[0] = (struct fault){"DELETE", SLICES, 1, 403, "Forbidden", false, false};
	w->retry_ms = NEVER_MS;
	put(w, slice_of("old-1", "numafit.io", "n1", "n1", 1));
	start(w);
	settle(w);
	FAKE_UNTIL(&w->f, strstr(w->f.log, "claims-slice-refused!"));
	change(w, 5);
	settle(w);
	assert_int_equal(cpus_of_first(w), 5);
	assert_int_equal(state_of(w).failed, 1);
	assert_int_equal(w->deletes, 0);
}

static void an_extra_slice_that_cannot_be_deleted_is_tried_again(void **state)
{
	struct world *w = *state;

	w->fault[0] = (struct fault){"DELETE", SLICES, 3, 503, "ServiceUnavailable", false, false};
	put(w, slice_of("old-1", "numafit.io", "n1", "n1", 1));
	start(w);
	FAKE_UNTIL(&w->f, w->deletes == 1);
	assert_int_equal(w->nr, 1);
	assert_int_equal(state_of(w).failed, 3);
}

static void a_slice_of_another_pool_is_deleted_first(void **state)
{
	struct world *w = *state;

	put(w, slice_of(OURS, "numafit.io", "n1", "elsewhere", 9));
	start(w);
	settle(w);
	assert_int_equal(w->deletes, 1);
	assert_int_equal(w->posts, 1);
	assert_int_equal(generation(w), 10);
}

static void the_highest_generation_of_all_is_not_exceeded(void **state)
{
	struct world *w = *state;

	put(w, slice_of(OURS, "numafit.io", "n1", "n1", INT64_MAX));
	start(w);
	settle(w);
	assert_true(generation(w) == INT64_MAX);
	assert_int_equal(w->puts, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(a_missing_slice_is_written_and_belongs_to_the_node),
		IN_WORLD(only_our_drivers_slices_of_the_node_are_watched),
		IN_WORLD(a_slice_that_is_right_already_is_left_alone),
		IN_WORLD(a_change_is_written_with_the_version_that_it_replaces),
		IN_WORLD(changes_within_the_interval_are_one_write_at_its_end),
		IN_WORLD(a_slice_that_the_kubelet_deletes_comes_back),
		IN_WORLD(a_slice_that_was_deleted_while_the_watch_was_away_comes_back),
		IN_WORLD(what_somebody_else_has_changed_is_put_right),
		IN_WORLD(without_any_node_there_is_no_slice),
		IN_WORLD(extra_slices_of_ours_are_deleted_and_those_of_others_are_not),
		IN_WORLD(an_extra_slice_that_cannot_be_deleted_does_not_stop_the_others),
		IN_WORLD(an_extra_slice_that_cannot_be_deleted_is_tried_again),
		IN_WORLD(a_slice_of_another_pool_is_deleted_first),
		IN_WORLD(the_highest_generation_of_all_is_not_exceeded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
