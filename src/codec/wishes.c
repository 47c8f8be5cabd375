#include <codec/wishes.h>

#include <errno.h>
#include <numafit/advice.h>
#include <numafit/arena.h>
#include <numafit/namespaces.h>
#include <stddef.h>
#include <stdio.h>
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

/* What CRI-O's users of CPUs of their own write, and the wish that means the same
 * (cri-o pkg/annotations/annotations.go, internal/runtimehandlerhooks). CRI-O obeys these itself in
 * some of its runtime handlers, other runtimes never do. cpu-quota.crio.io has no row: no container
 * with CPUs of its own has a quota, unless the operator keeps it (exclusiveCPUs.cfsQuota). */
static const struct foreign_wish {
	const char *annotation; /* one that ends with '/' has a container's name behind it */
	const char *on[2];      /* the values that wish for it; NULL: any */
	const char *name, *value;
	const char *instead; /* there is no value: what is to be written instead */
} foreign_wishes[] = {
	{"irq-load-balancing" CRIO, {"disable", "true"}, "quiet", "irq", NULL},
	{"cpu-load-balancing" CRIO, {"disable", "true"}, "isolated", "prefer", NULL},
	{"cpu-shared" CRIO "/", {"enable", "enable"}, "cpus", "own+shared", NULL},
	{"cpu-c-states" CRIO, {NULL, NULL}, "quiet", NULL,
		PREFIX "quiet: frequency=PROFILE, with a profile that limits maxIdleLatencyUs"},
	{"cpu-freq-governor" CRIO, {NULL, NULL}, "quiet", NULL,
		PREFIX "quiet: frequency=PROFILE, with a profile that has this governor"},
};
enum { NR_FOREIGN = sizeof foreign_wishes / sizeof *foreign_wishes };

static bool is_on(const struct foreign_wish *f, const char *value)
{
	return !f->on[0] || text_equal(value, f->on[0]) || text_equal(value, f->on[1]);
}

/* As wish_of_key(). */
static const struct foreign_wish *foreign_of_key(const char *key, const char **container)
{
	*container = NULL;
	for (size_t i = 0; i < NR_FOREIGN; i++) {
		const char *name = foreign_wishes[i].annotation, *rest = text_behind(key, name);
		bool of_one = name[strlen(name) - 1] == '/';

		if (!rest || (!of_one && *rest))
			continue;
		*container = of_one ? rest : NULL;
		return &foreign_wishes[i];
	}
	return NULL;
}

bool wishes_is_key(const char *key)
{
	const char *container;

	return wish_of_key(key, &container) || foreign_of_key(key, &container);
}

/* What the annotations of a pod say to one of its containers; NULL: nothing of that. */
struct said {
	const struct key_value *of_one[NR_WISH_ROWS], *of_all[NR_WISH_ROWS], *foreign[NR_FOREIGN];
};

/* Where the pod has very many of them, most are other containers': these are seen at a glance. */
static bool is_anothers(const char *key, const char *container)
{
	const char *slash = strchr(key, '/');

	return slash && !text_equal(slash + 1, container) && !text_behind(key, PREFIX);
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
	const struct key_value **first = NULL;

	if (row && !whose)
		s->of_all[row - wish_rows] = kv;
	else if (row && !of_pod)
		first = &s->of_one[row - wish_rows];
	else if (f && is_on(f, kv->value))
		first = &s->foreign[f - foreign_wishes];
	if (first && !*first)
		*first = kv;
}

static struct said hear_all(
	const struct wishes_reader *r, const struct pod *pod, const char *container)
{
	struct said s = {0};

	for (size_t i = 0; i < pod->nr_annotations; i++)
		hear(&s, &pod->annotations[i], r, container);
	return s;
}

static void take_foreign(const struct wishes_reader *r, const struct wish_row *row,
	const struct foreign_wish *f, const struct key_value *kv, unsigned allowed, struct ask *ask,
	struct arena *a, struct wishes_ignored *ignored)
{
	const struct key_value same = {kv->key, f->value};
	char said[ODD_MAX];

	if (f->value) {
		take_wish(r, row, &same, allowed, ask, a, ignored);
		return;
	}
	if (!is_looked_at(row, allowed)) {
		ignored->annotation = kv->key;
		return;
	}
	(void)snprintf(said, sizeof said, "annotation %s is CRI-O's: write %s, instead", kv->key,
		f->instead);
	const char *odd = arena_strndup(a, said, strlen(said));
	if (r->settings->unknown_wish == UNKNOWN_WISH_IGNORE)
		ignored->odd = odd;
	else
		ask->odd_wish = odd;
}

/* Where the pod says nothing of it in our own words. */
static void take_foreign_ones(const struct wishes_reader *r, const struct wish_row *row,
	const struct said *s, unsigned allowed, struct ask *ask, struct arena *a,
	struct wishes_ignored *ignored)
{
	for (size_t i = 0; i < NR_FOREIGN; i++)
		if (s->foreign[i] && text_equal(foreign_wishes[i].name, row->name))
			take_foreign(r, row, &foreign_wishes[i], s->foreign[i], allowed, ask, a,
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
	namespaces_obey(sections, pod->ns, &ask->wishes);
	if (r->settings->burstable == BURSTABLE_ONE_NODE && pod->qos == QOS_BURSTABLE)
		wishes_lay_over(&ask->wishes,
			&(const struct wishes){.spread = WISH_SPREAD_ONE_NODE}, false);
}
