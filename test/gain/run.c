#include "run.h"

#include "loads.h"

#include <errno.h>
#include <numafit/number.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_NS = 10 * NS_PER_MS, SLOWEST_S = 120, BULLIES_OF_CPU = 2 };

static volatile sig_atomic_t stopped;

static void note_signal(int number)
{
	stopped = number;
}

int run_stopped(void)
{
	return stopped;
}

void run_watch_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	const struct sigaction action = {.sa_handler = note_signal};

	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		(void)sigaction(signals[i], &action, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

static void become_child(pid_t parent)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		(void)signal(signals[i], SIG_DFL);
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

pid_t run_start(struct run *r, const struct arm *arm, bool pool, void (*main)(void *arg), void *arg)
{
	pid_t parent = getpid();
	struct err e;

	(void)fflush(NULL);
	pid_t pid = fork();
	if (pid)
		return pid > 0 ? pid : -errno;
	become_child(parent);
	if (place_enter(r->place, arm, pool, &e)) {
		(void)snprintf(r->shared->why, sizeof r->shared->why, "%.200s", e.text);
		_exit(1);
	}
	main(arg);
	_exit(0);
}

void run_kill(pid_t pid)
{
	if (pid <= 0)
		return;
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

int run_wait(pid_t pid, double seconds, void (*while_waiting)(void *arg), void *arg)
{
	const struct timespec moment = {.tv_nsec = WAIT_NS};
	int status, rc;

	for (double waited = 0; !stopped && waited < seconds;
		waited += (double)WAIT_NS / NS_PER_S) {
		rc = waitpid(pid, &status, WNOHANG);
		if (rc == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
		if (while_waiting)
			while_waiting(arg);
		(void)nanosleep(&moment, NULL);
	}
	run_kill(pid);
	return stopped ? -EINTR : -ETIMEDOUT;
}

struct started {
	void (*load)(const struct job *job);
	struct job job;
};

static void run_started(void *arg)
{
	const struct started *s = arg;

	s->load(&s->job);
}

static void measure_here(struct run *r, enum load_id load, const struct arm *arm)
{
	static void (*const loads[NR_LOADS])(const struct job *) = {
		[LOAD_TRIAD] = load_triad, [LOAD_CHASE] = load_chase, [LOAD_LOOP] = load_loop};
	struct gain *g = r->g;
	unsigned others = g->topo->nr_cpus - g->ask_cpus - g->held_cpus;
	struct started s = {loads[load], {g->topo, g->ask_cpus, g->bytes, g->seconds, r->shared}};
	struct started bully = {load_bully, {.threads = others * BULLIES_OF_CPU}};
	pid_t beside = 0;

	if (load == LOAD_LOOP)
		beside = run_start(r, arm, true, run_started, &bully);
	pid_t pid = run_start(r, arm, false, run_started, &s);
	int rc = pid > 0 ? run_wait(pid, g->seconds + SLOWEST_S, NULL, NULL) : (int)pid;

	run_kill(beside);
	if (rc && !r->shared->why[0])
		(void)snprintf(r->shared->why, sizeof r->shared->why, "%s",
			rc < 0 ? strerror(-rc) : "it failed");
}

void run_measure(struct run *r, enum load_id load, const struct arm *arm)
{
	struct err e;

	memset(r->shared, 0, sizeof *r->shared);
	if (place_set(r->place, r->g, arm, &e))
		(void)snprintf(r->shared->why, sizeof r->shared->why, "%.200s", e.text);
	else if (load == LOAD_REDIS)
		redis_measure(r, arm);
	else
		measure_here(r, load, arm);
}
