#include <numafit-extender/extender_yaml.h>

#include <codec/api_json.h>
#include <numafit-extender/extender_args_json.h>
#include <codec/flat_yaml.h>
#include <errno.h>
#include <inttypes.h>
#include <numafit/number.h>
#include <numafit/quantity.h>
#include <numafit/text.h>
#include <string.h>

enum { VALUE_SHOWN = 80, ARENA_BYTES = 16 << 20 };

/* Kinds of values. */
enum kind { FIXED, STRING, BOOL, NUMBER, SIZE, DURATION, WORD };
static const char *const kind_names[] = {[FIXED] = "constant",
	[STRING] = "text",
	[BOOL] = "true or false",
	[NUMBER] = "number",
	[SIZE] = "quantity of bytes",
	[DURATION] = "duration",
	[WORD] = "word"};

struct row {
	const char *key;
	enum kind kind;
	size_t at;
	const char *fallback, *help;
	uint64_t min, max; /* of numbers */
	const char *words; /* of a WORD: "error warn info debug" */
	unsigned first;    /* the value of the first word */
};

#define AT(member) offsetof(struct extender_config, member)
#define ROW(key_, kind_, at_, fallback_, help_, ...)                                               \
	{                                                                                          \
		.key = (key_), .kind = (kind_), .at = (at_), .fallback = (fallback_),              \
		.help = (help_), ##__VA_ARGS__                                                     \
	}
static const struct row rows[] = {
	ROW("apiVersion", FIXED, 0, "numafit.io/v1", "of this file", .words = "numafit.io/v1"),
	ROW("kind", FIXED, 0, "ExtenderConfiguration", "of this file",
		.words = "ExtenderConfiguration"),
	ROW("listen", STRING, AT(listen), "",
		"address and port to serve at; empty: :9467 for clients with a certificate, and "
		"127.0.0.1:9467 without tls.clientCAFile"),
	ROW("insecure", BOOL, AT(insecure), "false",
		"serve every client, at any address, though none has to show a certificate: "
		"they may bind any pod to any node"),
	ROW("tls.certFile", STRING, AT(cert_file), "",
		"serve HTTPS with this certificate (PEM); the files are read again as they change"),
	ROW("tls.keyFile", STRING, AT(key_file), "", "its key (PEM)"),
	ROW("tls.clientCAFile", STRING, AT(client_ca_file), "",
		"clients must have a certificate by this authority (PEM)"),
	ROW("metrics.address", STRING, AT(metrics_address), "",
		"where metrics and health are served over plain HTTP, for clients without a "
		"certificate; "
		"empty: only with the rest"),
	ROW("kubeconfig", STRING, AT(kubeconfig), "",
		"how to reach the API server; without it, as a pod of the cluster"),
	ROW("context", STRING, AT(context), "", "of the kubeconfig; without it, its current one"),
	ROW("apiTimeout", DURATION, AT(api_timeout_ms), "4s",
		"for a call to the API server; the scheduler's httpTimeout counts for its own",
		.min = 100, .max = 10 * S_PER_MIN * MS_PER_S),
	ROW("refusalDelay", DURATION, AT(refusal_delay_ms), "30ms",
		"a filter that no node passes is answered after that, if none passes then either: "
		"what has ended may be known a moment later; 0: at once",
		.max = MS_PER_S),
	ROW("maxRequestBytes", SIZE, AT(request_bytes_max), "128Mi",
		"of one request; nodeCacheCapable: false needs about 15Ki for each node",
		.min = 64 << 10, .max = 1 << 30),
	ROW("maxHeldBytes", SIZE, AT(held_bytes_max), "192Mi",
		"of all requests and answers together; for more there is 503", .min = 64 << 10,
		.max = UINT64_C(16) << 30),
	ROW("scoreMax", NUMBER, AT(score_max), "10",
		"the best node's score: 10 is the contract, and up to 100 is finer", .min = 1,
		.max = SCHED_SCORE_MAX),
	ROW("hint.enabled", BOOL, AT(advice), "true",
		"bind with the NUMA nodes that a pod was placed on as its annotation"),
	ROW("hint.ttl", DURATION, AT(advice_ttl_ms), "2m", "for how long the node may follow it",
		.min = MS_PER_S, .max = 24 * MIN_PER_H * S_PER_MIN * UINT64_C(1000)),
	ROW("hint.mode", WORD, AT(advice_mode), "prefer",
		"what a node does that cannot follow it: place otherwise, or refuse",
		.words = "prefer require", .first = 1),
	ROW("assumeTTL", DURATION, AT(assume_ms), "90s",
		"a bound pod counts for so long at least, or until its node's report contains it",
		.min = MS_PER_S, .max = MIN_PER_H * S_PER_MIN * UINT64_C(1000)),
	ROW("staleNodes", WORD, AT(stale), "hold",
		"nodes whose report cannot be relied upon for now: hold pods back, or let them "
		"pass",
		.words = "hold pass"),
	ROW("avoid.enabled", BOOL, AT(avoid), "true",
		"leave out nodes that refused a pod of the same workload a short while ago"),
	ROW("logLevel", WORD, AT(log_level), "info", "error, warn, info or debug",
		.words = "error warn info debug"),
	ROW("checkRestricted", BOOL, AT(profile.check_restricted), "true",
		"a node with the policy restricted refuses what it would refuse; the released "
		"plugin does not look at that policy"),
};
#undef AT
enum { NR_ROWS = sizeof rows / sizeof *rows };

#define SLOT(T, to, row) ((T *)(void *)((char *)(to) + (row)->at))

/* Values */

static const struct {
	const char *unit;
	uint64_t ms;
} units[] = {
	{"ms", 1},
	{"s", MS_PER_S},
	{"m", S_PER_MIN *MS_PER_S},
	{"h", MIN_PER_H *S_PER_MIN *MS_PER_S},
};

/* One number and its unit: "90s", "500ms". */
static int extender_parse_duration(const char *value, uint64_t *out)
{
	size_t len = strspn(value, "0123456789");
	uint64_t n;

	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (text_equal(value + len, units[i].unit) &&
			text_u64(value, len, UINT32_MAX, &n, NULL) == 0) {
			*out = n * units[i].ms;
			return 0;
		}
	return -EINVAL;
}

static int extender_parse_number(const struct row *row, const char *value, uint64_t *out)
{
	if (row->kind == DURATION)
		return extender_parse_duration(value, out);
	if (row->kind == NUMBER)
		return text_u64(value, strlen(value), UINT64_MAX, out, NULL);
	return quantity_parse_count(value, QUANTITY_WHOLE, out, NULL);
}

/* Which of the words it is, from 0; -1: none. */
static int find_word(const char *words, const char *value)
{
	size_t len = strlen(value);

	for (int i = 0; *words; i++) {
		size_t n = strcspn(words, " ");

		if (n == len && memcmp(words, value, n) == 0)
			return i;
		words += n + (words[n] == ' ');
	}
	return -1;
}

static int extender_set_string(
	const struct row *row, struct extender_config *c, const char *value, struct err *e)
{
	char *copy = arena_strndup(&c->arena, value, strlen(value));

	if (!copy)
		return err_set(e, ENOMEM, "%s: too large", row->key);
	*SLOT(const char *, c, row) = copy;
	return 0;
}

static int extender_set_number(
	const struct row *row, struct extender_config *c, const char *value, struct err *e)
{
	uint64_t n;

	if (extender_parse_number(row, value, &n))
		return err_set(e, EINVAL, "%s: \"%.*s\" is not a %s", row->key, VALUE_SHOWN, value,
			kind_names[row->kind]);
	if (n < row->min || n > row->max)
		return err_set(e, ERANGE, "%s: %.*s is not within %" PRIu64 " and %" PRIu64 "%s",
			row->key, VALUE_SHOWN, value, row->min, row->max,
			row->kind == DURATION ? " ms" : "");
	*SLOT(uint64_t, c, row) = n;
	return 0;
}

static int extender_set_word(
	const struct row *row, struct extender_config *c, const char *value, struct err *e)
{
	int word = find_word(row->words, value);

	if (word < 0)
		return err_set(e, EINVAL, "%s: \"%.*s\": expected is %s%s", row->key, VALUE_SHOWN,
			value, row->kind == WORD ? "one of " : "", row->words);
	if (row->kind == WORD)
		*SLOT(unsigned, c, row) = (unsigned)word + row->first;
	return 0;
}

static int extender_set_value(
	const struct row *row, struct extender_config *c, const char *value, struct err *e)
{
	switch (row->kind) {
	case STRING:
		return extender_set_string(row, c, value, e);
	case BOOL:
		if (text_bool(value, SLOT(bool, c, row), e) < 0)
			return err_add(e, -EINVAL, "%s", row->key);
		return 0;
	case NUMBER:
	case SIZE:
	case DURATION:
		return extender_set_number(row, c, value, e);
	case WORD:
	case FIXED:
		break;
	}
	return extender_set_word(row, c, value, e);
}

/* The largest unit that leaves no rest. */
static void extender_print_duration(uint64_t ms, struct text *t)
{
	size_t i = sizeof units / sizeof *units - 1;

	while (ms % units[i].ms)
		i--;
	text_add(t, "%" PRIu64 "%s", ms / units[i].ms, units[i].unit);
}

static void extender_print_word(const struct row *row, unsigned value, struct text *t)
{
	const char *words = row->words;

	for (value -= row->first; value; value--)
		words = strchr(words, ' ') + 1;
	text_add(t, "%.*s", (int)strcspn(words, " "), words);
}

static void print_value(const struct row *row, const struct extender_config *c, struct text *t)
{
	const char *at = (const char *)c + row->at;
	char size[TEXT_SIZE_MAX];

	switch (row->kind) {
	case FIXED:
		text_add(t, "%s", row->words);
		return;
	case STRING:
		text_add(t, "%s", *(const char *const *)(const void *)at);
		return;
	case BOOL:
		text_add(t, *(const bool *)(const void *)at ? "true" : "false");
		return;
	case NUMBER:
		text_add(t, "%" PRIu64, *(const uint64_t *)(const void *)at);
		return;
	case SIZE:
		text_add(t, "%s", text_size(size, *(const uint64_t *)(const void *)at));
		return;
	case DURATION:
		extender_print_duration(*(const uint64_t *)(const void *)at, t);
		return;
	case WORD:
		extender_print_word(row, *(const unsigned *)(const void *)at, t);
		return;
	}
}

bool extender_doc(const struct extender_config *c, unsigned i, struct extender_doc *out)
{
	const struct row *row = &rows[i < NR_ROWS ? i : 0];
	struct text t;

	if (i >= NR_ROWS)
		return false;
	out->key = row->key;
	out->type = row->kind == WORD ? row->words : kind_names[row->kind];
	out->fallback = row->fallback;
	out->help = row->help;
	text_init(&t, out->value, sizeof out->value);
	print_value(row, c, &t);
	return true;
}

/* The file */

/* A plugin as it stands there. */
struct plugin {
	bool there;
	unsigned line;
	char *name;
	uint64_t weight;
	struct json_t *args;
};

struct reader {
	struct extender_config *c;
	struct plugin plugin[SCHED_USES_MAX];
	unsigned nr_plugins;
};

/* path: behind "plugins.". */
static int on_plugin(
	struct reader *r, const char *path, const char *value, unsigned line, struct err *e)
{
	size_t len = strcspn(path, ".");
	const char *key = path[len] ? path + len + 1 : "";
	uint64_t i;

	if (text_u64(path, len, SCHED_USES_MAX - 1, &i, NULL) < 0)
		return err_set(e, ERANGE, "plugins: %d at most", SCHED_USES_MAX);
	struct plugin *p = &r->plugin[i];
	if (!p->there)
		*p = (struct plugin){.there = true, .line = line, .weight = 1};
	r->nr_plugins = (unsigned)i + 1;
	if (text_equal(key, "name") && value) {
		p->name = xstrdup(value);
		return 0;
	}
	if (text_equal(key, "weight") && value)
		return text_u64(value, strlen(value), SCHED_WEIGHT_MAX, &p->weight, e) || !p->weight
			       ? err_set(e, ERANGE, "plugins.%s: %.*s is not within 1 and %d", path,
					 VALUE_SHOWN, value, SCHED_WEIGHT_MAX)
			       : 0;
	if (text_equal(key, "args") || strncmp(key, "args.", strlen("args.")) == 0) {
		int rc = extender_args_put(
			&p->args, key[strlen("args")] ? key + strlen("args.") : "", value, e);
		return rc ? err_add(e, rc, "plugins.%s", path) : 0;
	}
	return err_set(e, EINVAL, "plugins.%s: name, weight and args are expected", path);
}

/* Whether keys below it are in the table. */
static bool is_group(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < NR_ROWS; i++)
		if (strncmp(rows[i].key, path, len) == 0 && rows[i].key[len] == '.')
			return true;
	return text_equal(path, "plugins");
}

static int extender_put_value(
	struct reader *r, const char *path, const char *value, unsigned line, struct err *e)
{
	if (strncmp(path, "plugins.", strlen("plugins.")) == 0)
		return on_plugin(r, path + strlen("plugins."), value, line, e);
	for (size_t i = 0; i < NR_ROWS; i++)
		if (text_equal(rows[i].key, path))
			return extender_set_value(&rows[i], r->c, value ? value : "", e);
	if (is_group(path) && (!value || !*value))
		return 0; /* nothing is in it */
	return err_set(e, EINVAL, "unknown key \"%.*s\"", VALUE_SHOWN, path);
}

static int extender_on_scalar(
	void *ctx, const char *path, const char *value, unsigned line, struct err *e)
{
	int rc = extender_put_value(ctx, path, value, line, e);

	return rc ? err_add(e, rc, "line %u", line) : 0;
}

/* What was read, as a whole */

static int read_plugin(struct extender_config *c, const struct plugin *p, struct err *e)
{
	static struct args_problems problems;
	char shown[sizeof e->text];
	struct sched_use *use = &c->profile.use[c->profile.nr];
	const struct sched_reader r = {&c->names, &c->arena};

	if (!p->there || !p->name)
		return err_set(e, EINVAL, "line %u: plugins: one has no name", p->line);
	*use = (struct sched_use){
		.plugin = sched_plugin_find(p->name), .weight = (int64_t)p->weight};
	if (!use->plugin)
		return err_set(e, EINVAL, "line %u: plugins: there is no \"%.*s\"", p->line,
			VALUE_SHOWN, p->name);
	for (unsigned i = 0; i < c->profile.nr; i++)
		if (c->profile.use[i].plugin == use->plugin)
			return err_set(
				e, EINVAL, "line %u: plugins: %s is there twice", p->line, p->name);
	problems = (struct args_problems){0};
	int rc = extender_args_json_read(p->args, &r, use, &c->cluster, &problems, e);
	if (rc > 0)
		rc = err_set(e, EINVAL, "%s", args_problems_text(&problems, shown, sizeof shown));
	if (rc)
		return err_add(e, rc, "line %u: %s", p->line, p->name);
	c->profile.nr++;
	return 0;
}

static int add_usual_plugin(struct reader *r, struct err *e)
{
	r->nr_plugins = 1;
	r->plugin[0] = (struct plugin){
		.there = true, .name = xstrdup("NodeResourceTopologyMatch"), .weight = 1};
	return extender_args_put(&r->plugin[0].args, "scoringStrategy.type", "LeastNUMANodes", e);
}

static int extender_config_check(const struct extender_config *c, struct err *e)
{
	if (!*c->cert_file != !*c->key_file)
		return err_set(e, EINVAL, "tls: certFile and keyFile go together");
	if (*c->client_ca_file && !*c->cert_file)
		return err_set(e, EINVAL, "tls: clientCAFile goes with certFile and keyFile");
	if (c->held_bytes_max < c->request_bytes_max)
		return err_set(e, EINVAL, "maxHeldBytes: less than maxRequestBytes");
	return 0;
}

static bool extender_is_loopback(const char *address)
{
	static const char v4[] = "127.", v6[] = "[::1]:";

	return strncmp(address, v4, sizeof v4 - 1) == 0 || strncmp(address, v6, sizeof v6 - 1) == 0;
}

/* Who may ask may bind any pod to any node. */
static int extender_set_listen(struct extender_config *c, struct err *e)
{
	bool asks = *c->client_ca_file || c->insecure;

	if (!*c->listen)
		c->listen = asks ? ":9467" : "127.0.0.1:9467";
	if (asks || extender_is_loopback(c->listen))
		return 0;
	return err_set(e, EINVAL,
		"listen: at %.*s anybody could bind pods: set tls.clientCAFile, tls.certFile and "
		"tls.keyFile, or an address of the loopback, or insecure: true",
		VALUE_SHOWN, c->listen);
}

static int extender_set_defaults(struct extender_config *c, struct err *e)
{
	*c = (struct extender_config){
		.cluster = {.over_reserve = true, .foreign = FOREIGN_PODS_EXCLUSIVE}};
	arena_init(&c->arena, ARENA_BYTES);
	resource_table_init(&c->names);
	for (size_t i = 0; i < NR_ROWS; i++) {
		int rc = extender_set_value(&rows[i], c, rows[i].fallback, e);

		if (rc)
			return rc;
	}
	return 0;
}

int extender_yaml_read(const char *text, size_t len, struct extender_config *out, struct err *e)
{
	struct reader r = {.c = out};
	int rc = extender_set_defaults(out, e);

	if (!rc)
		rc = flat_yaml_read(text, len, extender_on_scalar, &r, e);
	if (!rc)
		rc = extender_config_check(out, e);
	if (!rc)
		rc = extender_set_listen(out, e);
	if (!rc && !r.nr_plugins)
		rc = add_usual_plugin(&r, e);
	for (unsigned i = 0; i < r.nr_plugins && !rc; i++)
		rc = read_plugin(out, &r.plugin[i], e);
	for (unsigned i = 0; i < SCHED_USES_MAX; i++) {
		free(r.plugin[i].name);
		api_json_free(r.plugin[i].args);
	}
	out->cluster.assume_ms = out->assume_ms;
	if (rc)
		extender_config_fini(out);
	return rc;
}

void extender_config_fini(struct extender_config *c)
{
	resource_table_fini(&c->names);
	arena_fini(&c->arena);
	*c = (struct extender_config){0};
}
