#ifndef NUMAFIT_SCHED_SCHED_INDEX_H
#define NUMAFIT_SCHED_SCHED_INDEX_H

#include <stddef.h>
#include <stdint.h>

/* Things by their name: a table of hashes, as the pods of 5,000 nodes come and go too often for a
 * sorted array. What is found begins with its key. */
struct sched_key {
	uint64_t hash;
	char *name; /* owned by the index */
};
/* Zeros are an empty one. Open to be walked through: slots may be NULL, and on removing the one at
 * hand, look at its slot once more. */
struct sched_index {
	struct sched_key **slot;
	size_t cap, nr;
};

/* What has that name, or NULL. */
void *sched_index_find(const struct sched_index *x, const char *name);
/* Enter it by that name, which must be new. */
void sched_index_add(struct sched_index *x, struct sched_key *key, const char *name);
void sched_index_remove(struct sched_index *x, struct sched_key *key);
/* free_entry() is called for each. */
void sched_index_fini(struct sched_index *x, void (*free_entry)(void *entry));

#endif
