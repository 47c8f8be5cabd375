#include <codec/status_json.h>
#include <numafit/shares.h>

#include <codec/fields_json.h>
#include <string.h>

enum { FIRST_CAP = 16 << 10, KIND_NAME_MAX = TEXT_SIZE_MAX + 16 };

#define AT(member) offsetof(struct status_memory, member)
static const struct field memory_rows[] = {
	FIELD("type", STRING, AT(type)),
	FIELD("allocatable", U64, AT(allocatable)),
	FIELD("free", U64, AT(free)),
};
static const struct fields memory_fields = FIELDS(memory_rows, struct status_memory);
#undef AT

#define AT(member) offsetof(struct status_threads, member)
static const struct field threads_rows[] = {
	FIELD("cpus", CPUS, AT(cpus)),
};
static const struct fields threads_fields = FIELDS(threads_rows, struct status_threads);
#undef AT

#define AT(member) offsetof(struct status_node, member)
static const struct field node_rows[] = {
	FIELD("id", UNSIGNED, AT(id)),
	FIELD("cpus", UNSIGNED, AT(cpus)),
	FIELD("cpus_held", UNSIGNED, AT(cpus_held)),
	FIELD("cpus_reserved", UNSIGNED, AT(cpus_reserved)),
	FIELD("cpus_pool", UNSIGNED, AT(cpus_pool)),
	FIELD("cpus_available", UNSIGNED, AT(cpus_available), .optional = true),
	FIELD("device_memory", BOOL, AT(device_memory), .optional = true),
	FIELD("socket", UNSIGNED, AT(socket), .has_flag = true, .flag = AT(has_socket)),
	FIELD("sockets", CPUS, AT(sockets), .optional = true),
	FIELD("threads", LIST, AT(threads), .count = AT(nr_threads), .optional = true,
		.fields = &threads_fields),
	FIELD("memory_group", STRING, AT(memory_group)),
	FIELD("memory", LIST, AT(memory), .count = AT(nr_memory), .fields = &memory_fields),
};
static const struct fields node_fields = FIELDS(node_rows, struct status_node);
#undef AT

#define AT(member) offsetof(struct status_container, member)
static const struct field container_rows[] = {
	FIELD("namespace", STRING, AT(ns)),
	FIELD("pod", STRING, AT(pod)),
	FIELD("container", STRING, AT(container)),
	FIELD("id", STRING, AT(id)),
	FIELD("qos", NAME, AT(qos), .words = qos_words, .max = NR_QOS),
	FIELD("source", NAME, AT(source), .words = decision_source_words,
		.max = NR_DECISION_SOURCES),
	FIELD("exclusive", BOOL, AT(exclusive)),
	FIELD("shares_in_pod", BOOL, AT(shares_in_pod), .optional = true),
	FIELD("left", BOOL, AT(left), .optional = true),
	FIELD("cpus", STRING, AT(cpus)),
	FIELD("mems", STRING, AT(mems)),
	FIELD("nodes", STRING, AT(nodes), .optional = true),
	FIELD("preferred", BOOL, AT(preferred)),
	FIELD("wishes", STRING, AT(wishes), .optional = true),
	FIELD("cpu_milli", U64, AT(cpu_milli), .optional = true),
	FIELD("memory", U64, AT(memory), .optional = true),
	FIELD("hugepages", U64, AT(hugepages), .optional = true),
};
static const struct fields container_fields = FIELDS(container_rows, struct status_container);
#undef AT

#define AT(member) offsetof(struct status_counters, member)
static const struct field counter_rows[] = {
	FIELD("creates", U64, AT(creates)),
	FIELD("refused", U64, AT(refused)),
	FIELD("cut_short", U64, AT(cut_short)),
	FIELD("adopted", U64, AT(adopted)),
	FIELD("updates", U64, AT(updates)),
	FIELD("released", U64, AT(released)),
	FIELD("compared", U64, AT(compared)),
	FIELD("disagreed", U64, AT(disagreed)),
	FIELD("drifted", U64, AT(drifted)),
	FIELD("relocated", U64, AT(relocated)),
	FIELD("hints_accepted", U64, AT(advice_accepted)),
	FIELD("hints_repaired", U64, AT(advice_repaired)),
	FIELD("hints_rejected", U64, AT(advice_rejected)),
	FIELD("connects", U64, AT(connects)),
	FIELD("log_dropped", U64, AT(log_dropped)),
};
static const struct fields counter_fields = FIELDS(counter_rows, struct status_counters);
#undef AT

#define AT(member) offsetof(struct status_kubelet, member)
static const struct field kubelet_rows[] = {
	FIELD("device_plugin", STRING, AT(device_plugin)),
	FIELD("tokens", UNSIGNED, AT(tokens)),
	FIELD("unhealthy", UNSIGNED, AT(unhealthy)),
	FIELD("leased", UNSIGNED, AT(leased)),
	FIELD("waiting", UNSIGNED, AT(waiting)),
	FIELD("pod_resources", STRING, AT(pod_resources)),
	FIELD("pods_api", STRING, AT(pods_api)),
	FIELD("pods", U64, AT(pods)),
};
static const struct fields kubelet_fields = FIELDS(kubelet_rows, struct status_kubelet);
#undef AT

#define AT(member) offsetof(struct status_config, member)
static const struct field config_rows[] = {
	FIELD("file", STRING, AT(file)),
	FIELD("refused", STRING, AT(refused), .optional = true),
	FIELD("restart", STRING, AT(restart), .optional = true),
	FIELD("digest", STRING, AT(digest), .optional = true),
	FIELD("waits_ms", U64, AT(waits_ms), .optional = true),
	FIELD("reloads", U64, AT(reloads)),
	FIELD("refusals", U64, AT(refusals)),
};
static const struct fields config_fields = FIELDS(config_rows, struct status_config);
#undef AT

#define AT(member) offsetof(struct status_apiserver, member)
static const struct field apiserver_rows[] = {
	FIELD("unusable", STRING, AT(unusable), .optional = true),
	FIELD("failures", U64, AT(failures)),
};
static const struct fields apiserver_fields = FIELDS(apiserver_rows, struct status_apiserver);
#undef AT

#define AT(member) offsetof(struct status_claims, member)
static const struct field claims_rows[] = {
	FIELD("slices_watch", STRING, AT(slices_watch)),
	FIELD("slices", U64, AT(slices)),
	FIELD("devices", U64, AT(devices)),
	FIELD("incomplete_pools", U64, AT(incomplete_pools)),
	FIELD("not_shown_yet", U64, AT(unknown[CLAIMS_NOT_SHOWN_YET - 1])),
	FIELD("not_published", U64, AT(unknown[CLAIMS_NOT_PUBLISHED - 1])),
	FIELD("waits", U64, AT(waits)),
	FIELD("waited_ns", U64, AT(waited_ns)),
};
static const struct fields claims_fields = FIELDS(claims_rows, struct status_claims);
#undef AT

#define AT(member) offsetof(struct status_dra, member)
static const struct field dra_rows[] = {
	FIELD("registration", STRING, AT(registration)),
	FIELD("slice_generation", U64, AT(slice_generation)),
	FIELD("slice_current", BOOL, AT(slice_current)),
	FIELD("prepared", U64, AT(prepared)),
	FIELD("unprepared", U64, AT(unprepared)),
	FIELD("failed", U64, AT(failed)),
	FIELD("waiting", U64, AT(waiting)),
	FIELD("waited_ms", U64, AT(waited_ms)),
};
static const struct fields dra_fields = FIELDS(dra_rows, struct status_dra);
#undef AT

#define AT(member) offsetof(struct status_share, member)
static const struct field share_rows[] = {
	FIELD("namespace", STRING, AT(ns)),
	FIELD("claim", STRING, AT(claim)),
	FIELD("share", STRING, AT(place)),
	FIELD("node", STRING, AT(node)),
	FIELD("cpus", STRING, AT(cpus)),
	FIELD("containers", U64, AT(containers)),
};
static const struct fields share_fields = FIELDS(share_rows, struct status_share);
#undef AT

const char *const confined_by_words[NR_CONFINED_BY] = {
	[CONFINED_BY_CGROUP] = "cgroup",
	[CONFINED_BY_AFFINITY] = "affinity",
	[CONFINED_BY_PROCESS] = "process",
};

#define AT(member) offsetof(struct status_confined, member)
static const struct field confined_rows[] = {
	FIELD("by", NAME, AT(by), .words = confined_by_words, .max = NR_CONFINED_BY),
	FIELD("containers", U64, AT(containers)),
	FIELD("cpus", CPUS, AT(cpus)),
	FIELD("example", STRING, AT(example)),
};
static const struct fields confined_fields = FIELDS(confined_rows, struct status_confined);
#undef AT

#define AT(member) offsetof(struct status_pool, member)
static const struct field pool_rows[] = {
	FIELD("enforced", STRING, AT(enforced)),
	FIELD("why_updates", STRING, AT(why_updates), .optional = true),
	FIELD("problem", STRING, AT(problem), .optional = true),
	FIELD("cgroups", U64, AT(cgroups)),
	FIELD("writes", U64, AT(writes)),
	FIELD("rewritten", U64, AT(rewritten)),
	FIELD("idle", U64, AT(idle)),
	FIELD("confined", ARRAY, AT(confined), .count = AT(nr_confined), .max = NR_CONFINED_BY,
		.optional = true, .fields = &confined_fields),
};
static const struct fields pool_fields = FIELDS(pool_rows, struct status_pool);
#undef AT

#define AT(member) offsetof(struct status_quota, member)
static const struct field quota_rows[] = {
	FIELD("use", STRING, AT(use)),
	FIELD("containers_alone", STRING, AT(containers_alone), .optional = true),
	FIELD("problem", STRING, AT(problem), .optional = true),
	FIELD("pods", U64, AT(pods)),
	FIELD("rewritten", U64, AT(rewritten)),
};
static const struct fields quota_fields = FIELDS(quota_rows, struct status_quota);
#undef AT

#define AT(member) offsetof(struct status_quiet, member)
static const struct field quiet_rows[] = {
	FIELD("irq_cpus", CPUS, AT(irq_cpus)),
	FIELD("frequency_cpus", CPUS, AT(frequency_cpus)),
	FIELD("moved", U64, AT(moved)),
	FIELD("unmovable", U64, AT(unmovable)),
	FIELD("clock_shared", U64, AT(clock_shared)),
	FIELD("rewritten", U64, AT(rewritten)),
	FIELD("irqbalance", BOOL, AT(irqbalance)),
	FIELD("interrupts_not", STRING, AT(interrupts_not), .optional = true),
	FIELD("frequencies_not", STRING, AT(frequencies_not), .optional = true),
	FIELD("problem", STRING, AT(problem), .optional = true),
};
static const struct fields quiet_fields = FIELDS(quiet_rows, struct status_quiet);
#undef AT

#define AT(member) offsetof(struct status_fragmentation, member)
static const struct field fragmentation_rows[] = {
	FIELD("ratio_milli", UNSIGNED, AT(ratio_milli), .max = 1000),
	FIELD("free_cpus", U64, AT(free_cpus)),
	FIELD("largest_cpus", U64, AT(largest_cpus)),
	FIELD("possible_cpus", U64, AT(possible_cpus)),
	FIELD("largest_memory", U64, AT(largest_memory)),
	FIELD("not_preferred", UNSIGNED, AT(not_preferred)),
};
static const struct fields fragmentation_fields =
	FIELDS(fragmentation_rows, struct status_fragmentation);
#undef AT

#define AT(member) offsetof(struct status, member)
static const struct field status_rows[] = {
	FIELD("version", STRING, AT(info.version)),
	FIELD("machine", STRING, AT(machine)),
	FIELD("connection", STRING, AT(info.connection)),
	FIELD("runtime", STRING, AT(info.runtime)),
	FIELD("uptime_ms", U64, AT(info.uptime_ms)),
	FIELD("generation", U64, AT(info.generation)),
	FIELD("journal", STRING, AT(info.journal), .optional = true),
	FIELD("journal_writers", STRING, AT(info.journal_writers), .optional = true),
	FIELD("pod_facts", STRING, AT(info.pod_facts), .optional = true),
	FIELD("kubelet", POINTER, AT(info.kubelet), .optional = true, .fields = &kubelet_fields),
	FIELD("config", POINTER, AT(info.config), .optional = true, .fields = &config_fields),
	FIELD("apiserver", POINTER, AT(info.apiserver), .optional = true,
		.fields = &apiserver_fields),
	FIELD("device_claims", POINTER, AT(info.claims), .optional = true,
		.fields = &claims_fields),
	FIELD("dra_driver", POINTER, AT(info.dra), .optional = true, .fields = &dra_fields),
	FIELD("shared_pool", POINTER, AT(info.enforcement), .optional = true,
		.fields = &pool_fields),
	FIELD("quiet", POINTER, AT(info.quiet), .optional = true, .fields = &quiet_fields),
	FIELD("moves", POINTER, AT(info.moves), .optional = true, .fields = &moves_fields),
	FIELD("cfs_quota", POINTER, AT(info.quota), .optional = true, .fields = &quota_fields),
	FIELD("counters", OBJECT, AT(info.counters), .fields = &counter_fields),
	FIELD("settings", MAP, AT(settings.at), .count = AT(settings.nr)),
	FIELD("pool", CPUS, AT(pool)),
	FIELD("reserved", CPUS, AT(reserved)),
	FIELD("isolated", CPUS, AT(isolated), .optional = true),
	FIELD("held", CPUS, AT(held), .optional = true),
	FIELD("left", CPUS, AT(left), .optional = true),
	FIELD("nodeless", CPUS, AT(nodeless), .optional = true),
	FIELD("offline", CPUS, AT(info.offline), .optional = true),
	FIELD("fragmentation", POINTER, AT(fragmentation), .optional = true,
		.fields = &fragmentation_fields),
	FIELD("nodes", LIST, AT(nodes), .count = AT(nr_nodes), .fields = &node_fields),
	FIELD("containers", LIST, AT(containers), .count = AT(nr_containers),
		.fields = &container_fields),
	FIELD("claims", LIST, AT(shares), .count = AT(nr_shares), .optional = true,
		.fields = &share_fields),
};
static const struct fields status_fields = FIELDS(status_rows, struct status);
#undef AT

static const char *status_keep_string(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

static const char *keep_nodes(struct arena *a, struct nodeset nodes, const struct node_ids *ids)
{
	char list[NODESET_TEXT_MAX];

	return status_keep_string(a, nodeset_format(nodes, ids, list, sizeof list));
}

static const char *keep_cpus(struct arena *a, const struct cpuset *cpus)
{
	char list[CPUSET_TEXT_MAX];

	return status_keep_string(a, cpuset_format(cpus, list, sizeof list));
}

static const struct status_memory *list_memory(
	const struct topo *t, const struct snapshot_node *n, struct arena *a)
{
	struct status_memory *list = arena_array(a, t->nr_kinds, sizeof *list);
	char name[KIND_NAME_MAX];

	for (unsigned k = 0; k < t->nr_kinds; k++)
		list[k] = (struct status_memory){
			.type = status_keep_string(a, topo_kind_name(t, k, name, sizeof name)),
			.allocatable = n->allocatable[k],
			.free = n->free[k],
		};
	return list;
}

static void list_threads(
	struct status_node *n, const struct topo *t, unsigned node, struct arena *a)
{
	unsigned left = cpuset_count(&t->node[node].cpus);
	struct status_threads *list = arena_array(a, left, sizeof *list);

	for (; left; left -= cpuset_count(&list[n->nr_threads++].cpus))
		list[n->nr_threads].cpus = topo_threads_of(t, node, (unsigned)n->nr_threads);
	n->threads = list;
	const struct cpuset sockets = topo_sockets_of(t, &t->node[node].cpus);
	n->has_socket = cpuset_count(&sockets) == 1;
	if (n->has_socket)
		n->socket = cpuset_next(&sockets, 0);
	else
		n->sockets = sockets;
}

static void list_nodes(struct status *st, const struct snapshot *s, struct arena *a)
{
	const struct topo *t = s->topo;
	struct status_node *list = arena_array(a, t->ids.nr, sizeof *list);

	for (unsigned i = 0; i < t->ids.nr; i++) {
		list[i] = (struct status_node){
			.id = t->ids.id[i],
			.cpus = s->node[i].cpus,
			.cpus_held = s->node[i].cpus_held,
			.cpus_reserved = s->node[i].cpus_reserved,
			.cpus_pool = s->node[i].cpus_pool,
			.cpus_available = s->node[i].cpus_available,
			.device_memory = nodeset_has(t->device_memory, i),
			.memory_group = keep_nodes(a, s->node[i].group, &t->ids),
			.memory = list_memory(t, &s->node[i], a),
			.nr_memory = t->nr_kinds,
		};
		list_threads(&list[i], t, i, a);
	}
	st->nodes = list;
	st->nr_nodes = t->ids.nr;
}

static const char *keep_wishes(struct arena *a, const struct wishes *w)
{
	char buf[WISHES_TEXT_MAX];
	struct text t;

	text_init(&t, buf, sizeof buf);
	wishes_print(w, &t);
	return t.len ? arena_strndup(a, buf, t.len) : NULL;
}

/* Bytes that are asked for, in huge pages or not. */
static uint64_t bytes_asked(const struct ask *ask, bool in_hugepages)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < ask->nr_memory; i++)
		if ((ask->memory[i].page_bytes != 0) == in_hugepages)
			bytes += ask->memory[i].bytes;
	return bytes;
}

static struct status_container status_of_container(
	const struct ledger *l, const struct holding *h, struct arena *a)
{
	const struct node_ids *ids = &ledger_view(l)->topo->ids;
	const struct decision *d = &h->decision;
	const struct cpuset cpus = decision_is_left(d) ? d->left_on : ledger_cpus_of(l, h);

	return (struct status_container){
		.ns = h->request.pod.ns,
		.pod = h->request.pod.name,
		.container = h->request.ask.name,
		.id = h->request.container_id,
		.qos = h->request.pod.qos,
		.source = d->source,
		.exclusive = d->exclusive && !request_shares_in_pod(&h->request, d),
		.shares_in_pod = request_shares_in_pod(&h->request, d),
		.preferred = d->preferred,
		.left = decision_is_left(d),
		.cpus = keep_cpus(a, &cpus),
		.mems = keep_nodes(a, d->mems, ids),
		.nodes = d->has_affinity ? keep_nodes(a, d->nodes, ids) : NULL,
		.wishes = keep_wishes(a, &h->request.ask.wishes),
		.cpu_milli = h->request.ask.cpu_milli,
		.memory = bytes_asked(&h->request.ask, false),
		.hugepages = bytes_asked(&h->request.ask, true),
	};
}

static void list_containers(struct status *st, const struct ledger *l, struct arena *a)
{
	size_t all = ledger_count(l), nr = 0;
	struct status_container *list = arena_array(a, all, sizeof *list);

	for (size_t i = 0; i < all; i++)
		if (!ledger_at(l, i)->request.ask.whole_pod && !holding_is_share(ledger_at(l, i)))
			list[nr++] = status_of_container(l, ledger_at(l, i), a);
	st->containers = list;
	st->nr_containers = nr;
}

static struct status_share status_of_share(
	const struct ledger *l, const struct holding *h, struct arena *a)
{
	const struct node_ids *ids = &ledger_view(l)->topo->ids;

	return (struct status_share){
		.ns = h->request.pod.ns,
		.claim = h->request.pod.name,
		.place = h->request.ask.name,
		.node = keep_nodes(a, h->request.ask.share_of, ids),
		.cpus = keep_cpus(a, &h->decision.cpus),
		.containers = shares_count_users(l, h->request.container_id),
	};
}

static void list_shares(struct status *st, const struct ledger *l, struct arena *a)
{
	struct status_share *list = arena_array(a, ledger_view(l)->nr_shares, sizeof *list);

	for (size_t i = 0; list && ledger_view(l)->nr_shares && i < ledger_count(l); i++)
		if (holding_is_share(ledger_at(l, i)))
			list[st->nr_shares++] = status_of_share(l, ledger_at(l, i), a);
	st->shares = list;
}

/* Into a buffer that doubles until it is large enough. */
static char *status_print(const struct status *st)
{
	struct text t = {.cut = true};

	for (size_t cap = FIRST_CAP; t.cut && cap <= STATUS_JSON_MAX; cap *= 2) {
		free(t.at);
		text_init(&t, xcalloc(cap, 1), cap);
		fields_write(&t, &status_fields, st, NULL);
	}
	if (!t.cut)
		return t.at;
	free(t.at);
	return NULL;
}

static struct status_fragmentation status_of_fragmentation(const struct snapshot *s)
{
	const struct node_fragmentation *f = &s->fragmentation;

	return (struct status_fragmentation){
		.ratio_milli = node_fragmentation_milli(f),
		.free_cpus = f->free,
		.largest_cpus = f->largest,
		.possible_cpus = f->possible,
		.largest_memory = f->memory,
		.not_preferred = s->nr_own_not_preferred,
	};
}

char *status_json_format(const struct status_info *info, const struct settings *s,
	const struct snapshot *snapshot, const struct ledger *l)
{
	const struct status_fragmentation fragmentation = status_of_fragmentation(snapshot);
	struct status st = {
		.info = *info,
		.machine = snapshot->topo->name,
		.pool = snapshot->pool,
		.reserved = snapshot->reserved,
		.isolated = cpuset_and(ledger_view(l)->topo->isolated, &ledger_view(l)->topo->cpus),
		.held = snapshot->held,
		.left = ledger_view(l)->left,
		.nodeless = snapshot->topo->nodeless,
		.fragmentation = &fragmentation,
	};
	struct arena a;

	arena_init(&a, SIZE_MAX); /* what it holds is bounded by the ledger: no limit, no failure */
	list_nodes(&st, snapshot, &a);
	list_containers(&st, l, &a);
	list_shares(&st, l, &a);
	(void)words_of_settings(s, &a, &st.settings, NULL);
	char *document = status_print(&st);
	arena_fini(&a);
	return document;
}

int status_json_parse(
	const char *text, size_t len, struct arena *a, struct status *out, struct err *e)
{
	struct status st = {0};
	int rc = fields_parse(
		text, len, &status_fields, &st, &(struct fields_context){.arena = a}, e);

	if (!rc)
		*out = st;
	return rc;
}
