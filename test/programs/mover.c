/* Moves a cgroup's memory by what numafitd does it with, and is a process whose memory can be
 * moved; for test/e2e, in a virtual machine. usage: mover touch CGROUP MIB     join that cgroup (a
 * path), touch so much memory, and count; each line on standard input is answered with the longest
 * pause since the last one mover write CGROUP MEMS    set cpuset.mems of that cgroup (below the
 * root of all) Each line that they print begins with what it is, then NAME=VALUE. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <host/cgroup_memory.h>
#include <host/discover.h>
#include <host/mems_write.h>
#include <numafit/move_rate.h>
#include <numafit/number.h>

enum { PAGE = 4096, DECIMAL = 10, TICK_MS = 5, TICKS_OF_LOOK = 4 };

static int fail(const char *what)
{
	perror(what);
	return EXIT_FAILURE;
}

/* The process that is moved */

static int join(const char *cgroup)
{
	char path[CGROUP_PATH_MAX];

	(void)snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, "0", 1);
	if (fd >= 0)
		(void)close(fd);
	return n == 1 ? 0 : -1;
}

/* Whether somebody asks; *ended: nobody will any more. */
static bool is_asked(bool *ended)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char line[PAGE];

	if (poll(&in, 1, 0) != 1)
		return false;
	*ended = read(STDIN_FILENO, line, sizeof line) <= 0;
	return !*ended;
}

/* Touch pages here and there, a few between two looks at the clock; a pause is what passes between
 * these. */
static void count(volatile unsigned char *at, size_t pages)
{
	enum { TOUCHES = 16, STRIDE = 7919 };
	uint64_t now = loop_monotonic_ns(), since = now, longest = 0, touches = 0;
	bool ended = false;

	for (size_t page = 0; !ended; touches += TOUCHES) {
		for (int i = 0; i < TOUCHES; i++, page = (page + STRIDE) % pages)
			at[page * PAGE]++;
		uint64_t then = now;
		now = loop_monotonic_ns();
		longest = number_max(longest, now - then);
		if (!is_asked(&ended))
			continue;
		(void)printf("counted pause_us=%llu touches=%llu us=%llu\n",
			(unsigned long long)(longest / NS_PER_US), (unsigned long long)touches,
			(unsigned long long)((now - since) / NS_PER_US));
		now = since = loop_monotonic_ns();
		longest = touches = 0;
	}
}

static int touch(const char *cgroup, const char *mib)
{
	size_t bytes = strtoul(mib, NULL, DECIMAL) << 20;

	if (join(cgroup))
		return fail(cgroup);
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED || madvise(at, bytes, MADV_NOHUGEPAGE))
		return fail("memory");
	memset(at, 1, bytes);
	(void)printf("ready at=%llx\n", (unsigned long long)(uintptr_t)at);
	count(at, bytes / PAGE);
	return 0;
}

/* What moves it */

struct mover {
	struct loop *l;
	struct loop_timer *tick;
	struct mems_write *w;
	struct topo topo;
	struct cgroups cgroups;
	const char *cgroup;
	struct nodeset to;
	uint64_t all, before,
		last;             /* bytes everywhere, and on the NUMA nodes where they are to be */
	uint64_t ticked, longest; /* ns: the last tick, and the longest time between two */
	uint64_t reading;         /* ns: the longest one of memory.numa_stat */
	unsigned ticks, steps;    /* readings in the middle that differ from the one before */
	struct mems_written got;
	struct err error;
};

static uint64_t bytes_on(struct mover *m, struct nodeset nodes)
{
	struct cgroup_memory now;

	if (cgroup_memory_read(&m->cgroups.memory, m->cgroup, &m->topo, &now, &m->error)) {
		(void)fprintf(stderr, "%s\n", m->error.text);
		exit(EXIT_FAILURE);
	}
	return cgroup_memory_on(&now, nodes).in_use;
}

/* Readings take the kernel long while pages move. Some pages are there from the beginning, and the
 * last ones may be counted later. */
static void look(struct mover *m)
{
	enum { PARTS = 16 };
	uint64_t began = loop_monotonic_ns(), there = bytes_on(m, m->to);

	m->reading = number_max(m->reading, loop_monotonic_ns() - began);
	if (there != m->last && there > m->all / PARTS && there < m->all - m->all / PARTS) {
		(void)printf("moving bytes=%llu\n", (unsigned long long)there);
		m->steps++;
	}
	m->last = there;
}

static void on_tick(void *ctx)
{
	struct mover *m = ctx;
	uint64_t now = loop_monotonic_ns();

	m->longest = number_max(m->longest, now - m->ticked);
	m->ticked = now;
	if (m->ticks++ % TICKS_OF_LOOK == 0)
		look(m);
	loop_timer_set(m->tick, TICK_MS);
}

static void on_written(void *ctx, const struct mems_written *got)
{
	struct mover *m = ctx;

	m->got = *got;
	m->longest = number_max(m->longest, loop_monotonic_ns() - m->ticked);
	loop_stop(m->l);
}

static void on_term(void *ctx)
{
	struct mover *m = ctx;

	loop_stop(m->l);
}

static int report(struct mover *m)
{
	uint64_t moved = bytes_on(m, m->to) - m->before;
	struct move_rate rate = {0};

	if (m->got.rc)
		(void)fprintf(stderr, "%s\n", m->got.error.text);
	move_rate_note(&rate, moved, m->got.ns);
	(void)printf("moved rc=%d us=%llu bytes=%llu rate=%llu ticks=%u pause_us=%llu "
		     "reading_us=%llu steps=%u\n",
		m->got.rc, (unsigned long long)(m->got.ns / NS_PER_US), (unsigned long long)moved,
		(unsigned long long)rate.bytes_per_s, m->ticks,
		(unsigned long long)(m->longest / NS_PER_US),
		(unsigned long long)(m->reading / NS_PER_US), m->steps);
	return m->got.rc ? EXIT_FAILURE : 0;
}

static int prepare(struct mover *m, const char *cgroup, const char *mems)
{
	int rc = machine_load("this", &m->topo, NULL, NULL, &m->error);

	if (!rc)
		rc = cgroups_find("/", &m->cgroups, &m->error);
	if (!rc)
		rc = nodeset_parse(&m->to, &m->topo.ids, mems, strlen(mems), &m->error);
	if (rc)
		return rc;
	m->cgroup = cgroup;
	m->l = loop_new();
	m->tick = loop_timer_new(m->l, on_tick, m);
	m->w = mems_write_new(m->l, on_written, m);
	return loop_on_signal(m->l, SIGTERM, on_term, m);
}

static int start(struct mover *m, const char *mems)
{
	struct cgroup_tree cpuset = {.v2 = m->cgroups.v2};

	memcpy(cpuset.root, m->cgroups.root, sizeof cpuset.root);
	m->all = bytes_on(m, m->topo.nodes);
	m->before = m->last = bytes_on(m, m->to);
	m->ticked = loop_monotonic_ns();
	loop_timer_set(m->tick, TICK_MS);
	return mems_write_start(m->w, &cpuset, m->cgroup, mems, &m->error);
}

static int write_mems(const char *cgroup, const char *mems)
{
	static struct mover m;

	if (prepare(&m, cgroup, mems) || start(&m, mems)) {
		(void)fprintf(stderr, "%s\n", m.error.text);
		return EXIT_FAILURE;
	}
	loop_run(m.l);
	bool is_under_way = mems_write_is_busy(m.w);
	uint64_t began = loop_monotonic_ns();
	mems_write_free(m.w);
	loop_free(m.l);
	(void)printf(
		"freed us=%llu\n", (unsigned long long)((loop_monotonic_ns() - began) / NS_PER_US));
	return is_under_way ? 0 : report(&m);
}

int main(int argc, char **argv)
{
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 4 && strcmp(argv[1], "touch") == 0)
		return touch(argv[2], argv[3]);
	if (argc == 4 && strcmp(argv[1], "write") == 0)
		return write_mems(argv[2], argv[3]);
	(void)fputs("usage: mover touch CGROUP MIB | mover write CGROUP MEMS\n", stderr);
	return EXIT_FAILURE;
}
