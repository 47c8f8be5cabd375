#ifndef NUMAFIT_TEST_CRASH_POOL_RIG_H
#define NUMAFIT_TEST_CRASH_POOL_RIG_H

#include "crash_cgroups.h"
#include "crash_rig.h"

/* What test_crash_pool knows of pods, containers and their cgroups, and what must hold of them: at
 * any time, and at rest. */

enum { PODS = 8, BOXES = 3, PERIOD_US = 100000, TEXT = 256 };
enum class { GUARANTEED, BURSTABLE, BEST_EFFORT, NR_CLASSES };

struct seen {
	char cpus[CGROUP_TEXT_BYTES], quota[CGROUP_TEXT_BYTES];
};

struct box {
	struct fake_container c; /* c.cpu_milli 0: of no Guaranteed pod */
	unsigned milli;          /* what it has in its pod's spec; 0: nothing */
	bool loose; /* it came, or was resized, while nobody listened, or is left as it runs */
	struct seen seen;
	int64_t quota_us; /* what the runtime was given last for it */
	char cgroup[TEXT], dir[TEXT];
};

struct pod_here {
	bool there;
	enum class class;
	char uid[FAKE_NAME_BYTES], parent[TEXT], dir[TEXT];
	char quota[TEXT]; /* the kubelet's */
	unsigned nr;
	struct seen seen;
	struct box box[BOXES];
};

struct rig {
	struct crash_rig crash;
	struct cgroups_made made;
	char root[CGROUP_FILE_BYTES];
	bool systemd, releases, loose; /* loose: others have written; it is to come to rest first */
	char qos[NR_CLASSES][TEXT], broken[TEXT];
	struct seen seen[NR_CLASSES];
	struct pod_here pod[PODS];
	struct pod_here *asked_pod;
	struct box *asked;
	unsigned was_milli; /* of a resize */
	bool resizing;
	struct loop_timer *poll;
	char unrest[2 * TEXT]; /* the last thing that was not right yet */
	char disturbed[TEXT];  /* the cgroup that another program has changed since; "": none */
	struct cpuset disturbed_has; /* what is to be in force there again */
	unsigned creates, owners, rests, gave_back, unpinned, nr_disturbed, resized, broke, refused;
	unsigned deaths[NR_DEATHS + 1];
};

/* What runs, by pods and their containers. */
#define EACH_BOX(r, p, b)                                                                          \
	for (struct pod_here *p = (r)->pod; p < (r)->pod + PODS; p++)                              \
		for (struct box *b = p->box; p->there && b < p->box + p->nr; b++)                  \
			if (b->c.runs)

static inline bool owns(const struct box *b)
{
	return b->c.exclusive && !b->loose;
}

static inline bool has_other_cpus(
	const struct rig *r, const struct box *b, const struct cpuset *want)
{
	struct cpuset has = made_in_force(&r->made, b->dir);

	return !cpuset_equal(&has, want);
}

/* The system */

static const char description[] = "machine two\n"
				  "node 0 memory 8Gi cpus 0-7\n"
				  "node 1 memory 8Gi cpus 8-15 socket 1\n";

static inline void make_system(struct rig *r)
{
	static const char *const dirs[][NR_CLASSES] = {
		{"", "/kubepods/burstable", "/kubepods/besteffort"},
		{"", "/kubepods.slice/kubepods-burstable.slice",
			"/kubepods.slice/kubepods-besteffort.slice"}};
	static const struct {
		const char *name, *text;
	} files[] = {
		{"proc/self/mountinfo", "29 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
		{"sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n"},
		{"sys/fs/cgroup/cgroup.procs", ""},
		{"sys/devices/system/cpu/online", "0-15\n"},
		{"sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8388608 kB\n"},
		{"sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 8388608 kB\n"},
	};
	char path[CGROUP_FILE_BYTES];

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		(void)snprintf(path, sizeof path, "%s/%s", r->made.root, files[i].name);
		make_file(path, files[i].text);
	}
	for (unsigned i = 0; i < NR_CLASSES; i++)
		(void)text_copy(r->qos[i], sizeof r->qos[i], dirs[r->systemd][i]);
	for (unsigned i = BURSTABLE; i < NR_CLASSES; i++)
		made_write(&r->made, r->qos[i], "cpuset.cpus", "");
	make_file(r->crash.daemon.machine, description);
}

/* The invariant, at any time */

static inline void is_off_others_cpus(struct rig *r, const struct box *b)
{
	const struct cpuset has = made_in_force(&r->made, b->dir);
	char on[CPUSET_TEXT_MAX];

	EACH_BOX(r, p, o)
	{
		const struct cpuset own = fake_container_cpus(&o->c);

		if (o != b && owns(o) && cpuset_intersects(&own, &has))
			fail_msg("%s runs on %s, of which %s has %s for itself", b->dir,
				cpuset_format(&has, on, sizeof on), o->dir, o->c.cpus);
	}
}

static inline void nobody_runs_on_cpus_of_another(struct rig *r)
{
	char on[CPUSET_TEXT_MAX];

	if (r->loose)
		return;
	EACH_BOX(r, p, b)
	{
		const struct cpuset own = fake_container_cpus(&b->c);
		const struct cpuset has = made_in_force(&r->made, b->dir);

		if (owns(b) && !cpuset_equal(&own, &has))
			fail_msg("%s has %s for itself and runs on %s", b->dir, b->c.cpus,
				cpuset_format(&has, on, sizeof on));
		if (!b->loose)
			is_off_others_cpus(r, b);
	}
}

static inline void remember(struct rig *r, const char *dir, struct seen *seen)
{
	made_remember(&r->made, dir, "cpuset.cpus", seen->cpus, r->crash.dead);
	made_remember(&r->made, dir, "cpu.max", seen->quota, r->crash.dead);
}

static inline void remember_files(struct rig *r)
{
	for (unsigned i = BURSTABLE; i < NR_CLASSES; i++)
		remember(r, r->qos[i], &r->seen[i]);
	for (struct pod_here *p = r->pod; p < r->pod + PODS; p++)
		if (p->there)
			remember(r, p->dir, &p->seen);
	EACH_BOX(r, p, b)
	remember(r, b->dir, &b->seen);
}

/* At rest */

/* Lifted with CPUs of its own, unless the kubelet has set more than it has: it was resized while
 * nobody listened, and there was no room. */
static inline bool quota_is_right(const struct rig *r, const struct box *b, unsigned own)
{
	char kubelets[TEXT];

	(void)snprintf(kubelets, sizeof kubelets, "%u %u",
		b->milli * PERIOD_US / FAKE_MILLI_PER_CPU, PERIOD_US);
	if (own && made_is_unlimited(&r->made, b->dir))
		return true;
	return !b->milli ||
	       (b->milli > own * FAKE_MILLI_PER_CPU && made_has_quota(&r->made, b->dir, kubelets));
}

/* What is not right yet about the container; NULL: nothing. */
static inline const char *unrest_of_box(struct rig *r, const struct box *b, const struct ledger *l)
{
	const struct holding *h = ledger_find(l, b->c.id);

	if (!h)
		return "is not in the journal";
	if (decision_is_left(&h->decision))
		return NULL;
	const struct cpuset want = ledger_cpus_of(l, h), own = fake_container_cpus(&b->c);
	if (h->decision.exclusive && !cpuset_equal(&own, &want))
		return "has other CPUs for itself";
	if (has_other_cpus(r, b, &want))
		return "runs on other CPUs";
	return quota_is_right(r, b, h->decision.exclusive ? cpuset_count(&want) : 0)
		       ? NULL
		       : "has another quota";
}

static inline const char *unrest_of_pod(
	const struct rig *r, const struct pod_here *p, const struct ledger *l)
{
	if (ledger_pod_is_unlimited(l, p->uid))
		return made_is_unlimited(&r->made, p->dir) ? NULL : "has a quota";
	return made_has_quota(&r->made, p->dir, p->quota) ? NULL : "has not the kubelet's quota";
}

static inline const char *unrest_of_disturbed(const struct rig *r)
{
	if (!*r->disturbed)
		return NULL;
	const struct cpuset has = made_in_force(&r->made, r->disturbed);
	return cpuset_equal(&has, &r->disturbed_has) ? NULL : "is not written again";
}

static inline void note_unrest(struct rig *r, const char *dir, const char *why)
{
	if (why)
		(void)snprintf(r->unrest, sizeof r->unrest, "%s %s", dir, why);
}

static inline bool is_at_rest(struct rig *r)
{
	struct journal_fold f;

	crash_read_journal(&r->crash, &f);
	const struct ledger *l = engine_ledger(f.engine);
	*r->unrest = '\0';
	EACH_BOX(r, p, b)
	note_unrest(r, b->dir, unrest_of_box(r, b, l));
	for (struct pod_here *p = r->pod; p < r->pod + PODS; p++)
		if (p->there && p->class == GUARANTEED)
			note_unrest(r, p->dir, unrest_of_pod(r, p, l));
	note_unrest(r, r->disturbed, unrest_of_disturbed(r));
	EACH_BOX(r, q, b)
	{
		const struct holding *h = *r->unrest ? NULL : ledger_find(l, b->c.id);

		b->c.exclusive = h ? h->decision.exclusive : b->c.exclusive;
		b->loose = h ? decision_is_left(&h->decision) : b->loose;
	}
	journal_fold_fini(&f);
	return !*r->unrest;
}

#endif
