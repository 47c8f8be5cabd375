/* Settings that need the API server, and change while containers run: credentials that come late or
 * go bad, evictions, and node labels that choose sections of the config file. */
#include "reload_rig.h"

enum { UNAUTHORIZED = 401, CREATED = 201 };

static void note_eviction(struct rig *r, const char *pod)
{
	struct text t = {r->api->evicted, sizeof r->api->evicted, strlen(r->api->evicted), false};

	text_add(&t, " %.*s", (int)strcspn(pod, "/"), pod);
}

/* Pods p0 to p9, each of which somebody makes again when it goes; one fits on no machine. */
enum { LARGE = 9 };

static void list_pods(struct fake_ask *q)
{
	static const char large[] =
		"{\"name\":\"main\",\"resources\":{\"limits\":{\"cpu\":\"1\",\"memory\":\"1Gi\"}}},"
		"{\"name\":\"web\",\"resources\":{\"limits\":{\"cpu\":\"65\",\"memory\":\"1Gi\"}}}";
	char list[8192];
	struct text t;

	text_init(&t, list, sizeof list);
	text_add(&t, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[");
	for (unsigned i = 0; i < 10; i++)
		text_add(&t,
			"%s{\"metadata\":{\"uid\":\"p%u\",\"name\":\"p%u\",\"namespace\":"
			"\"default\",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":"
			"\"ReplicaSet\",\"name\":\"r\",\"uid\":\"r\",\"controller\":true}]},"
			"\"spec\":{\"containers\":[%s]}}",
			i ? "," : "", i, i, i == LARGE ? large : "{\"name\":\"main\"}");
	text_add(&t, "]}");
	assert_false(t.cut);
	fake_api_answer(q, FAKE_OK, NULL, list);
}

static void note_event(struct api_side *api, const char *body)
{
	struct text t = {api->events, sizeof api->events, strlen(api->events), false};

	(void)text_copy(api->event, sizeof api->event, body);
	text_add(&t, "%s\n", body);
}

static void serve(void *ctx, struct fake_ask *q)
{
	static const char pods[] = "/api/v1/namespaces/default/pods/";
	struct rig *r = ctx;

	if (!r->api->knows_us) {
		fake_api_answer(q, UNAUTHORIZED, NULL, "{}");
	} else if (strstr(q->path, "watch=1")) {
		r->api->watches++;
		fake_api_begin(q);
	} else if (strncmp(q->path, "/api/v1/pods?", 13) == 0) {
		list_pods(q);
	} else if (strncmp(q->path, "/api/v1/nodes/", 14) == 0) {
		fake_api_answer(q, FAKE_OK, NULL, "{\"metadata\":{\"uid\":\"n-1\"}}");
	} else if (strncmp(q->path, pods, sizeof pods - 1) == 0 && strstr(q->path, "/eviction")) {
		note_eviction(r, q->path + sizeof pods - 1);
		fake_api_answer(q, CREATED, NULL, "{}");
	} else if (strncmp(q->path, pods, sizeof pods - 1) == 0) {
		r->api->observed++;
		(void)text_copy(r->api->observation, sizeof r->api->observation, q->body);
		fake_api_answer(q, FAKE_OK, NULL, "{}");
	} else {
		if (strstr(q->path, "/events"))
			note_event(r->api, q->body);
		r->api->reports += strstr(q->path, "/noderesourcetopologies/") != NULL;
		fake_api_answer(q, FAKE_OK, NULL, "{}");
	}
}

static void start_api(struct rig *r)
{
	r->api = calloc(1, sizeof *r->api);
	fake_api_init_on(&r->api->server, r->loop);
	r->api->server.ctx = r;
	r->api->server.serve = serve;
	r->api->knows_us = true;
}

#define UNTIL(r, condition)                                                                        \
	do {                                                                                       \
		loop_timer_set((r)->watchdog, PATIENCE_MS);                                        \
		while (!(condition))                                                               \
			loop_run((r)->loop);                                                       \
		loop_timer_stop((r)->watchdog);                                                    \
	} while (0)

/* As a whole, or not yet. */
static void put_file(const struct rig *r, const char *name, const char *text)
{
	char path[PATH_MAX + 64], new[PATH_MAX + 64];

	(void)snprintf(path, sizeof path, "%s/%s", r->daemon.dir, name);
	(void)snprintf(new, sizeof new, "%s/new", r->daemon.dir);
	write_text(new, text);
	rig_must(rename(new, path) == 0, path);
}

/* What `numafit status` says of the credentials: that, or NULL: nothing. */
static void assert_credentials(struct rig *r, const char *unusable, uint64_t failures_min)
{
	struct status st;
	struct arena a;

	ask_status(r, &a, &st);
	assert_non_null(st.info.apiserver);
	assert_true(st.info.apiserver->failures >= failures_min);
	if (!unusable)
		assert_null(st.info.apiserver->unusable);
	else if (!st.info.apiserver->unusable || !strstr(st.info.apiserver->unusable, unusable))
		fail_msg("wanted %s: %s", unusable, st.info.apiserver->unusable);
	arena_fini(&a);
}

#define KUBECONFIG(cluster, user)                                                                  \
	"apiVersion: v1\nkind: Config\ncurrent-context: x\n"                                       \
	"clusters: [{name: x, cluster: {" cluster "}}]\nusers: [{name: x, user: {" user "}}]\n"    \
	"contexts: [{name: x, context: {cluster: x, user: x}}]\n"
#define SERVER "server: 'http://127.0.0.1:%u'"

static void begin_without_credentials(struct rig *r, char set[PATH_MAX + 64])
{
	(void)snprintf(set, PATH_MAX + 64, "apiServer.kubeconfig=%s/kubeconfig", r->daemon.dir);
	r->daemon.setting[0] = set;
	hold_config(r, "nodeResourceTopology: {enabled: true, interval: 20ms}\n");
	start_api(r);
	begin(r, NULL);
}

static void unusable_credentials_are_tried_until_they_work(void **state)
{
	static const struct {
		const char *text, *refused;
	} bad[] = {
		{"", "there is no current-context"},
		{"apiVersion: v1\nkind: Con", "there is no current-context"},
		{"a: [\n", "did not find expected"},
		{KUBECONFIG("server: https://x", "exec: {command: aws}"),
			"plugins are not supported"},
		{KUBECONFIG("server: x", ""), "begins with neither"},
		{KUBECONFIG("server: https://x", "tokenFile: none"), "/none: No such file"},
	};
	struct rig *r = *state;
	char set[PATH_MAX + 64], good[1024];

	begin_without_credentials(r, set);
	assert_non_null(strstr(await_line(r, "credentials-unusable"), "/kubeconfig: No such file"));
	assert_newcomer(r, "best-effort", false);
	assert_credentials(r, "/kubeconfig: No such file", 1);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		put_file(r, "kubeconfig", bad[i].text);
		if (!i || strcmp(bad[i].refused, bad[i - 1].refused))
			assert_non_null(
				strstr(await_line(r, bad[i].refused), "action=\"repair it"));
		assert_newcomer(r, "best-effort", false);
		assert_credentials(r, bad[i].refused, i + 1);
	}
	/* another setting does not need what is not there */
	swap_config(r, "nodeResourceTopology: {enabled: true, interval: 30ms}\nlogLevel: debug\n");
	(void)await_line(r, "config-reloaded");
	assert_int_equal(r->api->server.asked, 0);
	(void)snprintf(good, sizeof good, KUBECONFIG(SERVER ", certificate-authority: ca.crt", ""),
		r->api->server.port);
	put_file(r, "kubeconfig", good);
	(void)await_line(r, "/ca.crt: No such file");
	put_file(r, "ca.crt", "-----BEGIN CERTIFICATE-----\n"); /* not where it would be seen */
	(void)await_line(r, "credentials-usable");
	UNTIL(r, r->api->reports);
	assert_credentials(r, NULL, sizeof bad / sizeof *bad);
	assert_newcomer(r, "best-effort", false);
	end(r, SIGTERM);
}

static void credentials_that_became_unreadable_are_logged(void **state)
{
	struct rig *r = *state;
	char set[PATH_MAX + 64], good[1024];

	begin_without_credentials(r, set);
	(void)snprintf(good, sizeof good, KUBECONFIG(SERVER, ""), r->api->server.port);
	put_file(r, "kubeconfig", good);
	UNTIL(r, r->api->reports);
	assert_credentials(r, NULL, 1);
	put_file(r, "kubeconfig", "a: [\n");
	r->api->knows_us = false; /* a 401 has them read anew */
	assert_non_null(create(r, "own", 2));
	(void)await_line(r, "credentials-unreadable");
	assert_credentials(r, "did not find expected", 2);
	assert_newcomer(r, "best-effort", false);
	put_file(r, "kubeconfig", good);
	unsigned asked = r->api->server.asked;
	UNTIL(r, r->api->server.asked > asked + 1);
	assert_credentials(r, NULL, 2);
	r->api->knows_us = true;
	end(r, SIGTERM);
}

/* What asks for labels may come with a reload, too. */
static void labels_are_asked_for_once_the_credentials_are_there(void **state)
{
	struct rig *r = *state;
	char set[PATH_MAX + 64], good[1024];

	(void)snprintf(set, sizeof set, "apiServer.kubeconfig=%s/kubeconfig", r->daemon.dir);
	r->daemon.setting[0] = set;
	hold_config(r, "topologyManagerPolicy: none\n");
	start_api(r);
	begin(r, NULL);
	swap_config(
		r, "topologyManagerPolicy: none\nnodes:\n- {labels: {pool: a}, settings: {}}\n");
	(void)await_line(r, "/kubeconfig: No such file");
	(void)snprintf(good, sizeof good, KUBECONFIG(SERVER, ""), r->api->server.port);
	put_file(r, "kubeconfig", good);
	(void)await_line(r, "credentials-usable");
	UNTIL(r, r->api->server.asked);
	end(r, SIGTERM);
}

static void pods_are_evicted_while_the_settings_say_so(void **state)
{
	static const char text[] = "podsWatch: {enabled: true}\nrefusalAction: %s\n";
	static const char *const actions[] = {"error", "evict", "error", "evict"};
	struct rig *r = *state;
	char set[PATH_MAX + 64], config[256], id[FAKE_NAME_BYTES];

	start_api(r);
	(void)snprintf(set, sizeof set, "apiServer.kubeconfig=%s", r->api->server.kubeconfig);
	r->daemon.setting[0] = set;
	for (unsigned i = 0; i < sizeof actions / sizeof *actions; i++) {
		(void)snprintf(config, sizeof config, text, actions[i]);
		if (i) {
			swap_config(r, config);
			(void)await_line(r, "config-reloaded");
		} else {
			hold_config(r, config);
			begin(r, NULL);
			UNTIL(r, r->api->watches); /* the list is there */
		}
		(void)snprintf(id, sizeof id, "p%u", i);
		assert_null(create(r, id, 65)); /* more CPUs than there are */
		if (i % 2)
			UNTIL(r, strstr(r->api->evicted, id));
	}
	assert_string_equal(r->api->evicted, " p1 p3"); /* they go out in the order of refusals */
	assert_int_equal(r->api->watches, 1);           /* what else there is goes on */
	end(r, SIGTERM);
}

/* Of the pods that run as the setting comes, each once; and none any more once it is gone. */
static void placements_are_written_while_the_settings_say_so(void **state)
{
	static const char text[] = "podsWatch: {enabled: true}\npodResources: {enabled: true}\n"
				   "observedPlacement: \"%s\"\n";
	static const char *const values[] = {"off", "kai", "off", "kai"};
	static const unsigned patches[] = {0, 1, 1, 3}; /* nothing is ever listed on p0 */
	struct rig *r = *state;
	char set[PATH_MAX + 64], config[256], id[FAKE_NAME_BYTES];

	start_api(r);
	(void)snprintf(set, sizeof set, "apiServer.kubeconfig=%s", r->api->server.kubeconfig);
	r->daemon.setting[0] = set;
	for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
		(void)snprintf(config, sizeof config, text, values[i]);
		if (i) {
			swap_config(r, config);
			(void)await_line(r, "config-reloaded");
		} else {
			hold_config(r, config);
			begin(r, NULL);
			UNTIL(r, r->api->watches); /* the list is there */
		}
		(void)snprintf(id, sizeof id, "p%u", i / 2);
		if (i % 2 == 0)
			assert_non_null(create(r, id, 2)); /* before it is switched on */
		UNTIL(r, r->api->observed >= patches[i]);
	}
	assert_non_null(strstr(r->api->observation, "\"uid\":\"p"));
	assert_non_null(strstr(r->api->observation, "\\\"cpu\\\":\\\"2\\\""));
	end(r, SIGTERM);
}

static void a_refusal_names_the_container_that_does_not_fit(void **state)
{
	struct rig *r = *state;
	struct fake_container large = {.id = "p9", .cpu_milli = 66 * FAKE_MILLI_PER_CPU};
	char set[PATH_MAX + 64];

	start_api(r);
	(void)snprintf(set, sizeof set, "apiServer.kubeconfig=%s", r->api->server.kubeconfig);
	r->daemon.setting[0] = set;
	hold_config(r, "podsWatch: {enabled: true}\nevents: {enabled: true}\n");
	begin(r, NULL);
	UNTIL(r, r->api->watches);
	call(r, NRI_CALL_RUN_POD, &large);
	assert_non_null(strstr(r->message, "cannot place container web ("));
	assert_non_null(strstr(await_line(r, "pod-refused"), "cannot place container web ("));
	UNTIL(r, *r->api->event);
	assert_non_null(strstr(r->api->event, "cannot place container web ("));
	end(r, SIGTERM);
}

/* By the event of the pod, and once in the log, although the pod's start and each create read the
 * annotations. */
static void what_is_not_followed_of_a_pods_annotations_is_said_once(void **state)
{
	static const struct key_value notes[] = {{"numafit.io/cores", "whole"},
		{"cores.numafit.io/mian", "whole"}, {"irq-load-balancing.crio.io/gone", "disable"}};
	static const char *const said[] = {
		"annotation numafit.io/cores is not followed: podWishes.allowed of this node does "
		"not allow it",
		"annotation cores.numafit.io/mian names a container that the pod does not have; "
		"did you mean main? (so does 1 more)"};
	struct rig *r = *state;
	struct fake_container box = {.id = "p0", .pod_annotations = notes, .nr_pod_annotations = 3};
	char set[PATH_MAX + 64];

	start_api(r);
	(void)snprintf(set, sizeof set, "apiServer.kubeconfig=%s", r->api->server.kubeconfig);
	r->daemon.setting[0] = set;
	hold_config(r, "podsWatch: {enabled: true}\nevents: {enabled: true}\n");
	begin(r, NULL);
	UNTIL(r, r->api->watches);
	call(r, NRI_CALL_RUN_POD, &box);
	call(r, NRI_CALL_CREATE, &box);
	assert_true(box.runs);
	UNTIL(r, strstr(r->api->events, said[0]) && strstr(r->api->events, said[1]));
	assert_non_null(strstr(r->api->events, "\"reason\":\"NUMAWish\""));
	assert_non_null(strstr(r->api->events, "\"fieldPath\":\"spec.containers{main}\""));
	(void)await_line(r, "decision");
	assert_int_equal(count_log(r, "event=wish-ignored"), 2);
	assert_int_equal(count_log(r, said[1]), 1);
	end(r, SIGTERM);
}

/* Two pods of namespace infra and one of namespace default could end, or move, for the pod. */
static void refuse_web(struct rig *r, const char *pod)
{
	memset(r->api->events, 0, sizeof r->api->events);
	assert_null(create(r, pod, 10));
	UNTIL(r, strstr(r->api->events, "NUMARoomByMoving") &&
			 strstr(r->api->events, "TopologyAffinityError"));
	assert_non_null(strstr(await_line(r, "moves-would-help"), "infra/payroll-db"));
}

static void events_name_pods_of_other_namespaces_only_where_the_operator_says_so(void **state)
{
	static const char text[] = "topologyManagerPolicy: single-numa-node\n"
				   "events: {enabled: true, podNames: %s}\n";
	struct rig *r = *state;
	struct fake_container *gone[2];
	char set[PATH_MAX + 64], config[256], id[FAKE_NAME_BYTES];

	start_api(r);
	(void)snprintf(set, sizeof set, "apiServer.kubeconfig=%s", r->api->server.kubeconfig);
	r->daemon.setting[0] = set;
	hold_config(r, "topologyManagerPolicy: single-numa-node\nevents: {enabled: true}\n");
	begin(r, NULL);
	for (unsigned i = 0; i < 8; i++) { /* two on each NUMA node */
		(void)snprintf(id, sizeof id, "payroll-db-%u", i);
		struct fake_container *b = create_in(r, i == 7 ? "default" : "infra", id, 7);

		assert_non_null(b);
		if (i == 3 || i == 5)
			gone[i == 5] = b;
	}
	stop(r, gone[0]);
	stop(r, gone[1]);

	refuse_web(r, "web");
	if (strstr(r->api->events, "infra") || strstr(r->api->events, "payroll-db-2"))
		fail_msg("%s", r->api->events);
	assert_non_null(strstr(r->api->events,
		"Fits when a pod of another namespace (7 CPUs, NUMA node 1) ends"));
	assert_non_null(strstr(r->api->events,
		"fits after moving a container of another namespace to NUMA node 2 (7 CPUs, "));

	(void)snprintf(config, sizeof config, text, "all");
	swap_config(r, config);
	(void)await_line(r, "config-reloaded");
	refuse_web(r, "web-2");
	assert_non_null(strstr(
		r->api->events, "Fits when infra/payroll-db-2 (7 CPUs, NUMA node 1) ends"));
	assert_non_null(strstr(r->api->events, "moving infra/payroll-db-2/main to NUMA node 2"));
	end(r, SIGTERM);
}

/* Labels: the daemon's parts in this process. */

static unsigned step_of(struct config *c, enum config_match first)
{
	struct config_sections sections;
	struct settings s;
	struct err e;

	if (config_read(c, &s, &sections, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(sections.by_labels);
	assert_int_equal(sections.at[0].match, first);
	return s.shared_pool_step;
}

static void labels_choose_sections_and_outlive_the_daemon(void **state)
{
	static const char text[] =
		"sharedPoolStep: 1\n"
		"nodes:\n"
		"- {labels: {pool: a}, settings: {sharedPoolStep: 2}}\n"
		"- {labels: {pool: b, example.com/x: y}, settings: {sharedPoolStep: 3}}\n";
	static const struct key_value a[] = {{"pool", "a"}, {"kubernetes.io/arch", "amd64"}},
				      again[] = {{"kubernetes.io/arch", "amd64"}, {"pool", "a"}},
				      b[] = {{"example.com/x", "y"}, {"pool", "b"}};
	struct rig *r = *state;
	char set[PATH_MAX + 32], *dir = r->daemon.dir;
	const char *const sets[] = {set};
	const struct config_source from = {.file = r->config, .sets = sets, .nr_sets = 1};
	struct config c = {.from = from}, later = {.from = from}, given = {.from = from};
	struct err e = {0};

	(void)snprintf(set, sizeof set, "runDirectory=%s", dir);
	hold_config(r, text);
	assert_int_equal(config_read_file(&c, &e), 1);
	assert_int_equal(config_read_file(&c, &e), 0);
	assert_int_equal(step_of(&c, CONFIG_NEEDS_LABELS), 1);
	assert_int_equal(config_take_labels(&c, a, 2, dir, &e), 1);
	assert_int_equal(step_of(&c, CONFIG_THIS_NODE), 2);
	assert_int_equal(config_take_labels(&c, again, 2, dir, &e), 0);
	assert_int_equal(config_take_labels(&c, b, 2, dir, &e), 1);
	assert_int_equal(step_of(&c, CONFIG_OTHER_NODES), 3);
	assert_int_equal(config_read_file(&later, &e), 1);
	assert_int_equal(step_of(&later, CONFIG_OTHER_NODES), 3);
	assert_int_equal(config_take_labels(&later, a, 2, "/nowhere", &e), -ENOENT);
	assert_string_equal(e.text, "/nowhere/node-labels: No such file or directory");
	assert_int_equal(step_of(&later, CONFIG_THIS_NODE), 2);
	config_give_labels(&given, a, 2);
	assert_int_equal(config_take_labels(&given, b, 2, dir, &e), 0);
	assert_int_equal(config_read_file(&given, &e), 1);
	assert_int_equal(step_of(&given, CONFIG_THIS_NODE), 2);
	config_fini(&c);
	config_fini(&later);
	config_fini(&given);
}

/* As much of a daemon as settings need, in this process. */
static struct daemon *daemon_of(struct rig *r, struct config *c)
{
	struct daemon *d = calloc(1, sizeof *d);
	struct err e;

	d->loop = r->loop;
	d->configured.config = c;
	if (machine_load(r->daemon.machine, &d->topo, NULL, NULL, &e) < 0 ||
		config_read_file(c, &e) < 0 ||
		config_read(c, &d->settings, &d->configured.sections, &e) < 0)
		fail_msg("%s", e.text);
	d->configured.asked = d->settings;
	(void)snprintf(d->run.journal_path, sizeof d->run.journal_path, "%s/journal",
		d->settings.run_directory);
	if (advice_start(d, &e) < 0 || recorder_start(d, &e) < 0 ||
		reload_start(d, cluster_start, &e) < 0)
		fail_msg("%s", e.text);
	return d;
}

static void daemon_end(struct daemon *d)
{
	reload_stop(d);
	cluster_stop(d);
	recorder_stop(d);
	config_fini(d->configured.config);
	free(d);
}

static void labels_that_need_a_restart_end_the_daemon_when_they_come_first(void **state)
{
	static const char text[] = "nodes:\n"
				   "- {labels: {pool: a}, settings: {mode: shadow}}\n"
				   "- {labels: {pool: b}, settings: {logLevel: error,\n"
				   "  schedulerHint: {order: volcano}}}\n";
	static const struct key_value a[] = {{"pool", "a"}}, b[] = {{"pool", "b"}};
	struct rig *r = *state;
	char set[PATH_MAX + 32];
	const char *const sets[] = {set};
	const struct config_source from = {.file = r->config, .sets = sets, .nr_sets = 1};
	struct config first = {.from = from}, again = {.from = from};
	struct err e;

	(void)snprintf(set, sizeof set, "runDirectory=%s", r->daemon.dir);
	hold_config(r, text);
	struct daemon *d = daemon_of(r, &first);
	assert_true(reload_wants_labels(d));
	reload_set_labels(d, b, 1);
	assert_int_equal(d->settings.log_level, LOG_ERROR);
	assert_int_equal(d->advice.nr, 1);
	assert_int_equal(reload_verdict(d, &e), 0);
	reload_set_labels(d, a, 1); /* it was relabelled: somebody knows of it */
	assert_int_equal(d->settings.log_level, LOG_INFO);
	assert_int_equal(d->settings.mode, MODE_MANAGE);
	assert_int_equal(reload_verdict(d, &e), 0);
	daemon_end(d);

	(void)snprintf(set, sizeof set, "%s/node-labels", r->daemon.dir);
	assert_int_equal(unlink(set), 0);
	(void)snprintf(set, sizeof set, "runDirectory=%s", r->daemon.dir);
	d = daemon_of(r, &again);
	reload_set_labels(d, a, 1);
	assert_int_equal(reload_verdict(d, &e), -EAGAIN);
	assert_non_null(strstr(e.text, "(mode)"));
	daemon_end(d);
}

static void the_version_is_the_kubelets_when_the_node_says_it_and_no_setting_does(void **state)
{
	struct rig *r = *state;
	char set[PATH_MAX + 32];
	const char *const sets[] = {set, "kubernetesVersion=1.36"};
	const struct config_source from = {.file = r->config, .sets = sets, .nr_sets = 1};
	struct config left = {.from = from}, said = {.from = from};

	said.from.nr_sets = 2;

	(void)snprintf(set, sizeof set, "runDirectory=%s", r->daemon.dir);
	hold_config(r, "topologyManagerPolicy: none\n");
	struct daemon *d = daemon_of(r, &left);
	const enum kubernetes_version *followed = &d->settings.cpu_options.kubernetes;
	assert_int_equal(*followed, KUBERNETES_NEWEST);
	reload_set_kubelet(d, "v1.36.3");
	assert_int_equal(*followed, KUBERNETES_1_36);
	reload_set_kubelet(d, "v1.37.0-rc.1+k3s1");
	assert_int_equal(*followed, KUBERNETES_1_37);
	reload_set_kubelet(d, "v1.31.14");
	assert_int_equal(*followed, KUBERNETES_1_36);
	reload_set_kubelet(d, "");
	assert_int_equal(*followed, KUBERNETES_NEWEST);
	daemon_end(d);

	d = daemon_of(r, &said);
	reload_set_kubelet(d, "v1.37.1");
	assert_int_equal(d->settings.cpu_options.kubernetes, KUBERNETES_1_36);
	daemon_end(d);
}

/* An outage of the API server changes no decision: nobody says the version to a daemon that is
 * killed and started again then. */
static void the_kubelets_version_outlives_the_daemon(void **state)
{
	struct rig *r = *state;
	char set[PATH_MAX + 32];
	const char *const sets[] = {set, "kubernetesVersion=1.37"};
	const struct config_source from = {.file = r->config, .sets = sets, .nr_sets = 1};
	struct config first = {.from = from}, again = {.from = from}, said = {.from = from},
		      last = {.from = from};

	said.from.nr_sets = 2;
	(void)snprintf(set, sizeof set, "runDirectory=%s", r->daemon.dir);
	hold_config(r, "topologyManagerPolicy: none\n");
	struct daemon *d = daemon_of(r, &first);
	reload_set_kubelet(d, "v1.36.3");
	daemon_end(d);

	d = daemon_of(r, &said);
	assert_int_equal(d->settings.cpu_options.kubernetes, KUBERNETES_1_37);
	daemon_end(d);

	d = daemon_of(r, &again);
	assert_int_equal(d->settings.cpu_options.kubernetes, KUBERNETES_1_36);
	assert_int_equal(again.kubelet_from, KUBELET_REMEMBERED);
	reload_set_kubelet(d, "v1.36.3"); /* the API server is back */
	assert_int_equal(again.kubelet_from, KUBELET_SAID);
	reload_set_kubelet(d, ""); /* it does not know the node's any more */
	daemon_end(d);

	d = daemon_of(r, &last);
	assert_int_equal(d->settings.cpu_options.kubernetes, KUBERNETES_NEWEST);
	daemon_end(d);
}

/* A kubeconfig of an API server that is not there, as a setting. */
static void give_api_server(struct rig *r, char set[SET_MAX])
{
	char path[PATH_MAX + 64];

	(void)snprintf(path, sizeof path, "%s/kubeconfig", r->daemon.dir);
	(void)snprintf(set, SET_MAX, "apiServer.kubeconfig=%s", path);
	r->daemon.setting[0] = set;
	write_text(path, "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
			 "clusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]\n"
			 "users: [{name: x, user: {token: x}}]\n"
			 "contexts: [{name: x, context: {cluster: x, user: x}}]\n");
}

static void labels_are_asked_for_when_a_section_first_needs_them(void **state)
{
	struct rig *r = *state;
	char set[SET_MAX];

	give_api_server(r, set);
	hold_config(r, "topologyManagerPolicy: none\n");
	begin(r, NULL);
	swap_config(r, "nodes:\n- labels: {pool: a}\n  settings: {topologyManagerPolicy: none}\n");
	(void)await_line(r, "config-labels-unknown");
	(void)await_line(r, "node-unknown");
}

static void a_daemon_without_credentials_for_labels_logs_that(void **state)
{
	struct rig *r = *state;

	hold_config(r, "topologyManagerPolicy: none\n");
	begin(r, NULL);
	swap_config(r, "nodes:\n- labels: {pool: a}\n  settings: {topologyManagerPolicy: none}\n");
	(void)await_line(r, "config-reloaded");
	(void)await_line(r, "credentials-unusable");
	assert_newcomer(r, "best-effort", false);
}

static void a_daemon_that_was_killed_follows_the_kubelet_that_it_remembers(void **state)
{
	struct rig *r = *state;
	char path[PATH_MAX + 64];

	begin(r, NULL);
	assert_non_null(strstr(await_line(r, "kubernetes-version"), "version=1.37 from=newest"));
	end(r, SIGKILL);
	(void)snprintf(path, sizeof path, "%s/kubelet-version", r->daemon.run);
	write_text(path, "v1.36.3");
	begin(r, NULL);
	assert_non_null(strstr(
		await_line(r, "kubernetes-version"), "version=1.36 from=kubelet-remembered"));
}

static void a_daemon_starts_with_the_labels_that_it_remembers(void **state)
{
	struct rig *r = *state;
	char path[PATH_MAX + 64], set[SET_MAX];

	give_api_server(r, set);
	hold_config(r, "nodes:\n- labels: {pool: a}\n  settings: {topologyManagerPolicy: none}\n");
	begin(r, NULL);
	(void)await_line(r, "config-labels-unknown");
	end(r, SIGTERM);
	(void)snprintf(path, sizeof path, "%s/node-labels", r->daemon.run);
	write_text(path, "kubernetes.io/arch=amd64\npool=a\n");
	begin(r, NULL);
	assert_non_null(strstr(await_line(r, "config-sections"), "all=1 used=1 off=no"));
	assert_newcomer(r, "none", false);
	assert_int_equal(count_log(r, "config-labels-unknown"), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(unusable_credentials_are_tried_until_they_work),
		CASE(credentials_that_became_unreadable_are_logged),
		CASE(labels_are_asked_for_once_the_credentials_are_there),
		CASE(pods_are_evicted_while_the_settings_say_so),
		CASE(placements_are_written_while_the_settings_say_so),
		CASE(a_refusal_names_the_container_that_does_not_fit),
		CASE(what_is_not_followed_of_a_pods_annotations_is_said_once),
		CASE(events_name_pods_of_other_namespaces_only_where_the_operator_says_so),
		CASE(labels_choose_sections_and_outlive_the_daemon),
		CASE(labels_that_need_a_restart_end_the_daemon_when_they_come_first),
		CASE(the_version_is_the_kubelets_when_the_node_says_it_and_no_setting_does),
		CASE(labels_are_asked_for_when_a_section_first_needs_them),
		CASE(a_daemon_without_credentials_for_labels_logs_that),
		CASE(the_kubelets_version_outlives_the_daemon),
		CASE(a_daemon_that_was_killed_follows_the_kubelet_that_it_remembers),
		CASE(a_daemon_starts_with_the_labels_that_it_remembers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
