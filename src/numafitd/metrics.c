/* Metrics and health over HTTP. All of it is made when somebody asks. */
#include "metrics.h"
#include "claims.h"
#include "cluster.h"
#include "daemon.h"
#include "health.h"
#include "pool.h"
#include "quiet.h"
#include "quota.h"
#include "services.h"
#include "status.h"

#include <dra-driver/driver.h>
#include <io/fault.h>
#include <io/http_server.h>
#include <io/log.h>
#include <mover/moves.h>
#include <numafit/host_kind.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <numafit/tokens.h>
#include <numafit/version.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRY_AGAIN_S = 10 };
/* RFC 9110, 15 */
enum {
	PAGE_OK = 200,
	PAGE_FORBIDDEN = 403,
	PAGE_NOT_FOUND = 404,
	PAGE_NOT_ALLOWED = 405,
	PAGE_UNAVAILABLE = 503
};

struct metrics_server {
	struct daemon *d;
	struct http_server *http;
	struct shown_document shown;
	struct loop_timer *again;
	uint64_t start_ns; /* of the process, since the epoch */
	struct err logged; /* why nobody is served */
};

/* What is measured */

static void count_promised(const struct ledger *l, unsigned promised[NODES_MAX])
{
	const struct topo *t = ledger_view(l)->topo;
	struct cpuset cpus = ledger_promised_cpus(l, NULL);

	nodeset_each (n, t->nodes)
		promised[n] = cpuset_count_and(&t->node[n].cpus, &cpus);
}

/* By the clock as it is now: who serves asks once, so that the value stays the same. */
static uint64_t process_start_ns(const struct daemon *d)
{
	return (uint64_t)loop_wall_ms() * NS_PER_MS -
	       (loop_monotonic_ns() - d->measured.started_ns);
}

static void count_moves(const struct mover *m, struct metrics_moves *out)
{
	const struct mover_counters c = mover_counters(m);

	*out = (struct metrics_moves){
		.made = {[MOVE_MADE] = c.moved, [MOVE_TAKEN_BACK] = c.undone},
		.bytes = c.bytes,
		.ns = c.ns,
		.under_way = mover_is_busy(m),
	};
}

char *metrics_document(const struct daemon *d, size_t *len)
{
	const struct ledger *l = engine_ledger(d->engine);
	struct snapshot snapshot;
	struct metrics m = {
		.version = NUMAFIT_VERSION,
		.settings = &d->settings,
		.snapshot = &snapshot,
		.counters = d->measured.counters,
		.measured = d->measured.metrics,
		.connected = nri_conn_state(d->runtime.conn) == NRI_READY,
		.generation = d->recorder.generation,
		.journal_bytes = journal_size(d->recorder.journal),
		.pool = pool_status(d),
		.quota = quota_status(d),
		.journal_failing = d->recorder.error.code != 0,
		.process = {.start_ns = d->show.metrics ? d->show.metrics->start_ns
							: process_start_ns(d)},
	};

	m.counters.log_dropped = log_dropped();
	for (unsigned i = 0; i < m.pool.nr_confined; i++)
		m.confined[m.pool.confined[i].by] = m.pool.confined[i].containers;
	m.has_quiet = quiet_status(d, &m.quiet);
	m.has_config = reload_status(d, &m.config);
	m.has_apiserver = cluster_status(d, &m.apiserver);
	m.has_claims = claims_status(d, &m.claims);
	m.has_dra = dra_status(d->dra, &m.dra);
	m.shares = ledger_view(l)->nr_shares;
	(void)services_status(d, &m.kubelet);
	process_measure(&m.process);
	snapshot_take(&snapshot, l, &d->settings);
	count_promised(l, m.promised);
	cluster_metrics(d, &m.cluster);
	if (d->follow.moves)
		count_moves(moves_mover(d->follow.moves), &m.moves);
	return metrics_text(&m, len);
}

/* Pages */

static void answer_with_text(struct http_exchange *x, int status, const char *text)
{
	http_answer_send(x, status, "text/plain", text, strlen(text), NULL);
}

static void show_own_metrics(
	struct metrics_server *v, struct http_exchange *x, const struct http_request *r)
{
	struct shown_document *k = &v->shown;

	(void)r;
	shown_look(k, v->d, metrics_document);
	http_answer_send(x, PAGE_OK, PROMETHEUS_TYPE, k->text, k->len, NULL);
}

/* As the API server says it (k8s.io/apiserver/pkg/server/healthz). */
static void show_health(
	struct metrics_server *v, struct http_exchange *x, const struct http_request *r)
{
	struct health_verdict verdict;

	health_check(v->d, r->path + 1, &verdict);
	if (text_equal(r->query, "verbose") || text_equal(r->query, "verbose=true"))
		answer_with_text(x, verdict.ok ? PAGE_OK : PAGE_UNAVAILABLE, verdict.all);
	else
		answer_with_text(x, verdict.ok ? PAGE_OK : PAGE_UNAVAILABLE,
			verdict.ok ? "ok" : verdict.failures);
}

/* Why that client may not see the status, or NULL. It names pods, which not everybody on the
 * network needs to know. Nor does a site whose name has this machine's address, in a browser that
 * runs here: what that asks for has the site's name as its host. */
static const char *why_no_status(const struct http_request *r)
{
	enum host_kind host = host_kind_of(r->host);

	if (!r->local)
		return "only for clients on this machine\n";
	return host == HOST_LOOPBACK || host == HOST_ADDRESS
		       ? NULL
		       : "only by localhost or an address, with any port\n";
}

static void show_status(
	struct metrics_server *v, struct http_exchange *x, const struct http_request *r)
{
	const char *why_not = why_no_status(r);

	if (why_not) {
		answer_with_text(x, PAGE_FORBIDDEN, why_not);
		return;
	}
	const struct shown_document *k = status_shown(v->d);
	if (k->text)
		http_answer_send(x, PAGE_OK, "application/json", k->text, k->len, NULL);
	else
		answer_with_text(x, PAGE_UNAVAILABLE, "the status is too large\n");
}

static void show_index(
	struct metrics_server *v, struct http_exchange *x, const struct http_request *r);

static const struct page {
	const char *path, *what;
	void (*show)(
		struct metrics_server *v, struct http_exchange *x, const struct http_request *r);
} pages[] = {
	{"/", "this list", show_index},
	{"/metrics", "for Prometheus", show_own_metrics},
	{"/healthz", "the same as /livez", show_health},
	{"/livez", "whether it must not be restarted (?verbose: each check)", show_health},
	{"/readyz", "whether containers are placed (?verbose: each check)", show_health},
	{"/status", "what `numafit status --json` prints, on this machine", show_status},
};
enum { NR_PAGES = sizeof pages / sizeof *pages, INDEX_MAX = 1024 };

static void show_index(
	struct metrics_server *v, struct http_exchange *x, const struct http_request *r)
{
	char list[INDEX_MAX];
	struct text t;

	(void)v, (void)r;
	text_init(&t, list, sizeof list);
	text_add(&t, "numafitd " NUMAFIT_VERSION "\n");
	for (size_t i = 0; i < NR_PAGES; i++)
		text_add(&t, "%-9s %s\n", pages[i].path, pages[i].what);
	answer_with_text(x, PAGE_OK, list);
}

static void on_metrics_request(void *ctx, struct http_exchange *x, const struct http_request *r)
{
	static const char only_get[] = "only GET and HEAD\n";

	if (!text_equal(r->method, "GET") && !text_equal(r->method, "HEAD")) {
		http_answer_send(x, PAGE_NOT_ALLOWED, "text/plain", only_get, sizeof only_get - 1,
			"Allow: GET, HEAD");
		return;
	}
	for (size_t i = 0; i < NR_PAGES; i++)
		if (text_equal(r->path, pages[i].path)) {
			pages[i].show(ctx, x, r);
			return;
		}
	answer_with_text(x, PAGE_NOT_FOUND, "no such page; / lists them\n");
}

/* Serving */

static void note_metrics_failure(struct metrics_server *v, const struct err *e)
{
	char buf[2 * sizeof e->text];

	if (!text_equal(v->logged.text, e->text))
		log_line(LOG_ERROR, "metrics-not-served",
			"error=%s action=\"set metrics.address to one that is free, or to nothing; "
			"it is tried again every %d s\"",
			log_text(buf, sizeof buf, e->text), TRY_AGAIN_S);
	v->logged = *e;
}

static void serve_metrics(void *ctx)
{
	struct metrics_server *v = ctx;
	const struct http_server_options o = {.address = v->d->settings.metrics_address,
		.no_body = true,
		.ctx = v,
		.handle = on_metrics_request};
	struct err e = {0};

	v->http = http_server_new(v->d->loop, &o, &e);
	if (!v->http) {
		note_metrics_failure(v, &e);
		loop_timer_set(v->again, TRY_AGAIN_S * MS_PER_S);
		return;
	}
	log_line(LOG_INFO, "metrics-served", "address=%s port=%u", o.address,
		http_server_port(v->http));
}

void metrics_start(struct daemon *d)
{
	if (!*d->settings.metrics_address)
		return;
	struct metrics_server *v = xcalloc(1, sizeof *v);
	v->d = d;
	d->show.metrics = v;
	v->start_ns = process_start_ns(d);
	v->again = loop_timer_new(d->loop, serve_metrics, v);
	serve_metrics(v);
}

void metrics_stop(struct daemon *d)
{
	struct metrics_server *v = d->show.metrics;

	if (!v)
		return;
	http_server_free(v->http);
	loop_timer_close(v->again);
	free(v->shown.text);
	free(v);
	d->show.metrics = NULL;
}
