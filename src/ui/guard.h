#ifndef NUMAFIT_UI_GUARD_H
#define NUMAFIT_UI_GUARD_H

/* Who may read a page, and who may have an extender decide and bind. Neither has a password: every
 * program that may connect to the address may, and no web page of another site that a browser on
 * this machine has open. */

/* Which hosts a request may name in its header Host. A name can be made to point here by its owner
 * (DNS rebinding), an address cannot. */
enum ui_hosts {
	UI_HOSTS_LOOPBACK,  /* localhost and loopback addresses, with any port */
	UI_HOSTS_ADDRESSES, /* any address as well */
	UI_HOSTS_ANY /* names as well: the certificate of a client counts, or every client may */
};

struct ui_visit {
	const char *method, *path; /* "GET", "/api/status" */
	const char *host;          /* the header Host, or "" */
	const char *site;          /* the header Sec-Fetch-Site, or "" */
	const char *type;          /* the header Content-Type, or "" */
	enum ui_hosts hosts;
};

/* A request for a page. Return 0, or the HTTP status of a refusal, with a line that says why in
 * *why: 405: the method is neither GET nor HEAD; 403: Host is none of v->hosts; or a page of
 * another site asks for data (/api/). */
int ui_guard(const struct ui_visit *v, const char **why);

/* A request to act (a scheduler's verb), whatever its path. As ui_guard(), but:
 *   405: the method is not POST;
 *   403: also if any page of another site asks;
 *   415: Content-Type is not application/json. A browser sends this type to another site only if
 * that site allows it, which ours never does. */
int ui_guard_call(const struct ui_visit *v, const char **why);

/* What each answer has besides, as for http_answer_send(): nothing is loaded from elsewhere, no
 * script but ours runs, no other page frames or reads it, nothing is kept. */
extern const char ui_headers[];

#endif
