#include <numafit-cli/history.h>

#include <numafit-cli/again.h>
#include <codec/refusal_line.h>
#include <numafit-cli/whatif_moves.h>
#include <numafit-cli/wording.h>

#include <errno.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <string.h>

enum { STEPS_PER_TRIAL = 1 << 12 }; /* a trial of a plan of moves takes longer than a step */
enum { ID_LEAST = 4, MOVED_SHOWN = 8, MOVED_TEXT_MAX = 4 << 10, MOVES_SHOWN_MAX = 4 << 10 };

/* The container or pod that a record is about. */
struct subject {
	const char *uid, *ns, *pod, *container, *container_id, *sandbox_id;
};

int query_parse(struct query *q, const char *text, struct err *e)
{
	char *rest, *part;

	*q = (struct query){.text = xstrdup(text)};
	for (part = strtok_r(q->text, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
		if (q->nr == sizeof q->part / sizeof *q->part)
			return err_set(e, EINVAL,
				"\"%.64s\" has more parts than "
				"NAMESPACE/POD/CONTAINER",
				text);
		q->part[q->nr++] = part;
	}
	return q->nr ? 0 : err_set(e, EINVAL, "\"%.64s\" names no container", text);
}

void query_fini(struct query *q)
{
	free(q->text);
}

static bool begins(const char *id, const char *with)
{
	size_t len = strlen(with);

	return len >= ID_LEAST && strncmp(id, with, len) == 0;
}

static bool is_pod(const struct query *q, const char *name, const struct subject *s)
{
	size_t len = strlen(name);

	return text_equal(name, s->pod) || text_equal(name, s->uid) ||
	       (q->loose && strncmp(s->pod, name, len) == 0 && s->pod[len] == '-');
}

static bool suits(const struct query *q, const struct subject *s)
{
	char *const *p = q->part;

	if (q->ns && !text_equal(q->ns, s->ns))
		return false;
	if (q->nr == 1)
		return is_pod(q, p[0], s) || text_equal(p[0], s->container) ||
		       begins(s->container_id, p[0]) || begins(s->sandbox_id, p[0]);
	if (q->nr == 2)
		return (is_pod(q, p[0], s) && text_equal(p[1], s->container)) ||
		       (text_equal(p[0], s->ns) && is_pod(q, p[1], s));
	return text_equal(p[0], s->ns) && is_pod(q, p[1], s) && text_equal(p[2], s->container);
}

static struct subject subject_of(const struct request *req, const char *container_id)
{
	return (struct subject){req->pod.uid, req->pod.ns, req->pod.name, req->ask.name,
		container_id, req->pod.sandbox_id};
}

static struct story *story_of(struct history *h, const struct subject *s)
{
	for (size_t i = 0; i < h->stories.nr; i++) {
		struct story *one = &h->stories.at[i];

		if (text_equal(one->uid, s->uid) && text_equal(one->ns, s->ns) &&
			text_equal(one->pod, s->pod) && text_equal(one->container, s->container))
			return one;
	}
	struct story *one = vec_push(&h->stories);

	one->uid = xstrdup(s->uid);
	one->ns = xstrdup(s->ns);
	one->pod = xstrdup(s->pod);
	one->container = xstrdup(s->container);
	return one;
}

/* The containers that run in the shared pool and must follow it. */
static void list_moved(const struct ledger *l, const char *but_id, struct moment *m)
{
	char names[MOVED_TEXT_MAX];
	struct text t;

	text_init(&t, names, sizeof names);
	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		if (h->decision.exclusive || h->state == HOLDING_WAITING ||
			text_equal(h->request.container_id, but_id))
			continue;
		if (m->nr_moved++ < MOVED_SHOWN)
			text_add(&t, "%s%s/%s/%s", t.len ? ", " : "", h->request.pod.ns,
				h->request.pod.name, h->request.ask.name);
	}
	if (m->nr_moved > MOVED_SHOWN)
		text_add(&t, " and %u more", m->nr_moved - MOVED_SHOWN);
	m->moved = m->nr_moved ? xstrdup(names) : NULL;
}

static void add_moment_if_asked(struct history *h, const struct journal_fold *f,
	const struct record *r, const char *line, const struct subject *s, size_t part)
{
	const struct ledger *l = engine_ledger(f->engine);
	bool has_line = r->op != RECORD_RELEASE && r->op != RECORD_LIVE;
	size_t nr = h->lines.nr;

	if (h->query && !suits(h->query, s))
		return;
	if (h->names_only) {
		(void)story_of(h, s);
		return;
	}
	/* the lines last as long as the history; the parts of a record share one */
	if (has_line && (!part || !nr || !text_equal(h->lines.at[nr - 1], line)))
		*vec_push(&h->lines) = xstrdup(line);
	struct moment *m = vec_push(&story_of(h, s)->moments);
	*m = (struct moment){
		.f = f,
		.op = r->op,
		.seq = r->seq,
		.time_ms = r->time_ms,
		.cause = xstrdup(r->cause),
		.container_id = xstrdup(s->container_id),
		.line = has_line ? h->lines.at[h->lines.nr - 1] : NULL,
		.part = part,
		.pool_before = ledger_view(l)->pool,
		.pool = r->pool,
	};
	/* no container was updated for what a journal starts with */
	if (!cpuset_equal(&m->pool_before, &m->pool) && !text_equal(r->cause, "snapshot"))
		list_moved(l, s->container_id, m);
}

int history_add(void *ctx, const struct journal_fold *f, const struct record *r, const char *line,
	struct err *e)
{
	struct history *h = ctx;
	const struct holding *held;
	struct subject s;

	(void)e;
	for (size_t i = 0; i < r->nr_parts; i++) {
		s = subject_of(&r->parts[i].request, "");
		s.sandbox_id = r->container_id;
		add_moment_if_asked(h, f, r, line, &s, i);
	}
	if (r->request) {
		s = subject_of(r->request, r->container_id);
		add_moment_if_asked(h, f, r, line, &s, 0);
		return 0;
	}
	held = ledger_find(engine_ledger(f->engine), r->container_id);
	if (held && r->op != RECORD_HOLD) {
		const struct request was = held->request;

		s = subject_of(&was, r->container_id);
		add_moment_if_asked(h, f, r, line, &s, 0);
	}
	return 0;
}

/* wording_print_refusal() into a text for the caller to free. */
static char *words_of_refusal(const struct journal_fold *f, const struct admit_question *q,
	const struct decision *d, const struct diagnosis *why, const struct whatif_moves *plan)
{
	char moves[MOVES_SHOWN_MAX];
	struct text t;
	struct scene into = {.t = &f->topo, .s = &f->settings};
	char *words = NULL;
	size_t len = 0;

	into.to = open_memstream(&words, &len);
	if (!into.to)
		return NULL;
	wording_print_refusal(&into, d, why, q);
	text_init(&t, moves, sizeof moves);
	defrag_print(&f->topo, &plan->plan, NULL, POD_NAMES_ALL, &t);
	if (plan->plan.nr)
		wording_print(into.to, "moves", "Fits after %s.", moves);
	(void)fclose(into.to);
	return words;
}

/* Those that would have made room then, with the settings of then, by as many trials as the budget
 * has steps for. */
static void plan_moves_of_then(struct explainer *x, const struct journal_fold *f,
	const struct admit_question *q, struct whatif_moves *plan, struct diagnosis *why)
{
	const uint64_t trials =
		number_min(remedies_budget_may(&x->budget) / STEPS_PER_TRIAL, WHATIF_TRIALS_MAX);
	struct pod one = {0};

	if (q->container) {
		one = q->container->pod;
		one.container = &q->container->ask;
		one.nr = 1;
	}
	if (f->settings.defrag.mode == DEFRAG_OFF)
		return;
	if (trials)
		(void)whatif_plan_moves(f, &f->settings, q->container ? &one : q->pod,
			f->settings.defrag.moves_per_plan, trials, plan, NULL);
	remedies_budget_spend(&x->budget, plan->plan.trials * STEPS_PER_TRIAL);
	if (trials < WHATIF_TRIALS_MAX && (!trials || plan->plan.cut))
		why->remedies_left_out = true;
}

static char *members_of_refusal(const struct admit_question *q, const struct decision *d,
	const struct diagnosis *why, const struct whatif_moves *plan)
{
	auto_free char *members = refusal_members(q, d, why);
	auto_free char *moves = plan->plan.nr ? moves_json_format(&plan->moves) : NULL;

	return members && moves ? refusal_line_join(members, moves) : steal(members);
}

/* The record's refusal explained, for the caller to free. NULL: there is no more than its record
 * says, as deciding again admits it. */
static char *explain_refusal(
	struct explainer *x, const struct journal_fold *f, const struct record *r)
{
	auto_free void *work = xcalloc(1, ADMIT_ARENA_BYTES);
	auto_free struct whatif_moves *plan = xcalloc(1, sizeof *plan);
	struct refusal_again again;
	struct diagnosis why;
	struct arena a;

	arena_init_fixed(&a, work, ADMIT_ARENA_BYTES);
	if (!refusal_decide_again(f, r, &a, &again))
		return x->as_members ? refusal_members_recorded(r->decision) : NULL;
	const struct decision *d = &again.answer.decision;
	diagnose_with_remedies(&again.question, d, REMEDIES_THOROUGHLY, &x->budget, &why);
	plan_moves_of_then(x, f, &again.question, plan, &why);
	return x->as_members ? members_of_refusal(&again.question, d, &why, plan)
			     : words_of_refusal(f, &again.question, d, &why, plan);
}

int history_explain(void *ctx, const struct journal_fold *f, const struct record *r,
	const char *line, struct err *e)
{
	struct explainer *x = ctx;

	(void)line;
	(void)e;
	for (size_t i = 0; r->op == RECORD_REFUSE && i < x->h->stories.nr; i++)
		for (size_t k = 0; k < x->h->stories.at[i].moments.nr; k++) {
			struct moment *m = &x->h->stories.at[i].moments.at[k];

			if (m->is_to_be_explained && m->f == x->f && m->seq == r->seq &&
				!m->refusal)
				m->refusal = explain_refusal(x, f, r);
		}
	return 0;
}

void history_fini(struct history *h)
{
	for (size_t i = 0; i < h->stories.nr; i++) {
		struct story *one = &h->stories.at[i];

		for (size_t k = 0; k < one->moments.nr; k++) {
			struct moment *m = &one->moments.at[k];

			free(m->cause);
			free(m->container_id);
			free(m->moved);
			free(m->refusal);
		}
		vec_fini(&one->moments);
		free(one->uid);
		free(one->ns);
		free(one->pod);
		free(one->container);
	}
	vec_fini(&h->stories);
	for (size_t i = 0; i < h->lines.nr; i++)
		free(h->lines.at[i]);
	vec_fini(&h->lines);
}
