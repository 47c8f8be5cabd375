#include <numafit-cli/table.h>

#include <assert.h>
#include <numafit/text.h>
#include <stdarg.h>

enum { GAP = 2 };
static const char dots[] = "...";
enum { DOTS = sizeof dots - 1 };

void table_add(struct table *t, const char *fmt, ...)
{
	char *cell = NULL;
	va_list ap;

	va_start(ap, fmt);
	int len = vasprintf(&cell, fmt, ap);
	va_end(ap);
	if (len < 0)
		cell = xstrdup("");
	text_make_shown(cell, TEXT_ONE_LINE);
	*vec_push(&t->cells) = cell;
}

static int sum_of_widths(const struct table *t, const struct table_fit *fit)
{
	int sum = -GAP;

	for (size_t c = 0; c < t->nr_columns; c++)
		sum += fit->width[c];
	return sum;
}

/* Leave out the column whose turn it is. False: there is none left. */
static bool drop_column(const struct table *t, struct table_fit *fit)
{
	size_t next = t->nr_columns;

	for (size_t c = 0; c < t->nr_columns; c++)
		if (fit->width[c] && t->columns[c].drop &&
			(next == t->nr_columns || t->columns[c].drop < t->columns[next].drop))
			next = c;
	if (next < t->nr_columns)
		fit->width[next] = 0;
	return next < t->nr_columns;
}

/* Make the widest column that may be cut, to enough or to the least, narrower by one. False: none
 * may. */
static bool cut_column(const struct table *t, struct table_fit *fit, bool to_least)
{
	size_t widest = t->nr_columns;

	for (size_t c = 0; c < t->nr_columns; c++) {
		int limit = to_least ? t->columns[c].least : t->columns[c].enough;

		if (limit && fit->width[c] > limit + GAP &&
			(widest == t->nr_columns || fit->width[c] > fit->width[widest]))
			widest = c;
	}
	if (widest < t->nr_columns)
		fit->width[widest]--;
	return widest < t->nr_columns;
}

void table_fit(const struct table *t, struct table_fit *fit)
{
	*fit = (struct table_fit){0};
	assert(t->nr_columns <= TABLE_COLUMNS_MAX);
	for (size_t i = 0; i < t->cells.nr; i++) {
		int len = (int)strlen(t->cells.at[i]) + GAP,
		    *width = &fit->width[i % t->nr_columns];

		*width = len > *width ? len : *width;
	}
	while (t->columns && t->width && sum_of_widths(t, fit) > t->width &&
		(cut_column(t, fit, false) || drop_column(t, fit) || cut_column(t, fit, true)))
		fit->less = true;
}

/* The cell, in `width` characters at most. */
static void print_cell(FILE *to, const char *cell, int width, bool in_middle)
{
	int len = (int)strlen(cell), tail = in_middle ? (width - DOTS) / 2 : 0;

	if (len <= width)
		(void)fputs(cell, to);
	else if (width <= DOTS)
		(void)fprintf(to, "%.*s", width, cell);
	else
		(void)fprintf(to, "%.*s%s%s", width - DOTS - tail, cell, dots, cell + len - tail);
}

void table_print_row(const struct table *t, const struct table_fit *fit, size_t row, FILE *to)
{
	int blanks = 0;

	for (size_t c = 0; c < t->nr_columns; c++) {
		const char *cell = t->cells.at[row * t->nr_columns + c];
		int len = (int)strlen(cell), width = fit->width[c] - GAP;

		if (!fit->width[c])
			continue;
		(void)fprintf(to, "%*s", blanks, "");
		print_cell(to, cell, width, t->columns && t->columns[c].in_middle);
		blanks = GAP + (len < width ? width - len : 0);
	}
	(void)putc('\n', to);
}

bool table_print(const struct table *t, FILE *to)
{
	struct table_fit fit;

	table_fit(t, &fit);
	for (size_t row = 0; row < t->cells.nr / t->nr_columns; row++)
		table_print_row(t, &fit, row, to);
	return fit.less;
}

void table_fini(struct table *t)
{
	for (size_t i = 0; i < t->cells.nr; i++)
		free(t->cells.at[i]);
	vec_fini(&t->cells);
}
