#ifndef SETTINGS_CASES_H
#define SETTINGS_CASES_H

#include <numafit/settings.h>

#include <numafit/text.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Settings for test_settings*.c. */

static struct settings defaults(void)
{
	struct settings s;

	settings_init(&s);
	return s;
}

static void set_all(struct settings *s, const char *const pairs[][2], size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct err e = {0};

		if (settings_set(s, pairs[i][0], pairs[i][1], &e) < 0)
			fail_msg("%s", e.text);
	}
}

#define TOPOLOGY "topologyManagerPolicyOptions."
#define CPU      "cpuManagerPolicyOptions."

#endif
