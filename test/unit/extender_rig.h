#ifndef TEST_EXTENDER_RIG_H
#define TEST_EXTENDER_RIG_H

#include <codec/api_json.h>
#include <io/http_client.h>
#include <jansson.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <limits.h>
#include "fake_api.h"

/* The real numafit-extender between a kube-scheduler, which the test is, and an API server with
 * nodes, pods and NodeResourceTopologies of the test's making. */

enum { RIG_LISTS = 4, RIG_LOG_MAX = 64 << 10, RIG_UID_MAX = 64 };

struct rig_list {
	const char *path; /* up to its last word */
	const char *kind;
	json_t *items; /* NULL: there is no such resource */
};

struct rig {
	struct fake_api f;
	struct rig_list list[RIG_LISTS];
	unsigned version;
	/* Bindings: how they are answered (0: as they should be), and the last one. */
	int bind_status;
	bool bind_goes_unsaid; /* it happens, but the connection breaks */
	bool bind_unseen;      /* it happens, but watches do not show it */
	bool bind_waits;       /* it happens, but is not answered before rig_answer_bind() */
	int first_status;      /* how the first request for nodes is answered; 0: as it should be */
	int watch_status;      /* how watches of pods are answered; 0: as they should be */
	int gone_status;       /* how the first question whether a resource exists that is gone is
				  answered */
	int reports_status;    /* how lists of reports are answered; 0: as they should be */
	bool look_waits;       /* the question whether reports exist is not answered by the rig */
	struct fake_ask *look; /* that question */
	int look_up_status;    /* how questions about one pod are answered; 0: as they should be */
	unsigned nr_look_ups;
	struct fake_ask *unanswered;
	unsigned nr_binds;
	json_t *binding;

	pid_t pid;
	int log_fd;
	unsigned port;
	char log[RIG_LOG_MAX];
	size_t log_len;
	struct http_client *http;
	bool by_tls;
	int status; /* of the last answer; 0: none yet */
	struct err why;
	char *answer;
	bool answered;
	char config[PATH_MAX];
};

enum { NODES, PODS, REPORTS, EVENTS };

/* The API server */

static inline struct rig_list *rig_list_of(struct rig *r, const char *path)
{
	for (unsigned i = 0; i < RIG_LISTS; i++)
		if (strncmp(path, r->list[i].path, strlen(r->list[i].path)) == 0 &&
			strchr("?", path[strlen(r->list[i].path)]))
			return &r->list[i];
	return NULL;
}

static inline json_t *rig_find(const struct rig_list *l, const char *name)
{
	size_t i;
	json_t *v;

	json_array_foreach(l->items, i,
		v) if (text_equal(json_string_value(json_object_get(json_object_get(v, "metadata"),
					  "name")),
			       name)) return v;
	return NULL;
}

static inline void rig_not_found(struct fake_ask *q)
{
	fake_api_answer(q, 404, NULL,
		"{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"the server could not "
		"find the requested resource\",\"reason\":\"NotFound\",\"code\":404}");
}

/* The number behind that word of the query; 0: it is not there. */
static inline size_t rig_query_number(const char *path, const char *word)
{
	const char *at = strstr(path, word);

	return at ? strtoul(at + strlen(word), NULL, 10) : 0;
}

/* In pages, as large as is asked for. */
static inline void rig_list_items(struct rig *r, const struct rig_list *l, struct fake_ask *q)
{
	size_t from = rig_query_number(q->path, "continue="), nr = json_array_size(l->items);
	size_t limit = rig_query_number(q->path, "limit="), to = from + limit;
	json_t *items = json_array();
	char version[16], more[24] = "";

	if (limit && to < nr)
		(void)snprintf(more, sizeof more, "%zu", to);
	for (size_t i = from; i < nr && (!limit || i < to); i++)
		(void)json_array_append(items, json_array_get(l->items, i));
	(void)snprintf(version, sizeof version, "%u", r->version);
	json_t *v = json_pack("{s:s, s:{s:s, s:s}, s:o}", "kind", l->kind, "metadata",
		"resourceVersion", version, "continue", more, "items", items);
	char *text = json_dumps(v, JSON_COMPACT);
	fake_api_answer(q, FAKE_OK, NULL, text);
	free(text);
	json_decref(v);
}

static inline void rig_send_one(struct fake_ask *q, const char *type, json_t *object)
{
	json_t *event = json_pack("{s:s, s:O}", "type", type, "object", object);
	char *text = json_dumps(event, JSON_COMPACT);

	fake_api_say(q, text);
	fake_api_say(q, "\n");
	free(text);
	json_decref(event);
}

/* Send it to those that watch. */
static inline void rig_send_event(struct rig *r, unsigned list, const char *type, json_t *object)
{
	for (struct fake_ask *q = r->f.first; q; q = q->next)
		if (q->open && rig_list_of(r, q->path) == &r->list[list])
			rig_send_one(q, type, object);
}

/* Those that watch are left alone. */
static inline void rig_end_watches(struct rig *r, unsigned list)
{
	for (struct fake_ask *q = r->f.first; q; q = q->next)
		if (q->open && rig_list_of(r, q->path) == &r->list[list])
			fake_api_end(q);
}

/* A watch begins with what has happened since the list. */
static inline void rig_watch(const struct rig_list *l, struct fake_ask *q)
{
	const char *since = strstr(q->path, "resourceVersion=");
	unsigned long version = since ? strtoul(since + strlen("resourceVersion="), NULL, 10) : 0;
	json_t *v;
	size_t i;

	fake_api_begin(q);
	json_array_foreach(l->items, i, v)
	{
		const char *of = json_string_value(
			json_object_get(json_object_get(v, "metadata"), "resourceVersion"));

		if (of && strtoul(of, NULL, 10) > version)
			rig_send_one(q, "MODIFIED", v);
	}
}

/* Put the object, which is taken over, in the place of the one of its name. */
static inline void rig_put(struct rig *r, unsigned list, json_t *object)
{
	json_t *meta = json_object_get(object, "metadata");
	json_t *old = rig_find(&r->list[list], json_string_value(json_object_get(meta, "name")));
	char version[16];
	size_t i = 0;

	(void)snprintf(version, sizeof version, "%u", ++r->version);
	(void)json_object_set_new(meta, "resourceVersion", json_string(version));
	while (old && json_array_get(r->list[list].items, i) != old)
		i++;
	if (old)
		(void)json_array_set_new(r->list[list].items, i, object);
	else
		(void)json_array_append_new(r->list[list].items, object);
	rig_send_event(r, list, old ? "MODIFIED" : "ADDED", object);
}

static inline void rig_answer_bind(struct rig *r)
{
	fake_api_answer(r->unanswered, 201, NULL, "{\"kind\":\"Status\",\"status\":\"Success\"}");
	r->unanswered = NULL;
}

static inline void rig_bind(struct rig *r, struct fake_ask *q, const char *name)
{
	json_error_t e;
	json_t *binding = json_loads(q->body, JSON_REJECT_DUPLICATES, &e);
	json_t *pod = rig_find(&r->list[PODS], name), *meta = json_object_get(binding, "metadata");

	assert_non_null(binding);
	r->nr_binds++;
	json_decref(r->binding);
	r->binding = binding;
	if (r->bind_status) {
		fake_api_answer(q, r->bind_status, NULL,
			"{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"no such "
			"luck\"}");
		return;
	}
	assert_non_null(pod);
	if (json_object_get(json_object_get(pod, "spec"), "nodeName")) {
		fake_api_answer(q, 409, NULL,
			"{\"kind\":\"Status\",\"message\":\"it is assigned already\",\"reason\":"
			"\"Conflict\",\"code\":409}");
		return;
	}
	pod = json_deep_copy(pod);
	assert_string_equal(json_string_value(json_object_get(meta, "uid")),
		json_string_value(json_object_get(json_object_get(pod, "metadata"), "uid")));
	(void)json_object_set(json_object_get(pod, "spec"), "nodeName",
		json_object_get(json_object_get(binding, "target"), "name"));
	if (json_object_get(meta, "annotations"))
		(void)json_object_set(json_object_get(pod, "metadata"), "annotations",
			json_object_get(meta, "annotations"));
	r->unanswered = q;
	if (r->bind_goes_unsaid)
		fake_api_cut(q);
	else if (!r->bind_waits)
		rig_answer_bind(r);
	if (r->bind_unseen) { /* it is so, but no watch says it */
		json_object_update(rig_find(&r->list[PODS], name), pod);
		json_decref(pod);
	} else {
		rig_put(r, PODS, pod);
	}
}

static inline int steal_status(int *status)
{
	int was = *status;

	*status = 0;
	return was;
}

/* Whether a resource exists is asked so. */
static inline bool rig_is_look(const char *path)
{
	return strstr(path, "?limit=1") && !strstr(path, "limit=1&");
}

static inline void rig_serve(void *ctx, struct fake_ask *q)
{
	struct rig *r = ctx;
	const struct rig_list *l = rig_list_of(r, q->path);
	char name[RIG_UID_MAX] = "";

	if (sscanf(q->path, "/api/v1/namespaces/default/pods/%63[^/?]", name) == 1) {
		json_t *pod = rig_find(&r->list[PODS], name);

		if (strstr(q->path, "/binding")) {
			rig_bind(r, q, name);
		} else if (r->nr_look_ups++, r->look_up_status) {
			fake_api_answer(q, r->look_up_status, NULL,
				"{\"kind\":\"Status\",\"message\":\"not now\"}");
		} else if (pod) {
			char *text = json_dumps(pod, JSON_COMPACT);

			fake_api_answer(q, FAKE_OK, NULL, text);
			free(text);
		} else {
			rig_not_found(q);
		}
		return;
	}
	if (l == &r->list[REPORTS] && r->look_waits && rig_is_look(q->path))
		r->look = q;
	else if (l == &r->list[REPORTS] && r->reports_status)
		fake_api_answer(q, r->reports_status, NULL,
			"{\"kind\":\"Status\",\"message\":\"not now\"}");
	else if (l && !l->items && r->gone_status && rig_is_look(q->path))
		fake_api_answer(q, steal_status(&r->gone_status), NULL,
			"{\"kind\":\"Status\",\"message\":\"not now\"}");
	else if (!l || !l->items)
		rig_not_found(q);
	else if (l == &r->list[NODES] && r->first_status)
		fake_api_answer(q, steal_status(&r->first_status), NULL,
			"{\"kind\":\"Status\",\"message\":\"not now\"}");
	else if (strstr(q->path, "watch=1") && l == &r->list[PODS] && r->watch_status)
		fake_api_answer(
			q, r->watch_status, NULL, "{\"kind\":\"Status\",\"message\":\"not now\"}");
	else if (strstr(q->path, "watch=1"))
		rig_watch(l, q);
	else
		rig_list_items(r, l, q);
}

/* Objects */

static inline json_t *rig_node(const char *name)
{
	return json_pack("{s:{s:s}, s:{s:{s:s, s:s, s:s}}}", "metadata", "name", name, "status",
		"allocatable", "cpu", "16", "memory", "64Gi", "pods", "110");
}

/* Two NUMA nodes of 8 CPUs and 32Gi, of which so many CPUs are left. */
static inline json_t *rig_report(
	const char *name, unsigned generation, int cpus0, int cpus1, const char *pods)
{
	char number[16];

	(void)snprintf(number, sizeof number, "%u", generation);
	json_t *v = json_pack("{s:{s:s}, s:[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}, {s:s, s:s}], s:[]}",
		"metadata", "name", name, "attributes", "name", "topologyManagerPolicy", "value",
		"single-numa-node", "name", "topologyManagerScope", "value", "container", "name",
		"numafit.io/generation", "value", number, "name", "numafit.io/pods", "value", pods,
		"zones");
	for (int id = 0; id < 2; id++) {
		int cpus = id ? cpus1 : cpus0;

		(void)json_array_append_new(json_object_get(v, "zones"),
			json_pack("{s:s, s:s, s:[{s:s, s:i}, {s:s, s:i}], s:[{s:s, s:i, s:i, "
				  "s:i}, {s:s, s:s, s:s, s:s}]}",
				"name", id ? "node-1" : "node-0", "type", "Node", "costs", "name",
				"node-0", "value", id ? 20 : 10, "name", "node-1", "value",
				id ? 10 : 20, "resources", "name", "cpu", "capacity", 8,
				"allocatable", 8, "available", cpus, "name", "memory", "capacity",
				"32Gi", "allocatable", "32Gi", "available", "32Gi"));
	}
	return v;
}

/* A Guaranteed pod of one container; cpus 0: a BestEffort one. */
static inline json_t *rig_pod(const char *name, int cpus, const char *owner)
{
	char uid[RIG_UID_MAX];

	(void)snprintf(uid, sizeof uid, "uid-of-%s", name);
	json_t *resources =
		cpus ? json_pack("{s:{s:i, s:s}, s:{s:i, s:s}}", "limits", "cpu", cpus, "memory",
			       "1Gi", "requests", "cpu", cpus, "memory", "1Gi")
		     : json_object();
	json_t *v = json_pack("{s:{s:s, s:s, s:s}, s:{s:[{s:s, s:o}]}, s:{s:s, s:s}}", "metadata",
		"name", name, "namespace", "default", "uid", uid, "spec", "containers", "name",
		"main", "resources", resources, "status", "phase", "Pending", "qosClass",
		cpus ? "Guaranteed" : "BestEffort");
	if (owner)
		(void)json_object_set_new(json_object_get(v, "metadata"), "ownerReferences",
			json_pack("[{s:s, s:s, s:b}]", "kind", "ReplicaSet", "uid", owner,
				"controller", 1));
	return v;
}

/* The extender */

static inline void rig_write_config(struct rig *r, const char *more)
{
	fake_api_write_file(r->config,
		"listen: 127.0.0.1:0\nkubeconfig: %s\nlogLevel: debug\napiTimeout: 5s\n%s",
		r->f.kubeconfig, more);
}

static inline void rig_exec(const struct rig *r, int log_fd)
{
	char program[PATH_MAX + 32], self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);

	self[len > 0 ? len : 0] = '\0';
	*strrchr(self, '/') = '\0'; /* build/VARIANT/test */
	(void)snprintf(program, sizeof program, "%s/../numafit-extender", self);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failing test leaves nobody behind */
	(void)dup2(log_fd, STDERR_FILENO);
	(void)setenv("NUMAFIT_FAULT_METRICS_MS", "0", 0); /* tests look at them anew */
	(void)execl(program, program, "--config", r->config, (char *)NULL);
	_exit(127);
}

/* What it has said so far; wait for the word, which a file descriptor has no event for here. */
static inline bool rig_said(struct rig *r, const char *word)
{
	for (;;) {
		ssize_t n = read(r->log_fd, r->log + r->log_len, sizeof r->log - 1 - r->log_len);

		if (n <= 0)
			break;
		r->log_len += (size_t)n;
		r->log[r->log_len] = '\0';
		if (r->log_len > sizeof r->log / 2) { /* the rest is old */
			r->log_len /= 2;
			memmove(r->log, r->log + r->log_len, r->log_len + 2);
			r->log_len = strlen(r->log);
		}
	}
	return strstr(r->log, word);
}

static inline void rig_start(struct rig *r)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	r->pid = fork();
	assert_true(r->pid >= 0);
	if (r->pid == 0)
		rig_exec(r, ends[1]);
	(void)close(ends[1]);
	r->log_fd = ends[0];
	r->log_len = 0;
	r->log[0] = '\0';
	while (!strstr(r->log, "event=started")) {
		ssize_t n = read(r->log_fd, r->log + r->log_len, sizeof r->log - 1 - r->log_len);

		if (n <= 0)
			fail_msg("numafit-extender does not start: %s", r->log);
		r->log_len += (size_t)n;
		r->log[r->log_len] = '\0';
	}
	assert_int_equal(sscanf(strstr(r->log, " port="), " port=%u", &r->port), 1);
	assert_int_equal(fcntl(r->log_fd, F_SETFL, O_NONBLOCK), 0);
}

/* Its exit code, or -signal. signum 0: a signal was sent already. */
static inline int rig_end(struct rig *r, int signum)
{
	int status;

	(void)kill(r->pid, signum);
	assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
	(void)close(r->log_fd);
	r->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline void rig_done(void *ctx, const struct http_answer *a, const struct err *e)
{
	struct rig *r = ctx;

	r->status = a->status;
	free(r->answer);
	r->answer = xstrdup(a->status ? a->body : e->text);
	r->answered = true;
	loop_stop(r->f.loop);
}

static inline void rig_begin(struct rig *r, const char *path, const char *body, size_t len)
{
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	char url[PATH_MAX];

	(void)snprintf(url, sizeof url, "%s://127.0.0.1:%u%s", r->by_tls ? "https" : "http",
		r->port, path);
	r->answered = false;
	(void)http_call_start(r->http,
		&(struct http_ask){.method = body ? "POST" : "GET",
			.url = url,
			.headers = headers,
			.body = body,
			.len = len,
			.timeout_ms = FAKE_PATIENCE_MS,
			.answer_max = 256 << 20},
		&(struct http_events){.ctx = r, .done = rig_done});
}

static inline void rig_wait(struct rig *r)
{
	FAKE_UNTIL(&r->f, r->answered);
}

/* The answer's status; its body is in r->answer. */
static inline int rig_ask(struct rig *r, const char *path, const char *body)
{
	rig_begin(r, path, body, body ? strlen(body) : 0);
	rig_wait(r);
	return r->status;
}

static inline void rig_await_ready(struct rig *r)
{
	while (rig_ask(r, "/readyz", NULL) != FAKE_OK)
		assert_int_equal(r->status, 503);
}

static inline void rig_init(struct rig *r)
{
	static const struct rig_list lists[RIG_LISTS] = {
		[NODES] = {"/api/v1/nodes", "NodeList", NULL},
		[PODS] = {"/api/v1/pods", "PodList", NULL},
		[REPORTS] = {"/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies",
			"NodeResourceTopologyList", NULL},
		[EVENTS] = {"/api/v1/events", "EventList", NULL},
	};
	struct err e;

	*r = (struct rig){.version = 1};
	fake_api_init(&r->f);
	r->f.ctx = r;
	r->f.serve = rig_serve;
	memcpy(r->list, lists, sizeof lists);
	for (unsigned i = 0; i < RIG_LISTS; i++)
		r->list[i].items = json_array();
	(void)snprintf(r->config, sizeof r->config, "%s/extender.yaml", r->f.dir);
	rig_write_config(r, "");
	r->http = http_client_new(r->f.loop, NULL, &e);
	assert_non_null(r->http);
}

static inline void rig_fini(struct rig *r)
{
	if (r->pid)
		assert_int_equal(rig_end(r, SIGTERM), 0); /* under a sanitizer: nothing found */
	http_client_free(r->http);
	for (unsigned i = 0; i < RIG_LISTS; i++)
		json_decref(r->list[i].items);
	json_decref(r->binding);
	free(r->answer);
	(void)unlink(r->config);
	fake_api_fini(&r->f);
}

/* What kube-scheduler sends */

/* Of these nodes, by name; ends with a NULL. The caller frees. */
static inline char *rig_args(json_t *pod, const char *const *name)
{
	json_t *names = json_array();

	for (; *name; name++)
		(void)json_array_append_new(names, json_string(*name));
	json_t *v = json_pack("{s:O, s:n, s:o}", "Pod", pod, "Nodes", "NodeNames", names);
	char *text = json_dumps(v, JSON_COMPACT);
	json_decref(v);
	return text;
}

static inline char *rig_bind_args(const char *pod, const char *node)
{
	char *text = NULL;

	assert_true(
		asprintf(&text,
			"{\"PodName\":\"%s\",\"PodNamespace\":\"default\",\"PodUID\":\"uid-of-%s\","
			"\"Node\":\"%s\"}",
			pod, pod, node) > 0);
	return text;
}

#endif
