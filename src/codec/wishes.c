/* Wishes of a pod's author, from the pod's annotations: ours, CRI-O's for CPUs, and those that look
 * like either and are followed by nobody, which are said. */
#include <codec/wishes.h>

#include <errno.h>
#include <numafit/advice.h>
#include <numafit/arena.h>
#include <numafit/namespaces.h>
#include <numafit/nearest.h>
#include <numafit/number.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "numafit.io/"
#define CRIO   ".crio.io"
enum { SHOWN = 64, ODD_MAX = 384 };

/* The row of the wish that has such a key, or NULL. *container: whose it is; NULL: everyone's. */
static const struct wish_row *wish_of_key(const char *key, const char **container)
{
	const char *of_all = text_behind(key, PREFIX);

	*container = NULL;
	if (of_all)
		return wish_row_of(of_all);
	for (size_t i = 0; i < NR_WISH_ROWS; i++) {
		const char *rest = text_behind(key, wish_rows[i].name);

		*container = rest ? text_behind(rest, "." PREFIX) : NULL;
		if (*container)
			return &wish_rows[i];
	}
	return NULL;
}

/* Whether any value but the kubelet's is allowed: then one that is none is a mistake. */
static bool is_looked_at(const struct wish_row *row, unsigned allowed)
{
	bool any = allowed & row->bit;

	for (unsigned i = 1; i < row->nr; i++)
		any = any || ((i != WISH_CPUS_OWN || row->bit != WISHES_CPUS) &&
				     wish_is_allowed(row, i, allowed));
	return any;
}

static const char *odd_value(const struct wish_row *row, const struct key_value *kv,
	unsigned allowed, const char *why, struct arena *a)
{
	char said[ODD_MAX];
	const char *between = "";
	struct text t;

	text_init(&t, said, sizeof said);
	text_add(&t, "annotation %.*s: \"%.*s\" ", 2 * SHOWN, kv->key, SHOWN, kv->value);
	if (row->type == WISH_OF_TEXT)
		text_add(&t, "%s%s", why ? "" : "is ", why ? why : row->form);
	else if (row->type == WISH_OF_NODES)
		text_add(&t, "is no list of NUMA nodes, such as 0 or 0-1: %s", why);
	else
		text_add(&t, "is none of ");
	for (unsigned i = 1; i < row->nr; i++)
		if (wish_is_allowed(row, i, allowed)) {
			text_add(&t, "%s%s", between, row->words[i]);
			between = ", ";
		}
	return arena_strndup(a, said, strlen(said));
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

/* Whether the operator has the frequency profile that is wished for. */
static void check_profile(const struct wishes_reader *r, const struct wishes *said, struct err *why)
{
	const struct frequency_profiles *all = &r->settings->profiles;
	const char *profile = wishes_quiet_profile(said);
	char names[PROFILES_MAX * (WISH_CLASS_MAX + 2)];
	struct text t;

	if (!*profile || profiles_find(all, profile) < all->nr)
		return;
	text_init(&t, names, sizeof names);
	for (unsigned i = 0; i < all->nr; i++)
		text_add(&t, "%s%s", i ? ", " : "", all->at[i].name);
	(void)err_set(why, EINVAL,
		"names a profile that frequencyProfiles does not have; it has %s",
		all->nr ? names : "none");
}

static void take_wish(const struct wishes_reader *r, const struct wish_row *row,
	const struct key_value *kv, unsigned allowed, struct ask *ask, struct arena *a,
	struct wishes_ignored *ignored)
{
	unsigned value = wish_value(row, kv->value);
	const char *odd = NULL;
	struct wishes said = {0};
	struct err why = {0};

	if (value ? !wish_is_allowed(row, value, allowed) : !is_looked_at(row, allowed)) {
		ignored->annotation = kv->key;
		return;
	}
	if (row->type == WISH_OF_NODES) {
		const struct advice_ask *of_scheduler = ask->advice;

		ask->advice = take_nodes(r, kv->value, of_scheduler, a, &why);
		ask->wishes_nodes = ask->advice && ask->advice != of_scheduler;
	} else if (value) {
		wish_enter(&said, row, kv->value);
	}
	check_profile(r, &said, &why);
	if (!why.code)
		wishes_lay_over(&ask->wishes, &said, true);
	if (!value || why.code)
		odd = odd_value(row, kv, allowed, why.code ? why.text : NULL, a);
	if (r->settings->unknown_wish == UNKNOWN_WISH_IGNORE)
		ignored->odd = odd ? odd : ignored->odd;
	else if (odd)
		ask->odd_wish = odd;
}

/* CRI-O's annotations for CPUs of one's own, and the wish that means the same (cri-o
 * pkg/annotations/annotations.go, internal/runtimehandlerhooks). CRI-O obeys these itself in some
 * of its runtime handlers, other runtimes never do. Each may have a container's name behind a
 * slash, and that form comes before the plain one (cri-o 9989). A value that is neither in `on` nor
 * in `off` asks for something that numafit does not do, such as housekeeping (cri-o 9223). */
static const struct foreign_wish {
	const char *annotation;
	const char *on[2];  /* the values that wish for it; NULL: any */
	const char *off[2]; /* the values that wish for nothing */
	const char *name, *value;
	const char *instead;   /* there is no value: what is to be written instead */
	bool of_one_container; /* CRI-O has no plain form */
} foreign_wishes[] = {
	{"irq-load-balancing" CRIO, {"disable", "true"}, {"enable", "false"}, "quiet", "irq", NULL,
		false},
	{"cpu-load-balancing" CRIO, {"disable", "true"}, {"enable", "false"}, "isolated", "prefer",
		NULL, false},
	{"cpu-shared" CRIO, {"enable", "enable"}, {"disable", "disable"}, "cpus", "own+shared",
		NULL, true},
	{"cpu-c-states" CRIO, {NULL, NULL}, {"enable", "enable"}, "quiet", NULL,
		PREFIX "quiet: frequency=PROFILE, with a profile that limits maxIdleLatencyUs",
		false},
	{"cpu-freq-governor" CRIO, {NULL, NULL}, {NULL, NULL}, "quiet", NULL,
		PREFIX "quiet: frequency=PROFILE, with a profile that has this governor", false},
	/* no wish: no container with CPUs of its own has a quota, unless the operator keeps it */
	{"cpu-quota" CRIO, {"disable", "true"}, {"enable", "false"}, NULL, NULL, NULL, false},
};
enum { NR_FOREIGN = sizeof foreign_wishes / sizeof *foreign_wishes };

static bool is_one_of(const char *value, const char *const words[2])
{
	return words[0] && (text_equal(value, words[0]) || text_equal(value, words[1]));
}

/* As wish_of_key(). */
static const struct foreign_wish *foreign_of_key(const char *key, const char **container)
{
	*container = NULL;
	for (size_t i = 0; i < NR_FOREIGN; i++) {
		const struct foreign_wish *f = &foreign_wishes[i];
		const char *rest = text_behind(key, f->annotation);

		if (!rest || (*rest && *rest != '/') || (f->of_one_container && !*rest))
			continue;
		*container = *rest ? rest + 1 : NULL;
		return f;
	}
	return NULL;
}

/* Annotations of ours that are no wishes. */
static const char *const own_names[] = {"numa-hint", "topology-policy", "placement", "allocated"};
enum { NR_OWN_NAMES = sizeof own_names / sizeof *own_names };

/* True if the key is one of ours by its form, numafit.io/NAME or NAME.numafit.io/CONTAINER, or one
 * of CRI-O's for CPUs and interrupts. Every pod's every annotation is looked at: this is cheap. */
static bool looks_like_wish(const char *key)
{
	const size_t domain = strcspn(key, "/"), ours = sizeof PREFIX - 2;

	if (key[domain] && !strchr(key + domain + 1, '/') && domain >= ours &&
		!memcmp(key + domain - ours, PREFIX, ours + 1) &&
		(domain == ours || key[domain - ours - 1] == '.'))
		return true;
	const size_t crio = sizeof CRIO - 1;
	return (text_behind(key, "cpu-") || text_behind(key, "irq-")) && domain > crio &&
	       !memcmp(key + domain - crio, CRIO, crio);
}

static bool is_own_name(const char *key)
{
	const char *name = text_behind(key, PREFIX);

	return name && text_index(own_names, NR_OWN_NAMES, name) >= 0;
}

bool wishes_is_key(const char *key)
{
	return looks_like_wish(key) && !is_own_name(key);
}

/* What the annotations of a pod say to one of its containers; NULL: nothing of that. */
struct said {
	const struct key_value *of_one[NR_WISH_ROWS], *of_all[NR_WISH_ROWS];
	const struct key_value *foreign_of_one[NR_FOREIGN], *foreign_of_all[NR_FOREIGN];
	const struct key_value *unknown; /* the first that looks like a wish, and is none */
};

/* The container that the key names, KEY/CONTAINER or NAME.numafit.io/CONTAINER, if the annotation
 * is a wish; NULL: the key names none. */
static const char *container_of_key(const char *key)
{
	const char *slash = strchr(key, '/');

	return slash && !text_behind(key, PREFIX) ? slash + 1 : NULL;
}

/* Where the pod has very many of them, most are other containers': these are seen at a glance. */
static bool is_anothers(const char *key, const char *container)
{
	const char *whose = container_of_key(key);

	return whose && !text_equal(whose, container);
}

static void hear_first(const struct key_value **first, const struct key_value *kv)
{
	if (!*first)
		*first = kv;
}

static void hear(struct said *s, const struct key_value *kv, const struct wishes_reader *r,
	const char *container)
{
	const char *whose;

	if (is_anothers(kv->key, container))
		return;
	const struct wish_row *row = wish_of_key(kv->key, &whose);
	const struct foreign_wish *f = row ? NULL : foreign_of_key(kv->key, &whose);
	bool of_pod = row && r->whole && row->type == WISH_OF_NODES;

	if (row && !whose)
		s->of_all[row - wish_rows] = kv;
	else if (row && !of_pod)
		hear_first(&s->of_one[row - wish_rows], kv);
	else if (f)
		hear_first(whose ? &s->foreign_of_one[f - foreign_wishes]
				 : &s->foreign_of_all[f - foreign_wishes],
			kv);
	else if (!row && wishes_is_key(kv->key))
		hear_first(&s->unknown, kv);
}

static struct said hear_all(
	const struct wishes_reader *r, const struct pod *pod, const char *container)
{
	struct said s = {0};

	for (size_t i = 0; i < pod->nr_annotations; i++)
		hear(&s, &pod->annotations[i], r, container);
	return s;
}

/* An annotation that is not followed, which the text says: the container is refused for it, unless
 * the settings have such annotations ignored, or the wish is none that pods may have here. */
static void say_odd(const struct wishes_reader *r, bool allowed, const char *text, struct ask *ask,
	struct arena *a, struct wishes_ignored *ignored)
{
	const char *odd = arena_strndup(a, text, strlen(text));

	if (!allowed || r->settings->unknown_wish == UNKNOWN_WISH_IGNORE)
		ignored->odd = odd ? odd : ignored->odd;
	else if (odd)
		ask->odd_wish = odd;
}

/* row is that of the wish that means the same; NULL: there is no such wish. */
static void take_foreign(const struct wishes_reader *r, const struct wish_row *row,
	const struct foreign_wish *f, const struct key_value *kv, unsigned allowed, struct ask *ask,
	struct arena *a, struct wishes_ignored *ignored)
{
	const struct key_value same = {kv->key, f->value};
	bool on = !f->on[0] || is_one_of(kv->value, f->on);
	char said[ODD_MAX];

	if (is_one_of(kv->value, f->off))
		return;
	if (on && f->value) {
		take_wish(r, row, &same, allowed, ask, a, ignored);
		return;
	}
	if (row && !is_looked_at(row, allowed)) {
		ignored->annotation = kv->key;
		return;
	}
	if (on && f->instead)
		(void)snprintf(said, sizeof said, "annotation %.*s is CRI-O's: write %s, instead",
			2 * SHOWN, kv->key, f->instead);
	else if (!on)
		(void)snprintf(said, sizeof said,
			"annotation %.*s: \"%.*s\" is none of the values of CRI-O's that numafit "
			"follows: %s, %s",
			2 * SHOWN, kv->key, SHOWN, kv->value, f->on[0], f->off[0]);
	else if (r->settings->quota_use == QUOTA_KEEP)
		(void)snprintf(said, sizeof said,
			"annotation %.*s is not followed: exclusiveCPUs.cfsQuota is keep",
			2 * SHOWN, kv->key);
	else
		return;
	/* what the operator keeps from all pods is no mistake of this pod's author */
	say_odd(r, row || !on, said, ask, a, ignored);
}

/* Where the pod says nothing of the row's wish in our own words; NULL: what is no wish. */
static void take_foreign_ones(const struct wishes_reader *r, const struct wish_row *row,
	const struct said *s, unsigned allowed, struct ask *ask, struct arena *a,
	struct wishes_ignored *ignored)
{
	for (size_t i = 0; i < NR_FOREIGN; i++) {
		const struct foreign_wish *f = &foreign_wishes[i];
		const struct key_value *kv =
			s->foreign_of_one[i] ? s->foreign_of_one[i] : s->foreign_of_all[i];

		if (kv && (row ? text_equal(f->name, row->name) : !f->name))
			take_foreign(r, row, f, kv, allowed, ask, a, ignored);
	}
}

/* The right key that is nearest to one that is none. */
struct meant_key {
	const struct wish_row *row; /* NULL: no wish's */
	char key[2 * SHOWN];        /* "": none is near */
};

/* The key up to its first slash is near to one of CRI-O's. */
static void find_meant_foreign(const char *key, size_t domain, struct meant_key *out)
{
	char word[NEAREST_WORD_MAX];
	struct nearest n;
	struct text t;

	text_init(&t, word, sizeof word);
	text_add(&t, "%.*s", (int)number_min(domain, sizeof word), key);
	nearest_begin(&n, word);
	for (size_t i = 0; i < NR_FOREIGN; i++)
		nearest_try(&n, foreign_wishes[i].annotation, foreign_wishes[i].annotation);
	const struct foreign_wish *f = foreign_wishes;
	while (n.best && f->annotation != n.best)
		f++;
	if (!n.best)
		return;
	out->row = f->name ? wish_row_of(f->name) : NULL;
	text_init(&t, out->key, sizeof out->key);
	text_add(&t, "%s%s", f->annotation,
		key[domain]           ? key + domain
		: f->of_one_container ? "/CONTAINER"
				      : "");
}

/* The name in a key of ours is near to a wish's, or to another one of ours. */
static void find_meant_own(const char *key, size_t domain, struct meant_key *out)
{
	const char *of_all = text_behind(key, PREFIX);
	const size_t len = of_all ? strlen(of_all) : domain - (sizeof PREFIX - 1);
	char word[NEAREST_WORD_MAX];
	struct nearest n;
	struct text t;

	text_init(&t, word, sizeof word);
	text_add(&t, "%.*s", (int)number_min(len, sizeof word), of_all ? of_all : key);
	nearest_begin(&n, word);
	for (size_t i = 0; i < NR_WISH_ROWS; i++)
		nearest_try(&n, wish_rows[i].name, wish_rows[i].name);
	for (size_t i = 0; i < NR_OWN_NAMES; i++)
		nearest_try(&n, own_names[i], own_names[i]);
	if (!n.best)
		return;
	out->row = wish_row_of(n.best);
	text_init(&t, out->key, sizeof out->key);
	if (!of_all && out->row)
		text_add(&t, "%s." PREFIX "%s", n.best, key + domain + 1);
	else
		text_add(&t, PREFIX "%s", n.best);
}

static void find_meant_key(const char *key, struct meant_key *out)
{
	const size_t domain = strcspn(key, "/"), crio = sizeof CRIO - 1;

	*out = (struct meant_key){0};
	if (domain > crio && !memcmp(key + domain - crio, CRIO, crio))
		find_meant_foreign(key, domain, out);
	else
		find_meant_own(key, domain, out);
}

static void take_unknown(const struct wishes_reader *r, const struct key_value *kv,
	unsigned allowed, struct ask *ask, struct arena *a, struct wishes_ignored *ignored)
{
	struct meant_key meant;
	char said[ODD_MAX];

	find_meant_key(kv->key, &meant);
	(void)snprintf(said, sizeof said, "annotation %.*s is none that numafit knows%s%s%s",
		2 * SHOWN, kv->key, *meant.key ? "; did you mean " : "", meant.key,
		*meant.key ? "?" : "");
	/* A key that is near to none of ours may be of a later version, or of an operator's own tools:
	 * no container is refused for it. */
	say_odd(r, *meant.key && (!meant.row || is_looked_at(meant.row, allowed)), said, ask, a,
		ignored);
}

void wishes_take(const struct wishes_reader *r, const struct pod *pod, struct ask *ask,
	struct arena *a, struct wishes_ignored *ignored)
{
	const struct namespaces *sections = &r->settings->namespaces;
	const unsigned allowed = r->settings->wishes_allowed | namespaces_allow(sections, pod->ns);
	const struct said s = hear_all(r, pod, ask->name);

	*ignored = (struct wishes_ignored){0};
	for (size_t i = 0; i < NR_WISH_ROWS; i++) {
		const struct key_value *kv = s.of_one[i] ? s.of_one[i] : s.of_all[i];

		if (kv)
			take_wish(r, &wish_rows[i], kv, allowed, ask, a, ignored);
		else
			take_foreign_ones(r, &wish_rows[i], &s, allowed, ask, a, ignored);
	}
	take_foreign_ones(r, NULL, &s, allowed, ask, a, ignored);
	if (s.unknown)
		take_unknown(r, s.unknown, allowed, ask, a, ignored);
	namespaces_obey(sections, pod->ns, &ask->wishes);
	if (r->settings->burstable == BURSTABLE_ONE_NODE && pod->qos == QOS_BURSTABLE)
		wishes_lay_over(&ask->wishes,
			&(const struct wishes){.spread = WISH_SPREAD_ONE_NODE}, false);
}

static int by_name(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* The names of the pod's containers in order, so that each of very many annotations is looked up at
 * little cost. NULL: the arena is full. */
static const char **names_in_order(const struct pod *pod, struct arena *a)
{
	const char **names = arena_array(a, pod->nr, sizeof *names);

	for (size_t i = 0; names && i < pod->nr; i++)
		names[i] = pod->container[i].name;
	if (names)
		qsort(names, pod->nr, sizeof *names, by_name);
	return names;
}

const char *wishes_of_no_container(const struct pod *pod, struct arena *a)
{
	const char **names = NULL, *first = NULL;
	char said[ODD_MAX];
	size_t nr = 0;
	struct nearest n;
	struct text t;

	for (size_t i = 0; pod->nr && i < pod->nr_annotations; i++) {
		const char *key = pod->annotations[i].key, *whose = container_of_key(key);

		if (!whose || !wishes_is_key(key))
			continue;
		names = names ? names : names_in_order(pod, a);
		if (!names)
			return NULL;
		if (bsearch(&whose, names, pod->nr, sizeof *names, by_name))
			continue;
		first = first ? first : key;
		nr++;
	}
	if (!first)
		return NULL;
	nearest_begin(&n, container_of_key(first));
	for (size_t i = 0; i < pod->nr; i++)
		nearest_try(&n, names[i], names[i]);
	text_init(&t, said, sizeof said);
	text_add(&t, "annotation %.*s names a container that the pod does not have", 2 * SHOWN,
		first);
	if (n.best)
		text_add(&t, "; did you mean %.*s?", SHOWN, n.best);
	if (nr > 1)
		text_add(&t, " (so %s %zu more)", nr > 2 ? "do" : "does", nr - 1);
	return arena_strndup(a, said, strlen(said));
}
