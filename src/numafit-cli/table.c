#include <numafit-cli/table.h>

#include <ctype.h>
#include <numafit/mem.h>
#include <stdarg.h>
#include <string.h>

enum { GAP = 2 };

void table_add(struct table *t, const char *fmt, ...)
{
	char *cell = NULL;
	va_list ap;

	va_start(ap, fmt);
	int len = vasprintf(&cell, fmt, ap);
	va_end(ap);
	*vec_push(&t->cells) = len < 0 ? xstrdup("") : cell;
}

static size_t column_width(const struct table *t, size_t column)
{
	size_t widest = 0;

	for (size_t i = column; i < t->cells.nr; i += t->nr_columns)
		if (strlen(t->cells.at[i]) > widest)
			widest = strlen(t->cells.at[i]);
	return widest;
}

static void print_cell(const char *cell, size_t width, FILE *to)
{
	size_t len = strlen(cell);

	for (size_t i = 0; i < len; i++)
		(void)putc(iscntrl((unsigned char)cell[i]) ? '?' : cell[i], to);
	while (len++ < width)
		(void)putc(' ', to);
}

void table_print(const struct table *t, FILE *to)
{
	auto_free size_t *width = xcalloc(t->nr_columns, sizeof *width);

	for (size_t c = 0; c + 1 < t->nr_columns; c++)
		width[c] = column_width(t, c) + GAP;
	for (size_t i = 0; i < t->cells.nr; i++) {
		size_t c = i % t->nr_columns;

		print_cell(t->cells.at[i], width[c], to);
		if (c + 1 == t->nr_columns)
			(void)putc('\n', to);
	}
}

void table_fini(struct table *t)
{
	for (size_t i = 0; i < t->cells.nr; i++)
		free(t->cells.at[i]);
	vec_fini(&t->cells);
}
