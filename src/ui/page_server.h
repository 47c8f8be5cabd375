#ifndef NUMAFIT_UI_PAGE_SERVER_H
#define NUMAFIT_UI_PAGE_SERVER_H

#include <io/http_server.h>
#include <ui/assets.h>

/* A page over HTTP: its files, and the documents that it asks for. Nothing can be changed by it;
 * who may read it is in guard.h. */
struct page_server;

/* What the page asks for. */
struct page_document {
	const char *path; /* "/api/status" */
	/* Answer now or in a later turn, as http_server_options.handle(). */
	void (*show)(void *ctx, struct http_exchange *x, const struct http_request *r);
};

/* All borrowed, but for the struct itself. */
struct page_server_options {
	struct loop *loop;
	const char *address; /* "127.0.0.1:9466", "localhost:0"; the setting ui.address */
	bool any_address;    /* the setting ui.insecure: that may be no loopback address */
	const struct ui_page *page;
	const struct page_document *document;
	size_t nr_documents;
	void *ctx;
	/* optional: a client whose document has not been answered yet is gone (http_server.h) */
	void (*gone)(void *ctx, struct http_exchange *x);
	/* mandatory, for the log: "status-page-served", or "status-page-not-served" (bad). */
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
};

/* Serve it; an address that cannot be had is tried again each 10 s. */
struct page_server *page_server_new(const struct page_server_options *o);
/* Before loop_free(). What is not answered yet never will be. NULL is fine. */
void page_server_free(struct page_server *p);

/* HTTP statuses (RFC 9110, 15; RFC 6585, 4). */
enum { UI_OK = 200, UI_BAD = 400, UI_NOT_FOUND = 404, UI_TOO_MANY = 429, UI_UNAVAILABLE = 503 };
/* Answer with that JSON document, of len bytes, with {"error":"..."}, or with 200 and the document,
 * which is freed; NULL: it is too large, with 503. The exchange is dead afterwards. */
void page_send(struct http_exchange *x, int status, const char *document, size_t len);
void page_send_error(struct http_exchange *x, int status, const struct err *e);
void page_send_and_free(struct http_exchange *x, char *document);

#endif
