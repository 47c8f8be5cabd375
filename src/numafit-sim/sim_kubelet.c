#include <numafit-sim/sim_kubelet_state.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <numafit/text.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* YOUTH_MS: clients that found no socket try again after some 100 ms. */
enum { DIRECTORY_MODE = 0750, PATH_TEXT_MAX = 512, YOUTH_MS = 500 };

/* What the parts of it all do to it */

void sim_kubelet_broken(struct sim_kubelet *k, const char *fmt, ...)
{
	char text[sizeof(struct err)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	k->ev.broken(k->ev.ctx, text);
}

void sim_kubelet_visited(struct sim_kubelet *k)
{
	if (!k->ready && k->nr_lists && k->watchers.nr)
		loop_timer_set(k->youth, 0);
}

/* Directories and sockets */

static int make_directory(const char *path, struct err *e)
{
	if (mkdir(path, DIRECTORY_MODE) < 0 && errno != EEXIST)
		return err_set(e, errno, "%s: %s", path, strerror(errno));
	return 0;
}

/* Remove the sockets in it, as the device manager does. */
static int remove_sockets(const char *path, struct err *e)
{
	DIR *d = opendir(path);
	struct stat st;

	if (!d)
		return err_set(e, errno, "%s: %s", path, strerror(errno));
	for (struct dirent *entry; (entry = readdir(d));)
		if (fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISSOCK(st.st_mode))
			(void)unlinkat(dirfd(d), entry->d_name, 0);
	closedir(d);
	return 0;
}

/* A socket in a directory of the root, which is made. */
static struct acceptor *open_door(
	struct sim_kubelet *k, const char *directory, const char *name, struct err *e)
{
	char path[PATH_TEXT_MAX];

	snprintf(path, sizeof path, "%s/%s", k->o.root, directory);
	if (make_directory(path, e) < 0)
		return NULL;
	snprintf(path, sizeof path, "%s/%s/%s", k->o.root, directory, name);
	return rpc_server_listen(k->server, path, e);
}

static int open_doors(struct sim_kubelet *k, struct err *e)
{
	static const char plugins[] = "device-plugins";
	char path[PATH_TEXT_MAX];

	snprintf(path, sizeof path, "%s/%s", k->o.root, plugins);
	k->plugins_directory = xstrdup(path);
	if (make_directory(k->o.root, e) < 0 || make_directory(path, e) < 0 ||
		remove_sockets(path, e) < 0)
		return -e->code;
	k->resources_door = open_door(k, "pod-resources", "kubelet.sock", e);
	if (k->resources_door)
		k->pods_door = open_door(k, "pods-api", "pods-api.sock", e);
	if (k->pods_door)
		k->plugins_door = open_door(k, plugins, "kubelet.sock", e);
	return k->plugins_door ? 0 : -e->code;
}

static void on_youth_end(void *ctx)
{
	struct sim_kubelet *k = ctx;

	k->ready = true;
	k->ev.changed(k->ev.ctx);
}

struct sim_kubelet *sim_kubelet_new(struct loop *l, struct rpc_pump *p,
	const struct sim_kubelet_options *o, const struct sim_kubelet_events *ev, struct err *e)
{
	const struct rpc_server_options server = {.request_max = SIM_KUBELET_MESSAGE_MAX};
	struct sim_kubelet *k = xcalloc(1, sizeof *k);

	k->loop = l;
	k->pump = p;
	k->o = *o;
	k->ev = *ev;
	k->timer = loop_timer_new(l, sim_kubelet_timer, k);
	k->youth = loop_timer_new(l, on_youth_end, k);
	loop_timer_set(k->youth, o->youth_ms ? o->youth_ms : YOUTH_MS);
	k->server = rpc_server_new(p, &server);
	sim_kubelet_serve_plugins(k);
	sim_kubelet_serve_pods(k);
	k->table = (struct device_table){.topo = o->topo, .settings = &o->trace->kubelet};
	if (device_table_make_up(&k->table, o->trace->devices.at, o->trace->devices.nr, e) < 0 ||
		open_doors(k, e) < 0) {
		sim_kubelet_free(k);
		return NULL;
	}
	return k;
}

static void close_doors(struct sim_kubelet *k)
{
	acceptor_close(k->plugins_door);
	acceptor_close(k->resources_door);
	acceptor_close(k->pods_door);
	k->plugins_door = k->resources_door = k->pods_door = NULL;
	free(k->plugins_directory);
	k->plugins_directory = NULL;
}

int sim_kubelet_restart(struct sim_kubelet *k, struct err *e)
{
	close_doors(k);
	sim_kubelet_end_plugins(k);
	sim_kubelet_end_watches(k);
	for (unsigned r = 0; r < POD_DEVICES_MAX; r++)
		if (k->of_plugin[r]) /* it knows what it has given out, and no device */
			k->table.row[r].nr = 0;
	return open_doors(k, e);
}

void sim_kubelet_free(struct sim_kubelet *k)
{
	if (!k)
		return;
	k->ends = true;
	close_doors(k);
	sim_kubelet_end_plugins(k);
	rpc_server_free(k->server);
	sim_kubelet_drop_watches(k);
	loop_timer_close(k->timer);
	loop_timer_close(k->youth);
	arena_fini(&k->admission.arena);
	device_table_fini(&k->table);
	free(k->memory);
	free(k);
}

/* What is asked about it */

bool sim_kubelet_has(const struct sim_kubelet *k, const char *resource)
{
	int row = device_table_find(&k->table, resource);

	if (row < 0 || !k->table.row[row].nr)
		return false;
	return k->plugin[row] || !k->of_plugin[row];
}

bool sim_kubelet_ready(const struct sim_kubelet *k)
{
	return k->ready;
}

bool sim_kubelet_knows(const struct sim_kubelet *k, const char *uid)
{
	const struct sim_pod *p = device_table_pod(&k->table, uid);

	return p && p->admitted;
}

void sim_kubelet_forget(struct sim_kubelet *k, const char *uid)
{
	struct sim_pod *p = k ? device_table_pod(&k->table, uid) : NULL;

	if (!p)
		return;
	struct known_pod gone = {.pod = pod_identity(&p->spec.pod)};
	gone.pod.nr_annotations = 0;
	sim_kubelet_send_event(k, PODS_DELETED, &gone);
	device_table_remove_pod(&k->table, p);
}

size_t sim_kubelet_annotations(const struct sim_kubelet *k, const char *uid, const char *container,
	struct key_value *out, size_t nr)
{
	const struct sim_pod *p = device_table_pod(&k->table, uid);
	int place = p ? sim_pod_container(p, container) : -1;
	size_t found = 0;

	for (size_t i = 0; place >= 0 && i < p->annotations.nr; i++) {
		if (p->annotations.at[i].container != (unsigned)place)
			continue;
		if (found < nr)
			out[found] = p->annotations.at[i].pair;
		found++;
	}
	return found;
}

unsigned sim_kubelet_devices(const struct sim_kubelet *k, const char *uid, const char *container,
	const char *resource, unsigned on[NODES_MAX])
{
	const struct sim_pod *p = device_table_pod(&k->table, uid);
	int place = p ? sim_pod_container(p, container) : -1;
	int row = device_table_find(&k->table, resource);
	unsigned nr = 0;

	memset(on, 0, NODES_MAX * sizeof *on);
	for (size_t g = 0; place >= 0 && g < p->given.nr; g++) {
		const struct given *of = &p->given.at[g];

		if (of->container != (unsigned)place || (int)of->row != row)
			continue;
		for (size_t i = 0; i < of->ids.nr; i++) {
			int at = device_row_find(&k->table.row[row], of->ids.id[i]);

			if (at >= 0)
				nodeset_each (n, k->table.row[row].device[at].nodes)
					on[n]++;
		}
		nr += (unsigned)of->ids.nr;
	}
	return nr;
}
