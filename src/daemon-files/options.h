#ifndef NUMAFIT_NUMAFITD_OPTIONS_H
#define NUMAFIT_NUMAFITD_OPTIONS_H

#include <command/command.h>

/* numafitd's command line. Strings are argv's. */
enum action {
	RUN,
	CHECK, /* say what would run */
	PRINT  /* every setting */
};

struct options {
	enum action action;
	const char *file;          /* NULL: none */
	struct texts sets;         /* "KEY=VALUE" */
	struct assignments labels; /* the node's, as far as they are given */
};

/* The rows of struct options. */
extern const struct option_row options_rows[];
void options_fini(struct options *o);

/* Pages of numafitd(8) beside those made from the rows. */
extern const struct section options_sections[];

#endif
