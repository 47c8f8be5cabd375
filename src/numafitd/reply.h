#ifndef NUMAFIT_NUMAFITD_REPLY_H
#define NUMAFIT_NUMAFITD_REPLY_H

#include <nri/session.h>
#include <numafit/engine.h>

struct daemon;

/* The texts of an answer, copied to *a; "" when its limit is reached. */
const char *in_arena(struct arena *a, const char *text);
const char *cpus_text(struct arena *a, const struct cpuset *cpus);
const char *nodes_text(const struct daemon *d, struct arena *a, struct nodeset nodes);
/* Bytes of the updates of one reply: a message of ttrpc has 4 MiB. 5,000 containers fit with 600
 * bytes each, as of some 100 ranges of CPUs. */
enum { UPDATES_BYTES_MAX = 3 << 20 };
/* The updates as the runtime gets them, in reply->arena: the first ones, as many as fit into
 * UPDATES_BYTES_MAX and the arena. Returns how many these are. */
size_t add_updates(struct daemon *d, const struct update_list *ups, struct nri_reply *reply);
/* The pods that are there: those whose sandbox has a process or a container. Runtimes list stopped
 * sandboxes, too; where the runtime says of none that it has a process, all count. The strings are
 * the inventory's.
 */
struct sandboxes {
	size_t nr;
	const char **id, **pod_uid;
};
struct sandboxes sandboxes_of(const struct nri_inventory *what);
void sandboxes_free(struct sandboxes *s);

#endif
