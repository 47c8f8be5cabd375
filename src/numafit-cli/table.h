#ifndef NUMAFIT_CLI_TABLE_H
#define NUMAFIT_CLI_TABLE_H

#include <numafit/nodeset.h>
#include <numafit/vec.h>
#include <stdbool.h>
#include <stdio.h>

/* What becomes of a column where the table is wider than it may be: first long texts are cut, then
 * columns are left out, then all texts are cut. */
struct table_column {
	int enough; /* its texts are cut to so many characters before a column is left out; 0: never
		     */
	unsigned drop;  /* it is left out as the drop-th; 0: never */
	int least;      /* its texts are cut to so many characters, not to fewer; 0: never */
	bool in_middle; /* the middle of a text is cut out, not its end */
};

/* A table for people: cells row by row, the first row the heading. */
struct table {
	size_t nr_columns;
	const struct table_column *columns; /* NULL: each stays as wide as it is */
	int width;                          /* of a line at most, with columns; 0: any */
	struct {
		VEC(char *);
	} cells;
};

/* How wide each column is printed, the gap behind it included; 0: it is left out. The widest table
 * is that of distances: a column for each NUMA node, and their names. */
enum { TABLE_COLUMNS_MAX = 1 + NODES_MAX };
struct table_fit {
	int width[TABLE_COLUMNS_MAX];
	bool less; /* something is left out or cut */
};

/* The next cell, as printf would write it; control characters become "?". */
void table_add(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_fit(const struct table *t, struct table_fit *fit);
/* Print row `row` (0 is the heading), columns aligned. */
void table_print_row(const struct table *t, const struct table_fit *fit, size_t row, FILE *to);
/* Print all rows. Whether something is left out or cut. */
bool table_print(const struct table *t, FILE *to);
void table_fini(struct table *t);

#endif
