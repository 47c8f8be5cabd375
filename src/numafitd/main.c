/* numafitd: the node daemon. Parses, builds, runs, frees. */
#include "daemon.h"

#include <codec/config_yaml.h>
#include <codec/fields_json.h>
#include <host/discover.h>
#include <io/log.h>
#include <numafit/cpus.h>
#include <numafit/text.h>
#include <numafit/version.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	EXIT_USAGE = 2,
	CONFIG_MAX = 256 << 10,
	RUN_DIRECTORY_MODE = 0700,
	LOCK_MODE = 0600,
	TRIM_BYTES = 1 << 20
};

static const char usage[] =
	"usage: numafitd [--config FILE] [--set KEY=VALUE ...] [--check-config]\n"
	"\n"
	"Pins containers' CPUs and memory to NUMA nodes, as a plugin of the container runtime "
	"(NRI).\n"
	"\n"
	"  -c, --config FILE      read settings from this YAML file\n"
	"  -s, --set KEY=VALUE    override one setting; keys inside a map are written with dots\n"
	"      --check-config     check settings and machine, say what would run, and exit\n"
	"      --print-config     print every setting: value in force, type and meaning\n"
	"  -V, --version          print the version\n"
	"  -h, --help             print this\n";

enum { OPT_CHECK = 1000, OPT_PRINT };
static const struct option options[] = {
	{"config", required_argument, NULL, 'c'},
	{"set", required_argument, NULL, 's'},
	{"check-config", no_argument, NULL, OPT_CHECK},
	{"print-config", no_argument, NULL, OPT_PRINT},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

enum action { RUN, CHECK, PRINT, DONE };

/* A plugin that the runtime starts gets no options, only these variables (containerd/nri
 * pkg/api/plugin.go): then there is one place to look for settings. */
static const char launch_socket[] = "NRI_PLUGIN_SOCKET", launch_name[] = "NRI_PLUGIN_NAME",
		  launch_index[] = "NRI_PLUGIN_IDX", usual_config[] = "/etc/numafit/numafitd.yaml";

static int read_config(const char *path, struct settings *s, struct err *e)
{
	auto_free char *text = xcalloc(CONFIG_MAX + 1, 1);
	FILE *f = fopen(path, "re");

	if (!f)
		return err_set(e, errno, "config file %s: %s", path, strerror(errno));
	size_t len = fread(text, 1, CONFIG_MAX + 1, f);
	int failed = ferror(f) ? errno : 0;
	(void)fclose(f);
	if (failed)
		return err_set(e, failed, "config file %s: %s", path, strerror(failed));
	int rc = config_yaml_read(s, text, len, e);
	return rc ? err_add(e, rc, "config file %s", path) : 0;
}

static int set_one(struct settings *s, char *assignment, struct err *e)
{
	char *value = strchr(assignment, '=');

	if (!value)
		return err_set(e, EINVAL, "--set %s: KEY=VALUE is expected", assignment);
	*value++ = '\0';
	int rc = settings_set(s, assignment, value, e);
	return rc ? err_add(e, rc, "--set") : 0;
}

/* The file counts before --set, wherever it stands on the line. */
static int read_options(
	int argc, char **argv, struct settings *s, enum action *action, struct err *e)
{
	const char *file = NULL;
	int opt, rc = 0;

	*action = RUN;
	while ((opt = getopt_long(argc, argv, "c:s:Vh", options, NULL)) != -1) {
		if (opt == '?')
			return err_set(e, EINVAL, "see numafitd --help");
		if (opt == 'c')
			file = optarg;
		if (opt == OPT_CHECK || opt == OPT_PRINT)
			*action = opt == OPT_CHECK ? CHECK : PRINT;
		if (opt == 'V' || opt == 'h') {
			(void)fputs(opt == 'V' ? "numafitd " NUMAFIT_VERSION "\n" : usage, stdout);
			*action = DONE;
			return 0;
		}
	}
	if (optind < argc)
		return err_set(
			e, EINVAL, "\"%s\" is not an option; see numafitd --help", argv[optind]);
	if (!file && getenv(launch_socket) && access(usual_config, F_OK) == 0)
		file = usual_config;
	if (file)
		rc = read_config(file, s, e);
	optind = 1;
	while (!rc && (opt = getopt_long(argc, argv, "c:s:Vh", options, NULL)) != -1)
		if (opt == 's')
			rc = set_one(s, optarg, e);
	return rc;
}

/* Whether, and how, the runtime started us. */
static int read_launch(struct daemon *d, struct err *e)
{
	const char *fd = getenv(launch_socket), *name = getenv(launch_name),
		   *index = getenv(launch_index);
	uint64_t number;
	struct stat st;

	if (!fd)
		return 0;
	if (text_u64(fd, strlen(fd), INT_MAX, &number, NULL) < 0 || fstat((int)number, &st) < 0 ||
		!S_ISSOCK(st.st_mode))
		return err_set(e, EINVAL, "%s=%s: not an open socket's number", launch_socket, fd);
	if (!name || !index)
		return err_set(e, EINVAL, "%s is set, but %s is not", launch_socket,
			name ? launch_index : launch_name);
	(void)fcntl((int)number, F_SETFD, FD_CLOEXEC);
	d->launch.fd = (int)number;
	d->launch.name = name;
	d->launch.index = index;
	return 0;
}

static void log_note(void *ctx, const char *text)
{
	char buf[512];

	(void)ctx;
	log_line(LOG_WARN, "machine-note", "text=%s", log_text(buf, sizeof buf, text));
}

/* Which CPUs are kept for the system, where only their number is given. */
static int reserve_cpus(struct settings *s, const struct topo *t, struct err *e)
{
	unsigned count = settings_reserved_cpu_count(s);

	if (!count || !cpuset_empty(&s->reserved_cpus))
		return 0;
	return cpus_reserve(t, &s->cpu_options, count, &s->reserved_cpus, e);
}

static int load_machine(struct daemon *d, struct err *e)
{
	struct settings *s = &d->settings;
	int rc = machine_load(s->machine, &d->topo, log_note, NULL, e);

	if (rc < 0)
		return err_add(e, rc, "machine");
	rc = settings_check(s, &d->topo, e);
	return rc ? rc : reserve_cpus(s, &d->topo, e);
}

static void print_config(const struct settings *s)
{
	struct setting_doc doc;
	char value[CPUSET_TEXT_MAX];

	for (unsigned i = 0; settings_doc(i, &doc) && settings_get(s, i, value, sizeof value); i++)
		(void)printf("%s: %s\n    %s; default %s. %s\n", doc.key, value, doc.type,
			*doc.fallback ? doc.fallback : "empty", doc.help);
}

/* Whose lock it is, as it told; 0: not yet. Its number may mean another process elsewhere: in a
 * container process ids are the container's own. */
static int holder_of(int lock)
{
	enum { PID_DIGITS = 16, DECIMAL = 10 };
	char text[PID_DIGITS] = "";

	if (pread(lock, text, sizeof text - 1, 0) < 0)
		return 0;
	return (int)strtol(text, NULL, DECIMAL);
}

/* The run directory, and the lock in it that only one daemon can hold. */
static int claim_run_directory(struct daemon *d, struct err *e)
{
	const char *dir = d->settings.run_directory;
	char path[SETTINGS_PATH_MAX + sizeof "/lock"];

	if (mkdir(dir, RUN_DIRECTORY_MODE) < 0 && errno != EEXIST)
		return err_set(e, errno, "runDirectory %s: %s", dir, strerror(errno));
	(void)snprintf(path, sizeof path, "%s/lock", dir);
	(void)snprintf(d->journal_path, sizeof d->journal_path, "%s/journal", dir);
	(void)snprintf(d->status_path, sizeof d->status_path, "%s/numafitd.sock", dir);
	d->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, LOCK_MODE);
	if (d->lock < 0)
		return err_set(e, errno, "%s: %s", path, strerror(errno));
	if (flock(d->lock, LOCK_EX | LOCK_NB) < 0)
		return err_set(e, EBUSY,
			"another numafitd (process %d) runs with runDirectory %s: stop it first",
			holder_of(d->lock), dir);
	if (ftruncate(d->lock, 0) < 0 || dprintf(d->lock, "%d\n", (int)getpid()) < 0)
		return err_set(e, errno, "%s: %s", path, strerror(errno));
	return 0;
}

static void stop(void *ctx)
{
	loop_stop(ctx);
}

static int start(struct daemon *d, struct err *e)
{
	int rc = claim_run_directory(d, e);

	if (rc)
		return rc;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN); /* to others "read your settings": ours need a restart */
	d->started_ns = loop_monotonic_ns();
	d->loop = loop_new();
	if (loop_on_signal(d->loop, SIGTERM, stop, d->loop) ||
		loop_on_signal(d->loop, SIGINT, stop, d->loop))
		return err_set(e, EIO, "signal handlers cannot be set");
	rc = recorder_start(d, e);
	if (!rc)
		rc = status_start(d, e);
	if (!rc)
		rc = hints_start(d, e);
	if (!rc)
		rc = services_start(d, e);
	if (!rc)
		wiring_start(d);
	return rc;
}

static void log_start(const struct daemon *d)
{
	const struct settings *s = &d->settings;
	char reserved[CPUSET_TEXT_MAX], name[2 * TOPO_NAME_MAX];

	log_line(LOG_INFO, "started",
		"version=%s mode=%s policy=%s scope=%s prefer_closest=%s machine=%s nodes=%u "
		"cpus=%u reserved=%s socket=%s",
		NUMAFIT_VERSION, mode_name(s->mode), topology_policy_name(s->topology_policy),
		topology_scope_name(s->topology_scope), s->prefer_closest_numa_nodes ? "yes" : "no",
		log_text(name, sizeof name, d->topo.name), d->topo.ids.nr, d->topo.nr_cpus,
		cpuset_format(&s->reserved_cpus, reserved, sizeof reserved),
		d->launch.name ? "from-the-runtime" : s->nri_socket);
	if (cpuset_empty(&s->reserved_cpus))
		log_line(LOG_WARN, "no-reserved-cpus",
			"action=\"set reservedSystemCPUs, so that the system and shared containers "
			"keep CPUs\"");
}

static int run(struct daemon *d, struct err *e)
{
	int rc = start(d, e);

	if (!rc) {
		log_start(d);
		loop_run(d->loop);
		log_line(LOG_INFO, "stopped", "containers=%zu",
			ledger_count(engine_ledger(d->engine)));
	}
	nri_conn_close(d->conn);
	loop_timer_close(d->expire);
	sweep_stop(d);
	services_stop(d);
	loop_free(d->loop);
	recorder_stop(d);
	if (d->lock >= 0)
		(void)close(d->lock);
	return rc;
}

int main(int argc, char **argv)
{
	static struct daemon d = {.lock = -1};
	enum action action;
	struct err e = {0};

	(void)mallopt(M_TRIM_THRESHOLD, TRIM_BYTES); /* what a large Synchronize took goes back */
	json_seed();
	settings_init(&d.settings);
	int rc = read_options(argc, argv, &d.settings, &action, &e);
	if (!rc && action == DONE)
		return 0;
	if (!rc && action == PRINT) {
		print_config(&d.settings);
		return 0;
	}
	if (!rc)
		rc = load_machine(&d, &e);
	if (!rc)
		rc = read_launch(&d, &e);
	if (rc) {
		(void)fprintf(stderr, "numafitd: %s\n", e.text);
		return EXIT_USAGE;
	}
	if (action == CHECK) {
		(void)printf("config ok: mode %s, policy %s, machine %s with %u NUMA nodes and %u "
			     "CPUs\n",
			mode_name(d.settings.mode),
			topology_policy_name(d.settings.topology_policy), d.topo.name,
			d.topo.ids.nr, d.topo.nr_cpus);
		return 0;
	}
	log_set_level(d.settings.log_level);
	beside_kubelet(&d);
	if (d.settings.mode != MODE_MANAGE)
		d.settings.device_plugin = false; /* who places nothing gives nothing out */
	if (run(&d, &e) < 0) {
		(void)fprintf(stderr, "numafitd: %s\n", e.text);
		return EXIT_FAILURE;
	}
	return 0;
}
