#ifndef NUMAFIT_CODEC_MOVES_JSON_H
#define NUMAFIT_CODEC_MOVES_JSON_H

#include <codec/fields.h>
#include <numafit/defrag.h>

/* Moves of running containers that make room (defrag.h), as one JSON object: planned, under way,
 * done. numafitd's answer to `numafit defrag`, and a member of `numafit whatif`'s. */

enum move_state {
	MOVE_PLANNED,
	MOVE_UNDER_WAY,
	MOVE_DONE,
	MOVE_UNDONE, /* something refused it, and the container is where it was */
	MOVE_GONE,   /* the container ended meanwhile */
	NR_MOVE_STATES
};
extern const char *const move_state_words[NR_MOVE_STATES]; /* "planned", "moving", "moved", ... */

struct move_line {
	const char *ns, *pod, *container, *id;
	uint64_t bytes; /* of memory, in use as far as that is known */
	uint64_t ms;    /* that it is expected to take, or took */
	uint64_t moved; /* bytes that are on the new NUMA nodes by now */
	struct cpuset from_cpus, to_cpus;
	const char *from_nodes, *to_nodes; /* kernel lists of NUMA nodes */
	enum move_state state;
	const char *why; /* it was undone; NULL */
};

/* What is done with them. */
enum moves_state {
	MOVES_ONLY_PLANNED,
	MOVES_UNDER_WAY,
	MOVES_DONE,
	MOVES_FAILED, /* one was undone, and the others were left out */
	NR_MOVES_STATES
};
extern const char *const moves_state_words[NR_MOVES_STATES]; /* "planned", "moving", ... */

struct moves {
	bool found; /* without moves: nothing has to be moved */
	bool cut;   /* there may be a cheaper plan, or one at all */
	enum moves_state state;
	const char *pod;    /* "default/web": for which room is to be made; NULL: for none */
	const char *cannot; /* why numafitd cannot make them; NULL: it can */
	uint64_t not_preferred, not_preferred_then; /* containers, before and after; without pod */
	uint64_t bytes, ms;                         /* of all; expected */
	unsigned cpus;
	unsigned nr;
	struct move_line at[DEFRAG_MOVES_MAX];
};
extern const struct fields moves_fields;

/* The words of one move's NUMA nodes, which a line borrows. */
struct move_nodes {
	char from[NODESET_TEXT_MAX], to[NODESET_TEXT_MAX];
};
/* A plan on that machine, none of whose moves has been made. All is borrowed, of words[] too. */
void moves_of_plan(const struct topo *t, const struct defrag_plan *plan,
	struct move_nodes words[DEFRAG_MOVES_MAX], struct moves *out);

/* {"moves": {...}}, without a newline; the caller frees. NULL: it is too large. */
char *moves_json_format(const struct moves *m);
/* {"error": "..."}: why there are none; likewise. */
char *moves_json_error(const char *why);
/* Read it back; strings live in *a. 0; -EREMOTEIO with the text of an error that stands there
 * instead; -EINVAL, -ERANGE: no such object; -ENOMEM: the arena's limit. */
int moves_json_parse(
	const char *text, size_t len, struct arena *a, struct moves *out, struct err *e);

#endif
