#include <host/hotplug.h>

#include <errno.h>
#include <host/cpumask.h>
#include <host/node_files.h>
#include <limits.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *without_slash(const char *root)
{
	return text_equal(root, "/") ? "" : root;
}

/* /sys/devices/system/cpu/NAME */
static int read_cpus_that_are(
	const char *name, const char *root, struct cpuset *cpus, struct err *e)
{
	char path[PATH_MAX];

	(void)snprintf(
		path, sizeof path, "%s/sys/devices/system/cpu/%s", without_slash(root), name);
	return cpulist_read(path, cpus, e);
}

int hotplug_read_cpus(const char *root, struct cpuset *online, struct err *e)
{
	return read_cpus_that_are("online", root, online, e);
}

/* The kernel's own list of offline CPUs has those, too, that the machine could have and has not. */
int hotplug_read_offline(const char *root, struct cpuset *offline, struct err *e)
{
	struct cpuset present, online;
	int rc = read_cpus_that_are("present", root, &present, e);

	if (!rc)
		rc = hotplug_read_cpus(root, &online, e);
	if (!rc)
		*offline = cpuset_minus(present, &online);
	return rc;
}

/* The NUMA node is gone; or the kernel knows no NUMA nodes, and nothing comes or goes. */
static void read_no_node(const char *root, const struct topo_node *known, uint64_t *memory)
{
	char directory[PATH_MAX];

	(void)snprintf(directory, sizeof directory, "%s/sys/devices/system/node", root);
	bool gone = access(directory, F_OK) == 0;
	for (unsigned k = 0; k < TOPO_KINDS; k++)
		memory[k] = gone ? 0 : known->memory[k];
}

int hotplug_read_node(
	const char *root, const struct topo *t, unsigned node, struct hotplug *now, struct err *e)
{
	uint64_t *memory = now->memory[node];
	unsigned id = t->ids.id[node];

	root = without_slash(root);
	now->of_node[node] = t->node[node].cpus;
	int rc = node_files_memory(root, id, &memory[0], e);
	if (rc == -ENOENT) {
		read_no_node(root, &t->node[node], memory);
		return 0;
	}
	if (!rc) { /* a tree that was recorded may lack the list: then it is as it was */
		rc = node_files_cpus(root, id, &now->of_node[node], e);
		rc = rc == -ENOENT ? 0 : rc;
	}
	for (unsigned k = 1; !rc && k < t->nr_kinds; k++)
		rc = node_files_huge_pages(root, id, t->page_bytes[k], &memory[k], e);
	return rc;
}

/* A driver that comes up says which memory is its device's before it brings that online. */
static struct nodeset new_device_memory(const struct topo *t, const struct hotplug *now)
{
	struct nodeset possible = nodeset_minus(t->nodes, t->nodes_with_cpus);

	return nodeset_minus(nodeset_and(now->device_memory, possible), t->device_memory);
}

/* Of the online CPUs those that are not known to be of no NUMA node. */
static struct cpuset on_nodes(const struct topo *t, const struct hotplug *now)
{
	return cpuset_minus(now->online, &t->nodeless);
}

bool hotplug_differs(const struct topo *t, const struct hotplug *now)
{
	struct cpuset online = on_nodes(t, now);

	if (!cpuset_equal(&t->cpus, &online) || !cpuset_equal(&t->isolated, &now->isolated) ||
		!nodeset_empty(new_device_memory(t, now)))
		return true;
	nodeset_each (n, t->nodes)
		if (memcmp(t->node[n].memory, now->memory[n],
			    t->nr_kinds * sizeof now->memory[n][0]) != 0)
			return true;
	return false;
}

bool hotplug_contradicts(const struct topo *t, const struct hotplug *now)
{
	struct cpuset confirmed = {0};

	nodeset_each (n, t->nodes) {
		struct cpuset right = cpuset_and(now->of_node[n], &t->node[n].cpus);

		confirmed = cpuset_or(confirmed, &right);
	}
	nodeset_each (n, t->nodes) {
		struct cpuset listed = cpuset_and(now->of_node[n], &t->cpus);
		struct cpuset elsewhere = cpuset_minus(listed, &t->node[n].cpus);

		if (!cpuset_within(&elsewhere, &confirmed))
			return true;
	}
	return false;
}

static int copy_node(const struct topo *known, const struct hotplug *now, unsigned n,
	struct topo *out, struct err *e)
{
	int rc = 0;

	for (unsigned k = 0; k < known->nr_kinds && !rc; k++)
		rc = topo_set_memory(out, n, known->page_bytes[k], now->memory[n][k], e);
	for (unsigned m = 0; m < known->ids.nr && !rc && known->has_distances; m++)
		rc = topo_set_distance(out, n, m, known->distance[n][m], e);
	return rc;
}

int hotplug_apply(
	const struct topo *known, const struct hotplug *now, struct topo *out, struct err *e)
{
	struct cpuset online = on_nodes(known, now), unknown = cpuset_minus(online, &known->cpus);
	char list[CPUSET_TEXT_MAX];
	struct topo t;
	int rc = 0;

	if (!cpuset_empty(&unknown))
		return err_set(e, ENXIO, "nothing is known of CPUs %s",
			cpuset_format(&unknown, list, sizeof list));
	topo_init(&t, known->name);
	t.this_machine = known->this_machine;
	t.nodeless = known->nodeless;
	t.isolated = now->isolated;
	for (unsigned n = 0; n < known->ids.nr && rc >= 0; n++)
		rc = topo_add_node(&t, known->ids.id[n], e);
	for (unsigned n = 0; n < known->ids.nr && rc >= 0; n++)
		rc = copy_node(known, now, n, &t, e);
	nodeset_each (n, nodeset_or(known->device_memory, new_device_memory(known, now)))
		if (rc >= 0)
			rc = topo_set_device_memory(&t, n, e);
	cpuset_each (cpu, &online) {
		const struct topo_cpu *c = &known->cpu[cpu];

		if (rc >= 0)
			rc = topo_add_cpu(&t, cpu, c->node, c->core, c->socket, c->uncore, e);
	}
	if (rc >= 0)
		rc = topo_seal(&t, e);
	if (rc >= 0)
		*out = t;
	return rc < 0 ? rc : 0;
}
