/* What was corrected in a machine's description, or is doubtful in it: kinds, words, lists. */
#include <host/correction.h>

#include <numafit/text.h>
#include <numafit/topo.h>
#include <string.h>

enum { LIST_MAX = 80 };

const char *const machine_source_words[MACHINE_SOURCES] = {
	[SOURCE_KERNEL] = "kernel",
	[SOURCE_HWLOC] = "hwloc",
	[SOURCE_LIBNUMA] = "libnuma",
};

const char *const correction_kind_words[CORRECTION_KINDS] = {
	[CORRECTION_NODE_MISSING] = "node-missing",
	[CORRECTION_NODE_EXTRA] = "node-extra",
	[CORRECTION_CPUS] = "cpus",
	[CORRECTION_MEMORY] = "memory",
	[CORRECTION_DISTANCE] = "distance",
	[CORRECTION_CORES] = "cores",
	[CORRECTION_PACKAGES] = "packages",
	[CORRECTION_CACHES] = "caches",
	[CORRECTION_LISTED_TWICE] = "listed-twice",
	[CORRECTION_NO_DISTANCES] = "no-distances",
	[CORRECTION_DISTANCE_COUNT] = "distance-count",
	[CORRECTION_DISTANCE_RANGE] = "distance-range",
	[CORRECTION_DISTANCE_FROM_SELF] = "distance-from-self",
	[CORRECTION_DOUBT] = "doubt",
	[CORRECTION_UNCHECKED] = "unchecked",
};

void correction_send(const struct correction_sink *to, const struct correction *c)
{
	if (to->note)
		to->note(to->ctx, c);
}

bool correction_is_doubt(const struct correction *c)
{
	return c->kind == CORRECTION_DOUBT || c->kind == CORRECTION_UNCHECKED;
}

static void add_cpu_list(struct text *t, const struct cpuset *cpus)
{
	char list[CPUSET_TEXT_MAX];
	size_t len = strlen(cpuset_format(cpus, list, sizeof list));

	if (!len)
		text_add(t, "none");
	else if (len <= LIST_MAX)
		text_add(t, "%s", list);
	else
		text_add(t, "%.*s...", LIST_MAX, list);
}

static void add_cpus(struct text *t, const struct cpuset *cpus)
{
	text_add(t, cpuset_empty(cpus) ? "no CPUs" : "CPUs ");
	if (!cpuset_empty(cpus))
		add_cpu_list(t, cpus);
}

static void add_cpus_sentence(struct text *t, const struct correction *c)
{
	text_add(t, "NUMA node %u has ", c->node);
	add_cpus(t, &c->cpus);
	text_add(t, " by the kernel's files; %s has ", machine_source_words[c->source]);
	add_cpu_list(t, &c->theirs);
}

static void add_memory_sentence(struct text *t, const struct correction *c)
{
	char ours[TEXT_SIZE_MAX], theirs[TEXT_SIZE_MAX];

	text_add(t, "NUMA node %u has %s of memory by the kernel's files; %s has %s", c->node,
		text_size(ours, c->value), machine_source_words[c->source],
		text_size(theirs, c->their_value));
}

static void add_doubt_sentence(struct text *t, const struct correction *c)
{
	text_add(t, "NUMA node %u has no CPUs in this XML, and CPUs ", c->node);
	add_cpu_list(t, &c->theirs);
	text_add(t,
		" are local to it: if the NUMA node is more than memory, hwloc could not place the "
		"NUMA node's CPUs; a tree of hwloc-gather-topology has them");
}

static void add_cpus_between(
	struct text *t, const char *before, const struct correction *c, const char *after)
{
	text_add(t, "%s", before);
	add_cpu_list(t, &c->cpus);
	text_add(t, "%s", after);
}

/* A table that is not used */
static void add_table_sentence(struct text *t, const struct correction *c)
{
	unsigned long long value = c->value, other = c->their_value;

	if (c->kind == CORRECTION_NO_DISTANCES)
		text_add(t, "the distances of NUMA node %u are missing or no numbers", c->node);
	else if (c->kind == CORRECTION_DISTANCE_COUNT)
		text_add(t, "NUMA node %u has %llu distances, and there are %llu NUMA nodes",
			c->node, value, other);
	else if (c->kind == CORRECTION_DISTANCE_RANGE)
		text_add(t, "the distance from NUMA node %u to %u is %llu, outside %d..%d", c->node,
			c->to, value, DISTANCE_MIN, DISTANCE_MAX);
	else
		text_add(t,
			"NUMA node %u is farther from itself (%llu) than from NUMA node %u (%llu)",
			c->node, value, c->to, other);
	text_add(t, ": no distance is used, 10 and 20 are assumed");
}

const char *correction_text(const struct correction *c, char buf[CORRECTION_TEXT_MAX])
{
	const char *source = machine_source_words[c->source];
	struct text t;

	text_init(&t, buf, CORRECTION_TEXT_MAX);
	switch (c->kind) {
	case CORRECTION_NODE_MISSING:
		text_add(&t, "NUMA node %u", c->node);
		text_add(&t, " with ");
		add_cpus(&t, &c->cpus);
		text_add(&t, " by the kernel's files: %s lacks the NUMA node", source);
		break;
	case CORRECTION_NODE_EXTRA:
		text_add(&t, "NUMA node %u: %s has the NUMA node, the kernel's files do not",
			c->node, source);
		break;
	case CORRECTION_CPUS:
		add_cpus_sentence(&t, c);
		break;
	case CORRECTION_MEMORY:
		add_memory_sentence(&t, c);
		break;
	case CORRECTION_DISTANCE:
		text_add(&t,
			"the distance from NUMA node %u to %u is %llu by the kernel's files; %s has "
			"%llu",
			c->node, c->to, (unsigned long long)c->value, source,
			(unsigned long long)c->their_value);
		break;
	case CORRECTION_CORES:
		add_cpus_between(&t, "CPUs ", c,
			" are threads of cores that reach over several NUMA nodes: each NUMA node's "
			"threads count as a core");
		break;
	case CORRECTION_PACKAGES:
		add_cpus_between(&t, "CPUs ", c, " have packages by the kernel's files; ");
		text_add(&t, "%s has none", source);
		break;
	case CORRECTION_CACHES:
		add_cpus_between(&t, "CPUs ", c, " have last-level caches by the kernel's files; ");
		text_add(&t, "%s has none", source);
		break;
	case CORRECTION_LISTED_TWICE:
		add_cpus_between(&t, "several NUMA nodes list CPUs ", c, "");
		text_add(&t, ": they count as NUMA node %u's", c->node);
		break;
	case CORRECTION_NO_DISTANCES:
	case CORRECTION_DISTANCE_COUNT:
	case CORRECTION_DISTANCE_RANGE:
	case CORRECTION_DISTANCE_FROM_SELF:
		add_table_sentence(&t, c);
		break;
	case CORRECTION_DOUBT:
		add_doubt_sentence(&t, c);
		break;
	case CORRECTION_UNCHECKED:
	case CORRECTION_KINDS:
		text_add(&t, "this machine could not be checked with %s: %s", source, c->why.text);
		break;
	}
	return buf;
}

void corrections_add(void *ctx, const struct correction *c)
{
	struct corrections *all = ctx;

	*vec_push(all) = *c;
}

static bool correction_equals(const struct correction *a, const struct correction *b)
{
	return a->kind == b->kind && a->source == b->source && a->node == b->node &&
	       a->to == b->to && a->value == b->value && a->their_value == b->their_value &&
	       cpuset_equal(&a->cpus, &b->cpus) && cpuset_equal(&a->theirs, &b->theirs);
}

bool corrections_equal(const struct corrections *a, const struct corrections *b)
{
	for (size_t i = 0; i < a->nr && i < b->nr; i++)
		if (!correction_equals(&a->at[i], &b->at[i]))
			return false;
	return a->nr == b->nr;
}

void corrections_fini(struct corrections *all)
{
	vec_fini(all);
}
