#ifndef NUMAFIT_CODEC_JOURNAL_JSON_H
#define NUMAFIT_CODEC_JOURNAL_JSON_H

#include <codec/fields.h>
#include <codec/words.h>
#include <numafit/engine.h>

/* The journal's lines. The first says whose journal it is; each further one is one record, whole
 * enough to build the ledger again and to explain the decision. A line holds no newline. */

struct journal_header {
	const char *version;       /* numafit's */
	const char *boot_id;       /* the kernel's, of the boot that the containers run in */
	const char *machine;       /* struct topo's name */
	uint32_t fingerprint;      /* topo_fingerprint() */
	struct word_list settings; /* words_of_settings() */
	/* Its records say who has placed a container (decision.placed_by). Where they do not, all
	 * that a mode has entered which places nothing is PLACED_IN_SHADOW. */
	bool says_placed_by;
	enum core_rule core_rule;  /* by which it decided: no setting has it; 0.2.0 did not say */
	const char *topology;      /* the whole machine, as machine_text_write() has it */
};

/* A container's ask as a record has it. */
extern const struct fields journal_ask_fields;

/* The first line into buf of cap bytes. Returns its length, or -EMSGSIZE when it does not fit. */
int journal_json_header(const struct journal_header *h, char *buf, size_t cap, struct err *e);
/* Read it back; strings live in *a. 0; -EINVAL, -ERANGE: not a journal's first line; -ENOTSUP: that
 * of a journal of another format, written by a numafit before or after this one; -ENOMEM: the
 * arena's limit. */
int journal_json_parse_header(
	const char *text, size_t len, struct arena *a, struct journal_header *out, struct err *e);

/* *r as one line into buf of cap bytes, without the heap: a container's creation waits for it.
 * All that was decided on is in it: of a pod that was decided as a whole its containers, too.
 * Left out of the request: the pod's annotations and the container's placement annotation, which
 * may be of any size and which no holding is built from. The request's container id is the
 * record's. Returns the length, or -EMSGSIZE when it does not fit. */
int journal_json_record(
	const struct record *r, const struct node_ids *ids, char *buf, size_t cap, struct err *e);

/* The same of a pod, or of a container (else NULL) with its pod, as if it had just been refused: a
 * question about it, for whoever reads records. ids may be those of no machine for a pod that names
 * no NUMA nodes. */
int journal_json_refused(const struct request *container, const struct pod *pod,
	const struct node_ids *ids, char *buf, size_t cap, struct err *e);

/* A record and what it points to. */
struct decoded_record {
	struct record record; /* request, pod and decision point to the members below, or are NULL;
				 parts live in the arena */
	bool has_request, has_decision, has_parts;
	struct request request;
	struct decision decision;
	struct pod pod;          /* what record.pod points to, if it was kept */
	struct move_basis basis; /* what record.basis points to, likewise */
};
/* Read a line back into *out, whose strings live in *a and which must not be copied or moved while
 * out->record is in use. 0; -EINVAL, -ERANGE, -ENOENT (a NUMA node that ids lack), -ENOMEM. */
int journal_json_parse(const char *text, size_t len, const struct node_ids *ids, struct arena *a,
	struct decoded_record *out, struct err *e);

#endif
