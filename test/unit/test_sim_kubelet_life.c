/* The kubelet of numafit-sim over time: plugins that end, a restart, and what PodResources and the
 * Pods API show. */
#include "sim_kubelet_rig.h"

static void a_device_that_is_given_out_must_stay_and_stay_healthy(void **state)
{
	struct rig *r = *state;
	struct peer *p = peer_up(r);

	admit(r, "train", 2, 4); /* all of node 1 */
	p->device[0].healthy = false;
	unsigned changed = r->nr_changed;
	device_plugin_changed(p->plugin);
	UNTIL(r, r->nr_changed > changed);
	assert_int_equal(r->nr_broken, 0); /* that one is nobody's */
	p->device[PER_NODE].healthy = false;
	device_plugin_changed(p->plugin);
	UNTIL(r, r->nr_broken == 1);
	assert_string_equal(r->broken, "ListAndWatch: numafit.io/cpu: device t-1-0 of pod train "
				       "has become unhealthy");
	p->nr = PER_NODE;
	device_plugin_changed(p->plugin);
	UNTIL(r, r->nr_broken == 2);
	assert_non_null(strstr(r->broken, "t-1-0 of pod train has become missing"));
}

static void devices_that_are_not_healthy_are_not_given_out(void **state)
{
	struct rig *r = *state;
	struct peer *p = peer_up(r);

	for (unsigned i = 0; i < PER_NODE - 1; i++)
		p->device[PER_NODE + i].healthy = false; /* one is left on node 1 */
	unsigned changed = r->nr_changed;
	device_plugin_changed(p->plugin);
	UNTIL(r, r->nr_changed > changed);
	admit(r, "train", 1, 2);
	assert_on(r, "train", "main", gpu, "0 0 0 1");
	assert_on(r, "train", "main", cpu, "0 0 0 2");
}

static void a_resource_without_its_plugin_is_not_available(void **state)
{
	struct rig *r = *state;
	unsigned changed;

	(void)peer_up(r);
	changed = r->nr_changed;
	peer_close(&r->peer[0]);
	UNTIL(r, r->nr_changed > changed);
	assert_false(sim_kubelet_has(r->kubelet, cpu));
	admit(r, "train", 0, 1);
	assert_true(r->refused);
	(void)peer_up(r);
	admit(r, "train", 0, 1);
	assert_false(r->refused);
}

/* Seen with kubelets up to 1.36.3 at least. */
static void the_end_of_an_old_stream_takes_a_newer_registration_with_it(void **state)
{
	struct rig *r = *state;
	unsigned changed;

	(void)peer_up(r);
	changed = r->nr_changed;
	peer_open(r, 1);
	register_as(r, "peer-1.sock", cpu);
	UNTIL(r, r->nr_changed > changed);
	changed = r->nr_changed;
	peer_close(&r->peer[0]);
	UNTIL(r, r->nr_changed > changed);
	assert_false(sim_kubelet_has(r->kubelet, cpu));
	UNTIL(r, r->peer[1].watched == 0);
}

static void a_start_wipes_the_sockets_of_plugins_and_nothing_else(void **state)
{
	struct rig *r = *state;
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	char file[PATH_BYTES];
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	sim_kubelet_free(r->kubelet);
	snprintf(at.sun_path, sizeof at.sun_path, "%s/old.sock", r->plugins);
	assert_int_equal(bind(s, (const struct sockaddr *)&at, sizeof at), 0);
	snprintf(file, sizeof file, "%s/checkpoint", r->plugins);
	int fd = open(file, O_CREAT | O_WRONLY, 0600);
	open_kubelet(r);
	assert_int_equal(access(at.sun_path, F_OK), -1);
	assert_int_equal(unlink(file), 0);
	close(s);
	close(fd);
}

static void a_kubelet_that_restarts_knows_what_it_gave(void **state)
{
	struct rig *r = *state;
	struct peer *p = peer_up(r);

	admit(r, "train", 1, 2);
	assert_int_equal(sim_kubelet_restart(r->kubelet, NULL), 0);
	assert_int_equal(access(p->path, F_OK), -1); /* its socket was wiped */
	assert_true(sim_kubelet_has(r->kubelet, gpu));
	assert_false(sim_kubelet_has(r->kubelet, cpu));
	UNTIL(r, p->watched == 0);
	peer_close(p);
	(void)peer_up(r);
	assert_on(r, "train", "main", cpu, "0 2 0 0");
	admit(r, "next", 1, 2);
	assert_on(r, "next", "main", cpu, "0 2 0 0");
	assert_string_equal(p->log, "t-1-0,t-1-1;");
	assert_int_equal(r->nr_broken, 0);
}

/* Kubelets of 1.36.3 die of it. */
static void after_a_restart_no_device_that_it_gave_may_be_missing(void **state)
{
	struct rig *r = *state;

	(void)peer_up(r);
	admit(r, "train", 1, 2);
	assert_int_equal(sim_kubelet_restart(r->kubelet, NULL), 0);
	peer_close(&r->peer[0]);
	peer_open(r, 0);
	r->peer[0].nr = PER_NODE;
	register_as(r, "peer-0.sock", cpu);
	UNTIL(r, r->nr_broken == 1);
	assert_non_null(strstr(r->broken, "of pod train has become missing"));
}

static void on_held(void *ctx, const void *data, size_t len)
{
	struct client *c = ctx;
	void *copy = arena_alloc(&c->a, len + 1);

	memcpy(copy, data, len);
	assert_int_equal(
		pod_resources_list_decode((struct blob){copy, len}, &c->a, &c->held, NULL), 0);
}

static void on_event(void *ctx, const void *data, size_t len)
{
	struct client *c = ctx;
	void *copy = arena_alloc(&c->a, len + 1);
	struct pods_event event;

	memcpy(copy, data, len);
	assert_int_equal(pods_event_decode((struct blob){copy, len}, &c->a, &event, NULL), 0);
	c->event[c->nr_events].type = event.type;
	if (event.type != PODS_SYNCED)
		assert_int_equal(
			pods_pod_decode(event.pod, &c->a, &c->event[c->nr_events].pod, NULL), 0);
	c->nr_events++;
	loop_stop(c->r->loop);
}

static void pod_resources_show_the_devices_of_running_containers(void **state)
{
	struct rig *r = *state;
	struct client c = {.r = r};
	const struct ask pod[] = {
		{.name = "fetch", .kind = CONTAINER_INIT, .nr_devices = 1, .device = {{0, 1}}},
		{.name = "watch", .kind = CONTAINER_SIDECAR},
		{.name = "main", .nr_devices = 2, .device = {{0, 1}, {1, 1}}},
	};

	(void)peer_up(r);
	admit_containers(r, "train", pod, 3);
	arena_init(&c.a, ARENA_MAX);
	(void)call(
		&c, "pod-resources/kubelet.sock", POD_RESOURCES_PATH("List"), RPC_UNARY, on_held);
	UNTIL(r, c.nr_ended);
	assert_int_equal(c.held.nr, 1);
	assert_string_equal(c.held.pod[0].name, "train");
	assert_string_equal(c.held.pod[0].ns, "ml");
	assert_int_equal(c.held.pod[0].nr, 2);
	assert_string_equal(c.held.pod[0].container[0].name, "watch");
	const struct container_held *main_held = &c.held.pod[0].container[1];
	assert_string_equal(main_held->name, "main");
	assert_int_equal(main_held->nr_devices, 2);
	assert_string_equal(main_held->device[0].id, "gpu-1-0");
	assert_int_equal(main_held->device[0].nodes.nr, 1);
	assert_int_equal(main_held->device[0].nodes.id[0], 1);
	assert_string_equal(main_held->device[1].resource, cpu);
	arena_fini(&c.a);
}

static void on_allocatable(void *ctx, const void *data, size_t len)
{
	struct client *c = ctx;
	void *copy = arena_alloc(&c->a, len + 1);

	memcpy(copy, data, len);
	assert_int_equal(pod_resources_allocatable_decode(
				 (struct blob){copy, len}, &c->a, &c->allocatable, NULL),
		0);
}

/* Healthy ones, whoever has them. */
static void pod_resources_show_the_allocatable_devices(void **state)
{
	enum { NR_GPUS = 4 };
	struct rig *r = *state;
	struct client c = {.r = r};
	unsigned nr_gpus = 0, nr_tokens = 0, changed;
	struct peer *p = peer_up(r);

	admit(r, "train", 1, 2);
	p->device[0].healthy = false;
	changed = r->nr_changed;
	device_plugin_changed(p->plugin);
	UNTIL(r, r->nr_changed > changed);
	arena_init(&c.a, ARENA_MAX);
	(void)call(&c, "pod-resources/kubelet.sock", POD_RESOURCES_PATH("GetAllocatableResources"),
		RPC_UNARY, on_allocatable);
	UNTIL(r, c.nr_ended);
	for (size_t i = 0; i < c.allocatable.nr; i++) {
		const struct held_device *d = &c.allocatable.device[i];

		assert_int_equal(d->nodes.nr, 1);
		nr_gpus += strcmp(d->resource, gpu) == 0;
		nr_tokens += strcmp(d->resource, cpu) == 0;
	}
	assert_int_equal(nr_gpus, NR_GPUS);
	assert_int_equal(nr_tokens, NR_TOKENS - 1);
	arena_fini(&c.a);
}

static void a_watcher_of_pods_gets_a_pod_before_it_runs(void **state)
{
	struct rig *r = *state;
	struct client c = {.r = r};

	arena_init(&c.a, ARENA_MAX);
	admit(r, "first", 1, 0);
	(void)call(&c, "pods-api/pods-api.sock", PODS_WATCH_PATH, RPC_STREAM, on_event);
	UNTIL(r, c.nr_events == 2);
	assert_int_equal(c.event[0].type, PODS_ADDED);
	assert_string_equal(c.event[0].pod.pod.uid, "first");
	assert_int_equal(c.event[1].type, PODS_SYNCED);
	admit(r, "second", 1, 0);
	assert_int_equal(c.nr_events, 3); /* before it is done */
	assert_int_equal(c.event[2].type, PODS_ADDED);
	assert_string_equal(c.event[2].pod.resource[0], gpu);
	assert_int_equal(c.event[2].pod.pod.container[0].device[0].count, 1);
	admit(r, "third", 9, 0);
	assert_true(r->refused);
	sim_kubelet_forget(r->kubelet, "first");
	UNTIL(r, c.nr_events == 4);
	assert_int_equal(c.event[3].type, PODS_DELETED);
	assert_string_equal(c.event[3].pod.pod.uid, "first");
	assert_int_equal(sim_kubelet_restart(r->kubelet, NULL), 0);
	UNTIL(r, c.nr_ended);
	arena_fini(&c.a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_RIG(a_device_that_is_given_out_must_stay_and_stay_healthy),
		ON_RIG(devices_that_are_not_healthy_are_not_given_out),
		ON_RIG(a_resource_without_its_plugin_is_not_available),
		ON_RIG(the_end_of_an_old_stream_takes_a_newer_registration_with_it),
		ON_RIG(a_start_wipes_the_sockets_of_plugins_and_nothing_else),
		ON_RIG(a_kubelet_that_restarts_knows_what_it_gave),
		ON_RIG(after_a_restart_no_device_that_it_gave_may_be_missing),
		ON_RIG(pod_resources_show_the_devices_of_running_containers),
		ON_RIG(pod_resources_show_the_allocatable_devices),
		ON_RIG(a_watcher_of_pods_gets_a_pod_before_it_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
