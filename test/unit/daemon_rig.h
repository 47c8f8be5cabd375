#ifndef NUMAFIT_TEST_DAEMON_RIG_H
#define NUMAFIT_TEST_DAEMON_RIG_H

#include <numafit/text.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The real program, as a test starts it: in a directory of its own, on a recorded machine of four
 * nodes. Nothing of it outlives the test. */

enum { RIG_SETTINGS_MAX = 8 };

struct daemon_rig {
	char dir[PATH_MAX], socket[PATH_MAX + 16], run[PATH_MAX + 16], journal[PATH_MAX + 32];
	char program[PATH_MAX + 16], machine[PATH_MAX];
	const char *fault; /* NUMAFIT_FAULT, or NULL */
	unsigned line;    /* NUMAFIT_FAULT_LINE: the journal's lines have that many bytes; 0: all */
	unsigned mems_ms; /* NUMAFIT_FAULT_MEMS_MS: a write of cpuset.mems takes that long */
	unsigned update_bytes; /* NUMAFIT_FAULT_UPDATES: of one reply; 0: all that a message has */
	const char *root;      /* NUMAFIT_FAULT_ROOT, or NULL */
	const char *config;    /* its config file, or NULL */
	int log;               /* descriptor for its stderr; -1: the test's own */
	bool obeys_modes;      /* it may not override permissions, although it is root */
	pid_t pid;             /* 0: none runs */
	const char *setting[RIG_SETTINGS_MAX + 1];
};

static inline void rig_must(bool is, const char *what)
{
	if (is)
		return;
	(void)fprintf(stderr, "rig: %s: %s\n", what, strerror(errno));
	abort();
}

static inline void rig_init(struct daemon_rig *g)
{
	const char *tmp = getenv("TMPDIR");
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);

	*g = (struct daemon_rig){.log = -1};
	rig_must(len > 0, "readlink");
	self[len] = '\0';
	*strrchr(self, '/') = '\0'; /* build/VARIANT/test */
	(void)snprintf(g->program, sizeof g->program, "%s/../numafitd", self);
	rig_must(access(g->program, X_OK) == 0, g->program);
	rig_must(realpath("test/machines/kep3545-4.machine", g->machine), "the machine's file");
	(void)snprintf(g->dir, sizeof g->dir, "%s/numafit-test.XXXXXX", tmp ? tmp : "/tmp");
	rig_must(mkdtemp(g->dir), g->dir);
	(void)snprintf(g->socket, sizeof g->socket, "%s/nri.sock", g->dir);
	(void)snprintf(g->run, sizeof g->run, "%s/run", g->dir);
	(void)snprintf(g->journal, sizeof g->journal, "%s/journal", g->run);
}

static inline void rig_fini(struct daemon_rig *g)
{
	char command[PATH_MAX + 16];

	(void)snprintf(command, sizeof command, "rm -rf '%s'", g->dir);
	rig_must(system(command) == 0, command);
}

/* 0: it is not set. */
static inline void rig_set_number(const char *variable, unsigned number)
{
	char text[16];

	(void)snprintf(text, sizeof text, "%u", number);
	if (number)
		(void)setenv(variable, text, 1);
}

static inline void rig_exec(const struct daemon_rig *g)
{
	enum { FIXED = 12 };
	char machine[PATH_MAX + 16], nri[PATH_MAX + 32], run[PATH_MAX + 32];
	const char *args[FIXED + 2 + 2 * RIG_SETTINGS_MAX + 1] = {g->program, "--set", machine,
		"--set", nri, "--set", run, "--set", "reservedSystemCPUs=0", "--set",
		"metrics.address="};
	unsigned nr = FIXED - 1;

	(void)snprintf(machine, sizeof machine, "machine=%s", g->machine);
	(void)snprintf(nri, sizeof nri, "nri.socketPath=%s", g->socket);
	(void)snprintf(run, sizeof run, "runDirectory=%s", g->run);
	if (g->config) {
		args[nr++] = "--config";
		args[nr++] = g->config;
	}
	for (unsigned i = 0; g->setting[i]; i++) {
		args[nr++] = "--set";
		args[nr++] = g->setting[i];
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failing test leaves nobody behind */
	if (g->obeys_modes)
		(void)prctl(PR_CAPBSET_DROP, 1); /* CAP_DAC_OVERRIDE */
	if (g->fault)
		(void)setenv("NUMAFIT_FAULT", g->fault, 1);
	if (g->root)
		(void)setenv("NUMAFIT_FAULT_ROOT", g->root, 1);
	rig_set_number("NUMAFIT_FAULT_LINE", g->line);
	rig_set_number("NUMAFIT_FAULT_MEMS_MS", g->mems_ms);
	rig_set_number("NUMAFIT_FAULT_UPDATES", g->update_bytes);
	if (g->log >= 0)
		(void)dup2(g->log, STDERR_FILENO);
	(void)execv(g->program, (char **)(uintptr_t)args);
	_exit(127);
}

static inline void rig_start(struct daemon_rig *g)
{
	g->pid = fork();
	rig_must(g->pid >= 0, "fork");
	if (g->pid == 0)
		rig_exec(g);
}

/* Wait for its end, which signum (0: nothing) brings about. Its status as of waitpid(). */
static inline int rig_end(struct daemon_rig *g, int signum)
{
	int status;

	if (signum)
		rig_must(kill(g->pid, signum) == 0, "kill");
	rig_must(waitpid(g->pid, &status, 0) == g->pid, "waitpid");
	g->pid = 0;
	return status;
}

#endif
