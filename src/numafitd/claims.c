/* Devices of claims (DRA): where they are, and answers that wait for them. */
#include "claims.h"
#include "daemon.h"
#include "decision_log.h"
#include "gather.h"
#include "reply.h"
#include "services_state.h"

#include <apiserver/slices.h>
#include <host/device_node.h>
#include <io/log.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>

#include <stdlib.h>
#include <string.h>

enum { CLAIM_DEVICES_MAX = 256 }; /* of a container */
/* An answer waits for half of the runtime's patience at most: on a busy machine its way there and
 * back takes long, too, and a runtime drops a plugin that is late. */
enum { PATIENCE_PARTS = 2 };
/* Pods of which it is kept how long answers have waited: the latest ones. */
enum { WAITED_PODS = 64, POD_UID_MAX = 64 };

/* How long answers about a pod have waited. */
struct waited {
	char pod_uid[POD_UID_MAX];
	uint64_t ms;
};

struct claims {
	struct daemon *d;
	struct api_slices_handler handler;
	struct api_slices *slices; /* NULL: there is no API server yet */
	struct loop_timer *look;   /* at the answer that waits */
	struct {
		bool is;
		enum nri_event event;
		char id[NODE_NAME_MAX]; /* the container's, or the sandbox's */
		char pod_uid[POD_UID_MAX];
		uint64_t came_ms; /* at the earliest */
		uint64_t since_ms, deadline_ms;
	} waiting;
	uint64_t behind_ms; /* since when what is served now may have been behind a call that
			       waited; 0: there was none */
	struct waited waited[WAITED_PODS]; /* a ring */
	unsigned nr_waited;
	uint64_t unknown[NR_CLAIMS_KNOWN]; /* containers that were decided so */
	uint64_t waits, waited_ns;
};

/* Where devices are */

const struct device_resource *claims_located(
	const struct daemon *d, const struct request *req, struct arena *a)
{
	return d->topo.this_machine ? device_nodes_of("/", &d->topo, req, a) : NULL;
}

/* Devices of one container, with their resources. */
struct claimed {
	const char *resource;
	struct device device;
};
struct claimed_list {
	struct claimed *at; /* CLAIM_DEVICES_MAX of them */
	size_t nr;
};

static void claimed_push(struct claimed_list *l, const char *resource, struct device device)
{
	if (l->nr < CLAIM_DEVICES_MAX)
		l->at[l->nr++] = (struct claimed){resource, device};
}

/* The NUMA nodes of a device that a slice has; empty: the machine has none that the driver names,
 * or the driver names none. */
static struct nodeset nodes_of_slice_device(const struct daemon *d, const struct slice_device *s)
{
	const int node =
		s->bus && d->topo.this_machine ? device_node_of_bus("/", &d->topo, s->bus) : -1;

	return s->nodes.nr ? nodeset_of_list(&d->topo.ids, s->nodes)
	       : node >= 0 ? nodeset_of((unsigned)node)
			   : (struct nodeset){0};
}

static const char *claim_device_id(const struct held_claim *claim, struct arena *a)
{
	size_t size = strlen(claim->pool) + strlen(claim->device) + sizeof "/";
	char *id = arena_alloc(a, size);
	struct text t;

	if (!id)
		return "";
	text_init(&t, id, size);
	text_add(&t, "%s/%s", claim->pool, claim->device);
	return id;
}

/* By its slice; else by its CDI names. Whether anything says where it is, be it that it is nowhere.
 */
static bool add_claim(const struct daemon *d, const struct held_claim *claim,
	struct claimed_list *l, struct arena *a)
{
	const struct claims *c = d->claims;
	const struct slice_device *slice =
		c && c->slices
			? api_slices_find(c->slices, claim->driver, claim->pool, claim->device)
			: NULL;
	const struct request names = {.cdi = claim->cdi, .nr_cdi = claim->nr_cdi};
	const struct nodeset nodes = slice ? nodes_of_slice_device(d, slice) : (struct nodeset){0};

	if (!nodeset_empty(nodes)) {
		claimed_push(l, claim->driver,
			(struct device){.id = claim_device_id(claim, a),
				.has_topology = true,
				.placed = true,
				.nodes = nodes,
				.healthy = true});
		return true;
	}
	const struct device_resource *located = claims_located(d, &names, a);
	for (size_t i = 0; located && i < located->nr; i++)
		claimed_push(l, located->name, located->device[i]);
	return slice || located;
}

static int by_resource_and_id(const void *a, const void *b)
{
	const struct claimed *x = a, *y = b;
	int rc = strcmp(x->resource, y->resource);

	return rc ? rc : strcmp(x->device.id, y->device.id);
}

/* Parts of one device may be of several claims: it is one. */
static size_t sort_once_each(struct claimed *list, size_t nr)
{
	size_t kept = 0;

	if (nr)
		qsort(list, nr, sizeof *list, by_resource_and_id);
	for (size_t i = 0; i < nr; i++)
		if (!kept || by_resource_and_id(&list[kept - 1], &list[i]))
			list[kept++] = list[i];
	return kept;
}

size_t claims_add(const struct daemon *d, const struct container_held *held,
	struct device_resource *out, size_t room, struct arena *a, enum claims_known *known)
{
	struct claimed_list l = {0};
	size_t nr = 0;

	if (held->nr_claims)
		l.at = arena_array(a, CLAIM_DEVICES_MAX, sizeof *l.at);
	for (size_t i = 0; l.at && i < held->nr_claims; i++)
		if (!add_claim(d, &held->claim[i], &l, a) && d->claims)
			*known = CLAIMS_NOT_PUBLISHED;
	l.nr = sort_once_each(l.at, l.nr);
	for (size_t i = 0, end; i < l.nr && nr < room; i = end) {
		for (end = i; end < l.nr && text_equal(l.at[end].resource, l.at[i].resource);)
			end++;
		struct device *devices = arena_array(a, end - i, sizeof *devices);
		for (size_t k = i; devices && k < end; k++)
			devices[k - i] = l.at[k].device;
		if (devices)
			out[nr++] = (struct device_resource){
				in_arena(a, l.at[i].resource), end - i, devices};
	}
	return nr;
}

void claims_count(struct daemon *d, const struct request *req)
{
	if (d->claims)
		d->claims->unknown[req->claims]++;
}

/* Answers that wait */

/* A runtime makes another call before this one is answered when it has given up on it: the kubelet
 * does so with pods that are deleted as they start. */
static void look_again(void *ctx)
{
	struct claims *c = ctx;

	c->behind_ms = c->waiting.is ? c->waiting.came_ms : 0;
	nri_conn_resume(c->d->runtime.conn);
	c->behind_ms = 0;
}

void claims_news(struct daemon *d)
{
	if (d->claims && d->claims->waiting.is)
		loop_timer_set(d->claims->look, 0);
}

void claims_let_go(struct daemon *d)
{
	if (!d->claims)
		return;
	d->settings.claims_wait_ms = d->claims->waiting.deadline_ms = 0;
	nri_conn_resume(d->runtime.conn);
}

static uint64_t pod_waited_ms(const struct claims *c, const char *pod_uid)
{
	uint64_t ms = 0;

	for (size_t i = 0; i < WAITED_PODS; i++)
		if (text_equal(c->waited[i].pod_uid, pod_uid))
			ms += c->waited[i].ms;
	return ms;
}

static uint64_t what_is_left(uint64_t all, uint64_t gone)
{
	return all > gone ? all - gone : 0;
}

/* When the call that is served now came, at the earliest. */
static uint64_t came_ms(const struct claims *c, uint64_t now_ms)
{
	return c->behind_ms ? c->behind_ms : now_ms;
}

/* How long an answer about the pod may still wait. */
static uint64_t wait_left_ms(const struct claims *c, const char *pod_uid)
{
	uint64_t bound = nri_conn_patience_ms(c->d->runtime.conn) / PATIENCE_PARTS;
	uint64_t of_pod = number_min(c->d->settings.claims_wait_ms, bound);
	uint64_t now = loop_monotonic_ms();

	return number_min(what_is_left(of_pod, pod_waited_ms(c, pod_uid)),
		what_is_left(bound, now - came_ms(c, now)));
}

static const char *id_of(enum nri_event event, const struct request *req)
{
	return event == NRI_EVENT_RUN_POD ? req->pod.sandbox_id : req->container_id;
}

/* Whether this is the event that waits; one that does so no more went with its connection. */
static bool is_waiting(const struct claims *c, enum nri_event event, const struct request *req)
{
	return c->waiting.is && c->waiting.event == event &&
	       text_equal(c->waiting.id, id_of(event, req));
}

/* False: it has a longer name than any runtime gives, and would not be recognized. */
static bool begin_to_wait(struct claims *c, enum nri_event event, const struct request *req)
{
	uint64_t now = loop_monotonic_ms();

	if (!text_copy(c->waiting.id, sizeof c->waiting.id, id_of(event, req)) ||
		!text_copy(c->waiting.pod_uid, sizeof c->waiting.pod_uid, req->pod.uid))
		return false;
	c->waiting.is = true;
	c->waiting.event = event;
	c->waiting.came_ms = came_ms(c, now);
	c->waiting.since_ms = now;
	c->waiting.deadline_ms = now + wait_left_ms(c, req->pod.uid);
	c->waits++;
	if (c->d->services->pod_resources)
		pod_resources_hurry(c->d->services->pod_resources);
	return true;
}

/* At that time. How long it has waited is taken from its pod's time. */
static uint64_t end_wait(struct claims *c, uint64_t now_ms)
{
	uint64_t waited = now_ms - c->waiting.since_ms;
	struct waited *w = &c->waited[c->nr_waited++ % WAITED_PODS];

	c->waiting.is = false;
	loop_timer_stop(c->look);
	(void)text_copy(w->pod_uid, sizeof w->pod_uid, c->waiting.pod_uid);
	w->ms = waited;
	c->waited_ns += waited * NS_PER_MS;
	return waited;
}

static void end_wait_with_answer(
	struct claims *c, const struct request *req, enum claims_known known)
{
	uint64_t waited = end_wait(c, loop_monotonic_ms());
	char pod[512];

	c->d->measured.waited_ns = waited * NS_PER_MS;
	log_line(LOG_INFO, "answer-waited", "namespace=%s pod=%s waited_ms=%llu claims=%s",
		req->pod.ns, log_text(pod, sizeof pod, req->pod.name), (unsigned long long)waited,
		claims_known_words[known]);
}

bool claims_wait(void *ctx, enum nri_event event, const struct request *req)
{
	struct daemon *d = ctx;
	struct claims *c = d->claims;
	bool starts = event == NRI_EVENT_RUN_POD;

	if (!c || !d->services || (!starts && event != NRI_EVENT_CREATE))
		return false;
	bool waiting = is_waiting(c, event, req);
	if (c->waiting.is && !waiting) /* went with its connection */
		(void)end_wait(c, number_min(loop_monotonic_ms(), c->waiting.deadline_ms));
	if (!waiting && !d->settings.claims_wait_ms)
		return false;
	enum claims_known known =
		starts ? gather_claims_of_pod(d, &req->pod, !waiting) : gather_claims(d, req);
	if (!waiting && known != CLAIMS_KNOWN && wait_left_ms(c, req->pod.uid))
		waiting = begin_to_wait(c, event, req);
	if (!waiting)
		return false;
	uint64_t now = loop_monotonic_ms();
	if (known == CLAIMS_KNOWN || now >= c->waiting.deadline_ms) {
		end_wait_with_answer(c, req, known);
		return false;
	}
	loop_timer_set(c->look, c->waiting.deadline_ms - now);
	return true;
}

/* Life */

static void on_slices_changed(void *ctx)
{
	const struct claims *c = ctx;

	claims_news(c->d);
}

void claims_start(struct daemon *d)
{
	bool decides = d->settings.mode == MODE_MANAGE || d->settings.mode == MODE_SHADOW;
	struct claims *c;

	if (!d->settings.device_claims || !decides || d->claims)
		return;
	c = d->claims = xcalloc(1, sizeof *c);
	c->d = d;
	c->look = loop_timer_new(d->loop, look_again, c);
}

void claims_watch(struct daemon *d, struct api *a)
{
	struct claims *c = d->claims;

	if (!c)
		return;
	c->handler = (struct api_slices_handler){c, on_slices_changed, log_event};
	c->slices = api_slices_new(a, d->node_name, &c->handler);
}

void claims_stop(struct daemon *d)
{
	struct claims *c = steal(d->claims);

	if (!c)
		return;
	api_slices_close(c->slices);
	loop_timer_close(c->look);
	free(c);
}

bool claims_status(const struct daemon *d, struct status_claims *out)
{
	const struct claims *c = d->claims;
	struct slice_counts counts = {0};

	if (!c)
		return false;
	if (c->slices)
		counts = api_slices_count(c->slices);
	*out = (struct status_claims){
		.slices_watch = c->slices && api_slices_synced(c->slices) ? "up" : "waiting",
		.slices = counts.slices,
		.incomplete_pools = counts.incomplete_pools,
		.devices = counts.devices,
		.unknown = {c->unknown[CLAIMS_NOT_SHOWN_YET], c->unknown[CLAIMS_NOT_PUBLISHED]},
		.waits = c->waits,
		.waited_ns = c->waited_ns,
	};
	return true;
}
