#include <numafit-extender/extender_args_json.h>

#include <codec/fields_json.h>
#include <plugin-args/score_args_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/text.h>
#include <string.h>

/* From YAML's scalars */

static json_t *value_of(const char *s)
{
	enum { DIGITS_MAX = 18 };
	size_t len = s ? strlen(s) : 0, sign = s && *s == '-';
	uint64_t n;

	if (!s)
		return json_object();
	if (!len || text_equal(s, "null") || text_equal(s, "~"))
		return json_null();
	if (text_equal(s, "true") || text_equal(s, "false"))
		return json_boolean(*s == 't');
	if (len - sign <= DIGITS_MAX && text_u64(s + sign, len - sign, INT64_MAX, &n, NULL) == 0)
		return json_integer(sign ? -(json_int_t)n : (json_int_t)n);
	return json_string(s);
}

/* The place below *at that the first len bytes of path name: of a list when they are a number. */
static int step(json_t **at, const char *path, size_t len, json_t **below, struct err *e)
{
	uint64_t i;
	bool in_list = text_u64(path, len, EXTENDER_LIST_MAX - 1, &i, NULL) == 0;

	if (!*at || json_is_null(*at)) {
		json_decref(*at);
		*at = in_list ? json_array() : json_object();
	}
	if (in_list ? !json_is_array(*at) : !json_is_object(*at))
		return err_set(e, EINVAL, "%.*s cannot be there", (int)len, path);
	if (!in_list) {
		*below = json_object_getn(*at, path, len);
		return 0;
	}
	if (i > json_array_size(*at))
		return err_set(e, EINVAL, "element %.*s cannot be there", (int)len, path);
	*below = json_array_get(*at, i);
	return 0;
}

static void set(json_t *at, const char *path, size_t len, json_t *value)
{
	if (json_is_object(at))
		(void)json_object_setn_new(at, path, len, value);
	else if (strtoul(path, NULL, 0) < json_array_size(at))
		(void)json_array_set_new(at, strtoul(path, NULL, 0), value);
	else
		(void)json_array_append_new(at, value);
}

int extender_args_put(json_t **root, const char *path, const char *value, struct err *e)
{
	size_t len = strcspn(path, ".");
	json_t *below;

	if (!*path) {
		if (*root)
			return err_set(e, EINVAL, "is there twice");
		*root = value_of(value);
		return 0;
	}
	int rc = step(root, path, len, &below, e);
	if (rc)
		return rc;
	json_incref(below);
	rc = extender_args_put(&below, path[len] ? path + len + 1 : "", value, e);
	if (rc)
		json_decref(below);
	else
		set(*root, path, len, below);
	return rc;
}

/* To what plugins take */

static const struct {
	const char *name;
	enum foreign_pods foreign;
} foreign_words[] = {
	{"All", FOREIGN_PODS_ALL},
	{"None", FOREIGN_PODS_NONE},
	{"OnlyExclusiveResources", FOREIGN_PODS_EXCLUSIVE},
};

static void extender_args_read_foreign(
	const json_t *v, struct sched_cluster_args *cluster, struct args_problems *p)
{
	const char *word = json_string_value(
		json_object_get(json_object_get(v, "cache"), "foreignPodsDetect"));

	if (!word)
		return;
	for (size_t i = 0; i < sizeof foreign_words / sizeof *foreign_words; i++)
		if (text_equal(word, foreign_words[i].name)) {
			cluster->foreign = foreign_words[i].foreign;
			return;
		}
	args_problem(p, "cache.foreignPodsDetect", ARGS_UNSUPPORTED,
		"\"%.64s\": supported values: \"All\", \"None\", \"OnlyExclusiveResources\"", word);
}

static int extender_args_read_match(json_t *v, const struct sched_reader *r, struct sched_use *use,
	struct sched_cluster_args *cluster, struct args_problems *p, struct err *e)
{
	struct nrt_args *args = &use->args.nrt;
	int rc = nrt_args_json_read(v, r, args, p, e);

	if (rc)
		return rc;
	if (!json_member(v, "cacheResyncPeriodSeconds"))
		args->over_reserve = true;
	cluster->over_reserve = args->over_reserve;
	cluster->discard_reserved = args->discard_reserved;
	extender_args_read_foreign(v, cluster, p);
	return p->nr > 0;
}

static int extender_args_read_generic(json_t *v, const struct sched_reader *r,
	struct sched_use *use, struct sched_cluster_args *cluster, struct args_problems *p,
	struct err *e)
{
	(void)cluster;
	return generic_args_json_read(v, r, &use->args.generic, p, e);
}

/* Its weight stands among its arguments. */
static int extender_args_read_volcano(json_t *v, const struct sched_reader *r,
	struct sched_use *use, struct sched_cluster_args *cluster, struct args_problems *p,
	struct err *e)
{
	int64_t weight;
	int rc = volcano_args_json_read(v, r, &weight, p, e);

	(void)cluster;
	if (rc)
		return rc;
	if (weight < 1 || weight > SCHED_WEIGHT_MAX / use->weight) {
		args_problem(p, "weight", ARGS_INVALID, "%lld: is not within 1 and %lld",
			(long long)weight, (long long)(SCHED_WEIGHT_MAX / use->weight));
		return 1;
	}
	use->weight *= weight;
	return 0;
}

static const struct {
	const char *plugin;
	int (*read)(json_t *v, const struct sched_reader *r, struct sched_use *use,
		struct sched_cluster_args *cluster, struct args_problems *p, struct err *e);
} readers[] = {
	{"NodeResourceTopologyMatch", extender_args_read_match},
	{"GenericNodeResources", extender_args_read_generic},
	{"numa-aware", extender_args_read_volcano},
};

int extender_args_json_read(json_t *v, const struct sched_reader *r, struct sched_use *use,
	struct sched_cluster_args *cluster, struct args_problems *p, struct err *e)
{
	const char *name = sched_plugin_name(use->plugin);

	for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
		if (text_equal(name, readers[i].plugin))
			return readers[i].read(v, r, use, cluster, p, e);
	return 0; /* it has none */
}
