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

static void forget(struct plan *p)
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
		forget(&k->at[i]);
	vec_fini(k);
	free(k);
}

uint64_t kept_node_name(const char *node)
{
	return xxh64(node, strlen(node), 0);
}

static size_t place_of(const struct kept *k, const char *uid, bool *found)
{
	size_t low = 0, high = k->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(k->at[mid].uid, uid) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	*found = low < k->nr && strcmp(k->at[low].uid, uid) == 0;
	return low;
}

static void remove_at(struct kept *k, size_t i)
{
	forget(&k->at[i]);
	vec_remove(k, i);
}

static void remove_oldest(struct kept *k)
{
	size_t oldest = 0;

	for (size_t i = 1; i < k->nr; i++)
		if (k->at[i].at_ms < k->at[oldest].at_ms)
			oldest = i;
	remove_at(k, oldest);
}

void kept_put(struct kept *k, const char *uid, struct json_t *pod, const struct kept_node *node,
	size_t nr, int64_t now_ms)
{
	kept_remove(k, uid);
	if (k->nr == KEPT_MAX)
		remove_oldest(k);
	bool found;
	struct plan *p = vec_insert(k, place_of(k, uid, &found));
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
	size_t i = place_of(k, uid, &found);

	if (found)
		remove_at(k, i);
}

void kept_expire(struct kept *k, int64_t now_ms)
{
	size_t nr = 0;

	for (size_t i = 0; i < k->nr; i++)
		if (now_ms - k->at[i].at_ms < KEPT_MS)
			k->at[nr++] = k->at[i];
		else
			forget(&k->at[i]);
	k->nr = nr;
}

size_t kept_count(const struct kept *k)
{
	return k->nr;
}

struct json_t *kept_pod(const struct kept *k, const char *uid)
{
	bool found;
	size_t i = place_of(k, uid, &found);

	return found ? k->at[i].pod : NULL;
}

const struct kept_node *kept_find(const struct kept *k, const char *uid, const char *node)
{
	uint64_t name = kept_node_name(node);
	bool found;
	size_t i = place_of(k, uid, &found);

	for (size_t n = 0; found && n < k->at[i].nr; n++)
		if (k->at[i].node[n].node == name)
			return &k->at[i].node[n];
	return NULL;
}
