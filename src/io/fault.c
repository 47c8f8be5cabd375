#include <io/fault.h>

#ifdef NUMAFIT_FAULTS

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NAME_MAX_BYTES = 32, DECIMAL = 10, MS_PER_SECOND = 1000, NS_PER_MILLI = 1000000 };

static const struct {
	const char *name;
	int error; /* 0: the process dies */
} faults[NR_FAULTS_AND_ERRORS] = {
	[FAULT_FRAME_READ] = {"frame-read", 0},
	[FAULT_TO_DECIDE] = {"to-decide", 0},
	[FAULT_TO_APPEND] = {"to-append", 0},
	[FAULT_HALF_LINE] = {"half-line", 0},
	[FAULT_APPENDED] = {"appended", 0},
	[FAULT_COMMITTED] = {"committed", 0},
	[FAULT_ENCODED] = {"encoded", 0},
	[FAULT_QUEUED] = {"queued", 0},
	[FAULT_HALF_ANSWER] = {"half-answer", 0},
	[FAULT_ANSWERED] = {"answered", 0},
	[FAULT_TO_ALLOCATE] = {"to-allocate", 0},
	[FAULT_ALLOCATED] = {"allocated", 0},
	[FAULT_TO_PREPARE] = {"to-prepare", 0},
	[FAULT_PREPARED] = {"prepared", 0},
	[FAULT_BETWEEN_LINES] = {"between-lines", 0},
	[FAULT_TO_WRITE_CGROUP] = {"to-write-cgroup", 0},
	[FAULT_CGROUP_WRITTEN] = {"cgroup-written", 0},
	[FAULT_TO_WRITE_MEMS] = {"to-write-mems", 0},
	[FAULT_MEMS_WRITTEN] = {"mems-written", 0},
	[FAULT_TO_WRITE_TUNABLE] = {"to-write-tunable", 0},
	[FAULT_TUNABLE_WRITTEN] = {"tunable-written", 0},
	[FAULT_ENOSPC] = {"enospc", ENOSPC},
	[FAULT_EIO] = {"eio", EIO},
	[FAULT_EROFS] = {"erofs", EROFS},
};

/* What the environment chose, once looked at. */
static struct {
	bool known, half;
	enum fault fault; /* NR_FAULTS_AND_ERRORS: none */
	unsigned nth, times, passes;
} chosen;

const char *fault_name(enum fault f)
{
	return faults[f].name;
}

/* A test that asks for what there is not must not pass for a test. */
static void fault_choose(void)
{
	const char *text = getenv("NUMAFIT_FAULT");
	char name[NAME_MAX_BYTES] = "";

	chosen.known = true;
	chosen.fault = NR_FAULTS_AND_ERRORS;
	chosen.nth = chosen.times = 1;
	if (!text)
		return;
	(void)sscanf(text, "%31[^:]:%u:%u", name, &chosen.nth, &chosen.times);
	for (unsigned f = 0; f < NR_FAULTS_AND_ERRORS; f++)
		if (strcmp(faults[f].name, name) == 0)
			chosen.fault = (enum fault)f;
	if (chosen.fault == NR_FAULTS_AND_ERRORS)
		abort();
}

void fault_look_again(void)
{
	memset(&chosen, 0, sizeof chosen);
}

static bool fault_is_due(enum fault f)
{
	if (!chosen.known)
		fault_choose();
	if (f != chosen.fault)
		return false;
	chosen.passes++;
	return chosen.passes >= chosen.nth && chosen.passes - chosen.nth < chosen.times;
}

static void fault_die(void)
{
	(void)raise(SIGKILL);
}

void fault_point(enum fault f)
{
	if (fault_is_due(f))
		fault_die();
}

size_t fault_half(enum fault f, size_t len)
{
	chosen.half = fault_is_due(f);
	return chosen.half ? len / 2 : len;
}

void fault_half_done(void)
{
	if (chosen.half)
		fault_die();
}

int fault_of_write(void)
{
	for (unsigned f = NR_DEATHS; f < NR_FAULTS_AND_ERRORS; f++)
		if (fault_is_due((enum fault)f))
			return faults[f].error;
	return 0;
}

static size_t fewer_bytes(const char *variable, size_t max)
{
	const char *text = getenv(variable);
	size_t bytes = text ? strtoul(text, NULL, DECIMAL) : max;

	return bytes && bytes < max ? bytes : max;
}

size_t fault_line_bytes(size_t max)
{
	return fewer_bytes("NUMAFIT_FAULT_LINE", max);
}

size_t fault_update_bytes(size_t max)
{
	return fewer_bytes("NUMAFIT_FAULT_UPDATES", max);
}

void fault_move_pages(void)
{
	const char *text = getenv("NUMAFIT_FAULT_MEMS_MS");
	const unsigned long ms = text ? strtoul(text, NULL, DECIMAL) : 0;

	(void)nanosleep(&(const struct timespec){(time_t)(ms / MS_PER_SECOND),
				(long)(ms % MS_PER_SECOND) * NS_PER_MILLI},
		NULL);
}

uint64_t fault_time_ms(const char *variable, uint64_t ms)
{
	const char *text = getenv(variable);

	return text ? strtoul(text, NULL, DECIMAL) : ms;
}

bool fault_has_root(void)
{
	return getenv("NUMAFIT_FAULT_ROOT") != NULL;
}

int fault_write_whole(const char *path, const char *text)
{
	char aside[PATH_MAX];

	(void)snprintf(aside, sizeof aside, "%s.%lx", path, (unsigned long)pthread_self());
	FILE *f = fopen(aside, "we");
	if (!f)
		return -errno;
	bool written = fputs(text, f) >= 0;
	written = fclose(f) == 0 && written;
	return written && rename(aside, path) == 0 ? 0 : -errno;
}

const char *fault_root(void)
{
	return fault_has_root() ? getenv("NUMAFIT_FAULT_ROOT") : "/";
}

#endif
