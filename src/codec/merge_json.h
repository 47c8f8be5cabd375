#ifndef NUMAFIT_CODEC_MERGE_JSON_H
#define NUMAFIT_CODEC_MERGE_JSON_H

#include <codec/policy_json.h>

/* The question `merge`: the hints of all providers, for the Topology Manager's policy. Beside the
 * keys of policy_json.h it has
 *   "providers": [{resource: [{"mask": [ids]|null, "preferred": bool}] | [] | null} | null] */

struct merge_question {
	struct policy_question put_to;
	const struct hint_list *lists;
	size_t nr_lists;
};

/* Read it from the object. Lists and hints live in *a; nodes that the machine lacks get bits above
 * those of its own. 0; 1: the kubelet would not start with these options, its words are in *e;
 * -EINVAL, -ERANGE, -ENOMEM: cannot be read, the text leads to the place. *q is written only on 0.
 */
int merge_json_read(struct json_t *item, struct arena *a, struct merge_question *q, struct err *e);

/* Read it, merge, and give the answer as *result (a new reference). 0; -EINVAL, -ERANGE, -ENOMEM:
 * no answer, the text says why. */
int merge_json_answer(struct json_t *item, struct arena *a, struct json_t **result, struct err *e);

#endif
