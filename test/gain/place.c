#include "place.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <io/file.h>
#include <numaif.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_US = 100000, PATH_TEXT_MAX = CGROUP_PATH_MAX + 128, STAT_TEXT_MAX = 4096 };
enum { SHARES_PER_CPU = 1024, SHARES_MIN = 2, SHARES_MAX = 262144, WEIGHT_MAX = 10000 };
enum { REMOVE_TRIES = 50, REMOVE_WAIT_MS = 20, PID_TEXT_MAX = 16 };
#define PREFIX "numafit-gain."

static const char *const parts[] = {"", "/container", "/pool"};
enum { NR_PARTS = sizeof parts / sizeof *parts };

/* The trees that have cpuset and cpu: one, in cgroup v2. */
static unsigned trees_of(const struct place *p, struct cgroup_tree out[2])
{
	out[0] = (struct cgroup_tree){.v2 = p->found.v2};
	memcpy(out[0].root, p->found.root, sizeof out[0].root);
	out[1] = p->found.cpu;
	return strcmp(out[0].root, out[1].root) == 0 ? 1 : 2;
}

static void path_in(char path[PATH_TEXT_MAX], const struct cgroup_tree *t, const char *directory,
	const char *part)
{
	(void)snprintf(path, PATH_TEXT_MAX, "%s%s%s", t->root, directory, part);
}

/* A process that ends is in its cgroup for a moment longer than its parent waits. */
static void remove_cgroup(const char *path)
{
	const struct timespec moment = {.tv_nsec = REMOVE_WAIT_MS * (long)NS_PER_MS};

	for (int i = 0; rmdir(path) && errno == EBUSY && i < REMOVE_TRIES; i++)
		(void)nanosleep(&moment, NULL);
}

static void remove_all(const struct place *p, const char *directory)
{
	struct cgroup_tree trees[2];
	char path[PATH_TEXT_MAX];
	unsigned nr = trees_of(p, trees);

	for (unsigned t = 0; t < nr; t++)
		for (unsigned i = NR_PARTS; i-- > 0;) {
			path_in(path, &trees[t], directory, parts[i]);
			remove_cgroup(path);
		}
}

static void remove_left_over(const struct place *p)
{
	char directory[GAIN_NAME_MAX];
	DIR *root = opendir(p->found.root);
	int pid;

	for (const struct dirent *d; root && (d = readdir(root));)
		if (sscanf(d->d_name, PREFIX "%d", &pid) == 1 && pid > 0 && kill(pid, 0) &&
			errno == ESRCH) {
			(void)snprintf(directory, sizeof directory, "/" PREFIX "%d", pid);
			remove_all(p, directory);
		}
	if (root)
		(void)closedir(root);
}

static int make_cgroups(struct place *p, struct err *e)
{
	struct cgroup_tree trees[2];
	char path[PATH_TEXT_MAX];
	unsigned nr = trees_of(p, trees);
	int rc = 0;

	for (unsigned t = 0; t < nr && !rc; t++) {
		for (unsigned i = 0; i < NR_PARTS && !rc; i++) {
			path_in(path, &trees[t], p->directory, parts[i]);
			if (mkdir(path, 0755))
				rc = err_set(e, errno, "%s: %s", path, strerror(errno));
		}
		for (unsigned c = 0; trees[t].v2 && c < 2 && !rc; c++)
			rc = cgroup_enable(&trees[t], p->directory, c ? "cpu" : "cpuset", e);
		if (trees[t].v2 && !rc) {
			rc = cgroup_write(&trees[t], p->directory, "cgroup.subtree_control",
				"+cpuset +cpu", e);
		}
	}
	return rc;
}

void place_init(struct place *p, struct gain *g, bool wanted, bool plan)
{
	struct cgroup_tree trees[2];
	char path[PATH_TEXT_MAX];
	struct err e = {0};

	p->topo = g->topo;
	(void)snprintf(p->directory, sizeof p->directory, "/" PREFIX "%d", (int)getpid());
	if (!wanted)
		(void)err_set(&e, ECANCELED, "--no-cgroups");
	else if (!cgroups_find("/", &p->found, &e) && !p->found.cpu.root[0])
		(void)err_set(&e, ENOENT, "there is no cpu controller");
	if (!e.code) {
		(void)trees_of(p, trees);
		path_in(path, &trees[0], "", "/cgroup.subtree_control");
		if (!p->found.v2 ||
			file_read_into(path, p->was_enabled, sizeof p->was_enabled, NULL) < 0)
			p->was_enabled[0] = '\0';
		p->was_enabled[strcspn(p->was_enabled, "\n")] = '\0';
		if (plan)
			(void)cgroup_check_writable(&trees[0], &e);
		else
			remove_left_over(p);
		if (!plan && make_cgroups(p, &e))
			place_fini(p);
	}
	p->cgroups = g->cgroups = !e.code;
	if (e.code)
		gain_note(g,
			"no cgroups (%.120s): CPUs by affinity, memory by policy, and no quota, so "
			"nothing is said of throttling",
			e.text);
}

static int write_part(const struct cgroup_tree *t, const struct place *p, unsigned part,
	const char *file, const char *text, struct err *e)
{
	char directory[2 * GAIN_NAME_MAX];

	(void)snprintf(directory, sizeof directory, "%s%s", p->directory, parts[part]);
	return cgroup_write(t, directory, file, text, e);
}

/* Of requests, as the kubelet has it (pkg/kubelet/cm/helpers_linux.go; in v2 runc's formula). */
static int write_shares(const struct place *p, unsigned part, unsigned cpus, struct err *e)
{
	char text[NUMBER_TEXT_MAX];
	uint64_t shares = (uint64_t)cpus * SHARES_PER_CPU;

	shares = number_min(number_max(shares, SHARES_MIN), SHARES_MAX);
	if (p->found.cpu.v2)
		shares = 1 + (shares - SHARES_MIN) * (WEIGHT_MAX - 1) / (SHARES_MAX - SHARES_MIN);
	(void)snprintf(text, sizeof text, "%" PRIu64, shares);
	return write_part(
		&p->found.cpu, p, part, p->found.cpu.v2 ? "cpu.weight" : "cpu.shares", text, e);
}

static int write_cpuset(const struct place *p, unsigned part, const struct cpuset *cpus,
	struct nodeset mems, struct err *e)
{
	char list[CPUSET_TEXT_MAX], nodes[NODESET_TEXT_MAX];
	struct cgroup_tree trees[2];

	(void)trees_of(p, trees);
	int rc = write_part(
		&trees[0], p, part, "cpuset.cpus", cpuset_format(cpus, list, sizeof list), e);

	return rc ? rc
		  : write_part(&trees[0], p, part, "cpuset.mems",
			    nodeset_format(mems, &p->topo->ids, nodes, sizeof nodes), e);
}

int place_set(struct place *p, const struct gain *g, const struct arm *arm, struct err *e)
{
	struct nodeset all = nodeset_minus(p->topo->nodes_with_memory, p->topo->device_memory);
	char quota[CGROUP_QUOTA_MAX], directory[2 * GAIN_NAME_MAX];
	unsigned others = p->topo->nr_cpus - g->ask_cpus - g->held_cpus;

	if (!p->cgroups)
		return 0;
	int rc = write_cpuset(p, 0, &p->topo->cpus, p->topo->nodes_with_memory, e);

	rc = rc ? rc : write_cpuset(p, 1, &arm->cpus, arm->mems, e);
	rc = rc ? rc : write_cpuset(p, 2, &arm->pool, all, e);
	rc = rc ? rc : write_shares(p, 1, g->ask_cpus, e);
	rc = rc ? rc : write_shares(p, 2, others, e);
	cgroup_quota_text(&p->found.cpu,
		arm->quota ? (uint64_t)g->ask_cpus * PERIOD_US : CGROUP_NO_QUOTA, PERIOD_US, quota);
	(void)snprintf(directory, sizeof directory, "%s%s", p->directory, parts[1]);
	return rc ? rc : cgroup_write_quota(&p->found.cpu, directory, quota, e);
}

static int enter_cgroup(const struct place *p, bool pool, struct err *e)
{
	struct cgroup_tree trees[2];
	unsigned nr = trees_of(p, trees);
	int rc = 0;

	for (unsigned t = 0; t < nr && !rc; t++)
		rc = write_part(&trees[t], p, pool ? 2 : 1, "cgroup.procs", "0", e);
	return rc;
}

static int enter_by_affinity(const struct place *p, const struct arm *arm, bool pool, struct err *e)
{
	const struct cpuset *cpus = pool ? &arm->pool : &arm->cpus;
	unsigned long nodes[(NODE_ID_MAX + 1) / (8 * sizeof(unsigned long))] = {0};
	enum { WORD_BITS = 8 * sizeof(unsigned long) };
	cpu_set_t set;

	CPU_ZERO(&set);
	cpuset_each (cpu, cpus)
		CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		return err_set(e, errno, "sched_setaffinity: %s", strerror(errno));
	nodeset_each (n, arm->mems)
		nodes[p->topo->ids.id[n] / WORD_BITS] |= 1ul << p->topo->ids.id[n] % WORD_BITS;
	if (!pool && arm->binds_memory && p->topo->ids.nr > 1 &&
		set_mempolicy(MPOL_BIND, nodes, NODE_ID_MAX + 1))
		return err_set(e, errno, "set_mempolicy: %s", strerror(errno));
	return 0;
}

int place_enter(const struct place *p, const struct arm *arm, bool pool, struct err *e)
{
	return p->cgroups ? enter_cgroup(p, pool, e) : enter_by_affinity(p, arm, pool, e);
}

uint64_t place_throttled(const struct place *p)
{
	char path[PATH_TEXT_MAX], text[STAT_TEXT_MAX];
	uint64_t nr = 0;

	if (!p->cgroups)
		return 0;
	path_in(path, &p->found.cpu, p->directory, "/container/cpu.stat");
	if (file_read_into(path, text, sizeof text, NULL) < 0)
		return 0;
	const char *at = strstr(text, "nr_throttled ");

	return at && sscanf(at, "nr_throttled %" SCNu64, &nr) == 1 ? nr : 0;
}

/* Controllers that cgroup_enable() has switched on in the root, and no other program had before. */
static void disable_again(const struct place *p)
{
	static const char *const controllers[] = {"cpuset", "cpu"};
	char text[PID_TEXT_MAX];
	struct cgroup_tree trees[2];

	(void)trees_of(p, trees);
	for (unsigned i = 0; i < 2; i++) {
		(void)snprintf(text, sizeof text, "-%s", controllers[i]);
		if (!text_has_word(p->was_enabled, controllers[i]))
			(void)cgroup_write(&trees[0], "", "cgroup.subtree_control", text, NULL);
	}
}

void place_fini(struct place *p)
{
	if (!p->found.root[0])
		return;
	remove_all(p, p->directory);
	if (p->found.v2)
		disable_again(p);
	p->found.root[0] = '\0';
	p->cgroups = false;
}
