#include <numafit/number.h>
#include <numafit-cli/verbs.h>

#include <codec/advice_json.h>
#include <codec/placement_json.h>
#include <errno.h>
#include <getopt.h>
#include <host/discover.h>
#include <numafit/mem.h>
#include <numafit-cli/wording.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char help[] =
	"usage: numafit hint encode --node NODE --uid UID --numa [CONTAINER=]NODES ... [OPTIONS]\n"
	"       numafit hint check [OPTIONS] [FILE|-]\n"
	"\n"
	"Write the annotation " ADVICE_KEY " that a scheduler leaves on a pod, or show what a\n"
	"node would say of one. Whether it fits is seen when the container is created: numafit\n"
	"explain shows it.\n"
	"\n"
	"encode, check:\n"
	"  --node NODE, --uid UID   the node's name and the pod's uid: what a hint is written "
	"for,\n"
	"                           and where it is read\n"
	"  --gen N, --pfp TEXT      generation, and fingerprint of the pods, of the node's state\n"
	"  --machine MACHINE        as for numafit topology (default this)\n"
	"encode:\n"
	"  --numa [CONTAINER=]NODES a container's NUMA nodes (web=0-1); without a name, or with "
	"*:\n"
	"                           those of any that is not named\n"
	"  --placed [CONTAINER=]VALUE  the same as it has been decided: the value of a "
	"container's\n"
	"                           numafit.io/placement\n"
	"  --amounts [CONTAINER=]LIST  what it was reckoned to take where "
	"(0:cpu=4,memory=8Gi;1:cpu=2)\n"
	"  --at MS, --ttl S         when it was made (default now), for how long it is good (120)\n"
	"  --mode prefer|require    what becomes of the container if it is not followed (prefer)\n"
	"  --scope container|pod    what was placed as one (container)\n"
	"check:\n"
	"  --key KEY                the annotation's key, ours or another project's\n"
	"  --now MS, --skew MS      what time it is, and by how much clocks may differ (5000)\n"
	"  --help                   this text\n"
	"\n"
	"Exit code: 0; 1 the hint is rejected, or cannot be written; 2 bad usage.\n";

enum { TTL_S = 120, SKEW_MS = 5000, CENT = 100, MILLI = 1000 };

struct entries {
	VEC(struct advice_container);
};

struct question {
	struct advice
		advice; /* encode: what is written but for the entries; check: the node's own */
	struct entries entries;
	const char *key, *machine, *file;
	int64_t now_ms;
	uint64_t skew_ms;
	struct topo t;
	struct arena arena;
};

static int64_t wall_clock_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * MS_PER_S + now.tv_nsec / NS_PER_MS;
}

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

static int read_hint_mode(const char *arg, enum advice_mode *out, struct err *e)
{
	int mode = advice_mode_from_name(arg);

	if (mode <= ADVICE_OFF)
		return err_set(e, EINVAL, "\"%s\" is not prefer or require", arg);
	*out = (enum advice_mode)mode;
	return 0;
}

static int read_hint_scope(const char *arg, enum topology_scope *out, struct err *e)
{
	if (!text_equal(arg, topology_scope_name(SCOPE_CONTAINER)) &&
		!text_equal(arg, topology_scope_name(SCOPE_POD)))
		return err_set(e, EINVAL, "\"%s\" is not container or pod", arg);
	*out = text_equal(arg, topology_scope_name(SCOPE_POD)) ? SCOPE_POD : SCOPE_CONTAINER;
	return 0;
}

enum {
	OPT_NODE = 1,
	OPT_UID,
	OPT_GEN,
	OPT_PFP,
	OPT_MACHINE,
	OPT_NUMA,
	OPT_PLACED,
	OPT_AMOUNTS,
	OPT_AT,
	OPT_TTL,
	OPT_MODE,
	OPT_SCOPE,
	OPT_KEY,
	OPT_NOW,
	OPT_SKEW,
	OPT_HELP,
};
#define COMMON                                                                                     \
	{"node", required_argument, NULL, OPT_NODE}, {"uid", required_argument, NULL, OPT_UID},    \
		{"gen", required_argument, NULL, OPT_GEN},                                         \
		{"pfp", required_argument, NULL, OPT_PFP},                                         \
		{"machine", required_argument, NULL, OPT_MACHINE},                                 \
	{                                                                                          \
		"help", no_argument, NULL, OPT_HELP                                                \
	}
static const struct option encode_options[] = {
	COMMON,
	{"numa", required_argument, NULL, OPT_NUMA},
	{"placed", required_argument, NULL, OPT_PLACED},
	{"amounts", required_argument, NULL, OPT_AMOUNTS},
	{"at", required_argument, NULL, OPT_AT},
	{"ttl", required_argument, NULL, OPT_TTL},
	{"mode", required_argument, NULL, OPT_MODE},
	{"scope", required_argument, NULL, OPT_SCOPE},
	{0},
};
static const struct option check_options[] = {
	COMMON,
	{"key", required_argument, NULL, OPT_KEY},
	{"now", required_argument, NULL, OPT_NOW},
	{"skew", required_argument, NULL, OPT_SKEW},
	{0},
};

static int read_hint_option(struct question *q, int option, char *arg, struct err *e)
{
	uint64_t number = 0;
	int rc;

	switch (option) {
	case OPT_NODE:
		q->advice.node = arg;
		return 0;
	case OPT_UID:
		q->advice.uid = arg;
		return 0;
	case OPT_GEN:
		return text_u64(arg, strlen(arg), UINT64_MAX, &q->advice.generation, e);
	case OPT_PFP:
		q->advice.fingerprint = arg;
		return 0;
	case OPT_NUMA:
		return add_hint_nodes(q, arg, e);
	case OPT_PLACED:
		return add_placed(q, arg, e);
	case OPT_AMOUNTS:
		return add_amounts(q, arg, e);
	case OPT_AT:
	case OPT_NOW:
		rc = text_u64(arg, strlen(arg), INT64_MAX, &number, e);
		if (!rc)
			*(option == OPT_AT ? &q->advice.at_ms : &q->now_ms) = (int64_t)number;
		return rc;
	case OPT_TTL:
		rc = text_u64(arg, strlen(arg), ADVICE_TTL_MAX_S, &number, e);
		if (!rc)
			q->advice.ttl_s = (unsigned)number;
		return rc;
	case OPT_MODE:
		return read_hint_mode(arg, &q->advice.mode, e);
	case OPT_SCOPE:
		return read_hint_scope(arg, &q->advice.scope, e);
	case OPT_KEY:
		q->key = arg;
		return advice_source_of(arg)
			       ? 0
			       : err_set(e, ENOENT, "no hints are read from \"%s\"", arg);
	case OPT_SKEW:
		return text_u64(arg, strlen(arg), INT64_MAX, &q->skew_ms, e);
	default:
		return 0;
	}
}

static void print_hint_note(void *ctx, const char *text)
{
	(void)ctx;
	(void)fprintf(stderr, "numafit hint: note: %s\n", text);
}

/* The machine comes first, whatever the order of options: NUMA nodes are its own. */
static int load_hint_machine(
	struct question *q, int argc, char **argv, const struct option *options, struct err *e)
{
	int c;

	optind = 0; /* main() hands on its own arguments: start over */
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == '?')
			return err_set(e, EINVAL, "see numafit hint --help");
		if (c == OPT_MACHINE)
			q->machine = optarg;
		if (c == OPT_HELP) {
			(void)fputs(help, stdout);
			return 1;
		}
	}
	return machine_load(q->machine, &q->t, print_hint_note, NULL, e);
}

/* 0; 1: there was no more to do than to help; or an error. */
static int read_hint_options(
	struct question *q, int argc, char **argv, const struct option *options, struct err *e)
{
	int c, which, rc = load_hint_machine(q, argc, argv, options, e);

	optind = 0;
	while (!rc && (c = getopt_long(argc, argv, "", options, &which)) != -1) {
		rc = read_hint_option(q, c, optarg, e);
		if (rc)
			return err_add(e, rc, "--%s", options[which].name);
	}
	if (rc)
		return rc;
	q->file = optind < argc ? argv[optind] : "-";
	if (optind < argc - (options == check_options))
		return err_set(e, EINVAL, "\"%s\" is one argument too many", argv[argc - 1]);
	return 0;
}

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
		wording_print(stdout, "mode", "%s, scope %s", advice_mode_name(h->mode),
			topology_scope_name(h->scope));
	for (size_t i = 0; i < h->nr_containers; i++)
		print_hint_container(q, &h->container[i]);
	if (h->cpus)
		wording_print(stdout, "cpus", "%s", cpuset_format(h->cpus, list, sizeof list));
	if (h->has_policy)
		wording_print(stdout, "policy", "%s", topology_policy_name(h->policy));
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
	int rc = read_hint_file(q->file, text, ADVICE_TEXT_MAX + 2, e);

	if (rc)
		return rc;
	rc = advice_read(advice_source_of(q->key), text, &c, &h, &why);
	enum advice_verdict v = rc ? advice_read_verdict(rc) : advice_check(&h, &facts, &why);
	(void)puts(advice_verdict_name(v));
	if (why.code)
		wording_print(stdout, "why", "%s", why.text);
	print_hint_lines(q, &h);
	return advice_is_rejection(v);
}

static int answer_hint_verb(
	struct question *q, int argc, char **argv, struct err *e, bool *bad_usage)
{
	bool encodes = argc > 1 && text_equal(argv[1], "encode");
	bool helps = argc > 1 && text_equal(argv[1], "--help");

	*bad_usage = true;
	if (helps)
		(void)fputs(help, stdout);
	if (helps)
		return 0;
	if (!encodes && (argc < 2 || !text_equal(argv[1], "check")))
		return err_set(e, EINVAL, "encode or check? See numafit hint --help");
	int rc = read_hint_options(
		q, argc - 1, argv + 1, encodes ? encode_options : check_options, e);
	if (rc)
		return rc > 0 ? 0 : rc;
	*bad_usage = false;
	return encodes ? encode_hint(q, e) : check_hint(q, e);
}

int verb_hint(int argc, char **argv)
{
	auto_free struct question *q = xcalloc(1, sizeof *q);
	struct err e = {0};
	bool bad_usage;

	q->advice.at_ms = q->now_ms = wall_clock_ms();
	q->advice.ttl_s = TTL_S;
	q->advice.mode = ADVICE_PREFER;
	q->key = ADVICE_KEY;
	q->machine = "this";
	q->skew_ms = SKEW_MS;
	arena_init(&q->arena, ADVICE_ARENA_BYTES);
	int rc = answer_hint_verb(q, argc, argv, &e, &bad_usage);
	if (e.code)
		(void)fprintf(stderr, "numafit hint: %s\n", e.text);
	arena_fini(&q->arena);
	vec_fini(&q->entries);
	if (!rc)
		return EXIT_DONE;
	return bad_usage ? EXIT_USAGE : EXIT_FAILED;
}
