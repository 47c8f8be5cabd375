#include <codec/fields_json.h>
#include <numafit/text.h>
#include <numafit-cli/verbs.h>
#include <numafit/version.h>
#include <stdio.h>

static int verb_version(int argc, char **argv);
static int verb_help(int argc, char **argv);

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} verbs[] = {
	{"topology", verb_topology, "show a machine: NUMA nodes, CPUs, memory, distances"},
	{"status", verb_status, "show what the daemon on this node holds and has done"},
	{"config", verb_config, "explain numafitd's settings, or check a config file"},
	{"decide", verb_decide,
		"answer placement questions from a file, or check recorded answers"},
	{"score", verb_score, "filter and score nodes as schedulers do, or check recorded answers"},
	{"explain", verb_explain, "explain what was decided for a container, and why"},
	{"whatif", verb_whatif, "ask whether a container would fit now, and where"},
	{"hint", verb_hint, "write a scheduler's hint for a pod, or check one"},
	{"replay", verb_replay, "decide everything in a journal once more, and compare"},
	{"version", verb_version, "print the version"},
	{"help", verb_help, "explain a verb: numafit help VERB"},
};
enum { NR_VERBS = sizeof verbs / sizeof *verbs };

static void list_verbs(FILE *to)
{
	(void)fputs("usage: numafit VERB [OPTIONS]\n\n", to);
	for (unsigned i = 0; i < NR_VERBS; i++)
		(void)fprintf(to, "  %-10s %s\n", verbs[i].name, verbs[i].help);
	(void)fputs("\n\"numafit VERB --help\" explains one of them.\n", to);
}

static int verb_version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	(void)puts("numafit " NUMAFIT_VERSION);
	return EXIT_DONE;
}

static int run_verb(int argc, char **argv)
{
	for (unsigned i = 0; i < NR_VERBS; i++)
		if (text_equal(argv[0], verbs[i].name))
			return verbs[i].run(argc, argv);
	(void)fprintf(stderr, "numafit: there is no verb \"%s\"\n", argv[0]);
	list_verbs(stderr);
	return EXIT_USAGE;
}

static int verb_help(int argc, char **argv)
{
	static char help[] = "--help";

	/* the two verbs without options of their own */
	if (argc < 2 || text_equal(argv[1], "help") || text_equal(argv[1], "version") ||
		argv[1][0] == '-') {
		list_verbs(stdout);
		return EXIT_DONE;
	}
	return run_verb(2, (char *[]){argv[1], help, NULL});
}

int main(int argc, char **argv)
{
	json_seed();
	if (argc < 2) {
		list_verbs(stderr);
		return EXIT_USAGE;
	}
	if (text_equal(argv[1], "--help") || text_equal(argv[1], "-h"))
		return verb_help(1, argv);
	if (text_equal(argv[1], "--version"))
		return verb_version(1, argv);
	int code = run_verb(argc - 1, argv + 1);
	if (fflush(stdout) || ferror(stdout)) {
		perror("numafit: standard output");
		return EXIT_FAILED;
	}
	return code;
}
