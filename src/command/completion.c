#include <command/print.h>

#include <numafit/text.h>
#include <string.h>

enum { SHORT_MAX = 96 };

/* The beginning of a help, up to what means something to a shell; a single quote is written as
 * `quote`. */
static const char *short_help(const char *help, const char *quote, char buf[SHORT_MAX])
{
	size_t len = strcspn(help, ";:.[]\"$`\\(");
	struct text t;

	while (len && strchr(" ,", help[len - 1]))
		len--;
	text_init(&t, buf, SHORT_MAX);
	for (size_t i = 0; i < len && t.len + strlen(quote) < SHORT_MAX - 1; i++)
		if (help[i] == '\'')
			text_add(&t, "%s", quote);
		else
			text_add(&t, "%c", help[i]);
	return buf;
}

#define ZSH_QUOTE  "'\\''"
#define FISH_QUOTE "\\'"

/* Words parted by '|', each with `before` and `after` it. */
static void put_words(FILE *to, const char *words, const char *between)
{
	for (const char *c = words; *c; c++)
		(void)(*c == '|' ? fputs(between, to) : putc(*c, to));
}

static void put_keys(FILE *to, const char *after, const char *between)
{
	struct setting_doc doc;

	for (unsigned i = 0; settings_doc(i, &doc); i++)
		(void)fprintf(to, "%s%s%s", i ? between : "", doc.key, after);
}

/* The first words of verbs, each once; or, with a group, the second ones of it. */
static const char *next_verb_word(
	const struct program *p, const char *group, unsigned *i, char buf[64])
{
	while (*i < p->nr) {
		const struct command *c = p->commands[(*i)++];
		const char *from = c->name;

		if (group && !command_is_of(c, group))
			continue;
		if (group)
			from += strlen(group) + 1;
		size_t len = group ? strlen(from) : strcspn(from, " ");
		(void)snprintf(buf, 64, "%.*s", (int)len, from);
		if (group || *i < 2 || !command_is_of(p->commands[*i - 2], buf))
			return buf;
	}
	return NULL;
}

static void put_verbs(FILE *to, const struct program *p, const char *group)
{
	char word[64];
	unsigned i = 0;

	while (next_verb_word(p, group, &i, word))
		(void)fprintf(to, " %s", word);
}

/* Whether the command is the first of a group's; its name into buf. */
static bool begins_group(const struct program *p, unsigned i, char buf[64])
{
	const char *name = p->commands[i]->name;
	size_t len = strcspn(name, " ");

	(void)snprintf(buf, 64, "%.*s", (int)len, name);
	return name[len] && (!i || !command_is_of(p->commands[i - 1], buf));
}

/* bash */

static void bash_kind(FILE *to, enum completion completes, const char *value)
{
	static const char *const actions[] = {
		[COMPLETE_NOTHING] = "kind=none",
		[COMPLETE_FILE] = "kind=file",
		[COMPLETE_DIRECTORY] = "kind=directory",
		[COMPLETE_WORDS] = "words=",
		[COMPLETE_KEY] = "words=",
		[COMPLETE_SETTING] = "kind=setting words=",
		[COMPLETE_CONTAINER] = "kind=container",
		[COMPLETE_NAMESPACE] = "kind=namespace",
		[COMPLETE_VERB] = "words=$verbs",
	};

	(void)fputs(actions[completes], to);
	if (completes == COMPLETE_WORDS) {
		(void)putc('\'', to);
		put_words(to, value, " ");
		(void)putc('\'', to);
	} else if (completes == COMPLETE_KEY || completes == COMPLETE_SETTING) {
		(void)putc('\'', to);
		put_keys(to, completes == COMPLETE_SETTING ? "=" : "", " ");
		(void)putc('\'', to);
	}
}

static void bash_command(FILE *to, const struct command *c)
{
	const struct option_row *o;
	const char *name = c->name ? c->name : "";

	(void)fprintf(to, "\t'%s')\n\t\toptions='", name);
	for (unsigned i = 0; (o = command_option(c, i)); i++) {
		if (o->letter)
			(void)fprintf(to, "-%c ", o->letter);
		(void)fprintf(to, "--%s ", o->name);
	}
	(void)fputs("'\n\t\tcase $prev in\n", to);
	for (unsigned i = 0; (o = command_option(c, i)); i++) {
		if (!o->value)
			continue;
		(void)fputs("\t\t", to);
		if (o->letter)
			(void)fprintf(to, "-%c | ", o->letter);
		(void)fprintf(to, "--%s%s) ", o->name, o->rest ? "*" : "");
		bash_kind(to, o->completes, o->value);
		(void)fputs(" ;;\n", to);
	}
	(void)fputs("\t\t*) operand=yes; ", to);
	bash_kind(to, c->operand.value ? c->operand.completes : COMPLETE_NOTHING, c->operand.value);
	(void)fputs(" ;;\n\t\tesac\n\t\t;;\n", to);
}

/* The function's name: no shell minds a '_'. */
static const char *function_of(const struct program *p, char buf[64])
{
	(void)snprintf(buf, 64, "_%s", p->name);
	for (char *c = buf; *c; c++)
		*c = *c == '-' ? '_' : *c;
	return buf;
}

static void bash_begin(FILE *to, const struct program *p)
{
	char f[64];

	(void)fprintf(to,
		"# bash completion for %s, made from its own table of options\n"
		"%s()\n{\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
		"\tlocal verb='' verbs='' options='' words='' kind=words operand='' place=() i\n"
		"\tlocal names=() word quoted\n"
		"\tCOMPREPLY=()\n"
		"\n"
		"\t# bash makes three words of --option=value\n"
		"\tif [[ $cur == '=' ]]; then\n\t\tcur=''\n"
		"\telif [[ $prev == '=' ]] && ((COMP_CWORD > 1)); then\n"
		"\t\tprev=${COMP_WORDS[COMP_CWORD - 2]}\n\tfi\n"
		"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		"\t\t[[ ${COMP_WORDS[i]} != --run-directory ]] || "
		"place=(--run-directory \"${COMP_WORDS[i + 1]}\")\n\tdone\n",
		p->name, function_of(p, f));
}

static void bash_end(FILE *to, const struct program *p)
{
	char f[64];

	(void)fputs(
		"\tif [[ $cur == -* ]]; then\n\t\tkind=words words=$options\n\tfi\n"
		"\tcase $kind in\n"
		"\tfile) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
		"\t\tcompopt -o filenames 2>/dev/null ;;\n"
		"\tdirectory) mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n"
		"\t\tcompopt -o filenames 2>/dev/null ;;\n"
		"\tcontainer) mapfile -t names < <(\"${COMP_WORDS[0]}\" explain --list \"${place[@]}\" "
		"2>/dev/null | sed 'p; s,^[^/]*/,,; s,/.*,,' | sort -u) ;;\n"
		"\tnamespace) mapfile -t names < <(\"${COMP_WORDS[0]}\" explain --list \"${place[@]}\" "
		"2>/dev/null | cut -d/ -f1 | sort -u) ;;\n"
		"\tsetting) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
		"\t\tcompopt -o nospace 2>/dev/null ;;\n"
		"\twords) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\") ;;\n"
		"\t*) COMPREPLY=() ;;\n"
		"\tesac\n"
		/* names that others chose are never read by the shell: compgen -W would expand them
		 */
		"\tfor word in \"${names[@]}\"; do\n"
		"\t\tprintf -v quoted %q \"$word\"\n"
		"\t\t[[ $word == -* || ($word != \"$cur\"* && $quoted != \"$cur\"*) ]] || "
		"COMPREPLY+=(\"$quoted\")\n"
		"\tdone\n}\n",
		to);
	(void)fprintf(to, "complete -F %s %s\n", function_of(p, f), p->name);
}

static void bash_print(FILE *to, const struct program *p)
{
	static const struct command none = {0};
	bool verbs = p->commands[0]->name;
	char group[64];

	bash_begin(to, p);
	if (verbs) {
		(void)fputs("\tverbs='", to);
		put_verbs(to, p, NULL);
		(void)fputs("'\n\t((COMP_CWORD == 1)) || verb=${COMP_WORDS[1]}\n"
			    "\t[[ $verb != -* ]] || verb=''\n"
			    "\tcase $verb in\n",
			to);
		for (unsigned i = 0; i < p->nr; i++) {
			if (!begins_group(p, i, group))
				continue;
			(void)fprintf(to,
				"\t'%s')\n\t\tif ((COMP_CWORD == 2)); then\n\t\t\tverb=-"
				"\n\t\t\twords='",
				group);
			put_verbs(to, p, group);
			(void)fputs("'\n\t\telse\n\t\t\tverb=\"$verb ${COMP_WORDS[2]}\"\n\t\tfi\n"
				    "\t\t;;\n",
				to);
		}
		(void)fputs("\tesac\n", to);
	}
	(void)fputs("\tcase $verb in\n", to);
	for (unsigned i = 0; i < p->nr; i++)
		bash_command(to, p->commands[i]);
	if (verbs)
		bash_command(to, &none);
	(void)fputs("\tesac\n", to);
	if (verbs)
		(void)fputs(
			"\tif ((COMP_CWORD == 1)); then\n\t\tkind=words words=$verbs\n\tfi\n", to);
	bash_end(to, p);
}

/* zsh */

static void zsh_action(
	FILE *to, const struct program *p, enum completion completes, const char *value)
{
	switch (completes) {
	case COMPLETE_FILE:
		(void)fputs("_files", to);
		break;
	case COMPLETE_DIRECTORY:
		(void)fputs("_files -/", to);
		break;
	case COMPLETE_WORDS:
		(void)putc('(', to);
		put_words(to, value, " ");
		(void)putc(')', to);
		break;
	case COMPLETE_VERB:
		(void)putc('(', to);
		put_verbs(to, p, NULL);
		(void)putc(')', to);
		break;
	case COMPLETE_KEY:
		(void)putc('(', to);
		put_keys(to, "", " ");
		(void)putc(')', to);
		break;
	case COMPLETE_SETTING:
		(void)fputs("{compadd -S \"=\" -q --", to);
		put_keys(to, "", " ");
		(void)putc('}', to);
		break;
	case COMPLETE_CONTAINER:
		(void)fputs(
			"{local -a names; names=(${(f)\"$($service explain --list $place "
			"2>/dev/null)\"}); compadd -- ${names:#-*} ${(u)${${names#*/}%%/*}:#-*}}",
			to);
		break;
	case COMPLETE_NAMESPACE:
		(void)fprintf(to, "{compadd -- ${(u)${${(f)\"$($service explain --list $place "
				  "2>/dev/null)\"}%%%%/*}\\:#-*}}");
		break;
	case COMPLETE_NOTHING:
		(void)putc(' ', to);
	}
}

/* ':' would end a message. */
static void zsh_message(FILE *to, const char *value)
{
	for (; *value; value++)
		(void)putc(strchr(":[]'", *value) ? ' ' : *value, to);
}

static void zsh_option(FILE *to, const struct program *p, const struct option_row *o)
{
	char help[SHORT_MAX];
	const char *many = o->repeats || o->rest ? "*" : "";

	if (o->letter && *many)
		(void)fprintf(to, "'*'{-%c,--%s}", o->letter, o->name);
	else if (o->letter)
		(void)fprintf(to, "'(-%c --%s)'{-%c,--%s}", o->letter, o->name, o->letter, o->name);
	else
		(void)fprintf(to, "'%s'--%s%s", many, o->name, o->rest ? "+" : "");
	(void)fprintf(to, "'[%s]", short_help(o->help, ZSH_QUOTE, help));
	if (o->value) {
		(void)putc(':', to);
		zsh_message(to, o->value);
		(void)putc(':', to);
		zsh_action(to, p, o->completes, o->value);
	}
	(void)fputs("' ", to);
}

static void zsh_arguments(FILE *to, const struct program *p, const struct command *c)
{
	const struct operand *op = &c->operand;
	const struct option_row *o;

	(void)fputs("_arguments -s ", to);
	for (unsigned i = 0; (o = command_option(c, i)); i++) {
		(void)fputs("\\\n\t\t\t", to);
		zsh_option(to, p, o);
	}
	if (op->value) {
		(void)fprintf(to, "\\\n\t\t\t'%s", op->most > 1 ? "*:" : op->least ? ":" : "::");
		zsh_message(to, op->value);
		(void)putc(':', to);
		zsh_action(to, p, op->completes, op->value);
		(void)putc('\'', to);
	}
	(void)putc('\n', to);
}

static void zsh_verbs(FILE *to, const struct program *p, const char *group)
{
	char word[64], help[SHORT_MAX];
	unsigned i = 0;

	(void)fputs("\t\tverbs=(", to);
	while (next_verb_word(p, group, &i, word))
		(void)fprintf(to, "\n\t\t\t'%s:%s'", word,
			short_help(p->commands[i - 1]->summary, ZSH_QUOTE, help));
	(void)fputs(")\n\t\t_describe verb verbs\n", to);
}

/* In a folder of functions the file is the function: its first call is to complete, too. */
static void zsh_end(FILE *to, const struct program *p)
{
	char f[64];

	(void)function_of(p, f);
	(void)fprintf(to,
		"if [[ ${funcstack[1]} == %s ]]; then\n\t%s \"$@\"\nelse\n\tcompdef %s %s\nfi\n", f,
		f, f, p->name);
}

static void zsh_print(FILE *to, const struct program *p)
{
	static const struct command none = {0};
	char f[64], group[64];

	(void)fprintf(to,
		"#compdef %s\n# zsh completion for %s, made from its own table of options\n"
		"%s()\n{\n\tlocal -a verbs place\n"
		"\tplace=(${words[${words[(i)--run-directory]},${words[(i)--run-directory]}+1]})\n",
		p->name, p->name, function_of(p, f));
	if (!p->commands[0]->name) {
		(void)fputs("\t\t", to);
		zsh_arguments(to, p, p->commands[0]);
		(void)fputs("}\n", to);
		zsh_end(to, p);
		return;
	}
	(void)fputs("\tif (( CURRENT == 2 )); then\n", to);
	zsh_verbs(to, p, NULL);
	(void)fputs("\t\t", to);
	zsh_arguments(to, p, &none);
	(void)fputs("\t\treturn\n\tfi\n", to);
	for (unsigned i = 0; i < p->nr; i++) {
		if (!begins_group(p, i, group))
			continue;
		(void)fprintf(
			to, "\tif [[ $words[2] == %s ]] && (( CURRENT == 3 )); then\n", group);
		zsh_verbs(to, p, group);
		(void)fputs("\t\treturn\n\tfi\n", to);
	}
	(void)fputs("\tshift words\n\t(( CURRENT-- ))\n\tcase $words[1] in\n\t", to);
	for (unsigned i = 0; i < p->nr; i++)
		if (begins_group(p, i, group))
			(void)fprintf(to,
				"%s)\n\t\twords=(\"$words[1] $words[2]\" $words[3,-1])\n"
				"\t\t(( CURRENT-- ))\n\t\t;;\n\t",
				group);
	(void)fputs("esac\n\tcase $words[1] in\n", to);
	for (unsigned i = 0; i < p->nr; i++) {
		(void)fprintf(to, "\t'%s')\n\t\t", p->commands[i]->name);
		zsh_arguments(to, p, p->commands[i]);
		(void)fputs("\t\t;;\n", to);
	}
	(void)fputs("\tesac\n}\n", to);
	zsh_end(to, p);
}

/* fish */

static void fish_action(
	FILE *to, const struct program *p, enum completion completes, const char *value)
{
	char f[64];

	switch (completes) {
	case COMPLETE_FILE:
		(void)fputs(" -r -F", to);
		break;
	case COMPLETE_DIRECTORY:
		(void)fputs(" -x -a '(__fish_complete_directories)'", to);
		break;
	case COMPLETE_WORDS:
		(void)fputs(" -x -a '", to);
		put_words(to, value, " ");
		(void)putc('\'', to);
		break;
	case COMPLETE_VERB:
		(void)fputs(" -x -a '", to);
		put_verbs(to, p, NULL);
		(void)putc('\'', to);
		break;
	case COMPLETE_KEY:
	case COMPLETE_SETTING:
		(void)fputs(" -x -a '", to);
		put_keys(to, completes == COMPLETE_SETTING ? "=" : "", " ");
		(void)putc('\'', to);
		break;
	case COMPLETE_CONTAINER:
		(void)function_of(p, f);
		(void)fprintf(to, " -x -a '(_%s_names; _%s_pods)'", f, f);
		break;
	case COMPLETE_NAMESPACE:
		(void)fprintf(to, " -x -a '(_%s_names | string replace -r \"/.*\" \"\")'",
			function_of(p, f));
		break;
	case COMPLETE_NOTHING:
		(void)fputs(" -x", to);
	}
}

static void fish_command(FILE *to, const struct program *p, const struct command *c)
{
	const struct option_row *o;
	char f[64], help[SHORT_MAX];

	(void)function_of(p, f);
	for (unsigned i = 0; (o = command_option(c, i)); i++) {
		(void)fprintf(to, "complete -c %s", p->name);
		if (c->name)
			(void)fprintf(to, " -n '_%s_is %s'", f, c->name);
		else if (p->commands[0]->name)
			(void)fprintf(to, " -n '_%s_at 1'", f);
		if (o->letter)
			(void)fprintf(to, " -s %c", o->letter);
		(void)fprintf(to, " -l %s", o->name);
		if (o->value)
			fish_action(to, p, o->completes, o->value);
		(void)fprintf(to, " -d '%s'\n", short_help(o->help, FISH_QUOTE, help));
	}
	if (!c->operand.value)
		return;
	(void)fprintf(to, "complete -c %s", p->name);
	if (c->name)
		(void)fprintf(to, " -n '_%s_is %s'", f, c->name);
	fish_action(to, p, c->operand.completes, c->operand.value);
	(void)putc('\n', to);
}

static void fish_verbs(FILE *to, const struct program *p, const char *group)
{
	char word[64], f[64], help[SHORT_MAX];
	unsigned i = 0;

	(void)function_of(p, f);
	while (next_verb_word(p, group, &i, word))
		(void)fprintf(to, "complete -c %s -n '_%s_at %d; and _%s_is %s' -a %s -d '%s'\n",
			p->name, f, group ? 2 : 1, f, group ? group : "", word,
			short_help(p->commands[i - 1]->summary, FISH_QUOTE, help));
}

static void fish_print(FILE *to, const struct program *p)
{
	static const struct command none = {0};
	char f[64], group[64];

	(void)function_of(p, f);
	(void)fprintf(to,
		"# fish completion for %s, made from its own table of options\n"
		"function _%s_is\n\tset -l words (commandline -opc)\n"
		"\tset -l last (math 1 + (count $argv))\n"
		"\ttest $last -eq 1; or test \"$words[2..$last]\" = \"$argv\"\nend\n"
		"function _%s_at\n\ttest (count (commandline -opc)) -eq $argv[1]\nend\n"
		"function _%s_names\n\tset -l words (commandline -opc)\n"
		"\tset -l at (contains -i -- --run-directory $words)\n"
		"\tand set -l place $words[$at..(math $at + 1)]\n"
		"\t$words[1] explain --list $place 2>/dev/null | string match -v -- \"-*\"\nend\n"
		"function _%s_pods\n\t_%s_names | string replace -r '^[^/]*/([^/]*).*' '$1' | "
		"string match -v -- \"-*\" | sort -u\nend\n"
		"complete -c %s -f\n",
		p->name, f, f, f, f, f, p->name);
	if (p->commands[0]->name) {
		fish_verbs(to, p, NULL);
		fish_command(to, p, &none);
	}
	for (unsigned i = 0; i < p->nr; i++) {
		if (p->commands[0]->name && begins_group(p, i, group))
			fish_verbs(to, p, group);
		fish_command(to, p, p->commands[i]);
	}
}

void completion_print(FILE *to, const struct program *p, enum shell shell)
{
	static void (*const print[NR_SHELLS])(FILE * to, const struct program *p) = {
		[SHELL_BASH] = bash_print, [SHELL_ZSH] = zsh_print, [SHELL_FISH] = fish_print};

	print[shell](to, p);
}
