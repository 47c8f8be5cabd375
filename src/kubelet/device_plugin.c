#include <kubelet/device_plugin.h>

#include <assert.h>
#include <errno.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <numafit/vec.h>
#include <string.h>

enum {
	/* for one request or list and all that is made of it: more than a message of
	 * DEVICE_PLUGIN_MESSAGE_MAX needs with ids as the kubelet has them */
	MEMORY_MAX = 32 << 20
};

/* A list of devices in its wire form, shared by the watchers that were sent it. */
struct device_list {
	unsigned nr_users;
	size_t len;
	char bytes[];
};

/* A client that watches the list. */
struct watcher {
	struct rpc *r;
	struct device_list *sent; /* NULL: nothing */
	bool sending;             /* it has not left yet: changes wait */
};

struct device_plugin {
	const struct device_plugin_handler *handler;
	struct {
		VEC(struct watcher);
	} watchers;
	bool listed;              /* list is of the devices as they are */
	struct device_list *list; /* NULL: it could not be made */
	bool reported;            /* that it could not */
};

/* The list of devices. */

static struct device_list *list_new(struct blob bytes)
{
	struct device_list *l = xcalloc(1, sizeof *l + bytes.len);

	l->nr_users = 1;
	l->len = bytes.len;
	if (bytes.len)
		memcpy(l->bytes, bytes.data, bytes.len);
	return l;
}

static void list_release(struct device_list *l)
{
	if (l && --l->nr_users == 0)
		free(l);
}

static bool list_is_same(const struct device_list *a, const struct device_list *b)
{
	return a == b || (a && b && a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0);
}

/* Once, until a list can be made again. */
static void plugin_report_no_list(struct device_plugin *p, const char *why)
{
	const struct device_plugin_handler *h = p->handler;

	if (why && !p->reported && h->on_event)
		h->on_event(h->ctx, true, "device-plugin-no-list", why);
	p->reported = why != NULL;
}

/* NULL when there is none that can be sent. */
static struct device_list *make_list(struct device_plugin *p)
{
	struct device_list *list = NULL;
	struct plugin_device *devices = NULL;
	size_t nr = 0;
	struct blob bytes;
	struct err e = {0};
	struct arena a;

	arena_init(&a, MEMORY_MAX);
	int rc = p->handler->devices(p->handler->ctx, &a, &devices, &nr, &e);
	if (!rc)
		rc = device_list_encode(devices, nr, &a, &bytes, &e);
	if (!rc)
		list = list_new(bytes);
	plugin_report_no_list(p, rc ? e.text : NULL);
	arena_fini(&a);
	return list;
}

/* Made once after a change, and only when somebody can be sent it. */
static struct device_list *present_list(struct device_plugin *p)
{
	if (!p->listed) {
		list_release(p->list);
		p->list = make_list(p);
		p->listed = true;
	}
	return p->list;
}

/* The clients that watch it. */

static struct watcher *plugin_find_watcher(struct device_plugin *p, const struct rpc *r)
{
	size_t i = 0;

	while (i < p->watchers.nr && p->watchers.at[i].r != r)
		i++;
	assert(i < p->watchers.nr);
	return &p->watchers.at[i];
}

/* One list is on its way at most, so that a burst of changes is one more list, and a client
 * that never reads has one. */
static void plugin_update_watcher(struct device_plugin *p, struct watcher *w)
{
	if (w->sending)
		return;
	struct device_list *list = present_list(p);
	if (!list || list_is_same(list, w->sent))
		return;
	if (rpc_send(w->r, list->bytes, list->len) < 0)
		return; /* it is over: closed() comes */
	w->sending = true;
	list_release(w->sent);
	w->sent = list;
	list->nr_users++;
}

static void plugin_report_watched(struct device_plugin *p)
{
	const struct device_plugin_handler *h = p->handler;

	if (h->watched)
		h->watched(h->ctx, (unsigned)p->watchers.nr);
}

static void plugin_on_watch(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct device_plugin *p = ctx;
	struct watcher *w = vec_push(&p->watchers);

	(void)request, (void)len; /* the empty message */
	w->r = r;
	plugin_update_watcher(p, w);
	plugin_report_watched(p);
}

static void on_watch_sendable(void *ctx, struct rpc *r)
{
	struct watcher *w = plugin_find_watcher(ctx, r);

	w->sending = false;
	plugin_update_watcher(ctx, w);
}

static void on_watch_closed(void *ctx, struct rpc *r)
{
	struct device_plugin *p = ctx;
	struct watcher *w = plugin_find_watcher(p, r);

	list_release(w->sent);
	vec_remove(&p->watchers, (size_t)(w - p->watchers.at));
	plugin_report_watched(p);
}

void device_plugin_changed(struct device_plugin *p)
{
	p->listed = false;
	for (size_t i = 0; i < p->watchers.nr; i++)
		plugin_update_watcher(p, &p->watchers.at[i]);
}

void device_plugin_end_streams(struct device_plugin *p)
{
	for (size_t i = 0; i < p->watchers.nr; i++)
		rpc_end(p->watchers.at[i].r, RPC_UNAVAILABLE, "numafit registers anew");
}

/* Calls: each makes the answer's bytes from those of the request. */

struct device_plugin_options device_plugin_options(const struct device_plugin *p)
{
	return (struct device_plugin_options){
		.pre_start = p->handler->pre_start != NULL, .preferred_allocation = true};
}

static int make_options(struct device_plugin *p, struct blob request, struct arena *a,
	struct blob *out, struct err *e)
{
	struct device_plugin_options o = device_plugin_options(p);

	(void)request; /* the empty message */
	return device_plugin_options_encode(&o, a, out, e);
}

static int prefer_devices(struct device_plugin *p, const struct preferred_ask *ask, struct arena *a,
	struct device_ids *out)
{
	size_t room = ask->available.nr + ask->must_include.nr;
	const char **ids = arena_array(a, room, sizeof *ids);

	if (!ids)
		return -ENOMEM;
	*out = (struct device_ids){ids, p->handler->prefer(p->handler->ctx, ask, a, ids)};
	assert(out->nr <= room);
	return 0;
}

static int make_preferences(struct device_plugin *p, struct blob request, struct arena *a,
	struct blob *out, struct err *e)
{
	struct preferred_request in;
	int rc = preferred_request_decode(request, a, &in, e);

	if (rc)
		return rc;
	struct device_ids *ids = arena_array(a, in.nr, sizeof *ids);
	if (!ids)
		return -ENOMEM;
	for (size_t i = 0; !rc && i < in.nr; i++)
		rc = prefer_devices(p, &in.container[i], a, &ids[i]);
	return rc ? rc : preferred_response_encode(ids, in.nr, a, out, e);
}

/* An error ends the pod. What is no garbage and yet cannot be answered gets the message that
 * prefers nothing: the kubelet then takes any of the devices (devicemanager, devicesToAllocate). */
static int make_preferred(struct device_plugin *p, struct blob request, struct arena *a,
	struct blob *out, struct err *e)
{
	int rc = make_preferences(p, request, a, out, e);

	if (rc == -EBADMSG)
		return rc;
	if (rc)
		*out = (struct blob){0};
	return 0;
}

static int make_allocation(struct device_plugin *p, struct blob request, struct arena *a,
	struct blob *out, struct err *e)
{
	struct allocate_request in;
	int rc = allocate_request_decode(request, a, &in, e);

	if (rc)
		return rc;
	struct allocate_answer *answers = arena_array(a, in.nr, sizeof *answers);
	if (!answers)
		return err_set(e, ENOMEM, "%zu containers are too many", in.nr);
	for (size_t i = 0; !rc && i < in.nr; i++)
		rc = p->handler->allocate(p->handler->ctx, &in.container[i], a, &answers[i], e);
	return rc ? rc : allocate_response_encode(answers, in.nr, a, out, e);
}

/* A handler that did not want to be asked has nothing against the container. */
static int make_pre_start(struct device_plugin *p, struct blob request, struct arena *a,
	struct blob *out, struct err *e)
{
	struct device_ids ids;
	int rc = pre_start_request_decode(request, a, &ids, e);

	if (!rc && p->handler->pre_start)
		rc = p->handler->pre_start(p->handler->ctx, &ids, e);
	*out = (struct blob){0};
	return rc;
}

/* The kubelet takes all of them alike; people read them. */
static enum rpc_code rpc_code_of_errno(int error)
{
	static const struct {
		int error;
		enum rpc_code code;
	} codes[] = {
		{EBADMSG, RPC_INVALID_ARGUMENT},
		{EINVAL, RPC_INVALID_ARGUMENT},
		{ENOENT, RPC_NOT_FOUND},
		{E2BIG, RPC_RESOURCE_EXHAUSTED},
		{EMSGSIZE, RPC_RESOURCE_EXHAUSTED},
		{ENOMEM, RPC_RESOURCE_EXHAUSTED},
		{ENOSPC, RPC_RESOURCE_EXHAUSTED},
		{EBUSY, RPC_FAILED_PRECONDITION},
		{EAGAIN, RPC_UNAVAILABLE},
		{ENOTCONN, RPC_UNAVAILABLE},
	};

	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
		if (codes[i].error == error)
			return codes[i].code;
	return RPC_INTERNAL;
}

static void answer_call_with(struct device_plugin *p, struct rpc *r, struct blob request,
	int (*make)(struct device_plugin *p, struct blob request, struct arena *a, struct blob *out,
		struct err *e))
{
	struct blob out;
	struct err e = {0};
	struct arena a;

	arena_init(&a, MEMORY_MAX);
	int rc = make(p, request, &a, &out, &e);
	if (rc) {
		text_make_shown(e.text, TEXT_ONE_LINE); /* a status has to be that */
		rpc_end(r, rpc_code_of_errno(-rc), e.text);
	} else {
		rpc_answer(r, out.data, out.len);
	}
	arena_fini(&a);
}

static void on_options(void *ctx, struct rpc *r, const void *request, size_t len)
{
	answer_call_with(ctx, r, (struct blob){request, len}, make_options);
}

static void on_preferred(void *ctx, struct rpc *r, const void *request, size_t len)
{
	answer_call_with(ctx, r, (struct blob){request, len}, make_preferred);
}

static void on_allocate(void *ctx, struct rpc *r, const void *request, size_t len)
{
	answer_call_with(ctx, r, (struct blob){request, len}, make_allocation);
}

static void on_pre_start(void *ctx, struct rpc *r, const void *request, size_t len)
{
	answer_call_with(ctx, r, (struct blob){request, len}, make_pre_start);
}

static const struct rpc_method methods[] = {
	{.path = DEVICE_PLUGIN_PATH("GetDevicePluginOptions"),
		.kind = RPC_UNARY,
		.called = on_options},
	{.path = DEVICE_PLUGIN_PATH("ListAndWatch"),
		.kind = RPC_STREAM,
		.called = plugin_on_watch,
		.sendable = on_watch_sendable,
		.closed = on_watch_closed},
	{.path = DEVICE_PLUGIN_PATH("GetPreferredAllocation"),
		.kind = RPC_UNARY,
		.called = on_preferred},
	{.path = DEVICE_PLUGIN_PATH("Allocate"), .kind = RPC_UNARY, .called = on_allocate},
	{.path = DEVICE_PLUGIN_PATH("PreStartContainer"),
		.kind = RPC_UNARY,
		.called = on_pre_start},
};

struct device_plugin *device_plugin_new(
	struct rpc_server *s, const struct device_plugin_handler *handler)
{
	struct device_plugin *p = xcalloc(1, sizeof *p);

	p->handler = handler;
	rpc_server_add(s, methods, sizeof methods / sizeof methods[0], p);
	return p;
}

void device_plugin_free(struct device_plugin *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->watchers.nr; i++)
		list_release(p->watchers.at[i].sent);
	vec_fini(&p->watchers);
	list_release(p->list);
	free(p);
}
