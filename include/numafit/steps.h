#ifndef NUMAFIT_STEPS_H
#define NUMAFIT_STEPS_H

/* The arithmetic behind an answer, for readers who follow it: one line for each step. */
struct steps {
	void (*line)(void *ctx, const char *text);
	void *ctx;
};

/* Report one step, without a newline; what is too long for a line is cut. NULL: nobody listens. */
void steps_add(const struct steps *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
