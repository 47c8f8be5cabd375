#ifndef NUMAFIT_UI_SERVER_H
#define NUMAFIT_UI_SERVER_H

#include <io/loop.h>
#include <numafit/engine.h>
#include <ui/recent.h>

/* The status page over HTTP. Nothing can be changed by it. */
struct ui_server;

/* All borrowed, and looked at anew each time. */
struct ui_server_options {
	struct loop *loop;
	struct engine *const *engine; /* a journal that is found late makes another one */
	const struct topo *topo;
	const struct settings *settings; /* ui.address is set, and does not change */
	const struct recent *recent;
};

struct ui_server_handler {
	void *ctx;
	/* mandatory: the document of `numafit status --json`, for the caller to free; NULL: it is
	 * too large. */
	char *(*status)(void *ctx);
	/* mandatory, for the log: it is served, or cannot be yet. */
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
};

/* Serve it at ui.address; one that cannot be had is tried again. Both structs are copied. */
struct ui_server *ui_server_new(
	const struct ui_server_options *o, const struct ui_server_handler *handler);
/* Before loop_free(). It waits for the question that is being answered. NULL is fine. */
void ui_server_free(struct ui_server *p);

#endif
