#include <kubelet/dra_registration.h>

#include <errno.h>
#include <io/watch.h>
#include <kubelet/dra_plugin.h>
#include <kubelet/plugin_registration_pb.h>
#include <kubelet/registration_files.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
	LOOK_MS = 1000,
	SELDOM = 10, /* times that: a look although nothing is missing, in case that a watch missed
			something */
	DIRECTORY_MODE = 0750,
	MEMORY_MAX = 64 << 10
};

enum { REGISTRY, DIRECTORY, OURS, OFFER, NR_PATHS };

struct dra_registration {
	struct loop *l;
	struct rpc_server *s;
	char *driver;
	unsigned look_ms;
	struct dra_registration_handler handler;
	struct loop_timer *timer;
	char *path[NR_PATHS];
	struct watch *watch[NR_PATHS];       /* NULL: cannot be watched now */
	struct acceptor *acceptor[NR_PATHS]; /* of the two sockets; NULL: not bound */
	bool missing;
	enum dra_registration_state
		heard;        /* what came through the present socket in the registry */
	const char *reported; /* the last event, and its text */
	struct err reported_text;
};

const char *dra_registration_state_name(enum dra_registration_state s)
{
	static const char *const names[NR_DRA_REGISTRATION_STATES] = {
		[DRA_REGISTRATION_WAITING] = "waiting",
		[DRA_REGISTRATION_OFFERED] = "offered",
		[DRA_REGISTRATION_ASKED] = "asked",
		[DRA_REGISTRATION_REFUSED] = "refused",
		[DRA_REGISTRATION_UP] = "up",
	};

	return names[s];
}

enum dra_registration_state dra_registration_state(const struct dra_registration *r)
{
	return r->missing ? DRA_REGISTRATION_WAITING : r->heard;
}

/* Once for what lasts. */
static void dra_report(struct dra_registration *r, bool bad, const char *event, const struct err *e)
{
	if (text_equal(r->reported, event) && text_equal(r->reported_text.text, e->text))
		return;
	r->reported = event;
	r->reported_text = *e;
	r->handler.on_event(r->handler.ctx, bad, event, e->text);
}

/* What is missing. */

static int dra_make_directory(const char *path, struct err *e)
{
	if (mkdir(path, DIRECTORY_MODE) < 0 && errno != EEXIST && errno != ENOENT)
		return err_set(e, errno, "directory %s cannot be made: %s", path, strerror(errno));
	return plugin_directory_check(path, e);
}

/* What somebody can do about it. */
static const char *dra_remedy(int error)
{
	static const struct {
		int error;
		const char *text;
	} remedies[] = {
		{EACCES, ": numafitd has to be root, or the directory's owner"},
		{EPERM, ": numafitd has to be root, or the directory's owner"},
		{EROFS, ": its mount has to be writable"},
		{EADDRINUSE, ": another instance of the driver runs, and there can be one"},
		{EEXIST, ": something that is no socket has to be removed"},
		{ENAMETOOLONG, ": the kubelet's directory needs a shorter path"},
		{ENOSPC, ": its file system is full"},
	};

	for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++)
		if (remedies[i].error == error)
			return remedies[i].text;
	return "";
}

static bool dra_is_bound(const struct dra_registration *r, int n)
{
	return r->acceptor[n] && acceptor_is_there(r->acceptor[n]);
}

static bool dra_has_directories(struct dra_registration *r)
{
	struct err e = {0};

	if (dra_make_directory(r->path[DIRECTORY], &e) == 0 &&
		plugin_directory_check(r->path[REGISTRY], &e) == 0)
		return true;
	dra_report(r, true, "claims-plugin-no-directory", &e);
	return false;
}

static bool dra_has_socket(struct dra_registration *r, int n)
{
	struct err e = {0}, with_remedy;

	if (dra_is_bound(r, n))
		return true;
	acceptor_close(steal(r->acceptor[n]));
	r->acceptor[n] = rpc_server_listen(r->s, r->path[n], &e);
	if (r->acceptor[n])
		return true;
	(void)err_set(&with_remedy, e.code, "%s%s", e.text, dra_remedy(e.code));
	if (e.code != ENOENT) /* the directory was removed just now: the next look says so */
		dra_report(r, true, "claims-plugin-no-socket", &with_remedy);
	return false;
}

/* The kubelet takes a socket that is removed for a driver that is gone, and a new one for a new
 * driver. */
static bool dra_has_offer(struct dra_registration *r)
{
	struct err e;

	if (dra_is_bound(r, OFFER))
		return true;
	if (!dra_has_socket(r, OFFER))
		return false;
	r->heard = DRA_REGISTRATION_OFFERED;
	(void)err_set(&e, 0, "the kubelet is to find %s", r->path[OFFER]);
	dra_report(r, false, "claims-plugin-offered", &e);
	return true;
}

/* Watches. */

static void dra_look(struct dra_registration *r)
{
	/* the kubelet connects to the first when it has found the second */
	r->missing = !dra_has_directories(r) || !dra_has_socket(r, OURS) || !dra_has_offer(r);
	loop_timer_set(r->timer, r->missing ? r->look_ms : SELDOM * r->look_ms);
}

static void dra_watch(struct dra_registration *r);

static void dra_on_file(void *ctx)
{
	dra_look(ctx);
}

static void dra_on_directory(void *ctx)
{
	dra_watch(ctx);
	dra_look(ctx);
	dra_watch(ctx); /* what the look made */
}

static void dra_watch(struct dra_registration *r)
{
	for (int n = 0; n < NR_PATHS; n++) {
		struct watch *old = r->watch[n];

		r->watch[n] = watch_new(r->l, r->path[n],
			n == REGISTRY || n == DIRECTORY ? dra_on_directory : dra_on_file, r);
		watch_close(old); /* after it: what happens in between is seen */
	}
}

/* The kubelet's calls. */

/* It asks anew when it has started, and when it tries again. */
static void on_get_info(void *ctx, struct rpc *r, const void *request, size_t len)
{
	static const char *const versions[] = {"v1.DRAPlugin", "v1beta1.DRAPlugin",
		"v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"};
	struct dra_registration *d = ctx;
	struct plugin_info info = {"DRAPlugin", d->driver, d->path[OURS], versions,
		sizeof versions / sizeof versions[0]};
	struct err e = {0};
	struct blob out;
	struct arena a;

	(void)request, (void)len; /* the empty message */
	d->heard = DRA_REGISTRATION_ASKED;
	arena_init(&a, MEMORY_MAX);
	if (plugin_info_encode(&info, &a, &out, &e) < 0)
		rpc_end(r, RPC_INTERNAL, "the path of the driver's socket is not UTF-8");
	else
		rpc_answer(r, out.data, out.len);
	arena_fini(&a);
}

static void dra_on_refused(struct dra_registration *d, const char *why)
{
	struct err e;

	(void)err_set(&e, EPROTO, "the kubelet refuses %s: %s", d->driver,
		*why ? why : "it does not say why");
	text_make_shown(e.text, TEXT_ONE_LINE); /* it may have been cut */
	d->heard = DRA_REGISTRATION_REFUSED;
	dra_report(d, true, "claims-plugin-refused", &e);
}

static void dra_on_accepted(struct dra_registration *d)
{
	struct err e;

	(void)err_set(&e, 0, "the kubelet has registered %s", d->driver);
	d->heard = DRA_REGISTRATION_UP;
	dra_report(d, false, "claims-plugin-up", &e);
}

static void on_notify(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct plugin_status status;
	struct err e = {0};
	struct arena a;

	arena_init(&a, MEMORY_MAX);
	if (plugin_status_decode((struct blob){request, len}, &a, &status, &e) < 0) {
		rpc_end(r, RPC_INVALID_ARGUMENT, e.text);
	} else {
		rpc_answer(r, "", 0);
		if (status.registered)
			dra_on_accepted(ctx);
		else
			dra_on_refused(ctx, status.error);
	}
	arena_fini(&a);
}

static const struct rpc_method registration_methods[] = {
	{PLUGIN_REGISTRATION_PATH("GetInfo"), RPC_UNARY, on_get_info, NULL, NULL},
	{PLUGIN_REGISTRATION_PATH("NotifyRegistrationStatus"), RPC_UNARY, on_notify, NULL, NULL},
};

/* Its life. */

static void dra_on_time(void *ctx)
{
	dra_on_directory(ctx);
}

static size_t length_without_slashes(const char *directory)
{
	size_t len = strlen(directory);

	while (len > 1 && directory[len - 1] == '/')
		len--;
	return len;
}

/* "DIRECTORY/NAMEMORE"; "DIRECTORY" when name is NULL. */
static char *dra_path(const char *directory, const char *name, const char *more)
{
	size_t len = length_without_slashes(directory);
	size_t size = len + sizeof "/" + (name ? strlen(name) : 0) + strlen(more);
	char *path = xcalloc(size, 1);

	(void)snprintf(path, size, "%.*s%s%s%s", (int)len, directory, name ? "/" : "",
		name ? name : "", more);
	return path;
}

struct dra_registration *dra_registration_new(struct loop *l, struct rpc_server *s,
	const struct dra_registration_options *o, const struct dra_registration_handler *handler)
{
	struct dra_registration *r = xcalloc(1, sizeof *r);

	r->l = l;
	r->s = s;
	r->driver = xstrdup(o->driver);
	r->look_ms = o->look_ms ? o->look_ms : LOOK_MS;
	r->handler = *handler;
	r->path[REGISTRY] = dra_path(o->registry, NULL, "");
	r->path[DIRECTORY] = dra_path(o->directory, NULL, "");
	r->path[OURS] = dra_path(o->directory, "dra.sock", "");
	r->path[OFFER] = dra_path(o->registry, o->driver, "-reg.sock");
	r->missing = true;
	r->heard = DRA_REGISTRATION_OFFERED;
	r->timer = loop_timer_new(l, dra_on_time, r);
	rpc_server_add(s, registration_methods,
		sizeof registration_methods / sizeof registration_methods[0], r);
	loop_timer_set(r->timer, 0); /* no event before the caller has what we return */
	return r;
}

void dra_registration_close(struct dra_registration *r)
{
	if (!r)
		return;
	/* the socket that is found first goes first */
	acceptor_close(r->acceptor[OFFER]);
	acceptor_close(r->acceptor[OURS]);
	loop_timer_close(r->timer);
	for (int n = 0; n < NR_PATHS; n++) {
		watch_close(r->watch[n]);
		free(r->path[n]);
	}
	free(r->driver);
	free(r);
}
