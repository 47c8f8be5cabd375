#include <kubelet/pods_pb.h>

#include <codec/pb_message.h>
#include <codec/pod_spec.h>
#include <corev1.pb-c.h>
#include <errno.h>
#include <numafit/text.h>
#include <pods.pb-c.h>

int pods_event_decode(struct blob message, struct arena *a, struct pods_event *out, struct err *e)
{
	static const enum pods_event_type types[] = {
		[PODS__EVENT_TYPE__ADDED] = PODS_ADDED,
		[PODS__EVENT_TYPE__MODIFIED] = PODS_MODIFIED,
		[PODS__EVENT_TYPE__DELETED] = PODS_DELETED,
		[PODS__EVENT_TYPE__INITIAL_SYNC_COMPLETE] = PODS_SYNCED,
	};
	const Pods__WatchPodsEvent *m =
		pb_decode(&pods__watch_pods_event__descriptor, message, a, e);

	if (!m)
		return -EBADMSG;
	size_t type = (size_t)m->type;
	*out = (struct pods_event){
		.type = type < sizeof types / sizeof *types ? types[type] : PODS_UNKNOWN,
		.pod = {m->pod.data, m->pod.len},
	};
	return 0;
}

/* The spec, from messages to plain structs */

static int check_count(size_t nr, size_t max, const char *what, struct err *e)
{
	return nr <= max ? 0 : err_set(e, E2BIG, "%zu %s, more than %zu", nr, what, max);
}

static int too_large(struct err *e)
{
	return err_set(e, EBADMSG, "a v1.Pod that is too large");
}

static int take_list(Corev1__Resource **from, size_t nr, struct arena *a, struct resource_list *out,
	struct err *e)
{
	int rc = check_count(nr, PODS_RESOURCES_MAX, "requests or limits", e);
	struct key_value *list = rc ? NULL : arena_array(a, nr, sizeof *list);

	if (!list)
		return rc ? rc : too_large(e);
	for (size_t i = 0; i < nr; i++)
		list[i] = (struct key_value){
			from[i]->key, from[i]->value ? from[i]->value->string : ""};
	*out = (struct resource_list){list, nr};
	return 0;
}

static int take_resources(const Corev1__ResourceRequirements *r, struct arena *a,
	struct resource_spec *out, struct err *e)
{
	if (!r)
		return 0;
	int rc = take_list(r->limits, r->n_limits, a, &out->limits, e);
	return rc ? rc : take_list(r->requests, r->n_requests, a, &out->requests, e);
}

static int take_containers(Corev1__Container **from, size_t nr, bool init, struct arena *a,
	struct container_spec *to, struct err *e)
{
	for (size_t i = 0; i < nr; i++) {
		bool restarts = text_equal(from[i]->restartpolicy, "Always");

		to[i].name = from[i]->name;
		to[i].kind = !init ? CONTAINER_APP : restarts ? CONTAINER_SIDECAR : CONTAINER_INIT;
		int rc = take_resources(from[i]->resources, a, &to[i].resources, e);
		if (rc)
			return err_add(e, rc, "container %.64s", from[i]->name);
	}
	return 0;
}

static int take_spec(
	const Corev1__PodSpec *from, struct arena *a, struct pod_spec *out, struct err *e)
{
	size_t inits = from->n_initcontainers, nr = inits + from->n_containers;
	int rc = check_count(nr, PODS_CONTAINERS_MAX, "containers", e);
	struct container_spec *list = rc ? NULL : arena_array(a, nr, sizeof *list);

	if (!list)
		return rc ? rc : too_large(e);
	rc = take_containers(from->initcontainers, inits, true, a, list, e);
	if (!rc)
		rc = take_containers(
			from->containers, from->n_containers, false, a, list + inits, e);
	out->container = list;
	out->nr = (unsigned)nr;
	return rc ? rc : take_resources(from->resources, a, &out->resources, e);
}

/* The pod */

static int take_metadata(
	const Corev1__ObjectMeta *from, struct arena *a, struct pod *to, struct err *e)
{
	struct key_value *list = arena_array(a, from->n_annotations, sizeof *list);

	if (!list)
		return too_large(e);
	for (size_t i = 0; i < from->n_annotations; i++)
		list[i] =
			(struct key_value){from->annotations[i]->key, from->annotations[i]->value};
	*to = (struct pod){
		.sandbox_id = "",
		.uid = from->uid,
		.ns = from->namespace_,
		.name = from->name,
		.source = POD_FROM_KUBELET,
		.annotations = list,
		.nr_annotations = from->n_annotations,
	};
	return 0;
}

static int take_pod(const Corev1__Pod *m, struct arena *a, struct known_pod *out, struct err *e)
{
	struct pod_spec spec = {.qos = m->status ? m->status->qosclass : NULL};
	int rc = m->spec ? take_spec(m->spec, a, &spec, e) : 0;
	if (!rc)
		rc = pod_spec_list_resources(&spec, a, e);
	if (!rc)
		rc = pod_spec_ask(&spec, a, &out->pod, e);
	if (rc)
		return rc;
	out->resource = spec.resource;
	out->nr_resources = spec.nr_resources;
	return 0;
}

int pods_pod_decode(struct blob pod, struct arena *a, struct known_pod *out, struct err *e)
{
	const Corev1__Pod *m = pb_decode(&corev1__pod__descriptor, pod, a, e);
	struct known_pod read = {0};

	if (!m)
		return -EBADMSG;
	if (!m->metadata || !*m->metadata->uid)
		return err_set(e, EBADMSG, "a v1.Pod of %zu bytes without a uid", pod.len);
	int rc = take_metadata(m->metadata, a, &read.pod, e);
	if (!rc)
		rc = take_pod(m, a, &read, e);
	if (rc)
		return err_add(
			e, rc, "pod %.64s/%.64s", m->metadata->namespace_, m->metadata->name);
	*out = read;
	return 0;
}
