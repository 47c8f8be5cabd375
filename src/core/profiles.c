/* Setting `frequencyProfiles`. */
#include <core/settings_row.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>

unsigned profiles_find(const struct frequency_profiles *all, const char *name)
{
	unsigned i = 0;

	while (i < all->nr && !text_equal(all->at[i].name, name))
		i++;
	return i;
}

static int take_name(void *section, const char *rest, const char *value, struct err *e)
{
	struct frequency_profile *p = section;

	(void)rest;
	if (!wishes_is_class(value))
		return err_set(e, EINVAL,
			"\"%.*s\" can be no name of a profile: letters, digits, '.', '-' and '_', "
			"the first one a letter or a digit, are",
			SETTING_SHOWN, value);
	(void)text_copy(p->name, sizeof p->name, value);
	return 0;
}

/* The kernel's: "schedutil", "balance_performance". */
static int take_word(char word[PROFILE_WORD_MAX], const char *value, struct err *e)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";

	if (!*value || value[strspn(value, alphabet)] || strlen(value) >= PROFILE_WORD_MAX)
		return err_set(e, EINVAL,
			"\"%.*s\" is no word of the kernel's: up to %d small letters, digits, '_' "
			"and '-'",
			SETTING_SHOWN, value, PROFILE_WORD_MAX - 1);
	(void)text_copy(word, PROFILE_WORD_MAX, value);
	return 0;
}

static int take_governor(void *section, const char *rest, const char *value, struct err *e)
{
	(void)rest;
	return take_word(((struct frequency_profile *)section)->governor, value, e);
}

static int take_preference(void *section, const char *rest, const char *value, struct err *e)
{
	(void)rest;
	return take_word(((struct frequency_profile *)section)->energy_performance, value, e);
}

static int take_number(
	unsigned *out, unsigned min, unsigned max, const char *unit, const char *value, struct err *e)
{
	uint64_t number;

	if (text_u64(value, strlen(value), max, &number, NULL) < 0 || number < min)
		return err_set(e, EINVAL, "\"%.*s\" is no number of %s from %u to %u", SETTING_SHOWN,
			value, unit, min, max);
	*out = (unsigned)number;
	return 0;
}

static int take_min(void *section, const char *rest, const char *value, struct err *e)
{
	struct frequency_profile *p = section;

	(void)rest;
	return take_number(&p->min_mhz, 1, PROFILE_MHZ_MAX, "MHz", value, e);
}

static int take_max(void *section, const char *rest, const char *value, struct err *e)
{
	struct frequency_profile *p = section;

	(void)rest;
	return take_number(&p->max_mhz, 1, PROFILE_MHZ_MAX, "MHz", value, e);
}

static int take_latency(void *section, const char *rest, const char *value, struct err *e)
{
	struct frequency_profile *p = section;
	int rc = take_number(
		&p->idle_latency_us, 0, PROFILE_LATENCY_MAX_US, "microseconds", value, e);

	(void)rest;
	p->limits_idle = p->limits_idle || !rc;
	return rc;
}

static const struct section_key keys[] = {
	{"name", take_name, SECTION_VALUE},
	{"governor", take_governor, SECTION_VALUE},
	{"minMHz", take_min, SECTION_VALUE},
	{"maxMHz", take_max, SECTION_VALUE},
	{"energyPerformancePreference", take_preference, SECTION_VALUE},
	{"maxIdleLatencyUs", take_latency, SECTION_VALUE},
};
const struct sections profiles_sections = {
	.list = PROFILES,
	.at = offsetof(struct settings, profiles),
	.first = offsetof(struct frequency_profiles, at),
	.size = sizeof(struct frequency_profile),
	.max = PROFILES_MAX,
	.keys = keys,
	.nr_keys = sizeof keys / sizeof *keys,
	.has = "name, governor, minMHz, maxMHz, energyPerformancePreference and maxIdleLatencyUs",
};

static int parse_profiles(const struct row *row, const char *value, void *out, struct err *e)
{
	(void)row;
	return sections_parse(&profiles_sections, value, out, e);
}

static void print_profiles(const struct row *row, const void *in, struct text *to)
{
	const struct frequency_profiles *all = in;

	(void)row;
	for (unsigned i = 0; i < all->nr; i++) {
		const struct frequency_profile *p = &all->at[i];

		text_add(to, "%sname=%s", i ? "; " : "", p->name);
		if (*p->governor)
			text_add(to, " governor=%s", p->governor);
		if (p->min_mhz)
			text_add(to, " minMHz=%u", p->min_mhz);
		if (p->max_mhz)
			text_add(to, " maxMHz=%u", p->max_mhz);
		if (*p->energy_performance)
			text_add(to, " energyPerformancePreference=%s", p->energy_performance);
		if (p->limits_idle)
			text_add(to, " maxIdleLatencyUs=%u", p->idle_latency_us);
	}
}

const struct kind kind_profiles = {parse_profiles, print_profiles,
	.type = "list of {name, governor, minMHz, maxMHz, energyPerformancePreference, "
		"maxIdleLatencyUs}"};
