/* Setting `namespaces`. */
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

/* What stands in a section */

static int take_names(void *section, const char *rest, const char *value, struct err *e)
{
	struct namespace_section *n = section;
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

static int take_wish(void *section, const char *rest, const char *value, struct err *e)
{
	struct namespace_section *n = section;
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
	if (row->type == WISH_OF_TEXT)
		return err_set(e, EINVAL, "\"%.*s\" is %s", SETTING_SHOWN, value, row->form);
	for (unsigned i = 1; i < (of_operator ? of_operator : row->nr); i++)
		text_add(&t, "%s%s", t.len ? ", " : "", row->words[i]);
	return err_set(e, EINVAL, "\"%.*s\" is none of %s", SETTING_SHOWN, value, all);
}

static int take_allowed(void *section, const char *rest, const char *value, struct err *e)
{
	struct namespace_section *n = section;
	unsigned more = 0;
	int rc = wishes_allowed_parse(value, &more, e);

	(void)rest;
	n->allowed |= rc ? 0 : more;
	return rc;
}

static int take_force(void *section, const char *rest, const char *value, struct err *e)
{
	struct namespace_section *n = section;
	(void)rest;
	return text_bool(value, &n->force, e);
}

static int take_reserved(void *section, const char *rest, const char *value, struct err *e)
{
	struct namespace_section *n = section;
	(void)rest;
	return text_bool(value, &n->reserved, e);
}

static const struct section_key keys[] = {
	{"names", take_names, SECTION_LIST},
	{"wishes", take_wish, SECTION_MAP},
	{"allowed", take_allowed, SECTION_VALUE},
	{"force", take_force, SECTION_VALUE},
	{"reserved", take_reserved, SECTION_VALUE},
};

/* In one line wishes stand beside the other keys:
 * "names=kube-system,kube-* reserved=true; names=hpc cpus=shared force=true". */
const struct sections namespaces_sections = {
	.list = NAMESPACES,
	.at = offsetof(struct settings, namespaces),
	.first = offsetof(struct namespaces, at),
	.size = sizeof(struct namespace_section),
	.max = NAMESPACES_MAX,
	.keys = keys,
	.nr_keys = sizeof keys / sizeof *keys,
	.has = "names (a list), wishes (a map), allowed, force and reserved",
	.take_other = take_wish,
};

static int parse_namespaces(const struct row *row, const char *value, void *out, struct err *e)
{
	(void)row;
	return sections_parse(&namespaces_sections, value, out, e);
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
