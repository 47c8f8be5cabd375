/* Pods from their creation until they run, by uid. */
#include "extender.h"

#include <codec/api_json.h>
#include <numafit/vec.h>

struct waiting {
	char *uid;
	struct json_t *pod;  /* NULL: bound */
	char *ns, *workload; /* of a bound one */
	bool refused;        /* it is known that its node has */
	bool listed;         /* since unbound_begin() */
};

struct unbound {
	VEC(struct waiting);
};

struct unbound *unbound_new(void)
{
	return xcalloc(1, sizeof(struct unbound));
}

static void waiting_free(struct waiting *w)
{
	free(w->uid);
	free(w->ns);
	free(w->workload);
	api_json_free(w->pod);
}

void unbound_free(struct unbound *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->nr; i++)
		waiting_free(&u->at[i]);
	vec_fini(u);
	free(u);
}

/* Where it is, or would be. */
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
			waiting_free(&u->at[i]);
	u->nr = nr;
}

static struct waiting *unbound_enter(struct unbound *u, const char *uid, struct json_t *pod)
{
	bool found;
	size_t i = unbound_place(u, uid, &found);

	if (found)
		api_json_free(u->at[i].pod);
	else
		vec_insert(u, i)->uid = xstrdup(uid);
	u->at[i].pod = pod;
	u->at[i].listed = true;
	return &u->at[i];
}

void unbound_put(struct unbound *u, const char *uid, struct json_t *pod)
{
	(void)unbound_enter(u, uid, pod);
}

void unbound_bind(struct unbound *u, const char *uid, const char *ns, const char *workload)
{
	struct waiting *w = unbound_enter(u, uid, NULL);

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
	waiting_free(&u->at[i]);
	vec_remove(u, i);
	return true;
}

struct json_t *unbound_find(const struct unbound *u, const char *uid)
{
	bool found;
	size_t i = unbound_place(u, uid, &found);

	return found ? u->at[i].pod : NULL;
}
