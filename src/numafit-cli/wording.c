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

	(void)snprintf(buf, cap, "NUMA node%s %s", text_plural(nodeset_count(nodes)),
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

enum { DEVICES_NAMED = 4 }; /* of one resource */

/* "gpu0, gpu1 (nvidia.com/gpu) on NUMA node 5" */
static void print_device_resource(
	const struct scene *x, const char *label, const struct device_resource *r)
{
	struct nodeset on = {0};
	char has[SAID_MAX], nodes[NODES_WORDS_MAX];
	struct text t;

	text_init(&t, has, sizeof has);
	for (size_t i = 0; i < r->nr; i++) {
		if (i < DEVICES_NAMED)
			text_add(&t, "%s%s", i ? ", " : "", r->device[i].id);
		on = nodeset_or(on, r->device[i].nodes);
	}
	if (r->nr > DEVICES_NAMED)
		text_add(&t, " and %zu more", (size_t)r->nr - DEVICES_NAMED);
	wording_print(x->to, label, "%s (%s) on %s", has, r->name,
		nodes_words(x, on, nodes, sizeof nodes));
}

static void print_attached_devices(
	const struct scene *x, const struct device_resource *r, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		print_device_resource(x, i ? "" : "devices", &r[i]);
}

static void print_wishes(const struct scene *x, const struct wishes *w)
{
	char wished[SAID_MAX];
	struct text t;

	text_init(&t, wished, sizeof wished);
	wishes_print(w, &t);
	if (t.len)
		wording_print(x->to, "wished", "%s", wished);
}

void wording_print_request(const struct scene *x, const struct request *req)
{
	char asked[SAID_MAX];
	struct text t;

	text_init(&t, asked, sizeof asked);
	diagnosis_add_ask(&t, &req->ask);
	if (nodeset_empty(req->ask.share_of))
		text_add(&t, "; %s pod", qos_words[req->pod.qos]);
	else
		text_add(&t, "; ResourceClaim%s", req->ask.wishes.cores ? " of whole cores" : "");
	if (req->ask.kind != CONTAINER_APP)
		text_add(&t, ", %s container", container_kind_words[req->ask.kind]);
	if (req->pod.qos == QOS_GUARANTEED && req->ask.cpu_milli % MILLI &&
		req->ask.wishes.cpus != WISH_CPUS_OWN_SHARED)
		text_add(&t, " (only whole CPUs are given to a container alone)");
	wording_print(x->to, "asked", "%s", asked);
	if (nodeset_empty(req->ask.share_of))
		print_wishes(x, &req->ask.wishes);
	print_attached_devices(x, req->pod.attached, req->pod.nr_attached);
}

void wording_print_devices_of(const struct scene *x, const struct pod *pod, const struct ask *c)
{
	for (unsigned i = 0; i < c->nr_devices; i++)
		print_device_resource(
			x, i ? "" : "devices", &pod->attached[c->device[i].resource]);
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
		wording_print(x->to, "tokens",
			"it came with %s of numafit.io/cpu, as NUMA node=numbers, and has none of "
			"them",
			tokens ? tokens + 1 : req->allocated);
}

void wording_print_pod(const struct scene *x, const struct pod *pod)
{
	const struct ask sum = pod_ask(pod);
	char asked[SAID_MAX], wished[WISHES_TEXT_MAX];
	struct text t, w;

	wording_print(x->to, "asked", "%s pod", qos_words[pod->qos]);
	if (pod->own) {
		text_init(&t, asked, sizeof asked);
		diagnosis_add_ask(&t, pod->own);
		wording_print(x->to, "", "as one (spec.resources): %s", asked);
	}
	for (size_t i = 0; i < pod->nr; i++) {
		const struct ask *c = &pod->container[i];

		text_init(&t, asked, sizeof asked);
		diagnosis_add_ask(&t, c);
		text_init(&w, wished, sizeof wished);
		wishes_print(&c->wishes, &w);
		text_add(&t, "%s%s", w.len ? "; wished: " : "", wished);
		wording_print(x->to, "", "%s (%s container): %s", c->name,
			container_kind_words[c->kind], asked);
	}
	if (pod->container)
		print_attached_devices(x, pod->attached, pod->nr_attached);
	if (pod->container || !pod->totals.known)
		return;
	text_init(&t, asked, sizeof asked);
	diagnosis_add_ask(&t, &sum);
	wording_print(x->to, "", "its containers together: %s", asked);
}

/* What later containers of the pod take over from an init container is not in its own block. */
static uint64_t asked_of_kind(const struct scene *x, const struct request *req, unsigned kind)
{
	for (unsigned i = 0; i < req->ask.nr_memory; i++)
		if (topo_kind_of_page(x->t, req->ask.memory[i].page_bytes) == (int)kind)
			return req->ask.memory[i].bytes;
	return 0;
}

static void print_memory_given(
	const struct scene *x, const struct request *req, const struct decision *d)
{
	char given[SAID_MAX], size[TEXT_SIZE_MAX], kind[TOPO_NAME_MAX], nodes[NODES_WORDS_MAX];
	struct text t;

	text_init(&t, given, sizeof given);
	for (unsigned i = 0; i < d->nr_blocks; i++) {
		const struct memory_block *b = &d->blocks[i];
		bool taken_over = req->ask.kind == CONTAINER_INIT &&
				  asked_of_kind(x, req, b->kind) > b->bytes;

		text_add(&t, "%s%s of %s on %s%s", i ? ", " : "",
			text_size_rounded(
				size, taken_over ? asked_of_kind(x, req, b->kind) : b->bytes),
			topo_kind_name(x->t, b->kind, kind, sizeof kind),
			nodes_words(x, b->nodes, nodes, sizeof nodes),
			taken_over ? ", which later containers of the pod take over" : "");
	}
	if (!d->nr_blocks)
		text_add(&t, "none is set aside for it; it may use %s",
			nodes_words(x, d->mems, nodes, sizeof nodes));
	wording_print(x->to, "memory", "%s", given);
}

/* By an operator's section for its namespace. */
static void print_unlike_others(const struct scene *x, const struct decision *d)
{
	char cpus[CPUSET_TEXT_MAX];

	if (decision_is_left(d))
		wording_print(x->to, "CPUs", "any: it gets no cpuset from numafitd");
	else
		wording_print(x->to, "CPUs",
			"none of its own: it runs on the CPUs that are reserved for the system, %s",
			cpuset_format(&d->cpus, cpus, sizeof cpus));
}

/* The shared pool moves: what it was says little of where the container runs. */
static void print_pool(const struct scene *x, const struct decision *d)
{
	static const char moves[] = "it changes as containers with CPUs of their own come and go";
	char then[CPUSET_TEXT_MAX], now[CPUSET_TEXT_MAX], nodes[NODES_WORDS_MAX];

	cpuset_format(&d->cpus, then, sizeof then);
	if (!x->pool)
		wording_print(x->to, "CPUs",
			"none of its own: it ran in the shared pool, CPUs %s at that time", then);
	else if (cpuset_equal(x->pool, &d->cpus))
		wording_print(x->to, "CPUs",
			"none of its own: it runs in the shared pool, now CPUs %s; %s", then,
			moves);
	else
		wording_print(x->to, "CPUs",
			"none of its own: it runs in the shared pool, now CPUs %s (CPUs %s at that "
			"time); %s",
			cpuset_format(x->pool, now, sizeof now), then, moves);
	if (!nodeset_empty(d->spread))
		wording_print(x->to, "",
			"of these it has those on %s alone, as long as there are any",
			nodes_words(x, d->spread, nodes, sizeof nodes));
}

static const char *whose_cpus(const struct request *req, const struct decision *d)
{
	const struct wishes *w = &req->ask.wishes;

	if (req->ask.whole_pod)
		return "for the pod alone, shared out among its containers";
	if (request_shares_in_pod(req, d))
		return "shared with other containers of its pod";
	if (!nodeset_empty(req->ask.share_of))
		return "for the containers of this claim, whether any of them runs or not";
	if (d->within_claims)
		return "those of its ResourceClaims";
	if (d->within_pod)
		return "of its pod's, for it alone";
	if (w->cores == WISH_CORES_ONE_THREAD)
		return w->cpus == WISH_CPUS_OWN_SHARED
			       ? "for it alone, of each core one in its cpuset, beside the shared pool"
			       : "for it alone, of each core one in its cpuset";
	return w->cpus == WISH_CPUS_OWN_SHARED ? "for it alone, beside the shared pool"
					       : "for it alone";
}

void wording_print_grant(const struct scene *x, const struct request *req, const struct decision *d)
{
	char cpus[CPUSET_TEXT_MAX], nodes[NODES_WORDS_MAX];

	if (!d->admit)
		return;
	if (request_lacks_memory_policy(req))
		wording_print(x->to, "", "%s", request_no_memory_policy_text);
	if (!d->exclusive && req->ask.wishes.cpus >= WISH_CPUS_UNBOUNDED) {
		print_unlike_others(x, d);
		print_memory_given(x, req, d);
		return;
	}
	if (!d->exclusive) {
		print_pool(x, d);
		print_memory_given(x, req, d);
		return;
	}
	cpuset_format(&d->cpus, cpus, sizeof cpus);
	wording_print(x->to, "CPUs", "%s, %s, on %s", cpus, whose_cpus(req, d),
		nodes_words(x, topo_nodes_of(x->t, &d->cpus), nodes, sizeof nodes));
	print_memory_given(x, req, d);
	if (!req->ask.wishes.memory && decision_memory_policy(x->s, req, d))
		wording_print(x->to, "", "its pages go to one of them after another (memoryPolicyAcrossNodes)");
}

/* Why it is where it is */

static const char *node_count_text(unsigned nr, char buf[], size_t cap)
{
	if (nr)
		(void)snprintf(buf, cap, "%u node%s", nr, text_plural(nr));
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

	table_add(&t, "  %-*s%s", LABEL_WIDTH, "choice", "resource");
	table_add(&t, "needs now");
	table_add(&t, "if all were free");
	table_add(&t, "best NUMA nodes for it alone");
	for (unsigned i = 0; i < r->nr; i++)
		add_reason_row(&t, x, &r->resource[i]);
	table_print(&t, x->to);
	table_fini(&t);
}

static void print_choice(const struct scene *x, const struct reasons *r)
{
	char chosen[NODES_WORDS_MAX], next[NODES_WORDS_MAX];

	if (r->affinity.any || !r->nr)
		return;
	nodes_words(x, r->affinity.mask, chosen, sizeof chosen);
	if (r->has_runner_up && !r->runner_up.any)
		wording_print(x->to, "", "chosen: %s%s; next best: %s%s", chosen,
			r->affinity.preferred ? "" : " (not preferred)",
			nodes_words(x, r->runner_up.mask, next, sizeof next),
			r->runner_up.preferred ? "" : " (not preferred)");
	else
		wording_print(x->to, "", "chosen: %s%s; nothing else would do", chosen,
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
			"preferred: %s on as few NUMA nodes as if nothing else ran%s",
			d->exclusive ? "all of it together" : "its memory is",
			d->exclusive ? "" : "; it has no CPUs of its own");
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

static void print_hint_result(const struct scene *x, const struct decision *d)
{
	const struct advice_result *h = &d->advice;
	const struct advice_ruling ruling = {
		.verdict = h->verdict, .cause = h->cause, .asked = h->asked, .given = h->given};
	char said[SAID_MAX], cpus[CPUSET_TEXT_MAX];
	struct text t;

	if (!h->looked_at)
		return;
	text_init(&t, said, sizeof said);
	advice_explain(&ruling, &x->t->ids, &t);
	if (h->verdict == ADVICE_REPAIRED_CPUS && d->exclusive)
		text_add(&t, ", %s", cpuset_format(&d->cpus, cpus, sizeof cpus));
	else if (h->verdict == ADVICE_REPAIRED_CPUS)
		text_add(&t, ", those of the shared pool");
	wording_print(x->to, "hint", "%s, mode %s: %s", advice_verdict_words[h->verdict],
		advice_mode_words[h->mode], said);
}

void wording_print_reasons(const struct scene *x, const struct decision *d, const struct reasons *r)
{
	if (d->admit)
		print_fit(x, d, r);
	if (r && r->nr && x->wide)
		print_reasons_table(x, r);
	if (d->admit && r && x->wide)
		print_choice(x, r);
	print_hint_result(x, d);
	if (d->admit && *d->message)
		wording_print(x->to, "note", "%s", d->message);
}

/* Refusals */

/* Also what is not short: the figures that show it. */
static void print_amounts(const struct scene *x, const struct diagnosis *d)
{
	struct table t = {.nr_columns = 6};
	char size[TEXT_SIZE_MAX], kind[TEXT_SIZE_MAX];

	if (!d->nr)
		return;
	table_add(&t, "  %-*sresource", LABEL_WIDTH, "amounts");
	table_add(&t, "asked");
	table_add(&t, "this node has");
	table_add(&t, d->resize ? "free or its own" : "free");
	table_add(&t, "largest NUMA node has");
	table_add(&t, "most free on one");
	for (unsigned i = 0; i < d->nr; i++) {
		const struct diagnosis_amount *m = &d->of[i];
		const uint64_t figures[] = {
			m->asked, m->exists, m->free, m->node_exists, m->node_free};

		table_add(&t, "%*s%s%s", 2 + LABEL_WIDTH, "",
			m->cpus         ? "CPUs"
			: m->page_bytes ? "hugepages-"
					: "memory",
			m->page_bytes ? text_size(kind, m->page_bytes) : "");
		for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
			if (m->cpus)
				table_add(&t, "%llu", (unsigned long long)figures[k]);
			else
				table_add(&t, "%s", text_size_rounded(size, figures[k]));
	}
	table_print(&t, x->to);
	table_fini(&t);
}

/* A text of the diagnosis as a sentence. */
static void print_sentence(const struct scene *x, const char *label, char *said)
{
	*said = (char)toupper((unsigned char)*said);
	wording_print(x->to, label, "%s.", said);
}

void wording_print_refusal(const struct scene *x, const struct decision *d,
	const struct diagnosis *why, const struct admit_question *q)
{
	char said[SAID_MAX];
	struct text t;

	text_init(&t, said, sizeof said);
	diagnosis_add_numbers(&t, why, d, q);
	bool is_message = text_equal(said, d->message);
	print_sentence(x, "why", said);
	print_amounts(x, why);
	text_init(&t, said, sizeof said);
	diagnosis_add_remedies(&t, why, q, POD_NAMES_ALL);
	print_sentence(x, "help", said);
	wording_print(x->to, "class", "%s: %s", refusal_class_words[why->class],
		refusal_class_texts[why->class]);
	wording_print(x->to, "reason", "%s%s%s", d->reason ? d->reason : "refused",
		is_message ? "" : ": ", is_message ? "" : d->message);
}
