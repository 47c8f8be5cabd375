#include <apiserver/own_slices.h>

#include <numafit/number.h>
#include <numafit/text.h>

static void own_slice_forget(struct own_slice *own)
{
	free(own->version);
	free(own->owner_uid);
	free(own->node);
	*own = (struct own_slice){0};
}

void own_slices_init(struct own_slices *s, const char *node_name)
{
	*s = (struct own_slices){
		.node_name = xstrdup(node_name), .scratch = xcalloc(1, sizeof *s->scratch)};
	(void)slice_object_name(s->name, node_name);
}

static void own_slices_remove_extra(struct own_slices *s, size_t i)
{
	free(s->extra.at[i].name);
	vec_remove(&s->extra, i);
}

void own_slices_fini(struct own_slices *s)
{
	own_slice_forget(&s->own);
	while (s->extra.nr)
		own_slices_remove_extra(s, s->extra.nr - 1);
	vec_fini(&s->extra);
	free(s->node_name);
	free(s->scratch);
}

void own_slices_begin(struct own_slices *s)
{
	s->own.seen = false;
	s->version = 0; /* a store that was restored goes on from an earlier one */
	for (size_t i = 0; i < s->extra.nr; i++)
		s->extra.at[i].seen = false;
}

void own_slices_sweep(struct own_slices *s)
{
	if (!s->own.seen)
		own_slice_forget(&s->own);
	for (size_t i = s->extra.nr; i-- > 0;)
		if (!s->extra.at[i].seen)
			own_slices_remove_extra(s, i);
}

/* Whether it says something new: its version is least or higher. */
static bool own_slices_is_new(struct own_slices *s, const char *version, uint64_t least)
{
	uint64_t number;

	if (text_u64(version, strlen(version), UINT64_MAX, &number, NULL))
		return true;
	if (number < least)
		return false;
	s->version = number;
	return true;
}

static void own_slices_put_own(
	struct own_slices *s, const struct json_t *object, const struct slice_head *head)
{
	struct own_slice *own = &s->own;
	struct err odd = {0};

	own_slice_forget(own);
	own->there = own->seen = true;
	own->other_pool = !text_equal(head->pool, s->node_name);
	own->version = xstrdup(head->version);
	own->generation = head->generation;
	if (!slice_written_read(object, s->scratch, &odd)) {
		own->nr = s->scratch->nr;
		own->node = xcalloc(own->nr, sizeof *own->node);
		memcpy(own->node, s->scratch->node, own->nr * sizeof *own->node);
		own->owner_uid = xstrdup(s->scratch->owner_uid);
	}
	own->odd = odd;
}

static size_t own_slices_find_extra(const struct own_slices *s, const char *name)
{
	size_t i = 0;

	while (i < s->extra.nr && !text_equal(s->extra.at[i].name, name))
		i++;
	return i;
}

static void own_slices_put_extra(struct own_slices *s, const char *name)
{
	size_t i = own_slices_find_extra(s, name);

	if (i == s->extra.nr && i == OWN_SLICES_EXTRA_MAX)
		return;
	if (i == s->extra.nr)
		vec_push(&s->extra)->name = xstrdup(name);
	s->extra.at[i].seen = true;
}

/* What is deleted must be ours for certain, whatever the server has made of the selector. */
static bool own_slices_has(const struct own_slices *s, const struct slice_head *head)
{
	return text_equal(head->driver, CLAIM_DRIVER) &&
	       text_equal(head->node_name, s->node_name) && *head->name &&
	       strlen(head->name) < SLICE_OBJECT_NAME_MAX;
}

bool own_slices_put(struct own_slices *s, const struct json_t *object)
{
	struct slice_head head;

	slice_head_read(object, &head);
	if (!own_slices_has(s, &head))
		return false;
	s->newest = number_max(s->newest, head.generation);
	if (!text_equal(head.name, s->name)) {
		own_slices_put_extra(s, head.name);
		return false;
	}
	if (!own_slices_is_new(s, head.version, s->version + 1))
		return false;
	own_slices_put_own(s, object, &head);
	return true;
}

bool own_slices_remove(struct own_slices *s, const char *name, const char *version)
{
	size_t i = own_slices_find_extra(s, name);

	if (i < s->extra.nr)
		own_slices_remove_extra(s, i);
	if (!text_equal(name, s->name) || !own_slices_is_new(s, version, s->version))
		return false;
	own_slice_forget(&s->own);
	return true;
}
