#ifndef NUMAFIT_NUMAFITD_OPTIONS_H
#define NUMAFIT_NUMAFITD_OPTIONS_H

#include <numafit/err.h>
#include <numafit/pod.h>
#include <numafit/vec.h>

/* numafitd's command line. Strings are argv's. */
enum action {
	RUN,
	CHECK, /* say what would run */
	PRINT, /* every setting */
	DONE   /* all that was asked for is printed */
};

struct options {
	enum action action;
	const char *file; /* NULL: none */
	struct {
		VEC(const char *);
	} sets; /* "KEY=VALUE" */
	struct {
		VEC(struct key_value);
	} labels; /* the node's, as far as they are given */
};

/* 0, or -EINVAL with text; o ends with options_fini() either way. */
int options_read(int argc, char **argv, struct options *o, struct err *e);
void options_fini(struct options *o);

#endif
