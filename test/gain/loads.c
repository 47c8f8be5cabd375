#include "loads.h"

#include "pages.h"

#include <errno.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 64, ARRAYS = 3, STEPS_AT_ONCE = 4096, WINDOWS_PER_S = 1000 };
enum {
	BULLY_WORKS_US = 3000,
	BULLY_SLEEPS_US = 1000,
	HELPER_WORKS_US = 200,
	HELPER_SLEEPS_US = 5000,
	NS_WINDOW = NS_PER_S / WINDOWS_PER_S
};

/* One thread of a load, and what all of them share. */
struct team {
	const struct job *job;
	unsigned threads; /* those of the job, and a helper: loop */
	pthread_barrier_t barrier;
	char *memory;
	uint64_t lines; /* of memory, a power of two: chase */
	float *windows; /* loop: a row of nr_windows for each thread */
	size_t nr_windows;
};
struct member {
	struct team *team;
	unsigned number;
	pthread_t thread;
	double rate; /* bytes or steps in a second */
	double remote;
	bool has_remote;
	uint64_t seen[NODES_MAX];
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void see_cpu(struct member *m)
{
	unsigned node = node_of_cpu(m->team->job->topo, sched_getcpu());

	if (node < NODES_MAX)
		m->seen[node]++;
}

/* Runs the threads; their starts are not waited for longer than the slowest one takes. */
static bool run_team(struct team *t, void *(*run)(void *), struct member *members)
{
	unsigned threads = t->threads;

	(void)pthread_barrier_init(&t->barrier, NULL, threads);
	for (unsigned i = 0; i < threads; i++) {
		members[i].team = t, members[i].number = i;
		int rc = pthread_create(&members[i].thread, NULL, run, &members[i]);
		if (rc) { /* the others wait at the barrier: the process ends, and they do */
			(void)snprintf(
				t->job->out->why, NOTE_TEXT_MAX, "thread %u: %s", i, strerror(rc));
			return false;
		}
	}
	for (unsigned i = 0; i < threads; i++)
		(void)pthread_join(members[i].thread, NULL);
	return true;
}

static char *map_memory(const struct job *job, size_t bytes)
{
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory != MAP_FAILED)
		return memory;
	(void)snprintf(
		job->out->why, NOTE_TEXT_MAX, "%zu bytes of memory: %s", bytes, strerror(errno));
	return NULL;
}

static void note_remote(struct job const *job, const struct member *members)
{
	struct sample *s = job->out;
	unsigned nr = 0;

	for (unsigned i = 0; i < job->threads; i++)
		if (members[i].has_remote) {
			s->remote += members[i].remote;
			nr++;
		}
	s->has_remote = nr > 0;
	if (nr)
		s->remote /= nr;
}

/* Triad (as STREAM's): 24 bytes for each element */

static double *part_of(const struct member *m, size_t *nr)
{
	*nr = m->team->job->bytes / m->team->job->threads / ARRAYS / sizeof(double);
	return (double *)(void *)m->team->memory + (size_t)m->number * *nr * ARRAYS;
}

static void *run_triad(void *arg)
{
	struct member *m = arg;
	size_t nr;
	double *restrict a = part_of(m, &nr), *restrict b = a + nr, *restrict c = b + nr;
	double share[NODES_MAX];
	uint64_t passes = 0, took;

	for (size_t i = 0; i < nr; i++)
		a[i] = 0, b[i] = 1, c[i] = 2;
	(void)pthread_barrier_wait(&m->team->barrier);
	uint64_t from = now_ns();
	do {
		for (size_t i = 0; i < nr; i++)
			a[i] = b[i] + 3 * c[i];
		__asm__ volatile("" : : "r"(a) : "memory");
		see_cpu(m);
		passes++;
		took = now_ns() - from;
	} while ((double)took < m->team->job->seconds * NS_PER_S);
	m->rate = (double)(passes * nr * ARRAYS * sizeof(double)) / (double)took * NS_PER_S;
	m->has_remote = pages_share(m->team->job->topo, a, nr * ARRAYS * sizeof(double), share);
	m->remote = pages_remote(share, m->seen);
	return NULL;
}

void load_triad(const struct job *job)
{
	auto_free struct member *members = xcalloc(job->threads, sizeof *members);
	struct team team = {
		.job = job, .threads = job->threads, .memory = map_memory(job, job->bytes)};

	if (!team.memory || !run_team(&team, run_triad, members))
		return;
	for (unsigned i = 0; i < job->threads; i++)
		job->out->value[0] += members[i].rate / 1e9;
	note_remote(job, members);
	pages_by_maps(job->topo, 0, team.memory, job->out->pages);
	job->out->done = true;
}

/* Chase: lines point to one another in one cycle through all of them. Their order is that of a
 * linear congruential generator with a full period (the multiplier is 1 modulo 4, the increment
 * odd), which no prefetcher follows and all threads can write at the same time. */

static uint64_t next_line(uint64_t line, uint64_t lines)
{
	return (line * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407)) & (lines - 1);
}

static void link_lines(const struct team *t, unsigned number)
{
	uint64_t from = t->lines * number / t->job->threads,
		 to = t->lines * (number + 1) / t->job->threads;

	for (uint64_t i = from; i < to; i++)
		*(void **)(void *)(t->memory + i * LINE_BYTES) =
			t->memory + next_line(i, t->lines) * LINE_BYTES;
}

static void *run_chase(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;
	double share[NODES_MAX];
	uint64_t steps = 0, took;

	link_lines(t, m->number);
	(void)pthread_barrier_wait(&t->barrier);
	void **at =
		(void **)(void *)(t->memory + t->lines * m->number / t->job->threads * LINE_BYTES);
	uint64_t from = now_ns();
	do {
		for (unsigned i = 0; i < STEPS_AT_ONCE; i++)
			at = *at;
		__asm__ volatile("" : : "r"(at) : "memory");
		see_cpu(m);
		steps += STEPS_AT_ONCE;
		took = now_ns() - from;
	} while ((double)took < t->job->seconds * NS_PER_S);
	m->rate = (double)took / (double)steps;
	m->has_remote = pages_share(t->job->topo, t->memory, t->lines * LINE_BYTES, share);
	m->remote = pages_remote(share, m->seen);
	return NULL;
}

void load_chase(const struct job *job)
{
	auto_free struct member *members = xcalloc(job->threads, sizeof *members);
	struct team team = {.job = job, .threads = job->threads, .lines = 1};

	while (team.lines * 2 * LINE_BYTES <= job->bytes)
		team.lines *= 2;
	team.memory = map_memory(job, team.lines * LINE_BYTES);
	if (!team.memory || !run_team(&team, run_chase, members))
		return;
	for (unsigned i = 0; i < job->threads; i++)
		job->out->value[0] += members[i].rate / job->threads;
	note_remote(job, members);
	pages_by_maps(job->topo, 0, team.memory, job->out->pages);
	job->out->done = true;
}

/* Loop: what a thread misses that always wants to run. A gap counts in every millisecond that it
 * touches, so that one of 10 ms is not one value among thousands. Beside one for each CPU there is
 * a helper, as most programs have: without it the container never wants more than its quota. */

static void note_gap(float *windows, size_t nr, uint64_t from, uint64_t to)
{
	float us = (float)(to - from) / NS_PER_US;

	for (uint64_t w = from / NS_WINDOW; w <= to / NS_WINDOW && w < nr; w++)
		if (us > windows[w])
			windows[w] = us;
}

static void run_helper(const struct team *t)
{
	const struct timespec pause = {.tv_nsec = HELPER_SLEEPS_US * (long)NS_PER_US};
	uint64_t end = now_ns() + t->nr_windows * NS_WINDOW;

	while (now_ns() < end) {
		uint64_t until = now_ns() + HELPER_WORKS_US * UINT64_C(1000);

		while (now_ns() < until)
			;
		(void)nanosleep(&pause, NULL);
	}
}

static void *run_loop(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;
	float *windows = t->windows + t->nr_windows * m->number; /* the helper has no row */
	uint64_t end = t->nr_windows * NS_WINDOW, last = 0, now;

	(void)pthread_barrier_wait(&t->barrier);
	if (m->number == t->job->threads) {
		run_helper(t);
		return NULL;
	}
	for (uint64_t from = now_ns(); last < end; last = now) {
		now = now_ns() - from;
		note_gap(windows, t->nr_windows, last, now);
	}
	return NULL;
}

static int float_order(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

void load_loop(const struct job *job)
{
	static const double shares[FIGURES_MAX] = {0.5, 0.99, 0.999, 1};
	auto_free struct member *members = xcalloc(job->threads + 1, sizeof *members);
	struct team team = {.job = job,
		.threads = job->threads + 1,
		.nr_windows = (size_t)(job->seconds * WINDOWS_PER_S) + 1};
	size_t all = team.nr_windows * job->threads;
	auto_free float *windows = xcalloc(all, sizeof *windows);

	memset(windows, 1, all * sizeof *windows); /* they are there before the clock runs */
	memset(windows, 0, all * sizeof *windows);
	team.windows = windows;
	if (!run_team(&team, run_loop, members))
		return;
	qsort(windows, all, sizeof *windows, float_order);
	for (unsigned i = 0; i < FIGURES_MAX; i++)
		job->out->value[i] = rank_of(windows, all, shares[i]);
	job->out->done = true;
}

/* Bully */

static void *run_bully(void *arg)
{
	const struct timespec pause = {.tv_nsec = BULLY_SLEEPS_US * (long)NS_PER_US};

	(void)arg;
	for (;;) {
		uint64_t until = now_ns() + BULLY_WORKS_US * UINT64_C(1000);

		while (now_ns() < until)
			;
		(void)nanosleep(&pause, NULL);
	}
	return NULL;
}

void load_bully(const struct job *job)
{
	pthread_t thread;

	for (unsigned i = 0; i < job->threads; i++)
		(void)pthread_create(&thread, NULL, run_bully, NULL);
	for (;;)
		(void)pause();
}
