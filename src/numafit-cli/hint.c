#include <numafit-cli/verbs.h>

#include <codec/advice_json.h>
#include <codec/placement_json.h>
#include <errno.h>
#include <host/discover.h>
#include <io/loop.h>
#include <numafit/mem.h>
#include <numafit-cli/output.h>
#include <numafit-cli/wording.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TTL_S = 120, SKEW_MS = 5000, CENT = 100, MILLI = 1000 };

struct entries {
	VEC(struct advice_container);
};

struct question;
/* An option about the machine's NUMA nodes, which is read when the machine is known. */
struct of_nodes {
	const struct option_row *row;
	int (*add)(struct question *q, char *value, struct err *e);
	char *value;
};

struct question {
	struct advice
		advice; /* encode: what is written but for the entries; check: the node's own */
	struct entries entries;
	struct {
		VEC(struct of_nodes);
	} of_nodes;
	const char *key, *machine, *file;
	bool unreadable; /* the file */
	int64_t now_ms;
	uint64_t skew_ms;
	struct topo t;
	struct arena arena;
};

/* The entry that "NAME=rest" is about, and the rest. A '=' behind a ':' or in quotes belongs to the
 * rest. */
static struct advice_container *hint_entry_of(struct question *q, char *arg, char **rest)
{
	size_t len = strcspn(arg, "=:{");
	const char *name = "*";

	*rest = arg;
	if (arg[len] == '=') {
		arg[len] = '\0';
		name = arg;
		*rest = arg + len + 1;
	}
	for (size_t i = 0; i < q->entries.nr; i++)
		if (text_equal(q->entries.at[i].name, name))
			return &q->entries.at[i];
	struct advice_container *c = vec_push(&q->entries);
	c->name = name;
	return c;
}

static int add_hint_nodes(struct question *q, char *arg, struct err *e)
{
	struct nodeset nodes;
	char *list;
	struct advice_container *c = hint_entry_of(q, arg, &list);
	int rc = nodeset_parse(&nodes, &q->t.ids, list, strlen(list), e);

	if (!rc)
		c->nodes = nodeset_or(c->nodes, nodes);
	return rc;
}

static int add_placed(struct question *q, char *arg, struct err *e)
{
	struct placement p;
	char *value;
	struct advice_container *c = hint_entry_of(q, arg, &value);
	int rc = placement_json_parse(value, &q->t.ids, &p, e);

	if (rc)
		return rc;
	if (!p.has_nodes)
		return err_set(e, EINVAL, "that container had no NUMA affinity");
	c->nodes = nodeset_or(c->nodes, p.nodes);
	return 0;
}

/* The amounts are written as in Goedel's annotation, the one form that is easy to type. */
static int add_amounts(struct question *q, char *arg, struct err *e)
{
	const struct advice_context c = {.t = &q->t, .arena = &q->arena};
	struct advice read;
	char *list;
	struct advice_container *to = hint_entry_of(q, arg, &list);
	int rc = advice_read(
		advice_source_of("godel.bytedance.com/micro-topology"), list, &c, &read, e);

	if (rc)
		return rc;
	if (!read.nr_containers || read.container->has_unknown || to->nr_amounts)
		return err_set(e, EINVAL, "%s",
			to->nr_amounts       ? "it is there twice"
			: read.nr_containers ? "it names a NUMA node that the machine lacks"
					     : "it is empty");
	to->nodes = nodeset_or(to->nodes, read.container->nodes);
	to->amount = read.container->amount;
	to->nr_amounts = read.container->nr_amounts;
	return 0;
}

static int read_hint_mode(const struct option_row *o, void *member, char *value, struct err *e)
{
	unsigned word;
	int rc = option_word(o, &word, value, e);

	if (!rc)
		*(enum advice_mode *)member =
			(enum advice_mode)text_index(advice_mode_words, NR_ADVICE_MODES, value);
	return rc;
}

static int read_hint_key(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o;
	*(const char **)member = value;
	return advice_source_of(value) ? 0
				       : err_set(e, ENOENT, "no hints are read from \"%s\"", value);
}

static int read_hint_u64(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o;
	return text_u64(value, strlen(value), UINT64_MAX, member, e);
}

static int read_hint_ms(const struct option_row *o, void *member, char *value, struct err *e)
{
	uint64_t number;
	int rc = text_u64(value, strlen(value), INT64_MAX, &number, e);

	(void)o;
	if (!rc)
		*(int64_t *)member = (int64_t)number;
	return rc;
}

static int read_hint_ttl(const struct option_row *o, void *member, char *value, struct err *e)
{
	uint64_t number;
	int rc = text_u64(value, strlen(value), ADVICE_TTL_MAX_S, &number, e);

	(void)o;
	if (!rc)
		*(unsigned *)member = (unsigned)number;
	return rc;
}

static int keep_of_nodes(const struct option_row *o, struct question *q, char *value,
	int (*add)(struct question *q, char *value, struct err *e))
{
	*vec_push(&q->of_nodes) = (struct of_nodes){o, add, value};
	return 0;
}

static int read_hint_nodes(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)e;
	return keep_of_nodes(o, member, value, add_hint_nodes);
}

static int read_hint_placed(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)e;
	return keep_of_nodes(o, member, value, add_placed);
}

static int read_hint_amounts(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)e;
	return keep_of_nodes(o, member, value, add_amounts);
}

#define AT(member) offsetof(struct question, member)
#define COMMON_ROWS                                                                                \
	{.name = "node",                                                                           \
		.value = "NODE",                                                                   \
		.help = "the node's name: the one that a hint is written for, and where it is "    \
			"read",                                                                    \
		.read = option_text,                                                               \
		.at = offsetof(struct question, advice.node)},                                     \
		{.name = "uid",                                                                    \
			.value = "UID",                                                            \
			.help = "the pod's uid, likewise",                                         \
			.read = option_text,                                                       \
			.at = offsetof(struct question, advice.uid)},                              \
		{.name = "gen",                                                                    \
			.value = "N",                                                              \
			.help = "generation of the node's state",                                  \
			.read = read_hint_u64,                                                     \
			.at = offsetof(struct question, advice.generation)},                       \
		{.name = "pfp",                                                                    \
			.value = "TEXT",                                                           \
			.help = "fingerprint of the node's pods",                                  \
			.read = option_text,                                                       \
			.at = offsetof(struct question, advice.fingerprint)},                      \
	{                                                                                          \
		.name = "machine", .value = "MACHINE",                                             \
		.help = "as for numafit topology (default this)", .read = option_text,             \
		.at = offsetof(struct question, machine), .completes = COMPLETE_FILE               \
	}

static const struct option_row encode_rows[] = {
	COMMON_ROWS,
	{.name = "numa",
		.value = "[CONTAINER=]NODES",
		.help = "a container's NUMA nodes (web=0-1); without a name, or with *: those of any "
			"that is not named",
		.read = read_hint_nodes,
		.repeats = true},
	{.name = "placed",
		.value = "[CONTAINER=]VALUE",
		.help = "the same as it has been decided: the value of a container's "
			"numafit.io/placement",
		.read = read_hint_placed,
		.repeats = true},
	{.name = "amounts",
		.value = "[CONTAINER=]LIST",
		.help = "what the scheduler counted for it, and where (0:cpu=4,memory=8Gi;1:cpu=2)",
		.read = read_hint_amounts,
		.repeats = true},
	{.name = "at",
		.value = "MS",
		.help = "when it was made, in ms since 1970 (default now)",
		.read = read_hint_ms,
		.at = AT(advice.at_ms)},
	{.name = "ttl",
		.value = "S",
		.help = "for how many seconds it is good (default 120)",
		.read = read_hint_ttl,
		.at = AT(advice.ttl_s)},
	{.name = "mode",
		.value = "prefer|require",
		.help = "what becomes of the container if it is not followed (default prefer)",
		.read = read_hint_mode,
		.at = AT(advice.mode),
		.completes = COMPLETE_WORDS},
	{.name = "scope",
		.value = "container|pod",
		.help = "what was placed as one (default container)",
		.read = option_word,
		.at = AT(advice.scope),
		.completes = COMPLETE_WORDS},
	{0},
};
static const struct option_row check_rows[] = {
	COMMON_ROWS,
	{.name = "key",
		.value = "KEY",
		.help = "the annotation's key, ours (" ADVICE_KEY ") or another project's",
		.read = read_hint_key,
		.at = AT(key)},
	{.name = "now",
		.value = "MS",
		.help = "what time it is, in ms since 1970",
		.read = read_hint_ms,
		.at = AT(now_ms)},
	{.name = "skew",
		.value = "MS",
		.help = "by how much clocks may differ (default 5000)",
		.read = read_hint_u64,
		.at = AT(skew_ms)},
	{0},
};

static int encode_hint(struct question *q, struct err *e)
{
	auto_free char *text = NULL;

	for (size_t i = 0; i < q->entries.nr; i++) {
		struct advice_container *c = &q->entries.at[i];
		uint64_t n = nodeset_count(c->nodes);

		if (n)
			c->distance_x100 =
				(unsigned)(topo_distance_sum(&q->t, c->nodes) * CENT / (n * n));
	}
	q->advice.container = q->entries.at;
	q->advice.nr_containers = q->entries.nr;
	int rc = advice_json_write(&q->advice, &q->t, &text, e);
	if (!rc)
		(void)puts(text);
	return rc;
}

static int read_hint_file(const char *path, char *buf, size_t cap, struct err *e)
{
	bool is_stdin = text_equal(path, "-");
	FILE *in = is_stdin ? stdin : fopen(path, "re");

	if (!in)
		return err_set(e, errno, "%s: %s", path, strerror(errno));
	size_t len = fread(buf, 1, cap - 1, in);
	int rc = ferror(in) ? err_set(e, EIO, "%s: it cannot be read", path) : 0;
	if (!is_stdin)
		(void)fclose(in);
	if (!rc && memchr(buf, '\0', len))
		rc = err_set(e, EINVAL, "%s: it has a byte 0", path);
	if (len && buf[len - 1] == '\n')
		len--; /* an editor's, not the annotation's */
	buf[len] = '\0';
	return rc;
}

static void add_amount_text(
	struct text *t, const struct advice_amount *a, const struct node_ids *ids)
{
	unsigned long long n = a->amount;
	char size[TEXT_SIZE_MAX];

	text_add(t, "; node %u: %s ", ids->id[a->node], a->resource);
	if (!text_equal(a->resource, "cpu"))
		text_add(t, "%s", text_size(size, n));
	else if (n % MILLI)
		text_add(t, "%llum", n);
	else
		text_add(t, "%llu", n / MILLI);
}

static void print_hint_container(const struct question *q, const struct advice_container *c)
{
	enum { SAID_MAX = 4096 };
	char list[NODESET_TEXT_MAX], said[SAID_MAX];
	struct text t;

	text_init(&t, said, sizeof said);
	text_add(&t, "%s: NUMA nodes %s", c->name,
		nodeset_format(c->nodes, &q->t.ids, list, sizeof list));
	if (c->has_unknown)
		text_add(&t, "%s%u", nodeset_empty(c->nodes) ? "" : ",", c->unknown_id);
	if (c->distance_x100)
		text_add(
			&t, "; distance %u.%02u", c->distance_x100 / CENT, c->distance_x100 % CENT);
	for (size_t i = 0; i < c->nr_amounts; i++)
		add_amount_text(&t, &c->amount[i], &q->t.ids);
	wording_print(stdout, "container", "%s", said);
}

static void print_hint_lines(const struct question *q, const struct advice *h)
{
	char list[CPUSET_TEXT_MAX];

	if (h->nr_containers)
		wording_print(stdout, "mode", "%s, scope %s", advice_mode_words[h->mode],
			topology_scope_words[h->scope]);
	for (size_t i = 0; i < h->nr_containers; i++)
		print_hint_container(q, &h->container[i]);
	if (h->cpus)
		wording_print(stdout, "cpus", "%s", cpuset_format(h->cpus, list, sizeof list));
	if (h->has_policy)
		wording_print(stdout, "policy", "%s", topology_policy_words[h->policy]);
}

/* 0; 1: it is rejected. */
static int check_hint(struct question *q, struct err *e)
{
	auto_free char *text =
		xcalloc(ADVICE_TEXT_MAX + 2, 1); /* one byte more shows that it is longer */
	const struct advice_context c = {.t = &q->t, .arena = &q->arena};
	const struct advice_facts facts = {.node = q->advice.node,
		.uid = q->advice.uid,
		.now_ms = q->now_ms,
		.skew_ms = (int64_t)q->skew_ms,
		.generation = q->advice.generation,
		.fingerprint = q->advice.fingerprint,
		.t = &q->t};
	struct advice h = {0};
	struct err why = {0};
	int rc = read_hint_file(q->file ? q->file : "-", text, ADVICE_TEXT_MAX + 2, e);

	q->unreadable = rc != 0;
	if (rc)
		return rc;
	rc = advice_read(advice_source_of(q->key), text, &c, &h, &why);
	enum advice_verdict v = rc ? advice_read_verdict(rc) : advice_check(&h, &facts, &why);
	(void)puts(advice_verdict_words[v]);
	if (why.code)
		wording_print(stdout, "why", "%s", why.text);
	print_hint_lines(q, &h);
	return advice_is_rejection(v);
}

/* The machine comes first, whatever the order of options: NUMA nodes are its own. -1: go on; else
 * the exit code. */
static int read_hint(const struct call *c, struct question *q)
{
	struct err e = {0};
	int code = call_read(c, q);

	if (code >= 0)
		return code;
	struct correction_lines notes = {stderr, "numafit hint: "};
	if (machine_load(q->machine, &q->t, print_correction, &notes, &e))
		return call_fail(c, EXIT_CANNOT, &e);
	for (size_t i = 0; i < q->of_nodes.nr; i++) {
		const struct of_nodes *n = &q->of_nodes.at[i];

		if (n->add(q, n->value, &e))
			return call_misused(c, "--%s: %s", n->row->name, e.text);
	}
	return -1;
}

/* What a hint cannot be written without. */
static int check_encode(const struct call *c, const struct question *q)
{
	if (!q->advice.node || !q->advice.uid)
		return call_misused(c, "the pod is missing: --node and --uid are expected");
	if (!q->entries.nr)
		return call_misused(
			c, "NUMA nodes are missing: --numa, --placed or --amounts is expected");
	return -1;
}

/* A person who gives nothing to read wants to know what there is to give. */
static int check_input(const struct call *c, const struct question *q)
{
	if (q->file || !isatty(STDIN_FILENO))
		return -1;
	call_help(c, stderr);
	return call_misused(c, "a FILE, or the annotation on the standard input, is expected");
}

static int run_hint(const struct call *c,
	int (*check)(const struct call *c, const struct question *q),
	int (*answer)(struct question *q, struct err *e))
{
	auto_free struct question *q = xcalloc(1, sizeof *q);
	struct err e = {0};

	q->advice.at_ms = q->now_ms = loop_wall_ms();
	q->advice.ttl_s = TTL_S;
	q->advice.mode = ADVICE_PREFER;
	q->key = ADVICE_KEY;
	q->machine = "this";
	q->skew_ms = SKEW_MS;
	arena_init(&q->arena, ADVICE_ARENA_BYTES);
	int code = read_hint(c, q);
	if (code < 0)
		code = check(c, q);
	if (code < 0) {
		int rc = answer(q, &e);

		code = rc ? EXIT_NO : EXIT_DONE;
		if (rc < 0)
			code = call_fail(c, q->unreadable ? EXIT_CANNOT : EXIT_NO, &e);
	}
	arena_fini(&q->arena);
	vec_fini(&q->entries);
	vec_fini(&q->of_nodes);
	return code;
}

static int run_encode(const struct call *c)
{
	return run_hint(c, check_encode, encode_hint);
}

static int run_check(const struct call *c)
{
	return run_hint(c, check_input, check_hint);
}

const struct command verb_hint_encode = {
	.name = "hint encode",
	.summary = "write a scheduler's hint for a pod",
	.about = "Write the annotation " ADVICE_KEY " that a scheduler leaves on a pod. Whether it "
		 "fits is seen when the container is created: numafit explain shows it.",
	.options = encode_rows,
	.examples = {{"numafit hint encode --machine kep3545-8 --node n0 --uid 5c1e --numa 0-1",
			     "every container of the pod on NUMA nodes 0 and 1"},
		{"numafit hint encode --machine kep3545-8 --node n0 --uid 5c1e --numa web=2 --mode require",
			"only container web, and nowhere else"}},
	.exits = {[EXIT_NO] = "such a hint cannot be written",
		[EXIT_CANNOT] = "the machine cannot be read"},
	.run = run_encode,
};
const struct command verb_hint_check = {
	.name = "hint check",
	.summary = "show what a node would make of a scheduler's hint",
	.about =
		"Show what a node would say of the value of an annotation that a scheduler left on "
		"a pod. Without FILE, or with -, it is read from the standard input.",
	.options = check_rows,
	.operand = {"FILE|-", 0, 1, option_text, AT(file), COMPLETE_FILE},
	.examples = {{"numafit hint check --node n0 --uid 5c1e hint.json",
			     "one of ours, in a file"},
		{"echo 0,2-3 | numafit hint check --machine kep3545-8 --key katalyst.kubewharf.io/numa_bind_result",
			"another project's"}},
	.exits = {[EXIT_DONE] = "it is accepted",
		[EXIT_NO] = "it is rejected",
		[EXIT_CANNOT] = "the file or the machine cannot be read"},
	.run = run_check,
};
