#ifndef NUMAFIT_KUBELET_REGISTRATION_FILES_H
#define NUMAFIT_KUBELET_REGISTRATION_FILES_H

#include <io/loop.h>
#include <kubelet/grpc_server.h>

/* The kubelet's directory of device plugins as the registration sees it: the directory, the
 * kubelet's socket and ours in it. Any of them may be missing, come, go, and be replaced. */
struct plugin_files;

/* changed() is called, in a later turn, when one of the three may have changed. */
struct plugin_files *plugin_files_new(struct loop *l, struct rpc_server *s, const char *directory,
	const char *endpoint, void (*changed)(void *ctx), void *ctx);
/* Watch anew. The directory's own name is watched in its parent, so one that is replaced is noticed
 * at once; without a parent, or behind a mount of its own, only what is called from a timer finds
 * it. */
void plugin_files_watch(struct plugin_files *f);
/* Whether that directory of the kubelet's is there: 0, or -errno with text that says what to do. */
int plugin_directory_check(const char *path, struct err *e);
/* Whether the directory is there: 0, or -errno with text. */
int plugin_files_directory(const struct plugin_files *f, struct err *e);
/* Have our socket there, listening: 0, also when it is already; else acceptor_new()'s errors. */
int plugin_files_bind(struct plugin_files *f, struct err *e);
bool plugin_files_bound(const struct plugin_files *f);

/* The kubelet's socket: missing, the one that plugin_files_know() saw, or another, which is that of
 * another process. */
enum kubelet_socket { KUBELET_SOCKET_MISSING, KUBELET_SOCKET_KNOWN, KUBELET_SOCKET_ANOTHER };
enum kubelet_socket plugin_files_kubelet(const struct plugin_files *f);
void plugin_files_know(struct plugin_files *f);
const char *plugin_files_kubelet_path(const struct plugin_files *f);

/* Remove our socket. NULL is fine. */
void plugin_files_close(struct plugin_files *f);

#endif
