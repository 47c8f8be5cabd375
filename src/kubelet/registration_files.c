#include <kubelet/registration_files.h>

#include <errno.h>
#include <io/watch.h>
#include <numafit/mem.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define KUBELET_SOCKET "kubelet.sock" /* pkg/apis/deviceplugin/v1beta1/constants.go */

enum { DIRECTORY, KUBELET, OURS, NR_PATHS };

struct plugin_files {
	struct loop *l;
	struct rpc_server *s;
	void (*changed)(void *ctx);
	void *ctx;
	char *path[NR_PATHS];
	struct watch *watch[NR_PATHS]; /* NULL: cannot be watched now */
	struct acceptor *ours;
	struct stat known; /* the kubelet's */
};

static char *join_with_directory(const char *directory, size_t len, const char *name)
{
	size_t size = len + sizeof "/" + strlen(name);
	char *path = xcalloc(size, 1);

	(void)snprintf(path, size, "%.*s/%s", (int)len, directory, name);
	return path;
}

struct plugin_files *plugin_files_new(struct loop *l, struct rpc_server *s, const char *directory,
	const char *endpoint, void (*changed)(void *ctx), void *ctx)
{
	struct plugin_files *f = xcalloc(1, sizeof *f);
	size_t len = strlen(directory);

	while (len > 1 && directory[len - 1] == '/')
		len--;
	f->l = l;
	f->s = s;
	f->changed = changed;
	f->ctx = ctx;
	f->path[DIRECTORY] = xstrdup(directory);
	f->path[DIRECTORY][len] = '\0';
	f->path[KUBELET] = join_with_directory(directory, len, KUBELET_SOCKET);
	f->path[OURS] = join_with_directory(directory, len, endpoint);
	return f;
}

static void files_file_changed(void *ctx)
{
	struct plugin_files *f = ctx;

	f->changed(f->ctx);
}

static void files_directory_changed(void *ctx)
{
	plugin_files_watch(ctx);
	files_file_changed(ctx);
}

void plugin_files_watch(struct plugin_files *f)
{
	for (int n = 0; n < NR_PATHS; n++) {
		struct watch *old = f->watch[n];

		f->watch[n] = watch_new(f->l, f->path[n],
			n == DIRECTORY ? files_directory_changed : files_file_changed, f);
		watch_close(old); /* after it: what happens in between is seen */
	}
}

int plugin_directory_check(const char *path, struct err *e)
{
	struct stat st;

	int rc = stat(path, &st) < 0 ? errno : 0;
	if (rc == ENOENT)
		return err_set(e, ENOENT,
			"directory %s is missing: the kubelet makes it when it starts, and in a "
			"container it has to be mounted",
			path);
	if (rc)
		return err_set(e, rc, "directory %s: %s", path, strerror(rc));
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ENOTDIR, "%s is not a directory", path);
	/* a mount goes on showing a directory that is no more, and nothing can be made in it */
	if (st.st_nlink == 0)
		return err_set(e, ENOENT,
			"directory %s was removed: the mount that shows it has to be made again",
			path);
	return 0;
}

int plugin_files_directory(const struct plugin_files *f, struct err *e)
{
	return plugin_directory_check(f->path[DIRECTORY], e);
}

bool plugin_files_bound(const struct plugin_files *f)
{
	return f->ours && acceptor_is_there(f->ours);
}

int plugin_files_bind(struct plugin_files *f, struct err *e)
{
	if (plugin_files_bound(f))
		return 0;
	acceptor_close(steal(f->ours));
	f->ours = rpc_server_listen(f->s, f->path[OURS], e);
	return f->ours ? 0 : -e->code;
}

/* Inodes are used again, and what others do to the file (SELinux labels, modes) changes its ctime:
 * the time of its making distinguishes it from the one before. */
enum kubelet_socket plugin_files_kubelet(const struct plugin_files *f)
{
	const struct stat *known = &f->known;
	struct stat st;

	if (stat(f->path[KUBELET], &st) < 0)
		return KUBELET_SOCKET_MISSING;
	return st.st_dev == known->st_dev && st.st_ino == known->st_ino &&
			       st.st_mtim.tv_sec == known->st_mtim.tv_sec &&
			       st.st_mtim.tv_nsec == known->st_mtim.tv_nsec
		       ? KUBELET_SOCKET_KNOWN
		       : KUBELET_SOCKET_ANOTHER;
}

void plugin_files_know(struct plugin_files *f)
{
	if (stat(f->path[KUBELET], &f->known) < 0)
		f->known = (struct stat){0};
}

const char *plugin_files_kubelet_path(const struct plugin_files *f)
{
	return f->path[KUBELET];
}

void plugin_files_close(struct plugin_files *f)
{
	if (!f)
		return;
	for (int n = 0; n < NR_PATHS; n++) {
		watch_close(f->watch[n]);
		free(f->path[n]);
	}
	acceptor_close(f->ours);
	free(f);
}
