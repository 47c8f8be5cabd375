#ifndef NUMAFIT_SIM_TRACE_ADVICE_H
#define NUMAFIT_SIM_TRACE_ADVICE_H

#include <numafit-sim/trace_yaml.h>

/* Read one key of a create's advice into *h; the first one sets the defaults, so that ttl_s is not
 * 0 any more. Strings go into *strings. 0; -EINVAL, -ERANGE, -E2BIG with text. */
int trace_advice_read(struct trace_advice *h, const char *key, const char *value,
	struct arena *strings, struct err *e);

#endif
