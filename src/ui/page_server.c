#include <ui/page_server.h>

#include <numafit/host_kind.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <ui/document.h>
#include <ui/guard.h>

#include <stdio.h>
#include <string.h>

enum { UI_TRY_AGAIN_S = 10 };

struct page_server {
	struct page_server_options o;
	struct http_server *http;
	struct loop_timer *again;
	struct err logged; /* why nobody is served */
};

/* Answers */

void page_send(struct http_exchange *x, int status, const char *document, size_t len)
{
	http_answer_send(x, status, "application/json", document, len, ui_headers);
}

void page_send_error(struct http_exchange *x, int status, const struct err *e)
{
	auto_free char *document = ui_error_json(e);

	page_send(x, status, document, strlen(document));
}

void page_send_and_free(struct http_exchange *x, char *document)
{
	static const char too_large[] = "{\"error\":\"the answer is too large\"}";

	if (document)
		page_send(x, UI_OK, document, strlen(document));
	else
		page_send(x, UI_UNAVAILABLE, too_large, sizeof too_large - 1);
	free(document);
}

static void send_page_text(struct http_exchange *x, int status, const char *text)
{
	http_answer_send(x, status, "text/plain; charset=utf-8", text, strlen(text), ui_headers);
}

static void on_page_request(void *ctx, struct http_exchange *x, const struct http_request *r)
{
	const struct page_server_options *o = &((struct page_server *)ctx)->o;
	const struct ui_visit visit = {.method = r->method,
		.path = r->path,
		.host = r->host,
		.site = r->site,
		.type = r->type,
		.hosts = o->any_address ? UI_HOSTS_ADDRESSES : UI_HOSTS_LOOPBACK};
	struct ui_asset file;
	const char *why;
	int refused = ui_guard(&visit, &why);

	if (refused) {
		send_page_text(x, refused, why);
		return;
	}
	if (ui_asset_find(o->page, r->path, &file)) {
		http_answer_send(x, UI_OK, file.type, file.at, file.len, ui_headers);
		return;
	}
	for (size_t i = 0; i < o->nr_documents; i++)
		if (text_equal(r->path, o->document[i].path)) {
			o->document[i].show(o->ctx, x, r);
			return;
		}
	send_page_text(x, UI_NOT_FOUND, "no such page\n");
}

static void on_reader_gone(void *ctx, struct http_exchange *x)
{
	const struct page_server_options *o = &((struct page_server *)ctx)->o;

	if (o->gone)
		o->gone(o->ctx, x);
}

/* Serving */

static void note_page_failure(struct page_server *p, const struct err *e)
{
	char text[sizeof e->text + 128];

	if (text_equal(p->logged.text, e->text))
		return;
	p->logged = *e;
	(void)snprintf(text, sizeof text,
		"%s; set ui.address to one that is free, or to nothing; it is tried again every %d s",
		e->text, UI_TRY_AGAIN_S);
	p->o.on_event(p->o.ctx, true, "status-page-not-served", text);
}

static void serve_page(void *ctx)
{
	struct page_server *p = ctx;
	char buf[ADDRESS_MAX], text[ADDRESS_MAX + 32];
	const struct http_server_options o = {
		.address = host_as_address(p->o.address, buf, sizeof buf),
		.no_body = true,
		.ctx = p,
		.handle = on_page_request,
		.gone = on_reader_gone};
	struct err e = {0};

	p->http = http_server_new(p->o.loop, &o, &e);
	if (!p->http) {
		note_page_failure(p, &e);
		loop_timer_set(p->again, UI_TRY_AGAIN_S * MS_PER_S);
		return;
	}
	(void)snprintf(text, sizeof text, "at %s, port %u", o.address, http_server_port(p->http));
	p->o.on_event(p->o.ctx, false, "status-page-served", text);
}

struct page_server *page_server_new(const struct page_server_options *o)
{
	struct page_server *p = xcalloc(1, sizeof *p);

	p->o = *o;
	p->again = loop_timer_new(o->loop, serve_page, p);
	serve_page(p);
	return p;
}

void page_server_free(struct page_server *p)
{
	if (!p)
		return;
	http_server_free(p->http);
	loop_timer_close(p->again);
	free(p);
}
