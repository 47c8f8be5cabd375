#ifndef NUMAFIT_EXTENDER_EXTENDER_SCAN_H
#define NUMAFIT_EXTENDER_EXTENDER_SCAN_H

#include <numafit/err.h>
#include <stdbool.h>
#include <stddef.h>

/* JSON that is walked over without values being made of it: what kube-scheduler sends of 5,000
 * nodes has up to 75 MB, of which the extender needs the names, and which it sends back as it
 * came. */

enum { SPAN_DEPTH_MAX = 256 };

/* One JSON value as it stands in the text, without the white space around it. */
struct span {
	const char *at;
	size_t len;
};

/* Check that the len bytes at text are one JSON value (RFC 8259), well-formed UTF-8, of at most
 * SPAN_DEPTH_MAX lists and objects inside each other. 0, or -EINVAL with the byte. All that is
 * below takes values that came from here. */
int span_read(const char *text, size_t len, struct span *out, struct err *e);

/* What kind of value it is, by its first character: '{', '[', '"', 't', 'f', 'n', else a number. */
static inline char span_kind(struct span v)
{
	return v.len ? *v.at : '\0';
}

/* The members of an object, or the elements of a list; of anything else there are none. */
struct span_walk {
	const char *at, *end;
	bool object;
};
struct span_walk span_walk(struct span v);
/* False: that were all. key: a string with its quotes; untouched in a list. */
bool span_next(struct span_walk *w, struct span *key, struct span *value);
/* How many there are. */
size_t span_count(struct span v);
/* The string between the quotes, when nothing in it is escaped. */
bool span_plain(struct span string, struct span *out);
/* The object's member, the last of that very name; false: it has none, or v is no object. */
bool span_member(struct span v, const char *name, struct span *out);

#endif
