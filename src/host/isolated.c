#include <host/isolated.h>

#include <io/file.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct cpuset isolated_read(const char *root)
{
	static const char *const files[] = {
		"sys/devices/system/cpu/isolated", "sys/fs/cgroup/cpuset.cpus.isolated"};
	struct cpuset all = {0}, some;

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char path[PATH_MAX], list[CPUSET_TEXT_MAX];
		struct err ignored;

		(void)snprintf(path, sizeof path, "%s/%s", root, files[i]);
		int len = file_read_into(path, list, sizeof list, &ignored);
		/* an empty one is a newline */
		if (len > 0 && *list != '\n' && !cpuset_parse(&some, list, (size_t)len, &ignored))
			all = cpuset_or(all, &some);
	}
	return all;
}
