#include <plugin-args/score_args_json.h>

#include <plugin-args/args_check.h>
#include <errno.h>

/* The structs of the plugins' v1 arguments, as Go has them. */

struct ratio { /* v1.RequestedToCapacityRatioParam */
	const struct shape_point *shape;
	size_t nr;
};
struct strategy { /* v1.ScoringStrategy */
	const char *type;
	struct weight_specs resources;
	const struct ratio *ratio;
};

#define ARG(key_, type_, at_, go_, ...)                                                            \
	{                                                                                          \
		.key = (key_), .type = FIELD_##type_, .at = (at_), .go = (go_), ##__VA_ARGS__      \
	}
#define ARGS(go_, rows, T)                                                                         \
	{                                                                                          \
		.go = (go_), .row = (rows), .nr = sizeof(rows) / sizeof *(rows), .size = sizeof(T) \
	}
#define RESOURCES(T, member, ...)                                                                  \
	{                                                                                          \
		.key = "resources", .type = FIELD_LIST, .at = offsetof(T, member.at),              \
		.go = "[]v1.ResourceSpec", .count = offsetof(T, member.nr), .fields = &spec_args,  \
		##__VA_ARGS__                                                                      \
	}
#define SHAPE(T, at_, nr_)                                                                         \
	{                                                                                          \
		.key = "shape", .type = FIELD_LIST, .at = offsetof(T, at_),                        \
		.go = "[]v1.UtilizationShapePoint", .count = offsetof(T, nr_),                     \
		.fields = &point_args                                                              \
	}
/* metav1.TypeMeta: there, and of no matter */
#define TYPE_META(T)                                                                               \
	{.key = "kind", .type = FIELD_STRING, .at = offsetof(T, meta), .go = "string"},            \
	{                                                                                          \
		.key = "apiVersion", .type = FIELD_STRING, .at = offsetof(T, meta), .go = "string" \
	}

static const struct field spec_rows[] = {
	ARG("name", STRING, offsetof(struct weight_spec, name), "string"),
	ARG("weight", I64, offsetof(struct weight_spec, weight), "int64"),
};
static const struct fields spec_args = ARGS("v1.ResourceSpec", spec_rows, struct weight_spec);

static const struct field point_rows[] = {
	ARG("utilization", I64, offsetof(struct shape_point, utilization), "int32",
		.max = INT32_MAX),
	ARG("score", I64, offsetof(struct shape_point, score), "int32", .max = INT32_MAX),
};
static const struct fields point_args =
	ARGS("v1.UtilizationShapePoint", point_rows, struct shape_point);

static const struct field ratio_rows[] = {SHAPE(struct ratio, shape, nr)};
static const struct fields ratio_args =
	ARGS("v1.RequestedToCapacityRatioParam", ratio_rows, struct ratio);

/* scheduler-plugins' ScoringStrategy has the first two of these. */
static const struct field strategy_rows[] = {
	ARG("type", STRING, offsetof(struct strategy, type), "v1.ScoringStrategyType"),
	RESOURCES(struct strategy, resources),
	ARG("requestedToCapacityRatio", POINTER, offsetof(struct strategy, ratio),
		"v1.RequestedToCapacityRatioParam", .fields = &ratio_args),
};
static const struct fields strategy_args =
				   ARGS("v1.ScoringStrategy", strategy_rows, struct strategy),
			   nrt_strategy_args = {.go = "v1.ScoringStrategy",
				   .row = strategy_rows,
				   .nr = 2,
				   .size = sizeof(struct strategy)};

/* Conversions. */

static const struct weight_spec usual_specs[] = {{"cpu", 1}, {"memory", 1}},
				allocatable_specs[] = {{"cpu", 1 << 20}, {"memory", 1}};

/* cpu and memory where nothing is listed; names that are missing are ""; a weight of 0, which is
 * what a missing one reads as, is 1. */
static int default_specs(struct weight_specs *s, struct arena *a, struct err *e)
{
	struct weight_spec *copy;

	if (!s->nr)
		*s = (struct weight_specs){usual_specs, sizeof usual_specs / sizeof *usual_specs};
	copy = arena_array(a, s->nr, sizeof *copy);
	if (!copy)
		return err_set(e, ENOMEM, "too large");
	for (unsigned i = 0; i < s->nr; i++)
		copy[i] = (struct weight_spec){
			s->at[i].name ? s->at[i].name : "", s->at[i].weight ? s->at[i].weight : 1};
	s->at = copy;
	return 0;
}

static int to_weights(const struct weight_specs *s, const struct sched_reader *r,
	struct resource_weights *out, struct err *e)
{
	struct resource_weight *at = arena_array(r->arena, s->nr, sizeof *at);

	if (!at)
		return err_set(e, ENOMEM, "too large");
	for (unsigned i = 0; i < s->nr; i++)
		at[i] = (struct resource_weight){
			resource_number(r->names, s->at[i].name ? s->at[i].name : ""),
			s->at[i].weight};
	*out = (struct resource_weights){at, s->nr};
	return 0;
}

/* NodeResourcesFit */

struct fit_arguments {
	const char *meta;
	const char *const *ignored, *const *groups;
	size_t nr_ignored, nr_groups;
	struct strategy *strategy;
};
static const struct field fit_rows[] = {
	TYPE_META(struct fit_arguments),
	ARG("ignoredResources", STRINGS, offsetof(struct fit_arguments, ignored), "[]string",
		.count = offsetof(struct fit_arguments, nr_ignored)),
	ARG("ignoredResourceGroups", STRINGS, offsetof(struct fit_arguments, groups), "[]string",
		.count = offsetof(struct fit_arguments, nr_groups)),
	ARG("scoringStrategy", POINTER, offsetof(struct fit_arguments, strategy),
		"v1.ScoringStrategy", .fields = &strategy_args),
};
static const struct fields fit_arguments =
	ARGS("v1.NodeResourcesFitArgs", fit_rows, struct fit_arguments);

static const struct {
	const char *name;
	enum generic_portion portion;
	bool has_shape;
} strategies[] = {
	{"LeastAllocated", PORTION_LEFT, false},
	{"MostAllocated", PORTION_ALLOCATED, false},
	{"RequestedToCapacityRatio", PORTION_ALLOCATED, true},
};
enum { NR_STRATEGIES = sizeof strategies / sizeof *strategies };

static unsigned find_strategy(const char *name)
{
	unsigned i = 0;

	while (i < NR_STRATEGIES && !text_equal(strategies[i].name, name))
		i++;
	return i;
}

static void check_strategy(const struct strategy *s, struct args_problems *p)
{
	static const char ratio[] = "scoringStrategy.requestedToCapacityRatio";
	unsigned i = find_strategy(s->type);

	if (i == NR_STRATEGIES)
		args_problem(p, "scoringStrategy.type", ARGS_UNSUPPORTED,
			"\"%s\": supported values: \"LeastAllocated\", \"MostAllocated\", "
			"\"RequestedToCapacityRatio\"",
			s->type ? s->type : "");
	args_check_weights("scoringStrategy.resources", &s->resources, p);
	if (i == NR_STRATEGIES || !strategies[i].has_shape) {
		if (s->ratio)
			args_problem(p, ratio, ARGS_FORBIDDEN,
				"must be nil when type is not RequestedToCapacityRatio");
	} else if (!s->ratio) {
		args_problem(p, ratio, ARGS_REQUIRED,
			"must be specified when type is RequestedToCapacityRatio");
	} else {
		args_check_shape("scoringStrategy.requestedToCapacityRatio.shape", s->ratio->shape,
			s->ratio->nr, p);
	}
}

static int to_ignored(const struct fit_arguments *f, const struct sched_reader *r,
	struct fit_ignored *out, struct err *e)
{
	unsigned *resource = arena_array(r->arena, f->nr_ignored + 1, sizeof *resource);

	if (!resource)
		return err_set(e, ENOMEM, "too large");
	for (unsigned i = 0; i < f->nr_ignored; i++)
		resource[i] = resource_number(r->names, f->ignored[i]);
	*out = (struct fit_ignored){resource, f->nr_ignored, f->groups, f->nr_groups};
	return 0;
}

int fit_args_json_read(struct json_t *v, const struct sched_reader *r, struct fit_args *out,
	struct args_problems *p, struct err *e)
{
	struct strategy least = {.type = strategies[0].name};
	struct fit_arguments f = {0};
	int rc = args_json_read(v, &fit_arguments, &f, r->arena, p, e);
	struct strategy *s = f.strategy ? f.strategy : &least;

	if (rc || (rc = default_specs(&s->resources, r->arena, e)))
		return rc;
	args_check_names("ignoredResources", f.ignored, f.nr_ignored, p);
	args_check_groups("ignoredResourceGroups", f.groups, f.nr_groups, p);
	check_strategy(s, p);
	if (p->nr)
		return 1;
	*out = (struct fit_args){.score.nr = 1};
	out->score.part[0] = (struct generic_part){
		.portion = strategies[find_strategy(s->type)].portion,
		.values = VALUES_RATIO,
		.prefer = PREFER_MOST,
		.shape = s->ratio ? s->ratio->shape : NULL,
		.nr_shape = s->ratio ? s->ratio->nr : 0,
	};
	rc = to_ignored(&f, r, &out->ignored, e);
	return rc ? rc : to_weights(&s->resources, r, &out->score.part[0].resources, e);
}

/* NodeResourcesBalancedAllocation */

struct balanced_arguments {
	const char *meta;
	struct weight_specs resources;
};
static const struct field balanced_rows[] = {
	TYPE_META(struct balanced_arguments),
	RESOURCES(struct balanced_arguments, resources),
};
static const struct fields balanced_arguments =
	ARGS("v1.NodeResourcesBalancedAllocationArgs", balanced_rows, struct balanced_arguments);

static bool is_listed_before(const struct weight_specs *s, unsigned at)
{
	for (unsigned i = 0; i < at; i++)
		if (text_equal(s->at[i].name, s->at[at].name))
			return true;
	return false;
}

int balanced_args_json_read(struct json_t *v, const struct sched_reader *r,
	struct resource_weights *out, struct args_problems *p, struct err *e)
{
	struct balanced_arguments b = {0};
	int rc = args_json_read(v, &balanced_arguments, &b, r->arena, p, e);
	const struct weight_specs *s = &b.resources;
	char place[ARGS_PLACE_MAX];

	if (rc || (rc = default_specs(&b.resources, r->arena, e)))
		return rc;
	for (unsigned i = 0; i < s->nr; i++) {
		if (is_listed_before(s, i))
			args_problem(p, args_place(place, "resources", i, "name"), ARGS_DUPLICATE,
				"\"%s\"", s->at[i].name);
		if (s->at[i].weight != 1)
			args_problem(p, args_place(place, "resources", i, "weight"), ARGS_INVALID,
				"%lld: must be 1", (long long)s->at[i].weight);
	}
	return p->nr ? 1 : to_weights(s, r, out, e);
}

/* NodeResourcesAllocatable */

struct allocatable_arguments {
	const char *meta, *mode;
	struct weight_specs resources;
};
static const struct field allocatable_rows[] = {
	TYPE_META(struct allocatable_arguments),
	ARG("mode", STRING, offsetof(struct allocatable_arguments, mode), "v1.ModeType"),
	RESOURCES(struct allocatable_arguments, resources),
};
static const struct fields allocatable_arguments =
	ARGS("v1.NodeResourcesAllocatableArgs", allocatable_rows, struct allocatable_arguments);

static void check_allocatable(const struct allocatable_arguments *a, struct args_problems *p)
{
	char place[ARGS_PLACE_MAX];

	for (unsigned i = 0; i < a->resources.nr; i++) {
		const struct weight_spec *s = &a->resources.at[i];

		if (s->weight <= 0)
			args_problem(p, args_place(place, "resources", i, "weight"), ARGS_INVALID,
				"%lld: resource weight of %s should be a positive value, got :%lld",
				(long long)s->weight, s->name ? s->name : "", (long long)s->weight);
	}
	if (!text_equal(a->mode, "Least") && !text_equal(a->mode, "Most"))
		args_problem(p, "mode", ARGS_INVALID, "\"%s\": invalid support ModeType", a->mode);
}

/* A Go map is made of the list: each resource counts once, with its last weight. */
static void drop_earlier(struct resource_weights *w, struct resource_weight *at)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < w->nr; i++) {
		unsigned j = 0;

		while (j < nr && at[j].resource != w->at[i].resource)
			j++;
		at[j] = w->at[i];
		nr = j == nr ? nr + 1 : nr;
	}
	*w = (struct resource_weights){at, nr};
}

int allocatable_args_json_read(struct json_t *v, const struct sched_reader *r,
	struct generic_args *out, struct args_problems *p, struct err *e)
{
	struct allocatable_arguments a = {0};
	int rc = args_json_read(v, &allocatable_arguments, &a, r->arena, p, e);
	struct resource_weight *at;

	if (rc)
		return rc;
	if (text_equal(a.mode, ""))
		a.mode = "Least";
	if (!a.resources.nr)
		a.resources = (struct weight_specs){
			allocatable_specs, sizeof allocatable_specs / sizeof *allocatable_specs};
	check_allocatable(&a, p);
	if (p->nr)
		return 1;
	*out = (struct generic_args){.nr = 1};
	out->part[0] = (struct generic_part){
		.portion = PORTION_ALLOCATABLE,
		.values = VALUES_ABSOLUTE,
		.prefer = text_equal(a.mode, "Most") ? PREFER_MOST : PREFER_LEAST,
	};
	if ((rc = to_weights(&a.resources, r, &out->part[0].resources, e)))
		return rc;
	at = arena_array(r->arena, a.resources.nr, sizeof *at);
	if (!at)
		return err_set(e, ENOMEM, "too large");
	drop_earlier(&out->part[0].resources, at);
	return 0;
}

/* GenericNodeResources */

struct part_arguments {
	const char *values, *prefer;
	struct weight_specs resources;
	const struct shape_point *shape;
	size_t nr_shape;
};
static const struct field part_rows[] = {
	ARG("values", STRING, offsetof(struct part_arguments, values), "v1.ValueResourceOn"),
	ARG("prefer", STRING, offsetof(struct part_arguments, prefer), "v1.ScoreResourceBy"),
	RESOURCES(struct part_arguments, resources, .map = true),
	SHAPE(struct part_arguments, shape, nr_shape),
};
static const struct fields part_args =
	ARGS("v1.NodeResourcesPartArgs", part_rows, struct part_arguments);

struct generic_arguments {
	const char *meta;
	struct part_arguments *part[NR_PORTIONS];
};
#define PART(key_, portion_)                                                                       \
	{                                                                                          \
		.key = (key_), .type = FIELD_POINTER,                                              \
		.at = offsetof(struct generic_arguments, part[portion_]),                          \
		.go = "v1.NodeResourcesPartArgs", .fields = &part_args                             \
	}
static const struct field generic_rows[] = {
	TYPE_META(struct generic_arguments),
	PART("allocatable", PORTION_ALLOCATABLE),
	PART("allocated", PORTION_ALLOCATED),
	PART("left", PORTION_LEFT),
	PART("requesting", PORTION_REQUESTING),
};
static const struct fields generic_arguments =
	ARGS("v1.GenericNodeResourcesArgs", generic_rows, struct generic_arguments);

static const char *portion_member(
	char buf[ARGS_PLACE_MAX], enum generic_portion p, const char *name)
{
	struct text t;

	text_init(&t, buf, ARGS_PLACE_MAX);
	text_add(&t, "%s.%s", generic_portion_name(p), name);
	return buf;
}

static const char *values_word(unsigned i)
{
	return generic_values_words[(enum generic_values)i];
}

static const char *prefer_word(unsigned i)
{
	return generic_prefer_words[(enum generic_prefer)i];
}

/* Which of the nr words it is; 0, and a problem, when it is none. */
static unsigned word(const char *place, const char *is, const char *(*of)(unsigned), unsigned nr,
	struct args_problems *p)
{
	char supported[ARGS_PLACE_MAX];
	struct text t;

	text_init(&t, supported, sizeof supported);
	for (unsigned i = 0; i < nr; i++) {
		if (text_equal(is, of(i)))
			return i;
		text_add(&t, "%s\"%s\"", i ? ", " : "", of(i));
	}
	if (text_equal(is, ""))
		args_problem(p, place, ARGS_REQUIRED, "one of %s", supported);
	else
		args_problem(
			p, place, ARGS_UNSUPPORTED, "\"%s\": supported values: %s", is, supported);
	return 0;
}

static int read_part(enum generic_portion portion, struct part_arguments *from,
	const struct sched_reader *r, struct generic_part *to, struct args_problems *p,
	struct err *e)
{
	char place[ARGS_PLACE_MAX];
	int rc = default_specs(&from->resources, r->arena, e);

	if (rc)
		return rc;
	*to = (struct generic_part){
		.portion = portion,
		.values = (enum generic_values)word(portion_member(place, portion, "values"),
			from->values, values_word, NR_GENERIC_VALUES, p),
		.prefer = (enum generic_prefer)word(portion_member(place, portion, "prefer"),
			from->prefer, prefer_word, NR_GENERIC_PREFERS, p),
		.shape = from->shape,
		.nr_shape = from->nr_shape,
	};
	args_check_weights(portion_member(place, portion, "resources"), &from->resources, p);
	(void)portion_member(place, portion, "shape");
	if (from->shape && (to->values != VALUES_RATIO || to->prefer != PREFER_MOST))
		args_problem(
			p, place, ARGS_FORBIDDEN, "goes with RatioToAllocatable and Most alone");
	else if (from->shape)
		args_check_shape(place, from->shape, from->nr_shape, p);
	return to_weights(&from->resources, r, &to->resources, e);
}

int generic_args_json_read(struct json_t *v, const struct sched_reader *r, struct generic_args *out,
	struct args_problems *p, struct err *e)
{
	struct generic_arguments g = {0};
	int rc = args_json_read(v, &generic_arguments, &g, r->arena, p, e);

	*out = (struct generic_args){0};
	for (unsigned i = 0; !rc && i < NR_PORTIONS; i++)
		if (g.part[i])
			rc = read_part(
				(enum generic_portion)i, g.part[i], r, &out->part[out->nr++], p, e);
	if (rc)
		return rc;
	if (!out->nr)
		args_problem(p, "allocatable, allocated, left, requesting", ARGS_REQUIRED,
			"at least one must be specified");
	return p->nr > 0;
}

/* NodeResourceTopologyMatch */

struct cache_arguments {
	const char *foreign_pods_detect, *resync_method, *informer_mode, *resync_scope;
};
static const struct field cache_rows[] = {
	ARG("foreignPodsDetect", STRING, offsetof(struct cache_arguments, foreign_pods_detect),
		"v1.ForeignPodsDetectMode"),
	ARG("resyncMethod", STRING, offsetof(struct cache_arguments, resync_method),
		"v1.CacheResyncMethod"),
	ARG("informerMode", STRING, offsetof(struct cache_arguments, informer_mode),
		"v1.CacheInformerMode"),
	ARG("resyncScope", STRING, offsetof(struct cache_arguments, resync_scope),
		"v1.CacheResyncScope"),
};
static const struct fields cache_args =
	ARGS("v1.NodeResourceTopologyCache", cache_rows, struct cache_arguments);

struct nrt_arguments {
	const char *meta;
	struct strategy *strategy;
	int64_t resync_seconds;
	bool discard_reserved;
	struct cache_arguments *cache; /* how it is kept up to date: of no matter for an answer */
};
static const struct field nrt_rows[] = {
	TYPE_META(struct nrt_arguments),
	ARG("scoringStrategy", POINTER, offsetof(struct nrt_arguments, strategy),
		"v1.ScoringStrategy", .fields = &nrt_strategy_args),
	ARG("cacheResyncPeriodSeconds", I64, offsetof(struct nrt_arguments, resync_seconds),
		"int64"),
	ARG("discardReservedNodes", BOOL, offsetof(struct nrt_arguments, discard_reserved), "bool"),
	ARG("cache", POINTER, offsetof(struct nrt_arguments, cache), "v1.NodeResourceTopologyCache",
		.fields = &cache_args),
};
static const struct fields nrt_arguments =
	ARGS("v1.NodeResourceTopologyMatchArgs", nrt_rows, struct nrt_arguments);

int nrt_args_json_read(struct json_t *v, const struct sched_reader *r, struct nrt_args *out,
	struct args_problems *p, struct err *e)
{
	struct nrt_arguments n = {0};
	int rc = args_json_read(v, &nrt_arguments, &n, r->arena, p, e);
	struct strategy least = {.type = nrt_strategy_words[NRT_LEAST_ALLOCATED]};
	struct strategy *s = n.strategy ? n.strategy : &least;
	int strategy = text_index(nrt_strategy_words, NR_NRT_STRATEGIES, s->type ? s->type : "");

	if (rc || (rc = default_specs(&s->resources, r->arena, e)))
		return rc;
	if (strategy < 0) {
		args_problem(p, "scoringStrategy.type", ARGS_INVALID,
			"\"%s\": invalid ScoringStrategyType", s->type ? s->type : "");
		return 1;
	}
	struct nrt_weight *weights = arena_array(r->arena, s->resources.nr, sizeof *weights);
	if (!weights)
		return err_set(e, ENOMEM, "too large");
	for (unsigned i = 0; i < s->resources.nr; i++)
		weights[i] = (struct nrt_weight){resource_number(r->names, s->resources.at[i].name),
			s->resources.at[i].weight};
	*out = (struct nrt_args){
		.strategy = (enum nrt_strategy)strategy,
		.weights = weights,
		.nr_weights = s->resources.nr,
		.over_reserve = n.resync_seconds > 0,
		.discard_reserved = n.discard_reserved,
	};
	return 0;
}

/* numa-aware */

struct volcano_arguments {
	int64_t weight;
};
static const struct field volcano_rows[] = {
	ARG("weight", I64, offsetof(struct volcano_arguments, weight), "int", .max = INT32_MAX),
};
static const struct fields volcano_arguments =
	ARGS("framework.Arguments", volcano_rows, struct volcano_arguments);

int volcano_args_json_read(struct json_t *v, const struct sched_reader *r, int64_t *out,
	struct args_problems *p, struct err *e)
{
	struct volcano_arguments a = {.weight = 1};
	int rc = args_json_read(v, &volcano_arguments, &a, r->arena, p, e);

	*out = a.weight;
	return rc;
}
