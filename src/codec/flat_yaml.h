#ifndef NUMAFIT_CODEC_FLAT_YAML_H
#define NUMAFIT_CODEC_FLAT_YAML_H

#include <numafit/mistakes.h>
#include <stddef.h>

/* A YAML document as a run of paths and scalars, in the order of the file: "nri.socketPath",
 * "steps.3.create.cpu". Of YAML only maps, lists and scalars are taken: anchors, aliases, tags,
 * a key twice in one map, keys other than words of letters, digits, '-' and '_' (and in a map
 * called labels '.' and '/'), several documents and more than the limits below are errors that name
 * the line. */

enum {
	FLAT_YAML_BYTES_MAX = 256 << 10,
	FLAT_YAML_DEPTH_MAX = 8,   /* maps and lists inside each other */
	FLAT_YAML_KEYS_MAX = 1024, /* in one map; lists are bounded by the bytes alone */
	FLAT_YAML_PATH_MAX = 512   /* bytes, the NUL included */
};

/* Gets each scalar with its line (from 1); value "" where nothing is written behind the key, NULL
 * for an empty map or list. Both are valid during the call only. A return below 0 ends the
 * reading. */
typedef int flat_yaml_scalar(
	void *ctx, const char *path, const char *value, unsigned line, struct err *e);

/* Read the len bytes at text: one map, or nothing at all. 0; what scalar() returned; -E2BIG for too
 * many bytes, -EINVAL for all else, with the line in the text. scalar() has had those before the
 * faulty place. With a list for all mistakes (e is not NULL then) what scalar() refuses, keys that
 * are none or are there twice, anchors, tags and aliases are added, and the reading goes on: *e is
 * the first one. What is no YAML is the one mistake then, of which others may follow: nothing is
 * read, and the list is marked unread. */
int flat_yaml_read(const char *text, size_t len, flat_yaml_scalar *scalar, void *ctx,
	struct mistakes *all, struct err *e);

/* What every YAML reader refuses while it reads: libyaml's work grows with the square of either. */
enum {
	YAML_DEPTH_MAX = 64,     /* maps and lists inside each other */
	YAML_DIRECTIVES_MAX = 16 /* lines that begin with '%', of the whole text */
};

/* Pass libyaml's events of the len bytes at text to on_event(), for a reader with rules of its own.
 * on_event() may return 1 to end the reading. Return 0; on_event()'s return below 0; -E2BIG beyond
 * the limits above, -EINVAL for a text that is not YAML, both with the line; -ENOMEM. */
struct yaml_event_s;
int yaml_read_events(const char *text, size_t len,
	int (*on_event)(void *ctx, const struct yaml_event_s *ev, struct err *e), void *ctx,
	struct err *e);

#endif
