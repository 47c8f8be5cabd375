#include <numafit/settings.h>

#include <numafit/text.h>

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

enum { SHOWN = 64 };           /* bytes of somebody's key or value in an error's text */
enum { LETTERS_PER_SLIP = 8 }; /* beyond two, how far a key may be from the one that was meant */

static const char *const mode_words[] = {"off", "manage", NULL};
static const char *const policy_words[] = {
	"none", "best-effort", "restricted", "single-numa-node", NULL};
static const char *const scope_words[] = {"container", "pod", NULL};
static const char *const cpu_manager_words[] = {"none", "static", NULL};
static const char *const memory_manager_words[] = {"None", "Static", NULL};
static const char *const log_words[] = {"error", "warn", "info", "debug", NULL};

struct row;

/* What one type of value has of its own. */
struct kind {
	/* Text to the field at out, which stays as it is on error. */
	int (*parse)(const struct row *row, const char *value, void *out, struct err *e);
	void (*print)(const struct row *row, const void *in, struct text *to);
	const char *type;                                         /* for people */
	void (*describe)(const struct row *row, struct text *to); /* instead of type */
	bool whole_text; /* parse() words its errors in full, without the key in front */
};

struct row {
	const char *key;
	const struct kind *kind;
	size_t at, size;      /* the field in struct settings */
	const char *fallback; /* "" leaves the field zero */
	const char *help;
	uint64_t min, max;        /* of a number */
	const char *const *words; /* of an enum, in its order */
};

static void add_words(const char *const *words, const char *between, struct text *to)
{
	for (unsigned i = 0; words[i]; i++)
		text_add(to, "%s%s", i ? between : "", words[i]);
}

static_assert(sizeof(enum mode) == sizeof(unsigned), "an enum's field is written as an unsigned");

static int parse_word(const struct row *row, const char *value, void *out, struct err *e)
{
	char list[SHOWN];
	struct text t;

	for (unsigned i = 0; row->words[i]; i++)
		if (text_equal(value, row->words[i])) {
			memcpy(out, &i, sizeof i);
			return 0;
		}
	text_init(&t, list, sizeof list);
	add_words(row->words, ", ", &t);
	return err_set(e, EINVAL, "\"%.*s\" is not one of %s", SHOWN, value, list);
}

static void print_word(const struct row *row, const void *in, struct text *to)
{
	unsigned i;

	memcpy(&i, in, sizeof i);
	text_add(to, "%s", row->words[i]);
}

static void describe_word(const struct row *row, struct text *to)
{
	add_words(row->words, " | ", to);
}

static int parse_number(const struct row *row, const char *value, void *out, struct err *e)
{
	uint64_t number = 0;
	int rc = text_u64(value, strlen(value), row->max, &number, NULL);

	if (rc < 0 || number < row->min)
		return err_set(e, rc == -EINVAL ? EINVAL : ERANGE,
			"\"%.*s\" is not a number from %llu to %llu", SHOWN, value,
			(unsigned long long)row->min, (unsigned long long)row->max);
	*(unsigned *)out = (unsigned)number;
	return 0;
}

static void print_number(const struct row *row, const void *in, struct text *to)
{
	(void)row;
	text_add(to, "%u", *(const unsigned *)in);
}

static void describe_number(const struct row *row, struct text *to)
{
	text_add(to, "number, %llu to %llu", (unsigned long long)row->min,
		(unsigned long long)row->max);
}

static int parse_size(const struct row *row, const char *value, void *out, struct err *e)
{
	char min[TEXT_SIZE_MAX], max[TEXT_SIZE_MAX];
	int64_t bytes = 0;
	int rc = text_quantity(value, &bytes, NULL);

	if (rc < 0 || (uint64_t)bytes < row->min || (uint64_t)bytes > row->max)
		return err_set(e, rc == -EINVAL ? EINVAL : ERANGE,
			"\"%.*s\" is not a quantity from %s to %s", SHOWN, value,
			text_size(min, row->min), text_size(max, row->max));
	*(uint64_t *)out = (uint64_t)bytes;
	return 0;
}

static void print_size(const struct row *row, const void *in, struct text *to)
{
	char buf[TEXT_SIZE_MAX];

	(void)row;
	text_add(to, "%s", text_size(buf, *(const uint64_t *)in));
}

static void describe_size(const struct row *row, struct text *to)
{
	char min[TEXT_SIZE_MAX], max[TEXT_SIZE_MAX];

	text_add(to, "quantity, %s to %s", text_size(min, row->min), text_size(max, row->max));
}

static int parse_cpus(const struct row *row, const char *value, void *out, struct err *e)
{
	int rc = cpuset_parse(out, value, strlen(value), e);

	(void)row;
	return rc < 0 ? err_add(e, rc, "\"%.*s\"", SHOWN, value) : 0;
}

static void print_cpus(const struct row *row, const void *in, struct text *to)
{
	char list[CPUSET_TEXT_MAX];

	(void)row;
	text_add(to, "%s", cpuset_format(in, list, sizeof list));
}

static int parse_text(const struct row *row, const char *value, void *out, struct err *e)
{
	if (!*value)
		return err_set(e, EINVAL, "\"\" is not enough");
	if (strlen(value) >= row->size)
		return err_set(e, ERANGE, "\"%.*s...\" is longer than %zu bytes", SHOWN, value,
			row->size - 1);
	(void)text_copy(out, row->size, value);
	return 0;
}

static int parse_path(const struct row *row, const char *value, void *out, struct err *e)
{
	if (*value != '/')
		return err_set(
			e, EINVAL, "\"%.*s\" is not a path that begins with /", SHOWN, value);
	return parse_text(row, value, out, e);
}

static int parse_index(const struct row *row, const char *value, void *out, struct err *e)
{
	static const char digits[] = "0123456789";

	if (strlen(value) != 2 || strspn(value, digits) != 2)
		return err_set(e, EINVAL, "\"%.*s\" is not two digits", SHOWN, value);
	return parse_text(row, value, out, e);
}

static void print_text(const struct row *row, const void *in, struct text *to)
{
	(void)row;
	text_add(to, "%s", (const char *)in);
}

/* The Topology Manager's options: values are texts, checked in its words
 * (pkg/kubelet/cm/topologymanager/policy_options.go). */

#define OPTIONS "topologyManagerPolicyOptions."
enum { MAX_NODES_LEAST = 8 }; /* its defaultMaxAllowableNUMANodes */

static const char *option_name(const struct row *row)
{
	return row->key + sizeof OPTIONS - 1;
}

static int parse_bool_option(const struct row *row, const char *value, void *out, struct err *e)
{
	if (text_bool(value, out, NULL) < 0)
		return err_set(e, EINVAL,
			"bad value for option \"%s\": strconv.ParseBool: parsing \"%.*s\": invalid "
			"syntax",
			option_name(row), SHOWN, value);
	return 0;
}

static void print_bool(const struct row *row, const void *in, struct text *to)
{
	(void)row;
	text_add(to, "%s", *(const bool *)in ? "true" : "false");
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
			option_name(row), SHOWN, value,
			rc == -ERANGE ? "value out of range" : "invalid syntax");
	if (negative || number < MAX_NODES_LEAST)
		return err_set(e, ERANGE, "the minimum value of \"%s\" should not be less than %d",
			option_name(row), MAX_NODES_LEAST);
	*(unsigned *)out = number < UINT_MAX ? (unsigned)number : UINT_MAX;
	return 0;
}

static void print_nodes_option(const struct row *row, const void *in, struct text *to)
{
	if (*(const unsigned *)in)
		print_number(row, in, to);
}

#define RESERVED "reservedMemory"

static int parse_reserved(const struct row *row, const char *value, void *out, struct err *e)
{
	(void)row;
	(void)out;
	return err_set(e, EINVAL, "a list is expected, not \"%.*s\"", SHOWN, value);
}

/* As the kubelet's --reserved-memory has it: "0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=2Gi". */
static void print_reserved(const struct row *row, const void *in, struct text *to)
{
	const struct reserved_memory *r = in;
	char size[TEXT_SIZE_MAX];

	(void)row;
	for (unsigned i = 0; i < RESERVED_MEMORY_MAX && *r[i].type; i++) {
		if (i && r[i].entry == r[i - 1].entry)
			text_add(to, ",");
		else
			text_add(to, "%s%u:", i ? ";" : "", r[i].node_id);
		text_add(to, "%s=%s", r[i].type, text_size(size, r[i].bytes));
	}
}

static const struct kind word = {parse_word, print_word, .describe = describe_word};
static const struct kind number = {parse_number, print_number, .describe = describe_number};
static const struct kind size_bytes = {parse_size, print_size, .describe = describe_size};
static const struct kind cpus = {parse_cpus, print_cpus, .type = "kernel list, such as 0-3,8"};
static const struct kind plain = {parse_text, print_text, .type = "text"};
static const struct kind path = {parse_path, print_text, .type = "absolute path"};
static const struct kind two_digits = {parse_index, print_text, .type = "two digits"};
static const struct kind bool_option = {
	parse_bool_option, print_bool, .type = "true | false", .whole_text = true};
static const struct kind nodes_option = {
	parse_nodes_option, print_nodes_option, .type = "number, at least 8", .whole_text = true};
static const struct kind reserved = {parse_reserved, print_reserved,
	.type = "list of {numaNode, limits: {memory or hugepages-SIZE: quantity}}"};

#define KIB UINT64_C(1024)
#define ROW(name, type, member, value, text, ...)                                                  \
	{                                                                                          \
		.key = (name), .kind = &(type), .at = offsetof(struct settings, member),           \
		.size = sizeof((struct settings *)NULL)->member, .fallback = (value),              \
		.help = (text), __VA_ARGS__                                                        \
	}

/* The one table of all settings; its order is that of the documentation. */
static const struct row rows[] = {
	ROW("mode", word, mode, "manage",
		"manage: place containers. off: stay connected and report, place nothing",
		.words = mode_words),
	ROW("topologyManagerPolicy", word, topology_policy, "best-effort",
		"which sets of NUMA nodes a container is admitted on, as in the kubelet",
		.words = policy_words),
	ROW("topologyManagerScope", word, topology_scope, "container",
		"what is aligned as one; only container is there yet", .words = scope_words),
	ROW(OPTIONS "prefer-closest-numa-nodes", bool_option, prefer_closest_numa_nodes, "false",
		"among sets of as many nodes prefer the one with the shorter distances"),
	ROW(OPTIONS "max-allowable-numa-nodes", nodes_option, max_allowable_numa_nodes, "",
		"do not start on a machine with more NUMA nodes; not set: any number"),
	ROW("cpuManagerPolicy", word, cpu_manager_policy, "static",
		"static: Guaranteed containers that ask for whole CPUs get them for themselves",
		.words = cpu_manager_words),
	ROW("memoryManagerPolicy", word, memory_manager_policy, "Static",
		"Static: Guaranteed containers get their memory from the nodes they run on",
		.words = memory_manager_words),
	ROW("reservedSystemCPUs", cpus, reserved_cpus, "",
		"CPUs that are never given to one container alone"),
	ROW(RESERVED, reserved, reserved_memory, "",
		"memory of each NUMA node that no container is placed on"),
	ROW("sharedPoolStep", number, shared_pool_step, "16",
		"CPUs that a NUMA node's shared pool gives up or gets back beyond need, so that "
		"not every container changes it",
		.max = CPUSET_BITS),
	ROW("sharedPoolMinimum", number, shared_pool_minimum, "1",
		"CPUs that the shared pool never falls below", .max = CPUSET_BITS),
	ROW("nri.socketPath", path, nri_socket, "/var/run/nri/nri.sock",
		"the container runtime's NRI socket"),
	ROW("nri.pluginIndex", two_digits, nri_index, "50",
		"the place among the runtime's NRI plugins: lower ones are asked first"),
	ROW("runDirectory", path, run_directory, "/run/numafit",
		"where the journal is; on a tmpfs that outlives the daemon"),
	ROW("journalMaxBytes", size_bytes, journal_max_bytes, "16Mi",
		"the journal is rewritten when it grows beyond", .min = 64 * KIB,
		.max = KIB * KIB * KIB),
	ROW("machine", plain, machine, "this",
		"this machine, or the name or path of a recorded one to try things on"),
	ROW("logLevel", word, log_level, "info", "lines above this level are not written",
		.words = log_words),
};
enum { NR_ROWS = sizeof rows / sizeof *rows };

static void *field(struct settings *s, const struct row *row)
{
	return (char *)s + row->at;
}

void settings_init(struct settings *s)
{
	memset(s, 0, sizeof *s);
	for (unsigned i = 0; i < NR_ROWS; i++)
		if (*rows[i].fallback) {
			int rc = rows[i].kind->parse(
				&rows[i], rows[i].fallback, field(s, &rows[i]), NULL);

			assert(rc == 0);
			(void)rc;
		}
}

/* reservedMemory.ENTRY.numaNode and reservedMemory.ENTRY.limits.TYPE: one struct for each type of
 * each entry; one without type holds the node of an entry whose limits are still to come. */

static struct reserved_memory *find_reserved(struct settings *s, unsigned entry, const char *type)
{
	for (unsigned i = 0; i < s->nr_reserved_memory; i++)
		if (s->reserved_memory[i].entry == entry &&
			(!type || text_equal(s->reserved_memory[i].type, type)))
			return &s->reserved_memory[i];
	return NULL;
}

/* A new one for the entry, at *added; the next entry may begin, no gap. */
static int add_reserved(
	struct settings *s, unsigned entry, struct reserved_memory **added, struct err *e)
{
	const struct reserved_memory *sibling = find_reserved(s, entry, NULL);

	if (entry && !find_reserved(s, entry - 1, NULL))
		return err_set(e, EINVAL, "entry %u is missing", entry - 1);
	if (s->nr_reserved_memory == RESERVED_MEMORY_MAX)
		return err_set(e, ERANGE, "more than %d amounts", RESERVED_MEMORY_MAX);
	struct reserved_memory *r = &s->reserved_memory[s->nr_reserved_memory++];

	*r = (struct reserved_memory){.entry = entry};
	if (sibling) {
		r->has_node = sibling->has_node;
		r->node_id = sibling->node_id;
	}
	*added = r;
	return 0;
}

static int set_reserved_node(struct settings *s, unsigned entry, const char *value, struct err *e)
{
	uint64_t id;
	int rc = text_u64(value, strlen(value), NODE_ID_MAX, &id, NULL);

	if (rc < 0)
		return err_set(e, -rc, "\"%.*s\" is not the number of a NUMA node, 0 to %d", SHOWN,
			value, NODE_ID_MAX);
	struct reserved_memory *r = find_reserved(s, entry, NULL);

	rc = r ? 0 : add_reserved(s, entry, &r, e);
	if (rc < 0)
		return rc;
	for (unsigned i = 0; i < s->nr_reserved_memory; i++)
		if (s->reserved_memory[i].entry == entry) {
			s->reserved_memory[i].has_node = true;
			s->reserved_memory[i].node_id = (unsigned)id;
		}
	return 0;
}

#define HUGEPAGES "hugepages-"

/* The type as the machine names it: "hugepages-1024Mi" are its hugepages-1Gi. */
static int reserved_type(const char *name, struct text *type, struct err *e)
{
	char size[TEXT_SIZE_MAX];
	int64_t page_bytes = 0;

	if (text_equal(name, "memory")) {
		text_add(type, "%s", name);
		return 0;
	}
	if (strncmp(name, HUGEPAGES, sizeof HUGEPAGES - 1) != 0 ||
		text_quantity(name + sizeof HUGEPAGES - 1, &page_bytes, NULL) < 0 || !page_bytes)
		return err_set(e, EINVAL, "\"%.*s\" is not memory or hugepages-SIZE", SHOWN, name);
	text_add(type, HUGEPAGES "%s", text_size(size, (uint64_t)page_bytes));
	return 0;
}

static int set_reserved_limit(
	struct settings *s, unsigned entry, const char *name, const char *value, struct err *e)
{
	char type[sizeof s->reserved_memory->type];
	struct text t;
	int64_t bytes = 0;

	text_init(&t, type, sizeof type);
	int rc = reserved_type(name, &t, e);

	if (rc < 0)
		return rc;
	rc = text_quantity(value, &bytes, NULL);
	if (rc < 0 || !bytes)
		return err_set(e, rc == -ERANGE ? ERANGE : EINVAL,
			"\"%.*s\" is not a quantity above 0", SHOWN, value);
	struct reserved_memory *r = find_reserved(s, entry, type);

	r = r ? r : find_reserved(s, entry, "");
	rc = r ? 0 : add_reserved(s, entry, &r, e);
	if (rc < 0)
		return rc;
	(void)text_copy(r->type, sizeof r->type, type);
	r->bytes = (uint64_t)bytes;
	return 0;
}

/* The part of a key behind prefix, or NULL. */
static const char *behind(const char *key, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(key, prefix, len) == 0 ? key + len : NULL;
}

/* The entry's number, and what of the key stands behind it; NULL: no number. */
static const char *reserved_entry(const char *key, unsigned *entry)
{
	const char *digits = behind(key, RESERVED ".");
	size_t len = digits ? strcspn(digits, ".") : 0;
	uint64_t nr;

	if (!len || text_u64(digits, len, RESERVED_MEMORY_MAX - 1, &nr, NULL) < 0)
		return NULL;
	*entry = (unsigned)nr;
	return digits + len;
}

static int set_reserved(struct settings *s, const char *key, const char *value, struct err *e)
{
	unsigned entry = 0;
	const char *rest = reserved_entry(key, &entry), *type;

	if (!rest)
		return err_set(
			e, EINVAL, "a list of at most %d entries is expected", RESERVED_MEMORY_MAX);
	if (text_equal(rest, ".numaNode"))
		return set_reserved_node(s, entry, value, e);
	type = behind(rest, ".limits.");
	if (type)
		return set_reserved_limit(s, entry, type, value, e);
	return err_set(e, ENOENT, "an entry has numaNode and limits.TYPE");
}

/* Levenshtein's distance, capitals counted as small letters. */
static unsigned distance(const char *a, const char *b)
{
	unsigned before[SHOWN + 1], now[SHOWN + 1];
	size_t nr = strlen(b);

	for (size_t i = 0; i <= nr; i++)
		before[i] = (unsigned)i;
	for (; *a; a++) {
		now[0] = before[0] + 1;
		for (size_t i = 0; i < nr; i++) {
			bool same = tolower((unsigned char)*a) == tolower((unsigned char)b[i]);
			unsigned changed = before[i] + !same;
			unsigned dropped = before[i + 1] < now[i] ? before[i + 1] + 1 : now[i] + 1;

			now[i + 1] = changed < dropped ? changed : dropped;
		}
		memcpy(before, now, sizeof before);
	}
	return before[nr];
}

/* The key that was probably meant, or NULL. "pluginIndex" may mean "nri.pluginIndex". */
static const char *nearest(const char *key)
{
	unsigned least = 2 + (unsigned)strlen(key) / LETTERS_PER_SLIP;
	const char *best = NULL;

	for (unsigned i = 0; i < NR_ROWS && strlen(key) <= SHOWN; i++) {
		const char *dot = strchr(key, '.') ? NULL : strchr(rows[i].key, '.');
		unsigned whole = distance(key, rows[i].key);
		unsigned tail = dot ? distance(key, dot + 1) : whole;
		unsigned d = tail < whole ? tail : whole;

		if (d <= least && d < strlen(key)) {
			best = rows[i].key;
			least = d ? d - 1 : 0;
		}
	}
	return best;
}

static int unknown(const char *key, struct err *e)
{
	const char *option = behind(key, OPTIONS), *meant = nearest(key);

	if (option)
		return err_set(e, ENOENT, "unknown Topology Manager Policy option: \"%.*s\"", SHOWN,
			option);
	for (unsigned i = 0; i < NR_ROWS; i++) {
		const char *rest = behind(key, rows[i].key);

		if (rest && *rest == '.')
			return err_set(e, ENOENT, "%s: one value is expected, not a map or a list",
				rows[i].key);
	}
	return meant ? err_set(e, ENOENT, "%.*s: unknown key, did you mean %s?", SHOWN, key, meant)
		     : err_set(e, ENOENT, "%.*s: unknown key", SHOWN, key);
}

static const struct row *find_row(const char *key)
{
	for (unsigned i = 0; i < NR_ROWS; i++)
		if (text_equal(rows[i].key, key))
			return &rows[i];
	return NULL;
}

int settings_set(struct settings *s, const char *key, const char *value, struct err *e)
{
	const struct row *row = find_row(key);
	int rc;

	for (const char *c = value; *c; c++)
		if (iscntrl((unsigned char)*c))
			return err_set(
				e, EINVAL, "%.*s: the value holds a control character", SHOWN, key);
	if (!text_is_utf8(value, strlen(value)))
		return err_set(e, EINVAL, "%.*s: the value is not UTF-8", SHOWN, key);
	if (row)
		rc = row->kind->parse(row, value, field(s, row), e);
	else if (behind(key, RESERVED "."))
		rc = set_reserved(s, key, value, e);
	else if (settings_is_group(key))
		rc = err_set(e, EINVAL, "a map is expected, not \"%.*s\"", SHOWN, value);
	else
		return unknown(key, e);
	if (rc < 0 && !(row && row->kind->whole_text))
		return err_add(e, rc, "%.*s", SHOWN, key);
	return rc;
}

bool settings_is_group(const char *key)
{
	unsigned entry;
	const char *rest = reserved_entry(key, &entry);

	if (rest)
		return text_equal(rest, "") || text_equal(rest, ".limits");
	if (text_equal(key, RESERVED))
		return true;
	for (unsigned i = 0; i < NR_ROWS; i++) {
		const char *tail = behind(rows[i].key, key);

		if (*key && tail && *tail == '.')
			return true;
	}
	return false;
}

bool settings_doc(unsigned i, struct setting_doc *doc)
{
	struct text t;

	if (i >= NR_ROWS)
		return false;
	doc->key = rows[i].key;
	doc->help = rows[i].help;
	(void)text_copy(doc->fallback, sizeof doc->fallback, rows[i].fallback);
	text_init(&t, doc->type, sizeof doc->type);
	if (rows[i].kind->describe)
		rows[i].kind->describe(&rows[i], &t);
	else
		text_add(&t, "%s", rows[i].kind->type);
	return true;
}

bool settings_get(const struct settings *s, unsigned i, char *buf, size_t cap)
{
	struct text t;

	if (i >= NR_ROWS)
		return false;
	text_init(&t, buf, cap);
	rows[i].kind->print(&rows[i], (const char *)s + rows[i].at, &t);
	return true;
}

const char *mode_name(enum mode m)
{
	return mode_words[m];
}

const char *topology_policy_name(enum topology_policy p)
{
	return policy_words[p];
}

const char *topology_scope_name(enum topology_scope s)
{
	return scope_words[s];
}

int topology_policy_from_name(const char *name)
{
	for (int i = 0; policy_words[i]; i++)
		if (text_equal(name, policy_words[i]))
			return i;
	return -1;
}
