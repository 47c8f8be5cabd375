#include <kubelet/pods_server_pb.h>

#include <codec/pb_message.h>
#include <corev1.pb-c.h>
#include <errno.h>
#include <inttypes.h>
#include <numafit/text.h>
#include <pods.pb-c.h>
#include <stdio.h>
#include <string.h>

int pods_event_encode(
	const struct pods_event *event, struct arena *a, struct blob *out, struct err *e)
{
	static const Pods__EventType types[] = {
		[PODS_UNKNOWN] = PODS__EVENT_TYPE__UNSPECIFIED,
		[PODS_ADDED] = PODS__EVENT_TYPE__ADDED,
		[PODS_MODIFIED] = PODS__EVENT_TYPE__MODIFIED,
		[PODS_DELETED] = PODS__EVENT_TYPE__DELETED,
		[PODS_SYNCED] = PODS__EVENT_TYPE__INITIAL_SYNC_COMPLETE,
	};
	Pods__WatchPodsEvent m;

	pods__watch_pods_event__init(&m);
	m.type = types[event->type];
	m.pod.data = (uint8_t *)(uintptr_t)event->pod.data; /* only read */
	m.pod.len = event->pod.len;
	return pb_encode(&m.base, a, out, e);
}

/* A list of requests or of limits that fills up: CPUs, memory by kind, devices. */
enum { LIST_MAX = 1 + TOPO_KINDS + POD_DEVICES_MAX, QUANTITY_MAX = 24 };
struct resource_form {
	Corev1__Resource resource;
	Corev1__Quantity quantity;
	char name[sizeof "hugepages-" + TEXT_SIZE_MAX], value[QUANTITY_MAX];
};
struct list_form {
	struct resource_form form[LIST_MAX];
	Corev1__Resource *list[LIST_MAX];
	size_t nr;
};

static struct resource_form *list_add_resource(struct list_form *l, const char *name)
{
	struct resource_form *f = &l->form[l->nr];

	corev1__resource__init(&f->resource);
	corev1__quantity__init(&f->quantity);
	f->resource.key = pb_string(name);
	f->resource.value = &f->quantity;
	f->quantity.string = f->value;
	l->list[l->nr++] = &f->resource;
	return f;
}

static void list_add_memory(struct list_form *l, const struct memory_ask *ask)
{
	struct resource_form *f = list_add_resource(l, "memory");

	snprintf(f->value, sizeof f->value, "%" PRIu64, ask->bytes);
	if (!ask->page_bytes)
		return;
	char size[TEXT_SIZE_MAX];
	snprintf(f->name, sizeof f->name, "hugepages-%s", text_size(size, ask->page_bytes));
	f->resource.key = f->name;
}

static void list_add_own(struct list_form *l, const struct ask *c)
{
	if (c->cpu_milli) {
		struct resource_form *f = list_add_resource(l, "cpu");

		snprintf(f->value, sizeof f->value, "%" PRIu64 "m", c->cpu_milli);
	}
	for (unsigned i = 0; i < c->nr_memory; i++)
		list_add_memory(l, &c->memory[i]);
}

static void list_add_devices(struct list_form *l, const struct ask *c, const struct known_pod *pod)
{
	for (unsigned i = 0; i < c->nr_devices; i++) {
		struct resource_form *f =
			list_add_resource(l, pod->resource[c->device[i].resource]);

		snprintf(f->value, sizeof f->value, "%" PRIu64, c->device[i].count);
	}
}

struct container_form {
	Corev1__Container container;
	Corev1__ResourceRequirements resources;
	struct list_form limits, requests;
	Corev1__ResourceClaim claim, *claims;
};

static Corev1__Container *fill_container_form(
	struct container_form *f, const struct ask *from, const struct known_pod *pod)
{
	corev1__container__init(&f->container);
	corev1__resource_requirements__init(&f->resources);
	f->container.name = pb_string(from->name);
	if (from->kind == CONTAINER_SIDECAR)
		f->container.restartpolicy = pb_string("Always");
	list_add_own(&f->requests, from);
	if (pod->pod.qos == QOS_GUARANTEED)
		list_add_own(&f->limits, from);
	list_add_devices(&f->requests, from, pod);
	list_add_devices(&f->limits, from, pod);
	f->resources.requests = f->requests.list;
	f->resources.n_requests = f->requests.nr;
	f->resources.limits = f->limits.list;
	f->resources.n_limits = f->limits.nr;
	corev1__resource_claim__init(&f->claim);
	f->claims = &f->claim;
	f->resources.claims = &f->claims;
	f->resources.n_claims = from->has_claims;
	f->container.resources = &f->resources;
	return &f->container;
}

static int fill_spec(
	Corev1__PodSpec *m, const struct known_pod *pod, struct arena *a, struct err *e)
{
	const struct pod *ask = &pod->pod;
	struct container_form *forms = arena_array(a, ask->nr, sizeof *forms);
	Corev1__Container **list = arena_array(a, ask->nr, sizeof(void *));
	unsigned inits = 0;

	if (!forms || !list)
		return err_set(e, ENOMEM, "%zu containers are too many for one message", ask->nr);
	for (unsigned i = 0; i < ask->nr; i++) {
		list[i] = fill_container_form(&forms[i], &ask->container[i], pod);
		inits += ask->container[i].kind != CONTAINER_APP; /* they come first */
	}
	corev1__pod_spec__init(m);
	m->initcontainers = list;
	m->n_initcontainers = inits;
	m->containers = list + inits;
	m->n_containers = ask->nr - inits;
	return 0;
}

static int fill_metadata_annotations(
	Corev1__ObjectMeta *m, const struct pod *pod, struct arena *a, struct err *e)
{
	Corev1__KeyValue *forms = arena_array(a, pod->nr_annotations, sizeof *forms);
	Corev1__KeyValue **list = arena_array(a, pod->nr_annotations, sizeof(void *));

	if (!forms || !list)
		return err_set(e, ENOMEM, "%zu annotations are too many for one message",
			pod->nr_annotations);
	for (size_t i = 0; i < pod->nr_annotations; i++) {
		corev1__key_value__init(&forms[i]);
		forms[i].key = pb_string(pod->annotations[i].key);
		forms[i].value = pb_string(pod->annotations[i].value);
		list[i] = &forms[i];
	}
	m->annotations = list;
	m->n_annotations = pod->nr_annotations;
	return 0;
}

int pods_pod_encode(const struct known_pod *pod, struct arena *a, struct blob *out, struct err *e)
{
	Corev1__Pod m;
	Corev1__ObjectMeta metadata;
	Corev1__PodSpec spec;
	Corev1__PodStatus status;
	int rc = 0;

	corev1__pod__init(&m);
	corev1__object_meta__init(&metadata);
	corev1__pod_status__init(&status);
	m.metadata = &metadata;
	metadata.name = pb_string(pod->pod.name);
	metadata.namespace_ = pb_string(pod->pod.ns);
	metadata.uid = pb_string(pod->pod.uid);
	if (pod->pod.container) {
		m.spec = &spec;
		m.status = &status;
		status.qosclass = pb_string(qos_words[pod->pod.qos]);
		rc = fill_spec(&spec, pod, a, e);
	}
	if (!rc)
		rc = fill_metadata_annotations(&metadata, &pod->pod, a, e);
	return rc ? rc : pb_encode(&m.base, a, out, e);
}
