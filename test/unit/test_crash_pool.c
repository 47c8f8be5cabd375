/* The shared pool as bounds of cgroups, and lifted CFS quotas, through kill -9: the daemon dies
 * before, between and behind the writes of cpuset.cpus and cpu.max, at the steps of a create, and
 * at any moment, and is started again. By the kernel's rules (crash_cgroups.h) no CPU that a
 * container was answered to have for itself is in force for another one, be the daemon dead or
 * alive, and no container lacks CPUs. Once the daemon has come to rest containers of the pool run
 * on all of it, quotas are lifted where they are to be, and mode release gives back what there was.
 * Between two lives containers start without the daemon and are resized, and other programs write
 * the same files; some cannot be written for a life. The daemon is the real program; this test is
 * its container runtime, its kubelet and its kernel. CRASH_ROUNDS=n changes how often, SEED=n how;
 * CRASH_LOG=file gets the daemon's log and what the test does.
 */
#include <codec/fields_json.h>

#include "crash_pool_rig.h"

enum { RELEASES_EVERY = 24 }; /* of which the last has no fault to die at */
enum { ROUNDS = 120, CALLS = 14, PASSES = 24, CPUS = 16, KILL_US = 1500, REST_POLL_MS = 3 };
enum { PODS_GUARANTEED = 2 }; /* that many at least */
enum { KUBELET_POLLS = 100, KUBELET_POLL_US = 1000 };

static void next_call(struct rig *r);

static void wait_for_rest(void *ctx)
{
	struct rig *r = ctx;

	if (r->crash.dead)
		return;
	if (!is_at_rest(r)) {
		loop_timer_set(r->poll, REST_POLL_MS);
		return;
	}
	crash_note(&r->crash, "at rest\n");
	r->loose = false;
	*r->disturbed = '\0';
	r->rests++;
	remember_files(r);
	nobody_runs_on_cpus_of_another(r);
	next_call(r);
}

/* The runtime */

static struct box *find(struct rig *r, const char *id)
{
	EACH_BOX(r, p, b)
	if (text_equal(b->c.id, id))
		return b;
	return NULL;
}

static void set_cpuset(const struct rig *r, const struct box *b)
{
	made_write(&r->made, b->dir, "cpuset.cpus", b->c.cpus);
	made_write(&r->made, b->dir, "cpuset.cpus.effective", b->c.cpus);
	made_write(&r->made, b->dir, "cpuset.mems", b->c.mems);
	made_write(&r->made, b->dir, "cpuset.mems.effective", b->c.mems);
}

/* As containerd does: what it was given last is set again with each update. 0: nothing new. */
static void give_quota(const struct rig *r, struct box *b, int64_t quota_us)
{
	char text[TEXT];

	b->quota_us = quota_us ? quota_us : b->quota_us;
	(void)snprintf(text, sizeof text, "%lld %u", (long long)b->quota_us, PERIOD_US);
	made_write(&r->made, b->dir, "cpu.max", b->quota_us < 0 ? "max 100000" : text);
}

/* The kubelet's. */
static int64_t quota_of_spec(const struct box *b)
{
	return b->milli ? (int64_t)b->milli * PERIOD_US / FAKE_MILLI_PER_CPU : -1;
}

static void apply(struct rig *r, const struct nri_update *updates, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct box *b = find(r, updates[i].container_id);

		if (!b)
			continue;
		crash_note(&r->crash, "update of %s: cpus %s quota %lld\n", b->dir, updates[i].cpus,
			(long long)updates[i].cpu_quota);
		fake_container_update(&b->c, &updates[i]);
		set_cpuset(r, b);
		give_quota(r, b, updates[i].cpu_quota);
	}
}

static bool on_set(void *ctx, const struct nri_update *updates, size_t nr)
{
	apply(ctx, updates, nr);
	return true;
}

static void start_box(struct rig *r, struct box *b, int64_t quota_us)
{
	set_cpuset(r, b);
	give_quota(r, b, quota_of_spec(b));
	give_quota(r, b, quota_us);
	made_write(&r->made, b->dir, "memory.max", "1073741824");
	made_write(&r->made, b->dir, "cgroup.events", "populated 1");
}

static struct nri_container shown(
	const struct pod_here *p, const struct box *b, struct key_value annotation[2])
{
	struct nri_container c = fake_container_shown(&b->c, annotation);

	static const char *const names[BOXES] = {"first", "second", "third"};

	c.name = names[(size_t)(b - p->box) % BOXES];
	c.pod_uid = c.sandbox_id = c.pod_name = p->uid;
	c.cgroup_parent = p->parent;
	c.cgroups_path = b->cgroup;
	if (p->class == BEST_EFFORT)
		c.resources.cpu_shares = 2;
	if (b->milli) {
		c.resources.has_quota = c.resources.has_period = true;
		c.resources.cpu_quota = b->milli * PERIOD_US / FAKE_MILLI_PER_CPU;
		c.resources.cpu_period = PERIOD_US;
	}
	return c;
}

static void call(struct rig *r, enum nri_call what, struct pod_here *p, struct box *b)
{
	struct key_value annotation[2];
	const struct nri_container c = shown(p, b, annotation);

	crash_note(&r->crash, "call %d of %s, %u thousandths of a CPU\n", what, b->dir, b->milli);
	fake_runtime_call(&r->crash.runtime, what, &c);
	crash_perhaps_kill(&r->crash);
}

static void created(struct rig *r, const struct nri_answer *a)
{
	struct box *b = r->asked;

	r->creates++;
	r->refused += a->status != 0;
	if (a->status)
		return;
	fake_container_start(&b->c, a);
	b->c.exclusive = b->milli && b->milli % FAKE_MILLI_PER_CPU == 0;
	r->owners += b->c.exclusive;
	start_box(r, b, a->cpu_quota);
	assert_int_equal(a->cpu_quota < 0, b->c.exclusive);
}

static void kubelet_sets_quota(struct rig *r, struct pod_here *p)
{
	unsigned milli = 0;

	for (unsigned i = 0; i < p->nr; i++)
		milli += p->box[i].milli;
	(void)snprintf(p->quota, sizeof p->quota, "%u %u", milli * PERIOD_US / FAKE_MILLI_PER_CPU,
		PERIOD_US);
	made_write(&r->made, p->dir, "cpu.max", p->class == GUARANTEED ? p->quota : "max 100000");
}

static bool pod_is_at_rest(struct rig *r, const struct pod_here *p)
{
	struct journal_fold f;

	crash_read_journal(&r->crash, &f);
	const char *unrest = unrest_of_pod(r, p, engine_ledger(f.engine));
	journal_fold_fini(&f);
	return !unrest;
}

/* The kubelet sets a pod's quota long after what it did before, and not in the microseconds in
 * which the daemon, as it has read the quota, writes it. One that is dead, or cannot write, is not
 * waited for. */
static void kubelet_sets_quota_later(struct rig *r, struct pod_here *p)
{
	for (unsigned i = 0; i < KUBELET_POLLS && !pod_is_at_rest(r, p); i++)
		usleep(KUBELET_POLL_US);
	kubelet_sets_quota(r, p);
}

static void take_resized(struct rig *r, struct box *b, int64_t quota_us)
{
	b->c.cpu_milli = b->milli;
	give_quota(r, b, quota_of_spec(b));
	give_quota(r, b, quota_us);
	r->resized++;
}

static void updated(struct rig *r, const struct nri_answer *a)
{
	struct box *b = r->asked;

	if (a->status) { /* it stays as it was, and so does its pod, until the kubelet tries again
			  */
		b->milli = r->was_milli;
		kubelet_sets_quota_later(r, r->asked_pod);
		return;
	}
	int64_t quota_us = 0;
	bool named = false;
	for (size_t i = 0; i < a->nr_updates; i++)
		if (text_equal(a->updates[i].container_id, b->c.id)) {
			named = true;
			quota_us = a->updates[i].cpu_quota;
		}
	take_resized(r, b, quota_us);
	b->loose = !named;
	b->c.exclusive = quota_us < 0;
}

/* Events */

static void name_box(struct rig *r, struct pod_here *p, struct box *b)
{
	b->c.created_ns = ++r->crash.next;
	(void)snprintf(b->c.id, sizeof b->c.id, "c%u", r->crash.next);
	(void)snprintf(b->cgroup, sizeof b->cgroup, r->systemd ? "%s:cri-containerd:%s" : "%s/%s",
		p->parent, b->c.id);
	char dir[CGROUP_PATH_MAX];
	assert_int_equal(cgroup_path(b->cgroup, dir, sizeof dir, NULL), 0);
	assert_true(text_copy(b->dir, sizeof b->dir, dir));
}

static void make_pod(struct rig *r, struct pod_here *p)
{
	static const char *const parents[][NR_CLASSES] = {
		{"/kubepods/pod", "/kubepods/burstable/pod", "/kubepods/besteffort/pod"},
		{"kubepods-pod", "kubepods-burstable-pod", "kubepods-besteffort-pod"}};
	static const unsigned sizes[] = {500, 1000, 1500, 2000, 3000};
	char unit[CGROUP_PATH_MAX], escaped[FAKE_NAME_BYTES];

	*p = (struct pod_here){.there = true,
		.class = p < r->pod + PODS_GUARANTEED
				 ? GUARANTEED
				 : random_below(&r->crash.random, NR_CLASSES + 1) % NR_CLASSES};
	(void)snprintf(p->uid, sizeof p->uid, "a-%u-b", ++r->crash.next);
	(void)text_copy(escaped, sizeof escaped, p->uid);
	for (char *at = escaped; r->systemd && *at; at++)
		*at = *at == '-' ? '_' : *at;
	(void)snprintf(p->parent, sizeof p->parent, "%s%s%s", parents[r->systemd][p->class],
		escaped, r->systemd ? ".slice" : "");
	(void)snprintf(unit, sizeof unit, r->systemd ? "%s:x:y" : "%s/y", p->parent);
	char dir[CGROUP_PATH_MAX];
	assert_int_equal(cgroup_path_above(unit, dir, sizeof dir, NULL), 0);
	assert_true(text_copy(p->dir, sizeof p->dir, dir));
	p->nr = 1 + random_below(&r->crash.random, BOXES);
	for (unsigned i = 0; i < p->nr; i++)
		p->box[i].milli = p->box[i].c.cpu_milli =
			p->class == GUARANTEED ? sizes[random_below(&r->crash.random,
							 sizeof sizes / sizeof *sizes)]
					       : 0;
	made_write(&r->made, p->dir, "cpuset.cpus", "");
	kubelet_sets_quota(r, p);
}

static bool is_empty(const struct pod_here *p)
{
	for (unsigned i = 0; i < p->nr; i++)
		if (p->box[i].c.runs)
			return false;
	return true;
}

static void stop_box(struct rig *r, struct pod_here *p, struct box *b)
{
	b->c.runs = false; /* its process has ended, whether the daemon hears of it or not */
	made_remove(&r->made, b->dir);
	call(r, NRI_CALL_STOP, p, b);
}

/* Its sandbox is made anew, or the pod is gone and the kubelet removes its cgroup. */
static void end_pod(struct rig *r, struct pod_here *p)
{
	struct box *last = &p->box[0];
	bool anew = random_chance(&r->crash.random, 40);

	if (!*last->c.id)
		name_box(r, p, last);
	if (!anew)
		made_remove(&r->made, p->dir);
	p->there = anew;
	call(r, NRI_CALL_STOP_POD, p, last);
}

static void resize_box(struct rig *r, struct pod_here *p, struct box *b)
{
	r->was_milli = b->milli;
	b->milli = FAKE_MILLI_PER_CPU / 2 * (1 + random_below(&r->crash.random, 8));
	b->c.cpu_milli = b->milli;
	kubelet_sets_quota_later(r, p);
}

static void some_box(struct rig *r, struct pod_here *p, struct box *b)
{
	r->asked = NULL;
	if (!b->c.runs && is_empty(p) && *b->c.id && random_chance(&r->crash.random, 40)) {
		end_pod(r, p);
	} else if (!b->c.runs) {
		b->c = (struct fake_container){.cpu_milli = b->milli};
		b->loose = false;
		name_box(r, p, b);
		r->asked = b;
		call(r, NRI_CALL_CREATE, p, b);
	} else if (b->milli && !b->loose && random_chance(&r->crash.random, 12)) {
		resize_box(r, p, b);
		r->asked = b;
		r->asked_pod = p;
		r->resizing = true;
		call(r, NRI_CALL_UPDATE, p, b);
	} else if (random_chance(&r->crash.random, 40)) {
		call(r, NRI_CALL_POST_START, p, b);
	} else {
		stop_box(r, p, b);
	}
}

/* Whether a container runs below it that the daemon does not leave as it runs. */
static bool is_in_use(struct rig *r, const char *dir)
{
	EACH_BOX(r, p, b)
	{
		const char *below = text_behind(b->dir, dir);

		if (below && *below == '/' && !b->loose)
			return true;
	}
	return false;
}

/* Another program writes what numafitd has written. */
static void disturb(struct rig *r)
{
	struct pod_here *p = &r->pod[random_below(&r->crash.random, PODS)];
	enum class class = BURSTABLE + random_below(&r->crash.random, 2);
	const char *dir = p->there && random_chance(&r->crash.random, 60) ? p->dir : r->qos[class];
	static const char *const sets[] = {"", "0-15", "3", "2-9"};

	if (r->loose || *r->broken || !is_in_use(r, dir))
		return;
	(void)text_copy(r->disturbed, sizeof r->disturbed, dir);
	r->disturbed_has = made_in_force(&r->made, dir);
	if (p->there && random_chance(&r->crash.random, 40))
		kubelet_sets_quota(r, p);
	else
		made_write(&r->made, dir, "cpuset.cpus", sets[random_below(&r->crash.random, 4)]);
	crash_note(&r->crash, "another program has written in %s\n", dir);
	r->loose = true;
	r->nr_disturbed++;
}

static void next_call(struct rig *r)
{
	struct pod_here *p = &r->pod[random_below(&r->crash.random, PODS)];

	if (!r->crash.calls || r->crash.dead)
		return;
	if (random_chance(&r->crash.random, 5))
		disturb(r);
	if (r->loose && !*r->broken) {
		wait_for_rest(r);
		return;
	}
	if (!p->there)
		make_pod(r, p);
	some_box(r, p, &p->box[random_below(&r->crash.random, p->nr)]);
}

static bool is_wide(const struct rig *r, const char *dir)
{
	struct cpuset cpus;

	(void)made_cpus(&r->made, dir, &cpus);
	return cpuset_empty(&cpus) || cpuset_within(&r->made.all, &cpus);
}

static void all_was_given_back(struct rig *r)
{
	for (unsigned i = BURSTABLE; i < NR_CLASSES; i++)
		if (!is_wide(r, r->qos[i]))
			fail_msg("%s is still bounded", r->qos[i]);
	for (struct pod_here *p = r->pod; p < r->pod + PODS; p++) {
		if (p->there && !is_wide(r, p->dir))
			fail_msg("%s is still bounded", p->dir);
		if (p->there && p->class == GUARANTEED &&
			!made_has_quota(&r->made, p->dir, p->quota))
			fail_msg("%s has not the quota %s", p->dir, p->quota);
	}
	EACH_BOX(r, p, b)
	{
		b->c.exclusive = false;
		char quota[CGROUP_TEXT_BYTES];

		(void)made_read(&r->made, b->dir, "cpu.max", quota);
		if (!b->loose && !quota_is_right(r, b, 0))
			fail_msg(
				"%s of %u thousandths of a CPU has the quota \"%s\", had \"%s\", and was given %lld",
				b->dir, b->milli, quota, b->seen.quota, (long long)b->quota_us);
		b->loose = true;
	}
	r->gave_back++;
}

static void synchronized(struct rig *r)
{
	if (r->releases) {
		all_was_given_back(r);
		if (!r->crash.dead) {
			r->crash.calls = 1;
			r->crash.killed = true;
			crash_perhaps_kill(&r->crash);
		}
		return;
	}
	if (!*r->broken)
		r->loose = true; /* until it has come to rest */
}

static void answered(void *ctx, enum nri_call what, const struct nri_answer *a)
{
	struct rig *r = ctx;

	crash_note(&r->crash, "answer to call %d: status %d\n", what, a->status);
	apply(r, a->updates, a->nr_updates);
	if (what == NRI_CALL_SYNCHRONIZE)
		synchronized(r);
	if (what == NRI_CALL_CREATE)
		created(r, a);
	if (what == NRI_CALL_UPDATE)
		updated(r, a);
	r->asked = NULL;
	r->resizing = false;
	remember_files(r);
	nobody_runs_on_cpus_of_another(r);
	if (!r->releases)
		next_call(r);
}

static void configured(void *ctx, const char *name, const char *index, uint32_t events)
{
	struct rig *r = ctx;
	struct nri_container list[PODS * BOXES];
	struct key_value annotation[PODS * BOXES][2];
	size_t nr = 0;

	(void)name, (void)index, (void)events;
	EACH_BOX(r, p, b)
	{
		list[nr] = shown(p, b, annotation[nr]);
		nr++;
	}
	nri_runtime_synchronize(r->crash.runtime.nri, list, nr);
}

/* Lives */

static void perhaps_over(void *ctx)
{
	struct rig *r = ctx;

	if (r->crash.dead && !r->crash.runtime.stream)
		loop_stop(r->crash.loop);
}

static void died(void *ctx)
{
	struct rig *r = ctx;

	if (!r->crash.killed || r->crash.fault == NR_DEATHS)
		r->deaths[r->crash.fault]++;
	loop_timer_stop(r->poll);
	perhaps_over(r);
}

static void too_slow(void *ctx)
{
	const struct rig *r = ctx;

	fail_msg("nothing happens any more; %s", r->unrest);
}

/* A runtime goes on without a plugin that is gone: some start the container unpinned, some not. */
static void settle_unanswered(struct rig *r)
{
	struct box *b = r->asked;

	r->asked = NULL;
	crash_note(&r->crash, "the daemon is dead; unanswered: %s\n", b ? b->dir : "nothing");
	if (b && r->resizing) {
		take_resized(r, b, 0);
		b->loose = true;
	} else if (b && random_chance(&r->crash.random, 50)) {
		b->c.runs = b->loose = true;
		start_box(r, b, 0);
		r->unpinned++;
	}
	r->resizing = false;
}

static void restore_broken(struct rig *r)
{
	if (*r->broken && made_is_there(&r->made, r->broken))
		made_break(&r->made, r->broken, false);
	*r->broken = '\0';
}

static void choose_broken(struct rig *r)
{
	const struct pod_here *p = &r->pod[random_below(&r->crash.random, PODS)];

	if (r->releases || r->loose || !random_chance(&r->crash.random, 8))
		return;
	EACH_BOX(r, other, b)
	if (b->loose)
		return;
	(void)text_copy(r->broken, sizeof r->broken,
		p->there && random_chance(&r->crash.random, 40) ? p->dir : r->qos[BURSTABLE]);
	made_break(&r->made, r->broken, true);
	r->broke++;
}

static void set_fault(struct crash_rig *c, enum fault fault, unsigned pass)
{
	c->fault = fault;
	c->daemon.fault = NULL;
	if (fault == NR_DEATHS)
		return;
	(void)snprintf(c->fault_text, sizeof c->fault_text, "%s:%u", fault_name(fault), pass);
	c->daemon.fault = c->fault_text;
}

#ifdef NUMAFIT_FAULTS
static void choose_fault(struct rig *r, unsigned round)
{
	static const enum fault points[] = {FAULT_TO_WRITE_CGROUP, FAULT_CGROUP_WRITTEN,
		FAULT_TO_WRITE_CGROUP, FAULT_CGROUP_WRITTEN, FAULT_TO_APPEND, FAULT_HALF_LINE,
		FAULT_APPENDED, FAULT_COMMITTED, FAULT_ENCODED, FAULT_HALF_ANSWER, FAULT_ANSWERED,
		NR_DEATHS};
	struct crash_rig *c = &r->crash;

	set_fault(c, points[round % (sizeof points / sizeof *points)],
		1 + random_below(&c->random, PASSES));
}
#else
static void choose_fault(struct rig *r, unsigned round)
{
	(void)round;
	set_fault(&r->crash, NR_DEATHS, 0); /* any moment: there is no other one */
}
#endif

static void live(struct rig *r, bool releases)
{
	struct crash_rig *c = &r->crash;

	c->dead = c->killed = false;
	c->calls = c->fault < NR_DEATHS ? CALLS : 1 + random_below(&c->random, CALLS);
	r->releases = releases;
	r->loose = r->loose || releases;
	*r->disturbed = '\0';
	choose_broken(r);
	c->daemon.setting[2] = releases ? "mode=release" : "mode=manage";
	c->daemon.setting[3] = random_chance(&c->random, 30) ? "onAdopt=leave" : "onAdopt=place";
	crash_note(c, "a life in %s with %s, %s broken, dies at %s\n", c->daemon.setting[2],
		c->daemon.setting[3], *r->broken ? r->broken : "nothing",
		c->daemon.fault ? c->daemon.fault : "any moment");
	crash_begin(c);
	crash_live(c);
	remember_files(r);
	settle_unanswered(r);
	nobody_runs_on_cpus_of_another(r);
	restore_broken(r);
	remember_files(r); /* what was set without the daemon, too */
	crash_assert_no_journal_set_aside(c);
}

static struct rig *rig_new(bool systemd)
{
	struct rig *r = calloc(1, sizeof *r);
	struct crash_rig *c = &r->crash;

	crash_init(c, r, died, too_slow);
	r->systemd = systemd;
	(void)snprintf(r->root, sizeof r->root, "%s/root", c->daemon.dir);
	(void)snprintf(c->daemon.machine, sizeof c->daemon.machine, "%.*s/two.machine", TEXT,
		c->daemon.dir);
	r->made.root = c->daemon.root = r->root;
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		cpuset_add(&r->made.all, cpu);
	make_system(r);
	c->daemon.setting[0] = getenv("CRASH_LOG") ? "logLevel=debug" : "logLevel=error";
	c->daemon.setting[1] = "sweepInterval=10ms";
	c->kill_us = KILL_US;
	c->nr_faults = NR_DEATHS;
	crash_log_to_file(c);
	r->poll = loop_timer_new(c->loop, wait_for_rest, r);
	c->runtime = (struct fake_runtime){.loop = c->loop,
		.options = {.name = "crash", .version = "1"},
		.events = {.ctx = r, .configured = configured, .answered = answered},
		.nri_version = "v0.12.5",
		.on_update = on_set,
		.on_closed = perhaps_over};
	return r;
}

static void rig_free(struct rig *r)
{
	crash_fini(&r->crash);
	free(r);
}

static void one_life(struct rig *r, unsigned round)
{
	/* in one of them nothing keeps it from that */
	bool last = round % RELEASES_EVERY == RELEASES_EVERY - 1;

	choose_fault(r, round);
	live(r, last || random_chance(&r->crash.random, 6));
}

static void lives(bool systemd)
{
	unsigned rounds = crash_rounds(ROUNDS) / 2;
	struct rig *r = rig_new(systemd);

	for (unsigned i = 0; i < rounds; i++)
		one_life(r, i);
	print_message(
		"%u lives: %u creates answered, %u with CPUs of their own, %u refused; %u times at rest, %u times "
		"given back; %u started unpinned, %u resized, %u files changed by others, %u broken\n",
		rounds, r->creates, r->owners, r->refused, r->rests, r->gave_back, r->unpinned,
		r->resized, r->nr_disturbed, r->broke);
	print_message(
		"it died %u times before and %u times behind a write of a cgroup, %u times at any moment\n",
		r->deaths[FAULT_TO_WRITE_CGROUP], r->deaths[FAULT_CGROUP_WRITTEN],
		r->deaths[NR_DEATHS]);
#ifdef NUMAFIT_FAULTS
	assert_true(r->deaths[FAULT_TO_WRITE_CGROUP] > 0 && r->deaths[FAULT_CGROUP_WRITTEN] > 0);
#endif
	assert_true(r->owners > rounds / 8 && r->rests > rounds / 4 && r->gave_back > 0);
	rig_free(r);
}

static void cpus_of_ones_own_survive_kill_9_between_writes(void **state)
{
	(void)state;
	lives(false);
}

static void cpus_of_ones_own_survive_kill_9_between_writes_below_systemd(void **state)
{
	(void)state;
	lives(true);
}

#ifdef NUMAFIT_FAULTS
static void own_cpus_are_given(struct rig *r)
{
	const unsigned before = r->owners;

	set_fault(&r->crash, NR_DEATHS, 0);
	while (r->owners == before)
		live(r, false);
}

/* Whatever it had recorded, written or sent by then: it dies at each such step. */
static void what_a_release_that_died_has_not_given_back_the_next_one_gives_back(void **state)
{
	static const enum fault points[] = {FAULT_CGROUP_WRITTEN, FAULT_COMMITTED, FAULT_APPENDED,
		FAULT_QUEUED, FAULT_HALF_ANSWER, FAULT_ANSWERED};
	enum { PASSES_MIN = 5 };
	struct rig *r = rig_new(false);

	(void)state;
	for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
		unsigned pass = 1;
		bool died;

		do {
			own_cpus_are_given(r);
			set_fault(&r->crash, points[i], pass);
			pass += 1 + random_below(&r->crash.random, 3);
			live(r, true);
			died = !r->crash.killed;
			set_fault(&r->crash, NR_DEATHS, 0);
			live(r, true);
		} while (died || pass < PASSES_MIN);
		if (!r->deaths[points[i]])
			fail_msg("it does not die at %s", fault_name(points[i]));
	}
	rig_free(r);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpus_of_ones_own_survive_kill_9_between_writes),
		cmocka_unit_test(cpus_of_ones_own_survive_kill_9_between_writes_below_systemd),
#ifdef NUMAFIT_FAULTS
		cmocka_unit_test(
			what_a_release_that_died_has_not_given_back_the_next_one_gives_back),
#endif
	};

	json_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
