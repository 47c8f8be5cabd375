#include "pages.h"

#include <inttypes.h>
#include <numaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES = 512, LINE_BYTES_MAX = 8192 };

static void count_line(const struct topo *t, const char *line, uint64_t pages[NODES_MAX])
{
	unsigned id;
	uint64_t nr;

	for (const char *at = line; (at = strstr(at, " N")); at++)
		if (sscanf(at, " N%u=%" SCNu64, &id, &nr) == 2) {
			int n = node_index(&t->ids, id);

			if (n >= 0)
				pages[n] += nr;
		}
}

void pages_by_maps(const struct topo *t, int pid, const void *at, uint64_t pages[NODES_MAX])
{
	char path[64], line[LINE_BYTES_MAX], hit[LINE_BYTES_MAX] = "";

	memset(pages, 0, NODES_MAX * sizeof *pages);
	(void)snprintf(path, sizeof path, "/proc/%d/numa_maps", pid ? pid : (int)getpid());
	FILE *maps = fopen(path, "r");
	if (!maps)
		return;
	while (fgets(line, sizeof line, maps)) {
		uintptr_t from = (uintptr_t)strtoull(line, NULL, 16);

		if (!at && strstr(line, " anon="))
			count_line(t, line, pages);
		else if (at && from <= (uintptr_t)at)
			memcpy(hit, line, sizeof hit);
	}
	if (at)
		count_line(t, hit, pages);
	(void)fclose(maps);
}

bool pages_share(const struct topo *t, const void *at, size_t bytes, double share[NODES_MAX])
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE), all = bytes / size;
	unsigned nr = all < SAMPLES ? (unsigned)all : SAMPLES, seen = 0;
	void *pages[SAMPLES];
	int status[SAMPLES];

	memset(share, 0, NODES_MAX * sizeof *share);
	for (unsigned i = 0; i < nr; i++)
		pages[i] = (char *)(uintptr_t)at + all * i / nr * size;
	if (!nr || move_pages(0, nr, pages, NULL, status, 0) < 0)
		return false;
	for (unsigned i = 0; i < nr; i++) {
		int n = status[i] < 0 ? -1 : node_index(&t->ids, (unsigned)status[i]);

		if (n >= 0)
			share[n]++, seen++;
	}
	for (unsigned n = 0; n < NODES_MAX && seen; n++)
		share[n] /= seen;
	return seen > 0;
}

unsigned node_of_cpu(const struct topo *t, int cpu)
{
	return cpu >= 0 && cpuset_has(&t->cpus, (unsigned)cpu) ? t->cpu[cpu].node : NODES_MAX;
}

double pages_remote(const double share[NODES_MAX], const uint64_t seen[NODES_MAX])
{
	double remote = 0;
	uint64_t all = 0;

	for (unsigned n = 0; n < NODES_MAX; n++)
		all += seen[n];
	for (unsigned n = 0; n < NODES_MAX && all; n++)
		remote += share[n] * (1 - (double)seen[n] / (double)all);
	return remote;
}
