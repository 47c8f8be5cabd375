#include <io/watch.h>

#include <io/loop_uv.h>
#include <numafit/mem.h>
#include <numafit/text.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct watch {
	uv_fs_event_t uv;
	void (*changed)(void *ctx);
	void *ctx;
	char name[NAME_MAX + 1];
};

static void watch_touched(uv_fs_event_t *uv, const char *name, int events, int status)
{
	struct watch *w = (struct watch *)uv;

	(void)events, (void)status;
	if (!name || text_equal(name, w->name)) /* no name: it may be ours */
		w->changed(w->ctx);
}

/* Hear of that name by watching `what`. */
static struct watch *watch_start(
	struct loop *l, const char *what, const char *name, void (*changed)(void *ctx), void *ctx)
{
	struct watch *w = xcalloc(1, sizeof *w);

	if (!text_copy(w->name, sizeof w->name, name)) {
		free(w); /* it is too long */
		return NULL;
	}
	w->changed = changed;
	w->ctx = ctx;
	(void)uv_fs_event_init(loop_uv(l), &w->uv); /* cannot fail */
	if (uv_fs_event_start(&w->uv, watch_touched, what, 0) == 0)
		return w;
	watch_close(w);
	return NULL;
}

static const char *name_in(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

struct watch *watch_new(struct loop *l, const char *path, void (*changed)(void *ctx), void *ctx)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];

	if (!text_copy(dir, sizeof dir, slash ? path : "."))
		return NULL; /* the path is too long */
	if (slash)
		dir[slash == path ? 1 : slash - path] = '\0';
	return watch_start(l, dir, name_in(path), changed, ctx);
}

struct watch *watch_new_file(
	struct loop *l, const char *path, void (*changed)(void *ctx), void *ctx)
{
	return watch_start(l, path, name_in(path), changed, ctx);
}

void watch_close(struct watch *w)
{
	if (w && !uv_is_closing((uv_handle_t *)&w->uv))
		uv_close((uv_handle_t *)&w->uv, loop_free_handle);
}

/* kubelet's AtomicWriter makes the file a link into ..data, which is a link to a directory: a new
 * one takes its place, and nothing happens to the file's own name (kubernetes
 * pkg/volume/util/atomic_writer.go). */
bool file_watch_start(struct file_watch *w, struct loop *l, const char *path,
	void (*changed)(void *ctx), void *ctx)
{
	const char *slash = strrchr(path, '/');
	char data[PATH_MAX];

	(void)snprintf(data, sizeof data, "%.*s..data", slash ? (int)(slash + 1 - path) : 0, path);
	w->file = watch_new(l, path, changed, ctx);
	w->swap = watch_new(l, data, changed, ctx);
	return w->file && w->swap;
}

void file_watch_stop(struct file_watch *w)
{
	watch_close(w->file);
	watch_close(w->swap);
	*w = (struct file_watch){0};
}
