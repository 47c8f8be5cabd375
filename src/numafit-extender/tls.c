/* The files of tls: read at the start, and again when they change. */
#include "extender.h"

#include <io/file.h>
#include <io/log.h>
#include <io/watch.h>
#include <numafit/mem.h>
#include <numafit/text.h>

/* One change comes as several events, and of several files. */
enum { PEM_BYTES_MAX = 1 << 20, SETTLE_MS = 100 };
enum { CERT, KEY, CLIENT_CA, NR_FILES };

/* What the files say; NULL: there is no such file. */
struct pem {
	char *text[NR_FILES];
};

struct tls {
	struct extender *x;
	struct pem last; /* what was read last; none when that failed */
	struct err why;  /* that is not in force; code 0: it is */
	struct file_watch watch[NR_FILES];
	struct loop_timer *settled;
};

static const char *file_of(const struct extender *x, unsigned i)
{
	const char *const file[NR_FILES] = {
		[CERT] = x->config.cert_file,
		[KEY] = x->config.key_file,
		[CLIENT_CA] = x->config.client_ca_file,
	};

	return file[i];
}

/* Reading */

static void pem_fini(struct pem *p)
{
	for (unsigned i = 0; i < NR_FILES; i++)
		free(p->text[i]);
	*p = (struct pem){0};
}

static bool pem_equal(const struct pem *a, const struct pem *b)
{
	for (unsigned i = 0; i < NR_FILES; i++)
		if (a->text[i] && !(b->text[i] && text_equal(a->text[i], b->text[i])))
			return false;
	return true;
}

static int pem_read(const struct extender *x, struct pem *out, struct err *e)
{
	int rc = 0;

	*out = (struct pem){0};
	for (unsigned i = 0; i < NR_FILES && !rc; i++)
		if (*file_of(x, i))
			rc = file_read(file_of(x, i), PEM_BYTES_MAX, &out->text[i], NULL, e);
	if (rc)
		pem_fini(out);
	return rc;
}

/* Changes */

static void reload_tls_files(void *ctx)
{
	struct tls *t = ctx;
	struct pem now;
	struct err e;
	char text[2 * sizeof e.text];
	int rc = pem_read(t->x, &now, &e);
	bool is_news = rc || !pem_equal(&now, &t->last);

	pem_fini(&t->last);
	t->last = now;
	if (!is_news)
		return;
	if (!rc)
		rc = http_server_set_tls(
			t->x->http, now.text[CERT], now.text[KEY], now.text[CLIENT_CA], &e);
	if (rc) {
		if (!text_equal(e.text, t->why.text)) /* else it is in the log already */
			log_line(LOG_ERROR, "tls-refused",
				"error=%s action=\"repair the files: until then those before them "
				"serve\"",
				log_text(text, sizeof text, e.text));
		t->why = e;
		return;
	}
	t->why = (struct err){0};
	log_line(LOG_INFO, "tls-reloaded", "text=\"they count for new connections\"");
}

static void on_tls_file_change(void *ctx)
{
	struct tls *t = ctx;

	loop_timer_set(t->settled, SETTLE_MS);
}

static void watch_tls_file(struct tls *t, unsigned i)
{
	const char *file = file_of(t->x, i);
	char text[512];

	if (*file && !file_watch_start(&t->watch[i], t->x->loop, file, on_tls_file_change, t))
		log_line(LOG_WARN, "tls-not-watched",
			"file=%s action=\"restart numafit-extender when it has changed\"",
			log_text(text, sizeof text, file));
}

/* The whole */

int tls_start(struct extender *x, struct http_server_options *o, struct err *e)
{
	if (!*x->config.cert_file)
		return 0;
	struct tls *t = x->tls = xcalloc(1, sizeof *t);
	t->x = x;
	t->settled = loop_timer_new(x->loop, reload_tls_files, t);
	for (unsigned i = 0; i < NR_FILES; i++) /* before they are read: no change is missed */
		watch_tls_file(t, i);
	int rc = pem_read(x, &t->last, e);
	if (rc)
		return err_add(e, rc, "tls");
	o->cert = t->last.text[CERT];
	o->key = t->last.text[KEY];
	o->client_ca = t->last.text[CLIENT_CA];
	return 0;
}

void tls_check(const struct extender *x, struct mistakes *all)
{
	static const char *const key[NR_FILES] = {
		"tls.certFile", "tls.keyFile", "tls.clientCAFile"};
	struct pem pem = {0};
	bool whole = *x->config.cert_file;
	struct err e;

	for (unsigned i = 0; i < NR_FILES; i++)
		if (*file_of(x, i) &&
			file_read(file_of(x, i), PEM_BYTES_MAX, &pem.text[i], NULL, &e)) {
			whole = false;
			(void)err_add(&e, 0, "%s", key[i]);
			mistakes_add_key(all, key[i], &e);
		}
	if (whole && pem.text[KEY] &&
		http_server_check_tls(pem.text[CERT], pem.text[KEY], pem.text[CLIENT_CA], &e)) {
		(void)err_add(&e, 0, "tls");
		mistakes_add_key(all, "tls", &e);
	}
	pem_fini(&pem);
}

void tls_stop(struct extender *x)
{
	struct tls *t = x->tls;

	if (!t)
		return;
	for (unsigned i = 0; i < NR_FILES; i++)
		file_watch_stop(&t->watch[i]);
	loop_timer_close(t->settled);
	pem_fini(&t->last);
	free(t);
	x->tls = NULL;
}
