#include <sched/volcano_take.h>

/* takeByTopology() of provider/cpumanager/cpu_assignment.go, its mistakes included: step by step,
 * whole sockets, whole cores, single CPUs. */

enum by { BY_SOCKET, BY_CORE };

struct taking {
	const struct volcano_node *n;
	struct cpuset free, taken;
	long missing;
	long per_socket, per_core;
};

/* Ids of sockets or cores, with what they are ordered by. */
enum { KEY_PARTS = 5 };
struct key {
	unsigned id;
	long part[KEY_PARTS];
};
struct ids {
	unsigned nr;
	struct key at[CPUSET_BITS];
};

/* Enter an id that is not there yet; they ascend. */
static void ids_enter(struct ids *l, unsigned id)
{
	unsigned at = l->nr;

	for (unsigned i = 0; i < l->nr; i++)
		if (l->at[i].id == id)
			return;
	for (; at > 0 && l->at[at - 1].id > id; at--)
		l->at[at] = l->at[at - 1];
	l->at[at] = (struct key){.id = id};
	l->nr++;
}

static struct cpuset cpus_with_id(const struct taking *t, enum by by, unsigned id)
{
	struct cpuset set = {0};

	for (unsigned i = 0; i < t->n->nr_cpus; i++) {
		const struct volcano_cpu *c = &t->n->cpu[i];

		if ((by == BY_SOCKET ? c->socket : c->core) == id)
			cpuset_add(&set, c->cpu);
	}
	return set;
}

static long count_of(const struct taking *t, enum by by, unsigned id, const struct cpuset *among)
{
	struct cpuset set = cpus_with_id(t, by, id);

	return cpuset_count_and(&set, among);
}

static void taking_add(struct taking *t, const struct cpuset *cpus)
{
	t->taken = cpuset_or(t->taken, cpus);
	t->free = cpuset_minus(t->free, cpus);
	t->missing -= cpuset_count(cpus);
}

/* Take all free CPUs of each while a whole one's worth is missing. Returns whether that was all. */
static bool taking_add_whole(struct taking *t, const struct ids *l, enum by by, long whole)
{
	for (unsigned i = 0; i < l->nr && t->missing >= whole; i++) {
		struct cpuset cpus = cpus_with_id(t, by, l->at[i].id);

		cpus = cpuset_and(cpus, &t->free);
		taking_add(t, &cpus);
		if (t->missing < 1)
			return true;
	}
	return false;
}

/* freeSockets(): sockets with a free CPU that are also the id of a free CPU. Never mind why. */
static void free_sockets(const struct taking *t, struct ids *out)
{
	out->nr = 0;
	for (unsigned i = 0; i < t->n->nr_cpus; i++) {
		const struct volcano_cpu *c = &t->n->cpu[i];

		if (cpuset_has(&t->free, c->cpu) && cpuset_has(&t->free, c->socket))
			ids_enter(out, c->socket);
	}
}

/* The cores of a socket that freeCores() calls free: with a free CPU, and also the id of one. */
static void free_cores_of(const struct taking *t, unsigned socket, struct ids *out)
{
	out->nr = 0;
	for (unsigned i = 0; i < t->n->nr_cpus; i++) {
		const struct volcano_cpu *c = &t->n->cpu[i];

		if (c->socket == socket && cpuset_has(&t->free, c->cpu) &&
			cpuset_has(&t->free, c->core))
			ids_enter(out, c->core);
	}
}

/* What the released code takes for an order: any part smaller. Since it is none, the way of sorting
 * matters: insertion, as Go sorts up to 12 elements; what it makes of more is not repeated here. */
static bool key_is_less(const struct key *a, const struct key *b)
{
	for (unsigned i = 0; i < KEY_PARTS; i++)
		if (a->part[i] < b->part[i])
			return true;
	return false;
}

static void ids_sort(struct ids *l)
{
	for (unsigned i = 1; i < l->nr; i++)
		for (unsigned j = i; j > 0 && key_is_less(&l->at[j], &l->at[j - 1]); j--) {
			struct key k = l->at[j];

			l->at[j] = l->at[j - 1];
			l->at[j - 1] = k;
		}
}

static void free_cores(const struct taking *t, struct ids *out)
{
	struct ids sockets, cores;

	sockets.nr = 0;
	for (unsigned i = 0; i < t->n->nr_cpus; i++)
		if (cpuset_has(&t->free, t->n->cpu[i].cpu))
			ids_enter(&sockets, t->n->cpu[i].socket);
	for (unsigned i = 0; i < sockets.nr; i++) {
		free_cores_of(t, sockets.at[i].id, &cores);
		sockets.at[i].part[0] = cores.nr;
		sockets.at[i].part[1] = sockets.at[i].id;
	}
	ids_sort(&sockets);
	out->nr = 0;
	for (unsigned i = 0; i < sockets.nr; i++) {
		free_cores_of(t, sockets.at[i].id, &cores);
		for (unsigned j = 0; j < cores.nr && out->nr < CPUSET_BITS; j++)
			out->at[out->nr++] = cores.at[j];
	}
}

/* The socket of the lowest CPU with that core id, on whichever socket it is. */
static unsigned socket_of_core(const struct taking *t, unsigned core)
{
	for (unsigned i = 0; i < t->n->nr_cpus; i++)
		if (t->n->cpu[i].core == core)
			return t->n->cpu[i].socket;
	return 0;
}

/* The order in which freeCPUs() lists cores: where CPUs have been taken already, on sockets and
 * cores with little left. */
static void cores_for_single_cpus(const struct taking *t, struct ids *out)
{
	out->nr = 0;
	for (unsigned i = 0; i < t->n->nr_cpus; i++)
		if (cpuset_has(&t->free, t->n->cpu[i].cpu))
			ids_enter(out, t->n->cpu[i].core);
	for (unsigned i = 0; i < out->nr; i++) {
		struct key *k = &out->at[i];
		unsigned socket = socket_of_core(t, k->id);

		k->part[0] = -count_of(t, BY_SOCKET, socket, &t->taken);
		k->part[1] = count_of(t, BY_SOCKET, socket, &t->free);
		k->part[2] = count_of(t, BY_CORE, k->id, &t->free);
		k->part[3] = socket;
		k->part[4] = k->id;
	}
	ids_sort(out);
}

static void take_single_cpus(struct taking *t)
{
	struct ids cores;

	cores_for_single_cpus(t, &cores);
	for (unsigned i = 0; i < cores.nr; i++) {
		struct cpuset cpus = cpus_with_id(t, BY_CORE, cores.at[i].id);

		cpus = cpuset_and(cpus, &t->free);
		cpuset_each (cpu, &cpus) {
			struct cpuset one = {0};

			if (t->missing < 1)
				return;
			cpuset_add(&one, cpu);
			taking_add(t, &one);
		}
	}
}

/* CPUs to a whole socket and to a whole core: the mean, of which some have more. */
static void measure_means(struct taking *t)
{
	struct ids sockets, of_socket;
	long cores = 0;

	sockets.nr = 0;
	for (unsigned i = 0; i < t->n->nr_cpus; i++)
		ids_enter(&sockets, t->n->cpu[i].socket);
	for (unsigned s = 0; s < sockets.nr; s++) {
		of_socket.nr = 0;
		for (unsigned i = 0; i < t->n->nr_cpus; i++)
			if (t->n->cpu[i].socket == sockets.at[s].id)
				ids_enter(&of_socket, t->n->cpu[i].core);
		cores += of_socket.nr;
	}
	t->per_socket = sockets.nr ? (long)(t->n->nr_cpus / sockets.nr) : 0;
	t->per_core = cores ? (long)t->n->nr_cpus / cores : 0;
}

static void take_by_topology(struct taking *t)
{
	struct ids l;

	measure_means(t);
	if (t->missing >= t->per_socket) {
		free_sockets(t, &l);
		if (taking_add_whole(t, &l, BY_SOCKET, t->per_socket))
			return;
	}
	if (t->missing >= t->per_core) {
		free_cores(t, &l);
		if (taking_add_whole(t, &l, BY_CORE, t->per_core))
			return;
	}
	take_single_cpus(t);
}

bool volcano_take(
	const struct volcano_node *n, const struct cpuset *free, long want, struct cpuset *out)
{
	struct taking t = {.n = n, .missing = want};
	struct cpuset known = {0};

	*out = (struct cpuset){0};
	for (unsigned i = 0; i < n->nr_cpus; i++)
		cpuset_add(&known, n->cpu[i].cpu);
	t.free = cpuset_and(*free, &known);
	if (want < 1)
		return true;
	if (want > (long)cpuset_count(&t.free))
		return false;
	take_by_topology(&t);
	if (t.missing > 0)
		return false;
	*out = t.taken;
	return true;
}
