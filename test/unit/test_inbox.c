#include <io/inbox.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { CAPACITY = 4, NR_PUTTERS = 3, PER_PUTTER = 5000, TIMEOUT_MS = 20000 };

struct world {
	struct loop *l;
	struct inbox *in;
	struct loop_timer *deadline;
	int nr_came, want;
	int last[NR_PUTTERS]; /* of each putter */
	bool in_order;
	pthread_t putters[NR_PUTTERS];
	int nr_putters;
};

static void came(void *ctx, void *what, int value)
{
	struct world *w = ctx;
	int *last = what;

	w->in_order = w->in_order && value == *last + 1;
	*last = value;
	if (++w->nr_came == w->want)
		loop_stop(w->l);
}

static void too_late(void *ctx)
{
	(void)ctx;
	fail_msg("nothing happened in %d ms", TIMEOUT_MS);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	w->l = loop_new();
	w->in = inbox_new(w->l, CAPACITY, came, w);
	w->deadline = loop_timer_new(w->l, too_late, NULL);
	loop_timer_set(w->deadline, TIMEOUT_MS);
	w->in_order = true;
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	for (int n = 0; n < w->nr_putters; n++)
		(void)pthread_join(w->putters[n], NULL);
	inbox_close(w->in);
	loop_free(w->l);
	free(w);
	return 0;
}

struct putter {
	struct inbox *in;
	int *last, nr;
};

static void *put(void *arg)
{
	struct putter *p = arg;

	for (int n = 1; n <= p->nr; n++)
		inbox_put(p->in, p->last, n);
	free(p);
	return NULL;
}

static void start_putter(struct world *w, int nr)
{
	struct putter *p = malloc(sizeof *p);

	*p = (struct putter){w->in, &w->last[w->nr_putters], nr};
	assert_int_equal(pthread_create(&w->putters[w->nr_putters], NULL, put, p), 0);
	w->nr_putters++;
}

static void items_of_each_thread_arrive_in_order(void **state)
{
	struct world *w = *state;

	w->want = NR_PUTTERS * PER_PUTTER;
	for (int n = 0; n < NR_PUTTERS; n++)
		start_putter(w, PER_PUTTER);
	loop_run(w->l);
	assert_int_equal(w->nr_came, w->want);
	assert_true(w->in_order);
}

/* With the loop not running, a thread that puts one more than there is room for must wait. */
static void a_thread_that_puts_into_a_full_inbox_waits(void **state)
{
	struct world *w = *state;

	start_putter(w, 2 * CAPACITY);
	while (w->nr_came < 2 * CAPACITY) {
		size_t nr = inbox_wait(w->in, TIMEOUT_MS);

		assert_in_range(nr, 1, CAPACITY);
	}
	assert_true(w->in_order);
}

static void waiting_on_an_empty_inbox_times_out(void **state)
{
	struct world *w = *state;

	assert_int_equal(inbox_wait(w->in, 1), 0);
	assert_int_equal(inbox_wait(w->in, 0), 0);
	assert_int_equal(w->nr_came, 0);
}

static void put_again(void *ctx, void *what, int value)
{
	struct world *w = ctx;

	came(ctx, what, value);
	if (value < PER_PUTTER)
		inbox_put(w->in, what, value + 1);
}

static void stop(void *ctx)
{
	struct world *w = ctx;

	loop_stop(w->l);
}

/* Each item brings the next, as calls do that are answered at once. */
static void a_flood_leaves_timers_their_turn(void **state)
{
	struct world *w = *state;
	struct loop_timer *t = loop_timer_new(w->l, stop, w);

	inbox_close(w->in);
	w->in = inbox_new(w->l, CAPACITY, put_again, w);
	inbox_put(w->in, &w->last[0], 1);
	loop_timer_set(t, 0);
	loop_run(w->l);
	assert_in_range(w->nr_came, 0, 2 * CAPACITY);
	w->want = PER_PUTTER;
	loop_run(w->l);
	assert_int_equal(w->nr_came, PER_PUTTER);
	assert_true(w->in_order);
	loop_timer_close(t);
}

static void items_left_at_the_close_are_dropped(void **state)
{
	struct world *w = *state;

	inbox_put(w->in, &w->last[0], 1);
	inbox_close(w->in);
	w->in = NULL;
	loop_timer_close(w->deadline);
	loop_run(w->l); /* nothing is left to wait for */
	assert_int_equal(w->nr_came, 0);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(items_of_each_thread_arrive_in_order),
		CASE(a_thread_that_puts_into_a_full_inbox_waits),
		CASE(waiting_on_an_empty_inbox_times_out),
		CASE(a_flood_leaves_timers_their_turn),
		CASE(items_left_at_the_close_are_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
