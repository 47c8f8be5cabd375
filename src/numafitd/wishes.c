/* What pods' authors wish for, put into what their containers ask for. */
#include "wishes.h"
#include "daemon.h"

#include <codec/wishes.h>
#include <io/log.h>
#include <numafit/arena.h>

static void log_ignored(
	const struct pod *pod, const struct ask *ask, const struct wishes_ignored *ignored)
{
	char name[512], container[256], what[1024];

	if (!ignored->annotation && !ignored->odd)
		return;
	log_line(LOG_INFO, "wish-ignored", "namespace=%s pod=%s container=%s %s=%s action=%s",
		pod->ns, log_text(name, sizeof name, pod->name),
		log_text(container, sizeof container, ask->name),
		ignored->odd ? "error" : "annotation",
		log_text(what, sizeof what, ignored->odd ? ignored->odd : ignored->annotation),
		ignored->odd ? "\"mend the pod's annotation\""
			     : "\"if pods may wish for that, add it to podWishes.allowed\"");
}

static struct wishes_ignored take(
	const struct daemon *d, const struct pod *pod, struct ask *ask, struct arena *a)
{
	const struct wishes_reader reader = {
		&d->settings, &d->topo.ids, d->settings.topology_scope == SCOPE_POD};
	struct wishes_ignored ignored = {0};

	if (d->settings.mode == MODE_MANAGE)
		wishes_take(&reader, pod, ask, a, &ignored);
	return ignored;
}

void wishes_of_container(const struct daemon *d, struct request *req, struct arena *a)
{
	const struct wishes_ignored ignored = take(d, &req->pod, &req->ask, a);

	req->no_memory_policy = (req->ask.wishes.memory || d->settings.across_nodes) &&
				!nri_conn_sets_memory_policies(d->runtime.conn);
	log_ignored(&req->pod, &req->ask, &ignored);
}

void wishes_of_pod(const struct daemon *d, struct pod *pod, struct arena *a)
{
	/* without annotations, too: an operator has words for namespaces */
	struct ask *list = arena_array(a, pod->nr, sizeof *list);

	for (size_t i = 0; list && i < pod->nr; i++) {
		list[i] = pod->container[i];
		const struct wishes_ignored ignored = take(d, pod, &list[i], a);
		log_ignored(pod, &list[i], &ignored);
	}
	pod->container = list ? list : pod->container;
}

void wishes_of_running(
	const struct daemon *d, struct request *containers, size_t nr, struct arena *a)
{
	for (size_t i = 0; i < nr; i++)
		(void)take(d, &containers[i].pod, &containers[i].ask, a);
}
