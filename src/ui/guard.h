#ifndef NUMAFIT_UI_GUARD_H
#define NUMAFIT_UI_GUARD_H

#include <stdbool.h>

/* Who may read the status page. It has no password: whoever may connect to its address may read it,
 * and no other web page that a reader's browser has open. */

struct ui_visit {
	const char *method, *path; /* "GET", "/api/status" */
	const char *host;          /* the header Host, or "" */
	const char *site;          /* the header Sec-Fetch-Site, or "" */
	bool any_address; /* the page may be served at other addresses than loopback ones */
};

/* 0, or the HTTP status of a refusal, with a line that says why in *why:
 *   405: it is neither GET nor HEAD;
 *   403: Host is a name other than localhost, or an address that the page is not served at. A name
 * can be made to point here by whoever owns it (DNS rebinding), an address cannot; 403: a page of
 * another site asks for data (/api/). */
int ui_guard(const struct ui_visit *v, const char **why);

/* What each answer has besides, as for http_answer_send(): nothing is loaded from elsewhere, no
 * script but ours runs, no other page frames or reads it, nothing is kept. */
extern const char ui_headers[];

#endif
