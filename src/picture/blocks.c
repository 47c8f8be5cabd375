#include <picture/blocks.h>

#include <numafit/mem.h>
#include <numafit/text.h>
#include <numafit/vec.h>
#include <string.h>

enum {
	PER_ROW_MAX = 32,
	SPACED_MAX = 8,
	BAR_WIDTH = 8,
	PERCENT = 100,
	FRAME = 4,
	CELL_MAX = 160 /* bytes of a line within a block */
};

/* How wide things are, which is the same for all nodes. */
struct measure {
	int label;   /* a CPU's id */
	int per_row; /* CPUs in a row at most */
	bool spaced; /* a blank between two CPUs */
	int inside;  /* a block's frame */
};

static struct measure measure_blocks(const struct blocks *b)
{
	struct measure m = {0};
	int memory = (int)strlen("mem  100%") + BAR_WIDTH;
	unsigned last = 0;

	for (const struct block_node *n = b->nodes; n < b->nodes + b->nr; n++)
		for (size_t i = 0; i < n->nr_threads; i++) {
			int nr = (int)cpuset_count(&n->threads[i]);

			m.per_row = nr > m.per_row ? nr : m.per_row;
			cpuset_each (cpu, &n->threads[i])
				last = cpu > last ? cpu : last;
		}
	m.label = snprintf(NULL, 0, "%u", last);
	m.per_row = m.per_row < PER_ROW_MAX ? m.per_row : PER_ROW_MAX;
	m.spaced = m.per_row <= SPACED_MAX;
	m.inside = m.label + 1 + m.per_row + (m.spaced ? m.per_row - 1 : 0);
	m.inside = m.inside > memory ? m.inside : memory;
	return m;
}

/* The lines inside a block's frame. */
struct block {
	VEC(struct { char text[CELL_MAX]; });
};

static void add_cpu_row(struct block *to, const struct blocks *b, const struct measure *m,
	const struct cpuset *cpus)
{
	struct text t = {0};
	int in_row = 0;

	cpuset_each (cpu, cpus) {
		if (in_row == 0) {
			text_init(&t, vec_push(to)->text, CELL_MAX);
			text_add(&t, "%*u", m->label, cpu);
		}
		text_add(&t, "%s%c", in_row == 0 || m->spaced ? " " : "", b->symbol[cpu]);
		in_row = (in_row + 1) % m->per_row;
	}
}

/* "===~~...": how much of the node's memory is asked for. */
static const char *memory_bar(const struct block_node *n, char bar[BAR_WIDTH + 1])
{
	for (int i = 0; i < BAR_WIDTH; i++) {
		double at = (i + 1.0 / 2) / BAR_WIDTH;

		bar[i] = at < n->alone ? '=' : at < n->alone + n->together ? '~' : '.';
	}
	bar[BAR_WIDTH] = '\0';
	return bar;
}

static void fill_block(struct block *to, const struct blocks *b, const struct measure *m,
	const struct block_node *n)
{
	char bar[BAR_WIDTH + 1];

	for (size_t i = 0; i < n->nr_threads; i++)
		add_cpu_row(to, b, m, &n->threads[i]);
	if (n->has_memory)
		(void)snprintf(vec_push(to)->text, CELL_MAX, "mem %s %3.0f%%", memory_bar(n, bar),
			(n->alone + n->together) * PERCENT);
}

static void draw_frame(FILE *out, const struct measure *m, const char *title, const char *after)
{
	static const char dashes[] =
		"----------------------------------------------------------------"
		"----------------------------------------------------------------";
	int rest = m->inside + 1 - (int)strlen(title);

	(void)fprintf(out, "+-%s%.*s+%s", title, rest > 0 ? rest : 0, dashes, after);
}

/* Blocks side by side. */
static void draw_row(FILE *out, const struct measure *m, const struct block *block,
	const struct block_node *const *n, size_t nr)
{
	char title[TEXT_SIZE_MAX];
	size_t lines = 0;

	for (size_t i = 0; i < nr; i++) {
		(void)snprintf(title, sizeof title, " node %u ", n[i]->id);
		draw_frame(out, m, title, i + 1 < nr ? " " : "\n");
		lines = block[i].nr > lines ? block[i].nr : lines;
	}
	for (size_t l = 0; l < lines; l++)
		for (size_t i = 0; i < nr; i++)
			(void)fprintf(out, "| %-*s |%s", m->inside,
				l < block[i].nr ? block[i].at[l].text : "",
				i + 1 < nr ? " " : "\n");
	for (size_t i = 0; i < nr; i++)
		draw_frame(out, m, "", i + 1 < nr ? " " : "\n");
}

/* A group of NUMA nodes, as many in a line as fit. */
static void draw_group(FILE *out, const struct blocks *b, const struct measure *m,
	const struct block_node *const *n, size_t nr)
{
	auto_free struct block *block = xcalloc(nr, sizeof *block);
	int fit = (b->columns + 1) / (m->inside + FRAME + 1);
	size_t step = fit > 1 ? (size_t)fit : 1;

	for (size_t i = 0; i < nr; i++)
		fill_block(&block[i], b, m, n[i]);
	for (size_t at = 0; at < nr; at += step)
		draw_row(out, m, block + at, n + at, nr - at < step ? nr - at : step);
	for (size_t i = 0; i < nr; i++)
		vec_fini(&block[i]);
}

static bool is_in_group(const struct block_node *n, const struct block_node *of)
{
	return !n->nr_threads == !of->nr_threads && cpuset_equal(&n->sockets, &of->sockets);
}

/* Those that have CPUs come first. */
static void draw_groups(FILE *out, const struct blocks *b, const struct measure *m, bool with_cpus)
{
	auto_free const struct block_node **group = xcalloc(b->nr + 1, sizeof *group);
	auto_free bool *drawn = xcalloc(b->nr + 1, sizeof *drawn);
	char list[CPUSET_TEXT_MAX];

	for (size_t i = 0; i < b->nr; i++) {
		size_t nr = 0;

		if (drawn[i] || !b->nodes[i].nr_threads == with_cpus)
			continue;
		for (size_t k = i; k < b->nr; k++)
			if (!drawn[k] && is_in_group(&b->nodes[k], &b->nodes[i])) {
				group[nr++] = &b->nodes[k];
				drawn[k] = true;
			}
		if (with_cpus)
			(void)fprintf(out, "socket%s %s\n",
				text_plural(cpuset_count(&b->nodes[i].sockets)),
				cpuset_format(&b->nodes[i].sockets, list, sizeof list));
		else
			(void)fprintf(out, "without CPUs\n");
		draw_group(out, b, m, group, nr);
	}
}

void blocks_draw(FILE *out, const struct blocks *b)
{
	const struct measure m = measure_blocks(b);

	draw_groups(out, b, &m, true);
	draw_groups(out, b, &m, false);
}

/* "node  7 aaaabb.. aaaabb..  62%" */
static int line_of_node(char *buf, size_t cap, const struct blocks *b, const struct block_node *n)
{
	struct text t;

	text_init(&t, buf, cap);
	text_add(&t, "node %2u", n->id);
	for (size_t i = 0; i < n->nr_threads; i++) {
		text_add(&t, " ");
		cpuset_each (cpu, &n->threads[i])
			text_add(&t, "%c", b->symbol[cpu]);
	}
	if (n->has_memory)
		text_add(&t, " mem %3.0f%%", (n->alone + n->together) * PERCENT);
	return (int)t.len;
}

void blocks_draw_lines(FILE *out, const struct blocks *b)
{
	enum { GAP = 3 };
	char line[2 * CPUSET_BITS];
	int width = 0;

	for (size_t i = 0; i < b->nr; i++) {
		int len = line_of_node(line, sizeof line, b, &b->nodes[i]);

		width = len > width ? len : width;
	}
	size_t fit = (size_t)(b->columns + GAP) / (size_t)(width + GAP), in_row = fit ? fit : 1;
	size_t rows = (b->nr + in_row - 1) / in_row;
	for (size_t r = 0; r < rows; r++) {
		for (size_t i = r; i < b->nr; i += rows) {
			int len = line_of_node(line, sizeof line, b, &b->nodes[i]);

			(void)fprintf(
				out, "%s%*s", line, i + rows < b->nr ? width + GAP - len : 0, "");
		}
		(void)putc('\n', out);
	}
}
