/* What the kernel's files say of each NUMA node: CPUs, memory, huge pages, distances. */
#include <host/node_files.h>

#include <dirent.h>
#include <errno.h>
#include <host/cpumask.h>
#include <io/file.h>
#include <limits.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 16 << 10, NUMBER_MAX = 32 };
static const uint64_t kib = 1024, PAGE_KIB_MAX = UINT64_C(1) << 40;

/* ROOT/sys/devices/system/node/FILE of a NUMA node: node3/meminfo */
static void node_path(char path[PATH_MAX], const char *root, unsigned id, const char *file)
{
	(void)snprintf(path, PATH_MAX, "%s/sys/devices/system/node/node%u/%s", root, id, file);
}

struct cpuset numbered_entries(const char *folder, const char *prefix)
{
	struct cpuset numbers = {0};
	const struct dirent *entry;
	uint64_t number;
	DIR *d = opendir(folder);

	while (d && (entry = readdir(d))) {
		const char *digits = text_behind(entry->d_name, prefix);

		if (digits && !text_u64(digits, strlen(digits), CPUSET_BITS - 1, &number, NULL))
			cpuset_add(&numbers, (unsigned)number);
	}
	if (d)
		(void)closedir(d);
	return numbers;
}

struct cpuset node_files_folders(const char *root)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof path, "%s/sys/devices/system/node", root);
	return numbered_entries(path, "node");
}

int node_files_online(const char *root, struct cpuset *ids, struct err *e)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof path, "%s/sys/devices/system/node/online", root);
	int rc = cpulist_read(path, ids, e);
	if (rc != -ENOENT)
		return rc;
	*ids = node_files_folders(root);
	return cpuset_empty(ids) ? rc : 0;
}

int node_files_cpus(const char *root, unsigned id, struct cpuset *cpus, struct err *e)
{
	char path[PATH_MAX], mask[FILE_BYTES_MAX];

	node_path(path, root, id, "cpulist");
	int rc = cpulist_read(path, cpus, e);
	if (rc != -ENOENT)
		return rc;
	node_path(path, root, id, "cpumap");
	rc = file_read_into(path, mask, sizeof mask, e);
	if (rc < 0)
		return rc;
	rc = cpumask_parse(mask, cpus, e);
	return rc ? err_add(e, rc, "%s", path) : 0;
}

bool node_files_has_link(const char *root, unsigned id, unsigned cpu)
{
	char path[PATH_MAX], name[NUMBER_MAX];

	(void)snprintf(name, sizeof name, "cpu%u", cpu);
	node_path(path, root, id, name);
	return access(path, F_OK) == 0;
}

/* "Node 0 MemTotal:       16326460 kB" somewhere in it. */
int node_files_memory(const char *root, unsigned id, uint64_t *bytes, struct err *e)
{
	static const char key[] = "MemTotal:";
	char path[PATH_MAX], text[FILE_BYTES_MAX];
	uint64_t number;

	node_path(path, root, id, "meminfo");
	int rc = file_read_into(path, text, sizeof text, e);
	if (rc < 0)
		return rc;
	const char *at = strstr(text, key);
	if (!at)
		return err_set(e, EINVAL, "%s: there is no %s", path, key);
	at += sizeof key - 1;
	at += strspn(at, " ");
	rc = text_u64(at, strspn(at, "0123456789"), UINT64_MAX / kib, &number, e);
	if (rc)
		return err_add(e, rc, "%s", path);
	*bytes = number * kib;
	return 0;
}

bool node_files_may_have_memory(const char *root, unsigned id)
{
	char path[PATH_MAX];
	struct cpuset ids;

	(void)snprintf(path, sizeof path, "%s/sys/devices/system/node/has_memory", root);
	return cpulist_read(path, &ids, NULL) < 0 || cpuset_has(&ids, id);
}

/* Of "hugepages-2048kB": 2048; 0 where the name is another one. */
static uint64_t page_kib_of(const char *name)
{
	const char *digits = text_behind(name, "hugepages-"),
		   *unit = digits ? strchr(digits, 'k') : NULL;
	uint64_t number;

	return unit && text_equal(unit, "kB") &&
			       !text_u64(
				       digits, (size_t)(unit - digits), PAGE_KIB_MAX, &number, NULL)
		       ? number
		       : 0;
}

uint64_t node_files_page_sizes(const char *root, unsigned id)
{
	const struct dirent *entry;
	char path[PATH_MAX];
	uint64_t sizes = 0;

	node_path(path, root, id, "hugepages");
	DIR *d = opendir(path);
	while (d && (entry = readdir(d))) {
		uint64_t size = page_kib_of(entry->d_name);

		if (size && !(size & (size - 1)))
			sizes |= size;
	}
	if (d)
		(void)closedir(d);
	return sizes;
}

int node_files_huge_pages(
	const char *root, unsigned id, uint64_t page_bytes, uint64_t *bytes, struct err *e)
{
	char path[PATH_MAX], name[sizeof "hugepages/hugepages-kB/nr_hugepages" + NUMBER_MAX],
		text[NUMBER_MAX];
	uint64_t nr = 0;

	(void)snprintf(name, sizeof name, "hugepages/hugepages-%llukB/nr_hugepages",
		(unsigned long long)(page_bytes / kib));
	node_path(path, root, id, name);
	int rc = file_read_into(path, text, sizeof text, e);
	if (rc == -ENOENT) {
		rc = 0;
	} else if (rc >= 0) {
		rc = text_u64(text, strcspn(text, "\n"), UINT64_MAX / page_bytes, &nr, e);
		if (rc)
			(void)err_add(e, rc, "%s", path);
	}
	if (!rc)
		*bytes = nr * page_bytes;
	return rc;
}

int node_files_distances(const char *root, unsigned id, uint64_t *row, unsigned max, struct err *e)
{
	char path[PATH_MAX], text[FILE_BYTES_MAX];
	const char *word, *rest = text;
	unsigned nr = 0;
	size_t len;

	node_path(path, root, id, "distance");
	int rc = file_read_into(path, text, sizeof text, e);
	if (rc < 0)
		return rc;
	text[strcspn(text, "\n")] = '\0';
	while ((word = text_next_word(&rest, &len))) {
		uint64_t distance;

		rc = text_u64(word, len, UINT64_MAX, &distance, e);
		if (rc)
			return err_add(e, rc, "%s", path);
		if (nr < max)
			row[nr] = distance;
		nr++;
	}
	return (int)nr;
}
