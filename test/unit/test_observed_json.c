/* What a pod has of each NUMA node, from the ledger to KAI's annotation. */
#include <apiserver/observed_json.h>
#include <codec/pod_spec.h>

#include <numafit/mem.h>
#include <numafit/shares.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core_machine.h"

/* KEP-3545's eight nodes with CPUs 0-3 and 32-35 on the first, and so on. */
struct world {
	struct topo *t;
	struct settings s;
	struct ledger *l;
	struct observed seen;
	char *text;
};

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);

	w->t = machine_of_eight();
	w->s = settings_of(POLICY_RESTRICTED);
	w->l = ledger_new(w->t, &w->s);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	ledger_free(w->l);
	free(w->text);
	free(w->t);
	free(w);
	return 0;
}

static struct cpuset list(const char *text)
{
	struct cpuset cpus;

	assert_int_equal(cpuset_parse(&cpus, text, strlen(text), NULL), 0);
	return cpus;
}

/* A container of the pod: on these CPUs of its own (NULL: the shared pool), with so much memory of
 * these nodes. It is decided with its pod: parts of one may take over from another. */
static void enter_as(struct world *w, struct decision d, struct request req, const char *cpus,
	uint64_t nodes, uint64_t bytes)
{
	struct cpuset pool;

	d.admit = true;
	d.source = SOURCE_HELD;
	d.exclusive = cpus != NULL;

	d.cpus = cpus ? list(cpus) : ledger_view(w->l)->pool;
	d.nr_blocks = bytes > 0;
	d.blocks[0] = (struct memory_block){.nodes = {nodes}, .bytes = bytes};
	if (cpus && !d.within_pod) {
		pool = ledger_pool_without(w->l, &d.cpus);
		assert_int_equal(ledger_set_pool(w->l, &pool, NULL), 0);
	}
	ledger_hold(w->l, &req, &d);
}

static struct request named(const char *pod, const char *container)
{
	return (struct request){.container_id = "",
		.pod = {.sandbox_id = pod, .uid = pod, .ns = "ml", .name = pod},
		.ask = {.name = container}};
}

static void enter(struct world *w, const char *pod, const char *container, const char *cpus,
	uint64_t nodes, uint64_t bytes)
{
	enter_as(w, (struct decision){0}, named(pod, container), cpus, nodes, bytes);
}

/* The pod at that place, in KAI's form. */
static const char *see(struct world *w, size_t at)
{
	assert_true(observed_next(&w->seen, w->l, &at));
	free(w->text);
	w->text = observed_json_write(&w->seen);
	return w->text;
}

static void a_pod_has_cpus_and_memory_of_zones(void **state)
{
	struct world *w = *state;
	char want[256];

	enter(w, "train", "main", "4-6,8", 1U << 1, GIB(2));
	(void)snprintf(want, sizeof want,
		"[{\"zone\":\"node-1\",\"amount\":{\"cpu\":\"3\",\"memory\":\"%llu\"}},"
		"{\"zone\":\"node-2\",\"amount\":{\"cpu\":\"1\"}}]",
		(unsigned long long)GIB(2));
	assert_string_equal(see(w, 0), want);
	assert_string_equal(w->seen.pod->name, "train");
}

static void a_pods_containers_are_one_sum(void **state)
{
	struct world *w = *state;

	enter(w, "train", "a", "4", 1U << 1, GIB(1));
	enter(w, "train", "b", "5", 1U << 1, GIB(1));
	enter(w, "train", "shared", NULL, 0, 0);
	assert_string_equal(see(w, 0),
		"[{\"zone\":\"node-1\",\"amount\":{\"cpu\":\"2\",\"memory\":\"2147483648\"}}]");
}

/* Containers of a pod take CPUs over from its init containers. */
/* Its containers have parts of what the pod has as one. */
static void what_is_within_a_pod_counts_once(void **state)
{
	struct world *w = *state;
	struct request pod = named("train", "");
	char want[256];

	pod.ask.whole_pod = true;
	enter_as(w, (struct decision){0}, pod, "4-7", 1U << 1, GIB(2));
	enter_as(w, (struct decision){.within_pod = true}, named("train", "main"), "4-5", 1U << 1,
		GIB(1));
	(void)snprintf(want, sizeof want,
		"[{\"zone\":\"node-1\",\"amount\":{\"cpu\":\"4\",\"memory\":\"%llu\"}}]",
		(unsigned long long)GIB(2));
	assert_string_equal(see(w, 0), want);
}

/* A claim of that NUMA node. */
static void enter_claim(
	struct world *w, const char *uid, unsigned node, const char *cpus, uint64_t bytes)
{
	const struct claim_share share = {.request = "r",
		.pool = "n1",
		.device = "",
		.cpus = 1,
		.nr_memory = 1,
		.memory = {{0, bytes}}};
	const struct resource_claim claim = {
		.uid = uid, .ns = "ml", .name = uid, .nr = 1, .share = &share};
	char id[SHARE_ID_MAX];

	enter_as(w, (struct decision){0},
		share_request(&claim, 0, node, share_id(uid, 0, id), "0", "train pair"), cpus,
		1U << node, bytes);
}

/* A container of the pod that runs on these shares. */
static void enter_on(struct world *w, const char *pod, const char *container, const char *shares)
{
	struct request req = named(pod, container);
	struct decision d = {.admit = true,
		.within_claims = true,
		.exclusive = true,
		.cpus = shares_cpus(w->l, shares)};

	req.container_id = container;
	req.shares = shares;
	ledger_commit(w->l, &req, &d);
}

/* The share has the memory, and the containers have it of the share. */
static void memory_of_a_claim_is_its_pods(void **state)
{
	struct world *w = *state;
	char want[256];

	enter_claim(w, "claim", 1, "4-5", GIB(2));
	enter_claim(w, "other", 2, "8", GIB(1));
	enter_claim(w, "unused", 3, "12", GIB(1));
	enter_on(w, "train", "a", "claim/0");
	(void)snprintf(want, sizeof want,
		"[{\"zone\":\"node-1\",\"amount\":{\"cpu\":\"2\",\"memory\":\"%llu\"}}]",
		(unsigned long long)GIB(2));
	assert_string_equal(see(w, 0), want);
	assert_string_equal(w->seen.pod->name, "train");
	/* two containers on one claim have it once; one has another claim besides */
	enter_on(w, "train", "b", "claim/0 other/0");
	(void)snprintf(want, sizeof want,
		"[{\"zone\":\"node-1\",\"amount\":{\"cpu\":\"2\",\"memory\":\"%llu\"}},"
		"{\"zone\":\"node-2\",\"amount\":{\"cpu\":\"1\",\"memory\":\"%llu\"}}]",
		(unsigned long long)GIB(2), (unsigned long long)GIB(1));
	assert_string_equal(see(w, 0), want);
}

static void a_cpu_of_two_containers_counts_once(void **state)
{
	struct world *w = *state;

	enter(w, "train", "init", "4-5", 0, 0);
	enter(w, "train", "main", "5-6", 0, 0);
	assert_string_equal(see(w, 0), "[{\"zone\":\"node-1\",\"amount\":{\"cpu\":\"3\"}}]");
}

/* As KAI's exporter, which leaves out what is attributed to more than one node. */
static void memory_of_several_nodes_together_is_left_out(void **state)
{
	struct world *w = *state;

	enter(w, "train", "main", "4,8", 1U << 1 | 1U << 2, GIB(1));
	assert_string_equal(see(w, 0), "[{\"zone\":\"node-1\",\"amount\":{\"cpu\":\"1\"}},"
				       "{\"zone\":\"node-2\",\"amount\":{\"cpu\":\"1\"}}]");
}

static void a_pod_without_cpus_of_its_own_has_no_observation(void **state)
{
	struct world *w = *state;

	enter(w, "web", "main", NULL, 1, GIB(1));
	assert_null(see(w, 0));
}

static void devices_are_amounts_of_their_zone(void **state)
{
	const struct observed_devices devices[] = {
		{"nvidia.com/gpu", {0, 2, 1}}, {"vendor.example/\xff", {0, 1}}};
	struct world *w = *state;

	enter(w, "train", "main", "4", 0, 0);
	(void)see(w, 0);
	w->seen.devices = devices;
	w->seen.nr_devices = 2;
	free(w->text);
	w->text = observed_json_write(&w->seen);
	assert_string_equal(w->text,
		"[{\"zone\":\"node-1\",\"amount\":{\"cpu\":\"1\",\"nvidia.com/gpu\":\"2\"}},"
		"{\"zone\":\"node-2\",\"amount\":{\"nvidia.com/gpu\":\"1\"}}]");
}

static void each_pod_comes_once(void **state)
{
	static const char *const want[] = {"a", "b", "c"};
	struct world *w = *state;
	size_t at = 0, nr = 0;

	enter(w, "b", "y", "5", 0, 0);
	enter(w, "a", "main", "4", 0, 0);
	enter(w, "c", "main", NULL, 0, 0);
	enter(w, "b", "x", "6", 0, 0);
	for (; observed_next(&w->seen, w->l, &at); nr++)
		assert_string_equal(w->seen.pod->name, want[nr]);
	assert_int_equal(nr, 3);
	assert_int_equal(at, 4);
}

/* What every pod has and what a report has left are all that there is. */
static void observations_and_what_is_free_add_up(void **state)
{
	struct world *w = *state;
	unsigned cpus = 0;
	uint64_t bytes = 0;
	size_t at = 0;

	enter(w, "a", "main", "4-5", 1U << 1, GIB(1));
	enter(w, "b", "main", "6", 1U << 1, GIB(3));
	while (observed_next(&w->seen, w->l, &at)) {
		cpus += cpuset_count_and(&w->t->node[1].cpus, &w->seen.cpus);
		bytes += w->seen.bytes[0][1];
	}
	assert_int_equal(cpus, cpuset_count_and(&w->t->node[1].cpus, &ledger_view(w->l)->held));
	assert_int_equal(bytes, ledger_view(w->l)->memory.node[1].allocatable[0] -
					ledger_view(w->l)->memory.node[1].free[0]);
}

static void a_patch_is_of_one_annotation_of_one_pod(void **state)
{
	static const struct {
		const char *uid, *value, *want;
	} table[] = {
		{"u-1", "[]",
			"{\"metadata\":{\"uid\":\"u-1\",\"annotations\":{"
			"\"kai.scheduler/numa-placement-observed\":\"[]\"}}}"},
		{"u\"1", "[\"x\"]",
			"{\"metadata\":{\"uid\":\"u\\\"1\",\"annotations\":{"
			"\"kai.scheduler/numa-placement-observed\":\"[\\\"x\\\"]\"}}}"},
		{NULL, NULL,
			"{\"metadata\":{\"annotations\":{"
			"\"kai.scheduler/numa-placement-observed\":null}}}"},
		{"\xff", "[]", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		auto_free char *patch = observed_json_patch(table[i].uid, table[i].value);

		if (table[i].want)
			assert_string_equal(patch, table[i].want);
		else
			assert_null(patch);
	}
}

/* So that it is not written again after a restart. */
static void what_is_on_a_pod_already_is_known(void **state)
{
	const struct key_value on_pod[] = {{"example.com/other", "x"}, {OBSERVED_ANNOTATION, "[]"},
		{"numafit.io/numa-hint", "h"}};
	const struct pod_spec spec = {
		.uid = "u", .ns = "ml", .name = "p", .annotations = on_pod, .nr_annotations = 3};
	struct known_pod known;
	struct arena a;

	(void)state;
	arena_init(&a, 1 << 20);
	assert_int_equal(pod_spec_known(&spec, POD_FROM_API_SERVER, &a, &known, NULL), 0);
	assert_string_equal(pod_annotation(&known.pod, OBSERVED_ANNOTATION), "[]");
	assert_null(pod_annotation(&known.pod, "example.com/other"));
	arena_fini(&a);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_pod_has_cpus_and_memory_of_zones),
		CASE(a_pods_containers_are_one_sum),
		CASE(what_is_within_a_pod_counts_once),
		CASE(memory_of_a_claim_is_its_pods),
		CASE(a_cpu_of_two_containers_counts_once),
		CASE(memory_of_several_nodes_together_is_left_out),
		CASE(a_pod_without_cpus_of_its_own_has_no_observation),
		CASE(devices_are_amounts_of_their_zone),
		CASE(each_pod_comes_once),
		CASE(observations_and_what_is_free_add_up),
		CASE(a_patch_is_of_one_annotation_of_one_pod),
		CASE(what_is_on_a_pod_already_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
