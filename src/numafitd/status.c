/* The socket that `numafit status` asks: one line in, one document out, and the connection ends. */
#include "daemon.h"

#include <io/log.h>
#include <numafit/text.h>
#include <numafit/version.h>

#include <errno.h>
#include <string.h>

enum { QUESTION_MAX = 64, SOCKET_MODE = 0600, RETRY_MS = 1000, NS_PER_MS = 1000000 };

struct client {
	struct daemon *d;
	struct stream *stream;
	size_t len;
	char question[QUESTION_MAX];
};

static const char *connection_word(enum nri_state s)
{
	static const char *const words[] = {
		[NRI_REGISTERING] = "connecting",
		[NRI_SYNCHRONIZING] = "synchronizing",
		[NRI_READY] = "ready",
		[NRI_FAILED] = "connecting",
	};

	return words[s];
}

char *status_document(const struct daemon *d)
{
	struct status_info info = {
		.version = NUMAFIT_VERSION,
		.connection = connection_word(nri_conn_state(d->conn)),
		.runtime = nri_conn_runtime(d->conn),
		.uptime_ms = (loop_monotonic_ns() - d->started_ns) / NS_PER_MS,
		.generation = d->generation,
		.counters = d->counters,
	};
	struct status_kubelet kubelet;
	struct status_apiserver apiserver;
	struct status_config config;
	struct snapshot snapshot;

	if (d->journal_error.code)
		info.journal = d->journal_error.text;
	if (services_status(d, &kubelet))
		info.kubelet = &kubelet;
	if (reload_status(d, &config))
		info.config = &config;
	if (cluster_status(d, &apiserver))
		info.apiserver = &apiserver;
	info.counters.log_dropped = log_dropped();
	snapshot_take(&snapshot, engine_ledger(d->engine), &d->settings);
	return status_json_format(&info, &d->settings, &snapshot, engine_ledger(d->engine));
}

static void answer(const struct client *c)
{
	auto_free char *document = status_document(c->d);
	const char *text = document ? document : "{\"error\":\"the status is too large\"}";

	if (stream_write(c->stream, text, strlen(text)) == 0)
		(void)stream_write(c->stream, "\n", 1);
}

static void client_data(void *ctx, const void *data, size_t len)
{
	static const char unknown[] = "{\"error\":\"ask: status\"}\n";
	struct client *c = ctx;

	if (len > sizeof c->question - c->len)
		len = sizeof c->question - c->len;
	memcpy(c->question + c->len, data, len);
	c->len += len;
	const char *end = memchr(c->question, '\n', c->len);
	if (!end && c->len < sizeof c->question)
		return;
	if (end && (size_t)(end - c->question) == strlen("status") &&
		memcmp(c->question, "status", strlen("status")) == 0)
		answer(c);
	else
		(void)stream_write(c->stream, unknown, sizeof unknown - 1);
	stream_finish(c->stream);
	free(c);
}

static void client_closed(void *ctx, int error)
{
	(void)error;
	free(ctx);
}

static struct stream_events accepted(void *ctx, struct stream *s)
{
	struct client *c = xcalloc(1, sizeof *c);

	c->d = ctx;
	c->stream = s;
	return (struct stream_events){.ctx = c, .data = client_data, .closed = client_closed};
}

/* Whose run directory it is not cannot know whose socket is there. */
static int listen_now(struct daemon *d, struct err *e)
{
	if (d->lock < 0)
		return err_set(
			e, EAGAIN, "%s: runDirectory is not this daemon's yet", d->status_path);
	d->status = listener_new(d->loop, d->status_path, SOCKET_MODE, d, accepted, e);
	return d->status ? 0 : -e->code;
}

static void listen_again(void *ctx)
{
	struct daemon *d = ctx;
	struct err e;

	if (listen_now(d, &e) < 0)
		loop_timer_set(d->listen, RETRY_MS);
	else
		log_line(LOG_INFO, "status-served-again", "socket=%s", d->status_path);
}

int status_start(struct daemon *d, struct err *e)
{
	char buf[2 * sizeof e->text];
	int rc = listen_now(d, e);

	if (!rc || !run_directory_may_come(rc))
		return rc;
	log_line(LOG_WARN, "status-not-served",
		"error=%s action=\"none but for runDirectory: it is tried again\"",
		log_text(buf, sizeof buf, e->text));
	d->listen = loop_timer_new(d->loop, listen_again, d);
	loop_timer_set(d->listen, RETRY_MS);
	return 0;
}

void status_stop(struct daemon *d)
{
	if (d->listen)
		loop_timer_close(d->listen);
}
