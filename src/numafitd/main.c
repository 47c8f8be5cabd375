/* numafitd: the node daemon. Parses, builds, runs, frees. */
#include "claims.h"
#include "cluster.h"
#include <daemon-files/beside.h>
#include <daemon-files/check_config.h>
#include <daemon-files/config.h>
#include "daemon.h"
#include "machine_read.h"
#include "metrics.h"
#include <daemon-files/options.h>
#include "pool.h"
#include "quiet.h"
#include "quota.h"
#include "services.h"
#include "status.h"

#include <codec/fields_json.h>
#include <io/fault.h>
#include <io/process.h>
#include <io/log.h>
#include <numafit/cpus.h>
#include <numafit/text.h>
#include <numafit/version.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIM_BYTES = 1 << 20 };

/* A plugin that the runtime starts gets no options, only these variables (containerd/nri
 * pkg/api/plugin.go): then there is one place to look for settings. */
static const char launch_socket[] = "NRI_PLUGIN_SOCKET", launch_name[] = "NRI_PLUGIN_NAME",
		  launch_index[] = "NRI_PLUGIN_IDX", usual_config[] = "/etc/numafit/numafitd.yaml";

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
	d->runtime.launch.fd = (int)number;
	d->runtime.launch.name = name;
	d->runtime.launch.index = index;
	return 0;
}

/* Which CPUs are kept for the system, where only their number is given. */
static int reserve_counted_cpus(struct settings *s, const struct topo *t, struct err *e)
{
	unsigned count = settings_reserved_cpu_count(s);

	if (!count || !cpuset_empty(&s->reserved_cpus))
		return 0;
	return cpus_reserve(t, &s->cpu_options, count, &s->reserved_cpus, e);
}

/* With the machine, as far as that can be had. */
static void check_with_machine(struct daemon *d, struct mistakes *all)
{
	struct settings *s = &d->settings;
	struct err e = {0};
	int rc = machine_read(d, &d->topo, &e);

	d->topo.this_machine = d->topo.this_machine || fault_has_root();
	if (rc < 0) {
		(void)err_add(&e, rc, "machine");
		mistakes_add_key(all, "machine", &e);
	}
	if (settings_check_daemon(s, rc < 0 ? NULL : &d->topo, all, &e) || all->found.nr)
		return;
	if (reserve_counted_cpus(s, &d->topo, &e))
		mistakes_add_key(all, "systemReserved", &e);
}

static void print_settings_in_force(const struct settings *s)
{
	struct setting_doc doc;
	char value[SETTING_TEXT_MAX];

	for (unsigned i = 0; settings_doc(i, &doc) && settings_get(s, i, value, sizeof value); i++)
		(void)printf("%s: %s\n    %s; default %s; %s. %s\n", doc.key, value, doc.type,
			*doc.fallback ? doc.fallback : "empty",
			doc.reloadable ? "reloadable" : "needs a restart", doc.help);
}

static void on_stop_signal(void *ctx)
{
	loop_stop(ctx);
}

static int start_parts_in_order(struct daemon *d, struct err *e)
{
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN); /* until reload_start() */
	d->measured.started_ns = loop_monotonic_ns();
	d->loop = loop_new();
	if (loop_on_signal(d->loop, SIGTERM, on_stop_signal, d->loop) ||
		loop_on_signal(d->loop, SIGINT, on_stop_signal, d->loop))
		return err_set(e, EIO, "signal handlers cannot be set");
	int rc = pool_choose(d, fault_root(), e);
	if (rc)
		return rc;
	rc = run_directory_claim(d, e);
	if (!rc || run_directory_may_come(rc))
		rc = recorder_start(d, e);
	if (!rc) {
		pool_start(d);
		quota_start(d, fault_root());
		quiet_start(d, fault_root());
	}
	if (!rc)
		rc = status_start(d, e);
	if (!rc)
		rc = advice_start(d, e);
	if (!rc)
		rc = services_start(d, e);
	if (!rc)
		wiring_start(d);
	if (!rc)
		rc = reload_start(d, cluster_start, e); /* sections may need labels then */
	if (rc)
		return rc;
	cluster_start(d);
	metrics_start(d);
	status_page_start(d);
	return 0;
}

/* Whoever connects takes descriptors, and so do journal and runtime. */
static void raise_descriptors(void)
{
	uint64_t nr = descriptors_raise();

	if (nr < DESCRIPTORS_MIN)
		log_line(LOG_ERROR, "descriptors-low",
			"limit=%llu action=\"allow %d open files at least (ulimit -Hn): slow "
			"clients "
			"of metrics.address could keep probes from being answered\"",
			(unsigned long long)nr, DESCRIPTORS_MIN);
}

static void log_start(const struct daemon *d)
{
	const struct settings *s = &d->settings;
	const struct cpuset there = cpuset_and(d->topo.isolated, &d->topo.cpus);
	char reserved[CPUSET_TEXT_MAX], isolated[CPUSET_TEXT_MAX], nodeless[CPUSET_TEXT_MAX],
		name[2 * TOPO_NAME_MAX];

	machine_log_corrections(d);
	log_line(LOG_INFO, "started",
		"version=%s mode=%s policy=%s scope=%s prefer_closest=%s machine=%s nodes=%u "
		"cpus=%u reserved=%s isolated=%s socket=%s",
		NUMAFIT_VERSION, mode_words[s->mode], topology_policy_words[s->topology_policy],
		topology_scope_words[s->topology_scope],
		s->prefer_closest_numa_nodes ? "yes" : "no",
		log_text(name, sizeof name, d->topo.name), d->topo.ids.nr, d->topo.nr_cpus,
		cpuset_format(&s->reserved_cpus, reserved, sizeof reserved),
		cpuset_empty(&there) ? "none" : cpuset_format(&there, isolated, sizeof isolated),
		d->runtime.launch.name ? "from-the-runtime" : s->nri_socket);
	if (!cpuset_empty(&d->topo.nodeless))
		log_line(LOG_WARN, "cpus-without-node",
			"cpus=%s text=\"they are online, their NUMA nodes are not: no container "
			"gets "
			"them, as with the kubelet\" action=\"bring the nodes online, and restart "
			"numafitd\"",
			cpuset_format(&d->topo.nodeless, nodeless, sizeof nodeless));
	if (!s->claims && ledger_view(engine_ledger(d->engine))->nr_shares)
		log_line(LOG_WARN, "claims-held-without-driver",
			"shares=%zu text=\"ResourceClaims hold CPUs, and the kubelet cannot unprepare "
			"them: what one holds is free again when no container runs on it\" "
			"action=\"set claims.enabled to true until their pods have ended\"",
			ledger_view(engine_ledger(d->engine))->nr_shares);
	if (cpuset_empty(&s->reserved_cpus))
		log_line(LOG_WARN, "no-reserved-cpus",
			"action=\"set reservedSystemCPUs, so that the system and shared containers "
			"keep CPUs\"");
}

static int run_daemon(struct daemon *d, struct err *e)
{
	raise_descriptors();
	int rc = start_parts_in_order(d, e);

	if (!rc) {
		log_start(d);
		loop_run(d->loop);
		claims_let_go(d);
		log_line(LOG_INFO, "stopped", "containers=%zu",
			ledger_count(engine_ledger(d->engine)));
		rc = reload_verdict(d, e);
		if (!rc && d->recorder.verdict.code)
			rc = err_set(e, d->recorder.verdict.code, "%s", d->recorder.verdict.text);
	}
	status_page_stop(d);
	metrics_stop(d);
	reload_stop(d);
	wiring_stop(d);
	quiet_stop(d);
	quota_stop(d);
	pool_stop(d);
	cluster_stop(d);
	services_stop(d);
	status_stop(d);
	loop_free(d->loop);
	recorder_stop(d);
	if (d->run.lock >= 0)
		(void)close(d->run.lock);
	return rc;
}

/* What the options and the file say. -errno: the file cannot be read. */
static int read_own_settings(struct daemon *d, const struct options *o, struct config *c,
	struct mistakes *all, struct err *e)
{
	c->from = (struct config_source){
		.file = o->file, .sets = o->sets.at, .nr_sets = o->sets.nr, .all = all};
	if (!c->from.file && getenv(launch_socket) && access(usual_config, F_OK) == 0)
		c->from.file = usual_config;
	if (o->labels.nr)
		config_give_labels(c, o->labels.at, o->labels.nr);
	int rc = config_read_file(c, e);
	if (rc < 0)
		return rc;
	(void)config_read(c, &d->settings, &d->configured.sections, e); /* into *all */
	d->configured.asked = d->settings;
	d->configured.config = c;
	return 0;
}

/* All that is wrong with the settings. What stands behind a place that is no YAML would look as if
 * it were not set: then nothing more is checked. */
static int find_mistakes(struct daemon *d, const struct options *o, struct config *c,
	struct mistakes *all, struct err *e)
{
	int rc = read_own_settings(d, o, c, all, e);

	if (rc || all->unread || o->action == PRINT)
		return rc;
	log_set_format(d->settings.log_format);
	check_with_machine(d, all);
	if (o->action == CHECK)
		check_config(&d->settings, all);
	return 0;
}

static void log_unread(const char *path, const struct err *e)
{
	char why[512];

	log_line(LOG_WARN, "kubelet-state-ignored", "file=%s error=%s", path,
		log_text(why, sizeof why, e->text));
}

/* Put the mode beside such a kubelet in force. */
static void beside_kubelet(struct daemon *d)
{
	const char *setting = beside_static_manager(&d->settings, log_unread);

	if (!setting || d->settings.mode != MODE_MANAGE)
		return;
	d->settings.mode = beside_mode(&d->settings, setting);
	log_line(LOG_WARN, "kubelet-manages-too",
		"mode=%s setting=%s text=\"the kubelet's manager is static and would fight with "
		"numafit's placement\" action=\"set the kubelet's %s to none, or numafit's "
		"besideStaticKubelet to manage\"",
		mode_words[d->settings.mode], setting, setting);
}

/* 0, or the exit code. */
static int run_action(struct daemon *d, const struct options *o, struct err *e)
{
	if (o->action == PRINT) {
		print_settings_in_force(&d->settings);
		return 0;
	}
	if (read_launch(d, e))
		return EXIT_USAGE;
	if (o->action == CHECK) {
		check_config_print(
			&d->settings, &d->topo, &d->configured.asked, &d->configured.sections);
		machine_print_corrections(d);
		return 0;
	}
	log_set_level(d->settings.log_level);
	beside_kubelet(d);
	if (d->settings.mode != MODE_MANAGE) /* who places nothing gives nothing out */
		d->settings.device_plugin = d->settings.claims = false;
	return run_daemon(d, e) < 0 ? EXIT_CANNOT : EXIT_DONE;
}

/* The exit code; what is wrong is printed. */
static int run_options(
	const struct call *call, struct daemon *d, const struct options *o, struct config *c)
{
	struct mistakes all = {0};
	struct err e = {0};
	int code = find_mistakes(d, o, c, &all, &e) ? call_fail(call, EXIT_USAGE, &e)
						    : call_mistakes(call, &all, c->from.file);

	c->from.all = NULL; /* a reload needs to know the first one only */
	mistakes_fini(&all);
	if (code)
		return code;
	code = run_action(d, o, &e);
	return code ? call_fail(call, (enum exit_code)code, &e) : EXIT_DONE;
}

static int run_numafitd(const struct call *c)
{
	static struct daemon d = {.run.lock = -1};
	struct config config = {0};
	struct options o = {.action = RUN};
	int code = call_read(c, &o);

	if (code < 0)
		code = run_options(c, &d, &o, &config);
	config_fini(&config);
	options_fini(&o);
	corrections_fini(&d.corrections);
	return code;
}

static const struct command numafitd = {
	.about =
		"Pins containers' CPUs and memory to NUMA nodes, as a plugin of the container "
		"runtime (NRI): it decides when a container is created, as the kubelet's CPU, memory "
		"and topology managers would. It writes down what it decided in a journal, for numafit "
		"explain, and to take it over when it is started again.",
	.options = options_rows,
	.examples = {{"numafitd --config /etc/numafit/numafitd.yaml",
			     "run, with a file's settings"},
		{"numafitd --config numafitd.yaml --check-config", "only check the file, here"},
		{"numafitd --set mode=shadow --set topologyManagerPolicy=restricted",
			"change nothing, and compare with what the kubelet does"}},
	.exits = {[EXIT_DONE] = "it was stopped, or what was asked for is printed",
		[EXIT_USAGE] = "wrong usage, or wrong settings: starting it again does not help",
		[EXIT_CANNOT] = "it cannot run: the last line of its log says why"},
	.run = run_numafitd,
};

static const struct command *const commands[] = {&numafitd};

static const struct program program = {
	.name = "numafitd",
	.man = 8,
	.summary = "pin containers to NUMA nodes",
	.commands = commands,
	.nr = 1,
	.sections = options_sections,
};

int main(int argc, char **argv)
{
	(void)mallopt(M_TRIM_THRESHOLD, TRIM_BYTES); /* what a large Synchronize took goes back */
	json_seed();
	return program_run(&program, argc, argv);
}
