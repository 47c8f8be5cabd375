#include <mover/planner.h>

#include <codec/journal_json.h>
#include <host/cgroup_memory.h>
#include <io/inbox.h>
#include <io/thread.h>
#include <numafit/cgroup_path.h>
#include <numafit/ledger.h>
#include <numafit/mem.h>

#include <errno.h>
#include <string.h>

enum { RECORD_BYTES_MAX = 4 << 20 };

/* One question with the node that it is about: nothing of it is the loop's until it is answered. */
struct plan_job {
	struct topo topo;
	struct settings settings;
	struct engine *engine;
	struct plan_question question;
	const struct cgroup_tree *memory;
	int64_t now_ms;
	struct arena arena;
	struct decoded_record record;
	struct pod pod; /* of a record that is a container's */
	struct defrag_figure *figures;
	struct planned answer;
	struct inbox *to;
};

struct planner {
	struct loop *loop;
	const struct cgroup_tree *memory;
	struct inbox *inbox;
	pthread_t thread;
	struct plan_job *job; /* NULL: none is at work */
	void (*planned)(void *ctx, const struct planned *p);
	void *ctx;
};

static void free_job(struct plan_job *job)
{
	free((void *)(uintptr_t)job->question.record); /* ours since planner_ask() */
	free(job->figures);
	arena_fini(&job->arena);
	engine_free(job->engine);
	free(job);
}

/* What the move of the container would copy. False: it has huge pages, which would take those of
 * others along. */
static bool figure_of(const struct plan_job *job, const struct holding *h, uint64_t *bytes)
{
	char path[CGROUP_PATH_MAX];
	struct cgroup_memory memory;

	*bytes = decision_booked_bytes(&h->decision);
	if (!h->decision.nr_blocks) /* it is not pinned, and stays where it is */
		return true;
	if (!job->memory || !h->request.cgroup ||
		cgroup_path(h->request.cgroup, path, sizeof path, NULL) ||
		cgroup_memory_read(job->memory, path, &job->topo, &memory, NULL))
		return true;
	const struct cgroup_memory_sum sum = cgroup_memory_on(&memory, h->decision.mems);
	*bytes = sum.moves;
	return !sum.huge;
}

/* In the ledger's order, which is that of ids. */
static void list_figures(struct plan_job *job)
{
	const struct ledger *l = engine_ledger(job->engine);

	job->figures = xcalloc(ledger_count(l) + 1, sizeof *job->figures);
	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);
		uint64_t bytes;

		if (!ledger_is_moving(l, h->request.container_id) &&
			defrag_may_move(h, &job->settings, job->now_ms, job->question.by_itself) &&
			figure_of(job, h, &bytes))
			job->figures[job->answer.nr_figures++] =
				(struct defrag_figure){h->request.container_id, bytes};
	}
	job->answer.figures = job->figures;
}

/* A container that is refused by itself is a pod of its own here: what its pod has already stays.
 */
static int read_pod(struct plan_job *job, struct err *e)
{
	const char *text = job->question.record;

	if (!text)
		return 0;
	int rc = journal_json_parse(
		text, strlen(text), &job->topo.ids, &job->arena, &job->record, e);
	if (rc)
		return rc;
	const struct record *r = &job->record.record;
	if (r->pod) {
		job->answer.pod = r->pod;
		return 0;
	}
	if (!r->request)
		return err_set(e, EINVAL, "no pod is asked about");
	job->pod = r->request->pod;
	job->pod.container = &r->request->ask;
	job->pod.nr = 1;
	job->answer.pod = &job->pod;
	return 0;
}

static void *make_plan(void *arg)
{
	struct plan_job *job = arg;
	struct planned *a = &job->answer;

	thread_goes_last();
	arena_init(&job->arena, RECORD_BYTES_MAX);
	if (!read_pod(job, &a->error)) {
		list_figures(job);
		const struct defrag_question q = {.engine = job->engine,
			.topo = &job->topo,
			.settings = &job->settings,
			.pod = a->pod,
			.moves = job->question.moves,
			.trials = job->question.trials,
			.figures = job->figures,
			.nr_figures = a->nr_figures};
		(void)defrag_plan(&q, &a->plan, &a->error);
	}
	inbox_put(job->to, job, 0);
	return NULL;
}

static void on_plan_made(void *ctx, void *what, int value)
{
	struct planner *p = ctx;
	struct plan_job *job = what;

	(void)value;
	(void)pthread_join(p->thread, NULL);
	p->job = NULL;
	p->planned(p->ctx, &job->answer);
	free_job(job);
}

struct planner *planner_new(struct loop *l, const struct cgroup_tree *memory,
	void (*planned)(void *ctx, const struct planned *p), void *ctx)
{
	struct planner *p = xcalloc(1, sizeof *p);

	p->memory = memory;
	p->inbox = inbox_new(l, 1, on_plan_made, p);
	p->planned = planned;
	p->ctx = ctx;
	return p;
}

void planner_free(struct planner *p)
{
	if (!p)
		return;
	if (p->job) {
		(void)pthread_join(p->thread, NULL);
		free_job(p->job);
	}
	inbox_close(p->inbox);
	free(p);
}

bool planner_is_busy(const struct planner *p)
{
	return p->job != NULL;
}

int planner_ask(struct planner *p, struct engine *g, const struct settings *s,
	const struct plan_question *q, struct err *e)
{
	const struct ledger *l = engine_ledger(g);

	if (p->job)
		return err_set(e, EAGAIN, "another plan is being made: ask again");
	if (ledger_count(l) > PLANNER_ENTRIES_MAX)
		return err_set(
			e, E2BIG, "more than %d containers are held here", PLANNER_ENTRIES_MAX);
	struct plan_job *job = xcalloc(1, sizeof *job);
	job->topo = *ledger_view(l)->topo;
	job->settings = *s;
	job->question = *q;
	job->question.record = q->record ? xstrdup(q->record) : NULL;
	job->memory = p->memory;
	job->now_ms = loop_wall_ms();
	job->to = p->inbox;
	job->answer.question = &job->question;
	job->answer.topo = &job->topo;
	job->engine = engine_copy(g, &job->topo, &job->settings, e);
	p->job = job;
	int rc = job->engine ? thread_start(&p->thread, make_plan, job, e) : -e->code;
	if (rc)
		free_job(steal(p->job));
	return rc;
}
