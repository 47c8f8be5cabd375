#include <numafit-sim/report.h>

#include <numafit/text.h>
#include <string.h>

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
	int label_width;    /* of a CPU id */
	int per_row;        /* CPUs in a row at most */
	bool spaced;        /* a blank between two CPUs */
	int width;          /* inside a block's frame */
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

/* The node's CPUs that are the thread-th of their cores. */
static struct cpuset threads_of_node(const struct topo *t, unsigned node, unsigned thread)
{
	struct cpuset set = {0};

	cpuset_each (cpu, &t->node[node].cpus) {
		unsigned of_core = 0;

		for (unsigned c = t->cpu[cpu].core; c < cpu; c++)
			of_core += cpuset_has(&t->cpus, c) && t->cpu[c].core == t->cpu[cpu].core;
		if (of_core == thread)
			cpuset_add(&set, cpu);
	}
	return set;
}

enum { PER_ROW_MAX = 32, SPACED_MAX = 8, BAR_WIDTH = 8, PERCENT = 100, BLOCK_LINE_MAX = 160 };

static void measure_blocks(struct scene *s)
{
	const struct topo *t = s->topo;
	int memory_width = (int)strlen("mem  100%") + BAR_WIDTH;
	unsigned last = 0;

	cpuset_each (cpu, &t->cpus)
		last = cpu;
	s->label_width = snprintf(NULL, 0, "%u", last);
	nodeset_each (node, t->nodes) {
		struct cpuset first = threads_of_node(t, node, 0);
		int nr = (int)cpuset_count(&first);

		s->per_row = nr > s->per_row ? nr : s->per_row;
	}
	s->per_row = s->per_row < PER_ROW_MAX ? s->per_row : PER_ROW_MAX;
	s->spaced = s->per_row <= SPACED_MAX;
	s->width = s->label_width + 1 + s->per_row + (s->spaced ? s->per_row - 1 : 0);
	s->width = s->width > memory_width ? s->width : memory_width;
}

/* The lines inside a block's frame. */
struct block {
	VEC(struct { char text[BLOCK_LINE_MAX]; });
};

static void add_cpu_row(const struct scene *s, struct block *b, const struct cpuset *cpus)
{
	struct text t = {0};
	int in_row = 0;

	cpuset_each (cpu, cpus) {
		if (in_row == 0) {
			text_init(&t, vec_push(b)->text, BLOCK_LINE_MAX);
			text_add(&t, "%*u", s->label_width, cpu);
		}
		text_add(&t, "%s%c", in_row == 0 || s->spaced ? " " : "", s->symbol[cpu]);
		in_row = (in_row + 1) % s->per_row;
	}
}

/* "mem ===~~... 62%": what is asked for on the node, of all its memory. */
static void add_bar(const struct scene *s, struct block *b, unsigned node)
{
	double total = (double)s->topo->node[node].memory[0];
	double alone = s->alone[node] / total, all = alone + s->together[node] / total;
	char bar[BAR_WIDTH + 1] = "";

	if (total <= 0)
		return;
	for (int i = 0; i < BAR_WIDTH; i++) {
		double at = (i + 1.0 / 2) / BAR_WIDTH;

		bar[i] = at < alone ? '=' : at < all ? '~' : '.';
	}
	snprintf(vec_push(b)->text, BLOCK_LINE_MAX, "mem %s %3.0f%%", bar, all * PERCENT);
}

static void fill_block(const struct scene *s, struct block *b, unsigned node)
{
	unsigned left = cpuset_count(&s->topo->node[node].cpus);

	for (unsigned thread = 0; left; thread++) {
		struct cpuset row = threads_of_node(s->topo, node, thread);

		add_cpu_row(s, b, &row);
		left -= cpuset_count(&row);
	}
	add_bar(s, b, node);
}

static const char dashes[] = "----------------------------------------------------------------"
			     "----------------------------------------------------------------";

static void draw_frame(FILE *out, const struct scene *s, const char *title, const char *after)
{
	int rest = s->width + 1 - (int)strlen(title);

	fprintf(out, "+-%s%.*s+%s", title, rest > 0 ? rest : 0, dashes, after);
}

/* Blocks side by side. */
static void draw_blocks(
	FILE *out, const struct scene *s, struct block *blocks, const unsigned *nodes, unsigned nr)
{
	char title[TEXT_SIZE_MAX];
	size_t lines = 0;

	for (unsigned i = 0; i < nr; i++) {
		snprintf(title, sizeof title, " node %u ", s->topo->ids.id[nodes[i]]);
		draw_frame(out, s, title, i + 1 < nr ? " " : "\n");
		lines = blocks[i].nr > lines ? blocks[i].nr : lines;
	}
	for (size_t l = 0; l < lines; l++)
		for (unsigned i = 0; i < nr; i++)
			fprintf(out, "| %-*s |%s", s->width,
				l < blocks[i].nr ? blocks[i].at[l].text : "",
				i + 1 < nr ? " " : "\n");
	for (unsigned i = 0; i < nr; i++)
		draw_frame(out, s, "", i + 1 < nr ? " " : "\n");
}

/* The NUMA nodes of a socket, or of none, as many in a line as fit. */
static void draw_nodes(FILE *out, const struct scene *s, struct nodeset set)
{
	enum { FRAME = 4 };
	int fit = (PICTURE_WIDTH + 1) / (s->width + FRAME + 1);
	struct block blocks[NODES_MAX] = {0};
	unsigned nodes[NODES_MAX], nr = 0;

	nodeset_each (node, set) {
		nodes[nr] = node;
		fill_block(s, &blocks[nr++], node);
	}
	for (unsigned at = 0, step = fit > 1 ? (unsigned)fit : 1; at < nr; at += step)
		draw_blocks(out, s, blocks + at, nodes + at, nr - at < step ? nr - at : step);
	for (unsigned i = 0; i < nr; i++)
		vec_fini(&blocks[i]);
}

static unsigned socket_of(const struct topo *t, unsigned node)
{
	return t->cpu[cpuset_next(&t->node[node].cpus, 0)].socket;
}

static void draw_sockets(FILE *out, const struct scene *s)
{
	struct nodeset left = s->topo->nodes_with_cpus;

	while (!nodeset_empty(left)) {
		unsigned socket = socket_of(s->topo, nodeset_next(left, 0));
		struct nodeset here = {0};

		nodeset_each (node, left)
			if (socket_of(s->topo, node) == socket)
				here = nodeset_or(here, nodeset_of(node));
		fprintf(out, "socket %u\n", socket);
		draw_nodes(out, s, here);
		left = nodeset_minus(left, here);
	}
	struct nodeset memory_only = nodeset_minus(s->topo->nodes, s->topo->nodes_with_cpus);

	if (!nodeset_empty(memory_only)) {
		fprintf(out, "without CPUs\n");
		draw_nodes(out, s, memory_only);
	}
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
		snprintf(where, sizeof where, "node%s %s", nodeset_count(on) == 1 ? "" : "s",
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
	fprintf(out, "%c shared: %u CPUs for %u container%s   ", SYMBOL_POOL,
		cpuset_count(&s->pool), s->nr_shared, s->nr_shared == 1 ? "" : "s");
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
	measure_blocks(&s);
	draw_sockets(out, &s);
	draw_legend(out, &s);
}
