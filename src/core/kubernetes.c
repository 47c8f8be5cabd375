/* Which kubelet decides how. */
#include <numafit/kubernetes.h>

#include <numafit/text.h>

#include <string.h>

const char *const kubernetes_words[NR_KUBERNETES_VERSIONS + 1] = {"auto", "1.36", "1.37", NULL};

/* The first version that has the rule. */
static const enum kubernetes_version since[NR_KUBERNETES_RULES] = {
	[RULE_DISTRIBUTES_IN_SOCKET] = KUBERNETES_1_37,
	[RULE_PASSES_OVER_NO_MEMORY] = KUBERNETES_1_37,
	[RULE_EMPTY_POD_RESOURCES_ARE_NONE] = KUBERNETES_1_37,
};

bool kubernetes_has(enum kubernetes_version v, enum kubernetes_rule rule)
{
	return (v == KUBERNETES_AUTO ? KUBERNETES_NEWEST : (int)v) >= (int)since[rule];
}

/* The kubelet's numbers of the versions that are known, major 1. */
enum { MINOR_OLDEST = 36, MINOR_MAX = 10000 };

enum kubernetes_version kubernetes_of_kubelet(const char *kubelet_version)
{
	const char *minor = text_behind(kubelet_version, "v1.");
	size_t len = minor ? strspn(minor, "0123456789") : 0;
	uint64_t n;

	if (!len || text_u64(minor, len, MINOR_MAX, &n, NULL))
		return KUBERNETES_AUTO;
	if (n <= MINOR_OLDEST)
		return KUBERNETES_1_36;
	n += KUBERNETES_1_36 - MINOR_OLDEST;
	return n < KUBERNETES_NEWEST ? (enum kubernetes_version)n : KUBERNETES_NEWEST;
}
