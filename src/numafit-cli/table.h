#ifndef NUMAFIT_CLI_TABLE_H
#define NUMAFIT_CLI_TABLE_H

#include <numafit/vec.h>
#include <stdio.h>

/* A table for people: cells row by row, the first row the heading. */
struct table {
	size_t nr_columns;
	struct {
		VEC(char *);
	} cells;
};

/* The next cell, as printf would write it. */
void table_add(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Print it, columns aligned; control characters come out as "?". */
void table_print(const struct table *t, FILE *to);
void table_fini(struct table *t);

#endif
