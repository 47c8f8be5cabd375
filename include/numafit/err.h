#ifndef NUMAFIT_ERR_H
#define NUMAFIT_ERR_H

/* An error as a value on the caller's stack: a code for programs and one line for people.
 * Everywhere in numafit a struct err * may be NULL: the caller then only wants the code. */
struct err {
	int code; /* positive errno value; 0 when nothing went wrong */
	char text[384];
};

/* Fill *e with code (a positive errno) and the formatted text, cutting what does not fit.
 * Returns -code, so that "return err_set(...)" reports and leaves in one line. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Put "formatted text: " in front of what *e already says: the place, seen from further out.
 * Returns rc unchanged. */
int err_add(struct err *e, int rc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
