#include <core/settings_row.h>

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <numafit/quantity.h>
#include <numafit/wishes.h>
#include <string.h>

/* The kinds of values that settings have: text to field and back. */

static void add_words(const char *const *words, const char *between, struct text *to)
{
	for (unsigned i = 0; words[i]; i++)
		text_add(to, "%s%s", i ? between : "", words[i]);
}

static_assert(sizeof(enum mode) == sizeof(unsigned), "an enum's field is written as an unsigned");

static int parse_word(const struct row *row, const char *value, void *out, struct err *e)
{
	char list[2 * SETTING_SHOWN];
	struct text t;

	for (unsigned i = (unsigned)row->min; row->words[i]; i++)
		if (text_equal(value, row->words[i])) {
			memcpy(out, &i, sizeof i);
			return 0;
		}
	text_init(&t, list, sizeof list);
	add_words(row->words + row->min, ", ", &t);
	return err_set(e, EINVAL, "\"%.*s\" is not one of %s", SETTING_SHOWN, value, list);
}

static void print_setting_word(const struct row *row, const void *in, struct text *to)
{
	unsigned i;

	memcpy(&i, in, sizeof i);
	text_add(to, "%s", row->words[i]);
}

static void describe_word(const struct row *row, struct text *to)
{
	add_words(row->words + row->min, " | ", to);
}

/* An amount between the row's two limits: how its text is read, with its maximum known, and
 * printed.
 */
enum { AMOUNT_MAX = 32 };
struct amount {
	const char *noun, *type;
	int (*read)(const char *value, uint64_t max, uint64_t *out); /* 0, -EINVAL, -ERANGE */
	const char *(*text)(uint64_t amount, char buf[AMOUNT_MAX]);
};

static int read_setting_number(const char *value, uint64_t max, uint64_t *out)
{
	return text_u64(value, strlen(value), max, out, NULL);
}

static const char *setting_number_text(uint64_t amount, char buf[AMOUNT_MAX])
{
	struct text t;

	text_init(&t, buf, AMOUNT_MAX);
	text_add(&t, "%llu", (unsigned long long)amount);
	return buf;
}

static int read_setting_size(const char *value, uint64_t max, uint64_t *out)
{
	(void)max;
	return quantity_parse_count(value, QUANTITY_WHOLE, out, NULL);
}

static const char *setting_size_text(uint64_t amount, char buf[AMOUNT_MAX])
{
	_Static_assert((int)AMOUNT_MAX >= (int)TEXT_SIZE_MAX, "there is room");
	return text_size(buf, amount);
}

/* Go's time.ParseDuration() in the units that Kubernetes' config files use; ascending. */
static const struct {
	const char *unit;
	uint64_t ms;
} units[] = {
	{"ms", 1},
	{"s", UINT64_C(1000)},
	{"m", UINT64_C(60) * 1000},
	{"h", UINT64_C(60) * 60 * 1000},
};
enum { NR_UNITS = sizeof units / sizeof *units };

/* How many ms the unit is that is exactly the len bytes at s; 0: not one. */
static uint64_t unit_ms(const char *s, size_t len)
{
	for (size_t i = 0; i < NR_UNITS; i++)
		if (strlen(units[i].unit) == len && memcmp(units[i].unit, s, len) == 0)
			return units[i].ms;
	return 0;
}

/* "1m30s", "500ms", "0" in ms; one that is far too long is none. */
static int read_setting_duration(const char *value, uint64_t max, uint64_t *out)
{
	static const char digits[] = "0123456789";
	uint64_t sum = 0;

	(void)max;
	*out = 0;
	if (text_equal(value, "0"))
		return 0;
	for (const char *at = value; *at || at == value;) {
		size_t len = strspn(at, digits), unit = strcspn(at + len, digits);
		uint64_t number = 0, ms = unit_ms(at + len, unit);

		if (!ms || text_u64(at, len, UINT32_MAX, &number, NULL) < 0 ||
			__builtin_add_overflow(sum, number * ms, &sum))
			return -EINVAL;
		at += len + unit;
	}
	*out = sum;
	return 0;
}

/* In the largest unit that leaves no rest. */
static const char *setting_duration_text(uint64_t ms, char buf[AMOUNT_MAX])
{
	size_t i = NR_UNITS - 1;
	struct text t;

	while (ms % units[i].ms)
		i--;
	text_init(&t, buf, AMOUNT_MAX);
	text_add(&t, "%llu%s", (unsigned long long)(ms / units[i].ms), ms ? units[i].unit : "");
	return buf;
}

static const struct amount amount_number = {
	"number", "number", read_setting_number, setting_number_text};
static const struct amount amount_size = {
	"quantity", "quantity of bytes", read_setting_size, setting_size_text};
static const struct amount amount_duration = {
	"duration", "duration", read_setting_duration, setting_duration_text};

static const char auto_word[] = "auto";

static int parse_amount(const struct row *row, const char *value, void *out, struct err *e)
{
	const struct amount *a = row->kind->amount;
	char min[AMOUNT_MAX], max[AMOUNT_MAX];
	uint64_t amount = 0;
	bool is_auto = row->automatic && text_equal(value, auto_word);
	int rc = is_auto ? 0 : a->read(value, row->max, &amount);

	if (rc < 0 || (!is_auto && (amount < row->min || amount > row->max)))
		return err_set(e, rc == -EINVAL ? EINVAL : ERANGE,
			"\"%.*s\" is not %sa %s from %s to %s", SETTING_SHOWN, value,
			row->automatic ? "auto or " : "", a->noun, a->text(row->min, min),
			a->text(row->max, max));
	amount = is_auto ? row->max + 1 : amount;
	if (row->size == sizeof amount)
		*(uint64_t *)out = amount;
	else
		*(unsigned *)out = (unsigned)amount;
	return 0;
}

static void print_amount(const struct row *row, const void *in, struct text *to)
{
	uint64_t amount =
		row->size == sizeof amount ? *(const uint64_t *)in : *(const unsigned *)in;
	char buf[AMOUNT_MAX];

	text_add(to, "%s",
		row->automatic && amount > row->max ? auto_word
						    : row->kind->amount->text(amount, buf));
}

static void describe_amount(const struct row *row, struct text *to)
{
	const struct amount *a = row->kind->amount;
	char min[AMOUNT_MAX], max[AMOUNT_MAX];

	text_add(to, "%s%s%s%s, %s to %s", row->automatic ? "auto | " : "", a->type,
		row->unit ? " of " : "", row->unit ? row->unit : "", a->text(row->min, min),
		a->text(row->max, max));
}

static int parse_cpus(const struct row *row, const char *value, void *out, struct err *e)
{
	int rc = cpuset_parse(out, value, strlen(value), e);

	(void)row;
	return rc < 0 ? err_add(e, rc, "\"%.*s\"", SETTING_SHOWN, value) : 0;
}

static void print_cpus(const struct row *row, const void *in, struct text *to)
{
	char list[CPUSET_TEXT_MAX];

	(void)row;
	text_add(to, "%s", cpuset_format(in, list, sizeof list));
}

static int parse_text(const struct row *row, const char *value, void *out, struct err *e)
{
	if (!*value && *row->fallback && !row->optional)
		return err_set(e, EINVAL, "\"\" is not enough");
	if (strlen(value) >= row->size)
		return err_set(e, ERANGE, "\"%.*s...\" is longer than %zu bytes", SETTING_SHOWN,
			value, row->size - 1);
	(void)text_copy(out, row->size, value);
	return 0;
}

static int parse_path(const struct row *row, const char *value, void *out, struct err *e)
{
	if (*value != '/')
		return err_set(e, EINVAL, "\"%.*s\" is not a path that begins with /",
			SETTING_SHOWN, value);
	return parse_text(row, value, out, e);
}

static int parse_index(const struct row *row, const char *value, void *out, struct err *e)
{
	static const char digits[] = "0123456789";

	if (strlen(value) != 2 || strspn(value, digits) != 2)
		return err_set(e, EINVAL, "\"%.*s\" is not two digits", SETTING_SHOWN, value);
	return parse_text(row, value, out, e);
}

static void print_text(const struct row *row, const void *in, struct text *to)
{
	(void)row;
	text_add(to, "%s", (const char *)in);
}

/* An amount of CPUs, in thousandths. */
static int parse_cpu_amount(const struct row *row, const char *value, void *out, struct err *e)
{
	uint64_t milli = 0;
	int rc = quantity_parse_count(value, QUANTITY_MILLI, &milli, NULL);

	if (rc < 0 || milli > row->max)
		return err_set(e, rc == -EINVAL ? EINVAL : ERANGE,
			"\"%.*s\" is not a quantity of CPUs, at most %llu", SETTING_SHOWN, value,
			(unsigned long long)row->max / MILLI);
	*(uint64_t *)out = milli;
	return 0;
}

static void print_cpu_amount(const struct row *row, const void *in, struct text *to)
{
	uint64_t milli = *(const uint64_t *)in;
	bool whole = milli % MILLI == 0;

	(void)row;
	if (milli)
		text_add(to, "%llu%s", (unsigned long long)(whole ? milli / MILLI : milli),
			whole ? "" : "m");
}

/* The options of the kubelet's managers and its feature gates: values are texts, checked in its
 * words (pkg/kubelet/cm/{topologymanager,cpumanager}/policy_options.go, component-base's
 * featuregate/feature_gate.go). */

enum { MAX_NODES_LEAST = 8 }; /* the Topology Manager's defaultMaxAllowableNUMANodes */

static const char *option_name(const struct row *row)
{
	return strchr(row->key, '.') + 1;
}

static const char *bool_word(bool value)
{
	return value ? "true" : "false";
}

static int parse_bool(const struct row *row, const char *value, void *out, struct err *e)
{
	(void)row;
	return text_bool(value, out, e);
}

static int parse_bool_option(const struct row *row, const char *value, void *out, struct err *e)
{
	if (text_bool(value, out, NULL) < 0)
		return err_set(e, EINVAL,
			"bad value for option \"%s\": strconv.ParseBool: parsing \"%.*s\": invalid "
			"syntax",
			option_name(row), SETTING_SHOWN, value);
	return 0;
}

static void print_bool(const struct row *row, const void *in, struct text *to)
{
	(void)row;
	text_add(to, "%s", bool_word(*(const bool *)in));
}

static int parse_nodes_option(const struct row *row, const char *value, void *out, struct err *e)
{
	bool negative = *value == '-', sign = negative || *value == '+';
	uint64_t number = 0;
	int rc = text_u64(value + sign, strlen(value + sign), INT64_MAX, &number, NULL);

	if (rc < 0)
		return err_set(e, -rc,
			"unable to convert policy option to integer \"%s\": strconv.Atoi: parsing "
			"\"%.*s\": %s",
			option_name(row), SETTING_SHOWN, value,
			rc == -ERANGE ? "value out of range" : "invalid syntax");
	if (negative || number < MAX_NODES_LEAST)
		return err_set(e, ERANGE, "the minimum value of \"%s\" should not be less than %d",
			option_name(row), MAX_NODES_LEAST);
	*(unsigned *)out = number < UINT_MAX ? (unsigned)number : UINT_MAX;
	return 0;
}

/* "" means the first word, so that the option can be undone without taking its key away. */
static int parse_strategy_option(const struct row *row, const char *value, void *out, struct err *e)
{
	if (parse_word(row, *value ? value : row->words[0], out, NULL) == 0)
		return 0;
	/* the order is the sorted one that the kubelet lists */
	return err_set(e, EINVAL,
		"bad value for option \"%s\": \"%.*s\" must be one of [\"least-allocated\" "
		"\"most-allocated\" \"none\"]",
		option_name(row), SETTING_SHOWN, value);
}

static int parse_gate(const struct row *row, const char *value, void *out, struct err *e)
{
	const char *gate = option_name(row);
	bool on = false;

	if (text_bool(value, &on, NULL) < 0)
		return err_set(e, EINVAL,
			"invalid value of %s=%.*s, err: strconv.ParseBool: parsing \"%.*s\": "
			"invalid syntax",
			gate, SETTING_SHOWN, value, SETTING_SHOWN, value);
	if (row->locked && !text_equal(bool_word(on), row->fallback))
		return err_set(e, EINVAL,
			"cannot set feature gate %s to %s, feature is locked to %s", gate,
			bool_word(on), row->fallback);
	*(bool *)out = on;
	return 0;
}

static int parse_wishes(const struct row *row, const char *value, void *out, struct err *e)
{
	(void)row;
	return wishes_allowed_parse(value, out, e);
}

static void print_wishes(const struct row *row, const void *in, struct text *to)
{
	(void)row;
	wishes_allowed_print(*(const unsigned *)in, to);
}

const struct kind kind_word = {parse_word, print_setting_word, .describe = describe_word};
const struct kind kind_number = {
	parse_amount, print_amount, .describe = describe_amount, .amount = &amount_number};
const struct kind kind_duration = {
	parse_amount, print_amount, .describe = describe_amount, .amount = &amount_duration};
const struct kind kind_size = {
	parse_amount, print_amount, .describe = describe_amount, .amount = &amount_size};
const struct kind kind_cpus = {parse_cpus, print_cpus, .type = "kernel list, such as 0-3,8"};
const struct kind kind_cpu_amount = {
	parse_cpu_amount, print_cpu_amount, .type = "quantity of CPUs, such as 2 or 1500m"};
const struct kind kind_text = {parse_text, print_text, .type = "text"};
const struct kind kind_path = {parse_path, print_text, .type = "absolute path"};
const struct kind kind_two_digits = {parse_index, print_text, .type = "two digits"};
const struct kind kind_bool = {parse_bool, print_bool, .type = "true | false"};
const struct kind kind_bool_option = {
	parse_bool_option, print_bool, .type = "true | false", .whole_text = true};
const struct kind kind_nodes_option = {parse_nodes_option, print_amount, .amount = &amount_number,
	.type = "number of NUMA nodes, at least 8", .whole_text = true};
const struct kind kind_strategy_option = {
	parse_strategy_option, print_setting_word, .describe = describe_word, .whole_text = true};
const struct kind kind_gate = {parse_gate, print_bool, .type = "true | false", .whole_text = true};

const struct kind kind_wishes = {parse_wishes, print_wishes, .type = "names of wishes, or none"};

const char *row_entry(const char *key, const char *list, unsigned max, unsigned *entry)
{
	const char *behind = text_behind(key, list);
	const char *digits = behind && *behind == '.' ? behind + 1 : NULL;
	size_t len = digits ? strcspn(digits, ".") : 0;
	uint64_t nr;

	if (!len || text_u64(digits, len, max - 1, &nr, NULL) < 0)
		return NULL;
	*entry = (unsigned)nr;
	return digits + len;
}

void row_describe(const struct row *row, struct text *to)
{
	if (row->kind->describe)
		row->kind->describe(row, to);
	else
		text_add(to, "%s", row->kind->type);
}
