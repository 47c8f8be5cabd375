#ifndef NUMAFIT_CODEC_POD_SPEC_H
#define NUMAFIT_CODEC_POD_SPEC_H

#include <numafit/arena.h>
#include <numafit/err.h>
#include <numafit/pod_store.h>
#include <numafit/quantity.h>
#include <numafit/settings.h>

/* What a v1.Pod says, in whatever form it came (pod_json.h, the kubelet's Pods API), and what that
 * comes to. Amounts are as written: no request follows from a limit here. */

enum {
	POD_SPEC_CONTAINERS_MAX = 512, /* init containers included */
	POD_SPEC_RESOURCES_MAX = 64    /* in one list of requests or limits of a pod of this node */
};

/* A name that comes again counts as the last one does, as in a map. */
struct resource_amount {
	const char *name;
	struct quantity q;
};
struct resource_list {
	const struct resource_amount *at;
	size_t nr;
};
struct resource_spec {
	bool said; /* if only that there are none: "resources: {}" */
	struct resource_list requests, limits;
	bool has_claims; /* of a container: it has devices through claims (DRA) */
};

struct container_spec {
	const char *name;
	enum container_kind kind;
	struct resource_spec resources;
};
/* The kind of a container of that list with that restartPolicy. */
enum container_kind container_kind_of(bool init, const char *restart_policy);

/* No string is NULL; what the pod does not say is "". */
struct pod_spec {
	const char *uid, *ns, *name;
	const char *qos; /* its class as its status has it */
	const char *phase;
	enum pod_owner owner;
	const struct key_value *annotations;
	size_t nr_annotations;
	struct container_spec *container; /* init containers first */
	unsigned nr;
	struct resource_spec resources; /* of the pod as a whole */
	struct resource_list overhead;
};
/* Makes room for that many containers, from *a. 0; -E2BIG: more than POD_SPEC_CONTAINERS_MAX;
 * -ENOMEM. */
int pod_spec_alloc(
	struct pod_spec *s, size_t nr_init, size_t nr_app, struct arena *a, struct err *e);

/* Whether it is the name of an extended resource, which device plugins have
 * (pkg/apis/core/v1/helper/helpers.go, IsExtendedResourceName; that it is well-formed the API
 * server has seen to). */
bool resource_is_extended(const char *name);

/* Whether anybody here reads the pod's annotation of that key: wishes of its author (wishes.h),
 * advice of schedulers (advice.h), and the placement that was observed (observed.h). What is made
 * of a pod has these alone: it may have very many others, of a few bytes each. */
bool pod_spec_reads(const char *annotation);

/* Extended resources that count, ascending (byte order), each once: what device_ask's resource is
 * an index of. */
struct resource_names {
	const char *const *at;
	unsigned nr;
};

/* Who the pod is, those of its annotations that are read (pod_spec_reads()), what it asks for, and
 * its class when its status does not say one (qos.h).
 * Requests that are missing are the limits, as the API server fills them in; the pod has resources
 * of its own when it says something of CPUs, memory or huge pages (component-helpers/resource,
 * IsPodLevelResourcesSet). How the class is computed, and whether these are shared out,
 * rules->gates and ->cpu_options.kubernetes say; NULL: as the newest kubelet computes it, and
 * pod_obey_gate() is the caller's to call. Parts of *out come from *a, strings are the spec's. 0;
 * -EINVAL, -ERANGE with the place: a size of huge pages that is none, a negative amount, too many
 * kinds; -ENOMEM. */
int pod_spec_ask(const struct pod_spec *s, const struct resource_names *resources, struct arena *a,
	const struct settings *rules, struct pod *out, struct err *e);

/* The pod as one of this node, with all extended resources that its containers ask for. Parts of
 * *out come from *a, strings are the spec's. 0; -E2BIG: a list of more than
 * POD_SPEC_RESOURCES_MAX; or as pod_spec_ask(). */
int pod_spec_known(const struct pod_spec *s, enum pod_source source, struct arena *a,
	struct known_pod *out, struct err *e);

#endif
