#include <numafit/pod_store.h>

#include <numafit/text.h>
#include <numafit/vec.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { NAME_MAX_BYTES = 32 };

static int setup(void **state)
{
	*state = pod_store_new();
	return 0;
}

static int teardown(void **state)
{
	pod_store_free(*state);
	return 0;
}

/* A pod of one container that asks for so much CPU. */
struct plain {
	struct ask container;
	struct pod ask;
	struct known_pod pod;
};

static const struct known_pod *plain(struct plain *p, const char *uid, uint64_t cpu_milli)
{
	*p = (struct plain){.container = {.name = "main", .cpu_milli = cpu_milli}};
	p->ask = (struct pod){.uid = uid, .nr = 1, .container = &p->container};
	p->pod = (struct known_pod){.pod = {.uid = uid,
					    .ns = "ml",
					    .name = "train",
					    .nr = p->ask.nr,
					    .container = p->ask.container}};
	return &p->pod;
}

static bool put(struct pod_store *s, const char *uid, uint64_t cpu_milli)
{
	const struct known_pod *kept = NULL;
	struct plain p;
	bool changed = pod_store_put(s, plain(&p, uid, cpu_milli), &kept);

	assert_ptr_equal(kept, pod_store_find(s, uid));
	return changed;
}

static void the_store_keeps_a_deep_copy_of_a_pod(void **state)
{
	char uid[] = "u-1", ns[] = "ml", name[] = "train-0", container[] = "main";
	char key[] = "numafit.io/numa-hint", value[] = "{}", gpu[] = "example.com/gpu";
	const char *resources[] = {gpu};
	const struct key_value annotation = {key, value};
	const struct ask asks[] = {
		{.name = container, .kind = CONTAINER_INIT, .cpu_milli = 500},
		{.name = container,
			.nr_memory = 1,
			.memory = {{0, 4096}},
			.nr_devices = 1,
			.device = {{0, 2}}},
	};
	const struct known_pod pod = {
		.pod = {.uid = uid,
			.ns = ns,
			.name = name,
			.qos = QOS_BURSTABLE,
			.source = POD_FROM_API_SERVER,
			.nr = 2,
			.container = asks,
			.annotations = &annotation,
			.nr_annotations = 1},
		.resource = resources,
		.nr_resources = 1,
		.owner = POD_OWNER_DAEMON_SET,
		.ended = true,
	};
	char *const texts[] = {uid, ns, name, container, key, value, gpu};
	const struct known_pod *kept;

	assert_true(pod_store_put(*state, &pod, &kept));
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		memset(texts[i], '?', strlen(texts[i]));
	assert_string_equal(kept->pod.uid, "u-1");
	assert_string_equal(kept->pod.ns, "ml");
	assert_string_equal(kept->pod.name, "train-0");
	assert_string_equal(pod_annotation(&kept->pod, "numafit.io/numa-hint"), "{}");
	assert_string_equal(kept->resource[0], "example.com/gpu");
	assert_int_equal(kept->owner, POD_OWNER_DAEMON_SET);
	assert_true(kept->ended);
	assert_int_equal(kept->pod.source, POD_FROM_API_SERVER);
	assert_string_equal(kept->pod.uid, "u-1");
	assert_int_equal(kept->pod.qos, QOS_BURSTABLE);
	assert_int_equal(kept->pod.nr, 2);
	assert_string_equal(kept->pod.container[0].name, "main");
	assert_int_equal(kept->pod.container[0].kind, CONTAINER_INIT);
	assert_int_equal(kept->pod.container[1].memory[0].bytes, 4096);
	assert_int_equal(kept->pod.container[1].device[0].count, 2);
}

static void putting_a_pod_returns_whether_its_requests_changed(void **state)
{
	static const char *const gpu[] = {"example.com/gpu"}, *const nic[] = {"example.com/nic"};
	static const struct {
		const char *what;
		struct ask container;
		enum qos qos;
		bool pod_level;
		const char *const *resource;
		bool changed;
	} cases[] = {
		{"the first", {.name = "a", .cpu_milli = 1}, QOS_BURSTABLE, false, NULL, true},
		{"the same", {.name = "a", .cpu_milli = 1}, QOS_BURSTABLE, false, NULL, false},
		{"CPU", {.name = "a", .cpu_milli = 2}, QOS_BURSTABLE, false, NULL, true},
		{"name", {.name = "b", .cpu_milli = 2}, QOS_BURSTABLE, false, NULL, true},
		{"class", {.name = "b", .cpu_milli = 2}, QOS_GUARANTEED, false, NULL, true},
		{"pod level", {.name = "b", .cpu_milli = 2}, QOS_GUARANTEED, true, NULL, true},
		{"memory", {.name = "b", .nr_memory = 1, .memory = {{0, 1}}}, 0, true, NULL, true},
		{"bytes", {.name = "b", .nr_memory = 1, .memory = {{0, 2}}}, 0, true, NULL, true},
		{"pages", {.name = "b", .nr_memory = 1, .memory = {{4, 2}}}, 0, true, NULL, true},
		{"same pages", {.name = "b", .nr_memory = 1, .memory = {{4, 2}}}, 0, true, NULL,
			false},
		{"device", {.name = "b", .nr_devices = 1, .device = {{0, 1}}}, 0, true, gpu, true},
		{"count", {.name = "b", .nr_devices = 1, .device = {{0, 2}}}, 0, true, gpu, true},
		{"other", {.name = "b", .nr_devices = 1, .device = {{0, 2}}}, 0, true, nic, true},
		{"none", {.name = "b"}, 0, true, nic, true},
		{"one", {.name = "b", .nr_devices = 1}, 0, true, nic, true},
		{"none again", {.name = "b"}, 0, true, nic, true},
		{"kind", {.name = "b", .kind = CONTAINER_SIDECAR}, 0, true, nic, true},
		{"resources", {.name = "b", .kind = CONTAINER_SIDECAR}, 0, true, NULL, true},
		{"tokens", {.name = "b", .kind = CONTAINER_SIDECAR, .tokens = 1}, 0, true, NULL,
			true},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct known_pod pod = {.pod = {.uid = "u",
						      .ns = "",
						      .name = "",
						      .qos = cases[i].qos,
						      .pod_level = cases[i].pod_level,
						      .nr = 1,
						      .container = &cases[i].container},
			.resource = cases[i].resource,
			.nr_resources = cases[i].resource != NULL};
		const struct known_pod *kept;

		if (pod_store_put(*state, &pod, &kept) != cases[i].changed)
			fail_msg("%s", cases[i].what);
	}
	assert_int_equal(pod_store_count(*state), 1);
}

static void pods_are_found_and_walked_in_order_of_uid(void **state)
{
	static const char *const uids[] = {"c", "a", "e", "b", "d"};
	const size_t nr = sizeof uids / sizeof *uids;

	assert_null(pod_store_find(*state, "a"));
	for (size_t i = 0; i < nr; i++)
		assert_true(put(*state, uids[i], 1));
	assert_int_equal(pod_store_count(*state), nr);
	for (size_t i = 0; i < nr; i++) {
		const char want[] = {(char)('a' + i), '\0'};

		assert_string_equal(pod_store_at(*state, i)->pod.uid, want);
		assert_ptr_equal(pod_store_find(*state, want), pod_store_at(*state, i));
	}
	assert_true(pod_store_remove(*state, "c"));
	assert_false(pod_store_remove(*state, "c"));
	assert_null(pod_store_find(*state, "c"));
	assert_string_equal(pod_store_at(*state, 2)->pod.uid, "d");
	assert_true(put(*state, "c", 1));
}

static void a_pod_that_is_not_listed_again_is_gone(void **state)
{
	assert_true(put(*state, "old", 1));
	assert_true(put(*state, "again", 1));
	pod_store_begin(*state);
	assert_false(put(*state, "again", 1));
	assert_true(put(*state, "new", 1));
	assert_int_equal(pod_store_count(*state), 3); /* until then it may still be listed */
	pod_store_sweep(*state);
	assert_int_equal(pod_store_count(*state), 2);
	assert_null(pod_store_find(*state, "old"));
	pod_store_begin(*state);
	pod_store_begin(*state); /* a round that never came to its end */
	assert_false(put(*state, "new", 1));
	pod_store_sweep(*state);
	assert_int_equal(pod_store_count(*state), 1);
}

/* Against a plain list of what was done. */
static void many_pods_come_and_go(void **state)
{
	enum { PODS = 64, STEPS = 20000 };
	uint64_t has[PODS] = {0}, x = 88172645463325252u;
	size_t nr = 0;

	for (unsigned i = 0; i < STEPS; i++) {
		char uid[NAME_MAX_BYTES];

		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		size_t which = x % PODS;
		uint64_t cpu = 1 + (x >> 32) % 3;
		(void)snprintf(uid, sizeof uid, "pod-%zu", which);
		if ((x >> 16) % 3) {
			assert_int_equal(put(*state, uid, cpu), has[which] != cpu);
			nr += !has[which];
			has[which] = cpu;
		} else {
			assert_int_equal(pod_store_remove(*state, uid), has[which] != 0);
			nr -= has[which] != 0;
			has[which] = 0;
		}
		assert_int_equal(pod_store_count(*state), nr);
	}
	for (size_t i = 1; i < nr; i++)
		assert_true(strcmp(pod_store_at(*state, i - 1)->pod.uid,
				    pod_store_at(*state, i)->pod.uid) < 0);
}

static void only_pods_of_a_controller_are_recreated_elsewhere(void **state)
{
	(void)state;
	for (enum pod_owner o = POD_OWNER_UNKNOWN; o <= POD_OWNER_CONTROLLER; o++)
		assert_int_equal(pod_owner_makes_another(o), o == POD_OWNER_CONTROLLER);
}

static void freeing_a_null_store_is_allowed(void **state)
{
	(void)state;
	pod_store_free(NULL);
}

#define ON_STORE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_STORE(the_store_keeps_a_deep_copy_of_a_pod),
		ON_STORE(putting_a_pod_returns_whether_its_requests_changed),
		ON_STORE(pods_are_found_and_walked_in_order_of_uid),
		ON_STORE(a_pod_that_is_not_listed_again_is_gone),
		ON_STORE(many_pods_come_and_go),
		cmocka_unit_test(only_pods_of_a_controller_are_recreated_elsewhere),
		cmocka_unit_test(freeing_a_null_store_is_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
