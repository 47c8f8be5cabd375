#include <io/thread.h>

#include <signal.h>
#include <string.h>
#include <sys/resource.h>

enum { NICE_LEAST = 19 };

int thread_start(pthread_t *thread, void *(*run)(void *job), void *job, struct err *e)
{
	sigset_t all, before;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before);
	int rc = pthread_create(thread, NULL, run, job);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc ? err_set(e, rc, "no thread can be started: %s", strerror(rc)) : 0;
}

void thread_goes_last(void)
{
	(void)setpriority(PRIO_PROCESS, 0, NICE_LEAST);
}
