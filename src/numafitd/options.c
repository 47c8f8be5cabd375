#include "options.h"

#include <numafit/version.h>

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
	"usage: numafitd [--config FILE] [--set KEY=VALUE ...] [--check-config]\n"
	"\n"
	"Pins containers' CPUs and memory to NUMA nodes, as a plugin of the container runtime "
	"(NRI).\n"
	"\n"
	"  -c, --config FILE      read settings from this YAML file, again when it changes and on "
	"SIGHUP\n"
	"  -s, --set KEY=VALUE    override one setting; keys inside a map are written with dots\n"
	"      --node-name NAME   this node's name: the same as --set nodeName=NAME\n"
	"      --node-label KEY=VALUE  one of its labels, for the file's sections; when none is "
	"given\n"
	"                         the API server is asked\n"
	"      --check-config     check settings, machine and kubeconfig, say what would run, and "
	"exit\n"
	"      --print-config     print every setting: value in force, type and meaning\n"
	"  -V, --version          print the version\n"
	"  -h, --help             print this\n";

enum { OPT_CHECK = 1000, OPT_PRINT, OPT_NAME, OPT_LABEL };
static const struct option options[] = {
	{"config", required_argument, NULL, 'c'},
	{"set", required_argument, NULL, 's'},
	{"node-name", required_argument, NULL, OPT_NAME},
	{"node-label", required_argument, NULL, OPT_LABEL},
	{"check-config", no_argument, NULL, OPT_CHECK},
	{"print-config", no_argument, NULL, OPT_PRINT},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int take_label_option(struct options *o, char *assignment, struct err *e)
{
	char *equals = strchr(assignment, '=');

	if (!equals)
		return err_set(e, EINVAL, "--node-label %s: KEY=VALUE is expected", assignment);
	*equals = '\0';
	*vec_push(&o->labels) = (struct key_value){assignment, equals + 1};
	return 0;
}

static void add_option_name(struct options *o, char *name)
{
	static char set[512]; /* the last one counts */

	(void)snprintf(set, sizeof set, "nodeName=%s", name);
	*vec_push(&o->sets) = set;
}

static int take_option(struct options *o, int opt, struct err *e)
{
	switch (opt) {
	case 'c':
		o->file = optarg;
		return 0;
	case 's':
		*vec_push(&o->sets) = optarg;
		return 0;
	case OPT_NAME:
		add_option_name(o, optarg);
		return 0;
	case OPT_LABEL:
		return take_label_option(o, optarg, e);
	case OPT_CHECK:
	case OPT_PRINT:
		o->action = opt == OPT_CHECK ? CHECK : PRINT;
		return 0;
	case 'V':
	case 'h':
		(void)fputs(opt == 'V' ? "numafitd " NUMAFIT_VERSION "\n" : usage, stdout);
		o->action = DONE;
		return 0;
	default:
		return err_set(e, EINVAL, "see numafitd --help");
	}
}

int options_read(int argc, char **argv, struct options *o, struct err *e)
{
	int opt, rc = 0;

	*o = (struct options){.action = RUN};
	while (!rc && o->action != DONE &&
		(opt = getopt_long(argc, argv, "c:s:Vh", options, NULL)) != -1)
		rc = take_option(o, opt, e);
	if (!rc && o->action != DONE && optind < argc)
		rc = err_set(
			e, EINVAL, "\"%s\" is not an option; see numafitd --help", argv[optind]);
	return rc;
}

void options_fini(struct options *o)
{
	vec_fini(&o->sets);
	vec_fini(&o->labels);
}
