#ifndef NUMAFIT_TEST_SWEEP_RIG_H
#define NUMAFIT_TEST_SWEEP_RIG_H

#include <numafitd/daemon.h>
#include <numafitd/pool.h>
#include <numafitd/quiet.h>
#include <numafitd/quota.h>
#include <numafitd/sweep.h>
#include <numafitd/updater.h>

#include <codec/machine_text.h>

#include "core_random.h"
#include "fake_runtime.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The daemon's parts in one process with a runtime that keeps its cpusets in a made-up cgroup tree.
 */

enum {
	BOXES = 20,
	PATH_BYTES = 300,
	LIST_BYTES = 256,
	GUARD_MS = 20000,
	POLL_MS = 2,
	ROUND_MS = 5
};

static const char machine[] = "machine two\n"
			      "node 0 memory 8Gi cpus 0-7\n"
			      "node 1 memory 8Gi cpus 8-15 socket 1\n";

struct box {
	struct fake_container
		c;        /* with the texts of its creation: a runtime that forgets has these */
	unsigned cpus;    /* of its own; 0: shared. c.cpu_milli is that of its creation */
	const char *name; /* of the container; NULL: main */
	char cgroup[64];
	int64_t quota;            /* what the runtime has been given for it; 0: nothing */
	const char *wishes_quiet; /* its pod's annotation numafit.io/quiet; NULL: none */
};

struct rig {
	struct daemon d;
	char dir[64], root[80], socket[96];
	struct fake_runtime runtime;
	bool v2;
	bool refuses, ignores; /* what it is set without having asked: with an error, or without */
	bool hides_cgroups;
	bool in_shadow;
	int64_t memory_limit; /* of every container, in bytes; 0: none */
	const char *profiles; /* frequencyProfiles; NULL: none. Pods may wish for quiet, then */
	uint64_t pod_shares;  /* of each pod's sandbox; 0: the runtime does not show any */
	bool gate;            /* PodLevelResourceManagers */
	bool untouched;       /* created containers get no cpuset (cpus: untouched) */
	bool claims;          /* claims.enabled, without its driver */
	bool keeps_quotas;    /* exclusiveCPUs.cfsQuota: keep */
	bool by_cgroups;      /* how the pool is enforced; cgroups have the kubelet's names then */
	enum pool_enforced enforced;
	enum mode mode;       /* MODE_OFF: mode manage */
	bool forgets;         /* it is CRI-O, and has been started again since it created them */
	bool shows_placement; /* the annotation that a container was created with */
	const char *client_wants; /* CPUs that an UpdateContainer ends with, whatever is answered */
	const char *refusal;      /* what its calls are refused with; NULL: they are not */
	char told[LIST_BYTES];    /* NUMAFIT_CPUS of the container that was created last, */
	char told_nodes[LIST_BYTES]; /* and NUMAFIT_NUMA_NODES */
	/* It creates this one before it comes to what it is set without having asked, as containerd
	 * may, in which both wait for one lock. NULL: none. */
	struct box *overtakes;
	struct {
		struct box *box;
		char cpus[LIST_BYTES], mems[LIST_BYTES];
	} late; /* what it comes to then */
	struct loop_timer *guard, *poll;
	bool (*until)(struct rig *r);
	struct box box[BOXES];
	unsigned outstanding, unasked, set, answers, nr_updates;
	struct box *asked;
};

/* The tree */

static inline void put(const struct rig *r, const char *name, const char *content)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, "%s/%s", r->root, name);
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		(void)mkdir(path, 0755);
		*at = '/';
	}
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(content, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* The file's first line, until the next call. */
static inline const char *content(const struct rig *r, const char *name)
{
	static char text[LIST_BYTES];
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, "%s/%s", r->root, name);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	*text = '\0';
	(void)!fgets(text, sizeof text, f);
	(void)fclose(f);
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static inline void put_cgroup(
	const struct rig *r, const struct box *b, const char *file, const char *content)
{
	char name[PATH_BYTES / 2];

	(void)snprintf(
		name, sizeof name, "sys/fs/cgroup/%s%s/%s", r->v2 ? "" : "cpuset", b->cgroup, file);
	put(r, name, content);
}

static inline void set_cpus(const struct rig *r, const struct box *b, const char *cpus)
{
	put_cgroup(r, b, "cpuset.cpus", cpus);
	put_cgroup(r, b, r->v2 ? "cpuset.cpus.effective" : "cpuset.effective_cpus", cpus);
}

static inline void set_mems(const struct rig *r, const struct box *b, const char *mems)
{
	put_cgroup(r, b, "cpuset.mems", mems);
	put_cgroup(r, b, r->v2 ? "cpuset.mems.effective" : "cpuset.effective_mems", mems);
}

static inline void set_populated(const struct rig *r, const struct box *b, bool populated)
{
	if (r->v2)
		put_cgroup(r, b, "cgroup.events",
			populated ? "populated 1\nfrozen 0\n" : "populated 0\nfrozen 0\n");
	else
		put_cgroup(r, b, "cgroup.procs", populated ? "4711\n" : "");
}

static inline bool cpus_are(const struct rig *r, const struct box *b, const char *want)
{
	char path[PATH_BYTES], list[LIST_BYTES] = "";

	(void)snprintf(path, sizeof path, "%s/sys/fs/cgroup/%s%s/cpuset.cpus", r->root,
		r->v2 ? "" : "cpuset", b->cgroup);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	(void)!fgets(list, sizeof list, f);
	(void)fclose(f);
	return strcmp(list, want) == 0;
}

static inline const struct holding *held(const struct rig *r, const struct box *b)
{
	return ledger_find(engine_ledger(r->d.engine), b->c.id);
}

static inline bool is_as_held(const struct rig *r, const struct box *b)
{
	char list[CPUSET_TEXT_MAX];
	const struct holding *h = held(r, b);

	return h && cpus_are(r, b,
			    cpuset_format((struct cpuset[]){ledger_cpus_of(
						  engine_ledger(r->d.engine), h)},
				    list, sizeof list));
}

static inline bool all_are_as_held(struct rig *r)
{
	for (unsigned i = 0; i < BOXES; i++)
		if (r->box[i].c.runs && !is_as_held(r, &r->box[i]))
			return false;
	return ledger_view(engine_ledger(r->d.engine))->nr_misplaced == 0;
}

/* As containerd does: with each update it sets the quota that it has been given last, by whomever.
 */
static inline void set_quota(const struct rig *r, struct box *b, int64_t given)
{
	char text[32] = "max 100000\n";

	b->quota = given ? given : b->quota;
	if (!r->by_cgroups || !b->quota)
		return;
	if (b->quota > 0)
		(void)snprintf(text, sizeof text, "%lld 100000\n", (long long)b->quota);
	put_cgroup(r, b, "cpu.max", text);
}

/* The runtime */

static inline void apply(struct rig *r, const struct nri_update *updates, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		for (unsigned k = 0; k < BOXES; k++)
			if (r->box[k].c.runs &&
				text_equal(r->box[k].c.id, updates[i].container_id)) {
				set_cpus(r, &r->box[k], updates[i].cpus);
				set_mems(r, &r->box[k], updates[i].mems);
				set_quota(r, &r->box[k], updates[i].cpu_quota);
			}
}

static inline void call(struct rig *r, enum nri_call what, struct box *b);

static inline void keep_for_later(struct rig *r, const struct nri_update *first)
{
	r->late.box = &r->box[0];
	assert_string_equal(r->late.box->c.id, first->container_id);
	(void)snprintf(r->late.cpus, sizeof r->late.cpus, "%s", first->cpus);
	(void)snprintf(r->late.mems, sizeof r->late.mems, "%s", first->mems);
	call(r, NRI_CALL_CREATE, r->overtakes);
	r->overtakes = NULL;
}

static inline void apply_late(struct rig *r)
{
	if (!r->late.box)
		return;
	set_cpus(r, r->late.box, r->late.cpus);
	set_mems(r, r->late.box, r->late.mems);
	r->late.box = NULL;
}

/* UpdateContainers */
static inline bool on_set(void *ctx, const struct nri_update *updates, size_t nr)
{
	struct rig *r = ctx;

	r->unasked++;
	r->set += (unsigned)nr;
	if (r->overtakes)
		keep_for_later(r, updates);
	else if (!r->refuses && !r->ignores)
		apply(r, updates, nr);
	return !r->refuses;
}

static inline void on_answered(void *ctx, enum nri_call call, const struct nri_answer *a)
{
	struct rig *r = ctx;

	r->answers++;
	if (call != NRI_CALL_SYNCHRONIZE)
		r->outstanding--;
	if (r->refusal) {
		assert_int_not_equal(a->status, 0);
		assert_non_null(strstr(a->message, r->refusal));
		return;
	}
	assert_int_equal(a->status, 0);
	r->nr_updates = (unsigned)a->nr_updates;
	apply(r, a->updates, a->nr_updates);
	apply_late(r);
	if (call == NRI_CALL_UPDATE && r->client_wants)
		set_cpus(r, &r->box[0], r->client_wants);
	if (call != NRI_CALL_CREATE)
		return;
	*r->told = *r->told_nodes = '\0';
	for (size_t i = 0; i < a->nr_env; i++) {
		if (text_equal(a->env[i].key, "NUMAFIT_CPUS"))
			(void)text_copy(r->told, sizeof r->told, a->env[i].value);
		if (text_equal(a->env[i].key, "NUMAFIT_NUMA_NODES"))
			(void)text_copy(r->told_nodes, sizeof r->told_nodes, a->env[i].value);
	}
	set_cpus(r, r->asked, a->cpus);
	set_mems(r, r->asked, a->mems);
	set_quota(r, r->asked, a->cpu_quota);
	set_populated(r, r->asked, true);
	r->asked->c.cpu_milli = FAKE_MILLI_PER_CPU * r->asked->cpus;
	r->asked->c.runs = true;
	if (r->untouched)
		assert_string_equal(a->cpus, "");
	else
		fake_container_start(&r->asked->c, a);
}

/* As it is now, without what it was answered. */
static inline struct nri_container shown(
	const struct rig *r, const struct box *b, struct key_value annotation[2])
{
	struct nri_container c = fake_container_shown(&b->c, annotation);

	c.cgroup_parent = b->cpus ? "/kubepods/pod1" : "/kubepods/burstable/pod1";
	c.name = b->name ? b->name : c.name;
	c.cgroups_path = r->hides_cgroups ? NULL : b->cgroup;
	c.resources.cpu_shares = b->cpus ? FAKE_SHARES_PER_CPU * b->cpus : 100;
	c.resources.has_memory_limit = r->memory_limit > 0;
	c.resources.memory_limit = r->memory_limit;
	c.cpus = c.mems = NULL;
	c.nr_annotations = r->shows_placement ? c.nr_annotations : 0;
	annotation[1] = (struct key_value){"numafit.io/quiet", b->wishes_quiet};
	c.pod_annotations = &annotation[1];
	c.nr_pod_annotations = b->wishes_quiet != NULL;
	c.pod_shares = r->pod_shares;
	return c;
}

/* What is left of it once the runtime has started again. */
static inline struct nri_container remembered(
	const struct rig *r, const struct box *b, struct key_value annotation[2])
{
	struct nri_container c = shown(r, b, annotation);

	c.cpus = b->c.cpus;
	c.mems = b->c.mems;
	c.nr_annotations = 1;
	if (b->c.cpu_milli)
		c.resources.cpu_shares = FAKE_SHARES_PER_CPU * b->c.cpu_milli / FAKE_MILLI_PER_CPU;
	return c;
}

static inline void on_configured(void *ctx, const char *name, const char *index, uint32_t events)
{
	struct rig *r = ctx;
	struct nri_container list[BOXES];
	struct key_value said[BOXES][2];
	size_t nr = 0;

	(void)name, (void)index, (void)events;
	for (unsigned i = 0; i < BOXES; i++)
		if (r->box[i].c.runs) {
			list[nr] = r->forgets ? remembered(r, &r->box[i], said[nr])
					      : shown(r, &r->box[i], said[nr]);
			nr++;
		}
	nri_runtime_synchronize(r->runtime.nri, list, nr);
}

static inline void call(struct rig *r, enum nri_call what, struct box *b)
{
	struct key_value annotation[2];
	const struct nri_container c = shown(r, b, annotation);

	r->outstanding++;
	r->asked = what == NRI_CALL_CREATE ? b : r->asked;
	fake_runtime_call(&r->runtime, what, &c);
}

/* Waiting */

static inline void on_guard(void *ctx)
{
	(void)ctx;
	fail_msg("what the test waits for did not come");
}

static inline void on_poll(void *ctx)
{
	struct rig *r = ctx;

	if (r->until(r))
		loop_stop(r->d.loop);
	else
		loop_timer_set(r->poll, POLL_MS);
}

static inline void wait_until(struct rig *r, bool (*until)(struct rig *r))
{
	r->until = until;
	loop_timer_set(r->poll, POLL_MS); /* not at once: some libuv would stop before it reads */
	loop_timer_set(r->guard, GUARD_MS);
	loop_run(r->d.loop);
	loop_timer_stop(r->guard);
}

static inline bool is_ready(struct rig *r)
{
	return nri_conn_state(r->d.runtime.conn) == NRI_READY;
}

static inline bool is_quiet(struct rig *r)
{
	return r->outstanding == 0;
}

static inline struct box *name_box(struct rig *r, unsigned i, unsigned cpus)
{
	struct box *b = &r->box[i];

	b->cpus = cpus;
	(void)snprintf(b->c.id, sizeof b->c.id, "c%u", i);
	(void)snprintf(b->c.pod, sizeof b->c.pod, "p%u", i);
	(void)snprintf(b->cgroup, sizeof b->cgroup, "/kubepods%s/%s%u/c%u",
		r->by_cgroups && !cpus ? "/burstable" : "", r->by_cgroups ? "podp" : "p", i, i);
	return b;
}

static inline struct box *create_box(struct rig *r, unsigned i, unsigned cpus)
{
	struct box *b = name_box(r, i, cpus);

	call(r, NRI_CALL_CREATE, b);
	wait_until(r, is_quiet);
	return b;
}

/* The same with that cgroup. */
static inline struct box *place_box(struct rig *r, unsigned i, unsigned cpus, const char *cgroup)
{
	struct box *b = name_box(r, i, cpus);

	(void)snprintf(b->cgroup, sizeof b->cgroup, "%s", cgroup);
	call(r, NRI_CALL_CREATE, b);
	wait_until(r, is_quiet);
	return b;
}

static inline struct box *start_box(struct rig *r, unsigned i, unsigned cpus)
{
	struct box *b = create_box(r, i, cpus);

	call(r, NRI_CALL_POST_START, b);
	wait_until(r, is_quiet);
	return b;
}

/* The rig */

static inline void read_machine(struct rig *r, const char *text)
{
	assert_int_equal(machine_text_parse(text, strlen(text), &r->d.topo, NULL), 0);
	r->d.topo.this_machine = true;
}

/* With the cgroups of the test's root: who makes moves borrows their trees from the start. */
static inline void start_wiring(struct rig *r)
{
	(void)setenv("NUMAFIT_FAULT_ROOT", r->root, 1);
	wiring_start(&r->d);
	(void)unsetenv("NUMAFIT_FAULT_ROOT");
#ifndef NUMAFIT_FAULTS
	sweep_stop(&r->d);
	in_force_stop(&r->d);
	in_force_start(&r->d, r->root);
	sweep_start(&r->d, r->root);
#endif
}

static inline void start_daemon(struct rig *r)
{
	struct daemon *d = &r->d;
	struct err e;

	settings_init(&d->settings);
	d->settings.sweep_interval_ms = ROUND_MS;
	d->settings.shared_pool_step = 0;
	d->settings.gates.pod_level_resource_managers = r->gate;
	d->settings.claims = r->claims;
	d->settings.mode = r->in_shadow ? MODE_SHADOW : MODE_MANAGE;
	(void)snprintf(d->settings.nri_socket, sizeof d->settings.nri_socket, "%s", r->socket);
	(void)snprintf(d->settings.machine, sizeof d->settings.machine, "%s/machine", r->dir);
	(void)snprintf(d->run.journal_path, sizeof d->run.journal_path, "%s/journal", r->dir);
	d->loop = loop_new();
	r->runtime.loop = d->loop;
	fake_runtime_listen(&r->runtime, r->socket);
	r->guard = loop_timer_new(d->loop, on_guard, NULL);
	r->poll = loop_timer_new(d->loop, on_poll, r);
	if (r->mode)
		d->settings.mode = r->mode;
	d->settings.pool_enforced = r->enforced;
	if (r->by_cgroups && pool_choose(d, r->root, &e) < 0)
		fail_msg("%s", e.text);
	if (recorder_start(d, &e) < 0)
		fail_msg("%s", e.text);
	d->settings.quota_use = r->keeps_quotas ? QUOTA_KEEP : QUOTA_LIFT;
	if (r->by_cgroups) {
		pool_start(d);
		quota_start(d, r->root);
	}
	if (r->profiles) {
		assert_int_equal(settings_set(&d->settings, "podWishes.allowed", "quiet", NULL), 0);
		assert_int_equal(
			settings_set(&d->settings, "frequencyProfiles", r->profiles, NULL), 0);
		quiet_start(d, r->root);
	}
	start_wiring(r);
	wait_until(r, is_ready);
}

static inline void stop_daemon(struct rig *r)
{
	wiring_stop(&r->d);
	quota_stop(&r->d);
	pool_stop(&r->d);
	quiet_stop(&r->d);
	loop_free(r->d.loop);
	recorder_stop(&r->d);
	r->runtime.stream = NULL;
	memset(&r->d, 0, sizeof r->d);
}

static inline void write_file(const struct rig *r, const char *name, const char *text)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, "%s/%s", r->dir, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline struct rig *rig_new_by(bool v2, const char *nri_version, bool by_cgroups)
{
	struct rig *r = calloc(1, sizeof *r);

	(void)strcpy(r->dir, "/tmp/numafit-sweep-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	(void)snprintf(r->root, sizeof r->root, "%s/root", r->dir);
	(void)snprintf(r->socket, sizeof r->socket, "%s/nri.sock", r->dir);
	r->v2 = v2;
	r->by_cgroups = by_cgroups;
	r->runtime = (struct fake_runtime){.options = {"containerd", "v2.3.4", false, 0},
		.events = {r, on_configured, on_answered},
		.nri_version = nri_version,
		.on_update = on_set};
	put(r, "proc/self/mountinfo",
		v2 ? "29 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		   : "33 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
	if (v2)
		put(r, "sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n");
	if (v2)
		put(r, "sys/fs/cgroup/cgroup.procs", "");
	put(r, "sys/devices/system/cpu/online", "0-15\n");
	put(r, "sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8388608 kB\n");
	put(r, "sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 8388608 kB\n");
	write_file(r, "machine", machine);
	read_machine(r, machine);
	start_daemon(r);
	return r;
}

static const char burstable[] = "sys/fs/cgroup/kubepods/burstable/cpuset.cpus";

/* The kubelet's cgroups as the kernel has those that nobody has bounded. */
static inline void put_unbounded(const struct rig *r)
{
	put(r, burstable, "\n");
	for (unsigned i = 0; i < BOXES; i++) {
		char name[PATH_BYTES / 2];

		(void)snprintf(name, sizeof name, "sys/fs/cgroup/kubepods/podp%u/cpuset.cpus", i);
		put(r, name, "\n");
		(void)snprintf(name, sizeof name,
			"sys/fs/cgroup/kubepods/burstable/podp%u/cpuset.cpus", i);
		put(r, name, "\n");
	}
}

static inline struct rig *rig_new(bool v2, const char *nri_version)
{
	return rig_new_by(v2, nri_version, false);
}

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st, (void)flag, (void)at;
	return remove(path);
}

/* A folder below the rig's root. */
static inline void remove_tree(const struct rig *r, const char *name)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, "%s/%s", r->root, name);
	assert_int_equal(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static inline void rig_free(struct rig *r)
{
	struct err e;

	if (ledger_check(engine_ledger(r->d.engine), &e))
		fail_msg("%s", e.text);
	stop_daemon(r);
	fake_runtime_fini(&r->runtime);
	(void)nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(r);
}

static inline bool is_there(const struct rig *r, const char *name)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, "%s/%s", r->dir, name);
	return access(path, F_OK) == 0;
}

static inline bool has_drifted(struct rig *r)
{
	return r->d.measured.counters.drifted > 0;
}

/* Rounds go on, which another container shows. */
static inline void pass_rounds(struct rig *r, struct box *witness)
{
	uint64_t before = r->d.measured.counters.drifted;

	set_cpus(r, witness, "3");
	wait_until(r, has_drifted);
	while (r->d.measured.counters.drifted == before)
		wait_until(r, has_drifted);
}

static inline unsigned count_lines(const struct rig *r, const char *file, const char *words)
{
	char path[PATH_BYTES], line[4096];
	unsigned nr = 0;

	(void)snprintf(path, sizeof path, "%s/%s", r->dir, file);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		nr += strstr(line, words) != NULL;
	(void)fclose(f);
	return nr;
}

/* The log goes into the file log from now on. Return the former stderr. */
static inline int redirect(const struct rig *r)
{
	char path[PATH_BYTES];
	int saved = dup(STDERR_FILENO);

	(void)snprintf(path, sizeof path, "%s/log", r->dir);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	(void)close(fd);
	return saved;
}

/* The log goes to the former stderr again. Return how many of its lines have the words. */
static inline unsigned count_in_log(const struct rig *r, int saved, const char *words)
{
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	(void)close(saved);
	return count_lines(r, "log", words);
}

#endif
