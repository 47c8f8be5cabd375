/* What the page of a node asks for. */
#include <ui/server.h>

#include <numafit/mem.h>
#include <ui/machine.h>
#include <ui/page_server.h>
#include <ui/whatif_thread.h>

#include <errno.h>
#include <string.h>

struct ui_server {
	struct ui_server_options o;
	struct ui_server_handler handler;
	struct page_server *pages;
	struct whatif_thread *whatif;
	struct http_exchange
		*asking; /* what the thread answers; NULL: nothing, or its client is gone */
};

static void show_ui_status(void *ctx, struct http_exchange *x, const struct http_request *r)
{
	struct ui_server *p = ctx;

	(void)r;
	page_send_and_free(x, p->handler.status(p->handler.ctx));
}

static void show_ui_machine(void *ctx, struct http_exchange *x, const struct http_request *r)
{
	struct ui_server *p = ctx;

	(void)r;
	page_send_and_free(x, ui_machine_json(p->o.topo));
}

static void show_ui_decisions(void *ctx, struct http_exchange *x, const struct http_request *r)
{
	struct ui_server *p = ctx;

	(void)r;
	page_send_and_free(x, recent_json(p->o.recent, &p->o.topo->ids));
}

static void send_whatif_error(struct http_exchange *x, const struct err *e)
{
	page_send_error(x,
		e->code == EAGAIN   ? UI_TOO_MANY
		: e->code == EINVAL ? UI_BAD
				    : UI_UNAVAILABLE,
		e);
}

static void show_ui_whatif(void *ctx, struct http_exchange *x, const struct http_request *r)
{
	struct ui_server *p = ctx;
	struct ui_question q;
	struct err e = {0};

	if (ui_question_read(r->query, &q, &e))
		page_send_error(x, UI_BAD, &e);
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
		page_send(x, UI_OK, answer, strlen(answer));
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

static const struct page_document node_documents[] = {
	{"/api/status", show_ui_status},
	{"/api/machine", show_ui_machine},
	{"/api/decisions", show_ui_decisions},
	{"/api/whatif", show_ui_whatif},
};

static void on_node_page_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct ui_server *p = ctx;

	p->handler.on_event(p->handler.ctx, bad, event, text);
}

struct ui_server *ui_server_new(
	const struct ui_server_options *o, const struct ui_server_handler *handler)
{
	struct ui_server *p = xcalloc(1, sizeof *p);

	p->o = *o;
	p->handler = *handler;
	p->whatif = whatif_thread_new(o->loop, on_whatif_answered, p);
	p->pages = page_server_new(&(struct page_server_options){
		.loop = o->loop,
		.address = o->settings->ui_address,
		.any_address = o->settings->ui_insecure,
		.page = &ui_node_page,
		.document = node_documents,
		.nr_documents = sizeof node_documents / sizeof *node_documents,
		.ctx = p,
		.gone = on_asker_gone,
		.on_event = on_node_page_event,
	});
	return p;
}

void ui_server_free(struct ui_server *p)
{
	if (!p)
		return;
	page_server_free(p->pages);
	whatif_thread_free(p->whatif);
	free(p);
}
