#ifndef NUMAFIT_NODE_DIAGNOSIS_WORDS_H
#define NUMAFIT_NODE_DIAGNOSIS_WORDS_H

#include "diagnosis_trial.h"

/* What diagnosis_words.c and remedies_words.c share. */

/* "1 CPU", "12 CPUs" */
void words_add_cpus(struct text *t, uint64_t cpus);
/* "NUMA node 3", "NUMA nodes 0-1" */
void words_add_nodes(struct text *t, struct nodeset nodes, const struct admit_question *q);
/* The pod in question. */
const struct pod *words_pod(const struct admit_question *q);
/* What is asked for of memory of that page size; 0: none. */
uint64_t words_bytes_in(const struct ask *ask, uint64_t page_bytes);

#endif
