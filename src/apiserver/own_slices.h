#ifndef NUMAFIT_APISERVER_OWN_SLICES_H
#define NUMAFIT_APISERVER_OWN_SLICES_H

#include <apiserver/slice_write_json.h>
#include <numafit/vec.h>

struct json_t; /* jansson's */

/* The ResourceSlices of driver numafit.io and this node as a watch has them: the one that is kept
 * as it should be, by its name, and extra ones that are to be deleted. */

enum { OWN_SLICES_EXTRA_MAX = 256 /* what is more is not seen before the next list */ };

struct own_slice {
	bool there, seen; /* seen: in the list that is read just now */
	bool other_pool;  /* which a PUT cannot change */
	char *version;    /* its resourceVersion */
	uint64_t generation;
	char *owner_uid; /* "": it has no owner */
	struct err odd;  /* code 0: it is as slice_write_json() would write it */
	size_t nr;
	struct slice_node *node;
};

struct extra_slice {
	char *name;
	bool seen;
};

struct own_slices {
	char name[SLICE_OBJECT_NAME_MAX];
	char *node_name;
	struct own_slice own;
	struct {
		VEC(struct extra_slice);
	} extra;
	uint64_t newest; /* the highest generation that any of them has ever had */
	/* The last resourceVersion of the one that is kept; 0: not known. Answers and the watch
	 * come by two ways, and what is older is passed by. */
	uint64_t version;
	struct slice_written *scratch;
};

void own_slices_init(struct own_slices *s, const char *node_name);
void own_slices_fini(struct own_slices *s);
/* All are named anew from here on; what is not by own_slices_sweep() is gone then. */
void own_slices_begin(struct own_slices *s);
void own_slices_sweep(struct own_slices *s);
/* It is there, new, changed or as it was. Returns whether it is the one that is kept, and not known
 * already. */
bool own_slices_put(struct own_slices *s, const struct json_t *object);
/* It is gone, as of that resourceVersion ("": as of now). Likewise. */
bool own_slices_remove(struct own_slices *s, const char *name, const char *version);

#endif
