#ifndef NUMAFIT_CODEC_POD_SPEC_H
#define NUMAFIT_CODEC_POD_SPEC_H

#include <numafit/arena.h>
#include <numafit/err.h>
#include <numafit/pod.h>

/* What the spec of a v1.Pod says of resources, in whatever form it came, and what it comes to. */

/* Name and quantity of each: "cpu", "500m". A name that comes again counts as the last one does, as
 * in a map. */
struct resource_list {
	const struct key_value *at;
	size_t nr;
};
/* Requests that are missing are the limits, as the API server fills them in. */
struct resource_spec {
	struct resource_list requests, limits;
};

struct container_spec {
	const char *name;
	enum container_kind kind;
	struct resource_spec resources;
};

struct pod_spec {
	const char *qos; /* its class as its status has it; NULL, "" or unknown: not told */
	struct resource_spec resources; /* of the pod as a whole */
	const struct container_spec *container;
	unsigned nr;
	/* The extended resources that count, ascending (byte order), each once: what device_ask's
	 * resource is an index of. */
	const char *const *resource;
	unsigned nr_resources;
};

/* Whether it is the name of an extended resource, which device plugins have
 * (pkg/apis/core/v1/helper/helpers.go, IsExtendedResourceName; that it is well-formed the API
 * server has seen to). */
bool resource_is_extended(const char *name);

/* Makes s->resource the list of all extended resources that its containers ask for; it comes from
 * *a. 0; -ENOMEM. */
int pod_spec_list_resources(struct pod_spec *s, struct arena *a, struct err *e);

/* What the pod asks for, and its class when its status does not tell (pkg/apis/core/v1/helper/qos),
 * into *out; who the pod is stays as it is there. Parts of it come from *a, strings are the spec's.
 * 0; -EINVAL, -ERANGE with the place: a quantity that is none, too many kinds; -ENOMEM. */
int pod_spec_ask(const struct pod_spec *s, struct arena *a, struct pod *out, struct err *e);

#endif
