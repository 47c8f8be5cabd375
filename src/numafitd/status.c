/* What shows the daemon's state: the socket that `numafit status` asks (one line in, one document
 * out, and the connection ends), and the status page. */
#include "status.h"
#include "metrics.h"
#include "claims.h"
#include "cluster.h"
#include "daemon.h"
#include "decision_log.h"
#include "pool.h"
#include "quiet.h"
#include "quota.h"
#include "services.h"

#include <codec/moves_json.h>
#include <daemon-files/check_config.h>
#include <dra-driver/driver.h>
#include <host/hotplug.h>
#include <io/fault.h>
#include <io/journal.h>
#include <io/log.h>
#include <mover/moves.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <numafit/version.h>
#include <ui/server.h>

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

enum {
	QUESTION_MAX = JOURNAL_LINE_MAX + 64, /* one may have a record of the journal */
	SOCKET_MODE = 0600,
	CLIENTS_MAX = 32,   /* who have not asked yet; for another one the oldest goes */
	QUESTION_MS = 2000, /* for asking */
	LOOK_MS = 250,
	RETRY_MS = 1000 /* where the run directory cannot be had yet */
};

struct client {
	struct status_server *s;
	TAILQ_ENTRY(client) in;
	uint64_t since_ns;
	struct stream *stream;
	bool waits; /* it has asked, and the answer comes later */
	struct {
		VEC(char);
	} question;
};

struct status_server {
	struct daemon *d;
	struct listener *listener;
	struct loop_timer *look, *again;
	TAILQ_HEAD(clients, client) clients; /* who have not asked yet, the oldest first */
	unsigned nr_clients;
	TAILQ_HEAD(waiting, client) waiting; /* who have, and the answer comes later */
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
		.connection = connection_word(nri_conn_state(d->runtime.conn)),
		.runtime = nri_conn_runtime(d->runtime.conn),
		.uptime_ms = (loop_monotonic_ns() - d->measured.started_ns) / NS_PER_MS,
		.generation = d->recorder.generation,
		.counters = d->measured.counters,
	};
	struct status_kubelet kubelet;
	struct status_apiserver apiserver;
	struct status_config config;
	struct status_claims claims;
	struct status_dra dra;
	const struct status_pool pool = pool_status(d);
	const struct status_quota quota = quota_status(d);
	struct status_quiet quiet;
	struct moves moves;
	struct snapshot snapshot;
	struct err writers;
	unsigned writer = 0;

	info.enforcement = &pool;
	info.quota = &quota;
	if (quiet_status(d, &quiet))
		info.quiet = &quiet;
	if (d->follow.moves && mover_show(moves_mover(d->follow.moves), &moves))
		info.moves = &moves;
	if (d->recorder.error.code)
		info.journal = d->recorder.error.text;
	if (run_directory_next_writer(d->settings.run_directory, &writer, &writers))
		info.journal_writers = writers.text;
	info.pod_facts = services_pod_facts(d);
	if (services_status(d, &kubelet))
		info.kubelet = &kubelet;
	if (reload_status(d, &config))
		info.config = &config;
	if (cluster_status(d, &apiserver))
		info.apiserver = &apiserver;
	if (claims_status(d, &claims))
		info.claims = &claims;
	if (dra_status(d->dra, &dra))
		info.dra = &dra;
	info.counters.log_dropped = log_dropped();
	if (d->topo.this_machine)
		(void)hotplug_read_offline(fault_root(), &info.offline, NULL);
	snapshot_take(&snapshot, engine_ledger(d->engine), &d->settings);
	return status_json_format(&info, &d->settings, &snapshot, engine_ledger(d->engine));
}

static char *answer_status(struct daemon *d)
{
	char *document = status_document(d);

	return document ? document : xstrdup("{\"error\":\"the status is too large\"}");
}

static char *answer_metrics(struct daemon *d)
{
	size_t len;

	return metrics_document(d, &len);
}

static char *answer_log(struct daemon *d)
{
	(void)d;
	return log_last_lines();
}

/* What can be asked, a word and a newline. The answer ends with a newline. */
static const struct status_question {
	const char *word;
	char *(*answer)(struct daemon *d);
} status_questions[] = {
	{"status", answer_status},
	{"metrics", answer_metrics},
	{"log", answer_log},
};

static void status_answer(const struct client *c, const char *text)
{
	size_t len = strlen(text);

	if (stream_write(c->stream, text, len) == 0 && (!len || text[len - 1] != '\n'))
		(void)stream_write(c->stream, "\n", 1);
}

static const struct status_question *status_question_of(const char *word, size_t len)
{
	for (size_t i = 0; i < sizeof status_questions / sizeof *status_questions; i++)
		if (strlen(status_questions[i].word) == len &&
			memcmp(status_questions[i].word, word, len) == 0)
			return &status_questions[i];
	return NULL;
}

static void client_free(struct client *c)
{
	vec_fini(&c->question);
	if (c->waits) {
		if (c->s->d->follow.moves)
			moves_forget(c->s->d->follow.moves, c);
		TAILQ_REMOVE(&c->s->waiting, c, in);
	} else {
		TAILQ_REMOVE(&c->s->clients, c, in);
		c->s->nr_clients--;
	}
	free(c);
}

static void send_away(struct client *c)
{
	stream_close(c->stream);
	client_free(c);
}

static void status_end_late(void *ctx)
{
	struct status_server *s = ctx;
	uint64_t now = loop_monotonic_ns();
	struct client *c;

	while ((c = TAILQ_FIRST(&s->clients)) &&
		now - c->since_ns > (uint64_t)QUESTION_MS * NS_PER_MS)
		send_away(c);
	if (c)
		loop_timer_set(s->look, LOOK_MS);
}

static void answer_and_end(struct client *c, const char *text)
{
	status_answer(c, text);
	stream_finish(c->stream);
	client_free(c);
}

static void on_moves_answered(void *asker, const char *document)
{
	answer_and_end(asker, document);
}

/* The answer may come at once, or later. */
static void ask_for_moves(struct client *c, const char *question)
{
	struct moves_asker *moves = c->s->d->follow.moves;
	struct err e = {.text = "only in mode manage containers are moved"};

	TAILQ_REMOVE(&c->s->clients, c, in);
	c->s->nr_clients--;
	TAILQ_INSERT_TAIL(&c->s->waiting, c, in);
	c->waits = true;
	if (moves && !moves_ask(moves, question, on_moves_answered, c, &e))
		return;
	auto_free char *why = moves_json_error(e.text);
	answer_and_end(c, why);
}

/* Up to a newline, or as far as a question goes. */
static bool take_question(struct client *c, const char *data, size_t len)
{
	const char *end = memchr(data, '\n', len);
	const size_t take = end ? (size_t)(end - data) : len;

	for (size_t i = 0; i < take && c->question.nr < QUESTION_MAX; i++)
		*vec_push(&c->question) = data[i];
	return end || c->question.nr == QUESTION_MAX;
}

static void client_data(void *ctx, const void *data, size_t len)
{
	static const char unknown[] = "{\"error\":\"ask: status, metrics, log or defrag\"}";
	struct client *c = ctx;

	if (c->waits || !take_question(c, data, len))
		return;
	const struct status_question *q = status_question_of(c->question.at, c->question.nr);
	*vec_push(&c->question) = '\0';
	const char *of_moves = text_behind(c->question.at, "defrag ");
	auto_free char *answer = q ? q->answer(c->s->d) : NULL;
	if (of_moves)
		ask_for_moves(c, of_moves);
	else
		answer_and_end(c, answer ? answer : unknown);
}

static void client_closed(void *ctx, int error)
{
	(void)error;
	client_free(ctx);
}

static struct stream_events status_accepted(void *ctx, struct stream *stream)
{
	struct status_server *s = ctx;
	struct client *c = xcalloc(1, sizeof *c);

	if (s->nr_clients == CLIENTS_MAX)
		send_away(TAILQ_FIRST(&s->clients));
	c->s = s;
	c->stream = stream;
	c->since_ns = loop_monotonic_ns();
	if (!s->nr_clients)
		loop_timer_set(s->look, LOOK_MS);
	TAILQ_INSERT_TAIL(&s->clients, c, in);
	s->nr_clients++;
	return (struct stream_events){.ctx = c, .data = client_data, .closed = client_closed};
}

/* Whose run directory it is not cannot know whose socket is there. */
static int listen_now(struct status_server *s, struct err *e)
{
	const struct daemon *d = s->d;

	if (d->run.lock < 0)
		return err_set(
			e, EAGAIN, "%s: runDirectory is not this daemon's yet", d->run.status_path);
	s->listener = listener_new(d->loop, d->run.status_path, SOCKET_MODE, s, status_accepted, e);
	return s->listener ? 0 : -e->code;
}

static void listen_again(void *ctx)
{
	struct status_server *s = ctx;
	struct err e;

	if (listen_now(s, &e) < 0)
		loop_timer_set(s->again, RETRY_MS);
	else
		log_line(LOG_INFO, "status-served-again", "socket=%s", s->d->run.status_path);
}

int status_start(struct daemon *d, struct err *e)
{
	struct status_server *s = xcalloc(1, sizeof *s);
	char buf[2 * sizeof e->text];

	s->d = d;
	TAILQ_INIT(&s->clients);
	TAILQ_INIT(&s->waiting);
	s->look = loop_timer_new(d->loop, status_end_late, s);
	s->again = loop_timer_new(d->loop, listen_again, s);
	d->show.status = s;
	int rc = listen_now(s, e);
	if (!rc || !run_directory_may_come(rc))
		return rc;
	log_line(LOG_WARN, "status-not-served",
		"error=%s action=\"none but for runDirectory: it is tried again\"",
		log_text(buf, sizeof buf, e->text));
	loop_timer_set(s->again, RETRY_MS);
	return 0;
}

void status_stop(struct daemon *d)
{
	struct status_server *s = d->show.status;

	free(steal(d->show.shown_status.text));
	if (!s)
		return;
	while (!TAILQ_EMPTY(&s->clients))
		send_away(TAILQ_FIRST(&s->clients));
	while (!TAILQ_EMPTY(&s->waiting))
		send_away(TAILQ_FIRST(&s->waiting));
	if (s->listener)
		listener_close(s->listener);
	loop_timer_close(s->look);
	loop_timer_close(s->again);
	free(s);
	d->show.status = NULL;
}

static char *make_shown(const struct daemon *d, size_t *len)
{
	char *document = status_document(d);

	*len = document ? strlen(document) : 0;
	return document;
}

const struct shown_document *status_shown(struct daemon *d)
{
	shown_look(&d->show.shown_status, d, make_shown);
	return &d->show.shown_status;
}

static char *document_for_page(void *ctx)
{
	const char *text = status_shown(ctx)->text;

	return text ? xstrdup(text) : NULL;
}

void status_page_start(struct daemon *d)
{
	if (!*d->settings.ui_address)
		return;
	d->show.recent = recent_new();
	d->show.page = ui_server_new(&(struct ui_server_options){d->loop, &d->engine, &d->topo,
					     &d->settings, d->show.recent},
		&(struct ui_server_handler){d, document_for_page, log_event});
}

void status_page_stop(struct daemon *d)
{
	ui_server_free(steal(d->show.page));
	recent_free(steal(d->show.recent));
}
