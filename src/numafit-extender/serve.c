/* What is asked over HTTP: schedulers' verbs, health, metrics. */
#include "extender.h"

#include <io/fault.h>
#include <io/log.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <numafit/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ui/guard.h>
#include <unistd.h>

enum {
	PAGE_OK = 200,
	PAGE_BAD_REQUEST = 400,
	PAGE_NOT_FOUND = 404,
	PAGE_NOT_ALLOWED = 405,
	PAGE_UNAVAILABLE = 503,
	PROBERS_MAX = 256,
	METRICS_MS = 1000
};

/* A pod that no node has room for is looked at twice. kube-scheduler asks again when it hears of a
 * pod's end, at the same moment as we hear of it, and perhaps some milliseconds earlier; and when
 * it is refused then, there may be no other reason to ask again for minutes. kube-scheduler asks
 * about one pod at a time: so one waits at a time, and not more than half of the time, or a long
 * queue of pods that wait would take longer to go through. */
struct second_look {
	struct extender *x;
	struct loop_timer *timer;
	struct http_exchange *exchange; /* NULL: none waits */
	struct http_request request;    /* its body is the exchange's */
	uint64_t since_ns, ended_ns;
};

/* Answers */

static void send_text(
	struct http_exchange *exchange, int status, const char *text, const char *extra)
{
	http_answer_send(exchange, status, "text/plain", text, strlen(text), extra);
}

void answer_json(struct http_exchange *exchange, const char *body, size_t len)
{
	http_answer_send(exchange, PAGE_OK, "application/json", body, len, NULL);
}

void answer_count(
	struct extender *x, enum extender_verb verb, enum extender_result result, uint64_t since_ns)
{
	uint64_t ns = loop_monotonic_ns() - since_ns;

	x->measured.requests[verb][result]++;
	histogram_add(&x->measured.duration[verb], ns);
	log_line(LOG_DEBUG, "request", "verb=%s result=%u us=%llu", extender_verb_name(verb),
		(unsigned)result, (unsigned long long)(ns / NS_PER_US));
}

/* Verbs */

typedef char *decide(
	struct extender *x, const struct http_request *r, struct decided *out, struct err *e);
static decide *const decides[NR_EXTENDER_VERBS] = {
	[VERB_FILTER] = decide_filter,
	[VERB_PRIORITIZE] = decide_prioritize,
	[VERB_PREEMPT] = decide_preempt,
};

static void refuse_request(struct extender *x, struct http_exchange *exchange,
	enum extender_verb verb, uint64_t since_ns, const char *why)
{
	char text[512];

	log_line(LOG_WARN, "bad-request", "verb=%s error=%s", extender_verb_name(verb),
		log_text(text, sizeof text, why));
	answer_count(x, verb, RESULT_BAD, since_ns);
	(void)snprintf(text, sizeof text, "numafit: %s\n", why);
	send_text(exchange, PAGE_BAD_REQUEST, text, NULL);
}

/* Answer after refusalDelay. False: not this time, and it is to be answered. */
static bool second_look_begin(struct extender *x, struct http_exchange *exchange,
	const struct http_request *r, uint64_t since_ns)
{
	struct second_look *l = x->second_look;
	uint64_t delay_ns = x->config.refusal_delay_ms * (uint64_t)NS_PER_MS;

	if (l->exchange || x->stopping || !delay_ns || loop_monotonic_ns() - l->ended_ns < delay_ns)
		return false;
	l->exchange = exchange;
	l->request = (struct http_request){.body = r->body, .len = r->len};
	l->since_ns = since_ns;
	loop_timer_set(l->timer, x->config.refusal_delay_ms);
	return true;
}

static void note_nowhere(struct extender *x, const struct decided *d)
{
	if (x->view && d->nowhere)
		cluster_view_refused(x->view, &(struct cluster_refusal){.time_ms = loop_wall_ms(),
						      .kind = REFUSED_NOWHERE,
						      .uid = d->uid,
						      .ns = d->ns,
						      .pod = d->pod,
						      .node = ""});
}

static void answer_verb(struct extender *x, struct http_exchange *exchange, enum extender_verb verb,
	const struct http_request *r, uint64_t since_ns, bool again)
{
	struct decided out = {0};
	struct err e;
	auto_free char *body = decides[verb](x, r, &out, &e);

	if (!body) {
		refuse_request(x, exchange, verb, since_ns, e.text);
	} else if (again || !out.nowhere || !second_look_begin(x, exchange, r, since_ns)) {
		answer_count(x, verb, RESULT_OK, since_ns);
		note_nowhere(x, &out);
		answer_json(exchange, body, out.len);
	}
}

static void second_look_end(struct second_look *l)
{
	l->exchange = NULL;
	l->ended_ns = loop_monotonic_ns();
}

/* The filter that waited is answered for good. */
static void on_second_look(void *ctx)
{
	struct second_look *l = ctx;
	struct http_exchange *exchange = l->exchange;

	second_look_end(l);
	answer_verb(l->x, exchange, VERB_FILTER, &l->request, l->since_ns, true);
}

static void answer_scheduler(struct extender *x, struct http_exchange *exchange,
	enum extender_verb verb, const struct http_request *r)
{
	uint64_t since_ns = loop_monotonic_ns();
	const char *why;
	struct err e;

	if (!state_ready(x, &why)) {
		char text[256];

		answer_count(x, verb, RESULT_NOT_READY, since_ns);
		(void)snprintf(text, sizeof text, "numafit: %s\n", why);
		send_text(exchange, PAGE_UNAVAILABLE, text, "Retry-After: 1");
		return;
	}
	if (verb != VERB_BIND)
		answer_verb(x, exchange, verb, r, since_ns, false);
	else if (bind_begin(x, exchange, r, since_ns, &e))
		refuse_request(x, exchange, verb, since_ns, e.text);
}

/* Pages */

static void count_connections(const struct extender *x, struct extender_metrics *m)
{
	const struct http_server *const server[] = {x->http, x->pages};

	m->crowded_out = m->closed[CLOSED_CROWDED] = m->closed[CLOSED_SLOW] = 0;
	for (unsigned i = 0; i < sizeof server / sizeof *server; i++) {
		struct http_counts c =
			server[i] ? http_server_counts(server[i]) : (struct http_counts){0};

		m->crowded_out += c.refused;
		m->closed[CLOSED_CROWDED] += c.crowded;
		m->closed[CLOSED_SLOW] += c.slow;
	}
}

static void make_metrics(struct extender *x)
{
	struct extender_metrics *m = &x->measured;

	m->version = NUMAFIT_VERSION;
	process_measure(&m->process);
	m->kept = kept_count(x->kept);
	m->avoided = sched_avoid_count(x->avoid, loop_wall_ms());
	m->binding = bind_count(x);
	m->unsettled = bind_count_unsettled(x);
	count_connections(x, m);
	for (unsigned i = 0; i < NR_WATCHES; i++)
		m->synced[i] = state_follows(x, (enum extender_watch)i);
	sched_cluster_count(x->cluster, &m->cluster);
	free(x->shown.text);
	x->shown.text = extender_metrics_text(m, &x->shown.len);
	x->shown.made_ns = loop_monotonic_ns();
}

/* They cost a walk over all nodes, and anybody may ask for them as often as he likes. */
static void show_extender_metrics(struct extender *x, struct http_exchange *exchange)
{
	uint64_t age_ms = (loop_monotonic_ns() - x->shown.made_ns) / NS_PER_MS;

	if (!x->shown.text || age_ms >= fault_time_ms("NUMAFIT_FAULT_METRICS_MS", METRICS_MS))
		make_metrics(x);
	http_answer_send(exchange, PAGE_OK, PROMETHEUS_TYPE, x->shown.text, x->shown.len, NULL);
}

static void show_live(struct extender *x, struct http_exchange *exchange)
{
	(void)x;
	send_text(exchange, PAGE_OK, "ok", NULL);
}

static void show_ready(struct extender *x, struct http_exchange *exchange)
{
	const char *why = "it is being stopped";

	if (!x->stopping && state_ready(x, &why))
		send_text(exchange, PAGE_OK, "ok", NULL);
	else
		send_text(exchange, PAGE_UNAVAILABLE, why, NULL);
}

static const struct page {
	const char *name;
	void (*show)(struct extender *x, struct http_exchange *exchange);
} pages[] = {
	{"healthz", show_live},
	{"livez", show_live},
	{"readyz", show_ready},
	{"metrics", show_extender_metrics},
};

/* The last part of the path says what is asked, whatever prefix the scheduler was given. */
static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool takes_read(struct http_exchange *exchange, const struct http_request *r)
{
	bool takes = text_equal(r->method, "GET") || text_equal(r->method, "HEAD");

	if (!takes)
		send_text(exchange, PAGE_NOT_ALLOWED, "GET is expected\n", "Allow: GET, HEAD");
	return takes;
}

/* Without certificates of clients a web page in a browser on this machine could call the loopback address.
 * With certificates, or insecure: true, clients name the service as they like. */
static bool takes_call(
	const struct extender *x, struct http_exchange *exchange, const struct http_request *r)
{
	bool here = !*x->config.client_ca_file && !x->config.insecure;
	const struct ui_visit visit = {.method = r->method,
		.path = r->path,
		.host = r->host,
		.site = r->site,
		.type = r->type,
		.hosts = here ? UI_HOSTS_LOOPBACK : UI_HOSTS_ANY};
	const char *why = NULL;
	int refused = ui_guard_call(&visit, &why);

	if (refused)
		send_text(
			exchange, refused, why, refused == PAGE_NOT_ALLOWED ? "Allow: POST" : NULL);
	return !refused;
}

static bool answer_page(
	struct extender *x, struct http_exchange *exchange, const struct http_request *r)
{
	const char *name = last_part(r->path);

	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
		if (!text_equal(name, pages[i].name))
			continue;
		if (takes_read(exchange, r))
			pages[i].show(x, exchange);
		return true;
	}
	return false;
}

static void handle_request(void *ctx, struct http_exchange *exchange, const struct http_request *r)
{
	const char *name = last_part(r->path);

	for (unsigned i = 0; i < NR_EXTENDER_VERBS; i++)
		if (text_equal(name, extender_verb_name(i))) {
			if (takes_call(ctx, exchange, r))
				answer_scheduler(ctx, exchange, (enum extender_verb)i, r);
			return;
		}
	if (!answer_page(ctx, exchange, r))
		send_text(exchange, PAGE_NOT_FOUND,
			"filter, prioritize, preempt, bind; healthz, livez, readyz, metrics\n",
			NULL);
}

/* For kubelets and Prometheus, which have no certificate to show: nothing is decided here. */
static void handle_page(void *ctx, struct http_exchange *exchange, const struct http_request *r)
{
	if (!answer_page(ctx, exchange, r))
		send_text(exchange, PAGE_NOT_FOUND, "healthz, livez, readyz, metrics\n", NULL);
}

static void on_client_gone(void *ctx, struct http_exchange *exchange)
{
	struct extender *x = ctx;

	bind_gone(x, exchange);
	if (x->second_look->exchange == exchange) {
		loop_timer_stop(x->second_look->timer);
		second_look_end(x->second_look);
	}
}

/* Anybody can make certificates. */
static void on_stranger(void *ctx, const char *why)
{
	struct extender *x = ctx;
	char text[512];

	x->measured.strangers++;
	if (!line_is_due(&x->stranger_said_ns))
		return;
	log_line(LOG_WARN, "client-refused",
		"error=%s action=\"if it is kube-scheduler, give it a certificate by "
		"tls.clientCAFile with extendedKeyUsage=clientAuth\"",
		log_text(text, sizeof text, why));
}

/* Building */

/* In a pod's network namespace the kubelet comes from an address of the node: the one that the
 * Deployment says, or, with a bridge, the one that the default route leads to. */
static const char *probers(char text[PROBERS_MAX])
{
	const char *node = getenv("HOST_IP");

	(void)snprintf(text, PROBERS_MAX, "gateway,%s", node ? node : "");
	return node ? text : NULL;
}

static int start_pages(struct extender *x, struct err *e)
{
	char text[PROBERS_MAX];
	const struct http_server_options o = {
		.address = x->config.metrics_address,
		.also_own = probers(text),
		.no_body = true,
		.ctx = x,
		.handle = handle_page,
	};

	if (!*o.address)
		return 0;
	x->pages = http_server_new(x->loop, &o, e);
	return x->pages ? 0 : err_add(e, -e->code, "metrics.address");
}

int serve_start(struct extender *x, struct err *e)
{
	enum { CLIENTS_MAX = 64 };
	const struct extender_config *c = &x->config;
	char text[PROBERS_MAX];
	struct http_server_options o = {
		.also_own = probers(text),
		.address = c->listen,
		.body_max = c->request_bytes_max,
		.held_max = c->held_bytes_max,
		.clients_max = CLIENTS_MAX,
		.ctx = x,
		.handle = handle_request,
		.stranger = on_stranger,
		.gone = on_client_gone,
	};
	int rc = tls_start(x, &o, e);

	if (rc)
		return rc;
	x->second_look = xcalloc(1, sizeof *x->second_look);
	x->second_look->x = x;
	x->second_look->timer = loop_timer_new(x->loop, on_second_look, x->second_look);
	x->measured.process.start_ns = (uint64_t)loop_wall_ms() * NS_PER_MS;
	x->http = http_server_new(x->loop, &o, e);
	return x->http ? start_pages(x, e) : err_add(e, -e->code, "listen");
}

void serve_stop(struct extender *x)
{
	tls_stop(x);
	http_server_free(x->http);
	http_server_free(x->pages);
	x->http = x->pages = NULL;
	if (x->second_look)
		loop_timer_close(x->second_look->timer);
	free(x->second_look);
	x->second_look = NULL;
	free(steal(x->shown.text));
}
