#include <apiserver/slices.h>

#include <apiserver/path.h>
#include <apiserver/reflector.h>
#include <codec/api_json.h>
#include <codec/slice_json.h>
#include <numafit/mem.h>
#include <numafit/once.h>
#include <numafit/text.h>

struct api_slices {
	const struct api_slices_handler *handler;
	struct slice_store *store;
	struct reflector *reflector;
	struct once odd; /* what was wrong with slices that could not be read, or kept */
};

static void slices_report(const struct api_slices *s, bool changed)
{
	if (changed)
		s->handler->changed(s->handler->ctx);
}

static void slices_on_begin(void *ctx)
{
	const struct api_slices *s = ctx;

	slice_store_begin(s->store);
}

static void slices_on_synced(void *ctx)
{
	const struct api_slices *s = ctx;

	slices_report(s, slice_store_sweep(s->store));
}

static void slices_put(struct api_slices *s, const struct json_t *object)
{
	struct slice slice;
	struct arena a;
	struct err e;

	arena_init(&a, SLICE_BYTES_MAX);
	int rc = slice_json_read(object, &a, &slice, &e);
	if (!rc)
		rc = slice_store_put(s->store, &slice, &e);
	arena_fini(&a);
	if (rc < 0 && once_is_new(&s->odd, e.text))
		s->handler->on_event(s->handler->ctx, true, "slices-watch-odd-slice", e.text);
	slices_report(s, rc > 0);
}

static void slices_on_object(void *ctx, enum reflector_change change, struct json_t *object)
{
	struct api_slices *s = ctx;
	struct api_meta meta;

	if (change == REFLECTOR_PUT) {
		slices_put(s, object);
		return;
	}
	/* one that cannot be read any more may have been read before */
	api_json_meta(object, &meta);
	slices_report(s, slice_store_remove(s->store, meta.name));
}

static void slices_on_event(void *ctx, bool bad, const char *event, const char *text)
{
	enum { EVENT_MAX = 64 };
	const struct api_slices *s = ctx;
	char name[EVENT_MAX];
	struct text t;

	text_init(&t, name, sizeof name);
	text_add(&t, "slices-%s", event);
	s->handler->on_event(s->handler->ctx, bad, name, text);
}

struct api_slices *api_slices_new(
	struct api *a, const char *node, const struct api_slices_handler *handler)
{
	enum { SLICES_OF_A_PAGE = 8 }; /* a full one may be 100 KB, and ten times that as it is read */
	struct api_slices *s = xcalloc(1, sizeof *s);
	const struct reflector_handler reflected = {
		.ctx = s,
		.begin = slices_on_begin,
		.object = slices_on_object,
		.synced = slices_on_synced,
		.on_event = slices_on_event,
	};
	char query[API_PATH_MAX];
	struct text t;

	text_init(&t, query, sizeof query);
	text_add(&t, "fieldSelector=spec.nodeName%%3D");
	path_add_escaped(&t, node);
	s->handler = handler;
	s->store = slice_store_new();
	s->reflector = reflector_new(a,
		&(struct reflector_options){.path = "/apis/resource.k8s.io/v1/resourceslices",
			.query = query,
			.page = SLICES_OF_A_PAGE,
			.from_memory = true},
		&reflected);
	return s;
}

const struct slice_device *api_slices_find(
	const struct api_slices *s, const char *driver, const char *pool, const char *device)
{
	return slice_store_find(s->store, driver, pool, device);
}

struct slice_counts api_slices_count(const struct api_slices *s)
{
	return slice_store_count(s->store);
}

bool api_slices_synced(const struct api_slices *s)
{
	return reflector_synced(s->reflector);
}

void api_slices_close(struct api_slices *s)
{
	if (!s)
		return;
	reflector_close(s->reflector);
	slice_store_free(s->store);
	free(s);
}
