/* The kubelet's tokens: promised when it gives them out, made CPUs when the container comes. */
#include "engine_tokens_cases.h"

static void each_node_gives_as_many_cpus_as_the_container_has_tokens_of_it(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char text[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(allocate(n, "2=0-2;5=0", text, NULL), 0);
	assert_string_equal(text, "v1:5000:2=0-2;5=0");
	struct request web = ask_with("web", 4, text);
	struct decision d = create(n, &web);
	assert_true(d.admit && d.exclusive);
	assert_int_equal(d.lease, 5000);
	assert_int_equal(cpuset_count(&d.cpus), 4);
	assert_int_equal(count_on(n, &d.cpus, 2), 3);
	assert_int_equal(count_on(n, &d.cpus, 5), 1);
	assert_true(cpuset_has(&d.cpus, 8) && cpuset_has(&d.cpus, 40)); /* a whole core first */
	node_free(n);
}

static void leased_cpus_go_to_no_other_container(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	char text[LEASE_TEXT_MAX];
	struct request eight = ask("eight", QOS_GUARANTEED, 8000, 0),
		       two = ask("two", QOS_GUARANTEED, 2000, 0);

	(void)state;
	assert_int_equal(allocate(n, "0=0-6", text, NULL), 0);
	struct decision d = create(n, &eight);
	assert_true(d.admit);
	assert_int_equal(count_on(n, &d.cpus, 1), 8); /* node 0 has one left */
	for (unsigned node = 2; node < NODES; node++) {
		char other[LEASE_TEXT_MAX], tokens[16];

		(void)snprintf(tokens, sizeof tokens, "%u=0-6", node);
		assert_int_equal(allocate(n, tokens, other, NULL), 0);
	}
	d = create(n, &two);
	assert_false(d.admit); /* one CPU is left on each node */
	struct request seven = ask_with("seven", 7, text);
	d = create(n, &seven);
	assert_true(d.admit);
	assert_int_equal(count_on(n, &d.cpus, 0), 7);
	node_free(n);
}

static void a_container_without_tokens_makes_as_many_tokens_unhealthy(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	struct request web = ask("web", QOS_GUARANTEED, 3000, 0);

	(void)state;
	assert_int_equal(healthy_on(n, 0), PER_NODE);
	struct decision d = create(n, &web);
	assert_int_equal(count_on(n, &d.cpus, 0), 3);
	assert_int_equal(healthy_on(n, 0), PER_NODE - 3);
	assert_int_equal(healthy_on(n, 1), PER_NODE);
	stop(n, "web");
	assert_int_equal(healthy_on(n, 0), PER_NODE);
	node_free(n);
}

static void tokens_that_were_given_out_do_not_count_twice(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	char text[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(allocate(n, "0=0-2", text, NULL), 0);
	assert_int_equal(healthy_on(n, 0), PER_NODE - 3);
	struct request web = ask_with("web", 3, text);
	assert_true(create(n, &web).admit);
	assert_int_equal(healthy_on(n, 0), PER_NODE - 3);
	stop(n, "web"); /* it may be started again */
	assert_int_equal(healthy_on(n, 0), PER_NODE - 3);
	node_free(n);
}

static void a_container_whose_tokens_do_not_match_is_refused_with_a_reason(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char text[LEASE_TEXT_MAX], others[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(allocate(n, "0=0-2", text, NULL), 0);
	assert_int_equal(allocate(n, "1=0", others, NULL), 0);
	struct request holder = ask_with("holder", 1, others);

	holder.pod.ns = "infra";
	assert_true(create(n, &holder).admit);
	const struct {
		enum qos qos;
		unsigned milli;
		const char *annotation, *says;
	} table[] = {
		{QOS_GUARANTEED, 4000, text,
			"gave the container 3 of numafit.io/cpu, and it asks for 4"},
		{QOS_GUARANTEED, 2500, text, "asks for 0 whole CPUs"},
		{QOS_BURSTABLE, 3000, text, "asks for 0 whole CPUs in a Guaranteed pod"},
		{QOS_GUARANTEED, 1000, others, "a pod of another namespace runs on CPU token node1-0000"},
		{QOS_GUARANTEED, 1000, "v1:5000:3=0", "node3-0000 is not leased"},
		{QOS_GUARANTEED, 3000, "v1:4999:0=0-2", "of lease 5000 now"},
		{QOS_GUARANTEED, 3000, "node0-0001", "does not start with v1:"},
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct request r = ask("thief", table[i].qos, table[i].milli, 0);

		r.allocated = table[i].annotation;
		struct decision d = create(n, &r);
		assert_false(d.admit);
		assert_string_equal(d.reason, "UnexpectedAdmissionError");
		if (!strstr(d.message, table[i].says) || strstr(d.message, "infra") ||
			strstr(d.message, "holder"))
			fail_msg("%s", d.message);
	}
	node_free(n);
}

static void without_the_device_plugin_the_token_annotation_is_ignored(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask_with("web", 2, "v1:1:0=0");

	(void)state;
	n->s.device_plugin = false;
	struct decision d = create(n, &web);
	assert_true(d.admit);
	assert_int_equal(d.lease, 0);
	node_free(n);
}

static void cpus_that_were_taken_a_moment_ago_are_not_given_out(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	struct request web = ask("web", QOS_GUARANTEED, 6000, 0);
	char text[LEASE_TEXT_MAX];
	struct err e;

	(void)state;
	assert_true(create(n, &web).admit); /* the kubelet has not heard of it */
	assert_int_equal(allocate(n, "0=0-3", text, &e), -EBUSY);
	assert_non_null(
		strstr(e.text, "NUMA node 0 has 2 CPUs left, 4 of its tokens are asked for"));
	assert_int_equal(allocate(n, "0=0-1", text, NULL), 0);
	assert_int_equal(allocate(n, "0=0-1", text, NULL), 0); /* again: no reason to refuse */
	assert_int_equal(allocate(n, "0=1-2", text, NULL), -EBUSY);
	node_free(n);
}

static void the_shared_pool_keeps_what_it_needs(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT);
	char text[LEASE_TEXT_MAX];
	unsigned sum = 0;
	struct err e;

	(void)state;
	n->s.shared_pool_minimum = 10;
	for (unsigned node = 0; node < NODES; node++)
		sum += healthy_on(n, node);
	assert_int_equal(sum, 54);
	assert_int_equal(
		allocate(n, "0=0-7;1=0-7;2=0-7;3=0-7;4=0-7;5=0-7;6=0-6", text, &e), -EBUSY);
	assert_non_null(strstr(e.text, "sharedPoolMinimum"));
	assert_int_equal(allocate(n, "0=0-7;1=0-7;2=0-7;3=0-7;4=0-7;5=0-7;6=0-5", text, NULL), 0);
	for (unsigned node = 0; node < NODES; node++)
		assert_int_equal(healthy_on(n, node), 0);
	struct request one = ask("one", QOS_GUARANTEED, 1000, 0);
	assert_false(create(n, &one).admit);
	struct request web = ask_with("web", 54, text);
	assert_true(create(n, &web).admit);
	node_free(n);
}

static void a_rejected_pod_gives_its_tokens_back(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char text[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(allocate(n, "0=0-3", text, NULL), 0); /* another manager refuses it then */
	assert_int_equal(see(n, ""), 0);
	n->now_ms += 3 * MINUTE_MS;
	assert_int_equal(see(n, ""), 4);
	assert_int_equal(healthy_on(n, 0), PER_NODE);
	struct request late = ask_with("late", 4, text);
	assert_false(create(n, &late).admit);
	node_free(n);
}

static void a_container_that_is_started_again_has_the_same_tokens(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request other = ask("other", QOS_GUARANTEED, 6000, 0);
	char text[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(allocate(n, "0=0-3", text, NULL), 0);
	struct request web = ask_with("web", 4, text);
	struct decision first = create(n, &web);
	assert_int_equal(see(n, "0=0-3"), 0);
	web.container_id = "web-again"; /* no event says that the first one is dead */
	struct decision second = create(n, &web);
	assert_true(second.admit && cpuset_equal(&first.cpus, &second.cpus));
	stop(n, "web-again");
	n->now_ms += 100 * MINUTE_MS;
	assert_int_equal(see(n, "0=0-3"), 0);
	assert_true(create(n, &other).admit);
	web.container_id = "web-once-more";
	struct decision third = create(n, &web);
	assert_true(third.admit);
	assert_int_equal(count_on(n, &third.cpus, 0), 4);
	node_free(n);
}

static void later_containers_take_an_init_containers_tokens(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char all[LEASE_TEXT_MAX], some[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(allocate(n, "3=0-3", all, NULL), 0);
	assert_int_equal(allocate(n, "3=1-2", some, NULL), 0);
	struct request init = ask_with("init", 4, all), app = ask_with("app", 2, some);
	init.pod = app.pod = ask("pod", QOS_GUARANTEED, 0, 0).pod;
	init.ask.name = "init";
	assert_true(create(n, &init).admit);
	assert_false(create(n, &app).admit); /* it runs */
	stop(n, "init");
	struct decision d = create(n, &app);
	assert_true(d.admit);
	assert_int_equal(count_on(n, &d.cpus, 3), 2);
	assert_int_equal(healthy_on(n, 3), 4);
	pod_gone(n, "pod");
	assert_int_equal(see(n, ""), 0);
	n->now_ms += 3 * MINUTE_MS;
	assert_int_equal(see(n, ""), 4);
	node_free(n);
}

static void tokens_are_not_given_out_when_the_record_cannot_be_written(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char text[LEASE_TEXT_MAX];
	struct err e;

	(void)state;
	n->failing = true;
	assert_int_equal(allocate(n, "0=0-1", text, &e), -28);
	assert_string_equal(e.text, "journal: no space left on device");
	n->failing = false;
	assert_true(leases_empty(ledger_view(engine_ledger(n->g))->leases));
	node_free(n);
}

static void tokens_do_not_grow_with_a_resize(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char text[LEASE_TEXT_MAX];
	struct update_list ups = {0};
	struct decision d;

	(void)state;
	assert_int_equal(allocate(n, "0=0-1", text, NULL), 0);
	struct request web = ask_with("web", 2, text);
	assert_true(create(n, &web).admit);
	web.ask.cpu_milli = 3000;
	assert_true(engine_update(n->g, n->now_ms, &web, &d, &ups));
	assert_false(d.admit);
	assert_non_null(strstr(d.message, "numafit.io/cpu"));
	web.ask.cpu_milli = 2000;
	web.ask.cpu_limit_milli = 2000;
	assert_true(engine_update(n->g, n->now_ms, &web, &d, &ups));
	assert_true(d.admit);
	assert_int_equal(d.lease, 5000);
	vec_fini(&ups);
	node_free(n);
}

/* A pod of one container as the kubelet shows it. */
static struct decision run_pod(struct node *n, enum qos qos, unsigned milli, uint64_t tokens)
{
	const struct ask app = {.name = "app", .cpu_milli = milli, .tokens = tokens};
	const struct pod pod = {.sandbox_id = "p",
		.uid = "p",
		.ns = "d",
		.name = "p",
		.qos = qos,
		.nr = 1,
		.container = &app};
	struct decision d;

	engine_run_pod(n->g, n->now_ms, &pod, &d);
	sound(n);
	return d;
}

static void a_pod_must_ask_for_as_many_tokens_as_cpus(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);

	(void)state;
	assert_true(run_pod(n, QOS_GUARANTEED, 2000, 2).admit);
	assert_int_equal(n->records[RECORD_HOLD], 0); /* its tokens are held, that is enough */
	struct decision d = run_pod(n, QOS_GUARANTEED, 3000, 2);
	assert_false(d.admit);
	assert_string_equal(d.message,
		"container app of a Guaranteed pod asks for 2 of numafit.io/cpu and 3 CPUs of its "
		"own: the two must be the same, in a Guaranteed pod");
	assert_false(run_pod(n, QOS_BURSTABLE, 2000, 2).admit);
	assert_true(run_pod(n, QOS_GUARANTEED, 2000, 0).admit);
	assert_int_equal(n->records[RECORD_HOLD], 1);
	node_free(n);
}

static void memory_is_on_the_nodes_of_the_tokens_and_on_no_more_than_needed(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char text[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(allocate(n, "2=0-7;3=0-3", text, NULL), 0); /* two nodes at least */
	struct request web = ask_with("web", 12, text);
	web.ask.nr_memory = 1;
	web.ask.memory[0] = (struct memory_ask){0, GIB(1)}; /* one */
	struct decision d = create(n, &web);
	assert_true(d.admit && d.preferred);
	assert_int_equal(d.mems.bits, 1 << 2);
	assert_int_equal(d.nodes.bits, 1 << 2 | 1 << 3);
	stop(n, "web");
	web.ask.memory[0].bytes = GIB(60);
	d = create(n, &web);
	assert_true(d.admit);
	assert_int_equal(d.mems.bits, 1 << 2 | 1 << 3);
	stop(n, "web");
	web.ask.memory[0].bytes = GIB(120); /* more than is beside them: another policy would do */
	d = create(n, &web);
	assert_false(d.admit);
	assert_string_equal(d.reason, "TopologyAffinityError");
	n->s.topology_policy = POLICY_BEST_EFFORT;
	d = create(n, &web);
	assert_true(d.admit && !d.preferred);
	assert_int_equal(count_on(n, &d.cpus, 2), 8);
	assert_true(nodeset_within((struct nodeset){1 << 2 | 1 << 3}, d.mems));
	node_free(n);
}

static void memory_of_a_group_does_not_keep_tokens_out(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT);
	struct request wide = ask("wide", QOS_GUARANTEED, 12000, GIB(90)); /* of nodes 0 and 1 */
	char text[LEASE_TEXT_MAX];

	(void)state;
	struct decision d = create(n, &wide);
	assert_true(d.admit);
	assert_int_equal(d.mems.bits, 3);
	assert_int_equal(allocate(n, "1=0-1", text, NULL), 0);
	struct request web = ask_with("web", 2, text);
	web.ask.nr_memory = 1;
	web.ask.memory[0] = (struct memory_ask){0, GIB(1)};
	d = create(n, &web);
	assert_true(d.admit && !d.preferred);
	assert_int_equal(d.mems.bits, 3); /* the group has node 1, too */
	assert_int_equal(count_on(n, &d.cpus, 1), 2);
	node_free(n);
}

static void cpus_are_on_the_nodes_of_the_containers_devices(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	const struct device gpus[] = {
		{"gpu0", true, true, {1 << 5}, true}, {"gpu1", true, true, {1 << 5}, true}};
	const struct device nic[] = {{"nic", true, true, {1 << 6}, true}};
	const struct device_resource has[] = {
		{"nvidia.com/gpu", 2, gpus}, {"vendor.com/nic", 1, nic}};
	struct request web = ask("web", QOS_GUARANTEED, 2000, GIB(1));

	(void)state;
	web.pod.attached = has;
	web.pod.nr_attached = 1;
	struct decision d = create(n, &web);
	assert_true(d.admit);
	assert_int_equal(count_on(n, &d.cpus, 5), 2);
	assert_int_equal(d.mems.bits, 1 << 5);
	web.container_id = web.pod.uid = "both";
	web.pod.nr_attached = 2; /* nothing can be beside both */
	d = create(n, &web);
	assert_false(d.admit);
	assert_string_equal(d.reason, "TopologyAffinityError");
	node_free(n);
}

static void a_container_that_waits_to_be_started_again_keeps_its_tokens(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char text[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(allocate(n, "0=0-3", text, NULL), 0);
	struct request web = ask_with("web", 4, text);
	assert_true(create(n, &web).admit);
	assert_int_equal(see(n, "0=0-3"), 0);
	stop(n, "web");
	n->now_ms += 4 * MINUTE_MS;      /* CrashLoopBackOff */
	assert_int_equal(see(n, ""), 0); /* the kubelet has started anew, and has no pods yet */
	web.container_id = "again";
	assert_true(create(n, &web).admit);
	node_free(n);
}

static void tokens_of_half_cores_are_not_given_out(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT);
	char text[LEASE_TEXT_MAX];

	(void)state;
	n->s.cpu_options.full_pcpus_only = true;
	assert_int_equal(allocate(n, "0=0;1=0", text, NULL), -EINVAL);
	assert_int_equal(allocate(n, "0=0-1", text, NULL), 0);
	assert_int_equal(see(n, "2=0;3=0"), 0); /* the kubelet gave them before it was asked for */
	struct request web = ask_with("web", 2, "v1:1:2=0;3=0");
	struct decision d = create(n, &web);
	assert_false(d.admit);
	assert_string_equal(d.reason, "SMTAlignmentError");
	node_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_node_gives_as_many_cpus_as_the_container_has_tokens_of_it),
		cmocka_unit_test(leased_cpus_go_to_no_other_container),
		cmocka_unit_test(a_container_without_tokens_makes_as_many_tokens_unhealthy),
		cmocka_unit_test(tokens_that_were_given_out_do_not_count_twice),
		cmocka_unit_test(a_container_whose_tokens_do_not_match_is_refused_with_a_reason),
		cmocka_unit_test(without_the_device_plugin_the_token_annotation_is_ignored),
		cmocka_unit_test(cpus_that_were_taken_a_moment_ago_are_not_given_out),
		cmocka_unit_test(the_shared_pool_keeps_what_it_needs),
		cmocka_unit_test(a_rejected_pod_gives_its_tokens_back),
		cmocka_unit_test(a_container_that_is_started_again_has_the_same_tokens),
		cmocka_unit_test(later_containers_take_an_init_containers_tokens),
		cmocka_unit_test(tokens_are_not_given_out_when_the_record_cannot_be_written),
		cmocka_unit_test(tokens_do_not_grow_with_a_resize),
		cmocka_unit_test(a_pod_must_ask_for_as_many_tokens_as_cpus),
		cmocka_unit_test(memory_is_on_the_nodes_of_the_tokens_and_on_no_more_than_needed),
		cmocka_unit_test(memory_of_a_group_does_not_keep_tokens_out),
		cmocka_unit_test(cpus_are_on_the_nodes_of_the_containers_devices),
		cmocka_unit_test(a_container_that_waits_to_be_started_again_keeps_its_tokens),
		cmocka_unit_test(tokens_of_half_cores_are_not_given_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
