#include <numafit/pod_store.h>

#include <assert.h>
#include <numafit/arena.h>
#include <numafit/text.h>
#include <numafit/vec.h>
#include <stdalign.h>
#include <string.h>

/* A pod as it was reported last: one block, just as large as what is kept of it. */
struct kept {
	struct known_pod pod;
	uint64_t round; /* in which it was reported last */
	size_t bytes;   /* all of it */
	alignas(max_align_t) char memory[];
};

struct pod_store {
	struct {
		VEC(struct kept *);
	} kept; /* ascending by uid */
	size_t bytes;
	uint64_t round;
};

struct pod_store *pod_store_new(void)
{
	return xcalloc(1, sizeof(struct pod_store));
}

void pod_store_free(struct pod_store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->kept.nr; i++)
		free(s->kept.at[i]);
	vec_fini(&s->kept);
	free(s);
}

bool pod_owner_makes_another(enum pod_owner owner)
{
	return owner == POD_OWNER_CONTROLLER;
}

/* The copy of a pod: the caller's memory has all of what it read, and parts that nobody knows a
 * second time. */

static const char *store_string(const char *s, struct arena *a)
{
	return arena_strndup(a, s, strlen(s));
}

/* Takes from *a the same each time; where it is too small, *to is of no use. */
static void store_pod(const struct known_pod *from, struct arena *a, struct known_pod *to)
{
	const struct pod *pod = &from->pod;
	struct ask *asks = arena_array(a, pod->nr, sizeof *asks);
	struct key_value *annotations = arena_array(a, pod->nr_annotations, sizeof *annotations);
	const char **resources = arena_array(a, from->nr_resources, sizeof *resources);
	struct ask *own = pod->own ? arena_alloc(a, sizeof *own) : NULL;

	*to = *from;
	to->pod.sandbox_id = "";
	to->pod.ns = store_string(pod->ns, a);
	to->pod.name = store_string(pod->name, a);
	to->pod.uid = store_string(pod->uid, a);
	for (unsigned i = 0; asks && i < pod->nr; i++) {
		asks[i] = pod->container[i];
		asks[i].name = store_string(asks[i].name, a);
	}
	for (size_t i = 0; annotations && i < pod->nr_annotations; i++)
		annotations[i] = (struct key_value){store_string(pod->annotations[i].key, a),
			store_string(pod->annotations[i].value, a)};
	for (unsigned i = 0; resources && i < from->nr_resources; i++)
		resources[i] = store_string(from->resource[i], a);
	if (own) {
		*own = *pod->own;
		own->name = "";
	}
	to->pod.own = own;
	to->pod.container = asks;
	to->pod.annotations = annotations;
	to->resource = resources;
}

static struct kept *kept_pod_new(const struct known_pod *from, uint64_t round)
{
	struct known_pod measured;
	struct arena a;

	arena_init(&a, SIZE_MAX);
	store_pod(from, &a, &measured);
	size_t bytes = a.given;
	arena_fini(&a);

	struct kept *k = xcalloc(1, sizeof *k + bytes);
	arena_init_fixed(&a, k->memory, bytes);
	store_pod(from, &a, &k->pod);
	assert(a.given == bytes);
	k->round = round;
	k->bytes = sizeof *k + bytes;
	return k;
}

static void drop_kept_pod(struct pod_store *s, struct kept *k)
{
	s->bytes -= k->bytes;
	free(k);
}

/* Whether two pods ask for the same */

static bool same_containers(const struct ask *x, const struct ask *y)
{
	bool same = text_equal(x->name, y->name) && x->kind == y->kind && x->tokens == y->tokens &&
		    x->cpu_milli == y->cpu_milli && x->guaranteed == y->guaranteed && x->has_claims == y->has_claims &&
		    x->nr_memory == y->nr_memory && x->nr_devices == y->nr_devices;

	for (unsigned i = 0; same && i < x->nr_memory; i++)
		same = x->memory[i].page_bytes == y->memory[i].page_bytes &&
		       x->memory[i].bytes == y->memory[i].bytes;
	for (unsigned i = 0; same && i < x->nr_devices; i++)
		same = x->device[i].resource == y->device[i].resource &&
		       x->device[i].count == y->device[i].count;
	return same;
}

static bool same_asks(const struct known_pod *x, const struct known_pod *y)
{
	const struct pod *a = &x->pod, *b = &y->pod;
	bool same = a->qos == b->qos && a->pod_level == b->pod_level && !a->own == !b->own &&
		    a->nr == b->nr && x->nr_resources == y->nr_resources;
	static const struct ask none = {.name = ""};

	same = same && same_containers(a->own ? a->own : &none, b->own ? b->own : &none);

	for (unsigned i = 0; same && i < a->nr; i++)
		same = same_containers(&a->container[i], &b->container[i]);
	for (unsigned i = 0; same && i < x->nr_resources; i++)
		same = text_equal(x->resource[i], y->resource[i]);
	return same;
}

/* Where the pod is, or is to be. */
static size_t place_of_uid(const struct pod_store *s, const char *uid)
{
	size_t low = 0, high = s->kept.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(s->kept.at[middle]->pod.pod.uid, uid) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct pod_store *s, size_t i, const char *uid)
{
	return i < s->kept.nr && text_equal(s->kept.at[i]->pod.pod.uid, uid);
}

void pod_store_begin(struct pod_store *s)
{
	s->round++;
}

void pod_store_sweep(struct pod_store *s)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->kept.nr; i++) {
		if (s->kept.at[i]->round == s->round)
			s->kept.at[nr++] = s->kept.at[i];
		else
			drop_kept_pod(s, s->kept.at[i]);
	}
	s->kept.nr = nr;
}

bool pod_store_put(struct pod_store *s, const struct known_pod *pod, const struct known_pod **kept)
{
	size_t i = place_of_uid(s, pod->pod.uid);
	struct kept *k = kept_pod_new(pod, s->round);
	bool was_known = is_at(s, i, pod->pod.uid);
	bool same = was_known && same_asks(&s->kept.at[i]->pod, pod);

	if (was_known)
		drop_kept_pod(s, s->kept.at[i]);
	else
		(void)vec_insert(&s->kept, i);
	s->kept.at[i] = k;
	s->bytes += k->bytes;
	*kept = &k->pod;
	return !same;
}

bool pod_store_remove(struct pod_store *s, const char *uid)
{
	size_t i = place_of_uid(s, uid);

	if (!is_at(s, i, uid))
		return false;
	drop_kept_pod(s, s->kept.at[i]);
	vec_remove(&s->kept, i);
	return true;
}

const struct known_pod *pod_store_find(const struct pod_store *s, const char *uid)
{
	size_t i = place_of_uid(s, uid);

	return is_at(s, i, uid) ? &s->kept.at[i]->pod : NULL;
}

size_t pod_store_count(const struct pod_store *s)
{
	return s->kept.nr;
}

size_t pod_store_bytes(const struct pod_store *s)
{
	return s->bytes;
}

const struct known_pod *pod_store_at(const struct pod_store *s, size_t i)
{
	assert(i < s->kept.nr);
	return &s->kept.at[i]->pod;
}
