/* Setting frequencyProfiles. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <core/settings_row.h>

#include <stdio.h>
#include <string.h>

static void text_of(const struct settings *s, char *text)
{
	for (unsigned i = 0; settings_row(i); i++)
		if (text_equal(settings_row(i)->key, PROFILES))
			assert_true(settings_get(s, i, text, SETTING_TEXT_MAX));
}

static void what_is_set_is_printed_and_read_back(void **state)
{
	static const char *const table[] = {
		"name=fast governor=performance",
		("name=fast governor=performance minMHz=2400 maxMHz=3800 "
		 "energyPerformancePreference=performance maxIdleLatencyUs=2; name=cool maxMHz=1200"),
		"name=never-sleeps maxIdleLatencyUs=0",
		"",
	};
	static char text[SETTING_TEXT_MAX];
	static struct settings s;

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		settings_init(&s);
		assert_int_equal(settings_set(&s, PROFILES, table[i], NULL), 0);
		assert_int_equal(settings_check(&s, NULL, NULL), 0);
		text_of(&s, text);
		assert_string_equal(text, table[i]);
	}
}

static void key_by_key_it_is_the_same(void **state)
{
	static struct settings s, line;

	(void)state;
	settings_init(&s);
	settings_init(&line);
	assert_true(settings_is_group(PROFILES));
	assert_true(settings_is_group(PROFILES ".0"));
	assert_false(settings_is_group(PROFILES ".0.name"));
	assert_int_equal(settings_set(&s, PROFILES ".0.name", "fast", NULL), 0);
	assert_int_equal(settings_set(&s, PROFILES ".0.minMHz", "2400", NULL), 0);
	assert_int_equal(settings_set(&s, PROFILES ".1.name", "cool", NULL), 0);
	assert_int_equal(settings_set(&s, PROFILES ".1.maxIdleLatencyUs", "0", NULL), 0);
	assert_int_equal(
		settings_set(&line, PROFILES, "name=fast minMHz=2400; name=cool maxIdleLatencyUs=0", NULL), 0);
	assert_memory_equal(&s.profiles, &line.profiles, sizeof s.profiles);
	assert_int_equal(profiles_find(&s.profiles, "cool"), 1);
	assert_int_equal(profiles_find(&s.profiles, "hot"), 2);
	assert_int_equal(profiles_find(&s.profiles, ""), 2);
}

static void what_is_wrong_is_named_and_changes_nothing(void **state)
{
	static const struct {
		const char *key, *value, *text;
	} table[] = {
		{PROFILES ".0.name", "../x", "\"../x\" can be no name of a profile"},
		{PROFILES ".0.governor", "Performance", "\"Performance\" is no word of the kernel's"},
		{PROFILES ".0.governor", "", "\"\" is no word of the kernel's"},
		{PROFILES ".0.energyPerformancePreference", "a b", "\"a b\" is no word"},
		{PROFILES ".0.minMHz", "0", "\"0\" is no number of MHz from 1 to 100000"},
		{PROFILES ".0.maxMHz", "2.4GHz", "\"2.4GHz\" is no number of MHz"},
		{PROFILES ".0.maxIdleLatencyUs", "-1", "is no number of microseconds from 0"},
		{PROFILES ".0.turbo", "true", "a section has name, governor, minMHz"},
		{PROFILES ".1.name", "x", "section 0 is missing"},
		{PROFILES ".16.name", "x", "a list of at most 16 sections"},
		{PROFILES, "fast", "\"fast\": KEY=VALUE is expected"},
		{PROFILES, "name=a turbo=1", "\"turbo\": a section has name"},
	};
	static struct settings s, before;

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct err e = {0};

		settings_init(&s);
		before = s;
		assert_true(settings_set(&s, table[i].key, table[i].value, &e) < 0);
		if (!strstr(e.text, table[i].text))
			fail_msg("%s", e.text);
		assert_memory_equal(&s, &before, sizeof s);
	}
}

static void what_no_key_alone_can_show_is_checked(void **state)
{
	static const struct {
		const char *key, *value, *text;
	} table[] = {
		{PROFILES, "governor=performance", "frequencyProfiles.0: name is missing"},
		{PROFILES, "name=fast", "profile \"fast\" sets nothing"},
		{PROFILES, "name=a minMHz=2 maxMHz=1", "minMHz 2 is above maxMHz 1"},
		{PROFILES, "name=a minMHz=2; name=a minMHz=3",
			"frequencyProfiles.1: another one is called \"a\", too"},
		{NAMESPACES, "names=* quiet=frequency=fast",
			"namespaces.0.wishes.quiet: frequencyProfiles has no \"fast\""},
	};
	static struct settings s;

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct err e = {0};

		settings_init(&s);
		assert_int_equal(settings_set(&s, table[i].key, table[i].value, NULL), 0);
		assert_true(settings_check(&s, NULL, &e) < 0);
		if (!strstr(e.text, table[i].text))
			fail_msg("%s", e.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_set_is_printed_and_read_back),
		cmocka_unit_test(key_by_key_it_is_the_same),
		cmocka_unit_test(what_is_wrong_is_named_and_changes_nothing),
		cmocka_unit_test(what_no_key_alone_can_show_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
