/* numafit-extender: the scheduler's side. Parses, builds, runs, frees. */
#include "extender.h"

#include <codec/fields_json.h>
#include <codec/flat_yaml.h>
#include <errno.h>
#include <getopt.h>
#include <io/descriptors.h>
#include <io/file.h>
#include <io/log.h>
#include <malloc.h>
#include <numafit/mem.h>
#include <numafit/version.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { EXIT_USAGE = 2, DRAIN_MS = 5000, TRIM_BYTES = 1 << 20 };
enum action { RUN, CHECK, PRINT, DONE };

static const char usage[] =
	"usage: numafit-extender [--config FILE] [--check-config]\n"
	"\n"
	"Filters, scores and binds for kube-scheduler, by what the NUMA nodes of each node have "
	"left,\n"
	"and leaves on each pod which of them it was given.\n"
	"\n"
	"  -c, --config FILE   read settings from this YAML file\n"
	"      --check-config  check the file, say what would run, and exit\n"
	"      --print-config  print every setting: value in force, type and meaning\n"
	"  -V, --version       print the version\n"
	"  -h, --help          print this\n";

enum { OPT_CHECK = 1000, OPT_PRINT };
static const struct option options[] = {
	{"config", required_argument, NULL, 'c'},
	{"check-config", no_argument, NULL, OPT_CHECK},
	{"print-config", no_argument, NULL, OPT_PRINT},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int read_extender_options(
	int argc, char **argv, const char **file, enum action *action, struct err *e)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "c:Vh", options, NULL)) != -1) {
		if (opt == 'c') {
			*file = optarg;
		} else if (opt == OPT_CHECK || opt == OPT_PRINT) {
			*action = opt == OPT_CHECK ? CHECK : PRINT;
		} else if (opt == 'V' || opt == 'h') {
			(void)fputs(opt == 'V' ? "numafit-extender " NUMAFIT_VERSION "\n" : usage,
				stdout);
			*action = DONE;
			return 0;
		} else {
			return err_set(e, EINVAL, "see numafit-extender --help");
		}
	}
	return optind == argc
		       ? 0
		       : err_set(e, EINVAL, "\"%s\" is not an option; see --help", argv[optind]);
}

static int read_extender_config(const char *file, struct extender_config *c, struct err *e)
{
	if (!file)
		return extender_yaml_read("", 0, c, e);
	auto_free char *text = NULL;
	size_t len;
	int rc = file_read_waiting(file, FLAT_YAML_BYTES_MAX, &text, &len, e);

	if (rc)
		return err_add(e, rc, "config file");
	rc = extender_yaml_read(text, len, c, e);
	return rc ? err_add(e, rc, "%s", file) : 0;
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
	for (unsigned i = 0; i < c->profile.nr; i++)
		(void)printf("plugin %s, weight %lld\n",
			sched_plugin_name(c->profile.use[i].plugin),
			(long long)c->profile.use[i].weight);
}

/* Bindings under way are waited for, so that the scheduler gets their answers. */
static void stop_extender(void *ctx)
{
	struct extender *x = ctx;

	if (!x->binds || x->stopping) {
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

	return rc ? rc : serve_start(x, e);
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
			x->config.advice ? advice_mode_name((enum advice_mode)x->config.advice_mode)
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
	serve_stop(x);
	bind_stop(x);
	state_stop(x);
	if (x->drain)
		loop_timer_close(x->drain);
	loop_free(x->loop);
	return rc;
}

int main(int argc, char **argv)
{
	static struct extender x;
	enum action action = RUN;
	const char *file = NULL;
	struct err e = {0};

	(void)mallopt(M_TRIM_THRESHOLD, TRIM_BYTES); /* what a large request took goes back */
	json_seed();
	int rc = read_extender_options(argc, argv, &file, &action, &e);
	if (!rc && action == DONE)
		return 0;
	if (!rc)
		rc = read_extender_config(file, &x.config, &e);
	int code = rc ? EXIT_USAGE : 0;
	if (!rc && action == PRINT)
		print_extender_config(&x.config);
	else if (!rc && action == CHECK)
		print_extender_check(&x.config);
	else if (!rc) {
		log_set_level((enum log_level)x.config.log_level);
		code = run_extender(&x, &e) ? EXIT_FAILURE : 0;
	}
	if (code)
		(void)fprintf(stderr, "numafit-extender: %s\n", e.text);
	extender_config_fini(&x.config);
	return code;
}
