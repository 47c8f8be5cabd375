/* Settings that are lists of sections: key by key in a file, in one line for --set and the journal. */
#include <core/settings_row.h>

#include <numafit/mem.h>

#include <errno.h>
#include <string.h>

enum { LINE_MAX_OF_SECTION = 1024 };

static void *section_at(const struct sections *k, void *list, unsigned i)
{
	return (char *)list + k->first + i * k->size;
}

static const struct section_key *key_of(const struct sections *k, const char *name, size_t len)
{
	for (unsigned i = 0; i < k->nr_keys; i++)
		if (strlen(k->keys[i].name) == len && !memcmp(k->keys[i].name, name, len))
			return &k->keys[i];
	return NULL;
}

/* The section's number, and what of the key stands behind it; NULL: no number. */
static const char *behind_section(const struct sections *k, const char *key, unsigned *nr)
{
	const char *rest = row_entry(key, k->list, k->max, nr);

	return rest && *rest ? rest + 1 : rest;
}

int sections_set(
	const struct sections *k, struct settings *s, const char *key, const char *value, struct err *e)
{
	unsigned nr = 0, *there = (unsigned *)((char *)s + k->at);
	const char *rest = behind_section(k, key, &nr);

	if (!rest)
		return err_set(e, EINVAL, "a list of at most %u sections is expected", k->max);
	const size_t len = strcspn(rest, ".");
	const struct section_key *found = key_of(k, rest, len);
	if (!found || (found->is == SECTION_VALUE) != !rest[len])
		return err_set(e, ENOENT, "a section has %s", k->has);
	if (nr > *there)
		return err_set(e, EINVAL, "section %u is missing", *there);
	auto_free void *section = xcalloc(1, k->size);

	if (nr < *there)
		memcpy(section, section_at(k, there, nr), k->size);
	int rc = found->take(section, rest[len] ? rest + len + 1 : "", value, e);
	if (rc)
		return rc;
	memcpy(section_at(k, there, nr), section, k->size);
	*there += nr == *there;
	return 0;
}

bool sections_is_group(const struct sections *k, const char *key)
{
	unsigned nr;
	const char *rest = behind_section(k, key, &nr);
	const struct section_key *found = rest ? key_of(k, rest, strlen(rest)) : NULL;

	return text_equal(key, k->list) ||
	       (rest && (!*rest || (found && found->is != SECTION_VALUE)));
}

static int take_word(const struct sections *k, void *section, char *word, struct err *e)
{
	char *equals = strchr(word, '=');

	if (!equals)
		return err_set(e, EINVAL, "\"%.*s\": KEY=VALUE is expected", SETTING_SHOWN, word);
	const struct section_key *found = key_of(k, word, (size_t)(equals - word));
	*equals = '\0';
	if (found && found->is != SECTION_MAP)
		return found->take(section, "", equals + 1, e);
	return k->take_other ? k->take_other(section, word, equals + 1, e)
			     : err_set(e, ENOENT, "\"%.*s\": a section has %s", SETTING_SHOWN, word,
				       k->has);
}

static int take_section(
	const struct sections *k, void *section, const char *text, size_t len, struct err *e)
{
	char copy[LINE_MAX_OF_SECTION], *save = NULL;
	struct text t;
	int rc = 0;

	text_init(&t, copy, sizeof copy);
	text_put(&t, text, len);
	if (t.cut)
		return err_set(e, ERANGE, "a section is longer than %zu bytes", sizeof copy - 1);
	for (char *word = strtok_r(copy, " ", &save); word && !rc; word = strtok_r(NULL, " ", &save))
		rc = take_word(k, section, word, e);
	return rc;
}

int sections_parse(const struct sections *k, const char *value, void *out, struct err *e)
{
	const size_t whole = k->first + k->max * k->size;
	auto_free unsigned *list = xcalloc(1, whole);

	for (const char *at = value; *at;) {
		size_t len = strcspn(at, ";");

		if (*list == k->max)
			return err_set(e, ERANGE, "more than %u sections", k->max);
		int rc = take_section(k, section_at(k, list, (*list)++), at, len, e);
		if (rc)
			return rc;
		at += len + (at[len] == ';');
	}
	memcpy(out, list, whole);
	return 0;
}
