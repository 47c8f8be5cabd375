#ifndef NUMAFIT_CODEC_WORDS_H
#define NUMAFIT_CODEC_WORDS_H

#include <numafit/arena.h>
#include <numafit/engine.h>

/* Settings in the shape that a table of fields (fields_json.h) can use: a list of {key, value} that
 * lives in an arena. */
struct word_list {
	const struct key_value *at;
	size_t nr;
};
/* Every setting and its value in force, in the order of the settings' table. 0; -ENOMEM: the
 * arena's limit. */
int words_of_settings(
	const struct settings *s, struct arena *a, struct word_list *out, struct err *e);
/* The settings that those words came from. Words that this numafit does not know are an error: 0;
 * as settings_set(), or -ENOMEM. */
int settings_of_words(
	const struct word_list *words, struct arena *a, struct settings *s, struct err *e);

#endif
