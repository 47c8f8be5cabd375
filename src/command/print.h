#ifndef NUMAFIT_COMMAND_PRINT_H
#define NUMAFIT_COMMAND_PRINT_H

#include <command/command.h>

/* What is made of the tables besides reading them. For this folder only. */

enum shell { SHELL_BASH, SHELL_ZSH, SHELL_FISH, NR_SHELLS };

/* "what it is", "the answer is no", ...: of the exit code for the command; NULL: it has none. */
const char *command_exit_text(const struct command *c, enum exit_code code);
/* Whether the command is the group's: "hint check" is of "hint". */
bool command_is_of(const struct command *c, const char *group);

/* The usage: "PROGRAM VERB [--option VALUE] ... [FILE]", in lines of `width` at most. */
void usage_print(FILE *to, const struct program *p, const struct command *c, const char *lead);
/* All verbs, each with its summary. */
void verbs_print(FILE *to, const struct program *p);
void help_print(FILE *to, const struct program *p, const struct command *c);

/* The program's man page: man(7). */
void man_print(FILE *to, const struct program *p);
/* Its parts: the heading, a tag (bold, italic or NULL) whose text follows, text, sections. */
void man_title(FILE *to, const char *name, unsigned section, const char *summary);
void man_tag(FILE *to, const char *bold, const char *italic);
void man_text(FILE *to, const char *text);
void man_sections(FILE *to, const struct section *s);
/* A completion script for the shell. */
void completion_print(FILE *to, const struct program *p, enum shell shell);

#endif
