#include <numafit-cli/verbs.h>

#include <questions/diff_json.h>
#include <io/journal.h>
#include <numafit-cli/again.h>
#include <numafit-cli/journal_fold.h>
#include <numafit/defrag.h>
#include <numafit/mem.h>
#include <numafit-cli/run_directory.h>
#include <stdio.h>

struct replay {
	unsigned decided, differing;
	const struct record *at;
	struct defrag_plan plan;
	void *work; /* ADMIT_ARENA_BYTES */
};

static void print_record_difference(
	void *ctx, const char *path, const char *wanted, const char *got)
{
	const struct replay *x = ctx;

	(void)printf("seq %llu: %s: wanted %s, got %s\n", (unsigned long long)x->at->seq,
		*path ? path : "record", wanted, got);
}

/* What the first move of a plan should have been, by what it was made by. */
static int plan_again(const struct journal_fold *f, const struct record *r,
	struct defrag_plan *plan, struct answer *out, struct err *e)
{
	const struct defrag_question q = {.engine = f->engine,
		.topo = &f->topo,
		.settings = &f->settings,
		.pod = r->basis->pod,
		.moves = r->basis->moves,
		.trials = r->basis->trials,
		.figures = r->basis->figures,
		.nr_figures = r->basis->nr_figures};
	static const struct decision none;
	int rc = defrag_plan(&q, plan, e);

	if (rc)
		return rc;
	out->record = *r;
	out->record.decision = plan->nr ? &plan->move[0].to : &none;
	out->record.container_id = plan->nr ? plan->move[0].from->request.container_id : "";
	return 0;
}

static int replay_record(void *ctx, const struct journal_fold *f, const struct record *r,
	const char *line, struct err *e)
{
	static char again[JOURNAL_TEXT_MAX + 1];
	struct replay *x = ctx;
	struct answer answer;
	struct arena a;

	arena_init_fixed(&a, x->work, ADMIT_ARENA_BYTES);
	const bool moves = r->op == RECORD_MOVE && r->basis;
	int rc = moves ? plan_again(f, r, &x->plan, &answer, e) : 0;
	if (rc)
		return rc;
	if (!moves && !decide_again(engine_ledger(f->engine), &f->settings, r, &a, &answer))
		return 0;
	x->decided++;
	x->at = r;
	/* a redacted journal has no texts of refusals */
	struct decision without;
	const struct decision *now = answer.record.decision;
	if (now && !now->admit && r->decision && !r->decision->admit && !*r->decision->message) {
		without = *now;
		*without.message = '\0';
		answer.record.decision = &without;
	}
	rc = journal_json_record(&answer.record, &f->topo.ids, again, sizeof again, e);
	if (rc < 0)
		return rc;
	x->differing += json_diff_texts(line, again, print_record_difference, x) > 0;
	return 0;
}

static int replay_journal(const struct call *c, const char *path)
{
	auto_free struct journal_fold *f = xcalloc(1, sizeof *f);
	auto_free void *work = xcalloc(1, ADMIT_ARENA_BYTES);
	struct replay x = {.work = work};
	struct err e;
	int rc = journal_fold(f, path, replay_record, &x, &e), code;

	if (f->engine)
		(void)printf("%u record%s, %u decided again, %u differ%s\n", f->nr_records,
			text_plural(f->nr_records), x.decided, x.differing,
			x.differing == 1 ? "s" : "");
	code = rc ? call_fail(c, EXIT_CANNOT, &e) : EXIT_DONE;
	journal_fold_fini(f);
	return x.differing ? EXIT_NO : code;
}

static int run_replay(const struct call *c)
{
	const char *path = NULL;
	int code = call_read(c, &path);

	return code >= 0 ? code : replay_journal(c, path);
}

const struct command verb_replay = {
	.name = "replay",
	.summary = "decide everything in a journal once more, and compare",
	.about =
		"Decide everything in a journal of numafitd once more, on the machine, with the settings "
		"and from the state that it records, and compare the decisions byte for byte. It needs "
		"nothing but the file, and changes nothing: a journal from any node can be replayed "
		"anywhere.\n"
		"\n"
		"FILE is a journal (" RUN_DIRECTORY
		"/journal, or the one before it, journal.1); - is the "
		"standard input, a pipe or a file.\n"
		"\n"
		"For each difference it prints the record's number, what differs, what is recorded and "
		"what is decided now. Containers that were taken over running, that inherited their "
		"place, or that were carried over from an earlier journal were not decided there; they "
		"count as records.",
	.operand = {"FILE|-", 1, 1, option_text, .completes = COMPLETE_FILE},
	.examples = {{"numafit replay " RUN_DIRECTORY "/journal", "this node's journal"},
		{"kubectl -n numafit-system exec numafitd-x7k2p -- cat " RUN_DIRECTORY
		 "/journal | numafit replay -",
			"that of another node, from here"}},
	.exits = {[EXIT_DONE] = "every decision is the same",
		[EXIT_NO] = "some differ",
		[EXIT_CANNOT] = "the journal cannot be read"},
	.run = run_replay,
};
