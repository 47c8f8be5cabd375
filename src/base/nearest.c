#include <numafit/nearest.h>

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { LETTERS_PER_SLIP = 8 }; /* beyond two, how far a word may be from the one that was meant */

static unsigned letters_changed(const char *a, const char *b)
{
	unsigned before[NEAREST_WORD_MAX + 1], now[NEAREST_WORD_MAX + 1];
	size_t nr = strlen(b);

	for (size_t i = 0; i <= nr; i++)
		before[i] = (unsigned)i;
	for (; *a; a++) {
		now[0] = before[0] + 1;
		for (size_t i = 0; i < nr; i++) {
			bool same = tolower((unsigned char)*a) == tolower((unsigned char)b[i]);
			unsigned changed = before[i] + !same;
			unsigned dropped = before[i + 1] < now[i] ? before[i + 1] + 1 : now[i] + 1;

			now[i + 1] = changed < dropped ? changed : dropped;
		}
		memcpy(before, now, sizeof before);
	}
	return before[nr];
}

void nearest_begin(struct nearest *n, const char *word)
{
	*n = (struct nearest){word, .least = 2 + (unsigned)strlen(word) / LETTERS_PER_SLIP};
}

void nearest_try(struct nearest *n, const char *candidate, const char *name)
{
	size_t len = strlen(n->word);

	if (len > NEAREST_WORD_MAX || strlen(candidate) > NEAREST_WORD_MAX)
		return;
	unsigned d = letters_changed(n->word, candidate);
	if (d > n->least || d >= len || (n->best && d == n->least))
		return;
	n->best = name;
	n->least = d;
}
