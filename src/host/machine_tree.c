#include <host/machine_tree.h>

#include <errno.h>
#include <host/device_memory.h>
#include <host/node_files.h>
#include <io/file.h>
#include <limits.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char cpus_path[] = "sys/devices/system/cpu";
static const char refusal[] = "not a recorded tree";

static int check_is_folder(const char *tree, const char *part)
{
	char path[PATH_MAX];
	struct stat st;

	(void)snprintf(path, sizeof path, "%s/%s", tree, part);
	if (stat(path, &st) != 0)
		return errno;
	return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
}

static int check_folder(const char *tree, const char *part, struct err *e)
{
	int error = check_is_folder(tree, part);

	return error ? err_set(e, EINVAL, "%s: %s: %s", refusal, part, strerror(error)) : 0;
}

/* The CPUs that are online in it. Where no list says so: those that have a topology, as a kernel
 * takes it away from offline ones. */
static int read_online(const char *tree, struct cpuset *online, struct err *e)
{
	char path[PATH_MAX], text[CPUSET_TEXT_MAX];
	int rc;

	(void)snprintf(path, sizeof path, "%s/%s/online", tree, cpus_path);
	int len = file_read_into(path, text, sizeof text, NULL);
	if (len >= 0) {
		rc = cpuset_parse(online, text, (size_t)len, e);
		return rc ? err_add(e, -EINVAL, "%s: %s/online", refusal, cpus_path) : 0;
	}
	(void)snprintf(path, sizeof path, "%s/%s", tree, cpus_path);
	struct cpuset all = numbered_entries(path, "cpu");
	*online = (struct cpuset){0};
	cpuset_each (cpu, &all) {
		(void)snprintf(text, sizeof text, "%s/cpu%u/topology", cpus_path, cpu);
		if (check_is_folder(tree, text) == 0)
			cpuset_add(online, cpu);
	}
	if (cpuset_empty(online))
		return err_set(
			e, EINVAL, "%s: no CPU in %s has a folder topology", refusal, cpus_path);
	return 0;
}

/* Old kernels' names beside the new ones. Without any of them hwloc makes a core of each CPU, and
 * one socket of all. */
static const char *const topology_files[] = {
	"core_cpus", "thread_siblings", "package_cpus", "core_siblings"};

static int check_topology(const char *tree, unsigned cpu, struct err *e)
{
	char folder[NAME_MAX], path[PATH_MAX];

	(void)snprintf(folder, sizeof folder, "%s/cpu%u/topology", cpus_path, cpu);
	int rc = check_folder(tree, folder, e);
	if (rc)
		return rc;
	for (unsigned i = 0; i < sizeof topology_files / sizeof *topology_files; i++) {
		(void)snprintf(path, sizeof path, "%s/%s/%s", tree, folder, topology_files[i]);
		if (access(path, R_OK) == 0)
			return 0;
	}
	return err_set(e, EINVAL,
		"%s: %s has none of core_cpus, thread_siblings, package_cpus, core_siblings",
		refusal, folder);
}

int machine_tree_check(const char *path, struct err *e)
{
	struct cpuset online;
	int rc = check_folder(path, cpus_path, e);

	if (!rc)
		rc = read_online(path, &online, e);
	if (rc)
		return rc;
	cpuset_each (cpu, &online) {
		rc = check_topology(path, cpu, e);
		if (rc)
			return rc;
	}
	return 0;
}

static int nothing_there(const char *part, unsigned number, const char *below, struct err *e)
{
	return err_set(e, EINVAL, "%s%u%s: nothing is read there: files are missing or damaged",
		part, number, below);
}

int machine_tree_compare(const char *path, const struct topo *t, struct err *e)
{
	struct cpuset known = cpuset_or(t->cpus, &t->nodeless), online, missing, nodes;
	int rc = read_online(path, &online, e);

	if (rc)
		return rc;
	missing = cpuset_minus(online, &known);
	cpuset_each (cpu, &missing)
		return nothing_there("sys/devices/system/cpu/cpu", cpu, "/topology", e);
	nodes = node_files_folders(path);
	cpuset_each (id, &nodes) {
		/* where the environment makes hwloc hide the memory of GPUs, nothing is missing */
		const struct node_ids it = {.nr = 1, .id = {(uint16_t)id}};

		if (node_index(&t->ids, id) < 0 && nodeset_empty(device_memory_read(path, &it)))
			return nothing_there("sys/devices/system/node/node", id, "", e);
	}
	return 0;
}
