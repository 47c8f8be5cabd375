#include "process.h"

#include <dirent.h>
#include <numafit/number.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static uint64_t own_resident_bytes(void)
{
	unsigned long long size, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%llu %llu", &size, &resident) != 2)
		resident = 0;
	if (f)
		(void)fclose(f);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	uint64_t nr = 0;

	while (dir && (entry = readdir(dir)))
		nr += entry->d_name[0] != '.';
	if (dir)
		(void)closedir(dir);
	return nr ? nr - 1 : 0; /* the directory's own */
}

void process_measure(struct process_figures *out)
{
	struct rlimit fds = {0};
	struct timespec cpu = {0};

	(void)getrlimit(RLIMIT_NOFILE, &fds);
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	out->cpu_ns = (uint64_t)cpu.tv_sec * NS_PER_S + (uint64_t)cpu.tv_nsec;
	out->resident_bytes = own_resident_bytes();
	out->open_fds = open_fds();
	out->max_fds = fds.rlim_cur;
}

uint64_t descriptors_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	const struct rlimit raised = {limit.rlim_max, limit.rlim_max};
	return setrlimit(RLIMIT_NOFILE, &raised) ? limit.rlim_cur : raised.rlim_cur;
}
