/* The socket that `numafit status` asks: one line in, one document out, and the connection ends. */
#include "daemon.h"

#include <io/log.h>
#include <numafit/text.h>
#include <numafit/version.h>

#include <string.h>

enum { QUESTION_MAX = 64, SOCKET_MODE = 0600, NS_PER_MS = 1000000 };

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

int status_start(struct daemon *d, struct err *e)
{
	d->status = listener_new(d->loop, d->status_path, SOCKET_MODE, d, accepted, e);
	return d->status ? 0 : -e->code;
}
