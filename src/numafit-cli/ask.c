#include <numafit-cli/ask.h>

#include <codec/status_json.h>
#include <errno.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { TIMEOUT_S = 5, READ_BYTES = 64 << 10, ANSWER_MAX = STATUS_JSON_MAX };

static int socket_error(const char *what, const char *path, unsigned seconds, struct err *e)
{
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINPROGRESS)
		return err_set(
			e, ETIMEDOUT, "numafitd at %s is silent for %u seconds", path, seconds);
	return err_set(e, errno, "%s %s: %s", what, path, strerror(errno));
}

static int connect_to_daemon(const char *path, struct err *e)
{
	const struct timeval timeout = {.tv_sec = TIMEOUT_S};
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	if (!text_copy(to.sun_path, sizeof to.sun_path, path))
		return err_set(e, ENAMETOOLONG, "the path %s is longer than %zu bytes", path,
			sizeof to.sun_path - 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return socket_error("socket for", path, TIMEOUT_S, e);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) ||
		connect(fd, (struct sockaddr *)&to, sizeof to)) {
		int rc = socket_error("cannot connect to", path, TIMEOUT_S, e);

		(void)close(fd);
		return rc;
	}
	return fd;
}

/* In one piece where there is room for that, as there is for a word. */
static int send_line(const struct question *q, const char *word, struct err *e)
{
	const size_t len = strlen(word) + 1;
	auto_free char *line = xcalloc(len + 1, 1);

	(void)snprintf(line, len + 1, "%s\n", word);
	for (size_t at = 0; at < len;) {
		ssize_t sent = send(q->fd, line + at, len - at, MSG_NOSIGNAL);

		if (sent < 0)
			return socket_error("cannot write to", q->path, q->patience_s, e);
		at += (size_t)sent;
	}
	return 0;
}

int question_ask(struct question *q, const char *socket_path, const char *word, struct err *e)
{
	*q = (struct question){.path = socket_path,
		.fd = connect_to_daemon(socket_path, e),
		.patience_s = TIMEOUT_S};
	if (q->fd < 0)
		return q->fd;
	int rc = send_line(q, word, e);
	if (rc)
		question_close(q);
	return rc;
}

int question_take(struct question *q, struct err *e)
{
	if (q->len > ANSWER_MAX)
		return err_set(e, EMSGSIZE, "the answer from %s is longer than %d MiB", q->path,
			ANSWER_MAX >> 20);
	q->answer = xrealloc(q->answer, q->len + READ_BYTES + 1, 1);
	ssize_t got = read(q->fd, q->answer + q->len, READ_BYTES);
	if (got < 0 && errno != EINTR)
		return socket_error("cannot read from", q->path, q->patience_s, e);
	q->len += got > 0 ? (size_t)got : 0;
	q->answer[q->len] = '\0';
	if (got)
		return 1;
	return q->len ? 0
		      : err_set(e, ENODATA, "numafitd at %s hung up without an answer", q->path);
}

void question_close(struct question *q)
{
	if (q->fd >= 0)
		(void)close(q->fd);
	free(q->answer);
	*q = (struct question){.fd = -1};
}

int ask_daemon_patiently(const char *socket_path, const char *word, unsigned seconds, char **answer,
	size_t *len, struct err *e)
{
	const struct timeval timeout = {.tv_sec = seconds};
	struct question q;
	int rc = question_ask(&q, socket_path, word, e);

	if (rc)
		return rc;
	q.patience_s = seconds;
	(void)setsockopt(q.fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
	while ((rc = question_take(&q, e)) > 0)
		;
	if (!rc) {
		*len = q.len;
		*answer = steal(q.answer);
	}
	question_close(&q);
	return rc;
}

int ask_daemon(const char *socket_path, const char *word, char **answer, size_t *len, struct err *e)
{
	return ask_daemon_patiently(socket_path, word, TIMEOUT_S, answer, len, e);
}
