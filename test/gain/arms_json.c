#include "arms.h"

#include <errno.h>
#include <host/discover.h>
#include <inttypes.h>
#include <jansson.h>
#include <numafit/arena.h>
#include <numafit/number.h>
#include <questions/decide_json.h>
#include <string.h>

enum { ARENA_BYTES_MAX = 256 << 20, HELD_BYTES = 64 << 20, PERCENT = 100, ASK_PERCENT = 75 };

/* The size */

static struct nodeset nodes_for_containers(const struct topo *t)
{
	return nodeset_minus(
		nodeset_and(t->nodes_with_cpus, t->nodes_with_memory), t->device_memory);
}

static unsigned whole_cores(const struct topo *t, unsigned cpus)
{
	unsigned threads = t->nr_cores ? t->nr_cpus / t->nr_cores : 1;

	threads = threads ? threads : 1;
	return (cpus + threads - 1) / threads * threads;
}

void arms_size(struct gain *g)
{
	const struct topo *t = g->topo;
	struct nodeset nodes = nodes_for_containers(t);
	unsigned first = cpuset_next(&t->cpus, 0), smallest = t->nr_cpus;

	cpuset_each (cpu, &t->cpus)
		if (t->cpu[cpu].core == t->cpu[first].core &&
			t->cpu[cpu].socket == t->cpu[first].socket)
			cpuset_add(&g->reserved, cpu);
	nodeset_each (n, nodes)
		smallest = (unsigned)number_min(smallest, cpuset_count(&t->node[n].cpus));
	if (!g->alone && !g->held_cpus && nodeset_count(nodes) > 1)
		g->held_cpus = whole_cores(t, smallest / 2);
	if (g->ask_cpus)
		return;
	unsigned left = t->nr_cpus - cpuset_count(&g->reserved) - g->held_cpus;

	g->ask_cpus = whole_cores(t, (smallest * ASK_PERCENT + PERCENT - 1) / PERCENT);
	g->ask_cpus = (unsigned)number_max(1, number_min(g->ask_cpus, left));
}

/* The questions */

static json_t *settings(const struct gain *g, bool kubelet)
{
	char list[CPUSET_TEXT_MAX];
	json_t *s = json_pack(
		"{s:s}", "reservedSystemCPUs", cpuset_format(&g->reserved, list, sizeof list));

	if (kubelet) {
		json_object_set_new(s, "cpuManagerPolicy", json_string("static"));
		json_object_set_new(s, "topologyManagerPolicy", json_string("none"));
	}
	return s;
}

static json_t *kubelet_step(const char *name, unsigned cpus, uint64_t bytes)
{
	char size[sizeof "18446744073709551615"];

	(void)snprintf(size, sizeof size, "%" PRIu64, bytes);
	return json_pack("{s:s, s:{s:{s:s}, s:{s:[{s:s, s:{s:{s:i, s:s}}}]}}}", "op", "admit",
		"pod", "metadata", "uid", name, "spec", "containers", "name", "main", "resources",
		"limits", "cpu", (int)cpus, "memory", size);
}

static json_t *numafit_step(const char *name, unsigned cpus, uint64_t bytes)
{
	return json_pack("{s:s, s:s, s:s, s:i, s:[{s:I}]}", "op", "create", "sandbox_id", name,
		"qos", "Guaranteed", "cpu_milli", (int)cpus * MILLI_PER_CPU, "memory", "bytes",
		(json_int_t)bytes);
}

char *arms_question(const struct gain *g, bool kubelet)
{
	json_t *(*step)(const char *, unsigned, uint64_t) = kubelet ? kubelet_step : numafit_step;
	json_t *steps = json_array();

	if (g->held_cpus)
		json_array_append_new(steps, step("neighbour", g->held_cpus, HELD_BYTES));
	json_array_append_new(steps, step("measured", g->ask_cpus, g->bytes));
	json_t *q = json_pack("{s:s, s:o, s:o}", "machine", g->machine, "settings",
		settings(g, kubelet), "steps", steps);
	char *text = json_dumps(q, JSON_COMPACT);

	json_decref(q);
	return text;
}

/* The answers */

static int load_machine(const char *name, struct topo *out, struct err *e)
{
	return machine_load(name, out, NULL, NULL, e);
}

/* numafit has a list as the kernel prints it, the kubelet an array in its container. */
static int read_cpus(json_t *step, struct cpuset *out, struct err *e)
{
	json_t *container = json_array_get(json_object_get(step, "containers"), 0), *cpu;
	const char *list = json_string_value(json_object_get(step, "cpus"));
	size_t i;

	if (list)
		return cpuset_parse(out, list, strlen(list), e);
	json_array_foreach(json_object_get(container, "cpus"), i, cpu)
		cpuset_add(out, (unsigned)json_integer_value(cpu));
	return 0;
}

static int read_step(const struct gain *g, json_t *step, struct cpuset *cpus, struct nodeset *mems,
	struct err *e)
{
	const char *list = json_string_value(json_object_get(step, "mems"));
	int rc = 0;

	if (!json_is_true(json_object_get(step, "admit"))) {
		auto_free char *text = json_dumps(step, JSON_COMPACT);
		return err_set(e, ENOSPC, "%u CPUs do not fit beside %u of another container: %s",
			g->ask_cpus, g->held_cpus, text);
	}
	if (list)
		rc = nodeset_parse(mems, &g->topo->ids, list, strlen(list), e);
	return rc ? rc : read_cpus(step, cpus, e);
}

static int read_answer(const struct gain *g, json_t *result, struct arm *arm, struct err *e)
{
	json_t *steps = json_object_get(result, "steps"), *step;
	struct cpuset taken = {0};
	size_t i;

	json_array_foreach(steps, i, step)
	{
		arm->cpus = (struct cpuset){0};
		int rc = read_step(g, step, &arm->cpus, &arm->mems, e);
		if (rc)
			return rc;
		taken = cpuset_or(taken, &arm->cpus);
	}
	if (cpuset_count(&arm->cpus) != g->ask_cpus)
		return err_set(e, ENOSPC, "%u CPUs were asked for, and the answer has %u",
			g->ask_cpus, cpuset_count(&arm->cpus));
	arm->pool = cpuset_minus(g->topo->cpus, &taken);
	return 0;
}

static int ask(const struct gain *g, bool kubelet, struct arm *arm, struct err *e)
{
	auto_free char *text = arms_question(g, kubelet);
	struct decide_items *items = NULL;
	json_t *result = NULL;
	struct arena a;
	int rc = decide_items_parse(text, strlen(text), &items, e);

	if (rc)
		return rc;
	arena_init(&a, ARENA_BYTES_MAX);
	rc = decide_item_answer(items, 0, load_machine, &a, &result, e);
	if (!rc)
		rc = read_answer(g, result, arm, e);
	decide_result_free(result);
	arena_fini(&a);
	decide_items_free(items);
	return rc;
}

/* The node that is farthest from those CPUs' nodes and has memory; NODES_MAX: there is no other
 * one. */
static unsigned farthest(const struct topo *t, const struct cpuset *cpus)
{
	struct nodeset from = topo_nodes_of(t, cpus);
	struct nodeset others =
		nodeset_minus(nodeset_minus(t->nodes_with_memory, t->device_memory), from);
	unsigned best = NODES_MAX, best_sum = 0;

	nodeset_each (to, others) {
		unsigned sum = 0;

		nodeset_each (n, from)
			sum += t->distance[n][to];
		if (sum > best_sum)
			best = to, best_sum = sum;
	}
	return best;
}

int arms_decide(struct gain *g, struct err *e)
{
	const struct topo *t = g->topo;
	struct nodeset all = nodeset_minus(t->nodes_with_memory, t->device_memory);
	struct cpuset cpus = cpuset_minus(t->cpus, &t->isolated);
	struct arm *ours = &g->arm[ARM_NUMAFIT];

	g->arm[ARM_UNPINNED] = (struct arm){true, cpus, cpus, all, false, true};
	g->arm[ARM_STATIC] = (struct arm){.there = true, .mems = all, .quota = true};
	*ours = (struct arm){.there = true, .binds_memory = true};
	int rc = ask(g, true, &g->arm[ARM_STATIC], e);

	if (!rc)
		rc = ask(g, false, ours, e);
	if (rc)
		return rc;
	unsigned far = farthest(t, &ours->cpus);

	g->arm[ARM_FAR] = *ours;
	g->arm[ARM_FAR].there = far < NODES_MAX;
	if (far < NODES_MAX)
		g->arm[ARM_FAR].mems = nodeset_of(far);
	else
		gain_note(g, "left out: \"%s\", as no other NUMA node has memory",
			arm_titles[ARM_FAR]);
	return 0;
}
