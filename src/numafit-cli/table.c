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

void table_print(const struct table *t, FILE *to)
{
	auto_free size_t *width = xcalloc(t->nr_columns, sizeof *width);

	for (size_t i = 0; i < t->cells.nr; i++) {
		size_t c = i % t->nr_columns, len = strlen(t->cells.at[i]);

		width[c] = len + GAP > width[c] ? len + GAP : width[c];
	}
	for (size_t i = 0; i < t->cells.nr; i++) {
		size_t c = i % t->nr_columns;
		const char *cell = t->cells.at[i];
		int blanks = (int)(width[c] - strlen(cell));

		for (; *cell; cell++)
			(void)putc(iscntrl((unsigned char)*cell) ? '?' : *cell, to);
		if (c + 1 == t->nr_columns)
			(void)putc('\n', to);
		else
			(void)fprintf(to, "%*s", blanks, "");
	}
}

void table_fini(struct table *t)
{
	for (size_t i = 0; i < t->cells.nr; i++)
		free(t->cells.at[i]);
	vec_fini(&t->cells);
}
