/* numafit-extender as a server: large clusters, odd requests, budgets, certificates, pages for
 * probes, and its end. */
#include "extender_cases.h"

/* Many nodes */

enum { MANY = 5000 };

static char *many_args(json_t *pod, bool by_name)
{
	auto_free char *text = json_dumps(pod, JSON_COMPACT);
	size_t cap = (size_t)MANY * 16384 + strlen(text) + 256;
	char *out = xcalloc(cap, 1), *pad = xcalloc(12000, 1);
	struct text t;

	memset(pad, 'x', 12000 - 1);
	text_init(&t, out, cap);
	text_add(&t, "{\"Pod\":%s,%s[", text,
		by_name ? "\"Nodes\":null,\"NodeNames\":" : "\"Nodes\":{\"items\":");
	for (unsigned i = 0; i < MANY; i++) {
		char *at = out + t.len;
		size_t room = cap - t.len;
		int n = by_name ? snprintf(at, room, "%s\"node-%u.example\"", i ? "," : "", i)
				: snprintf(at, room,
					  "%s{\"metadata\":{\"name\":\"node-%u.example\"},"
					  "\"status\":{\"images\":[\"%s\"]}}",
					  i ? "," : "", i, pad);
		t.len += (size_t)n;
	}
	(void)snprintf(out + t.len, cap - t.len, by_name ? "]}" : "]},\"NodeNames\":null}");
	free(pad);
	return out;
}

static void add_many(struct rig *r)
{
	char name[32];

	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof name, "node-%u.example", i);
		(void)json_array_append_new(r->list[NODES].items, rig_node(name));
		(void)json_array_append_new(
			r->list[REPORTS].items, rig_report(name, 1, i % 2 ? 8 : 1, 1, ""));
	}
}

/* The processor time that the extender has used since the last call. */
static double cpu_ms(struct rig *r)
{
	static const char series[] = "\nprocess_cpu_seconds_total ";
	static double before;

	assert_int_equal(rig_ask(r, "/metrics", NULL), FAKE_OK);
	const char *at = strstr(r->answer, series);
	assert_non_null(at);
	double now = strtod(at + sizeof series - 1, NULL) * 1000, took = now - before;
	before = now;
	return took;
}

static void ask_for_many(struct rig *r, const char *verb, const char *args)
{
	char path[32];

	(void)snprintf(path, sizeof path, "/%s", verb);
	(void)cpu_ms(r);
	assert_int_equal(rig_ask(r, path, args), FAKE_OK);
	json_t *answer = json_loads(r->answer, JSON_REJECT_DUPLICATES, NULL);
	if (verb[0] == 'p') {
		assert_int_equal(json_array_size(answer), MANY);
	} else {
		json_t *nodes = json_object_get(answer, "NodeNames");

		if (!json_is_array(nodes))
			nodes = json_object_get(json_object_get(answer, "Nodes"), "items");
		assert_int_equal(json_array_size(nodes), MANY / 2);
		assert_int_equal(
			json_object_size(json_object_get(answer, "FailedNodes")), MANY / 2);
	}
	json_decref(answer);
	print_message(
		"# %s, %d nodes, %zu bytes: %.3f ms of CPU\n", verb, MANY, strlen(args), cpu_ms(r));
}

static void thousands_of_nodes_are_answered(void **state)
{
	struct rig *r = *state;

	add_many(r);
	start(r);
	json_t *pod = rig_pod("a", 4, NULL);
	for (unsigned by_name = 0; by_name < 2; by_name++) {
		auto_free char *args = many_args(pod, by_name);

		ask_for_many(r, "filter", args);
		ask_for_many(r, "prioritize", args);
	}
	json_decref(pod);
}

/* Clients that mean no good, or are no clients at all */

static int connect_to(const struct rig *r)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)r->port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

static void odd_requests_are_refused_with_a_reason(void **state)
{
	static const struct {
		const char *path, *body;
		int status;
		const char *says;
	} rows[] = {
		{"/filter", "", 400, "not JSON: byte 0: it ends too early"},
		{"/filter", "{", 400, "not JSON: byte 1: it ends too early"},
		{"/filter", "[]", 400, "should be an object"},
		{"/filter", "{\"Pod\":{}}", 400, "no uid"},
		{"/filter", "{\"Pod\":{\"metadata\":{\"uid\":\"u\"}},\"NodeNames\":[1]}", 400,
			"NodeNames[0]: should be a string"},
		{"/filter",
			"{\"Pod\":{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{"
			"\"cpu\":\"much\"}}}]}}}",
			400, "cpu"},
		{"/prioritize", "{}", 400, "Pod: should be an object"},
		{"/preempt",
			"{\"Pod\":{\"metadata\":{\"uid\":\"u\"}},\"NodeNameToMetaVictims\":[]}",
			400, "should be an object"},
		{"/bind", "{\"PodName\":\"a\"}", 400, "PodNamespace"},
		{"/nothing", "{}", 404, "filter"},
		{"/metrics", "{}", 405, "GET"},
		{"/filter", NULL, 405, "POST"},
	};
	struct rig *r = *state;

	start(r);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(rig_ask(r, rows[i].path, rows[i].body), rows[i].status);
		if (!strstr(r->answer, rows[i].says))
			fail_msg("row %zu: %s", i, r->answer);
	}
	assert_int_equal(rig_ask(r, "/healthz", NULL), FAKE_OK);
}

/* What a web page in a browser on this machine can send, and by a name that leads here. */
static void a_web_page_cannot_have_a_pod_bound(void **state)
{
	static const char bind[] = "{\"PodName\":\"a\",\"PodNamespace\":\"d\",\"PodUID\":\"u\","
				   "\"Node\":\"n\"}";
	static const struct {
		const char *headers, *status;
	} rows[] = {
		{"Host: 127.0.0.1\r\nContent-Type: text/plain\r\n", "415"},
		{"Host: 127.0.0.1\r\n", "415"},
		{"Host: rebound.example.com\r\nContent-Type: application/json\r\n", "403"},
		{"Host: 127.0.0.1\r\nContent-Type: application/json\r\n"
		 "Sec-Fetch-Site: cross-site\r\n",
			"403"},
		{"Host: 127.0.0.1\r\nHost: a\r\nContent-Type: application/json\r\n", "400"},
	};
	struct rig *r = *state;

	start(r);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char text[512], got[256] = "";
		int fd = connect_to(r);

		int len = snprintf(text, sizeof text,
			"POST /bind HTTP/1.1\r\n%sContent-Length: %zu\r\n\r\n%s", rows[i].headers,
			strlen(bind), bind);
		assert_int_equal(write(fd, text, (size_t)len), len);
		assert_true(read(fd, got, sizeof got - 1) > 0);
		if (strncmp(got + strlen("HTTP/1.1 "), rows[i].status, 3) != 0)
			fail_msg("row %zu: %s", i, got);
		(void)close(fd);
	}
	assert_int_equal(r->nr_binds, 0);
}

static void a_request_without_an_end_does_not_hold_up_others(void **state)
{
	enum { SLOW = 100 }; /* more than there may be at a time */
	static const char begin[] =
		"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{";
	static const char look[] = "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n";
	static const struct timeval patience = {.tv_sec = 20};
	static const char huge[] =
		"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n";
	struct rig *r = *state;
	char answer[256] = "";
	int fd[SLOW];

	start(r);
	for (unsigned i = 0; i < SLOW; i++) {
		fd[i] = connect_to(r);
		assert_true(write(fd[i], begin, sizeof begin - 1) > 0);
	}
	filter(r, new_pod(r, "a", 4), FITS_N1);
	int late = connect_to(r); /* of a scheduler that has no connection yet */
	assert_true(write(late, look, sizeof look - 1) > 0);
	assert_int_equal(setsockopt(late, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
	assert_true(read(late, answer, sizeof answer - 1) > 0);
	assert_non_null(strstr(answer, " 200 "));
	(void)close(late);
	for (unsigned i = 0; i < SLOW; i++)
		(void)close(fd[i]);
	fd[0] = connect_to(r);
	assert_true(write(fd[0], huge, sizeof huge - 1) > 0);
	assert_true(read(fd[0], answer, sizeof answer - 1) > 0);
	assert_non_null(strstr(answer, " 413 "));
	(void)close(fd[0]);
}

/* What it is to have been sent is what counts. */
static void all_request_bodies_share_one_budget(void **state)
{
	enum { FIT = 3, ASKED = 8 };
	static const char begin[] = "POST /filter HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
				    "Content-Length: 65536\r\n\r\n";
	struct rig *r = *state;
	unsigned taken = 0, refused = 0;
	int fd[ASKED];

	rig_write_config(r, "maxRequestBytes: 64Ki\nmaxHeldBytes: 200Ki\n");
	start(r);
	for (unsigned i = 0; i < ASKED; i++) {
		char answer[256] = "";

		fd[i] = connect_to(r);
		assert_true(write(fd[i], begin, sizeof begin - 1) > 0);
		assert_true(read(fd[i], answer, sizeof answer - 1) > 0);
		taken += strstr(answer, " 100 ") != NULL;
		refused += strstr(answer, " 503 ") && strstr(answer, "Retry-After: 1");
	}
	assert_int_equal(taken, FIT);
	assert_int_equal(refused, ASKED - FIT);
	assert_int_equal(rig_ask(r, "/metrics", NULL), FAKE_OK);
	assert_non_null(strstr(r->answer, "\nnumafit_extender_requests_crowded_out_total 5\n"));
	for (unsigned i = 0; i < ASKED; i++)
		(void)close(fd[i]);
	json_t *a = new_pod(r, "a", 4);
	auto_free char *args = rig_args(a, both);
	while (rig_ask(r, "/filter", args) != FAKE_OK) /* until it has seen them go */
		assert_int_equal(r->status, 503);
}

static void serving_without_client_certificates_logs_a_warning(void **state)
{
	struct rig *r = *state;

	fake_api_write_file(
		r->config, "listen: :0\ninsecure: true\nkubeconfig: %s\n", r->f.kubeconfig);
	start(r);
	assert_true(rig_said(r, "level=warn event=insecure "));
}

static void a_deeply_nested_request_is_refused(void **state)
{
	enum { DEEP = 100000 };
	struct rig *r = *state;
	auto_free char *body = xcalloc(DEEP + 64, 1);

	start(r);
	(void)snprintf(body, 64, "{\"Pod\":");
	memset(body + strlen(body), '[', DEEP);
	assert_int_equal(rig_ask(r, "/filter", body), 400);
	assert_non_null(strstr(r->answer, "too deep"));
	assert_int_equal(rig_ask(r, "/bind", body), 400);
	assert_int_equal(rig_ask(r, "/healthz", NULL), FAKE_OK);
}

static void the_metrics_count_requests(void **state)
{
	static const char *const series[] = {
		"numafit_extender_requests_total{verb=\"filter\",result=\"ok\"} 1\n",
		"numafit_extender_binds_total{result=\"bound-with-hint\"} 1\n",
		"numafit_extender_nodes 2\n", "numafit_extender_topologies 2\n",
		"numafit_extender_nodes_asked_total{verb=\"filter\"} 2\n",
		"numafit_extender_nodes_refused_total 1\n",
		"numafit_extender_watch_synced{resource=\"pods\"} 1\n",
		"numafit_extender_watch_synced{resource=\"numatopologies\"} 1\n", /* not asked for
										   */
	};
	struct rig *r = *state;

	start(r);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	bind_pod(r, "a", "n1", OK);
	assert_int_equal(rig_ask(r, "/metrics", NULL), FAKE_OK);
	for (size_t i = 0; i < sizeof series / sizeof *series; i++)
		if (!strstr(r->answer, series[i]))
			fail_msg("%s: %s", series[i], r->answer);
}

static void sigterm_ends_the_extender(void **state)
{
	struct rig *r = *state;

	start(r);
	assert_int_equal(rig_end(r, SIGTERM), 0);
}

static void a_pending_bind_is_answered_before_the_extender_ends(void **state)
{
	struct rig *r = *state;

	start(r);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	r->bind_waits = true;
	auto_free char *args = rig_bind_args("a", "n1");
	rig_begin(r, "/bind", args, strlen(args));
	FAKE_UNTIL(&r->f, r->unanswered);
	(void)kill(r->pid, SIGTERM);
	while (!rig_said(r, "event=stopping"))
		(void)usleep(1000);
	rig_answer_bind(r);
	rig_wait(r);
	assert_int_equal(r->status, FAKE_OK);
	assert_string_equal(r->answer, OK);
	assert_int_equal(
		rig_end(r, 0), 0); /* another SIGTERM may come when none is caught any more */
}

static void requests_before_the_first_list_get_an_error(void **state)
{
	struct rig *r = *state;

	fake_api_down(&r->f);
	rig_start(r);
	json_t *pod = rig_pod("a", 1, NULL);
	auto_free char *args = rig_args(pod, both);
	assert_int_equal(rig_ask(r, "/filter", args), 503);
	assert_int_equal(rig_ask(r, "/readyz", NULL), 503);
	assert_int_equal(rig_ask(r, "/livez", NULL), 200);
	json_decref(pod);
}

/* Nobody has the nodes walked over as often as he likes. */
static void metrics_are_made_anew_after_a_while(void **state)
{
	static const char
		none[] = "numafit_extender_requests_total{verb=\"filter\",result=\"ok\"} 0\n",
		one[] = "numafit_extender_requests_total{verb=\"filter\",result=\"ok\"} 1\n";
	struct rig *r = *state;

	assert_int_equal(setenv("NUMAFIT_FAULT_METRICS_MS", "3000", 1), 0);
	start(r);
	assert_int_equal(unsetenv("NUMAFIT_FAULT_METRICS_MS"), 0);
	await_metric(r, none);
	filter(r, new_pod(r, "a", 4), FITS_N1);
	await_metric(r, none);
	while (!strstr(r->answer, one)) {
		(void)usleep(10000);
		assert_int_equal(rig_ask(r, "/metrics", NULL), FAKE_OK);
	}
}

/* Whoever has no certificate may see how it is, and nothing else. */
static void metrics_and_probes_have_an_address_of_their_own(void **state)
{
	static const struct {
		const char *path, *body;
		int status;
	} rows[] = {
		{"/livez", NULL, 200},
		{"/readyz", NULL, 200},
		{"/metrics", NULL, 200},
		{"/metrics", "{}", 405},
		{"/filter", "{}", 404},
		{"/bind", "{}", 404},
	};
	struct rig *r = *state;

	rig_write_config(r, "metrics: {address: 127.0.0.1:0}\n");
	start(r);
	const char *port = strstr(r->log, " metrics_port=");
	assert_non_null(port);
	assert_int_equal(sscanf(port, " metrics_port=%u", &r->port), 1);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(rig_ask(r, rows[i].path, rows[i].body), rows[i].status);
}

/* TLS */

enum { TLS_FILES = 3 };
static const char *const tls_file[TLS_FILES] = {"tls.crt", "tls.key", "ca.crt"};

/* The folder that a Secret is mounted at, and what is in it; more may be NULL. */
static const char *in_secret(const struct rig *r, const char *name, const char *more)
{
	static char path[PATH_MAX];

	(void)snprintf(path, sizeof path, "%s/secret/%s%s%s", r->f.dir, name, more ? "/" : "",
		more ? more : "");
	return path;
}

/* Another version of it, of these files of test/tls, as the kubelet puts it there. */
static void mount_secret(const struct rig *r, const char *version, const char *const *from)
{
	char target[PATH_MAX], next[PATH_MAX];

	assert_int_equal(mkdir(in_secret(r, version, NULL), 0700), 0);
	for (unsigned i = 0; i < TLS_FILES; i++) {
		auto_free char *real = realpath("test/tls", NULL);

		(void)snprintf(target, sizeof target, "%s/%s", real, from[i]);
		assert_int_equal(symlink(target, in_secret(r, version, tls_file[i])), 0);
	}
	(void)snprintf(next, sizeof next, "%s", in_secret(r, "..data_tmp", NULL));
	assert_int_equal(symlink(version, next), 0);
	assert_int_equal(rename(next, in_secret(r, "..data", NULL)), 0);
}

static void unmount_secret(const struct rig *r, const char *version)
{
	for (unsigned i = 0; i < TLS_FILES; i++)
		(void)unlink(in_secret(r, version, tls_file[i]));
	(void)rmdir(in_secret(r, version, NULL));
}

static void mount_files(const struct rig *r)
{
	char target[PATH_MAX];

	assert_int_equal(mkdir(in_secret(r, "", NULL), 0700), 0);
	for (unsigned i = 0; i < TLS_FILES; i++) {
		(void)snprintf(target, sizeof target, "..data/%s", tls_file[i]);
		assert_int_equal(symlink(target, in_secret(r, tls_file[i], NULL)), 0);
	}
}

static char *pem(const char *name)
{
	enum { PEM_MAX = 8 << 10 };
	char path[64], *text = xcalloc(PEM_MAX, 1);

	(void)snprintf(path, sizeof path, "test/tls/%s", name);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	assert_true(fread(text, 1, PEM_MAX - 1, f) > 0);
	(void)fclose(f);
	return text;
}

/* Whoever asks from now on does so on a new connection; careless: he takes any server. */
static void trust(struct rig *r, bool careless)
{
	auto_free char *ca = pem("ca.pem"), *cert = pem("client.pem"), *key = pem("client.key");
	struct err e;

	http_client_free(r->http);
	r->http = http_client_new(r->f.loop,
		&(struct http_trust){.ca = ca, .cert = cert, .key = key, .insecure = careless}, &e);
	assert_non_null(r->http);
}

static int ask_anew(struct rig *r)
{
	trust(r, false);
	return rig_ask(r, "/livez", NULL);
}

static void changed_tls_files_apply_to_new_connections(void **state)
{
	static const char *const versions[][TLS_FILES] = {
		{"expired.pem", "server.key", "ca.pem"},
		{"server.pem", "server.key", "ca.pem"},
		{"server.pem", "client.key", "ca.pem"}, /* they do not belong together */
		{"server.pem", "server.key", "other-ca.pem"},
		{"server.pem", "server.key", "ca.pem"},
	};
	static const char *const name[] = {"..0", "..1", "..2", "..3", "..4"};
	struct rig *r = *state;

	mount_files(r);
	mount_secret(r, name[0], versions[0]);
	auto_free char *config = NULL;
	const char *in = in_secret(r, "", NULL);
	assert_true(asprintf(&config,
			    "tls: {certFile: %stls.crt, keyFile: %stls.key, clientCAFile: "
			    "%sca.crt}\n",
			    in, in, in) > 0);
	rig_write_config(r, config);
	r->by_tls = true;
	rig_start(r);
	trust(r, true);
	rig_await_ready(r);
	assert_int_equal(ask_anew(r), 0); /* expired */
	mount_secret(r, name[1], versions[1]);
	while (ask_anew(r) != FAKE_OK)
		assert_non_null(strstr(r->answer, "expired"));
	mount_secret(r, name[2], versions[2]);
	while (!rig_said(r, "event=tls-refused"))
		assert_int_equal(ask_anew(r), FAKE_OK);
	assert_int_equal(ask_anew(r), FAKE_OK);
	mount_secret(r, name[3], versions[3]);
	while (ask_anew(r) == FAKE_OK)
		;
	mount_secret(r, name[4], versions[4]);
	while (ask_anew(r) != FAKE_OK)
		assert_null(strstr(r->answer, "expired"));
	assert_int_equal(rig_ask(r, "/livez", NULL), FAKE_OK);
	assert_false(rig_said(r, "PRIVATE"));
	for (unsigned i = 0; i < sizeof name / sizeof *name; i++)
		unmount_secret(r, name[i]);
	for (unsigned i = 0; i < TLS_FILES; i++)
		(void)unlink(in_secret(r, tls_file[i], NULL));
	(void)unlink(in_secret(r, "..data", NULL));
	(void)rmdir(in_secret(r, "", NULL));
}

/* Nor one that does not say what it is for. */
static void a_server_certificate_is_refused_for_a_client(void **state)
{
	struct rig *r = *state;
	auto_free char *ca = pem("ca.pem"), *cert = pem("server.pem"), *key = pem("server.key");
	auto_free char *config = NULL, *folder = realpath("test/tls", NULL);
	struct err e;

	assert_true(asprintf(&config,
			    "tls: {certFile: %s/server.pem, keyFile: %s/server.key, clientCAFile: "
			    "%s/ca.pem}\n",
			    folder, folder, folder) > 0);
	rig_write_config(r, config);
	r->by_tls = true;
	rig_start(r);
	http_client_free(r->http);
	r->http = http_client_new(
		r->f.loop, &(struct http_trust){.ca = ca, .cert = cert, .key = key}, &e);
	assert_non_null(r->http);
	assert_int_equal(rig_ask(r, "/livez", NULL), 0);
	while (!rig_said(r, "event=client-refused "))
		(void)usleep(1000);
	assert_true(rig_said(r, "extendedKeyUsage has no clientAuth"));
	assert_int_equal(ask_anew(r), FAKE_OK); /* a client's */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(thousands_of_nodes_are_answered),
		T(odd_requests_are_refused_with_a_reason),
		T(a_web_page_cannot_have_a_pod_bound),
		T(a_request_without_an_end_does_not_hold_up_others),
		T(all_request_bodies_share_one_budget),
		T(serving_without_client_certificates_logs_a_warning),
		T(a_deeply_nested_request_is_refused),
		T(the_metrics_count_requests),
		T(a_pending_bind_is_answered_before_the_extender_ends),
		T(sigterm_ends_the_extender),
		T(metrics_and_probes_have_an_address_of_their_own),
		T(requests_before_the_first_list_get_an_error),
		T(metrics_are_made_anew_after_a_while),
		T(changed_tls_files_apply_to_new_connections),
		T(a_server_certificate_is_refused_for_a_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
