/* What values of the kernel were before they were changed. */
#include <numafit/kept.h>

#include <numafit/mem.h>
#include <numafit/text.h>

/* Where the key's stands, or would stand. */
static size_t position(const struct kept_list *l, const char *key)
{
	return text_position(l->at, l->nr, sizeof *l->at, key);
}

const struct kept *kept_find(const struct kept_list *l, const char *key)
{
	size_t i = position(l, key);

	return i < l->nr && text_equal(l->at[i].key, key) ? &l->at[i] : NULL;
}

const struct kept *kept_after(const struct kept_list *l, const char *key)
{
	size_t i = position(l, key);

	i += i < l->nr && text_equal(l->at[i].key, key);
	return i < l->nr ? &l->at[i] : NULL;
}

static void drop_at(struct kept_list *l, size_t i)
{
	free(l->at[i].key);
	free(l->at[i].place);
	free(l->at[i].was);
	vec_remove(l, i);
}

void kept_note(struct kept_list *l, const char *key, const struct kept_note *n)
{
	const struct kept now = {
		xstrdup(key), xstrdup(n->place ? n->place : ""), xstrdup(n->was)};
	size_t i = position(l, key);

	if (kept_find(l, key))
		drop_at(l, i);
	*vec_insert(l, i) = now;
	if (!*n->was)
		drop_at(l, i);
}

void kept_fini(struct kept_list *l)
{
	while (l->nr)
		drop_at(l, l->nr - 1);
	vec_fini(l);
}
