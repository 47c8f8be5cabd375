/* LeastNUMANodes against plain enumeration, as the plugin does it, on random machines; and what
 * must hold of any score. */
#include "core_random.h"

#include <numafit/nrt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { ZONES = 7, RESOURCES = 4, CONTAINERS = 3, MACHINES = 20000, WANTS = RESOURCES };

/* A machine and a pod, made up. */
struct made_up {
	struct random random;
	struct resource_table names;
	struct sched_topology *topology;
	struct amount amount[CONTAINERS][WANTS];
	struct sched_container container[CONTAINERS];
	struct sched_pod pod;
	struct nrt_args args;
};

static int64_t any_cost(struct random *r, unsigned kind)
{
	static const int64_t usual[] = {10, 12, 20, 32};

	switch (kind) {
	case 0:
		return usual[random_below(r, 4)];
	case 1:
		return 250 + random_below(r, 12); /* about what is too far */
	case 2:
		return 200000000 + random_below(r, 3); /* alike in float32 */
	default:
		return random_below(r, 200);
	}
}

static struct quantity any_amount(struct random *r, unsigned below)
{
	return (struct quantity){
		random_below(r, below), random_chance(r, 20) ? QUANTITY_NANOS / 2 : 0};
}

static struct sched_topology *any_topology(struct random *r, const uint8_t *id, unsigned nr)
{
	struct sched_topology *t = sched_topology_new(id, nr);
	unsigned kind = random_below(r, 5), holes = random_chance(r, 30) ? 30 : 0;

	for (unsigned z = 0; z < nr; z++) {
		for (unsigned to = 0; to < nr && kind < 4; to++)
			if (!random_chance(r, holes))
				sched_topology_cost(t, z, id[to], any_cost(r, kind));
		for (unsigned i = 0; i < RESOURCES; i++) {
			struct quantity q = any_amount(r, i ? 4 : 9);

			if (!random_chance(r, holes / 3))
				sched_topology_resource(t, z, i, &(struct zone_amounts){q, q, q});
		}
	}
	t->policy = POLICY_SINGLE_NUMA_NODE;
	t->scope = random_chance(r, 30) ? SCOPE_POD : SCOPE_CONTAINER;
	t->prefer_closest = random_chance(r, 70);
	return t;
}

static void any_pod(struct made_up *m)
{
	m->pod = (struct sched_pod){
		.qos = random_chance(&m->random, 80) ? QOS_GUARANTEED : QOS_BURSTABLE,
		.container = m->container,
		.nr_containers = 1 + random_below(&m->random, CONTAINERS)};
	for (unsigned c = 0; c < m->pod.nr_containers; c++) {
		unsigned nr = 0;

		for (unsigned i = 0; i < RESOURCES; i++)
			if (random_chance(&m->random, 60))
				m->amount[c][nr++] =
					(struct amount){i, any_amount(&m->random, i ? 6 : 20)};
		m->container[c] = (struct sched_container){.requests = {m->amount[c], nr}};
	}
}

/* Dense ids, in order or not. */
static void any_ids(struct random *r, uint8_t *id, unsigned nr, bool shuffled)
{
	for (unsigned i = 0; i < nr; i++)
		id[i] = (uint8_t)i;
	for (unsigned i = nr; shuffled && i > 1; i--) {
		unsigned other = random_below(r, i);
		uint8_t id_there = id[other];

		id[other] = id[i - 1];
		id[i - 1] = id_there;
	}
}

static void make_up(struct made_up *m, unsigned seed)
{
	uint8_t id[ZONES];
	unsigned nr;

	m->random = (struct random){seed * UINT64_C(0x9E3779B97F4A7C15) + 1};
	nr = 1 + random_below(&m->random, ZONES);
	any_ids(&m->random, id, nr, random_chance(&m->random, 40));
	m->topology = any_topology(&m->random, id, nr);
	any_pod(m);
	m->args = (struct nrt_args){
		.strategy = NRT_LEAST_NUMA_NODES, .compat = random_chance(&m->random, 50)};
}

/* The plain way. */
struct plain {
	const struct made_up *m;
	struct quantity left[RESOURCES][ZONES];
	unsigned combination[ZONES], size;
};

static bool lists(const struct plain *p, unsigned zone, unsigned resource)
{
	const struct zone_resource *r = sched_topology_find(p->m->topology, resource);

	return r && r->listed >> zone & 1;
}

static float plain_average(const struct plain *p)
{
	const struct sched_topology *t = p->m->topology;
	int64_t sum = 0;

	for (unsigned a = 0; a < p->size; a++)
		for (unsigned b = 0; b < p->size; b++)
			sum += t->cost[p->combination[a] * t->nr_zones + p->combination[b]];
	return (float)sum / (float)(p->size * p->size);
}

static bool plain_fits(const struct plain *p, const struct amounts *asks)
{
	for (unsigned i = 0; i < asks->nr; i++) {
		unsigned resource = asks->at[i].resource;
		struct quantity sum = {0};

		for (unsigned z = 0; z < p->size; z++) {
			if (!lists(p, p->combination[z], resource))
				return false;
			sum = quantity_add(sum, p->left[resource][p->combination[z]]);
		}
		bool floats = p->m->pod.qos != QOS_GUARANTEED && resource <= RESOURCE_MEMORY;

		if (!quantity_is_zero(asks->at[i].q) && !floats &&
			quantity_compare(sum, asks->at[i].q) < 0)
			return false;
	}
	return true;
}

/* The combination behind this one in lexicographic order. */
static bool next(struct plain *p)
{
	unsigned nr = p->m->topology->nr_zones, i = p->size;

	while (i > 0 && p->combination[i - 1] == nr - p->size + i - 1)
		i--;
	if (!i)
		return false;
	p->combination[i - 1]++;
	for (; i < p->size; i++)
		p->combination[i] = p->combination[i - 1] + 1;
	return true;
}

static void first(struct plain *p, unsigned size)
{
	p->size = size;
	for (unsigned i = 0; i < size; i++)
		p->combination[i] = i;
}

static uint64_t plain_of_size(
	struct plain *p, const struct amounts *asks, unsigned size, bool *closest)
{
	bool by_distance = p->m->args.compat || p->m->topology->prefer_closest;
	float least = 255, best = 256;
	uint64_t found = 0;

	first(p, size);
	do {
		float average = plain_average(p);

		least = average < least ? average : least;
	} while (next(p));
	first(p, size);
	do {
		uint64_t zones = 0;
		float average = plain_average(p);

		for (unsigned i = 0; i < size; i++)
			zones |= UINT64_C(1) << p->combination[i];
		if (!plain_fits(p, asks))
			continue;
		*closest = by_distance && average == least;
		if (*closest || !by_distance)
			return zones;
		if (average < best) {
			best = average;
			found = zones;
		}
	} while (next(p));
	return found;
}

static uint64_t plain_required(struct plain *p, const struct amounts *asks, bool *closest)
{
	uint64_t found = 0;

	*closest = false;
	for (unsigned size = 1; !found && size <= p->m->topology->nr_zones; size++)
		found = plain_of_size(p, asks, size, closest);
	return found;
}

/* Zones as the plugin would go through them: by id, and, as released, by what lies where the id
 * says. */
static void plain_take(struct plain *p, const struct amounts *asks, uint64_t zones)
{
	const struct sched_topology *t = p->m->topology;
	unsigned place[ZONES], nr = 0;

	if (p->m->args.compat) {
		for (unsigned id = 0; id < t->nr_zones; id++)
			for (unsigned z = 0; z < t->nr_zones; z++)
				if (t->zone_id[z] == id && zones >> z & 1)
					place[nr++] = id;
	} else {
		for (unsigned z = 0; z < t->nr_zones; z++)
			if (zones >> z & 1)
				place[nr++] = z;
	}
	for (unsigned i = 0; i < asks->nr; i++) {
		struct quantity rest = asks->at[i].q;

		for (unsigned z = 0; z < nr; z++) {
			struct quantity *left = &p->left[asks->at[i].resource][place[z]], taken;

			if (!lists(p, place[z], asks->at[i].resource))
				continue;
			taken = quantity_compare(rest, *left) < 0 ? rest : *left;
			*left = quantity_sub(*left, taken);
			rest = quantity_sub(rest, taken);
		}
	}
}

static bool plain_is_of_zones(const struct plain *p, const struct amounts *asks)
{
	for (unsigned i = 0; i < asks->nr; i++)
		if (sched_topology_find(p->m->topology, asks->at[i].resource))
			return true;
	return false;
}

static int64_t plain_score(struct plain *p, uint64_t *taken)
{
	const struct sched_topology *t = p->m->topology;
	unsigned nr, most = 0;
	auto_free struct amount *effective = nrt_effective_request(&p->m->pod, &nr);
	const struct amounts whole = {effective, nr};
	bool all_closest = true, closest;

	for (unsigned c = 0; c < (t->scope == SCOPE_POD ? 1 : p->m->pod.nr_containers); c++) {
		const struct amounts *asks =
			t->scope == SCOPE_POD ? &whole : &p->m->container[c].requests;

		if (!plain_is_of_zones(p, asks))
			continue;
		taken[c] = plain_required(p, asks, &closest);
		if (!taken[c])
			return 0;
		unsigned count = (unsigned)__builtin_popcountll(taken[c]);

		most = count > most ? count : most;
		all_closest = all_closest && closest;
		plain_take(p, asks, taken[c]);
	}
	return most ? nrt_least_numa_score(most, all_closest, t->max_numa_nodes) : 100;
}

static void plain_init(struct plain *p, const struct made_up *m)
{
	*p = (struct plain){.m = m};
	for (unsigned i = 0; i < RESOURCES; i++) {
		const struct zone_resource *r = sched_topology_find(m->topology, i);

		for (unsigned z = 0; r && z < m->topology->nr_zones; z++)
			p->left[i][z] = r->available[z];
	}
}

/* The pod as a whole, of any QoS class. */
static bool finds_the_same_for_the_pod(const struct made_up *m, struct nrt_ask *ask)
{
	struct plain p;
	unsigned nr;
	auto_free struct amount *effective = nrt_effective_request(&m->pod, &nr);
	bool closest, plain_closest;
	uint64_t zones = nrt_required(ask, m->topology, &closest);

	plain_init(&p, m);
	return zones == plain_required(&p, &(struct amounts){effective, nr}, &plain_closest) &&
	       closest == plain_closest;
}

static void the_search_finds_what_plain_enumeration_finds(void **state)
{
	static struct made_up m;
	unsigned several = 0, none = 0;

	(void)state;
	resource_table_init(&m.names);
	for (unsigned seed = 0; seed < MACHINES; seed++) {
		struct plain p;
		uint64_t taken[CONTAINERS] = {0};

		make_up(&m, seed);
		plain_init(&p, &m);
		struct nrt_ask *ask = nrt_ask_new(&m.pod, &m.args, &m.names);
		int64_t score = nrt_score(ask, &(struct sched_node){.topology = m.topology});
		int64_t want = m.pod.qos == QOS_GUARANTEED ? plain_score(&p, taken) : 100;

		if (score != want)
			fail_msg("seed %u: %lld, enumerated %lld", seed, (long long)score,
				(long long)want);
		for (unsigned c = 0; c < m.pod.nr_containers; c++) {
			if (nrt_taken(ask, c) != taken[c])
				fail_msg("seed %u: container %u", seed, c);
			several += __builtin_popcountll(taken[c]) > 2;
		}
		if (!finds_the_same_for_the_pod(&m, ask))
			fail_msg("seed %u: the pod", seed);
		none += score == 0;
		nrt_ask_free(ask);
		sched_topology_free(m.topology);
	}
	assert_true(several > MACHINES / 10 && none > MACHINES / 10);
	resource_table_fini(&m.names);
}

static int64_t score_of(const struct made_up *m, const struct sched_topology *t)
{
	struct nrt_ask *ask = nrt_ask_new(&m->pod, &m->args, &m->names);
	int64_t score = nrt_score(ask, &(struct sched_node){.topology = t});

	nrt_ask_free(ask);
	return score;
}

/* Where one container asks for less than every zone has: a zone that comes to fit at all may well
 * be the new minimum. */
static void more_free_resources_never_lower_least_allocated(void **state)
{
	static struct made_up m;
	unsigned raised = 0;

	(void)state;
	resource_table_init(&m.names);
	for (unsigned seed = 0; seed < MACHINES / 4; seed++) {
		make_up(&m, seed);
		m.args.strategy = NRT_LEAST_ALLOCATED;
		m.pod.qos = QOS_GUARANTEED;
		for (unsigned i = 0; i < RESOURCES; i++)
			for (unsigned z = 0; z < m.topology->nr_zones; z++) {
				struct quantity q = any_amount(&m.random, 9);

				q.whole += 60;
				sched_topology_resource(
					m.topology, z, i, &(struct zone_amounts){q, q, q});
			}
		int64_t before = score_of(&m, m.topology);
		const struct zone_resource *r =
			sched_topology_find(m.topology, random_below(&m.random, RESOURCES));

		for (unsigned z = 0; z < m.topology->nr_zones; z++)
			r->available[z] = quantity_add(r->available[z], any_amount(&m.random, 40));
		int64_t after = score_of(&m, m.topology);

		if (after < before)
			fail_msg("seed %u: %lld, then %lld", seed, (long long)before,
				(long long)after);
		raised += after > before;
		sched_topology_free(m.topology);
	}
	assert_true(raised > 0);
	resource_table_fini(&m.names);
}

/* The same zones under other ids. */
static struct sched_topology *renamed(const struct sched_topology *t, const uint8_t *id)
{
	struct sched_topology *copy = sched_topology_new(id, t->nr_zones);

	for (unsigned z = 0; z < t->nr_zones; z++) {
		for (unsigned to = 0; to < t->nr_zones; to++)
			sched_topology_cost(copy, z, id[to], t->cost[z * t->nr_zones + to]);
		for (size_t i = 0; i < t->resources.nr; i++) {
			const struct zone_resource *r = &t->resources.at[i];

			if (r->listed >> z & 1)
				sched_topology_resource(copy, z, r->resource,
					&(struct zone_amounts){r->capacity[z], r->allocatable[z],
						r->available[z]});
		}
	}
	copy->policy = t->policy;
	copy->scope = t->scope;
	copy->prefer_closest = t->prefer_closest;
	return copy;
}

static void other_zone_ids_only_change_the_ids_of_the_answer(void **state)
{
	static struct made_up m;

	(void)state;
	resource_table_init(&m.names);
	for (unsigned seed = 0; seed < MACHINES / 4; seed++) {
		uint8_t id[ZONES];

		make_up(&m, seed);
		m.args.compat = false;
		m.args.strategy = (enum nrt_strategy)random_below(&m.random, NR_NRT_STRATEGIES);
		for (unsigned z = 0; z < m.topology->nr_zones; z++)
			id[z] = (uint8_t)(ZONES_MAX - 1 - 3 * z - random_below(&m.random, 3));
		struct sched_topology *other = renamed(m.topology, id);
		struct nrt_ask *ask = nrt_ask_new(&m.pod, &m.args, &m.names);
		int64_t score = nrt_score(ask, &(struct sched_node){.topology = m.topology});
		uint64_t taken[CONTAINERS];

		for (unsigned c = 0; c < m.pod.nr_containers; c++)
			taken[c] = nrt_taken(ask, c);
		if (nrt_score(ask, &(struct sched_node){.topology = other}) != score)
			fail_msg("seed %u", seed);
		for (unsigned c = 0; c < m.pod.nr_containers; c++)
			assert_int_equal(nrt_taken(ask, c), taken[c]);
		nrt_ask_free(ask);
		sched_topology_free(other);
		sched_topology_free(m.topology);
		m.topology = NULL;
	}
	resource_table_fini(&m.names);
}

/* 64 zones of four to a board, all but the last two boards full: upstream would write out 2^64
 * subsets. */
static void sixty_four_zones_are_searched(void **state)
{
	uint8_t id[ZONES_MAX];
	struct resource_table names;
	struct amount amount = {RESOURCE_CPU, quantity_of(8 * 8)};
	struct sched_container container = {.requests = {&amount, 1}};
	struct sched_pod pod = {.qos = QOS_GUARANTEED, .container = &container, .nr_containers = 1};
	struct nrt_args args = {.compat = true};
	bool closest;

	(void)state;
	resource_table_init(&names);
	for (unsigned i = 0; i < ZONES_MAX; i++)
		id[i] = (uint8_t)i;
	struct sched_topology *t = sched_topology_new(id, ZONES_MAX);

	for (unsigned z = 0; z < ZONES_MAX; z++) {
		struct quantity q = quantity_of(z < ZONES_MAX - 8 ? 1 : 8);

		sched_topology_resource(t, z, RESOURCE_CPU, &(struct zone_amounts){q, q, q});
		for (unsigned to = 0; to < ZONES_MAX; to++)
			sched_topology_cost(t, z, to, z == to ? 10 : z / 4 == to / 4 ? 12 : 32);
	}
	struct nrt_ask *ask = nrt_ask_new(&pod, &args, &names);

	assert_int_equal(nrt_required(ask, t, &closest), UINT64_C(0xff) << 56);
	assert_true(closest);
	nrt_ask_free(ask);
	sched_topology_free(t);
	resource_table_fini(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_search_finds_what_plain_enumeration_finds),
		cmocka_unit_test(more_free_resources_never_lower_least_allocated),
		cmocka_unit_test(other_zone_ids_only_change_the_ids_of_the_answer),
		cmocka_unit_test(sixty_four_zones_are_searched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
