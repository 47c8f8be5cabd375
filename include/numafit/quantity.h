#ifndef NUMAFIT_QUANTITY_H
#define NUMAFIT_QUANTITY_H

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

/* Parse what resource.ParseQuantity() accepts, with any number of digits: integer or decimal, then
 * a suffix n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent: "1500m", "1.5", "-2", "16Gi",
 * "1e3". As there, what is finer than a billionth is rounded away from 0, and with a binary suffix
 * an amount is INT64_MAX at most. Another one that is above what a struct quantity holds is the
 * most that it holds, which is more than INT64_MAX. 0; -EINVAL: that is no quantity (*out
 * untouched), or none of a single digit, which Kubernetes reads as 0, but never writes. */
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
/* The sum and the difference; what a struct quantity cannot hold becomes the nearest that it can.
 */
struct quantity quantity_add(struct quantity a, struct quantity b);
struct quantity quantity_sub(struct quantity a, struct quantity b);
/* Whole units, rounded away from 0, as Quantity.Value(): 500m is 1. At most INT64_MAX. */
static inline int64_t quantity_value(struct quantity q)
{
	return q.whole + (q.whole >= 0 && q.nano && q.whole != INT64_MAX);
}
/* Thousandths, rounded away from 0, as Quantity.MilliValue(): 1.5 is 1500. What int64_t cannot hold
 * becomes the nearest that it can. */
int64_t quantity_milli(struct quantity q);

/* What an amount is counted in where it is one that a machine has or gives: CPUs in thousandths,
 * bytes and devices whole. */
enum quantity_unit { QUANTITY_WHOLE, QUANTITY_MILLI };
/* quantity_value() or quantity_milli() of q into *out. 0; -ERANGE when q is negative, or more than
 * INT64_MAX units. */
int quantity_count(struct quantity q, enum quantity_unit unit, uint64_t *out, struct err *e);
/* The same of the text s. 0; -EINVAL as quantity_parse(), -ERANGE as quantity_count(). */
int quantity_parse_count(const char *s, enum quantity_unit unit, uint64_t *out, struct err *e);

enum { QUANTITY_TEXT_MAX = 40 };
/* As people read it: "16Gi" where a binary suffix fits without a rest, "1500m", "0.000000001".
 * Into buf of QUANTITY_TEXT_MAX bytes; returns buf. */
const char *quantity_text(char *buf, struct quantity q);

#endif
