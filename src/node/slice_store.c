#include <numafit/slice_store.h>

#include <assert.h>
#include <errno.h>
#include <numafit/text.h>
#include <numafit/vec.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_PER_MIB = 1 << 20 };

/* A slice: one block, just as large as what is kept of it. */
struct kept_slice {
	struct kept_pool *pool;
	const char *name;
	uint64_t generation, nr_slices;
	const struct slice_device *device; /* ascending by name; each text once */
	size_t nr, bytes;
	uint64_t round; /* in which it was reported last */
	bool there;     /* it is not deleted */
	bool counts;    /* it is of the last generation that was there as a whole */
	alignas(max_align_t) char memory[];
};

/* One driver's pool. What is neither there nor counts is dropped. */
struct kept_pool {
	const char *driver, *name;
	VEC(struct kept_slice *);
	size_t bytes;
	alignas(max_align_t) char memory[];
};

struct slice_store {
	struct {
		VEC(struct kept_pool *);
	} pools; /* ascending by driver, then name */
	struct {
		VEC(struct kept_slice *);
	} there; /* ascending by name */
	size_t bytes;
	uint64_t round;
};

struct slice_store *slice_store_new(void)
{
	return xcalloc(1, sizeof(struct slice_store));
}

void slice_store_free(struct slice_store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->pools.nr; i++) {
		for (size_t k = 0; k < s->pools.at[i]->nr; k++)
			free(s->pools.at[i]->at[k]);
		vec_fini(s->pools.at[i]);
		free(s->pools.at[i]);
	}
	vec_fini(&s->pools);
	vec_fini(&s->there);
	free(s);
}

/* Copies */

static int by_device_name(const void *a, const void *b)
{
	const struct slice_device *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* The first of the devices with the same bus, which has its text. */
static size_t first_of_bus(const struct slice *of, size_t i)
{
	size_t first = 0;

	while (!text_equal(of->device[first].bus, of->device[i].bus))
		first++;
	return first;
}

static size_t text_bytes(const struct slice *of)
{
	size_t bytes = strlen(of->name) + 1;

	for (size_t i = 0; i < of->nr; i++) {
		bytes += strlen(of->device[i].name) + 1;
		if (of->device[i].bus && first_of_bus(of, i) == i)
			bytes += strlen(of->device[i].bus) + 1;
	}
	return bytes;
}

/* What a slice's block takes beside the slice itself. */
static size_t slice_bytes(const struct slice *of)
{
	size_t ids = 0;

	for (size_t i = 0; i < of->nr; i++)
		ids += of->device[i].nodes.nr;
	return of->nr * sizeof *of->device + ids * sizeof *of->device->nodes.id + text_bytes(of);
}

static const char *keep_text(char **at, const char *text)
{
	size_t bytes = strlen(text) + 1;
	const char *kept = memcpy(*at, text, bytes);

	*at += bytes;
	return kept;
}

static struct node_id_list keep_nodes(int64_t **at, struct node_id_list nodes)
{
	const struct node_id_list kept = {*at, nodes.nr};

	for (size_t i = 0; i < nodes.nr; i++)
		*(*at)++ = nodes.id[i];
	return kept;
}

static struct kept_slice *kept_slice_new(const struct slice *from)
{
	size_t bytes = sizeof(struct kept_slice) + slice_bytes(from);
	struct kept_slice *k = xcalloc(1, bytes);
	struct slice_device *list = (void *)k->memory;
	int64_t *ids = (void *)(list + from->nr);

	for (size_t i = 0; i < from->nr; i++)
		list[i].nodes = keep_nodes(&ids, from->device[i].nodes);
	char *texts = (char *)ids;
	k->name = keep_text(&texts, from->name);
	for (size_t i = 0; i < from->nr; i++) {
		const struct slice_device *d = &from->device[i];
		size_t first = d->bus ? first_of_bus(from, i) : i;

		list[i].name = keep_text(&texts, d->name);
		if (d->bus)
			list[i].bus = first < i ? list[first].bus : keep_text(&texts, d->bus);
	}
	assert(texts == (char *)k + bytes);
	if (from->nr)
		qsort(list, from->nr, sizeof *list, by_device_name);
	k->generation = from->generation;
	k->nr_slices = from->nr_slices;
	k->device = list;
	k->nr = from->nr;
	k->bytes = bytes;
	return k;
}

static bool same_devices(const struct kept_slice *a, const struct kept_slice *b)
{
	bool same = a->nr == b->nr;

	for (size_t i = 0; same && i < a->nr; i++)
		same = text_equal(a->device[i].name, b->device[i].name) &&
		       node_id_list_equal(a->device[i].nodes, b->device[i].nodes) &&
		       text_equal(a->device[i].bus, b->device[i].bus);
	return same;
}

/* Places */

static size_t place_of_slice(const struct slice_store *s, const char *name)
{
	size_t low = 0, high = s->there.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(s->there.at[middle]->name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool slice_is_at(const struct slice_store *s, size_t i, const char *name)
{
	return i < s->there.nr && text_equal(s->there.at[i]->name, name);
}

static int compare_pools(const struct kept_pool *p, const char *driver, const char *name)
{
	int rc = strcmp(p->driver, driver);

	return rc ? rc : strcmp(p->name, name);
}

static size_t place_of_pool(const struct slice_store *s, const char *driver, const char *name)
{
	size_t low = 0, high = s->pools.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_pools(s->pools.at[middle], driver, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool pool_is_at(const struct slice_store *s, size_t i, const char *driver, const char *name)
{
	return i < s->pools.nr && compare_pools(s->pools.at[i], driver, name) == 0;
}

/* Pools */

static struct kept_pool *pool_of(struct slice_store *s, const char *driver, const char *name)
{
	size_t i = place_of_pool(s, driver, name);
	size_t driver_bytes = strlen(driver) + 1, name_bytes = strlen(name) + 1;

	if (pool_is_at(s, i, driver, name))
		return s->pools.at[i];
	struct kept_pool *p = xcalloc(1, sizeof *p + driver_bytes + name_bytes);
	p->bytes = sizeof *p + driver_bytes + name_bytes;
	p->driver = memcpy(p->memory, driver, driver_bytes);
	p->name = memcpy(p->memory + driver_bytes, name, name_bytes);
	*vec_insert(&s->pools, i) = p;
	s->bytes += p->bytes;
	return p;
}

static void drop_pool_if_empty(struct slice_store *s, struct kept_pool *p)
{
	if (p->nr)
		return;
	vec_remove(&s->pools, place_of_pool(s, p->driver, p->name));
	s->bytes -= p->bytes;
	vec_fini(p);
	free(p);
}

/* Those of its slices that are neither there nor count. */
static void drop_slices(struct slice_store *s, struct kept_pool *p)
{
	size_t nr = 0;

	for (size_t i = 0; i < p->nr; i++) {
		struct kept_slice *k = p->at[i];

		if (k->there || k->counts) {
			p->at[nr++] = k;
			continue;
		}
		s->bytes -= k->bytes;
		free(k);
	}
	p->nr = nr;
}

/* The newest generation of which a slice is there. False: there is none. */
static bool newest_generation(const struct kept_pool *p, uint64_t *generation)
{
	bool any = false;

	for (size_t i = 0; i < p->nr; i++) {
		if (!p->at[i]->there || (any && p->at[i]->generation <= *generation))
			continue;
		*generation = p->at[i]->generation;
		any = true;
	}
	return any;
}

static bool is_complete(const struct kept_pool *p, uint64_t generation)
{
	uint64_t nr = 0, wanted = 0;

	for (size_t i = 0; i < p->nr; i++) {
		const struct kept_slice *k = p->at[i];

		if (!k->there || k->generation != generation)
			continue;
		nr++;
		wanted = k->nr_slices > wanted ? k->nr_slices : wanted;
	}
	return nr >= wanted;
}

/* After its slices have changed: the newest generation counts if it is there as a whole. Whether
 * the devices that count are others now. The pool may be gone then. */
static bool settle_pool(struct slice_store *s, struct kept_pool *p)
{
	uint64_t generation = 0;
	bool changed = false;

	if (newest_generation(p, &generation) && is_complete(p, generation))
		for (size_t i = 0; i < p->nr; i++) {
			struct kept_slice *k = p->at[i];
			bool counts = k->there && k->generation == generation;

			changed = changed || counts != k->counts;
			k->counts = counts;
		}
	drop_slices(s, p);
	drop_pool_if_empty(s, p);
	return changed;
}

/* Slices that come and go */

void slice_store_begin(struct slice_store *s)
{
	s->round++;
}

bool slice_store_sweep(struct slice_store *s)
{
	bool changed = false;
	size_t nr = 0;

	for (size_t i = 0; i < s->there.nr; i++) {
		s->there.at[i]->there = s->there.at[i]->round == s->round;
		if (s->there.at[i]->there)
			s->there.at[nr++] = s->there.at[i];
	}
	s->there.nr = nr;
	for (size_t i = s->pools.nr; i--;)
		changed = settle_pool(s, s->pools.at[i]) || changed;
	return changed;
}

/* Pools that nobody publishes any more make room. */
static void forget_deleted_pools(struct slice_store *s)
{
	uint64_t generation = 0;

	for (size_t i = s->pools.nr; i--;) {
		struct kept_pool *p = s->pools.at[i];

		if (newest_generation(p, &generation))
			continue;
		for (size_t k = 0; k < p->nr; k++)
			p->at[k]->counts = false;
		drop_slices(s, p);
		drop_pool_if_empty(s, p);
	}
}

static bool has_room(struct slice_store *s, const struct slice *slice)
{
	size_t needs = slice_bytes(slice) + sizeof(struct kept_slice) + sizeof(struct kept_pool) +
		       strlen(slice->driver) + strlen(slice->pool) + 2;

	if (s->bytes + needs > SLICE_STORE_BYTES_MAX)
		forget_deleted_pools(s);
	return s->bytes + needs <= SLICE_STORE_BYTES_MAX;
}

/* Whether the slice is the one that is there already. */
static bool same_slice(
	const struct kept_slice *old, const struct kept_slice *k, const struct slice *slice)
{
	return compare_pools(old->pool, slice->driver, slice->pool) == 0 &&
	       old->generation == k->generation && old->nr_slices == k->nr_slices &&
	       same_devices(old, k);
}

int slice_store_put(struct slice_store *s, const struct slice *slice, struct err *e)
{
	size_t i = place_of_slice(s, slice->name);
	struct kept_slice *old = slice_is_at(s, i, slice->name) ? s->there.at[i] : NULL;

	assert(slice->nr <= SLICE_DEVICES_MAX);
	if (!has_room(s, slice)) {
		if (old)
			old->round = s->round;
		return err_set(e, ENOSPC,
			"resourceslice %.64s: devices of %d MiB are known already, more than a "
			"node has: others are passed over",
			slice->name, SLICE_STORE_BYTES_MAX / BYTES_PER_MIB);
	}
	struct kept_slice *k = kept_slice_new(slice);
	if (old && same_slice(old, k, slice)) {
		old->round = s->round;
		free(k);
		return 0;
	}
	if (!old)
		(void)vec_insert(&s->there, i);
	else
		old->there = false;
	s->there.at[i] = k;
	s->bytes += k->bytes;
	k->there = true;
	k->round = s->round;
	k->pool = pool_of(s, slice->driver, slice->pool);
	*vec_push(k->pool) = k;
	struct kept_pool *before = old && old->pool != k->pool ? old->pool : NULL;
	bool changed = settle_pool(s, k->pool);
	return (before && settle_pool(s, before)) || changed;
}

bool slice_store_remove(struct slice_store *s, const char *name)
{
	size_t i = place_of_slice(s, name);

	if (!slice_is_at(s, i, name))
		return false;
	s->there.at[i]->there = false;
	struct kept_pool *p = s->there.at[i]->pool;
	vec_remove(&s->there, i);
	return settle_pool(s, p);
}

/* Questions */

const struct slice_device *slice_store_find(
	const struct slice_store *s, const char *driver, const char *pool, const char *device)
{
	size_t i = place_of_pool(s, driver, pool);
	const struct slice_device key = {.name = device}, *found = NULL;

	if (!pool_is_at(s, i, driver, pool))
		return NULL;
	const struct kept_pool *p = s->pools.at[i];
	for (size_t k = 0; !found && k < p->nr; k++)
		if (p->at[k]->counts && p->at[k]->nr)
			found = bsearch(
				&key, p->at[k]->device, p->at[k]->nr, sizeof key, by_device_name);
	return found;
}

struct slice_counts slice_store_count(const struct slice_store *s)
{
	struct slice_counts c = {.slices = s->there.nr, .bytes = s->bytes};

	for (size_t i = 0; i < s->pools.nr; i++) {
		const struct kept_pool *p = s->pools.at[i];
		uint64_t generation = 0;
		bool counts = false;

		for (size_t k = 0; k < p->nr; k++) {
			counts = counts || p->at[k]->counts;
			c.devices += p->at[k]->counts ? p->at[k]->nr : 0;
		}
		c.pools += counts;
		c.incomplete_pools +=
			newest_generation(p, &generation) && !is_complete(p, generation);
	}
	return c;
}
