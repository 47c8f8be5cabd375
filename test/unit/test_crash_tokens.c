/* The same as test_crash for what the kubelet is answered: the daemon is killed at every step of an
 * Allocate and of a create, and at random moments, and started again with its journal or without.
 * Every Allocate that was answered is honoured: its container gets as many CPUs of each NUMA node
 * as it has tokens there. No token is lost, no CPU is given twice, and the list of devices is the
 * same. The daemon is the real program; this test is its kubelet and its container runtime.
 * CRASH_ROUNDS=n changes how often, SEED=n how.
 */
#include "crash_tokens_life.h"

/* The daemon's answers */

static struct pod_here *find(struct rig *r, const char *container)
{
	for (unsigned i = 0; i < PODS; i++)
		if (r->pod[i].c.runs && strcmp(r->pod[i].c.id, container) == 0)
			return &r->pod[i];
	return NULL;
}

static void apply_updates(struct rig *r, const struct nri_answer *a)
{
	for (size_t i = 0; i < a->nr_updates; i++) {
		struct pod_here *p = find(r, a->updates[i].container_id);

		if (!p)
			continue;
		if (p->c.exclusive && strcmp(p->c.cpus, a->updates[i].cpus) != 0)
			fail_msg("%s had %s for itself and is moved to %s", p->c.id, p->c.cpus,
				a->updates[i].cpus);
		fake_container_update(&p->c, &a->updates[i]);
	}
}

/* What was promised is never missing, and memory comes from elsewhere when it must. Whose tokens
 * they are may not have been shown yet: then it is asked for once more. */
static void may_be_refused(const struct pod_here *p, const struct nri_answer *a)
{
	if (has_tokens(p) && !strstr(a->message, "the kubelet tries again"))
		fail_msg("%s of %s has %s and is refused: %s", p->c.id, p->c.pod, p->c.allocated,
			a->message);
}

static void created(struct rig *r, struct pod_here *p, const struct nri_answer *a)
{
	r->count.creates++;
	if (a->status) {
		may_be_refused(p, a);
		return;
	}
	fake_container_start(&p->c, a);
	p->c.exclusive = p->c.cpu_milli > 0;
	if (p->c.exclusive)
		it_has_the_cpus_of_its_tokens(r, p);
	r->count.pinned++;
	r->count.on_tokens += has_tokens(p);
}

static void pod_started(struct pod_here *p, const struct nri_answer *a)
{
	p->sandboxed = !a->status;
	if (a->status)
		may_be_refused(p, a);
}

static void answered(void *ctx, enum nri_call what, const struct nri_answer *a)
{
	struct rig *r = ctx;
	struct pod_here *p = steal(r->asked);

	apply_updates(r, a);
	if (what == NRI_CALL_CREATE)
		created(r, p, a);
	if (what == NRI_CALL_RUN_POD)
		pod_started(p, a);
	if (what == NRI_CALL_SYNCHRONIZE) {
		the_ledger_is_what_runs(r);
		r->crash.journal_whole = r->synchronized = true;
		perhaps_settled(r);
	}
	no_cpu_is_given_twice(r);
	if (what == NRI_CALL_SYNCHRONIZE)
		return;
	if (what == NRI_CALL_RUN_POD && p->sandboxed && r->crash.calls && !r->crash.dead)
		create(r, p);
	else
		next_call(r);
}

/* The kubelet fails the pod whose Allocate has failed, and forgets it. */
static void not_allocated(struct rig *r, struct pod_here *p, enum rpc_code code, const char *text)
{
	if (code != RPC_UNAVAILABLE && code != RPC_FAILED_PRECONDITION)
		fail_msg("Allocate: %d %s", (int)code, text);
	r->count.unanswered += code == RPC_UNAVAILABLE;
	r->count.denied += code != RPC_UNAVAILABLE;
	forget_pod(r, p);
}

static void give(struct rig *r, struct pod_here *p, const char *annotation)
{
	assert_true(text_copy(p->c.allocated, sizeof p->c.allocated, annotation));
	p->given = r->wanted;
	p->c.cpu_milli = p->given.nr * FAKE_MILLI_PER_CPU;
	for (unsigned i = 0; i < p->given.nr; i++)
		r->kubelet.token[p->given.token[i]].given = true;
	r->count.allocates++;
	r->count.again += p->admitted;
	admit_pod(r, p);
}

static void allocated(void *ctx, const char *annotation, enum rpc_code code, const char *text)
{
	struct rig *r = ctx;
	struct pod_here *p = steal(r->asked);

	if (annotation)
		give(r, p, annotation);
	else
		not_allocated(r, p, code, text);
	if (code != RPC_UNAVAILABLE) /* else it is dead, and its end is still to be heard of */
		next_call(r);
}

static bool held(void *ctx, unsigned nr, const char **pod, const struct given **given)
{
	const struct rig *r = ctx;
	const struct pod_here *p = &r->pod[nr];

	*pod = p->c.pod;
	*given = &p->given;
	return p->admitted && has_tokens(p);
}

/* Valid until the next call. */
static bool pods_api_pod(void *ctx, unsigned nr, struct known_pod *out)
{
	static const char *const resource[] = {TOKEN_RESOURCE};
	static struct ask container;
	static struct pod ask;
	const struct rig *r = ctx;
	const struct pod_here *p = &r->pod[nr];

	if (!p->admitted)
		return false;
	container = (struct ask){
		.name = "main",
		.cpu_milli = p->c.cpu_milli ? p->c.cpu_milli : FAKE_MILLI_PER_CPU / 10,
		.nr_memory = 1,
		.memory = {{.bytes = UINT64_C(1) << 30}},
		.nr_devices = has_tokens(p),
		.device = {{.count = p->given.nr}},
	};
	ask = (struct pod){.uid = p->c.pod,
		.qos = p->c.cpu_milli ? QOS_GUARANTEED : QOS_BURSTABLE,
		.nr = 1,
		.container = &container};
	*out = (struct known_pod){.pod = {.uid = p->c.pod,
					  .ns = "default",
					  .name = p->c.pod,
					  .qos = ask.qos,
					  .pod_level = ask.pod_level,
					  .nr = ask.nr,
					  .container = ask.container},
		.resource = resource,
		.nr_resources = 1};
	return true;
}

/* Lives */

static void perhaps_over(void *ctx)
{
	struct rig *r = ctx;

	if (r->crash.dead && !r->crash.runtime.stream && !crash_kubelet_has_plugin(&r->kubelet))
		loop_stop(r->crash.loop);
}

static void died(void *ctx)
{
	struct rig *r = ctx;

	if (!r->crash.killed)
		r->hits[r->crash.fault][r->step]++;
	perhaps_over(r);
}

static void configured(void *ctx, const char *name, const char *index, uint32_t events)
{
	struct rig *r = ctx;
	struct nri_container list[PODS];
	struct key_value annotation[PODS][2];
	size_t nr = 0;

	(void)name, (void)index, (void)events;
	for (unsigned i = 0; i < PODS; i++)
		if (r->pod[i].c.runs) {
			list[nr] = shown(r, &r->pod[i], annotation[nr]);
			nr++;
		}
	nri_runtime_synchronize(r->crash.runtime.nri, list, nr);
}

static void too_slow(void *ctx)
{
	const struct rig *r = ctx;

	fail_msg("nothing happens any more: dead %d, synchronized %d, listed %d, settled %d",
		r->crash.dead, r->synchronized, r->kubelet.listed, r->settled);
}

/* A runtime goes on without a plugin that is gone: some start the container unpinned, some not; its
 * sandbox is there or is not. */
static void settle_unanswered(struct rig *r)
{
	struct pod_here *p = steal(r->asked);

	if (!p || random_chance(&r->crash.random, 50))
		return;
	if (r->step == STEP_OTHER) {
		p->sandboxed = true;
		return;
	}
	p->c.runs = true;
	p->c.exclusive = false;
	r->count.unpinned++;
}

/* Only a container that was answered carries the annotation that can replace the journal. */
static bool all_are_annotated(const struct rig *r)
{
	for (unsigned i = 0; i < PODS; i++)
		if (r->pod[i].c.runs && !*r->pod[i].c.placement)
			return false;
	return true;
}

static void choose_memory(struct rig *r)
{
	r->crash.memory = random_below(&r->crash.random, ANNOTATIONS_ONLY + 1);
	if ((r->crash.memory == ANNOTATIONS_ONLY && !all_are_annotated(r)) ||
		(r->crash.memory == JOURNAL_ONLY && !r->crash.journal_whole))
		r->crash.memory = JOURNAL_AND_ANNOTATIONS;
	if (r->crash.memory != ANNOTATIONS_ONLY)
		return;
	(void)unlink(r->crash.daemon.journal);
	r->crash.journal_whole = false;
}

static void one_life(struct rig *r, unsigned fault, bool busy_kubelet)
{
	struct crash_rig *c = &r->crash;

	c->runtime.options.state_change = random_chance(&c->random, 50);
	c->dead = c->killed = r->synchronized = r->settled = false;
	r->kubelet.listed = false;
	r->kubelet.nr_lists = 0;
	r->kubelet.answer_ms = random_chance(&c->random, 25) ? SLOW_MS : 0;
	r->step = STEP_START;
	choose_memory(r);
	choose_fault(r, fault);
	r->busy_kubelet = busy_kubelet;
	c->calls = c->fault < NR_DEATHS ? CALLS : 1 + random_below(&c->random, CALLS);
	c->daemon.setting[6] = random_chance(&c->random, 50) ? "onAdopt=leave" : "onAdopt=place";
	c->daemon.setting[0] =
		random_chance(&c->random, 50) ? "podsAPI.enabled=true" : "podsAPI.enabled=false";
	crash_begin(c);
	r->kubelet.pid = c->daemon.pid;
	crash_live(c);
	loop_timer_stop(r->look);
	settle_unanswered(r);
	crash_assert_no_journal_set_aside(c);
}

static struct rig *rig_new(void)
{
	static char root[PATH_MAX + 16], setting[PATH_MAX + 64];
	struct rig *r = calloc(1, sizeof *r);
	struct crash_rig *c = &r->crash;
	const struct crash_kubelet_events events = {
		.ctx = r,
		.listed = perhaps_settled,
		.allocated = allocated,
		.lost = perhaps_over,
		.held = held,
		.shown = pods_api_pod,
	};

	crash_init(c, r, died, too_slow);
	(void)snprintf(root, sizeof root, "%s/kubelet", c->daemon.dir);
	(void)snprintf(setting, sizeof setting, "kubeletRootDirectory=%s", root);
	c->daemon.setting[1] = "logLevel=error";
	c->daemon.setting[2] = "sharedPoolStep=2";
	c->daemon.setting[3] = setting;
	c->daemon.setting[4] = "devicePlugin.enabled=true";
	c->daemon.setting[5] = "podResources.enabled=true";
	c->kill_us = KILL_US;
	c->nr_faults = NR_DEATHS;
	c->runtime = (struct fake_runtime){.loop = c->loop,
		.options = {.name = "crash", .version = "1"},
		.events = {.ctx = r, .configured = configured, .answered = answered},
		.on_closed = perhaps_over};
	r->look = loop_timer_new(c->loop, perhaps_settled, r);
	crash_kubelet_init(&r->kubelet, c->loop, root, PODS, &events);
	return r;
}

static void rig_free(struct rig *r)
{
	print_message("Allocates: %u answered, %u of them again, %u denied, %u cut off\n",
		r->count.allocates, r->count.again, r->count.denied, r->count.unanswered);
	print_message(
		"creates: %u answered, %u pinned, %u of them on tokens; %u started unpinned, %u "
		"times one was left so\n",
		r->count.creates, r->count.pinned, r->count.on_tokens, r->count.unpinned,
		r->count.left);
	print_message(
		"%u were found again that had been decided with their pods\n", r->count.whole);
	crash_kubelet_fini(&r->kubelet);
	crash_fini(&r->crash);
	free(r);
}

/* How many lives a case has for one place to die at. */
static unsigned lives_of_fault(void)
{
	return 1 + crash_rounds(ROUNDS) / (NR_DEATHS + 1);
}

/* How often a create on tokens is answered before a death is a matter of time: some lives more
 * where that was too seldom. */
static void live_on_tokens(struct rig *r, unsigned more_than)
{
	unsigned nr = 0;

	for (; nr < MORE * lives_of_fault() && r->count.on_tokens <= more_than; nr++)
		one_life(r, NR_DEATHS, nr % 3 > 0);
	print_message("%u lives more\n", nr);
	assert_true(r->count.on_tokens > more_than);
}

#ifdef NUMAFIT_FAULTS
/* How often the daemon died at the place, while it worked on an Allocate, or on anything else. */
static unsigned hits_of(const struct rig *r, unsigned fault, bool allocate)
{
	const unsigned *hits = r->hits[fault];

	return allocate ? hits[STEP_ALLOCATE] : hits[STEP_CREATE] + hits[STEP_OTHER];
}

/* The kernel's files are written where the machine is this one: test_crash_pool and test_quiet die
 * there. */
/* Neither a create nor an Allocate passes there. */
static bool is_elsewhere(unsigned fault)
{
	return (fault >= FAULT_TO_WRITE_CGROUP && fault <= FAULT_TUNABLE_WRITTEN) ||
	       fault == FAULT_TO_PREPARE || fault == FAULT_PREPARED;
}

/* Die at each place where an Allocate passes, or at each other one, for some lives: some more where
 * chance has not led there. A place at which nobody dies is not tested, or is no place any more. */
static void die_at_each(struct rig *r, bool allocate)
{
	unsigned lives = lives_of_fault(), nr = 0;

	for (unsigned n = 0; n < MORE * lives; n++)
		for (unsigned f = 0; f < NR_DEATHS; f++) {
			if (is_of_allocate(f) != allocate || is_elsewhere(f) ||
				(n >= lives && hits_of(r, f, allocate)))
				continue;
			one_life(r, f, allocate && n % 3 > 0);
			nr++;
		}
	print_message("%u lives\n", nr);
	for (unsigned f = 0; f < NR_DEATHS; f++) {
		if (is_of_allocate(f) != allocate || is_elsewhere(f))
			continue;
		print_message("%s: %u\n", fault_name(f), hits_of(r, f, allocate));
		if (!hits_of(r, f, allocate))
			fail_msg("the daemon never died at %s", fault_name(f));
	}
}

static void an_answered_allocate_survives_kill_9_at_every_step_of_it(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	die_at_each(r, true);
	live_on_tokens(r, lives_of_fault());
	assert_true(r->count.allocates > lives_of_fault());
	rig_free(r);
}

static void an_answered_create_survives_kill_9_at_every_step_of_it(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	die_at_each(r, false);
	live_on_tokens(r, lives_of_fault());
	rig_free(r);
}
#endif

static void answers_to_kubelet_and_runtime_survive_kill_9_at_any_moment(void **state)
{
	unsigned lives = 3 * lives_of_fault();
	struct rig *r = rig_new();

	(void)state;
#ifndef NUMAFIT_FAULTS
	lives = crash_rounds(ROUNDS);
#endif
	for (unsigned i = 0; i < lives; i++)
		one_life(r, NR_DEATHS, i % 3 > 0);
	live_on_tokens(r, 0);
	assert_true(r->count.allocates > 0);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef NUMAFIT_FAULTS
		cmocka_unit_test(an_answered_allocate_survives_kill_9_at_every_step_of_it),
		cmocka_unit_test(an_answered_create_survives_kill_9_at_every_step_of_it),
#endif
		cmocka_unit_test(answers_to_kubelet_and_runtime_survive_kill_9_at_any_moment),
	};

	json_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
