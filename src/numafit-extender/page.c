/* The page of the cluster. What it shows is brought up to date when a reader asks, and once a
 * minute for a sample: some nodes, or one reader's answer, in each turn of the loop, so that
 * kube-scheduler does not wait for it. However many ask, that is done once in REST_MS at most, for
 * all of them. */
#include "extender.h"

#include <errno.h>
#include <io/log.h>
#include <numafit/number.h>
#include <numafit/version.h>
#include <string.h>
#include <ui/page_server.h>

enum {
	READERS_MAX = 16,
	REST_MS = 500,  /* from one time to the next */
	TURN_US = 1000, /* of one turn, and no less than NODES_AT_ONCE */
	NODES_AT_ONCE = 16,
};

struct page {
	struct extender *x;
	struct page_server *server;
	struct loop_timer *turn, *minute;
	bool looking;                            /* or about to */
	bool sample;                             /* one is to be taken when all was looked at */
	size_t at;                               /* the next node to look at */
	uint64_t began_ns, ended_ns, longest_ns; /* of all turns; of the longest one */
	struct reader {
		struct http_exchange *exchange;
		struct cluster_seen seen;
	} reader[READERS_MAX];
	unsigned nr_readers, due; /* the first ones are to be answered now */
};

/* Answers */

static void page_figures(struct extender *x, struct cluster_figures *f)
{
	const struct extender_metrics *m = &x->measured;
	const char *why = "";

	*f = (struct cluster_figures){
		.now_ms = loop_wall_ms(),
		.version = NUMAFIT_VERSION,
		.pool_label = x->config.pool_label,
		.requests = m->requests[VERB_FILTER][RESULT_OK],
		.asked = m->nodes_asked[VERB_FILTER],
		.left_out = m->nodes_refused,
		.avoided = sched_avoid_count(x->avoid, loop_wall_ms()),
		.binds = m->binds,
		.bind_words = extender_bound_names,
		.nr_binds = NR_EXTENDER_BOUNDS,
	};
	(void)state_ready(x, &why);
	f->unready = why;
	sched_cluster_count(x->cluster, &f->counts);
}

static void answer_reader(struct page *p, const struct reader *r, const struct cluster_figures *f)
{
	const struct err too_large = {EMSGSIZE, "the cluster is too large for the page"};
	uint64_t since_ns = loop_monotonic_ns();
	size_t len = 0;
	auto_free char *document = cluster_view_json(p->x->view, f, &r->seen, &len);

	if (document)
		page_send(r->exchange, UI_OK, document, len);
	else
		page_send_error(r->exchange, UI_UNAVAILABLE, &too_large);
	log_line(LOG_DEBUG, "page-read", "bytes=%zu us=%llu look_us=%llu longest_turn_us=%llu", len,
		(unsigned long long)((loop_monotonic_ns() - since_ns) / NS_PER_US),
		(unsigned long long)((p->ended_ns - p->began_ns) / NS_PER_US),
		(unsigned long long)(p->longest_ns / NS_PER_US));
}

/* Of those that waited when all was looked at; who has come since waits for the next time. */
static void answer_next_reader(struct page *p)
{
	const struct reader next = p->reader[0];
	struct cluster_figures f;

	p->due--;
	p->nr_readers--;
	memmove(&p->reader[0], &p->reader[1], p->nr_readers * sizeof p->reader[0]);
	page_figures(p->x, &f);
	answer_reader(p, &next, &f);
}

/* Looking */

static void look_begin(struct page *p);

static void look_end(struct page *p)
{
	p->ended_ns = loop_monotonic_ns();
	if (p->sample)
		cluster_view_sample(p->x->view, loop_wall_ms());
	p->sample = false;
	p->due = p->nr_readers;
}

/* Whether there are more nodes to look at. */
static bool look_on(struct page *p)
{
	uint64_t since_ns = loop_monotonic_ns(), took_ns;
	bool more;

	if (!p->at)
		p->began_ns = since_ns;
	do {
		more = cluster_view_look(p->x->view, p->x->cluster, &p->at, NODES_AT_ONCE);
		took_ns = loop_monotonic_ns() - since_ns;
	} while (more && took_ns < TURN_US * (uint64_t)NS_PER_US);
	p->longest_ns = number_max(p->longest_ns, took_ns);
	return more;
}

/* One turn: some nodes, or one reader. */
static void on_turn(void *ctx)
{
	struct page *p = ctx;
	bool more = false;

	if (p->due)
		answer_next_reader(p);
	else if (!(more = look_on(p)))
		look_end(p);
	if (more || p->due) {
		loop_timer_set(p->turn, 0);
		return;
	}
	p->looking = false;
	if (p->nr_readers || p->sample)
		look_begin(p);
}

/* Soon, but not again at once. */
static void look_begin(struct page *p)
{
	uint64_t rested_ms = (loop_monotonic_ns() - p->ended_ns) / NS_PER_MS;

	if (p->looking)
		return;
	p->looking = true;
	p->at = 0;
	p->longest_ns = 0;
	loop_timer_set(p->turn, rested_ms < REST_MS ? REST_MS - rested_ms : 0);
}

static void on_minute(void *ctx)
{
	struct page *p = ctx;

	p->sample = state_ready(p->x, &(const char *){NULL});
	loop_timer_set(p->minute, (p->sample ? CLUSTER_SAMPLE_S : 1) * (uint64_t)MS_PER_S);
	if (p->sample)
		look_begin(p);
}

/* Readers */

static void show_cluster(void *ctx, struct http_exchange *x, const struct http_request *r)
{
	static const struct err many = {EAGAIN, "too many ask at the same time"};
	struct page *p = ctx;

	if (p->nr_readers == READERS_MAX) {
		page_send_error(x, UI_TOO_MANY, &many);
		return;
	}
	p->reader[p->nr_readers++] = (struct reader){x, cluster_seen_read(r->query)};
	look_begin(p);
}

static void on_page_reader_gone(void *ctx, struct http_exchange *x)
{
	struct page *p = ctx;

	for (unsigned i = 0; i < p->nr_readers; i++)
		if (p->reader[i].exchange == x) {
			p->nr_readers--;
			p->due -= i < p->due;
			memmove(&p->reader[i], &p->reader[i + 1],
				(p->nr_readers - i) * sizeof p->reader[0]);
			return;
		}
}

static void on_page_event(void *ctx, bool bad, const char *event, const char *text)
{
	char buf[1024];

	(void)ctx;
	log_line(bad ? LOG_ERROR : LOG_INFO, event, "text=%s", log_text(buf, sizeof buf, text));
}

static const struct page_document cluster_documents[] = {{"/api/cluster", show_cluster}};

void page_start(struct extender *x)
{
	if (!x->view)
		return;
	struct page *p = x->page = xcalloc(1, sizeof *p);
	p->x = x;
	p->turn = loop_timer_new(x->loop, on_turn, p);
	p->minute = loop_timer_new(x->loop, on_minute, p);
	on_minute(p);
	p->server = page_server_new(&(struct page_server_options){
		.loop = x->loop,
		.address = x->config.ui_address,
		.any_address = x->config.ui_insecure,
		.page = &ui_cluster_page,
		.document = cluster_documents,
		.nr_documents = sizeof cluster_documents / sizeof *cluster_documents,
		.ctx = p,
		.gone = on_page_reader_gone,
		.on_event = on_page_event,
	});
}

void page_stop(struct extender *x)
{
	struct page *p = steal(x->page);

	if (!p)
		return;
	page_server_free(p->server);
	loop_timer_close(p->turn);
	loop_timer_close(p->minute);
	free(p);
}
