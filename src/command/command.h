#ifndef NUMAFIT_COMMAND_COMMAND_H
#define NUMAFIT_COMMAND_COMMAND_H

#include <numafit/mistakes.h>
#include <numafit/pod.h>
#include <numafit/vec.h>
#include <stdio.h>

/* The command line of all programs, as data: a program has commands (its verbs, or one without a
 * name), a command has options and an operand. What reads an argument vector, --help, the man page
 * and the completion of shells all come from these tables. */

/* The same in every program. */
enum exit_code {
	EXIT_DONE,   /* done, or the answer is yes */
	EXIT_NO,     /* the answer is no */
	EXIT_USAGE,  /* called wrongly, or with settings that are wrong */
	EXIT_CANNOT, /* it cannot be asked or done: no daemon, no journal, no file, no memory */
	NR_EXIT_CODES
};

/* What a shell offers for a value. */
enum completion {
	COMPLETE_NOTHING,
	COMPLETE_FILE,
	COMPLETE_DIRECTORY,
	COMPLETE_WORDS,     /* those of the value's name: "json|wide|table" */
	COMPLETE_KEY,       /* a setting of numafitd */
	COMPLETE_SETTING,   /* KEY=VALUE of one */
	COMPLETE_CONTAINER, /* what `numafit explain --list` prints */
	COMPLETE_NAMESPACE, /* of these */
	COMPLETE_VERB,      /* of the program */
};

/* One option. In a member of the caller's struct at `at` goes what read() makes of the value (NULL
 * where it takes none). read() returns 0 or -errno with text, which the option's name is put in
 * front of. */
struct option_row {
	char letter;       /* -c, too; 0: no short form */
	const char *name;  /* --config. A last row without one ends a table */
	const char *value; /* what its value is called: "FILE"; NULL: it takes none */
	const char *help;
	int (*read)(const struct option_row *o, void *member, char *value, struct err *e);
	size_t at;
	enum completion completes;
	bool repeats;
	/* --NAME-REST VALUE, as --hugepages-1Gi 2Gi: read() gets REST=VALUE. The name ends with
	 * '-'; `rest` is what REST is called. */
	const char *rest;
};

/* What stands on the command line without an option. */
struct operand {
	const char *value; /* "FILE"; NULL: there is none */
	unsigned least, most;
	int (*read)(const struct option_row *o, void *member, char *value, struct err *e);
	size_t at;
	enum completion completes;
};

struct example {
	const char *line, *shows;
};
enum { EXAMPLES_MAX = 5 };

/* One of what a command lists besides its options: the settings of its file. */
struct item {
	char name[64], text[512];
};

struct program;
struct command;
/* One call of a command. argv[0] is the last word of its name. */
struct call {
	const struct program *program;
	const struct command *command;
	int argc;
	char **argv;
};

/* Texts are paragraphs parted by an empty line, broken into lines where they are printed; a line
 * that begins with a blank is kept as it is. */
struct command {
	const char *name;    /* "status", "hint check"; NULL: of a program without verbs */
	const char *summary; /* "show what the daemon holds" */
	const char *about;
	const char *forms[3]; /* usage, where the table does not show it: without the program */
	const struct option_row *options;
	struct operand operand;
	struct example examples[EXAMPLES_MAX];
	const char *exits[NR_EXIT_CODES]; /* what a code means here; NULL: what it always means */
	const char *list_title;
	bool (*list)(unsigned i, struct item *out); /* item i, false behind the last; NULL: none */
	void (*more)(FILE *to);           /* prints the rest of a help; NULL: there is none */
	int (*run)(const struct call *c); /* returns an exit code */
};

struct section {
	const char *title, *text;
};
struct program {
	const char *name, *summary, *about;
	unsigned man; /* section of its man page */
	const struct command *const *commands;
	unsigned nr;
	const struct section *sections; /* of its man page, beside those made of the tables; a last
					   one without title ends them */
};

/* main() of a program: --help, --version, --man and --completion SHELL, the verbs, and what they
 * are misspelt as. A standard output that cannot be written is EXIT_CANNOT. */
int program_run(const struct program *p, int argc, char **argv);

/* Read options and operands into *into. -1: go on. Else the exit code: it was --help or --version,
 * or it is wrong, which has been printed. */
int call_read(const struct call *c, void *into);
/* Print "PROGRAM VERB: text" to stderr and return code. */
int call_fail(const struct call *c, enum exit_code code, const struct err *e);
/* The same for each mistake in settings, of a file of that name (NULL: there is none). EXIT_USAGE,
 * or EXIT_DONE when there is none. */
int call_mistakes(const struct call *c, const struct mistakes *all, const char *file);
/* The same for wrong usage, with where help is. */
int call_misused(const struct call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Print a command's help. */
void call_help(const struct call *c, FILE *to);

/* `help [VERB]` and `version`, for a program with verbs. */
extern const struct command command_help, command_version;

/* Readers */

/* bool: it is given. */
int option_flag(const struct option_row *o, void *member, char *value, struct err *e);
/* const char *: the value, argv's. */
int option_text(const struct option_row *o, void *member, char *value, struct err *e);
/* unsigned or an enum: the number of the word among those of o->value ("a|b" has 0 and 1). */
int option_word(const struct option_row *o, void *member, char *value, struct err *e);
/* struct texts: one more. */
int option_texts(const struct option_row *o, void *member, char *value, struct err *e);
/* struct assignments: one more, KEY=VALUE. */
int option_assignment(const struct option_row *o, void *member, char *value, struct err *e);

struct texts {
	VEC(const char *);
};
struct assignments {
	VEC(struct key_value);
};

/* Row i of the command's options, then of those that every command has; NULL: there are no more. */
const struct option_row *command_option(const struct command *c, unsigned i);

#endif
