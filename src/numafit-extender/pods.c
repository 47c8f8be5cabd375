/* Pods by uid: from their creation until they run, and what was decided of them until they are
 * bound, which is bounded in number and in time. How large pods are, and how many wait, is up to
 * their authors: what is kept of them is text, and bounded in bytes. */
#include "extender.h"

#include <codec/api_json.h>
#include <numafit/nrt_fingerprint.h>
#include <numafit/vec.h>

/* Where the entry of that uid is, or would be, among nr entries of `size` bytes that ascend by
 * their uid and begin with it, a char *. */
static size_t uid_place(const void *at, size_t nr, size_t size, const char *uid, bool *found)
{
	size_t low = 0, high = nr;

	*found = false;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = strcmp(*(char *const *)((const char *)at + mid * size), uid);

		if (c < 0)
			low = mid + 1;
		else
			high = mid;
		*found = *found || c == 0;
	}
	return low;
}

/* Of a pod's text. */
static size_t bytes_of(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static struct json_t *read_pod(const char *text)
{
	struct json_t *pod = NULL;

	if (text)
		(void)api_json_parse(text, strlen(text), &pod, NULL);
	return pod;
}

/* From their creation until they run */

struct waiting {
	char *uid;
	char *pod;           /* NULL: bound, or there was no room */
	char *ns, *workload; /* of a bound one */
	bool refused;        /* it is known that its node has */
	bool listed;         /* since unbound_begin() */
};

struct unbound {
	VEC(struct waiting);
	size_t bytes; /* of all pods */
};

struct unbound *unbound_new(void)
{
	return xcalloc(1, sizeof(struct unbound));
}

static void waiting_drop_pod(struct unbound *u, struct waiting *w)
{
	u->bytes -= bytes_of(w->pod);
	free(steal(w->pod));
}

static void waiting_free(struct unbound *u, struct waiting *w)
{
	waiting_drop_pod(u, w);
	free(w->uid);
	free(w->ns);
	free(w->workload);
}

void unbound_free(struct unbound *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->nr; i++)
		waiting_free(u, &u->at[i]);
	vec_fini(u);
	free(u);
}

static size_t unbound_place(const struct unbound *u, const char *uid, bool *found)
{
	return uid_place(u->at, u->nr, sizeof *u->at, uid, found);
}

void unbound_begin(struct unbound *u)
{
	for (size_t i = 0; i < u->nr; i++)
		u->at[i].listed = false;
}

void unbound_sweep(struct unbound *u)
{
	size_t nr = 0;

	for (size_t i = 0; i < u->nr; i++)
		if (u->at[i].listed)
			u->at[nr++] = u->at[i];
		else
			waiting_free(u, &u->at[i]);
	u->nr = nr;
}

/* Without what was there of the pod. */
static struct waiting *unbound_enter(struct unbound *u, const char *uid)
{
	bool found;
	size_t i = unbound_place(u, uid, &found);

	if (found)
		waiting_drop_pod(u, &u->at[i]);
	else
		vec_insert(u, i)->uid = xstrdup(uid);
	u->at[i].listed = true;
	return &u->at[i];
}

bool unbound_put(struct unbound *u, const char *uid, const struct json_t *pod)
{
	struct waiting *w = unbound_enter(u, uid);
	auto_free char *text = extender_pod_json_keep(pod);
	size_t bytes = bytes_of(text);

	if (u->bytes + bytes > PODS_BYTES_MAX)
		return false;
	w->pod = steal(text);
	u->bytes += bytes;
	return true;
}

void unbound_bind(struct unbound *u, const char *uid, const char *ns, const char *workload)
{
	struct waiting *w = unbound_enter(u, uid);

	if (w->workload)
		return;
	w->ns = xstrdup(ns);
	w->workload = xstrdup(workload);
}

bool unbound_knows(const struct unbound *u, const char *uid)
{
	bool found;

	(void)unbound_place(u, uid, &found);
	return found;
}

const char *unbound_refuse(struct unbound *u, const char *uid, const char *ns)
{
	bool found;
	size_t i = unbound_place(u, uid, &found);

	if (!found || !u->at[i].workload || u->at[i].refused || strcmp(u->at[i].ns, ns))
		return NULL;
	u->at[i].refused = true;
	return u->at[i].workload;
}

bool unbound_remove(struct unbound *u, const char *uid)
{
	bool found;
	size_t i = unbound_place(u, uid, &found);

	if (!found)
		return false;
	waiting_free(u, &u->at[i]);
	vec_remove(u, i);
	return true;
}

struct json_t *unbound_find(const struct unbound *u, const char *uid)
{
	bool found;
	size_t i = unbound_place(u, uid, &found);

	return read_pod(found ? u->at[i].pod : NULL);
}

/* What was decided of them */

/* Between the decision and the binding volumes may be made, for which kube-scheduler waits 10
 * minutes (VolumeBinding's bindTimeoutSeconds). */
enum { KEPT_MS = 15 * 60 * 1000 };

struct kept_plan {
	char *uid;
	int64_t at_ms;
	char *pod;
	struct kept_node *node;
	size_t nr;
};

struct kept {
	VEC(struct kept_plan);
	size_t bytes; /* of all pods */
};

struct kept *kept_new(void)
{
	return xcalloc(1, sizeof(struct kept));
}

static void kept_plan_fini(struct kept *k, const struct kept_plan *p)
{
	k->bytes -= bytes_of(p->pod);
	free(p->uid);
	free(p->node);
	free(p->pod);
}

void kept_free(struct kept *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->nr; i++)
		kept_plan_fini(k, &k->at[i]);
	vec_fini(k);
	free(k);
}

uint64_t kept_node_name(const char *node)
{
	return xxh64_text(node);
}

static size_t kept_place(const struct kept *k, const char *uid, bool *found)
{
	return uid_place(k->at, k->nr, sizeof *k->at, uid, found);
}

static void kept_remove_at(struct kept *k, size_t i)
{
	kept_plan_fini(k, &k->at[i]);
	vec_remove(k, i);
}

static void kept_remove_oldest(struct kept *k)
{
	size_t oldest = 0;

	for (size_t i = 1; i < k->nr; i++)
		if (k->at[i].at_ms < k->at[oldest].at_ms)
			oldest = i;
	kept_remove_at(k, oldest);
}

void kept_put(struct kept *k, const char *uid, const struct json_t *pod,
	const struct kept_node *node, size_t nr, int64_t now_ms)
{
	auto_free char *text = extender_pod_json_keep(pod);
	size_t bytes = bytes_of(text);
	bool found;

	kept_remove(k, uid);
	if (bytes > PODS_BYTES_MAX)
		return;
	while (k->nr == KEPT_PODS_MAX || k->bytes + bytes > PODS_BYTES_MAX)
		kept_remove_oldest(k);
	struct kept_plan *p = vec_insert(k, kept_place(k, uid, &found));
	*p = (struct kept_plan){.uid = xstrdup(uid),
		.at_ms = now_ms,
		.pod = steal(text),
		.node = xcalloc(nr, sizeof *node),
		.nr = nr};
	k->bytes += bytes;
	if (nr)
		memcpy(p->node, node, nr * sizeof *node);
}

void kept_remove(struct kept *k, const char *uid)
{
	bool found;
	size_t i = kept_place(k, uid, &found);

	if (found)
		kept_remove_at(k, i);
}

void kept_expire(struct kept *k, int64_t now_ms)
{
	size_t nr = 0;

	for (size_t i = 0; i < k->nr; i++)
		if (now_ms - k->at[i].at_ms < KEPT_MS)
			k->at[nr++] = k->at[i];
		else
			kept_plan_fini(k, &k->at[i]);
	k->nr = nr;
}

size_t kept_count(const struct kept *k)
{
	return k->nr;
}

struct json_t *kept_pod(const struct kept *k, const char *uid)
{
	bool found;
	size_t i = kept_place(k, uid, &found);

	return read_pod(found ? k->at[i].pod : NULL);
}

const struct kept_node *kept_node_find(const struct kept *k, const char *uid, const char *node)
{
	uint64_t name = kept_node_name(node);
	bool found;
	size_t i = kept_place(k, uid, &found);

	for (size_t n = 0; found && n < k->at[i].nr; n++)
		if (k->at[i].node[n].node == name)
			return &k->at[i].node[n];
	return NULL;
}
