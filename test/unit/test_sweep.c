/* A cpuset that another program changes in a cgroup is restored: by an update, or with the next
 * reply. */
#include "sweep_rig.h"

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

/* A runtime reports to a plugin that it is taking in what runs, but not what starts meanwhile. */
static void a_container_whose_start_was_not_reported_is_updated_all_the_same(void **state)
{
	struct rig *r = rig_new(true, "v0.12.1");

	(void)state;
	struct box *log = create_box(r, 1, 0);
	log->c.runs = false;
	(void)start_box(r, 0, 4);
	log->c.runs = true;
	assert_true(cpus_are(r, log, "0-15"));
	wait_until(r, all_are_as_held);
	assert_true(cpus_are(r, log, "4-15"));
	rig_free(r);
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

/* Marked for an update, it has ended by the time that one could be sent. */
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

static bool the_one_that_runs_is_back(struct rig *r)
{
	return is_as_held(r, &r->box[9]);
}

/* A runtime sets 16 at once, at most. */
static void ended_containers_do_not_delay_a_running_one(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	const struct box *runs = &r->box[9]; /* the last one of the ledger, which goes by ids */

	(void)state;
	for (unsigned i = 0; i < BOXES; i++)
		(void)start_box(r, i, 0);
	wait_until(r, all_are_as_held);
	for (unsigned i = 0; i < BOXES; i++) {
		set_populated(r, &r->box[i], &r->box[i] == runs);
		set_cpus(r, &r->box[i], "0-3");
		engine_must_update(r->d.engine, r->box[i].c.id);
	}
	updater_note_change(&r->d);
	wait_until(r, the_one_that_runs_is_back);
	for (unsigned i = 0; i < BOXES; i++)
		assert_true(&r->box[i] == runs || cpus_are(r, &r->box[i], "0-3"));
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
	assert_int_equal(r->d.measured.counters.drifted, 1); /* logged once */
	r->refuses = false;
	wait_until(r, all_are_as_held);
	rig_free(r);
}

static bool web_was_set_late(struct rig *r)
{
	return r->unasked && !r->late.box && r->outstanding == 0;
}

static void an_update_that_a_newer_one_overtakes_is_made_good(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web = start_box(r, 0, 0);

	(void)state;
	wait_until(r, all_are_as_held);
	sweep_stop(&r->d); /* nobody looks at what is in force */
	r->unasked = 0;
	r->overtakes = name_box(r, 1, 4);
	engine_must_update(r->d.engine, web->c.id);
	updater_note_change(&r->d);
	wait_until(r, web_was_set_late); /* and the answer has come */
	wait_until(r, all_are_as_held);
	assert_int_equal(r->unasked, 2);
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
	assert_int_equal(r->d.measured.counters.drifted, 1); /* logged once */
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
static unsigned updates_seen;

static void (*daemons_update)(void *ctx, const struct request *req, struct nri_reply *reply);

static void update_and_look(void *ctx, const struct request *req, struct nri_reply *reply)
{
	const struct daemon *d = ctx;

	assert_false(nri_conn_takes_updates(d->runtime.conn));
	daemons_update(ctx, req, reply);
	assert_false(nri_conn_takes_updates(d->runtime.conn));
	updates_seen++;
}

/* The runtime answers such a call after its present event only: a handler that waited for it would
 * wait for ever. */
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
	assert_int_equal(count_in_log(r, saved, "who=\"another program\""), 1);
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

static unsigned confined(const struct rig *r, enum confined_by by)
{
	const struct status_pool p = pool_status(&r->d);

	for (unsigned i = 0; i < p.nr_confined; i++)
		if (p.confined[i].by == by)
			return (unsigned)p.confined[i].containers;
	return 0;
}

static bool two_are_confined(struct rig *r)
{
	return confined(r, CONFINED_BY_AFFINITY) == 2;
}

static bool one_is_confined_by_a_cgroup(struct rig *r)
{
	return confined(r, CONFINED_BY_CGROUP) == 1;
}

static bool numafitd_is_confined(struct rig *r)
{
	return confined(r, CONFINED_BY_AFFINITY) == 1;
}

static bool rounds_have_passed(struct rig *r)
{
	return ++r->answers * POLL_MS > 10 * ROUND_MS;
}

static bool none_is_confined(struct rig *r)
{
	return pool_status(&r->d).nr_confined == 0;
}

static void put_process(const struct rig *r, const char *pid, const char *cpus)
{
	char name[PATH_BYTES / 2], status[LIST_BYTES];

	(void)snprintf(name, sizeof name, "proc/%s/status", pid);
	(void)snprintf(status, sizeof status,
		"Name:\tweb\nCpus_allowed:\tffff\nCpus_allowed_list:\t%s\nMems_allowed:\t3\n",
		cpus);
	put(r, name, status);
}

/* The runtime, which this process is, may run on these CPUs. */
static void put_runtime(const struct rig *r, const char *cpus)
{
	char pid[24];

	(void)snprintf(pid, sizeof pid, "%d", getpid());
	put_process(r, pid, cpus);
}

/* A container runtime with CPUAffinity=4-7 in its systemd unit (containerd 11345): the cgroups of
 * its containers are as they should be, and their processes run on CPUs 4 to 7 alone. */
static void processes_of_the_pool_with_the_runtimes_affinity_are_reported(void **state)
{
	for (int v2 = 0; v2 < 2; v2++) {
		struct rig *r = rig_new(v2, "v0.12.5");
		struct box *own = start_box(r, 0, 4), *web = start_box(r, 1, 0),
			   *log = start_box(r, 2, 0), *free = start_box(r, 3, 0);

		(void)state;
		put_runtime(r, "4-7");
		put_process(r, "4001", "4-7");
		put_process(r, "4002", "4-7");
		put_process(r, "4003", "0-15");
		put_process(r, "4004", "1");
		put_cgroup(r, web, "cgroup.procs", "4001\n4003\n");
		put_cgroup(r, log, "cgroup.procs", "4002\n");
		put_cgroup(r, free, "cgroup.procs", "4003\n");
		put_cgroup(r, own, "cgroup.procs", "4004\n"); /* may pin its threads itself */
		int saved = redirect(r);
		wait_until(r, two_are_confined);
		const struct status_pool p = pool_status(&r->d);
		assert_int_equal(p.nr_confined, 1);
		assert_string_equal(p.confined[0].example, "default/p1/main");
		const struct cpuset *pool = &ledger_view(engine_ledger(r->d.engine))->pool;
		struct cpuset few;

		assert_int_equal(cpuset_parse(&few, "4-7", 3, NULL), 0);
		few = cpuset_and(few, pool);
		assert_true(cpuset_equal(&p.confined[0].cpus, &few));
		r->answers = 0;
		wait_until(r, rounds_have_passed);
		assert_int_equal(count_in_log(r, saved, "event=pool-confined by=affinity"), 1);
		put_process(r, "4001", "0-15");
		put_process(r, "4002", "0-15");
		wait_until(r, none_is_confined);
		rig_free(r);
	}
}

static bool runtime_is_looked_at(struct rig *r)
{
	return r->d.follow.confined.runtime == (uint64_t)getpid();
}

static bool one_has_an_affinity_of_its_own(struct rig *r)
{
	return confined(r, CONFINED_BY_PROCESS) == 1 && confined(r, CONFINED_BY_AFFINITY) == 0;
}

/* A server that pins itself; restarting the runtime would change nothing for it. */
static void a_container_that_pins_itself_is_no_warning(void **state)
{
	static const char *const runtimes[] = {"0-15", "4-7"};

	(void)state;
	for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++) {
		struct rig *r = rig_new(true, "v0.12.5");
		struct box *web = start_box(r, 1, 0);

		put_runtime(r, runtimes[i]);
		put_process(r, "4001", "2");
		put_cgroup(r, web, "cgroup.procs", "4001\n");
		wait_until(r, runtime_is_looked_at);
		int saved = redirect(r);
		wait_until(r, one_has_an_affinity_of_its_own);
		r->answers = 0;
		wait_until(r, rounds_have_passed);
		assert_int_equal(count_in_log(r, saved, "event=pool-confined"), 1);
		assert_int_equal(
			count_lines(r, "log", "level=info event=pool-confined by=process"), 1);
		rig_free(r);
	}
}

/* A container whose processes are in cgroups of its own making: none of them is hidden. */
static void processes_in_cgroups_below_the_containers_are_not_hidden(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web = start_box(r, 1, 0);

	(void)state;
	wait_until(r, all_are_as_held);
	put_cgroup(r, web, "cgroup.procs", "");
	put_cgroup(r, web, "init.scope/cgroup.procs", "0\n");
	put_process(r, "self", "0-3");
	r->answers = 0;
	wait_until(r, rounds_have_passed);
	assert_int_equal(pool_status(&r->d).nr_confined, 0);
	rig_free(r);
}

static void leave_cpus_untouched(struct rig *r)
{
	struct namespaces *n = &r->d.settings.namespaces;

	r->untouched = true;
	*n = (struct namespaces){
		.nr = 1, .at = {{.names = "default", .wishes.cpus = WISH_CPUS_UNTOUCHED}}};
}

/* Another manager gives the container fewer CPUs, which cpus: untouched is there for. */
static void a_narrower_cpuset_of_an_untouched_container_is_no_finding(void **state)
{
	struct rig *r = rig_new_by(true, "v0.12.5", true);

	(void)state;
	leave_cpus_untouched(r);
	struct box *web = start_box(r, 1, 0);

	assert_int_equal(held(r, web)->request.ask.wishes.cpus, WISH_CPUS_UNTOUCHED);
	set_cpus(r, web, "2-3");
	int saved = redirect(r);
	r->answers = 0;
	wait_until(r, rounds_have_passed);
	assert_int_equal(pool_status(&r->d).nr_confined, 0);
	assert_int_equal(count_in_log(r, saved, "event=cpuset-narrowed"), 0);
	rig_free(r);
}

static void a_pool_narrowed_by_a_parent_cgroup_is_reported(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web = start_box(r, 1, 0);

	(void)state;
	wait_until(r, all_are_as_held);
	put_cgroup(r, web, "cpuset.cpus.effective", "1-2");
	int saved = redirect(r);
	wait_until(r, one_is_confined_by_a_cgroup);
	assert_int_equal(count_in_log(r, saved, "event=pool-confined by=cgroup"), 1);
	char name[PATH_BYTES / 2];

	(void)snprintf(name, sizeof name, "sys/fs/cgroup%s/cpuset.cpus", web->cgroup);
	put_cgroup(r, web, "cpuset.cpus.effective", content(r, name));
	wait_until(r, none_is_confined);
	rig_free(r);
}

static void a_confined_runtime_is_logged_once(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");

	(void)state;
	put_runtime(r, "0-3");
	int saved = redirect(r);
	wait_until(r, runtime_is_looked_at); /* this process is the runtime, too */
	wait_until(r, rounds_have_passed);
	assert_int_equal(count_in_log(r, saved, "event=runtime-confined"), 1);
	rig_free(r);
}

/* numafitd's pod sees no process of other containers: cgroup.procs has 0 for them. The runtime has
 * started numafitd, too. */
static void without_the_hosts_processes_numafitds_own_affinity_counts(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web = start_box(r, 1, 0);

	(void)state;
	wait_until(r, all_are_as_held);
	put_cgroup(r, web, "cgroup.procs", "0\n0\n");
	put_process(r, "self", "0-3");
	wait_until(r, numafitd_is_confined);
	assert_string_equal(pool_status(&r->d).confined[0].example, "numafitd");
	put_process(r, "4003", "0-15"); /* where processes are seen, their own affinity counts */
	put_cgroup(r, start_box(r, 2, 0), "cgroup.procs", "4003\n");
	wait_until(r, none_is_confined);
	rig_free(r);
}

/* numafitd's own container may be kept to one NUMA node, as every Burstable container is here. */
static void numafitd_on_the_cpus_of_its_own_container_is_not_confined(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	char cpus[CPUSET_TEXT_MAX];

	(void)state;
	r->d.settings.burstable = BURSTABLE_ONE_NODE;
	struct box *own = start_box(r, 1, 0);
	wait_until(r, all_are_as_held);
	const struct cpuset given = ledger_cpus_of(engine_ledger(r->d.engine), held(r, own));

	assert_int_equal(cpuset_count(&given), 8);
	put_process(r, "self", cpuset_format(&given, cpus, sizeof cpus));
	put_cgroup(r, own, "cgroup.procs", "0\n0\n");
	r->answers = 0;
	wait_until(r, rounds_have_passed);
	assert_int_equal(pool_status(&r->d).nr_confined, 0);
	put_process(r, "self", "0-1,8-9");
	wait_until(r, numafitd_is_confined);
	rig_free(r);
}

/* A cpuset may be on its way when the sweep looks: one round is no finding. */
static bool is_updated(struct rig *r)
{
	return all_are_as_held(r) && !updater_is_at_work(&r->d);
}

static bool a_round_has_seen_the_narrowed_one(struct rig *r)
{
	return r->d.follow.confined.kind[CONFINED_BY_CGROUP].before > 0;
}

static void set_interval(struct rig *r, unsigned ms)
{
	r->d.settings.sweep_interval_ms = ms;
	sweep_settings_changed(&r->d);
}

/* Only of what a client has set a single round shows nothing: the runtime may come to the client's
 * CPU set later. */
static void what_another_program_changed_counts_as_restored_after_one_round(void **state)
{
	enum { NEVER_MS = 10 * GUARD_MS };
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web = start_box(r, 0, 4), *log = start_box(r, 1, 0);

	(void)state;
	wait_until(r, is_updated);
	set_cpus(r, web, "0-15");
	wait_until(r, has_drifted);
	set_interval(r, NEVER_MS);
	wait_until(r, is_updated);
	assert_int_equal(r->d.measured.metrics.healed, 0);
	put_cgroup(r, log, "cpuset.cpus.effective", "5-6");
	set_interval(r, ROUND_MS);
	r->d.settings.sweep_interval_ms = NEVER_MS; /* as this round ends */
	wait_until(r, a_round_has_seen_the_narrowed_one);
	assert_int_equal(r->d.measured.metrics.healed, 1);
	rig_free(r);
}

static void what_one_round_finds_confined_is_not_reported(void **state)
{
	struct rig *r = rig_new(true, "v0.12.5");
	struct box *web = start_box(r, 1, 0);
	struct cgroup_cpuset found = {0};
	struct cpuset wanted;

	(void)state;
	wait_until(r, all_are_as_held);
	assert_int_equal(cpuset_parse(&wanted, "0-15", 4, NULL), 0);
	assert_int_equal(cpuset_parse(&found.effective_cpus, "0-3", 3, NULL), 0);
	memset(r->d.follow.confined.kind, 0, sizeof r->d.follow.confined.kind);
	confined_look_at(&r->d, held(r, web), &wanted, &found);
	confined_end_round(&r->d);
	assert_int_equal(confined(r, CONFINED_BY_CGROUP), 0);
	confined_look_at(&r->d, held(r, web), &wanted, &found);
	confined_end_round(&r->d);
	assert_int_equal(confined(r, CONFINED_BY_CGROUP), 1);
	confined_end_round(&r->d);
	assert_int_equal(confined(r, CONFINED_BY_CGROUP), 0);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cpuset_changed_by_another_program_is_restored),
		cmocka_unit_test(a_container_whose_start_was_not_reported_is_updated_all_the_same),
		cmocka_unit_test(a_container_that_missed_its_update_is_updated_once_it_runs),
		cmocka_unit_test(on_runtimes_without_safe_updates_the_next_reply_restores_a_cpuset),
		cmocka_unit_test(a_stopping_container_is_not_updated),
		cmocka_unit_test(a_container_that_has_ended_is_not_updated),
		cmocka_unit_test(ended_containers_do_not_delay_a_running_one),
		cmocka_unit_test(an_update_that_fails_is_tried_again),
		cmocka_unit_test(an_update_without_effect_is_tried_again),
		cmocka_unit_test(an_update_that_a_newer_one_overtakes_is_made_good),
		cmocka_unit_test(
			without_a_cgroup_updates_are_repeated_until_the_runtime_accepts_one),
		cmocka_unit_test(no_sweep_runs_while_a_request_arrives),
		cmocka_unit_test(no_update_is_sent_inside_a_handler),
		cmocka_unit_test(the_log_names_a_drifted_container_once),
		cmocka_unit_test(a_cpuset_narrowed_by_a_parent_cgroup_is_not_drift),
		cmocka_unit_test(processes_of_the_pool_with_the_runtimes_affinity_are_reported),
		cmocka_unit_test(a_container_that_pins_itself_is_no_warning),
		cmocka_unit_test(processes_in_cgroups_below_the_containers_are_not_hidden),
		cmocka_unit_test(a_narrower_cpuset_of_an_untouched_container_is_no_finding),
		cmocka_unit_test(a_pool_narrowed_by_a_parent_cgroup_is_reported),
		cmocka_unit_test(a_confined_runtime_is_logged_once),
		cmocka_unit_test(what_another_program_changed_counts_as_restored_after_one_round),
		cmocka_unit_test(what_one_round_finds_confined_is_not_reported),
		cmocka_unit_test(without_the_hosts_processes_numafitds_own_affinity_counts),
		cmocka_unit_test(numafitd_on_the_cpus_of_its_own_container_is_not_confined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
