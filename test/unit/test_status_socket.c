/* The socket that `numafit status` asks, among clients that ask for nothing. */
#include "daemon_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <cmocka.h>

enum { CLIENTS = 100, TIMEOUT_S = 20 };

static int connect_to(const struct daemon_rig *g)
{
	static const struct timeval patience = {.tv_sec = TIMEOUT_S};
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(
		snprintf(at.sun_path, sizeof at.sun_path, "%.80s/run/numafitd.sock", g->dir) > 0);
	for (unsigned i = 0; connect(fd, (struct sockaddr *)&at, sizeof at); i++) {
		assert_true(i < TIMEOUT_S * 100);
		(void)usleep(10000); /* until it listens */
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	return fd;
}

static void a_client_that_asks_for_nothing_is_disconnected(void **state)
{
	static const char question[] = "status\n";
	struct daemon_rig g;
	int fd[CLIENTS];
	char answer[16];

	(void)state;
	rig_init(&g);
	rig_start(&g);
	for (unsigned i = 0; i < CLIENTS; i++) {
		fd[i] = connect_to(&g);
		assert_true(i % 2 || write(fd[i], "st", 2) == 2);
	}
	int asker = connect_to(&g);
	assert_int_equal(write(asker, question, sizeof question - 1), sizeof question - 1);
	assert_true(read(asker, answer, sizeof answer) > 0);
	assert_int_equal(*answer, '{');
	for (unsigned i = 0; i < CLIENTS; i++) {
		ssize_t n = read(fd[i], answer, 1);

		assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
		(void)close(fd[i]);
	}
	(void)close(asker);
	assert_int_equal(rig_end(&g, SIGTERM), 0);
	rig_fini(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_that_asks_for_nothing_is_disconnected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
