#ifndef NUMAFIT_IO_HTTP_CLIENT_H
#define NUMAFIT_IO_HTTP_CLIENT_H

#include <io/loop.h>

/* HTTP and HTTPS on the loop, by libcurl, which is loaded when the first client is made: a program
 * that makes none does not pay for it. Connections are kept and used again. Nothing blocks.
 * Redirects are never followed, and no answer is taken beyond its limit. */
struct http_client;

/* How the other side must prove itself, and how we do. PEM texts, not file names; copied. NULL: the
 * system's certificate authorities; no certificate of ours. */
struct http_trust {
	const char *ca, *cert, *key;
	const char *server_name; /* that its certificate must have instead of the URL's; NULL */
	bool insecure;           /* take any certificate */
	/* Its URL, for all hosts. NULL: as the environment says, by libcurl's rules: HTTPS_PROXY,
	 * http_proxy (lower case only), NO_PROXY with names, addresses and CIDRs, which with a
	 * server_name is compared with that. */
	const char *proxy;
};

/* NULL with text: libcurl is not there, or a PEM text cannot be used. trust may be NULL. */
struct http_client *http_client_new(struct loop *l, const struct http_trust *trust, struct err *e);
/* Other certificates from now on; calls under way end with the old ones. 0, or -errno with text and
 * all as it was. */
int http_client_trust(struct http_client *c, const struct http_trust *trust, struct err *e);
/* Cancels what is under way: done() is not called. Before loop_free(). NULL is fine. */
void http_client_free(struct http_client *c);

struct http_ask {
	const char *method; /* NULL: GET */
	const char *url;
	const char *const *headers; /* "Name: value", NULL at the end; NULL: none */
	const void *body;           /* copied */
	size_t len;
	unsigned timeout_ms; /* for all of it; 0: none, it may last for ever */
	unsigned idle_ms;    /* without a byte; 0: none */
	size_t answer_max;   /* bytes of the body; 0: none but what data() takes */
};

struct http_answer {
	int status;             /* 200; 0: no whole answer came, and *e says why */
	const char *type;       /* Content-Type, or "" */
	unsigned retry_after_s; /* Retry-After, from now if it is a date; 0: none, or past */
	const char *body;       /* with a NUL behind it; "" where data() took it */
	size_t len;
};

struct http_events {
	void *ctx;
	/* optional: the body of an answer with status 200, as it comes. -errno ends the call with
	 * it. Other answers' bodies, and all without data(), come with done(). */
	int (*data)(void *ctx, const void *data, size_t len);
	/* mandatory, once, in a later turn. Without a status e has code and text: ECONNREFUSED,
	 * EHOSTUNREACH (name, network or proxy), ETIMEDOUT, ECONNRESET (it broke off), EMSGSIZE
	 * (more than answer_max), EACCES (TLS: its certificate, or ours), EPROTO, EINVAL (ask), or
	 * data()'s. */
	void (*done)(void *ctx, const struct http_answer *a, const struct err *e);
};

struct http_call;
/* Never NULL; what is wrong with ask comes with done(). */
struct http_call *http_call_start(
	struct http_client *c, const struct http_ask *ask, const struct http_events *events);
/* done() and data() will not be called any more; the connection is closed in a later turn of the
 * loop. NULL is fine. */
void http_call_cancel(struct http_call *call);

#endif
