#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "nri_wire.h"
#include <nri/nri_pb.h>
#include <nri/runtime.h>
#include <nri/session.h>
#include <numafit/text.h>

enum { MANY = 1000, LOG = 4096 };

static void note(char *log, const char *word, const char *what)
{
	size_t len = strlen(log);

	if (len < LOG)
		(void)snprintf(log + len, LOG - len, "%s %s;", word, what);
}

/* A runtime and a plugin whose bytes go from one to the other in memory. */
struct pair {
	struct nri_runtime *runtime;
	struct nri_session *session;
	struct nri_handler handler;
	char calls[LOG];    /* calls of the plugin */
	char answered[LOG]; /* what the runtime was answered */
	size_t nr_running;
	uint32_t subscribed;
	size_t step; /* bytes that go over at a time; 0: all */
	struct nri_cpuset update;
	bool with_update;
};

static void on_synchronize(void *ctx, const struct nri_inventory *what, struct nri_reply *reply)
{
	struct pair *p = ctx;

	for (size_t i = 0; i < what->nr; i++) {
		const struct request *running = &what->containers[i];
		const char *id = running->container_id;
		bool odd = (id[strlen(id) - 1] - '0') % 2;

		assert_string_equal(running->ask.name, "main");
		assert_string_not_equal(running->pod.name, "");
		assert_int_equal(running->pod.qos, odd ? QOS_BURSTABLE : QOS_GUARANTEED);
	}
	p->nr_running = what->nr;
	note(p->calls, "synchronize", "");
	reply->updates = &p->update;
	reply->nr_updates = p->with_update;
}

static int on_run_pod(void *ctx, const struct pod *pod, struct err *e)
{
	struct pair *p = ctx;

	note(p->calls, "run-pod", pod->sandbox_id);
	(void)e;
	return 0;
}

static int on_create(void *ctx, const struct request *req, struct nri_reply *reply, struct err *e)
{
	struct pair *p = ctx;

	note(p->calls, "create", req->container_id);
	if (req->ask.cpu_milli > 8000)
		return err_set(
			e, ENOSPC, "%u CPUs are too many", (unsigned)req->ask.cpu_milli / 1000);
	reply->adjust = true;
	reply->cpus = "2-3";
	reply->mems = "0";
	reply->annotation = (struct key_value){NRI_PLACEMENT_ANNOTATION, "{}"};
	reply->updates = &p->update;
	reply->nr_updates = p->with_update;
	return 0;
}

static void on_update(void *ctx, const struct request *req, struct nri_reply *reply)
{
	struct pair *p = ctx;
	struct nri_cpuset *keep = arena_array(reply->arena, 1, sizeof *keep);

	note(p->calls, "update", req->container_id);
	*keep = (struct nri_cpuset){req->container_id, "2-3", "0"};
	reply->updates = keep;
	reply->nr_updates = 1;
}

static void on_stop(void *ctx, const struct request *req, struct nri_reply *reply)
{
	(void)reply;
	note(((struct pair *)ctx)->calls, "stop", req->container_id);
}

static void on_remove(void *ctx, const struct request *req)
{
	note(((struct pair *)ctx)->calls, "remove", req->container_id);
}

static void on_live(void *ctx, const struct request *req)
{
	note(((struct pair *)ctx)->calls, "live", req->container_id);
}

static void on_remove_pod(void *ctx, const struct pod *pod)
{
	note(((struct pair *)ctx)->calls, "remove-pod", pod->sandbox_id);
}

static void on_configured(void *ctx, const char *name, const char *index, uint32_t events)
{
	struct pair *p = ctx;

	assert_string_equal(name, "numafit");
	assert_string_equal(index, "50");
	p->subscribed = events;
}

static void on_answered(void *ctx, enum nri_call call, const struct nri_answer *a)
{
	static const char *const names[] = {"synchronize", "run-pod", "create", "post-create",
		"post-start", "update", "stop", "remove", "stop-pod", "remove-pod"};
	char text[256];
	struct text t;

	text_init(&t, text, sizeof text);
	if (a->status)
		text_add(&t, "%d %s", a->status, a->message);
	if (*a->cpus || *a->mems)
		text_add(&t, "cpus %s mems %s", a->cpus, a->mems);
	for (size_t i = 0; i < a->nr_annotations; i++)
		text_add(&t, " %s=%s", a->annotations[i].key, a->annotations[i].value);
	for (size_t i = 0; i < a->nr_updates; i++)
		text_add(&t, " set %s %s %s%s", a->updates[i].container_id, a->updates[i].cpus,
			a->updates[i].mems, a->updates[i].ignore_failure ? " or not" : "");
	note(((struct pair *)ctx)->answered, names[call], text);
}

static void pair_init(struct pair *p, const struct nri_runtime_options *o)
{
	struct nri_runtime_events ev = {p, on_configured, on_answered};

	*p = (struct pair){.handler = {.ctx = p,
				   .synchronize = on_synchronize,
				   .run_pod = on_run_pod,
				   .create = on_create,
				   .update = on_update,
				   .stop = on_stop,
				   .remove = on_remove,
				   .live = on_live,
				   .started = on_live,
				   .remove_pod = on_remove_pod}};
	p->runtime = nri_runtime_new(o, &ev);
	p->session = nri_session_new(
		&(struct nri_plugin){.name = "numafit", .index = "50"}, &p->handler, 0);
}

static void pair_fini(struct pair *p)
{
	nri_runtime_free(p->runtime);
	nri_session_free(p->session);
}

/* What the session sends keeps to the one shape. */
static void check_shape(const void *data, size_t len)
{
	struct blob rest = {data, len};

	while (rest.len)
		(void)next_sent(&rest);
}

static bool to_runtime(struct pair *p)
{
	const void *data;
	size_t len = nri_session_take(p->session, &data);
	struct bytes copy = {0};

	check_shape(data, len);
	bytes_append(&copy, data, len);
	for (size_t at = 0, n; at < len; at += n) {
		n = p->step && p->step < len - at ? p->step : len - at;
		assert_int_equal(nri_runtime_feed(p->runtime, copy.at + at, n), 0);
	}
	bytes_fini(&copy);
	return len > 0;
}

static bool to_session(struct pair *p)
{
	const void *data;
	size_t len = nri_runtime_take(p->runtime, &data);

	for (size_t at = 0, n; at < len; at += n) {
		n = p->step && p->step < len - at ? p->step : len - at;
		assert_int_equal(nri_session_feed(p->session, (const char *)data + at, n, 0), 0);
	}
	return len > 0;
}

static void run(struct pair *p)
{
	for (bool moved = true; moved;) {
		moved = to_runtime(p);
		moved = to_session(p) || moved;
	}
}

static struct nri_container container(const char *id, unsigned cpus)
{
	return (struct nri_container){.sandbox_id = "s1",
		.pod_uid = "u1",
		.pod_ns = "default",
		.pod_name = "pod1",
		.cgroup_parent = "/kubepods/podu1",
		.id = id,
		.name = "main",
		.cpus = "",
		.mems = "",
		.resources = {.has_shares = true, .cpu_shares = cpus * 1024u}};
}

static void synchronize_many(struct pair *p, size_t nr)
{
	struct nri_container *all = xcalloc(nr, sizeof *all);
	char(*ids)[16] = xcalloc(nr, sizeof *ids);
	char(*pods)[16] = xcalloc(nr, sizeof *pods);

	for (size_t i = 0; i < nr; i++) {
		(void)snprintf(ids[i], sizeof ids[i], "c%zu", i);
		(void)snprintf(pods[i], sizeof pods[i], "s%zu",
			i % 300); /* containers of a pod lie apart */
		all[i] = container(ids[i], 1);
		all[i].sandbox_id = pods[i];
		all[i].cgroup_parent = i % 2 ? "/kubepods/burstable/podx" : "/kubepods/podx";
	}
	nri_runtime_synchronize(p->runtime, all, nr);
	free(all);
	free(ids);
	free(pods);
}

static const struct nri_runtime_options variants[] = {
	{"containerd", "v2.3.4", false, 0},
	{"containerd", "v1.7.24", true, 0},
	{"containerd", "v2.3.4", false, 7},
	{"cri-o", "1.34.0", true, 1},
};
enum { NR_VARIANTS = sizeof variants / sizeof *variants };

static void the_life_of_a_container_is_the_same_for_every_variant_of_runtime(void **state)
{
	static const size_t steps[] = {0, 1, 11};

	(void)state;
	for (size_t v = 0; v < NR_VARIANTS * 3; v++) {
		struct pair p;
		struct nri_container c = container("web", 2), big = container("big", 9);

		pair_init(&p, &variants[v % NR_VARIANTS]);
		p.step = steps[v / NR_VARIANTS];
		p.update = (struct nri_cpuset){"c7", "0-1", "0"};
		p.with_update = true;
		run(&p);
		assert_int_equal(p.subscribed, 0x6df);
		synchronize_many(&p, MANY);
		nri_runtime_call(p.runtime, NRI_CALL_RUN_POD, &c);
		nri_runtime_call(p.runtime, NRI_CALL_CREATE, &c);
		nri_runtime_call(p.runtime, NRI_CALL_POST_CREATE, &c);
		nri_runtime_call(p.runtime, NRI_CALL_POST_START, &c);
		nri_runtime_call(p.runtime, NRI_CALL_UPDATE, &c);
		nri_runtime_call(p.runtime, NRI_CALL_CREATE, &big);
		nri_runtime_call(p.runtime, NRI_CALL_STOP, &c);
		nri_runtime_call(p.runtime, NRI_CALL_REMOVE, &c);
		nri_runtime_call(p.runtime, NRI_CALL_STOP_POD, &c);
		nri_runtime_call(p.runtime, NRI_CALL_REMOVE_POD, &c);
		run(&p);
		assert_int_equal(p.nr_running, MANY);
		assert_string_equal(p.calls,
			"synchronize ;run-pod s1;create web;live web;live web;update web;"
			"create big;stop web;remove web;remove-pod s1;remove-pod s1;");
		assert_string_equal(p.answered, "synchronize  set c7 0-1 0 or not;run-pod ;"
						"create cpus 2-3 mems 0 numafit.io/placement={} "
						"set c7 0-1 0 or not;post-create ;post-start ;"
						"update  set web 2-3 0 or not;create 9 9 CPUs are "
						"too many;stop ;remove ;stop-pod ;remove-pod ;");
		assert_string_equal(nri_runtime_error(p.runtime), "");
		assert_string_equal(nri_session_error(p.session), "");
		pair_fini(&p);
	}
}

static void a_node_where_nothing_runs_synchronizes_too(void **state)
{
	(void)state;
	for (size_t v = 0; v < NR_VARIANTS; v++) {
		struct pair p;

		pair_init(&p, &variants[v]);
		run(&p);
		nri_runtime_synchronize(p.runtime, NULL, 0);
		run(&p);
		assert_string_equal(p.answered, "synchronize ;");
		assert_int_equal(nri_session_state(p.session), NRI_READY);
		pair_fini(&p);
	}
}

static void calls_wait_until_the_plugin_is_configured(void **state)
{
	struct pair p;
	struct nri_container c = container("web", 2);

	(void)state;
	pair_init(&p, &variants[0]);
	nri_runtime_synchronize(p.runtime, NULL, 0);
	nri_runtime_call(p.runtime, NRI_CALL_CREATE, &c);
	assert_false(to_session(&p));
	run(&p);
	assert_string_equal(p.calls, "synchronize ;create web;");
	pair_fini(&p);
}

static void a_call_that_cannot_be_sent_is_answered_in_order(void **state)
{
	struct pair p;
	struct nri_container c = container("web", 2), bad = container("bad\xff", 2);

	(void)state;
	pair_init(&p, &variants[0]);
	run(&p);
	nri_runtime_synchronize(p.runtime, NULL, 0);
	nri_runtime_call(p.runtime, NRI_CALL_CREATE, &bad);
	nri_runtime_call(p.runtime, NRI_CALL_STOP, &c);
	run(&p);
	assert_string_equal(p.answered, "synchronize ;create 13 Container.id is not UTF-8;stop ;");
	pair_fini(&p);
}

/* A plugin played by hand, for what a session never says. */

static void put_answer(struct bytes *out, uint32_t id, struct bytes *payload)
{
	struct bytes body = {0};

	put_message(&body, 2, payload);
	put_go_message(out, MUX_PLUGIN, id, TYPE_RESPONSE, (struct blob){body.at, body.len});
	bytes_fini(&body);
}

static void put_registration(struct bytes *out, uint32_t id, const char *name, const char *index)
{
	struct bytes body = {0}, payload = {0};

	put_text(&payload, 1, name);
	put_text(&payload, 2, index);
	put_text(&body, 1, "nri.pkg.api.v1alpha1.Runtime");
	put_text(&body, 2, "RegisterPlugin");
	put_message(&body, 3, &payload);
	put_go_message(out, MUX_RUNTIME, id, TYPE_REQUEST, (struct blob){body.at, body.len});
	bytes_fini(&body);
}

struct by_hand {
	struct nri_runtime *r;
	struct pair seen;
};

static int feed_bytes(struct nri_runtime *r, struct bytes *in)
{
	int rc = nri_runtime_feed(r, in->at, in->len);

	bytes_fini(in);
	return rc;
}

/* A runtime whose plugin has registered and answered Configure with these events; feed's result. */
static int configure_with(struct by_hand *h, const struct nri_runtime_options *o, uint32_t events)
{
	struct nri_runtime_events ev = {&h->seen, on_configured, on_answered};
	struct bytes in = {0}, payload = {0};

	*h = (struct by_hand){.r = nri_runtime_new(o, &ev)};
	put_registration(&in, 1, "numafit", "50");
	if (events)
		put_number(&payload, 2, events);
	put_answer(&in, 1, &payload); /* too early: there was no call yet */
	assert_int_equal(feed_bytes(h->r, &in), 0);
	assert_int_equal(h->seen.subscribed, 0);
	if (events)
		put_number(&payload, 2, events);
	put_answer(&in, 1, &payload);
	return feed_bytes(h->r, &in);
}

static void only_known_events_may_be_subscribed_to(void **state)
{
	static const struct {
		bool old;
		uint32_t events, subscribed;
		int rc;
		const char *error;
	} cases[] = {
		{false, 0x6df, 0x6df, 0, ""},
		{false, 0, 0x3fff, 0, ""},
		{true, 0, 0x7ff, 0, ""},
		{true, 0x8ff, 0, -EPROTO, "invalid plugin events: 0x800"},
		{false, 0x4001, 0, -EPROTO, "invalid plugin events: 0x4000"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nri_runtime_options o = {"r", "1", cases[i].old, 0};
		struct by_hand h;

		assert_int_equal(configure_with(&h, &o, cases[i].events), cases[i].rc);
		assert_int_equal(h.seen.subscribed, cases[i].subscribed);
		assert_string_equal(nri_runtime_error(h.r), cases[i].error);
		nri_runtime_free(h.r);
	}
}

static void events_without_a_subscriber_are_answered_empty_and_in_order(void **state)
{
	struct nri_container c = container("web", 2);
	struct by_hand h;
	struct bytes in = {0}, payload = {0};

	(void)state;
	assert_int_equal(configure_with(&h, &variants[0], 0x8), 0); /* CreateContainer alone */
	nri_runtime_call(h.r, NRI_CALL_RUN_POD, &c);
	assert_string_equal(h.seen.answered, "run-pod ;");
	nri_runtime_call(h.r, NRI_CALL_CREATE, &c);
	nri_runtime_call(h.r, NRI_CALL_POST_START, &c);
	assert_string_equal(h.seen.answered, "run-pod ;");
	put_answer(&in, 3, &payload);
	assert_int_equal(feed_bytes(h.r, &in), 0);
	assert_string_equal(h.seen.answered, "run-pod ;create ;post-start ;");
	nri_runtime_free(h.r);
}

static void each_variant_of_runtime_sends_events_in_its_own_way(void **state)
{
	static const struct {
		enum nri_call call;
		bool state_change;
		const char *method;
	} cases[] = {
		{NRI_CALL_POST_START, false, "PostStartContainer"},
		{NRI_CALL_POST_START, true, "StateChange"},
		{NRI_CALL_REMOVE_POD, false, "RemovePodSandbox"},
		{NRI_CALL_REMOVE_POD, true, "StateChange"},
		{NRI_CALL_UPDATE, false, "UpdateContainer"},
		{NRI_CALL_UPDATE, true, "UpdateContainer"},
	};
	struct nri_container c = container("web", 2);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nri_runtime_options o = {"r", "1", cases[i].state_change, 0};
		struct by_hand h;
		struct arena a;
		struct ttrpc_request req;
		const void *data;

		assert_int_equal(configure_with(&h, &o, 0x7ff), 0);
		(void)nri_runtime_take(h.r, &data);
		nri_runtime_call(h.r, cases[i].call, &c);
		struct blob rest = {.len = nri_runtime_take(h.r, &data)};
		rest.data = data;
		arena_init(&a, TTRPC_MEMORY_MAX);
		assert_int_equal(ttrpc_request_decode(next_sent(&rest).body, &a, &req, NULL), 0);
		assert_string_equal(req.method, cases[i].method);
		assert_int_equal(req.timeout_ns, 2000000000);
		arena_fini(&a);
		nri_runtime_free(h.r);
	}
}

static void a_plugin_without_support_for_chunks_is_dropped(void **state)
{
	static const struct {
		bool more, update;
		int rc;
	} cases[] = {{true, false, 0}, {false, false, -EPROTO}, {true, true, -EPROTO}};
	struct nri_container two[] = {container("a", 1), container("b", 1)};
	struct nri_runtime_options o = {"r", "1", false, 1};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct by_hand h;
		struct bytes in = {0}, payload = {0}, update = {0};

		assert_int_equal(configure_with(&h, &o, 0x8), 0);
		nri_runtime_synchronize(h.r, two, 2);
		if (cases[i].update)
			put_message(&payload, 1, &update);
		if (cases[i].more)
			put_number(&payload, 2, 1);
		put_answer(&in, 3, &payload);
		assert_int_equal(feed_bytes(h.r, &in), cases[i].rc);
		assert_string_equal(nri_runtime_error(h.r),
			cases[i].rc ? "the plugin does not handle split sync requests" : "");
		nri_runtime_free(h.r);
	}
}

static void an_answer_that_cannot_be_read_is_an_error(void **state)
{
	struct nri_container c = container("web", 2);
	struct by_hand h;
	struct bytes in = {0}, payload = {0};

	(void)state;
	assert_int_equal(configure_with(&h, &variants[0], 0x8), 0);
	nri_runtime_call(h.r, NRI_CALL_CREATE, &c);
	bytes_append(&payload, "\x0a\x7f", 2);
	put_answer(&in, 3, &payload);
	assert_int_equal(feed_bytes(h.r, &in), 0);
	assert_string_equal(h.seen.answered, "create 13 2 bytes are no CreateContainerResponse;");
	nri_runtime_free(h.r);
}

static void a_bad_name_or_index_is_refused_and_the_connection_left_open(void **state)
{
	static const struct {
		const char *name, *index;
		bool good;
	} cases[] = {
		{"numafit", "50", true},
		{"a.b-c_d+1", "00", true},
		{"", "50", false},
		{"a b", "50", false},
		{"a\xc3\xa9", "50", false},
		{"numafit", "5", false},
		{"numafit", "500", false},
		{"numafit", "5x", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nri_runtime_events ev = {NULL, on_configured, on_answered};
		struct nri_runtime *r = nri_runtime_new(&variants[0], &ev);
		struct bytes in = {0};
		const void *data;

		put_registration(&in, 1, cases[i].name, cases[i].index);
		assert_int_equal(feed_bytes(r, &in), 0);
		struct blob rest = {.len = nri_runtime_take(r, &data)};
		rest.data = data;
		assert_int_equal(next_sent(&rest).body.len > 0, !cases[i].good);
		assert_int_equal(rest.len > 0, cases[i].good); /* Configure */
		nri_runtime_free(r);
	}
}

static struct nri_runtime *chained;
static unsigned chain_left;

static void on_chain(void *ctx, enum nri_call call, const struct nri_answer *a)
{
	struct nri_container c = container("web", 2);

	(void)ctx, (void)a;
	assert_int_equal(call, NRI_CALL_RUN_POD);
	if (chain_left-- > 1)
		nri_runtime_call(chained, NRI_CALL_RUN_POD, &c);
}

static void ignore_configured(void *ctx, const char *name, const char *index, uint32_t events)
{
	(void)ctx, (void)name, (void)index, (void)events;
}

static void a_call_made_in_the_callback_of_an_answer_is_sent(void **state)
{
	struct nri_runtime_events ev = {NULL, ignore_configured, on_chain};
	struct nri_container c = container("web", 2);
	struct bytes in = {0}, payload = {0};

	(void)state;
	chained = nri_runtime_new(&variants[0], &ev);
	chain_left =
		100000; /* of calls that nobody asked for: none may lie on the stack of another */
	put_registration(&in, 1, "numafit", "50");
	assert_int_equal(feed_bytes(chained, &in), 0);
	put_number(&payload, 2, 8);
	put_answer(&in, 1, &payload);
	assert_int_equal(feed_bytes(chained, &in), 0);
	nri_runtime_call(chained, NRI_CALL_RUN_POD, &c);
	assert_int_equal(chain_left, 0);
	nri_runtime_free(chained);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_life_of_a_container_is_the_same_for_every_variant_of_runtime),
		cmocka_unit_test(a_node_where_nothing_runs_synchronizes_too),
		cmocka_unit_test(calls_wait_until_the_plugin_is_configured),
		cmocka_unit_test(a_call_that_cannot_be_sent_is_answered_in_order),
		cmocka_unit_test(only_known_events_may_be_subscribed_to),
		cmocka_unit_test(events_without_a_subscriber_are_answered_empty_and_in_order),
		cmocka_unit_test(each_variant_of_runtime_sends_events_in_its_own_way),
		cmocka_unit_test(a_plugin_without_support_for_chunks_is_dropped),
		cmocka_unit_test(an_answer_that_cannot_be_read_is_an_error),
		cmocka_unit_test(a_bad_name_or_index_is_refused_and_the_connection_left_open),
		cmocka_unit_test(a_call_made_in_the_callback_of_an_answer_is_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
