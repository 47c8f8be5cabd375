#include "size.h"

#include <inttypes.h>
#include <io/file.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

enum { FILE_TEXT_MAX = 4096, PATH_TEXT_MAX = 96, CACHES_TIMES = 4, PART_OF_FREE = 4 };
#define MEMORY_LEAST (UINT64_C(256) << 20)
#define MEMORY_QUICK (UINT64_C(8) << 20)
#define MEMORY_MIN   (UINT64_C(1) << 20)

static uint64_t number_in(const char *path, const char *behind)
{
	char text[FILE_TEXT_MAX];
	uint64_t kib = 0;

	if (file_read_into(path, text, sizeof text, NULL) < 0)
		return 0;
	const char *at = strstr(text, behind);
	return at && sscanf(at + strlen(behind), "%" SCNu64, &kib) == 1 ? kib << 10 : 0;
}

/* Each cache once, and in all that a topo knows they are known by their first CPU. */
static uint64_t last_level_caches(const struct gain *g)
{
	const struct topo *t = g->topo;
	struct cpuset known = {0};
	char path[PATH_TEXT_MAX];
	uint64_t sum = 0;

	cpuset_each (cpu, &g->arm[ARM_NUMAFIT].cpus) {
		if (cpuset_has(&known, t->cpu[cpu].uncore))
			continue;
		cpuset_add(&known, t->cpu[cpu].uncore);
		(void)snprintf(
			path, sizeof path, "/sys/devices/system/cpu/cpu%u/cache/index3/size", cpu);
		sum += number_in(path, "");
	}
	return sum;
}

static uint64_t least_free(const struct gain *g)
{
	char path[PATH_TEXT_MAX];
	uint64_t least = UINT64_MAX;

	nodeset_each (n, g->arm[ARM_UNPINNED].mems) {
		(void)snprintf(path, sizeof path, "/sys/devices/system/node/node%u/meminfo",
			g->topo->ids.id[n]);
		uint64_t bytes = number_in(path, "MemFree:");
		least = bytes ? number_min(least, bytes) : least;
	}
	return least != UINT64_MAX ? least : number_in("/proc/meminfo", "MemAvailable:");
}

void size_memory(struct gain *g, bool quick)
{
	uint64_t caches = last_level_caches(g), most = least_free(g) / PART_OF_FREE;
	uint64_t wanted = g->bytes ? g->bytes : number_max(caches * CACHES_TIMES, MEMORY_LEAST),
		 size = MEMORY_MIN;
	char text[TEXT_SIZE_MAX], free_text[TEXT_SIZE_MAX];

	if (quick)
		wanted = MEMORY_QUICK;
	if (g->bytes > most)
		gain_note(g,
			"%s of memory is more than a quarter of what is free on a NUMA node (%s): "
			"less is used",
			text_size_rounded(text, g->bytes), text_size_rounded(free_text, most));
	while (size < wanted && size * 2 <= most)
		size *= 2;
	g->bytes = size;
	if (!caches)
		gain_note(g, "the size of the last-level cache is not known: %s may fit in it",
			text_size(text, size));
	else if (size < caches * 2)
		gain_note(g,
			"%s of memory is less than twice the last-level caches (%s): triad and "
			"chase read caches as well",
			text_size(text, size), text_size_rounded(free_text, caches));
}
