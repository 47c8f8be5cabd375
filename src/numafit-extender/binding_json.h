#ifndef NUMAFIT_EXTENDER_BINDING_JSON_H
#define NUMAFIT_EXTENDER_BINDING_JSON_H

#include <numafit/pod.h>

/* A v1.Binding, as POST .../pods/NAME/binding takes it: pod and node, and annotations that the pod
 * has from that same moment on (pkg/registry/core/pod/storage, setPodNodeAndMetadata). */
struct binding {
	const char *ns, *name, *uid; /* another pod of that name is then not bound */
	const char *node;
	const struct key_value *annotation;
	size_t nr_annotations;
};
/* As JSON, for the caller to free; NULL: something is not UTF-8. */
char *binding_json_write(const struct binding *b);

#endif
