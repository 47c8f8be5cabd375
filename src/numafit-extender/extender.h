#ifndef NUMAFIT_EXTENDER_EXTENDER_H
#define NUMAFIT_EXTENDER_EXTENDER_H

#include <apiserver/reflector.h>
#include <numafit-extender/cluster_view.h>
#include <numafit-extender/extender_json.h>
#include <numafit-extender/extender_metrics_text.h>
#include <numafit-extender/extender_watch_json.h>
#include <numafit-extender/extender_yaml.h>
#include <io/http_server.h>
#include <numafit/sched_avoid.h>
#include <numafit/advice.h>

/* The scheduler's side: state.c follows the cluster, serve.c speaks with kube-scheduler, decide.c
 * answers it, bind.c binds, pods.c remembers pods and what was decided in between, and page.c shows
 * the cluster to people. Replicas know nothing of each other: what one has bound, the others learn
 * from the pods. */

struct json_t;
struct kept;
struct unbound;
struct bind;
struct second_look;
struct tls;
struct page;

struct watch {
	struct extender *x;
	enum extender_watch which;
	struct reflector *reflector;
	struct api_call *look; /* whether the resource exists at all */
	uint64_t looked_ns;    /* when that was last asked; 0: never */
	bool listed;           /* a list has begun since */
	bool synced;           /* all of it was listed, some time */
	uint64_t broken_ns;    /* after that: since when it is not followed; 0: it is */
	bool absent;           /* there is no such resource */
	unsigned nr_odd;       /* objects that could not be read */
};

struct extender {
	struct extender_config config;
	struct loop *loop;
	struct loop_timer *tick, *drain;
	struct api *api;
	struct topo every_node;
	struct sched_cluster *cluster;
	struct sched_avoid *avoid;
	struct kept *kept;
	struct unbound *unbound;
	struct watch watch[NR_WATCHES];
	struct http_server *http, *pages; /* NULL: pages are with the rest alone */
	struct tls *tls;                  /* NULL: plain HTTP */
	struct bind *binds;               /* under way */
	struct second_look *second_look;
	struct cluster_view *view; /* NULL: there is no page of the cluster */
	struct page *page;
	struct extender_metrics measured;
	struct {
		char *text; /* NULL: not made yet */
		size_t len;
		uint64_t made_ns;
	} shown;                      /* the metrics, the last time */
	uint64_t stranger_said_ns;    /* of line_is_due() */
	uint64_t crowded_out_said_ns; /* the same, of pods */
	bool stopping;
};

/* state.c */
int state_start(struct extender *x, struct err *e);
void state_stop(struct extender *x);
/* Whether everything is known that decisions need, or was some minutes ago: all replicas lose their
 * watches when the API server starts anew. *why: what is not. */
bool state_ready(const struct extender *x, const char **why);
/* Whether that list is known and followed now, or is not asked for. */
bool state_follows(const struct extender *x, enum extender_watch which);

/* Whether a line is due that others can cause as often as they like: it is said once a minute.
 * *said_ns: when it was said, or 0; now, if it is due. */
bool line_is_due(uint64_t *said_ns);

/* pods.c: bytes that pods may take, as text, in each of unbound and kept: an ordinary one has 600,
 * and one of 512 containers with 64 requests and limits each 1 MiB. Of the 512Mi that the
 * Deployment may use requests may hold 192 (maxHeldBytes), and a page of a list takes 100 while it
 * is read: these two leave 124 for the cluster's own state. */
enum { PODS_BYTES_MAX = 48 << 20 };

/* pods.c: pods from their creation until they run, with what has to be known of them then. */
struct unbound *unbound_new(void);
void unbound_free(struct unbound *u);
void unbound_begin(struct unbound *u);
void unbound_sweep(struct unbound *u);
/* False: others take all the room, and no more is known of it than that it is there. */
bool unbound_put(struct unbound *u, const char *uid, const struct json_t *pod);
/* It is bound by now, and does not run yet. */
void unbound_bind(struct unbound *u, const char *uid, const char *ns, const char *workload);
bool unbound_knows(const struct unbound *u, const char *uid);
/* Its node has refused it: the workload that it is of, once; NULL: that is known, or it is no such
 * pod of that namespace. */
const char *unbound_refuse(struct unbound *u, const char *uid, const char *ns);
/* Whether it was there. */
bool unbound_remove(struct unbound *u, const char *uid);
/* As the watch has it, for api_json_free(); NULL: it is bound, not known, or there was no room. */
struct json_t *unbound_find(const struct unbound *u, const char *uid);

/* pods.c: what was decided of a pod, until it is bound. The oldest go beyond so many pods, or
 * PODS_BYTES_MAX of them. */
enum { KEPT_NODES_MAX = 64, KEPT_PODS_MAX = 8192 };
struct kept_node {
	uint64_t node;  /* kept_node_name() */
	uint64_t zones; /* the NUMA nodes it would take, by id; 0: none of them matter */
	unsigned score;
};
struct kept *kept_new(void);
void kept_free(struct kept *k);
uint64_t kept_node_name(const char *node);
/* Replaces what was decided before. A pod that by itself has more than PODS_BYTES_MAX is not
 * kept. */
void kept_put(struct kept *k, const char *uid, const struct json_t *pod,
	const struct kept_node *node, size_t nr, int64_t now_ms);
void kept_remove(struct kept *k, const char *uid);
void kept_expire(struct kept *k, int64_t now_ms);
size_t kept_count(const struct kept *k);
/* For api_json_free(); NULL: nothing was decided, or is remembered. */
struct json_t *kept_pod(const struct kept *k, const char *uid);
const struct kept_node *kept_node_find(const struct kept *k, const char *uid, const char *node);

/* decide.c: the body of the answer, which the caller frees; NULL with text: the request is not
 * understood. */
enum { POD_UID_BYTES = 64, POD_NS_BYTES = 64, POD_NAME_BYTES = 256 };
struct decided {
	size_t len;   /* of the body */
	bool nowhere; /* of some nodes none does; untouched by verbs to which this does not apply */
	char uid[POD_UID_BYTES], ns[POD_NS_BYTES], pod[POD_NAME_BYTES]; /* of which pod that is */
};
char *decide_filter(
	struct extender *x, const struct http_request *r, struct decided *out, struct err *e);
char *decide_prioritize(
	struct extender *x, const struct http_request *r, struct decided *out, struct err *e);
char *decide_preempt(
	struct extender *x, const struct http_request *r, struct decided *out, struct err *e);
/* A pod that is being asked about. question_init(): from the v1.Pod that a client sends, which must
 * have the name of the pod that is known by its uid, if there is one; question_of_known(): from a
 * v1.Pod whose name was compared already. -EINVAL, -ERANGE, -E2BIG, -ENOMEM with text, and there is
 * nothing to end. */
struct question {
	struct extender_pod pod;
	struct sched_plan *plan;
	struct arena arena;
};
int question_init(struct question *a, struct extender *x, struct json_t *pod, struct err *e);
int question_of_known(struct question *a, struct extender *x, struct json_t *pod, struct err *e);
void question_fini(struct question *a);
/* The node as plugins are to see it. False: it is not known; *out has its name alone in *node. */
bool decide_candidate(
	struct extender *x, const char *name, struct sched_node *node, struct sched_candidate *out);
/* The pod of that uid, as the watch has it, else as the last decision had it; NULL: neither has it,
 * or it is bound. api_json_free(). */
struct json_t *decide_known_pod(const struct extender *x, const char *uid);
/* 0; -EINVAL with text: it has another name or namespace. */
int decide_is_named(struct json_t *known, const char *ns, const char *name, struct err *e);
/* The zones of a placement by the ids of their NUMA nodes, as bits. */
uint64_t decide_zones(const struct sched_candidate *c, const struct sched_placement *p);

/* bind.c */
/* Answers the exchange when the API server has answered. -EINVAL with text: not understood, and
 * nothing is answered. */
int bind_begin(struct extender *x, struct http_exchange *exchange, const struct http_request *r,
	uint64_t since_ns, struct err *e);
/* Whoever asked is gone. */
void bind_gone(struct extender *x, const struct http_exchange *exchange);
/* Those that kube-scheduler waits for. */
size_t bind_count(const struct extender *x);
/* Those that it has an answer to, and of which nobody knows yet whether they happened. */
size_t bind_count_unsettled(const struct extender *x);
/* Find out about these; every second or so, before sched_cluster_expire(). */
void bind_settle(struct extender *x);
void bind_stop(struct extender *x);

/* serve.c: an answer to kube-scheduler, and what is counted of it. */
void answer_json(struct http_exchange *exchange, const char *body, size_t len);
void answer_count(struct extender *x, enum extender_verb verb, enum extender_result result,
	uint64_t since_ns);
int serve_start(struct extender *x, struct err *e);
void serve_stop(struct extender *x);

/* page.c: the page of the cluster, where ui.address says. After state_start(). */
void page_start(struct extender *x);
void page_stop(struct extender *x);

/* tls.c: what the files of tls say, into *o for as long as they do not change; new connections are
 * by what they say then, unless that is no certificate, key or authority: then all is as it was.
 * -errno with text: they cannot be read. */
/* What a start would find beyond what the file says by itself: addresses and ports that may be
 * used, the files of tls, the kubeconfig with those that it names. Mistakes are added to *all. */
void extender_check_here(const struct extender *x, struct mistakes *all);

int tls_start(struct extender *x, struct http_server_options *o, struct err *e);
void tls_stop(struct extender *x);
/* Whether the files are there and belong together; what is wrong is added to *all. */
void tls_check(const struct extender *x, struct mistakes *all);

#endif
