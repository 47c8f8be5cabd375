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

enum { TIMEOUT_S = 5, READ_BYTES = 64 << 10, ANSWER_MAX = STATUS_JSON_MAX, WORD_MAX = 64 };

static int socket_error(const char *what, const char *path, struct err *e)
{
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINPROGRESS)
		return err_set(
			e, ETIMEDOUT, "numafitd at %s is silent for %d seconds", path, TIMEOUT_S);
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
		return socket_error("socket for", path, e);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) ||
		connect(fd, (struct sockaddr *)&to, sizeof to)) {
		int rc = socket_error("cannot connect to", path, e);

		(void)close(fd);
		return rc;
	}
	return fd;
}

static int read_daemon_answer(int fd, const char *path, char **answer, size_t *len, struct err *e)
{
	auto_free char *text = NULL;
	size_t have = 0;
	ssize_t got;

	do {
		if (have > ANSWER_MAX)
			return err_set(e, EMSGSIZE, "the answer from %s is longer than %d MiB",
				path, ANSWER_MAX >> 20);
		text = xrealloc(text, have + READ_BYTES + 1, 1);
		got = read(fd, text + have, READ_BYTES);
		if (got < 0 && errno != EINTR)
			return socket_error("cannot read from", path, e);
		have += got > 0 ? (size_t)got : 0;
	} while (got);
	if (!have)
		return err_set(e, ENODATA, "numafitd at %s hung up without an answer", path);
	text[have] = '\0';
	*len = have;
	*answer = steal(text);
	return 0;
}

int ask_daemon(const char *socket_path, const char *word, char **answer, size_t *len, struct err *e)
{
	char line[WORD_MAX];
	int fd = connect_to_daemon(socket_path, e), rc;
	int len_sent = snprintf(line, sizeof line, "%s\n", word);

	if (fd < 0)
		return fd;
	/* so short a line goes out whole or not at all */
	if (send(fd, line, (size_t)len_sent, MSG_NOSIGNAL) != len_sent)
		rc = socket_error("cannot write to", socket_path, e);
	else
		rc = read_daemon_answer(fd, socket_path, answer, len, e);
	(void)close(fd);
	return rc;
}
