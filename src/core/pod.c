#include <errno.h>
#include <numafit/number.h>
#include <numafit/pod.h>
#include <numafit/quantity.h>

#include <numafit/text.h>
#include <string.h>

const char *const qos_words[NR_QOS] = {
	[QOS_GUARANTEED] = "Guaranteed",
	[QOS_BURSTABLE] = "Burstable",
	[QOS_BEST_EFFORT] = "BestEffort",
};

enum qos qos_from_cgroup_parent(const char *cgroup_parent)
{
	const char *path = cgroup_parent ? cgroup_parent : "";

	if (strstr(path, "besteffort"))
		return QOS_BEST_EFFORT;
	return strstr(path, "burstable") ? QOS_BURSTABLE : QOS_GUARANTEED;
}

bool pod_may_name(enum pod_names names, const struct pod *reader, const struct pod *other)
{
	return names == POD_NAMES_ALL || text_equal(reader->ns, other->ns);
}

struct pod pod_identity(const struct pod *p)
{
	struct pod it = *p;

	if (p->has_runtime_qos)
		it.qos = p->runtime_qos;
	it.has_runtime_qos = false;
	it.nr = 0;
	it.container = NULL;
	it.own = NULL;
	it.has_policy = false;
	it.attached = NULL;
	it.nr_attached = 0;
	return it;
}

const char *pod_annotation(const struct pod *p, const char *key)
{
	for (size_t i = 0; i < p->nr_annotations; i++)
		if (text_equal(p->annotations[i].key, key))
			return p->annotations[i].value;
	return NULL;
}

const char *const container_kind_words[NR_CONTAINER_KINDS] = {
	[CONTAINER_APP] = "app",
	[CONTAINER_INIT] = "init",
	[CONTAINER_SIDECAR] = "sidecar",
};

const char *const devices_shown_words[NR_DEVICES_SHOWN] = {
	[DEVICES_SHOWN] = "shown",
	[DEVICES_NOT_SHOWN_YET] = "not-shown-yet",
};

unsigned ask_memory(const struct ask *c, struct memory_ask out[TOPO_KINDS])
{
	unsigned nr = 0;

	for (unsigned i = 0; i < c->nr_memory; i++) {
		unsigned at = nr;

		if (!c->memory[i].bytes)
			continue;
		for (; at > 0 && out[at - 1].page_bytes > c->memory[i].page_bytes; at--)
			out[at] = out[at - 1];
		out[at] = c->memory[i];
		nr++;
	}
	return nr;
}

int ask_read_memory(struct memory_ask memory[TOPO_KINDS], unsigned *nr, uint64_t page_bytes,
	const char *quantity, struct err *e)
{
	uint64_t bytes = 0;
	int rc = quantity_parse_count(quantity, QUANTITY_WHOLE, &bytes, e);

	for (unsigned i = 0; i < *nr && !rc; i++)
		if (memory[i].page_bytes == page_bytes)
			rc = err_set(e, EINVAL, "it is there twice");
	if (!rc && *nr == TOPO_KINDS)
		rc = err_set(e, E2BIG, "more than %d kinds of memory", TOPO_KINDS);
	if (!rc)
		memory[(*nr)++] = (struct memory_ask){page_bytes, bytes};
	return rc;
}

void ask_keep_devices(struct ask *c, const struct ask *entry)
{
	if (!entry->has_devices || entry->devices != DEVICES_SHOWN)
		return;
	c->has_devices = true;
	c->devices = DEVICES_SHOWN;
}

bool ask_same_memory(const struct ask *a, const struct ask *b)
{
	return a->nr_memory == b->nr_memory &&
	       memcmp(a->memory, b->memory, b->nr_memory * sizeof *b->memory) == 0;
}

const char *const pod_apart_words[NR_POD_APARTS] = {
	[POD_APART_NOT] = "no",
	[POD_APART_TOO_LONG] = "too-long",
	[POD_APART_TOO_LARGE] = "too-large",
	[POD_APART_CLAIMS] = "claims",
	[POD_APART_TOO_MANY] = "too-many",
};

const char *const pod_apart_texts[NR_POD_APARTS] = {
	[POD_APART_NOT] = "",
	[POD_APART_TOO_LONG] =
		"decided container by container, not as a whole pod: what the pod would be given "
		"is more than a line of the journal",
	[POD_APART_TOO_LARGE] =
		"decided container by container, not as a whole pod: that takes more working "
		"memory than there is",
	[POD_APART_CLAIMS] =
		"decided container by container, not as a whole pod: it has claims of CPUs and "
		"memory",
	[POD_APART_TOO_MANY] =
		"decided container by container, not as a whole pod: it has more containers, or "
		"kinds of devices, than are decided at once",
};

unsigned qos_exclusive_cpus(enum qos q, uint64_t cpu_milli)
{
	uint64_t cpus = cpu_milli / MILLI_PER_CPU;

	if (q != QOS_GUARANTEED || cpu_milli % MILLI_PER_CPU)
		return 0;
	return cpus > UINT32_MAX ? UINT32_MAX : (unsigned)cpus;
}

unsigned ask_exclusive_cpus(const struct ask *c, enum qos q, bool pod_level)
{
	const uint64_t fraction = c->cpu_milli % MILLI_PER_CPU;

	if (pod_level) /* its containers have parts of what it has, whatever they wish for */
		return c->guaranteed ? qos_exclusive_cpus(q, c->cpu_milli) : 0;
	switch (c->wishes.cpus) {
	case WISH_CPUS_SHARED:
	case WISH_CPUS_UNTOUCHED:
	case WISH_CPUS_UNBOUNDED:
	case WISH_CPUS_RESERVED:
		return 0;
	case WISH_CPUS_OWN_SHARED:
		return qos_exclusive_cpus(q, c->cpu_milli - fraction);
	case WISH_CPUS_UNSAID:
	case WISH_CPUS_OWN:
	case NR_WISH_CPUS:
		break;
	}
	return qos_exclusive_cpus(q, c->cpu_milli);
}

unsigned pod_exclusive_cpus(const struct pod *pod, unsigned container)
{
	return ask_exclusive_cpus(&pod->container[container], pod->qos, pod->pod_level);
}

enum topology_policy pod_policy(const struct settings *s, const struct pod *pod)
{
	return pod->has_policy ? pod->policy : s->topology_policy;
}

bool pod_is_aligned_as_one(const struct settings *s, const struct pod *pod)
{
	return s->topology_scope == SCOPE_POD && pod_policy(s, pod) != POLICY_NONE;
}

void pod_obey_gate(const struct settings *s, struct pod *pod, struct ask *containers)
{
	if (s->gates.pod_level_resource_managers)
		return;
	pod->own = NULL;
	for (size_t i = 0; i < pod->nr; i++)
		containers[i].guaranteed = false;
}

bool pod_pins_memory(const struct pod *pod)
{
	bool shares_out = pod->own;

	for (size_t i = 0; i < pod->nr; i++)
		shares_out = shares_out || pod->container[i].guaranteed;
	return pod->qos == QOS_GUARANTEED && (!pod->pod_level || shares_out);
}

const struct device_ask *ask_for_device(const struct ask *c, unsigned resource)
{
	for (unsigned i = 0; i < c->nr_devices; i++)
		if (c->device[i].resource == resource)
			return &c->device[i];
	return NULL;
}

static uint64_t ask_bytes(const struct ask *c, uint64_t page_bytes)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < c->nr_memory; i++)
		bytes += c->memory[i].page_bytes == page_bytes ? c->memory[i].bytes : 0;
	return bytes;
}

uint64_t pod_needs(const struct pod *pod, unsigned container, struct pod_resource r)
{
	const struct ask *c = &pod->container[container];
	const struct device_ask *asked;

	switch (r.kind) {
	case POD_CPUS:
		return pod_exclusive_cpus(pod, container);
	case POD_CPU_MILLI:
		return c->cpu_milli;
	case POD_BYTES:
		return ask_bytes(c, r.page_bytes);
	case POD_DEVICES:
		break;
	}
	asked = ask_for_device(c, r.device);
	return asked ? asked->count : 0;
}

uint64_t pod_needs_at_once(const struct pod *pod, struct pod_resource r)
{
	uint64_t sidecars = 0, most = 0, apps = 0;

	for (unsigned c = 0; c < pod->nr; c++) {
		uint64_t need = pod_needs(pod, c, r);

		if (pod->container[c].kind == CONTAINER_SIDECAR)
			sidecars += need;
		else if (pod->container[c].kind == CONTAINER_INIT)
			most = number_max(most, sidecars + need);
		else
			apps += need;
	}
	return number_max(most, sidecars + apps);
}

static bool has_page_size(const struct ask *c, uint64_t page_bytes)
{
	for (unsigned i = 0; i < c->nr_memory; i++)
		if (c->memory[i].page_bytes == page_bytes)
			return true;
	return false;
}

struct ask pod_ask(const struct pod *pod)
{
	const struct pod_totals *totals = &pod->totals;
	struct ask sum = {
		.cpu_milli = pod_needs_at_once(pod, (struct pod_resource){.kind = POD_CPU_MILLI})};

	for (size_t i = 0; i < pod->nr; i++)
		for (unsigned k = 0; k < pod->container[i].nr_memory; k++) {
			const struct pod_resource r = {.kind = POD_BYTES,
				.page_bytes = pod->container[i].memory[k].page_bytes};

			if (sum.nr_memory < TOPO_KINDS && !has_page_size(&sum, r.page_bytes))
				sum.memory[sum.nr_memory++] = (struct memory_ask){
					r.page_bytes, pod_needs_at_once(pod, r)};
		}
	if (pod->container || !totals->known)
		return sum;
	sum.cpu_milli = totals->cpu_milli;
	sum.memory[sum.nr_memory++] = (struct memory_ask){0, totals->memory_bytes};
	return sum;
}
