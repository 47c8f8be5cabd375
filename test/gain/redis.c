#include "pages.h"
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <numafit/number.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	ABOVE_MAX = 60,
	DIRECTORY_TEXT_MAX = 84,
	PATH_TEXT_MAX = 96,
	NUMBER_MAX = 24,
	KEY_BYTES = 6000,
	VALUE_BYTES = 4096
};
enum { FIRST_REQUESTS = 10000, REQUESTS_MAX = 50000000, FILLS = 2, SLOWEST_S = 300 };
enum { TRIES = 500, TRY_NS = 20 * NS_PER_MS, OUTPUT_BYTES_MAX = 4096, P99_FIELD = 6 };

/* Of the package redis-tools: a server under another name, which it is called by in redis-server.
 * That package would start one on port 6379 as well. */
static const char server_program[] = "/usr/bin/redis-check-rdb";
static const char client_program[] = "/usr/bin/redis-benchmark";

bool redis_is_there(void)
{
	return access(server_program, X_OK) == 0 && access(client_program, X_OK) == 0;
}

struct exec {
	const char *program, *output;
	char *const *argv;
};

static void become_program(void *arg)
{
	const struct exec *x = arg;
	int out = open(x->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (out < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
		_exit(1);
	(void)execv(x->program, x->argv);
	_exit(1);
}

static char *word(const char *text)
{
	return (char *)(uintptr_t)text; /* execv() changes none */
}

/* A server that runs, and who asks it. */
struct session {
	struct run *run;
	const struct arm *arm;
	pid_t server;
	char socket[PATH_TEXT_MAX], output[PATH_TEXT_MAX];
	uint64_t seen[NODES_MAX]; /* where the server ran */
};

static bool answers(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const struct timespec moment = {.tv_nsec = TRY_NS};
	bool ok = false;

	(void)snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
	for (int i = 0; i < TRIES && !ok && !run_stopped(); i++) {
		int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		ok = s >= 0 && connect(s, (struct sockaddr *)&a, sizeof a) == 0;
		if (s >= 0)
			(void)close(s);
		if (!ok)
			(void)nanosleep(&moment, NULL);
	}
	return ok;
}

static bool start_server(struct session *s)
{
	char *const argv[] = {word("redis-server"), word("--port"), word("0"), word("--unixsocket"),
		s->socket, word("--save"), word(""), word("--appendonly"), word("no"), NULL};
	struct exec x = {server_program, "/dev/null", argv};

	s->server = run_start(s->run, s->arm, false, become_program, &x);
	return s->server > 0 && answers(s->socket);
}

/* Field 39 of /proc/PID/stat: the CPU that it ran on last. */
static void see_server(void *arg)
{
	enum { FIELD = 39, FIRST_BEHIND_NAME = 3 };
	struct session *s = arg;
	char path[PATH_TEXT_MAX], text[OUTPUT_BYTES_MAX] = "";

	(void)snprintf(path, sizeof path, "/proc/%d/stat", (int)s->server);
	FILE *f = fopen(path, "r");
	char *at = f && fgets(text, sizeof text, f) ? strrchr(text, ')') : NULL;

	for (int field = FIRST_BEHIND_NAME - 1; at && field < FIELD; field++)
		at = strchr(at + 1, ' ');
	unsigned node = node_of_cpu(s->run->g->topo, at ? atoi(at) : -1);
	if (node < NODES_MAX)
		s->seen[node]++;
	if (f)
		(void)fclose(f);
}

/* Let redis-benchmark send that many requests, so many at once; its output is in s->output. */
static bool ask_server(struct session *s, const char *what, unsigned long nr, const char *at_once)
{
	char requests[NUMBER_MAX], keys[NUMBER_MAX], bytes[NUMBER_MAX];
	char *const argv[] = {word("redis-benchmark"), word("-s"), s->socket, word("-t"),
		word(what), word("-n"), requests, word("-r"), keys, word("-d"), bytes, word("-c"),
		word("16"), word("-P"), word(at_once), word("--csv"), NULL};
	struct exec x = {client_program, s->output, argv};

	(void)snprintf(requests, sizeof requests, "%lu", nr);
	(void)snprintf(keys, sizeof keys, "%lu", (unsigned long)(s->run->g->bytes / KEY_BYTES + 1));
	(void)snprintf(bytes, sizeof bytes, "%d", VALUE_BYTES);
	pid_t pid = run_start(s->run, s->arm, true, become_program, &x);
	return pid > 0 && run_wait(pid, SLOWEST_S, see_server, s) == 0;
}

/* "GET","123456.78","0.1",...: fields 1 and, since 6.2, P99_FIELD. */
static bool read_figures(const char *path, double *rate, double *p99)
{
	char text[OUTPUT_BYTES_MAX];
	FILE *f = fopen(path, "r");
	size_t len = f ? fread(text, 1, sizeof text - 1, f) : 0;

	if (f)
		(void)fclose(f);
	text[len] = '\0';
	char *at = strstr(text, "\"GET\"");
	*rate = *p99 = 0;
	for (int field = 1; at && field <= P99_FIELD; field++) {
		at = strstr(at, ",\"");
		at = at ? at + 2 : NULL;
		if (at && (field == 1 || field == P99_FIELD))
			*(field == 1 ? rate : p99) = strtod(at, NULL);
	}
	return *rate > 0;
}

static bool ask_and_read(struct session *s, double *rate, double *p99)
{
	struct run *r = s->run;

	if (!r->redis_requests) {
		if (!ask_server(s, "get", FIRST_REQUESTS, "1") ||
			!read_figures(s->output, rate, p99))
			return false;
		double nr = *rate * r->g->seconds;
		r->redis_requests = nr < 1000           ? 1000
				    : nr > REQUESTS_MAX ? REQUESTS_MAX
							: (unsigned long)nr;
	}
	memset(s->seen, 0, sizeof s->seen);
	return ask_server(s, "get", r->redis_requests, "1") && read_figures(s->output, rate, p99);
}

static void measure_in(struct session *s)
{
	struct gain *g = s->run->g;
	struct sample *out = s->run->shared;
	unsigned long fill = g->bytes / KEY_BYTES * FILLS + 1;
	double share[NODES_MAX] = {0}, pages = 0;

	if (!start_server(s) || !ask_server(s, "set", fill, "32") ||
		!ask_and_read(s, &out->value[0], &out->value[1])) {
		(void)snprintf(out->why, sizeof out->why, "redis-server or redis-benchmark failed");
		return;
	}
	pages_by_maps(g->topo, s->server, NULL, out->pages);
	for (unsigned n = 0; n < NODES_MAX; n++)
		pages += (double)out->pages[n];
	for (unsigned n = 0; n < NODES_MAX && pages > 0; n++)
		share[n] = (double)out->pages[n] / pages;
	out->has_remote = pages > 0;
	out->remote = pages_remote(share, s->seen);
	out->done = true;
}

void redis_measure(struct run *r, const struct arm *arm)
{
	struct session s = {.run = r, .arm = arm};
	char dir[DIRECTORY_TEXT_MAX];
	const char *above = getenv("TMPDIR");

	if (!above || strlen(above) > ABOVE_MAX) /* a socket's path has 107 bytes at most */
		above = "/tmp";
	(void)snprintf(dir, sizeof dir, "%s/numafit-gain.XXXXXX", above);
	if (!mkdtemp(dir)) {
		(void)snprintf(
			r->shared->why, sizeof r->shared->why, "%s: %s", dir, strerror(errno));
		return;
	}
	(void)snprintf(s.socket, sizeof s.socket, "%s/socket", dir);
	(void)snprintf(s.output, sizeof s.output, "%s/output", dir);
	measure_in(&s);
	run_kill(s.server);
	(void)unlink(s.socket);
	(void)unlink(s.output);
	(void)rmdir(dir);
}
