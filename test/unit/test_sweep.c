/* The daemon's parts in one process with a runtime that keeps its cpusets in a made-up cgroup tree:
 * what a foreign hand changes there is brought back, CPUs go offline and come back, and a runtime
 * that has forgotten what it set there is not believed. */
#include <numafitd/daemon.h>
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

enum { BOXES = 8, PATH_BYTES = 300, LIST_BYTES = 256, GUARD_MS = 20000, POLL_MS = 2, ROUND_MS = 5 };

static const char machine[] = "machine two\n"
			      "node 0 memory 8Gi cpus 0-7\n"
			      "node 1 memory 8Gi cpus 8-15 socket 1\n";
static const char without_cpu_1[] = "machine two\n"
				    "offline 1\n"
				    "node 0 memory 8Gi cpus 0-7\n"
				    "node 1 memory 8Gi cpus 8-15 socket 1\n";

struct box {
	struct fake_container
		c;     /* with the texts of its creation: a runtime that forgets has these */
	unsigned cpus; /* of its own; 0: shared. c.cpu_milli is that of its creation */
	char cgroup[64];
};

struct rig {
	struct daemon d;
	char dir[64], root[80], socket[96];
	struct fake_runtime runtime;
	bool v2;
	bool refuses, ignores; /* what it is set without having asked: with an error, or without */
	bool hides_cgroups;
	bool in_shadow;
	bool forgets; /* it is CRI-O, and has been started again since it created them */
	const char *client_wants; /* CPUs that an UpdateContainer ends with, whatever is answered */
	struct loop_timer *guard, *poll;
	bool (*until)(struct rig *r);
	struct box box[BOXES];
	unsigned outstanding, unasked, set, answers, nr_updates;
	struct box *asked;
};

/* The tree */

static void put(const struct rig *r, const char *name, const char *content)
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

static void put_cgroup(
	const struct rig *r, const struct box *b, const char *file, const char *content)
{
	char name[PATH_BYTES];

	(void)snprintf(
		name, sizeof name, "sys/fs/cgroup/%s%s/%s", r->v2 ? "" : "cpuset", b->cgroup, file);
	put(r, name, content);
}

static void set_cpus(const struct rig *r, const struct box *b, const char *cpus)
{
	put_cgroup(r, b, "cpuset.cpus", cpus);
	put_cgroup(r, b, r->v2 ? "cpuset.cpus.effective" : "cpuset.effective_cpus", cpus);
}

static void set_mems(const struct rig *r, const struct box *b, const char *mems)
{
	put_cgroup(r, b, "cpuset.mems", mems);
	put_cgroup(r, b, r->v2 ? "cpuset.mems.effective" : "cpuset.effective_mems", mems);
}

static void set_populated(const struct rig *r, const struct box *b, bool populated)
{
	if (r->v2)
		put_cgroup(r, b, "cgroup.events",
			populated ? "populated 1\nfrozen 0\n" : "populated 0\nfrozen 0\n");
	else
		put_cgroup(r, b, "cgroup.procs", populated ? "4711\n" : "");
}

static bool cpus_are(const struct rig *r, const struct box *b, const char *want)
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

static const struct holding *held(const struct rig *r, const struct box *b)
{
	return ledger_find(engine_ledger(r->d.engine), b->c.id);
}

static bool is_as_held(const struct rig *r, const struct box *b)
{
	char list[CPUSET_TEXT_MAX];
	const struct holding *h = held(r, b);

	return h && cpus_are(r, b, cpuset_format(&h->decision.cpus, list, sizeof list));
}

static bool all_are_as_held(struct rig *r)
{
	for (unsigned i = 0; i < BOXES; i++)
		if (r->box[i].c.runs && !is_as_held(r, &r->box[i]))
			return false;
	return ledger_view(engine_ledger(r->d.engine))->nr_misplaced == 0;
}

/* The runtime */

static void apply(struct rig *r, const struct nri_update *updates, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		for (unsigned k = 0; k < BOXES; k++)
			if (r->box[k].c.runs &&
				text_equal(r->box[k].c.id, updates[i].container_id)) {
				set_cpus(r, &r->box[k], updates[i].cpus);
				set_mems(r, &r->box[k], updates[i].mems);
			}
}

/* UpdateContainers */
static bool on_set(void *ctx, const struct nri_update *updates, size_t nr)
{
	struct rig *r = ctx;

	r->unasked++;
	r->set += (unsigned)nr;
	if (!r->refuses && !r->ignores)
		apply(r, updates, nr);
	return !r->refuses;
}

static void on_answered(void *ctx, enum nri_call call, const struct nri_answer *a)
{
	struct rig *r = ctx;

	r->answers++;
	if (call != NRI_CALL_SYNCHRONIZE)
		r->outstanding--;
	assert_int_equal(a->status, 0);
	r->nr_updates = (unsigned)a->nr_updates;
	apply(r, a->updates, a->nr_updates);
	if (call == NRI_CALL_UPDATE && r->client_wants)
		set_cpus(r, &r->box[0], r->client_wants);
	if (call != NRI_CALL_CREATE)
		return;
	set_cpus(r, r->asked, a->cpus);
	set_mems(r, r->asked, a->mems);
	set_populated(r, r->asked, true);
	r->asked->c.cpu_milli = FAKE_MILLI_PER_CPU * r->asked->cpus;
	fake_container_start(&r->asked->c, a);
}

/* As it is now, without what it was answered. */
static struct nri_container shown(
	const struct rig *r, const struct box *b, struct key_value annotation[2])
{
	struct nri_container c = fake_container_shown(&b->c, annotation);

	c.cgroup_parent = b->cpus ? "/kubepods/pod1" : "/kubepods/burstable/pod1";
	c.cgroups_path = r->hides_cgroups ? NULL : b->cgroup;
	c.resources.cpu_shares = b->cpus ? FAKE_SHARES_PER_CPU * b->cpus : 100;
	c.resources.has_memory_limit = false;
	c.resources.memory_limit = 0;
	c.cpus = c.mems = NULL;
	c.nr_annotations = 0;
	return c;
}

/* What is left of it once the runtime has started again. */
static struct nri_container remembered(
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

static void on_configured(void *ctx, const char *name, const char *index, uint32_t events)
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

/* It is CRI-O now, and has been started again since it created the containers. */
static void forget(struct rig *r)
{
	r->forgets = true;
	r->runtime.options = (struct nri_runtime_options){"cri-o", "1.34.0", true, 0};
}

static void call(struct rig *r, enum nri_call what, struct box *b)
{
	struct key_value annotation[2];
	const struct nri_container c = shown(r, b, annotation);

	r->outstanding++;
	r->asked = what == NRI_CALL_CREATE ? b : r->asked;
	fake_runtime_call(&r->runtime, what, &c);
}

/* Waiting */

static void on_guard(void *ctx)
{
	(void)ctx;
	fail_msg("what the test waits for did not come");
}

static void on_poll(void *ctx)
{
	struct rig *r = ctx;

	if (r->until(r))
		loop_stop(r->d.loop);
	else
		loop_timer_set(r->poll, POLL_MS);
}

static void wait_until(struct rig *r, bool (*until)(struct rig *r))
{
	r->until = until;
	loop_timer_set(r->poll, POLL_MS); /* not at once: some libuv would stop before it reads */
	loop_timer_set(r->guard, GUARD_MS);
	loop_run(r->d.loop);
	loop_timer_stop(r->guard);
}

static bool is_ready(struct rig *r)
{
	return nri_conn_state(r->d.runtime.conn) == NRI_READY;
}

static bool is_quiet(struct rig *r)
{
	return r->outstanding == 0;
}

static struct box *create_box(struct rig *r, unsigned i, unsigned cpus)
{
	struct box *b = &r->box[i];

	b->cpus = cpus;
	(void)snprintf(b->c.id, sizeof b->c.id, "c%u", i);
	(void)snprintf(b->c.pod, sizeof b->c.pod, "p%u", i);
	(void)snprintf(b->cgroup, sizeof b->cgroup, "/kubepods/p%u/c%u", i, i);
	call(r, NRI_CALL_CREATE, b);
	wait_until(r, is_quiet);
	return b;
}

static struct box *start_box(struct rig *r, unsigned i, unsigned cpus)
{
	struct box *b = create_box(r, i, cpus);

	call(r, NRI_CALL_POST_START, b);
	wait_until(r, is_quiet);
	return b;
}

/* The rig */

static void read_machine(struct rig *r, const char *text)
{
	assert_int_equal(machine_text_parse(text, strlen(text), &r->d.topo, NULL), 0);
	r->d.topo.this_machine = true;
}

static void start_daemon(struct rig *r)
{
	struct daemon *d = &r->d;
	struct err e;

	settings_init(&d->settings);
	d->settings.sweep_interval_ms = ROUND_MS;
	d->settings.shared_pool_step = 0;
	d->settings.mode = r->in_shadow ? MODE_SHADOW : MODE_MANAGE;
	(void)snprintf(d->settings.nri_socket, sizeof d->settings.nri_socket, "%s", r->socket);
	(void)snprintf(d->settings.machine, sizeof d->settings.machine, "%s/machine", r->dir);
	(void)snprintf(d->run.journal_path, sizeof d->run.journal_path, "%s/journal", r->dir);
	d->loop = loop_new();
	r->runtime.loop = d->loop;
	fake_runtime_listen(&r->runtime, r->socket);
	r->guard = loop_timer_new(d->loop, on_guard, NULL);
	r->poll = loop_timer_new(d->loop, on_poll, r);
	if (recorder_start(d, &e) < 0)
		fail_msg("%s", e.text);
	wiring_start(d);
	sweep_stop(d);
	in_force_stop(d);
	in_force_start(d, r->root);
	sweep_start(d, r->root);
	wait_until(r, is_ready);
}

static void stop_daemon(struct rig *r)
{
	nri_conn_close(r->d.runtime.conn);
	sweep_stop(&r->d);
	in_force_stop(&r->d);
	updater_stop(&r->d);
	loop_free(r->d.loop);
	recorder_stop(&r->d);
	r->runtime.stream = NULL;
	memset(&r->d, 0, sizeof r->d);
}

static void write_file(const struct rig *r, const char *name, const char *text)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, "%s/%s", r->dir, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static struct rig *rig_new(bool v2, const char *nri_version)
{
	struct rig *r = calloc(1, sizeof *r);

	(void)strcpy(r->dir, "/tmp/numafit-sweep-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	(void)snprintf(r->root, sizeof r->root, "%s/root", r->dir);
	(void)snprintf(r->socket, sizeof r->socket, "%s/nri.sock", r->dir);
	r->v2 = v2;
	r->runtime = (struct fake_runtime){.options = {"containerd", "v2.3.4", false, 0},
		.events = {r, on_configured, on_answered},
		.nri_version = nri_version,
		.on_update = on_set};
	put(r, "proc/self/mountinfo",
		v2 ? "29 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		   : "33 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
	if (v2)
		put(r, "sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n");
	put(r, "sys/devices/system/cpu/online", "0-15\n");
	put(r, "sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8388608 kB\n");
	put(r, "sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 8388608 kB\n");
	write_file(r, "machine", machine);
	read_machine(r, machine);
	start_daemon(r);
	return r;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st, (void)flag, (void)at;
	return remove(path);
}

static void rig_free(struct rig *r)
{
	struct err e;

	if (ledger_check(engine_ledger(r->d.engine), &e))
		fail_msg("%s", e.text);
	stop_daemon(r);
	fake_runtime_fini(&r->runtime);
	(void)nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(r);
}

static bool is_there(const struct rig *r, const char *name)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, "%s/%s", r->dir, name);
	return access(path, F_OK) == 0;
}

/* Cases */

static void a_cpuset_changed_by_another_program_is_restored(void **state)
{
	(void)state;
	for (int v2 = 0; v2 < 2; v2++) {
		struct rig *r = rig_new(v2, "v0.12.1");
		struct box *web = start_box(r, 0, 4), *log = start_box(r, 1, 0);

		wait_until(r, all_are_as_held);
		r->unasked = 0;
		set_cpus(r, web, "0-15");
		wait_until(r, all_are_as_held);
		assert_int_equal(r->d.measured.counters.drifted, 1);
		set_mems(r, log, "1");
		set_cpus(r, log, "");
		wait_until(r, all_are_as_held);
		assert_int_equal(r->d.measured.counters.drifted, 2);
		assert_int_equal(r->unasked, 2);
		assert_int_equal(r->set, 2);
		rig_free(r);
	}
}

static void a_container_that_missed_its_update_is_updated_once_it_runs(void **state)
{
	struct rig *r = rig_new(true, "v0.12.1");

	(void)state;
	sweep_stop(&r->d); /* which would find it */
	struct box *log = create_box(r, 1, 0);
	log->c.runs = false;
	(void)start_box(r, 0, 4);
	log->c.runs = true;
	assert_true(cpus_are(r, log, "0-15"));
	assert_int_equal(r->unasked, 0);
	call(r, NRI_CALL_POST_START, log);
	wait_until(r, all_are_as_held);
	assert_int_equal(r->unasked, 1);
	assert_true(cpus_are(r, log, "4-15"));
	rig_free(r);
}

static bool has_drifted(struct rig *r)
{
	return r->d.measured.counters.drifted > 0;
}

static void on_runtimes_without_safe_updates_the_next_reply_restores_a_cpuset(void **state)
{
	static const char *const versions[] = {"v0.12.0", "v0.10.0", "0.0.0-unknown", ""};

	(void)state;
	for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
		struct rig *r = rig_new(true, versions[i]);
		struct box *web = start_box(r, 0, 4);

		set_cpus(r, web, "0-15");
		wait_until(r, has_drifted);
		assert_true(held(r, web)->misplaced);
		assert_false(is_as_held(r, web));
		(void)start_box(r, 1, 0); /* its answer has the update */
		assert_true(is_as_held(r, web));
		assert_int_equal(r->unasked, 0);
		rig_free(r);
	}
}

/* Rounds go on, which another container shows. */
static void pass_rounds(struct rig *r, struct box *witness)
{
	uint64_t before = r->d.measured.counters.drifted;

	set_cpus(r, witness, "3");
	wait_until(r, has_drifted);
	while (r->d.measured.counters.drifted == before)
		wait_until(r, has_drifted);
}

static bool witness_is_back(struct rig *r)
{
	return is_as_held(r, &r->box[1]);
}

static void a_stopping_container_is_not_updated(void **state)
{
	(void)state;
	for (int v2 = 0; v2 < 2; v2++) {
		struct rig *r = rig_new(v2, "v0.12.5");
		struct box *web = start_box(r, 0, 4), *log = start_box(r, 1, 0);

		wait_until(r, all_are_as_held);
		set_populated(r, web, false); /* its processes have ended; the stop is on its way */
		set_cpus(r, web, "0-15");
		pass_rounds(r, log);
		wait_until(r, witness_is_back);
		assert_true(cpus_are(r, web, "0-15"));
		assert_int_equal(r->d.measured.counters.drifted, 1);
		web->c.runs = false;
		call(r, NRI_CALL_STOP, web);
		wait_until(r, is_quiet);
		assert_null(held(r, web));
		rig_free(r);
	}
}

/* Marked to be told, it has ended by the time that it could be. */
static bool some_time_has_passed(struct rig *r)
{
	enum { LOOKS = 100 };
	static unsigned looks;

	(void)r;
	return ++looks >= LOOKS;
}

static void a_container_that_has_ended_is_not_updated(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web = start_box(r, 0, 4);

	(void)state;
	wait_until(r, all_are_as_held);
	r->set = 0;
	set_cpus(r, web, "0-15");
	set_populated(r, web, false);
	engine_must_update(r->d.engine, web->c.id);
	wait_until(r, some_time_has_passed);
	assert_int_equal(r->set, 0);
	set_populated(r, web, true); /* it had not ended: it has only now started */
	wait_until(r, all_are_as_held);
	rig_free(r);
}

static bool was_set_thrice(struct rig *r)
{
	return r->unasked >= 3;
}

static void an_update_that_fails_is_tried_again(void **state)
{
	struct rig *r = rig_new(true, "v0.13.0");
	struct box *web = start_box(r, 0, 4);

	(void)state;
	wait_until(r, all_are_as_held);
	r->refuses = true;
	r->unasked = 0;
	set_cpus(r, web, "0-15");
	wait_until(r, was_set_thrice);
	assert_int_equal(r->d.measured.counters.drifted, 1); /* told once */
	r->refuses = false;
	wait_until(r, all_are_as_held);
	rig_free(r);
}

/* As with ignore_failure: the runtime says that all is well. */
static void an_update_without_effect_is_tried_again(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web = start_box(r, 0, 4);

	(void)state;
	wait_until(r, all_are_as_held);
	r->ignores = true;
	r->unasked = 0;
	set_cpus(r, web, "0-15");
	wait_until(r, was_set_thrice);
	assert_int_equal(r->d.measured.counters.drifted, 1); /* told once */
	r->ignores = false;
	wait_until(r, all_are_as_held);
	rig_free(r);
}

/* Where no cgroup can be looked at, the runtime's answer is all that there is. */
static void without_a_cgroup_updates_are_repeated_until_the_runtime_accepts_one(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web;

	(void)state;
	r->hides_cgroups = true;
	web = start_box(r, 0, 4);
	set_cpus(r, web, "0-15");
	r->refuses = true;
	r->unasked = 0;
	engine_must_update(r->d.engine, web->c.id);
	wait_until(r, was_set_thrice);
	r->refuses = false;
	wait_until(r, all_are_as_held);
	assert_int_equal(r->d.measured.counters.drifted, 0);
	rig_free(r);
}

/* A runtime that has sent the beginning of a request is not kept waiting by a sweep, and not asked
 * for anything. */
static void no_sweep_runs_while_a_request_arrives(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web = start_box(r, 0, 4);
	struct key_value annotation[2];
	struct nri_container c = shown(r, web, annotation);
	const unsigned char *bytes;
	const void *data;

	(void)state;
	wait_until(r, all_are_as_held);
	r->runtime.silent = true;
	nri_runtime_call(r->runtime.nri, NRI_CALL_UPDATE, &c);
	r->outstanding++;
	size_t len = nri_runtime_take(r->runtime.nri, &data);
	auto_free unsigned char *copy = malloc(len);
	memcpy(copy, data, len);
	bytes = copy;
	for (size_t cut = 3; cut < len; cut += len / 3) {
		assert_int_equal(stream_write(r->runtime.stream, bytes, cut), 0);
		bytes += cut;
		len -= cut;
		set_cpus(r, web, "0-15");
		for (int i = 0; i < ROUND_MS; i++)
			wait_until(r, is_ready); /* a turn of the loop or more */
		(void)usleep(10 * ROUND_MS * 1000);
		wait_until(r, is_ready);
		assert_int_equal(r->d.measured.counters.drifted, 0);
	}
	assert_int_equal(stream_write(r->runtime.stream, bytes, len), 0);
	r->runtime.silent = false;
	wait_until(r, is_quiet);
	wait_until(r, all_are_as_held);
	rig_free(r);
}

static void (*daemons_update)(void *ctx, const struct request *req, struct nri_reply *reply);
static unsigned updates_seen;

static void update_and_look(void *ctx, const struct request *req, struct nri_reply *reply)
{
	const struct daemon *d = ctx;

	assert_false(nri_conn_takes_updates(d->runtime.conn));
	daemons_update(ctx, req, reply);
	assert_false(nri_conn_takes_updates(d->runtime.conn));
	updates_seen++;
}

/* The runtime answers such a call after its present event only: whoever waited for it would wait
 * for ever. */
static void no_update_is_sent_inside_a_handler(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web = start_box(r, 0, 4);

	(void)state;
	wait_until(r, all_are_as_held);
	assert_true(nri_conn_takes_updates(r->d.runtime.conn));
	daemons_update = r->d.runtime.handler.update;
	r->d.runtime.handler.update = update_and_look;
	updates_seen = 0;
	engine_must_update(r->d.engine, web->c.id);
	call(r, NRI_CALL_UPDATE, web);
	wait_until(r, is_quiet);
	assert_int_equal(updates_seen, 1);
	rig_free(r);
}

/* stderr goes to a file while a case looks at the log. */
static int redirect(const struct rig *r)
{
	char path[PATH_BYTES];
	int saved = dup(STDERR_FILENO);

	(void)snprintf(path, sizeof path, "%s/log", r->dir);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	(void)close(fd);
	return saved;
}

static unsigned count_lines(const struct rig *r, const char *file, const char *words)
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

static unsigned count_in_log(const struct rig *r, int saved, const char *words)
{
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	(void)close(saved);
	return count_lines(r, "log", words);
}

static void the_log_names_a_drifted_container_once(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web = start_box(r, 0, 4);

	(void)state;
	wait_until(r, all_are_as_held);
	r->refuses = true;
	int saved = redirect(r);
	r->unasked = 0;
	set_cpus(r, web, "0-15");
	wait_until(r, was_set_thrice);
	assert_int_equal(count_in_log(r, saved, "who=\"a foreign hand\""), 1);
	r->refuses = false;
	wait_until(r, all_are_as_held);

	r->d.measured.counters.drifted = 0;
	r->client_wants = "0-14";
	saved = redirect(r);
	call(r, NRI_CALL_UPDATE, web);
	wait_until(r, has_drifted);
	assert_int_equal(count_in_log(r, saved, "who=\"the runtime's client\""), 1);
	wait_until(r, all_are_as_held);
	rig_free(r);
}

static bool narrowed_is_known(struct rig *r)
{
	return r->unasked > 0;
}

static void a_cpuset_narrowed_by_a_parent_cgroup_is_not_drift(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web = start_box(r, 0, 4), *log = start_box(r, 1, 0);

	(void)state;
	wait_until(r, all_are_as_held);
	r->unasked = 0;
	put_cgroup(r, web, "cpuset.cpus.effective", "0-1");
	pass_rounds(r, log);
	wait_until(r, narrowed_is_known);
	wait_until(r, witness_is_back);
	assert_int_equal(r->d.measured.counters.drifted, 1); /* the other's */
	assert_int_equal(r->set, 1);
	rig_free(r);
}

static bool is_relocated(struct rig *r)
{
	return r->d.measured.counters.relocated > 0 && all_are_as_held(r);
}

static bool has_all_cpus(struct rig *r)
{
	return r->d.topo.nr_cpus == 16 && all_are_as_held(r);
}

static void offline_and_online_cpus_are_followed_without_a_request(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web = start_box(r, 0, 4), *log = start_box(r, 1, 0);
	struct decision before = held(r, web)->decision;

	(void)state;
	assert_true(cpuset_has(&before.cpus, 1));
	put(r, "sys/devices/system/cpu/online", "0,2-15\n");
	wait_until(r, is_relocated);
	assert_int_equal(cpuset_count(&held(r, web)->decision.cpus), 4);
	assert_false(cpuset_has(&held(r, web)->decision.cpus, 1));
	assert_false(cpuset_has(&held(r, log)->decision.cpus, 1));
	assert_int_equal(r->d.measured.counters.drifted, 0);
	struct cpuset moved = held(r, web)->decision.cpus;

	/* the journal goes on with it, over a restart */
	assert_int_equal(count_lines(r, "journal.1", "\"cpus\":\"0-3\""), 1);
	assert_int_equal(count_lines(r, "journal", "\"cpus\":\"0-3\""), 0);
	stop_daemon(r);
	read_machine(r, without_cpu_1);
	start_daemon(r);
	assert_true(cpuset_equal(&held(r, web)->decision.cpus, &moved));
	assert_false(is_there(r, "journal.other-machine") || is_there(r, "journal.damaged"));
	set_cpus(r, web, "0-15"); /* where its cgroup is, the journal knows */
	wait_until(r, all_are_as_held);
	assert_int_equal(r->d.measured.counters.drifted, 1);

	/* it has been offline since the start: only discovery knows it */
	put(r, "sys/devices/system/cpu/online", "0-15\n");
	wait_until(r, has_all_cpus);
	assert_true(cpuset_has(&held(r, log)->decision.cpus, 1));
	rig_free(r);
}

static bool is_read_right(struct rig *r)
{
	return cpuset_count(&r->d.topo.node[0].cpus) == 8 &&
	       cpuset_count(&r->d.topo.node[1].cpus) == 8 && all_are_as_held(r);
}

/* The poll comes before the next round: what is written here is what that one reads. */
static bool has_come_amid(struct rig *r)
{
	if (r->d.topo.nr_cpus == 16)
		write_file(r, "machine", machine);
	return r->d.topo.nr_cpus == 16;
}

/* CPUs that come and go change /sys file by file. */
static void a_machine_read_during_a_change_is_read_again(void **state)
{
	static const char amid[] = "machine two\n"
				   "node 0 memory 8Gi cpus 0-7,10-15\n"
				   "node 1 memory 8Gi cpus 8-9 socket 1\n";
	struct rig *r = rig_new(true, "v0.12.5");

	(void)state;
	stop_daemon(r); /* it starts while they come */
	read_machine(r, amid);
	assert_false(is_read_right(r));
	start_daemon(r);
	wait_until(r, is_read_right);

	/* it reads wrongly for longer, and the nodes' own lists show it */
	put(r, "sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8388608 kB\n");
	put(r, "sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 8388608 kB\n");
	put(r, "sys/devices/system/node/node0/cpulist", "0-7\n");
	put(r, "sys/devices/system/node/node1/cpulist", "8-15\n");
	stop_daemon(r);
	read_machine(r, amid);
	write_file(r, "machine", amid);
	start_daemon(r);
	pass_rounds(r, start_box(r, 0, 4));
	assert_false(is_read_right(r));
	write_file(r, "machine", machine);
	wait_until(r, is_read_right);

	/* one that was never seen comes, and discovery reads too early */
	stop_daemon(r);
	read_machine(r, without_cpu_1);
	put(r, "sys/devices/system/cpu/online", "0,2-15\n");
	write_file(r, "machine", without_cpu_1);
	start_daemon(r);
	pass_rounds(r, start_box(r, 1, 4));
	write_file(r, "machine", amid);
	put(r, "sys/devices/system/cpu/online", "0-15\n");
	wait_until(r, has_come_amid);
	wait_until(r, is_read_right);
	rig_free(r);
}

/* A node that comes is for the next start; what goes meanwhile is followed all the same. */
static void cpus_are_followed_although_the_machine_has_a_new_node(void **state)
{
	static const char more[] = "machine two\n"
				   "node 0 memory 8Gi cpus 0-7\n"
				   "node 1 memory 8Gi cpus 8-15 socket 1\n"
				   "node 2 memory 8Gi\n";
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web;

	(void)state;
	stop_daemon(r);
	read_machine(r, machine);
	write_file(r, "machine", more);
	start_daemon(r);
	web = start_box(r, 0, 4);
	assert_true(cpuset_has(&held(r, web)->decision.cpus, 1));
	put(r, "sys/devices/system/cpu/online", "0,2-15\n");
	wait_until(r, is_relocated);
	rig_free(r);
}

static void a_cpu_that_goes_offline_while_the_daemon_is_away_keeps_the_journal_valid(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web = start_box(r, 0, 4);

	(void)state;
	assert_true(cpuset_has(&held(r, web)->decision.cpus, 1));
	stop_daemon(r);
	put(r, "sys/devices/system/cpu/online", "0,2-15\n");
	read_machine(r, without_cpu_1);
	start_daemon(r);
	assert_false(is_there(r, "journal.other-machine") || is_there(r, "journal.damaged"));
	assert_int_equal(cpuset_count(&held(r, web)->decision.cpus), 4);
	assert_false(cpuset_has(&held(r, web)->decision.cpus, 1));
	assert_int_equal(held(r, web)->decision.source, SOURCE_DECIDED);
	wait_until(r, all_are_as_held);
	rig_free(r);
}

static void the_journal_of_another_machine_is_set_aside(void **state)
{
	static const char other[] = "machine two\nnode 0 memory 8Gi cpus 0-15\n";
	struct rig *r = rig_new(true, "v0.12.5");

	(void)state;
	(void)start_box(r, 0, 4);
	stop_daemon(r);
	read_machine(r, other);
	r->d.topo.this_machine = false;
	r->box[0].c.runs = false;
	start_daemon(r);
	assert_true(is_there(r, "journal.other-machine"));
	assert_null(r->d.sweep); /* and its cgroups are not here */
	rig_free(r);
}

/* A runtime that forgets */

/* What its limits are now; without the hierarchies of v1 nobody can see them. */
static void set_limits(const struct rig *r, const struct box *b)
{
	char quota[LIST_BYTES];

	(void)snprintf(quota, sizeof quota, "%u00000 100000\n", b->cpus);
	put_cgroup(r, b, "cpu.max", b->cpus ? quota : "max 100000\n");
	put_cgroup(r, b, "memory.max", "max\n");
}

static void resize_box(struct rig *r, struct box *b, unsigned cpus)
{
	b->cpus = cpus;
	call(r, NRI_CALL_UPDATE, b);
	wait_until(r, is_quiet);
	set_limits(r, b);
}

static bool is_connected_again(struct rig *r)
{
	return r->d.measured.counters.connects == 2 && is_ready(r);
}

/* It starts again, with all that happens meanwhile, and has forgotten. */
static void restart_runtime(struct rig *r, void (*meanwhile)(struct rig *r))
{
	stream_close(r->runtime.stream);
	r->runtime.stream = NULL;
	forget(r);
	if (meanwhile)
		meanwhile(r);
	wait_until(r, is_connected_again);
	r->set = r->unasked = 0;
}

static void a_resize_outlives_a_runtime_that_forgets_it(void **state)
{
	static const unsigned sizes[] = {6, 2};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
		struct rig *r = rig_new(i % 2, "v0.10.0");
		struct box *web = start_box(r, 0, 4), *log = start_box(r, 1, 0);

		resize_box(r, web, sizes[i / 2]);
		sweep_stop(&r->d); /* which does not help */
		set_limits(r, log);
		restart_runtime(r, NULL);
		assert_int_equal(cpuset_count(&held(r, web)->decision.cpus), sizes[i / 2]);
		assert_true(all_are_as_held(r));
		/* of v2 all could be read, and is in force */
		assert_int_equal(r->nr_updates, r->v2 ? 0 : 1);
		(void)start_box(r, 2, 4);
		assert_true(all_are_as_held(r));
		rig_free(r);
	}
}

static void without_cgroups_a_container_is_updated_to_what_the_journal_has(void **state)
{
	struct rig *r = rig_new(true, "v0.10.0");
	struct box *web = start_box(r, 0, 4);

	(void)state;
	resize_box(r, web, 6);
	set_cpus(r, web, "3"); /* nobody can see it */
	sweep_stop(&r->d);
	r->hides_cgroups = true;
	restart_runtime(r, NULL);
	assert_int_equal(r->nr_updates, 1);
	assert_true(is_as_held(r, web));
	assert_int_equal(held(r, web)->request.ask.cpu_milli, 6000);
	rig_free(r);
}

static void second_ends(struct rig *r)
{
	r->box[1].c.runs = false;
}

static void a_shared_container_follows_the_pool_although_the_report_looks_right(void **state)
{
	(void)state;
	for (unsigned v2 = 0; v2 < 2; v2++) {
		struct rig *r = rig_new(v2, "v0.10.0");
		struct box *log = start_box(r, 0, 0);

		(void)start_box(r, 1, 4);
		assert_false(cpus_are(r, log, log->c.cpus));
		sweep_stop(&r->d);
		restart_runtime(r, second_ends);
		assert_true(cpus_are(r, log, log->c.cpus));
		assert_true(is_as_held(r, log));
		rig_free(r);
	}
}

static void both_are_elsewhere(struct rig *r)
{
	set_cpus(r, &r->box[0], "3");
	set_cpus(r, &r->box[1], "4");
	r->d.in_force.budget_ns = 0;
}

static void cgroups_beyond_the_time_limit_are_read_later(void **state)
{
	struct rig *r = rig_new(true, "v0.12.1");
	struct box *web = start_box(r, 0, 4), *log = start_box(r, 1, 0);

	(void)state;
	resize_box(r, web, 6);
	set_limits(r, log);
	sweep_stop(&r->d);
	restart_runtime(r, both_are_elsewhere);
	assert_int_equal(r->nr_updates, 0);
	assert_int_equal(held(r, web)->request.ask.cpu_milli, 6000);
	wait_until(r, all_are_as_held);
	rig_free(r);
}

static void web_grew(struct rig *r)
{
	r->box[0].cpus = 8;
	set_limits(r, &r->box[0]);
	r->d.in_force.budget_ns = 0;
}

static bool has_grown_to_eight(struct rig *r)
{
	return cpuset_count(&held(r, &r->box[0])->decision.cpus) == 8 && all_are_as_held(r);
}

static void a_resize_that_is_read_later_counts(void **state)
{
	struct rig *r = rig_new(true, "v0.12.1");

	(void)state;
	(void)start_box(r, 0, 4);
	(void)start_box(r, 1, 0);
	set_limits(r, &r->box[0]);
	set_limits(r, &r->box[1]);
	sweep_stop(&r->d);
	restart_runtime(r, web_grew);
	wait_until(r, has_grown_to_eight);
	rig_free(r);
}

static void in_shadow_mode_the_cpusets_in_force_are_read_too(void **state)
{
	struct rig *r = rig_new(true, "v0.10.0");
	struct box *web = start_box(r, 0, 4);
	struct cpuset want;

	(void)state;
	stop_daemon(r);
	web->cpus = 6; /* by the kubelet */
	set_limits(r, web);
	set_cpus(r, web, "2-7");
	forget(r);
	r->in_shadow = true;
	read_machine(r, machine);
	start_daemon(r);
	assert_int_equal(cpuset_parse(&want, "2-7", strlen("2-7"), NULL), 0);
	assert_true(cpuset_equal(&held(r, web)->decision.cpus, &want));
	assert_int_equal(held(r, web)->request.ask.cpu_milli, 6000);
	rig_free(r);
}

static void random_event(struct rig *r, struct random *random)
{
	struct box *b = &r->box[random_below(random, BOXES)];
	char list[LIST_BYTES];
	unsigned cpu = random_below(random, 16);

	if (!b->c.runs) {
		(void)start_box(r, (unsigned)(b - r->box), random_below(random, 2) * 2);
	} else if (random_chance(random, 20)) {
		b->c.runs = false;
		call(r, NRI_CALL_STOP, b);
	} else if (random_chance(random, 20)) {
		call(r, NRI_CALL_UPDATE, b);
	} else if (random_chance(random, 10)) {
		(void)snprintf(list, sizeof list, "0-%u,%u-15\n", cpu / 2, cpu / 2 + 1 + cpu % 2);
		put(r, "sys/devices/system/cpu/online", list);
	} else {
		(void)snprintf(list, sizeof list, "%u-15", cpu);
		set_cpus(r, b, list);
	}
	fake_runtime_flush(&r->runtime);
}

static bool a_round_or_so(struct rig *r)
{
	static unsigned calls;

	(void)r;
	return calls++ % 2;
}

static void after_random_changes_every_cpuset_is_restored(void **state)
{
	static const char *const versions[] = {"v0.12.5", "v0.11.0"};

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct rig *r = rig_new(i % 2, versions[i / 2]);
		struct random random = {.state = 11 + (uint64_t)i};
		struct err e;

		for (unsigned n = 0; n < 150; n++) {
			random_event(r, &random);
			wait_until(r, a_round_or_so);
			if (ledger_check(engine_ledger(r->d.engine), &e))
				fail_msg("seed %d, event %u: %s", 11 + i, n, e.text);
		}
		wait_until(r, is_quiet);
		if (i / 2 == 0)
			wait_until(r, all_are_as_held);
		else
			assert_int_equal(r->unasked, 0);
		assert_false(is_there(r, "journal.damaged"));
		rig_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cpuset_changed_by_another_program_is_restored),
		cmocka_unit_test(a_container_that_missed_its_update_is_updated_once_it_runs),
		cmocka_unit_test(on_runtimes_without_safe_updates_the_next_reply_restores_a_cpuset),
		cmocka_unit_test(a_stopping_container_is_not_updated),
		cmocka_unit_test(a_container_that_has_ended_is_not_updated),
		cmocka_unit_test(an_update_that_fails_is_tried_again),
		cmocka_unit_test(an_update_without_effect_is_tried_again),
		cmocka_unit_test(
			without_a_cgroup_updates_are_repeated_until_the_runtime_accepts_one),
		cmocka_unit_test(no_sweep_runs_while_a_request_arrives),
		cmocka_unit_test(no_update_is_sent_inside_a_handler),
		cmocka_unit_test(the_log_names_a_drifted_container_once),
		cmocka_unit_test(a_cpuset_narrowed_by_a_parent_cgroup_is_not_drift),
		cmocka_unit_test(offline_and_online_cpus_are_followed_without_a_request),
		cmocka_unit_test(
			a_cpu_that_goes_offline_while_the_daemon_is_away_keeps_the_journal_valid),
		cmocka_unit_test(a_machine_read_during_a_change_is_read_again),
		cmocka_unit_test(cpus_are_followed_although_the_machine_has_a_new_node),
		cmocka_unit_test(the_journal_of_another_machine_is_set_aside),
		cmocka_unit_test(a_resize_outlives_a_runtime_that_forgets_it),
		cmocka_unit_test(without_cgroups_a_container_is_updated_to_what_the_journal_has),
		cmocka_unit_test(
			a_shared_container_follows_the_pool_although_the_report_looks_right),
		cmocka_unit_test(cgroups_beyond_the_time_limit_are_read_later),
		cmocka_unit_test(a_resize_that_is_read_later_counts),
		cmocka_unit_test(in_shadow_mode_the_cpusets_in_force_are_read_too),
		cmocka_unit_test(after_random_changes_every_cpuset_is_restored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
