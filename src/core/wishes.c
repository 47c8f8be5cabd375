/* What wishes mean for CPUs, and which of them an operator may allow. */
#include <numafit/wishes.h>

#include <numafit/cpus.h>
#include <numafit/settings.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>

const char *const wish_cpus_words[NR_WISH_CPUS] = {
	[WISH_CPUS_UNSAID] = "",
	[WISH_CPUS_OWN] = "own",
	[WISH_CPUS_SHARED] = "shared",
	[WISH_CPUS_OWN_SHARED] = "own+shared",
	[WISH_CPUS_UNTOUCHED] = "untouched",
	[WISH_CPUS_UNBOUNDED] = "untouched-unbounded",
	[WISH_CPUS_RESERVED] = "reserved",
};
const char *const wish_cores_words[NR_WISH_CORES] = {
	[WISH_CORES_UNSAID] = "",
	[WISH_CORES_WHOLE] = "whole",
	[WISH_CORES_ONE_THREAD] = "one-thread",
};
const char *const wish_isolated_words[NR_WISH_ISOLATED] = {
	[WISH_ISOLATED_UNSAID] = "",
	[WISH_ISOLATED_PREFER] = "prefer",
	[WISH_ISOLATED_REQUIRE] = "require",
};
const char *const wish_spread_words[NR_WISH_SPREADS] = {
	[WISH_SPREAD_UNSAID] = "",
	[WISH_SPREAD_ANY] = "any",
	[WISH_SPREAD_ONE_NODE] = "one-node",
	[WISH_SPREAD_STRICT] = "one-node,strict-memory",
};
const char *const wish_memory_words[NR_WISH_MEMORIES] = {
	[WISH_MEMORY_UNSAID] = "",
	[WISH_MEMORY_BIND] = "bind",
	[WISH_MEMORY_INTERLEAVE] = "interleave",
	[WISH_MEMORY_PREFERRED] = "preferred",
	[WISH_MEMORY_LOCAL] = "local",
};

const char *const wish_movable_words[NR_WISH_MOVABLE] = {
	[WISH_MOVABLE_UNSAID] = "",
	[WISH_MOVABLE_NO] = "false",
	[WISH_MOVABLE_YES] = "true",
};

bool wishes_is_class(const char *name)
{
	static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				  "._-";
	const size_t len = strnlen(name, WISH_CLASS_MAX);

	return len && len < WISH_CLASS_MAX && strspn(name, all) == len && !strchr("._-", name[0]);
}

#define IRQ       "irq"
#define FREQUENCY "frequency="

static bool is_quiet(const char *text)
{
	const char *behind_irq = text_behind(text, IRQ);
	const char *frequency = behind_irq && *behind_irq == ',' ? behind_irq + 1 : text;
	const char *profile = text_behind(frequency, FREQUENCY);

	return (behind_irq && !*behind_irq) || (profile && wishes_is_class(profile));
}

bool wishes_quiet_irq(const struct wishes *w)
{
	return text_behind(w->quiet, IRQ);
}

const char *wishes_quiet_profile(const struct wishes *w)
{
	const char *frequency = strstr(w->quiet, FREQUENCY);

	return frequency ? frequency + strlen(FREQUENCY) : "";
}

#define WORDS(row, which, member, of, count)                                                       \
	{                                                                                          \
		.name = (row), .bit = (which), .type = WISH_OF_WORDS,                              \
		.at = offsetof(struct wishes, member),                                             \
		.size = sizeof((struct wishes *)NULL)->member, .words = (of), .nr = (count)        \
	}
#define TEXT(row, which, member, fits, odd)                                                        \
	{                                                                                          \
		.name = (row), .bit = (which), .type = WISH_OF_TEXT,                               \
		.at = offsetof(struct wishes, member),                                             \
		.size = sizeof((struct wishes *)NULL)->member, .is_value = (fits), .form = (odd)   \
	}
static const char no_class[] = /* WISH_CLASS_MAX */
	"no name of a class: up to 31 letters, digits, '.', '-' and '_', the first one a letter or "
	"a digit";
const struct wish_row wish_rows[NR_WISH_ROWS] = {
	WORDS("cpus", WISHES_CPUS, cpus, wish_cpus_words, NR_WISH_CPUS),
	WORDS("cores", WISHES_CORES, cores, wish_cores_words, NR_WISH_CORES),
	WORDS("isolated", WISHES_ISOLATED, isolated, wish_isolated_words, NR_WISH_ISOLATED),
	{.name = "numa-nodes", .bit = WISHES_NUMA_NODES, .type = WISH_OF_NODES},
	WORDS("spread", WISHES_SPREAD, spread, wish_spread_words, NR_WISH_SPREADS),
	WORDS("memory-policy", WISHES_MEMORY_POLICY, memory, wish_memory_words, NR_WISH_MEMORIES),
	WORDS("movable", 0, movable, wish_movable_words, NR_WISH_MOVABLE),
	TEXT("rdt-class", WISHES_RDT_CLASS, rdt_class, wishes_is_class, no_class),
	TEXT("blockio-class", WISHES_BLOCKIO_CLASS, blockio_class, wishes_is_class, no_class),
	TEXT("quiet", WISHES_QUIET, quiet, is_quiet,
		"none of irq, frequency=PROFILE, irq,frequency=PROFILE"),
};

const struct wish_row *wish_row_of(const char *name)
{
	for (size_t i = 0; i < NR_WISH_ROWS; i++)
		if (text_equal(wish_rows[i].name, name))
			return &wish_rows[i];
	return NULL;
}

unsigned wish_value(const struct wish_row *row, const char *text)
{
	if (row->type != WISH_OF_WORDS)
		return row->type == WISH_OF_NODES || row->is_value(text);
	for (unsigned i = 1; i < row->nr; i++)
		if (text_equal(row->words[i], text))
			return i;
	return 0;
}

void wish_enter(struct wishes *w, const struct wish_row *row, const char *text)
{
	const unsigned value = wish_value(row, text);
	char *to = (char *)w + row->at;

	if (row->type == WISH_OF_TEXT)
		(void)text_copy(to, row->size, text);
	else
		memcpy(to, &value, sizeof value);
}

/* The value in the annotation's words; "": nothing is wished for. */
static const char *wish_text(const struct wishes *w, const struct wish_row *row)
{
	const char *from = (const char *)w + row->at;
	unsigned value;

	if (row->type == WISH_OF_NODES)
		return "";
	if (row->type == WISH_OF_TEXT)
		return from;
	memcpy(&value, from, sizeof value);
	return row->words[value];
}

void wishes_lay_over(struct wishes *w, const struct wishes *of, bool force)
{
	for (size_t i = 0; i < NR_WISH_ROWS; i++) {
		const char *text = wish_text(of, &wish_rows[i]);

		if (*text && (force || !*wish_text(w, &wish_rows[i])))
			wish_enter(w, &wish_rows[i], text);
	}
}

void wishes_print(const struct wishes *w, struct text *to)
{
	const char *between = "";

	for (size_t i = 0; i < NR_WISH_ROWS; i++) {
		const char *value = wish_text(w, &wish_rows[i]);

		if (*value) {
			text_add(to, "%s%s=%s", between, wish_rows[i].name, value);
			between = " ";
		}
	}
}

bool wish_is_allowed(const struct wish_row *row, unsigned value, unsigned allowed)
{
	if (row->bit != WISHES_CPUS)
		return !row->bit || allowed & row->bit;
	switch ((enum wish_cpus)value) {
	case WISH_CPUS_OWN:
		return true;
	case WISH_CPUS_SHARED:
		return allowed & (WISHES_CPUS | WISHES_CPUS_SHARED);
	case WISH_CPUS_OWN_SHARED:
		return allowed & WISHES_CPUS;
	case WISH_CPUS_UNTOUCHED:
		return allowed & WISHES_CPUS_UNTOUCHED;
	case WISH_CPUS_UNSAID:
	case WISH_CPUS_UNBOUNDED:
	case WISH_CPUS_RESERVED:
	case NR_WISH_CPUS:
		break;
	}
	return false;
}

struct cpu_options wishes_cpu_options(const struct wishes *w, const struct cpu_options *of_node)
{
	struct cpu_options o = *of_node;

	if (w->cores) {
		o.full_pcpus_only = true;
		o.core_rule = CORES_WHOLE;
		o.distribute_cpus_across_cores = false;
	}
	return o;
}

bool wishes_whole_cores(const struct wishes *w, const struct cpu_options *of_node)
{
	return w->cores || of_node->full_pcpus_only;
}

struct cpuset wishes_shown_cpus(
	const struct wishes *w, const struct topo *t, const struct cpuset *held)
{
	struct cpuset seen = {0}, shown = {0};

	if (w->cores != WISH_CORES_ONE_THREAD)
		return *held;
	cpuset_each (cpu, held) {
		if (cpuset_has(&seen, t->cpu[cpu].core))
			continue;
		cpuset_add(&seen, t->cpu[cpu].core);
		cpuset_add(&shown, cpu);
	}
	return shown;
}

struct cpuset wishes_held_cpus(
	const struct wishes *w, const struct topo *t, const struct cpuset *shown, unsigned nr)
{
	const struct cpuset there = cpuset_and(*shown, &t->cpus);
	struct cpuset held;

	if (w->cores != WISH_CORES_ONE_THREAD)
		return *shown;
	held = cpus_whole_cores(t, &there);
	return cpuset_count(&held) == nr ? held : *shown;
}

/* What may be allowed. */
static const struct {
	const char *word;
	unsigned bit;
} allowable[] = {
	{"cpus", WISHES_CPUS},
	{"cpus=shared", WISHES_CPUS_SHARED},
	{"cpus=untouched", WISHES_CPUS_UNTOUCHED},
	{"cores", WISHES_CORES},
	{"isolated", WISHES_ISOLATED},
	{"numa-nodes", WISHES_NUMA_NODES},
	{"spread", WISHES_SPREAD},
	{"memory-policy", WISHES_MEMORY_POLICY},
	{"rdt-class", WISHES_RDT_CLASS},
	{"blockio-class", WISHES_BLOCKIO_CLASS},
	{"quiet", WISHES_QUIET},
};
enum { NR_ALLOWABLE = sizeof allowable / sizeof *allowable, WORD_SHOWN = 64 };

static int allow_word(const char *word, size_t len, unsigned *out, struct err *e)
{
	char all[256];
	struct text t;

	for (size_t i = 0; i < NR_ALLOWABLE; i++)
		if (strlen(allowable[i].word) == len && !memcmp(word, allowable[i].word, len)) {
			*out |= allowable[i].bit;
			return 0;
		}
	text_init(&t, all, sizeof all);
	for (size_t i = 0; i < NR_ALLOWABLE; i++)
		text_add(&t, "%s%s", i ? ", " : "", allowable[i].word);
	return err_set(e, EINVAL, "\"%.*s\" is none of %s",
		(int)(len < WORD_SHOWN ? len : WORD_SHOWN), word, all);
}

int wishes_allowed_parse(const char *text, unsigned *out, struct err *e)
{
	unsigned allowed = 0;

	if (text_equal(text, "none")) {
		*out = 0;
		return 0;
	}
	for (const char *at = text;;) {
		at += strspn(at, " ");
		size_t len = strcspn(at, ",");
		size_t word = len;

		while (word && at[word - 1] == ' ')
			word--;
		int rc = allow_word(at, word, &allowed, e);
		if (rc)
			return rc;
		if (!at[len])
			break;
		at += len + 1;
	}
	*out = allowed;
	return 0;
}

void wishes_allowed_print(unsigned allowed, struct text *to)
{
	const char *between = "";

	if (!allowed)
		text_add(to, "none");
	for (size_t i = 0; i < NR_ALLOWABLE; i++)
		if (allowed & allowable[i].bit) {
			text_add(to, "%s%s", between, allowable[i].word);
			between = ",";
		}
}
