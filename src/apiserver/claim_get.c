#include <apiserver/claim_get.h>

#include <apiserver/claim_json.h>
#include <apiserver/path.h>
#include <errno.h>
#include <numafit/mem.h>

enum { STATUS_OK = 200, STATUS_UNAUTHORIZED = 401, STATUS_NOT_FOUND = 404 };

struct claim_get {
	struct api_call *call;
	char *name; /* NAMESPACE/NAME, for texts */
	char *uid;
	void *ctx;
	void (*done)(void *ctx, const struct claim_answer *answer);
};

static void claim_get_free(struct claim_get *g)
{
	free(g->name);
	free(g->uid);
	free(g);
}

/* What the server's object is to who asked for it. */
static enum claim_got claim_get_take(const struct claim_get *g, const struct api_answer *from,
	struct arena *a, struct claim_answer *out, struct err *e)
{
	int rc = claim_json_read(from->body, a, &out->claim, e);

	if (rc == -EAGAIN)
		return CLAIM_NOT_ALLOCATED;
	if (rc)
		return CLAIM_REFUSED;
	if (!text_equal(out->claim.uid, g->uid)) {
		(void)err_set(e, ESTALE,
			"resourceclaim %s: its uid is %s, not %s: it was deleted and created again",
			g->name, out->claim.uid, g->uid);
		return CLAIM_GONE;
	}
	return CLAIM_GOT;
}

/* New credentials may come every minute: without valid ones it is not refused for ever. */
static enum claim_got claim_get_failed(
	const struct claim_get *g, const struct api_answer *from, struct err *e)
{
	(void)err_set(e, EIO, "resourceclaim %s: %s", g->name, from->message);
	/* a server that knows no such kind, or a proxy, answers 404 without a Status */
	if (from->status == STATUS_NOT_FOUND && text_equal(from->reason, "NotFound"))
		return CLAIM_GONE;
	return from->again || from->status == STATUS_UNAUTHORIZED ? CLAIM_NOT_NOW : CLAIM_REFUSED;
}

static void claim_get_on_done(void *ctx, const struct api_answer *from)
{
	struct claim_get *g = ctx;
	struct claim_answer answer = {.after_ms = from->after_ms};
	struct err e = {0};
	struct arena a;

	arena_init(&a, CLAIM_JSON_BYTES_MAX);
	if (from->status == STATUS_OK && from->body)
		answer.got = claim_get_take(g, from, &a, &answer, &e);
	else
		answer.got = claim_get_failed(g, from, &e);
	answer.text = e.text;
	g->done(g->ctx, &answer);
	arena_fini(&a);
	claim_get_free(g);
}

struct claim_get *claim_get(struct api *a, const char *ns, const char *name, const char *uid,
	void *ctx, void (*done)(void *ctx, const struct claim_answer *answer))
{
	struct claim_get *g = xcalloc(1, sizeof *g);
	char path[API_PATH_MAX];
	struct text t;

	text_init(&t, path, sizeof path);
	text_add(&t, "%s/%s", ns, name);
	g->name = xstrdup(path);
	g->uid = xstrdup(uid);
	g->ctx = ctx;
	g->done = done;
	text_init(&t, path, sizeof path);
	text_add(&t, "/apis/resource.k8s.io/v1/namespaces/");
	path_add_escaped(&t, ns);
	text_add(&t, "/resourceclaims/");
	path_add_escaped(&t, name);
	g->call = api_call(a, &(struct api_ask){.path = path}, g, claim_get_on_done);
	return g;
}

void claim_get_cancel(struct claim_get *g)
{
	if (!g)
		return;
	api_cancel(g->call);
	claim_get_free(g);
}
