#include <numafit/number.h>
#include <numafit-cli/wording.h>

#include <ctype.h>
#include <numafit/mem.h>
#include <numafit-cli/table.h>
#include <numafit/text.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

enum { LABEL_WIDTH = 10, LINE_WIDTH = 100, SAID_MAX = 8 << 10, MILLI = 1000 };

static void print_printable(FILE *to, const char *word, size_t len)
{
	for (size_t i = 0; i < len; i++)
		(void)putc(iscntrl((unsigned char)word[i]) ? '?' : word[i], to);
}

void wording_print_plain(FILE *to, const char *text)
{
	print_printable(to, text, strlen(text));
}

/* The text broken into lines at spaces. */
static void print_wrapped(FILE *to, const char *text)
{
	size_t at = 2 + LABEL_WIDTH;

	for (bool first = true; *text; first = false) {
		size_t len = strcspn(text, " ");

		if (!first && at + 1 + len > LINE_WIDTH) {
			(void)fprintf(to, "\n%*s", 2 + LABEL_WIDTH, "");
			at = 2 + LABEL_WIDTH;
		} else if (!first) {
			(void)putc(' ', to);
			at++;
		}
		print_printable(to, text, len);
		at += len;
		text += len + strspn(text + len, " ");
	}
}

void wording_print(FILE *to, const char *label, const char *fmt, ...)
{
	char said[SAID_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(said, sizeof said, fmt, ap);
	va_end(ap);
	(void)fprintf(to, "  %-*s", LABEL_WIDTH, label);
	print_wrapped(to, said);
	(void)putc('\n', to);
}

const char *wording_time(int64_t ms, char buf[WORDING_TIME_MAX])
{
	time_t s = (time_t)(ms / MS_PER_S);
	struct tm tm;
	char date[WORDING_TIME_MAX];

	if (!gmtime_r(&s, &tm) || !strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &tm))
		(void)snprintf(buf, WORDING_TIME_MAX, "%lld ms", (long long)ms);
	else
		(void)snprintf(buf, WORDING_TIME_MAX, "%.19s.%03d UTC", date, (int)(ms % MS_PER_S));
	return buf;
}

/* "NUMA node 3", "NUMA nodes 0-1" */
static const char *nodes_words(const struct scene *x, struct nodeset nodes, char buf[], size_t cap)
{
	char list[NODESET_TEXT_MAX];

	(void)snprintf(buf, cap, "NUMA node%s %s", nodeset_count(nodes) == 1 ? "" : "s",
		nodeset_format(nodes, &x->t->ids, list, sizeof list));
	return buf;
}
enum { NODES_WORDS_MAX = NODESET_TEXT_MAX + 16 };

const char *wording_verdict(const struct decision *d)
{
	if (!d->admit)
		return "refused";
	if (d->source == SOURCE_ADOPTED)
		return "taken over while it ran (adopted)";
	if (d->has_affinity && !d->preferred)
		return "accepted, on more NUMA nodes than preferred (spilled)";
	return "accepted";
}

/* "8 CPUs, 16Gi of memory" */
static void add_amounts_asked(
	struct text *t, uint64_t cpu_milli, const struct memory_ask *memory, unsigned nr)
{
	char size[TEXT_SIZE_MAX], page[TEXT_SIZE_MAX];

	if (cpu_milli % MILLI)
		text_add(t, "%llum CPUs", (unsigned long long)cpu_milli);
	else if (cpu_milli)
		text_add(t, "%llu CPU%s", (unsigned long long)(cpu_milli / MILLI),
			cpu_milli == MILLI ? "" : "s");
	for (unsigned i = 0; i < nr; i++) {
		const struct memory_ask *m = &memory[i];

		text_add(t, "%s%s of ", i || cpu_milli ? ", " : "", text_size(size, m->bytes));
		if (m->page_bytes)
			text_add(t, "huge pages of %s", text_size(page, m->page_bytes));
		else
			text_add(t, "memory");
	}
	if (!cpu_milli && !nr)
		text_add(t, "nothing that is placed");
}

/* "gpu0, gpu1 (nvidia.com/gpu) on NUMA node 5" */
static void print_device_resource(
	const struct scene *x, const char *label, const struct device_resource *r)
{
	struct nodeset on = {0};
	char has[SAID_MAX], nodes[NODES_WORDS_MAX];
	struct text t;

	text_init(&t, has, sizeof has);
	for (size_t i = 0; i < r->nr; i++) {
		text_add(&t, "%s%s", i ? ", " : "", r->device[i].id);
		on = nodeset_or(on, r->device[i].nodes);
	}
	wording_print(x->to, label, "%s (%s) on %s", has, r->name,
		nodes_words(x, on, nodes, sizeof nodes));
}

static void print_attached_devices(
	const struct scene *x, const struct device_resource *r, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		print_device_resource(x, i ? "" : "devices", &r[i]);
}

void wording_print_request(const struct scene *x, const struct request *req)
{
	char asked[SAID_MAX];
	struct text t;

	text_init(&t, asked, sizeof asked);
	add_amounts_asked(&t, req->ask.cpu_milli, req->ask.memory, req->ask.nr_memory);
	text_add(&t, "; %s pod", qos_name(req->pod.qos));
	if (req->ask.kind != CONTAINER_APP)
		text_add(&t, ", %s container", container_kind_name(req->ask.kind));
	if (req->pod.qos == QOS_GUARANTEED && req->ask.cpu_milli % MILLI)
		text_add(&t, " (only whole CPUs are given to a container alone)");
	wording_print(x->to, "asked", "%s", asked);
	print_attached_devices(x, req->pod.attached, req->pod.nr_attached);
}

void wording_print_tokens(
	const struct scene *x, const struct request *req, const struct decision *d)
{
	const char *tokens = req->allocated ? strrchr(req->allocated, ':') : NULL;

	if (!req->allocated)
		return;
	if (d->lease)
		wording_print(x->to, "tokens",
			"%s of numafit.io/cpu, as NUMA node=numbers (lease %llu)",
			tokens ? tokens + 1 : "", (unsigned long long)d->lease);
	else
		wording_print(x->to, "tokens", "none: it came with \"%s\"", req->allocated);
}

void wording_print_pod(const struct scene *x, const struct pod *pod)
{
	const struct memory_ask sum = {0, pod->totals.memory_bytes};
	struct memory_ask memory[TOPO_KINDS];
	char asked[SAID_MAX];
	struct text t;

	wording_print(x->to, "asked", "%s pod", qos_name(pod->qos));
	for (size_t i = 0; i < pod->nr; i++) {
		const struct ask *c = &pod->container[i];

		text_init(&t, asked, sizeof asked);
		add_amounts_asked(&t, c->cpu_milli, memory, ask_memory(c, memory));
		wording_print(x->to, "", "%s (%s container): %s", c->name,
			container_kind_name(c->kind), asked);
	}
	if (pod->container)
		print_attached_devices(x, pod->attached, pod->nr_attached);
	if (pod->container || !pod->totals.known)
		return;
	text_init(&t, asked, sizeof asked);
	add_amounts_asked(&t, pod->totals.cpu_milli, &sum, sum.bytes > 0);
	wording_print(x->to, "", "its containers together: %s", asked);
}

static void print_memory_given(const struct scene *x, const struct decision *d)
{
	char given[SAID_MAX], size[TEXT_SIZE_MAX], kind[TOPO_NAME_MAX], nodes[NODES_WORDS_MAX];
	struct text t;

	text_init(&t, given, sizeof given);
	for (unsigned i = 0; i < d->nr_blocks; i++)
		text_add(&t, "%s%s of %s on %s", i ? ", " : "", text_size(size, d->blocks[i].bytes),
			topo_kind_name(x->t, d->blocks[i].kind, kind, sizeof kind),
			nodes_words(x, d->blocks[i].nodes, nodes, sizeof nodes));
	if (!d->nr_blocks)
		text_add(&t, "none is set aside for it; it may use %s",
			nodes_words(x, d->mems, nodes, sizeof nodes));
	wording_print(x->to, "memory", "%s", given);
}

void wording_print_grant(const struct scene *x, const struct decision *d)
{
	char cpus[CPUSET_TEXT_MAX], nodes[NODES_WORDS_MAX];

	if (!d->admit)
		return;
	cpuset_format(&d->cpus, cpus, sizeof cpus);
	if (d->exclusive)
		wording_print(x->to, "CPUs", "%s, for it alone, on %s", cpus,
			nodes_words(x, topo_nodes_of(x->t, &d->cpus), nodes, sizeof nodes));
	else
		wording_print(x->to, "CPUs",
			"none of its own: it runs in the shared pool, %s at that time", cpus);
	print_memory_given(x, d);
}

/* Why it is where it is */

static const char *node_count_text(unsigned nr, char buf[], size_t cap)
{
	if (nr)
		(void)snprintf(buf, cap, "%u node%s", nr, nr == 1 ? "" : "s");
	else
		(void)snprintf(buf, cap, "%s", "not enough");
	return buf;
}

static void add_best_nodes(struct table *t, const struct scene *x, const struct reasons_resource *r)
{
	char list[NODESET_TEXT_MAX], best[SAID_MAX];
	struct text b;

	text_init(&b, best, sizeof best);
	for (unsigned i = 0; i < r->nr_best; i++)
		text_add(&b, "%s%s", i ? " or " : "",
			nodeset_format(r->best[i], &x->t->ids, list, sizeof list));
	if (r->masks > r->nr_best)
		text_add(&b, " (of %s%llu sets)", r->more_masks ? "at least " : "",
			(unsigned long long)r->masks);
	table_add(t, "%s", r->nr_best ? best : "-");
}

static void add_reason_row(struct table *t, const struct scene *x, const struct reasons_resource *r)
{
	char buf[TEXT_SIZE_MAX];

	table_add(t, "%*s%s", 2 + LABEL_WIDTH, "", r->resource);
	if (r->kind != FAMILY_CAPACITY) {
		table_add(t, "%s", r->kind == FAMILY_ANY ? "any" : "not enough");
		table_add(t, "-");
		table_add(t, "-");
		return;
	}
	table_add(t, "%s", node_count_text(r->smallest, buf, sizeof buf));
	table_add(t, "%s", node_count_text(r->preferred_size, buf, sizeof buf));
	add_best_nodes(t, x, r);
}

static void print_reasons_table(const struct scene *x, const struct reasons *r)
{
	struct table t = {.nr_columns = 4};

	table_add(&t, "  %-*s%s", LABEL_WIDTH, "why", "resource");
	table_add(&t, "needs now");
	table_add(&t, "if all were free");
	table_add(&t, "best NUMA nodes for it alone");
	for (unsigned i = 0; i < r->nr; i++)
		add_reason_row(&t, x, &r->resource[i]);
	table_print(&t, x->to);
	table_fini(&t);
}

static void print_choice(const struct scene *x, const struct decision *d, const struct reasons *r)
{
	const char *label = d->admit && r->admit ? "chosen" : "best there is";
	char chosen[NODES_WORDS_MAX], next[NODES_WORDS_MAX];

	if (r->affinity.any || !r->nr)
		return;
	nodes_words(x, r->affinity.mask, chosen, sizeof chosen);
	if (r->has_runner_up && !r->runner_up.any)
		wording_print(x->to, "", "%s: %s%s; next best: %s%s", label, chosen,
			r->affinity.preferred ? "" : " (not preferred)",
			nodes_words(x, r->runner_up.mask, next, sizeof next),
			r->runner_up.preferred ? "" : " (not preferred)");
	else
		wording_print(x->to, "", "%s: %s%s; nothing else would do", label, chosen,
			r->affinity.preferred ? "" : " (not preferred)");
}

/* Whether the resource alone needs more NUMA nodes than the policy likes. */
static bool is_short_of_nodes(const struct reasons_resource *r, enum topology_policy policy)
{
	unsigned most = policy == POLICY_SINGLE_NUMA_NODE ? 1 : r->preferred_size;

	return r->kind == FAMILY_NONE ||
	       (r->kind == FAMILY_CAPACITY && (!r->smallest || r->smallest > most));
}

static void print_fit(const struct scene *x, const struct decision *d, const struct reasons *r)
{
	char short_of[SAID_MAX];
	struct text t;

	if (d->policy == POLICY_NONE) {
		wording_print(
			x->to, "fit", "not looked at: policy none has no regard to NUMA nodes");
		return;
	}
	if (!d->has_affinity || !(d->exclusive || d->nr_blocks)) {
		wording_print(x->to, "fit",
			"it asks for nothing that would have to be on certain NUMA nodes");
		return;
	}
	if (d->preferred) {
		wording_print(x->to, "fit",
			"preferred: all of it together on as few NUMA nodes as if nothing else "
			"ran");
		return;
	}
	text_init(&t, short_of, sizeof short_of);
	for (unsigned i = 0; r && i < r->nr; i++)
		if (is_short_of_nodes(&r->resource[i], d->policy))
			text_add(&t, "%s%s", t.len ? " and " : "", r->resource[i].resource);
	if (t.len)
		wording_print(x->to, "fit",
			"spilled: too little %s was free on the few NUMA nodes that could have "
			"held it",
			short_of);
	else
		wording_print(x->to, "fit", "spilled: %s",
			r ? "each resource had room on few NUMA nodes, but not on the same ones"
			  : "it is on more NUMA nodes than it would be if nothing else ran");
}

static void print_hint_result(const struct scene *x, const struct advice_result *h)
{
	const struct advice_ruling ruling = {
		.verdict = h->verdict, .cause = h->cause, .asked = h->asked, .given = h->given};
	char said[SAID_MAX];
	struct text t;

	if (!h->looked_at)
		return;
	text_init(&t, said, sizeof said);
	advice_explain(&ruling, &x->t->ids, &t);
	wording_print(x->to, "hint", "%s, mode %s: %s", advice_verdict_name(h->verdict),
		advice_mode_name(h->mode), said);
}

void wording_print_reasons(const struct scene *x, const struct decision *d, const struct reasons *r)
{
	if (d->admit)
		print_fit(x, d, r);
	if (r && r->nr)
		print_reasons_table(x, r);
	if (r)
		print_choice(x, d, r);
	print_hint_result(x, &d->advice);
	if (d->admit && *d->message)
		wording_print(x->to, "note", "%s", d->message);
}

/* Refusals */

/* What the words of a refusal mean; the first row whose words are in the message counts. */
static const struct remedy {
	const char *reason, *words;
	const char *meaning, *advice;
} advices[] = {
	{"TopologyAffinityError", "mergeVisitBudget",
		"the search for NUMA nodes was stopped before it had looked at every combination, "
		"and the best found until then is not good enough for the policy",
		"raise mergeVisitBudget, or make room as below"},
	{"TopologyAffinityError", ADVICE_REFUSES,
		"it must be on the NUMA nodes that its scheduler asked for, or not run here: the "
		"hint says so, or the node's schedulerHint.mode does",
		"have the pod scheduled anew, with a hint for the node as it is now, or let hint "
		"and "
		"node say prefer, which takes other NUMA nodes instead"},
	{"TopologyAffinityError", "", NULL, /* the policy says it */
		"let containers on one NUMA node end (numafit status lists what is where), ask for "
		"less, send the pod to another node, or use topologyManagerPolicy best-effort, "
		"which spreads it over more NUMA nodes instead"},
	{"SMTAlignmentError", "not multiple",
		"the CPU manager option full-pcpus-only gives out whole cores, and the number of "
		"CPUs is not a multiple of a core's threads",
		"ask for a multiple of the threads of a core"},
	{"SMTAlignmentError", "",
		"the CPU manager option full-pcpus-only gives out whole cores, and too few cores "
		"have all of their threads free",
		"let other containers with CPUs of their own end, or ask for fewer CPUs"},
	{"UnexpectedAdmissionError", "Resize failed",
		"the container cannot grow where it is; it goes on with what it had",
		"ask for less, or start the container anew, so that it can be placed elsewhere"},
	{"UnexpectedAdmissionError", "the two must be the same",
		"each of numafit.io/cpu stands for one CPU of the container's own; asked for "
		"otherwise, the scheduler would sell those CPUs twice",
		"ask for as many of numafit.io/cpu as of cpu, whole ones, in a Guaranteed pod"},
	{"UnexpectedAdmissionError", "annotation numafit.io/allocated",
		"what the container came with does not entitle it to any tokens: it was not "
		"written by the kubelet for this container, or its tokens were given up",
		"let the pod be made anew; if it happens again, see which program writes that "
		"annotation"},
	{"UnexpectedAdmissionError", "sharedPoolMinimum",
		"containers without CPUs of their own would be left with too few",
		"ask for fewer CPUs, or lower sharedPoolMinimum"},
	{"UnexpectedAdmissionError", "not enough cpus",
		"fewer CPUs are free on this node than it asks for: the others are held by "
		"containers or reserved for the system",
		"ask for fewer CPUs, let a Guaranteed container end, or reserve fewer "
		"(reservedSystemCPUs). That the scheduler sent it here means that it counts more "
		"CPUs as allocatable than there are"},
	{"UnexpectedAdmissionError", "the machine has no hugepages",
		"it asks for huge pages of a size that this machine does not have",
		"set them up at boot, or send the pod to another node"},
	{"UnexpectedAdmissionError", "sum up to",
		"the pod's containers need more memory together than is free on this node",
		"ask for less, or let a Guaranteed pod end"},
	{"UnexpectedAdmissionError", "[memorymanager]",
		"no NUMA nodes that may serve it together have that much memory free; nodes that "
		"serve other containers as a group serve no one else",
		"ask for less memory, let Guaranteed containers on these NUMA nodes end, or "
		"reserve less (reservedMemory)"},
	{"UnexpectedAdmissionError", "working memory",
		"the decision did not fit into the memory that the daemon sets aside for one",
		"split the pod, or report it: this is a limit of numafit"},
	{NULL, "", "it could not be given what it asks for", "see the message above"},
};

/* The policy is not to blame when even all NUMA nodes together would not do. */
static const struct remedy too_much = {NULL, "", "less is free on the whole node than it asks for",
	"ask for less, let Guaranteed containers end (numafit status lists them), or send the pod "
	"to "
	"another node"};

static bool exceeds_the_node(const struct reasons *r)
{
	bool found = false;

	for (unsigned i = 0; r && i < r->nr; i++)
		found = found || r->resource[i].kind == FAMILY_NONE ||
			(r->resource[i].kind == FAMILY_CAPACITY && !r->resource[i].smallest);
	return found;
}

static const char *policy_meaning(enum topology_policy p)
{
	static const char restricted[] =
		"policy restricted admits a container only on as few NUMA nodes as it would need "
		"if nothing else ran on this machine, all resources together";
	static const char single[] =
		"policy single-numa-node admits a container only if all that it asks for is free "
		"on one NUMA node";
	static const char *const meanings[NR_POLICIES] = {
		[POLICY_NONE] = "policy none refuses nothing for its NUMA nodes",
		[POLICY_BEST_EFFORT] = "policy best-effort refuses nothing for its NUMA nodes",
		[POLICY_RESTRICTED] = restricted,
		[POLICY_SINGLE_NUMA_NODE] = single,
	};

	return meanings[p];
}

/* "; most is free on NUMA node 2: 6 CPUs" */
static void add_most_free(struct text *t, const struct scene *x, const struct snapshot *s,
	const struct reasons_resource *r)
{
	char size[TEXT_SIZE_MAX], kind[TOPO_NAME_MAX];
	bool cpus = text_equal(r->resource, "cpu");
	unsigned k = 0, best = 0;
	uint64_t most = 0;

	while (k < x->t->nr_kinds &&
		!text_equal(r->resource, topo_kind_name(x->t, k, kind, sizeof kind)))
		k++;
	if (!s || (!cpus && k == x->t->nr_kinds))
		return;
	nodeset_each (n, x->t->nodes) {
		const struct snapshot_node *node = &s->node[n];
		uint64_t left =
			cpus ? node->cpus - node->cpus_held - node->cpus_reserved : node->free[k];

		if (left > most) {
			most = left;
			best = n;
		}
	}
	if (!most) {
		text_add(t, "; nothing of it is free");
		return;
	}
	text_add(t, "; most is free on NUMA node %u: ", x->t->ids.id[best]);
	if (cpus)
		text_add(t, "%llu CPUs", (unsigned long long)most);
	else
		text_add(t, "%s", text_size(size, most));
}

static void print_short_resource(const struct scene *x, const char *label,
	const struct reasons_resource *r, const struct snapshot *s)
{
	char said[SAID_MAX], needs[TEXT_SIZE_MAX];
	struct text t;

	text_init(&t, said, sizeof said);
	if (!r->smallest)
		text_add(&t, "%s: not enough on all NUMA nodes together", r->resource);
	else
		text_add(&t, "%s: enough only on %s together", r->resource,
			node_count_text(r->smallest, needs, sizeof needs));
	if (r->smallest > r->preferred_size)
		text_add(&t, ", where %u could have it", r->preferred_size);
	else if (r->smallest)
		text_add(&t, ", even if nothing else ran");
	add_most_free(&t, x, s, r);
	wording_print(x->to, label, "%s", said);
}

static void print_missing(const struct scene *x, const struct decision *d, const struct snapshot *s)
{
	const struct reasons *r = d->reasons;
	const char *label = "missing";

	for (unsigned i = 0; i < r->nr; i++) {
		if (!is_short_of_nodes(&r->resource[i], d->policy))
			continue;
		print_short_resource(x, label, &r->resource[i], s);
		label = "";
	}
	if (r->nr && *label)
		wording_print(x->to, label,
			"each resource has room, but not all of them on the same NUMA nodes");
}

void wording_print_refusal(
	const struct scene *x, const struct decision *d, const struct snapshot *free)
{
	const struct remedy *a = advices;

	while (a->reason && !(text_equal(a->reason, d->reason) && strstr(d->message, a->words)))
		a++;
	if (exceeds_the_node(d->reasons))
		a = &too_much;
	wording_print(x->to, "reason", "%s: %s", d->reason ? d->reason : "refused", d->message);
	wording_print(x->to, "meaning", "%s", a->meaning ? a->meaning : policy_meaning(d->policy));
	if (d->reasons && !strstr(d->message, ADVICE_REFUSES))
		print_missing(x, d, free);
	wording_print(x->to, "advice", "%s", a->advice);
}
