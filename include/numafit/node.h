#ifndef NUMAFIT_NODE_H
#define NUMAFIT_NODE_H

#include <numafit/admission.h>

/* A node as the kubelet keeps it: its books, and the pods that it has admitted. */

/* An admitted pod; grants' reasons live as long as the arena of its admission. */
struct node_pod {
	char *uid;
	char **name; /* of its containers, in the order of their admission */
	struct grants grants;
};

struct node;

/* An empty node, with settings that settings_check_kubelet() has taken. All arguments are borrowed.
 * NULL, with the kubelet's words, when the CPUs to reserve cannot be found. */
struct node *node_new(const struct topo *t, const struct settings *s,
	const struct device_resource *resources, unsigned nr_resources, struct err *e);
void node_free(struct node *n);

/* Admit the pod; all its searches together take mergeVisitBudget steps. Working memory from *a. 0,
 * or -EPERM with *why: nothing of it is held then. */
int node_admit(struct node *n, const struct pod *pod, struct arena *a, struct refusal *why);
/* The container has started: the memory of the init containers before it is free again. */
void node_start(struct node *n, const char *uid, const char *name);
/* The pod is gone. */
void node_remove(struct node *n, const char *uid);

/* The admitted pod of that uid, or NULL. */
const struct node_pod *node_find(const struct node *n, const char *uid);
const struct books *node_books(const struct node *n);

#endif
