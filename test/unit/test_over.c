/* A pod that the kubelet lists no more, and of which no container runs, gives back what is held for
 * it, though no runtime has reported that its sandbox is gone. */
#include "pods_rig.h"

#include <numafitd/daemon.h>
#include <numafitd/over.h>
#include <numafitd/services_state.h>

#include "core_machine.h"

static const struct ask parts[] = {
	{.name = "init", .kind = CONTAINER_INIT, .cpu_milli = 2000},
	{.name = "main", .cpu_milli = 4000, .place = 1},
};

/* A daemon beside the kubelet of the rig. */
struct node {
	struct world *kubelet;
	struct daemon d;
	struct services services;
};

static int record_nothing(void *ctx, const struct record *r, struct err *e)
{
	(void)ctx, (void)r, (void)e;
	return 0;
}

static struct node *watcher; /* the rig's handlers get the rig */

static void on_gone(void *ctx)
{
	struct world *w = ctx;

	over_release_pods(&watcher->d);
	loop_stop(w->k.loop);
}

static struct pod team(void)
{
	return (struct pod){.sandbox_id = "sandbox", .uid = "team", .ns = "ml", .name = "team"};
}

static struct request container(unsigned i)
{
	struct request req = ask(parts[i].name, QOS_GUARANTEED, (unsigned)parts[i].cpu_milli, 0);

	req.pod = team();
	req.ask.name = parts[i].name;
	return req;
}

static void start(struct node *n, unsigned i)
{
	struct request req = container(i);
	struct update_list ups = {0};
	struct decision d;

	engine_create(n->d.engine, 0, &req, &d, &ups);
	assert_true(d.admit);
	engine_live(n->d.engine, 0, &req, NULL);
	vec_fini(&ups);
}

static void stop(struct node *n, unsigned i)
{
	struct update_list ups = {0};

	engine_release(n->d.engine, 0, "stop", parts[i].name, &ups);
	vec_fini(&ups);
}

/* The pod was decided as a whole, and its last container runs. The kubelet lists it. */
static void node_init(struct node *n, struct world *w)
{
	static const struct engine_hooks hooks = {.record = record_nothing};
	struct topo *t = machine_of_eight();
	struct pod pod = team();
	struct decision d;

	*n = (struct node){.kubelet = w, .d.topo = *t};
	free(t);
	settings_init(&n->d.settings);
	n->d.engine = engine_new(&n->d.topo, &n->d.settings, &hooks);
	n->d.services = &n->services;
	watcher = n;
	send_pod(w, PODS_ADDED, "team", 4);
	send_synced(w);
	kubelet_start(&w->k);
	begin(w);
	UNTIL(&w->k, pods_synced(w->p));
	n->services.pods = w->p;
	pod.nr = sizeof parts / sizeof *parts;
	pod.container = parts;
	engine_run_pod(n->d.engine, 0, &pod, &d);
	assert_true(d.admit);
	start(n, 0);
	stop(n, 0);
	start(n, 1);
	w->handler.gone = on_gone;
}

static unsigned held(const struct node *n)
{
	return cpuset_count(&ledger_view(engine_ledger(n->d.engine))->held);
}

static void a_pod_that_ended_before_the_kubelet_dropped_it_is_over_then(void **state)
{
	struct world *w = *state;
	struct node n;

	node_init(&n, w);
	assert_int_equal(held(&n), 4);
	stop(&n, 1);
	over_release_pods(&n.d);
	assert_int_equal(held(&n), 4); /* it is listed: the container may come again */
	send_pod(w, PODS_DELETED, "team", 0);
	UNTIL(&w->k, held(&n) == 0);
	assert_int_equal(ledger_count(engine_ledger(n.d.engine)), 0);
	engine_free(n.d.engine);
}

static void a_pod_that_the_kubelet_dropped_first_is_over_with_its_last_container(void **state)
{
	struct world *w = *state;
	const struct request last = container(1);
	struct node n;

	node_init(&n, w);
	send_pod(w, PODS_DELETED, "team", 0);
	UNTIL(&w->k, !pods_find(w->p, "team"));
	over_release_pod(&n.d, &last.pod);
	assert_int_equal(held(&n), 4); /* it runs */
	stop(&n, 1);
	over_release_pod(&n.d, &last.pod);
	assert_int_equal(held(&n), 0);
	engine_free(n.d.engine);
}

static void as_long_as_nobody_lists_all_pods_none_is_over(void **state)
{
	struct world *w = *state;
	const struct request last = container(1);
	struct node n;

	node_init(&n, w);
	n.services.pods = NULL;
	stop(&n, 1);
	over_release_pod(&n.d, &last.pod);
	over_release_pods(&n.d);
	assert_int_equal(held(&n), 4);
	engine_free(n.d.engine);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_pod_that_ended_before_the_kubelet_dropped_it_is_over_then),
		T(a_pod_that_the_kubelet_dropped_first_is_over_with_its_last_container),
		T(as_long_as_nobody_lists_all_pods_none_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
