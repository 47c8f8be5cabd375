#include "runtime_pair.h"

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
	*keep = (struct nri_cpuset){req->container_id, "2-3", "0", false};
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

static void the_life_of_a_container_is_the_same_for_every_variant_of_runtime(void **state)
{
	static const size_t steps[] = {0, 1, 11};

	(void)state;
	for (size_t v = 0; v < NR_VARIANTS * 3; v++) {
		struct pair p;
		struct nri_container c = container("web", 2), big = container("big", 9);

		pair_init(&p, &variants[v % NR_VARIANTS]);
		p.step = steps[v / NR_VARIANTS];
		p.update = (struct nri_cpuset){"c7", "0-1", "0", false};
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_life_of_a_container_is_the_same_for_every_variant_of_runtime),
		cmocka_unit_test(a_node_where_nothing_runs_synchronizes_too),
		cmocka_unit_test(calls_wait_until_the_plugin_is_configured),
		cmocka_unit_test(a_call_that_cannot_be_sent_is_answered_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
