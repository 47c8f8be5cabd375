#ifndef NUMAFIT_MISTAKES_H
#define NUMAFIT_MISTAKES_H

#include <numafit/err.h>
#include <numafit/vec.h>
#include <stdbool.h>

/* All that is wrong with somebody's settings, for a person who corrects them in one go: readers and
 * checks that are given a list (it may be NULL everywhere) add what they find to it and go on,
 * where they would have ended at the first one. Zeros are an empty list. */

enum { MISTAKES_MAX = 100 };
enum mistake_place {
	MISTAKE_IN_FILE,
	MISTAKE_ON_COMMAND_LINE, /* --set */
	MISTAKE_NOWHERE          /* in what nobody has set */
};
struct mistakes {
	struct {
		VEC(struct mistake {
			enum mistake_place place;
			unsigned line; /* of the file; 0: of the whole */
			char text[sizeof((struct err *)NULL)->text];
		});
	} found;   /* in the order of the file; no text is there twice */
	bool more; /* than MISTAKES_MAX */
	/* where keys were set, the last time last */
	struct {
		VEC(struct mistake_key {
			enum mistake_place place;
			unsigned line;
			char *key;
		});
	} keys;
	bool unread; /* the file's rest: a key that seems not to be set may stand there */
};

/* e->text, which names the line if there is one, is wrong at that place. */
void mistakes_add(struct mistakes *m, enum mistake_place place, unsigned line, const struct err *e);
/* e->text is wrong where key, or a key below it, was set last; the line is put in front. */
void mistakes_add_key(struct mistakes *m, const char *key, const struct err *e);
/* The key was set there. */
void mistakes_note_key(
	struct mistakes *m, const char *key, enum mistake_place place, unsigned line);
/* The settings are read anew: no key is set. */
void mistakes_forget_keys(struct mistakes *m);
/* For people: row i, with the file's name; then, if there are several, how many. false: no more. */
bool mistakes_print(const struct mistakes *m, size_t i, const char *file, char *buf, size_t cap);
void mistakes_fini(struct mistakes *m);

#endif
