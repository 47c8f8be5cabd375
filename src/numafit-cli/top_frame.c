#include <numafit-cli/top_frame.h>

#include <limits.h>
#include <numafit-cli/output.h>
#include <numafit-cli/status_view.h>
#include <numafit-cli/table.h>
#include <picture/blocks.h>
#include <stdarg.h>
#include <numafit/text.h>

enum {
	SYMBOL_IDLE = '_',
	SYMBOL_POOL = '.',
	SYMBOL_RESERVED = '#',
	SYMBOL_HELD = '+',
	SYMBOL_MORE = '*'
};
static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/* Below so many lines nothing is said that is not needed. */
enum { ROOMY = 20, TABLE_LEAST = 3, TABLE_PART = 3 };

/* A container as it is listed. */
struct entry {
	const struct status_container *c;
	char symbol;
	bool own; /* its CPUs are not the shared pool's */
	struct cpuset cpus;
	unsigned nr_cpus, first_node;
	char nodes[NODESET_TEXT_MAX]; /* of its own CPUs */
};

struct sketch {
	const struct status *st;
	const struct top_view *v;
	struct frame *f;
	struct entry *entries;
	size_t nr, nr_all; /* entries that are listed; containers */
	char symbol[CPUSET_BITS];
};

/* Lines */

static void frame_put(
	struct frame *f, const struct top_view *v, enum frame_style style, const char *text)
{
	char *line = xstrdup(text);

	for (char *c = line; *c; c++)
		*c = *c < ' ' || *c > '~' ? '?' : *c;
	if (strlen(line) > (size_t)v->columns)
		line[v->columns] = '\0';
	*vec_push(f) = (struct frame_line){line, style};
}

__attribute__((format(printf, 4, 5))) static void frame_add(
	struct frame *f, const struct top_view *v, enum frame_style style, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	int len = vasprintf(&text, fmt, ap);
	va_end(ap);
	frame_put(f, v, style, len < 0 ? "" : text);
	free(len < 0 ? NULL : text);
}

/* Each line of the text. */
static void frame_put_lines(
	struct frame *f, const struct top_view *v, enum frame_style style, char *text)
{
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		frame_put(f, v, style, line);
	}
}

/* The text, broken into lines. */
static void frame_put_text(
	struct frame *f, const struct top_view *v, enum frame_style style, const char *given)
{
	auto_free char *text = xstrdup(given), *broken = NULL;
	size_t len;
	FILE *to = open_memstream(&broken, &len);

	if (!to)
		return;
	print_lines(to, text, v->columns);
	if (!fclose(to))
		frame_put_lines(f, v, style, broken);
}

static bool is_roomy(const struct top_view *v)
{
	return !v->rows || v->rows >= ROOMY;
}

/* Lines that are still to be had. */
static int room_left(const struct sketch *s)
{
	return s->v->rows ? s->v->rows - (int)s->f->nr - s->v->has_keys : INT_MAX;
}

/* The head */

static void add_title(struct frame *f, const struct status *st, const struct top_view *v)
{
	char up[UPTIME_TEXT_MAX];

	if (!st) {
		frame_add(f, v, FRAME_TITLE, "numafit top");
		return;
	}
	frame_add(f, v, FRAME_TITLE, "numafitd %s on %s, up %s; %s, %s; runtime %s: %s",
		st->info.version, st->machine, uptime_text(st->info.uptime_ms, up),
		status_setting(st, "mode"), status_setting(st, "topologyManagerPolicy"),
		*st->info.runtime ? st->info.runtime : "unknown", st->info.connection);
}

/* What an old status says of the runtime is no matter while the daemon is away. */
static void add_warnings(struct frame *f, const struct status *st, const struct top_view *v)
{
	const struct status_pool *pool = st ? st->info.enforcement : NULL;
	const char *const warnings[] = {st ? status_disconnected(st) : NULL,
		st ? st->info.journal : NULL, st ? st->info.journal_writers : NULL,
		pool ? pool->problem : NULL};

	if (v->problem) {
		frame_put_text(f, v, FRAME_WARNING, v->problem);
		frame_put_text(f, v, FRAME_WARNING,
			st ? "It is asked again; what is below was so when it last answered."
			   : "It is asked again.");
		return;
	}
	for (size_t i = 0; i < sizeof warnings / sizeof *warnings; i++)
		if (warnings[i])
			frame_put_text(f, v, FRAME_WARNING, warnings[i]);
}

static void add_notes(struct frame *f, const struct status *st, const struct top_view *v)
{
	char buf[UNUSED_TEXT_MAX];
	struct text t;

	if (!is_roomy(v))
		return;
	for (unsigned i = 0; text_init(&t, buf, sizeof buf), status_unused_cpus(st, i, &t); i++)
		if (t.len)
			frame_put(f, v, FRAME_NOTE, buf);
}

/* The containers */

static int by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return status_compare_names(x->c, y->c);
}

static int larger_first(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

/* Those that have CPUs of their own come first. */
static int by_cpus(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int by = larger_first(x->own ? x->nr_cpus : 0, y->own ? y->nr_cpus : 0);

	by = by ? by : larger_first(x->c->cpu_milli, y->c->cpu_milli);
	return by ? by : by_name(a, b);
}

static int by_memory(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int by = larger_first(x->c->memory + x->c->hugepages, y->c->memory + y->c->hugepages);

	return by ? by : by_name(a, b);
}

static int by_node(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int by = -larger_first(x->first_node, y->first_node);

	return by ? by : by_name(a, b);
}

static const struct {
	const char *name;
	int (*compare)(const void *a, const void *b);
} orders[NR_TOP_ORDERS] = {
	[TOP_BY_NAME] = {"name", by_name},
	[TOP_BY_CPUS] = {"CPUs", by_cpus},
	[TOP_BY_MEMORY] = {"memory", by_memory},
	[TOP_BY_NODE] = {"NUMA node", by_node},
};

/* The NUMA nodes of its CPUs, by their ids. */
static void find_nodes(struct entry *e, const struct status *st)
{
	struct cpuset ids = {0};

	for (const struct status_node *n = st->nodes; n < st->nodes + st->nr_nodes; n++)
		for (size_t i = 0; i < n->nr_threads; i++)
			if (n->id < CPUSET_BITS && cpuset_intersects(&n->threads[i].cpus, &e->cpus))
				cpuset_add(&ids, n->id);
	e->first_node = cpuset_next(&ids, 0);
	(void)cpuset_format(&ids, e->nodes, sizeof e->nodes);
}

static struct entry entry_of(const struct status *st, const struct status_container *c)
{
	struct entry e = {.c = c, .symbol = ' ', .first_node = CPUSET_BITS, .nodes = "-"};

	e.own = (c->exclusive || c->shares_in_pod) && !c->left;
	if (cpuset_parse(&e.cpus, c->cpus, strlen(c->cpus), NULL))
		return e;
	e.nr_cpus = cpuset_count(&e.cpus);
	if (e.own)
		find_nodes(&e, st);
	return e;
}

static void mark(struct sketch *s, const struct cpuset *cpus, char symbol)
{
	cpuset_each (cpu, cpus)
		s->symbol[cpu] = symbol;
}

/* A letter is a container's whatever is listed, and in whatever order. */
static void mark_all(struct sketch *s)
{
	size_t nr_own = 0;

	memset(s->symbol, SYMBOL_IDLE, sizeof s->symbol);
	mark(s, &s->st->pool, SYMBOL_POOL);
	mark(s, &s->st->reserved, SYMBOL_RESERVED);
	mark(s, &s->st->held, SYMBOL_HELD);
	for (struct entry *e = s->entries; e < s->entries + s->nr; e++) {
		if (!e->own) {
			e->symbol = (char)(e->c->left ? ' ' : SYMBOL_POOL);
			continue;
		}
		e->symbol = (char)(nr_own < sizeof letters - 1 ? letters[nr_own] : SYMBOL_MORE);
		mark(s, &e->cpus, e->symbol);
		nr_own++;
	}
}

static bool is_listed(const struct status_container *c, const struct top_view *v)
{
	auto_free char *name = NULL;

	if (v->ns && !text_equal(v->ns, c->ns))
		return false;
	if (asprintf(&name, "%s/%s/%s", c->ns, c->pod, c->container) < 0)
		return false;
	return strcasestr(name, v->filter) != NULL;
}

static void gather_entries(struct sketch *s)
{
	auto_free const struct status_container **list = NULL;
	size_t kept = 0;

	s->nr = s->nr_all = status_containers_by_name(s->st, NULL, &list);
	s->entries = xcalloc(s->nr + 1, sizeof *s->entries);
	for (size_t i = 0; i < s->nr; i++)
		s->entries[i] = entry_of(s->st, list[i]);
	mark_all(s);
	for (size_t i = 0; i < s->nr; i++)
		if (is_listed(s->entries[i].c, s->v))
			s->entries[kept++] = s->entries[i];
	s->nr = kept;
	qsort(s->entries, s->nr, sizeof *s->entries, orders[s->v->order].compare);
}

/* The picture */

static void fill_node(struct block_node *to, const struct status_node *n)
{
	const struct status_memory *m = n->memory;

	*to = (struct block_node){.id = n->id,
		.sockets = n->sockets,
		.threads =
			n->nr_threads ? &n->threads->cpus : NULL, /* there is nothing else in one */
		.nr_threads = n->nr_threads,
		.has_memory = n->nr_memory && m->allocatable};
	if (n->has_socket)
		cpuset_add(&to->sockets, n->socket);
	if (to->has_memory && m->free < m->allocatable)
		to->alone = (double)(m->allocatable - m->free) / (double)m->allocatable;
}

/* Whether there is room for the text's lines, with others behind. */
static bool fits(const struct sketch *s, const char *text, int others)
{
	int lines = 0;

	for (const char *end; (end = strchr(text, '\n')); text = end + 1, lines++)
		if (end - text > s->v->columns)
			return false;
	return lines + others <= room_left(s);
}

/* As blocks; where these do not fit, a line for each NUMA node; else nothing. A node that has
 * neither CPUs nor memory for containers, as those of a GPU, is not drawn. */
static void add_picture(struct sketch *s, int others)
{
	static void (*const ways[])(FILE *, const struct blocks *) = {
		blocks_draw, blocks_draw_lines};
	auto_free struct block_node *nodes = xcalloc(s->st->nr_nodes + 1, sizeof *nodes);
	struct blocks b = {.nodes = nodes, .symbol = s->symbol, .columns = s->v->columns};
	struct cpuset cpus = status_cpus(s->st);
	size_t len;

	for (size_t i = 0; i < s->st->nr_nodes; i++) {
		fill_node(&nodes[b.nr], &s->st->nodes[i]);
		b.nr += nodes[b.nr].nr_threads || nodes[b.nr].has_memory;
	}
	for (size_t i = 0; i < sizeof ways / sizeof *ways && !cpuset_empty(&cpus); i++) {
		auto_free char *text = NULL;
		FILE *to = open_memstream(&text, &len);

		if (!to)
			return;
		ways[i](to, &b);
		if (fclose(to) || !fits(s, text, others))
			continue;
		frame_put_lines(s->f, s->v, FRAME_PLAIN, text);
		return;
	}
}

static void add_legend(struct sketch *s)
{
	static const struct {
		char symbol;
		const char *what;
	} rows[] = {{SYMBOL_POOL, "shared"}, {SYMBOL_RESERVED, "reserved"},
		{SYMBOL_IDLE, "in no cpuset"}, {SYMBOL_HELD, "held"}};
	struct cpuset cpus = status_cpus(s->st);
	unsigned all = cpuset_count(&cpus), others = 0;
	char buf[TEXT_SIZE_MAX * sizeof rows / sizeof *rows + CPUSET_TEXT_MAX];
	struct text t;

	text_init(&t, buf, sizeof buf);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		unsigned nr = 0;

		cpuset_each (cpu, &cpus)
			nr += s->symbol[cpu] == rows[i].symbol;
		if (nr)
			text_add(&t, "   %c %s: %u", rows[i].symbol, rows[i].what, nr);
		others += nr;
	}
	if (all)
		frame_add(s->f, s->v, FRAME_PLAIN, "%u CPU%s   a... own: %u%s", all,
			text_plural(all), all - others, buf);
}

/* The table */

static const char *const titles[] = {"", "POD", "CONTAINER", "CPUS", "OWN", "NODES", "MEMORY",
	"MEMS", "REQUEST", "QOS", "PREFERRED", "WISHES"};
enum { NR_TITLES = sizeof titles / sizeof *titles };
static const struct table_column columns[NR_TITLES] = {{0}, {.least = 14, .in_middle = true},
	{.least = 6, .in_middle = true}, {.enough = 24, .least = 8}, {.drop = 7}, {.drop = 8},
	{.drop = 6}, {.drop = 5}, {.drop = 4}, {.drop = 3}, {.drop = 2}, {.drop = 1}};

static const char *cpus_text(const struct entry *e, char *buf, size_t cap)
{
	if (e->own)
		return e->c->cpus;
	if (!*e->c->cpus)
		return "any";
	(void)snprintf(buf, cap, "%s (%u)", e->c->left ? "left" : "shared", e->nr_cpus);
	return buf;
}

/* "24Gi", "4Gi+2Gi": huge pages stand behind the plus. */
static const char *memory_text(const struct status_container *c, char *buf, size_t cap)
{
	char memory[TEXT_SIZE_MAX], huge[TEXT_SIZE_MAX];

	(void)snprintf(buf, cap, "%s%s%s",
		c->memory || c->hugepages ? text_size_rounded(memory, c->memory) : "-",
		c->hugepages ? "+" : "", c->hugepages ? text_size_rounded(huge, c->hugepages) : "");
	return buf;
}

static const char *request_text(uint64_t milli, char *buf, size_t cap)
{
	enum { MILLI = 1000 };

	if (milli)
		(void)snprintf(buf, cap, "%llu%s",
			(unsigned long long)(milli % MILLI ? milli : milli / MILLI),
			milli % MILLI ? "m" : "");
	else
		(void)snprintf(buf, cap, "-");
	return buf;
}

static void add_entry(struct table *t, const struct entry *e)
{
	char cpus[TEXT_SIZE_MAX], memory[2 * TEXT_SIZE_MAX + 1], request[TEXT_SIZE_MAX];
	const struct status_container *c = e->c;

	table_add(t, "%c", e->symbol);
	table_add(t, "%s/%s", c->ns, c->pod);
	const char *const cells[] = {c->container, cpus_text(e, cpus, sizeof cpus),
		status_own_words(c), e->nodes, memory_text(c, memory, sizeof memory), c->mems,
		request_text(c->cpu_milli, request, sizeof request), qos_words[c->qos],
		c->preferred ? "yes" : "no", c->wishes ? c->wishes : "-"};
	for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
		table_add(t, "%s", cells[i]);
}

/* "16 containers by name, 3 with "db"; 4 above, 2 more" */
static void add_count(struct sketch *s, size_t above, size_t more)
{
	char buf[BUFSIZ];
	struct text t;

	text_init(&t, buf, sizeof buf);
	text_add(&t, "%zu container%s by %s", s->nr_all, text_plural(s->nr_all),
		orders[s->v->order].name);
	if (s->v->ns)
		text_add(&t, ", namespace %s", s->v->ns);
	if (*s->v->filter)
		text_add(&t, ", with \"%s\"", s->v->filter);
	if (s->nr < s->nr_all)
		text_add(&t, ": %zu", s->nr);
	if (above)
		text_add(&t, "; %zu above", above);
	if (more)
		text_add(&t, "; %zu more", more);
	frame_put(s->f, s->v, FRAME_NOTE, buf);
}

/* The columns are as wide as those of all containers need, so that they stand while it scrolls. */
static void add_rows(struct sketch *s, const struct table *t, size_t from, size_t nr)
{
	struct table_fit fit;

	table_fit(t, &fit);
	for (size_t i = 0; i <= nr; i++) {
		auto_free char *line = NULL;
		size_t len, row = i ? from + i : 0;
		FILE *to = open_memstream(&line, &len);

		if (!to)
			return;
		table_print_row(t, &fit, row, to);
		if (!fclose(to))
			frame_put_lines(s->f, s->v, i ? FRAME_PLAIN : FRAME_HEADING, line);
	}
}

static void add_table(struct sketch *s)
{
	enum { COUNT_AND_HEADING = 2 };
	struct table t = {.nr_columns = NR_TITLES, .columns = columns, .width = s->v->columns};
	int room = room_left(s) - COUNT_AND_HEADING;
	size_t shown = room < 0 ? 0 : (size_t)room < s->nr ? (size_t)room : s->nr;
	size_t from = s->v->scroll < s->nr - shown ? s->v->scroll : s->nr - shown;

	for (size_t i = 0; i < NR_TITLES; i++)
		table_add(&t, "%s", titles[i]);
	for (size_t i = 0; i < s->nr; i++)
		add_entry(&t, &s->entries[i]);
	add_count(s, from, s->nr - from - shown);
	if (shown)
		add_rows(s, &t, from, shown);
	table_fini(&t);
	s->f->scroll = from;
	s->f->shown = shown;
}

/* Lines that the table is to have at least, with the legend above it. */
static int table_lines(const struct sketch *s)
{
	enum { LEGEND_COUNT_AND_HEADING = 3 };
	int part = s->v->rows / TABLE_PART;

	part = part > TABLE_LEAST ? part : TABLE_LEAST;
	return LEGEND_COUNT_AND_HEADING + (s->nr < (size_t)part ? (int)s->nr : part);
}

/* On the last line of the terminal. */
static void add_keys(struct frame *f, const struct top_view *v)
{
	while (f->nr + 1 < (size_t)v->rows)
		frame_put(f, v, FRAME_PLAIN, "");
	if (v->typing)
		frame_add(f, v, FRAME_TITLE, "/%s_   Enter keeps it, Esc clears it", v->filter);
	else
		frame_put(f, v, FRAME_NOTE, "q quit   s sort   / filter   j k scroll");
}

void top_frame(struct frame *f, const struct status *st, const struct top_view *v)
{
	*f = (struct frame){0};
	add_title(f, st, v);
	add_warnings(f, st, v);
	if (st) {
		auto_free struct sketch *s = xcalloc(1, sizeof *s);

		*s = (struct sketch){.st = st, .v = v, .f = f};
		add_notes(f, st, v);
		gather_entries(s);
		add_picture(s, table_lines(s));
		if (room_left(s) > TABLE_LEAST)
			add_legend(s);
		add_table(s);
		free(s->entries);
	}
	if (v->has_keys)
		add_keys(f, v);
}

void frame_fini(struct frame *f)
{
	for (size_t i = 0; i < f->nr; i++)
		free(f->at[i].text);
	vec_fini(f);
}
