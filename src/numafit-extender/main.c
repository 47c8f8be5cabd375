/* numafit-extender: the scheduler's side. Parses, builds, runs, frees. */
#include "extender.h"

#include <codec/fields_json.h>
#include <codec/flat_yaml.h>
#include <command/command.h>
#include <errno.h>
#include <io/process.h>
#include <io/file.h>
#include <io/log.h>
#include <malloc.h>
#include <numafit/mem.h>
#include <numafit/version.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { DRAIN_MS = 5000, TRIM_BYTES = 1 << 20 };

struct options {
	bool check, print;
	const char *file;
};

/* What is wrong with its text is in *all. -errno: there is no file. */
static int read_extender_config(
	const char *file, struct extender_config *c, struct mistakes *all, struct err *e)
{
	auto_free char *text = NULL;
	size_t len = 0;
	int rc = file ? file_read_waiting(file, FLAT_YAML_BYTES_MAX, &text, &len, e) : 0;

	if (rc)
		return err_add(e, rc, "config file");
	(void)extender_yaml_read(text ? text : "", len, c, all, e);
	return 0;
}

static void print_extender_config(const struct extender_config *c)
{
	struct extender_doc doc;

	for (unsigned i = 0; extender_doc(c, i, &doc); i++)
		(void)printf("%s: %s\n    %s; default %s; %s\n", doc.key, doc.value, doc.type,
			*doc.fallback ? doc.fallback : "empty", doc.help);
}

static void print_extender_check(const struct extender_config *c)
{
	(void)printf("config ok: serves at %s%s%s\n", c->listen,
		*c->client_ca_file ? " by TLS, for clients with a certificate"
		: *c->cert_file    ? " by TLS"
				   : "",
		c->insecure && !*c->client_ca_file ? ", whoever comes (insecure)" : "");
	if (*c->metrics_address)
		(void)printf("metrics and health at %s\n", c->metrics_address);
	if (*c->ui_address)
		(void)printf("page of the cluster at %s\n", c->ui_address);
	for (unsigned i = 0; i < c->profile.nr; i++)
		(void)printf("plugin %s, weight %lld\n",
			sched_plugin_name(c->profile.use[i].plugin),
			(long long)c->profile.use[i].weight);
}

/* Bindings under way are waited for, so that the scheduler gets their answers. */
static void stop_extender(void *ctx)
{
	struct extender *x = ctx;

	if (!bind_count(x) || x->stopping) {
		loop_stop(x->loop);
		return;
	}
	x->stopping = true;
	log_line(LOG_INFO, "stopping", "binds=%zu", bind_count(x));
	x->drain = loop_timer_new(x->loop, stop_extender, x);
	loop_timer_set(x->drain, DRAIN_MS);
}

static int start_extender(struct extender *x, struct err *e)
{
	uint64_t descriptors = descriptors_raise();

	if (descriptors < DESCRIPTORS_MIN)
		return err_set(e, EMFILE,
			"%llu open files are allowed (ulimit -Hn), and %d are needed: slow clients "
			"could keep kube-scheduler out",
			(unsigned long long)descriptors, DESCRIPTORS_MIN);
	x->loop = loop_new();
	if (loop_on_signal(x->loop, SIGTERM, stop_extender, x) ||
		loop_on_signal(x->loop, SIGINT, stop_extender, x))
		return err_set(e, EIO, "signal handlers cannot be set");
	int rc = state_start(x, e);

	if (!rc)
		rc = serve_start(x, e);
	if (!rc)
		page_start(x);
	return rc;
}

static int run_extender(struct extender *x, struct err *e)
{
	char address[256];
	int rc = start_extender(x, e);

	if (!rc) {
		log_line(LOG_INFO, "started",
			"version=%s listen=%s port=%u metrics_port=%u plugins=%u hint=%s",
			NUMAFIT_VERSION, log_text(address, sizeof address, x->config.listen),
			http_server_port(x->http), x->pages ? http_server_port(x->pages) : 0,
			x->config.profile.nr,
			x->config.advice
				? advice_mode_words[(enum advice_mode)x->config.advice_mode]
				: "off");
		if (x->config.insecure && !*x->config.client_ca_file)
			log_line(LOG_WARN, "insecure",
				"listen=%s action=\"whoever reaches it may bind any pod to any "
				"node: set tls.clientCAFile, or keep others away\"",
				address);
		loop_run(x->loop);
		log_line(LOG_INFO, "stopped", "binds=%llu",
			(unsigned long long)x->measured.binds[BOUND_WITH_ADVICE]);
	}
	page_stop(x);
	serve_stop(x);
	bind_stop(x);
	state_stop(x);
	if (x->drain)
		loop_timer_close(x->drain);
	loop_free(x->loop);
	return rc;
}

/* The exit code; what is wrong is printed. */
static int extender_find_mistakes(
	const struct call *call, struct extender *x, const struct options *o)
{
	struct mistakes all = {0};
	struct err e = {0};

	if (read_extender_config(o->file, &x->config, &all, &e))
		return call_fail(call, EXIT_USAGE, &e);
	if (o->check && !all.unread)
		extender_check_here(x, &all);
	int code = call_mistakes(call, &all, o->file);
	mistakes_fini(&all);
	return code;
}

static int run_action(struct extender *x, const struct options *o, struct err *e)
{
	if (o->print) {
		print_extender_config(&x->config);
		return EXIT_DONE;
	}
	if (o->check) {
		print_extender_check(&x->config);
		return EXIT_DONE;
	}
	log_set_level((enum log_level)x->config.log_level);
	log_set_format((enum log_format)x->config.log_format);
	return run_extender(x, e) ? EXIT_CANNOT : EXIT_DONE;
}

static int run_numafit_extender(const struct call *c)
{
	static struct extender x;
	struct options o = {0};
	struct err e = {0};
	int code = call_read(c, &o);

	if (code < 0)
		code = extender_find_mistakes(c, &x, &o);
	else
		return code;
	if (!code) {
		code = run_action(&x, &o, &e);
		if (code)
			(void)call_fail(c, (enum exit_code)code, &e);
	}
	extender_config_fini(&x.config);
	return code;
}

#define AT(member) offsetof(struct options, member)
static const struct option_row rows[] = {
	{.letter = 'c',
		.name = "config",
		.value = "FILE",
		.help = "read settings from this YAML file",
		.read = option_text,
		.at = AT(file),
		.completes = COMPLETE_FILE},
	{.name = "check-config",
		.help = "check all that a start checks, say what would run, or all that is wrong, and exit",
		.read = option_flag,
		.at = AT(check)},
	{.name = "print-config",
		.help = "print every setting: value in force, type and meaning",
		.read = option_flag,
		.at = AT(print)},
	{0},
};

/* The settings, from their own table. */
static bool list_setting(unsigned i, struct item *out)
{
	auto_free struct extender_config *c = xcalloc(1, sizeof *c);
	struct extender_doc doc;
	bool found = !extender_yaml_read("", 0, c, NULL, NULL) && extender_doc(c, i, &doc);

	if (found) {
		(void)snprintf(out->name, sizeof out->name, "%s", doc.key);
		(void)snprintf(out->text, sizeof out->text, "%s. Takes: %s. Default: %s.", doc.help,
			doc.type, *doc.fallback ? doc.fallback : "empty");
	}
	extender_config_fini(c);
	return found;
}

static const struct command numafit_extender = {
	.about =
		"Filters, scores and binds for kube-scheduler, by what the NUMA nodes of each node "
		"have left, and leaves on each pod which of them it was given.",
	.options = rows,
	.examples = {{"numafit-extender --config /etc/numafit/extender.yaml",
			     "run, with a file's settings"},
		{"numafit-extender --config extender.yaml --check-config",
			"only check the file, here"}},
	.exits = {[EXIT_DONE] = "it was stopped, or what was asked for is printed",
		[EXIT_USAGE] = "wrong usage, or wrong settings: starting it again does not help",
		[EXIT_CANNOT] = "it cannot run: the last line of its log says why"},
	.list_title = "settings of the config file",
	.list = list_setting,
	.run = run_numafit_extender,
};

static const struct command *const commands[] = {&numafit_extender};

static const struct section sections[] = {
	{"SIGNALS", "SIGTERM and SIGINT end it once the bindings under way are answered."},
	{"SEE ALSO", "numafitd(8), numafit(1)"},
	{0},
};

static const struct program program = {
	.name = "numafit-extender",
	.man = 8,
	.summary = "the scheduler's side of numafit",
	.commands = commands,
	.nr = 1,
	.sections = sections,
};

int main(int argc, char **argv)
{
	(void)mallopt(M_TRIM_THRESHOLD, TRIM_BYTES); /* what a large request took goes back */
	json_seed();
	return program_run(&program, argc, argv);
}
