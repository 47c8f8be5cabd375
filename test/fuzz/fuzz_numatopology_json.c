#include <stddef.h>
#include <stdint.h>

#include <codec/fields_json.h>
#include <codec/numatopology_json.h>
#include <jansson.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 1 << 20 };

/* A pod of two containers on whatever machine that is. */
static void place(const struct volcano_node *n)
{
	const struct amount cpus = {RESOURCE_CPU, {.whole = 2}};
	const struct sched_container c[2] = {
		{.name = "a", .requests = {&cpus, 1}}, {.name = "b", .requests = {&cpus, 1}}};
	const struct sched_pod pod = {.qos = QOS_GUARANTEED, .container = c, .nr_containers = 2};
	struct volcano_answer a;

	volcano_predicate(n, &pod, &a, NULL);
	if (!cpuset_within(&a.cpus, &n->free) || (a.code == SCHED_SUCCESS) != !a.why[0] ||
		nodeset_empty(a.nodes) != cpuset_empty(&a.cpus))
		abort();
}

/* A machine is whole, or there is a reason why it is none; only free CPUs are given away. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct volcano_node n;
	struct arena a;
	struct err e = {0};
	json_t *v;

	if (json_parse((const char *)data, size, &v, NULL))
		return 0;
	arena_init(&a, ARENA_BYTES);
	int rc = numatopology_json_read(v, &a, &n, &e);
	if (rc && !e.text[0])
		abort();
	for (unsigned i = 0; !rc && i < n.nr_cpus; i++)
		if (n.cpu[i].cpu >= CPUSET_BITS || n.cpu[i].numa >= n.ids.nr ||
			(i && n.cpu[i].cpu <= n.cpu[i - 1].cpu))
			abort();
	if (!rc)
		place(&n);
	arena_fini(&a);
	json_decref(v);
	return 0;
}
