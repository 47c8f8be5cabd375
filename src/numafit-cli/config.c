#include <numafit-cli/verbs.h>

#include <apiserver/auth.h>
#include <codec/config_yaml.h>
#include <codec/flat_yaml.h>
#include <command/settings_man.h>
#include <errno.h>
#include <io/file.h>
#include <io/http_server_listen.h>
#include <numafit/host_kind.h>
#include <numafit/text.h>
#include <numafit/vec.h>
#include <stdio.h>
#include <string.h>

struct options {
	bool explain, markdown, man;
	const char *file, *key, *node_name;
	struct texts sets;
	struct assignments labels;
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

/* The table of deploy/docs/reference-settings.md. */
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

/* How many there are. */
static unsigned print_changed_settings(const struct settings *s)
{
	auto_free char *value = xcalloc(SETTING_TEXT_MAX, 1);
	struct setting_doc doc;
	unsigned nr = 0;

	for (unsigned i = 0; settings_doc(i, &doc); i++) {
		(void)settings_get(s, i, value, SETTING_TEXT_MAX);
		if (text_equal(value, doc.fallback))
			continue;
		(void)printf("%s: %s\n", doc.key, value_shown(value));
		nr++;
	}
	return nr;
}

static void check_address(const char *key, const char *address, struct mistakes *all)
{
	struct err e;

	if (!*address || http_check_address(address, HTTP_ADDRESS_TEXT, &e) == 0)
		return;
	(void)err_add(&e, 0, "%s", key);
	mistakes_add_key(all, key, &e);
}

/* What no other key and no machine has to be known for. */
static void check_by_themselves(const struct settings *s, struct mistakes *all)
{
	char buf[ADDRESS_MAX];
	struct err e;

	check_address("metrics.address", s->metrics_address, all);
	check_address("ui.address", host_as_address(s->ui_address, buf, sizeof buf), all);
	if (auth_check(s->kubeconfig, s->kube_context, &e) < 0) {
		(void)err_add(&e, 0, "apiServer.kubeconfig");
		mistakes_add_key(all, "apiServer.kubeconfig", &e);
	}
}

static int check_config_file(const struct call *c, const struct options *o)
{
	auto_free struct settings *s = xcalloc(1, sizeof *s);
	struct mistakes all = {0};
	struct err e = {0};
	const struct config_node node = {
		.name = o->node_name ? o->node_name : "",
		.knows_labels = o->labels.nr > 0,
		.labels = o->labels.at,
		.nr_labels = o->labels.nr,
	};
	struct config_source from = {
		.file = o->file, .sets = o->sets.at, .nr_sets = o->sets.nr, .all = &all};
	struct config_sections sections;
	char text[CONFIG_SECTIONS_TEXT_MAX];
	struct idle_setting idle[IDLE_SETTINGS_MAX];
	auto_free char *file = NULL;

	if (file_read_waiting(o->file, FLAT_YAML_BYTES_MAX, &file, &from.len, &e)) {
		(void)err_add(&e, 0, "config file");
		return call_fail(c, EXIT_USAGE, &e);
	}
	from.text = file;
	(void)config_settings(s, &from, &node, &sections, &e); /* mistakes are in the list */
	if (!all.unread) {
		(void)settings_check_daemon(s, NULL, &all, &e);
		check_by_themselves(s, &all);
	}
	int code = call_mistakes(c, &all, o->file);
	mistakes_fini(&all);
	if (code)
		return code;
	(void)fputs(config_sections_text(&sections, text), stdout);
	if (!print_changed_settings(s))
		(void)puts("# every setting has its default");
	for (unsigned i = 0, nr = settings_idle(s, idle); i < nr; i++)
		(void)printf("warning: %s: it changes no decision: %s\n", idle[i].key, idle[i].why);
	if (auth_check(s->kubeconfig, s->kube_context, &e) > 0)
		(void)printf("apiServer.kubeconfig not checked: %s\n", e.text);
	return EXIT_DONE;
}

static const struct option_row rows[] = {
	{.name = "explain",
		.help = "every setting, or the one called KEY, or those in the map called KEY: what it "
			"takes, its default, whether it can change while numafitd runs, what it does",
		.read = option_flag,
		.at = offsetof(struct options, explain)},
	{.name = "check",
		.value = "FILE",
		.help = "read the file as numafitd on the node would: which of its sections are for "
			"that node, and which settings it then has that are not the defaults. Its "
			"kubeconfig is read, too, if it is here. What only the machine shows, numafitd "
			"--check-config checks",
		.read = option_text,
		.at = offsetof(struct options, file),
		.completes = COMPLETE_FILE},
	{.name = "node-name",
		.value = "NAME",
		.help = "the node's name; default: none, which only sections by labels or * can fit",
		.read = option_text,
		.at = offsetof(struct options, node_name)},
	{.name = "node-label",
		.value = "KEY=VALUE",
		.help = "one of its labels; when none is given they are not known",
		.read = option_assignment,
		.at = offsetof(struct options, labels),
		.repeats = true},
	{.letter = 's',
		.name = "set",
		.value = "KEY=VALUE",
		.help = "as numafitd's command line",
		.read = option_texts,
		.at = offsetof(struct options, sets),
		.completes = COMPLETE_SETTING,
		.repeats = true},
	{.name = "markdown",
		.help = "the settings as a table for a document",
		.read = option_flag,
		.at = offsetof(struct options, markdown)},
	{.name = "manual",
		.help = "the reference as the man page numafitd.yaml(5)",
		.read = option_flag,
		.at = offsetof(struct options, man)},
	{0},
};

static int answer_config(const struct call *c, const struct options *o)
{
	struct err e = {0};
	int rc = 0;

	if (o->explain + o->markdown + o->man + (o->file != NULL) != 1)
		return call_misused(
			c, "one of --explain, --check FILE, --markdown and --manual is expected");
	if (o->key && !o->explain)
		return call_misused(c, "\"%s\" is one argument too many", o->key);
	if (o->file)
		return check_config_file(c, o);
	if (o->explain)
		rc = explain_settings(o->key, &e);
	else if (o->man)
		settings_man_print(stdout);
	else
		print_reference();
	return rc ? call_fail(c, EXIT_NO, &e) : EXIT_DONE;
}

static int run_config(const struct call *c)
{
	struct options o = {0};
	int code = call_read(c, &o);

	if (code < 0)
		code = answer_config(c, &o);
	vec_fini(&o.sets);
	vec_fini(&o.labels);
	return code;
}

const struct command verb_config = {
	.name = "config",
	.summary = "explain numafitd's settings, or check a config file",
	.about = "What can be set for numafitd, and what a config file sets.",
	.forms = {"config --explain [KEY]",
		"config --check FILE [--node-name NAME] [--node-label KEY=VALUE]... [-s KEY=VALUE]...",
		"config --markdown | --manual"},
	.options = rows,
	.operand = {"KEY", 0, 1, option_text, offsetof(struct options, key), COMPLETE_KEY},
	.examples = {{"numafit config --explain topologyManagerPolicy", "what one setting does"},
		{"numafit config --check numafitd.yaml --node-name gpu-7 --node-label pool=gpu",
			"what a file would mean on that node"}},
	.exits = {[EXIT_NO] = "there is no such key",
		[EXIT_USAGE] =
			"wrong usage, or the file is wrong: all mistakes are printed, each with its "
			"line"},
	.run = run_config,
};
