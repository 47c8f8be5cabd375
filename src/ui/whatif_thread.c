#include <ui/whatif_thread.h>

#include <io/inbox.h>
#include <io/thread.h>
#include <numafit/mem.h>

#include <errno.h>

enum { MOVE_TRIALS_MAX = 2000 };

/* One question with the node that it is about: nothing of it is the loop's until it is answered. */
struct whatif_job {
	struct topo topo;
	struct settings settings;
	struct engine *engine;
	struct ui_question question;
	int64_t now_ms;
	char *answer;
	struct err error;
	struct inbox *to;
};

struct whatif_thread {
	struct inbox *inbox;
	pthread_t thread;
	struct whatif_job *job; /* NULL: none is being answered */
	void (*answered)(void *ctx, char *answer, const struct err *e);
	void *ctx;
};

static void free_job(struct whatif_job *job)
{
	engine_free(job->engine);
	free(job);
}

static void *answer_job(void *arg)
{
	struct whatif_job *job = arg;
	const struct ui_node node = {engine_ledger(job->engine), &job->settings, job->now_ms,
		MERGE_VISIT_BUDGET_MAX, job->engine, MOVE_TRIALS_MAX};

	thread_goes_last();
	job->answer = ui_whatif(&node, &job->question, &job->error);
	inbox_put(job->to, job, 0);
	return NULL;
}

static void on_job_answered(void *ctx, void *what, int value)
{
	struct whatif_thread *w = ctx;
	struct whatif_job *job = what;

	(void)value;
	(void)pthread_join(w->thread, NULL);
	w->job = NULL;
	w->answered(w->ctx, job->answer, &job->error);
	free_job(job);
}

struct whatif_thread *whatif_thread_new(
	struct loop *l, void (*answered)(void *ctx, char *answer, const struct err *e), void *ctx)
{
	struct whatif_thread *w = xcalloc(1, sizeof *w);

	w->inbox = inbox_new(l, 1, on_job_answered, w);
	w->answered = answered;
	w->ctx = ctx;
	return w;
}

void whatif_thread_free(struct whatif_thread *w)
{
	if (!w)
		return;
	if (w->job) {
		(void)pthread_join(w->thread, NULL);
		free(w->job->answer);
		free_job(w->job);
	}
	inbox_close(w->inbox);
	free(w);
}

int whatif_thread_ask(struct whatif_thread *w, struct engine *g, const struct settings *s,
	const struct ui_question *q, struct err *e)
{
	const struct ledger *l = engine_ledger(g);

	if (w->job)
		return err_set(e, EAGAIN, "another question is being answered: ask again");
	if (ledger_count(l) > WHATIF_ENTRIES_MAX)
		return err_set(e, E2BIG,
			"more than %d containers are held here: ask numafit whatif",
			WHATIF_ENTRIES_MAX);
	struct whatif_job *job = xcalloc(1, sizeof *job);
	job->topo = *ledger_view(l)->topo;
	job->settings = *s;
	job->question = *q;
	job->now_ms = loop_wall_ms();
	job->to = w->inbox;
	job->engine = engine_copy(g, &job->topo, &job->settings, e);
	if (!job->engine) {
		free(job);
		return -e->code;
	}
	w->job = job;
	int rc = thread_start(&w->thread, answer_job, job, e);
	if (rc)
		free_job(steal(w->job));
	return rc;
}
