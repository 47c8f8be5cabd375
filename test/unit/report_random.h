#ifndef NUMAFIT_TEST_REPORT_RANDOM_H
#define NUMAFIT_TEST_REPORT_RANDOM_H

#include <numafit/cpus.h>
#include <numafit/engine.h>
#include <numafit/leases.h>
#include <numafit/report.h>

#include "core_random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Random machines, with sparse ids, nodes without CPUs or memory, huge pages here and there, and
 * containers that come and go on them. Both managers are static. */

enum { RANDOM_CONTAINERS = 24 };

struct random_node {
	struct random r;
	struct topo *t;
	struct settings s;
	struct engine *g;
	struct report_facts facts;
	unsigned threads; /* of a core */
	unsigned next_id;
	char id[RANDOM_CONTAINERS][16]; /* of containers that run; "": none */
};

static inline int forget_record(void *ctx, const struct record *r, struct err *e)
{
	(void)ctx, (void)r, (void)e;
	return 0;
}

static inline struct topo *random_topo(struct random *r, unsigned threads)
{
	static const uint8_t steps[] = {11, 12, 20, 21, 32};
	unsigned nr = 1 + random_below(r, 6), nr_cpus = 0, id = 0;
	bool huge = random_chance(r, 60);
	struct topo *t = malloc(sizeof *t);

	topo_init(t, "random");
	for (unsigned n = 0; n < nr; n++, id += 1 + (random_chance(r, 20) ? 7 : 0))
		(void)topo_add_node(t, id, NULL);
	for (unsigned n = 0; n < nr; n++) {
		unsigned cores = n && random_chance(r, 15) ? 0 : 1 + random_below(r, 6);

		for (unsigned c = 0; c < cores; c++)
			for (unsigned i = 0; i < threads; i++, nr_cpus++)
				(void)topo_add_cpu(
					t, nr_cpus, n, nr_cpus - i, n, nr_cpus - i, NULL);
		if (n && random_chance(r, 10))
			continue;
		(void)topo_set_memory(t, n, 0, (uint64_t)(8 + random_below(r, 56)) << 30, NULL);
		if (huge && random_chance(r, 70))
			(void)topo_set_memory(
				t, n, 1 << 30, (uint64_t)random_below(r, 6) << 30, NULL);
	}
	for (unsigned n = 0; n < nr; n++)
		for (unsigned m = 0; m < nr; m++)
			(void)topo_set_distance(
				t, n, m, n == m ? 10 : steps[random_below(r, 5)], NULL);
	if (topo_seal(t, NULL))
		abort();
	return t;
}

static inline struct settings random_settings(struct random *r, const struct topo *t)
{
	struct settings s = {
		.mode = MODE_MANAGE,
		.topology_policy = POLICY_BEST_EFFORT,
		.cpu_manager_policy = MANAGER_STATIC,
		.memory_manager_policy = MANAGER_STATIC,
		.shared_pool_minimum = random_below(r, 5),
		.shared_pool_step = random_below(r, 5),
		.device_plugin = random_chance(r, 50),
		.nrt_fingerprint = PODS_FINGERPRINT_EXCLUSIVE,
		.nrt_placement = true,
		.cpu_options.full_pcpus_only = random_chance(r, 40),
	};

	cpuset_add(&s.reserved_cpus, random_below(r, t->nr_cpus));
	if (random_chance(r, 50))
		cpuset_add(&s.reserved_cpus, random_below(r, t->nr_cpus));
	if (s.cpu_options.full_pcpus_only) /* else the kubelet gives what is left of such a core */
		s.reserved_cpus = cpus_whole_cores(t, &s.reserved_cpus);
	s.cpu_options.strict_cpu_reservation =
		cpuset_count(&s.reserved_cpus) < t->nr_cpus && random_chance(r, 30);
	return s;
}

static inline struct random_node *random_node_new(unsigned seed)
{
	struct random_node *w = calloc(1, sizeof *w);
	const struct engine_hooks hooks = {.ctx = w, .record = forget_record};

	w->r = (struct random){.state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1};
	w->threads = 1 + random_below(&w->r, 2);
	w->t = random_topo(&w->r, w->threads);
	w->s = random_settings(&w->r, w->t);
	w->facts = (struct report_facts){.node_name = "n", .node_uid = "u", .generation = seed};
	w->g = engine_new(w->t, &w->s, &hooks);
	return w;
}

static inline void random_node_free(struct random_node *w)
{
	engine_free(w->g);
	free(w->t);
	free(w);
}

/* Whole cores where nobody gets less; memory of some kinds. */
static inline void any_request(
	struct random_node *w, const char *id, enum qos qos, struct request *out)
{
	unsigned step = w->s.cpu_options.full_pcpus_only ? w->threads : 1;

	*out = (struct request){
		.container_id = id,
		.ask.name = "main",
		.pod = {.sandbox_id = id, .uid = id, .ns = "default", .name = id, .qos = qos},
		.ask.cpu_milli = 1000 * step * (1 + random_below(&w->r, 10 / step)),
		.cpus = "",
		.mems = "",
	};
	out->ask.memory[out->ask.nr_memory++] =
		(struct memory_ask){0, (uint64_t)(1 + random_below(&w->r, 60)) << 30};
	if (w->t->nr_kinds > 1 && random_chance(&w->r, 40))
		out->ask.memory[out->ask.nr_memory++] = (struct memory_ask){
			w->t->page_bytes[1], (uint64_t)(1 + random_below(&w->r, 5)) << 30};
}

static inline void some_tokens_go(struct random_node *w)
{
	unsigned node = random_below(&w->r, w->t->ids.nr), nr = 1 + random_below(&w->r, 2);
	static char annotation[LEASE_TEXT_MAX];
	struct tokenset tokens = {0};

	nr *= w->s.cpu_options.full_pcpus_only ? w->threads : 1;
	for (unsigned i = 0; i < nr && i < tokens_on(w->t, &w->s, node); i++)
		tokenset_add(&tokens, (struct token){(uint16_t)node, (uint16_t)i});
	if (tokenset_count(&tokens) == nr)
		(void)engine_allocate(w->g, 1, &tokens, annotation, NULL);
}

static inline void random_node_event(struct random_node *w)
{
	char *id = w->id[random_below(&w->r, RANDOM_CONTAINERS)];
	struct update_list ups = {0};
	struct decision d;
	struct request req;

	if (w->s.device_plugin && random_chance(&w->r, 10)) {
		some_tokens_go(w);
		return;
	}
	if (*id) {
		engine_release(w->g, 1, "stop", id, &ups);
		*id = '\0';
	} else {
		(void)snprintf(id, sizeof w->id[0], "c%u", w->next_id++);
		any_request(w, id, random_chance(&w->r, 80) ? QOS_GUARANTEED : QOS_BURSTABLE, &req);
		if (req.pod.qos != QOS_GUARANTEED)
			req.ask.nr_memory = 0;
		engine_create(w->g, 1, &req, &d, &ups);
		if (!d.admit)
			*id = '\0';
	}
	vec_fini(&ups);
}

#endif
