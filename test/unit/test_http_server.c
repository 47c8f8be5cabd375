#include "http_server_rig.h"

static void the_request_reaches_the_handler(void **state)
{
	static const struct {
		const char *in, *want;
	} cases[] = {
		{"GET /a HTTP/1.1\r\n" END, "\r\n\r\nGET /a query= type= body= len=0\n"},
		{"GET /a?verbose HTTP/1.1\r\n" END, "\nGET /a query=verbose type="},
		{"GET /a%2500?%00 HTTP/1.1\r\n" END, "\nGET /a%00 query=%00 type="},
		{"GET /a%62?x=%20y&z HTTP/1.1\r\n" END, "\nGET /ab query=x=%20y&z type="},
		{"POST /f HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 3\r\n" END
		 "abc",
			"POST /f query= type=application/json body=abc len=3\n"},
		{"POST /f HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END
		 "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n",
			"body=abcde len=5\n"},
		{"DELETE /a HTTP/1.1\r\n" END, "\nDELETE /a "},
		{"GET /a HTTP/1.0\r\n\r\n", "\nGET /a "},
		{"GET /a HTTP/1.1\r\n" END, "\r\nX-Extra: yes\r\n"},
		{"GET /a HTTP/1.1\r\n" END, "\r\nX-More: a: b\r\n"},
		{"GET /a HTTP/1.1\r\n" END, "\r\nContent-Type: text/plain\r\n"},
	};
	struct world *w = *state;

	serve(w);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		plain_request = cases[i].in;
		const char *got = play(w, one_request);
		if (!strstr(got, cases[i].want) || strncmp(got, "HTTP/1.1 200 ", 13) != 0)
			fail_msg("asked %s\ngot %s", cases[i].in, got);
	}
	assert_true(w->local);
}

static void a_malformed_http_request_is_refused(void **state)
{
	static char long_uri[96 << 10], long_header[96 << 10];
	const struct {
		const char *in, *want;
	} cases[] = {
		{"nonsense\r\n\r\n", ""},                    /* closed */
		{"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "}, /* no Host */
		{"GET / HTTP/9.1\r\n" END, "HTTP/1."},
		{"GET / HTTP/1.1\r\nHost: a\r\n" END, "HTTP/1.1 400 "}, /* two of them */
		{"GET / HTTP/1.1\r\nhOST: x\r\n" END, "HTTP/1.1 400 "},
		{"POST /f HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n" END "ab",
			"HTTP/1.1 400 "},
		{"POST /f HTTP/1.1\r\nContent-Type: a\r\nContent-Type: b\r\n" END, "HTTP/1.1 400 "},
		{"GET /f HTTP/1.1\r\nSec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n" END,
			"HTTP/1.1 400 "},
		{"GET /api/status%00x HTTP/1.1\r\n" END, "HTTP/1.1 400 "},
		{"GET /%0a HTTP/1.1\r\n" END, "HTTP/1.1 400 "},
		{"GET /a%1F?b HTTP/1.1\r\n" END, "HTTP/1.1 400 "},
		{"GET /%7F HTTP/1.1\r\n" END, "HTTP/1.1 400 "},
		{"GET /\x01 HTTP/1.1\r\n" END, "HTTP/1.1 400 "},
		{long_uri, "HTTP/1.1 414 "},
		{long_header, "HTTP/1.1 431 "},
		{"POST /f HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END "zz\r\n",
			"HTTP/1.1 400 "},
	};
	struct world *w = *state;

	memset(long_uri, 'a', sizeof long_uri - 1);
	memcpy(long_uri, "GET /", 5);
	memset(long_header, 'a', sizeof long_header - 1);
	memcpy(long_header, "GET / HTTP/1.1\r\nX: ", 19);
	serve(w);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		plain_request = cases[i].in;
		const char *got = play(w, one_request);
		if (strncmp(got, cases[i].want, strlen(cases[i].want)) != 0 || w->nr_handled)
			fail_msg("asked %.100s\ngot %s", cases[i].in, got);
	}
}

static void head_gets_no_body(void **state)
{
	struct world *w = *state;

	serve(w);
	plain_request = "HEAD /a HTTP/1.1\r\n" END;
	const char *got = play(w, one_request);
	assert_non_null(strstr(got, "HTTP/1.1 200 "));
	assert_non_null(strstr(got, "Content-Length: "));
	assert_string_equal(strstr(got, "\r\n\r\n"), "\r\n\r\n");
}

static void pipeline(struct world *w)
{
	ask_once(w, "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nPOST /2 HTTP/1.1\r\nHost: x\r\n"
		    "Content-Length: 2\r\n\r\nhiGET /3 HTTP/1.1\r\n" END);
}

static void several_requests_may_arrive_at_once(void **state)
{
	struct world *w = *state;

	serve(w);
	const char *got = play(w, pipeline);
	const char *one = strstr(got, "GET /1 "), *two = strstr(got, "POST /2 "),
		   *three = strstr(got, "GET /3 ");
	assert_true(one && two && three && one < two && two < three);
	assert_non_null(strstr(two, "body=hi len=2"));
}

static void byte_by_byte(struct world *w)
{
	static const char text[] = "POST /slow HTTP/1.1\r\nContent-Length: 5\r\n" END "12345";
	const int on = 1;
	int fd = dial(w);

	(void)setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof on);
	for (size_t i = 0; i < sizeof text - 1; i++)
		must(put(fd, text + i, 1), "send");
	hear_all(w, fd);
}

static void a_request_may_arrive_byte_by_byte(void **state)
{
	struct world *w = *state;

	serve(w);
	assert_non_null(strstr(play(w, byte_by_byte), "POST /slow query= type= body=12345 len=5"));
}

static void connections_are_kept(struct world *w)
{
	int fd = dial(w);

	for (int i = 0; i < HUNDRED; i++) {
		ask(fd, "GET /again HTTP/1.1\r\nHost: x\r\n\r\n");
		must(hear(w, fd, "len=0\n"), "an answer");
	}
	(void)close(fd);
}

static void a_hundred_requests_go_through_one_connection(void **state)
{
	struct world *w = *state;

	serve(w);
	assert_int_equal(count(play(w, connections_are_kept), "GET /again"), HUNDRED);
}

static void announced(struct world *w)
{
	ask_once(w, "POST /f HTTP/1.1\r\nContent-Length: 1001\r\n" END);
}

static void chunked(struct world *w)
{
	char chunk[TINY_BODY + 1];
	int fd = dial(w);

	memset(chunk, 'x', sizeof chunk);
	ask(fd, "POST /f HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END "3e9\r\n");
	must(put(fd, chunk, sizeof chunk), "send");
	ask(fd, "\r\n0\r\n\r\n");
	hear_all(w, fd);
}

static void never_ending(struct world *w)
{
	char chunk[TINY_BODY];
	int fd = dial(w);

	memset(chunk, 'x', sizeof chunk);
	ask(fd, "POST /f HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END "ffffffff\r\n");
	while (put(fd, chunk, sizeof chunk))
		;
	hear_all(w, fd);
}

static void fits(struct world *w)
{
	char body[TINY_BODY];
	int fd = dial(w);

	memset(body, 'x', sizeof body);
	ask(fd, "POST /f HTTP/1.1\r\nContent-Length: 1000\r\n" END);
	must(put(fd, body, sizeof body), "send");
	hear_all(w, fd);
}

static void bodies_have_a_limit(void **state)
{
	struct world *w = *state;

	w->o.body_max = TINY_BODY;
	serve(w);
	assert_non_null(strstr(play(w, announced), "HTTP/1.1 413 "));
	assert_non_null(strstr(play(w, chunked), "HTTP/1.1 413 "));
	assert_string_equal(play(w, never_ending), "");
	assert_int_equal(w->nr_handled, 0);
	assert_non_null(strstr(play(w, fits), "len=1000\n"));
}

static void send_never(struct world *w)
{
	ask_once(w, "POST /f HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END "ff");
}

static void a_get_request_does_not_wait_for_a_body(void **state)
{
	struct world *w = *state;

	w->o.no_body = true;
	serve(w);
	assert_non_null(strstr(play(w, announced), "POST /f query= type= body= len=0\n"));
	assert_non_null(strstr(play(w, send_never), "POST /f query= type= body= len=0\n"));
	plain_request = "GET /a HTTP/1.1\r\nContent-Length: 0\r\n" END;
	assert_non_null(strstr(play(w, one_request), "GET /a "));
}

static void send_large(struct world *w)
{
	auto_free char *body = xcalloc(LARGE, 1);
	char head[128];

	for (size_t i = 0; i < LARGE; i++)
		body[i] = (char)(i % 251);
	int fd = dial(w); /* only now: a client that is silent for 2 s is disconnected */
	(void)snprintf(head, sizeof head, "POST /f HTTP/1.1\r\nContent-Length: %d\r\n" END, LARGE);
	ask(fd, head);
	must(put(fd, body, LARGE), "send");
	hear_all(w, fd);
}

static void a_body_of_64_mib_arrives_whole(void **state)
{
	auto_free char *body = xcalloc(LARGE, 1);
	struct world *w = *state;

	for (size_t i = 0; i < LARGE; i++)
		body[i] = (char)(i % 251);
	w->o.body_max = LARGE;
	w->o.request_ms = TIMEOUT_MS;
	serve(w);
	uint64_t from = loop_monotonic_ns();
	(void)play(w, send_large);
	print_message("64 MiB took %llu ms\n",
		(unsigned long long)(loop_monotonic_ns() - from) / 1000000);
	assert_int_equal(w->body_len, LARGE);
	assert_int_equal(w->body_sum, text_crc32c(body, LARGE));
}

static void hold_then_release(struct world *w)
{
	int fd[HUNDRED];

	for (int i = 0; i < HUNDRED; i++) {
		fd[i] = dial(w);
		ask(fd[i], "GET /hold HTTP/1.1\r\n" END);
	}
	/* the request that releases them is not to come before they do */
	await_handled(w, HUNDRED);
	ask_once(w, "GET /release HTTP/1.1\r\n" END);
	for (int i = 0; i < HUNDRED; i++)
		hear_all(w, fd[i]);
}

static void answers_may_come_in_a_later_turn(void **state)
{
	struct world *w = *state;

	w->o.clients_max = 2 * HUNDRED;
	serve(w);
	const char *got = play(w, hold_then_release);
	assert_int_equal(count(got, "late\n"), HUNDRED);
	assert_int_equal(count(got, "HTTP/1.1 200 "), HUNDRED + 1);
	assert_int_equal(w->nr_gone, 0);
}

static void pipelined_holds(struct world *w)
{
	int fd = dial(w);

	ask(fd, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\nGET /after HTTP/1.1\r\n" END);
	await_handled(w, 1);
	ask_once(w, "GET /release HTTP/1.1\r\n" END);
	hear_all(w, fd);
}

static void a_request_behind_an_unanswered_one_waits_for_it(void **state)
{
	struct world *w = *state;

	serve(w);
	const char *got = play(w, pipelined_holds);
	const char *late = strstr(got, "late\n"), *after = strstr(got, "GET /after ");
	assert_true(late && after && late < after);
}

static void hang_up(struct world *w)
{
	int fd = dial(w);

	ask(fd, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
	await_handled(w, 1);
	(void)close(fd);
	if (w->o.gone)
		await(&w->nr_gone, 1);
}

static void a_client_that_hangs_up_is_reported_to_the_handler(void **state)
{
	struct world *w = *state;

	serve(w);
	(void)play(w, hang_up);
	assert_int_equal(w->nr_gone, 1);
	assert_int_equal(w->nr_held, 0);
	plain_request = "GET /next HTTP/1.1\r\n" END;
	assert_non_null(strstr(play(w, one_request), "GET /next "));
}

static void the_hangup_callback_is_optional(void **state)
{
	struct world *w = *state;

	w->o.gone = NULL;
	serve(w);
	(void)play(w, hang_up);
	assert_int_equal(w->nr_held, 1);
	answer_held(w);
	plain_request = "GET /next HTTP/1.1\r\n" END;
	assert_non_null(strstr(play(w, one_request), "GET /next "));
}

static void hold(struct world *w)
{
	int fd = dial(w);

	ask(fd, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\nGET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
	await_handled(w, 1);
	/* fd is left open: its other side is closed by the server's end, or by the process's */
}

static void a_server_may_end_before_it_has_answered(void **state)
{
	struct world *w = *state;

	serve(w);
	(void)play(w, hold);
	http_server_free(w->server);
	w->server = NULL;
	assert_int_equal(w->nr_gone, 0);
	w->o.address = "127.0.0.1:0";
	serve(w);
	plain_request = "GET /next HTTP/1.1\r\n" END;
	assert_non_null(strstr(play(w, one_request), "GET /next "));
}

/* Addresses */

static void addresses_are_read_strictly(void **state)
{
	static const struct {
		const char *in;
		int want;
	} cases[] = {
		{"", -EINVAL},
		{"9465", -EINVAL},
		{"127.0.0.1", -EINVAL},
		{"127.0.0.1:", -EINVAL},
		{"127.0.0.1:65536", -EINVAL},
		{"127.0.0.1:-1", -EINVAL},
		{"127.0.0.1: 80", -EINVAL},
		{"127.0.0.1:80x", -EINVAL},
		{"localhost:9465", -EINVAL},
		{"127.1:80", -EINVAL},
		{"::1:80", -EINVAL},
		{"[::1:80", -EINVAL},
		{"[127.0.0.1]:80", -EINVAL},
		{"[]:80", -EINVAL},
		{"[::1%lo]:80", -EINVAL},
		{"1111:2222:3333:4444:5555:6666:7777:8888:9999:80", -EINVAL},
		{"192.0.2.1:0", -EADDRNOTAVAIL}, /* TEST-NET-1: nobody has it */
		{"127.0.0.1:0", 0},
		{"127.9.9.9:0", 0},
		{":0", 0},
		{"[::]:0", 0},
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct err e = {0};
		int fd = http_listen(cases[i].in, &e);

		if ((fd < 0 ? fd : 0) != cases[i].want)
			fail_msg("%s: %d %s", cases[i].in, fd, e.text);
		if (fd < 0)
			assert_true(e.code == -fd && strstr(e.text, cases[i].in));
		if (fd >= 0) {
			assert_true(http_port_of(fd) > 0);
			(void)close(fd);
		}
	}
}

static void a_second_server_on_an_address_is_refused(void **state)
{
	struct world *w = *state;
	struct http_server_options o = w->o;
	char address[32];
	struct err e = {0};

	serve(w);
	(void)snprintf(address, sizeof address, "127.0.0.1:%u", w->port);
	o.address = address;
	assert_null(http_server_new(w->l, &o, &e));
	assert_int_equal(e.code, EADDRINUSE);
	assert_non_null(strstr(e.text, address));
	http_server_free(w->server);
	w->server = http_server_new(w->l, &o, &e);
	assert_non_null(w->server);
}

static void a_wildcard_address_also_serves_ipv4(void **state)
{
	struct world *w = *state;

	w->o.address = ":0";
	serve(w);
	plain_request = "GET /a HTTP/1.1\r\n" END;
	assert_non_null(strstr(play(w, one_request), "GET /a "));
	assert_true(w->local); /* ::ffff:127.0.0.1 */
}

static void loopback_addresses_are_recognised_as_local(void **state)
{
	static const struct {
		const char *in;
		bool want;
	} cases[] = {
		{"127.0.0.1", true},
		{"127.255.0.3", true},
		{"10.0.0.1", false},
		{"128.0.0.1", false},
		{"::1", true},
		{"::2", false},
		{"::", false},
		{"::ffff:127.0.0.1", true},
		{"::ffff:10.0.0.127", false},
		{"::127.0.0.1", false},
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct sockaddr_in v4 = {.sin_family = AF_INET};
		struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
		bool is_v6 = inet_pton(AF_INET, cases[i].in, &v4.sin_addr) != 1;

		if (is_v6)
			assert_int_equal(inet_pton(AF_INET6, cases[i].in, &v6.sin6_addr), 1);
		if (address_is_loopback(is_v6 ? (void *)&v6 : (void *)&v4) != cases[i].want)
			fail_msg("%s", cases[i].in);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_request_reaches_the_handler),
		CASE(a_malformed_http_request_is_refused),
		CASE(head_gets_no_body),
		CASE(several_requests_may_arrive_at_once),
		CASE(a_request_may_arrive_byte_by_byte),
		CASE(a_hundred_requests_go_through_one_connection),
		CASE(bodies_have_a_limit),
		CASE(a_get_request_does_not_wait_for_a_body),
		CASE(a_body_of_64_mib_arrives_whole),
		CASE(answers_may_come_in_a_later_turn),
		CASE(a_request_behind_an_unanswered_one_waits_for_it),
		CASE(a_client_that_hangs_up_is_reported_to_the_handler),
		CASE(the_hangup_callback_is_optional),
		CASE(a_server_may_end_before_it_has_answered),
		CASE(addresses_are_read_strictly),
		CASE(a_second_server_on_an_address_is_refused),
		CASE(a_wildcard_address_also_serves_ipv4),
		CASE(loopback_addresses_are_recognised_as_local),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
