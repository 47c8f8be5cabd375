/* Packages and last-level caches that hwloc has dropped. */
#include <host/machine_dropped.h>

#include <host/cpumask.h>
#include <io/file.h>
#include <limits.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

enum { CACHES_MAX = 10, MASK_MAX = 16 << 10, WORD_MAX = 32 };

/* A file of the CPU, without its newline; false: it cannot be read. */
static bool read_cpu_file(const char *root, unsigned cpu, const char *file, char *text, size_t cap)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%u/%s", root, cpu, file);
	if (file_read_into(path, text, cap, NULL) < 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	return true;
}

/* The mask of CPUs in the CPU's file, itself among them; none where the file cannot be read. */
static struct cpuset read_sharers(const char *root, unsigned cpu, const char *file)
{
	char mask[MASK_MAX];
	struct cpuset shared;

	if (read_cpu_file(root, cpu, file, mask, sizeof mask) &&
		cpumask_parse(mask, &shared, NULL) == 0 && cpuset_has(&shared, cpu))
		return shared;
	return (struct cpuset){0};
}

static struct cpuset cache_sharers(const char *root, unsigned cpu)
{
	static const char last_level[] = "3";
	char level[WORD_MAX], file[WORD_MAX * 2];

	for (unsigned i = 0; i < CACHES_MAX; i++) {
		(void)snprintf(file, sizeof file, "cache/index%u/level", i);
		if (!read_cpu_file(root, cpu, file, level, sizeof level) ||
			!text_equal(level, last_level))
			continue;
		(void)snprintf(file, sizeof file, "cache/index%u/shared_cpu_map", i);
		return read_sharers(root, cpu, file);
	}
	return (struct cpuset){0};
}

/* One more than the numbers of the CPUs that have such a part. */
static unsigned first_free_number(
	const struct topo *t, const struct cpuset *without, enum topo_level level)
{
	struct cpuset all = cpuset_or(t->cpus, &t->nodeless), with = cpuset_minus(all, without);
	unsigned next = 0;

	cpuset_each (cpu, &with)
		if (topo_part_of(t, cpu, level) >= next)
			next = topo_part_of(t, cpu, level) + 1;
	return next;
}

/* The kernel's number of the CPU's package, CPUSET_BITS where there is none or firmware has made up
 * a huge one. */
static unsigned package_number(const char *root, unsigned cpu)
{
	char text[WORD_MAX];
	uint64_t number;

	return read_cpu_file(root, cpu, "topology/physical_package_id", text, sizeof text) &&
			       !text_u64(text, strlen(text), CPUSET_BITS - 1, &number, NULL)
		       ? (unsigned)number
		       : CPUSET_BITS;
}

/* By its old name where the kernel is old. */
static struct cpuset package_sharers(const char *root, unsigned cpu)
{
	struct cpuset shared = read_sharers(root, cpu, "topology/package_cpus");

	return cpuset_empty(&shared) ? read_sharers(root, cpu, "topology/core_siblings") : shared;
}

void machine_add_packages(const char *root, const struct cpuset *without, bool numbered,
	struct topo *t, const struct correction_sink *to)
{
	struct correction added = {.kind = CORRECTION_PACKAGES, .source = SOURCE_HWLOC};
	unsigned next = first_free_number(t, without, LEVEL_SOCKET);
	struct cpuset left = *without;

	cpuset_each (cpu, without) {
		unsigned number =
			root && cpuset_has(&left, cpu) ? package_number(root, cpu) : CPUSET_BITS;
		struct cpuset shared = {0};

		if (number < CPUSET_BITS)
			shared = cpuset_and(package_sharers(root, cpu), &left);
		if (!numbered && !cpuset_empty(&shared))
			number = next++;
		cpuset_each (sharer, &shared)
			t->cpu[sharer].socket = (uint16_t)number;
		left = cpuset_minus(left, &shared);
	}
	added.cpus = cpuset_minus(*without, &left);
	if (!cpuset_empty(&added.cpus))
		correction_send(to, &added);
}

/* As the kernel's files have them; takes the CPUs that these number out of *left. */
static unsigned number_caches(const char *root, struct cpuset *left, struct topo *t, unsigned next)
{
	const struct cpuset all = *left;

	cpuset_each (cpu, &all) {
		struct cpuset shared = {0};

		if (cpuset_has(left, cpu))
			shared = cpuset_and(cache_sharers(root, cpu), left);
		cpuset_each (sharer, &shared)
			t->cpu[sharer].uncore = (uint16_t)next;
		next += !cpuset_empty(&shared);
		*left = cpuset_minus(*left, &shared);
	}
	return next;
}

/* Sockets go by their own numbers where no CPU has a cache, as in the kubelet. */
static void number_by_sockets(const struct cpuset *left, struct topo *t, unsigned next)
{
	uint16_t number[CPUSET_BITS];
	struct cpuset seen = {0};
	bool by_itself = !next;

	cpuset_each (cpu, left) {
		unsigned socket = t->cpu[cpu].socket;

		if (!cpuset_has(&seen, socket))
			number[socket] = (uint16_t)(by_itself ? socket : next++);
		cpuset_add(&seen, socket);
		t->cpu[cpu].uncore = number[socket];
	}
}

void machine_add_caches(const char *root, const struct cpuset *without, struct topo *t,
	const struct correction_sink *to)
{
	struct correction added = {.kind = CORRECTION_CACHES, .source = SOURCE_HWLOC};
	struct cpuset left = *without;
	unsigned next = first_free_number(t, without, LEVEL_UNCORE);

	if (root)
		next = number_caches(root, &left, t, next);
	added.cpus = cpuset_minus(*without, &left);
	if (!cpuset_empty(&added.cpus))
		correction_send(to, &added);
	number_by_sockets(&left, t, next);
}
