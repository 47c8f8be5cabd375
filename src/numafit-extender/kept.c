/* What was decided of a pod, until it is bound: by uid, bounded in number and in time. */
#include "extender.h"

#include <codec/api_json.h>
#include <numafit/nrt_fingerprint.h>
#include <numafit/vec.h>

/* Between the decision and the binding volumes may be made, for which kube-scheduler waits 10
 * minutes (VolumeBinding's bindTimeoutSeconds). */
enum { KEPT_MAX = 8192, KEPT_MS = 15 * 60 * 1000 };

struct plan {
	char *uid;
	int64_t at_ms;
	struct json_t *pod;
	struct kept_node *node;
	size_t nr;
};

struct kept {
	VEC(struct plan);
};

struct kept *kept_new(void)
{
	return xcalloc(1, sizeof(struct kept));
}

static void plan_forget(struct plan *p)
{
	free(p->uid);
	free(p->node);
	api_json_free(p->pod);
}

void kept_free(struct kept *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->nr; i++)
		plan_forget(&k->at[i]);
	vec_fini(k);
	free(k);
}

uint64_t kept_node_name(const char *node)
{
	return xxh64_text(node);
}

size_t uid_place(const void *at, size_t nr, size_t size, const char *uid, bool *found)
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

static size_t kept_place(const struct kept *k, const char *uid, bool *found)
{
	return uid_place(k->at, k->nr, sizeof *k->at, uid, found);
}

static void kept_remove_at(struct kept *k, size_t i)
{
	plan_forget(&k->at[i]);
	vec_remove(k, i);
}

void kept_put(struct kept *k, const char *uid, struct json_t *pod, const struct kept_node *node,
	size_t nr, int64_t now_ms)
{
	size_t oldest = 0;
	bool found;

	kept_remove(k, uid);
	for (size_t i = 1; i < k->nr && k->nr == KEPT_MAX; i++)
		if (k->at[i].at_ms < k->at[oldest].at_ms)
			oldest = i;
	if (k->nr == KEPT_MAX)
		kept_remove_at(k, oldest);
	struct plan *p = vec_insert(k, kept_place(k, uid, &found));
	*p = (struct plan){.uid = xstrdup(uid),
		.at_ms = now_ms,
		.pod = pod,
		.node = xcalloc(nr, sizeof *node),
		.nr = nr};
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
			plan_forget(&k->at[i]);
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

	return found ? k->at[i].pod : NULL;
}

const struct kept_node *kept_find(const struct kept *k, const char *uid, const char *node)
{
	uint64_t name = kept_node_name(node);
	bool found;
	size_t i = kept_place(k, uid, &found);

	for (size_t n = 0; found && n < k->at[i].nr; n++)
		if (k->at[i].node[n].node == name)
			return &k->at[i].node[n];
	return NULL;
}
