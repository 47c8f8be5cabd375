#include <codec/status_json.h>

#include <errno.h>
#include <numafit/mem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { NR_NODES = 2, CPUS_PER_NODE = 4, MANY = 2000, ARENA_BYTES = 64 << 20 };
static const uint64_t memory_bytes = UINT64_C(16) << 30, page_bytes = 2 << 20, huge_bytes = 1 << 30;

/* Two nodes, 0 and 8, with four CPUs, 16 GiB and 1 GiB of it in huge pages each. */
static struct topo machine;
static struct settings settings;

static int build(void **state)
{
	(void)state;
	topo_init(&machine, "two");
	for (unsigned n = 0; n < NR_NODES; n++)
		assert_int_equal(topo_add_node(&machine, n * 8, NULL), n);
	for (unsigned n = 0; n < NR_NODES; n++) {
		for (unsigned i = 0; i < CPUS_PER_NODE; i++) {
			unsigned cpu = n * CPUS_PER_NODE + i;

			assert_int_equal(topo_add_cpu(&machine, cpu, n, cpu, n, n, NULL), 0);
		}
		assert_int_equal(topo_set_memory(&machine, n, 0, memory_bytes, NULL), 0);
		assert_int_equal(topo_set_memory(&machine, n, page_bytes, huge_bytes, NULL), 0);
	}
	settings_init(&settings);
	cpuset_add(&settings.reserved_cpus, 0);
	return topo_seal(&machine, NULL);
}

static const struct request own = {
	.container_id = "c1",
	.ask.name = "web",
	.pod = {.sandbox_id = "s1",
		.uid = "u1",
		.ns = "default",
		.name = "p\"1",
		.qos = QOS_GUARANTEED},
	.ask.cpu_milli = 2000,
	.ask.nr_memory = 2,
	.ask.memory = {{0, 1 << 30}, {2 << 20, 8 << 20}},
	.cpus = "",
	.mems = "",
};
static const struct decision own_cpus = {
	.admit = true,
	.policy = POLICY_RESTRICTED,
	.exclusive = true,
	.cpus = {{0x30}},
	.mems = {2},
	.has_affinity = true,
	.nodes = {2},
	.preferred = true,
	.nr_blocks = 1,
	.blocks = {{0, {2}, 1 << 30}},
};

static void hold_own(struct ledger *l)
{
	struct cpuset pool = ledger_pool_without(l, &own_cpus.cpus);

	assert_int_equal(ledger_set_pool(l, &pool, NULL), 0);
	ledger_commit(l, &own, &own_cpus);
}

static void hold_shared(struct ledger *l, const char *id)
{
	struct request req = {
		.container_id = id,
		.ask.name = "helper",
		.pod = {.sandbox_id = "s2",
			.uid = "u2",
			.ns = "kube-system",
			.name = "p2",
			.qos = QOS_BURSTABLE},
		.cpus = "",
		.mems = "",
	};
	struct decision d = {
		.admit = true, .source = SOURCE_ADOPTED, .cpus = ledger_view(l)->pool, .mems = {3}};

	ledger_commit(l, &req, &d);
}

static const struct status_kubelet kubelet = {"up", 62, 4, 8, 3, "up", "waiting", 7};
static const struct status_config config = {
	"/etc/numafit/numafitd.yaml", "line 1: no", NULL, "5891b5b522d5", 90000, 3, 1};
static const struct status_claims claims = {"up", 4, 24, 1, {3, 2}, 5, 6000};
static const struct status_dra dra = {"up", 7, true, 8, 9, 10, 11, 12};
static const struct status_apiserver apiserver = {"/etc/kube: No such file or directory", 5};
static const struct status_pool shared_pool = {.enforced = "cgroup",
	.problem = "/sys/fs/cgroup/x: Read-only file system",
	.cgroups = 2,
	.writes = 17,
	.rewritten = 3,
	.idle = 4,
	.nr_confined = 1,
	.confined = {{CONFINED_BY_AFFINITY, 5, {{0xc}}, "default/web/main"}}};
static const struct status_quota cfs_quota = {
	"lift", "/sys/fs/cgroup: Read-only file system", NULL, 5, 6};
static const struct status_quiet quiet = {.irq_cpus = {{0xc}},
	.moved = 7,
	.unmovable = 2,
	.irqbalance = true,
	.frequencies_not = "/sys/devices/system/cpu: Read-only file system"};
static const struct moves moves = {.found = true,
	.state = MOVES_UNDER_WAY,
	.pod = "default/web",
	.bytes = 1 << 30,
	.cpus = 4,
	.nr = 1,
	.at = {{.ns = "default",
		.pod = "db",
		.container = "main",
		.id = "c9",
		.bytes = 1 << 30,
		.from_nodes = "1",
		.to_nodes = "0",
		.to_cpus = {{0xc}},
		.state = MOVE_UNDER_WAY}}};
static const struct status_info info = {"0.1.0", "ready", "containerd v2.1", 1234, 77,
	"/run/numafit/journal: No space left on device",
	"/run can be written by its group (mode 0775)", "kubelet", &kubelet, &config, &apiserver,
	&claims, &dra, &shared_pool, &cfs_quota, &quiet, &moves,
	{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, UINT64_MAX}, {{0x300}}};

static char *document_of(const struct ledger *l)
{
	struct snapshot s;

	snapshot_take(&s, l, &settings);
	return status_json_format(&info, &settings, &s, l);
}

static void the_document_agrees_with_ledger_and_snapshot(void **state)
{
	struct ledger *l = ledger_new(&machine, &settings);
	struct status st;
	struct arena a;

	(void)state;
	hold_own(l);
	hold_shared(l, "c2");
	auto_free char *document = document_of(l);
	assert_non_null(document);
	arena_init(&a, ARENA_BYTES);
	assert_int_equal(status_json_parse(document, strlen(document), &a, &st, NULL), 0);

	assert_string_equal(st.info.version, info.version);
	assert_string_equal(st.info.connection, info.connection);
	assert_string_equal(st.info.runtime, info.runtime);
	assert_int_equal(st.info.uptime_ms, info.uptime_ms);
	assert_int_equal(st.info.generation, info.generation);
	assert_string_equal(st.info.journal, info.journal);
	assert_string_equal(
		st.info.journal_writers, "/run can be written by its group (mode 0775)");
	assert_string_equal(st.info.pod_facts, "kubelet");
	assert_string_equal(st.info.kubelet->device_plugin, "up");
	assert_int_equal(st.info.kubelet->tokens, 62);
	assert_int_equal(st.info.kubelet->unhealthy, 4);
	assert_int_equal(st.info.kubelet->leased, 8);
	assert_int_equal(st.info.kubelet->waiting, 3);
	assert_string_equal(st.info.kubelet->pod_resources, "up");
	assert_string_equal(st.info.kubelet->pods_api, "waiting");
	assert_int_equal(st.info.kubelet->pods, 7);
	assert_string_equal(st.info.config->file, config.file);
	assert_string_equal(st.info.config->refused, config.refused);
	assert_null(st.info.config->restart);
	assert_int_equal(st.info.config->reloads, 3);
	assert_int_equal(st.info.config->refusals, 1);
	assert_string_equal(st.info.apiserver->unusable, apiserver.unusable);
	assert_int_equal(st.info.apiserver->failures, 5);
	assert_string_equal(st.info.claims->slices_watch, "up");
	assert_int_equal(st.info.claims->slices, 4);
	assert_int_equal(st.info.claims->devices, 24);
	assert_int_equal(st.info.claims->incomplete_pools, 1);
	assert_int_equal(st.info.claims->unknown[CLAIMS_NOT_SHOWN_YET - 1], 3);
	assert_int_equal(st.info.claims->unknown[CLAIMS_NOT_PUBLISHED - 1], 2);
	assert_int_equal(st.info.claims->waits, 5);
	assert_int_equal(st.info.claims->waited_ns, 6000);
	assert_string_equal(st.info.dra->registration, "up");
	assert_int_equal(st.info.dra->slice_generation, 7);
	assert_true(st.info.dra->slice_current);
	assert_int_equal(st.info.dra->prepared, 8);
	assert_int_equal(st.info.dra->unprepared, 9);
	assert_int_equal(st.info.dra->failed, 10);
	assert_int_equal(st.info.dra->waiting, 11);
	assert_int_equal(st.info.dra->waited_ms, 12);
	assert_string_equal(st.info.enforcement->enforced, "cgroup");
	assert_null(st.info.enforcement->why_updates);
	assert_string_equal(st.info.enforcement->problem, shared_pool.problem);
	assert_int_equal(st.info.enforcement->cgroups, 2);
	assert_int_equal(st.info.enforcement->writes, 17);
	assert_int_equal(st.info.enforcement->rewritten, 3);
	assert_int_equal(st.info.enforcement->idle, 4);
	assert_int_equal(st.info.enforcement->nr_confined, 1);
	assert_int_equal(st.info.enforcement->confined[0].by, CONFINED_BY_AFFINITY);
	assert_int_equal(st.info.enforcement->confined[0].containers, 5);
	assert_true(cpuset_equal(
		&st.info.enforcement->confined[0].cpus, &shared_pool.confined[0].cpus));
	assert_string_equal(st.info.enforcement->confined[0].example, "default/web/main");
	assert_string_equal(st.info.quota->use, "lift");
	assert_string_equal(st.info.quiet->frequencies_not, quiet.frequencies_not);
	assert_true(cpuset_equal(&st.info.quiet->irq_cpus, &quiet.irq_cpus));
	assert_int_equal(st.info.quiet->unmovable, 2);
	assert_int_equal(st.info.moves->nr, 1);
	assert_string_equal(st.info.moves->at[0].to_nodes, "0");
	assert_int_equal(st.info.moves->at[0].state, MOVE_UNDER_WAY);
	assert_string_equal(st.info.quota->containers_alone, cfs_quota.containers_alone);
	assert_null(st.info.quota->problem);
	assert_int_equal(st.info.quota->pods, 5);
	assert_int_equal(st.info.quota->rewritten, 6);
	assert_memory_equal(&st.info.counters, &info.counters, sizeof info.counters);
	assert_string_equal(st.machine, "two");
	assert_true(cpuset_equal(&st.reserved, &settings.reserved_cpus));
	assert_true(cpuset_equal(&st.pool, &ledger_view(l)->pool));

	assert_true(cpuset_equal(&st.held, &own_cpus.cpus));
	assert_true(cpuset_equal(&st.info.offline, &info.offline));
	assert_true(cpuset_empty(&st.left) && cpuset_empty(&st.nodeless));

	assert_int_equal(st.nr_nodes, NR_NODES);
	assert_int_equal(st.nodes[0].cpus_reserved, 1);
	assert_int_equal(st.nodes[1].id, 8);
	assert_int_equal(st.nodes[1].cpus, CPUS_PER_NODE);
	assert_int_equal(st.nodes[1].cpus_held, 2);
	assert_int_equal(st.nodes[1].socket, 1);
	assert_int_equal(st.nodes[1].nr_threads, 1);
	assert_true(cpuset_equal(&st.nodes[1].threads[0].cpus, &machine.node[1].cpus));
	assert_string_equal(st.nodes[1].memory_group, "8");
	assert_int_equal(st.nodes[1].nr_memory, 2);
	assert_string_equal(st.nodes[1].memory[0].type, "memory");
	assert_int_equal(st.nodes[1].memory[0].allocatable - st.nodes[1].memory[0].free, 1 << 30);
	assert_string_equal(st.nodes[1].memory[1].type, "hugepages-2Mi");
	assert_int_equal(st.nodes[1].memory[1].free, huge_bytes);

	assert_int_equal(st.nr_containers, 2);
	const struct status_container *c = &st.containers[0];
	assert_string_equal(c->id, "c1");
	assert_string_equal(c->ns, "default");
	assert_string_equal(c->pod, "p\"1");
	assert_string_equal(c->container, "web");
	assert_int_equal(c->qos, QOS_GUARANTEED);
	assert_true(c->exclusive && c->preferred);
	assert_string_equal(c->cpus, "4-5");
	assert_string_equal(c->mems, "8");
	assert_string_equal(c->nodes, "8");
	assert_int_equal(c->cpu_milli, 2000);
	assert_int_equal(c->memory, 1 << 30);
	assert_int_equal(c->hugepages, 8 << 20);
	c = &st.containers[1];
	assert_false(c->exclusive || c->preferred);
	assert_int_equal(c->source, SOURCE_ADOPTED);
	assert_string_equal(c->mems, "0,8");
	assert_null(c->nodes);
	arena_fini(&a);
	ledger_free(l);
}

static void the_document_says_how_far_free_cpus_lie_apart(void **state)
{
	struct ledger *l = ledger_new(&machine, &settings);
	struct decision apart = own_cpus;
	struct status st;
	struct arena a;

	(void)state;
	settings.cpu_manager_policy = MANAGER_STATIC;
	settings.memory_manager_policy = MANAGER_STATIC;
	apart.cpus = (struct cpuset){{0x36}}; /* 1-2, 4-5; CPU 0 is reserved */
	apart.preferred = false;
	struct cpuset pool = ledger_pool_without(l, &apart.cpus);
	assert_int_equal(ledger_set_pool(l, &pool, NULL), 0);
	ledger_commit(l, &own, &apart);
	hold_shared(l, "c2"); /* which is not preferred, but has no CPUs of its own */
	auto_free char *document = document_of(l);
	settings_init(&settings);
	cpuset_add(&settings.reserved_cpus, 0);
	arena_init(&a, ARENA_BYTES);
	assert_int_equal(status_json_parse(document, strlen(document), &a, &st, NULL), 0);
	assert_non_null(strstr(document,
		"\"fragmentation\":{\"ratio_milli\":333,\"free_cpus\":3,\"largest_cpus\":2,"
		"\"possible_cpus\":3,\"largest_memory\":16106127360,\"not_preferred\":1}"));
	assert_int_equal(st.fragmentation->ratio_milli, 333);
	assert_int_equal(st.fragmentation->free_cpus, 3);
	assert_int_equal(st.fragmentation->largest_cpus, 2);
	assert_int_equal(st.fragmentation->possible_cpus, 3);
	assert_true(st.fragmentation->largest_memory == memory_bytes - huge_bytes);
	assert_int_equal(st.fragmentation->not_preferred, 1);
	assert_int_equal(st.nodes[0].cpus_available, 1);
	assert_int_equal(st.nodes[1].cpus_available, 2);
	arena_fini(&a);
	ledger_free(l);
}

static void a_shared_container_is_shown_with_the_present_pool(void **state)
{
	struct ledger *l = ledger_new(&machine, &settings);
	char pool[CPUSET_TEXT_MAX];
	struct status st;
	struct arena a;

	(void)state;
	hold_shared(l, "c2");
	hold_own(l);
	auto_free char *document = document_of(l);
	arena_init(&a, ARENA_BYTES);
	assert_int_equal(status_json_parse(document, strlen(document), &a, &st, NULL), 0);
	assert_string_equal(
		st.containers[1].cpus, cpuset_format(&ledger_view(l)->pool, pool, sizeof pool));
	assert_false(cpuset_intersects(&st.pool, &own_cpus.cpus));
	arena_fini(&a);
	ledger_free(l);
}

static void memory_of_a_device_is_marked(void **state)
{
	struct topo with_gpu = machine;
	struct status st;
	struct arena a;

	(void)state;
	with_gpu.device_memory = nodeset_of(1);
	struct ledger *l = ledger_new(&with_gpu, &settings);
	auto_free char *document = document_of(l);
	arena_init(&a, ARENA_BYTES);
	assert_int_equal(status_json_parse(document, strlen(document), &a, &st, NULL), 0);
	assert_false(st.nodes[0].device_memory);
	assert_true(st.nodes[1].device_memory);
	assert_int_equal(st.nodes[1].memory[0].allocatable, 0);
	arena_fini(&a);
	ledger_free(l);
}

static void the_same_state_gives_the_same_bytes(void **state)
{
	struct ledger *l = ledger_new(&machine, &settings);

	(void)state;
	hold_own(l);
	auto_free char *one = document_of(l);
	auto_free char *two = document_of(l);
	assert_string_equal(one, two);
	assert_null(strchr(one, '\n'));
	ledger_free(l);
}

static void thousands_of_containers_are_all_listed(void **state)
{
	struct ledger *l = ledger_new(&machine, &settings);
	struct status st;
	struct arena a;
	char id[32];

	(void)state;
	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(id, sizeof id, "container-%06u", i);
		hold_shared(l, id);
	}
	auto_free char *document = document_of(l);
	arena_init(&a, ARENA_BYTES);
	assert_int_equal(status_json_parse(document, strlen(document), &a, &st, NULL), 0);
	assert_int_equal(st.nr_containers, MANY);
	assert_string_equal(st.containers[MANY - 1].id, id);
	arena_fini(&a);
	ledger_free(l);
}

static void a_document_that_is_not_a_status_is_refused(void **state)
{
	static const char *const texts[] = {"", "{}", "[]", "{\"version\":1}", "unknown command"};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct status st;
		struct arena a;

		arena_init(&a, ARENA_BYTES);
		assert_int_equal(
			status_json_parse(texts[i], strlen(texts[i]), &a, &st, NULL), -EINVAL);
		arena_fini(&a);
	}
}

static void a_document_beyond_the_arena_is_refused(void **state)
{
	struct ledger *l = ledger_new(&machine, &settings);
	struct status st;
	struct arena a;

	(void)state;
	hold_own(l);
	auto_free char *document = document_of(l);
	for (size_t limit = 0; limit < 512; limit += 16) {
		arena_init(&a, limit);
		assert_int_equal(
			status_json_parse(document, strlen(document), &a, &st, NULL), -ENOMEM);
		arena_fini(&a);
	}
	ledger_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_document_agrees_with_ledger_and_snapshot),
		cmocka_unit_test(the_document_says_how_far_free_cpus_lie_apart),
		cmocka_unit_test(a_shared_container_is_shown_with_the_present_pool),
		cmocka_unit_test(memory_of_a_device_is_marked),
		cmocka_unit_test(the_same_state_gives_the_same_bytes),
		cmocka_unit_test(thousands_of_containers_are_all_listed),
		cmocka_unit_test(a_document_that_is_not_a_status_is_refused),
		cmocka_unit_test(a_document_beyond_the_arena_is_refused),
	};

	return cmocka_run_group_tests(tests, build, NULL);
}
