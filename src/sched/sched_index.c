#include <sched/sched_index.h>

#include <numafit/mem.h>
#include <numafit/nrt_fingerprint.h>
#include <string.h>

/* Open addressing, at most half full; what is removed leaves no gap. */

enum { CAP_MIN = 64 };

static size_t home_slot(const struct sched_index *x, const struct sched_key *k)
{
	return (size_t)k->hash & (x->cap - 1);
}

static size_t next_slot(const struct sched_index *x, size_t i)
{
	return (i + 1) & (x->cap - 1);
}

void *sched_index_find(const struct sched_index *x, const char *name)
{
	const struct sched_key probe = {.hash = xxh64_text(name)};

	if (!x->cap)
		return NULL;
	for (size_t i = home_slot(x, &probe); x->slot[i]; i = next_slot(x, i))
		if (x->slot[i]->hash == probe.hash && !strcmp(x->slot[i]->name, name))
			return x->slot[i];
	return NULL;
}

static void index_put(struct sched_index *x, struct sched_key *key)
{
	size_t i = home_slot(x, key);

	while (x->slot[i])
		i = next_slot(x, i);
	x->slot[i] = key;
}

static void index_grow(struct sched_index *x)
{
	struct sched_index bigger = {.cap = x->cap ? 2 * x->cap : CAP_MIN, .nr = x->nr};

	bigger.slot = xcalloc(bigger.cap, sizeof(struct sched_key *));
	for (size_t i = 0; i < x->cap; i++)
		if (x->slot[i])
			index_put(&bigger, x->slot[i]);
	free(x->slot);
	*x = bigger;
}

void sched_index_add(struct sched_index *x, struct sched_key *key, const char *name)
{
	if (2 * (x->nr + 1) > x->cap)
		index_grow(x);
	*key = (struct sched_key){.hash = xxh64_text(name), .name = xstrdup(name)};
	index_put(x, key);
	x->nr++;
}

/* Move up what would not be found behind the gap any more. */
static void close_gap(struct sched_index *x, size_t gap)
{
	for (size_t i = next_slot(x, gap); x->slot[i]; i = next_slot(x, i)) {
		size_t away = (i - home_slot(x, x->slot[i])) & (x->cap - 1);

		if (away < ((i - gap) & (x->cap - 1)))
			continue;
		x->slot[gap] = x->slot[i];
		x->slot[i] = NULL;
		gap = i;
	}
}

void sched_index_remove(struct sched_index *x, struct sched_key *key)
{
	size_t i = home_slot(x, key);

	while (x->slot[i] != key)
		i = next_slot(x, i);
	x->slot[i] = NULL;
	close_gap(x, i);
	x->nr--;
	free(key->name);
	key->name = NULL;
}

void sched_index_fini(struct sched_index *x, void (*free_entry)(void *entry))
{
	for (size_t i = 0; i < x->cap; i++) {
		if (!x->slot[i])
			continue;
		free(x->slot[i]->name);
		free_entry(x->slot[i]);
	}
	free(x->slot);
	*x = (struct sched_index){0};
}
