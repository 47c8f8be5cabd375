#ifndef NUMAFIT_CODEC_TRACE_HINT_H
#define NUMAFIT_CODEC_TRACE_HINT_H

#include <codec/trace_yaml.h>

/* Read one key of a create's hint into *h; the first one sets the defaults, so that ttl_s is not 0
 * any more. Strings go into *strings. 0; -EINVAL, -ERANGE, -E2BIG with text. */
int trace_hint_read(struct trace_hint *h, const char *key, const char *value, struct arena *strings,
	struct err *e);

#endif
