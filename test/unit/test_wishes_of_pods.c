/* What a pod whose containers are known wishes for as its sandbox starts, in the daemon's hands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <numafit/arena.h>
#include <numafitd/daemon.h>
#include <numafitd/gather.h>

enum { ARENA = 1 << 16 };

static struct ask first_of_pod(const char *key, const char *value, struct pod pod)
{
	static struct daemon d;
	static struct arena a;
	const struct ask container = {.name = "main"};
	struct ask is;

	settings_init(&d.settings);
	assert_int_equal(settings_set(&d.settings, key, value, NULL), 0);
	pod.ns = "kube-system";
	pod.name = "p";
	pod.container = &container;
	pod.nr = 1;
	arena_init(&a, ARENA);
	gather_wishes_of_pod(&d, &pod, &a);
	is = pod.container[0];
	arena_fini(&a);
	return is;
}

/* Its author may have written none. */
static void an_operators_words_count_for_a_pod_without_annotations(void **state)
{
	struct ask is = first_of_pod("namespaces", "names=kube-* reserved=true", (struct pod){0});

	(void)state;
	assert_int_equal(is.wishes.cpus, WISH_CPUS_RESERVED);
	is = first_of_pod("namespaces", "names=* cpus=shared force=true", (struct pod){0});
	assert_int_equal(is.wishes.cpus, WISH_CPUS_SHARED);
	is = first_of_pod("burstable", "one-node", (struct pod){.qos = QOS_BURSTABLE});
	assert_int_equal(is.wishes.spread, WISH_SPREAD_ONE_NODE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_operators_words_count_for_a_pod_without_annotations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
