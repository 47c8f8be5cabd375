/* What a decision is to know beside the runtime's request, put into that request: the kubelet's
 * devices and tokens, the pod's containers, schedulers' advice, authors' wishes. All of it comes
 * from caches; nobody is waited for. */
#include "cluster.h"
#include "gather.h"

#include "claims.h"
#include "reply.h"
#include "services_state.h"

#include <apiserver/pods.h>
#include <codec/wishes.h>
#include <dra-driver/driver.h>
#include <io/log.h>
#include <numafit/admit.h>
#include <numafit/leases.h>
#include <numafit/shares.h>
#include <numafit/text.h>

#include <string.h>

/* Containers of a pod that is decided as a whole. In pod scope its record may have several lines;
 * else one is all that it gets, and larger pods would not fit into that. */
enum { HELD_MAX = 256, HELD_MAX_IN_POD_SCOPE = 1024 };

/* The place of that pod's question, which may have another pod's; *hash is its uid's (FNV-1a). */
static struct question *question_of(struct services *v, const char *pod_uid, uint64_t *hash)
{
	const uint64_t prime = 1099511628211u;

	*hash = 14695981039346656037u;
	for (; *pod_uid; pod_uid++)
		*hash = (*hash ^ (unsigned char)*pod_uid) * prime;
	return &v->asked[*hash % QUESTIONS];
}

/* What the pod has is asked for now, unless it was asked for since it came. */
static struct question *ask_kubelet_for(struct services *v, const char *pod_uid)
{
	uint64_t hash;
	struct question *q = question_of(v, pod_uid, &hash);

	if (q->pod == hash)
		return q;
	if (q->sandbox > v->forgotten)
		v->forgotten = q->sandbox;
	*q = (struct question){.pod = hash, .number = pod_resources_refresh(v->pod_resources)};
	return q;
}

bool gather_is_answered(struct services *v, const char *pod_uid, enum since since)
{
	uint64_t hash, age = pod_resources_age(v->pod_resources);
	const struct question *q = question_of(v, pod_uid, &hash);
	bool known = q->pod == hash;

	if (since == SINCE_SANDBOX)
		return age && age >= (known ? q->sandbox : v->forgotten);
	return age && (!known || age >= q->number);
}

static bool has_claims(const struct known_pod *pod)
{
	bool has = false;

	for (size_t i = 0; i < pod->pod.nr; i++)
		has = has || pod->pod.container[i].has_claims;
	return has;
}

void gather_pod_changed(void *ctx, const struct known_pod *pod)
{
	struct services *v = ctx;

	if (v->pod_resources && (pod->nr_resources || (v->d->claims && has_claims(pod))))
		(void)ask_kubelet_for(v, pod->pod.uid);
}

void services_note_pod(struct daemon *d, const struct known_pod *pod)
{
	if (d->services)
		gather_pod_changed(d->services, pod);
}

/* Devices */

static struct device device_from_held(const struct daemon *d, const struct held_device *h)
{
	return (struct device){.id = h->id,
		.has_topology = h->has_topology,
		.placed = h->nodes.nr,
		.nodes = nodeset_of_list(&d->topo.ids, h->nodes),
		.healthy = true};
}

/* Resources of a container, POD_DEVICES_MAX of them, those with a place; tokens are CPUs, and no
 * devices. Returns their number. */
static size_t add_plugins(const struct daemon *d, const struct container_held *held,
	struct device_resource *out, size_t room, struct arena *a)
{
	const struct held_device *of = held->device, *end = of + held->nr_devices;
	size_t nr = 0;

	while (of < end && nr < room) {
		const struct held_device *first = of;
		struct nodeset nodes = {0};

		while (of < end && text_equal(of->resource, first->resource))
			of++;
		struct device *list = arena_array(a, (size_t)(of - first), sizeof *list);
		for (size_t i = 0; list && &first[i] < of; i++) {
			list[i] = device_from_held(d, &first[i]);
			nodes = nodeset_or(nodes, list[i].nodes);
		}
		if (nodeset_empty(nodes) || text_equal(first->resource, TOKEN_RESOURCE))
			continue;
		out[nr++] = (struct device_resource){
			in_arena(a, first->resource), (size_t)(of - first), list};
	}
	return nr;
}

/* What the kubelet says that the container has, into out, which has room for so many. */
static size_t resources_from_held(const struct daemon *d, const struct container_held *held,
	struct device_resource *out, size_t room, struct arena *a, enum claims_known *known)
{
	size_t nr = add_plugins(d, held, out, room, a);

	return nr + claims_add(d, held, &out[nr], room - nr, a, known);
}

/* Whether nobody has shown yet what the container has through claims, though it may have some. What
 * plain init containers have PodResources never shows. */
static bool awaits_claims(struct daemon *d, const char *pod_uid, const struct ask *c,
	const struct container_held *held)
{
	return d->claims && c->has_claims && !(held && held->nr_claims) &&
	       !(gather_is_answered(d->services, pod_uid, SINCE_POD) &&
		       gather_is_answered(d->services, pod_uid, SINCE_SANDBOX));
}

/* The devices that the container was given: by the kubelet's present answer if that has them, and
 * for the rest what the kernel knows, which is there at once. */
static void add_attached_devices(struct daemon *d, struct request *req, struct arena *a)
{
	struct services *v = d->services;

	if (!v || !d->settings.pod_resources)
		return;
	bool answered = gather_is_answered(v, req->pod.uid, SINCE_POD);
	const struct container_held *held =
		answered ? pod_resources_find(
				   v->pod_resources, req->pod.ns, req->pod.name, req->ask.name)
			 : NULL;
	bool lacks_claims = d->claims && req->ask.has_claims && !(held && held->nr_claims);
	struct device_resource *own = arena_array(a, POD_DEVICES_MAX, sizeof *own);
	if (!own)
		return;
	if (awaits_claims(d, req->pod.uid, &req->ask, held))
		req->claims = CLAIMS_NOT_SHOWN_YET;
	size_t nr = held ? resources_from_held(d, held, own, POD_DEVICES_MAX, a, &req->claims) : 0;
	const struct device_resource *located =
		!answered || lacks_claims ? claims_located(d, req, a) : NULL;
	if (located && nr < POD_DEVICES_MAX)
		own[nr++] = *located;
	req->pod.attached = own;
	req->pod.nr_attached = nr;
}

/* Whose tokens */

/* What PodResources shows of some tokens. */
struct tokens_shown {
	bool pod, container; /* it shows the container's pod, and the container */
	bool own, anothers;  /* just these as the container's; some as another pod's */
};

static void look_at_container(const struct daemon *d, const struct container_held *c, bool of_pod,
	bool is_it, const struct tokenset *tokens, struct tokens_shown *s)
{
	unsigned nr = 0, same = 0;
	struct token k;

	for (size_t i = 0; i < c->nr_devices; i++) {
		if (!text_equal(c->device[i].resource, TOKEN_RESOURCE) ||
			tokens_parse(&d->topo.ids, c->device[i].id, &k, NULL) < 0)
			continue;
		nr++;
		same += tokenset_has(tokens, k);
	}
	s->anothers = s->anothers || (same && !of_pod);
	s->container = s->container || is_it;
	s->own = s->own || (is_it && nr == same && same == tokenset_count(tokens));
}

static struct tokens_shown look_at_tokens(
	const struct daemon *d, const struct request *req, const struct tokenset *tokens)
{
	const struct pods_held *held = pod_resources_held(d->services->pod_resources);
	struct tokens_shown s = {0};

	for (size_t i = 0; i < held->nr; i++) {
		const struct pod_held *p = &held->pod[i];
		bool of_pod = text_equal(p->ns, req->pod.ns) && text_equal(p->name, req->pod.name);

		s.pod = s.pod || of_pod;
		for (size_t c = 0; c < p->nr; c++)
			look_at_container(d, &p->container[c], of_pod,
				of_pod && text_equal(p->container[c].name, req->ask.name), tokens,
				&s);
	}
	return s;
}

enum token_owner gather_token_owner(struct daemon *d, const struct request *req)
{
	struct services *v = d->services;
	struct tokens_shown s = {0};
	struct tokenset tokens;

	if (!v || !v->pod_resources ||
		lease_annotation_tokens(req->allocated, &d->topo.ids, &tokens, NULL) < 0)
		return TOKENS_NOT_ASKED; /* what cannot be read is refused for that */
	if (gather_is_answered(v, req->pod.uid, SINCE_SANDBOX))
		s = look_at_tokens(d, req, &tokens);
	if (s.anothers || (s.container && !s.own))
		return TOKENS_ANOTHERS;
	if (s.container)
		return TOKENS_OWN;
	if (s.pod)
		return TOKENS_NOBODYS;
	(void)pod_resources_refresh(v->pod_resources);
	return d->settings.pod_resources ? TOKENS_NOT_SHOWN_YET : TOKENS_NOT_ASKED;
}

/* Pods */

static uint64_t tokens_asked(const struct known_pod *pod, const struct ask *c)
{
	for (unsigned i = 0; i < c->nr_devices; i++)
		if (text_equal(pod->resource[c->device[i].resource], TOKEN_RESOURCE))
			return c->device[i].count;
	return 0;
}

/* Tokens are CPUs. */
static bool has_devices_by_spec(const struct known_pod *pod, const struct ask *c)
{
	return c->nr_devices > (tokens_asked(pod, c) ? 1 : 0) || c->has_claims;
}

/* One container, its devices with those of the pod. False: there are too many. */
static bool take_known_container(struct daemon *d, const struct known_pod *known,
	const struct ask *from, struct ask *to, struct pod *pod, struct device_resource *attached,
	struct arena *a)
{
	const struct container_held *held = NULL;
	enum claims_known ignored; /* they are: is_known() */
	size_t first = pod->nr_attached;

	*to = *from;
	to->name = in_arena(a, from->name);
	to->tokens = tokens_asked(known, from);
	to->has_devices = has_devices_by_spec(known, from);
	to->nr_devices = 0;
	if (d->settings.pod_resources)
		held = pod_resources_find(
			d->services->pod_resources, known->pod.ns, known->pod.name, from->name);
	if (held)
		pod->nr_attached += resources_from_held(
			d, held, &attached[first], POD_DEVICES_MAX - first, a, &ignored);
	for (size_t r = first; r < pod->nr_attached; r++)
		to->device[to->nr_devices++] = (struct device_ask){(unsigned)r, attached[r].nr};
	return pod->nr_attached < POD_DEVICES_MAX;
}

/* Whether the devices are known that the pod's container has through claims. */
static enum claims_known claims_of_part(
	struct daemon *d, const struct known_pod *pod, const struct ask *c, struct arena *a)
{
	const struct container_held *held =
		pod_resources_find(d->services->pod_resources, pod->pod.ns, pod->pod.name, c->name);
	struct device_resource found[POD_DEVICES_MAX];
	enum claims_known known = CLAIMS_KNOWN;

	if (c->kind == CONTAINER_INIT)
		return CLAIMS_KNOWN;
	if (awaits_claims(d, pod->pod.uid, c, held))
		return CLAIMS_NOT_SHOWN_YET;
	if (held)
		(void)claims_add(d, held, found, POD_DEVICES_MAX, a, &known);
	return known;
}

static enum claims_known claims_of_known(struct daemon *d, const struct known_pod *pod)
{
	enum claims_known known = CLAIMS_KNOWN;
	struct arena a;

	if (!d->claims || !has_claims(pod))
		return CLAIMS_KNOWN;
	if (!gather_is_answered(d->services, pod->pod.uid, SINCE_POD))
		return CLAIMS_NOT_SHOWN_YET;
	arena_init(&a, GATHER_BYTES);
	for (size_t i = 0; i < pod->pod.nr && known == CLAIMS_KNOWN; i++)
		known = claims_of_part(d, pod, &pod->pod.container[i], &a);
	arena_fini(&a);
	return known;
}

/* A pod that has devices of which nobody can say yet where they are is decided as its containers
 * come. */
static bool is_known(struct daemon *d, const struct known_pod *pod)
{
	bool asks = false;

	for (unsigned i = 0; i < pod->pod.nr; i++) {
		const struct ask *c = &pod->pod.container[i];

		asks = asks || c->nr_devices > (tokens_asked(pod, c) ? 1 : 0);
	}
	return (!asks || !d->settings.pod_resources ||
		       gather_is_answered(d->services, pod->pod.uid, SINCE_POD)) &&
	       claims_of_known(d, pod) == CLAIMS_KNOWN;
}

/* What is known of its containers, into *pod. False: they are too many, or their devices. */
static bool take_known_containers(
	struct daemon *d, const struct known_pod *known, struct pod *pod, struct arena *a)
{
	struct device_resource *attached = arena_array(a, POD_DEVICES_MAX + 1, sizeof *attached);
	struct ask *list = arena_array(a, known->pod.nr, sizeof *list);
	struct pod with = *pod;
	bool by_pod = d->settings.topology_scope == SCOPE_POD;

	if (known->pod.nr > (by_pod ? HELD_MAX_IN_POD_SCOPE : HELD_MAX) || !attached || !list)
		return false;
	with.has_runtime_qos = true;
	with.runtime_qos = pod->qos;
	with.qos = known->pod.qos;
	with.source = known->pod.source;
	with.pod_level = known->pod.pod_level;
	with.own = known->pod.own;
	with.nr = known->pod.nr;
	with.container = list;
	with.attached = attached;
	for (size_t i = 0; i < with.nr; i++)
		if (!take_known_container(
			    d, known, &known->pod.container[i], &list[i], &with, attached, a))
			return false;
	pod_obey_gate(&d->settings, &with, list);
	*pod = with;
	return true;
}

/* Who knows best first: the kubelet, then the API server. The annotation that makes a mirror pod
 * can claim any uid, but nobody can take another pod's name. */
static const struct known_pod *find_known_pod(const struct daemon *d, const struct pod *pod)
{
	const struct services *v = d->services;
	const struct known_pod *known = v && v->pods ? pods_find(v->pods, pod->uid) : NULL;

	if (!known)
		known = d->api_pods ? api_pods_find(d->api_pods, pod->uid) : NULL;
	return known && text_equal(known->pod.ns, pod->ns) && text_equal(known->pod.name, pod->name)
		       ? known
		       : NULL;
}

static bool is_all_listed(const struct daemon *d)
{
	const struct services *v = d->services;

	return (v && v->pods && pods_synced(v->pods)) ||
	       (d->api_pods && api_pods_synced(d->api_pods));
}

bool gather_is_listed(const struct daemon *d, const struct pod *pod)
{
	const struct known_pod *known = find_known_pod(d, pod);

	return known ? !known->ended : !is_all_listed(d);
}

bool gather_awaits_facts(const struct daemon *d, const struct pod *pod)
{
	const struct services *v = d->services;
	const bool of_kubelet = v && (v->pods || (v->looking && !v->facts));

	return (of_kubelet || d->settings.pods_watch) && !is_all_listed(d) &&
	       !find_known_pod(d, pod);
}

/* The stage before a decision */

static const struct ask *find_known_container(const struct known_pod *known, const char *name)
{
	for (size_t i = 0; known && i < known->pod.nr; i++)
		if (text_equal(known->pod.container[i].name, name))
			return &known->pod.container[i];
	return NULL;
}

/* Whether it has claims: by its pod's spec, or, where that is not known, by its having CDI devices,
 * which others have, too. */
static void know_claims(const struct daemon *d, struct request *req)
{
	const struct known_pod *known = find_known_pod(d, &req->pod);
	const struct ask *c = find_known_container(known, req->ask.name);

	req->ask.has_claims = known ? c && c->has_claims : req->nr_cdi;
}

/* By its pod's spec, where that is known: its kind and place; whether it has claims; and, of a pod
 * that was not decided as a whole, be it that it was not known by then, what is its own: a runtime
 * shows what the pod has as resources of its own as those of each container. */
static void know_container_of_pod(const struct daemon *d, struct request *req)
{
	const struct settings *s = &d->settings;
	const struct known_pod *known = find_known_pod(d, &req->pod);
	const struct ask *c = find_known_container(known, req->ask.name);
	bool as_one = pod_is_aligned_as_one(s, &req->pod);

	know_claims(d, req);
	req->pod.source = c ? known->pod.source : req->pod.source;
	req->ask.kind = c ? c->kind : req->ask.kind;
	req->ask.place = c ? c->place : req->ask.place;
	req->pod.pod_level = known && known->pod.pod_level;
	if (c && req->pod.pod_level)
		req->ask.guaranteed =
			s->gates.pod_level_resource_managers && !as_one && c->guaranteed;
}

static bool has_devices_by_kubelet(const struct container_held *held)
{
	for (size_t i = 0; i < held->nr_devices; i++)
		if (!text_equal(held->device[i].resource, TOKEN_RESOURCE))
			return true;
	return held->nr_claims;
}

/* Whether it has devices, wherever these are, or may have some: by its pod's spec, or by the
 * kubelet, which has not shown it yet or does not show what it has (a plain init container). Where
 * neither is asked only what the runtime shows counts. */
static void know_devices(const struct daemon *d, struct request *req)
{
	const struct known_pod *known = find_known_pod(d, &req->pod);
	const struct ask *c = find_known_container(known, req->ask.name);
	struct services *v = d->services;
	const struct container_held *held = NULL;
	const bool asked = !c && v && v->pod_resources;

	if (asked && gather_is_answered(v, req->pod.uid, SINCE_POD))
		held = pod_resources_find(
			v->pod_resources, req->pod.ns, req->pod.name, req->ask.name);
	const bool is_shown = !asked || held || req->nr_files || req->nr_cdi;
	req->ask.devices = is_shown ? DEVICES_SHOWN : DEVICES_NOT_SHOWN_YET;
	if (c)
		req->ask.has_devices = has_devices_by_spec(known, c);
	else
		req->ask.has_devices = asked && (!held || has_devices_by_kubelet(held));
}

enum claims_known gather_claims(struct daemon *d, const struct request *req)
{
	struct request known = *req;
	struct arena a;

	arena_init(&a, GATHER_BYTES);
	know_container_of_pod(d, &known);
	add_attached_devices(d, &known, &a);
	arena_fini(&a);
	return known.claims;
}

static void ask_since_sandbox(struct daemon *d, const char *pod_uid)
{
	if (d->services && d->services->pod_resources)
		ask_kubelet_for(d->services, pod_uid)->sandbox =
			pod_resources_refresh(d->services->pod_resources);
}

enum claims_known gather_claims_of_pod(struct daemon *d, const struct pod *pod, bool starts)
{
	const struct known_pod *known = find_known_pod(d, pod);

	if (!known || !d->services || !has_claims(known))
		return CLAIMS_KNOWN;
	if (starts)
		ask_since_sandbox(d, pod->uid);
	return claims_of_known(d, known);
}

/* What pods' authors wish for */

/* An annotation that is not followed is said where an operator looks, and where the author does.
 * ask is the container that runs without the wish; NULL: the pod has no such container. */
static void say_ignored(const struct daemon *d, const struct pod *pod, const struct ask *ask,
	const struct wishes_ignored *ignored)
{
	char name[512], container[256], what[1024];

	if (!ignored->annotation && !ignored->odd)
		return;
	cluster_note_ignored_wish(d, pod, ask, ignored->annotation, ignored->odd);
	log_line(LOG_INFO, "wish-ignored", "namespace=%s pod=%s%s%s %s=%s action=%s", pod->ns,
		log_text(name, sizeof name, pod->name), ask ? " container=" : "",
		ask ? log_text(container, sizeof container, ask->name) : "",
		ignored->odd ? "error" : "annotation",
		log_text(what, sizeof what, ignored->odd ? ignored->odd : ignored->annotation),
		ignored->odd ? "\"correct the pod's annotation\""
			     : "\"if pods may wish for that, add it to podWishes.allowed\"");
}

static struct wishes_ignored take_wishes(
	const struct daemon *d, const struct pod *pod, struct ask *ask, struct arena *a)
{
	const struct wishes_reader reader = {
		&d->settings, &d->topo.ids, d->settings.topology_scope == SCOPE_POD};
	struct wishes_ignored ignored = {0};

	if (d->settings.mode == MODE_MANAGE)
		wishes_take(&reader, pod, ask, a, &ignored);
	return ignored;
}

static struct wishes_ignored wishes_of_none(
	const struct daemon *d, const struct pod *pod, struct arena *a)
{
	const bool looks = d->settings.mode == MODE_MANAGE;

	return (struct wishes_ignored){.odd = looks ? wishes_of_no_container(pod, a) : NULL};
}

/* Of a container whose part is held all was said as its pod started. Of a pod that is decided
 * container by container, and whose spec is known by now, the first container in the spec says what
 * is wished for containers that the pod does not have. */
static void say_ignored_at_create(const struct daemon *d, const struct request *req,
	const struct wishes_ignored *ignored, struct arena *a)
{
	const struct known_pod *known = find_known_pod(d, &req->pod);
	struct pod whole = req->pod;

	if (d->engine && ledger_find_waiting(engine_ledger(d->engine), req->pod.uid, req->ask.name))
		return;
	say_ignored(d, &req->pod, &req->ask, ignored);
	if (!known || !known->pod.nr || !text_equal(known->pod.container[0].name, req->ask.name))
		return;
	whole.container = known->pod.container;
	whole.nr = known->pod.nr;
	const struct wishes_ignored of_none = wishes_of_none(d, &whole, a);
	say_ignored(d, &req->pod, NULL, &of_none);
}

static void wishes_of_container(const struct daemon *d, struct request *req, struct arena *a)
{
	const struct wishes_ignored ignored = take_wishes(d, &req->pod, &req->ask, a);

	req->no_memory_policy = (req->ask.wishes.memory || d->settings.across_nodes) &&
				!nri_conn_sets_memory_policies(d->runtime.conn);
	say_ignored_at_create(d, req, &ignored, a);
}

const struct wishes_ignored *gather_wishes_of_pod(
	const struct daemon *d, struct pod *pod, struct arena *a)
{
	/* without annotations, too: an operator has words for namespaces */
	struct ask *list = arena_array(a, pod->nr, sizeof *list);
	struct wishes_ignored *ignored = arena_array(a, pod->nr + 1, sizeof *ignored);

	if (!list || !ignored)
		return NULL;
	for (size_t i = 0; i < pod->nr; i++) {
		list[i] = pod->container[i];
		ignored[i] = take_wishes(d, pod, &list[i], a);
	}
	pod->container = list;
	ignored[pod->nr] = wishes_of_none(d, pod, a);
	return ignored;
}

void gather_say_ignored(
	const struct daemon *d, const struct pod *pod, const struct wishes_ignored *ignored)
{
	for (size_t i = 0; ignored && i <= pod->nr; i++)
		say_ignored(d, pod, i < pod->nr ? &pod->container[i] : NULL, &ignored[i]);
}

/* By the kubelet's present answer, where that is no older than the pod's sandbox and has the
 * container. */
static const char *shares_by_kubelet(
	const struct daemon *d, const struct request *req, const char *unless, struct arena *a)
{
	struct services *v = d->services;
	const struct container_held *held = NULL;
	const char **cdi = NULL;
	size_t nr = 0, room = 0;

	if (v && v->pod_resources && gather_is_answered(v, req->pod.uid, SINCE_SANDBOX))
		held = pod_resources_find(
			v->pod_resources, req->pod.ns, req->pod.name, req->ask.name);
	for (size_t i = 0; held && i < held->nr_claims; i++)
		room += held->claim[i].nr_cdi;
	cdi = held ? arena_array(a, room, sizeof *cdi) : NULL;
	for (size_t i = 0; cdi && i < held->nr_claims; i++)
		for (size_t k = 0; k < held->claim[i].nr_cdi; k++)
			cdi[nr++] = held->claim[i].cdi[k];
	return cdi ? shares_of_cdi(cdi, nr, a) : unless;
}

/* The shares that it comes with. Where the runtime does not show CDI devices the kubelet does, by
 * and by: until then a container of a pod that claims are prepared for may have some, unless the
 * pod's spec says that it has none. */
static void add_shares(struct daemon *d, struct request *req, struct arena *a)
{
	const bool may_have = !find_known_pod(d, &req->pod) || req->ask.has_claims;

	req->shares = shares_of_cdi(req->cdi, req->nr_cdi, a);
	if (req->shares || !may_have || !d->engine || nri_conn_shows_cdi(d->runtime.conn))
		return;
	const bool is_prepared = shares_has_pod(engine_ledger(d->engine), req->pod.uid);
	req->shares = shares_by_kubelet(d, req, is_prepared ? "" : NULL, a);
}

/* The same of one that is in the ledger, and did not show its shares as it came. */
static void add_late_shares(const struct daemon *d, struct request *req, struct arena *a)
{
	const struct known_pod *known = find_known_pod(d, &req->pod);
	const struct ask *c = find_known_container(known, req->ask.name);

	if ((req->shares && *req->shares) || nri_conn_shows_cdi(d->runtime.conn))
		return;
	if (c && !c->has_claims)
		req->shares = NULL;
	else
		req->shares = shares_by_kubelet(d, req, req->shares, a);
}

void gather_facts(const struct daemon *d, const struct request *running, struct container_facts *f,
	struct arena *a)
{
	/* the runtime may have shown device nodes, which no spec has */
	const struct ask *seen = &running->ask;
	struct request req = *running;

	if (find_known_container(find_known_pod(d, &req.pod), req.ask.name))
		know_container_of_pod(d, &req);
	know_devices(d, &req);
	ask_keep_devices(&req.ask, seen);
	add_late_shares(d, &req, a);
	*f = (struct container_facts){.kind = req.ask.kind,
		.place = req.ask.place,
		.source = req.pod.source,
		.pod_level = req.pod.pod_level,
		.guaranteed = req.ask.guaranteed,
		.has_devices = req.ask.has_devices,
		.devices = req.ask.devices,
		.shares = req.shares};
}

void gather_running(struct daemon *d, struct request *containers, size_t nr, struct arena *a)
{
	for (size_t i = 0; i < nr; i++) {
		know_container_of_pod(d, &containers[i]);
		add_shares(d, &containers[i], a);
		know_devices(d, &containers[i]);
		(void)take_wishes(d, &containers[i].pod, &containers[i].ask, a);
	}
}

void gather_container(struct daemon *d, struct request *req, struct arena *a)
{
	know_container_of_pod(d, req);
	know_devices(d, req);
	add_attached_devices(d, req, a);
	advice_of_container(d, req, a);
	wishes_of_container(d, req, a);
	add_shares(d, req, a);
	dra_note_create(d->dra, req);
	if (admit_has_tokens(&d->settings, req))
		req->owner = gather_token_owner(d, req);
}

const struct wishes_ignored *gather_pod(struct daemon *d, struct pod *pod, struct arena *a)
{
	const struct known_pod *known = find_known_pod(d, pod);

	/* by now its containers have been given all that they get, and a pod that had its name, or
	 * a static one even its uid, has it no more */
	ask_since_sandbox(d, pod->uid);
	if (known && has_claims(known) && d->engine &&
		shares_in_namespace(engine_ledger(d->engine), pod->ns)) {
		pod->apart = POD_APART_CLAIMS;
		dra_note_pod(d->dra, pod);
		return NULL;
	}
	if (known && is_known(d, known) && !take_known_containers(d, known, pod, a))
		pod->apart = POD_APART_TOO_MANY;
	if (!pod->container)
		return NULL;
	advice_of_pod(d, pod, a);
	return gather_wishes_of_pod(d, pod, a);
}
