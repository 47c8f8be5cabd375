/* Setting `namespaces`: a list of sections in a file, key by key; one line in --set and the
 * journal. */
#include <core/settings_row.h>

#include <numafit/namespaces.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>

enum { VALUE_MAX = 256 };

/* Matching */

bool namespace_section_is_for(const struct namespace_section *n, const char *ns)
{
	for (const char *at = n->names; *at;) {
		size_t len = strcspn(at, ",");

		if (text_fits(ns, at, len))
			return true;
		at += len + (at[len] == ',');
	}
	return false;
}

unsigned namespaces_allow(const struct namespaces *all, const char *ns)
{
	unsigned allowed = 0;

	for (unsigned i = 0; i < all->nr; i++)
		if (namespace_section_is_for(&all->at[i], ns))
			allowed |= all->at[i].allowed;
	return allowed;
}

void namespaces_obey(const struct namespaces *all, const char *ns, struct wishes *w)
{
	const struct wishes on_reserved = {.cpus = WISH_CPUS_RESERVED};
	struct wishes by_default = {0}, forced = {0};
	bool unbounded = false;

	for (unsigned i = 0; i < all->nr; i++) {
		const struct namespace_section *n = &all->at[i];

		if (!namespace_section_is_for(n, ns))
			continue;
		wishes_lay_over(n->force ? &forced : &by_default, &n->wishes, true);
		if (n->reserved)
			wishes_lay_over(&forced, &on_reserved, true);
		unbounded = unbounded ||
			    (n->force && (n->allowed & WISHES_CPUS_UNTOUCHED ||
						 n->wishes.cpus == WISH_CPUS_UNTOUCHED));
	}
	wishes_lay_over(w, &by_default, false);
	wishes_lay_over(w, &forced, true);
	if (w->cpus == WISH_CPUS_UNTOUCHED && unbounded)
		w->cpus = WISH_CPUS_UNBOUNDED;
}

/* What stands in a section. rest: what is behind the key, as in "names.0" and "wishes.cpus"; "" for
 * none. 0 or -errno. */

static int take_names(struct namespace_section *n, const char *rest, const char *value, struct err *e)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789-*?,";
	const bool one = *rest; /* of a list; in one line all of them at once */
	struct text t;

	if (!*value || value[strspn(value, alphabet)] || (one && strchr(value, ',')))
		return err_set(e, EINVAL,
			"\"%.*s\" can be no namespace: small letters, digits and '-', and * and ? "
			"for any",
			SETTING_SHOWN, value);
	char names[2 * NAMESPACE_NAMES_MAX];

	text_init(&t, names, sizeof names);
	text_add(&t, "%s%s%s", n->names, *n->names ? "," : "", value);
	if (t.cut || !text_copy(n->names, sizeof n->names, names))
		return err_set(e, ERANGE, "the names are longer than %d bytes",
			NAMESPACE_NAMES_MAX - 1);
	return 0;
}

static int take_wish(struct namespace_section *n, const char *rest, const char *value, struct err *e)
{
	const struct wish_row *row = wish_row_of(rest);
	const bool known = row && row->type != WISH_OF_NODES;
	const unsigned of_operator = known && row->bit == WISHES_CPUS ? WISH_CPUS_UNBOUNDED : 0;
	unsigned given = known ? wish_value(row, value) : 0;
	char all[VALUE_MAX];
	struct text t;

	text_init(&t, all, sizeof all);
	for (size_t i = 0; !known && i < NR_WISH_ROWS; i++)
		if (wish_rows[i].type != WISH_OF_NODES)
			text_add(&t, "%s%s", t.len ? ", " : "", wish_rows[i].name);
	if (!known)
		return err_set(
			e, EINVAL, "\"%.*s\" is no wish: %s", SETTING_SHOWN, rest, all);
	if (given && (!of_operator || given < of_operator)) {
		wish_enter(&n->wishes, row, value);
		return 0;
	}
	if (row->type == WISH_OF_CLASS)
		return err_set(e, EINVAL, "\"%.*s\" is no name of a class", SETTING_SHOWN, value);
	for (unsigned i = 1; i < (of_operator ? of_operator : row->nr); i++)
		text_add(&t, "%s%s", t.len ? ", " : "", row->words[i]);
	return err_set(e, EINVAL, "\"%.*s\" is none of %s", SETTING_SHOWN, value, all);
}

static int take_allowed(
	struct namespace_section *n, const char *rest, const char *value, struct err *e)
{
	unsigned more = 0;
	int rc = wishes_allowed_parse(value, &more, e);

	(void)rest;
	n->allowed |= rc ? 0 : more;
	return rc;
}

static int take_force(struct namespace_section *n, const char *rest, const char *value, struct err *e)
{
	(void)rest;
	return text_bool(value, &n->force, e);
}

static int take_reserved(
	struct namespace_section *n, const char *rest, const char *value, struct err *e)
{
	(void)rest;
	return text_bool(value, &n->reserved, e);
}

static const struct section_key {
	const char *name;
	int (*take)(struct namespace_section *n, const char *rest, const char *value, struct err *e);
	enum { IS_VALUE, IS_LIST, IS_MAP } is;
} keys[] = {
	{"names", take_names, IS_LIST},
	{"wishes", take_wish, IS_MAP},
	{"allowed", take_allowed, IS_VALUE},
	{"force", take_force, IS_VALUE},
	{"reserved", take_reserved, IS_VALUE},
};
enum { NR_KEYS = sizeof keys / sizeof *keys };

static const struct section_key *key_of(const char *name, size_t len)
{
	for (size_t i = 0; i < NR_KEYS; i++)
		if (strlen(keys[i].name) == len && !memcmp(keys[i].name, name, len))
			return &keys[i];
	return NULL;
}

/* The section's number, and what of the key stands behind it; NULL: no number. */
static const char *behind_section(const char *key, unsigned *nr)
{
	const char *rest = row_entry(key, NAMESPACES, NAMESPACES_MAX, nr);

	return rest && *rest ? rest + 1 : rest;
}

int namespaces_set(struct settings *s, const char *key, const char *value, struct err *e)
{
	unsigned nr = 0;
	const char *rest = behind_section(key, &nr);

	if (!rest)
		return err_set(
			e, EINVAL, "a list of at most %d sections is expected", NAMESPACES_MAX);
	const size_t len = strcspn(rest, ".");
	const struct section_key *k = key_of(rest, len);
	if (!k || (k->is == IS_VALUE) != !rest[len])
		return err_set(e, ENOENT,
			"a section has names (a list), wishes (a map), allowed, force and reserved");
	if (nr > s->namespaces.nr)
		return err_set(e, EINVAL, "section %u is missing", s->namespaces.nr);
	struct namespace_section n = {0};

	if (nr < s->namespaces.nr)
		n = s->namespaces.at[nr];
	int rc = k->take(&n, rest[len] ? rest + len + 1 : "", value, e);
	if (rc)
		return rc;
	s->namespaces.at[nr] = n;
	s->namespaces.nr += nr == s->namespaces.nr;
	return 0;
}

bool namespaces_is_group(const char *key)
{
	unsigned nr;
	const char *rest = behind_section(key, &nr);
	const struct section_key *k = rest ? key_of(rest, strlen(rest)) : NULL;

	return text_equal(key, NAMESPACES) ||
	       (rest && (!*rest || (k && k->is != IS_VALUE)));
}

/* In one line: "names=kube-system,kube-* reserved=true; names=hpc cpus=shared force=true" */

static int take_word(struct namespace_section *n, char *word, struct err *e)
{
	char *equals = strchr(word, '=');
	const struct section_key *k;

	if (!equals)
		return err_set(e, EINVAL, "\"%.*s\": KEY=VALUE is expected", SETTING_SHOWN, word);
	k = key_of(word, (size_t)(equals - word));
	*equals = '\0';
	return k && k->is != IS_MAP ? k->take(n, "", equals + 1, e)
				    : take_wish(n, word, equals + 1, e);
}

static int take_section(struct namespace_section *n, const char *text, size_t len, struct err *e)
{
	char copy[4 * NAMESPACE_NAMES_MAX], *save = NULL;
	struct text t;
	int rc = 0;

	text_init(&t, copy, sizeof copy);
	text_put(&t, text, len);
	if (t.cut)
		return err_set(e, ERANGE, "a section is longer than %zu bytes", sizeof copy - 1);
	for (char *word = strtok_r(copy, " ", &save); word && !rc; word = strtok_r(NULL, " ", &save))
		rc = take_word(n, word, e);
	return rc;
}

static int parse_namespaces(const struct row *row, const char *value, void *out, struct err *e)
{
	struct namespaces all = {0};

	(void)row;
	for (const char *at = value; *at;) {
		size_t len = strcspn(at, ";");

		if (all.nr == NAMESPACES_MAX)
			return err_set(e, ERANGE, "more than %d sections", NAMESPACES_MAX);
		int rc = take_section(&all.at[all.nr++], at, len, e);
		if (rc)
			return rc;
		at += len + (at[len] == ';');
	}
	memcpy(out, &all, sizeof all);
	return 0;
}

static void print_namespaces(const struct row *row, const void *in, struct text *to)
{
	const struct namespaces *all = in;
	char wishes[WISHES_TEXT_MAX];
	struct text t;

	(void)row;
	for (unsigned i = 0; i < all->nr; i++) {
		const struct namespace_section *n = &all->at[i];

		text_init(&t, wishes, sizeof wishes);
		wishes_print(&n->wishes, &t);
		text_add(to, "%snames=%s%s%s", i ? "; " : "", n->names, t.len ? " " : "", wishes);
		if (n->allowed)
			text_add(to, " allowed=");
		if (n->allowed)
			wishes_allowed_print(n->allowed, to);
		text_add(to, "%s%s", n->force ? " force=true" : "",
			n->reserved ? " reserved=true" : "");
	}
}

const struct kind kind_namespaces = {parse_namespaces, print_namespaces,
	.type = "list of {names, wishes, allowed, force, reserved}"};
