#include <codec/machine_text.h>

/* A machine as text: the shortest lines that read back as the same. */

/* The CPUs of the core that cpu is the lowest of. */
static struct cpuset threads_of(const struct topo *t, unsigned core)
{
	struct cpuset threads = {0};

	cpuset_each (cpu, &t->node[t->cpu[core].node].cpus)
		if (t->cpu[cpu].core == core)
			cpuset_add(&threads, cpu);
	return threads;
}

/* Whether core b can be on the line of core a, all of whose cores have smt threads. */
static bool same_line(const struct topo *t, unsigned a, unsigned b, unsigned smt)
{
	if (t->cpu[a].socket != t->cpu[b].socket || t->cpu[a].uncore != t->cpu[b].uncore)
		return false;
	struct cpuset threads = threads_of(t, b);
	return cpuset_count(&threads) == smt;
}

/* The nr ids in their order, ranges where they follow each other. */
static void write_list(struct text *out, const uint16_t *id, unsigned nr)
{
	for (unsigned i = 0, end; i < nr; i = end) {
		for (end = i + 1; end < nr && id[end] == id[end - 1] + 1;)
			end++;
		text_add(out, i ? ",%u" : "%u", id[i]);
		if (end - i > 1)
			text_add(out, "-%u", id[end - 1]);
	}
}

/* Take the first core of *left, and all that go on its line, off *left, and write that line. */
static void write_cpus(struct text *out, const struct topo *t, struct cpuset *left)
{
	unsigned first = cpuset_next(left, 0);
	struct cpuset threads = threads_of(t, first), cores = {0};
	unsigned smt = cpuset_count(&threads);
	unsigned nr = 0;
	uint16_t list[CPUSET_BITS];

	cpuset_each (cpu, left)
		if (t->cpu[cpu].core == cpu && same_line(t, first, cpu, smt))
			cpuset_add(&cores, cpu);
	for (unsigned k = 0; k < smt; k++)
		cpuset_each (core, &cores) {
			unsigned cpu = core;

			threads = threads_of(t, core);
			for (unsigned skip = 0; skip < k; skip++)
				cpu = cpuset_next(&threads, cpu + 1);
			cpuset_del(left, cpu);
			list[nr++] = (uint16_t)cpu;
		}
	text_add(out, "cpus ");
	write_list(out, list, nr);
	text_add(out, " socket %u smt %u uncore %u\n", t->cpu[first].socket, smt,
		t->cpu[first].uncore);
}

static void write_node(struct text *out, const struct topo *t, unsigned node)
{
	struct cpuset left = t->node[node].cpus;
	char size[TEXT_SIZE_MAX];

	text_add(out, "node %u %smemory %s", t->ids.id[node],
		nodeset_has(t->device_memory, node) ? "device-" : "",
		text_size(size, t->node[node].memory[0]));
	for (unsigned k = 1; k < t->nr_kinds; k++)
		text_add(out, " hugepages-%s %llu", text_size(size, t->page_bytes[k]),
			(unsigned long long)(t->node[node].memory[k] / t->page_bytes[k]));
	text_add(out, cpuset_empty(&left) ? "\n" : " ");
	while (!cpuset_empty(&left))
		write_cpus(out, t, &left);
}

void machine_text_write(const struct topo *t, struct text *out)
{
	const struct cpuset isolated = cpuset_and(t->isolated, &t->cpus);
	char list[CPUSET_TEXT_MAX];

	text_add(out, "machine %s\n", t->name);
	if (!cpuset_empty(&isolated))
		text_add(out, "isolated %s\n", cpuset_format(&isolated, list, sizeof list));
	nodeset_each (node, t->nodes)
		write_node(out, t, node);
	if (!t->has_distances)
		return;
	text_add(out, "distances\n");
	nodeset_each (from, t->nodes) {
		nodeset_each (to, t->nodes)
			text_add(out, to ? " %u" : "%u", t->distance[from][to]);
		text_add(out, "\n");
	}
}
