#include <numafit-sim/kubelet.h>

#include <errno.h>
#include <stdio.h>

/* pkg/kubelet/cm/helpers_linux.go: MinShares, MaxShares, SharesPerCPU; QuotaPeriod and its least */
enum { SHARES_MIN = 2, SHARES_MAX = 262144, SHARES_PER_CPU = 1024 };
enum { QUOTA_PERIOD_US = 100000, QUOTA_MIN_US = 1000 };

static uint64_t clamp(uint64_t value, uint64_t lo, uint64_t hi)
{
	if (value < lo)
		return lo;
	return value > hi ? hi : value;
}

static struct memory_ask *limit_of_page(struct linux_resources *r, uint64_t page_bytes)
{
	for (unsigned i = 0; i < r->nr_hugepages; i++)
		if (r->hugepages[i].page_bytes == page_bytes)
			return &r->hugepages[i];
	if (r->nr_hugepages == sizeof r->hugepages / sizeof *r->hugepages)
		return NULL;
	r->hugepages[r->nr_hugepages] = (struct memory_ask){.page_bytes = page_bytes};
	return &r->hugepages[r->nr_hugepages++];
}

int kubelet_resources(
	const struct topo *t, const struct asked *a, struct linux_resources *out, struct err *e)
{
	bool limited = a->qos == QOS_GUARANTEED;
	struct linux_resources r = {
		.has_shares = true,
		.cpu_shares = clamp(
			a->cpu_milli * SHARES_PER_CPU / MILLI_PER_CPU, SHARES_MIN, SHARES_MAX),
		.has_period = true,
		.cpu_period = QUOTA_PERIOD_US,
		.has_quota = limited,
		.has_memory_limit = limited,
	};

	if (limited) {
		r.cpu_quota = (int64_t)clamp(
			a->cpu_milli * QUOTA_PERIOD_US / MILLI_PER_CPU, QUOTA_MIN_US, INT64_MAX);
		r.memory_limit = (int64_t)a->memory_bytes;
	}
	/* sizes that are not asked for get a limit of 0 (GetHugepageLimitsFromResources) */
	for (unsigned kind = 1; kind < t->nr_kinds; kind++)
		(void)limit_of_page(&r, t->page_bytes[kind]);
	for (unsigned i = 0; i < a->nr_hugepages; i++) {
		struct memory_ask *limit = limit_of_page(&r, a->hugepages[i].page_bytes);

		if (!limit)
			return err_set(e, E2BIG, "more than %d sizes of huge pages", TOPO_KINDS);
		limit->bytes = a->hugepages[i].bytes;
	}
	*out = r;
	return 0;
}

void kubelet_cgroup_parent(char buf[CGROUP_PATH_MAX], enum qos qos, const char *pod_uid)
{
	static const char *const parents[NR_QOS] = {
		[QOS_GUARANTEED] = "/kubepods",
		[QOS_BURSTABLE] = "/kubepods/burstable",
		[QOS_BEST_EFFORT] = "/kubepods/besteffort",
	};

	snprintf(buf, CGROUP_PATH_MAX, "%s/pod%s", parents[qos], pod_uid);
}
