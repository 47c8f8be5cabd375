#include <numafit-sim/sim_kubelet_state.h>

#include <codec/pod_spec.h>
#include <errno.h>
#include <kubelet/device_manager_pb.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

/* Registration, the watch of each plugin's devices, and calls of plugins. */

enum { PATH_TEXT_MAX = 512 };

/* Calls */

static void on_call_reply(void *ctx, const void *data, size_t len)
{
	struct plugin_call *c = ctx;

	free(c->reply);
	c->reply = xcalloc(len + 1, 1);
	c->len = len;
	memcpy(c->reply, data, len);
}

static void on_call_ended(void *ctx, enum rpc_code code, const char *text)
{
	struct plugin_call *c = ctx;
	auto_free void *reply = steal(c->reply);
	bool failed = code != RPC_OK || !reply;

	c->call = NULL;
	c->done(c->ctx, (struct blob){reply, c->len}, failed ? text ? text : "" : NULL);
}

void plugin_call_start(struct plugin_call *c, const struct plugin *p, const char *method,
	struct blob request, unsigned timeout_ms,
	void (*done)(void *ctx, struct blob reply, const char *text), void *ctx)
{
	const struct rpc_request r = {
		p->socket, method, RPC_UNARY, request.data, request.len, timeout_ms};
	const struct rpc_call_events ev = {c, on_call_reply, on_call_ended};
	struct err e;

	*c = (struct plugin_call){.done = done, .ctx = ctx};
	c->call = rpc_call_start(p->k->pump, &r, &ev, &e);
	if (!c->call)
		done(ctx, (struct blob){0}, e.text);
}

static void plugin_call_cancel(struct plugin_call *c)
{
	rpc_call_cancel(c->call);
	c->call = NULL;
	free(c->reply);
	c->reply = NULL;
}

/* Plugins */

static void drop_plugin(struct plugin *p)
{
	struct sim_kubelet *k = p->k;

	for (size_t i = 0; i < k->plugins.nr; i++)
		if (k->plugins.at[i] == p)
			vec_remove(&k->plugins, i--);
	if (k->plugin[p->row] == p)
		k->plugin[p->row] = NULL;
	plugin_call_cancel(&p->asked_options);
	rpc_call_cancel(p->watch);
	free(p->list);
	free(p->socket);
	free(p);
}

void sim_kubelet_end_plugins(struct sim_kubelet *k)
{
	plugin_call_cancel(&k->call);
	while (k->plugins.nr)
		drop_plugin(k->plugins.at[0]);
	vec_fini(&k->plugins);
}

static void take_device_list(struct plugin *p)
{
	struct sim_kubelet *k = p->k;
	struct plugin_device *list;
	struct arena a;
	struct err e;
	size_t nr;

	arena_init(&a, SIM_KUBELET_MESSAGE_MAX);
	int rc = device_list_decode((struct blob){p->list, p->list_len}, &a, &list, &nr, &e);
	if (!rc)
		rc = device_table_replace(&k->table, p->row, list, nr, &e);
	arena_fini(&a);
	free(p->list);
	p->list = NULL;
	if (rc)
		sim_kubelet_broken(k, "ListAndWatch: %s", e.text);
	else
		k->ev.changed(k->ev.ctx);
}

void sim_kubelet_take_lists(struct sim_kubelet *k)
{
	for (unsigned r = 0; r < POD_DEVICES_MAX; r++)
		if (k->plugin[r] && k->plugin[r]->list)
			take_device_list(k->plugin[r]);
}

static void on_device_list(void *ctx, const void *data, size_t len)
{
	struct plugin *p = ctx;

	free(p->list);
	p->list = xcalloc(len + 1, 1);
	p->list_len = len;
	memcpy(p->list, data, len);
	if (p->k->plugin[p->row] == p && !p->k->admission.pod)
		take_device_list(p);
}

/* The device manager of 1.36 looks up by the resource's name which plugin it has lost: a newer
 * registration of it goes, too. */
static void on_watch_ended(void *ctx, enum rpc_code code, const char *text)
{
	struct plugin *p = ctx, *now = p->k->plugin[p->row];
	struct sim_kubelet *k = p->k;

	(void)code, (void)text;
	p->watch = NULL;
	device_table_stop(&k->table, p->row);
	if (now && now != p)
		drop_plugin(now);
	drop_plugin(p);
	k->ev.changed(k->ev.ctx);
}

/* Registration */

static void refuse_plugin(struct plugin *p, const char *text)
{
	rpc_end(steal(p->registering), RPC_UNKNOWN, text);
	drop_plugin(p);
}

static void watch_plugin(struct plugin *p)
{
	const struct rpc_request r = {.socket = p->socket,
		.method = DEVICE_PLUGIN_PATH("ListAndWatch"),
		.kind = RPC_STREAM,
		.data = ""};
	const struct rpc_call_events ev = {p, on_device_list, on_watch_ended};
	struct err e;

	p->k->plugin[p->row] = p;
	p->k->of_plugin[p->row] = true;
	p->k->pre_start[p->row] = p->options.pre_start;
	p->watch = rpc_call_start(p->k->pump, &r, &ev, &e);
	if (p->watch)
		return;
	sim_kubelet_broken(p->k, "ListAndWatch: %s", e.text);
	drop_plugin(p);
}

static void on_plugin_options(void *ctx, struct blob reply, const char *text)
{
	struct plugin *p = ctx;
	struct arena a;
	struct err e;

	if (text) {
		refuse_plugin(p, text);
		return;
	}
	arena_init(&a, SIM_KUBELET_MESSAGE_MAX);
	int rc = device_plugin_options_decode(reply, &a, &p->options, &e);
	arena_fini(&a);
	if (rc) {
		refuse_plugin(p, e.text);
		return;
	}
	rpc_answer(steal(p->registering), "", 0);
	watch_plugin(p);
}

static struct plugin *new_plugin(
	struct sim_kubelet *k, const struct plugin_registration *r, struct err *e)
{
	char path[PATH_TEXT_MAX];

	if (!resource_is_extended(r->resource)) {
		err_set(e, EINVAL, "the ResourceName \"%.80s\" is invalid", r->resource);
		return NULL;
	}
	int row = device_table_row(&k->table, r->resource, e);
	if (row < 0)
		return NULL;
	snprintf(path, sizeof path, "%s/%s", k->plugins_directory, r->endpoint);
	struct plugin *p = xcalloc(1, sizeof *p);
	p->k = k;
	p->row = (unsigned)row;
	p->socket = xstrdup(path);
	*vec_push(&k->plugins) = p;
	return p;
}

static void on_register(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct sim_kubelet *k = ctx;
	struct plugin_registration registration;
	struct plugin *p = NULL;
	struct arena a;
	struct err e;

	if (k->ends) {
		rpc_end(r, RPC_UNAVAILABLE, NULL);
		return;
	}
	arena_init(&a, SIM_KUBELET_MESSAGE_MAX);
	if (registration_decode((struct blob){request, len}, &a, &registration, &e) == 0)
		p = new_plugin(k, &registration, &e);
	arena_fini(&a);
	if (!p) {
		rpc_end(r, RPC_UNKNOWN, e.text);
		return;
	}
	p->registering = r;
	plugin_call_start(&p->asked_options, p, DEVICE_PLUGIN_PATH("GetDevicePluginOptions"),
		(struct blob){"", 0}, SIM_KUBELET_CALL_MS, on_plugin_options, p);
}

void sim_kubelet_serve_plugins(struct sim_kubelet *k)
{
	static const struct rpc_method methods[] = {
		{.path = REGISTRATION_REGISTER_PATH, .kind = RPC_UNARY, .called = on_register},
	};

	rpc_server_add(k->server, methods, sizeof methods / sizeof *methods, k);
}
