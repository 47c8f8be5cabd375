#include <numafit/request.h>

#include <errno.h>
#include <numafit/quantity.h>
#include <numafit/text.h>
#include <numafit/number.h>
#include <string.h>

/* pkg/kubelet/cm/helpers_linux.go: SharesPerCPU, MinShares, MaxShares, MilliCPUToCPU */
enum { SHARES_PER_CPU = 1024, SHARES_MIN = 2, SHARES_MAX = 262144 };

static bool limits_cpu(const struct linux_resources *r)
{
	return r->has_quota && r->has_period && r->cpu_quota > 0 && r->cpu_period > 0;
}

/* value * mul / div, rounded to the nearest, never overflowing */
static uint64_t scaled(uint64_t value, uint64_t mul, uint64_t div)
{
	unsigned __int128 v = ((unsigned __int128)value * mul + div / 2) / div;

	return v > UINT64_MAX ? UINT64_MAX : (uint64_t)v;
}

static uint64_t cpu_limit(const struct linux_resources *r)
{
	return limits_cpu(r) ? scaled((uint64_t)r->cpu_quota, MILLI_PER_CPU, r->cpu_period) : 0;
}

const char *const token_owner_words[NR_TOKEN_OWNERS] = {
	[TOKENS_NOT_ASKED] = "not-asked",
	[TOKENS_NOT_SHOWN_YET] = "not-shown-yet",
	[TOKENS_OWN] = "own",
	[TOKENS_NOBODYS] = "nobodys",
	[TOKENS_ANOTHERS] = "anothers",
};

const char *const claims_known_words[NR_CLAIMS_KNOWN] = {
	[CLAIMS_KNOWN] = "known",
	[CLAIMS_NOT_SHOWN_YET] = "not-shown-yet",
	[CLAIMS_NOT_PUBLISHED] = "not-published",
};

const char *const claims_known_texts[NR_CLAIMS_KNOWN] = {
	[CLAIMS_KNOWN] = "",
	[CLAIMS_NOT_SHOWN_YET] = "not all devices of its claims were looked at: the kubelet's "
				 "PodResources had not shown them yet",
	[CLAIMS_NOT_PUBLISHED] = "not all devices of its claims were looked at: no ResourceSlice "
				 "of this node says where they are",
};

uint64_t cpu_milli_from_shares(const struct linux_resources *r)
{
	if (!r->has_shares || r->cpu_shares <= SHARES_MIN)
		return 0;
	if (r->cpu_shares >= SHARES_MAX && limits_cpu(r))
		return cpu_limit(r);
	return scaled(r->cpu_shares, MILLI_PER_CPU, SHARES_PER_CPU);
}

static int add_memory_ask(struct request *req, uint64_t page_bytes, uint64_t bytes, struct err *e)
{
	unsigned at = 0;

	if (!bytes)
		return 0;
	while (at < req->ask.nr_memory && req->ask.memory[at].page_bytes < page_bytes)
		at++;
	if (at < req->ask.nr_memory && req->ask.memory[at].page_bytes == page_bytes) {
		req->ask.memory[at].bytes = bytes;
		return 0;
	}
	if (req->ask.nr_memory == TOPO_KINDS)
		return err_set(e, E2BIG, "more than %d kinds of memory", TOPO_KINDS);
	memmove(&req->ask.memory[at + 1], &req->ask.memory[at],
		(req->ask.nr_memory - at) * sizeof req->ask.memory[0]);
	req->ask.memory[at] = (struct memory_ask){page_bytes, bytes};
	req->ask.nr_memory++;
	return 0;
}

int request_from_resources(struct request *req, const struct linux_resources *r, struct err *e)
{
	req->ask.cpu_milli = cpu_milli_from_shares(r);
	req->ask.cpu_limit_milli = cpu_limit(r);
	req->ask.nr_memory = 0;
	if (req->pod.qos == QOS_GUARANTEED && r->has_memory_limit && r->memory_limit > 0)
		(void)add_memory_ask(req, 0, (uint64_t)r->memory_limit, e);
	for (unsigned i = 0; i < r->nr_hugepages; i++) {
		int rc = add_memory_ask(req, r->hugepages[i].page_bytes, r->hugepages[i].bytes, e);

		if (rc)
			return rc;
	}
	return 0;
}

const char request_no_memory_policy_text[] =
	"the wish for a memory policy is not applied: the runtime's NRI has none (0.12.0 has)";

bool request_has_limits(const struct request *req, const struct linux_resources *in_force)
{
	/* runc libcontainer/cgroups/systemd, addCpuQuota(); the largest page of any kernel */
	enum { STEP_MILLI = 10, PAGE_BYTES_MAX = 65536 };
	bool ordinary = req->ask.nr_memory && !req->ask.memory[0].page_bytes;
	uint64_t milli = cpu_limit(in_force), bytes = ordinary ? req->ask.memory[0].bytes : 0;
	bool cpu = !milli || (milli >= req->ask.cpu_limit_milli &&
				     milli - req->ask.cpu_limit_milli < STEP_MILLI);
	uint64_t limit = in_force->has_memory_limit ? (uint64_t)in_force->memory_limit : bytes;

	return cpu && limit <= bytes && bytes - limit < PAGE_BYTES_MAX;
}

void request_take_limits(struct request *req, const struct linux_resources *in_force)
{
	if (limits_cpu(in_force))
		req->ask.cpu_milli = req->ask.cpu_limit_milli = cpu_limit(in_force);
	if (in_force->has_memory_limit && in_force->memory_limit > 0)
		(void)add_memory_ask(req, 0, (uint64_t)in_force->memory_limit, NULL);
}

uint64_t page_bytes_from_name(const char *name)
{
	/* cgroup says "2MB" and means 2 MiB; Kubernetes says "2Mi" */
	size_t len = strlen(name);
	char text[TEXT_SIZE_MAX];
	uint64_t bytes;

	if (len < 2 || len >= sizeof text || name[0] < '0' || name[0] > '9')
		return 0;
	memcpy(text, name, len + 1);
	if (text[len - 1] == 'B')
		text[len - 1] = 'i';
	/* a quantity that is too large for any size is INT64_MAX */
	return !quantity_parse_count(text, QUANTITY_WHOLE, &bytes, NULL) && bytes < INT64_MAX
		       ? bytes
		       : 0;
}

struct request request_of_part(const struct pod *pod, size_t place)
{
	const struct ask *ask = place < pod->nr ? &pod->container[place] : pod->own;
	struct request req = {
		.container_id = "",
		.ask = *ask,
		.pod = pod_identity(pod),
		.cpus = "",
		.mems = "",
	};

	req.ask.place = ask == pod->own ? 0 : (unsigned)place;
	req.ask.advice = NULL; /* a record has it with the pod */
	memset(req.ask.memory, 0, sizeof req.ask.memory);
	req.ask.nr_memory = ask_memory(ask, req.ask.memory);
	req.ask.has_devices = request_has_devices(&req);
	return req;
}

unsigned request_exclusive_cpus(const struct request *req)
{
	return ask_exclusive_cpus(&req->ask, req->pod.qos, req->pod.pod_level);
}

bool request_has_devices(const struct request *req)
{
	return req->ask.has_devices || req->ask.nr_devices || req->ask.has_claims ||
	       req->pod.nr_attached || req->nr_files || req->nr_cdi;
}

bool request_pins_memory(const struct request *req)
{
	return req->pod.qos == QOS_GUARANTEED && req->ask.nr_memory > 0 &&
	       !wishes_untouched(&req->ask.wishes) && (!req->pod.pod_level || req->ask.guaranteed);
}
