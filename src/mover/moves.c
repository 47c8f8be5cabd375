/* Who asks for plans of moves, and what becomes of them. */
#include <mover/moves.h>

#include <codec/journal_json.h>
#include <codec/moves_json.h>
#include <io/journal.h>
#include <io/log.h>
#include <mover/planner.h>
#include <numafit/number.h>
#include <numafit/text.h>

#include <errno.h>
#include <string.h>

enum {
	TRIALS_ASKED = 20000,  /* somebody waits for the plan */
	TRIALS_REFUSED = 2000, /* nobody does, and there may be many: */
	REST_TIMES = 9,        /* between two such plans that many times as long as one took */
	REST_MS_MIN = 250,
	WORDS_MAX = 1024
};

/* A question of the socket. */
struct asked {
	void *asker;
	void (*answered)(void *asker, const char *document);
	bool apply, forgotten;
	char *text; /* behind "plan " or "apply ", as long as it waits */
};

struct moves_asker {
	struct moves_world w;
	struct mover *mover;
	struct planner *planner;
	struct asked asked;   /* what the plan at hand is for; asker NULL: a pod that was refused */
	struct asked waiting; /* while a plan is made that nobody waits for; text NULL: none does */
	/* Of the pod that was looked at last: it is refused over and over, and nothing has changed.
	 */
	char *seen_uid;
	uint64_t seen_generation;
	uint64_t began_ns;       /* the plan for a pod that was refused */
	struct loop_timer *rest; /* until the next such plan may be made */
	bool rests;
	char *next; /* the record of the pod that was refused last meanwhile, or NULL */
};

/* The document */

static void answer_moves(struct moves_asker *x, const struct moves *m)
{
	auto_free char *text = moves_json_format(m);
	auto_free char *why = text ? NULL : moves_json_error("the plan is too large to be shown");

	if (!x->asked.forgotten)
		x->asked.answered(x->asked.asker, text ? text : why);
}

static void answer_error(struct moves_asker *x, const struct err *e)
{
	auto_free char *text = moves_json_error(e->text);

	if (!x->asked.forgotten)
		x->asked.answered(x->asked.asker, text);
}

static void describe(const struct moves_asker *x, const struct planned *p, const char *pod,
	struct move_nodes *words, struct moves *out)
{
	const struct defrag_plan *plan = &p->plan;

	moves_of_plan(p->topo, plan, words, out);
	out->found = out->found || (!p->pod && !plan->not_preferred_before);
	out->pod = *pod ? pod : NULL;
	out->ms = mover_expected_ms(x->mover, plan->cost.bytes);
	for (unsigned i = 0; i < plan->nr; i++)
		out->at[i].ms = mover_expected_ms(x->mover, plan->move[i].cost.bytes);
}

/* "default/web", or "web" of a file that names no namespace, or nothing. */
static void name_pod(const struct planned *p, char *buf, size_t cap)
{
	struct text t;

	text_init(&t, buf, cap);
	if (p->pod)
		text_add(&t, "%s%s%s", p->pod->ns, *p->pod->ns ? "/" : "", p->pod->name);
}

/* What becomes of a plan */

static void answer_asker(struct moves_asker *x, const struct planned *p, const char *pod)
{
	struct move_nodes words[DEFRAG_MOVES_MAX];
	struct err cannot = {0};
	struct moves m;

	bool may = !x->w.mover.can(x->w.mover.ctx, &cannot);
	if (may && x->w.settings->defrag.mode < DEFRAG_ON_DEMAND)
		(void)err_set(&cannot, EPERM,
			"defragment.mode is %s: it is to be on-demand or auto",
			defrag_mode_words[x->w.settings->defrag.mode]);
	describe(x, p, pod, words, &m);
	m.cannot = cannot.code ? cannot.text : NULL;
	if (x->asked.apply && !x->asked.forgotten && p->plan.nr && !cannot.code) {
		if (mover_make(x->mover, p, pod, &cannot)) {
			answer_error(x, &cannot);
			return;
		}
		(void)mover_show(x->mover, &m);
	}
	answer_moves(x, &m);
}

/* Whether moves may begin that nobody has asked for. */
static bool is_auto(const struct moves_asker *x)
{
	return x->w.settings->defrag.mode == DEFRAG_AUTO &&
	       !x->w.mover.can(x->w.mover.ctx, &(struct err){0});
}

static int plan_for_refused(struct moves_asker *x, const char *record, bool by_itself)
{
	const struct plan_question q = {.record = record,
		.moves = x->w.settings->defrag.moves_per_plan,
		.trials = TRIALS_REFUSED,
		.generation = x->w.mover.generation(x->w.mover.ctx),
		.by_itself = by_itself};
	struct err e;

	x->asked = (struct asked){0};
	x->began_ns = loop_monotonic_ns();
	return planner_ask(x->planner, *x->w.mover.engine, x->w.settings, &q, &e);
}

static void make_by_itself(struct moves_asker *x, const struct planned *p, const char *pod)
{
	char why[sizeof((struct err *)0)->text * 2], name[512];
	struct err e;

	if (!move_uses_allow(mover_uses(x->mover), x->w.settings, loop_monotonic_ns(), p->plan.nr,
		    p->plan.cost.bytes))
		(void)err_set(&e, EAGAIN, "defragment.maxMovesPerHour or maxBytesPerMinute");
	else if (!mover_make(x->mover, p, pod, &e))
		return;
	free(steal(x->seen_uid)); /* when it is refused again the time may have come */
	log_line(LOG_INFO, "moves-wait", "for=%s moves=%u memory=%llu error=%s",
		log_text(name, sizeof name, pod), p->plan.nr,
		(unsigned long long)p->plan.cost.bytes, log_text(why, sizeof why, e.text));
}

static void advise(struct moves_asker *x, const struct planned *p, const char *pod)
{
	char words[WORDS_MAX], said[2 * WORDS_MAX], name[512];
	struct text t;

	text_init(&t, words, sizeof words);
	defrag_print(p->topo, &p->plan, NULL, POD_NAMES_ALL, &t);
	log_line(LOG_INFO, "moves-would-help", "for=%s text=%s action=\"numafit defrag\"",
		log_text(name, sizeof name, pod), log_text(said, sizeof said, words));
	text_init(&t, words, sizeof words);
	defrag_print(p->topo, &p->plan, p->pod, x->w.settings->pod_names, &t);
	x->w.advise(x->w.mover.ctx, p->pod, words);
}

/* Refused pods may come by the hundred in a second, each with a plan that takes a processor. */
static void rest(struct moves_asker *x)
{
	const uint64_t took_ms = (loop_monotonic_ns() - x->began_ns) / NS_PER_MS;

	x->rests = true;
	loop_timer_set(x->rest, number_max(REST_TIMES * took_ms, REST_MS_MIN));
}

static void use_for_refused(struct moves_asker *x, const struct planned *p, const char *pod)
{
	const bool helps = !p->error.code && p->plan.found && p->plan.nr;

	if (helps)
		advise(x, p, pod);
	if (helps && p->question->by_itself && is_auto(x))
		make_by_itself(x, p, pod);
	rest(x);
	if (!helps && p->question->by_itself && !p->error.code) /* others could be moved */
		(void)plan_for_refused(x, p->question->record, false);
}

/* Questions */

static int plan_for_asker(struct moves_asker *x, const char *rest, struct err *e)
{
	const char *record = strchr(rest, ' ');
	const size_t len = record ? (size_t)(record - rest) : strlen(rest);
	struct plan_question q = {.record = record ? record + 1 : NULL, .trials = TRIALS_ASKED};
	uint64_t moves;
	int rc = text_u64(rest, len, DEFRAG_MOVES_MAX, &moves, e);

	q.moves = (unsigned)moves;
	q.generation = x->w.mover.generation(x->w.mover.ctx);
	return rc ? rc : planner_ask(x->planner, *x->w.mover.engine, x->w.settings, &q, e);
}

static void ask_waiting(struct moves_asker *x)
{
	auto_free char *text = steal(x->waiting.text);
	struct err e;

	x->asked = x->waiting;
	x->waiting = (struct asked){0};
	if (!x->asked.forgotten && plan_for_asker(x, text, &e))
		answer_error(x, &e);
}

static void on_planned(void *ctx, const struct planned *p)
{
	struct moves_asker *x = ctx;
	char pod[512];

	name_pod(p, pod, sizeof pod);
	if (!x->asked.asker)
		use_for_refused(x, p, pod);
	else if (p->error.code)
		answer_error(x, &p->error);
	else
		answer_asker(x, p, pod);
	if (x->waiting.text && !planner_is_busy(x->planner))
		ask_waiting(x);
}

int moves_ask(struct moves_asker *x, const char *question,
	void (*answered)(void *asker, const char *document), void *asker, struct err *e)
{
	const char *plan = text_behind(question, "plan "), *apply = text_behind(question, "apply ");
	struct moves m = {0};

	if (text_equal(question, "show")) {
		if (!mover_show(x->mover, &m))
			return err_set(e, ENOENT, "no container was moved since numafitd started");
		auto_free char *text = moves_json_format(&m);
		answered(asker, text);
		return 0;
	}
	if (!plan && !apply)
		return err_set(e, EINVAL, "ask: defrag show, plan N or apply N");
	const struct asked asked = {.asker = asker, .answered = answered, .apply = apply};
	const char *rest = plan ? plan : apply;
	if (!planner_is_busy(x->planner)) {
		x->asked = asked;
		return plan_for_asker(x, rest, e);
	}
	if ((x->asked.asker && !x->asked.forgotten) || (x->waiting.text && !x->waiting.forgotten))
		return err_set(e, EAGAIN, "another plan is being made: ask again");
	free(x->waiting.text);
	x->waiting = asked;
	x->waiting.text = xstrdup(rest);
	return 0;
}

void moves_forget(struct moves_asker *x, const void *asker)
{
	x->asked.forgotten = x->asked.forgotten || x->asked.asker == asker;
	x->waiting.forgotten = x->waiting.forgotten || x->waiting.asker == asker;
}

/* Refusals */

void moves_note_refused(struct moves_asker *x, const struct admit_question *q)
{
	static char line[JOURNAL_LINE_MAX];
	const struct pod *pod = q->container ? &q->container->pod : q->pod;
	const struct ledger *l = engine_ledger(*x->w.mover.engine);
	const uint64_t generation = x->w.mover.generation(x->w.mover.ctx);

	if (x->w.settings->defrag.mode == DEFRAG_OFF || mover_is_busy(x->mover))
		return;
	if (x->seen_uid && text_equal(x->seen_uid, pod->uid) && x->seen_generation == generation)
		return;
	if (journal_json_refused(
		    q->container, pod, &ledger_view(l)->topo->ids, line, sizeof line, NULL) < 0)
		return;
	free(x->seen_uid);
	x->seen_uid = xstrdup(pod->uid);
	x->seen_generation = generation;
	if (!x->rests && !planner_is_busy(x->planner)) {
		(void)plan_for_refused(x, line, is_auto(x));
		return;
	}
	free(x->next);
	x->next = xstrdup(line);
	if (x->rests)
		return;
	x->rests = true; /* somebody else's plan is being made */
	loop_timer_set(x->rest, REST_MS_MIN);
}

static void on_rested(void *ctx)
{
	struct moves_asker *x = ctx;
	auto_free char *record = NULL;

	if (planner_is_busy(x->planner)) {
		loop_timer_set(x->rest, REST_MS_MIN);
		return;
	}
	x->rests = false;
	record = steal(x->next);
	if (record && x->w.settings->defrag.mode != DEFRAG_OFF && !mover_is_busy(x->mover))
		(void)plan_for_refused(x, record, is_auto(x));
}

struct moves_asker *moves_new(const struct moves_world *w)
{
	struct moves_asker *x = xcalloc(1, sizeof *x);

	x->w = *w;
	x->mover = mover_new(&w->mover);
	x->planner = planner_new(w->mover.loop, w->mover.memory, on_planned, x);
	x->rest = loop_timer_new(w->mover.loop, on_rested, x);
	return x;
}

struct mover *moves_mover(struct moves_asker *x)
{
	return x->mover;
}

void moves_free(struct moves_asker *x)
{
	if (!x)
		return;
	mover_free(x->mover);
	planner_free(x->planner);
	loop_timer_close(x->rest);
	free(x->waiting.text);
	free(x->next);
	free(x->seen_uid);
	free(x);
}
