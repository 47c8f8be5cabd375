#ifndef NUMAFIT_NEAREST_H
#define NUMAFIT_NEAREST_H

/* Which of the words that there are was probably meant by one that there is not. */

enum { NEAREST_WORD_MAX = 64 }; /* bytes of a word; for a longer one nothing is near */

struct nearest {
	const char *word, *best; /* best is NULL: none is near enough */
	unsigned least;          /* the next one must not be farther away */
};

/* Begin for that word, which is borrowed. Two letters may be wrong, and one more of each eight. */
void nearest_begin(struct nearest *n, const char *word);
/* best becomes `name` where `candidate` is nearer than all before it (Levenshtein's distance,
 * capitals counted as small letters). */
void nearest_try(struct nearest *n, const char *candidate, const char *name);

#endif
