#include <stddef.h>
#include <stdint.h>

#include <codec/fields_json.h>
#include <codec/sched_json.h>
#include <jansson.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES = 1 << 20 };

static void check_amounts(const struct amounts *a, const struct resource_table *names)
{
	for (unsigned i = 0; i < a->nr; i++)
		if (a->at[i].resource >= names->nr || a->at[i].q.nano >= QUANTITY_NANOS)
			abort();
}

static void check_pod(const struct sched_pod *p, const struct resource_table *names)
{
	if (!p->ns || !p->name || !p->uid)
		abort();
	for (unsigned i = 0; i < p->nr_containers; i++) {
		if (!p->container[i].name)
			abort();
		check_amounts(&p->container[i].requests, names);
		check_amounts(&p->container[i].limits, names);
	}
	for (size_t i = 0; i < p->nr_annotations; i++)
		if (!p->annotations[i].key || !p->annotations[i].value)
			abort();
	check_amounts(&p->overhead, names);
}

/* A pod, or a node, is whole; or there is a reason why it is none. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct resource_table names;
	struct sched_pod pod;
	struct sched_node node;
	struct arena a;
	struct err e = {0};
	json_t *v;

	if (json_parse((const char *)data, size, &v, NULL))
		return 0;
	arena_init(&a, ARENA_BYTES);
	resource_table_init(&names);
	const struct sched_reader r = {&names, &a};
	int rc = sched_pod_json_read(v, &r, &pod, &e);
	if (!rc)
		check_pod(&pod, &names);
	else if (!e.text[0])
		abort();
	e = (struct err){0};
	rc = sched_node_json_read(v, &r, &node, &e);
	if (!rc)
		check_amounts(&node.allocatable, &names);
	else if (!e.text[0])
		abort();
	resource_table_fini(&names);
	arena_fini(&a);
	json_decref(v);
	return 0;
}
