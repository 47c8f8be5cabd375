#include <host/machine_hwloc.h>

#include <errno.h>
#include <fcntl.h>
#include <host/device_memory.h>
#include <host/isolated.h>
#include <host/machine_dropped.h>
#include <host/machine_tree.h>
#include <hwloc.h>
#include <hwloc/distances.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Variables by which hwloc would look at another machine than the one it is asked for. A recorded
 * tree can be given in no other way than by HWLOC_FSROOT (hwloc 2.9, "Environment Variables"). */
enum { VARIABLE_FSROOT, NR_VARIABLES = 6 };
static const char *const variables[NR_VARIABLES] = {"HWLOC_FSROOT", "HWLOC_XMLFILE",
	"HWLOC_SYNTHETIC", "HWLOC_COMPONENTS", "HWLOC_THISSYSTEM", "HWLOC_CPUID_PATH"};

/* What hwloc is to do unless the user says otherwise. It leaves the nodes of NVIDIA GPUs' memory
 * out (before 2.11 by default): the kernel and the kubelet count them, and they must be known to be
 * kept from containers. It leaves out nodes, too, that list the CPUs of another one, as those that
 * numa=fake cuts out of a real one do, and with them all distances. What it
 * would print of either, or of firmware that contradicts itself, is no line of a log: libnuma's
 * view is compared with its own instead. All stay set, as nothing else reads them, and the sweep
 * looks at the machine again when there are threads. */
static const char *const wishes[][2] = {
	{"HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES", "1"},
	{"HWLOC_DEBUG_ALLOW_OVERLAPPING_NODE_CPUSETS", "1"},
	{"HWLOC_HIDE_ERRORS", "2"},
	{"HWLOC_XML_VERBOSE", "1"},
};

struct environment {
	char *value[NR_VARIABLES];
};

static void environment_take(struct environment *saved, const char *fsroot)
{
	for (unsigned i = 0; i < sizeof wishes / sizeof *wishes; i++)
		(void)setenv(wishes[i][0], wishes[i][1], 0);
	for (unsigned i = 0; i < NR_VARIABLES; i++) {
		const char *value = getenv(variables[i]);

		saved->value[i] = value ? xstrdup(value) : NULL;
		(void)unsetenv(variables[i]);
	}
	if (fsroot)
		(void)setenv(variables[VARIABLE_FSROOT], fsroot, 1);
}

static void environment_put_back(struct environment *saved)
{
	for (unsigned i = 0; i < NR_VARIABLES; i++) {
		if (saved->value[i])
			(void)setenv(variables[i], saved->value[i], 1);
		else
			(void)unsetenv(variables[i]);
		free(saved->value[i]);
	}
}

/* The kernel's view alone: x86's own discovery hops from CPU to CPU to ask each, which a daemon
 * should not, and the kubelet knows the kernel's view only. */
static int hwloc_configure(hwloc_topology_t h, enum hwloc_place place, const char *path)
{
	const unsigned long flags = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED |
				    HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
				    HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS;

	if (hwloc_topology_set_flags(h, flags) ||
		hwloc_topology_set_io_types_filter(h, HWLOC_TYPE_FILTER_KEEP_NONE) ||
		hwloc_topology_set_type_filter(h, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_NONE))
		return -1;
	if (place == PLACE_XML)
		return hwloc_topology_set_xml(h, path);
#if defined(__x86_64__) || defined(__i386__)
	return hwloc_topology_set_components(h, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
#else /* hwloc has no such component there, and refuses a name that it does not know */
	return 0;
#endif
}

/* What hwloc prints on standard error, which is where it says why it fails. Between the two calls
 * all of it, of every thread, goes into memory: only while there is one thread. */
struct overheard {
	int real, memory; /* descriptors; -1: nothing is overheard */
};

static void overhear(struct overheard *o)
{
	(void)fflush(stderr);
	*o = (struct overheard){fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0), -1};
	if (o->real >= 0)
		o->memory = memfd_create("overheard", MFD_CLOEXEC);
	if (o->memory >= 0)
		(void)dup2(o->memory, STDERR_FILENO);
}

/* Standard error is as it was. Its first max bytes as a text that the caller frees; "" when nothing
 * was printed or could be heard. */
static char *overheard_end(struct overheard *o, size_t max)
{
	char *text = xcalloc(1, max + 1);

	(void)fflush(stderr);
	if (o->memory >= 0) {
		ssize_t len = pread(o->memory, text, max, 0);

		text[len < 0 ? 0 : len] = '\0';
		(void)dup2(o->real, STDERR_FILENO);
		(void)close(o->memory);
	}
	if (o->real >= 0)
		(void)close(o->real);
	return text;
}

/* Of all that hwloc printed what it failed at, into buf: the first sentence that is not about
 * something that it could ignore, without the file's name before it. "" when there is none. */
static void find_reason(const char *printed, const char *path, char *buf, size_t cap)
{
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path, *at = printed;
	size_t name = strlen(file), len = 0;

	for (; *at && !len; at += strcspn(at, "\n"), at += *at == '\n') {
		const char *line = at;

		if (strncmp(line, file, name) == 0 && strncmp(line + name, ": ", 2) == 0)
			line += name + 2;
		if (text_behind(line, "ignoring "))
			continue;
		len = strcspn(line, "\n");
		const char *end = memmem(line, len, ". ", 2);
		(void)snprintf(buf, cap, "%.*s", (int)(end ? (size_t)(end - line) : len), line);
	}
	if (!len)
		*buf = '\0';
}

static int hwloc_load(hwloc_topology_t h, enum hwloc_place place, const char *path, struct err *e)
{
	enum { PRINTED_MAX = 64 << 10, REASON_MAX = 160 };
	struct overheard overheard = {-1, -1};
	struct environment saved;
	char reason[REASON_MAX];

	int rc = place == PLACE_TREE ? machine_tree_check(path, e) : 0;
	if (rc)
		return rc;
	environment_take(&saved, place == PLACE_TREE ? path : NULL);
	if (place == PLACE_XML)
		overhear(&overheard);
	errno = 0;
	bool failed = hwloc_configure(h, place, path) || hwloc_topology_load(h);
	int error = errno;
	auto_free char *printed = overheard_end(&overheard, PRINTED_MAX);
	environment_put_back(&saved);
	if (!failed)
		return 0;
	find_reason(printed, path ? path : "", reason, sizeof reason);
	return err_set(e, error ? error : EINVAL, "hwloc cannot read this: %s",
		*reason ? reason
		: error ? strerror(error)
			: "not a topology");
}

/* Memory and huge pages of one node. hwloc lists the ordinary page size among the others: it is
 * the smallest. */
static int hwloc_add_memory(
	const struct hwloc_obj *numa, unsigned node, struct topo *t, struct err *e)
{
	const struct hwloc_numanode_attr_s *a = &numa->attr->numanode;
	uint64_t ordinary = UINT64_MAX;

	int rc = topo_set_memory(t, node, 0, a->local_memory, e);
	for (unsigned i = 0; i < a->page_types_len; i++)
		if (a->page_types[i].size && a->page_types[i].size < ordinary)
			ordinary = a->page_types[i].size;
	for (unsigned i = 0; rc == 0 && i < a->page_types_len; i++) {
		uint64_t size = a->page_types[i].size, bytes;

		if (!size || size == ordinary)
			continue;
		if (__builtin_mul_overflow(size, a->page_types[i].count, &bytes))
			return err_set(e, ERANGE, "NUMA node %u: %llu huge pages are too many",
				t->ids.id[node], (unsigned long long)a->page_types[i].count);
		rc = topo_set_memory(t, node, size, bytes, e);
	}
	return rc;
}

/* hwloc's word for it in XML, too. */
static bool is_gpu_memory(const struct hwloc_obj *numa)
{
	return numa->subtype && strcmp(numa->subtype, "GPUMemory") == 0;
}

static int hwloc_add_nodes(hwloc_topology_t h, struct topo *t, struct err *e)
{
	hwloc_const_nodeset_t nodes = hwloc_topology_get_topology_nodeset(h);
	unsigned id;

	hwloc_bitmap_foreach_begin(id, nodes)
	{
		const struct hwloc_obj *numa = hwloc_get_numanode_obj_by_os_index(h, id);
		if (!numa)
			continue;
		int index = topo_add_node(t, id, e);
		int rc = index < 0 ? index : hwloc_add_memory(numa, (unsigned)index, t, e);
		if (!rc && is_gpu_memory(numa))
			rc = topo_set_device_memory(t, (unsigned)index, e);
		if (rc)
			return rc;
	}
	hwloc_bitmap_foreach_end();
	return 0;
}

/* The NUMA node that the kernel counts the CPU to, NULL when there is none: of several that list it
 * the smallest, and of equal ones the first. hwloc gives memory-only
 * nodes the CPUs that are near them, but lists them behind the nodes that have these for their own:
 * both when they hang on the same object of its tree and when they hang higher. A GPU's node has
 * the CPUs near the GPU there, and none in the kernel. */
static hwloc_obj_t hwloc_node_of_cpu(hwloc_topology_t h, unsigned cpu)
{
	hwloc_obj_t numa = NULL;

	while ((numa = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_NUMANODE, numa)))
		if (!is_gpu_memory(numa) && hwloc_bitmap_isset(numa->cpuset, cpu))
			break;
	return numa;
}

/* Objects of one type, numbered in the order of their first CPUs. hwloc's own logical indexes begin
 * anew at each depth, and caches that hold packages here and are held by one there are at two
 * depths. */
struct numbering {
	struct cpuset seen; /* first CPUs of those that have a number */
	uint16_t number[CPUSET_BITS];
	unsigned next;
};

static unsigned number_of_object(struct numbering *n, hwloc_obj_t object)
{
	unsigned first = (unsigned)hwloc_bitmap_first(object->cpuset);

	if (!cpuset_has(&n->seen, first))
		n->number[first] = (uint16_t)n->next++;
	cpuset_add(&n->seen, first);
	return n->number[first];
}

/* What is gathered of cores, sockets and caches, CPU by CPU. */
struct cpu_parts {
	bool sockets_have_numbers; /* the kernel's, as in the kubelet; some firmware makes up huge
				      ones */
	struct numbering sockets, caches;
	struct cpuset without_package, without_cache; /* CPUs for which hwloc has none */
};

static int check_cpu_ids(hwloc_topology_t h, struct cpu_parts *parts, struct err *e)
{
	hwloc_obj_t pu = NULL;

	parts->sockets_have_numbers = true;
	while ((pu = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_PU, pu))) {
		hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(h, HWLOC_OBJ_PACKAGE, pu);

		if (pu->os_index >= CPUSET_BITS)
			return err_set(e, ERANGE, "CPU %u: ids must be below %d", pu->os_index,
				CPUSET_BITS);
		if (package && package->os_index >= CPUSET_BITS)
			parts->sockets_have_numbers = false;
	}
	return 0;
}

static int hwloc_add_cpu(
	hwloc_topology_t h, hwloc_obj_t pu, struct topo *t, struct cpu_parts *parts, struct err *e)
{
	unsigned cpu = pu->os_index;
	hwloc_obj_t node = hwloc_node_of_cpu(h, cpu);
	hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(h, HWLOC_OBJ_CORE, pu);
	hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(h, HWLOC_OBJ_PACKAGE, pu);
	hwloc_obj_t l3 = hwloc_get_ancestor_obj_by_type(h, HWLOC_OBJ_L3CACHE, pu);
	unsigned first = core ? (unsigned)hwloc_bitmap_first(core->cpuset) : cpu;
	unsigned cache = l3 ? number_of_object(&parts->caches, l3) : 0, socket = 0;

	if (package && parts->sockets_have_numbers)
		socket = package->os_index;
	else if (package)
		socket = number_of_object(&parts->sockets, package);
	else
		cpuset_add(&parts->without_package, cpu);
	if (!l3)
		cpuset_add(&parts->without_cache, cpu);
	if (node)
		return topo_add_cpu(t, cpu, (unsigned)node_index(&t->ids, node->os_index), first,
			socket, cache, e);
	/* its node is offline, or hwloc has dropped the node */
	cpuset_add(&t->nodeless, cpu);
	t->cpu[cpu] = (struct topo_cpu){
		.core = (uint16_t)first, .socket = (uint16_t)socket, .uncore = (uint16_t)cache};
	return 0;
}

/* root: of the kernel's files; NULL: there are none. */
static int hwloc_add_cpus(hwloc_topology_t h, const char *root, struct topo *t,
	const struct correction_sink *to, struct err *e)
{
	struct cpu_parts parts = {0};
	hwloc_obj_t pu = NULL;

	int rc = check_cpu_ids(h, &parts, e);
	while (rc == 0 && (pu = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_PU, pu)))
		rc = hwloc_add_cpu(h, pu, t, &parts, e);
	if (rc == 0)
		machine_add_packages(
			root, &parts.without_package, parts.sockets_have_numbers, t, to);
	if (rc == 0)
		machine_add_caches(root, &parts.without_cache, t, to);
	return rc;
}

static int hwloc_copy_distances(const struct hwloc_distances_s *d, struct topo *t, struct err *e)
{
	int rc = 0;

	for (unsigned i = 0; i < d->nbobjs; i++)
		for (unsigned j = 0; rc == 0 && j < d->nbobjs; j++) {
			uint64_t value = d->values[i * d->nbobjs + j];
			int from = node_index(&t->ids, d->objs[i]->os_index);
			int to = node_index(&t->ids, d->objs[j]->os_index);

			rc = topo_set_distance(t, (unsigned)from, (unsigned)to,
				value > UINT16_MAX ? UINT16_MAX : (unsigned)value, e);
		}
	return rc;
}

/* hwloc has none for a single node, and drops a table that does not cover all nodes. */
static int hwloc_add_distances(hwloc_topology_t h, struct topo *t, struct err *e)
{
	struct hwloc_distances_s *d = NULL;
	unsigned nr = 1;
	int rc = 0;

	if (hwloc_distances_get_by_type(
		    h, HWLOC_OBJ_NUMANODE, &nr, &d, HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) ||
		!nr)
		return 0;
	if (d->nbobjs == t->ids.nr)
		rc = hwloc_copy_distances(d, t, e);
	hwloc_distances_release(h, d);
	return rc;
}

/* What an XML leaves open: whether a NUMA node that has no CPUs of its own is memory alone, or one
 * that hwloc could not place. */
static void note_doubts(hwloc_topology_t h, const struct topo *t, const struct correction_sink *to)
{
	static const char ordinary[] = "DRAM";
	hwloc_obj_t numa = NULL;

	while ((numa = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_NUMANODE, numa))) {
		struct correction c = {
			.kind = CORRECTION_DOUBT, .source = SOURCE_HWLOC, .node = numa->os_index};
		int node = node_index(&t->ids, numa->os_index);
		bool is_known = numa->subtype && strcmp(numa->subtype, ordinary) != 0;

		cpuset_each (cpu, &t->cpus)
			if (hwloc_bitmap_isset(numa->cpuset, cpu))
				cpuset_add(&c.theirs, cpu);
		if (node >= 0 && cpuset_empty(&t->node[node].cpus) && !is_known &&
			!cpuset_empty(&c.theirs))
			correction_send(to, &c);
	}
	if (t->ids.nr > 1 && !t->has_distances)
		correction_send(to, &(struct correction){.kind = CORRECTION_NO_DISTANCES,
					    .source = SOURCE_HWLOC,
					    .node = t->ids.id[0]});
}

int machine_from_hwloc(enum hwloc_place place, const char *path, struct topo *t,
	const struct correction_sink *to, struct err *e)
{
	const char *root = place == PLACE_XML ? NULL : place == PLACE_TREE ? path : "";
	hwloc_topology_t h;

	if (hwloc_topology_init(&h))
		return err_set(e, ENOMEM, "hwloc does not start");
	int rc = hwloc_load(h, place, path, e);
	if (rc == 0)
		rc = hwloc_add_nodes(h, t, e);
	if (rc == 0 && root)
		nodeset_each (n, device_memory_read(root, &t->ids))
			if (rc == 0)
				rc = topo_set_device_memory(t, n, e);
	if (rc == 0 && root)
		t->isolated = isolated_read(root);
	if (rc == 0)
		rc = hwloc_add_cpus(h, root, t, to, e);
	if (rc == 0 && hwloc_add_distances(h, t, root ? NULL : e) < 0) {
		t->has_distances = false; /* the kernel's own table is looked at, too */
		rc = root ? 0 : -EINVAL;
	}
	if (rc == 0 && !root)
		note_doubts(h, t, to);
	t->this_machine = place == PLACE_THIS;
	hwloc_topology_destroy(h);
	return rc;
}
