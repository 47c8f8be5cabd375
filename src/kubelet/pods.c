#include <kubelet/pods.h>

#include <assert.h>
#include <errno.h>
#include <kubelet/retry.h>
#include <numafit/text.h>
#include <numafit/vec.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

enum {
	NS_PER_MS = 1000000,
	ODD_MAX = 16 /* reasons remembered, so that each is told once */
};

/* A pod as it was told last: one block, just as large as what is kept of it. */
struct known {
	struct pods_pod pod;
	uint64_t watch; /* the last one that told of it */
	alignas(max_align_t) char memory[];
};

struct pods {
	struct rpc_pump *pump;
	const char *socket;
	unsigned retry_max_ms;
	const struct pods_handler *handler;
	struct retry *retry;
	struct rpc_call *call; /* the watch; NULL: there is none */
	uint64_t watch;        /* its number */
	bool synced;
	uint64_t synced_ns; /* since when */
	struct {
		VEC(struct known *);
	} known; /* ascending by uid */
	char odd[ODD_MAX][sizeof((struct err *)0)->text];
	unsigned nr_odd; /* counts on, the oldest are overwritten */
};

/* What is kept of a pod: the decoder's memory has all of its bytes, and the parts that nobody knows
 * a second time. */

static const char *copy_string(const char *s, struct arena *a)
{
	return arena_strndup(a, s, strlen(s));
}

static const struct container_ask *copy_containers(const struct pod_ask *from, struct arena *a)
{
	struct container_ask *list = arena_array(a, from->nr, sizeof *list);

	for (unsigned i = 0; list && i < from->nr; i++) {
		list[i] = from->container[i];
		list[i].name = copy_string(list[i].name, a);
	}
	return list;
}

static const struct pod_ask *copy_ask(const struct pod_ask *from, struct arena *a)
{
	struct pod_ask *ask = arena_alloc(a, sizeof *ask);

	if (!ask)
		return NULL;
	*ask = *from;
	ask->uid = copy_string(from->uid, a);
	ask->container = copy_containers(from, a);
	return ask;
}

static const char *const *copy_resources(const struct pods_pod *from, struct arena *a)
{
	const char **list = arena_array(a, from->nr_resources, sizeof *list);

	for (unsigned i = 0; list && i < from->nr_resources; i++)
		list[i] = copy_string(from->resource[i], a);
	return list;
}

static bool is_ours(const struct key_value *annotation)
{
	return strncmp(annotation->key, PODS_ANNOTATIONS, sizeof PODS_ANNOTATIONS - 1) == 0;
}

static const struct key_value *copy_annotations(const struct pod *from, struct arena *a, size_t *nr)
{
	size_t kept = 0;

	for (size_t i = 0; i < from->nr_annotations; i++)
		kept += is_ours(&from->annotations[i]);
	struct key_value *list = arena_array(a, kept, sizeof *list);
	*nr = 0;
	for (size_t i = 0; list && i < from->nr_annotations; i++)
		if (is_ours(&from->annotations[i]))
			list[(*nr)++] = (struct key_value){copy_string(from->annotations[i].key, a),
				copy_string(from->annotations[i].value, a)};
	return list;
}

/* Takes from *a the same each time; where it is too small, *to is of no use. */
static void copy_pod(const struct pods_pod *from, struct arena *a, struct pods_pod *to)
{
	*to = *from;
	to->pod.ns = copy_string(from->pod.ns, a);
	to->pod.name = copy_string(from->pod.name, a);
	to->pod.ask = copy_ask(from->pod.ask, a);
	to->pod.uid = to->pod.ask ? to->pod.ask->uid : NULL;
	to->pod.annotations = copy_annotations(&from->pod, a, &to->pod.nr_annotations);
	to->resource = copy_resources(from, a);
}

static struct known *known_new(const struct pods_pod *from, uint64_t watch)
{
	struct pods_pod measured;
	struct arena a;

	arena_init(&a, SIZE_MAX);
	copy_pod(from, &a, &measured);
	size_t bytes = a.given;
	arena_fini(&a);

	struct known *k = xcalloc(1, sizeof *k + bytes);
	arena_init_fixed(&a, k->memory, bytes);
	copy_pod(from, &a, &k->pod);
	assert(a.given == bytes);
	k->watch = watch;
	return k;
}

/* Whether two pods ask for the same */

static bool same_containers(const struct container_ask *x, const struct container_ask *y)
{
	bool same = text_equal(x->name, y->name) && x->kind == y->kind && x->tokens == y->tokens &&
		    x->cpu_milli == y->cpu_milli && x->nr_memory == y->nr_memory &&
		    x->nr_devices == y->nr_devices;

	for (unsigned i = 0; same && i < x->nr_memory; i++)
		same = x->memory[i].page_bytes == y->memory[i].page_bytes &&
		       x->memory[i].bytes == y->memory[i].bytes;
	for (unsigned i = 0; same && i < x->nr_devices; i++)
		same = x->device[i].resource == y->device[i].resource &&
		       x->device[i].count == y->device[i].count;
	return same;
}

static bool same_asks(const struct pods_pod *x, const struct pods_pod *y)
{
	const struct pod_ask *a = x->pod.ask, *b = y->pod.ask;
	bool same = a->qos == b->qos && a->pod_level == b->pod_level && a->nr == b->nr &&
		    x->nr_resources == y->nr_resources;

	for (unsigned i = 0; same && i < a->nr; i++)
		same = same_containers(&a->container[i], &b->container[i]);
	for (unsigned i = 0; same && i < x->nr_resources; i++)
		same = text_equal(x->resource[i], y->resource[i]);
	return same;
}

/* The index */

/* Where the pod is, or is to be. */
static size_t place_of(const struct pods *p, const char *uid)
{
	size_t low = 0, high = p->known.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(p->known.at[middle]->pod.pod.uid, uid) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct pods *p, size_t i, const char *uid)
{
	return i < p->known.nr && text_equal(p->known.at[i]->pod.pod.uid, uid);
}

static void keep(struct pods *p, const struct pods_pod *pod)
{
	size_t i = place_of(p, pod->pod.uid);
	bool was_known = is_at(p, i, pod->pod.uid);
	bool same = was_known && same_asks(&p->known.at[i]->pod, pod);

	if (was_known)
		free(p->known.at[i]);
	else
		(void)vec_insert(&p->known, i);
	p->known.at[i] = known_new(pod, p->watch);
	if (!same && p->handler->changed)
		p->handler->changed(p->handler->ctx, &p->known.at[i]->pod);
}

static void drop(struct pods *p, const struct pods_pod *pod)
{
	size_t i = place_of(p, pod->pod.uid);

	if (!is_at(p, i, pod->pod.uid))
		return;
	free(p->known.at[i]);
	vec_remove(&p->known, i);
}

static void drop_untold(struct pods *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->known.nr; i++) {
		if (p->known.at[i]->watch == p->watch)
			p->known.at[kept++] = p->known.at[i];
		else
			free(p->known.at[i]);
	}
	p->known.nr = kept;
}

/* The watch */

static void tell_odd(struct pods *p, const struct err *e)
{
	for (unsigned i = 0; i < ODD_MAX; i++)
		if (text_equal(p->odd[i], e->text))
			return;
	char *place = p->odd[p->nr_odd++ % ODD_MAX];
	(void)text_copy(place, sizeof p->odd[0], e->text);
	p->handler->on_event(p->handler->ctx, true, "pods-api-odd-pod", place);
}

static void on_synced(struct pods *p)
{
	char text[sizeof "18446744073709551615 pods"];

	if (p->synced)
		return;
	p->synced = true;
	p->synced_ns = loop_monotonic_ns();
	drop_untold(p);
	(void)snprintf(text, sizeof text, "%zu pods", p->known.nr);
	retry_tell(p->retry, false, "pods-api-synced", 0, text);
}

static void on_pod(struct pods *p, const struct pods_event *event, struct arena *a)
{
	struct pods_pod pod;
	struct err e;

	if (pods_pod_decode(event->pod, a, &pod, &e) < 0)
		tell_odd(p, &e);
	else if (event->type == PODS_DELETED)
		drop(p, &pod);
	else
		keep(p, &pod);
}

static void on_message(void *ctx, const void *data, size_t len)
{
	struct pods *p = ctx;
	struct pods_event event;
	struct arena a;
	struct err e;

	arena_init(&a, PODS_MEMORY_MAX);
	if (pods_event_decode((struct blob){data, len}, &a, &event, &e) < 0)
		tell_odd(p, &e);
	else if (event.type == PODS_SYNCED)
		on_synced(p);
	else if (event.type != PODS_UNKNOWN)
		on_pod(p, &event, &a);
	arena_fini(&a);
}

/* A server that ends each watch as soon as it is synced is not asked ten times a second: only what
 * has lasted for as long as the longest delay starts the delays over. A kubelet that restarts is
 * another matter, its socket is made anew. */
static void lose(struct pods *p, enum rpc_code code, const char *text)
{
	uint64_t lasted_ms = (loop_monotonic_ns() - p->synced_ns) / NS_PER_MS;

	p->synced = false;
	if (lasted_ms >= p->retry_max_ms)
		retry_reset(p->retry);
	retry_tell(p->retry, false, "pods-api-lost", (int)code, text);
	retry_later(p->retry);
}

static void on_ended(void *ctx, enum rpc_code code, const char *text)
{
	struct pods *p = ctx;

	p->call = NULL;
	if (p->synced)
		lose(p, code, text);
	else
		retry_ended(p->retry, code, text);
}

/* Without a deadline: a kubelet that is stuck does not get better by being asked again, and one
 * that dies closes the connection. */
static void begin(void *ctx)
{
	struct pods *p = ctx;
	const struct rpc_request watch = {
		.socket = p->socket, .method = PODS_WATCH_PATH, .kind = RPC_STREAM};
	const struct rpc_call_events events = {p, on_message, on_ended};
	struct err e;

	if (p->call)
		return;
	p->watch++;
	retry_begin(p->retry);
	p->call = rpc_call_start(p->pump, &watch, &events, &e);
	if (!p->call)
		retry_no_connection(p->retry, &e);
}

struct pods *pods_new(struct loop *l, struct rpc_pump *pump, const struct pods_options *o,
	const struct pods_handler *handler)
{
	enum { RETRY_MIN_MS = 100, RETRY_MAX_MS = 60000 };
	struct pods *p = xcalloc(1, sizeof *p);

	p->pump = pump;
	p->socket = o->socket;
	p->handler = handler;
	p->retry_max_ms = o->retry_max_ms ? o->retry_max_ms : RETRY_MAX_MS;
	p->retry = retry_new(l, &(struct retry_options){
					.socket = o->socket,
					.min_ms = o->retry_min_ms ? o->retry_min_ms : RETRY_MIN_MS,
					.max_ms = p->retry_max_ms,
					.ctx = p,
					.attempt = begin,
					.waiting = "pods-api-waiting",
					.refused = "pods-api-refused",
					.log = handler->ctx,
					.on_event = handler->on_event,
				});
	return p;
}

const struct pods_pod *pods_find(const struct pods *p, const char *uid)
{
	size_t i = place_of(p, uid);

	return is_at(p, i, uid) ? &p->known.at[i]->pod : NULL;
}

size_t pods_count(const struct pods *p)
{
	return p->known.nr;
}

bool pods_synced(const struct pods *p)
{
	return p->synced;
}

void pods_close(struct pods *p)
{
	if (!p)
		return;
	rpc_call_cancel(p->call);
	retry_free(p->retry);
	for (size_t i = 0; i < p->known.nr; i++)
		free(p->known.at[i]);
	vec_fini(&p->known);
	free(p);
}
