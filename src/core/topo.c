#include <numafit/topo.h>

#include <errno.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

/* What Linux assumes where the firmware has no table (include/linux/topology.h). */
enum { LOCAL_DISTANCE = 10, REMOTE_DISTANCE = 20 };
/* So that the sum over all nodes stays far inside 64 bits. */
static const uint64_t NODE_BYTES_MAX = UINT64_C(1) << 56;

void topo_init(struct topo *t, const char *name)
{
	memset(t, 0, sizeof *t);
	(void)text_copy(t->name, sizeof t->name, name);
	t->nr_kinds = 1;
}

int topo_add_node(struct topo *t, unsigned id, struct err *e)
{
	unsigned index = t->ids.nr;

	if (id > NODE_ID_MAX)
		return err_set(e, ERANGE, "NUMA node id %u is above %d", id, NODE_ID_MAX);
	if (index == NODES_MAX)
		return err_set(
			e, ERANGE, "NUMA node %u is one too many: %d are supported", id, NODES_MAX);
	if (index && id == t->ids.id[index - 1])
		return err_set(e, EEXIST, "NUMA node %u is there twice", id);
	if (index && id < t->ids.id[index - 1])
		return err_set(e, EINVAL, "NUMA node %u comes after %u: ids must ascend", id,
			t->ids.id[index - 1]);
	t->ids.id[t->ids.nr++] = (uint16_t)id;
	return (int)index;
}

int topo_add_cpu(struct topo *t, unsigned id, unsigned node, unsigned core, unsigned socket,
	unsigned uncore, struct err *e)
{
	if (id >= CPUSET_BITS || core >= CPUSET_BITS || socket >= CPUSET_BITS ||
		uncore >= CPUSET_BITS)
		return err_set(e, ERANGE,
			"CPU %u (core %u, socket %u, cache %u): ids must be below %d", id, core,
			socket, uncore, CPUSET_BITS);
	if (node >= t->ids.nr)
		return err_set(
			e, EINVAL, "CPU %u is on NUMA node index %u of %u", id, node, t->ids.nr);
	if (cpuset_has(&t->cpus, id))
		return err_set(e, EEXIST, "CPU %u is there twice", id);
	cpuset_add(&t->cpus, id);
	cpuset_add(&t->node[node].cpus, id);
	t->cpu[id] = (struct topo_cpu){
		(uint16_t)core, (uint16_t)socket, (uint16_t)uncore, (uint8_t)node};
	return 0;
}

/* The kind of that page size, made when it is new; sizes stay in ascending order. */
static int kind_for(struct topo *t, uint64_t page_bytes)
{
	unsigned at = 0;

	while (at < t->nr_kinds && t->page_bytes[at] < page_bytes)
		at++;
	if (at < t->nr_kinds && t->page_bytes[at] == page_bytes)
		return (int)at;
	if (t->nr_kinds == TOPO_KINDS)
		return -1;
	size_t behind = (t->nr_kinds - at) * sizeof(uint64_t);
	memmove(&t->page_bytes[at + 1], &t->page_bytes[at], behind);
	t->page_bytes[at] = page_bytes;
	for (unsigned n = 0; n < t->ids.nr; n++) {
		memmove(&t->node[n].memory[at + 1], &t->node[n].memory[at], behind);
		t->node[n].memory[at] = 0;
	}
	t->nr_kinds++;
	return (int)at;
}

int topo_set_memory(
	struct topo *t, unsigned node, uint64_t page_bytes, uint64_t bytes, struct err *e)
{
	if (node >= t->ids.nr)
		return err_set(e, EINVAL, "memory is on NUMA node index %u of %u", node, t->ids.nr);
	if (bytes > NODE_BYTES_MAX)
		return err_set(e, ERANGE, "NUMA node %u has %llu bytes of memory", t->ids.id[node],
			(unsigned long long)bytes);
	int kind = kind_for(t, page_bytes);
	if (kind < 0)
		return err_set(e, ERANGE, "NUMA node %u: more than %d sizes of huge pages",
			t->ids.id[node], TOPO_KINDS - 1);
	t->node[node].memory[kind] = bytes;
	return 0;
}

int topo_set_device_memory(struct topo *t, unsigned node, struct err *e)
{
	if (node >= t->ids.nr)
		return err_set(e, EINVAL, "a device's memory is on NUMA node index %u of %u", node,
			t->ids.nr);
	t->device_memory = nodeset_or(t->device_memory, nodeset_of(node));
	return 0;
}

int topo_set_distance(struct topo *t, unsigned from, unsigned to, unsigned distance, struct err *e)
{
	if (from >= t->ids.nr || to >= t->ids.nr)
		return err_set(e, EINVAL, "a distance is between NUMA node indexes %u and %u of %u",
			from, to, t->ids.nr);
	if (distance < DISTANCE_MIN || distance > DISTANCE_MAX)
		return err_set(e, EINVAL, "distance from NUMA node %u to %u: %u is outside %d..%d",
			t->ids.id[from], t->ids.id[to], distance, DISTANCE_MIN, DISTANCE_MAX);
	t->distance[from][to] = (uint8_t)distance;
	t->has_distances = true;
	return 0;
}

static int seal_distances(struct topo *t, struct err *e)
{
	for (unsigned i = 0; i < t->ids.nr; i++)
		for (unsigned j = 0; j < t->ids.nr; j++) {
			if (!t->has_distances)
				t->distance[i][j] = i == j ? LOCAL_DISTANCE : REMOTE_DISTANCE;
			if (!t->distance[i][j])
				return err_set(e, EINVAL,
					"distance from NUMA node %u to %u is missing", t->ids.id[i],
					t->ids.id[j]);
		}
	for (unsigned i = 0; i < t->ids.nr && !t->made_up; i++)
		for (unsigned j = 0; j < t->ids.nr; j++)
			if (t->distance[i][j] < t->distance[i][i]) /* on no hardware: mistyped */
				return err_set(e, EINVAL,
					"NUMA node %u is farther from itself (%u) than from node "
					"%u (%u)",
					t->ids.id[i], t->distance[i][i], t->ids.id[j],
					t->distance[i][j]);
	return 0;
}

/* Rename every core after its lowest CPU, as the kubelet does (cpumanager/topology.go,
 * getUniqueCoreID). */
static int seal_cores(struct topo *t, struct err *e)
{
	uint16_t lowest[CPUSET_BITS], last[CPUSET_BITS] = {0};

	memset(lowest, 0xff, sizeof lowest);
	cpuset_each (cpu, &t->cpus) {
		uint16_t *first = &lowest[t->cpu[cpu].core];

		if (*first >= CPUSET_BITS) {
			*first = (uint16_t)cpu;
			t->nr_cores++;
		}
		const struct topo_cpu *a = &t->cpu[*first], *b = &t->cpu[cpu];
		if (a->node != b->node || a->socket != b->socket)
			return err_set(e, EINVAL,
				"CPUs %u and %u are threads of one core, but on two NUMA nodes or "
				"sockets",
				*first, cpu);
	}
	cpuset_each (cpu, &t->cpus) {
		const uint16_t core = lowest[t->cpu[cpu].core];

		if (core != cpu)
			t->next_thread[last[core]] = (uint16_t)cpu;
		t->next_thread[cpu] = CPUSET_BITS;
		t->cpu[cpu].core = core;
		last[core] = (uint16_t)cpu;
	}
	return 0;
}

struct cpuset topo_sockets_of(const struct topo *t, const struct cpuset *cpus)
{
	struct cpuset sockets = {0};

	cpuset_each (cpu, cpus)
		cpuset_add(&sockets, t->cpu[cpu].socket);
	return sockets;
}

static void seal_counts(struct topo *t)
{
	const struct cpuset sockets = topo_sockets_of(t, &t->cpus);
	struct cpuset uncores = {0};

	cpuset_each (cpu, &t->cpus)
		cpuset_add(&uncores, t->cpu[cpu].uncore);
	t->nr_cpus = cpuset_count(&t->cpus);
	t->nr_sockets = cpuset_count(&sockets);
	t->nr_uncores = cpuset_count(&uncores);
	t->nodes = nodeset_first(t->ids.nr);
	nodeset_each (n, t->nodes) {
		if (!cpuset_empty(&t->node[n].cpus))
			t->nodes_with_cpus.bits |= nodeset_of(n).bits;
		if (t->node[n].memory[0])
			t->nodes_with_memory.bits |= nodeset_of(n).bits;
	}
	t->device_memory = nodeset_minus(t->device_memory, t->nodes_with_cpus);
}

static int check_memory(const struct topo *t, struct err *e)
{
	for (unsigned n = 0; n < t->ids.nr; n++) {
		unsigned __int128 huge = 0;

		for (unsigned k = 1; k < t->nr_kinds; k++)
			huge += t->node[n].memory[k];
		if (huge > t->node[n].memory[0])
			return err_set(e, EINVAL,
				"NUMA node %u: its huge pages exceed its %llu bytes of memory",
				t->ids.id[n], (unsigned long long)t->node[n].memory[0]);
	}
	return 0;
}

static void seal_parts(struct topo *t)
{
	memset(t->part_size, 0, sizeof t->part_size);
	for (enum topo_level level = 0; level < TOPO_LEVELS; level++) {
		uint16_t *size = t->part_size[level], *smallest = &t->smallest_part[level];

		cpuset_each (cpu, &t->cpus)
			size[topo_part_of(t, cpu, level)]++;
		*smallest = UINT16_MAX;
		for (unsigned part = 0; part < CPUSET_BITS; part++)
			if (size[part] && size[part] < *smallest)
				*smallest = size[part];
	}
}

int topo_seal(struct topo *t, struct err *e)
{
	if (!t->ids.nr)
		return err_set(e, EINVAL, "the machine has no NUMA node");
	if (cpuset_empty(&t->cpus))
		return err_set(e, EINVAL, "the machine has no CPU");
	int rc = seal_distances(t, e);
	if (!rc && !t->made_up)
		rc = check_memory(t, e);
	if (!rc)
		rc = seal_cores(t, e);
	if (rc)
		return rc;
	seal_counts(t);
	seal_parts(t);
	return 0;
}

struct cpuset topo_threads_of(const struct topo *t, unsigned node, unsigned thread)
{
	struct cpuset set = {0};

	cpuset_each (first, &t->node[node].cpus) {
		unsigned cpu = t->cpu[first].core == first ? first : CPUSET_BITS;

		for (unsigned i = 0; i < thread && cpu < CPUSET_BITS; i++)
			cpu = t->next_thread[cpu];
		if (cpu < CPUSET_BITS)
			cpuset_add(&set, cpu);
	}
	return set;
}

struct cpuset topo_cpus_of(const struct topo *t, struct nodeset nodes)
{
	struct cpuset cpus = {0};

	nodeset_each (n, nodes)
		cpus = cpuset_or(cpus, &t->node[n].cpus);
	return cpus;
}

struct nodeset topo_nodes_of(const struct topo *t, const struct cpuset *cpus)
{
	struct nodeset nodes = {0};

	nodeset_each (n, t->nodes_with_cpus)
		if (cpuset_intersects(&t->node[n].cpus, cpus))
			nodes.bits |= nodeset_of(n).bits;
	return nodes;
}

uint64_t topo_memory_of(const struct topo *t, struct nodeset nodes, unsigned kind)
{
	uint64_t sum = 0;

	nodeset_each (n, nodes)
		sum += t->node[n].memory[kind];
	return sum;
}

uint64_t topo_distance_sum(const struct topo *t, struct nodeset nodes)
{
	uint64_t sum = 0;

	nodeset_each (i, nodes)
		nodeset_each (j, nodes)
			sum += t->distance[i][j];
	return sum;
}

double topo_distance_average(const struct topo *t, struct nodeset nodes)
{
	unsigned n = nodeset_count(nodes);

	return n ? (double)topo_distance_sum(t, nodes) / ((double)n * n) : 0;
}

const char *topo_kind_name(const struct topo *t, unsigned kind, char *buf, size_t cap)
{
	char size[TEXT_SIZE_MAX];

	if (kind == 0)
		(void)text_copy(buf, cap, "memory");
	else
		(void)snprintf(buf, cap, "hugepages-%s", text_size(size, t->page_bytes[kind]));
	return buf;
}

int topo_kind_of_page(const struct topo *t, uint64_t page_bytes)
{
	for (unsigned k = 0; k < t->nr_kinds; k++)
		if (t->page_bytes[k] == page_bytes)
			return (int)k;
	return -1;
}

static void mix(uint32_t *sum, const void *data, size_t len)
{
	struct {
		uint32_t before, now;
	} pair = {*sum, text_crc32c(data, len)};

	*sum = text_crc32c(&pair, sizeof pair);
}

uint32_t topo_fingerprint(const struct topo *t)
{
	uint32_t sum = 0;

	mix(&sum, &t->ids, sizeof t->ids);
	mix(&sum, t->distance, sizeof t->distance);
	mix(&sum, t->page_bytes, sizeof t->page_bytes);
	nodeset_each (n, t->nodes)
		mix(&sum, &t->node[n].cpus, sizeof t->node[n].cpus);
	cpuset_each (cpu, &t->cpus) {
		const struct topo_cpu *c = &t->cpu[cpu];
		const uint16_t place[] = {c->core, c->socket, c->uncore, c->node};

		mix(&sum, place, sizeof place);
	}
	return sum;
}
