#include <numafit-cli/verbs.h>

#include <apiserver/auth.h>
#include <codec/config_yaml.h>
#include <errno.h>
#include <getopt.h>
#include <numafit-cli/config_file.h>
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
	"What numafitd can be told, and whether a config file tells it so.\n"
	"\n"
	"  --explain     every setting, or the one called KEY, or those in the map called KEY: "
	"what\n"
	"                it takes, its default, whether it can change while numafitd runs, what it "
	"does\n"
	"  --check       read the file as numafitd on the node would: which of its sections are "
	"for\n"
	"                that node, and which settings it then has that are not the defaults. "
	"Its\n"
	"                kubeconfig is read, too, if it is here. What only the machine tells,\n"
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

static const char *shown(const char *value)
{
	return *value ? value : "not set";
}

static bool is_asked_for(const char *key, const char *asked)
{
	size_t len = asked ? strlen(asked) : 0;

	return !len || (strncmp(key, asked, len) == 0 && (!key[len] || key[len] == '.'));
}

static int explain(const char *key, struct err *e)
{
	struct setting_doc doc;
	unsigned nr = 0;

	for (unsigned i = 0; settings_doc(i, &doc); i++) {
		if (!is_asked_for(doc.key, key))
			continue;
		(void)printf("%s%s\n    takes:   %s\n    default: %s\n    change:  %s\n    %s\n",
			nr++ ? "\n" : "", doc.key, doc.type, shown(doc.fallback),
			doc.reloadable ? "while numafitd runs" : "needs a restart of numafitd",
			doc.help);
	}
	if (nr)
		return 0;
	auto_free struct settings *s = xcalloc(1, sizeof *s);
	settings_init(s);
	return settings_set(s, key, "", e); /* which says what may have been meant */
}

/* A row of deploy/README.md's table. */
static void print_row(const struct setting_doc *doc)
{
	(void)printf("| `%s` | ", doc->key);
	for (const char *c = doc->type; *c; c++)
		(void)printf(*c == '|' ? "\\%c" : "%c", *c);
	(void)printf(*doc->fallback ? " | `%s` |" : " | %s |", shown(doc->fallback));
	(void)printf(" %s | %s |\n", doc->reloadable ? "yes" : "restart", doc->help);
}

static void print_table(void)
{
	struct setting_doc doc;

	(void)fputs("| key | takes | default | reload | meaning |\n"
		    "| --- | --- | --- | --- | --- |\n",
		stdout);
	for (unsigned i = 0; settings_doc(i, &doc); i++)
		print_row(&doc);
}

static void print_settings(const struct settings *s)
{
	auto_free char *value = xcalloc(SETTING_TEXT_MAX, 1);
	struct setting_doc doc;

	for (unsigned i = 0; settings_doc(i, &doc); i++) {
		(void)settings_get(s, i, value, SETTING_TEXT_MAX);
		if (!text_equal(value, doc.fallback))
			(void)printf("%s: %s\n", doc.key, shown(value));
	}
}

static int check(const struct options *o, struct err *e)
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
	auto_free char *file = config_file_text(o->file, &from.len, e);

	if (!file)
		return -e->code;
	from.text = file;
	int rc = config_settings(s, &from, &node, &sections, e);
	if (!rc)
		rc = settings_check_daemon(s, NULL, e);
	if (rc)
		return rc;
	rc = auth_check(s->kubeconfig, s->kube_context, e);
	if (rc < 0)
		return err_add(e, rc, "apiServer.kubeconfig");
	(void)fputs(config_sections_text(&sections, text), stdout);
	print_settings(s);
	if (rc)
		(void)printf("apiServer.kubeconfig not checked: %s\n", e->text);
	return 0;
}

static bool add_label(struct options *o, char *assignment)
{
	char *equals = strchr(assignment, '=');

	if (!equals)
		return false;
	*equals = '\0';
	*vec_push(&o->labels) = (struct key_value){assignment, equals + 1};
	return true;
}

static bool take(struct options *o, int c)
{
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
		return add_label(o, optarg);
	case 's':
		*vec_push(&o->sets) = optarg;
		return true;
	default:
		return false;
	}
}

/* -1: go on; else the exit code. */
static int read_options(int argc, char **argv, struct options *o)
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
		good = take(o, c);
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

static int act(const struct options *o, struct err *e)
{
	if (o->action == EXPLAIN)
		return explain(o->key, e);
	if (o->action == CHECK)
		return check(o, e);
	print_table();
	return 0;
}

int verb_config(int argc, char **argv)
{
	struct options o = {0};
	struct err e = {0};
	int code = read_options(argc, argv, &o);

	if (code < 0) {
		code = act(&o, &e) ? EXIT_FAILED : EXIT_DONE;
		if (code)
			(void)fprintf(stderr, "numafit config: %s\n", e.text);
	}
	vec_fini(&o.sets);
	vec_fini(&o.labels);
	return code;
}
