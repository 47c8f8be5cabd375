#ifndef NUMAFIT_CLI_ASK_H
#define NUMAFIT_CLI_ASK_H

#include <numafit/err.h>
#include <stddef.h>

/* One question to the daemon on its socket: send the word and a newline, read until it closes.
 * The answer (NUL terminated; the caller frees) into *answer and its length into *len.
 * 0; -ETIMEDOUT: the daemon is silent; -ENODATA: it hung up; -EMSGSIZE: no end; -errno of the
 * socket. */
int ask_daemon(
	const char *socket_path, const char *word, char **answer, size_t *len, struct err *e);

/* The same for an answer that may take so many seconds. */
int ask_daemon_patiently(const char *socket_path, const char *word, unsigned seconds, char **answer,
	size_t *len, struct err *e);

/* The same in steps, for a caller that waits for several things. */
struct question {
	const char *path; /* borrowed */
	int fd;           /* readable when there is something to take; -1: nothing is asked */
	char *answer;
	size_t len;
	unsigned patience_s; /* for each read, in seconds */
};
/* Connect and ask. 0, or as above; the question is closed then. */
int question_ask(struct question *q, const char *socket_path, const char *word, struct err *e);
/* Take what has come. 0: the answer is there as a whole; 1: more is to come; or as ask_daemon().
 * The caller closes the question in any case. */
int question_take(struct question *q, struct err *e);
/* Close it; what has come of the answer is freed. */
void question_close(struct question *q);

#endif
