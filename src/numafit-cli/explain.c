#include <numafit-cli/verbs.h>

#include <errno.h>
#include <io/journal.h>
#include <numafit-cli/history.h>
#include <numafit/mem.h>
#include <numafit-cli/output.h>
#include <codec/refusal_line.h>
#include <numafit-cli/run_directory.h>
#include <numafit-cli/table.h>
#include <numafit-cli/wording.h>
#include <numafit/nearest.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

enum { RECORD_BYTES_MAX = 16 * JOURNAL_TEXT_MAX, NAMES_SUGGESTED = 5, NAME_BYTES_MAX = 1024 };

struct options {
	const char *directory, *container, *ns;
	enum output output;
	bool all, list;
	const struct cpuset *pool; /* not an option: the shared pool as it is now */
};

/* A moment's record, read again. */
struct moment_record {
	struct arena arena;
	struct decoded_record record;
	const struct request *request;
	const struct decision *decision;
	const struct decision *to; /* of a move, where the container is to go; else NULL */
};

static void read_moment(const struct moment *m, struct moment_record *x)
{
	struct err e;

	arena_init(&x->arena, RECORD_BYTES_MAX);
	x->request = NULL;
	x->decision = x->to = NULL;
	if (!m->line || journal_json_parse(m->line, strlen(m->line), &m->f->topo.ids, &x->arena,
				&x->record, &e) < 0)
		return; /* it was read before: it cannot fail */
	const struct record *r = &x->record.record;
	x->request = r->nr_parts ? &r->parts[m->part].request : r->request;
	x->decision = r->nr_parts ? &r->parts[m->part].decision : r->decision;
	if (r->op == RECORD_MOVE) {
		x->to = r->decision;
		x->decision = NULL; /* what was decided for it stays that */
	}
}

/* Which words go with an event that led to a record. */
static const struct {
	const char *cause, *words;
} causes[] = {
	{"create", "when it was created"},
	{"run-pod", "when its pod's sandbox was started, for all of the pod's containers at once"},
	{"adopt", "when numafitd found it running"},
	{"claim", "when it came with tokens of which numafitd did not know"},
	{"withdrawn", "when the kubelet showed that its tokens are another container's"},
	{"shadow", "when it was created; in mode shadow the kubelet places it"},
	{"prepare", "when the kubelet prepared its claim"},
	{"facts", "when its pod's spec became known while it ran"},
	{"resize", "when its resources were changed while it ran"},
	{"snapshot", "or before: the journal was started anew then"},
	{"stop", "its process ended"},
	{"remove", "it was removed"},
	{"unprepare", "the kubelet needs it no more"},
	{"pod-gone", "its pod was removed"},
	{"replaced", "another container takes its place"},
	{"synchronize", "the runtime does not list it any more"},
	{"expired", "it was answered, but never came to exist"},
	{"move", "to make room while it runs"},
};

/* What a record without a decision means for its container. */
static const char *op_words(enum record_op op)
{
	static const char *const words[NR_RECORD_OPS] = {
		[RECORD_LIVE] = "seen to run",
		[RECORD_RELEASE] = "given back",
		[RECORD_MOVE] = "being moved",
		[RECORD_MOVED] = "moved",
		[RECORD_MOVE_BACK] = "its move was undone",
	};

	return words[op] ? words[op] : record_op_words[op];
}

static const char *words_of(const char *cause)
{
	for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
		if (text_equal(cause, causes[i].cause))
			return causes[i].words;
	return cause;
}

static bool is_share(const struct request *req)
{
	return !nodeset_empty(req->ask.share_of);
}

static const char *source_words(const struct request *req, const struct decision *d)
{
#define NOT_STOPPED "; a running container is not stopped, whatever the policy says"
	static const char *const adopted[NR_PLACED_BY] = {
		[PLACED_BY_NUMAFIT] = "the container ran already when numafitd came, and numafitd "
				      "has placed the container while it ran" NOT_STOPPED,
		[PLACED_AS_FOUND] = "it ran already when numafitd came, and keeps what it ran "
				    "with" NOT_STOPPED,
		[PLACED_LEFT] = "the container ran already when numafitd came, and is left as it "
				"ran",
	};
	static const char *const words[NR_DECISION_SOURCES] = {
		[SOURCE_INHERITED] = "it is a restart of a container that was placed before, and "
				     "keeps what that one had",
		[SOURCE_HELD] = "it was decided with its whole pod when the pod's sandbox was "
				"started, and held for it until the pod goes",
	};

	if (is_share(req))
		return "its NUMA node is the scheduler's choice";
	if (d->placed_by == PLACED_IN_SHADOW)
		return "in modes shadow and off numafitd places nothing: the container runs with "
		       "what the kubelet gives it";
	return d->source == SOURCE_ADOPTED ? adopted[d->placed_by] : words[d->source];
}

static void print_moved(const struct scene *x, const struct moment *m)
{
	char before[CPUSET_TEXT_MAX], after[CPUSET_TEXT_MAX];

	if (!m->moved)
		return;
	cpuset_format(&m->pool_before, before, sizeof before);
	wording_print(x->to, "moved",
		"%u shared container%s, with the shared pool from %s to %s: %s", m->nr_moved,
		text_plural(m->nr_moved), before, cpuset_format(&m->pool, after, sizeof after),
		m->moved);
}

static bool same_grant(const struct decision *a, const struct decision *b)
{
	return a->admit && b->admit && a->exclusive == b->exclusive &&
	       nodeset_equal(a->nodes, b->nodes) && nodeset_equal(a->mems, b->mems) &&
	       (!a->exclusive || cpuset_equal(&a->cpus, &b->cpus));
}

/* What was handed on, claimed or carried over was decided earlier: the last moment before i that
 * says why. NULL: the journal has none. */
static const struct moment *decided_before(
	const struct story *s, size_t i, const struct decision *d, struct moment_record *x)
{
	while (i-- > 0) {
		const struct moment *m = &s->moments.at[i];

		read_moment(m, x);
		if (x->decision && x->decision->reasons && same_grant(x->decision, d))
			return m;
		arena_fini(&x->arena);
	}
	return NULL;
}

static void print_why(
	const struct scene *x, const struct story *s, size_t i, const struct decision *d)
{
	static struct moment_record earlier;
	const struct moment *m = d->reasons || !d->admit ? NULL : decided_before(s, i, d, &earlier);
	char when[WORDING_TIME_MAX];

	if (m)
		wording_print(x->to, "decided", "%s, %s", wording_time(m->time_ms, when),
			words_of(m->cause));
	wording_print_reasons(x, d, m ? earlier.decision->reasons : d->reasons);
	if (m)
		arena_fini(&earlier.arena);
}

/* What became of it: the last that is known of that container id. */
struct fate {
	bool live;
	const struct moment *gone; /* NULL: it is not */
};

static struct fate fate_of(const struct story *s, size_t i)
{
	struct fate fate = {0};

	for (size_t k = i + 1; k < s->moments.nr; k++) {
		const struct moment *m = &s->moments.at[k];

		if (!text_equal(m->container_id, s->moments.at[i].container_id))
			continue;
		fate.live = fate.live || m->op == RECORD_LIVE;
		fate.gone = m->op == RECORD_RELEASE ? m : NULL;
	}
	return fate;
}

static void print_fate(const struct scene *x, const struct moment *at, const struct fate *fate,
	const struct moment_record *past)
{
	const struct decision *d = past->decision;
	char when[WORDING_TIME_MAX];

	if (fate->gone)
		wording_print(x->to, "now", "gone since %s: %s",
			wording_time(fate->gone->time_ms, when), words_of(fate->gone->cause));
	else if (is_share(past->request))
		wording_print(x->to, "now", "held until the kubelet needs it no more");
	else if (at->op == RECORD_HOLD)
		wording_print(x->to, "now", "held for it; the container is still to come");
	else if (fate->live || d->source == SOURCE_ADOPTED)
		wording_print(x->to, "now", "it is there, container id %.12s", at->container_id);
	else
		wording_print(x->to, "now", "answered; not seen to run yet, container id %.12s",
			at->container_id);
}

static void print_place(const struct scene *x, const char *label, const struct decision *d)
{
	char cpus[CPUSET_TEXT_MAX], nodes[NODESET_TEXT_MAX];
	const struct nodeset used = decision_nodes_used(x->t, d);

	wording_print(x->to, label, "CPUs %s on NUMA node%s %s",
		cpuset_format(&d->cpus, cpus, sizeof cpus), text_plural(nodeset_count(used)),
		nodeset_format(used, &x->t->ids, nodes, sizeof nodes));
}

/* Where it was moved to after that, as far as it got there. */
static void print_moves_since(const struct scene *x, const struct story *s, size_t i)
{
	static struct moment_record past;
	const struct moment *begun = NULL;
	char when[WORDING_TIME_MAX];

	for (size_t k = i + 1; k < s->moments.nr; k++) {
		const struct moment *m = &s->moments.at[k];

		if (!text_equal(m->container_id, s->moments.at[i].container_id))
			continue;
		begun = m->op == RECORD_MOVE ? m : begun;
		if (m->op != RECORD_MOVED || !begun)
			continue;
		read_moment(begun, &past);
		wording_print(
			x->to, "later", "%s, moved while it ran", wording_time(m->time_ms, when));
		print_place(x, "to", past.to);
		arena_fini(&past.arena);
	}
}

/* A container that is refused more, or less, stays what it was. */
static bool is_refused_change(const struct moment *m)
{
	return m->op == RECORD_REFUSE && text_equal(m->cause, "resize");
}

/* Whether the container was resized after that. */
static bool was_resized_since(const struct story *s, size_t i)
{
	for (size_t k = i + 1; k < s->moments.nr; k++)
		if (s->moments.at[k].op == RECORD_GRANT &&
			text_equal(s->moments.at[k].cause, "resize") &&
			text_equal(s->moments.at[k].container_id, s->moments.at[i].container_id))
			return true;
	return false;
}

static void print_policy(const struct scene *x, const struct decision *d)
{
	wording_print(x->to, "policy", "%s%s, scope %s%s", topology_policy_words[d->policy],
		d->policy > x->s->topology_policy ? " (the pod's own)" : "", /* never laxer */
		topology_scope_words[x->s->topology_scope],
		x->s->prefer_closest_numa_nodes ? ", prefer-closest-numa-nodes" : "");
}

static void explain_decision(
	const struct story *s, size_t i, const struct moment_record *past, const struct options *o)
{
	const struct moment *m = &s->moments.at[i];
	const struct fate fate = fate_of(s, i);
	const struct scene x = {stdout, &m->f->topo, &m->f->settings,
		.pool = fate.gone ? NULL : o->pool, .wide = o->output == OUTPUT_WIDE};
	const struct decision *d = past->decision;
	char when[WORDING_TIME_MAX];

	if (*s->container)
		wording_print_request(&x, past->request);
	else
		wording_print_pod(&x,
			past->record.record.pod ? past->record.record.pod : &past->request->pod);
	wording_print_tokens(&x, past->request, d);
	wording_print(x.to, d->admit ? "given" : "refused", "%s, %s",
		wording_time(m->time_ms, when), words_of(m->cause));
	if (d->admit && source_words(past->request, d))
		wording_print(x.to, "how", "%s", source_words(past->request, d));
	if (!d->admit && d->apart) /* else it is in the note */
		wording_print(x.to, "how", "%s", pod_apart_texts[d->apart]);
	if (!is_share(past->request))
		print_policy(&x, d);
	wording_print_grant(&x, past->request, d);
	if (m->refusal)
		(void)fputs(m->refusal, stdout);
	else if (!d->admit)
		wording_print(
			x.to, "reason", "%s: %s", d->reason ? d->reason : "refused", d->message);
	print_why(&x, s, i, d);
	print_moved(&x, m);
	print_moves_since(&x, s, i);
	if (d->admit)
		print_fate(&x, m, &fate, past);
	else if (is_refused_change(m))
		wording_print(x.to, "now", "%s",
			was_resized_since(s, i)
				? "it went on with what it had, and was resized otherwise later"
				: "nothing has changed: it goes on with what it had");
}

static void print_name(const struct story *s)
{
	const char *const parts[] = {s->ns, s->pod, s->container};
	const char *between = "";

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		if (!*parts[i])
			continue;
		(void)fputs(between, stdout);
		wording_print_plain(stdout, parts[i]);
		between = "/";
	}
}

static void print_moment(
	const struct story *s, size_t i, const struct moment_record *past, const struct options *o)
{
	const struct moment *m = &s->moments.at[i];
	char when[WORDING_TIME_MAX];

	print_name(s);
	if (past->decision) {
		(void)printf("%s: %s\n", *s->container ? "" : " (the whole pod)",
			is_refused_change(m) ? "resize refused; it runs on"
					     : wording_verdict(past->decision));
		explain_decision(s, i, past, o);
	} else {
		(void)printf(": %s\n", op_words(m->op));
		wording_print(stdout, "when", "%s%s%s", wording_time(m->time_ms, when),
			m->op == RECORD_LIVE ? "" : ": ",
			m->op == RECORD_LIVE ? "" : words_of(m->cause));
		if (past->to)
			print_place(
				&(struct scene){
					.to = stdout, .t = &m->f->topo, .s = &m->f->settings},
				"to", past->to);
	}
}

static void add_moment_row(
	struct table *t, const struct story *s, const struct moment *m, const struct decision *d)
{
	char when[WORDING_TIME_MAX], cpus[CPUSET_TEXT_MAX], nodes[NODESET_TEXT_MAX];
	bool given = d && d->admit;

	table_add(t, "%s", wording_time(m->time_ms, when));
	table_add(t, "%s/%s%s%s", s->ns, s->pod, *s->container ? "/" : "", s->container);
	table_add(t, "%s", d ? wording_verdict(d) : op_words(m->op));
	table_add(t, "%s", given ? cpuset_format(&d->cpus, cpus, sizeof cpus) : "-");
	table_add(t, "%s",
		given ? nodeset_format(d->mems, &m->f->topo.ids, nodes, sizeof nodes) : "-");
}

static bool is_text(const struct options *o)
{
	return o->output == OUTPUT_TEXT || o->output == OUTPUT_WIDE;
}

/* Print a story: its last decision with later events that did not change it; with --all, every
 * event. */
static void explain_story(const struct story *s, const struct options *o, struct table *t)
{
	static struct moment_record past;
	bool done = false;

	for (size_t i = s->moments.nr; i-- > 0 && !done;) {
		const struct moment *m = &s->moments.at[i];

		read_moment(m, &past);
		if (o->output == OUTPUT_JSON && m->line && m->refusal)
			refusal_line_print(stdout, m->line, m->refusal);
		else if (o->output == OUTPUT_JSON && m->line)
			(void)puts(m->line);
		else if (is_text(o) && (past.decision || o->all))
			print_moment(s, i, &past, o);
		else if (o->output != OUTPUT_JSON && (past.decision || o->all))
			add_moment_row(t, s, m, past.decision);
		done = past.decision && !o->all && !is_refused_change(m);
		arena_fini(&past.arena);
	}
}

/* Those that explain_story() is going to show. Returns how many. */
static size_t mark_refusals_of(struct story *s, const struct options *o)
{
	static struct moment_record past;
	size_t nr = 0;
	bool done = false;

	for (size_t i = s->moments.nr; i-- > 0 && !done;) {
		struct moment *m = &s->moments.at[i];

		read_moment(m, &past);
		m->is_to_be_explained = past.decision && !past.decision->admit;
		nr += m->is_to_be_explained;
		done = past.decision && !o->all && !is_refused_change(m);
		arena_fini(&past.arena);
	}
	return nr;
}

/* Why something was refused is worked out on the node as it was then: the journals are read once
 * more for it. */
static void explain_refusals(
	struct history *h, const struct options *o, const struct journal_fold f[NR_JOURNALS])
{
	struct explainer x = {.h = h, .as_members = o->output == OUTPUT_JSON};
	size_t nr = 0;
	char path[RUN_PATH_MAX];

	for (size_t i = 0; i < h->stories.nr; i++)
		nr += mark_refusals_of(&h->stories.at[i], o);
	x.budget = remedies_budget_of(REMEDIES_THOROUGHLY, nr);
	for (unsigned i = 0; i < NR_JOURNALS && nr; i++) {
		auto_free struct journal_fold *again = xcalloc(1, sizeof *again);

		x.f = &f[i];

		(void)journal_fold(again, journal_path(o->directory, journal_suffixes[i], path),
			history_explain, &x, NULL);
		journal_fold_fini(again);
	}
}

static int64_t last_moment_ms(const struct story *s)
{
	return s->moments.at[s->moments.nr - 1].time_ms;
}

/* Latest first; of one moment in the order of their names. */
static int by_last_moment(const void *a, const void *b)
{
	const struct story *x = a, *y = b;
	int64_t tx = last_moment_ms(x), ty = last_moment_ms(y);
	int c = tx == ty ? strcmp(x->pod, y->pod) : 0;

	if (tx != ty)
		return tx < ty ? 1 : -1;
	return c ? c : strcmp(x->container, y->container);
}

static bool is_same_name(const struct story *a, const struct story *b)
{
	return text_equal(a->ns, b->ns) && text_equal(a->pod, b->pod) &&
	       text_equal(a->container, b->container);
}

static void print_history(struct history *h, const struct options *o)
{
	static const char *const titles[] = {"TIME", "CONTAINER", "WHAT", "CPUS", "MEMS"};
	struct table t = {.nr_columns = sizeof titles / sizeof *titles};
	bool in_table = o->output == OUTPUT_TABLE;

	for (size_t i = 0; in_table && i < t.nr_columns; i++)
		table_add(&t, "%s", titles[i]);
	qsort(h->stories.at, h->stories.nr, sizeof *h->stories.at, by_last_moment);
	for (size_t i = 0; i < h->stories.nr; i++) {
		if (i && is_text(o))
			(void)putchar('\n');
		if (i && is_text(o) && is_same_name(&h->stories.at[i - 1], &h->stories.at[i]))
			(void)printf("an earlier pod of this name:\n");
		explain_story(&h->stories.at[i], o, &t);
	}
	if (in_table)
		table_print(&t, stdout);
	table_fini(&t);
}

static void history_forget(void *ctx)
{
	struct history *h = ctx;

	history_fini(h);
}

/* The name of a story, as it is asked for. */
static const char *story_name(const struct story *s, char buf[NAME_BYTES_MAX])
{
	(void)snprintf(buf, NAME_BYTES_MAX, "%s/%s%s%s", s->ns, s->pod, *s->container ? "/" : "",
		s->container);
	return buf;
}

static int by_name(const void *a, const void *b)
{
	char x[NAME_BYTES_MAX], y[NAME_BYTES_MAX];

	return strcmp(story_name(a, x), story_name(b, y));
}

/* What an empty answer means, and where was looked. */
static int nothing_listed(const struct call *c, const struct options *o)
{
	struct err e;

	(void)err_set(&e, ENOENT, "the journal in %s names no container%s%s", o->directory,
		o->ns ? " in namespace " : "", o->ns ? o->ns : "");
	(void)call_fail(c, EXIT_NO, &e);
	list_set_aside(stderr, o->directory);
	return EXIT_NO;
}

static int list_names(const struct call *c, const struct options *o)
{
	struct journal_fold f[NR_JOURNALS] = {0};
	const struct query q = {.ns = o->ns};
	struct history h = {.query = o->ns ? &q : NULL, .names_only = true};
	const struct gathering g = {&h, history_add, history_forget};
	int rc = journals_gather(c, o->directory, &g, f);

	if (h.stories.nr)
		qsort(h.stories.at, h.stories.nr, sizeof *h.stories.at, by_name);
	for (size_t i = 0; i < h.stories.nr; i++) {
		char name[NAME_BYTES_MAX];

		if (i && is_same_name(&h.stories.at[i - 1], &h.stories.at[i]))
			continue; /* an earlier pod of this name */
		wording_print_plain(stdout, story_name(&h.stories.at[i], name));
		(void)putchar('\n');
	}
	const bool none = !rc && !h.stories.nr;
	history_fini(&h);
	journals_fini(f);
	return rc ? EXIT_CANNOT : none ? nothing_listed(c, o) : EXIT_DONE;
}

/* How near a name is to what was asked: a part of it, or few letters away. */
static bool may_be_meant(const struct story *s, const char *asked)
{
	const char *const parts[] = {s->pod, s->container};
	char name[NAME_BYTES_MAX];
	struct nearest near;

	nearest_begin(&near, asked);
	nearest_try(&near, story_name(s, name), name);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		nearest_try(&near, parts[i], parts[i]);
		if (*parts[i] && (strstr(parts[i], asked) || strstr(asked, parts[i])))
			return true;
	}
	return near.best;
}

/* The very name, in another namespace. */
static bool is_named_so(const struct story *s, const char *asked)
{
	return text_equal(s->pod, asked) || text_equal(s->container, asked);
}

/* An earlier pod of the same name has a story of its own. */
static bool has_earlier_of_name(const struct history *h, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (is_same_name(&h->stories.at[k], &h->stories.at[i]))
			return true;
	return false;
}

static void suggest_names(const struct call *c, const struct options *o)
{
	struct journal_fold f[NR_JOURNALS] = {0};
	struct history h = {.names_only = true};
	const struct gathering g = {&h, history_add, history_forget};
	unsigned nr = 0;

	(void)journals_gather(c, o->directory, &g, f);
	for (int same = 1; same >= 0; same--)
		for (size_t i = 0; i < h.stories.nr && nr < NAMES_SUGGESTED; i++) {
			const struct story *s = &h.stories.at[i];
			char name[NAME_BYTES_MAX];

			if (is_named_so(s, o->container) != same ||
				!may_be_meant(s, o->container) || has_earlier_of_name(&h, i))
				continue;
			(void)fputs(nr++ ? ", " : "Did you mean ", stderr);
			wording_print_plain(stderr, story_name(s, name));
		}
	(void)fputs(nr ? "?\n" : "numafit explain --list prints what it has.\n", stderr);
	history_fini(&h);
	journals_fini(f);
}

static int nothing_known(const struct call *c, const struct options *o)
{
	struct err e;

	(void)err_set(&e, ENOENT, "the journal in %s has nothing of \"%s\"%s%s", o->directory,
		o->container, o->ns ? " in namespace " : "", o->ns ? o->ns : "");
	(void)call_fail(c, EXIT_NO, &e);
	suggest_names(c, o);
	(void)fputs("The journal keeps what happened since it was last started anew, and the time "
		    "before that. A pod that the kubelet itself refused never came to numafitd: "
		    "kubectl describe pod has the kubelet's reason.\n",
		stderr);
	list_set_aside(stderr, o->directory);
	return EXIT_NO;
}

static int explain_container(const struct call *c, const struct options *o)
{
	struct journal_fold f[NR_JOURNALS] = {0};
	struct query q = {0};
	struct history h = {.query = &q};
	const struct gathering g = {&h, history_add, history_forget};
	struct err e;
	int rc = 0, code = EXIT_CANNOT;

	if (query_parse(&q, o->container, &e)) {
		query_fini(&q);
		return call_misused(c, "%s", e.text);
	}
	q.ns = o->ns;
	rc = journals_gather(c, o->directory, &g, f);
	if (!rc && !h.stories.nr) {
		q.loose = true;
		rc = journals_gather(c, o->directory, &g, f);
	}
	if (h.stories.nr) {
		const struct journal_fold *present = &f[NR_JOURNALS - 1];
		struct options known = *o;

		if (present->engine)
			known.pool = &ledger_view(engine_ledger(present->engine))->pool;
		if (o->output != OUTPUT_TABLE)
			explain_refusals(&h, o, f);
		print_history(&h, &known);
		code = EXIT_DONE;
	} else if (!rc) {
		code = nothing_known(c, o);
	}
	history_fini(&h);
	journals_fini(f);
	query_fini(&q);
	return code;
}

static int run_explain(const struct call *c)
{
	struct options o = {.directory = RUN_DIRECTORY, .output = OUTPUT_TEXT};
	int code = call_read(c, &o);

	if (code >= 0)
		return code;
	if (o.list == (o.container != NULL))
		return call_misused(c, "one CONTAINER is expected, or --list");
	return o.list ? list_names(c, &o) : explain_container(c, &o);
}

static const struct option_row rows[] = {
	{.letter = 'a',
		.name = "all",
		.help = "not only the last decision: all that the journal has, latest first",
		.read = option_flag,
		.at = offsetof(struct options, all)},
	{.letter = 'l',
		.name = "list",
		.help = "only the names that the journal has, one on each line",
		.read = option_flag,
		.at = offsetof(struct options, list)},
	NAMESPACE_ROW(struct options),
	OUTPUT_ROWS(struct options, "text|wide|table|json"),
	RUN_DIRECTORY_ROW(struct options),
	{0},
};

const struct command verb_explain = {
	.name = "explain",
	.summary = "explain what was decided for a container, and why",
	.about =
		"What numafitd decided for a container: what was asked, what it was given, when and why, "
		"what was moved for it; of a refusal what was missing and what can be done. All of it is "
		"read from the journal: the daemon may be dead. With -o wide also what each resource "
		"had to choose from, and what was chosen; with -o table a line for each. With -o json the journal's records, one "
		"on each line; one that refuses has class, why, help and remedies besides.\n"
		"\n"
		"CONTAINER is its name, POD, POD/CONTAINER, NAMESPACE/POD or NAMESPACE/POD/CONTAINER, "
		"where POD may be a pod's uid; or the beginning of a container's id. A "
		"Deployment's or a StatefulSet's name stands for all pods that are named after it: web "
		"for web-0 and web-1. Of several that this suits, the latest comes first.",
	.options = rows,
	.operand = {"CONTAINER", 0, 1, option_text, offsetof(struct options, container),
		COMPLETE_CONTAINER},
	.examples = {{"numafit explain web-0", "the containers of a pod"},
		{"numafit explain -n shop web", "those of web-0, web-1, ... in a namespace"},
		{"numafit explain --all -o table shop/web-0/main",
			"all that became of one container, a line for each event"}},
	.exits = {[EXIT_NO] = "the journal has nothing of it",
		[EXIT_CANNOT] = "there is no journal, or it cannot be read"},
	.run = run_explain,
};
