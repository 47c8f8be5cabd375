/* Facts of a pod that only its spec or the kubelet's PodResources has, and that come after numafitd
 * has found the pod's containers running: what is in force then is what is in force where the facts
 * were there from the beginning. A daemon whose journal is lost, with cgroups that are files of a
 * folder. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <apiserver/pod_object_json.h>
#include <codec/fields_json.h>
#include <io/log.h>
#include <kubelet/pod_resources.h>
#include <kubelet/pods.h>
#include <numafit/shares.h>
#include <numafitd/services.h>
#include <numafitd/services_state.h>

#include <jansson.h>

#include "sweep_rig.h"

enum { ARENA_MAX = 1 << 20, CONTAINERS = 2 };

/* What the kubelet's Pods API has said, in the place of its client. */
static struct known_pod known;
static bool is_known;

const struct known_pod *pods_find(const struct pods *p, const char *uid)
{
	(void)p;
	return is_known && text_equal(uid, known.pod.uid) ? &known : NULL;
}

bool pods_synced(const struct pods *p)
{
	(void)p;
	return is_known;
}

/* The client's other functions, which nothing calls here. */
struct pods *pods_new(struct loop *l, struct rpc_pump *pump, const struct pods_options *o,
	const struct pods_handler *h)
{
	(void)l, (void)pump, (void)o, (void)h;
	return NULL;
}

void pods_close(struct pods *p)
{
	(void)p;
}

size_t pods_count(const struct pods *p)
{
	(void)p;
	return 0;
}

/* What its PodResources has answered. */
static struct {
	bool answered;
	struct container_held container;
} shown_held;

const struct container_held *pod_resources_find(
	const struct pod_resources *r, const char *ns, const char *pod, const char *container)
{
	static const struct container_held alone = {.name = "alone"};

	(void)r;
	if (!shown_held.answered || !text_equal(ns, "default") || !text_equal(pod, "p1"))
		return NULL;
	return text_equal(container, "alone") ? &alone : &shown_held.container;
}

uint64_t pod_resources_age(const struct pod_resources *r)
{
	(void)r;
	return shown_held.answered ? UINT64_MAX : 0;
}

uint64_t pod_resources_refresh(struct pod_resources *r)
{
	(void)r;
	return 1;
}

const struct pods_held *pod_resources_held(const struct pod_resources *r)
{
	static const struct pods_held none;

	(void)r;
	return &none;
}

/* The client's other functions, likewise. */
struct pod_resources *pod_resources_new(struct loop *l, struct rpc_pump *p,
	const struct pod_resources_options *o, const struct pod_resources_handler *h)
{
	(void)l, (void)p, (void)o, (void)h;
	return NULL;
}

void pod_resources_hurry(struct pod_resources *r)
{
	(void)r;
}

int pod_resources_devices(
	const struct pod_resources *r, struct arena *a, const struct device_count **out, size_t *nr)
{
	(void)r, (void)a, (void)out;
	*nr = 0;
	return 0;
}

void pod_resources_close(struct pod_resources *r)
{
	(void)r;
}

/* Containers alone, which runs on CPUs 2-3, and shares, on 4-7. As a runtime shows them they ask
 * for 2 CPUs, and for so many; 0: for a part of one. */
enum held_by_kubelet { NOT_ASKED, HAS_NOTHING, HAS_DEVICE, HAS_CLAIM };
/* Of a claim of container shares: when the kubelet prepares it. KEPT: an earlier numafitd has it
 * in the journal, and its container alone is lost. */
enum prepared { NEVER, KEPT, BEFORE_FACTS, BEHIND_FACTS, FOR_ANOTHER };
struct row {
	const char *fact, *spec; /* of the pod; 's have the place of \"s; NULL: nobody has it */
	unsigned shows;
	bool gate; /* PodLevelResourceManagers */
	/* what is to be known and in force: */
	bool alone_has_own, shares_has_own, quota_stays;
	enum container_kind kind;  /* of shares */
	bool devices;              /* likewise */
	enum held_by_kubelet held; /* by shares */
	enum prepared claim;
};
#define OWN    "'resources':{'limits':{'cpu':'6','memory':'1Gi'}},"
#define ALONE  "{'name':'alone','resources':{'limits':{'cpu':'2','memory':'1Gi'}}}"
#define SHARES "{'name':'shares','resources':{'limits':{'cpu':'4','memory':'1Gi'}}}"
#define BURST  "'requests':{'cpu':'100m'}"
#define CLAIMS                                                                                     \
	"'containers':[" ALONE ",{'name':'shares','resources':{'claims':[{'name':'x'}],"           \
	"'limits':{'cpu':'2','memory':'1Gi'}}}]"
static const struct row rows[] = {
	{"the pod has resources of its own, and shares them out",
		OWN "'containers':[" ALONE ",{'name':'shares'}]", 6, true, true, false, true,
		CONTAINER_APP, false, NOT_ASKED, NEVER},
	{"the pod has resources of its own, and the kubelet does not share them out",
		OWN "'containers':[" ALONE ",{'name':'shares'}]", 6, false, false, false, true,
		CONTAINER_APP, false, NOT_ASKED, NEVER},
	{"the pod has none of its own", "'containers':[" ALONE ",{'name':'shares'}]", 4, true, true,
		true, false, CONTAINER_APP, false, NOT_ASKED, NEVER},
	{"a container is a sidecar",
		"'initContainers':[{'name':'shares','restartPolicy':'Always','resources':{'limits':"
		"{'cpu':'4','memory':'1Gi'}}}],'containers':[" ALONE "]",
		4, true, true, true, false, CONTAINER_SIDECAR, false, NOT_ASKED, NEVER},
	{"a container is an init container",
		"'initContainers':[{'name':'shares','resources':{'limits':{'cpu':'4','memory':'1Gi'"
		"}}}],'containers':[" ALONE "]",
		4, true, true, true, false, CONTAINER_INIT, false, NOT_ASKED, NEVER},
	{"a container has devices",
		"'containers':[" ALONE
		",{'name':'shares','resources':{'limits':{'cpu':'4','memory':"
		"'1Gi','example.com/gpu':'1'}}}]",
		4, true, true, true, false, CONTAINER_APP, true, NOT_ASKED, NEVER},
	{"a container has claims",
		"'containers':[" ALONE ",{'name':'shares','resources':{'claims':[{'name':'x'}],"
		"'limits':{'cpu':'4','memory':'1Gi'}}}]",
		4, true, true, true, false, CONTAINER_APP, true, NOT_ASKED, NEVER},
	{"the kubelet gave a container no devices", NULL, 4, true, true, true, false, CONTAINER_APP,
		false, HAS_NOTHING, NEVER},
	{"the kubelet gave a container a device", NULL, 4, true, true, true, false, CONTAINER_APP,
		true, HAS_DEVICE, NEVER},
	{"a container runs on a claim, which is held", NULL, 2, true, true, true, false,
		CONTAINER_APP, true, HAS_CLAIM, KEPT},
	{"a container of a known pod runs on a claim, which is held", CLAIMS, 2, true, true, true,
		false, CONTAINER_APP, true, HAS_CLAIM, KEPT},
	{"a pod that claims are held for has a container without any",
		"'containers':[" ALONE ",{'name':'shares'}]", 2, true, true, true, false,
		CONTAINER_APP, false, HAS_NOTHING, KEPT},
	{"a container runs on a claim, which is prepared behind that", CLAIMS, 2, true, true, true,
		false, CONTAINER_APP, true, HAS_CLAIM, BEHIND_FACTS},
	{"a container runs on a claim, which is prepared before that", CLAIMS, 2, true, true, true,
		false, CONTAINER_APP, true, HAS_CLAIM, BEFORE_FACTS},
	{"a container runs on a claim that is not reserved for its pod", CLAIMS, 2, true, true,
		false, false, CONTAINER_APP, true, HAS_CLAIM, FOR_ANOTHER},
};

/* What came of it. */
struct outcome {
	struct cpuset cpus[CONTAINERS]; /* held; empty: of the shared pool */
	char in_force[CONTAINERS][LIST_BYTES];
	char quota[LIST_BYTES];
	struct ask ask[CONTAINERS];
	bool pod_level[CONTAINERS], within_claims[CONTAINERS];
	struct cpuset claim; /* its CPUs; empty: it is not there */
};

struct world {
	struct rig *r;
	struct services services;
	struct arena a;
	json_t *document; /* its strings are those of the pod */
};

static const char of_pod[] = "sys/fs/cgroup/kubepods/podp1/cpu.max";

static void read_spec(struct world *w, const char *spec)
{
	char text[2048];

	(void)snprintf(text, sizeof text,
		"{'metadata':{'uid':'p1','namespace':'default','name':'p1'},'spec':{%s},"
		"'status':{'qosClass':'Guaranteed'}}",
		spec);
	for (char *at = text; (at = strchr(at, '\''));)
		*at = '"';
	json_decref(w->document);
	assert_int_equal(json_parse(text, strlen(text), &w->document, NULL), 0);
	assert_int_equal(pod_object_json_read(w->document, &w->a, &known, NULL), 0);
}

static const char claim_uid[] = "u1";
static const char *const claim_cdi[] = {CLAIM_CDI_KIND "=u1-0"};

static void prepare(struct rig *r, const char *pod)
{
	const struct claim_share share = {
		.request = "r", .pool = "n1", .device = "numa0", .cpus = 2};
	const struct resource_claim claim = {.uid = claim_uid,
		.ns = "default",
		.name = "c",
		.nr = 1,
		.share = &share,
		.nr_pods = 1,
		.pod_uid = &pod};
	struct decision d;
	struct err e;

	if (engine_prepare(r->d.engine, 1, &claim, &d, &e))
		fail_msg("%s", e.text);
	pool_follow_event(&r->d);
	updater_note_change(&r->d);
}

static void kubelet_has(enum held_by_kubelet what)
{
	static const struct held_device device = {.resource = "example.com/gpu", .id = "0"};
	static const struct held_claim claim = {
		.ns = "default", .name = "c", .cdi = claim_cdi, .nr_cdi = 1};

	shown_held.container = (struct container_held){.name = "shares",
		.device = &device,
		.nr_devices = what == HAS_DEVICE,
		.claim = &claim,
		.nr_claims = what == HAS_CLAIM};
}

static struct box *box_of_pod(struct rig *r, unsigned i, const char *name, unsigned shows)
{
	struct box *b = name_box(r, i, shows);

	b->name = name;
	(void)snprintf(b->c.pod, sizeof b->c.pod, "p1");
	(void)snprintf(b->cgroup, sizeof b->cgroup, "/kubepods/podp1/c%u", i);
	return b;
}

/* A container that an earlier numafitd has pinned, whose journal is lost. */
static void runs(struct rig *r, unsigned i, const char *name, unsigned shows, const char *cpus)
{
	struct box *b = box_of_pod(r, i, name, shows);

	(void)snprintf(b->c.placement, sizeof b->c.placement,
		"{\"v\":1,\"policy\":\"best-effort\",\"exclusive\":true,\"cpus\":\"%s\",\"mems\":\"0\","
		"\"nodes\":\"0\",\"preferred\":true}",
		cpus);
	(void)snprintf(b->c.cpus, sizeof b->c.cpus, "%s", cpus);
	(void)snprintf(b->c.mems, sizeof b->c.mems, "0");
	b->c.cpu_milli = FAKE_MILLI_PER_CPU * shows;
	b->c.runs = true;
	b->c.created_ns = 1 + i;
	set_cpus(r, b, cpus);
	set_mems(r, b, "0");
	set_populated(r, b, true);
	put_cgroup(r, b, "cpu.max", "max 100000\n");
}

static void make_ready(struct world *w, const struct row *row)
{
	w->r = rig_new_by(true, row->claim ? "v0.9.0" : "v0.12.5", true); /* that shows CDI */
	w->r->claims = true;
	if (row->claim == KEPT)
		prepare(w->r, "p1");
	stop_daemon(w->r);
	if (row->claim != KEPT)
		write_file(w->r, "journal", "");
	read_machine(w->r, machine);
	arena_init(&w->a, ARENA_MAX);
	w->services = (struct services){.d = &w->r->d};
	if (row->spec) {
		read_spec(w, row->spec);
		w->services.pods = (struct pods *)&w->services;
	}
	if (row->held)
		w->services.pod_resources = (struct pod_resources *)&w->services;
	kubelet_has(row->held);
	w->r->forgets = true; /* it shows the cpusets of the creation */
	put(w->r, of_pod, "600000 100000\n");
	w->r->d.services = &w->services;
	w->r->gate = row->gate;
}

static void begin(struct world *w, const struct row *row)
{
	make_ready(w, row);
	runs(w->r, 1, "alone", 2, "2-3");
	runs(w->r, 2, "shares", row->shows, row->claim ? "0-1" : "4-7");
	start_daemon(w->r);
}

static void finish(struct world *w)
{
	w->r->d.services = NULL;
	rig_free(w->r);
	json_decref(w->document);
	arena_fini(&w->a);
}

static struct outcome outcome_of(struct rig *r)
{
	const struct holding *share = shares_find(engine_ledger(r->d.engine), claim_uid, 0);
	struct outcome o = {0};
	struct err e;

	if (share)
		o.claim = share->decision.cpus;

	if (ledger_check(engine_ledger(r->d.engine), &e))
		fail_msg("%s", e.text);

	for (unsigned i = 0; i < CONTAINERS; i++) {
		const struct holding *h = held(r, &r->box[1 + i]);
		char name[PATH_BYTES / 2];

		assert_non_null(h);
		o.cpus[i] = h->decision.exclusive ? h->decision.cpus : (struct cpuset){0};
		o.ask[i] = h->request.ask;
		o.pod_level[i] = h->request.pod.pod_level;
		o.within_claims[i] = h->decision.within_claims;
		(void)snprintf(
			name, sizeof name, "sys/fs/cgroup%s/cpuset.cpus", r->box[1 + i].cgroup);
		(void)snprintf(o.in_force[i], sizeof o.in_force[i], "%s", content(r, name));
	}
	(void)snprintf(o.quota, sizeof o.quota, "%s", content(r, of_pod));
	return o;
}

/* All that is due is done: updates, and quotas by what the ledger says of the pod. */
static bool is_settled(struct rig *r)
{
	const bool limited = strncmp(content(r, of_pod), "max", 3) != 0;
	const bool has_own = ledger_pod_is_unlimited(engine_ledger(r->d.engine), "p1");
	const bool unlimited = has_own && (is_known || !r->d.services->pods);

	return !ledger_view(engine_ledger(r->d.engine))->nr_misplaced && limited != unlimited &&
	       is_quiet(r);
}

static void tell_facts(struct world *w, const struct row *row)
{
	if (row->spec) {
		is_known = true;
		services_pod_changed(&w->r->d, &known);
	}
	if (row->held) {
		shown_held.answered = true;
		services_devices_shown(&w->r->d, pod_resources_held(NULL));
	}
}

/* A runtime that does not show CDI devices is not sent updates either: the next answer has them. */
static void wait_for_updates(struct rig *r, const struct row *row)
{
	if (row->claim)
		(void)start_box(r, 5, 0);
	wait_until(r, is_settled);
}

static struct outcome play(const struct row *row, bool late)
{
	struct world w = {0};
	struct outcome o;

	is_known = row->spec && !late;
	shown_held.answered = row->held && !late;
	begin(&w, row);
	wait_until(w.r, is_settled);
	if (late && row->spec)
		assert_string_equal(content(w.r, of_pod), "600000 100000");
	if (row->claim == BEFORE_FACTS || row->claim == FOR_ANOTHER)
		prepare(w.r, row->claim == FOR_ANOTHER ? "p2" : "p1");
	if (late)
		tell_facts(&w, row);
	if (row->claim == BEHIND_FACTS)
		prepare(w.r, "p1");
	wait_for_updates(w.r, row);
	o = outcome_of(w.r);
	finish(&w);
	return o;
}

static void what_comes_late_is_in_force_as_if_it_had_been_there(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *row = &rows[i];

		for (unsigned late = 0; late <= 1; late++) {
			const struct outcome o = play(row, late), first = play(row, false);
			const char *when = late ? "late" : "early";

			if (cpuset_empty(&o.cpus[0]) == row->alone_has_own ||
				cpuset_empty(&o.cpus[1]) == row->shares_has_own)
				fail_msg("%s (%s): alone runs on %s, shares on %s", row->fact, when,
					o.in_force[0], o.in_force[1]);
			if ((strncmp(o.quota, "max", 3) != 0) != row->quota_stays)
				fail_msg(
					"%s (%s): the pod's quota is %s", row->fact, when, o.quota);
			if (o.ask[1].kind != row->kind || o.ask[1].has_devices != row->devices)
				fail_msg("%s (%s): kind %u, devices %d", row->fact, when,
					o.ask[1].kind, o.ask[1].has_devices);
			const bool on_claim = row->held == HAS_CLAIM && row->shares_has_own;
			if (o.within_claims[0] || o.within_claims[1] != on_claim ||
				(on_claim && !cpuset_equal(&o.claim, &o.cpus[1])))
				fail_msg("%s (%s): shares runs on %s, within claims: %d", row->fact,
					when, o.in_force[1], o.within_claims[1]);
			assert_false(cpuset_intersects(&o.cpus[0], &o.cpus[1]));
			/* where shares runs until the facts come a claim has no CPUs */
			if (row->claim == BEFORE_FACTS || row->claim == FOR_ANOTHER)
				continue;
			for (unsigned c = 0; c < CONTAINERS; c++) {
				assert_true(cpuset_equal(&o.cpus[c], &first.cpus[c]));
				assert_string_equal(o.in_force[c], first.in_force[c]);
				assert_int_equal(o.ask[c].kind, first.ask[c].kind);
				assert_int_equal(o.ask[c].place, first.ask[c].place);
				assert_int_equal(o.ask[c].guaranteed, first.ask[c].guaranteed);
				assert_int_equal(o.pod_level[c], first.pod_level[c]);
			}
		}
	}
}

static void what_comes_between_create_and_start_is_in_force_once_the_container_runs(void **state)
{
	struct world w = {0};
	struct box *b;

	(void)state;
	is_known = false;
	make_ready(&w, &rows[0]);
	start_daemon(w.r);
	b = box_of_pod(w.r, 2, "shares", rows[0].shows);
	call(w.r, NRI_CALL_CREATE, b);
	wait_until(w.r, is_quiet);
	assert_true(held(w.r, b)->decision.exclusive);
	is_known = true;
	services_pod_changed(&w.r->d, &known);
	assert_true(held(w.r, b)->decision.exclusive); /* its answer is on its way */
	call(w.r, NRI_CALL_POST_START, b);
	wait_until(w.r, is_settled);
	assert_false(held(w.r, b)->decision.exclusive);
	assert_true(held(w.r, b)->request.pod.pod_level);
	assert_string_equal(content(w.r, of_pod), "600000 100000");
	finish(&w);
}

static bool quota_is_lifted(struct rig *r)
{
	return strncmp(content(r, of_pod), "max", 3) == 0;
}

/* Rows 0 and 2: the pod has resources of its own, or none. */
static void where_nobody_has_facts_a_quota_is_lifted_at_once(void **state)
{
	struct world w = {0};

	(void)state;
	is_known = false;
	make_ready(&w, &rows[2]);
	w.services.pods = NULL;
	runs(w.r, 1, "alone", 2, "2-3");
	runs(w.r, 2, "shares", 4, "4-7");
	start_daemon(w.r);
	wait_until(w.r, quota_is_lifted);
	finish(&w);
}

static void a_quota_that_was_lifted_is_lifted_again_while_facts_are_awaited(void **state)
{
	struct world w = {0};

	(void)state;
	is_known = true;
	shown_held.answered = false;
	begin(&w, &rows[2]);
	wait_until(w.r, quota_is_lifted);
	stop_daemon(w.r);
	read_machine(w.r, machine);
	is_known = false;
	w.r->d.services = &w.services;
	put(w.r, of_pod, "400000 100000\n"); /* by the kubelet, as nobody looked */
	start_daemon(w.r);
	wait_until(w.r, quota_is_lifted);
	finish(&w);
}

static struct box *create_and_start(
	struct rig *r, unsigned i, const char *name, unsigned cpus, bool is_exclusive)
{
	struct box *b = box_of_pod(r, i, name, cpus);

	call(r, NRI_CALL_CREATE, b);
	wait_until(r, is_quiet);
	assert_true(held(r, b)->decision.exclusive == is_exclusive);
	call(r, NRI_CALL_POST_START, b);
	wait_until(r, is_quiet);
	return b;
}

/* A pod that was resized in place since its sandbox was made: the sandbox sums up the 4 CPUs of
 * before, and the spec has 6. */
static void a_spec_counts_where_the_sandbox_sums_up_less(void **state)
{
	struct world w = {0};

	(void)state;
	is_known = true;
	make_ready(&w, &rows[2]);
	w.r->pod_shares = 4 * FAKE_SHARES_PER_CPU;
	start_daemon(w.r);
	const struct box *alone = create_and_start(w.r, 1, "alone", 2, true),
			 *shares = create_and_start(w.r, 2, "shares", 4, true);

	for (unsigned i = 0; i < 3; i++) {
		assert_true(held(w.r, alone)->decision.exclusive);
		assert_true(held(w.r, shares)->decision.exclusive);
		services_pod_changed(&w.r->d, &known);
		wait_until(w.r, is_quiet);
	}
	assert_int_equal(count_lines(w.r, "journal", "\"facts\""), 0);
	finish(&w);
}

/* Likewise where the spec is known after the containers are: until then the sandbox counts. */
static void a_spec_that_comes_late_counts_once(void **state)
{
	struct world w = {0};

	(void)state;
	is_known = false;
	make_ready(&w, &rows[2]);
	w.r->pod_shares = 4 * FAKE_SHARES_PER_CPU;
	start_daemon(w.r);
	(void)create_and_start(w.r, 1, "alone", 2, true);
	const struct box *shares = create_and_start(w.r, 2, "shares", 4, false);

	assert_false(held(w.r, shares)->decision.exclusive);
	is_known = true;
	services_pod_changed(&w.r->d, &known);
	wait_until(w.r, is_quiet);
	assert_true(held(w.r, shares)->decision.exclusive);
	const unsigned nr = count_lines(w.r, "journal", "\"facts\"");
	services_pod_changed(&w.r->d, &known);
	wait_until(w.r, is_quiet);
	assert_int_equal(count_lines(w.r, "journal", "\"facts\""), nr);
	finish(&w);
}

/* A container that runs on a claim which is not reserved for its pod is never refused: only the log
 * says that the container has no CPUs of the claim. */
static void a_container_that_cannot_join_its_claim_is_logged(void **state)
{
	static const enum prepared cases[] = {FOR_ANOTHER, BEHIND_FACTS, KEPT};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct row row = {.fact = "a claim",
			.spec = CLAIMS,
			.shows = 2,
			.gate = true,
			.held = HAS_CLAIM,
			.claim = cases[i]};
		struct world w = {0};

		is_known = shown_held.answered = false;
		begin(&w, &row);
		wait_until(w.r, is_settled);
		if (row.claim == FOR_ANOTHER)
			prepare(w.r, "p2");
		int saved = redirect(w.r);
		tell_facts(&w, &row);
		const bool joined = row.claim == KEPT;

		assert_int_equal(count_in_log(w.r, saved, "event=claim-not-joined"), !joined);
		assert_int_equal(count_lines(w.r, "log",
					 "level=warn event=claim-not-joined namespace=default "
					 "pod=p1 container=shares text="),
			!joined);
		finish(&w);
	}
}

/* Rows 0 and 2, likewise. Neither the kubelet nor the API server ever lists pods. */
static void a_quota_does_not_wait_for_facts_for_ever(void **state)
{
	struct world w = {0};

	(void)state;
	is_known = false;
	make_ready(&w, &rows[2]);
	runs(w.r, 1, "alone", 2, "2-3");
	runs(w.r, 2, "shares", 4, "4-7");
	w.r->d.follow.facts_wait_ms = 1;
	int saved = redirect(w.r);
	start_daemon(w.r);
	wait_until(w.r, quota_is_lifted);
	assert_int_equal(count_in_log(w.r, saved, "level=warn event=quota-without-facts"), 1);
	/* facts that come after all have their say */
	read_spec(&w, rows[0].spec);
	is_known = true;
	services_pod_changed(&w.r->d, &known);
	wait_until(w.r, is_settled);
	assert_string_equal(content(w.r, of_pod), "600000 100000");
	finish(&w);
}

/* A pod that shares out its own CPUs to both containers, to one of them, or to none. */
enum part { NO_PART, ALONE_HAS_PART, SHARES_HAS_PART, BOTH_HAVE_PART };
static const char *const parts[] = {
	[NO_PART] = OWN "'containers':[{'name':'alone'},{'name':'shares'}]",
	[ALONE_HAS_PART] = OWN "'containers':[" ALONE ",{'name':'shares'}]",
	[SHARES_HAS_PART] = OWN "'containers':[{'name':'alone'}," SHARES "]",
	[BOTH_HAVE_PART] = OWN "'containers':[" ALONE "," SHARES "]",
};

static void change_spec(struct world *w, enum part part)
{
	read_spec(w, parts[part]);
	services_pod_changed(&w->r->d, &known);
	for (unsigned i = 0; i < CONTAINERS; i++)
		assert_true(held(w->r, &w->r->box[1 + i])->decision.exclusive == (part >> i & 1));
}

/* How many containers are placed with fewer steps than their searches need, as these have parts. */
static unsigned nr_cut_short(struct world *w, enum part part, uint64_t steps)
{
	unsigned nr = 0;

	change_spec(w, NO_PART);
	w->r->d.settings.merge_visit_budget = steps;
	change_spec(w, part);
	for (unsigned i = 0; i < CONTAINERS; i++)
		nr += held(w->r, &w->r->box[1 + i])->decision.cut_short;
	return nr;
}

static void containers_whose_facts_come_together_spend_one_budget(void **state)
{
	struct world w = {0};
	uint64_t steps = 1, most;

	(void)state;
	is_known = true;
	shown_held.answered = false;
	begin(&w, &rows[0]);
	wait_until(w.r, is_settled);
	most = w.r->d.settings.merge_visit_budget;
	w.r->d.settings.topology_policy = POLICY_BEST_EFFORT;
	while (nr_cut_short(&w, ALONE_HAS_PART, steps) || nr_cut_short(&w, SHARES_HAS_PART, steps))
		assert_true(steps++ < most);
	assert_true(steps > 1); /* enough for each of them, and no more than that */
	assert_int_not_equal(nr_cut_short(&w, BOTH_HAVE_PART, steps), 0);
	assert_int_equal(nr_cut_short(&w, BOTH_HAVE_PART, most), 0);
	finish(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_comes_late_is_in_force_as_if_it_had_been_there),
		cmocka_unit_test(
			what_comes_between_create_and_start_is_in_force_once_the_container_runs),
		cmocka_unit_test(where_nobody_has_facts_a_quota_is_lifted_at_once),
		cmocka_unit_test(a_quota_that_was_lifted_is_lifted_again_while_facts_are_awaited),
		cmocka_unit_test(a_quota_does_not_wait_for_facts_for_ever),
		cmocka_unit_test(a_spec_counts_where_the_sandbox_sums_up_less),
		cmocka_unit_test(a_spec_that_comes_late_counts_once),
		cmocka_unit_test(a_container_that_cannot_join_its_claim_is_logged),
		cmocka_unit_test(containers_whose_facts_come_together_spend_one_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
