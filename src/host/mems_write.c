#include <host/mems_write.h>

#include <io/fault.h>
#include <io/file.h>
#include <io/inbox.h>
#include <io/thread.h>
#include <numafit/mem.h>
#include <numafit/text.h>

#include <errno.h>
#include <string.h>

enum { MEMS_TEXT_MAX = NODESET_TEXT_MAX };

/* One write: the thread's, and the loop's again once it is in the inbox. */
struct job {
	char path[2 * CGROUP_PATH_MAX], mems[MEMS_TEXT_MAX];
	struct mems_written result;
	pthread_mutex_t lock; /* of what is below */
	struct inbox *to;     /* NULL: nobody waits for it any more, and the thread frees it */
	bool handed_over;     /* it is in the inbox, or was */
};

struct mems_write {
	struct inbox *inbox;
	struct job *job;  /* NULL: none is under way */
	pthread_t thread; /* of the job */
	void (*done)(void *ctx, const struct mems_written *w);
	void *ctx;
};

static void free_job(struct job *job)
{
	(void)pthread_mutex_destroy(&job->lock);
	free(job);
}

/* Give the job to the loop, within the lock, so that the inbox is there; or free it. The inbox has
 * room: there is one job at a time. */
static void hand_over(struct job *job)
{
	(void)pthread_mutex_lock(&job->lock);
	job->handed_over = job->to != NULL;
	if (job->handed_over)
		inbox_put(job->to, job, 0);
	bool is_ours = !job->handed_over;
	(void)pthread_mutex_unlock(&job->lock);
	if (is_ours)
		free_job(job);
}

/* The pages are copied by a worker of the kernel's, which has another nice value. */
static void *write_mems(void *arg)
{
	struct job *job = arg;

	thread_goes_last();
	uint64_t began = loop_monotonic_ns();
	fault_point(FAULT_TO_WRITE_MEMS);
	job->result.rc = file_set(job->path, job->mems, &job->result.error);
	fault_move_pages();
	fault_point(FAULT_MEMS_WRITTEN);
	job->result.ns = loop_monotonic_ns() - began;
	hand_over(job);
	return NULL;
}

static void on_job_done(void *ctx, void *what, int value)
{
	struct mems_write *w = ctx;
	struct job *job = what;

	(void)value;
	(void)pthread_join(w->thread, NULL);
	fault_point(FAULT_CGROUP_WRITTEN);
	struct mems_written result = job->result;
	w->job = NULL;
	free_job(job);
	w->done(w->ctx, &result);
}

struct mems_write *mems_write_new(
	struct loop *l, void (*done)(void *ctx, const struct mems_written *w), void *ctx)
{
	struct mems_write *w = xcalloc(1, sizeof *w);

	w->inbox = inbox_new(l, 1, on_job_done, w);
	w->done = done;
	w->ctx = ctx;
	return w;
}

/* The kernel's write cannot be interrupted: the thread goes on, and keeps the job. */
static void abandon(struct mems_write *w)
{
	struct job *job = w->job;

	(void)pthread_mutex_lock(&job->lock);
	bool handed_over = job->handed_over;
	job->to = NULL;
	(void)pthread_mutex_unlock(&job->lock);
	if (!handed_over) {
		(void)pthread_detach(w->thread);
		return;
	}
	(void)pthread_join(w->thread, NULL);
	free_job(job);
}

void mems_write_free(struct mems_write *w)
{
	if (!w)
		return;
	if (w->job)
		abandon(w);
	inbox_close(w->inbox);
	free(w);
}

static struct job *new_job(struct inbox *to, const struct cgroup_tree *cpuset,
	const char *directory, const char *mems, struct err *e)
{
	struct job *job = xcalloc(1, sizeof *job);
	int rc = cgroup_file_path(cpuset, directory, "cpuset.mems", job->path, sizeof job->path, e);

	if (!rc && !text_copy(job->mems, sizeof job->mems, mems))
		rc = err_set(e, ENAMETOOLONG, "\"%.64s...\": the list is too long", mems);
	if (rc) {
		free(job);
		return NULL;
	}
	(void)pthread_mutex_init(&job->lock, NULL);
	job->to = to;
	return job;
}

int mems_write_start(struct mems_write *w, const struct cgroup_tree *cpuset, const char *directory,
	const char *mems, struct err *e)
{
	struct err error = {0};

	if (w->job)
		return err_set(e, EAGAIN, "memory of another container is being moved");
	w->job = new_job(w->inbox, cpuset, directory, mems, &error);
	if (!w->job) {
		if (e)
			*e = error;
		return -error.code;
	}
	fault_point(FAULT_TO_WRITE_CGROUP);
	int rc = thread_start(&w->thread, write_mems, w->job, e);
	if (rc)
		free_job(steal(w->job));
	return rc;
}

bool mems_write_is_busy(const struct mems_write *w)
{
	return w->job != NULL;
}
