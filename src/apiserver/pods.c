#include <apiserver/pods.h>

#include <apiserver/path.h>
#include <apiserver/reflector.h>
#include <codec/api_json.h>
#include <apiserver/pod_object_json.h>
#include <numafit/mem.h>
#include <numafit/once.h>
#include <numafit/text.h>

#include <errno.h>

/* Thousands of pods, as they are kept: whatever the server lists beyond it is not of one node. */
enum { PODS_BYTES_MAX = 32 << 20, BYTES_PER_MIB = 1 << 20 };

struct api_pods {
	const struct api_pods_handler *handler;
	struct pod_store *store;
	struct reflector *reflector;
	struct once odd; /* what was wrong with pods that could not be read */
};

static void pods_on_begin(void *ctx)
{
	struct api_pods *p = ctx;

	pod_store_begin(p->store);
}

static void pods_report_gone(const struct api_pods *p)
{
	if (p->handler->gone)
		p->handler->gone(p->handler->ctx);
}

static void pods_on_synced(void *ctx)
{
	struct api_pods *p = ctx;

	pod_store_sweep(p->store);
	pods_report_gone(p);
}

/* A mirror pod says itself whose uid it has, and everybody with the right to create pods may say
 * that in any of them: it never stands for a pod of another name. */
static int pods_check_uid(const struct api_pods *p, const struct known_pod *pod, struct err *e)
{
	const struct known_pod *kept = pod_store_find(p->store, pod->pod.uid);

	if (pod->owner != POD_OWNER_NODE || !kept ||
		(text_equal(kept->pod.ns, pod->pod.ns) &&
			text_equal(kept->pod.name, pod->pod.name)))
		return 0;
	return err_set(e, EPERM, "pod %.64s/%.64s: it claims the uid of pod %.64s/%.64s",
		pod->pod.ns, pod->pod.name, kept->pod.ns, kept->pod.name);
}

static int pods_check_room(const struct api_pods *p, struct err *e)
{
	return pod_store_bytes(p->store) < PODS_BYTES_MAX
		       ? 0
		       : err_set(e, ENOSPC,
				 "pods of %d MiB are known already, more than a node has: others "
				 "are passed over",
				 PODS_BYTES_MAX / BYTES_PER_MIB);
}

static void pods_on_object(void *ctx, enum reflector_change change, struct json_t *object)
{
	struct api_pods *p = ctx;
	bool gone = change == REFLECTOR_DELETE;
	const struct known_pod *kept;
	struct known_pod pod;
	struct api_meta meta;
	struct arena a;
	struct err e;

	arena_init(&a, POD_OBJECT_BYTES_MAX);
	int rc = pod_object_json_read(object, &a, &pod, &e);
	if (!rc)
		rc = pods_check_uid(p, &pod, &e);
	if (!rc && !gone)
		rc = pods_check_room(p, &e);
	if (rc < 0 && once_is_new(&p->odd, e.text))
		p->handler->on_event(p->handler->ctx, true, "pods-watch-odd-pod", e.text);
	if (gone) { /* one that cannot be read any more may have been read before */
		api_json_meta(object, &meta);
		if (pod_store_remove(p->store, rc < 0 ? meta.uid : pod.pod.uid))
			pods_report_gone(p);
	} else if (!rc && pod_store_put(p->store, &pod, &kept) && p->handler->changed)
		p->handler->changed(p->handler->ctx, kept);
	arena_fini(&a);
}

static void pods_on_event(void *ctx, bool bad, const char *event, const char *text)
{
	enum { EVENT_MAX = 64 };
	struct api_pods *p = ctx;
	char name[EVENT_MAX];
	struct text t;

	text_init(&t, name, sizeof name);
	text_add(&t, "pods-%s", event);
	p->handler->on_event(p->handler->ctx, bad, name, text);
}

struct api_pods *api_pods_new(
	struct api *a, const char *node, const struct api_pods_handler *handler)
{
	struct api_pods *p = xcalloc(1, sizeof *p);
	const struct reflector_handler reflected = {
		.ctx = p,
		.begin = pods_on_begin,
		.object = pods_on_object,
		.synced = pods_on_synced,
		.on_event = pods_on_event,
	};
	char query[API_PATH_MAX];
	struct text t;

	text_init(&t, query, sizeof query);
	text_add(&t, "fieldSelector=spec.nodeName%%3D");
	path_add_escaped(&t, node);
	p->handler = handler;
	p->store = pod_store_new();
	p->reflector = reflector_new(a,
		&(struct reflector_options){
			.path = "/api/v1/pods", .query = query, .from_memory = true},
		&reflected);
	return p;
}

const struct known_pod *api_pods_find(const struct api_pods *p, const char *uid)
{
	return pod_store_find(p->store, uid);
}

size_t api_pods_count(const struct api_pods *p)
{
	return pod_store_count(p->store);
}

const struct known_pod *api_pods_at(const struct api_pods *p, size_t i)
{
	return pod_store_at(p->store, i);
}

bool api_pods_synced(const struct api_pods *p)
{
	return reflector_synced(p->reflector);
}

void api_pods_close(struct api_pods *p)
{
	if (!p)
		return;
	reflector_close(p->reflector);
	pod_store_free(p->store);
	free(p);
}
