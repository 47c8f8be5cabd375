/* The status page of this node: the files of ui/, and what they ask for. Nothing can be changed by
 * it. */
#include "status_page.h"
#include "daemon.h"
#include "status.h"
#include "whatif_thread.h"

#include <io/http_server.h>
#include <io/log.h>
#include <numafit/host_kind.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <ui/assets.h>
#include <ui/document.h>
#include <ui/guard.h>
#include <ui/machine.h>
#include <ui/recent.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { UI_TRY_AGAIN_S = 10 };
/* RFC 9110, 15; RFC 6585, 4 */
enum { UI_OK = 200, UI_BAD = 400, UI_NOT_FOUND = 404, UI_TOO_MANY = 429, UI_UNAVAILABLE = 503 };

struct status_page {
	struct daemon *d;
	struct http_server *http;
	struct loop_timer *again;
	struct recent *recent;
	struct whatif_thread *whatif;
	struct http_exchange
		*asking;   /* what the thread answers; NULL: nothing, or its client is gone */
	struct err logged; /* why nobody is served */
};

/* What the page asks for */

static void send_document(struct http_exchange *x, int status, const char *document)
{
	http_answer_send(x, status, "application/json", document, strlen(document), ui_headers);
}

/* Of a document that was made for it. */
static void send_and_free(struct http_exchange *x, char *document)
{
	if (document)
		send_document(x, UI_OK, document);
	else
		send_document(x, UI_UNAVAILABLE, "{\"error\":\"the answer is too large\"}");
	free(document);
}

static void send_error(struct http_exchange *x, int status, const struct err *e)
{
	auto_free char *document = ui_error_json(e);

	send_document(x, status, document);
}

static void show_ui_status(
	struct status_page *p, struct http_exchange *x, const struct http_request *r)
{
	(void)r;
	send_and_free(x, status_document(p->d));
}

static void show_ui_machine(
	struct status_page *p, struct http_exchange *x, const struct http_request *r)
{
	(void)r;
	send_and_free(x, ui_machine_json(&p->d->topo));
}

static void show_ui_decisions(
	struct status_page *p, struct http_exchange *x, const struct http_request *r)
{
	(void)r;
	send_and_free(x, recent_json(p->recent, &p->d->topo.ids));
}

static void send_whatif_error(struct http_exchange *x, const struct err *e)
{
	send_error(x,
		e->code == EAGAIN   ? UI_TOO_MANY
		: e->code == EINVAL ? UI_BAD
				    : UI_UNAVAILABLE,
		e);
}

static void show_ui_whatif(
	struct status_page *p, struct http_exchange *x, const struct http_request *r)
{
	struct ui_question q;
	struct err e = {0};

	if (ui_question_read(r->query, &q, &e))
		send_error(x, UI_BAD, &e);
	else if (whatif_thread_ask(p->whatif, p->d->engine, &p->d->settings, &q, &e))
		send_whatif_error(x, &e);
	else
		p->asking = x;
}

static void on_whatif_answered(void *ctx, char *answer, const struct err *e)
{
	struct status_page *p = ctx;
	struct http_exchange *x = steal(p->asking);

	if (x && answer)
		send_document(x, UI_OK, answer);
	else if (x)
		send_whatif_error(x, e);
	free(answer);
}

/* Nothing but a question waits for its answer. */
static void on_asker_gone(void *ctx, struct http_exchange *x)
{
	struct status_page *p = ctx;

	(void)x;
	p->asking = NULL;
}

static const struct ui_document_path {
	const char *path;
	void (*show)(struct status_page *p, struct http_exchange *x, const struct http_request *r);
} ui_paths[] = {
	{"/api/status", show_ui_status},
	{"/api/machine", show_ui_machine},
	{"/api/decisions", show_ui_decisions},
	{"/api/whatif", show_ui_whatif},
};

static void send_page_text(struct http_exchange *x, int status, const char *text)
{
	http_answer_send(x, status, "text/plain; charset=utf-8", text, strlen(text), ui_headers);
}

static void on_page_request(void *ctx, struct http_exchange *x, const struct http_request *r)
{
	struct status_page *p = ctx;
	const struct ui_visit visit = {
		r->method, r->path, r->host, r->site, p->d->settings.ui_insecure};
	struct ui_asset file;
	const char *why;
	int refused = ui_guard(&visit, &why);

	if (refused) {
		send_page_text(x, refused, why);
		return;
	}
	if (ui_asset_find(r->path, &file)) {
		http_answer_send(x, UI_OK, file.type, file.at, file.len, ui_headers);
		return;
	}
	for (size_t i = 0; i < sizeof ui_paths / sizeof *ui_paths; i++)
		if (text_equal(r->path, ui_paths[i].path)) {
			ui_paths[i].show(p, x, r);
			return;
		}
	send_page_text(x, UI_NOT_FOUND, "no such page\n");
}

/* What it shows */

void status_page_note(const struct daemon *d, const struct request *req, const struct decision *dec,
	const char *cause, const char *why)
{
	const struct recent_note n = {loop_wall_ms(), cause, why};

	if (d->status_page)
		recent_add(d->status_page->recent, &n, req, dec);
}

void status_page_note_pod(
	const struct daemon *d, const struct pod *pod, const struct decision *dec, const char *why)
{
	const struct request req = {.pod = *pod, .ask = pod_ask(pod)};

	status_page_note(d, &req, dec, "run-pod", why);
}

/* Serving */

static void note_page_failure(struct status_page *p, const struct err *e)
{
	char buf[2 * sizeof e->text];

	if (!text_equal(p->logged.text, e->text))
		log_line(LOG_ERROR, "status-page-not-served",
			"error=%s action=\"set ui.address to one that is free, or to nothing; it is "
			"tried again every %d s\"",
			log_text(buf, sizeof buf, e->text), UI_TRY_AGAIN_S);
	p->logged = *e;
}

static void serve_page(void *ctx)
{
	struct status_page *p = ctx;
	char buf[ADDRESS_MAX];
	const struct http_server_options o = {
		.address = host_as_address(p->d->settings.ui_address, buf, sizeof buf),
		.no_body = true,
		.ctx = p,
		.handle = on_page_request,
		.gone = on_asker_gone};
	struct err e = {0};

	p->http = http_server_new(p->d->loop, &o, &e);
	if (!p->http) {
		note_page_failure(p, &e);
		loop_timer_set(p->again, UI_TRY_AGAIN_S * MS_PER_S);
		return;
	}
	log_line(LOG_INFO, "status-page-served", "address=%s port=%u", o.address,
		http_server_port(p->http));
}

void status_page_start(struct daemon *d)
{
	if (!*d->settings.ui_address)
		return;
	struct status_page *p = xcalloc(1, sizeof *p);
	p->d = d;
	p->recent = recent_new();
	p->whatif = whatif_thread_new(d->loop, on_whatif_answered, p);
	p->again = loop_timer_new(d->loop, serve_page, p);
	d->status_page = p;
	serve_page(p);
}

void status_page_stop(struct daemon *d)
{
	struct status_page *p = d->status_page;

	if (!p)
		return;
	http_server_free(p->http);
	whatif_thread_free(p->whatif);
	loop_timer_close(p->again);
	recent_free(p->recent);
	free(p);
	d->status_page = NULL;
}
