#include <numafit/number.h>
#include <numafit/pod.h>

#include <numafit/text.h>
#include <string.h>

enum { MILLI_PER_CPU = 1000 };

const char *const qos_words[NR_QOS] = {
	[QOS_GUARANTEED] = "Guaranteed",
	[QOS_BURSTABLE] = "Burstable",
	[QOS_BEST_EFFORT] = "BestEffort",
};

const char *qos_name(enum qos q)
{
	return qos_words[q];
}

int qos_from_name(const char *name)
{
	for (int q = 0; q < NR_QOS; q++)
		if (text_equal(name, qos_words[q]))
			return q;
	return -1;
}

enum qos qos_from_cgroup_parent(const char *cgroup_parent)
{
	const char *path = cgroup_parent ? cgroup_parent : "";

	if (strstr(path, "besteffort"))
		return QOS_BEST_EFFORT;
	return strstr(path, "burstable") ? QOS_BURSTABLE : QOS_GUARANTEED;
}

struct pod pod_identity(const struct pod *p)
{
	struct pod it = *p;

	if (p->has_runtime_qos)
		it.qos = p->runtime_qos;
	it.has_runtime_qos = false;
	it.nr = 0;
	it.container = NULL;
	it.has_policy = it.pod_level = false;
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

const char *container_kind_name(enum container_kind k)
{
	return container_kind_words[k];
}

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

const char *const pod_apart_words[NR_POD_APARTS] = {
	[POD_APART_NOT] = "no",
	[POD_APART_TOO_LONG] = "too-long",
	[POD_APART_TOO_LARGE] = "too-large",
	[POD_APART_TOO_MANY] = "too-many",
};

static const char *const pod_apart_texts[NR_POD_APARTS] = {
	[POD_APART_NOT] = "",
	[POD_APART_TOO_LONG] =
		"decided container by container, not as a whole pod: what the pod would be given "
		"is more than a line of the journal",
	[POD_APART_TOO_LARGE] =
		"decided container by container, not as a whole pod: that takes more working "
		"memory than there is",
	[POD_APART_TOO_MANY] =
		"decided container by container, not as a whole pod: it has more containers, or "
		"kinds of devices, than are decided at once",
};

const char *pod_apart_name(enum pod_apart why)
{
	return pod_apart_words[why];
}

const char *pod_apart_text(enum pod_apart why)
{
	return pod_apart_texts[why];
}

unsigned qos_exclusive_cpus(enum qos q, uint64_t cpu_milli)
{
	uint64_t cpus = cpu_milli / MILLI_PER_CPU;

	if (q != QOS_GUARANTEED || cpu_milli % MILLI_PER_CPU)
		return 0;
	return cpus > UINT32_MAX ? UINT32_MAX : (unsigned)cpus;
}

unsigned pod_exclusive_cpus(const struct pod *pod, unsigned container)
{
	return pod->pod_level ? 0
			      : qos_exclusive_cpus(pod->qos, pod->container[container].cpu_milli);
}

bool pod_pins_memory(const struct pod *pod)
{
	return pod->qos == QOS_GUARANTEED && !pod->pod_level;
}

uint64_t pod_needs_at_once(const struct pod *pod,
	uint64_t (*of)(const struct pod *pod, unsigned container, unsigned what), unsigned what)
{
	uint64_t sidecars = 0, most = 0, apps = 0;

	for (unsigned c = 0; c < pod->nr; c++) {
		uint64_t need = of(pod, c, what);

		if (pod->container[c].kind == CONTAINER_SIDECAR)
			sidecars += need;
		else if (pod->container[c].kind == CONTAINER_INIT)
			most = number_max(most, sidecars + need);
		else
			apps += need;
	}
	return number_max(most, sidecars + apps);
}
