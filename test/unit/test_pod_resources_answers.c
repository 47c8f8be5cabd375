/* What the client of PodResources makes of answers: pods, devices, and what cannot be read. */
#include "pod_resources_rig.h"

static void an_unreadable_answer_keeps_the_previous_answer(void **state)
{
	static const struct blob bad = {"\x0a\x05xy", 4};
	struct world *w = *state;

	w->options.retry_min_ms = SLOW_MS;
	will_answer(w, two_pods, 2);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated);
	w->answer = bad;
	(void)pod_resources_refresh(w->r);
	UNTIL(&w->k, strstr(w->k.log, "refused"));
	assert_string_equal(w->k.log, " pod-resources-up pod-resources-refused!");
	assert_int_equal(pod_resources_age(w->r), 1);
	assert_int_equal(w->nr_updated, 1);
	assert_holds(w, "ml", "train", "gpu0");
}

static void an_answer_that_is_too_large_is_refused(void **state)
{
	struct world *w = *state;

	w->options.retry_min_ms = SLOW_MS;
	w->answer = (struct blob){arena_alloc(&w->memory, RPC_REPLY_MAX + 1), RPC_REPLY_MAX + 1};
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->k.log[0]);
	assert_string_equal(w->k.log, " pod-resources-refused");
	assert_non_null(strstr(w->k.last_text, "larger than max"));
}

static void a_kubelet_that_never_answers_is_asked_again(void **state)
{
	struct world *w = *state;

	w->options.answer_ms = 100;
	will_answer(w, two_pods, 2);
	w->reply = REPLY_LATER;
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->k.log[0]);
	assert_string_equal(w->k.log, " pod-resources-refused");
	w->reply = REPLY_ANSWER;
	UNTIL(&w->k, w->nr_updated);
	assert_string_equal(w->k.log, " pod-resources-refused pod-resources-up");
}

static void of_two_pods_with_one_name_the_one_with_devices_counts(void **state)
{
	static const struct pod_held pods[] = {POD("b", "first-holds", &with_gpu),
		POD("a", "last-holds", &bare), POD("c", "both-hold", &with_gpu),
		POD("d", "none-holds", &bare), POD("b", "first-holds", &bare),
		POD("a", "last-holds", &with_other), POD("c", "both-hold", &with_other),
		POD("d", "none-holds", &bare)};
	struct world *w = *state;

	will_answer(w, pods, sizeof pods / sizeof pods[0]);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated);
	assert_int_equal(w->nr_pods, sizeof pods / sizeof pods[0]);
	assert_holds(w, "b", "first-holds", "gpu0");
	assert_holds(w, "a", "last-holds", "gpu1");
	assert_holds(w, "c", "both-hold", "gpu1");
	assert_holds(w, "d", "none-holds", NULL);
}

static void a_thousand_pods_are_found(void **state)
{
	enum { NR = 1000 };
	static struct pod_held pods[NR];
	static char name[NR][8];
	struct world *w = *state;

	for (unsigned i = 0; i < NR; i++) {
		(void)snprintf(name[i], sizeof name[i], "p%u", i);
		pods[i] = (struct pod_held)POD(
			i % 3 ? "ml" : "default", name[i], i % 2 ? &with_gpu : &with_other);
	}
	will_answer(w, pods, NR);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated);
	for (unsigned i = 0; i < NR; i++) {
		assert_holds(w, i % 3 ? "ml" : "default", name[i], i % 2 ? "gpu0" : "gpu1");
		assert_null(pod_resources_find(w->r, i % 3 ? "default" : "ml", name[i], "app"));
	}
}

/* The kubelet can give out the first nr of these. */
static void will_give_out(struct world *w, size_t nr)
{
	const struct devices_allocatable all = {gpus, nr};

	assert_int_equal(pod_resources_allocatable_encode(&all, &w->memory, &w->devices, NULL), 0);
	w->devices_code = RPC_OK;
}

static size_t nr_resources(const struct world *w, const struct device_count **out)
{
	struct world *writable = (struct world *)(uintptr_t)w;
	size_t nr;

	assert_int_equal(pod_resources_devices(w->r, &writable->memory, out, &nr), 0);
	return nr;
}

static void devices_are_asked_for_beside_the_pods(void **state)
{
	const struct device_count *got;
	struct world *w = *state;

	w->options.devices = true;
	will_answer(w, two_pods, 2);
	will_give_out(w, 2);
	kubelet_start(&w->k);
	begin(w);
	assert_int_equal(nr_resources(w, &got), 0);
	UNTIL(&w->k, w->nr_updated && nr_resources(w, &got));
	assert_string_equal(got->resource, "vendor.example/gpu");
	assert_int_equal(got->nr, 2);
	assert_int_equal(got->on[0].id, 2);
	assert_int_equal(got->on[0].allocatable, 1);
	assert_int_equal(got->on[0].used, 1);
	assert_int_equal(got->on[1].id, 3);
	assert_int_equal(got->on[1].used, 0);
	assert_string_equal(w->k.log, " pod-resources-up");
}

static void only_changed_devices_are_reported(void **state)
{
	const struct device_count *got;
	struct world *w = *state;

	w->options.devices = true;
	will_answer(w, two_pods, 2);
	will_give_out(w, 2);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated && nr_resources(w, &got));
	kubelet_stay_quiet(&w->k);
	unsigned before = w->nr_updated;
	(void)pod_resources_refresh(w->r);
	UNTIL(&w->k, w->nr_updated == before + 1);
	UNTIL(&w->k, w->nr_devices_asked == 2);
	kubelet_stay_quiet(&w->k);
	assert_int_equal(w->nr_updated, before + 1);
	will_give_out(w, 1);
	(void)pod_resources_refresh(w->r);
	UNTIL(&w->k, w->nr_updated == before + 3);
	assert_int_equal(nr_resources(w, &got), 1);
	assert_int_equal(got->nr, 1);
}

static void without_an_answer_the_previous_devices_stay_and_one_line_is_logged(void **state)
{
	const struct device_count *got;
	struct world *w = *state;

	w->options.devices = true;
	w->options.every_ms = 1;
	will_answer(w, two_pods, 2);
	will_give_out(w, 2);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated && nr_resources(w, &got));
	w->devices_code = RPC_RESOURCE_EXHAUSTED; /* it will pass */
	unsigned asked = w->nr_devices_asked;
	UNTIL(&w->k, w->nr_devices_asked > asked + 3);
	assert_string_equal(w->k.log, " pod-resources-up");
	w->devices_code = RPC_UNKNOWN;
	asked = w->nr_devices_asked;
	UNTIL(&w->k, w->nr_devices_asked > asked + 3);
	assert_string_equal(w->k.log, " pod-resources-up pod-resources-no-devices!");
	assert_non_null(strstr(w->k.last_text, "GetAllocatableResources: not today"));
	assert_int_equal(nr_resources(w, &got), 1);
	w->devices_code = RPC_OK;
	w->devices = (struct blob){"\x0a\x05xy", 4};
	asked = w->nr_devices_asked;
	UNTIL(&w->k, w->nr_devices_asked > asked + 3);
	assert_string_equal(
		w->k.log, " pod-resources-up pod-resources-no-devices! pod-resources-no-devices!");
	assert_int_equal(nr_resources(w, &got), 1);
}

static void devices_are_only_asked_for_when_they_are_wanted(void **state)
{
	const struct device_count *got;
	struct world *w = *state;

	w->options.every_ms = 1;
	will_answer(w, two_pods, 2);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, w->nr_updated == 3);
	assert_int_equal(w->nr_devices_asked, 0);
	assert_int_equal(nr_resources(w, &got), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(an_unreadable_answer_keeps_the_previous_answer),
		IN_WORLD(an_answer_that_is_too_large_is_refused),
		IN_WORLD(a_kubelet_that_never_answers_is_asked_again),
		IN_WORLD(of_two_pods_with_one_name_the_one_with_devices_counts),
		IN_WORLD(a_thousand_pods_are_found),
		IN_WORLD(devices_are_asked_for_beside_the_pods),
		IN_WORLD(only_changed_devices_are_reported),
		IN_WORLD(without_an_answer_the_previous_devices_stay_and_one_line_is_logged),
		IN_WORLD(devices_are_only_asked_for_when_they_are_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
