/* Updates of other containers that do not fit into one reply. */
#include "live_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { ONE_UPDATE = 150 }; /* bytes */

/* The shared pool is enforced by updates: the machine is a recorded one. */
static struct rig *node_with_room_for(unsigned updates)
{
	struct rig *r = rig_new();

	r->daemon.update_bytes = updates * ONE_UPDATE;
	begin(r, NULL);
	return r;
}

static void a_container_is_refused_whose_cpus_others_cannot_leave(void **state)
{
	struct rig *r = node_with_room_for(1);
	char was[sizeof r->box[1].cpus];

	(void)state;
	(void)create(r, "one", 0);
	(void)create(r, "two", 0);
	(void)text_copy(was, sizeof was, r->box[1].cpus);
	assert_null(create(r, "own", 2));
	assert_non_null(strstr(r->message, "2 containers have to be updated before it starts"));
	assert_int_equal(r->updates, 0);
	assert_string_equal(r->box[1].cpus, was);
	stop(r, &r->box[0]);
	(void)create(r, "own", 2);
	assert_string_equal(r->message, "");
	const struct cpuset own = fake_container_cpus(&r->box[0]),
			    two = fake_container_cpus(&r->box[1]);
	assert_int_equal(cpuset_count(&own), 2);
	assert_false(cpuset_intersects(&own, &two));
	assert_true(r->updates > 0);
	assert_string_not_equal(r->box[1].cpus, was);
	end(r, SIGTERM);
	rig_free(r);
}

/* The journal of a container that was refused so has nothing of it in the next life. */
static void what_was_taken_back_is_not_in_the_journal(void **state)
{
	struct rig *r = node_with_room_for(1);

	(void)state;
	(void)create(r, "one", 0);
	(void)create(r, "two", 0);
	assert_null(create(r, "own", 2));
	end(r, SIGKILL);
	begin(r, NULL);
	await_log(r, "event=journal-folded");
	assert_int_equal(count_log(r, "containers=2"), count_log(r, "event=journal-folded") + 1);
	end(r, SIGTERM);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_container_is_refused_whose_cpus_others_cannot_leave),
		cmocka_unit_test(what_was_taken_back_is_not_in_the_journal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
