#ifndef NUMAFIT_NUMAFITD_REPLY_H
#define NUMAFIT_NUMAFITD_REPLY_H

#include <nri/session.h>
#include <numafit/engine.h>

struct daemon;

/* The texts of an answer, copied to *a; "" when its limit is reached. */
const char *in_arena(struct arena *a, const char *text);
const char *cpus_text(struct arena *a, const struct cpuset *cpus);
const char *nodes_text(const struct daemon *d, struct arena *a, struct nodeset nodes);
/* The updates as the runtime gets them, in reply->arena. */
void add_updates(struct daemon *d, const struct update_list *ups, struct nri_reply *reply);
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
