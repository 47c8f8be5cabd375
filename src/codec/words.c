#include <codec/words.h>

#include <errno.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

enum { SETTING_KEY_MAX = 128 };

int words_of_settings(
	const struct settings *s, struct arena *a, struct word_list *out, struct err *e)
{
	char value[SETTING_TEXT_MAX];
	struct setting_doc doc;
	struct key_value *list;
	unsigned nr = 0;

	while (settings_doc(nr, &doc))
		nr++;
	list = arena_array(a, nr, sizeof *list);
	for (unsigned i = 0;
		list && i < nr && settings_doc(i, &doc) && settings_get(s, i, value, sizeof value);
		i++) {
		list[i].key = doc.key;
		list[i].value = arena_strndup(a, value, strlen(value));
		if (!list[i].value)
			list = NULL;
	}
	if (!list)
		return err_set(e, ENOMEM, "the settings do not fit into %zu bytes", a->limit_bytes);
	*out = (struct word_list){list, nr};
	return 0;
}

/* "0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=2Gi", as settings_get() prints it, key by key. */
static int set_reserved_memory(struct settings *s, char *text, struct err *e)
{
	char key[SETTING_KEY_MAX], *entries, *limits;
	unsigned entry = 0;
	int rc = 0;

	for (char *one = strtok_r(text, ";", &entries); one && !rc;
		one = strtok_r(NULL, ";", &entries), entry++) {
		char *node = strtok_r(one, ":", &limits), *limit;

		if (!node)
			return err_set(e, EINVAL, "reservedMemory: entry %u names no node", entry);
		(void)snprintf(key, sizeof key, "reservedMemory.%u.numaNode", entry);
		rc = settings_set(s, key, node, e);
		while (!rc && (limit = strtok_r(NULL, ",", &limits))) {
			char *value = strchr(limit, '=');

			if (!value)
				return err_set(e, EINVAL, "reservedMemory: \"%.64s\"", limit);
			*value++ = '\0';
			(void)snprintf(
				key, sizeof key, "reservedMemory.%u.limits.%s", entry, limit);
			rc = settings_set(s, key, value, e);
		}
	}
	return rc;
}

int settings_of_words(
	const struct word_list *words, struct arena *a, struct settings *s, struct err *e)
{
	int rc = 0;

	settings_init(s);
	/* a journal that does not say so is older than the choice */
	s->cpu_options.kubernetes = KUBERNETES_1_36;
	for (size_t i = 0; i < words->nr && !rc; i++) {
		const struct key_value *w = &words->at[i];
		char *copy = arena_strndup(a, w->value, strlen(w->value));

		if (!copy)
			rc = err_set(e, ENOMEM, "the settings are too large");
		else if (*w->value && text_equal(w->key, "reservedMemory"))
			rc = set_reserved_memory(s, copy, e);
		else if (*w->value) /* empty: not set */
			rc = settings_set(s, w->key, w->value, e);
	}
	return rc;
}
