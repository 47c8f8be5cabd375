/* The simulated kubelet against a device plugin of ours, over real sockets, with made-up devices of
 * somebody else's beside it. */
#include "sim_kubelet_rig.h"

static void on_prepared(void *ctx)
{
	struct rig *r = ctx;

	r->nr_done++;
	loop_stop(r->loop);
}

/* Tests */

static void a_plugin_that_registers_is_known_once_its_devices_are(void **state)
{
	struct rig *r = *state;

	assert_true(sim_kubelet_has(r->kubelet, gpu));
	assert_false(sim_kubelet_has(r->kubelet, cpu));
	struct peer *p = peer_up(r);
	assert_true(sim_kubelet_has(r->kubelet, cpu));
	UNTIL(r, p->watched == 1);
}

static void a_malformed_registration_is_refused(void **state)
{
	struct rig *r = *state;

	register_as(r, "nobody.sock", "no-domain");
	assert_string_equal(r->reply, "2 the ResourceName \"no-domain\" is invalid");
	register_as(r, "nobody.sock", cpu);
	assert_non_null(strstr(r->reply, "2 "));
	assert_non_null(strstr(r->reply, "nobody.sock"));
	assert_false(sim_kubelet_has(r->kubelet, cpu));
}

static void tokens_are_taken_on_the_nodes_of_the_gpus(void **state)
{
	struct rig *r = *state;
	struct peer *p = peer_up(r);
	struct key_value note[2];

	admit(r, "train", 2, 4);
	assert_false(r->refused);
	assert_on(r, "train", "main", gpu, "0 2 0 0");
	assert_on(r, "train", "main", cpu, "0 4 0 0");
	assert_string_equal(p->log, "t-1-0,t-1-1,t-1-2,t-1-3;");
	assert_int_equal(p->nr_preferred, 0); /* the node has no more */
	assert_int_equal(sim_kubelet_annotations(r->kubelet, "train", "main", note, 2), 1);
	assert_string_equal(note[0].key, "numafit.io/allocated");
	assert_string_equal(note[0].value, "lease-1");
	assert_true(sim_kubelet_knows(r->kubelet, "train"));
	admit(r, "next", 1, 1);
	assert_on(r, "next", "main", cpu, "0 0 0 1");
}

static void the_plugin_chooses_where_there_is_a_choice(void **state)
{
	struct rig *r = *state;
	struct peer *p = peer_up(r);

	admit(r, "train", 0, 2);
	assert_int_equal(p->nr_preferred, 1);
	assert_string_equal(p->log, "t-0-2,t-0-3;");
	assert_on(r, "train", "main", cpu, "2 0 0 0");
}

static void a_wrong_choice_of_the_plugin_is_a_fault(void **state)
{
	struct rig *r = *state;

	peer_up(r)->prefers_too_few = true;
	admit(r, "train", 0, 2);
	assert_true(r->refused);
	assert_string_equal(r->broken, "numafit.io/cpu: GetPreferredAllocation: 1 devices for 2");
}

static void a_pod_that_cannot_be_aligned_is_refused(void **state)
{
	struct rig *r = *state;
	static const char affinity[] = "TopologyAffinityError: Resources cannot be allocated with "
				       "Topology locality";

	(void)peer_up(r);
	admit(r, "three", 3, 3); /* GPUs of two nodes, and CPUs of one */
	assert_string_equal(r->refusal, affinity);
	assert_false(sim_kubelet_knows(r->kubelet, "three"));
	admit(r, "many", 5, 0);
	assert_string_equal(r->refusal, affinity);
	r->trace.kubelet.topology_policy = POLICY_NONE;
	admit(r, "many", 5, 0);
	assert_string_equal(r->refusal,
		"UnexpectedAdmissionError: Allocate failed due to requested number of devices "
		"unavailable for gpu.example/gpu. Requested: 5, Available: 4, which is unexpected");
	admit(r, "three", 3, 3);
	assert_string_equal(r->refusal, "");
	assert_int_equal(r->nr_broken, 0);
}

static void a_refusal_by_the_plugin_ends_the_pod(void **state)
{
	struct rig *r = *state;

	peer_up(r)->refuses = true;
	admit(r, "train", 1, 1);
	assert_string_equal(r->refusal,
		"UnexpectedAdmissionError: Allocate failed due to rpc error: code = Unknown desc = "
		"not today, which is unexpected");
	admit(r, "other", 2, 0);
	assert_on(r, "other", "main", gpu, "0 2 0 0"); /* its GPU is free again */
}

static void devices_of_an_init_container_are_used_again(void **state)
{
	struct rig *r = *state;
	struct peer *p = peer_up(r);
	const struct ask c[] = {
		{.name = "fetch", .kind = CONTAINER_INIT, .nr_devices = 1, .device = {{1, 3}}},
		{.name = "watch", .kind = CONTAINER_SIDECAR, .nr_devices = 1, .device = {{1, 1}}},
		{.name = "main", .nr_devices = 1, .device = {{1, 3}}},
	};

	admit_containers(r, "train", c, 3);
	assert_string_equal(r->refusal, "");
	/* the sidecar takes one of the three for good, two are the app's, and one more */
	assert_string_equal(p->log, "t-0-1,t-0-2,t-0-3;t-0-1;t-0-0,t-0-2,t-0-3;");
	assert_on(r, "train", "fetch", cpu, "3 0 0 0");
	assert_on(r, "train", "main", cpu, "3 0 0 0");
	admit(r, "other", 0, 4);
	assert_on(r, "other", "main", cpu, "0 4 0 0");
}

static void the_plugin_cannot_leave_out_devices_that_a_container_must_have(void **state)
{
	struct rig *r = *state;
	const struct ask c[] = {
		{.name = "fetch", .kind = CONTAINER_INIT, .nr_devices = 1, .device = {{1, 2}}},
		{.name = "main", .nr_devices = 1, .device = {{1, 3}}},
	};

	peer_up(r)->prefers_first_again = true;
	admit_containers(r, "train", c, 2);
	assert_string_equal(r->peer[0].log, "t-0-2,t-0-3;");
	assert_string_equal(r->broken, "numafit.io/cpu: GetPreferredAllocation: of those it must "
				       "have, 1 of 2");
	assert_true(r->refused);
}

static void in_pod_scope_the_containers_are_on_the_same_nodes(void **state)
{
	struct rig *r = *state;
	const struct ask c[] = {
		{.name = "a", .nr_devices = 1, .device = {{1, 3}}},
		{.name = "b", .nr_devices = 2, .device = {{0, 1}, {1, 1}}},
	};

	(void)peer_up(r);
	admit_containers(r, "apart", c, 2);
	assert_on(r, "apart", "a", cpu, "3 0 0 0");
	assert_on(r, "apart", "b", cpu, "0 1 0 0");
	sim_kubelet_forget(r->kubelet, "apart");
	r->trace.kubelet.topology_scope = SCOPE_POD;
	admit_containers(r, "together", c, 2);
	assert_on(r, "together", "a", cpu, "0 3 0 0");
	assert_on(r, "together", "b", cpu, "0 1 0 0");
}

static void the_devices_of_a_removed_pod_are_free(void **state)
{
	struct rig *r = *state;

	admit(r, "one", 4, 0);
	assert_false(r->refused);
	admit(r, "two", 1, 0);
	assert_true(r->refused);
	sim_kubelet_forget(r->kubelet, "one");
	admit(r, "two", 1, 0);
	assert_false(r->refused);
	sim_kubelet_forget(r->kubelet, "nobody");
}

static void a_container_waits_until_its_plugin_is_ready(void **state)
{
	struct rig *r = *state;
	struct peer *p = peer_up(r);

	admit(r, "train", 1, 1);
	p->not_yet = 2;
	unsigned done = r->nr_done;
	sim_kubelet_prepare(r->kubelet, "train", "main", on_prepared, r);
	UNTIL(r, r->nr_done > done);
	assert_int_equal(p->nr_started, 3);
	admit(r, "gpus", 1, 0);
	sim_kubelet_prepare(r->kubelet, "gpus", "main", on_prepared, r);
	assert_int_equal(r->nr_done, done + 3); /* at once: nobody wants to know */
	assert_int_equal(p->nr_started, 3);
}

static void a_device_on_a_node_that_the_machine_lacks_is_reported(void **state)
{
	struct rig *r = *state;
	const struct sim_kubelet_options o = {r->root, &r->topo, &r->trace, 1};
	const struct sim_kubelet_events ev = {r, on_changed, on_broken};
	struct err e;

	sim_kubelet_free(r->kubelet);
	r->trace.devices.at[1].node_id = 7;
	r->kubelet = sim_kubelet_new(r->loop, r->pump, &o, &ev, &e);
	assert_null(r->kubelet);
	assert_string_equal(e.text, "gpu.example/gpu: machine test has no NUMA node 7");
	r->trace.devices.at[1].node_id = 3;
	open_kubelet(r); /* its directories are there to be removed */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_RIG(a_plugin_that_registers_is_known_once_its_devices_are),
		ON_RIG(a_malformed_registration_is_refused),
		ON_RIG(tokens_are_taken_on_the_nodes_of_the_gpus),
		ON_RIG(the_plugin_chooses_where_there_is_a_choice),
		ON_RIG(a_wrong_choice_of_the_plugin_is_a_fault),
		ON_RIG(a_pod_that_cannot_be_aligned_is_refused),
		ON_RIG(a_refusal_by_the_plugin_ends_the_pod),
		ON_RIG(devices_of_an_init_container_are_used_again),
		ON_RIG(the_plugin_cannot_leave_out_devices_that_a_container_must_have),
		ON_RIG(in_pod_scope_the_containers_are_on_the_same_nodes),
		ON_RIG(the_devices_of_a_removed_pod_are_free),
		ON_RIG(a_container_waits_until_its_plugin_is_ready),
		ON_RIG(a_device_on_a_node_that_the_machine_lacks_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
