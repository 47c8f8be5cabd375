#include <numafit-cli/verbs.h>

#include <errno.h>
#include <getopt.h>
#include <io/journal.h>
#include <numafit-cli/history.h>
#include <numafit/mem.h>
#include <numafit-cli/run_directory.h>
#include <numafit-cli/wording.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
	"usage: numafit explain [--all] [--json] [--run-directory DIR] CONTAINER\n"
	"\n"
	"What numafitd decided for a container: what was asked, what it was given, when and why, "
	"what\n"
	"was moved for it; of a refusal what was missing and what can be done. All of it is read\n"
	"from the journal: the daemon may be dead.\n"
	"\n"
	"  CONTAINER            its name, POD, POD/CONTAINER, NAMESPACE/POD or "
	"NAMESPACE/POD/CONTAINER,\n"
	"                       where POD may be a pod's uid; or the beginning of a container's "
	"id.\n"
	"                       Of several that this suits, the latest comes first\n"
	"  --all                not only the last decision: all that the journal has, latest "
	"first\n"
	"  --json               the journal's records instead of words, one line each\n"
	"  --run-directory DIR  numafitd's (default " RUN_DIRECTORY ")\n"
	"  --help               this text\n"
	"\n"
	"Exit code: 0; 1 the journal has nothing of it; 2 bad usage, or there is no journal to "
	"read.\n";

enum { RECORD_BYTES_MAX = 16 * JOURNAL_TEXT_MAX, NR_JOURNALS = 2 };

struct options {
	const char *directory, *container;
	bool all, json;
};

/* A moment's record, read again. */
struct moment_record {
	struct arena arena;
	struct decoded_record record;
	const struct request *request;
	const struct decision *decision;
};

static void read_moment(const struct moment *m, struct moment_record *x)
{
	struct err e;

	arena_init(&x->arena, RECORD_BYTES_MAX);
	x->request = NULL;
	x->decision = NULL;
	if (!m->line || journal_json_parse(m->line, strlen(m->line), &m->f->topo.ids, &x->arena,
				&x->record, &e) < 0)
		return; /* it was read before: it cannot fail */
	const struct record *r = &x->record.record;
	x->request = r->nr_parts ? &r->parts[m->part].request : r->request;
	x->decision = r->nr_parts ? &r->parts[m->part].decision : r->decision;
}

/* Which words go with an event that led to a record. */
static const struct {
	const char *cause, *words;
} causes[] = {
	{"create", "when it was created"},
	{"run-pod", "when its pod's sandbox was started, for all of the pod's containers at once"},
	{"adopt", "when numafitd found it running"},
	{"claim", "when the kubelet past of its tokens, of which numafitd did not know"},
	{"withdrawn", "when the kubelet showed that its tokens are another container's"},
	{"shadow", "when it was created; in mode shadow the kubelet places it"},
	{"resize", "when its resources were changed while it ran"},
	{"snapshot", "or before: the journal was started anew then"},
	{"stop", "its process ended"},
	{"remove", "it was removed"},
	{"pod-gone", "its pod was removed"},
	{"replaced", "another container takes its place"},
	{"synchronize", "the runtime does not list it any more"},
	{"expired", "it was answered, but never came to exist"},
};

static const char *words_of(const char *cause)
{
	for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
		if (text_equal(cause, causes[i].cause))
			return causes[i].words;
	return cause;
}

static const char *source_words(const struct decision *d)
{
	static const char *const words[NR_DECISION_SOURCES] = {
		[SOURCE_ADOPTED] = "it ran already when numafitd came, and keeps what it ran with; "
				   "a running container is not stopped, whatever the policy says",
		[SOURCE_INHERITED] = "it is a restart of a container that was placed before, and "
				     "keeps what that one had",
		[SOURCE_HELD] = "it was decided with its whole pod when the pod's sandbox was "
				"started, and held for it until the pod goes",
	};

	return words[d->source];
}

static void print_moved(const struct scene *x, const struct moment *m)
{
	char before[CPUSET_TEXT_MAX], after[CPUSET_TEXT_MAX];

	if (!m->moved)
		return;
	cpuset_format(&m->pool_before, before, sizeof before);
	wording_print(x->to, "moved",
		"%u shared container%s, with the shared pool from %s to %s: %s", m->nr_moved,
		m->nr_moved == 1 ? "" : "s", before, cpuset_format(&m->pool, after, sizeof after),
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
static void print_fate(
	const struct scene *x, const struct story *s, size_t i, const struct decision *d)
{
	const struct moment *at = &s->moments.at[i], *live = NULL, *gone = NULL;
	char when[WORDING_TIME_MAX];

	for (size_t k = i + 1; k < s->moments.nr; k++) {
		const struct moment *m = &s->moments.at[k];

		if (!text_equal(m->container_id, at->container_id))
			continue;
		live = m->op == RECORD_LIVE ? m : live;
		gone = m->op == RECORD_RELEASE ? m : NULL;
	}
	if (gone)
		wording_print(x->to, "now", "gone since %s: %s", wording_time(gone->time_ms, when),
			words_of(gone->cause));
	else if (at->op == RECORD_HOLD)
		wording_print(x->to, "now", "held for it; the container is still to come");
	else if (live || d->source == SOURCE_ADOPTED)
		wording_print(x->to, "now", "it is there, container id %.12s", at->container_id);
	else
		wording_print(x->to, "now", "answered; not seen to run yet, container id %.12s",
			at->container_id);
}

/* A container that is refused more, or less, stays what it was. */
static bool is_refused_change(const struct moment *m)
{
	return m->op == RECORD_REFUSE && text_equal(m->cause, "resize");
}

static void explain_decision(const struct story *s, size_t i, const struct moment_record *past)
{
	const struct moment *m = &s->moments.at[i];
	const struct scene x = {stdout, &m->f->topo, &m->f->settings};
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
	if (d->admit && source_words(d))
		wording_print(x.to, "how", "%s", source_words(d));
	if (!d->admit && d->apart) /* else it is in the note */
		wording_print(x.to, "how", "%s", pod_apart_text(d->apart));
	wording_print(x.to, "policy", "%s, scope %s%s", topology_policy_name(d->policy),
		topology_scope_name(x.s->topology_scope),
		x.s->prefer_closest_numa_nodes ? ", prefer-closest-numa-nodes" : "");
	wording_print_grant(&x, d);
	if (!d->admit)
		wording_print_refusal(&x, d, m->node);
	print_why(&x, s, i, d);
	print_moved(&x, m);
	if (d->admit)
		print_fate(&x, s, i, d);
	else if (is_refused_change(m))
		wording_print(x.to, "now", "nothing has changed: it goes on with what it had");
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

static void print_moment(const struct story *s, size_t i, const struct moment_record *past)
{
	const struct moment *m = &s->moments.at[i];
	char when[WORDING_TIME_MAX];

	print_name(s);
	if (past->decision) {
		(void)printf("%s: %s\n", *s->container ? "" : " (the whole pod)",
			wording_verdict(past->decision));
		explain_decision(s, i, past);
	} else {
		(void)printf(": %s\n", m->op == RECORD_LIVE ? "seen to run" : "given back");
		wording_print(stdout, "when", "%s%s%s", wording_time(m->time_ms, when),
			m->op == RECORD_LIVE ? "" : ": ",
			m->op == RECORD_LIVE ? "" : words_of(m->cause));
	}
}

/* One story: its last decision, and what it left as it was, or all of it. */
static void explain_story(const struct story *s, const struct options *o)
{
	static struct moment_record past;
	bool done = false;

	for (size_t i = s->moments.nr; i-- > 0 && !done;) {
		read_moment(&s->moments.at[i], &past);
		if (o->json && s->moments.at[i].line)
			(void)puts(s->moments.at[i].line);
		else if (!o->json && (past.decision || o->all))
			print_moment(s, i, &past);
		done = past.decision && !o->all && !is_refused_change(&s->moments.at[i]);
		arena_fini(&past.arena);
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

static int explain_history(struct history *h, const struct options *o)
{
	if (!h->stories.nr) {
		(void)fprintf(stderr, "numafit explain: the journal in %s has nothing of \"%s\"\n",
			o->directory, o->container);
		(void)fputs("It keeps what happened since it was last started anew, and the time "
			    "before that.\n",
			stderr);
		list_set_aside(stderr, o->directory);
		return EXIT_FAILED;
	}
	qsort(h->stories.at, h->stories.nr, sizeof *h->stories.at, by_last_moment);
	for (size_t i = 0; i < h->stories.nr; i++) {
		if (i && !o->json)
			(void)putchar('\n');
		explain_story(&h->stories.at[i], o);
	}
	return EXIT_DONE;
}

/* The journal before the present one, which there need not be, then the present one. */
static int read_journals(
	const struct options *o, struct history *h, struct journal_fold f[NR_JOURNALS])
{
	static const char *const suffixes[NR_JOURNALS] = {JOURNAL_PREVIOUS, NULL};
	char path[RUN_PATH_MAX];
	int rc = 0;

	for (unsigned i = 0; i < NR_JOURNALS; i++) {
		struct err e;

		rc = journal_fold(
			&f[i], journal_path(o->directory, suffixes[i], path), history_add, h, &e);
		if (!rc || (rc == -ENOENT && suffixes[i]))
			continue;
		(void)fprintf(stderr, "numafit explain: %s\n", e.text);
		if (!suffixes[i])
			advise_on_journal(stderr, o->directory, &e);
	}
	return rc;
}

static int explain_container(const struct options *o)
{
	struct journal_fold *f = xcalloc(NR_JOURNALS, sizeof *f);
	struct query q;
	struct history h = {.query = &q};
	struct err e;
	int code = EXIT_USAGE;

	if (query_parse(&q, o->container, &e))
		(void)fprintf(stderr, "numafit explain: %s\n", e.text);
	else if (!read_journals(o, &h, f) || h.stories.nr)
		code = explain_history(&h, o);
	history_fini(&h);
	for (unsigned i = 0; i < NR_JOURNALS; i++)
		journal_fold_fini(&f[i]);
	query_fini(&q);
	free(f);
	return code;
}

/* -1: go on; else the exit code. */
static int read_explain_options(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {{"all", no_argument, NULL, 'a'},
		{"json", no_argument, NULL, 'j'}, {"run-directory", required_argument, NULL, 'd'},
		{"help", no_argument, NULL, 'h'}, {0}};
	int c;

	optind = 0; /* main() hands on its own arguments: start over */
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'h') {
			(void)fputs(help, stdout);
			return EXIT_DONE;
		}
		if (c == '?')
			return EXIT_USAGE;
		o->all = o->all || c == 'a';
		o->json = o->json || c == 'j';
		o->directory = c == 'd' ? optarg : o->directory;
	}
	if (argc - optind != 1) {
		(void)fputs("numafit explain: one CONTAINER is expected; see numafit explain "
			    "--help\n",
			stderr);
		return EXIT_USAGE;
	}
	o->container = argv[optind];
	return -1;
}

int verb_explain(int argc, char **argv)
{
	struct options o = {.directory = RUN_DIRECTORY};
	int code = read_explain_options(argc, argv, &o);

	return code >= 0 ? code : explain_container(&o);
}
