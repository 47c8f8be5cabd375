#include <numafit/pod.h>

#include <numafit/text.h>
#include <string.h>

static const char *const qos_names[NR_QOS] = {
	[QOS_GUARANTEED] = "Guaranteed",
	[QOS_BURSTABLE] = "Burstable",
	[QOS_BEST_EFFORT] = "BestEffort",
};

const char *qos_name(enum qos q)
{
	return qos_names[q];
}

int qos_from_name(const char *name)
{
	for (int q = 0; q < NR_QOS; q++)
		if (text_equal(name, qos_names[q]))
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

const char *pod_annotation(const struct pod *p, const char *key)
{
	for (size_t i = 0; i < p->nr_annotations; i++)
		if (text_equal(p->annotations[i].key, key))
			return p->annotations[i].value;
	return NULL;
}
