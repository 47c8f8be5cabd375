/* full-pcpus-only on machines whose cores differ in size: by brute force, no core is ever cut, and
 * what is refused could not have been given. CORES_CASES=n machines for each row; SEED chooses
 * which. */
#include "engine_life_rig.h"

#include "core_random.h"

#include <numafit/cores.h>
#include <numafit/cpus.h>
#include <numafit/diagnosis.h>

#include <stdio.h>

enum { CORES = 12, NODES = 3, GUESTS = 8, EVENTS = 30, CPUS_MAX = CORES * 4 + 1 };

/* A machine as a list of cores, from which all that is expected follows. */
struct list_of_cores {
	unsigned nr, nr_nodes;
	unsigned size[CORES], node[CORES];
	struct cpuset cpus[CORES];
};

struct guest {
	char id[16];
	struct request req;
	struct cpuset has; /* as it was answered */
};

struct house {
	struct random r;
	struct list_of_cores c;
	struct topo t;
	struct settings s;
	struct engine *g;
	struct guest guest[GUESTS];
	unsigned next;
};

static int keep_record(void *ctx, const struct record *r, struct err *e)
{
	(void)ctx;
	(void)r;
	(void)e;
	return 0;
}

static void build(struct house *h, const unsigned *sizes, unsigned nr_sizes)
{
	struct list_of_cores *c = &h->c;
	unsigned cpu = 0;
	struct err e;

	topo_init(&h->t, "unequal");
	c->nr_nodes = 1 + random_below(&h->r, NODES);
	c->nr = c->nr_nodes + random_below(&h->r, CORES - c->nr_nodes + 1);
	for (unsigned n = 0; n < c->nr_nodes; n++) {
		assert_true(topo_add_node(&h->t, 3 * n, &e) >= 0);
		assert_int_equal(topo_set_memory(&h->t, n, 0, GIB(64), &e), 0);
	}
	for (unsigned i = 0; i < c->nr; i++) {
		c->size[i] = sizes[random_below(&h->r, nr_sizes)];
		c->node[i] = i < c->nr_nodes ? i : random_below(&h->r, c->nr_nodes);
		for (unsigned thread = 0; thread < c->size[i]; thread++, cpu++) {
			assert_int_equal(topo_add_cpu(&h->t, cpu, c->node[i], i, 0, i / 4, &e), 0);
			cpuset_add(&c->cpus[i], cpu);
		}
	}
	assert_int_equal(topo_seal(&h->t, &e), 0);
}

static struct house *house_new(
	uint64_t seed, enum topology_policy policy, const unsigned *sizes, unsigned nr_sizes)
{
	const struct engine_hooks hooks = {.record = keep_record};
	struct house *h = calloc(1, sizeof *h);

	h->r.state = seed;
	build(h, sizes, nr_sizes);
	h->s = settings_of(policy);
	h->s.memory_manager_policy = MANAGER_NONE;
	h->s.cpu_options.full_pcpus_only = true;
	h->s.cpu_options.distribute_cpus_across_numa = random_chance(&h->r, 30);
	h->s.cpu_options.prefer_align_cpus_by_uncorecache =
		!h->s.cpu_options.distribute_cpus_across_numa && random_chance(&h->r, 40);
	h->s.reserved_cpus = (struct cpuset){0};
	cpuset_add(&h->s.reserved_cpus, random_below(&h->r, h->t.nr_cpus));
	h->g = engine_new(&h->t, &h->s, &hooks);
	return h;
}

static void house_free(struct house *h)
{
	struct err e;

	if (ledger_check(engine_ledger(h->g), &e))
		fail_msg("%s", e.text);
	engine_free(h->g);
	free(h);
}

/* Which cores no container, nor the system, has a CPU of. */
static void find_free_cores(const struct house *h, bool free_core[CORES])
{
	struct cpuset taken = h->s.reserved_cpus;

	for (unsigned i = 0; i < GUESTS; i++)
		taken = cpuset_or(taken, &h->guest[i].has);
	for (unsigned i = 0; i < h->c.nr; i++)
		free_core[i] = !cpuset_intersects(&h->c.cpus[i], &taken);
}

/* Whether some of those cores, on the nodes, have exactly so many CPUs: each is tried. */
static bool some_have(const struct list_of_cores *c, const bool *of, uint64_t nodes, unsigned count)
{
	bool sum[CPUS_MAX + 1] = {true};

	if (count > CPUS_MAX)
		return false;
	for (unsigned i = 0; i < c->nr; i++)
		for (unsigned s = CPUS_MAX;
			(!of || of[i]) && nodes >> c->node[i] & 1 && s >= c->size[i]; s--)
			sum[s] |= sum[s - c->size[i]];
	return sum[count];
}

/* Whether the policy lets in what these cores can be, all sets of nodes tried. */
static bool may_be_admitted(const struct house *h, const bool *free_core, unsigned count)
{
	const uint64_t sets = UINT64_C(1) << h->c.nr_nodes;
	unsigned fewest = h->c.nr_nodes;
	bool any = false;

	if (h->s.topology_policy <= POLICY_BEST_EFFORT)
		return some_have(&h->c, free_core, sets - 1, count);
	for (uint64_t m = 1; m < sets; m++)
		if (some_have(&h->c, NULL, m, count) && (unsigned)__builtin_popcountll(m) < fewest)
			fewest = (unsigned)__builtin_popcountll(m);
	if (h->s.topology_policy == POLICY_SINGLE_NUMA_NODE && fewest > 1)
		return false;
	for (uint64_t m = 1; m < sets; m++)
		any = any || ((unsigned)__builtin_popcountll(m) == fewest &&
				     some_have(&h->c, free_core, m, count));
	return any;
}

static void assert_whole(const struct house *h, const struct cpuset *cpus, unsigned count)
{
	const struct cpuset whole = cpus_whole_cores(&h->t, cpus);

	assert_int_equal(cpuset_count(cpus), count);
	assert_true(cpuset_equal(&whole, cpus));
}

static struct request ask_of(struct house *h, struct guest *of, unsigned cpus)
{
	(void)snprintf(of->id, sizeof of->id, "c%u", ++h->next);
	return (struct request){.container_id = of->id,
		.cpus = "",
		.mems = "",
		.pod = {.sandbox_id = of->id,
			.uid = of->id,
			.name = of->id,
			.ns = "default",
			.qos = QOS_GUARANTEED},
		.ask = {.name = "c", .cpu_milli = 1000 * cpus, .cpu_limit_milli = 1000 * cpus}};
}

static void create_one(struct house *h, struct guest *of)
{
	const unsigned count = 1 + random_below(&h->r, 9);
	struct update_list ups = {0};
	bool free_core[CORES];
	struct decision d;

	find_free_cores(h, free_core);
	of->req = ask_of(h, of, count);
	engine_create(h->g, 0, (struct request[]){of->req}, &d, &ups);
	vec_fini(&ups);
	if (d.admit != may_be_admitted(h, free_core, count))
		fail_msg("%u CPUs: %s, %s", count, d.admit ? "admitted" : "refused", d.message);
	if (!d.admit) {
		of->id[0] = '\0';
		return;
	}
	assert_whole(h, &d.cpus, count);
	of->has = d.cpus;
	engine_live(h->g, 0, &of->req, NULL);
}

/* More CPUs are whole cores beside those that it has; fewer are whole cores of its own. */
static void resize_one(struct house *h, struct guest *of)
{
	const unsigned had = cpuset_count(&of->has), count = 1 + random_below(&h->r, 9);
	struct update_list ups = {0};
	bool others[CORES], own[CORES];
	struct decision d;

	find_free_cores(h, others);
	for (unsigned i = 0; i < h->c.nr; i++)
		own[i] = cpuset_within(&h->c.cpus[i], &of->has);
	of->req.ask.cpu_milli = of->req.ask.cpu_limit_milli = 1000 * count;
	(void)engine_update(h->g, 0, (struct request[]){of->req}, &d, &ups);
	vec_fini(&ups);
	const bool could = count > had ? some_have(&h->c, others, UINT64_MAX, count - had)
				       : some_have(&h->c, own, UINT64_MAX, count);
	if (d.admit ? !could : could && h->s.topology_policy <= POLICY_BEST_EFFORT)
		fail_msg("%u CPUs, then %u: %s, %s", had, count, d.admit ? "admitted" : "refused",
			d.message);
	if (!d.admit) {
		of->req.ask.cpu_milli = of->req.ask.cpu_limit_milli = 1000 * had;
		return;
	}
	assert_whole(h, &d.cpus, count);
	of->has = d.cpus;
}

static void release_one(struct house *h, struct guest *of)
{
	struct update_list ups = {0};

	engine_release(h->g, 0, "stop", of->id, &ups);
	vec_fini(&ups);
	of->has = (struct cpuset){0};
	of->id[0] = '\0';
}

static unsigned cases_of(unsigned usual)
{
	const char *text = getenv("CORES_CASES");

	return text ? (unsigned)strtoul(text, NULL, 10) : usual;
}

static uint64_t first_seed(void)
{
	const char *text = getenv("SEED");

	return text ? strtoull(text, NULL, 10) * 1000003 : 1;
}

static const unsigned p_and_e[] = {1, 2, 2}, four[] = {1, 2, 4}, odd[] = {1, 2, 3, 4}, even[] = {2};
static const struct {
	const unsigned *size;
	unsigned nr;
} sizes[] = {{p_and_e, 3}, {four, 3}, {odd, 4}, {odd + 1, 2}, {even, 1}};
enum { NR_SIZES = sizeof sizes / sizeof *sizes };

static void no_core_is_cut_and_what_is_refused_could_not_be_given(void **state)
{
	static const enum topology_policy policies[] = {
		POLICY_NONE, POLICY_BEST_EFFORT, POLICY_RESTRICTED, POLICY_SINGLE_NUMA_NODE};

	(void)state;
	for (unsigned i = 0; i < cases_of(400); i++)
		for (unsigned k = 0; k < NR_SIZES; k++) {
			struct house *h = house_new(
				first_seed() + i, policies[i % 4], sizes[k].size, sizes[k].nr);

			for (unsigned event = 0; event < EVENTS; event++) {
				struct guest *of = &h->guest[random_below(&h->r, GUESTS)];

				if (!*of->id)
					create_one(h, of);
				else if (random_chance(&h->r, 50))
					resize_one(h, of);
				else
					release_one(h, of);
			}
			house_free(h);
		}
}

/* Whether each of the containers from the c-th on can have whole cores of those that are left. */
static bool all_have(const struct list_of_cores *l, bool *left, const unsigned *count, unsigned nr,
	unsigned from)
{
	if (!nr)
		return true;
	if (!*count)
		return all_have(l, left, count + 1, nr - 1, 0);
	for (unsigned i = from; i < l->nr; i++) {
		unsigned less[GUESTS];

		if (!left[i] || l->size[i] > *count)
			continue;
		memcpy(less, count, nr * sizeof *less);
		less[0] -= l->size[i];
		left[i] = false;
		const bool found = all_have(l, left, less, nr, i + 1);
		left[i] = true;
		if (found)
			return true;
	}
	return false;
}

enum { PARTS = 3 };
static void containers_of_a_pod_are_aligned_together_on_whole_cores(void **state)
{
	static const char *const names[PARTS] = {"a", "b", "c"};
	unsigned admitted = 0, refused = 0;

	(void)state;
	for (unsigned i = 0; i < cases_of(600); i++) {
		const unsigned k = i % 2; /* sizes that divide each other */
		struct house *h = house_new(first_seed() + i,
			i % 4 < 2 ? POLICY_BEST_EFFORT : POLICY_SINGLE_NUMA_NODE, sizes[k].size,
			sizes[k].nr);
		struct ask part[PARTS] = {0};
		unsigned count[PARTS];
		bool free_core[CORES], could = false;
		struct decision d;

		h->s.topology_scope = SCOPE_POD;
		for (unsigned c = 0; c < PARTS; c++) {
			count[c] = 1 + random_below(&h->r, 4);
			part[c] = (struct ask){.name = names[c],
				.cpu_milli = 1000 * count[c],
				.cpu_limit_milli = 1000 * count[c]};
			part[c].kind = CONTAINER_APP;
		}
		const struct pod pod = {.sandbox_id = "p",
			.uid = "p",
			.name = "p",
			.ns = "default",
			.qos = QOS_GUARANTEED,
			.nr = PARTS,
			.container = part};
		find_free_cores(h, free_core);
		for (unsigned n = 0; n < h->c.nr_nodes; n++) {
			bool here[CORES];

			for (unsigned core = 0; core < h->c.nr; core++)
				here[core] = free_core[core] &&
					     (h->s.topology_policy == POLICY_BEST_EFFORT ||
						     h->c.node[core] == n);
			could = could || all_have(&h->c, here, count, PARTS, 0);
		}
		engine_run_pod(h->g, 0, &pod, &d);
		/* with best-effort they may lie apart, and each takes what is nearest */
		if (d.admit ? !could : could && h->s.topology_policy == POLICY_SINGLE_NUMA_NODE)
			fail_msg("case %u: %u, %u and %u CPUs: %s, %s", i, count[0], count[1],
				count[2], d.admit ? "admitted" : "refused", d.message);
		const struct ledger *l = engine_ledger(h->g);
		for (size_t at = 0; d.admit && at < ledger_count(l); at++) {
			const struct holding *part_of = ledger_at(l, at);

			assert_whole(h, &part_of->decision.cpus,
				(unsigned)(part_of->request.ask.cpu_milli / 1000));
		}
		admitted += d.admit;
		refused += !d.admit;
		house_free(h);
	}
	assert_true(admitted > 20 && refused > 20);
}

/* Eight cores of two threads and sixteen of one. */
static struct house *hybrid_new(enum topology_policy policy, const char *reserved)
{
	struct house *h = calloc(1, sizeof *h);
	const struct engine_hooks hooks = {.record = keep_record};
	struct err e;

	topo_init(&h->t, "hybrid");
	assert_int_equal(topo_add_node(&h->t, 0, &e), 0);
	for (unsigned cpu = 0; cpu < 32; cpu++)
		assert_int_equal(
			topo_add_cpu(&h->t, cpu, 0, cpu < 16 ? cpu / 2 : cpu, 0, 0, &e), 0);
	assert_int_equal(topo_set_memory(&h->t, 0, 0, GIB(64), &e), 0);
	assert_int_equal(topo_seal(&h->t, &e), 0);
	h->s = settings_of(policy);
	h->s.memory_manager_policy = MANAGER_NONE;
	h->s.reserved_cpus = list(reserved);
	h->g = engine_new(&h->t, &h->s, &hooks);
	return h;
}

/* The E cores are reserved: the one wishes for whole P cores, and the other one for nothing. */
static void a_container_without_the_wish_needs_no_core_of_its_size(void **state)
{
	const struct ask part[] = {
		{.name = "a",
			.cpu_milli = 4000,
			.cpu_limit_milli = 4000,
			.kind = CONTAINER_APP,
			.wishes.cores = WISH_CORES_WHOLE},
		{.name = "b", .cpu_milli = 1000, .cpu_limit_milli = 1000, .kind = CONTAINER_APP},
	};
	const struct pod pod = {.sandbox_id = "p",
		.uid = "p",
		.name = "p",
		.ns = "default",
		.qos = QOS_GUARANTEED,
		.nr = 2,
		.container = part};
	struct house *h = hybrid_new(POLICY_SINGLE_NUMA_NODE, "16-31");
	struct decision d;

	(void)state;
	h->s.topology_scope = SCOPE_POD;
	engine_run_pod(h->g, 0, &pod, &d);
	if (!d.admit)
		fail_msg("%s", d.message);
	house_free(h);
}

static void p_and_e_cores_are_given_whole(void **state)
{
	static const struct {
		unsigned cpus;
		const char *list, *message;
	} cases[] = {
		{20, "2-5,16-31", NULL},
		{1, NULL,
			"SMT Alignment Error: cores of this machine are of unequal size, and 1 cpus "
			"are no number of whole ones that are free"},
		{2, "6-7", NULL},
	};
	struct diagnosis why;
	char said[DIAGNOSIS_LINE_MAX];
	struct house *h = hybrid_new(POLICY_NONE, "1");

	(void)state;
	h->s.cpu_options.full_pcpus_only = true;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct update_list ups = {0};
		struct request req = ask_of(h, &h->guest[i], cases[i].cpus);
		struct decision d;
		char got[CPUSET_TEXT_MAX];

		engine_create(h->g, 0, &req, &d, &ups);
		vec_fini(&ups);
		assert_int_equal(d.admit, cases[i].list != NULL);
		if (d.admit)
			assert_string_equal(cpuset_format(&d.cpus, got, sizeof got), cases[i].list);
		if (d.admit)
			continue;
		assert_string_equal(d.message, cases[i].message);
		const struct admit_question q = {engine_ledger(h->g), &h->s, .container = &req};
		diagnose_with_remedies(&q, &d, REMEDIES_QUICKLY, NULL, &why);
		(void)diagnosis_line(&why, &d, &q, true, said, sizeof said);
		if (!strstr(said,
			    "full-pcpus-only gives out whole cores, and no free ones have exactly "
			    "1 CPU together; "))
			fail_msg("%s", said);
	}
	house_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(p_and_e_cores_are_given_whole),
		cmocka_unit_test(a_container_without_the_wish_needs_no_core_of_its_size),
		cmocka_unit_test(no_core_is_cut_and_what_is_refused_could_not_be_given),
		cmocka_unit_test(containers_of_a_pod_are_aligned_together_on_whole_cores),
	};

	return cmocka_run_group_tests_name("cores", tests, NULL, NULL);
}
