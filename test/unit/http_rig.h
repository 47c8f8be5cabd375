#ifndef NUMAFIT_TEST_HTTP_RIG_H
#define NUMAFIT_TEST_HTTP_RIG_H

/* A client, its loop, and what it hears. Names are resolved here: *.test is 127.0.0.1, none.test is
 * nobody, and who asks for hangs.test after rig_hang() waits until rig_let_go(). */

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <io/http_client.h>
#include <numafit/mem.h>
#include <numafit/text.h>

#include "http_peer.h"
#include <cmocka.h>

enum { RIG_TIMEOUT_MS = 30000, RIG_HANGS_S = 10, RIG_URL_MAX = 256, RIG_BODY_MAX = 64 << 10 };

struct heard {
	unsigned nr_done;
	int status, code;
	char text[sizeof((struct err *)0)->text];
	char type[64], body[RIG_BODY_MAX];
	unsigned retry_after_s;
	size_t len;      /* of the body */
	size_t data_len; /* what data() was given */
};

struct rig {
	struct loop *l;
	struct loop_timer *deadline;
	struct http_client *c;
	struct peer *peer, *other;
	struct heard h;
};

static pthread_mutex_t rig_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t rig_woken = PTHREAD_COND_INITIALIZER;
static bool rig_hangs;
static unsigned rig_nr_hanging;

static void rig_wait_for_release(void)
{
	struct timespec end;

	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += RIG_HANGS_S; /* as resolvers give up too */
	(void)pthread_mutex_lock(&rig_lock);
	rig_nr_hanging++;
	while (rig_hangs && pthread_cond_timedwait(&rig_woken, &rig_lock, &end) == 0)
		;
	rig_nr_hanging--;
	(void)pthread_cond_broadcast(&rig_woken);
	(void)pthread_mutex_unlock(&rig_lock);
}

/* From now on, who asks for hangs.test waits. */
static inline void rig_hang(void)
{
	(void)pthread_mutex_lock(&rig_lock);
	rig_hangs = true;
	(void)pthread_mutex_unlock(&rig_lock);
}

/* Let those go who ask for hangs.test, and wait until they have gone. */
static inline void rig_let_go(void)
{
	(void)pthread_mutex_lock(&rig_lock);
	rig_hangs = false;
	(void)pthread_cond_broadcast(&rig_woken);
	while (rig_nr_hanging)
		(void)pthread_cond_wait(&rig_woken, &rig_lock);
	(void)pthread_mutex_unlock(&rig_lock);
}

/* libcurl's own call of it comes here. */
__attribute__((visibility("default"))) int getaddrinfo(
	const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
	void *found = dlsym(RTLD_NEXT, "getaddrinfo");
	size_t len = node ? strlen(node) : 0;

	memcpy(&real, &found, sizeof real);
	if (len < 5 || strcmp(node + len - 5, ".test") != 0)
		return real(node, service, hints, out);
	if (text_equal(node, "hangs.test"))
		rig_wait_for_release();
	return text_equal(node, "none.test") ? EAI_NONAME : real("127.0.0.1", service, hints, out);
}

static void rig_too_late(void *ctx)
{
	(void)ctx;
	fail_msg("nothing happened in %d ms", RIG_TIMEOUT_MS);
}

static inline struct rig *rig_new(const struct http_trust *trust)
{
	struct rig *r = xcalloc(1, sizeof *r);
	struct err e = {0};

	r->l = loop_new();
	r->deadline = loop_timer_new(r->l, rig_too_late, NULL);
	loop_timer_set(r->deadline, RIG_TIMEOUT_MS);
	r->c = http_client_new(r->l, trust, &e);
	if (!r->c)
		fail_msg("%s", e.text);
	return r;
}

static inline void rig_free(struct rig *r)
{
	http_client_free(r->c);
	loop_free(r->l);
	peer_stop(r->peer);
	peer_stop(r->other);
	free(r);
}

static inline const char *rig_url(
	char url[RIG_URL_MAX], const char *scheme, const char *host, const struct peer *p)
{
	(void)snprintf(url, RIG_URL_MAX, "%s://%s:%u/path?query", scheme, host, p->port);
	return url;
}

static inline void rig_done(void *ctx, const struct http_answer *a, const struct err *e)
{
	struct rig *r = ctx;
	struct heard *h = &r->h;

	h->nr_done++;
	h->status = a->status;
	h->retry_after_s = a->retry_after_s;
	h->len = a->len;
	(void)text_copy(h->type, sizeof h->type, a->type);
	(void)text_copy(h->body, sizeof h->body, a->body);
	h->code = a->status ? 0 : -e->code;
	(void)text_copy(h->text, sizeof h->text, a->status ? "" : e->text);
	assert_int_equal(a->status == 0, e->code != 0);
	loop_stop(r->l);
}

static inline int rig_data(void *ctx, const void *data, size_t len)
{
	struct rig *r = ctx;

	(void)data;
	r->h.data_len += len;
	return 0;
}

/* Ask, and wait for the answer in r->h. */
static inline void rig_ask(struct rig *r, const struct http_ask *ask, bool with_data)
{
	const struct http_events events = {
		.ctx = r, .data = with_data ? rig_data : NULL, .done = rig_done};

	r->h = (struct heard){0};
	assert_non_null(http_call_start(r->c, ask, &events));
	assert_int_equal(r->h.nr_done, 0);
	loop_run(r->l);
	assert_int_equal(r->h.nr_done, 1);
}

/* GET of a peer, with limits that nothing here reaches. */
static inline void rig_get(
	struct rig *r, const char *scheme, const char *host, const struct peer *p)
{
	char url[RIG_URL_MAX];
	const struct http_ask ask = {.url = rig_url(url, scheme, host, p),
		.timeout_ms = RIG_TIMEOUT_MS,
		.answer_max = RIG_BODY_MAX - 1};

	rig_ask(r, &ask, false);
}

#endif
