#ifndef NUMAFIT_IO_THREAD_H
#define NUMAFIT_IO_THREAD_H

#include <numafit/err.h>
#include <pthread.h>

/* A thread for one job that takes long: what comes of it goes to the loop through an inbox
 * (io/inbox.h), and nothing else is shared. */

/* Start it with all signals blocked, as they are the loop's. 0; or -errno with text. */
int thread_start(pthread_t *thread, void *(*run)(void *job), void *job, struct err *e);

/* On that thread: containers, and the loop, go first. (On Linux a thread has a nice value of its
 * own.)
 */
void thread_goes_last(void);

#endif
