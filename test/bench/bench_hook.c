/* What a hook takes at worst: random pods and containers on random machines whose NUMA nodes are
 * unequal, through the daemon's own engine, with nothing behind its records; a refusal with the
 * numbers that it is answered with. And what looking for remedies takes after the answer. */
#include <numafit/diagnosis.h>

#include "../unit/core_uneven.h"
#include "bench.h"

enum { ASKS = 10000, SEED = 20261122, SMALL = 32, NS_PER_US = 1000, WHOLE_PERCENT = 70 };

struct outcome {
	uint64_t ns, remedies_ns;
	unsigned nodes;
	bool whole, admitted, cut_short;
};

/* A pod that is known when its sandbox starts; else a container that its runtime shows alone. */
static struct outcome ask(struct uneven *u, const char *name)
{
	struct outcome o = {.nodes = u->t.ids.nr, .whole = random_chance(&u->r, WHOLE_PERCENT)};
	struct update_list ups = {0};
	struct diagnosis why;
	struct decision d;

	uneven_random_pod(u);
	if (!o.whole)
		u->pod.nr = 1;
	const struct request req = uneven_request(u, 0);
	uint64_t from = bench_begin();
	if (o.whole)
		engine_run_pod(u->g, 1, &u->pod, &d);
	else
		engine_create(u->g, 1, (struct request[]){req}, &d, &ups);
	const struct admit_question q = {engine_ledger(u->g), &u->s,
		.container = o.whole ? NULL : &req, .pod = o.whole ? &u->pod : NULL};
	if (!d.admit)
		diagnose_in_numbers(&q, &d, &why);
	o.ns = bench_end(name, from);
	from = bench_begin();
	if (!d.admit)
		diagnose_with_remedies(&q, &d, REMEDIES_QUICKLY, NULL, &why);
	o.remedies_ns = bench_end("remedies-64-uneven", from);
	o.admitted = d.admit;
	o.cut_short = d.cut_short;
	vec_fini(&ups);
	return o;
}

/* On a machine of its own, where up to two others run already. */
static struct outcome ask_anew(struct uneven *u, size_t i, const char *name)
{
	struct decision d;

	u->r = (struct random){SEED + 7919 * i};
	for (unsigned k = 0; k < 4; k++) /* seeds that are near begin alike */
		(void)random_next(&u->r);
	uneven_machine(u, 2 + random_below(&u->r, NODES_MAX - 1), random_chance(&u->r, 50));
	uneven_begin(u, (enum topology_policy)random_below(&u->r, NR_POLICIES),
		random_chance(&u->r, 50) ? SCOPE_POD : SCOPE_CONTAINER, random_chance(&u->r, 50));
	for (unsigned others = random_below(&u->r, 3); others; others--) {
		uneven_random_pod(u);
		engine_run_pod(u->g, 1, &u->pod, &d);
	}
	struct outcome o = ask(u, name);
	uneven_end(u);
	return o;
}

static void print_shares(const struct bench_row *row, const size_t cut[2], const size_t of[2],
	size_t admitted, uint64_t worst_seed)
{
	(void)printf("    max %.3f ms (ask %llu); cut short %zu of %zu, on up to %d nodes %zu of "
		     "%zu; admitted %zu\n",
		(double)row->values[row->n - 1] / NS_PER_US / 1000, (unsigned long long)worst_seed,
		cut[0] + cut[1], row->n, SMALL, cut[0], of[0], admitted);
}

int main(void)
{
	static struct uneven u;
	static uint64_t ns[ASKS], remedies_ns[ASKS];
	struct bench_row remedies = {
		.name = "remedies-64-uneven", .unit = "ns", .values = remedies_ns};
	struct bench_row row = {.name = "hook-64-uneven",
		.unit = "ns",
		.values = ns,
		.n = bench_runs(ASKS),
		.has_budget = true};
	size_t cut[2] = {0}, of[2] = {0}, admitted = 0, worst = 0;

	for (size_t i = 0; i < row.n; i++) {
		struct outcome o = ask_anew(&u, i, row.name);
		bool large = o.nodes > SMALL;

		ns[i] = o.ns;
		worst = ns[i] > ns[worst] ? i : worst;
		cut[large] += o.cut_short;
		of[large]++;
		admitted += o.admitted;
		if (!o.admitted)
			remedies_ns[remedies.n++] = o.remedies_ns;
		row.incumbents += o.cut_short;
	}
	bench_print(&row);
	if (remedies.n)
		bench_print(&remedies);
	if (!bench_counts())
		print_shares(&row, cut, of, admitted, worst);
	return 0;
}
