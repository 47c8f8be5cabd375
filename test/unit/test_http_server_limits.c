/* What io/http_server does with clients that are slow, silent, greedy or too many: each limit and
 * budget. */
#include "http_server_rig.h"

#include <sys/epoll.h>
#include <sys/syscall.h>

/* That many connections libmicrohttpd cannot watch, as when the kernel has no room for another
 * watch: it has told of them by then. Nobody else asks for these events. */
static unsigned nr_unwatched;

__attribute__((visibility("default"))) int epoll_ctl(
	int epfd, int op, int fd, struct epoll_event *event)
{
	const uint32_t watched = EPOLLIN | EPOLLOUT | EPOLLET;

	if (op == EPOLL_CTL_ADD && nr_unwatched && (event->events & watched) == watched) {
		nr_unwatched--;
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_epoll_ctl, epfd, op, fd, event);
}

static void crowd(struct world *w)
{
	int fd[HUNDRED];

	for (int i = 0; i < HUNDRED; i++)
		fd[i] = dial(w);
	for (int i = 0; i < HUNDRED; i++)
		ask(fd[i], "GET /all HTTP/1.1\r\n" END);
	for (int i = 0; i < HUNDRED; i++)
		hear_all(w, fd[i]);
}

static void a_hundred_clients_are_served_at_once(void **state)
{
	struct world *w = *state;

	w->o.clients_max = HUNDRED;
	serve(w);
	assert_int_equal(count(play(w, crowd), "GET /all"), HUNDRED);
}

static void more_clients_than_there_may_be_wait(void **state)
{
	struct world *w = *state;

	w->o.clients_max = FEW;
	serve(w);
	assert_int_equal(count(play(w, crowd), "GET /all"), HUNDRED);
}

static void say_half(struct world *w)
{
	int fd = dial(w);

	ask(fd, "GET /half HTTP/1.1\r\nHost:");
	hear_all(w, fd);
}

static void drip(struct world *w)
{
	struct pollfd p = {.fd = dial(w), .events = POLLIN};
	uint64_t from = loop_monotonic_ns();

	/* a byte at a time, never still for as long as a connection may idle */
	ask(p.fd, "GET /");
	while (put(p.fd, "a", 1) && poll(&p, 1, 50) == 0)
		;
	(void)close(p.fd);
	w->len = (size_t)snprintf(w->got, sizeof w->got, "%llu",
		(unsigned long long)(loop_monotonic_ns() - from) / 1000000);
}

static void an_incomplete_request_times_out(void **state)
{
	struct world *w = *state;

	w->o.idle_s = 1;
	serve(w);
	const char *got = play(w, say_half);
	assert_true(!*got || strstr(got, " 408 "));
	assert_int_equal(w->nr_handled, 0);
}

static void a_client_that_sends_a_byte_now_and_then_times_out(void **state)
{
	struct world *w = *state;

	w->o.idle_s = 1;
	serve(w);
	unsigned long took_ms = strtoul(play(w, drip), NULL, 10);
	assert_in_range(took_ms, 1000, 10000);
	assert_int_equal(w->nr_handled, 0);
}

/* Without descriptors nobody can be let in: the loop must not spin for it. */
static uint64_t cpu_ms(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static void stop_loop(void *ctx)
{
	loop_stop(ctx);
}

static void without_file_descriptors_the_server_waits_to_accept(void **state)
{
	enum { SOME_MS = 300, MOST_CPU_MS = 150 };
	struct world *w = *state;
	struct rlimit before, none;
	struct loop_timer *timer = loop_timer_new(w->l, stop_loop, w->l);

	serve(w);
	int fd = dial(w);
	ask(fd, "GET /first HTTP/1.1\r\n" END);
	(void)getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = (rlim_t)fd + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	loop_timer_set(timer, SOME_MS);
	uint64_t from = cpu_ms();
	loop_run(w->l);
	uint64_t took = cpu_ms() - from;
	(void)setrlimit(RLIMIT_NOFILE, &before);
	loop_timer_close(timer);
	(void)close(fd);
	assert_true(took < MOST_CPU_MS);
	plain_request = "GET /next HTTP/1.1\r\n" END;
	assert_non_null(strstr(play(w, one_request), "GET /next "));
}

static void ask_often(struct world *w)
{
	for (unsigned i = 0; i <= FEW; i++)
		ask_once(w, "GET /again HTTP/1.1\r\n" END);
}

static void a_connection_that_cannot_be_watched_is_closed_once(void **state)
{
	struct world *w = *state;

	serve(w);
	nr_unwatched = FEW;
	assert_int_equal(count(play(w, ask_often), "GET /again "), 1);
	assert_int_equal(nr_unwatched, 0);
	assert_int_equal(w->nr_handled, 1);
}

static bool first_host_is_own(const struct sockaddr *a)
{
	struct sockaddr_in v4;

	memcpy(&v4, a, sizeof v4);
	return v4.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
}

static bool is_open(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};

	return poll(&p, 1, 0) == 0;
}

/* One letter each: o for open, and a dot. Then they go. */
static void note_and_leave(struct world *w)
{
	for (unsigned i = 0; i < crowded.nr; i++)
		w->got[w->len++] = is_open(crowded.fd[i]) ? 'o' : '.';
	for (unsigned i = 0; i < crowded.nr; i++)
		(void)close(crowded.fd[i]);
}

static void ask_among_slow_ones(struct world *w)
{
	come_slowly(w);
	ask_once(w, "GET /among HTTP/1.1\r\n" END);
	note_and_leave(w);
}

static void a_silent_connection_gives_way_to_one_that_asks(void **state)
{
	static const char *const says[] = {NULL, "G", "GET / HTTP/1.1\r\nHost: x\r\n"};
	struct world *w = *state;

	w->o.clients_max = FEW;
	serve(w);
	crowded.nr = HUNDRED;
	crowded.from = 1;
	for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
		crowded.says = says[i];
		const char *got = play(w, ask_among_slow_ones);
		assert_non_null(strstr(got, "GET /among "));
		assert_null(strchr(strstr(got, "len=0\n"), '.')); /* at nobody's expense */
	}
	assert_int_equal(http_server_counts(w->server).crowded, 0);
}

static void the_oldest_silent_client_makes_room(void **state)
{
	enum { WAITING = 16, KEPT = 2 };
	struct world *w = *state;

	w->o.waiting_max = WAITING;
	w->o.is_own = nobody_is_own;
	serve(w);
	crowded.says = NULL;
	crowded.nr = HUNDRED;
	crowded.from = 0;
	const char *got = play(w, ask_among_slow_ones);
	assert_non_null(strstr(got, "GET /among "));
	const char *slow = strstr(got, "len=0\n") + strlen("len=0\n");
	size_t gone = strspn(slow, "."), left = strspn(slow + gone, "o");
	assert_int_equal(gone + left, HUNDRED); /* in the order of their coming */
	assert_in_range(left, WAITING - KEPT - 1, WAITING - KEPT); /* one, if the asker's bytes
								      came behind itself */
	assert_int_equal(http_server_counts(w->server).crowded, gone);
}

static void come_after_another_source(struct world *w)
{
	int first = dial_from(w, HUNDRED + 50);

	come_slowly(w);
	ask_once(w, "GET /among HTTP/1.1\r\n" END);
	w->got[w->len++] = is_open(first) ? '+' : '-';
	(void)close(first);
	note_and_leave(w);
}

static void connections_of_one_address_do_not_push_out_those_of_another(void **state)
{
	enum { WAITING = 16, OF_ONE = 8 };
	struct world *w = *state;

	w->o.waiting_max = WAITING;
	w->o.is_own = nobody_is_own;
	serve(w);
	crowded.says = NULL;
	crowded.nr = HUNDRED;
	crowded.from = 2;
	const char *got = play(w, come_after_another_source);
	const char *slow = strstr(got, "len=0\n") + strlen("len=0\n");
	assert_int_equal(*slow, '+');
	assert_int_equal(count(slow, "o"), OF_ONE);
}

static void come_after_this_host(struct world *w)
{
	int first[2] = {dial(w), dial(w)};

	come_slowly(w);
	ask_once(w, "GET /among HTTP/1.1\r\n" END);
	w->got[w->len++] = is_open(first[0]) && is_open(first[1]) ? '+' : '-';
	(void)close(first[0]);
	(void)close(first[1]);
	note_and_leave(w);
}

static void others_hold_all_they_may(struct world *w)
{
	come_slowly(w);
	await_handled(w, FEW - 1);
	ask_once(w, "GET /own HTTP/1.1\r\n" END);
	w->got[w->len++] = (char)('0' + w->nr_held);
	ask_once(w, "GET /release HTTP/1.1\r\n" END);
	note_and_leave(w);
}

static void some_connections_are_reserved_for_this_host(void **state)
{
	enum { WAITING = 16 };
	struct world *w = *state;

	w->o.waiting_max = WAITING;
	w->o.clients_max = FEW;
	w->o.is_own = first_host_is_own;
	serve(w);
	crowded.says = NULL;
	crowded.nr = HUNDRED;
	crowded.from = 0;
	const char *got = play(w, come_after_this_host);
	assert_int_equal(strstr(got, "len=0\n")[strlen("len=0\n")], '+');
	w->nr_handled = 0;
	crowded.says = "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n";
	crowded.nr = FEW + 2;
	got = play(w, others_hold_all_they_may);
	assert_non_null(strstr(got, "GET /own "));
	assert_int_equal(strstr(got, "len=0\n")[strlen("len=0\n")], '0' + FEW - 1);
}

static void wait_for_the_end(struct world *w)
{
	come_slowly(w);
	for (unsigned i = 0; i < crowded.nr; i++)
		hear_all(w, crowded.fd[i]);
}

static void a_client_that_asks_for_nothing_is_disconnected(void **state)
{
	static const char *const says[] = {NULL, "G", "GET / HTTP/1.1\r\nHost: x\r\n"};
	struct world *w = *state;

	w->o.first_ms = 50;
	serve(w);
	crowded.nr = FEW;
	crowded.from = 1;
	for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
		crowded.says = says[i];
		assert_string_equal(play(w, wait_for_the_end), "");
	}
	assert_int_equal(w->nr_handled, 0);
	assert_int_equal(http_server_counts(w->server).slow, FEW * 3);
}

static void an_unfinished_body_times_out(void **state)
{
	struct world *w = *state;

	w->o.request_ms = 50;
	serve(w);
	crowded.nr = FEW;
	crowded.says = "POST /f HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab";
	crowded.from = 1;
	assert_string_equal(play(w, wait_for_the_end), "");
	assert_int_equal(w->nr_handled, 0);
	assert_int_equal(http_server_counts(w->server).slow, FEW);
}

static void send_bodies(struct world *w)
{
	char rest[TINY_BODY] = {0};

	memset(rest, 'x', sizeof rest - 1);
	come_slowly(w);
	for (unsigned i = 0; i < crowded.nr; i++) /* the announced counts, not what has come */
		must(hear(w, crowded.fd[i], "HTTP/1.1 100 Continue\r\n\r\n"), "to go on");
	ask_once(w, "POST /more HTTP/1.1\r\nContent-Length: 1000\r\n" END);
	ask_once(w, "GET /none HTTP/1.1\r\n" END);
	ask(crowded.fd[0], rest);
	ask(crowded.fd[0], "x");
	must(hear(w, crowded.fd[0], "len=1000\n"), "an answer");
	int fd = dial(w);
	ask(fd, "POST /again HTTP/1.1\r\nContent-Length: 1000\r\n" END);
	ask(fd, rest);
	ask(fd, "x");
	hear_all(w, fd);
	note_and_leave(w);
}

static void all_request_bodies_share_one_budget(void **state)
{
	struct world *w = *state;

	w->o.body_max = TINY_BODY;
	w->o.held_max = FEW * (TINY_BODY + 1);
	serve(w);
	crowded.nr = FEW;
	crowded.says = "POST /f HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
		       "Expect: 100-continue\r\n\r\n";
	crowded.from = 1;
	const char *got = play(w, send_bodies);
	assert_non_null(strstr(got, "HTTP/1.1 503 "));
	assert_non_null(strstr(got, "Retry-After: 1\r\n"));
	assert_null(strstr(got, "POST /more "));
	assert_non_null(strstr(got, "GET /none "));
	assert_non_null(strstr(got, "POST /again "));
	assert_int_equal(http_server_counts(w->server).refused, 1);
}

static void send_chunks(struct world *w)
{
	char chunk[TINY_BODY] = {0};

	memset(chunk, 'x', sizeof chunk);
	come_slowly(w);
	int fd = dial(w);
	ask(fd, "POST /more HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END);
	for (unsigned i = 0; i < 16; i++) {
		(void)put(fd, "3e8\r\n", 5);
		(void)put(fd, chunk, sizeof chunk);
		(void)put(fd, "\r\n", 2);
	}
	(void)put(fd, "0\r\n\r\n", 5);
	hear_all(w, fd);
	note_and_leave(w);
}

static void a_body_of_no_known_length_counts_as_it_grows(void **state)
{
	struct world *w = *state;

	w->o.body_max = 16 * TINY_BODY;
	w->o.held_max = 16 * TINY_BODY + 1;
	serve(w);
	crowded.nr = 0;
	assert_non_null(strstr(play(w, send_chunks), "POST /more "));
	crowded.nr = 1;
	crowded.says = "POST /f HTTP/1.1\r\nHost: x\r\nContent-Length: 6000\r\n\r\nab";
	crowded.from = 1;
	assert_non_null(strstr(play(w, send_chunks), "HTTP/1.1 503 "));
	assert_int_equal(http_server_counts(w->server).refused, 1);
}

static void do_not_read(struct world *w)
{
	come_slowly(w);
	await_handled(w, crowded.nr);
	ask_once(w, "GET /small HTTP/1.1\r\n" END);
	note_and_leave(w);
}

/* What they do not take is held for them, within the same budget. */
static void unread_answers_share_one_budget(void **state)
{
	enum { HELD = 3 };
	struct world *w = *state;

	w->o.held_max = HELD * SOME_LARGE + SOME_LARGE / 2;
	serve(w);
	crowded.nr = HUNDRED / 2;
	crowded.says = "GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
	crowded.from = 1;
	const char *got = play(w, do_not_read);
	assert_non_null(strstr(got, "GET /small "));
	assert_int_equal(http_server_counts(w->server).refused, HUNDRED / 2 - HELD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_hundred_clients_are_served_at_once),
		CASE(more_clients_than_there_may_be_wait),
		CASE(an_incomplete_request_times_out),
		CASE(a_client_that_sends_a_byte_now_and_then_times_out),
		CASE(without_file_descriptors_the_server_waits_to_accept),
		CASE(a_connection_that_cannot_be_watched_is_closed_once),
		CASE(a_silent_connection_gives_way_to_one_that_asks),
		CASE(the_oldest_silent_client_makes_room),
		CASE(connections_of_one_address_do_not_push_out_those_of_another),
		CASE(some_connections_are_reserved_for_this_host),
		CASE(a_client_that_asks_for_nothing_is_disconnected),
		CASE(an_unfinished_body_times_out),
		CASE(all_request_bodies_share_one_budget),
		CASE(a_body_of_no_known_length_counts_as_it_grows),
		CASE(unread_answers_share_one_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
