#include <codec/wishes.h>

#include <errno.h>
#include <numafit/advice.h>
#include <numafit/arena.h>
#include <numafit/namespaces.h>
#include <stddef.h>
#include <string.h>

#define PREFIX "numafit.io/"
enum { SHOWN = 64, ODD_MAX = 384 };

/* The pod's annotation about that for the container, or for all; NULL: there is none. */
static const struct key_value *find_wish(
	const struct pod *pod, const char *name, const char *container)
{
	const struct key_value *for_all = NULL;

	for (size_t i = 0; i < pod->nr_annotations; i++) {
		const struct key_value *kv = &pod->annotations[i];
		const char *of_all = text_behind(kv->key, PREFIX), *rest = text_behind(kv->key, name),
			   *of_one = rest ? text_behind(rest, "." PREFIX) : NULL;

		if (of_one && text_equal(of_one, container))
			return kv;
		if (of_all && text_equal(of_all, name))
			for_all = kv;
	}
	return for_all;
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
	(void)err_set(why, EINVAL, "names a profile that frequencyProfiles does not have; it has %s",
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
	if (row->type == WISH_OF_NODES)
		ask->advice = take_nodes(r, kv->value, ask->advice, a, &why);
	else if (value)
		wish_enter(&said, row, kv->value);
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
	const struct namespaces *sections = &r->settings->namespaces;
	const unsigned allowed =
		r->settings->wishes_allowed | namespaces_allow(sections, pod->ns);

	*ignored = (struct wishes_ignored){0};
	for (size_t i = 0; has_any_of_ours(pod) && i < NR_WISH_ROWS; i++) {
		bool of_pod = r->whole && wish_rows[i].type == WISH_OF_NODES;
		const struct key_value *kv =
			find_wish(pod, wish_rows[i].name, of_pod ? "" : ask->name);

		if (kv)
			take_wish(r, &wish_rows[i], kv, allowed, ask, a, ignored);
	}
	namespaces_obey(sections, pod->ns, &ask->wishes);
	if (r->settings->burstable == BURSTABLE_ONE_NODE && pod->qos == QOS_BURSTABLE)
		wishes_lay_over(&ask->wishes,
			&(const struct wishes){.spread = WISH_SPREAD_ONE_NODE}, false);
}
