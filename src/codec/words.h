#ifndef NUMAFIT_CODEC_WORDS_H
#define NUMAFIT_CODEC_WORDS_H

#include <numafit/arena.h>
#include <numafit/engine.h>

/* Core's words in the shapes that a table of fields (fields_json.h) can use. */

const char *policy_word(unsigned policy);
const char *qos_word(unsigned qos);
const char *container_kind_word(unsigned kind);
const char *source_word(unsigned source);
const char *op_word(unsigned op);
const char *apart_word(unsigned why);
const char *token_owner_word(unsigned owner);
const char *verdict_word(unsigned verdict);
const char *advice_mode_word(unsigned mode);

/* A list of {key, value} that lives in an arena. */
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
