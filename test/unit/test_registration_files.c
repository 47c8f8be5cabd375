/* Our registration with a kubelet whose directory and sockets vanish, are made again, or are
 * something else. */
#include "registration_rig.h"

static void a_removed_plugin_socket_is_bound_again(void **state)
{
	struct world *w = *state;

	start_with_kubelet(w);
	assert_int_equal(unlink(w->k.plugin), 0);
	UNTIL(w, exists(w->k.plugin));
	run_for(w, w->options.ending_ms);
	assert_true(is(w, REGISTRATION_UP));
	assert_int_equal(w->k.nr_registers, 1);
}

static void a_plugin_socket_removed_during_register_is_bound_and_registered_again(void **state)
{
	struct world *w = *state;

	w->k.behaviour = KUBELET_WIPES;
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, w->k.nr_registers);
	w->k.behaviour = KUBELET_WATCHES;
	until_up(w); /* long before Register's deadline */
	assert_true(exists(w->k.plugin));
	assert_int_equal(w->k.nr_registers, 2);
	assert_int_equal(w->nr_logged, 1);
}

static void a_plugin_socket_removed_during_every_register_is_logged_once(void **state)
{
	struct world *w = *state;

	w->k.behaviour = KUBELET_WIPES;
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, w->nr_logged);
	assert_string_equal(last(w)->event, "device-plugin-no-socket");
	assert_true(last(w)->bad);
	unsigned nr = w->k.nr_registers;
	UNTIL(w, w->k.nr_registers == nr + 3);
	assert_int_equal(w->nr_logged, 1);
	w->k.behaviour = KUBELET_WATCHES;
	until_up(w);
}

static void the_old_stream_is_over_before_another_socket_is_used(void **state)
{
	struct world *w = *state;

	start_with_kubelet(w);
	assert_int_equal(unlink(w->k.socket), 0);
	acceptor_close(steal(w->k.door));
	kubelet_listen(&w->k);
	UNTIL(w, is(w, REGISTRATION_ENDING) && !w->nr_streams);
	assert_int_equal(utimensat(AT_FDCWD, w->k.socket, NULL, 0), 0); /* and another one */
	UNTIL(w, w->k.nr_registers == 2);
	assert_true(paused(w));
	until_up(w);
	assert_int_equal(w->k.nr_overlaps, 0);
	/* it is the same kubelet, and may come for a Register that we gave up, too */
	UNTIL(w, w->k.nr_watches >= 1 && w->nr_streams >= 1);
}

static void a_recreated_directory_is_used(void **state)
{
	struct world *w = *state;

	start_with_kubelet(w);
	kubelet_die(&w->k, true);
	remove_tree(w->dir);
	UNTIL(w, count(w, "device-plugin-no-directory"));
	assert_true(last(w)->bad);
	assert_non_null(strstr(last(w)->text, w->dir));
	kubelet_start(&w->k); /* makes it */
	until_up(w);
	assert_int_equal(count(w, "device-plugin-no-directory"), 1);
}

static void an_empty_directory_may_be_replaced_while_the_kubelet_is_absent(void **state)
{
	struct world *w = *state;
	char aside[PATH_MAX + sizeof ".aside"];

	(void)snprintf(aside, sizeof aside, "%s.aside", w->dir);
	w->options.connect_max_ms = TIMEOUT_MS / 2; /* it is seen, not looked for */
	start(w);
	UNTIL(w, count(w, "device-plugin-waiting"));
	assert_int_equal(rename(w->dir, aside), 0);
	assert_int_equal(mkdir(w->dir, 0750), 0);
	run_for(w, 20); /* what happens now happens in the new one */
	kubelet_start(&w->k);
	until_up(w);
	assert_int_equal(w->nr_logged, 2);
}

static void a_directory_and_its_parents_may_be_missing(void **state)
{
	struct world *w = *state;

	(void)snprintf(w->dir, sizeof w->dir, "%s/kubelet/device-plugins", w->top);
	kubelet_init(&w->k, w->l, w->pump, w->dir, ENDPOINT);
	start(w);
	UNTIL(w, w->nr_logged);
	assert_string_equal(last(w)->event, "device-plugin-no-directory");
	run_for(w, 3 * w->options.connect_max_ms);
	assert_int_equal(w->nr_logged, 1);
	*strrchr(w->dir, '/') = '\0';
	assert_int_equal(mkdir(w->dir, 0750), 0);
	kubelet_start(&w->k);
	until_up(w);
}

static void a_file_in_place_of_the_directory_is_logged(void **state)
{
	struct world *w = *state;

	assert_int_equal(rmdir(w->dir), 0);
	(void)close(open(w->dir, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	start(w);
	UNTIL(w, w->nr_logged);
	assert_string_equal(last(w)->event, "device-plugin-no-directory");
	assert_true(last(w)->bad);
	assert_non_null(strstr(last(w)->text, "not a directory"));
	assert_int_equal(unlink(w->dir), 0);
	kubelet_start(&w->k);
	until_up(w);
}

static void a_path_too_long_for_a_socket_is_logged(void **state)
{
	enum { TOO_LONG = 107 };
	struct world *w = *state;
	size_t len = strlen(w->dir);

	memset(w->dir + len, 'x', TOO_LONG);
	w->dir[len + TOO_LONG] = '\0';
	assert_int_equal(mkdir(w->dir, 0750), 0);
	start(w);
	UNTIL(w, w->nr_logged);
	assert_string_equal(last(w)->event, "device-plugin-no-socket");
	assert_true(last(w)->bad);
	assert_non_null(strstr(last(w)->text, "107"));
	run_for(w, 3 * w->options.connect_max_ms);
	assert_int_equal(w->nr_logged, 1);
}

static void a_foreign_file_in_place_of_our_socket_is_logged(void **state)
{
	struct world *w = *state;

	kubelet_start(&w->k);
	(void)close(open(w->k.plugin, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	start(w);
	UNTIL(w, w->nr_logged);
	assert_string_equal(last(w)->event, "device-plugin-no-socket");
	assert_true(last(w)->bad);
	assert_int_equal(unlink(w->k.plugin), 0);
	until_up(w);
}

/* Few: one for ten events, where a quiet machine has 11 for all; and what the shortest wait between
 * two allows in the time that it took longer: on a busy one nearly every event may be seen by
 * itself. */
static unsigned registers_allowed(const struct world *w, uint64_t took_ns, unsigned nr_events)
{
	const unsigned few = nr_events / 10;
	uint64_t took_ms = took_ns / NS_PER_MS, quiet_ms = UINT64_C(2) * nr_events * TICK_MS;

	if (took_ms <= quiet_ms)
		return few;
	return few + (unsigned)(took_ms - quiet_ms) / w->options.connect_min_ms;
}

static void many_file_events_cause_few_register_calls(void **state)
{
	enum { NR_EVENTS_OF_STORM = 300 };
	struct world *w = *state;

	w->options.connect_max_ms = 400;
	start_with_kubelet(w);
	uint64_t began_ns = w->k.registered_ns;
	for (unsigned n = 0; n < NR_EVENTS_OF_STORM; n++) {
		assert_int_equal(utimensat(AT_FDCWD, w->k.socket, NULL, 0), 0);
		run_for(w, TICK_MS);
	}
	uint64_t took_ns = loop_monotonic_ns() - began_ns;
	assert_in_range(w->k.nr_registers, 1, registers_allowed(w, took_ns, NR_EVENTS_OF_STORM));
	UNTIL(w, w->k.nr_registers >= 2); /* it seems to be another one */
	/* it is one kubelet all the while, and may come twice: for a Register that we gave up, too
	 */
	UNTIL(w, is(w, REGISTRATION_UP) && w->k.nr_watches >= 1);
}

static void other_files_of_the_directory_cause_no_register_call(void **state)
{
	enum { NR_CHANGES = 100 };
	struct world *w = *state;
	char other[PATH_MAX + sizeof "/kubelet_internal_checkpoint"];

	(void)snprintf(other, sizeof other, "%s/kubelet_internal_checkpoint", w->dir);
	start_with_kubelet(w);
	for (unsigned n = 0; n < NR_CHANGES; n++) {
		(void)close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		assert_int_equal(chmod(w->k.socket, n % 2 ? 0600 : 0660), 0);
		assert_int_equal(unlink(other), 0);
	}
	run_for(w, 2 * w->options.ending_ms);
	assert_int_equal(w->k.nr_registers, 1);
	assert_true(is(w, REGISTRATION_UP));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(a_removed_plugin_socket_is_bound_again),
		WITH_WORLD(a_plugin_socket_removed_during_register_is_bound_and_registered_again),
		WITH_WORLD(a_plugin_socket_removed_during_every_register_is_logged_once),
		WITH_WORLD(the_old_stream_is_over_before_another_socket_is_used),
		WITH_WORLD(a_recreated_directory_is_used),
		WITH_WORLD(an_empty_directory_may_be_replaced_while_the_kubelet_is_absent),
		WITH_WORLD(a_directory_and_its_parents_may_be_missing),
		WITH_WORLD(a_file_in_place_of_the_directory_is_logged),
		WITH_WORLD(a_path_too_long_for_a_socket_is_logged),
		WITH_WORLD(a_foreign_file_in_place_of_our_socket_is_logged),
		WITH_WORLD(many_file_events_cause_few_register_calls),
		WITH_WORLD(other_files_of_the_directory_cause_no_register_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
