#include <numafit-cli/status_view.h>

#include <numafit/mem.h>
#include <string.h>

const char *uptime_text(uint64_t ms, char *buf)
{
	static const struct {
		uint64_t ms;
		const char *unit;
	} units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}};
	unsigned i = 0;
	struct text t;

	text_init(&t, buf, UPTIME_TEXT_MAX);
	while (i < 2 && ms < units[i].ms)
		i++;
	/* the two largest units say enough */
	for (unsigned last = i + 1; i <= last; ms %= units[i++].ms)
		text_add(&t, "%llu%s", (unsigned long long)(ms / units[i].ms), units[i].unit);
	return buf;
}

const char *status_setting(const struct status *st, const char *key)
{
	for (size_t i = 0; i < st->settings.nr; i++)
		if (text_equal(st->settings.at[i].key, key))
			return st->settings.at[i].value;
	return "?";
}

const char *status_own_words(const struct status_container *c)
{
	if (c->left)
		return "left";
	return c->exclusive ? "yes" : c->shares_in_pod ? "its pod's" : "shared";
}

const char *status_disconnected(const struct status *st)
{
	if (text_equal(st->info.connection, "ready"))
		return NULL;
	return text_equal(status_setting(st, "mode"), "manage")
		       ? "the runtime is not connected: containers start unpinned"
		       : "the runtime is not connected";
}

struct cpuset status_cpus(const struct status *st)
{
	struct cpuset all = {0};

	for (const struct status_node *n = st->nodes; n < st->nodes + st->nr_nodes; n++)
		for (size_t i = 0; i < n->nr_threads; i++)
			all = cpuset_or(all, &n->threads[i].cpus);
	return all;
}

/* CPUs that are not for everybody */

static struct cpuset offline_cpus(const struct status *st)
{
	return st->info.offline;
}

static struct cpuset nodeless_cpus(const struct status *st)
{
	return st->nodeless;
}

/* A container may wish for the reserved CPUs. */
static struct cpuset withheld_cpus(const struct status *st)
{
	struct cpuset withheld = cpuset_minus(st->reserved, &st->pool), used;
	const char *strict = status_setting(st, "cpuManagerPolicyOptions.strict-cpu-reservation");

	if (!text_equal(strict, "true"))
		return (struct cpuset){0};
	for (size_t i = 0; i < st->nr_containers && !cpuset_empty(&withheld); i++) {
		const char *cpus = st->containers[i].cpus;

		if (cpuset_parse(&used, cpus, strlen(cpus), NULL) == 0)
			withheld = cpuset_minus(withheld, &used);
	}
	return withheld;
}

/* Online CPUs that are neither shared nor reserved nor a container's own. */
static struct cpuset idle_cpus(const struct status *st)
{
	struct cpuset idle = cpuset_minus(status_cpus(st), &st->pool);

	idle = cpuset_minus(idle, &st->held);
	return cpuset_minus(idle, &st->reserved);
}

static struct cpuset isolated_idle_cpus(const struct status *st)
{
	return cpuset_and(idle_cpus(st), &st->isolated);
}

static struct cpuset other_idle_cpus(const struct status *st)
{
	return cpuset_minus(idle_cpus(st), &st->isolated);
}

static struct cpuset left_cpus(const struct status *st)
{
	return st->left;
}

struct reason_row {
	struct cpuset (*cpus)(const struct status *st);
	const char *why;
};
enum { REASONS_MAX = 3 };
static const struct {
	const char *lead;
	struct reason_row rows[REASONS_MAX];
} sentences[] = {
	{"CPUs that nobody may use", {{offline_cpus, "offline"}, {nodeless_cpus, "on no NUMA node"},
					     {withheld_cpus, "reserved: strict-cpu-reservation"}}},
	{"CPUs that no container uses now",
		{{isolated_idle_cpus, "isolated"},
			{other_idle_cpus, "free, outside the shared pool"}}},
	{"CPUs that no container gets for its own",
		{{left_cpus, "containers are left on them as they were found"}}},
};

bool status_unused_cpus(const struct status *st, unsigned i, struct text *t)
{
	char list[CPUSET_TEXT_MAX];
	unsigned nr = 0;

	if (i >= sizeof sentences / sizeof *sentences)
		return false;
	for (const struct reason_row *r = sentences[i].rows;
		r < sentences[i].rows + REASONS_MAX && r->cpus; r++) {
		struct cpuset cpus = r->cpus(st);

		if (cpuset_empty(&cpus))
			continue;
		text_add(t, "%s%s %s (%s)", nr ? "" : sentences[i].lead, nr ? "," : ":",
			cpuset_format(&cpus, list, sizeof list), r->why);
		nr++;
	}
	return true;
}

/* The order of containers */

int status_compare_names(const struct status_container *a, const struct status_container *b)
{
	int by = strcmp(a->ns, b->ns);

	by = by ? by : strcmp(a->pod, b->pod);
	by = by ? by : strcmp(a->container, b->container);
	return by ? by : strcmp(a->id, b->id);
}

static int compare_by_name(const void *a, const void *b)
{
	const struct status_container *const *x = a, *const *y = b;

	return status_compare_names(*x, *y);
}

size_t status_containers_by_name(
	const struct status *st, const char *ns, const struct status_container ***list)
{
	size_t nr = 0;

	*list = xcalloc(st->nr_containers + 1, sizeof **list);
	for (size_t i = 0; i < st->nr_containers; i++)
		if (!ns || text_equal(ns, st->containers[i].ns))
			(*list)[nr++] = &st->containers[i];
	qsort(*list, nr, sizeof **list, compare_by_name);
	return nr;
}
