/* base: growable arrays */
#ifndef NUMAFIT_VEC_H
#define NUMAFIT_VEC_H

#include <numafit/mem.h>
#include <string.h>

/* A growable array of T: struct foo_vec { VEC(struct foo); }. Zeros are an empty one.
 * Elements move when it grows: keep indexes, not pointers. */
#define VEC(T)                                                                                     \
	T *at;                                                                                     \
	size_t nr, cap

/* A new zeroed element at the end; its address. Aborts when memory is out (mem.h). */
#define vec_push(v)                                                                                \
	({                                                                                         \
		if ((v)->nr == (v)->cap) {                                                         \
			(v)->cap = (v)->cap ? (v)->cap * 2 : 8;                                    \
			(v)->at = xrealloc((v)->at, (v)->cap, sizeof *(v)->at);                    \
		}                                                                                  \
		memset(&(v)->at[(v)->nr], 0, sizeof *(v)->at);                                     \
		&(v)->at[(v)->nr++];                                                               \
	})

/* A new zeroed element at index i, those from i on moved up; its address. */
#define vec_insert(v, i)                                                                           \
	({                                                                                         \
		size_t at_ = (i);                                                                  \
		(void)vec_push(v);                                                                 \
		memmove(&(v)->at[at_ + 1], &(v)->at[at_], ((v)->nr - 1 - at_) * sizeof *(v)->at);  \
		memset(&(v)->at[at_], 0, sizeof *(v)->at);                                         \
		&(v)->at[at_];                                                                     \
	})

/* Take out the element at index i, those behind it moved down. */
#define vec_remove(v, i)                                                                           \
	do {                                                                                       \
		size_t at_ = (i);                                                                  \
		(v)->nr--;                                                                         \
		memmove(&(v)->at[at_], &(v)->at[at_ + 1], ((v)->nr - at_) * sizeof *(v)->at);      \
	} while (0)

/* Free the array; what its elements own is the caller's matter. */
#define vec_fini(v)                                                                                \
	do {                                                                                       \
		free((v)->at);                                                                     \
		(v)->at = NULL;                                                                    \
		(v)->nr = (v)->cap = 0;                                                            \
	} while (0)

#endif
