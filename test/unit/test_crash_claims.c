/* The same as test_crash for claims: the daemon is killed at every step of a Prepare, at every step
 * of a record, and at random moments, and started again. What the kubelet was answered is still
 * held, on the same CPUs; no CPU is in two claims, or in a claim and a container beside it; a
 * Prepare that was not answered is answered when it comes again; and in the end nothing is left.
 * The daemon is the real program; this test is its kubelet, its API server and its container
 * runtime. CRASH_ROUNDS=n changes how often, SEED=n how.
 */
#include "crash_claims_rig.h"

static void next_of_kubelet(void *ctx);

static void perhaps_over(void *ctx)
{
	struct rig *r = ctx;

	if (!r->crash.dead || r->crash.runtime.stream || r->call)
		return;
	r->over = true;
	loop_stop(r->crash.loop);
}

/* The API server */

static void serve_claim(struct rig *r, struct fake_ask *q, const char *name)
{
	if (random_chance(&r->crash.random, 2)) {
		api_status_answer(q, 503, "not now");
		return;
	}
	for (unsigned i = 0; i < CLAIMS; i++)
		if (r->claim[i].stage != UNKNOWN && text_equal(r->claim[i].name, name)) {
			api_claim_answer(q, &r->claim[i].api, "n1");
			return;
		}
	api_status_answer(q, 404, "resourceclaims not found");
}

static void serve(void *ctx, struct fake_ask *q)
{
	const char *claim = text_behind(q->path, API_CLAIMS);

	if (claim)
		serve_claim(ctx, q, claim);
	else if (strstr(q->path, "/resourceslices") && text_equal(q->method, "GET"))
		api_no_slices_answer(q);
	else if (strstr(q->path, "/api/v1/nodes/n1"))
		api_node_answer(q);
	else
		api_status_answer(q, 500, "not today");
}

/* The kubelet */

static struct blob prepared_answer(const struct claim_here *k, struct arena *a)
{
	static const char *const request = "cpus";
	struct dra_claim_answer answer = {.uid = k->uid};
	struct dra_device device[2];
	const char *cdi[2];
	char id[2][64];
	struct blob all;

	for (unsigned i = 0; i < nr_shares(k); i++) {
		(void)snprintf(id[i], sizeof id[i], "share-%s-%u", k->uid, i);
		cdi[i] = k->cdi[i];
		device[i] = (struct dra_device){&request, 1, "n1", k->device[i], &cdi[i], 1, id[i]};
	}
	assert_int_equal(
		dra_prepared_encode(device, nr_shares(k), DRA_V1, a, &answer.bytes, NULL), 0);
	assert_int_equal(dra_answers_encode(&answer, 1, a, &all, NULL), 0);
	return all;
}

static struct blob unprepared_answer(const struct claim_here *k, struct arena *a)
{
	const struct dra_claim_answer answer = {.uid = k->uid};
	struct blob all;

	assert_int_equal(dra_answers_encode(&answer, 1, a, &all, NULL), 0);
	return all;
}

/* There is always room for all: no claim fails. */
static void call_is_answered(struct rig *r, struct claim_here *k)
{
	const bool prepares = k->stage == PREPARING;
	struct arena a;

	arena_init(&a, ARENA_BYTES);
	const struct blob want = prepares ? prepared_answer(k, &a) : unprepared_answer(k, &a);
	if (r->len != want.len || memcmp(r->message, want.data, want.len) != 0)
		fail_msg("claim %s: %.*s", k->uid, (int)r->len, (const char *)r->message);
	arena_fini(&a);
	r->count.prepares += prepares;
	r->count.unprepares += !prepares;
	if (prepares)
		k->stage = PREPARED;
	else
		*k = (struct claim_here){0};
}

static void on_message(void *ctx, const void *data, size_t len)
{
	struct rig *r = ctx;

	assert_true(len <= sizeof r->message);
	memcpy(r->message, data, len);
	r->len = len;
}

static void on_ended(void *ctx, enum rpc_code code, const char *text)
{
	struct rig *r = ctx;
	struct claim_here *k = steal(r->called);

	r->call = NULL;
	if (code == RPC_OK)
		call_is_answered(r, k);
	else if (code != RPC_UNAVAILABLE)
		fail_msg("claim %s: %d %s", k->uid, (int)code, text);
	r->count.cut_off += code != RPC_OK;
	perhaps_over(r);
	if (!r->over)
		loop_timer_set(r->look, code == RPC_OK ? 0 : LOOK_AGAIN_MS);
}

/* False: the daemon does not listen yet, or any more. */
static bool call_driver(struct rig *r, struct claim_here *k)
{
	const struct dra_claim_ref ref = {"shop", k->uid, k->name};
	struct rpc_call_events events = {r, on_message, on_ended};
	struct arena a;

	arena_init(&a, ARENA_BYTES);
	const struct blob message = dra_wire_request(&a, &ref, 1);
	const struct rpc_request request = {.socket = r->plugin,
		.method = k->stage == PREPARING ? DRA_PLUGIN_PATH("v1", "NodePrepareResources")
						: DRA_PLUGIN_PATH("v1", "NodeUnprepareResources"),
		.kind = RPC_UNARY,
		.data = message.data,
		.len = message.len};
	r->len = 0;
	r->call = rpc_call_start(r->pump, &request, &events, NULL);
	r->called = r->call ? k : NULL;
	arena_fini(&a);
	return r->call;
}

static unsigned claimed_on(const struct rig *r, const char *device)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < CLAIMS; i++)
		for (unsigned k = 0; r->claim[i].stage != UNKNOWN && k < nr_shares(&r->claim[i]);
			k++)
			nr += text_equal(r->claim[i].device[k], device) ? r->claim[i].api.cpus[k]
									: 0;
	return nr;
}

/* The scheduler gives the claim so many CPUs of a NUMA node; false: it has no more. */
static bool allocate(struct rig *r, struct claim_here *k, unsigned place)
{
	const unsigned cpus = 1 + random_below(&r->crash.random, SHARE_CPUS_MAX);

	(void)snprintf(k->device[place], sizeof k->device[place], "numa%u",
		random_below(&r->crash.random, NODES));
	if (claimed_on(r, k->device[place]) + k->api.cpus[0] + cpus > CLAIMED_MAX)
		return false;
	k->api.device[place] = k->device[place];
	k->api.cpus[place] = cpus;
	(void)share_cdi(k->uid, place, k->cdi[place]);
	return true;
}

static void new_claim(struct rig *r, struct claim_here *k)
{
	const unsigned nr = ++r->crash.next;

	*k = (struct claim_here){0};
	(void)snprintf(k->uid, sizeof k->uid, "u%u", nr);
	(void)snprintf(k->name, sizeof k->name, "claim%u", nr);
	(void)snprintf(k->c.pod, sizeof k->c.pod, "p%u", nr);
	k->api = (struct api_claim){.uid = k->uid, .name = k->name, .pod = k->c.pod};
	if (!allocate(r, k, 0))
		return;
	if (random_chance(&r->crash.random, 30))
		(void)allocate(r, k, 1);
	k->stage = PREPARING;
}

/* What the kubelet wants of the claim next. False: nothing now. */
static bool go_on_with_claim(struct rig *r, struct claim_here *k)
{
	bool in_use = k->c.runs || r->asked == &k->c;

	if (k->stage == UNKNOWN && !r->drains)
		new_claim(r, k);
	else if (k->stage == PREPARED &&
		 (!in_use ||
			 (k->c.runs && r->asked != &k->c && random_chance(&r->crash.random, 20))) &&
		 (r->drains || random_chance(&r->crash.random, 60)))
		k->stage = UNPREPARING;
	return k->stage == PREPARING || k->stage == UNPREPARING;
}

static void next_of_kubelet(void *ctx)
{
	struct rig *r = ctx;
	unsigned first = random_below(&r->crash.random, CLAIMS);

	if (!r->crash.calls || r->crash.dead || !r->synchronized || r->call)
		return;
	for (unsigned i = first; i < first + CLAIMS; i++) {
		struct claim_here *k = &r->claim[i % CLAIMS];

		if (!go_on_with_claim(r, k))
			continue;
		if (!call_driver(r, k))
			break;
		if (!r->drains)
			crash_perhaps_kill(&r->crash);
		return;
	}
	loop_timer_set(r->look, LOOK_AGAIN_MS);
}

/* The runtime */

static struct nri_container shown(
	struct rig *r, struct fake_container *c, struct key_value annotation[2], const char *cdi[2])
{
	const struct claim_here *k = claim_of(r, c);
	struct nri_container out = fake_container_shown(c, annotation);

	for (unsigned i = 0; k && i < nr_shares(k); i++)
		cdi[i] = k->cdi[i];
	out.cdi = cdi;
	out.nr_cdi = k ? nr_shares(k) : 0;
	return out;
}

static void call_plugin(struct rig *r, enum nri_call what, struct fake_container *c)
{
	struct key_value annotation[2];
	const char *cdi[2];
	const struct nri_container n = shown(r, c, annotation, cdi);

	r->asked = c;
	r->is_create = what == NRI_CALL_CREATE;
	fake_runtime_call(&r->crash.runtime, what, &n);
	if (!r->drains)
		crash_perhaps_kill(&r->crash);
}

static void create(struct rig *r, struct fake_container *c)
{
	const unsigned nr = ++r->crash.next;

	c->created_ns = nr;
	(void)snprintf(c->id, sizeof c->id, "c%u", nr);
	if (!claim_of(r, c)) {
		(void)snprintf(c->pod, sizeof c->pod, "p%u", nr);
		c->cpu_milli =
			random_below(&r->crash.random, PLAIN_CPUS_MAX + 1) * FAKE_MILLI_PER_CPU;
	}
	*c->cpus = *c->mems = *c->placement = '\0';
	c->exclusive = false;
	call_plugin(r, NRI_CALL_CREATE, c);
}

/* Its process has ended, whether the daemon hears of it or not. */
static void stop(struct rig *r, struct fake_container *c)
{
	c->runs = false;
	call_plugin(r, NRI_CALL_STOP, c);
}

/* One that runs and is to end: of a claim that is being unprepared, or any. NULL: none. */
static struct fake_container *to_be_stopped(struct rig *r)
{
	for (unsigned i = 0; i < CLAIMS + PLAIN; i++) {
		const struct claim_here *k = i < CLAIMS ? &r->claim[i] : NULL;

		if (container(r, i)->runs && (r->drains || (k && k->stage == UNPREPARING)))
			return container(r, i);
	}
	return NULL;
}

static void next_of_runtime(struct rig *r)
{
	struct fake_container *c = to_be_stopped(r);
	unsigned first = random_below(&r->crash.random, CLAIMS + PLAIN);

	if (!r->crash.calls || r->crash.dead || !r->synchronized || r->asked)
		return;
	if (c) {
		stop(r, c);
		return;
	}
	for (unsigned i = first; i < first + CLAIMS + PLAIN && !r->drains; i++) {
		c = container(r, i % (CLAIMS + PLAIN));
		const struct claim_here *k = claim_of(r, c);

		if (k && k->stage != PREPARED)
			continue;
		if (c->runs)
			stop(r, c);
		else
			create(r, c);
		return;
	}
}

static void apply_updates(struct rig *r, const struct nri_answer *a)
{
	for (size_t i = 0; i < a->nr_updates; i++)
		for (unsigned k = 0; k < CLAIMS + PLAIN; k++) {
			struct fake_container *c = container(r, k);

			if (!c->runs || !text_equal(c->id, a->updates[i].container_id))
				continue;
			if (c->exclusive && !text_equal(c->cpus, a->updates[i].cpus))
				fail_msg("%s had %s for itself and is moved to %s", c->id, c->cpus,
					a->updates[i].cpus);
			fake_container_update(c, &a->updates[i]);
		}
}

static void created(struct rig *r, struct fake_container *c, const struct nri_answer *a)
{
	const struct claim_here *k = claim_of(r, c);

	r->count.creates++;
	if (a->status)
		fail_msg("%s of pod %s is refused: %s", c->id, c->pod, a->message);
	fake_container_start(c, a);
	c->exclusive = k || c->cpu_milli;
	r->count.pinned += k != NULL;
	if (k)
		container_has_its_claim(k);
}

static void answered(void *ctx, enum nri_call what, const struct nri_answer *a)
{
	struct rig *r = ctx;
	struct fake_container *c = steal(r->asked);

	apply_updates(r, a);
	if (what == NRI_CALL_CREATE)
		created(r, c, a);
	if (what == NRI_CALL_SYNCHRONIZE) {
		r->synchronized = true;
		the_ledger_is_what_runs(r);
		next_of_kubelet(r);
	}
	no_cpu_is_given_twice(r);
	if (!r->crash.dead)
		loop_timer_set(r->look, LOOK_AGAIN_MS);
}

static void kill_when_all_has_ended(struct rig *r)
{
	bool all = !r->call && !r->asked;

	for (unsigned i = 0; i < CLAIMS + PLAIN; i++)
		all = all && !container(r, i)->runs &&
		      (i >= CLAIMS || r->claim[i].stage == UNKNOWN);
	if (!all)
		return;
	r->crash.killed = true;
	assert_int_equal(kill(r->crash.daemon.pid, SIGKILL), 0);
}

static void look(void *ctx)
{
	struct rig *r = ctx;

	next_of_kubelet(r);
	next_of_runtime(r);
	if (r->drains && !r->crash.killed)
		kill_when_all_has_ended(r);
	if (!r->crash.dead && !r->crash.killed && r->crash.calls)
		loop_timer_set(r->look, LOOK_AGAIN_MS);
}

static void configured(void *ctx, const char *name, const char *index, uint32_t events)
{
	struct rig *r = ctx;
	struct nri_container list[CLAIMS + PLAIN];
	struct key_value annotation[CLAIMS + PLAIN][2];
	const char *cdi[CLAIMS + PLAIN][2];
	size_t nr = 0;

	(void)name, (void)index, (void)events;
	for (unsigned i = 0; i < CLAIMS + PLAIN; i++)
		if (container(r, i)->runs) {
			list[nr] = shown(r, container(r, i), annotation[nr], cdi[nr]);
			nr++;
		}
	nri_runtime_synchronize(r->crash.runtime.nri, list, nr);
}

/* Lives */

static void died(void *ctx)
{
	struct rig *r = ctx;

	if (!r->crash.killed)
		r->hits[r->crash.fault]++;
	perhaps_over(r);
}

static void too_slow(void *ctx)
{
	const struct rig *r = ctx;

	fail_msg(
		"nothing happens any more: dead %d, synchronized %d, claim %s, container %s, calls %u",
		r->crash.dead, r->synchronized, r->called ? r->called->uid : "none",
		r->asked ? r->asked->id : "none", r->crash.calls);
}

/* A runtime goes on without a plugin that is gone: some start the container unpinned, some not. */
static void settle_unanswered(struct rig *r)
{
	struct fake_container *c = steal(r->asked);

	if (!c || !r->is_create || random_chance(&r->crash.random, 50))
		return;
	c->runs = true;
	c->exclusive = false;
	r->count.unpinned++;
}

static void live(struct rig *r)
{
	struct crash_rig *c = &r->crash;

	r->over = r->synchronized = c->dead = c->killed = false;
	loop_timer_set(r->api.deadline, FAKE_PATIENCE_MS);
	crash_begin(c);
	loop_timer_set(c->watchdog, CRASH_STARTUP_MS);
	while (!r->over)
		loop_run(c->loop);
	loop_timer_stop(r->look);
	listener_close(c->runtime.listener);
	fake_runtime_fini(&c->runtime);
	settle_unanswered(r);
	crash_assert_no_journal_set_aside(c);
}

static void one_life(struct rig *r, unsigned fault)
{
	struct crash_rig *c = &r->crash;

	choose_fault(r, fault);
	c->calls = fault < NR_DEATHS ? CALLS : 1 + random_below(&c->random, CALLS);
	for (unsigned i = 0; i < CLAIMS; i++)
		r->count.again += r->claim[i].stage == PREPARING;
	live(r);
	what_was_answered_is_held(r);
}

static void nothing_is_left(struct rig *r)
{
	struct journal_fold f;

	crash_read_journal(&r->crash, &f);
	assert_int_equal(ledger_count(engine_ledger(f.engine)), 0);
	assert_true(cpuset_empty(&ledger_view(engine_ledger(f.engine))->held));
	journal_fold_fini(&f);
	assert_int_equal(count_files(r), 0);
}

/* Every Prepare that was not answered is answered, and every claim is unprepared. */
static void last_life(struct rig *r)
{
	choose_fault(r, NR_DEATHS);
	r->crash.daemon.fault = NULL;
	r->drains = true;
	r->crash.calls = 1;
	live(r);
	nothing_is_left(r);
}

static struct rig *rig_new(void)
{
	static char setting[4][PATH_MAX + 64];
	struct rig *r = calloc(1, sizeof *r);
	struct crash_rig *c = &r->crash;
	unsigned nr = 0;

	crash_init(c, r, died, too_slow);
	(void)snprintf(r->root, sizeof r->root, "%.*s/kubelet", PATH_MAX - 16, c->daemon.dir);
	(void)snprintf(r->plugin, sizeof r->plugin, "%s/plugins", r->root);
	assert_int_equal(mkdir(r->root, 0700), 0);
	assert_int_equal(mkdir(r->plugin, 0700), 0);
	(void)snprintf(r->plugin, sizeof r->plugin, "%s/plugins_registry", r->root);
	assert_int_equal(mkdir(r->plugin, 0700), 0);
	(void)snprintf(r->plugin, sizeof r->plugin, "%s/plugins/numafit.io/dra.sock", r->root);
	(void)snprintf(r->cdi, sizeof r->cdi, "%.*s/cdi", PATH_MAX - 16, c->daemon.dir);
	fake_api_init_on(&r->api, c->loop);
	r->api.ctx = r;
	r->api.serve = serve;
	(void)snprintf(setting[0], sizeof setting[0], "kubeletRootDirectory=%s", r->root);
	(void)snprintf(setting[1], sizeof setting[1], "claims.cdiDirectory=%s", r->cdi);
	(void)snprintf(setting[2], sizeof setting[2], "apiServer.kubeconfig=%s", r->api.kubeconfig);
	for (; nr < 3; nr++)
		c->daemon.setting[nr] = setting[nr];
	c->daemon.setting[nr++] = "claims.enabled=true";
	c->daemon.setting[nr++] = "nodeName=n1";
	c->daemon.setting[nr++] = "podsAPI.enabled=false";
	c->daemon.setting[nr++] = "logLevel=error";
	c->kill_us = KILL_US;
	c->nr_faults = NR_DEATHS;
	c->runtime = (struct fake_runtime){.loop = c->loop,
		.options = {.name = "crash", .version = "1"},
		.events = {.ctx = r, .configured = configured, .answered = answered},
		.on_closed = perhaps_over};
	r->look = loop_timer_new(c->loop, look, r);
	r->pump = rpc_pump_new(c->loop, NULL);
	return r;
}

static void rig_free(struct rig *r)
{
	print_message(
		"claims: %u prepared, %u Prepares were to be made again, %u unprepared, %u calls cut off\n",
		r->count.prepares, r->count.again, r->count.unprepares, r->count.cut_off);
	print_message("creates: %u answered, %u of them on claims; %u started unpinned\n",
		r->count.creates, r->count.pinned, r->count.unpinned);
	assert_true(r->count.prepares && r->count.unprepares && r->count.pinned);
	rpc_pump_free(r->pump);
	fake_api_fini_on(&r->api);
	crash_fini(&r->crash);
	free(r);
}

static unsigned lives_of_fault(void)
{
	return 1 + crash_rounds(ROUNDS) / 8;
}

#ifdef NUMAFIT_FAULTS
/* A place at which nobody dies is not tested, or is no place any more: some lives more where chance
 * has not led there. */
static void an_answered_prepare_survives_kill_9_at_every_step_of_it(void **state)
{
	unsigned lives = lives_of_fault(), nr = 0;
	struct rig *r = rig_new();

	(void)state;
	for (unsigned n = 0; n < MORE * lives; n++)
		for (unsigned i = 0; i < NR_DEATHS_HERE; i++) {
			if (n >= lives && r->hits[deaths[i]])
				continue;
			one_life(r, deaths[i]);
			nr++;
		}
	print_message("%u lives\n", nr);
	for (unsigned i = 0; i < NR_DEATHS_HERE; i++) {
		print_message("%s: %u\n", fault_name(deaths[i]), r->hits[deaths[i]]);
		if (!r->hits[deaths[i]])
			fail_msg("the daemon never died at %s", fault_name(deaths[i]));
	}
	last_life(r);
	rig_free(r);
}
#endif

static void what_was_answered_survives_kill_9_at_any_moment(void **state)
{
	unsigned lives = 2 * lives_of_fault();
	struct rig *r = rig_new();

	(void)state;
#ifndef NUMAFIT_FAULTS
	lives = crash_rounds(ROUNDS);
#endif
	for (unsigned i = 0; i < lives; i++)
		one_life(r, NR_DEATHS);
	last_life(r);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef NUMAFIT_FAULTS
		cmocka_unit_test(an_answered_prepare_survives_kill_9_at_every_step_of_it),
#endif
		cmocka_unit_test(what_was_answered_survives_kill_9_at_any_moment),
	};

	json_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
