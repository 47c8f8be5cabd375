#ifndef NUMAFIT_CODEC_ARGS_CHECK_H
#define NUMAFIT_CODEC_ARGS_CHECK_H

#include <plugin-args/args_json.h>
#include <numafit/generic_score.h>

/* What kube-scheduler checks of its plugins' arguments (pkg/scheduler/apis/config/validation), and
 * what it says. path is the place of the list. */

/* v1.ResourceSpec, and a list of them. */
struct weight_spec {
	const char *name;
	int64_t weight;
};
struct weight_specs {
	const struct weight_spec *at;
	size_t nr;
};

enum { ARGS_PLACE_MAX = 160 };
/* "path[i]", or "path[i].member". Returns buf. */
const char *args_place(char buf[ARGS_PLACE_MAX], const char *path, unsigned i, const char *member);

/* Qualified names: "cpu", "example.com/gpu". */
void args_check_names(
	const char *path, const char *const *name, unsigned nr, struct args_problems *p);
/* Such names, without a '/'. */
void args_check_groups(
	const char *path, const char *const *group, unsigned nr, struct args_problems *p);
/* Weights within 1 and 100. */
void args_check_weights(
	const char *path, const struct weight_specs *specs, struct args_problems *p);
/* At least one point, their utilizations ascending within 0 and 100, scores within 0 and 10. */
void args_check_shape(
	const char *path, const struct shape_point *shape, unsigned nr, struct args_problems *p);

#endif
