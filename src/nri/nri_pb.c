#include <nri/nri_pb.h>

#include <assert.h>
#include <codec/pb_message.h>
#include <codec/pod_spec.h>
#include <errno.h>
#include <nri.pb-c.h>
#include <numafit/text.h>
#include <stdlib.h>
#include <string.h>

enum { SYNCHRONIZE_MORE = 3 };             /* SynchronizeRequest.more */
enum { FILES_MAX = 4096, CDI_MAX = 1024 }; /* of one container: the first ones count */

int nri_register_encode(
	const char *name, const char *index, struct arena *a, struct blob *out, struct err *e)
{
	Nri__RegisterPluginRequest m;

	nri__register_plugin_request__init(&m);
	m.plugin_name = pb_string(name);
	m.plugin_idx = pb_string(index);
	return pb_encode(&m.base, a, out, e);
}

int nri_configuration_decode(
	struct blob payload, struct arena *a, struct nri_configuration *out, struct err *e)
{
	const Nri__ConfigureRequest *m =
		pb_decode(&nri__configure_request__descriptor, payload, a, e);

	if (!m)
		return -EBADMSG;
	*out = (struct nri_configuration){m->runtime_name, m->runtime_version,
		m->registration_timeout, m->request_timeout, m->nri_version, m->config};
	return 0;
}

int nri_configured_encode(uint32_t events, const struct nri_failure_policy *policy, struct arena *a,
	struct blob *out, struct err *e)
{
	Nri__ConfigureResponse m;
	Nri__FailurePolicy on_failure;

	nri__configure_response__init(&m);
	m.events = (int32_t)events;
	if (policy) {
		nri__failure_policy__init(&on_failure);
		on_failure.fail_request = policy->fail_request;
		on_failure.keep_connected = policy->keep_connected;
		m.failure_policy = &on_failure;
	}
	return pb_encode(&m.base, a, out, e);
}

int nri_chunk_decode(struct blob payload, bool *more, struct err *e)
{
	uint64_t number;

	if (pb_peek_number(payload, SYNCHRONIZE_MORE, &number) < 0)
		return err_set(e, EBADMSG, "%zu bytes are no SynchronizeRequest", payload.len);
	*more = number;
	return 0;
}

int nri_chunk_encode(struct arena *a, struct blob *out, struct err *e)
{
	Nri__SynchronizeResponse m;

	nri__synchronize_response__init(&m);
	m.more = true;
	return pb_encode(&m.base, a, out, e);
}

/* Pods and containers to requests */

static const char *find_annotation(Nri__KeyValue *const *entries, size_t nr, const char *key)
{
	for (size_t i = 0; i < nr; i++)
		if (strcmp(entries[i]->key, key) == 0)
			return entries[i]->value;
	return NULL;
}

/* Take what r sets on top of *out. For an update (changed_only), 0 means "as it is". */
static void nri_read_cpu_and_memory(
	struct linux_resources *out, const Nri__LinuxResources *r, bool changed_only)
{
	const Nri__LinuxCPU *cpu = r->cpu;

	if (cpu && cpu->shares && (cpu->shares->value || !changed_only)) {
		out->has_shares = true;
		out->cpu_shares = cpu->shares->value;
	}
	if (cpu && cpu->quota && (cpu->quota->value || !changed_only)) {
		out->has_quota = true;
		out->cpu_quota = cpu->quota->value;
	}
	if (cpu && cpu->period && (cpu->period->value || !changed_only)) {
		out->has_period = true;
		out->cpu_period = cpu->period->value;
	}
	if (r->memory && r->memory->limit && (r->memory->limit->value || !changed_only)) {
		out->has_memory_limit = true;
		out->memory_limit = r->memory->limit->value;
	}
}

static struct pod_totals pod_totals(const Nri__LinuxResources *of_pod)
{
	struct linux_resources r = {0};

	if (of_pod)
		nri_read_cpu_and_memory(&r, of_pod, false);
	return (struct pod_totals){
		.known = r.has_shares,
		.cpu_milli = cpu_milli_from_shares(&r),
		.memory_bytes =
			r.has_memory_limit && r.memory_limit > 0 ? (uint64_t)r.memory_limit : 0,
	};
}

static const char *cgroup_parent_of(const Nri__PodSandbox *pod)
{
	return pod && pod->linux ? pod->linux->cgroup_parent : "";
}

/* The last two are looked for on the container as well (annotation_not_of_pod()). */
static bool is_read(const char *annotation)
{
	return pod_spec_reads(annotation) || text_equal(annotation, NRI_PLACEMENT_ANNOTATION) ||
	       text_equal(annotation, NRI_ALLOCATED_ANNOTATION);
}

/* Only those that somebody reads: the others may be very many, and each container is looked at with
 * what is kept here. */
static int nri_read_annotations(struct pod *out, const Nri__PodSandbox *pod, struct arena *a)
{
	size_t nr = 0;

	for (size_t i = 0; i < pod->n_annotations; i++)
		nr += is_read(pod->annotations[i]->key);
	struct key_value *list = arena_array(a, nr, sizeof *list);
	if (!list)
		return -ENOMEM;
	out->annotations = list;
	for (size_t i = 0; i < pod->n_annotations; i++) {
		const Nri__KeyValue *kv = pod->annotations[i];

		if (is_read(kv->key))
			list[out->nr_annotations++] = (struct key_value){kv->key, kv->value};
	}
	return 0;
}

/* pod NULL: it is not shown. */
static int nri_read_pod(struct pod *out, const Nri__PodSandbox *pod, struct arena *a)
{
	*out = (struct pod){.sandbox_id = "",
		.uid = "",
		.ns = "",
		.name = "",
		.qos = qos_from_cgroup_parent(cgroup_parent_of(pod)),
		.source = POD_FROM_RUNTIME};
	if (!pod)
		return 0;
	out->sandbox_id = pod->id;
	out->uid = pod->uid;
	out->ns = pod->namespace_;
	out->name = pod->name;
	out->has_process = pod->pid != 0;
	out->totals = pod_totals(pod->linux ? pod->linux->pod_resources : NULL);
	return nri_read_annotations(out, pod, a);
}

/* What nri_read_pod() has read, as the pod of that container: which shows, where the runtime shows
 * no more than it, what pod it is of, and in its own cgroup's path the name of the parent. */
static struct pod pod_of_container(
	const struct pod *read, const Nri__PodSandbox *pod, const Nri__Container *c)
{
	struct pod of = *read;

	if (!pod)
		of.sandbox_id = c->pod_sandbox_id;
	if (!*cgroup_parent_of(pod) && c->linux)
		of.qos = qos_from_cgroup_parent(c->linux->cgroups_path);
	return of;
}

/* Sizes with a limit of 0 are left out: the kubelet lists every size that the node knows. */
static int nri_read_hugepages(
	struct linux_resources *out, const Nri__LinuxResources *r, struct err *e)
{
	for (size_t i = 0; i < r->n_hugepage_limits; i++) {
		const Nri__HugepageLimit *h = r->hugepage_limits[i];
		uint64_t page_bytes = h->limit ? page_bytes_from_name(h->page_size) : 0;
		unsigned at = 0;

		if (!h->limit)
			continue;
		if (!page_bytes)
			return err_set(e, EINVAL, "huge page size \"%s\" is not a size such as 2MB",
				h->page_size);
		while (at < out->nr_hugepages && out->hugepages[at].page_bytes != page_bytes)
			at++;
		if (at == TOPO_KINDS)
			return err_set(e, E2BIG, "more than %d huge page sizes", TOPO_KINDS);
		out->hugepages[at] = (struct memory_ask){page_bytes, h->limit};
		out->nr_hugepages += at == out->nr_hugepages;
	}
	return 0;
}

/* Which numbers the update leaves as they are. */
static unsigned unnamed_by(const Nri__LinuxResources *asked)
{
	struct linux_resources r = {0};
	struct err odd;

	nri_read_cpu_and_memory(&r, asked, true);
	bool memory = r.has_memory_limit || nri_read_hugepages(&r, asked, &odd) || r.nr_hugepages;
	return (r.has_shares ? 0 : REQUEST_CPU) | (r.has_quota ? 0 : REQUEST_CPU_LIMIT) |
	       (memory ? 0 : REQUEST_MEMORY);
}

static void nri_read_resources(struct request *req, const Nri__LinuxResources *has,
	const Nri__LinuxResources *asked, struct err *odd)
{
	struct linux_resources r = {0};
	int rc = 0;

	if (has)
		nri_read_cpu_and_memory(&r, has, false);
	if (asked)
		nri_read_cpu_and_memory(&r, asked, true);
	if (has)
		rc = nri_read_hugepages(&r, has, odd);
	if (asked && rc == 0)
		rc = nri_read_hugepages(&r, asked, odd);
	int unfit = request_from_resources(req, &r, rc ? NULL : odd);
	if (rc || unfit)
		(void)err_add(odd, rc ? rc : unfit, "container %s", req->container_id);
}

/* Whether the container may use all devices: it is privileged, and shows every device of the host,
 * none of which it has been given for itself. (The rule is containerd's, oci.WithAllDevicesAllowed,
 * for such containers; -1 is another word for any number.) */
static bool may_use_all_devices(const Nri__LinuxResources *r)
{
	for (size_t i = 0; r && i < r->n_devices; i++) {
		const Nri__LinuxDeviceCgroup *d = r->devices[i];

		if (d->allow && (!*d->type || strcmp(d->type, "a") == 0) &&
			(!d->major || d->major->value == -1) &&
			(!d->minor || d->minor->value == -1))
			return true;
	}
	return false;
}

static int nri_read_device_files(struct request *req, const Nri__LinuxContainer *l, struct arena *a)
{
	size_t nr = l->n_devices < FILES_MAX ? l->n_devices : FILES_MAX;

	if (!nr || may_use_all_devices(l->resources))
		return 0;
	struct device_file *files = arena_array(a, nr, sizeof *files);
	if (!files)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const Nri__LinuxDevice *d = l->devices[i];
		bool is_node = strcmp(d->type, "c") == 0 || strcmp(d->type, "b") == 0;

		if (is_node && d->major >= 0 && d->major <= UINT32_MAX && d->minor >= 0 &&
			d->minor <= UINT32_MAX)
			files[req->nr_files++] = (struct device_file){
				d->path, *d->type, (uint32_t)d->major, (uint32_t)d->minor};
	}
	req->file = files;
	return 0;
}

/* What the kubelet, or we, have put on the container. A runtime that copies a pod's annotations to
 * its containers (CRI-O) sets the others over them: what is still the pod's is its author's. */
static const char *annotation_not_of_pod(
	const struct pod *pod, const Nri__Container *c, const char *key)
{
	const char *value = find_annotation(c->annotations, c->n_annotations, key);
	const char *of_pod = pod_annotation(pod, key);

	return value && of_pod && strcmp(value, of_pod) == 0 ? NULL : value;
}

static bool is_at_self(const char *destination)
{
	const char *below = text_behind(destination, NRI_SELF_MOUNT);

	return below && (!*below || *below == '/');
}

/* *pod is the container's; c may be NULL. */
static int nri_read_request(struct request *req, const struct pod *pod, const Nri__Container *c,
	const Nri__LinuxResources *asked, struct arena *a, struct err *odd)
{
	*req = (struct request){
		.pod = *pod, .container_id = "", .ask.name = "", .cpus = "", .mems = ""};
	if (!c)
		return 0;
	const Nri__LinuxResources *has = c->linux ? c->linux->resources : NULL;
	size_t nr_cdi = c->n_cdi_devices < CDI_MAX ? c->n_cdi_devices : CDI_MAX;
	req->container_id = c->id;
	req->ask.name = c->name;
	req->created_at_ns = c->created_at;
	req->in_creation = c->state == NRI__CONTAINER_STATE__CONTAINER_CREATED;
	req->placement = annotation_not_of_pod(pod, c, NRI_PLACEMENT_ANNOTATION);
	req->allocated = annotation_not_of_pod(pod, c, NRI_ALLOCATED_ANNOTATION);
	for (size_t i = 0; i < c->n_mounts; i++)
		req->has_own_mount = req->has_own_mount || is_at_self(c->mounts[i]->destination);
	if (has && has->cpu) {
		req->cpus = has->cpu->cpus;
		req->mems = has->cpu->mems;
	}
	if (c->linux && *c->linux->cgroups_path)
		req->cgroup = c->linux->cgroups_path;
	nri_read_resources(req, has, asked, odd);
	req->unnamed = asked ? unnamed_by(asked) : 0;
	if (c->linux && nri_read_device_files(req, c->linux, a) < 0)
		return -ENOMEM;
	const char **names = arena_array(a, nr_cdi, sizeof *names);
	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < nr_cdi; i++)
		names[i] = c->cdi_devices[i]->name;
	req->cdi = names;
	req->nr_cdi = nr_cdi;
	return 0;
}

/* c and pod may be NULL. */
static int nri_read_subject(struct nri_subject *s, const Nri__PodSandbox *pod,
	const Nri__Container *c, const Nri__LinuxResources *asked, struct arena *a)
{
	struct pod of;
	int rc = nri_read_pod(&of, pod, a);

	if (rc)
		return rc;
	if (c)
		of = pod_of_container(&of, pod, c);
	return nri_read_request(&s->req, &of, c, asked, a, &s->odd);
}

int nri_subject_decode(struct blob payload, struct arena *a, struct nri_subject *out, struct err *e)
{
	const Nri__UpdateContainerRequest *m =
		pb_decode(&nri__update_container_request__descriptor, payload, a, e);
	struct nri_subject s = {0};

	if (!m)
		return -EBADMSG;
	if (nri_read_subject(&s, m->pod, m->container, m->linux_resources, a) < 0)
		return err_set(e, EBADMSG, "%zu bytes hold more than we can take", payload.len);
	*out = s;
	return 0;
}

int nri_state_change_decode(
	struct blob payload, struct arena *a, struct nri_subject *out, struct err *e)
{
	const Nri__StateChangeEvent *m =
		pb_decode(&nri__state_change_event__descriptor, payload, a, e);
	struct nri_subject s = {0};

	if (!m)
		return -EBADMSG;
	int event = (int)m->event; /* any number: newer runtimes may know more of them */
	if (event > NRI_EVENT_NONE && event < NR_NRI_EVENTS)
		s.event = (enum nri_event)event;
	if (nri_read_subject(&s, m->pod, m->container, NULL, a) < 0)
		return err_set(e, EBADMSG, "%zu bytes hold more than we can take", payload.len);
	*out = s;
	return 0;
}

/* Synchronize */

static int compare_pod_ids(const void *a, const void *b)
{
	const Nri__PodSandbox *const *x = a, *const *y = b;

	return strcmp((*x)->id, (*y)->id);
}

static int compare_container_ids(const void *a, const void *b)
{
	const Nri__Container *const *x = a, *const *y = b;

	return strcmp((*x)->id, (*y)->id);
}

/* Sorts them by id: to find, and so that what comes twice lies together. all->pods has as many as
 * the message, each at the same place, once they are read. */
static int read_pods(Nri__SynchronizeRequest *m, struct arena *a, struct nri_running *all)
{
	int rc = 0;

	if (m->n_pods)
		qsort(m->pods, m->n_pods, sizeof *m->pods, compare_pod_ids);
	for (size_t i = 0; i < m->n_pods && !rc; i++)
		rc = nri_read_pod(&all->pods[i], m->pods[i], a);
	return rc;
}

/* A container with its pod, which all containers of that pod share. */
static int read_container(const Nri__SynchronizeRequest *m, const Nri__Container *c,
	struct arena *a, const struct nri_running *all, struct request *out, struct err *odd)
{
	const Nri__PodSandbox of = {.id = c->pod_sandbox_id}, *key = &of;
	Nri__PodSandbox *const *pod = NULL;
	struct pod read;

	if (m->n_pods)
		pod = bsearch(&key, m->pods, m->n_pods, sizeof *m->pods, compare_pod_ids);
	if (pod)
		read = all->pods[pod - m->pods];
	else
		(void)nri_read_pod(&read, NULL, a);
	read = pod_of_container(&read, pod ? *pod : NULL, c);
	return nri_read_request(out, &read, c, NULL, a, odd);
}

static int read_containers(Nri__SynchronizeRequest *m, struct arena *a, struct nri_running *all)
{
	if (m->n_containers)
		qsort(m->containers, m->n_containers, sizeof *m->containers, compare_container_ids);
	for (size_t i = 0; i < m->n_containers; i++) {
		const Nri__Container *c = m->containers[i];
		struct err odd = {0};
		bool again =
			all->nr && strcmp(all->containers[all->nr - 1].container_id, c->id) == 0;

		if (!*c->id || c->state == NRI__CONTAINER_STATE__CONTAINER_STOPPED || again)
			continue;
		if (read_container(m, c, a, all, &all->containers[all->nr++], &odd) < 0)
			return -ENOMEM;
		if (odd.code && !all->odd.code)
			all->odd = odd;
	}
	return 0;
}

static void keep_pods_once_each(size_t nr, struct nri_running *all)
{
	for (size_t i = 0; i < nr; i++) {
		const struct pod *p = &all->pods[i];
		bool again = all->nr_pods &&
			     text_equal(all->pods[all->nr_pods - 1].sandbox_id, p->sandbox_id);

		if (*p->sandbox_id && !again)
			all->pods[all->nr_pods++] = *p;
	}
}

int nri_running_decode(
	struct blob payload, size_t max, struct arena *a, struct nri_running *out, struct err *e)
{
	Nri__SynchronizeRequest *m =
		pb_decode(&nri__synchronize_request__descriptor, payload, a, e);
	struct nri_running all = {0};

	if (!m)
		return -EBADMSG;
	if (m->n_containers > max)
		return err_set(e, E2BIG, "%zu containers: the limit is %zu", m->n_containers, max);
	all.containers = arena_array(a, m->n_containers, sizeof *all.containers);
	all.pods = arena_array(a, m->n_pods, sizeof *all.pods);
	bool fits = all.containers && all.pods && read_pods(m, a, &all) == 0 &&
		    read_containers(m, a, &all) == 0;
	if (!fits)
		return err_set(e, EBADMSG, "%zu bytes hold more than we can take", payload.len);
	keep_pods_once_each(m->n_pods, &all);
	*out = all;
	return 0;
}

/* Answers */

/* LinuxResources that hold a cpuset, a CFS quota where one is set, and nothing else. */
struct cpuset_form {
	Nri__LinuxResources resources;
	Nri__LinuxCPU cpu;
	Nri__OptionalInt64 quota;
};

static Nri__LinuxResources *fill_cpuset(
	struct cpuset_form *f, const char *cpus, const char *mems, int64_t cpu_quota)
{
	nri__linux_resources__init(&f->resources);
	nri__linux_cpu__init(&f->cpu);
	f->cpu.cpus = pb_string(cpus);
	f->cpu.mems = pb_string(mems);
	nri__optional_int64__init(&f->quota);
	f->quota.value = cpu_quota;
	f->cpu.quota = cpu_quota ? &f->quota : NULL;
	f->resources.cpu = &f->cpu;
	return &f->resources;
}

struct update_form {
	Nri__ContainerUpdate update;
	Nri__LinuxContainerUpdate linux;
	struct cpuset_form cpuset;
};

/* reply->updates as messages, in a; NULL when they are too many for it. */
static Nri__ContainerUpdate **fill_updates(
	const struct nri_reply *reply, struct arena *a, struct err *e)
{
	Nri__ContainerUpdate **list = arena_array(a, reply->nr_updates, sizeof(void *));
	struct update_form *forms = arena_array(a, reply->nr_updates, sizeof *forms);

	if (!list || !forms) {
		(void)err_set(
			e, ENOMEM, "%zu updates are too many for one reply", reply->nr_updates);
		return NULL;
	}
	for (size_t i = 0; i < reply->nr_updates; i++) {
		const struct nri_cpuset *to = &reply->updates[i];
		struct update_form *f = &forms[i];

		assert(to->container_id && *to->container_id);
		nri__container_update__init(&f->update);
		nri__linux_container_update__init(&f->linux);
		f->update.container_id = pb_string(to->container_id);
		f->update.linux = &f->linux;
		f->update.ignore_failure = true;
		f->linux.resources = fill_cpuset(&f->cpuset, to->cpus, to->mems, to->cpu_quota);
		list[i] = &f->update;
	}
	return list;
}

int nri_updates_encode(
	const struct nri_reply *reply, struct arena *a, struct blob *out, struct err *e)
{
	Nri__UpdateContainerResponse m;

	nri__update_container_response__init(&m);
	m.n_update = reply->nr_updates;
	m.update = fill_updates(reply, a, e);
	return m.update ? pb_encode(&m.base, a, out, e) : -ENOMEM;
}

/* What else a pod's author may have wished for, in the memory of: */
struct wishes_form {
	Nri__LinuxMemoryPolicy policy;
	Nri__OptionalString rdt, blockio;
};

static Nri__OptionalString *fill_class(Nri__OptionalString *f, const char *name)
{
	nri__optional_string__init(f);
	f->value = pb_string(name ? name : "");
	return name ? f : NULL;
}

static void fill_wishes(struct wishes_form *f, const struct nri_reply *reply,
	Nri__LinuxContainerAdjustment *linux)
{
	static const Nri__MpolMode modes[NR_WISH_MEMORIES] = {
		[WISH_MEMORY_UNSAID] = NRI__MPOL_MODE__MPOL_DEFAULT,
		[WISH_MEMORY_BIND] = NRI__MPOL_MODE__MPOL_BIND,
		[WISH_MEMORY_INTERLEAVE] = NRI__MPOL_MODE__MPOL_INTERLEAVE,
		[WISH_MEMORY_PREFERRED] = NRI__MPOL_MODE__MPOL_PREFERRED_MANY,
		[WISH_MEMORY_LOCAL] = NRI__MPOL_MODE__MPOL_LOCAL,
	};

	linux->resources->rdt_class = fill_class(&f->rdt, reply->rdt_class);
	linux->resources->blockio_class = fill_class(&f->blockio, reply->blockio_class);
	if (!reply->memory_policy)
		return;
	nri__linux_memory_policy__init(&f->policy);
	f->policy.mode = modes[reply->memory_policy];
	if (reply->memory_policy != WISH_MEMORY_LOCAL) /* which takes no nodes */
		f->policy.nodes = pb_string(reply->mems);
	linux->memory_policy = &f->policy;
}

/* The reply's variables as messages, in a. */
static int fill_env(const struct nri_reply *reply, struct arena *a,
	Nri__ContainerAdjustment *adjust, struct err *e)
{
	Nri__KeyValue **list = arena_array(a, reply->nr_env, sizeof(void *));
	Nri__KeyValue *forms = arena_array(a, reply->nr_env, sizeof *forms);

	if (!list || !forms)
		return err_set(e, ENOMEM, "%zu variables are too many for one reply", reply->nr_env);
	for (size_t i = 0; i < reply->nr_env; i++) {
		list[i] = &forms[i];
		nri__key_value__init(&forms[i]);
		forms[i].key = pb_string(reply->env[i].key);
		forms[i].value = pb_string(reply->env[i].value);
	}
	adjust->env = list;
	adjust->n_env = reply->nr_env;
	return 0;
}

/* The reply's folder as a mount, in the memory of: */
struct mount_form {
	Nri__Mount mount, *list[1];
	char *options[5];
};

static void fill_mount(
	struct mount_form *f, const struct nri_reply *reply, Nri__ContainerAdjustment *adjust)
{
	static const char *const options[] = {"bind", "ro", "nosuid", "nodev", "noexec"};

	if (!reply->self)
		return;
	nri__mount__init(&f->mount);
	f->mount.destination = pb_string(NRI_SELF_MOUNT);
	f->mount.type = pb_string("bind");
	f->mount.source = pb_string(reply->self);
	f->mount.n_options = sizeof options / sizeof *options;
	for (size_t i = 0; i < f->mount.n_options; i++)
		f->options[i] = pb_string(options[i]);
	f->mount.options = f->options;
	f->list[0] = &f->mount;
	adjust->mounts = f->list;
	adjust->n_mounts = 1;
}

int nri_created_encode(
	const struct nri_reply *reply, struct arena *a, struct blob *out, struct err *e)
{
	Nri__CreateContainerResponse m;
	Nri__ContainerAdjustment adjust;
	Nri__LinuxContainerAdjustment linux;
	struct cpuset_form cpuset;
	struct wishes_form wishes;
	struct mount_form mount;
	Nri__KeyValue annotation, *annotations[] = {&annotation};

	nri__create_container_response__init(&m);
	if (reply->adjust) {
		nri__container_adjustment__init(&adjust);
		nri__linux_container_adjustment__init(&linux);
		linux.resources = fill_cpuset(&cpuset, reply->cpus, reply->mems, reply->cpu_quota);
		fill_wishes(&wishes, reply, &linux);
		fill_mount(&mount, reply, &adjust);
		adjust.linux = &linux;
		m.adjust = &adjust;
	}
	if (reply->adjust && fill_env(reply, a, &adjust, e))
		return -ENOMEM;
	if (reply->adjust && reply->annotation.key) {
		nri__key_value__init(&annotation);
		annotation.key = pb_string(reply->annotation.key);
		annotation.value = pb_string(reply->annotation.value);
		adjust.annotations = annotations;
		adjust.n_annotations = 1;
	}
	m.n_update = reply->nr_updates;
	m.update = fill_updates(reply, a, e);
	return m.update ? pb_encode(&m.base, a, out, e) : -ENOMEM;
}
