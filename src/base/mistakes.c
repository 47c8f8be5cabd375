#include <numafit/mistakes.h>

#include <numafit/text.h>

static bool mistake_is_known(const struct mistakes *m, const char *text)
{
	for (size_t i = 0; i < m->found.nr; i++)
		if (text_equal(m->found.at[i].text, text))
			return true;
	return false;
}

void mistakes_add(struct mistakes *m, enum mistake_place place, unsigned line, const struct err *e)
{
	if (!m || mistake_is_known(m, e->text))
		return;
	if (m->found.nr == MISTAKES_MAX) {
		m->more = true;
		return;
	}
	size_t i = m->found.nr;

	while (i && (m->found.at[i - 1].place > place ||
			    (m->found.at[i - 1].place == place && m->found.at[i - 1].line > line)))
		i--;
	struct mistake *new = vec_insert(&m->found, i);
	new->place = place;
	new->line = line;
	(void)text_copy(new->text, sizeof new->text, e->text);
}

/* Whether it is the key, or one below it. */
static bool key_is_below(const char *key, const char *group)
{
	size_t len = strlen(group);

	return strncmp(key, group, len) == 0 && (!key[len] || key[len] == '.');
}

void mistakes_add_key(struct mistakes *m, const char *key, const struct err *e)
{
	struct mistake_key where = {.place = MISTAKE_NOWHERE};
	struct err placed = *e;

	if (!m)
		return;
	for (size_t i = 0; i < m->keys.nr; i++)
		if (key_is_below(m->keys.at[i].key, key))
			where = m->keys.at[i];
	if (where.place == MISTAKE_IN_FILE)
		(void)err_add(&placed, 0, "line %u", where.line);
	else if (where.place == MISTAKE_ON_COMMAND_LINE)
		(void)err_add(&placed, 0, "--set");
	mistakes_add(m, where.place, where.line, &placed);
}

void mistakes_note_key(struct mistakes *m, const char *key, enum mistake_place place, unsigned line)
{
	if (m)
		*vec_push(&m->keys) = (struct mistake_key){place, line, xstrdup(key)};
}

void mistakes_forget_keys(struct mistakes *m)
{
	for (size_t i = 0; m && i < m->keys.nr; i++)
		free(m->keys.at[i].key);
	if (m)
		m->keys.nr = 0;
}

bool mistakes_print(const struct mistakes *m, size_t i, const char *file, char *buf, size_t cap)
{
	struct text t;

	text_init(&t, buf, cap);
	if (i < m->found.nr && m->found.at[i].place == MISTAKE_IN_FILE && file)
		text_add(&t, "config file %s: ", file);
	if (i < m->found.nr)
		text_add(&t, "%s", m->found.at[i].text);
	else if (i == m->found.nr && m->more)
		text_add(&t, "the first %zu mistakes: there are more", i);
	else if (i == m->found.nr && i > 1)
		text_add(&t, "%zu mistakes", i);
	return t.len;
}

void mistakes_fini(struct mistakes *m)
{
	mistakes_forget_keys(m);
	vec_fini(&m->keys);
	vec_fini(&m->found);
}
