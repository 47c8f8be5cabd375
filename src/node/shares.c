/* Shares of ResourceClaims: CPUs and memory that are booked for whoever comes for them. */
#include <numafit/shares.h>

#include <numafit/number.h>
#include <numafit/text.h>

#include <errno.h>
#include <string.h>

const char *share_id(const char *claim_uid, size_t place, char buf[SHARE_ID_MAX])
{
	struct text t;

	text_init(&t, buf, SHARE_ID_MAX);
	text_add(&t, "%s/%zu", claim_uid, place);
	return buf;
}

const char *share_cdi(const char *claim_uid, size_t place, char buf[SHARE_CDI_MAX])
{
	struct text t;

	text_init(&t, buf, SHARE_CDI_MAX);
	text_add(&t, CLAIM_CDI_KIND "=%s-%zu", claim_uid, place);
	return buf;
}

/* The id of "UID-PLACE". False: it is none. */
static bool add_id(const char *name, struct text *ids)
{
	const char *dash = strrchr(name, '-');
	uint64_t place;

	if (!dash || !claim_uid_is_valid(name, (size_t)(dash - name)) ||
		text_u64(dash + 1, strlen(dash + 1), CLAIM_SHARES_MAX - 1, &place, NULL))
		return false;
	text_add(ids, "%s%.*s/%llu", ids->len ? " " : "", (int)(dash - name), name,
		(unsigned long long)place);
	return !ids->cut;
}

const char *shares_of_cdi(const char *const *cdi, size_t nr, struct arena *a)
{
	struct text ids = {0};

	for (size_t i = 0; i < nr; i++) {
		const char *name = text_behind(cdi[i], CLAIM_CDI_KIND "=");

		if (!name)
			continue;
		if (!ids.at) {
			const size_t cap = (nr - i) * SHARE_ID_MAX;
			char *buf = arena_alloc(a, cap);

			if (!buf)
				return "";
			text_init(&ids, buf, cap);
		}
		if (!add_id(name, &ids))
			return "";
	}
	return ids.at;
}

int share_node(const struct topo *t, const struct claim_share *s)
{
	const char *number = text_behind(s->device, CLAIM_DEVICE_PREFIX);
	uint64_t id;

	return number && text_u64(number, strlen(number), NODE_ID_MAX, &id, NULL) == 0
		       ? node_index(&t->ids, (unsigned)id)
		       : -1;
}

struct request share_request(const struct resource_claim *c, size_t place, unsigned node,
	const char *id, const char *place_text, const char *for_pods)
{
	const struct claim_share *s = &c->share[place];
	struct request req = {
		.container_id = id,
		.ask = {.name = place_text,
			.place = (unsigned)place,
			.cpu_milli = s->cpus * MILLI_PER_CPU,
			.cpu_limit_milli = s->cpus * MILLI_PER_CPU,
			.nr_memory = s->nr_memory,
			.guaranteed = true,
			.wishes.cores = s->whole_cores ? WISH_CORES_WHOLE : WISH_CORES_UNSAID,
			.share_of = nodeset_of(node)},
		.pod = {.sandbox_id = id, /* sandboxes have no slash either */
			.uid = c->uid,
			.ns = c->ns,
			.name = c->name,
			.qos = QOS_GUARANTEED},
		.cpus = "",
		.mems = "",
		.for_pods = for_pods,
		.for_many = s->shared,
		.for_one_pod = c->pod_claim_name && c->nr_pods == 1,
	};

	memcpy(req.ask.memory, s->memory, sizeof req.ask.memory);
	return req;
}

const char *shares_for_pods(const struct resource_claim *c, struct arena *a)
{
	size_t cap = 1;
	struct text t;

	for (size_t i = 0; i < c->nr_pods; i++)
		cap += strlen(c->pod_uid[i]) + 1;
	char *buf = arena_alloc(a, cap);
	if (!buf)
		return NULL;
	text_init(&t, buf, cap);
	for (size_t i = 0; i < c->nr_pods; i++)
		text_add(&t, "%s%s", t.len ? " " : "", c->pod_uid[i]);
	return buf;
}

/* The next of these shares; *id is its id. False: there are no more. *h NULL: it is not there. */
static bool next_share(const struct ledger *l, const char **shares, char id[SHARE_ID_MAX],
	const struct holding **h)
{
	size_t len;
	const char *at = text_next_word(shares, &len);
	struct text t;

	if (!at)
		return false;
	text_init(&t, id, SHARE_ID_MAX);
	text_put(&t, at, len);
	*h = t.cut ? NULL : ledger_find(l, id);
	if (*h && !holding_is_share(*h))
		*h = NULL;
	return true;
}

struct cpuset shares_cpus(const struct ledger *l, const char *shares)
{
	const struct holding *h;
	struct cpuset cpus = {0};
	char id[SHARE_ID_MAX];

	while (next_share(l, &shares, id, &h))
		if (h && h->decision.exclusive)
			cpus = cpuset_or(cpus, &h->decision.cpus);
	return cpus;
}

static void add_blocks(struct shares_held *to, const struct decision *d)
{
	for (unsigned b = 0; b < d->nr_blocks; b++)
		nodeset_each (n, d->blocks[b].nodes)
			to->bytes[n][d->blocks[b].kind] += d->blocks[b].bytes;
}

void shares_add_up(const struct ledger *l, struct shares_held *out)
{
	*out = (struct shares_held){0};
	for (size_t i = 0; ledger_view(l)->nr_shares && i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		if (!holding_is_share(h))
			continue;
		if (h->decision.exclusive)
			out->cpus = cpuset_or(out->cpus, &h->decision.cpus);
		add_blocks(out, &h->decision);
	}
}

bool shares_has_pod(const struct ledger *l, const char *pod_uid)
{
	for (size_t i = 0; *pod_uid && ledger_view(l)->nr_shares && i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		if (holding_is_share(h) && text_has_word(h->request.for_pods, pod_uid))
			return true;
	}
	return false;
}

const struct holding *shares_unknown_pod(const struct ledger *l, const struct request *req)
{
	const char *shares = req->shares;
	const struct holding *h, *found = NULL;
	char id[SHARE_ID_MAX];

	while (next_share(l, &shares, id, &h)) {
		if (!h)
			return NULL;
		if (!found && !text_has_word(h->request.for_pods, req->pod.uid))
			found = h;
	}
	return found;
}

bool shares_are_for_many(const struct ledger *l, const char *shares)
{
	const struct holding *h;
	char id[SHARE_ID_MAX];
	bool many = false;

	while (next_share(l, &shares, id, &h))
		many = many || (h && h->request.for_many);
	return many;
}

const struct holding *shares_any(const struct ledger *l, const char *claim_uid)
{
	/* a pod may have that uid, too */
	for (size_t i = ledger_first_of_pod(l, claim_uid); ledger_view(l)->nr_shares; i++) {
		const struct holding *h = ledger_at_by_pod(l, i);

		if (!h || !text_equal(h->request.pod.uid, claim_uid))
			break;
		if (holding_is_share(h))
			return h;
	}
	return NULL;
}

const struct holding *shares_in_namespace(const struct ledger *l, const char *ns)
{
	for (size_t i = 0; ledger_view(l)->nr_shares && i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		if (holding_is_share(h) && text_equal(h->request.pod.ns, ns))
			return h;
	}
	return NULL;
}

const struct holding *shares_find(const struct ledger *l, const char *claim_uid, size_t place)
{
	char id[SHARE_ID_MAX];
	const struct holding *h = ledger_find(l, share_id(claim_uid, place, id));

	return h && holding_is_share(h) ? h : NULL;
}

const struct holding *shares_user(const struct ledger *l, const char *claim_uid)
{
	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i), *share;
		const char *shares = h->request.shares;
		char id[SHARE_ID_MAX];

		while (h->decision.within_claims && next_share(l, &shares, id, &share))
			if (share && text_equal(share->request.pod.uid, claim_uid))
				return h;
	}
	return NULL;
}

size_t shares_count_users(const struct ledger *l, const char *share)
{
	size_t nr = 0;

	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		nr += h->decision.within_claims && text_has_word(h->request.shares, share);
	}
	return nr;
}

/* A container that runs on the share beside the one that comes, which may be a dead one's
 * successor; NULL: none does. */
static const struct holding *other_user(
	const struct ledger *l, const char *share, const struct request *req)
{
	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		if (!h->decision.within_claims || !text_has_word(h->request.shares, share))
			continue;
		bool is_it = text_equal(h->request.container_id, req->container_id) ||
			     (text_equal(h->request.pod.uid, req->pod.uid) &&
				     text_equal(h->request.ask.name, req->ask.name));
		if (!is_it)
			return h;
	}
	return NULL;
}

/* A pod's author can name any claim's uid in an annotation of CDI devices: the name of another
 * namespace's claim is not for this author. */
static int refuse_share(
	struct decision *d, const struct holding *h, const struct request *req, const char *why)
{
	if (!text_equal(h->request.pod.ns, req->pod.ns))
		return decision_refuse(d, REFUSED_FOR_CLAIM, "UnexpectedAdmissionError",
			"a ResourceClaim of another namespace %s", why);
	return decision_refuse(d, REFUSED_FOR_CLAIM, "UnexpectedAdmissionError",
		"ResourceClaim %.63s/%.63s %s", h->request.pod.ns, h->request.pod.name, why);
}

/* 0; -EPERM: *d is refused. */
static int may_use(const struct ledger *l, const struct holding *h, const char *id,
	const struct request *req, struct decision *d)
{
	const struct holding *other;

	if (!h)
		return decision_refuse(d, REFUSED_FOR_CLAIM, "UnexpectedAdmissionError",
			"ResourceClaim %.*s is not prepared on this node: delete the pod, so that "
			"the kubelet prepares it for another one",
			(int)strcspn(id, "/"), id);
	if (!text_has_word(h->request.for_pods, req->pod.uid))
		return refuse_share(d, h, req,
			"is not reserved for this pod, as far as is known: it is looked at once more, "
			"and the kubelet tries again");
	other = h->request.for_many ? NULL : other_user(l, id, req);
	if (other)
		return decision_refuse(d, REFUSED_FOR_CLAIM, "UnexpectedAdmissionError",
			"container %.63s runs on ResourceClaim %.63s/%.63s already: parameter "
			"shared: true of the claim lets several containers do so",
			other->request.ask.name, h->request.pod.ns, h->request.pod.name);
	return 0;
}

void shares_decide(const struct ledger *l, const struct request *req, struct decision *d)
{
	const char *shares = req->shares;
	const struct holding *h;
	struct nodeset nodes = {0}, mems = {0};
	char id[SHARE_ID_MAX];

	if (!*shares) {
		(void)decision_refuse(d, REFUSED_FOR_CLAIM, "UnexpectedAdmissionError",
			"it is not known which ResourceClaims it comes with: a runtime with NRI "
			"0.10 or newer shows them, or else the kubelet's PodResources "
			"(podResources.enabled); the kubelet tries again");
		return;
	}
	while (next_share(l, &shares, id, &h)) {
		if (may_use(l, h, id, req, d))
			return;
		nodes = nodeset_or(nodes, h->request.ask.share_of);
		if (h->decision.nr_blocks)
			mems = nodeset_or(mems, h->request.ask.share_of);
	}
	d->admit = true;
	d->within_claims = true;
	d->cpus = shares_cpus(l, req->shares);
	d->exclusive = !cpuset_empty(&d->cpus);
	d->mems = nodeset_empty(mems) ? ledger_view(l)->memory.usable : mems;
	d->has_affinity = true;
	d->nodes = nodes;
	d->preferred = nodeset_count(nodes) == 1;
	d->apart = req->apart;
}
