#include <nri/nri_runtime_pb.h>

#include <codec/pb_message.h>
#include <errno.h>
#include <nri.pb-c.h>
#include <numafit/text.h>
#include <string.h>

int nri_registration_decode(
	struct blob payload, struct arena *a, const char **name, const char **index, struct err *e)
{
	const Nri__RegisterPluginRequest *m =
		pb_decode(&nri__register_plugin_request__descriptor, payload, a, e);

	if (!m)
		return -EBADMSG;
	*name = m->plugin_name;
	*index = m->plugin_idx;
	return 0;
}

int nri_configuration_encode(
	const struct nri_configuration *conf, struct arena *a, struct blob *out, struct err *e)
{
	Nri__ConfigureRequest m;

	nri__configure_request__init(&m);
	m.runtime_name = pb_string(conf->runtime_name);
	m.runtime_version = pb_string(conf->runtime_version);
	m.registration_timeout = conf->registration_timeout_ms;
	m.request_timeout = conf->request_timeout_ms;
	m.nri_version = pb_string(conf->nri_version);
	m.config = pb_string(conf->config);
	return pb_encode(&m.base, a, out, e);
}

int nri_events_decode(struct blob payload, struct arena *a, uint32_t *events, struct err *e)
{
	const Nri__ConfigureResponse *m =
		pb_decode(&nri__configure_response__descriptor, payload, a, e);

	if (!m)
		return -EBADMSG;
	*events = (uint32_t)m->events;
	return 0;
}

/* Containers to messages. Every form holds one message and all that hangs from it. */

static Nri__KeyValue **annotations_to_messages(
	const struct key_value *from, size_t nr, struct arena *a)
{
	Nri__KeyValue **list = arena_array(a, nr, sizeof(void *));
	Nri__KeyValue *entries = arena_array(a, nr, sizeof *entries);

	if (!list || !entries)
		return NULL;
	for (size_t i = 0; i < nr; i++) {
		nri__key_value__init(&entries[i]);
		entries[i].key = pb_string(from[i].key);
		entries[i].value = pb_string(from[i].value);
		list[i] = &entries[i];
	}
	return list;
}

struct resources_form {
	Nri__LinuxResources resources;
	Nri__LinuxCPU cpu;
	Nri__LinuxMemory memory;
	Nri__OptionalUInt64 shares, period;
	Nri__OptionalInt64 quota, limit;
	Nri__HugepageLimit hugepages[TOPO_KINDS], *hugepage_list[TOPO_KINDS];
	char page_sizes[TOPO_KINDS][TEXT_SIZE_MAX];
};

static Nri__OptionalUInt64 *unsigned_if(bool has, uint64_t value, Nri__OptionalUInt64 *f)
{
	nri__optional_uint64__init(f);
	f->value = value;
	return has ? f : NULL;
}

struct pod_form {
	Nri__PodSandbox pod;
	Nri__LinuxPodSandbox linux;
	Nri__LinuxResources resources;
	Nri__LinuxCPU cpu;
	Nri__OptionalUInt64 shares;
};

static Nri__PodSandbox *pod_form_fill(
	struct pod_form *f, const struct nri_container *c, struct arena *a)
{
	nri__pod_sandbox__init(&f->pod);
	nri__linux_pod_sandbox__init(&f->linux);
	f->pod.id = pb_string(c->sandbox_id);
	f->pod.name = pb_string(c->pod_name);
	f->pod.uid = pb_string(c->pod_uid);
	f->pod.namespace_ = pb_string(c->pod_ns);
	f->pod.n_annotations = c->nr_pod_annotations;
	f->pod.annotations = annotations_to_messages(c->pod_annotations, c->nr_pod_annotations, a);
	f->pod.linux = &f->linux;
	f->linux.cgroup_parent = pb_string(c->cgroup_parent);
	nri__linux_resources__init(&f->resources);
	nri__linux_cpu__init(&f->cpu);
	f->cpu.shares = unsigned_if(c->pod_shares, c->pod_shares, &f->shares);
	f->resources.cpu = &f->cpu;
	f->linux.pod_resources = c->pod_shares ? &f->resources : NULL;
	return f->pod.annotations ? &f->pod : NULL;
}

static Nri__OptionalInt64 *signed_if(bool has, int64_t value, Nri__OptionalInt64 *f)
{
	nri__optional_int64__init(f);
	f->value = value;
	return has ? f : NULL;
}

/* A page size as the cgroup file names have it: "2MB" for 2 MiB. */
static char *page_size(char *buf, uint64_t bytes)
{
	size_t len = strlen(text_size(buf, bytes));

	if (len && buf[len - 1] == 'i')
		buf[len - 1] = 'B';
	return buf;
}

static Nri__LinuxResources *resources_form_fill(
	struct resources_form *f, const struct nri_container *c)
{
	const struct linux_resources *r = &c->resources;

	nri__linux_resources__init(&f->resources);
	nri__linux_cpu__init(&f->cpu);
	nri__linux_memory__init(&f->memory);
	f->cpu.shares = unsigned_if(r->has_shares, r->cpu_shares, &f->shares);
	f->cpu.quota = signed_if(r->has_quota, r->cpu_quota, &f->quota);
	f->cpu.period = unsigned_if(r->has_period, r->cpu_period, &f->period);
	f->cpu.cpus = pb_string(c->cpus);
	f->cpu.mems = pb_string(c->mems);
	f->memory.limit = signed_if(r->has_memory_limit, r->memory_limit, &f->limit);
	for (unsigned i = 0; i < r->nr_hugepages; i++) {
		nri__hugepage_limit__init(&f->hugepages[i]);
		f->hugepages[i].page_size = page_size(f->page_sizes[i], r->hugepages[i].page_bytes);
		f->hugepages[i].limit = r->hugepages[i].bytes;
		f->hugepage_list[i] = &f->hugepages[i];
	}
	f->resources.cpu = &f->cpu;
	f->resources.memory = &f->memory;
	f->resources.hugepage_limits = f->hugepage_list;
	f->resources.n_hugepage_limits = r->nr_hugepages;
	return &f->resources;
}

static Nri__LinuxDevice **device_files_to_messages(
	const struct device_file *from, size_t nr, struct arena *a)
{
	struct file_form {
		Nri__LinuxDevice device;
		char type[sizeof "c"];
	} *forms = arena_array(a, nr, sizeof *forms);
	Nri__LinuxDevice **list = arena_array(a, nr, sizeof(void *));

	if (!list || !forms)
		return NULL;
	for (size_t i = 0; i < nr; i++) {
		Nri__LinuxDevice *d = list[i] = &forms[i].device;

		nri__linux_device__init(d);
		d->path = pb_string(from[i].path);
		d->type = forms[i].type;
		d->type[0] = from[i].type;
		d->major = from[i].major;
		d->minor = from[i].minor;
	}
	return list;
}

static Nri__CDIDevice **cdi_names_to_messages(const char *const *from, size_t nr, struct arena *a)
{
	Nri__CDIDevice *devices = arena_array(a, nr, sizeof *devices);
	Nri__CDIDevice **list = arena_array(a, nr, sizeof(void *));

	if (!list || !devices)
		return NULL;
	for (size_t i = 0; i < nr; i++) {
		nri__cdidevice__init(&devices[i]);
		devices[i].name = pb_string(from[i]);
		list[i] = &devices[i];
	}
	return list;
}

struct container_form {
	Nri__Container container;
	Nri__LinuxContainer linux;
	struct resources_form resources;
};

static Nri__Container *container_form_fill(
	struct container_form *f, const struct nri_container *c, struct arena *a)
{
	nri__container__init(&f->container);
	nri__linux_container__init(&f->linux);
	f->container.id = pb_string(c->id);
	f->container.pod_sandbox_id = pb_string(c->sandbox_id);
	f->container.name = pb_string(c->name);
	f->container.n_annotations = c->nr_annotations;
	f->container.annotations = annotations_to_messages(c->annotations, c->nr_annotations, a);
	f->container.created_at = c->created_at_ns;
	f->container.linux = &f->linux;
	f->linux.resources = resources_form_fill(&f->resources, c);
	f->linux.cgroups_path = pb_string(c->cgroups_path);
	f->linux.n_devices = c->nr_files;
	f->linux.devices = device_files_to_messages(c->files, c->nr_files, a);
	f->container.n_cdi_devices = c->nr_cdi;
	f->container.cdi_devices = cdi_names_to_messages(c->cdi, c->nr_cdi, a);
	bool whole = f->container.annotations && f->linux.devices && f->container.cdi_devices;
	return whole ? &f->container : NULL;
}

static int out_of_memory(struct err *e)
{
	return err_set(e, ENOMEM, "the message is too large");
}

int nri_running_encode(
	const struct nri_chunk *chunk, struct arena *a, struct blob *out, struct err *e)
{
	Nri__SynchronizeRequest m;
	Nri__Container **containers = arena_array(a, chunk->nr, sizeof(void *));
	Nri__PodSandbox **pods = arena_array(a, chunk->nr, sizeof(void *));
	struct container_form *forms = arena_array(a, chunk->nr, sizeof *forms);
	struct pod_form *pod_forms = arena_array(a, chunk->nr, sizeof *pod_forms);

	if (!containers || !pods || !forms || !pod_forms)
		return out_of_memory(e);
	nri__synchronize_request__init(&m);
	m.more = chunk->more;
	m.n_containers = chunk->nr;
	m.containers = containers;
	m.pods = pods;
	for (size_t i = 0; i < chunk->nr; i++) {
		const struct nri_container *c = &chunk->containers[i];

		containers[i] = container_form_fill(&forms[i], c, a);
		if (!containers[i])
			return out_of_memory(e);
		containers[i]->state = NRI__CONTAINER_STATE__CONTAINER_RUNNING;
		if (!chunk->with_pod[i])
			continue;
		pods[m.n_pods] = pod_form_fill(&pod_forms[i], c, a);
		if (!pods[m.n_pods++])
			return out_of_memory(e);
	}
	return pb_encode(&m.base, a, out, e);
}

int nri_subject_encode(enum nri_event event, bool state_change, const struct nri_container *c,
	struct arena *a, struct blob *out, struct err *e)
{
	Nri__UpdateContainerRequest m;
	Nri__StateChangeEvent change;
	struct pod_form pod;
	struct container_form container;
	struct resources_form asked;

	nri__update_container_request__init(&m);
	m.pod = pod_form_fill(&pod, c, a);
	if (event >= NRI_EVENT_CREATE)
		m.container = container_form_fill(&container, c, a);
	if (!m.pod || (event >= NRI_EVENT_CREATE && !m.container))
		return out_of_memory(e);
	if (event == NRI_EVENT_UPDATE)
		m.linux_resources = resources_form_fill(&asked, c);
	if (!state_change)
		return pb_encode(&m.base, a, out, e);
	nri__state_change_event__init(&change);
	change.event = (Nri__Event)event;
	change.pod = m.pod;
	change.container = m.container;
	return pb_encode(&change.base, a, out, e);
}

/* Answers */

static int64_t quota_of(const Nri__LinuxCPU *cpu)
{
	return cpu && cpu->quota ? cpu->quota->value : 0;
}

static const struct nri_update *updates_from_messages(
	Nri__ContainerUpdate *const *from, size_t nr, struct arena *a)
{
	struct nri_update *updates = arena_array(a, nr, sizeof *updates);

	for (size_t i = 0; updates && i < nr; i++) {
		const Nri__LinuxContainerUpdate *l = from[i]->linux;
		const Nri__LinuxCPU *cpu = l && l->resources ? l->resources->cpu : NULL;

		updates[i] = (struct nri_update){.container_id = from[i]->container_id,
			.cpus = cpu ? cpu->cpus : "",
			.mems = cpu ? cpu->mems : "",
			.cpu_quota = quota_of(cpu),
			.ignore_failure = from[i]->ignore_failure};
	}
	return updates;
}

static const struct key_value *pairs_from_messages(
	Nri__KeyValue *const *from, size_t nr, struct arena *a)
{
	struct key_value *annotations = arena_array(a, nr, sizeof *annotations);

	for (size_t i = 0; annotations && i < nr; i++)
		annotations[i] = (struct key_value){from[i]->key, from[i]->value};
	return annotations;
}

static int give_answer(struct nri_answer answer, struct nri_answer *out, struct err *e)
{
	if (!answer.updates || !answer.annotations || (answer.nr_env && !answer.env))
		return err_set(e, EBADMSG, "the answer holds more than we can take");
	*out = answer;
	return 0;
}

int nri_created_decode(struct blob payload, struct arena *a, struct nri_answer *out, struct err *e)
{
	const Nri__CreateContainerResponse *m =
		pb_decode(&nri__create_container_response__descriptor, payload, a, e);

	if (!m)
		return -EBADMSG;
	const Nri__ContainerAdjustment *adjust = m->adjust;
	const Nri__LinuxContainerAdjustment *l = adjust ? adjust->linux : NULL;
	const Nri__LinuxCPU *cpu = l && l->resources ? l->resources->cpu : NULL;
	size_t nr_annotations = adjust ? adjust->n_annotations : 0;
	size_t nr_env = adjust ? adjust->n_env : 0;
	struct nri_answer answer = {.message = "",
		.cpus = cpu ? cpu->cpus : "",
		.mems = cpu ? cpu->mems : "",
		.cpu_quota = quota_of(cpu),
		.annotations =
			pairs_from_messages(adjust ? adjust->annotations : NULL, nr_annotations, a),
		.nr_annotations = nr_annotations,
		.env = pairs_from_messages(adjust ? adjust->env : NULL, nr_env, a),
		.nr_env = nr_env,
		.updates = updates_from_messages(m->update, m->n_update, a),
		.nr_updates = m->n_update};
	return give_answer(answer, out, e);
}

static int give_answer_with_updates(Nri__ContainerUpdate *const *updates, size_t nr,
	struct arena *a, struct nri_answer *out, struct err *e)
{
	struct nri_answer answer = {.message = "",
		.cpus = "",
		.mems = "",
		.annotations = pairs_from_messages(NULL, 0, a),
		.updates = updates_from_messages(updates, nr, a),
		.nr_updates = nr};

	return give_answer(answer, out, e);
}

int nri_synchronized_decode(
	struct blob payload, struct arena *a, struct nri_answer *out, bool *more, struct err *e)
{
	const Nri__SynchronizeResponse *m =
		pb_decode(&nri__synchronize_response__descriptor, payload, a, e);

	if (!m)
		return -EBADMSG;
	*more = m->more;
	return give_answer_with_updates(m->update, m->n_update, a, out, e);
}

int nri_updates_decode(struct blob payload, struct arena *a, struct nri_answer *out, struct err *e)
{
	const Nri__UpdateContainerResponse *m =
		pb_decode(&nri__update_container_response__descriptor, payload, a, e);

	if (!m)
		return -EBADMSG;
	return give_answer_with_updates(m->update, m->n_update, a, out, e);
}
