#include <codec/wishes.h>

#include <errno.h>
#include <numafit/advice.h>
#include <numafit/arena.h>
#include <stddef.h>
#include <string.h>

#define PREFIX "numafit.io/"
enum { KEY_MAX = 256, SHOWN = 64, ODD_MAX = 384 };

/* A wish, and what its values are. */
enum wish_type { WORDS, NODES, CLASS };
static const struct wish_row {
	const char *name;
	unsigned bit;
	enum wish_type type;
	size_t at;                /* in struct wishes; but for NODES */
	const char *const *words; /* the first is for none */
	unsigned nr;
} wishes[] = {
#define AT(member) offsetof(struct wishes, member)
	{"cpus", WISHES_CPUS, WORDS, AT(cpus), wish_cpus_words, NR_WISH_CPUS},
	{"cores", WISHES_CORES, WORDS, AT(cores), wish_cores_words, NR_WISH_CORES},
	{"numa-nodes", WISHES_NUMA_NODES, NODES, 0, NULL, 0},
	{"spread", WISHES_SPREAD, WORDS, AT(spread), wish_spread_words, NR_WISH_SPREADS},
	{"memory-policy", WISHES_MEMORY_POLICY, WORDS, AT(memory), wish_memory_words,
		NR_WISH_MEMORIES},
	{"rdt-class", WISHES_RDT_CLASS, CLASS, AT(rdt_class), NULL, 0},
	{"blockio-class", WISHES_BLOCKIO_CLASS, CLASS, AT(blockio_class), NULL, 0},
#undef AT
};
enum { NR_WISHES = sizeof wishes / sizeof *wishes };

/* The pod's annotation about that for the container, or for all; NULL: there is none. */
static const struct key_value *find_wish(
	const struct pod *pod, const char *name, const char *container)
{
	const struct key_value *for_all = NULL;
	char key[KEY_MAX];
	struct text t;

	text_init(&t, key, sizeof key);
	text_add(&t, "%s." PREFIX "%s", name, container);
	for (size_t i = 0; i < pod->nr_annotations; i++) {
		const struct key_value *kv = &pod->annotations[i];
		const char *of_all = text_behind(kv->key, PREFIX);

		if (!t.cut && text_equal(kv->key, key))
			return kv;
		if (of_all && text_equal(of_all, name))
			for_all = kv;
	}
	return for_all;
}

/* Whether pods may have that value, which is a known one; what the kubelet would give anyway may be
 * said by all. */
static bool is_allowed(const struct wish_row *row, unsigned value, unsigned allowed)
{
	if (row->bit == WISHES_CPUS &&
		(value == WISH_CPUS_OWN ||
			(value == WISH_CPUS_SHARED && allowed & WISHES_CPUS_SHARED)))
		return true;
	return allowed & row->bit;
}

/* Whether any value but the kubelet's is allowed: then one that is none is a mistake. */
static bool is_looked_at(const struct wish_row *row, unsigned allowed)
{
	return is_allowed(row, row->bit == WISHES_CPUS ? WISH_CPUS_SHARED : 0, allowed);
}

static const char *odd_value(const struct wish_row *row, const struct key_value *kv,
	unsigned allowed, const char *why, struct arena *a)
{
	char said[ODD_MAX];
	const char *between = "";
	struct text t;

	text_init(&t, said, sizeof said);
	text_add(&t, "annotation %.*s: \"%.*s\" ", 2 * SHOWN, kv->key, SHOWN, kv->value);
	if (row->type == CLASS)
		text_add(&t,
			"is no name of a class: up to %d letters, digits, '.', '-' and '_', the "
			"first one a letter or a digit",
			WISH_CLASS_MAX - 1);
	else if (row->type == NODES)
		text_add(&t, "is no list of NUMA nodes, such as 0 or 0-1: %s", why);
	else
		text_add(&t, "is none of ");
	for (unsigned i = 1; i < row->nr; i++)
		if (is_allowed(row, i, allowed)) {
			text_add(&t, "%s%s", between, row->words[i]);
			between = ", ";
		}
	return arena_strndup(a, said, strlen(said));
}

/* 0: it is none. Whether a list of NUMA nodes is one is seen later. */
static unsigned value_of(const struct wish_row *row, const char *text)
{
	if (row->type != WORDS)
		return row->type == NODES || wishes_is_class(text);
	for (unsigned i = 1; i < row->nr; i++)
		if (text_equal(row->words[i], text))
			return i;
	return 0;
}

/* NUMA nodes that the author prefers are judged as a scheduler's hint is. NULL: it is on its way
 * with one, or hints are off; *why says when the list is none. */
static const struct advice_ask *take_nodes(const struct wishes_reader *r, const char *list,
	const struct advice_ask *has, struct arena *a, struct err *why)
{
	struct nodeset nodes = {0};
	int rc = nodeset_parse(&nodes, r->ids, list, strlen(list), why);

	if (!rc && nodeset_empty(nodes))
		rc = err_set(why, EINVAL, "it is empty");
	why->code = rc == -ENOENT ? 0 : -rc;
	if (why->code || has || r->settings->advice_mode == ADVICE_OFF)
		return has;
	struct advice_ask *ask = arena_alloc(a, sizeof *ask);
	if (ask)
		*ask = (struct advice_ask){
			.so_far = rc ? ADVICE_REJECTED_NUMA : ADVICE_ACCEPTED,
			.mode = advice_mode_of(r->settings->advice_mode, ADVICE_PREFER),
			.repair = r->settings->advice_repair,
			.asked = nodes,
		};
	return ask;
}

static void take_wish(const struct wishes_reader *r, const struct wish_row *row,
	const struct key_value *kv, struct ask *ask, struct arena *a,
	struct wishes_ignored *ignored)
{
	const unsigned allowed = r->settings->wishes_allowed;
	unsigned value = value_of(row, kv->value);
	char *to = (char *)&ask->wishes + row->at;
	const char *odd = NULL;
	struct err why = {0};

	if (value ? !is_allowed(row, value, allowed) : !is_looked_at(row, allowed)) {
		ignored->annotation = kv->key;
		return;
	}
	if (row->type == NODES)
		ask->advice = take_nodes(r, kv->value, ask->advice, a, &why);
	else if (value && row->type == CLASS)
		(void)text_copy(to, WISH_CLASS_MAX, kv->value);
	else if (value)
		memcpy(to, &value, sizeof value);
	if (!value || why.code)
		odd = odd_value(row, kv, allowed, why.code ? why.text : NULL, a);
	if (r->settings->unknown_wish == UNKNOWN_WISH_IGNORE)
		ignored->odd = odd ? odd : ignored->odd;
	else if (odd)
		ask->odd_wish = odd;
}

/* Most pods have none. */
static bool has_any_of_ours(const struct pod *pod)
{
	for (size_t i = 0; i < pod->nr_annotations; i++)
		if (strstr(pod->annotations[i].key, PREFIX))
			return true;
	return false;
}

void wishes_take(const struct wishes_reader *r, const struct pod *pod, struct ask *ask,
	struct arena *a, struct wishes_ignored *ignored)
{
	*ignored = (struct wishes_ignored){0};
	if (!has_any_of_ours(pod))
		return;
	for (size_t i = 0; i < NR_WISHES; i++) {
		bool of_pod = r->whole && wishes[i].type == NODES;
		const struct key_value *kv =
			find_wish(pod, wishes[i].name, of_pod ? "" : ask->name);

		if (kv)
			take_wish(r, &wishes[i], kv, ask, a, ignored);
	}
}
