/* The CPUs that a process may run on, from /proc/PID/status. */
#include <host/affinity.h>

#include <io/file.h>
#include <numafit/text.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { STATUS_MAX = 16 << 10 }; /* with the longest lists of CPUs and NUMA nodes */

int affinity_read(const char *root, uint64_t pid, struct cpuset *out, struct err *e)
{
	static const char label[] = "\nCpus_allowed_list:\t";
	char path[PATH_MAX], who[24] = "self", status[STATUS_MAX];

	if (pid)
		(void)snprintf(who, sizeof who, "%llu", (unsigned long long)pid);
	(void)snprintf(
		path, sizeof path, "%s/proc/%s/status", text_equal(root, "/") ? "" : root, who);
	int rc = file_read_into(path, status, sizeof status, e);
	const char *list = rc < 0 ? NULL : strstr(status, label);
	if (rc >= 0 && !list)
		return err_set(e, EINVAL, "%s has no Cpus_allowed_list", path);
	if (rc < 0)
		return rc;
	list += sizeof label - 1;
	return cpuset_parse(out, list, strcspn(list, "\n"), e);
}
