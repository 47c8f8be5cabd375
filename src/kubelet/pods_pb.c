#include <kubelet/pods_pb.h>

#include <codec/pb_message.h>
#include <codec/pod_spec.h>
#include <corev1.pb-c.h>
#include <errno.h>
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

static int pod_too_large(struct err *e)
{
	return err_set(e, EBADMSG, "a v1.Pod that is too large");
}

static int take_resource_list(Corev1__Resource **from, size_t nr, struct arena *a,
	struct resource_list *out, struct err *e)
{
	struct resource_amount *list = arena_array(a, nr, sizeof *list);

	if (!list)
		return pod_too_large(e);
	*out = (struct resource_list){list, nr};
	for (size_t i = 0; i < nr; i++) {
		list[i].name = from[i]->key;
		int rc =
			quantity_parse(&list[i].q, from[i]->value ? from[i]->value->string : "", e);
		if (rc)
			return err_add(e, rc, "%.64s", list[i].name);
	}
	return 0;
}

static int take_requirements(const Corev1__ResourceRequirements *r, struct arena *a,
	struct resource_spec *out, struct err *e)
{
	if (!r)
		return 0;
	out->has_claims = r->n_claims;
	int rc = take_resource_list(r->limits, r->n_limits, a, &out->limits, e);
	if (rc)
		return err_add(e, rc, "limits");
	rc = take_resource_list(r->requests, r->n_requests, a, &out->requests, e);
	return rc ? err_add(e, rc, "requests") : 0;
}

static int take_container_specs(Corev1__Container **from, size_t nr, bool init, struct arena *a,
	struct container_spec *to, struct err *e)
{
	for (size_t i = 0; i < nr; i++) {
		to[i].name = from[i]->name;
		to[i].kind = container_kind_of(init, from[i]->restartpolicy);
		int rc = take_requirements(from[i]->resources, a, &to[i].resources, e);
		if (rc)
			return err_add(e, rc, "container %.64s", from[i]->name);
	}
	return 0;
}

static int take_pod_spec(
	const Corev1__PodSpec *from, struct arena *a, struct pod_spec *out, struct err *e)
{
	size_t inits = from->n_initcontainers;
	int rc = pod_spec_alloc(out, inits, from->n_containers, a, e);

	if (!rc)
		rc = take_container_specs(from->initcontainers, inits, true, a, out->container, e);
	if (!rc)
		rc = take_container_specs(
			from->containers, from->n_containers, false, a, out->container + inits, e);
	return rc ? rc : take_requirements(from->resources, a, &out->resources, e);
}

/* The pod */

static int take_metadata(
	const Corev1__ObjectMeta *from, struct arena *a, struct pod_spec *to, struct err *e)
{
	struct key_value *list = arena_array(a, from->n_annotations, sizeof *list);

	if (!list)
		return pod_too_large(e);
	for (size_t i = 0; i < from->n_annotations; i++)
		list[i] =
			(struct key_value){from->annotations[i]->key, from->annotations[i]->value};
	to->uid = from->uid;
	to->ns = from->namespace_;
	to->name = from->name;
	to->annotations = list;
	to->nr_annotations = from->n_annotations;
	return 0;
}

int pods_pod_decode(struct blob pod, struct arena *a, struct known_pod *out, struct err *e)
{
	const Corev1__Pod *m = pb_decode(&corev1__pod__descriptor, pod, a, e);
	struct pod_spec s = {.phase = ""};

	if (!m)
		return -EBADMSG;
	if (!m->metadata || !*m->metadata->uid)
		return err_set(e, EBADMSG, "a v1.Pod of %zu bytes without a uid", pod.len);
	s.qos = m->status ? m->status->qosclass : "";
	int rc = take_metadata(m->metadata, a, &s, e);
	if (!rc && m->spec)
		rc = take_pod_spec(m->spec, a, &s, e);
	if (!rc)
		rc = pod_spec_known(&s, POD_FROM_KUBELET, a, out, e);
	return rc ? err_add(e, rc, "pod %.64s/%.64s", s.ns ? s.ns : "", s.name ? s.name : "") : 0;
}
