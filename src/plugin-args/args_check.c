#include <plugin-args/args_check.h>

#include <string.h>

enum { NAME_MAX_BYTES = 63, DOMAIN_MAX_BYTES = 253, WEIGHT_MAX = 100 };

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A name of 1 to 63 letters, digits, '-', '_' and '.' between letters or digits. */
static bool is_name(const char *s, size_t len)
{
	if (!len || len > NAME_MAX_BYTES || !is_alnum(s[0]) || !is_alnum(s[len - 1]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_alnum(s[i]) && !strchr("-_.", s[i]))
			return false;
	return true;
}

/* RFC 1123: labels of lower-case letters, digits and '-' between them, joined by '.'. */
static bool is_domain(const char *s, size_t len)
{
	if (!len || len > DOMAIN_MAX_BYTES)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool edge = i == 0 || i + 1 == len || s[i - 1] == '.' || s[i + 1] == '.';
		bool plain = is_alnum(s[i]) && !(s[i] >= 'A' && s[i] <= 'Z');

		if (!plain && (edge || (s[i] != '-' && s[i] != '.')))
			return false;
	}
	return true;
}

/* validation.IsQualifiedName: a name, perhaps with a domain and '/' in front. */
static bool is_qualified(const char *s)
{
	const char *slash = strchr(s, '/');

	if (!slash)
		return is_name(s, strlen(s));
	return is_domain(s, (size_t)(slash - s)) && is_name(slash + 1, strlen(slash + 1));
}

const char *args_place(char buf[ARGS_PLACE_MAX], const char *path, unsigned i, const char *member)
{
	struct text t;

	text_init(&t, buf, ARGS_PLACE_MAX);
	text_add(&t, "%s[%u]%s%s", path, i, *member ? "." : "", member);
	return buf;
}

static void check_name(const char *path, unsigned i, const char *name, struct args_problems *p)
{
	char place[ARGS_PLACE_MAX];

	if (!is_qualified(name))
		args_problem(p, args_place(place, path, i, ""), ARGS_INVALID,
			"\"%s\": a qualified name must consist of alphanumeric characters, '-', "
			"'_' "
			"or '.', and must start and end with an alphanumeric character, with an "
			"optional DNS subdomain prefix and '/'",
			name);
}

void args_check_names(
	const char *path, const char *const *name, unsigned nr, struct args_problems *p)
{
	for (unsigned i = 0; i < nr; i++)
		check_name(path, i, name[i], p);
}

void args_check_groups(
	const char *path, const char *const *group, unsigned nr, struct args_problems *p)
{
	char place[ARGS_PLACE_MAX];

	for (unsigned i = 0; i < nr; i++) {
		if (strchr(group[i], '/'))
			args_problem(p, args_place(place, path, i, ""), ARGS_INVALID,
				"\"%s\": resource group name can't contain '/'", group[i]);
		check_name(path, i, group[i], p);
	}
}

/* validateResources of kube-scheduler */
void args_check_weights(const char *path, const struct weight_specs *specs, struct args_problems *p)
{
	char place[ARGS_PLACE_MAX];

	for (unsigned i = 0; i < specs->nr; i++)
		if (specs->at[i].weight <= 0 || specs->at[i].weight > WEIGHT_MAX)
			args_problem(p, args_place(place, path, i, "weight"), ARGS_INVALID,
				"%lld: resource weight of %s not in valid range (0, 100]",
				(long long)specs->at[i].weight, specs->at[i].name);
}

static void check_point(const char *path, unsigned i, const char *member, int64_t value,
	int64_t max, struct args_problems *p)
{
	char place[ARGS_PLACE_MAX];

	if (value < 0 || value > max)
		args_problem(p, args_place(place, path, i, member), ARGS_INVALID,
			"%lld: not in valid range [0, %lld]", (long long)value, (long long)max);
}

/* validateFunctionShape */
void args_check_shape(
	const char *path, const struct shape_point *shape, unsigned nr, struct args_problems *p)
{
	char place[ARGS_PLACE_MAX];

	if (!nr)
		args_problem(p, path, ARGS_REQUIRED, "at least one point must be specified");
	for (unsigned i = 1; i < nr; i++) {
		if (shape[i - 1].utilization < shape[i].utilization)
			continue;
		args_problem(p, args_place(place, path, i, "utilization"), ARGS_INVALID,
			"%lld: values must be sorted in increasing order",
			(long long)shape[i].utilization);
		break;
	}
	for (unsigned i = 0; i < nr; i++) {
		check_point(path, i, "utilization", shape[i].utilization, SCHED_SCORE_MAX, p);
		check_point(path, i, "score", shape[i].score, SHAPE_SCORE_MAX, p);
	}
}
