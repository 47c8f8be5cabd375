#include <codec/machine_text.h>

#include <assert.h>
#include <errno.h>
#include <numafit/quantity.h>
#include <string.h>

struct span {
	const char *s;
	size_t len;
};

/* How much of a word an error repeats. */
enum { QUOTE_MAX = 40 };
#define QUOTED(w) (int)((w).len < QUOTE_MAX ? (w).len : QUOTE_MAX), (w).s

/* The words that have one value; a cpus line takes all but the two of memory. */
enum attribute {
	AT_CPUS,
	AT_SOCKET,
	AT_SMT,
	AT_L3,
	AT_UNCORE,
	AT_MEMORY,
	AT_DEVICE_MEMORY,
	NR_ATTRIBUTES
};
static const char *const attribute_names[NR_ATTRIBUTES] = {
	"cpus", "socket", "smt", "l3", "uncore", "memory", "device-memory"};
static const char huge_prefix[] = "hugepages-";
enum { HUGE_PREFIX_LEN = sizeof huge_prefix - 1 };

/* One line's words, before they mean anything. */
struct attributes {
	struct span value[NR_ATTRIBUTES]; /* s NULL: not given */
	struct huge {
		uint64_t page_bytes, bytes;
	} huge[TOPO_KINDS - 1];
	unsigned nr_huge;
};

struct reader {
	struct topo t;
	bool named;
	struct cpuset offline, isolated; /* as they were announced */
	struct cpuset listed;            /* by the lines of nodes, offline ones too */
	unsigned next_uncore;
	bool in_distances;
	unsigned nr_rows;
};

/* Take the part before the first sep off *rest; whether there was a sep. */
static bool cut(struct span *rest, char sep, struct span *part)
{
	const char *at = rest->len ? memchr(rest->s, sep, rest->len) : NULL;
	size_t len = at ? (size_t)(at - rest->s) : rest->len;
	size_t taken = at ? len + 1 : len;

	*part = (struct span){rest->s, len};
	rest->s += taken;
	rest->len -= taken;
	return at != NULL;
}

static bool char_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Take the next word off the line; false when there is none. */
static bool next_word(struct span *line, struct span *word)
{
	while (line->len && char_is_blank(*line->s)) {
		line->s++;
		line->len--;
	}
	*word = (struct span){line->s, 0};
	while (line->len && !char_is_blank(*line->s)) {
		line->s++;
		line->len--;
		word->len++;
	}
	return word->len > 0;
}

static bool span_is_word(struct span w, const char *word)
{
	return strlen(word) == w.len && memcmp(w.s, word, w.len) == 0;
}

static int span_read_quantity(struct span w, uint64_t *out, struct err *e)
{
	char text[TEXT_SIZE_MAX];

	if (w.len >= sizeof text)
		return err_set(e, EINVAL, "\"%.*s\" is too long for a quantity", QUOTED(w));
	memcpy(text, w.s, w.len);
	text[w.len] = '\0';
	return quantity_parse_count(text, QUANTITY_WHOLE, out, e);
}

/* The number of that word, in lo..hi; *out stays as it is when the word is not there. */
static int attribute_read_number(const struct attributes *a, enum attribute at, unsigned lo,
	unsigned hi, unsigned *out, struct err *e)
{
	const struct span *w = &a->value[at];
	uint64_t value;

	if (!w->s)
		return 0;
	int rc = text_u64(w->s, w->len, hi, &value, e);
	if (rc == 0 && value < lo)
		rc = err_set(e, ERANGE, "%u is below %u", (unsigned)value, lo);
	if (rc)
		return err_add(e, rc, "%s", attribute_names[at]);
	*out = (unsigned)value;
	return 0;
}

/* hugepages-SIZE COUNT */
static int read_huge(struct attributes *a, struct span name, struct span count, struct err *e)
{
	struct span size = {name.s + HUGE_PREFIX_LEN, name.len - HUGE_PREFIX_LEN};
	struct huge h;
	uint64_t pages;

	int rc = span_read_quantity(size, &h.page_bytes, e);
	if (rc == 0 && (!h.page_bytes || (h.page_bytes & (h.page_bytes - 1))))
		rc = err_set(e, EINVAL, "the size of a page is a power of two");
	if (rc == 0)
		rc = text_u64(count.s, count.len, UINT64_MAX, &pages, e);
	if (rc == 0 && __builtin_mul_overflow(pages, h.page_bytes, &h.bytes))
		rc = err_set(e, ERANGE, "%.*s pages are too many", QUOTED(count));
	for (unsigned i = 0; rc == 0 && i < a->nr_huge; i++)
		if (a->huge[i].page_bytes == h.page_bytes)
			rc = err_set(e, EEXIST, "this size is given twice");
	if (rc == 0 && a->nr_huge == TOPO_KINDS - 1)
		rc = err_set(e, ERANGE, "more than %d sizes of huge pages", TOPO_KINDS - 1);
	if (rc)
		return err_add(e, rc, "%.*s", QUOTED(name));
	a->huge[a->nr_huge++] = h;
	return 0;
}

static int read_attribute(struct attributes *a, struct span name, struct span value, struct err *e)
{
	if (name.len > HUGE_PREFIX_LEN && memcmp(name.s, huge_prefix, HUGE_PREFIX_LEN) == 0)
		return read_huge(a, name, value, e);
	for (unsigned i = 0; i < NR_ATTRIBUTES; i++) {
		if (!span_is_word(name, attribute_names[i]))
			continue;
		if (a->value[i].s)
			return err_set(e, EEXIST, "\"%s\" is given twice", attribute_names[i]);
		a->value[i] = value;
		return 0;
	}
	return err_set(e, EINVAL,
		"\"%.*s\" is none of cpus, socket, smt, l3, uncore, memory, device-memory, "
		"hugepages-SIZE",
		QUOTED(name));
}

/* The pairs of word and value that the rest of the line consists of. */
static int attributes_read(struct attributes *a, struct span line, struct err *e)
{
	struct span name, value;

	while (next_word(&line, &name)) {
		if (!next_word(&line, &value))
			return err_set(e, EINVAL, "\"%.*s\" has no value", QUOTED(name));
		int rc = read_attribute(a, name, value, e);
		if (rc)
			return rc;
	}
	return 0;
}

/* A list of CPU ids in the order in which it is written. */
struct cpu_list {
	uint16_t id[CPUSET_BITS];
	unsigned nr;
};

static int read_range(struct cpu_list *list, struct span range, struct err *e)
{
	struct span first;
	uint64_t lo, hi;
	bool has_end = cut(&range, '-', &first);

	int rc = text_u64(first.s, first.len, CPUSET_BITS - 1, &lo, e);
	if (rc)
		return rc;
	hi = lo;
	if (has_end)
		rc = text_u64(range.s, range.len, CPUSET_BITS - 1, &hi, e);
	if (rc)
		return rc;
	if (hi < lo)
		return err_set(
			e, EINVAL, "the range %u-%u runs backwards", (unsigned)lo, (unsigned)hi);
	if (list->nr + (hi - lo) >= CPUSET_BITS)
		return err_set(e, ERANGE, "a list of more than %d CPUs", CPUSET_BITS);
	while (lo <= hi)
		list->id[list->nr++] = (uint16_t)lo++;
	return 0;
}

static int read_cpu_list(struct cpu_list *list, struct span text, struct err *e)
{
	bool more = true;

	list->nr = 0;
	while (more) {
		struct span range;

		more = cut(&text, ',', &range);
		int rc = read_range(list, range, e);
		if (rc)
			return err_add(e, rc, "cpus");
	}
	return 0;
}

/* The CPUs of one line, to the node read last. */
static int machine_add_cpus(struct reader *r, const struct attributes *a, struct err *e)
{
	unsigned socket = 0, smt = 1, l3, uncore = r->next_uncore, node = r->t.ids.nr - 1;
	struct cpu_list list;

	if (nodeset_has(r->t.device_memory, node))
		return err_set(e, EINVAL, "a node with \"device-memory\" has no CPUs");
	int rc = read_cpu_list(&list, a->value[AT_CPUS], e);
	if (rc == 0)
		rc = attribute_read_number(a, AT_SOCKET, 0, CPUSET_BITS - 1, &socket, e);
	if (rc == 0)
		rc = attribute_read_number(a, AT_SMT, 1, CPUSET_BITS, &smt, e);
	if (rc == 0 && list.nr % smt)
		rc = err_set(
			e, EINVAL, "smt: %u CPUs are not %u runs of equal length", list.nr, smt);
	if (rc)
		return rc;
	unsigned cores = l3 = list.nr / smt;
	rc = attribute_read_number(a, AT_L3, 1, CPUSET_BITS, &l3, e);
	if (rc == 0 && cores % l3)
		rc = err_set(e, EINVAL, "l3: %u cores do not share caches by %u", cores, l3);
	if (rc == 0)
		rc = attribute_read_number(a, AT_UNCORE, 0, CPUSET_BITS - 1, &uncore, e);
	for (unsigned i = 0; rc == 0 && i < list.nr; i++) {
		unsigned core = i % cores;

		if (cpuset_has(&r->listed, list.id[i]))
			return err_set(e, EEXIST, "CPU %u is there twice", list.id[i]);
		assert(list.id[i] < CPUSET_BITS); /* read_cpu_list() has seen to it */
		cpuset_add(&r->listed, list.id[i]);
		if (!cpuset_has(&r->offline, list.id[i]))
			rc = topo_add_cpu(&r->t, list.id[i], node, list.id[core], socket,
				uncore + core / l3, e);
	}
	if (rc)
		return rc;
	if (uncore + cores / l3 > r->next_uncore)
		r->next_uncore = uncore + cores / l3;
	return 0;
}

static int machine_add_memory(struct reader *r, const struct attributes *a, struct err *e)
{
	bool of_device = a->value[AT_DEVICE_MEMORY].s;
	enum attribute which = of_device ? AT_DEVICE_MEMORY : AT_MEMORY;
	unsigned node = r->t.ids.nr - 1;
	uint64_t bytes = 0;
	int rc = 0;

	if (a->value[which].s) {
		rc = span_read_quantity(a->value[which], &bytes, e);
		if (rc)
			return err_add(e, rc, "%s", attribute_names[which]);
	}
	if (of_device && a->value[AT_MEMORY].s)
		return err_set(e, EINVAL, "\"memory\" and \"device-memory\" exclude each other");
	if (of_device)
		rc = topo_set_device_memory(&r->t, node, e);
	if (rc == 0)
		rc = topo_set_memory(&r->t, node, 0, bytes, e);
	for (unsigned i = 0; rc == 0 && i < a->nr_huge; i++)
		rc = topo_set_memory(&r->t, node, a->huge[i].page_bytes, a->huge[i].bytes, e);
	return rc;
}

/* Words that say nothing without others, and those that do not belong here. */
static int refuse_words(const struct attributes *a, enum attribute lo, enum attribute hi,
	const char *why, struct err *e)
{
	for (unsigned i = lo; i <= hi; i++)
		if (a->value[i].s)
			return err_set(e, EINVAL, "\"%s\" %s", attribute_names[i], why);
	return 0;
}

static int line_read_machine(struct reader *r, struct span line, struct err *e)
{
	struct span name, extra;

	if (r->named)
		return err_set(e, EEXIST, "a second \"machine\" line");
	if (!next_word(&line, &name) || !machine_text_is_name(name.s, name.len))
		return err_set(e, EINVAL,
			"\"machine\" needs a name of up to %d letters, digits, '.', '_' and '-'",
			TOPO_NAME_MAX - 1);
	if (next_word(&line, &extra))
		return err_set(e, EINVAL, "\"%.*s\" after the machine's name", QUOTED(extra));
	memcpy(r->t.name, name.s, name.len);
	r->named = true;
	return 0;
}

/* CPUs that are announced before the nodes that they belong to. */
static int read_announced(
	struct reader *r, struct span line, const char *word, struct cpuset *set, struct err *e)
{
	struct span list, extra;

	if (r->t.ids.nr)
		return err_set(e, EINVAL, "\"%s\" belongs before the first node", word);
	if (!cpuset_empty(set))
		return err_set(e, EEXIST, "a second \"%s\" line", word);
	if (!next_word(&line, &list))
		return err_set(e, EINVAL, "\"%s\" needs a list", word);
	if (next_word(&line, &extra))
		return err_set(e, EINVAL, "\"%.*s\" after the list", QUOTED(extra));
	int rc = cpuset_parse(set, list.s, list.len, e);
	return rc ? err_add(e, rc, "%s", word) : 0;
}

static int read_offline(struct reader *r, struct span line, struct err *e)
{
	return read_announced(r, line, "offline", &r->offline, e);
}

static int read_isolated(struct reader *r, struct span line, struct err *e)
{
	return read_announced(r, line, "isolated", &r->isolated, e);
}

/* Once all nodes are there: what was announced of CPUs that came on no line is a slip. */
static int check_announced(const struct reader *r, struct err *e)
{
	struct cpuset offline = cpuset_minus(r->offline, &r->listed);
	struct cpuset isolated = cpuset_minus(r->isolated, &r->listed);
	bool is_offline = !cpuset_empty(&offline);
	char list[QUOTE_MAX];

	if (!is_offline && cpuset_empty(&isolated))
		return 0;
	return err_set(e, EINVAL, "%s: no node has CPU %s", is_offline ? "offline" : "isolated",
		cpuset_format(is_offline ? &offline : &isolated, list, sizeof list));
}

static int line_read_node(struct reader *r, struct span line, struct err *e)
{
	struct attributes a = {0};
	struct span word;
	uint64_t id;

	if (!next_word(&line, &word))
		return err_set(e, EINVAL, "\"node\" needs an id");
	int rc = text_u64(word.s, word.len, UINT32_MAX, &id, e);
	if (rc)
		return err_add(e, rc, "node");
	rc = topo_add_node(&r->t, (unsigned)id, e);
	if (rc < 0)
		return rc;
	rc = attributes_read(&a, line, e);
	if (rc == 0)
		rc = machine_add_memory(r, &a, e);
	if (rc == 0)
		rc = a.value[AT_CPUS].s ? machine_add_cpus(r, &a, e)
					: refuse_words(&a, AT_SOCKET, AT_UNCORE, "without cpus", e);
	return rc ? err_add(e, rc, "node %u", (unsigned)id) : 0;
}

static int line_read_cpus(struct reader *r, struct span line, struct err *e)
{
	struct attributes a = {0};
	struct span list;

	if (!r->t.ids.nr)
		return err_set(e, EINVAL, "\"cpus\" before any node");
	if (!next_word(&line, &list))
		return err_set(e, EINVAL, "\"cpus\" needs a list");
	a.value[AT_CPUS] = list;
	int rc = attributes_read(&a, line, e);
	if (rc == 0)
		rc = refuse_words(
			&a, AT_MEMORY, AT_DEVICE_MEMORY, "belongs on the node's own line", e);
	if (rc == 0 && a.nr_huge)
		rc = err_set(e, EINVAL, "huge pages belong on the node's own line");
	if (rc == 0)
		rc = machine_add_cpus(r, &a, e);
	return rc ? err_add(e, rc, "node %u", r->t.ids.id[r->t.ids.nr - 1]) : 0;
}

static int line_read_distances(struct reader *r, struct span line, struct err *e)
{
	struct span extra;

	if (next_word(&line, &extra))
		return err_set(e, EINVAL, "\"%.*s\" after \"distances\": the rows follow below",
			QUOTED(extra));
	r->in_distances = true;
	return 0;
}

/* The distances from the next node to every node. */
static int line_read_row(struct reader *r, struct span line, struct err *e)
{
	unsigned nr = r->t.ids.nr, from = r->nr_rows, to = 0;
	struct span word;

	if (from == nr)
		return err_set(e, EINVAL, "a row of distances too many: there are %u nodes", nr);
	for (; next_word(&line, &word); to++) {
		uint64_t distance;

		if (to == nr)
			return err_set(e, EINVAL, "node %u, distances: more than %u",
				r->t.ids.id[from], nr);
		int rc = text_u64(word.s, word.len, UINT32_MAX, &distance, e);
		if (rc)
			return err_add(e, rc, "node %u, distance to node %u", r->t.ids.id[from],
				r->t.ids.id[to]);
		rc = topo_set_distance(&r->t, from, to, (unsigned)distance, e);
		if (rc)
			return rc;
	}
	if (to < nr)
		return err_set(e, EINVAL, "node %u, distances: %u instead of %u", r->t.ids.id[from],
			to, nr);
	r->nr_rows++;
	return 0;
}

static const struct {
	const char *word;
	int (*read)(struct reader *r, struct span rest, struct err *e);
} statements[] = {
	{"machine", line_read_machine},
	{"offline", read_offline},
	{"isolated", read_isolated},
	{"node", line_read_node},
	{"cpus", line_read_cpus},
	{"distances", line_read_distances},
};

static int line_read(struct reader *r, struct span line, struct err *e)
{
	struct span rest = line, word;

	for (size_t i = 0; i < line.len; i++)
		if ((unsigned char)line.s[i] < ' ' && !char_is_blank(line.s[i]))
			return err_set(e, EINVAL,
				"column %zu: a control character: not a text file", i + 1);
	if (!text_is_utf8(line.s, line.len))
		return err_set(e, EINVAL, "not UTF-8 text");
	(void)cut(&rest, '#', &line);
	rest = line;
	if (!next_word(&rest, &word))
		return 0;
	if (r->in_distances)
		return line_read_row(r, line, e);
	for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
		if (!span_is_word(word, statements[i].word))
			continue;
		if (!r->named && statements[i].read != line_read_machine)
			return err_set(e, EINVAL, "\"%.*s\" before \"machine NAME\"", QUOTED(word));
		return statements[i].read(r, rest, e);
	}
	return err_set(e, EINVAL,
		"\"%.*s\" is none of machine, offline, isolated, node, cpus, distances",
		QUOTED(word));
}

int machine_text_parse(const char *text, size_t len, struct topo *out, struct err *e)
{
	struct span rest = {text, len}, line;
	struct reader r = {0};
	unsigned number = 0;
	bool more = true;

	if (len > MACHINE_TEXT_MAX)
		return err_set(e, EFBIG, "%zu bytes are too many for a machine: %d are allowed",
			len, MACHINE_TEXT_MAX);
	topo_init(&r.t, "");
	while (more) {
		more = cut(&rest, '\n', &line);
		number++;
		int rc = line_read(&r, line, e);
		if (rc)
			return err_add(e, rc, "line %u", number);
	}
	if (!r.named)
		return err_set(e, EINVAL, "line %u: the end, and no \"machine NAME\"", number);
	if (r.in_distances && r.nr_rows < r.t.ids.nr)
		return err_set(e, EINVAL, "line %u: the end, and no distances of node %u", number,
			r.t.ids.id[r.nr_rows]);
	int rc = check_announced(&r, e);
	r.t.isolated = r.isolated;
	if (rc == 0)
		rc = topo_seal(&r.t, e);
	if (rc)
		return err_add(e, rc, "machine %s", r.t.name);
	*out = r.t;
	return 0;
}

bool machine_text_is_name(const char *name, size_t len)
{
	static const char marks[] = "._-";

	for (size_t i = 0; i < len; i++) {
		char c = name[i];
		bool letter =
			(c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

		if (!letter && !memchr(marks, c, sizeof marks - 1))
			return false;
	}
	return len > 0 && len < TOPO_NAME_MAX;
}
