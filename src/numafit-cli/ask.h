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

#endif
