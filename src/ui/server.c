/* The page's files, and what they ask for. */
#include <ui/server.h>

#include <io/http_server.h>
#include <numafit/host_kind.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <ui/assets.h>
#include <ui/document.h>
#include <ui/guard.h>
#include <ui/machine.h>
#include <ui/whatif_thread.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { UI_TRY_AGAIN_S = 10 };
/* RFC 9110, 15; RFC 6585, 4 */
enum { UI_OK = 200, UI_BAD = 400, UI_NOT_FOUND = 404, UI_TOO_MANY = 429, UI_UNAVAILABLE = 503 };

struct ui_server {
	struct ui_server_options o;
	struct ui_server_handler handler;
	struct http_server *http;
	struct loop_timer *again;
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
	struct ui_server *p, struct http_exchange *x, const struct http_request *r)
{
	(void)r;
	send_and_free(x, p->handler.status(p->handler.ctx));
}

static void show_ui_machine(
	struct ui_server *p, struct http_exchange *x, const struct http_request *r)
{
	(void)r;
	send_and_free(x, ui_machine_json(p->o.topo));
}

static void show_ui_decisions(
	struct ui_server *p, struct http_exchange *x, const struct http_request *r)
{
	(void)r;
	send_and_free(x, recent_json(p->o.recent, &p->o.topo->ids));
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
	struct ui_server *p, struct http_exchange *x, const struct http_request *r)
{
	struct ui_question q;
	struct err e = {0};

	if (ui_question_read(r->query, &q, &e))
		send_error(x, UI_BAD, &e);
	else if (whatif_thread_ask(p->whatif, *p->o.engine, p->o.settings, &q, &e))
		send_whatif_error(x, &e);
	else
		p->asking = x;
}

static void on_whatif_answered(void *ctx, char *answer, const struct err *e)
{
	struct ui_server *p = ctx;
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
	struct ui_server *p = ctx;

	(void)x;
	p->asking = NULL;
}

static const struct ui_document_path {
	const char *path;
	void (*show)(struct ui_server *p, struct http_exchange *x, const struct http_request *r);
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
	struct ui_server *p = ctx;
	const struct ui_visit visit = {
		r->method, r->path, r->host, r->site, p->o.settings->ui_insecure};
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

/* Serving */

static void note_page_failure(struct ui_server *p, const struct err *e)
{
	char text[sizeof e->text + 128];

	if (text_equal(p->logged.text, e->text))
		return;
	p->logged = *e;
	(void)snprintf(text, sizeof text,
		"%s; set ui.address to one that is free, or to nothing; it is tried again every %d s",
		e->text, UI_TRY_AGAIN_S);
	p->handler.on_event(p->handler.ctx, true, "status-page-not-served", text);
}

static void serve_page(void *ctx)
{
	struct ui_server *p = ctx;
	char buf[ADDRESS_MAX], text[ADDRESS_MAX + 32];
	const struct http_server_options o = {
		.address = host_as_address(p->o.settings->ui_address, buf, sizeof buf),
		.no_body = true,
		.ctx = p,
		.handle = on_page_request,
		.gone = on_asker_gone};
	struct err e = {0};

	p->http = http_server_new(p->o.loop, &o, &e);
	if (!p->http) {
		note_page_failure(p, &e);
		loop_timer_set(p->again, UI_TRY_AGAIN_S * MS_PER_S);
		return;
	}
	(void)snprintf(text, sizeof text, "at %s, port %u", o.address, http_server_port(p->http));
	p->handler.on_event(p->handler.ctx, false, "status-page-served", text);
}

struct ui_server *ui_server_new(
	const struct ui_server_options *o, const struct ui_server_handler *handler)
{
	struct ui_server *p = xcalloc(1, sizeof *p);

	p->o = *o;
	p->handler = *handler;
	p->whatif = whatif_thread_new(o->loop, on_whatif_answered, p);
	p->again = loop_timer_new(o->loop, serve_page, p);
	serve_page(p);
	return p;
}

void ui_server_free(struct ui_server *p)
{
	if (!p)
		return;
	http_server_free(p->http);
	whatif_thread_free(p->whatif);
	loop_timer_close(p->again);
	free(p);
}
