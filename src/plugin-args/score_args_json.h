#ifndef NUMAFIT_CODEC_SCORE_ARGS_JSON_H
#define NUMAFIT_CODEC_SCORE_ARGS_JSON_H

#include <plugin-args/args_json.h>
#include <codec/sched_json.h>
#include <numafit/generic_score.h>
#include <numafit/nrt.h>

/* The arguments of each plugin, with upstream's names, defaults and checks (kube-scheduler's v1
 * configuration, scheduler-plugins' v1). Each fills *out, whose parts live in r's arena. 0; 1: they
 * are refused, *p says what upstream would; -ENOMEM. v may be NULL: all defaults. */

struct fit_args {
	struct generic_args score; /* the strategy, as what it is a setting of */
	struct fit_ignored ignored;
};
/* NodeResourcesFitArgs */
int fit_args_json_read(struct json_t *v, const struct sched_reader *r, struct fit_args *out,
	struct args_problems *p, struct err *e);
/* NodeResourcesBalancedAllocationArgs */
int balanced_args_json_read(struct json_t *v, const struct sched_reader *r,
	struct resource_weights *out, struct args_problems *p, struct err *e);
/* NodeResourcesAllocatableArgs; of a resource that comes twice the last weight counts */
int allocatable_args_json_read(struct json_t *v, const struct sched_reader *r,
	struct generic_args *out, struct args_problems *p, struct err *e);
/* GenericNodeResourcesArgs of KEP-2143, with our shape; resources are a map or a list */
int generic_args_json_read(struct json_t *v, const struct sched_reader *r, struct generic_args *out,
	struct args_problems *p, struct err *e);
/* NodeResourceTopologyMatchArgs; compat is none of them */
int nrt_args_json_read(struct json_t *v, const struct sched_reader *r, struct nrt_args *out,
	struct args_problems *p, struct err *e);
/* Volcano's numa-aware: its weight */
int volcano_args_json_read(struct json_t *v, const struct sched_reader *r, int64_t *out,
	struct args_problems *p, struct err *e);

#endif
