#include <numafit-cli/verbs.h>

#include <errno.h>
#include <io/loop.h>
#include <numafit-cli/again.h>
#include <numafit-cli/history.h>
#include <numafit-cli/output.h>
#include <codec/refusal_line.h>
#include <numafit-cli/run_directory.h>
#include <numafit-cli/table.h>
#include <numafit-cli/wording.h>
#include <numafit/diagnosis.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES_MAX = 1024, SAID_MAX = 512, WHY_MAX = 90 };

struct options {
	const char *directory, *ns;
	enum output output;
	uint64_t since_ms; /* 0: however long ago */
	bool watch;
};

/* One container, or a pod as a whole, and one reason why it was refused: runtimes and kubelets try
 * again and again. */
struct refusal {
	char *name, *asked, *reason, *why, *message;
	const char *class; /* of refusal_class_words; NULL: it cannot be known any more */
	enum topology_policy policy;
	int64_t first_ms, last_ms;
	unsigned times;
	bool shadow; /* the kubelet decides: it was not kept from running */
	bool resize; /* of a container that goes on with what it had */
	bool placed;    /* later, or resized so, and not refused since */
	bool otherwise; /* it was resized later, to another size */
};

struct refused_record {
	char *line, *members;
};

struct refusals {
	const struct options *options;
	int64_t from_ms;
	int64_t begin_ms; /* of the journal, or from_ms; 0: nothing was read yet */
	struct {
		VEC(struct refusal);
	} list;
	struct {
		VEC(struct refused_record);
	} records;  /* for OUTPUT_JSON */
	size_t nr_refusals; /* that the answer is about, counted before; for OUTPUT_JSON */
	struct remedies_budget budget; /* of all their remedies */
	void *work;                    /* ADMIT_ARENA_BYTES */
};

static void refusals_forget(void *ctx)
{
	struct refusals *x = ctx;

	for (size_t i = 0; i < x->list.nr; i++) {
		struct refusal *r = &x->list.at[i];

		free(r->name);
		free(r->asked);
		free(r->reason);
		free(r->why);
		free(r->message);
	}
	for (size_t i = 0; i < x->records.nr; i++) {
		free(x->records.at[i].line);
		free(x->records.at[i].members);
	}
	vec_fini(&x->list);
	vec_fini(&x->records);
	x->budget = remedies_budget_of(REMEDIES_QUICKLY, x->nr_refusals);
}

static const char *name_of(const struct pod *pod, const char *container, char buf[NAME_BYTES_MAX])
{
	bool has = container && *container;

	(void)snprintf(buf, NAME_BYTES_MAX, "%s/%s%s%s", pod->ns ? pod->ns : "",
		pod->name ? pod->name : "", has ? "/" : "", has ? container : "");
	return buf;
}

/* The class of a refusal, and what shows it: it is decided again, on the node as it was. Where that
 * cannot be, or another numafit had decided, the recorded message stands. */
static void explain_in_short(struct refusals *x, const struct journal_fold *f,
	const struct record *r, struct refusal *out)
{
	char said[SAID_MAX];
	struct refusal_again again;
	struct diagnosis why;
	struct arena a;
	struct text t;

	arena_init_fixed(&a, x->work, ADMIT_ARENA_BYTES);
	text_init(&t, said, sizeof said);
	if (refusal_decide_again(f, r, &a, &again)) {
		const struct decision *d = &again.answer.decision;

		diagnose_in_numbers(&again.question, d, &why);
		diagnosis_add_numbers(&t, &why, d, &again.question);
		out->class = refusal_class_words[why.class];
	}
	out->why = xstrdup(t.len ? said : r->decision->message);
}

/* What the container asks for, or the pod's containers together. */
static char *refusal_asked(const struct record *r, const struct pod *pod)
{
	const struct ask ask = r->request && *r->request->ask.name ? r->request->ask : pod_ask(pod);
	char said[SAID_MAX];
	struct text t;

	text_init(&t, said, sizeof said);
	diagnosis_add_ask(&t, &ask);
	return xstrdup(said);
}

static void add_refusal(struct refusals *x, const struct journal_fold *f, const struct record *r,
	const struct pod *pod)
{
	const struct decision *d = r->decision;
	bool resize = text_equal(r->cause, "resize");
	auto_free char *asked = refusal_asked(r, pod);
	char name[NAME_BYTES_MAX];
	struct refusal *found = NULL;

	name_of(pod, r->request ? r->request->ask.name : NULL, name);
	for (size_t i = x->list.nr; i-- > 0 && !found;) {
		struct refusal *one = &x->list.at[i];

		if (one->resize == resize && text_equal(one->name, name) &&
			text_equal(one->asked, asked) && text_equal(one->reason, d->reason) &&
			text_equal(one->message, d->message))
			found = one;
	}
	if (!found) {
		found = vec_push(&x->list);
		*found = (struct refusal){.name = xstrdup(name),
			.asked = steal(asked),
			.reason = xstrdup(d->reason ? d->reason : "refused"),
			.message = xstrdup(d->message),
			.policy = d->policy,
			.resize = resize,
			.first_ms = r->time_ms};
		if (x->options->output != OUTPUT_JSON)
			explain_in_short(x, f, r, found);
	}
	found->last_ms = r->time_ms;
	found->times++;
	found->placed = found->otherwise = false;
	found->shadow = text_equal(r->cause, "shadow");
}

/* With remedies, for which many changes have to be tried. */
static char *members_of_refusal(
	struct refusals *x, const struct journal_fold *f, const struct record *r)
{
	struct refusal_again again;
	struct diagnosis why;
	struct arena a;

	arena_init_fixed(&a, x->work, ADMIT_ARENA_BYTES);
	if (!refusal_decide_again(f, r, &a, &again))
		return refusal_members_recorded(r->decision);
	const struct decision *d = &again.answer.decision;
	diagnose_with_remedies(&again.question, d, REMEDIES_QUICKLY, &x->budget, &why);
	return refusal_members(&again.question, d, &why);
}

/* It is placed now, or resized; a pod as a whole is when one of its containers is. */
static void note_placed(struct refusals *x, const struct record *r, const struct request *req)
{
	bool resized = text_equal(r->cause, "resize");
	char name[NAME_BYTES_MAX], pod[NAME_BYTES_MAX], asked[SAID_MAX];
	struct text t;

	name_of(&req->pod, req->ask.name, name);
	name_of(&req->pod, NULL, pod);
	text_init(&t, asked, sizeof asked);
	diagnosis_add_ask(&t, &req->ask);
	for (size_t i = 0; i < x->list.nr; i++) {
		struct refusal *one = &x->list.at[i];

		if (!text_equal(one->name, name) && !text_equal(one->name, pod))
			continue;
		if (!one->resize)
			one->placed = true;
		else if (resized) {
			one->placed = text_equal(one->asked, asked);
			one->otherwise = !one->placed;
		}
	}
}

/* Whether the answer is about the record. */
static bool is_asked_for(const struct refusals *x, const struct record *r, const struct pod *pod)
{
	return r->op == RECORD_REFUSE && pod && r->decision && r->time_ms >= x->from_ms &&
	       (!x->options->ns || text_equal(x->options->ns, pod->ns));
}

static const struct pod *pod_of_record(const struct record *r)
{
	return r->pod ? r->pod : r->request ? &r->request->pod : NULL;
}

static int refusals_count(void *ctx, const struct journal_fold *f, const struct record *r,
	const char *line, struct err *e)
{
	struct refusals *x = ctx;

	(void)f;
	(void)line;
	(void)e;
	x->nr_refusals += is_asked_for(x, r, pod_of_record(r));
	return 0;
}

/* How many refusals the answer is about decides which of them may spend what on remedies. Errors
 * are reported when the journals are read for the answer. */
static void count_refusals(struct refusals *x)
{
	char path[RUN_PATH_MAX];

	x->nr_refusals = 0;
	for (unsigned i = 0; i < NR_JOURNALS && x->options->output == OUTPUT_JSON; i++) {
		auto_free struct journal_fold *f = xcalloc(1, sizeof *f);

		(void)journal_fold(f,
			journal_path(x->options->directory, journal_suffixes[i], path),
			refusals_count, x, NULL);
		journal_fold_fini(f);
	}
}

static int refusals_add(void *ctx, const struct journal_fold *f, const struct record *r,
	const char *line, struct err *e)
{
	struct refusals *x = ctx;
	const struct pod *pod = pod_of_record(r);

	(void)e;
	if (!x->begin_ms)
		x->begin_ms = r->time_ms > x->from_ms ? r->time_ms : x->from_ms;
	if (r->op == RECORD_GRANT && r->request)
		note_placed(x, r, r->request);
	for (size_t i = 0; r->op == RECORD_HOLD && i < r->nr_parts; i++)
		note_placed(x, r, &r->parts[i].request);
	if (!is_asked_for(x, r, pod))
		return 0;
	add_refusal(x, f, r, pod);
	if (x->options->output == OUTPUT_JSON)
		*vec_push(&x->records) =
			(struct refused_record){xstrdup(line), members_of_refusal(x, f, r)};
	return 0;
}

static int by_last_time(const void *a, const void *b)
{
	const struct refusal *x = a, *y = b;

	return x->last_ms < y->last_ms ? -1 : x->last_ms > y->last_ms;
}

/* On a terminal a column of bounded width: cut behind a word, unless all is asked for. */
static void add_why(struct table *t, const char *why, bool whole)
{
	size_t len = strlen(why);

	if (whole || len <= WHY_MAX || !isatty(STDOUT_FILENO)) {
		table_add(t, "%s", why);
		return;
	}
	for (len = WHY_MAX; len > 1 && why[len] != ' '; len--)
		;
	table_add(t, "%.*s ...", (int)len, why);
}

static void print_table(const struct refusals *x, bool heading)
{
	static const char *const titles[] = {"LAST", "TIMES", "CONTAINER", "ASKED", "CLASS", "WHY",
		"NOW", "FIRST", "POLICY", "REASON", "MESSAGE"};
	enum { NR_WIDE = sizeof titles / sizeof *titles, NR_NARROW = 7 };
	bool wide = x->options->output == OUTPUT_WIDE;
	struct table t = {.nr_columns = wide ? NR_WIDE : NR_NARROW};
	char when[WORDING_TIME_MAX];

	for (size_t i = 0; heading && i < t.nr_columns; i++)
		table_add(&t, "%s", titles[i]);
	for (size_t i = 0; i < x->list.nr; i++) {
		const struct refusal *r = &x->list.at[i];

		table_add(&t, "%s", wording_time(r->last_ms, when));
		table_add(&t, "%u", r->times);
		table_add(&t, "%s", r->name);
		table_add(&t, "%s%s", r->resize ? "resize to " : "", r->asked);
		table_add(&t, "%s", r->class ? r->class : "-");
		add_why(&t, r->why, wide);
		table_add(&t, "%s",
			r->placed      ? r->resize ? "resized" : "placed"
			: r->otherwise ? "resized otherwise"
			: r->resize    ? "as before"
			: r->shadow ? "shadow"
				    : "refused");
		if (!wide)
			continue;
		table_add(&t, "%s", wording_time(r->first_ms, when));
		table_add(&t, "%s", topology_policy_words[r->policy]);
		table_add(&t, "%s", r->reason);
		table_add(&t, "%s", r->message);
	}
	table_print(&t, stdout);
	table_fini(&t);
}

static void print_refusals(struct refusals *x, bool heading)
{
	if (x->options->output == OUTPUT_JSON) {
		for (size_t i = 0; i < x->records.nr; i++)
			refusal_line_print(stdout, x->records.at[i].line, x->records.at[i].members);
		return;
	}
	if (x->list.nr) {
		qsort(x->list.at, x->list.nr, sizeof *x->list.at, by_last_time);
		print_table(x, heading);
	}
}

/* Which time they are from, as numafit status counts those of another one. */
static void print_sum(const struct refusals *x)
{
	unsigned times = 0, resizes = 0;
	char when[WORDING_TIME_MAX];

	(void)fflush(stdout); /* it comes after the table */
	for (size_t i = 0; i < x->list.nr; i++) {
		times += x->list.at[i].times;
		resizes += x->list.at[i].resize ? x->list.at[i].times : 0;
	}
	if (times)
		(void)fprintf(stderr, "%u refusal%s", times, text_plural(times));
	else
		(void)fputs("nothing was refused", stderr);
	if (resizes)
		(void)fprintf(stderr, " (%u of a resize)", resizes);
	if (x->options->ns)
		(void)fprintf(stderr, " in namespace %s", x->options->ns);
	if (x->begin_ms)
		(void)fprintf(stderr, " since %s%s", wording_time(x->begin_ms, when),
			x->begin_ms == x->from_ms ? "" : ", when the journal begins");
	(void)fputs(
		times ? "; numafit status counts from numafitd's start, without resizes\n" : "\n",
		stderr);
}

/* The next time only what comes after the last record that was seen. */
static int64_t behind_last(const struct journal_fold f[NR_JOURNALS], int64_t from_ms)
{
	int64_t last = f[NR_JOURNALS - 1].last_ms;

	return last >= from_ms ? last + 1 : from_ms;
}

static int run_refusals(const struct call *c)
{
	struct options o = {.directory = RUN_DIRECTORY, .output = OUTPUT_TABLE};
	auto_free void *work = xcalloc(1, ADMIT_ARENA_BYTES);
	struct refusals x = {.options = &o, .work = work};
	const struct gathering g = {&x, refusals_add, refusals_forget};
	struct journal_fold f[NR_JOURNALS] = {0};
	bool printed = false;
	int code = call_read(c, &o), rc = 0;

	if (code >= 0)
		return code;
	x.from_ms = o.since_ms ? loop_wall_ms() - (int64_t)o.since_ms : 0;
	do {
		count_refusals(&x);
		rc = journals_gather(c, o.directory, &g, f);
		if (!rc || x.list.nr)
			print_refusals(&x, !printed);
		printed = printed || x.list.nr;
		x.from_ms = behind_last(f, x.from_ms);
	} while (!rc && o.watch && watch_wait());
	if (!rc && !o.watch && o.output != OUTPUT_JSON)
		print_sum(&x);
	refusals_forget(&x);
	journals_fini(f);
	return rc ? EXIT_CANNOT : EXIT_DONE;
}

static const struct option_row rows[] = {
	NAMESPACE_ROW(struct options),
	{.name = "since",
		.value = "DURATION",
		.help = "only what was refused in the last 90s, 15m, 1h30m, 2d",
		.read = option_duration,
		.at = offsetof(struct options, since_ms)},
	OUTPUT_ROWS(struct options, "table|wide|json"),
	WATCH_ROW(struct options, "go on, and print what is refused from then on"),
	RUN_DIRECTORY_ROW(struct options),
	{0},
};

static bool list_class(unsigned i, struct item *out)
{
	if (i >= NR_REFUSAL_CLASSES)
		return false;
	(void)snprintf(out->name, sizeof out->name, "%s", refusal_class_words[i]);
	(void)snprintf(out->text, sizeof out->text, "%s", refusal_class_texts[i]);
	return true;
}

const struct command verb_refusals = {
	.name = "refusals",
	.summary = "list what was refused on this node, and why",
	.about =
		"What numafitd refused on this node, a line for each container, size and reason, the latest "
		"last: when, how many times, what it asked for, the class of the refusal and what shows "
		"it, and whether it was placed later; a container that was refused a resize goes on as "
		"before. All of it is read from the "
		"journal and the one before it; the daemon may be dead. With -o wide the kubelet's "
		"reason and message, too; with -o json the journal's records, one on each line, with "
		"class, why, help and remedies besides; of many refusals the latest have their remedies, "
		"and others have remedies_left_out. numafit explain has what would help.",
	.options = rows,
	.list_title = "classes",
	.list = list_class,
	.examples = {{"numafit refusals --since 1h", "the last hour's"},
		{"numafit refusals -n inference -o wide", "a namespace's, with the whole messages"},
		{"numafit refusals -w", "what comes, as it comes"}},
	.exits = {[EXIT_DONE] = "done, also when nothing was refused",
		[EXIT_CANNOT] = "there is no journal, or it cannot be read"},
	.run = run_refusals,
};
