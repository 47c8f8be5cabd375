/* What the daemon takes from a runtime's list of pods. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <numafitd/daemon.h>
#include <numafitd/reply.h>

static void a_stopped_sandbox_without_containers_is_ignored(void **state)
{
	static const struct {
		bool process[3];
		const char *container_in; /* the sandbox of the one container */
		size_t nr;
		const char *want[3];
	} cases[] = {
		{{true, false, true}, "a", 2, {"a", "c"}},
		{{true, false, true}, "b", 3, {"a", "b", "c"}}, /* some runtimes keep no process */
		{{false, false, false}, "b", 3, {"a", "b", "c"}}, /* or do not report it */
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct pod pods[] = {
			{.sandbox_id = "a", .uid = "ua", .has_process = cases[i].process[0]},
			{.sandbox_id = "b", .uid = "ub", .has_process = cases[i].process[1]},
			{.sandbox_id = "c", .uid = "uc", .has_process = cases[i].process[2]},
		};
		const struct request web = {
			.container_id = "web", .pod = {.sandbox_id = cases[i].container_in}};
		const struct nri_inventory what = {&web, 1, pods, 3};
		struct sandboxes there = sandboxes_of(&what);

		assert_int_equal(there.nr, cases[i].nr);
		for (size_t k = 0; k < there.nr; k++) {
			assert_string_equal(there.id[k], cases[i].want[k]);
			assert_string_equal(there.pod_uid[k] + 1, cases[i].want[k]);
		}
		sandboxes_free(&there);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stopped_sandbox_without_containers_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
