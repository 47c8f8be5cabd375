#include <numafit-cli/verbs.h>

#include <apiserver/auth.h>
#include <codec/config_yaml.h>
#include <codec/flat_yaml.h>
#include <errno.h>
#include <getopt.h>
#include <io/file.h>
#include <numafit/text.h>
#include <numafit/vec.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
	"usage: numafit config --explain [KEY]\n"
	"       numafit config --check FILE [--node-name NAME] [--node-label KEY=VALUE ...]\n"
	"                      [--set KEY=VALUE ...]\n"
	"       numafit config --markdown\n"
	"\n"
	"What can be set for numafitd, and what a config file sets.\n"
	"\n"
	"  --explain     every setting, or the one called KEY, or those in the map called KEY: "
	"what\n"
	"                it takes, its default, whether it can change while numafitd runs, what it "
	"does\n"
	"  --check       read the file as numafitd on the node would: which of its sections are "
	"for\n"
	"                that node, and which settings it then has that are not the defaults. "
	"Its\n"
	"                kubeconfig is read, too, if it is here. What only the machine shows,\n"
	"                numafitd --check-config checks\n"
	"  --node-name   the node's name; default: none, which only sections by labels or * can "
	"fit\n"
	"  --node-label  one of its labels; when none is given they are not known\n"
	"  --set         as numafitd's command line\n"
	"  --markdown    the reference, as in deploy/README.md\n"
	"  --help        this text\n"
	"\n"
	"Exit code: 0 done; 1 the file is wrong, or there is no such key; 2 bad usage.\n";

enum action { NOTHING, EXPLAIN, CHECK, MARKDOWN };

struct options {
	enum action action;
	const char *file, *key, *node_name;
	struct {
		VEC(const char *);
	} sets;
	struct {
		VEC(struct key_value);
	} labels;
};

static const char *value_shown(const char *value)
{
	return *value ? value : "not set";
}

static int explain_settings(const char *key, struct err *e)
{
	size_t len = key ? strlen(key) : 0;
	struct setting_doc doc;
	unsigned nr = 0;

	for (unsigned i = 0; settings_doc(i, &doc); i++) {
		if (len &&
			(strncmp(doc.key, key, len) != 0 || (doc.key[len] && doc.key[len] != '.')))
			continue;
		(void)printf("%s%s\n    takes:   %s\n    default: %s\n    change:  %s\n    %s\n",
			nr++ ? "\n" : "", doc.key, doc.type, value_shown(doc.fallback),
			doc.reloadable ? "while numafitd runs" : "needs a restart of numafitd",
			doc.help);
	}
	if (nr)
		return 0;
	auto_free struct settings *s = xcalloc(1, sizeof *s);
	settings_init(s);
	return settings_set(s, key, "", e); /* which says what may have been meant */
}

/* The table of deploy/README.md. */
static void print_reference(void)
{
	struct setting_doc doc;

	(void)fputs("| key | takes | default | reload | meaning |\n"
		    "| --- | --- | --- | --- | --- |\n",
		stdout);
	for (unsigned i = 0; settings_doc(i, &doc); i++) {
		(void)printf("| `%s` | ", doc.key);
		for (const char *c = doc.type; *c; c++)
			(void)printf(*c == '|' ? "\\%c" : "%c", *c);
		(void)printf(*doc.fallback ? " | `%s` |" : " | %s |", value_shown(doc.fallback));
		(void)printf(" %s | %s |\n", doc.reloadable ? "yes" : "restart", doc.help);
	}
}

static void print_changed_settings(const struct settings *s)
{
	auto_free char *value = xcalloc(SETTING_TEXT_MAX, 1);
	struct setting_doc doc;

	for (unsigned i = 0; settings_doc(i, &doc); i++) {
		(void)settings_get(s, i, value, SETTING_TEXT_MAX);
		if (!text_equal(value, doc.fallback))
			(void)printf("%s: %s\n", doc.key, value_shown(value));
	}
}

static int check_config_file(const struct options *o, struct err *e)
{
	auto_free struct settings *s = xcalloc(1, sizeof *s);
	const struct config_node node = {
		.name = o->node_name ? o->node_name : "",
		.knows_labels = o->labels.nr > 0,
		.labels = o->labels.at,
		.nr_labels = o->labels.nr,
	};
	struct config_source from = {.file = o->file, .sets = o->sets.at, .nr_sets = o->sets.nr};
	struct config_sections sections;
	char text[CONFIG_SECTIONS_TEXT_MAX];
	auto_free char *file = NULL;
	int rc = file_read_waiting(o->file, FLAT_YAML_BYTES_MAX, &file, &from.len, e);

	if (rc)
		return rc;
	from.text = file;
	rc = config_settings(s, &from, &node, &sections, e);
	if (!rc)
		rc = settings_check_daemon(s, NULL, e);
	if (rc)
		return rc;
	rc = auth_check(s->kubeconfig, s->kube_context, e);
	if (rc < 0)
		return err_add(e, rc, "apiServer.kubeconfig");
	(void)fputs(config_sections_text(&sections, text), stdout);
	print_changed_settings(s);
	if (rc)
		(void)printf("apiServer.kubeconfig not checked: %s\n", e->text);
	return 0;
}

static bool take_config_option(struct options *o, int c)
{
	char *equals;

	switch (c) {
	case 'e':
	case 'm':
	case 'c':
		if (o->action)
			return false;
		o->action = c == 'e' ? EXPLAIN : c == 'm' ? MARKDOWN : CHECK;
		o->file = c == 'c' ? optarg : NULL;
		return true;
	case 'n':
		o->node_name = optarg;
		return true;
	case 'l':
		equals = strchr(optarg, '=');
		if (!equals)
			return false;
		*equals = '\0';
		*vec_push(&o->labels) = (struct key_value){optarg, equals + 1};
		return true;
	case 's':
		*vec_push(&o->sets) = optarg;
		return true;
	default:
		return false;
	}
}

/* -1: go on; else the exit code. */
static int read_config_options(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {{"explain", no_argument, NULL, 'e'},
		{"check", required_argument, NULL, 'c'}, {"markdown", no_argument, NULL, 'm'},
		{"node-name", required_argument, NULL, 'n'},
		{"node-label", required_argument, NULL, 'l'}, {"set", required_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'}, {0}};
	bool good = true;
	int c;

	optind = 0; /* main() hands on its own arguments: start over */
	while (good && (c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'h') {
			(void)fputs(help, stdout);
			return EXIT_DONE;
		}
		good = take_config_option(o, c);
	}
	if (o->action == EXPLAIN && optind < argc)
		o->key = argv[optind++];
	if (good && o->action && optind == argc)
		return -1;
	(void)fputs("numafit config: one of --explain, --check FILE and --markdown; see numafit "
		    "config --help\n",
		stderr);
	return EXIT_USAGE;
}

int verb_config(int argc, char **argv)
{
	struct options o = {0};
	struct err e = {0};
	int code = read_config_options(argc, argv, &o), rc = 0;

	if (code < 0) {
		if (o.action == EXPLAIN)
			rc = explain_settings(o.key, &e);
		else if (o.action == CHECK)
			rc = check_config_file(&o, &e);
		else
			print_reference();
		code = rc ? EXIT_FAILED : EXIT_DONE;
		if (rc)
			(void)fprintf(stderr, "numafit config: %s\n", e.text);
	}
	vec_fini(&o.sets);
	vec_fini(&o.labels);
	return code;
}
