#ifndef NUMAFIT_EXTENDER_EXTENDER_ARGS_JSON_H
#define NUMAFIT_EXTENDER_EXTENDER_ARGS_JSON_H

#include <plugin-args/args_json.h>
#include <codec/sched_json.h>
#include <numafit/sched_cluster.h>

/* Plugins' arguments out of a YAML file, as the readers of score_args_json.h take them. */

enum { EXTENDER_LIST_MAX = 1024 }; /* elements of one list */

/* Put a scalar at its place ("scoringStrategy.resources.0.weight"; "" is the whole) in *root, which
 * may be NULL at first; api_json_free(). Words that YAML takes for numbers, booleans or null are
 * these, whether they stand in quotes or not; value NULL is an empty map. 0; -EINVAL: something
 * else is there already, or the place cannot be. */
int extender_args_put(struct json_t **root, const char *path, const char *value, struct err *e);

/* A plugin's arguments, NULL: none. Those of NodeResourceTopologyMatch also say how reports are
 * to be relied upon, which goes into *cluster. There cacheResyncPeriodSeconds means that pods are
 * counted that are not in a report yet; it is on unless it is 0, as nothing is ever polled. And
 * foreignPodsDetect is OnlyExclusiveResources where it is not given. 0; 1: refused, *p says why in
 * upstream's words; -ENOMEM. */
int extender_args_json_read(struct json_t *v, const struct sched_reader *r, struct sched_use *use,
	struct sched_cluster_args *cluster, struct args_problems *p, struct err *e);

#endif
