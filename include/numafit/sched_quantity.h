#ifndef NUMAFIT_SCHED_QUANTITY_H
#define NUMAFIT_SCHED_QUANTITY_H

#include <numafit/err.h>
#include <stdbool.h>
#include <stdint.h>

/* An amount as Kubernetes keeps it (apimachinery's resource.Quantity), exactly: whole units (CPUs,
 * bytes, devices) and billionths, the finest that a Quantity holds. Zeros are the amount 0. */
struct quantity {
	int64_t whole; /* rounded down */
	uint32_t nano; /* below QUANTITY_NANOS; the amount is whole + nano / QUANTITY_NANOS */
};
enum { QUANTITY_NANOS = 1000000000, QUANTITY_NANOS_OF_MILLI = 1000000, QUANTITY_MILLIS = 1000 };

/* Parse "1500m", "1.5", "-2", "16Gi", "1e3" into *out. What is finer than a billionth is rounded
 * up, what is above INT64_MAX is INT64_MAX (as there). 0; -EINVAL: that is no quantity, or one of
 * more digits than anybody writes (*out untouched). */
int quantity_parse(struct quantity *out, const char *s, struct err *e);

static inline struct quantity quantity_of(int64_t whole)
{
	return (struct quantity){whole, 0};
}
static inline bool quantity_is_zero(struct quantity q)
{
	return !q.whole && !q.nano;
}
/* Negative, 0 or positive: as a is below, equal to or above b. */
static inline int quantity_compare(struct quantity a, struct quantity b)
{
	if (a.whole != b.whole)
		return a.whole < b.whole ? -1 : 1;
	return (a.nano > b.nano) - (a.nano < b.nano);
}
/* The sum and the difference; what int64_t cannot hold becomes the nearest that it can. */
struct quantity quantity_add(struct quantity a, struct quantity b);
struct quantity quantity_sub(struct quantity a, struct quantity b);
/* Rounded up to whole units, as Quantity.Value(): 500m is 1. */
static inline int64_t quantity_value(struct quantity q)
{
	return q.whole + (q.nano && q.whole != INT64_MAX);
}
/* Rounded up to thousandths, as Quantity.MilliValue(): 1.5 is 1500. Saturates as the sum does. */
int64_t quantity_milli(struct quantity q);

enum { QUANTITY_TEXT_MAX = 40 };
/* As people read it: "16Gi" where a binary suffix fits without a rest, "1500m", "0.000000001".
 * Into buf of QUANTITY_TEXT_MAX bytes; returns buf. */
const char *quantity_text(char *buf, struct quantity q);

#endif
