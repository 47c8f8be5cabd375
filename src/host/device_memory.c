#include <host/device_memory.h>

#include <dirent.h>
#include <io/file.h>
#include <limits.h>
#include <numafit/cpuset.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

/* No machine has more GPUs; a file has a line for each of a few facts. */
enum { GPUS_MAX = 1024, STATUS_MAX = 4096 };

static struct nodeset node_with_id(const struct node_ids *ids, unsigned id)
{
	int node = node_index(ids, id);

	return node < 0 ? (struct nodeset){0} : nodeset_of((unsigned)node);
}

/* "Node:      252" in its own line; -1 where the GPU's memory is no node. */
static struct nodeset node_of_status(const char *status, const struct node_ids *ids)
{
	static const char key[] = "Node:";
	const char *at = strstr(status, key);
	uint64_t id;

	if (!at)
		return (struct nodeset){0};
	at += sizeof key - 1;
	at += strspn(at, " \t");
	if (text_u64(at, strcspn(at, "\n"), NODE_ID_MAX, &id, NULL) < 0)
		return (struct nodeset){0};
	return node_with_id(ids, (unsigned)id);
}

static struct nodeset nodes_of_nvidia(const char *root, const struct node_ids *ids)
{
	struct nodeset nodes = {0};
	char directory[PATH_MAX], path[PATH_MAX + NAME_MAX + sizeof "//numa_status"],
		status[STATUS_MAX];
	const struct dirent *gpu;

	(void)snprintf(directory, sizeof directory, "%s/proc/driver/nvidia/gpus", root);
	DIR *d = opendir(directory);
	for (unsigned i = 0; d && i < GPUS_MAX && (gpu = readdir(d)); i++) {
		(void)snprintf(path, sizeof path, "%s/%s/numa_status", directory, gpu->d_name);
		if (*gpu->d_name != '.' && file_read_into(path, status, sizeof status, NULL) > 0)
			nodes = nodeset_or(nodes, node_of_status(status, ids));
	}
	if (d)
		(void)closedir(d);
	return nodes;
}

static struct nodeset nodes_of_initiators(const char *root, const struct node_ids *ids)
{
	char path[PATH_MAX], list[CPUSET_TEXT_MAX];
	struct nodeset nodes = {0};
	struct cpuset numbers; /* of nodes: a list of numbers has one form */

	(void)snprintf(path, sizeof path, "%s/sys/devices/system/node/has_generic_initiator", root);
	int len = file_read_into(path, list, sizeof list, NULL);
	if (len <= 0 || cpuset_parse(&numbers, list, (size_t)len, NULL) < 0)
		return nodes;
	cpuset_each (id, &numbers)
		nodes = nodeset_or(nodes, node_with_id(ids, id));
	return nodes;
}

struct nodeset device_memory_read(const char *root, const struct node_ids *ids)
{
	return nodeset_or(nodes_of_nvidia(root, ids), nodes_of_initiators(root, ids));
}
