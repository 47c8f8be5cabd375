/* What the kubelet shows of a pod's devices, for what is observed of it. */
#include <numafitd/gather.h>
#include <numafitd/services_state.h>

#include <errno.h>
#include <numafit/mem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { ARENA_BYTES = 1 << 20, MANY = 1100 };

/* The kubelet's answer, instead of kubelet/pod_resources.c. */
static struct pods_held answer;
static uint64_t age;

const struct pods_held *pod_resources_held(const struct pod_resources *r)
{
	(void)r;
	return &answer;
}

uint64_t pod_resources_age(const struct pod_resources *r)
{
	(void)r;
	return age;
}

uint64_t pod_resources_refresh(struct pod_resources *r)
{
	(void)r;
	return age + 1;
}

void pod_resources_hurry(struct pod_resources *r)
{
	(void)r;
}

const struct container_held *pod_resources_find(
	const struct pod_resources *r, const char *ns, const char *pod, const char *container)
{
	(void)r, (void)ns, (void)pod, (void)container;
	return NULL;
}

int pod_resources_devices(
	const struct pod_resources *r, struct arena *a, const struct device_count **out, size_t *nr)
{
	(void)r, (void)a, (void)out;
	*nr = 0;
	return 0;
}

struct pod_resources *pod_resources_new(struct loop *l, struct rpc_pump *p,
	const struct pod_resources_options *o, const struct pod_resources_handler *handler)
{
	(void)l, (void)p, (void)o, (void)handler;
	return NULL;
}

void pod_resources_close(struct pod_resources *r)
{
	(void)r;
}

/* Nodes 0 and 4. */
struct world {
	struct daemon d;
	struct services v;
	struct observed seen;
	struct pod pod;
	struct arena arena;
};

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);

	topo_init(&w->d.topo, "made-up");
	assert_int_equal(topo_add_node(&w->d.topo, 0, NULL), 0);
	assert_int_equal(topo_add_node(&w->d.topo, 4, NULL), 1);
	assert_int_equal(topo_add_cpu(&w->d.topo, 0, 0, 0, 0, 0, NULL), 0);
	assert_int_equal(topo_seal(&w->d.topo, NULL), 0);
	w->v.d = &w->d;
	w->v.pod_resources = (struct pod_resources *)(void *)w; /* there is one */
	w->d.services = &w->v;
	w->pod = (struct pod){.uid = "u", .ns = "ml", .name = "train"};
	w->seen = (struct observed){.topo = &w->d.topo, .pod = &w->pod};
	arena_init(&w->arena, ARENA_BYTES);
	age = 1;
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	arena_fini(&w->arena);
	free(w);
	return 0;
}

static int64_t zero[] = {0}, four[] = {4}, nine[] = {9}, both[] = {0, 4}, minus[] = {-1};
#define ON(resource_, nodes_)                                                                      \
	{                                                                                          \
		.resource = (resource_), .id = "d", .has_topology = true, .nodes = {               \
			.id = (nodes_),                                                            \
			.nr = sizeof(nodes_) / sizeof *(nodes_)                                    \
		}                                                                                  \
	}
static const struct held_device gpus[] = {ON("a.example/nic", four), ON("nvidia.com/gpu", zero),
	ON("nvidia.com/gpu", four), ON("nvidia.com/gpu", four)},
				odd[] = {ON("a.example/nic", both), ON("a.example/nic", nine),
					ON("a.example/nic", minus),
					{.resource = "nowhere", .id = "x"}},
				more[] = {ON("nvidia.com/gpu", zero)};
#define CONTAINER(name_, devices_)                                                                 \
	{                                                                                          \
		.name = (name_), .device = (devices_),                                             \
		.nr_devices = sizeof(devices_) / sizeof *(devices_)                                \
	}

static const struct observed_devices *row(const struct world *w, const char *resource)
{
	for (size_t i = 0; i < w->seen.nr_devices; i++)
		if (strcmp(w->seen.devices[i].resource, resource) == 0)
			return &w->seen.devices[i];
	fail_msg("no %s", resource);
	return NULL;
}

static void devices_of_all_containers_are_one_sum_by_node(void **state)
{
	static const struct container_held containers[] = {
		CONTAINER("a", gpus), CONTAINER("b", more), {.name = "c"}};
	static const struct container_held others[] = {CONTAINER("a", gpus)};
	const struct pod_held pods[] = {{.ns = "ml", .name = "other", .container = others, .nr = 1},
		{.ns = "dev", .name = "train", .container = others, .nr = 1},
		{.ns = "ml", .name = "train", .container = containers, .nr = 3}};
	struct world *w = *state;

	answer = (struct pods_held){pods, 3};
	assert_int_equal(services_observe(&w->d, &w->seen, &w->arena), 0);
	assert_int_equal(w->seen.nr_devices, 2);
	assert_string_equal(w->seen.devices[0].resource, "a.example/nic");
	assert_int_equal(row(w, "a.example/nic")->on[1], 1);
	assert_int_equal(row(w, "nvidia.com/gpu")->on[0], 2);
	assert_int_equal(row(w, "nvidia.com/gpu")->on[1], 2); /* node 4 is the second zone */
}

static void devices_without_one_known_node_are_left_out(void **state)
{
	static const struct container_held containers[] = {CONTAINER("a", odd)};
	const struct pod_held pods[] = {
		{.ns = "ml", .name = "train", .container = containers, .nr = 1}};
	struct world *w = *state;

	answer = (struct pods_held){pods, 1};
	assert_int_equal(services_observe(&w->d, &w->seen, &w->arena), 0);
	for (size_t i = 0; i < w->seen.nr_devices; i++)
		for (unsigned n = 0; n < NODES_MAX; n++)
			assert_int_equal(w->seen.devices[i].on[n], 0);
}

/* The kubelet gives devices before it starts the sandbox. */
static void an_answer_that_is_older_than_the_sandbox_says_nothing(void **state)
{
	struct world *w = *state;
	struct arena a;

	answer = (struct pods_held){0};
	arena_init(&a, ARENA_BYTES);
	services_note_pod(&w->d, &(struct known_pod){.pod = w->pod, .nr_resources = 1});
	age++; /* that is answered, and the pod is new */
	gather_pod(&w->d, &(struct pod){.uid = "u", .ns = "ml", .name = "train"}, &a);
	arena_fini(&a);
	assert_int_equal(services_observe(&w->d, &w->seen, &w->arena), -EAGAIN);
	age++;
	assert_int_equal(services_observe(&w->d, &w->seen, &w->arena), 0);
	assert_int_equal(w->seen.nr_devices, 0);
	age = 0; /* there is no answer at all */
	assert_int_equal(services_observe(&w->d, &w->seen, &w->arena), -EAGAIN);
	w->v.pod_resources = NULL;
	age = 1;
	assert_int_equal(services_observe(&w->d, &w->seen, &w->arena), -EAGAIN);
}

static void more_rows_than_a_pod_may_have_are_refused(void **state)
{
	struct container_held *containers = xcalloc(MANY, sizeof *containers);
	const struct pod_held pods[] = {
		{.ns = "ml", .name = "train", .container = containers, .nr = MANY}};
	struct world *w = *state;

	for (size_t i = 0; i < MANY; i++)
		containers[i] = (struct container_held)CONTAINER("a", more);
	answer = (struct pods_held){pods, 1};
	assert_int_equal(services_observe(&w->d, &w->seen, &w->arena), -ENOMEM);
	free(containers);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(devices_of_all_containers_are_one_sum_by_node),
		CASE(devices_without_one_known_node_are_left_out),
		CASE(an_answer_that_is_older_than_the_sandbox_says_nothing),
		CASE(more_rows_than_a_pod_may_have_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
