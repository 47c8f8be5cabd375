/* Devices of claims (DRA): what the kubelet and the drivers' slices say of them goes into the
 * decision; what is not known is said, and may be waited for. */
#include <apiserver/slices.h>
#include <dra-driver/driver.h>
#include <kubelet/pod_resources.h>
#include <kubelet/pods.h>
#include <nri/nri_conn.h>
#include <numafit/mem.h>
#include <numafit/shares.h>
#include <numafit/text.h>
#include <numafitd/claims.h>
#include <numafitd/cluster.h>
#include <numafitd/daemon.h>
#include <numafitd/gather.h>
#include <numafitd/services_state.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ARENA_MAX = 1 << 20 };

/* What the others have said, in the place of their clients. */

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
	return true;
}

static struct {
	const struct container_held *container; /* of pod ml/train */
	size_t nr;
	uint64_t asked, age;
} kubelet;

uint64_t pod_resources_refresh(struct pod_resources *r)
{
	(void)r;
	return ++kubelet.asked;
}

uint64_t pod_resources_age(const struct pod_resources *r)
{
	(void)r;
	return kubelet.age;
}

const struct container_held *pod_resources_find(
	const struct pod_resources *r, const char *ns, const char *pod, const char *container)
{
	(void)r;
	for (size_t i = 0; i < kubelet.nr; i++)
		if (text_equal(ns, "ml") && text_equal(pod, "train") &&
			text_equal(kubelet.container[i].name, container))
			return &kubelet.container[i];
	return NULL;
}

const struct pods_held *pod_resources_held(const struct pod_resources *r)
{
	static const struct pods_held none;

	(void)r;
	return &none;
}

static unsigned hurried;

void pod_resources_hurry(struct pod_resources *r)
{
	(void)r;
	hurried++;
}

static const struct slice_device *published;
static size_t nr_published;
static const struct api_slices_handler *slices_handler;

struct api_slices *api_slices_new(
	struct api *a, const char *node, const struct api_slices_handler *handler)
{
	(void)a, (void)node;
	slices_handler = handler;
	return (struct api_slices *)&published;
}

const struct slice_device *api_slices_find(
	const struct api_slices *s, const char *driver, const char *pool, const char *device)
{
	(void)s;
	for (size_t i = 0; i < nr_published; i++)
		if (text_equal(driver, "gpu.example.com") && text_equal(pool, "n1") &&
			text_equal(published[i].name, device))
			return &published[i];
	return NULL;
}

struct slice_counts api_slices_count(const struct api_slices *s)
{
	(void)s;
	return (struct slice_counts){.slices = 1, .devices = nr_published};
}

bool api_slices_synced(const struct api_slices *s)
{
	(void)s;
	return true;
}

void api_slices_close(struct api_slices *s)
{
	(void)s;
}

static uint64_t patience_ms;
static unsigned resumed;
static struct loop *running;
static void (*on_resume)(void); /* what the runtime's connection does then; NULL: nothing */

uint64_t nri_conn_patience_ms(const struct nri_conn *c)
{
	(void)c;
	return patience_ms;
}

static bool shows_cdi = true;
bool nri_conn_shows_cdi(const struct nri_conn *c)
{
	(void)c;
	return shows_cdi;
}

bool nri_conn_sets_memory_policies(const struct nri_conn *c)
{
	(void)c;
	return true;
}

void cluster_note_ignored_wish(const struct daemon *d, const struct pod *pod, const struct ask *ask,
	const char *annotation, const char *odd)
{
	(void)d, (void)pod, (void)ask, (void)annotation, (void)odd;
}

void dra_note_create(struct dra *v, const struct request *req)
{
	(void)v, (void)req;
}

void dra_note_pod(struct dra *v, const struct pod *pod)
{
	(void)v, (void)pod;
}

void nri_conn_resume(struct nri_conn *c)
{
	(void)c;
	resumed++;
	if (on_resume)
		on_resume();
	loop_stop(running);
}

/* A pod of two containers, the first one with claims. */

static const struct ask asks[] = {{.name = "app", .has_claims = true}, {.name = "side"}};

#define CLAIM(device_)                                                                             \
	{                                                                                          \
		"ml", "c", "gpu.example.com", "n1", device_, "", NULL, 0                           \
	}
static const struct held_claim gpu0_and_gpu1[] = {CLAIM("gpu1"), CLAIM("gpu0"), CLAIM("gpu1")};
static const struct held_claim other[] = {
	{"ml", "c", "nic.example.com", "n1", "gpu0", "", NULL, 0}};
static const int64_t ids[] = {4, 6, 63, 700};
static const struct slice_device gpus[] = {{"gpu0", {ids, 1}, NULL}, {"gpu1", {ids + 1, 1}, NULL},
	{"nowhere", {0}, NULL}, {"elsewhere", {ids + 3, 1}, NULL}, {"bus", {0}, "0000:81:00.0"},
	{"several", {ids, 4}, NULL}};

struct world {
	struct daemon d;
	struct services services;
	struct arena a;
};

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);

	arena_init(&w->a, ARENA_MAX);
	settings_init(&w->d.settings);
	w->d.settings.pod_resources = w->d.settings.device_claims = true;
	w->d.services = &w->services;
	w->d.loop = running = loop_new();
	w->services.d = &w->d;
	w->services.pods = (struct pods *)&w->services; /* any but NULL */
	w->services.pod_resources = (struct pod_resources *)&w->services;
	for (unsigned n = 0; n < 8; n++)
		assert_int_equal(topo_add_node(&w->d.topo, 2 * n, NULL), n);
	is_known = true;
	known = (struct known_pod){
		.pod = {.uid = "u", .ns = "ml", .name = "train", .nr = 2, .container = asks}};
	kubelet.container = NULL;
	kubelet.nr = 0;
	kubelet.asked = kubelet.age = 1;
	published = gpus;
	nr_published = sizeof gpus / sizeof *gpus;
	patience_ms = 2000;
	resumed = hurried = 0;
	on_resume = NULL;
	claims_start(&w->d);
	claims_watch(&w->d, NULL);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	claims_stop(&w->d);
	engine_free(w->d.engine);
	shows_cdi = true;
	loop_free(w->d.loop);
	arena_fini(&w->a);
	free(w);
	return 0;
}

static struct container_held app;

/* By its latest answer the kubelet has given these to the container. */
static void kubelet_shows(const struct held_claim *claims, size_t nr)
{
	app = (struct container_held){.name = "app", .claim = claims, .nr_claims = nr};
	kubelet.container = &app;
	kubelet.nr = 1;
	kubelet.age = kubelet.asked;
}

static struct request create(const char *container)
{
	return (struct request){.container_id = "c",
		.ask = {.name = container},
		.pod = {.sandbox_id = "s", .uid = "u", .ns = "ml", .name = "train"},
		.cpus = "",
		.mems = ""};
}

static struct request gathered(struct world *w, const char *container)
{
	struct request req = create(container);

	gather_container(&w->d, &req, &w->a);
	return req;
}

static void devices_of_claims_are_attached_where_their_slice_says(void **state)
{
	struct world *w = *state;

	kubelet_shows(gpu0_and_gpu1, 3);
	struct request req = gathered(w, "app");
	assert_int_equal(req.claims, CLAIMS_KNOWN);
	assert_int_equal(req.pod.nr_attached, 1);
	const struct device_resource *r = req.pod.attached;
	assert_string_equal(r->name, "gpu.example.com");
	assert_int_equal(r->nr, 2); /* gpu1 is shared by two claims */
	assert_string_equal(r->device[0].id, "n1/gpu0");
	assert_string_equal(r->device[1].id, "n1/gpu1");
	assert_true(nodeset_equal(r->device[0].nodes, nodeset_of(2))); /* NUMA node 4 */
	assert_true(nodeset_equal(r->device[1].nodes, nodeset_of(3)));
	assert_true(r->device[0].has_topology && r->device[0].placed && r->device[0].healthy);
}

/* KEP-6072: a list of NUMA nodes in no order; this machine has only two of its elements. */
static void a_device_of_several_numa_nodes_is_on_all_that_the_machine_has(void **state)
{
	static const struct held_claim several[] = {CLAIM("several")};
	struct world *w = *state;

	kubelet_shows(several, 1);
	struct request req = gathered(w, "app");
	assert_int_equal(req.pod.nr_attached, 1);
	assert_true(nodeset_equal(req.pod.attached->device->nodes,
		nodeset_or(nodeset_of(2), nodeset_of(3)))); /* NUMA nodes 4 and 6 */
}

static void a_device_without_a_node_is_known_and_not_attached(void **state)
{
	static const struct held_claim claims[] = {
		CLAIM("nowhere"), CLAIM("elsewhere"), CLAIM("bus")};
	struct world *w = *state;

	kubelet_shows(claims, 3);
	struct request req = gathered(w, "app");
	assert_int_equal(req.claims, CLAIMS_KNOWN);
	assert_int_equal(req.pod.nr_attached, 0);
}

static void a_device_that_no_slice_has_is_said_to_be_unknown(void **state)
{
	struct world *w = *state;

	kubelet_shows(other, 1);
	struct request req = gathered(w, "app");
	assert_int_equal(req.claims, CLAIMS_NOT_PUBLISHED);
	assert_int_equal(req.pod.nr_attached, 0);
	claims_count(&w->d, &req);
	struct status_claims status;
	assert_true(claims_status(&w->d, &status));
	assert_int_equal(status.unknown[CLAIMS_NOT_PUBLISHED - 1], 1);
	assert_int_equal(status.unknown[CLAIMS_NOT_SHOWN_YET - 1], 0);
}

static void claims_that_the_kubelet_has_not_shown_are_said_to_be_unknown(void **state)
{
	struct world *w = *state;
	struct pod pod = create("app").pod;

	gather_pod(&w->d, &pod, &w->a); /* its sandbox starts: the kubelet is asked */
	assert_int_equal(gathered(w, "app").claims, CLAIMS_NOT_SHOWN_YET);
	assert_int_equal(gathered(w, "side").claims, CLAIMS_KNOWN);
	/* an answer to an earlier question, from before the claims were prepared */
	kubelet_shows(NULL, 0);
	kubelet.age = 1;
	assert_int_equal(gathered(w, "app").claims, CLAIMS_NOT_SHOWN_YET);
	kubelet_shows(gpu0_and_gpu1, 3);
	assert_int_equal(gathered(w, "app").claims, CLAIMS_KNOWN);
	/* what the kubelet does not show after that is not there: an init container's */
	kubelet_shows(NULL, 0);
	assert_int_equal(gathered(w, "app").claims, CLAIMS_KNOWN);
}

static void a_container_of_an_unknown_pod_may_have_claims_if_it_has_cdi_devices(void **state)
{
	static const char *const cdi[] = {"gpu.example.com/claim=1"};
	struct world *w = *state;
	struct pod pod = create("app").pod;
	struct request req = create("app");

	is_known = false;
	gather_pod(&w->d, &pod, &w->a);
	gather_container(&w->d, &req, &w->a);
	assert_int_equal(req.claims, CLAIMS_KNOWN);
	req = create("app");
	req.cdi = cdi;
	req.nr_cdi = 1;
	gather_container(&w->d, &req, &w->a);
	assert_int_equal(req.claims, CLAIMS_NOT_SHOWN_YET);
}

static void a_pod_is_decided_as_a_whole_once_its_claims_are_known(void **state)
{
	static const struct {
		const struct held_claim *claims;
		size_t nr;
		bool whole;
	} cases[] = {
		{NULL, 0, false},
		{other, 1, false},
		{gpu0_and_gpu1, 3, true},
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct pod pod = create("app").pod;

		kubelet_shows(cases[i].claims, cases[i].nr);
		gather_pod(&w->d, &pod, &w->a);
		assert_int_equal(pod.container != NULL, cases[i].whole);
	}
	struct pod pod = create("app").pod;
	gather_pod(&w->d, &pod, &w->a);
	assert_int_equal(pod.nr_attached, 1);
	assert_int_equal(pod.container[0].nr_devices, 1);
	assert_int_equal(pod.container[0].device[0].count, 2);
	assert_int_equal(pod.container[1].nr_devices, 0);
}

static void a_daemon_that_decides_nothing_watches_no_slices(void **state)
{
	static const enum mode modes[] = {MODE_OFF, MODE_RELEASE};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		claims_stop(&w->d);
		w->d.settings.mode = modes[i];
		claims_start(&w->d);
		assert_null(w->d.claims);
	}
}

static void nothing_of_it_happens_where_it_is_off(void **state)
{
	struct world *w = *state;
	struct pod pod = create("app").pod;
	struct status_claims status;

	claims_stop(&w->d);
	w->d.settings.device_claims = false;
	w->d.settings.claims_wait_ms = 1000;
	claims_start(&w->d);
	assert_null(w->d.claims);
	assert_false(claims_status(&w->d, &status));
	kubelet_shows(other, 1);
	struct request req = gathered(w, "app");
	assert_int_equal(req.claims, CLAIMS_KNOWN);
	assert_false(claims_wait(&w->d, NRI_EVENT_CREATE, &req));
	gather_pod(&w->d, &pod, &w->a);
	assert_non_null(pod.container);
}

/* Whether it has devices: those that cannot be seen may be there */

static void devices_of_any_kind_are_noted_and_what_was_asked_for_and_not_shown_counts(void **state)
{
	static const struct held_device nic[] = {{.resource = "example.com/nic", .id = "0"}},
					token[] = {{.resource = "numafit.io/cpu", .id = "n0-0"}};
	static const struct {
		bool is_known, is_asked, has_answered, is_shown;
		const char *container;
		const struct held_device *device;
		bool has;
	} cases[] = {
		{true, true, true, false, "side", NULL, false}, /* by its spec */
		{true, true, true, false, "app", NULL, true},
		{false, false, false, false, "app", NULL, false}, /* nobody is asked */
		{false, true, false, false, "app", NULL, true},
		{false, true, true, false, "app", NULL, true},
		{false, true, true, true, "app", NULL, false},
		{false, true, true, true, "app", token, false},
		{false, true, true, true, "app", nic, true},
	};
	struct world *w = *state;
	struct pod_resources *client = w->d.services->pod_resources;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct request there = create(cases[i].container);

		is_known = cases[i].is_known;
		kubelet_shows(NULL, 0);
		app.device = cases[i].device;
		app.nr_devices = cases[i].device != NULL;
		kubelet.nr = cases[i].is_shown;
		kubelet.age = cases[i].has_answered ? UINT64_MAX : 0;
		w->d.services->pod_resources = cases[i].is_asked ? client : NULL;
		w->d.settings.pod_resources = cases[i].is_asked;
		gather_running(&w->d, &there, 1, &w->a);
		assert_int_equal(there.ask.has_devices, cases[i].has);
		there = gathered(w, cases[i].container);
		assert_int_equal(request_has_devices(&there), cases[i].has);
	}
}

/* Claims of CPUs and memory, of a runtime that does not show CDI devices */

static int recorded(void *ctx, const struct record *r, struct err *e)
{
	(void)ctx, (void)r, (void)e;
	return 0;
}

/* A claim is prepared for the pod. */
static void prepare_for_pod(struct world *w)
{
	static const struct engine_hooks hooks = {.record = recorded};
	const struct claim_share share = {
		.request = "r", .pool = "n1", .device = "numa0", .cpus = 2};
	const struct resource_claim claim = {.uid = "k",
		.ns = "ml",
		.name = "two",
		.nr = 1,
		.share = &share,
		.nr_pods = 1,
		.pod_uid = (const char *const[]){"u"}};
	struct decision dec = {0};
	struct err e = {0};

	for (unsigned cpu = 0; cpu < 16; cpu++)
		assert_int_equal(topo_add_cpu(&w->d.topo, cpu, cpu / 2, cpu, 0, 0, NULL), 0);
	assert_int_equal(topo_seal(&w->d.topo, NULL), 0);
	w->d.engine = engine_new(&w->d.topo, &w->d.settings, &hooks);
	if (engine_prepare(w->d.engine, 0, &claim, &dec, &e) < 0)
		fail_msg("%s %s", dec.message, e.text);
}

/* A container was created while numafitd was away. */
static void a_container_that_runs_has_the_shares_that_the_kubelet_shows(void **state)
{
	static const char *const cdi[] = {"numafit.io/claim=k-0"};
	static const struct held_claim two[] = {
		{"ml", "two", "numafit.io", "n1", "numa0", "", cdi, 1}};
	static const struct {
		bool is_known;
		const char *container, *shares;
	} cases[] = {
		{true, "app", "k/0"}, {true, "side", NULL}, /* its spec has no claim */
		{true, "another", NULL}, {false, "app", "k/0"},
		{false, "side", ""}, /* nobody says that it has none */
	};
	struct world *w = *state;

	prepare_for_pod(w);
	shows_cdi = false;
	kubelet_shows(two, 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct request there = create(cases[i].container);

		is_known = cases[i].is_known;
		gather_running(&w->d, &there, 1, &w->a);
		assert_int_equal(!there.shares, !cases[i].shares);
		if (cases[i].shares)
			assert_string_equal(there.shares, cases[i].shares);
		there = gathered(w, cases[i].container);
		assert_int_equal(!there.shares, !cases[i].shares);
	}
}

/* Waiting */

static bool waits_for(struct world *w, enum nri_event event)
{
	const struct request req = create("app");

	return claims_wait(&w->d, event, &req);
}

static struct status_claims status_of(struct world *w)
{
	struct status_claims status;

	assert_true(claims_status(&w->d, &status));
	return status;
}

static void without_the_setting_no_answer_waits(void **state)
{
	struct world *w = *state;

	assert_false(waits_for(w, NRI_EVENT_RUN_POD));
	assert_false(waits_for(w, NRI_EVENT_CREATE));
	assert_int_equal(status_of(w).waits, 0);
}

static void a_pods_start_waits_until_its_claims_are_shown(void **state)
{
	struct world *w = *state;

	w->d.settings.claims_wait_ms = 1000;
	assert_true(waits_for(w, NRI_EVENT_RUN_POD));
	assert_int_equal(kubelet.asked, 3);           /* for the pod, and for its sandbox */
	assert_true(waits_for(w, NRI_EVENT_RUN_POD)); /* looked at again */
	assert_int_equal(kubelet.asked, 3);
	kubelet_shows(gpu0_and_gpu1, 3);
	claims_news(&w->d);
	assert_int_equal(resumed, 0); /* not from within somebody else's callback */
	loop_run(w->d.loop);
	assert_int_equal(resumed, 1);
	assert_false(waits_for(w, NRI_EVENT_RUN_POD));
	assert_int_equal(status_of(w).waits, 1);
	assert_false(waits_for(w, NRI_EVENT_CREATE));
	claims_news(&w->d);
	assert_int_equal(status_of(w).waits, 1);
}

static void a_create_waits_until_a_slice_has_the_device(void **state)
{
	struct world *w = *state;

	w->d.settings.claims_wait_ms = 1000;
	nr_published = 0;
	kubelet_shows(gpu0_and_gpu1, 3);
	assert_true(waits_for(w, NRI_EVENT_CREATE));
	nr_published = sizeof gpus / sizeof *gpus;
	slices_handler->changed(slices_handler->ctx);
	loop_run(w->d.loop);
	assert_int_equal(resumed, 1);
	assert_false(waits_for(w, NRI_EVENT_CREATE));
}

static void other_events_never_wait(void **state)
{
	struct world *w = *state;

	w->d.settings.claims_wait_ms = 1000;
	nr_published = 0;
	kubelet_shows(gpu0_and_gpu1, 3);
	for (enum nri_event e = NRI_EVENT_NONE; e < NR_NRI_EVENTS; e++)
		assert_int_equal(waits_for(w, e), e == NRI_EVENT_RUN_POD || e == NRI_EVENT_CREATE);
}

static void an_answer_waits_as_long_as_the_setting_says_and_no_longer(void **state)
{
	enum { WAIT_MS = 30 };
	struct world *w = *state;

	w->d.settings.claims_wait_ms = WAIT_MS;
	nr_published = 0;
	kubelet_shows(gpu0_and_gpu1, 3);
	uint64_t began = loop_monotonic_ms();
	assert_true(waits_for(w, NRI_EVENT_CREATE));
	do
		loop_run(w->d.loop); /* until it is looked at again */
	while (waits_for(w, NRI_EVENT_CREATE));
	assert_true(loop_monotonic_ms() - began >= WAIT_MS);
	/* the pod has waited: neither its next container nor this one does again */
	assert_false(waits_for(w, NRI_EVENT_CREATE));
	assert_false(waits_for(w, NRI_EVENT_RUN_POD));
	assert_int_equal(status_of(w).waits, 1);
	assert_true(status_of(w).waited_ns >= WAIT_MS * UINT64_C(1000000));
	assert_int_equal(w->d.measured.waited_ns, status_of(w).waited_ns);
}

static void an_answer_does_not_wait_beyond_the_runtimes_patience(void **state)
{
	struct world *w = *state;

	w->d.settings.claims_wait_ms = 1500;
	nr_published = 0;
	kubelet_shows(gpu0_and_gpu1, 3);
	patience_ms = 1; /* half of it is left to the answer's way */
	assert_false(waits_for(w, NRI_EVENT_CREATE));
	patience_ms = 1000;
	assert_true(waits_for(w, NRI_EVENT_CREATE));
	assert_int_equal(hurried, 1);
}

/* The runtime is gone, or has dropped us, while an answer waited. */
static void an_event_of_a_new_connection_does_not_take_over_the_wait_of_another(void **state)
{
	struct world *w = *state;
	struct request req = create("app");

	w->d.settings.claims_wait_ms = 1000;
	nr_published = 0;
	kubelet_shows(gpu0_and_gpu1, 3);
	assert_true(waits_for(w, NRI_EVENT_CREATE));
	req.container_id = "d";
	req.ask.name = "side";
	assert_false(claims_wait(&w->d, NRI_EVENT_CREATE, &req));
	req.ask.name = "app";
	assert_true(claims_wait(&w->d, NRI_EVENT_CREATE, &req));
	assert_int_equal(status_of(w).waits, 2);
}

/* Of a pod that keeps failing this way no answer may be late again and again. */
static void what_waited_when_its_connection_ended_is_taken_from_its_pods_time(void **state)
{
	enum { WAIT_MS = 30 };
	struct world *w = *state;
	struct request req = create("app");

	w->d.settings.claims_wait_ms = WAIT_MS;
	nr_published = 0;
	kubelet_shows(gpu0_and_gpu1, 3);
	assert_true(waits_for(w, NRI_EVENT_RUN_POD));
	uint64_t began = loop_monotonic_ms();
	loop_run(w->d.loop); /* at its time it is there no more: nobody answers it */
	while (loop_monotonic_ms() - began < WAIT_MS)
		; /* a timer may be a moment early */
	req.container_id = "d";
	assert_false(claims_wait(&w->d, NRI_EVENT_CREATE, &req));
	assert_int_equal(status_of(w).waits, 1);
	assert_true(status_of(w).waited_ns >= WAIT_MS * UINT64_C(1000000));
}

/* A runtime that has given up on one call makes the next, which is then behind the first. */
static struct world *of_resume;
static bool first_waits, next_waits;

static void serve_one_and_the_next(void)
{
	static const char *const cdi[] = {"gpu.example.com/claim=1"};
	struct request next = create("app");

	next.container_id = "next";
	next.pod = (struct pod){.sandbox_id = "t", .uid = "v", .ns = "ml", .name = "infer"};
	next.cdi = cdi;
	next.nr_cdi = 1;
	first_waits = waits_for(of_resume, NRI_EVENT_CREATE);
	if (!first_waits)
		next_waits = claims_wait(&of_resume->d, NRI_EVENT_CREATE, &next);
}

static void a_call_that_was_behind_one_that_waited_has_waited_too(void **state)
{
	static const struct {
		uint64_t patience_ms;
		bool next_waits;
	} cases[] = {
		{60, false},    /* half of it has gone by */
		{600000, true}, /* there is time left */
	};
	struct world *w = of_resume = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		claims_stop(&w->d);
		claims_start(&w->d);
		w->d.settings.claims_wait_ms = 30;
		patience_ms = cases[i].patience_ms;
		kubelet.age = 0;
		on_resume = NULL;
		assert_true(waits_for(w, NRI_EVENT_CREATE));
		on_resume = serve_one_and_the_next;
		first_waits = true;
		while (first_waits)
			loop_run(w->d.loop);
		assert_int_equal(next_waits, cases[i].next_waits);
	}
}

static void who_has_a_longer_name_than_can_be_remembered_does_not_wait(void **state)
{
	char name[512] = "";
	struct world *w = *state;
	struct request req = create("app");

	w->d.settings.claims_wait_ms = 1000;
	nr_published = 0;
	kubelet_shows(gpu0_and_gpu1, 3);
	memset(name, 'c', sizeof name - 1);
	req.container_id = name;
	assert_false(claims_wait(&w->d, NRI_EVENT_CREATE, &req));
	req = create("app");
	known.pod.uid = req.pod.uid = name;
	assert_false(claims_wait(&w->d, NRI_EVENT_CREATE, &req));
	assert_int_equal(status_of(w).waits, 0);
}

#define IN_WORLD(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(devices_of_claims_are_attached_where_their_slice_says),
		IN_WORLD(a_device_of_several_numa_nodes_is_on_all_that_the_machine_has),
		IN_WORLD(a_device_without_a_node_is_known_and_not_attached),
		IN_WORLD(a_device_that_no_slice_has_is_said_to_be_unknown),
		IN_WORLD(claims_that_the_kubelet_has_not_shown_are_said_to_be_unknown),
		IN_WORLD(a_container_of_an_unknown_pod_may_have_claims_if_it_has_cdi_devices),
		IN_WORLD(a_pod_is_decided_as_a_whole_once_its_claims_are_known),
		IN_WORLD(a_daemon_that_decides_nothing_watches_no_slices),
		IN_WORLD(nothing_of_it_happens_where_it_is_off),
		IN_WORLD(devices_of_any_kind_are_noted_and_what_was_asked_for_and_not_shown_counts),
		IN_WORLD(a_container_that_runs_has_the_shares_that_the_kubelet_shows),
		IN_WORLD(without_the_setting_no_answer_waits),
		IN_WORLD(a_pods_start_waits_until_its_claims_are_shown),
		IN_WORLD(a_create_waits_until_a_slice_has_the_device),
		IN_WORLD(other_events_never_wait),
		IN_WORLD(an_answer_waits_as_long_as_the_setting_says_and_no_longer),
		IN_WORLD(an_answer_does_not_wait_beyond_the_runtimes_patience),
		IN_WORLD(an_event_of_a_new_connection_does_not_take_over_the_wait_of_another),
		IN_WORLD(what_waited_when_its_connection_ended_is_taken_from_its_pods_time),
		IN_WORLD(a_call_that_was_behind_one_that_waited_has_waited_too),
		IN_WORLD(who_has_a_longer_name_than_can_be_remembered_does_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
