/* What replies are made of: texts in the message's arena, and lists. */
#include "reply.h"
#include "daemon.h"
#include "quota.h"

#include <io/fault.h>
#include <string.h>

const char *in_arena(struct arena *a, const char *text)
{
	const char *copy = arena_strndup(a, text, strlen(text));

	return copy ? copy : "";
}

const char *cpus_text(struct arena *a, const struct cpuset *cpus)
{
	char text[CPUSET_TEXT_MAX];

	return in_arena(a, cpuset_format(cpus, text, sizeof text));
}

const char *nodes_text(const struct daemon *d, struct arena *a, struct nodeset nodes)
{
	char text[NODESET_TEXT_MAX];

	return in_arena(a, nodeset_format(nodes, &d->topo.ids, text, sizeof text));
}

/* What one update takes in a message beside its texts, at most. */
enum { UPDATE_BYTES = 64 };

static size_t update_bytes(const struct nri_cpuset *c)
{
	return strlen(c->container_id) + strlen(c->cpus) + strlen(c->mems) + UPDATE_BYTES;
}

/* Most of them get one and the same cpuset, the shared pool's: its text is made once. */
size_t add_updates(struct daemon *d, const struct update_list *ups, struct nri_reply *reply)
{
	struct nri_cpuset *list = arena_array(reply->arena, ups->nr, sizeof *list);
	const size_t most = fault_update_bytes(UPDATES_BYTES_MAX);
	const struct update *before = NULL;
	size_t nr = 0, bytes = 0;

	for (; list && nr < ups->nr; nr++) {
		const struct update *u = &ups->at[nr];
		bool same_cpus = before && cpuset_equal(&before->cpus, &u->cpus);
		bool same_mems = before && nodeset_equal(before->mems, u->mems);

		list[nr] = (struct nri_cpuset){
			.container_id = in_arena(reply->arena, u->container_id),
			.cpus = same_cpus ? list[nr - 1].cpus : cpus_text(reply->arena, &u->cpus),
			.mems = same_mems ? list[nr - 1].mems
					  : nodes_text(d, reply->arena, u->mems),
			.cpu_quota = quota_of_update(d, u),
		};
		bytes += update_bytes(&list[nr]);
		if (bytes > most || !*list[nr].container_id ||
			(!*list[nr].cpus && !cpuset_empty(&u->cpus)) ||
			(!*list[nr].mems && !nodeset_empty(u->mems)))
			break; /* no room for it, or for one of its texts */
		before = u;
	}
	reply->updates = list;
	reply->nr_updates = nr;
	d->measured.counters.updates += nr;
	return nr;
}

static int compare_sandbox_ids(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct sandboxes sandboxes_of(const struct nri_inventory *what)
{
	struct sandboxes there = {
		.id = xcalloc(what->nr_pods, sizeof *there.id),
		.pod_uid = xcalloc(what->nr_pods, sizeof *there.pod_uid),
	};
	const char **used = xcalloc(what->nr, sizeof *used);
	bool says_which = false;

	for (size_t i = 0; i < what->nr_pods; i++)
		says_which = says_which || what->pods[i].has_process;
	for (size_t i = 0; i < what->nr; i++)
		used[i] = what->containers[i].pod.sandbox_id;
	qsort(used, what->nr, sizeof *used, compare_sandbox_ids);
	for (size_t i = 0; i < what->nr_pods; i++) {
		const struct pod *pod = &what->pods[i];

		if (says_which && !pod->has_process &&
			!bsearch(&pod->sandbox_id, used, what->nr, sizeof *used,
				compare_sandbox_ids))
			continue;
		there.id[there.nr] = pod->sandbox_id;
		there.pod_uid[there.nr++] = pod->uid;
	}
	free(used);
	return there;
}

void sandboxes_free(struct sandboxes *s)
{
	free(s->id);
	free(s->pod_uid);
}
