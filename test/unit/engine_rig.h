#ifndef ENGINE_RIG_H
#define ENGINE_RIG_H

#include <numafit/engine.h>

#include "core_machine.h"
#include "core_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* A node whose events are checked from outside, for test_engine.c and test_engine_adopt.c. */

enum { RUNNING_MAX = 64, ROUNDS = 4000, ID_MAX = 16 };

/* What a runtime knows of its containers: the cpuset that each of them runs with. */
struct running {
	char id[ID_MAX], name[ID_MAX];
	struct request req;
	char cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX];
	struct placement placed;
};

struct node {
	struct topo *t;
	struct settings s;
	struct engine *g, *folded;
	struct running run[RUNNING_MAX];
	unsigned nr, next_id;
	bool failing; /* the record hook refuses */
	unsigned updates;
};

static int fold(void *ctx, const struct record *r, struct err *e)
{
	struct node *n = ctx;

	if (n->failing)
		return err_set(e, 28, "journal: no space left on device");
	return engine_replay(n->folded, r, e);
}

static struct node *node_on(struct topo *t, enum topology_policy policy, unsigned step)
{
	struct node *n = calloc(1, sizeof *n);
	const struct engine_hooks hooks = {.ctx = n, .record = fold};

	n->t = t;
	n->s = settings_of(policy);
	n->s.shared_pool_step = step;
	(void)cpuset_parse(&n->s.reserved_cpus, "0,32", 4, NULL);
	n->g = engine_new(n->t, &n->s, &hooks);
	n->folded = engine_new(n->t, &n->s, &hooks);
	return n;
}

static struct node *node_new(enum topology_policy policy, unsigned step)
{
	return node_on(machine_of_eight(), policy, step);
}

static void node_free(struct node *n)
{
	engine_free(n->g);
	engine_free(n->folded);
	free(n->t);
	free(n);
}

static struct running *find(struct node *n, const char *id)
{
	for (unsigned i = 0; i < n->nr; i++)
		if (strcmp(n->run[i].id, id) == 0)
			return &n->run[i];
	return NULL;
}

static void set_cpuset(
	struct node *n, struct running *r, const struct cpuset *cpus, struct nodeset mems)
{
	(void)cpuset_format(cpus, r->cpus, sizeof r->cpus);
	(void)nodeset_format(mems, &n->t->ids, r->mems, sizeof r->mems);
}

static void apply(struct node *n, struct update_list *ups)
{
	for (size_t i = 0; i < ups->nr; i++) {
		struct running *r = find(n, ups->at[i].container_id);

		for (size_t j = 0; j < i;
			j++) /* one update for each container: NRI refuses a second one */
			assert_string_not_equal(ups->at[i].container_id, ups->at[j].container_id);
		if (r)
			set_cpuset(n, r, &ups->at[i].cpus, ups->at[i].mems);
	}
	n->updates += (unsigned)ups->nr;
	vec_fini(ups);
}

static struct cpuset cpus_in_force(const struct running *r)
{
	struct cpuset cpus;

	assert_int_equal(cpuset_parse(&cpus, r->cpus, strlen(r->cpus), NULL), 0);
	return cpus;
}

/* Nobody runs on a CPU that another one has to itself: seen from outside, by what is in force. */
static void check(struct node *n)
{
	struct err e;

	if (ledger_check(engine_ledger(n->g), &e) || ledger_check(engine_ledger(n->folded), &e))
		fail_msg("%s", e.text);
	for (unsigned i = 0; i < n->nr; i++)
		for (unsigned j = 0; j < n->nr; j++) {
			struct cpuset mine = cpus_in_force(&n->run[i]),
				      other = cpus_in_force(&n->run[j]);

			if (i != j && n->run[i].placed.exclusive &&
				cpuset_intersects(&mine, &other))
				fail_msg("%s (%s) and %s (%s) share a CPU", n->run[i].id,
					n->run[i].cpus, n->run[j].id, n->run[j].cpus);
		}
}

static inline struct decision create(
	struct node *n, const char *pod, enum qos qos, unsigned milli, uint64_t memory)
{
	struct running *r = &n->run[n->nr];
	struct update_list ups = {0};
	struct decision d;

	assert_true(n->nr < RUNNING_MAX);
	(void)snprintf(r->id, sizeof r->id, "c%u", n->next_id++);
	(void)snprintf(r->name, sizeof r->name, "%s", pod);
	r->req = ask(r->id, qos, milli, memory);
	r->req.pod.uid = r->req.pod.name = r->req.pod.sandbox_id = r->name;
	r->req.cpus = r->cpus;
	r->req.mems = r->mems;
	r->req.created_at_ns = n->next_id;
	r->cpus[0] = r->mems[0] = '\0';
	engine_create(n->g, 0, &r->req, &d, &ups);
	apply(n, &ups);
	if (d.admit) {
		set_cpuset(n, r, &d.cpus, d.mems);
		r->placed = (struct placement){.exclusive = d.exclusive,
			.preferred = d.preferred,
			.policy = d.policy,
			.cpus = d.cpus,
			.mems = d.mems,
			.nodes = d.nodes,
			.has_nodes = d.has_affinity};
		n->nr++;
	}
	return d;
}

static inline void synchronize(struct node *n)
{
	struct request list[RUNNING_MAX];
	const struct placement *placed[RUNNING_MAX];
	struct update_list ups = {0};

	for (unsigned i = 0; i < n->nr; i++) {
		list[i] = n->run[i].req;
		placed[i] = &n->run[i].placed;
	}
	engine_synchronize(n->g, 0,
		&(const struct inventory){.requests = list, .placed = placed, .nr = n->nr}, &ups);
	apply(n, &ups);
}

#endif
