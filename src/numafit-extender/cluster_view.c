#include <numafit-extender/cluster_view.h>

#include <codec/fields.h>
#include <numafit/advice.h>
#include <numafit/text.h>
#include <sched/sched_index.h>
#include <stdio.h>
#include <string.h>
#include <ui/document.h>

enum {
	GONE_MAX = 1024,   /* nodes; who has missed more is sent everything */
	HINTS_MAX = 4096,  /* events that are known; a list may count an older one again */
	NUMBER_BYTES = 21, /* of uint64_t, with a comma */
	ZONE_BYTES = 5 * NUMBER_BYTES,
	ROW_BYTES = ZONES_MAX * ZONE_BYTES + 128,
	ESCAPED = 6, /* bytes that one byte of a name takes at most */
	REST_BYTES = 64 << 10,
	MIB_SHIFT = 20,
	UID_BYTES = 64,
	NS_BYTES = 64,
	NAME_BYTES = 256
};

/* A node's row as text: what stays, its name and pool, and what the cluster has of it. */
struct view_node {
	struct sched_key key;
	char *head, *row;
	char *pool;
	uint64_t revision, round;
	uint64_t looked; /* at which of the candidate; 0: at none */
	uint64_t all;    /* allocatable CPUs */
	struct cluster_fragmentation is;
};

struct view_gone {
	char *name;
	uint64_t revision;
};

struct view_sample {
	int64_t time_ms;
	uint64_t nodes, all;
	struct cluster_fragmentation is;
};

struct view_refusal {
	int64_t time_ms;
	enum cluster_refusal_kind kind;
	char uid[UID_BYTES], ns[NS_BYTES], pod[NAME_BYTES], node[NAME_BYTES];
	unsigned times;
};

struct cluster_view {
	uint64_t epoch, revision, round;
	struct sched_index nodes;
	struct view_gone gone[GONE_MAX]; /* a ring; the newest is at nr_gone - 1 */
	uint64_t nr_gone;
	struct view_sample sample[CLUSTER_SAMPLES];    /* likewise */
	uint64_t nr_samples, sampled;                  /* the latter: a revision */
	struct view_refusal refusal[CLUSTER_REFUSALS]; /* the newest first */
	size_t nr_refusals;
	uint64_t refused[NR_REFUSAL_KINDS], last_refused; /* the latter: a revision */
	uint64_t verdict[NR_ADVICE_VERDICTS], hint[HINTS_MAX], nr_hints; /* a ring */
};

const char *const cluster_refusal_words[NR_REFUSAL_KINDS] = {
	[REFUSED_TOPOLOGY] = "TopologyAffinityError",
	[REFUSED_SMT] = "SMTAlignmentError",
	[REFUSED_ADMISSION] = "UnexpectedAdmissionError",
	[REFUSED_CREATION] = "CreateContainerError",
	[REFUSED_HINT] = "NUMAHint",
	[REFUSED_OTHER] = "other",
	[REFUSED_NOWHERE] = "no-node",
};

struct cluster_view *cluster_view_new(uint64_t epoch)
{
	struct cluster_view *v = xcalloc(1, sizeof *v);

	v->epoch = epoch;
	v->revision = v->sampled = v->last_refused =
		1; /* a reader who has seen 0 has seen nothing */
	return v;
}

static void view_node_free(void *entry)
{
	struct view_node *n = entry;

	free(n->head);
	free(n->row);
	free(n->pool);
	free(n);
}

void cluster_view_free(struct cluster_view *v)
{
	if (!v)
		return;
	sched_index_fini(&v->nodes, view_node_free);
	for (size_t i = 0; i < GONE_MAX; i++)
		free(v->gone[i].name);
	free(v);
}

/* Nodes */

static void view_set_pool(struct cluster_view *v, struct view_node *n, const char *pool)
{
	size_t cap = ESCAPED * (strlen(n->key.name) + strlen(pool)) + sizeof "[\"\",\"\"";
	char *head = xcalloc(cap, 1);
	struct text t;

	text_init(&t, head, cap);
	text_put(&t, "[", 1);
	fields_write_string(&t, n->key.name);
	text_put(&t, ",", 1);
	fields_write_string(&t, pool);
	free(n->head);
	free(n->pool);
	n->head = head;
	n->pool = xstrdup(pool);
	n->revision = ++v->revision;
}

void cluster_view_put_node(struct cluster_view *v, const char *name, const char *pool)
{
	struct view_node *n = sched_index_find(&v->nodes, name);

	if (!n) {
		n = xcalloc(1, sizeof *n);
		sched_index_add(&v->nodes, &n->key, name);
		n->row = xstrdup(",2,[],0,[],0,0]"); /* until it is looked at */
	}
	n->round = v->round;
	if (!n->pool || !text_equal(n->pool, pool))
		view_set_pool(v, n, pool);
}

static void view_drop(struct cluster_view *v, struct view_node *n)
{
	struct view_gone *g = &v->gone[v->nr_gone++ % GONE_MAX];

	free(g->name);
	*g = (struct view_gone){xstrdup(n->key.name), ++v->revision};
	sched_index_remove(&v->nodes, &n->key);
	view_node_free(n);
}

void cluster_view_remove_node(struct cluster_view *v, const char *name)
{
	struct view_node *n = sched_index_find(&v->nodes, name);

	if (n)
		view_drop(v, n);
}

void cluster_view_begin(struct cluster_view *v)
{
	v->round++;
}

static struct view_node *node_in(const struct cluster_view *v, size_t slot)
{
	return (struct view_node *)(void *)v->nodes.slot[slot];
}

void cluster_view_sweep(struct cluster_view *v)
{
	for (size_t i = 0; i < v->nodes.cap;) {
		struct view_node *n = node_in(v, i);

		if (n && n->round != v->round)
			view_drop(v, n); /* another one may be in its place now */
		else
			i++;
	}
}

/* Rows */

enum row_state { ROW_KNOWN, ROW_STALE, ROW_UNREPORTED };

static uint64_t whole_of(struct quantity q)
{
	return q.whole > 0 ? (uint64_t)q.whole : 0;
}

static void put_numbers(struct text *t, const uint64_t *n, unsigned nr)
{
	text_put(t, "[", 1);
	for (unsigned i = 0; i < nr; i++) {
		text_put(t, ",", i > 0);
		text_put_u64(t, n[i]);
	}
	text_put(t, "]", 1);
}

/* One number for all that are alike. */
static void put_alike(struct text *t, const uint64_t *n, unsigned nr)
{
	unsigned alike = 1;

	while (alike < nr && n[alike] == n[0])
		alike++;
	if (alike < nr)
		put_numbers(t, n, nr);
	else
		text_put_u64(t, nr ? n[0] : 0);
}

/* What the zones have of the resource, shifted; zeros where it is not listed. */
static void zones_have(const struct sched_topology *topology, unsigned resource, unsigned shift,
	uint64_t free[ZONES_MAX], uint64_t all[ZONES_MAX])
{
	const struct zone_resource *r = sched_topology_find(topology, resource);

	for (unsigned z = 0; z < topology->nr_zones; z++) {
		free[z] = r ? whole_of(r->available[z]) >> shift : 0;
		all[z] = r ? whole_of(r->allocatable[z]) >> shift : 0;
	}
}

static void put_zone_ids(struct text *t, const struct sched_topology *topology)
{
	uint64_t id[ZONES_MAX];
	bool usual = true;

	for (unsigned z = 0; z < topology->nr_zones; z++) {
		id[z] = topology->zone_id[z];
		usual = usual && id[z] == z;
	}
	if (usual)
		return;
	text_put(t, ",", 1);
	put_numbers(t, id, topology->nr_zones);
}

static void write_row(
	struct text *t, struct view_node *n, const struct sched_topology *topology, bool stale)
{
	uint64_t free[ZONES_MAX], all[ZONES_MAX], left = 0;
	unsigned nr = topology->nr_zones;

	zones_have(topology, RESOURCE_CPU, 0, free, all);
	n->all = 0;
	for (unsigned z = 0; z < nr; z++) {
		left += free[z];
		n->all += all[z];
	}
	n->is = (struct cluster_fragmentation){0};
	cluster_fragmentation_add(&n->is, free, nr, left);
	text_add(t, ",%u,", (unsigned)(stale ? ROW_STALE : ROW_KNOWN));
	put_numbers(t, free, nr);
	text_put(t, ",", 1);
	put_alike(t, all, nr);
	zones_have(topology, RESOURCE_MEMORY, MIB_SHIFT, free, all);
	text_put(t, ",", 1);
	put_numbers(t, free, nr);
	text_put(t, ",", 1);
	put_alike(t, all, nr);
	text_put(t, ",", 1);
	text_put_u64(t, n->is.lost);
	put_zone_ids(t, topology);
	text_put(t, "]", 1);
}

static void look_at(struct cluster_view *v, struct view_node *n, const struct sched_candidate *c)
{
	char row[ROW_BYTES];
	struct text t;

	if (c && c->revision == n->looked)
		return;
	n->looked = c ? c->revision : 0;
	text_init(&t, row, sizeof row);
	if (c && c->node->topology) {
		write_row(&t, n, c->node->topology, c->stale);
	} else {
		n->all = 0;
		n->is = (struct cluster_fragmentation){0};
		text_add(&t, ",%u,[],0,[],0,0]", (unsigned)ROW_UNREPORTED);
	}
	if (text_equal(n->row, row))
		return;
	free(n->row);
	n->row = xstrdup(row);
	n->revision = ++v->revision;
}

bool cluster_view_look(struct cluster_view *v, struct sched_cluster *c, size_t *at, unsigned nr)
{
	for (; *at < v->nodes.cap && nr; (*at)++) {
		struct view_node *n = node_in(v, *at);

		if (!n)
			continue;
		look_at(v, n, sched_cluster_find(c, n->key.name));
		nr--;
	}
	return *at < v->nodes.cap;
}

void cluster_view_sample(struct cluster_view *v, int64_t now_ms)
{
	struct view_sample *s = &v->sample[v->nr_samples++ % CLUSTER_SAMPLES];

	*s = (struct view_sample){.time_ms = now_ms, .nodes = v->nodes.nr};
	for (size_t i = 0; i < v->nodes.cap; i++) {
		const struct view_node *n = node_in(v, i);

		if (!n)
			continue;
		s->all += n->all;
		s->is.left += n->is.left;
		s->is.lost += n->is.lost;
	}
	v->sampled = ++v->revision;
}

/* Refusals */

enum cluster_refusal_kind cluster_refusal_kind_of(const char *reason)
{
	int kind = text_index(cluster_refusal_words, REFUSED_OTHER, reason);

	return kind < 0 ? REFUSED_OTHER : (enum cluster_refusal_kind)kind;
}

/* The place of one like it; behind the last: there is none. */
static size_t place_of_refusal(const struct cluster_view *v, const struct cluster_refusal *r)
{
	size_t i = 0;

	while (i < v->nr_refusals &&
		!(v->refusal[i].kind == r->kind && text_equal(v->refusal[i].uid, r->uid)))
		i++;
	return i;
}

void cluster_view_refused(struct cluster_view *v, const struct cluster_refusal *r)
{
	size_t i = place_of_refusal(v, r);
	struct view_refusal now = {.time_ms = r->time_ms, .kind = r->kind, .times = 1};

	if (i < v->nr_refusals)
		now.times += v->refusal[i].times;
	else if (v->nr_refusals < CLUSTER_REFUSALS)
		v->nr_refusals++;
	else
		i--; /* the oldest goes */
	(void)text_copy(now.uid, sizeof now.uid, r->uid);
	(void)text_copy(now.ns, sizeof now.ns, r->ns);
	(void)text_copy(now.pod, sizeof now.pod, r->pod);
	(void)text_copy(now.node, sizeof now.node, r->node);
	memmove(&v->refusal[1], &v->refusal[0], i * sizeof v->refusal[0]);
	v->refusal[0] = now;
	v->refused[r->kind]++;
	v->last_refused = ++v->revision;
}

void cluster_view_hint(struct cluster_view *v, uint64_t number, const char *verdict)
{
	int which = text_index(advice_verdict_words, NR_ADVICE_VERDICTS, verdict);

	if (which < ADVICE_ACCEPTED)
		return;
	for (size_t i = 0; i < HINTS_MAX && i < v->nr_hints; i++)
		if (v->hint[i] == number)
			return;
	v->hint[v->nr_hints++ % HINTS_MAX] = number;
	v->verdict[which]++;
}

/* The document */

#define AT(member) offsetof(struct view_refusal, member)
static const struct field refusal_rows[] = {
	FIELD("time_ms", I64, AT(time_ms)),
	FIELD("kind", NAME, AT(kind), .words = cluster_refusal_words, .max = NR_REFUSAL_KINDS),
	FIELD("namespace", CHARS, AT(ns), .max = NS_BYTES),
	FIELD("pod", CHARS, AT(pod), .max = NAME_BYTES),
	FIELD("node", CHARS, AT(node), .max = NAME_BYTES),
	FIELD("times", UNSIGNED, AT(times)),
};
static const struct fields refusal_fields = FIELDS(refusal_rows, struct view_refusal);
#undef AT

struct cluster_seen cluster_seen_read(const char *query)
{
	unsigned long long epoch = 0, revision = 0;

	if (sscanf(query, "since=%20llu.%20llu", &epoch, &revision) != 2)
		return (struct cluster_seen){0};
	return (struct cluster_seen){epoch, revision};
}

/* The revision from which on all is to be sent; 0: everything. */
static uint64_t seen_revision(const struct cluster_view *v, const struct cluster_seen *seen)
{
	uint64_t forgotten = v->nr_gone > GONE_MAX ? v->gone[v->nr_gone % GONE_MAX].revision : 0;

	return seen->epoch == v->epoch && seen->revision <= v->revision &&
			       seen->revision >= forgotten
		       ? seen->revision
		       : 0;
}

static size_t bytes_of(
	const struct cluster_view *v, const struct cluster_figures *f, uint64_t since)
{
	size_t bytes = REST_BYTES +
		       ESCAPED * (strlen(f->version) + strlen(f->pool_label) + strlen(f->unready));

	for (size_t i = 0; i < v->nodes.cap; i++) {
		const struct view_node *n = node_in(v, i);

		if (n && n->revision > since)
			bytes += strlen(n->head) + strlen(n->row) + 1;
	}
	for (size_t i = 0; i < GONE_MAX && since; i++)
		if (v->gone[i].revision > since)
			bytes += ESCAPED * strlen(v->gone[i].name) + sizeof "\"\",";
	if (v->last_refused > since)
		bytes += v->nr_refusals * (ESCAPED * sizeof(struct view_refusal) + 128);
	return bytes;
}

static void put_rows(struct text *t, const struct cluster_view *v, uint64_t since)
{
	const char *between = "";

	text_add(t, ",\"all\":%s,\"nodes\":[", since ? "false" : "true");
	for (size_t i = 0; i < v->nodes.cap; i++) {
		const struct view_node *n = node_in(v, i);

		if (!n || n->revision <= since)
			continue;
		text_put(t, between, strlen(between));
		text_put(t, n->head, strlen(n->head));
		text_put(t, n->row, strlen(n->row));
		between = ",";
	}
	text_add(t, "],\"gone\":[");
	between = "";
	for (size_t i = 0; i < GONE_MAX && since; i++) {
		if (v->gone[i].revision <= since)
			continue;
		text_put(t, between, strlen(between));
		fields_write_string(t, v->gone[i].name);
		between = ",";
	}
	text_put(t, "]", 1);
}

static void put_samples(struct text *t, const struct cluster_view *v)
{
	uint64_t nr = v->nr_samples < CLUSTER_SAMPLES ? v->nr_samples : CLUSTER_SAMPLES;

	text_add(t, ",\"samples\":[");
	for (uint64_t i = v->nr_samples - nr; i < v->nr_samples; i++) {
		const struct view_sample *s = &v->sample[i % CLUSTER_SAMPLES];
		const uint64_t n[] = {
			(uint64_t)s->time_ms, s->nodes, s->is.left, s->is.lost, s->all};

		text_put(t, ",", i > v->nr_samples - nr);
		put_numbers(t, n, sizeof n / sizeof *n);
	}
	text_put(t, "]", 1);
}

static void put_refusals(struct text *t, const struct cluster_view *v)
{
	text_add(t, ",\"refusals\":[");
	for (size_t i = 0; i < v->nr_refusals; i++) {
		text_put(t, ",", i > 0);
		fields_write(t, &refusal_fields, &v->refusal[i], NULL);
	}
	text_put(t, "]", 1);
}

static void put_tally(
	struct text *t, const char *name, const uint64_t *n, const char *const *word, unsigned nr)
{
	text_add(t, ",\"%s\":{", name);
	for (unsigned i = 0; i < nr; i++)
		text_add(t, "%s\"%s\":%llu", i ? "," : "", word[i], (unsigned long long)n[i]);
	text_put(t, "}", 1);
}

static void put_figures(
	struct text *t, const struct cluster_view *v, const struct cluster_figures *f)
{
	text_add(t, ",\"version\":");
	fields_write_string(t, f->version);
	text_add(t, ",\"pool_label\":");
	fields_write_string(t, f->pool_label);
	text_add(t, ",\"unready\":");
	fields_write_string(t, f->unready);
	text_add(t,
		",\"now_ms\":%lld,\"pod_cpus\":%d,\"reports\":%zu,\"pods\":%zu,\"waiting\":%zu,"
		"\"avoided\":%zu,\"filters\":%llu,\"nodes_asked\":%llu,\"nodes_left_out\":%llu",
		(long long)f->now_ms, FRAGMENT_CPUS, f->counts.reports, f->counts.pods,
		f->counts.waiting, f->avoided, (unsigned long long)f->requests,
		(unsigned long long)f->asked, (unsigned long long)f->left_out);
	put_tally(t, "refused", v->refused, cluster_refusal_words, NR_REFUSAL_KINDS);
	put_tally(t, "hints", v->verdict + ADVICE_ACCEPTED_STALE,
		advice_verdict_words + ADVICE_ACCEPTED_STALE,
		NR_ADVICE_VERDICTS - ADVICE_ACCEPTED_STALE);
	put_tally(t, "binds", f->binds, f->bind_words, f->nr_binds);
}

char *cluster_view_json(const struct cluster_view *v, const struct cluster_figures *f,
	const struct cluster_seen *seen, size_t *len)
{
	uint64_t since = seen_revision(v, seen);
	size_t bytes = bytes_of(v, f, since);
	struct text t;

	if (bytes > UI_DOCUMENT_MAX)
		return NULL;
	text_init(&t, xcalloc(bytes, 1), bytes);
	text_add(&t, "{\"at\":\"%llu.%llu\"", (unsigned long long)v->epoch,
		(unsigned long long)v->revision);
	put_figures(&t, v, f);
	put_rows(&t, v, since);
	if (v->sampled > since)
		put_samples(&t, v);
	if (v->last_refused > since)
		put_refusals(&t, v);
	text_put(&t, "}", 1);
	*len = t.len;
	return t.at;
}
