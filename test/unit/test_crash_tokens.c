/* The same as test_crash for what the kubelet is told: the daemon is killed at every step of an
 * Allocate and of a create, and at random moments, and started again with its journal or without.
 * Every Allocate that was answered is honoured: its container gets as many CPUs of each NUMA node
 * as it has tokens there. No token is lost, no CPU is given twice, and the list of devices is the
 * same. The daemon is the real program; this test is its kubelet and its container runtime.
 * CRASH_ROUNDS=n changes how often, SEED=n how.
 */
#include <codec/fields_json.h>
#include <codec/placement_json.h>
#include <io/fault.h>
#include <io/journal.h>
#include <io/loop.h>
#include <nri/runtime.h>
#include <numafit-cli/journal_fold.h>
#include <numafit/tokens.h>

#include "core_random.h"
#include "daemon_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "crash_kubelet.h"

enum {
	ROUNDS = 170,
	PODS = 24,
	CALLS = 28,
	NAME_BYTES = 24,
	LIST_MAX = 512,
	STARTUP_MS = 20000,
	LINE = 120, /* of the journal, where records are to have several */
	LOOK_AGAIN_MS = 2,
	KILL_US = 1500,
	MILLI_PER_CPU = 1000,
	SHARES_PER_CPU = 1024,
	ANSWERS = 4, /* of PodResources, until what it never shows is given up */
	SLOW_MS = 20
};
static const int64_t memory_bytes = INT64_C(1) << 30;
/* Longer than any grace of the core's for tokens that nobody comes for. */
static const int64_t much_later_ms = INT64_C(60) * 60 * 1000;

/* A pod of one container, as the kubelet and the runtime have it. */
struct pod_here {
	bool admitted, sandboxed, runs, exclusive;
	bool left;    /* it runs unpinned: its tokens still wait for it */
	unsigned cpu; /* whole ones of a Guaranteed pod; 0: it shares */
	char uid[NAME_BYTES], sandbox[NAME_BYTES], container[NAME_BYTES];
	char cpus[LIST_MAX], mems[LIST_MAX], placement[PLACEMENT_JSON_MAX];
	int64_t created;
	struct given given; /* tokens: none, or as many as cpu */
	char allocated[LEASE_TEXT_MAX];
};

/* From where a life may know of earlier ones. */
enum memory { JOURNAL_AND_ANNOTATIONS, JOURNAL_ONLY, ANNOTATIONS_ONLY };

/* What a life's last step was. */
enum step { STEP_START, STEP_CREATE, STEP_ALLOCATE, STEP_OTHER, NR_STEPS };

struct rig {
	struct daemon_rig daemon;
	struct crash_kubelet kubelet;
	struct loop *loop;
	struct loop_timer *watchdog, *look;
	struct stream *stream;
	struct nri_runtime *runtime;
	struct random random;
	enum memory memory;
	bool dead, killed; /* killed: by us */
	bool synchronized, settled;
	bool busy_kubelet;  /* this life sees hardly anything but Allocates */
	bool journal_whole; /* the journal alone tells all; else it was lost and is being made */
	unsigned fault;     /* where it dies; NR_DEATHS: at any moment */
	char fault_text[64];
	unsigned hits[NR_DEATHS + 1][NR_STEPS];
	enum step step;
	unsigned calls, next;
	struct {
		unsigned creates, pinned, on_tokens, unpinned, left, whole, allocates, again,
			denied, unanswered;
	} count;
	struct topo topo;
	struct pod_here pod[PODS];
	struct pod_here *asked; /* its create, RunPodSandbox or Allocate is unanswered */
	struct given wanted;    /* by that Allocate */
};

static bool has_tokens(const struct pod_here *p)
{
	return p->given.nr > 0;
}

static struct cpuset list_of(const char *text)
{
	struct cpuset cpus;

	assert_int_equal(cpuset_parse(&cpus, text, strlen(text), NULL), 0);
	return cpus;
}

/* What must hold whatever happens */

static void no_cpu_is_given_twice(const struct rig *r)
{
	for (unsigned i = 0; i < PODS; i++)
		for (unsigned j = 0; j < PODS; j++) {
			const struct pod_here *a = &r->pod[i], *b = &r->pod[j];

			if (i == j || !a->runs || !b->runs || !a->exclusive)
				continue;
			struct cpuset x = list_of(a->cpus), y = list_of(b->cpus);
			if (cpuset_intersects(&x, &y))
				fail_msg("%s has %s for itself, %s runs on %s", a->container,
					a->cpus, b->container, b->cpus);
		}
}

static struct token token_of(const struct rig *r, unsigned i)
{
	struct token k;

	assert_int_equal(tokens_parse(&r->topo.ids, r->kubelet.token[i].id, &k, NULL), 0);
	return k;
}

static void it_has_the_cpus_of_its_tokens(const struct rig *r, const struct pod_here *p)
{
	struct cpuset cpus = list_of(p->cpus);
	unsigned on[NODES_MAX] = {0};

	assert_int_equal(cpuset_count(&cpus), p->cpu);
	for (unsigned i = 0; i < p->given.nr; i++)
		on[token_of(r, p->given.token[i]).node]++;
	for (unsigned n = 0; n < r->topo.ids.nr && has_tokens(p); n++)
		if (cpuset_count_and(&cpus, &r->topo.node[n].cpus) != on[n])
			fail_msg("%s has %s and got CPUs %s", p->container, p->allocated, p->cpus);
}

/* The tokens that pods have been given or, of those, the ones that somebody runs on. */
static struct tokenset tokens_of_pods(const struct rig *r, bool running)
{
	struct tokenset all = {0};

	for (unsigned i = 0; i < PODS; i++)
		for (unsigned k = 0; k < r->pod[i].given.nr; k++)
			if ((r->pod[i].runs && !r->pod[i].left) || !running)
				tokenset_add(&all, token_of(r, r->pod[i].given.token[k]));
	return all;
}

static void are_the_same_tokens(
	const struct rig *r, const char *what, const struct tokenset *got, struct tokenset want)
{
	char a[TOKENSET_TEXT_MAX], b[TOKENSET_TEXT_MAX];

	(void)tokenset_format(got, &r->topo.ids, a, sizeof a);
	(void)tokenset_format(&want, &r->topo.ids, b, sizeof b);
	if (strcmp(a, b) != 0)
		fail_msg("%s are %s, not %s", what, a, b);
}

static int enter(void *ctx, const struct record *record, struct err *e)
{
	return engine_replay(ctx, record, e);
}

static int forget(void *ctx, const struct record *record, struct err *e)
{
	(void)ctx, (void)record, (void)e;
	return 0;
}

/* What the daemon has written down, in an engine that may look into the future. */
static void no_token_is_lost_for_ever(struct rig *r, struct journal_fold *f)
{
	const struct engine_hooks hooks = {.record = forget};
	struct engine *later = engine_new(&f->topo, &f->settings, &hooks);
	struct tokenset shown = tokens_of_pods(r, false), leased, claimed;
	struct err e = {0};

	if (engine_dump(f->engine, f->last_ms, enter, later, &e) < 0)
		fail_msg("%s", e.text);
	for (unsigned i = 0; i < ANSWERS; i++)
		(void)engine_see_tokens(later, f->last_ms + i * much_later_ms, &shown);
	if (ledger_check(engine_ledger(later), &e) < 0)
		fail_msg("%s", e.text);
	leases_tokens(ledger_view(engine_ledger(later))->leases, &leased, &claimed);
	are_the_same_tokens(r, "tokens that are leased", &leased, shown);
	are_the_same_tokens(r, "tokens that containers run on", &claimed, tokens_of_pods(r, true));
	engine_free(later);
}

static void is_as_held(struct rig *r, struct pod_here *p, const struct journal_fold *f)
{
	const struct holding *h = ledger_find(engine_ledger(f->engine), p->container);
	char cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX];

	if (!h)
		fail_msg("%s runs, and the ledger lacks it", p->container);
	p->left = h->decision.left;
	if (p->left) { /* it was started unpinned, and has had no update */
		assert_false(*p->placement || *p->cpus);
		assert_true(cpuset_empty(&h->decision.left_on));
		r->count.left++;
		return;
	}
	assert_string_equal(p->cpus, cpuset_format(&h->decision.cpus, cpus, sizeof cpus));
	assert_string_equal(
		p->mems, nodeset_format(h->decision.mems, &f->topo.ids, mems, sizeof mems));
	if (*p->placement)
		assert_int_equal(p->exclusive, h->decision.exclusive);
	p->exclusive = h->decision.exclusive; /* of one that was started unpinned: from now on */
	r->count.whole += h->decision.source == SOURCE_HELD;
	if (has_tokens(p) && p->exclusive)
		it_has_the_cpus_of_its_tokens(r, p);
}

static void read_journal(const struct rig *r, struct journal_fold *f)
{
	struct err e = {0};

	if (journal_fold(f, r->daemon.journal, NULL, NULL, &e) < 0)
		fail_msg("%s", e.text);
	if (ledger_check(engine_ledger(f->engine), &e) < 0)
		fail_msg("%s", e.text);
}

/* What the daemon holds, once it was told what runs; it has written down all of it. */
static void the_ledger_is_what_runs(struct rig *r)
{
	struct journal_fold f;
	unsigned nr = 0;

	read_journal(r, &f);
	r->topo = f.topo;
	for (unsigned i = 0; i < PODS; i++)
		if (r->pod[i].runs) {
			is_as_held(r, &r->pod[i], &f);
			nr++;
		}
	for (size_t i = 0; i < ledger_count(engine_ledger(f.engine)); i++)
		nr -= ledger_at(engine_ledger(f.engine), i)->state != HOLDING_WAITING;
	assert_int_equal(nr, 0);
	no_token_is_lost_for_ever(r, &f);
	journal_fold_fini(&f);
}

/* The runtime's side */

static void flush(struct rig *r)
{
	const void *data;
	size_t len;

	while (r->stream && (len = nri_runtime_take(r->runtime, &data)) > 0)
		(void)stream_write(r->stream, data, len);
}

static struct nri_container shown(
	const struct rig *r, const struct pod_here *p, struct key_value annotation[2])
{
	struct nri_container c = {
		.sandbox_id = p->sandbox,
		.pod_uid = p->uid,
		.pod_ns = "default",
		.pod_name = p->uid,
		.cgroup_parent = p->cpu ? "/kubepods/pod1" : "/kubepods/burstable/pod1",
		.id = p->container,
		.name = "main",
		.cpus = p->cpus,
		.mems = p->mems,
		.annotations = annotation,
		.created_at_ns = p->created,
	};

	c.resources.has_shares = c.resources.has_memory_limit = true;
	c.resources.cpu_shares = p->cpu ? SHARES_PER_CPU * p->cpu : 100;
	c.resources.memory_limit = memory_bytes;
	if (*p->placement && r->memory != JOURNAL_ONLY)
		annotation[c.nr_annotations++] =
			(struct key_value){NRI_PLACEMENT_ANNOTATION, p->placement};
	if (has_tokens(p))
		annotation[c.nr_annotations++] =
			(struct key_value){NRI_ALLOCATED_ANNOTATION, p->allocated};
	return c;
}

/* At the last step of a round the daemon dies before, while or shortly after it works on it, unless
 * it has died before. */
static void perhaps_kill(struct rig *r)
{
	if (--r->calls > 0 || r->dead)
		return;
	if (r->fault == NR_DEATHS)
		usleep(random_below(&r->random, KILL_US));
	r->killed = true;
	assert_int_equal(kill(r->daemon.pid, SIGKILL), 0);
}

static void call(struct rig *r, enum nri_call what, enum step step, const struct pod_here *p)
{
	struct key_value annotation[2];
	struct nri_container c = shown(r, p, annotation);

	r->step = step;
	nri_runtime_call(r->runtime, what, &c);
	flush(r);
	perhaps_kill(r);
}

/* What a life does */

/* Healthy tokens that nobody has, from there on upwards, mostly of one NUMA node. */
static struct given choose_tokens(struct rig *r)
{
	unsigned want = 1 + random_below(&r->random, GIVEN_MAX);
	unsigned first = random_below(&r->random, r->kubelet.nr_tokens);
	bool anywhere = random_chance(&r->random, 20);
	struct given g = {0};

	for (unsigned i = first; i < r->kubelet.nr_tokens && g.nr < want; i++) {
		const struct plugin_token *t = &r->kubelet.token[i];

		if (t->healthy && !t->given &&
			(anywhere || t->node == r->kubelet.token[first].node))
			g.token[g.nr++] = i;
		i += anywhere ? random_below(&r->random, GIVEN_MAX) : 0;
	}
	return g;
}

static void allocate(struct rig *r, struct pod_here *p, const struct given *g)
{
	r->asked = p;
	r->wanted = *g;
	r->step = STEP_ALLOCATE;
	crash_kubelet_allocate(&r->kubelet, g);
	perhaps_kill(r);
}

static bool pods_api_pod(void *ctx, unsigned nr, struct known_pod *out);

static void tell_pod(struct rig *r, enum pods_event_type type, const struct pod_here *p)
{
	struct known_pod pod;

	if (pods_api_pod(r, (unsigned)(p - r->pod), &pod))
		crash_kubelet_tell(&r->kubelet, type, &pod);
}

static void admit_pod(struct rig *r, struct pod_here *p)
{
	enum pods_event_type type = p->admitted ? PODS_MODIFIED : PODS_ADDED;

	p->admitted = true;
	tell_pod(r, type, p);
}

static void create(struct rig *r, struct pod_here *p)
{
	r->asked = p;
	if (!p->sandboxed) {
		call(r, NRI_CALL_RUN_POD, STEP_OTHER, p);
		return;
	}
	p->created = ++r->next;
	(void)snprintf(p->container, sizeof p->container, "c%u", r->next);
	*p->cpus = *p->mems = *p->placement = '\0';
	call(r, NRI_CALL_CREATE, STEP_CREATE, p);
}

static void next_call(struct rig *r);

static void new_pod(struct rig *r, struct pod_here *p)
{
	struct given g = {0};

	*p = (struct pod_here){.cpu = random_below(&r->random, 4)};
	(void)snprintf(p->uid, sizeof p->uid, "p%u", ++r->next);
	(void)snprintf(p->sandbox, sizeof p->sandbox, "s%u", r->next);
	if (r->busy_kubelet || random_chance(&r->random, 50))
		g = choose_tokens(r);
	if (!g.nr) {
		admit_pod(r, p);
		next_call(r);
		return;
	}
	p->cpu = g.nr;
	allocate(r, p, &g);
}

/* Its tokens are the kubelet's again, whether the daemon hears of the pod's end or not. */
static void forget_pod(struct rig *r, struct pod_here *p)
{
	tell_pod(r, PODS_DELETED, p);
	for (unsigned i = 0; i < p->given.nr; i++)
		r->kubelet.token[p->given.token[i]].given = false;
	*p = (struct pod_here){0};
}

/* What we have of the pod was its init container; the one that stays has its tokens, and perhaps
 * one more. */
static void allocate_for_next_container(struct rig *r, struct pod_here *p)
{
	struct given g = p->given;
	unsigned last = g.token[g.nr - 1] + 1;

	if (g.nr < GIVEN_MAX && last < r->kubelet.nr_tokens && r->kubelet.token[last].healthy &&
		!r->kubelet.token[last].given)
		g.token[g.nr++] = last;
	allocate(r, p, &g);
}

static void go_on_with_idle(struct rig *r, struct pod_here *p)
{
	struct pod_here gone = *p;

	if (has_tokens(p) && !p->sandboxed && (r->busy_kubelet || random_chance(&r->random, 25))) {
		allocate_for_next_container(r, p);
	} else if (random_chance(&r->random, 70)) {
		create(r, p);
	} else {
		forget_pod(r, p);
		call(r, NRI_CALL_REMOVE_POD, STEP_OTHER, &gone);
	}
}

static void go_on_with_running(struct rig *r, struct pod_here *p)
{
	if (random_chance(&r->random, 30)) {
		call(r, NRI_CALL_POST_START, STEP_OTHER, p);
		return;
	}
	p->runs = false; /* its process has ended, whether the daemon hears of it or not */
	if (random_chance(&r->random, 30))
		create(r, p); /* and nobody says so */
	else
		call(r, NRI_CALL_STOP, STEP_OTHER, p);
}

/* One that the kubelet can allocate something for. */
static bool is_on_its_way_in(const struct pod_here *p)
{
	return !p->admitted || (has_tokens(p) && !p->sandboxed);
}

static struct pod_here *choose_pod(struct rig *r)
{
	unsigned first = random_below(&r->random, PODS);

	for (unsigned i = first; r->busy_kubelet && i < first + PODS; i++)
		if (is_on_its_way_in(&r->pod[i % PODS]))
			return &r->pod[i % PODS];
	return &r->pod[first];
}

static void next_call(struct rig *r)
{
	struct pod_here *p;

	if (!r->calls || r->dead || !r->settled)
		return;
	p = choose_pod(r);
	if (!p->admitted)
		new_pod(r, p);
	else if (p->runs)
		go_on_with_running(r, p);
	else
		go_on_with_idle(r, p);
}

/* Whether the daemon knows of all tokens that are given out: with its journal from the beginning,
 * else once it has seen PodResources. */
static bool all_tokens_are_leased(struct rig *r)
{
	struct tokenset given = tokens_of_pods(r, false), leased, claimed;
	struct journal_fold f;
	bool all = true;

	read_journal(r, &f);
	leases_tokens(ledger_view(engine_ledger(f.engine))->leases, &leased, &claimed);
	tokenset_each (k, &given)
		all = all && tokenset_has(&leased, k);
	journal_fold_fini(&f);
	return all;
}

/* A life's own steps begin when both the runtime and the kubelet have the daemon again. */
static void perhaps_settled(void *ctx)
{
	struct rig *r = ctx;

	if (r->dead || r->settled || !r->synchronized || !r->kubelet.listed)
		return;
	if (!all_tokens_are_leased(r)) {
		if (r->memory != ANNOTATIONS_ONLY)
			fail_msg("tokens that were given out are not in the journal");
		loop_timer_set(r->look, LOOK_AGAIN_MS);
		return;
	}
	r->settled = true;
	next_call(r);
}

/* The daemon's answers */

static struct pod_here *find(struct rig *r, const char *container)
{
	for (unsigned i = 0; i < PODS; i++)
		if (r->pod[i].runs && strcmp(r->pod[i].container, container) == 0)
			return &r->pod[i];
	return NULL;
}

static void apply_updates(struct rig *r, const struct nri_answer *a)
{
	for (size_t i = 0; i < a->nr_updates; i++) {
		struct pod_here *p = find(r, a->updates[i].container_id);

		if (!p)
			continue;
		if (p->exclusive && strcmp(p->cpus, a->updates[i].cpus) != 0)
			fail_msg("%s had %s for itself and is moved to %s", p->container, p->cpus,
				a->updates[i].cpus);
		assert_true(text_copy(p->cpus, sizeof p->cpus, a->updates[i].cpus));
		assert_true(text_copy(p->mems, sizeof p->mems, a->updates[i].mems));
	}
}

/* What was promised is never missing, and memory comes from elsewhere when it must. Whose tokens
 * they are may not have been shown yet: then it is asked for once more. */
static void may_be_refused(const struct pod_here *p, const struct nri_answer *a)
{
	if (has_tokens(p) && !strstr(a->message, "the kubelet tries again"))
		fail_msg("%s of %s has %s and is refused: %s", p->container, p->uid, p->allocated,
			a->message);
}

static void created(struct rig *r, struct pod_here *p, const struct nri_answer *a)
{
	r->count.creates++;
	if (a->status) {
		may_be_refused(p, a);
		return;
	}
	assert_true(a->nr_annotations == 1 && *a->cpus && *a->mems);
	assert_true(text_copy(p->cpus, sizeof p->cpus, a->cpus));
	assert_true(text_copy(p->mems, sizeof p->mems, a->mems));
	assert_true(text_copy(p->placement, sizeof p->placement, a->annotations[0].value));
	p->runs = true;
	p->exclusive = p->cpu > 0;
	if (p->exclusive)
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
		r->journal_whole = r->synchronized = true;
		perhaps_settled(r);
	}
	no_cpu_is_given_twice(r);
	if (what == NRI_CALL_SYNCHRONIZE)
		return;
	if (what == NRI_CALL_RUN_POD && p->sandboxed && r->calls && !r->dead)
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
	assert_true(text_copy(p->allocated, sizeof p->allocated, annotation));
	p->given = r->wanted;
	p->cpu = p->given.nr;
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

	*pod = p->uid;
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
		.cpu_milli = p->cpu ? p->cpu * MILLI_PER_CPU : MILLI_PER_CPU / 10,
		.nr_memory = 1,
		.memory = {{.bytes = (uint64_t)memory_bytes}},
		.nr_devices = has_tokens(p),
		.device = {{.count = p->given.nr}},
	};
	ask = (struct pod){.uid = p->uid,
		.qos = p->cpu ? QOS_GUARANTEED : QOS_BURSTABLE,
		.nr = 1,
		.container = &container};
	*out = (struct known_pod){.pod = {.uid = p->uid,
					  .ns = "default",
					  .name = p->uid,
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

	if (r->dead && !r->stream && !crash_kubelet_has_plugin(&r->kubelet))
		loop_stop(r->loop);
}

static void child_died(void *ctx)
{
	struct rig *r = ctx;

	if (r->dead)
		return;
	int status = rig_end(&r->daemon, 0);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		fail_msg("the daemon ended by itself (status %#x)", (unsigned)status);
	r->dead = true;
	if (!r->killed)
		r->hits[r->fault][r->step]++;
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
		if (r->pod[i].runs) {
			list[nr] = shown(r, &r->pod[i], annotation[nr]);
			nr++;
		}
	nri_runtime_synchronize(r->runtime, list, nr);
}

static void data_came(void *ctx, const void *data, size_t len)
{
	struct rig *r = ctx;

	if (nri_runtime_feed(r->runtime, data, len) < 0)
		fail_msg("%s", nri_runtime_error(r->runtime));
	flush(r);
}

static void closed(void *ctx, int error)
{
	struct rig *r = ctx;

	(void)error;
	r->stream = NULL;
	perhaps_over(r);
}

static struct stream_events accepted(void *ctx, struct stream *s)
{
	struct rig *r = ctx;

	r->stream = s;
	return (struct stream_events){.ctx = r, .data = data_came, .closed = closed};
}

static void too_slow(void *ctx)
{
	const struct rig *r = ctx;

	fail_msg("nothing happens any more: dead %d, synchronized %d, listed %d, settled %d",
		r->dead, r->synchronized, r->kubelet.listed, r->settled);
}

/* A runtime goes on without a plugin that is gone: some start the container unpinned, some not; its
 * sandbox is there or is not. */
static void settle_unanswered(struct rig *r)
{
	struct pod_here *p = steal(r->asked);

	if (!p || random_chance(&r->random, 50))
		return;
	if (r->step == STEP_OTHER) {
		p->sandboxed = true;
		return;
	}
	p->runs = true;
	p->exclusive = false;
	r->count.unpinned++;
}

/* Only a container that was answered carries the annotation that can replace the journal. */
static bool all_are_annotated(const struct rig *r)
{
	for (unsigned i = 0; i < PODS; i++)
		if (r->pod[i].runs && !*r->pod[i].placement)
			return false;
	return true;
}

static void choose_memory(struct rig *r)
{
	r->memory = random_below(&r->random, ANNOTATIONS_ONLY + 1);
	if ((r->memory == ANNOTATIONS_ONLY && !all_are_annotated(r)) ||
		(r->memory == JOURNAL_ONLY && !r->journal_whole))
		r->memory = JOURNAL_AND_ANNOTATIONS;
	if (r->memory != ANNOTATIONS_ONLY)
		return;
	(void)unlink(r->daemon.journal);
	r->journal_whole = false;
}

/* Whether an Allocate passes there. */
static bool is_of_allocate(unsigned fault)
{
	return fault >= NR_FAULTS || (fault >= FAULT_TO_APPEND && fault <= FAULT_COMMITTED);
}

#ifdef NUMAFIT_FAULTS
static int count_one(void *ctx, const struct record *record, struct err *e)
{
	unsigned *nr = ctx;

	(void)record, (void)e;
	(*nr)++;
	return 0;
}

/* The lines that a life begins with: a header and what is known, or what is found. */
static unsigned lines_at_start(const struct rig *r)
{
	unsigned lines = 1;
	struct journal_fold f;

	if (access(r->daemon.journal, F_OK) == 0) {
		read_journal(r, &f);
		(void)engine_dump(f.engine, f.last_ms, count_one, &lines, NULL);
		journal_fold_fini(&f);
	}
	for (unsigned i = 0; i < PODS && r->memory == ANNOTATIONS_ONLY; i++)
		lines += 2 * r->pod[i].runs;
	return lines;
}

struct counting {
	const struct journal_fold *f;
	unsigned nr;
};

static int count_between(void *ctx, const struct record *record, struct err *e)
{
	static char text[JOURNAL_TEXT_MAX];
	struct counting *c = ctx;
	int len = journal_json_record(record, &c->f->topo.ids, text, sizeof text, e);

	assert_true(len > 0);
	c->nr += (unsigned)(len - 1) / LINE;
	return 0;
}

static int measure_header(void *ctx, char *text, size_t len, struct err *e)
{
	unsigned *bytes = ctx;

	(void)text;
	*bytes = (unsigned)len;
	return err_set(e, ECANCELED, "the first line is enough");
}

/* The passes between lines of one record that a life begins with, about. */
static unsigned between_lines_at_start(const struct rig *r)
{
	static unsigned header_bytes; /* of the journal that there was last */
	struct journal_fold f;
	struct counting c = {&f, 0};

	(void)journal_read(r->daemon.journal, measure_header, &header_bytes, NULL);
	c.nr = header_bytes / LINE;
	if (access(r->daemon.journal, F_OK) == 0) {
		read_journal(r, &f);
		(void)engine_dump(f.engine, f.last_ms, count_between, &c, NULL);
		journal_fold_fini(&f);
	}
	for (unsigned i = 0; i < PODS && r->memory == ANNOTATIONS_ONLY; i++)
		c.nr += 8 * r->pod[i].runs;
	return c.nr;
}

/* At which pass it dies: at its start, or in a call. */
static unsigned random_pass(struct rig *r)
{
	if (r->fault == FAULT_BETWEEN_LINES)
		return random_chance(&r->random, 25)
			       ? 1 + random_below(&r->random, between_lines_at_start(r))
			       : between_lines_at_start(r) + 1 +
					 random_below(&r->random, 3 * CALLS);
	unsigned before = r->fault == FAULT_HALF_LINE ? lines_at_start(r) : 0;

	if (r->fault == FAULT_TO_DECIDE || r->fault == FAULT_ENCODED || r->fault >= NR_FAULTS)
		return 1 + random_below(&r->random, CALLS / 4); /* few steps pass there */
	if (before && random_chance(&r->random, 25))
		return 1 + random_below(&r->random, before);
	return before + 1 + random_below(&r->random, CALLS / 2);
}

static void choose_fault(struct rig *r, unsigned nr)
{
	r->fault = nr % (NR_DEATHS + 1);
	r->daemon.fault = NULL;
	r->daemon.line = 0;
	if (r->fault == FAULT_BETWEEN_LINES ||
		(r->fault != FAULT_HALF_LINE && random_chance(&r->random, 30)))
		r->daemon.line = LINE;
	if (r->fault == NR_DEATHS)
		return;
	(void)snprintf(
		r->fault_text, sizeof r->fault_text, "%s:%u", fault_name(r->fault), random_pass(r));
	r->daemon.fault = r->fault_text;
}
#else
static void choose_fault(struct rig *r, unsigned nr)
{
	(void)nr;
	r->fault = NR_DEATHS;
}
#endif

static void no_journal_was_set_aside(const struct rig *r)
{
	char aside[sizeof r->daemon.journal + sizeof ".damaged"];

	(void)snprintf(aside, sizeof aside, "%s.damaged", r->daemon.journal);
	assert_int_equal(access(aside, F_OK), -1);
}

static void one_life(struct rig *r, unsigned nr)
{
	const struct nri_runtime_options options = {
		.name = "crash", .version = "1", .state_change = random_chance(&r->random, 50)};
	const struct nri_runtime_events events = {
		.ctx = r, .configured = configured, .answered = answered};

	r->dead = r->killed = r->synchronized = r->settled = false;
	r->kubelet.listed = false;
	r->kubelet.nr_lists = 0;
	r->kubelet.answer_ms = random_chance(&r->random, 25) ? SLOW_MS : 0;
	r->step = STEP_START;
	choose_memory(r);
	choose_fault(r, nr);
	r->busy_kubelet = is_of_allocate(r->fault) && nr / (NR_DEATHS + 1) % 3 > 0;
	r->calls = r->fault < NR_DEATHS ? CALLS : 1 + random_below(&r->random, CALLS);
	r->runtime = nri_runtime_new(&options, &events);
	/* of its own, lest one that died before it was heard is heard in the next life */
	struct listener *listener =
		listener_new(r->loop, r->daemon.socket, 0600, r, accepted, NULL);
	assert_non_null(listener);
	r->daemon.setting[6] = random_chance(&r->random, 50) ? "onAdopt=leave" : "onAdopt=place";
	r->daemon.setting[0] =
		random_chance(&r->random, 50) ? "podsAPI.enabled=true" : "podsAPI.enabled=false";
	rig_start(&r->daemon);
	r->kubelet.pid = r->daemon.pid;
	loop_timer_set(r->watchdog, STARTUP_MS);
	loop_run(r->loop);
	loop_timer_stop(r->look);
	listener_close(listener);
	nri_runtime_free(r->runtime);
	settle_unanswered(r);
	no_journal_was_set_aside(r);
}

/* A step at which nobody dies is not tested, or is no step any more. */
static void every_step_was_hit(const struct rig *r)
{
#ifdef NUMAFIT_FAULTS
	for (unsigned f = 0; f < NR_DEATHS; f++) {
		const unsigned *hits = r->hits[f];

		print_message(
			"%s: %u at a create, %u at an Allocate, %u at others, %u at the start\n",
			fault_name(f), hits[STEP_CREATE], hits[STEP_ALLOCATE], hits[STEP_OTHER],
			hits[STEP_START]);
		unsigned at_calls = hits[STEP_CREATE] + hits[STEP_OTHER];
		if (!(is_of_allocate(f) ? hits[STEP_ALLOCATE] : at_calls))
			fail_msg("nobody died at %s", fault_name(f));
	}
#else
	(void)r;
#endif
}

static void setup(struct rig *r)
{
	const char *seed = getenv("SEED");
	static char root[PATH_MAX + 16], setting[PATH_MAX + 64];
	const struct crash_kubelet_events events = {
		.ctx = r,
		.listed = perhaps_settled,
		.allocated = allocated,
		.lost = perhaps_over,
		.held = held,
		.shown = pods_api_pod,
	};

	(void)signal(SIGPIPE, SIG_IGN);
	rig_init(&r->daemon);
	(void)snprintf(root, sizeof root, "%s/kubelet", r->daemon.dir);
	(void)snprintf(setting, sizeof setting, "kubeletRootDirectory=%s", root);
	r->daemon.setting[1] = "logLevel=error";
	r->daemon.setting[2] = "sharedPoolStep=2";
	r->daemon.setting[3] = setting;
	r->daemon.setting[4] = "devicePlugin.enabled=true";
	r->daemon.setting[5] = "podResources.enabled=true";
	r->random.state = seed ? strtoull(seed, NULL, 0) : 20261121;
	r->journal_whole = true;
	r->loop = loop_new();
	r->watchdog = loop_timer_new(r->loop, too_slow, r);
	r->look = loop_timer_new(r->loop, perhaps_settled, r);
	assert_int_equal(loop_on_signal(r->loop, SIGCHLD, child_died, r), 0);
	crash_kubelet_init(&r->kubelet, r->loop, root, PODS, &events);
}

static void what_was_answered_to_the_kubelet_survives_kill_9_at_every_step(void **state)
{
	const char *rounds_text = getenv("CRASH_ROUNDS");
	unsigned rounds = rounds_text ? (unsigned)atoi(rounds_text) : ROUNDS;
	struct rig *r = calloc(1, sizeof *r);

	(void)state;
	setup(r);
	for (unsigned i = 0; i < rounds; i++)
		one_life(r, i);
	print_message("%u lives\n", rounds);
	print_message("Allocates: %u answered, %u of them again, %u denied, %u cut off\n",
		r->count.allocates, r->count.again, r->count.denied, r->count.unanswered);
	print_message(
		"creates: %u answered, %u pinned, %u of them on tokens; %u started unpinned, %u "
		"times one was left so\n",
		r->count.creates, r->count.pinned, r->count.on_tokens, r->count.unpinned,
		r->count.left);
	print_message(
		"%u were found again that had been decided with their pods\n", r->count.whole);
	every_step_was_hit(r);
	assert_true(r->count.on_tokens > rounds / 4);
	crash_kubelet_fini(&r->kubelet);
	loop_free(r->loop);
	rig_fini(&r->daemon);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_answered_to_the_kubelet_survives_kill_9_at_every_step),
	};

	json_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
