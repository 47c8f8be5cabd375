#include <numafit-sim/report.h>

#include <numafit/mem.h>
#include <picture/blocks.h>
#include <string.h>
#include <numafit/text.h>

enum { SYMBOL_IDLE = '_', SYMBOL_POOL = '.', SYMBOL_RESERVED = '#', SYMBOL_MORE = '*' };
static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/* The node's CPUs and memory as they are drawn. */
struct scene {
	const struct sim_node *node;
	const struct topo *topo;
	char symbol[CPUSET_BITS];
	double alone[NODES_MAX],
		together[NODES_MAX]; /* bytes pinned to the node; with other nodes */
	unsigned nr_exclusive, nr_shared;
	struct cpuset pool; /* of the shared ones, reserved CPUs included */
};

static bool container_runs(const struct container *c)
{
	return c->state == CONTAINER_RUNNING;
}

static char letter_of(unsigned nr)
{
	return nr < sizeof letters - 1 ? letters[nr] : SYMBOL_MORE;
}

static void mark_symbol(struct scene *s, const struct cpuset *cpus, char symbol)
{
	cpuset_each (cpu, cpus)
		s->symbol[cpu] = symbol;
}

static void mark_cpus(struct scene *s)
{
	memset(s->symbol, SYMBOL_IDLE, sizeof s->symbol);
	for (size_t i = 0; i < s->node->nr; i++)
		if (container_runs(s->node->at[i]) && !container_exclusive(s->node->at[i])) {
			s->pool = cpuset_or(s->pool, &s->node->at[i]->now.cpus);
			s->nr_shared++;
		}
	mark_symbol(s, &s->pool, SYMBOL_POOL);
	mark_symbol(s, &s->node->reserved, SYMBOL_RESERVED);
	for (size_t i = 0; i < s->node->nr; i++)
		if (container_runs(s->node->at[i]) && container_exclusive(s->node->at[i]))
			mark_symbol(s, &s->node->at[i]->now.cpus, letter_of(s->nr_exclusive++));
}

/* A runtime knows what a container may use and where, not which bytes lie where: what is pinned
 * to several nodes is drawn as an even share on each. */
static void add_pinned_memory(struct scene *s, const struct container *c)
{
	double bytes = (double)c->asked.memory_bytes;

	for (unsigned i = 0; i < c->asked.nr_hugepages; i++)
		bytes += (double)c->asked.hugepages[i].bytes;
	nodeset_each (node, c->now.mems) {
		if (nodeset_count(c->now.mems) == 1)
			s->alone[node] += bytes;
		else
			s->together[node] += bytes / nodeset_count(c->now.mems);
	}
}

/* What is asked for on the node, of all its memory. */
static void fill_memory(struct block_node *n, const struct scene *s, unsigned node)
{
	double total = (double)s->topo->node[node].memory[0];

	n->has_memory = total > 0;
	if (!n->has_memory)
		return;
	n->alone = s->alone[node] / total;
	n->together = s->together[node] / total;
}

static struct cpuset *fill_cpus(struct block_node *n, const struct scene *s, unsigned node)
{
	unsigned left = cpuset_count(&s->topo->node[node].cpus);
	struct cpuset *threads = xcalloc(left + 1, sizeof *threads);

	for (; left; left -= cpuset_count(&threads[n->nr_threads++]))
		threads[n->nr_threads] = topo_threads_of(s->topo, node, (unsigned)n->nr_threads);
	n->threads = threads;
	n->sockets = topo_sockets_of(s->topo, &s->topo->node[node].cpus);
	return threads;
}

static void draw_blocks(FILE *out, const struct scene *s)
{
	struct block_node nodes[NODES_MAX] = {0};
	struct cpuset *threads[NODES_MAX];
	unsigned nr = s->topo->ids.nr;

	for (unsigned i = 0; i < nr; i++) {
		nodes[i].id = s->topo->ids.id[i];
		threads[i] = fill_cpus(&nodes[i], s, i);
		fill_memory(&nodes[i], s, i);
	}
	blocks_draw(out, &(struct blocks){nodes, nr, s->symbol, PICTURE_WIDTH});
	for (unsigned i = 0; i < nr; i++)
		free(threads[i]);
}

static void draw_letters(FILE *out, const struct scene *s)
{
	enum { WHERE_WIDTH = 9 };
	char cpus[CPUSET_TEXT_MAX], nodes[NODESET_TEXT_MAX], name[2 * SIM_NAME_MAX];
	char where[NODESET_TEXT_MAX + WHERE_WIDTH];
	unsigned nr = 0;
	int gap = 0; /* to the right one of two */

	for (size_t i = 0; i < s->node->nr; i++) {
		const struct container *c = s->node->at[i];

		if (!container_runs(c) || !container_exclusive(c))
			continue;
		bool right = nr % 2;

		struct nodeset on = topo_nodes_of(s->topo, &c->now.cpus);

		snprintf(name, sizeof name, "%s/%s", c->pod, c->name);
		snprintf(where, sizeof where, "node%s %s", text_plural(nodeset_count(on)),
			nodeset_format(on, &s->topo->ids, nodes, sizeof nodes));
		fprintf(out, "%*s%c %-22s %-14s %s%s", gap, "", letter_of(nr), name,
			cpuset_format(&c->now.cpus, cpus, sizeof cpus), where, right ? "\n" : "");
		gap = right ? 0 : WHERE_WIDTH + 1 - (int)strlen(where);
		nr++;
	}
	if (nr % 2)
		fputc('\n', out);
}

static unsigned count_symbol(const struct scene *s, char symbol)
{
	unsigned nr = 0;

	cpuset_each (cpu, &s->topo->cpus)
		nr += s->symbol[cpu] == symbol;
	return nr;
}

static void draw_legend(FILE *out, const struct scene *s)
{
	draw_letters(out, s);
	fprintf(out, "%c shared: %u CPU%s for %u container%s   ", SYMBOL_POOL,
		cpuset_count(&s->pool), text_plural(cpuset_count(&s->pool)), s->nr_shared,
		text_plural(s->nr_shared));
	if (!cpuset_empty(&s->node->reserved))
		fprintf(out, "%c reserved: %u   ", SYMBOL_RESERVED,
			count_symbol(s, SYMBOL_RESERVED));
	fprintf(out, "%c in no cpuset: %u\n", SYMBOL_IDLE, count_symbol(s, SYMBOL_IDLE));
	fprintf(out,
		"mem: asked for = on this node alone, ~ on several nodes, drawn in even parts\n");
}

void picture_draw(FILE *out, const struct sim_node *n)
{
	struct scene s = {.node = n, .topo = n->topo};

	mark_cpus(&s);
	for (size_t i = 0; i < n->nr; i++)
		if (container_runs(n->at[i]) && n->at[i]->now.mems_pinned &&
			n->at[i]->asked.qos == QOS_GUARANTEED)
			add_pinned_memory(&s, n->at[i]);
	draw_blocks(out, &s);
	draw_legend(out, &s);
}
