#ifndef NUMAFIT_KEPT_H
#define NUMAFIT_KEPT_H

#include <numafit/vec.h>

/* Values of the kernel that numafitd has changed, and what they were: they are in the journal before
 * the first change, and come back. */

enum kept_kind {
	KEPT_QUOTAS, /* CFS quotas: key is a pod's uid, place its cgroup below the hierarchy's root */
	KEPT_QUIET,  /* affinities of interrupts, frequencies: key is the file, from /; place "" */
	NR_KEPT
};

/* One: whose it is, where it is (a directory, or ""), and the text that its file had, as the kernel
 * prints it. All three are the entry's own. */
struct kept {
	char *key, *place, *was;
};
struct kept_list {
	VEC(struct kept); /* in order of key */
};
/* What a record says of one; place NULL: it has none. was "": it is kept no more. Borrowed. */
struct kept_note {
	const char *place, *was;
};

/* That of the key, or NULL; valid until one is noted. */
const struct kept *kept_find(const struct kept_list *l, const char *key);
/* The next one behind that key, which need not be there, or NULL. */
const struct kept *kept_after(const struct kept_list *l, const char *key);
void kept_note(struct kept_list *l, const char *key, const struct kept_note *n);
void kept_fini(struct kept_list *l);

#endif
