#ifndef NUMAFIT_CODEC_REFUSAL_LINE_H
#define NUMAFIT_CODEC_REFUSAL_LINE_H

#include <numafit/admit.h>
#include <numafit/diagnosis.h>
#include <stdio.h>

/* The record of a refusal, for programs, with what the journal does not have as it follows from all
 * before: "class" (refusal_class_words), "why" (the sentence), "help" (the sentence) and
 * "remedies", each with its text and with what it changes as data; "remedies_left_out" is true if
 * the budget of the whole answer ended the search for remedies. */

/* These members, as a JSON object for the caller to free. */
char *refusal_members(const struct admit_question *q, const struct decision *refused,
	const struct diagnosis *why);
/* The same where the refusal cannot be decided again: without class and help, and the recorded
 * message is why. */
char *refusal_members_recorded(const struct decision *refused);
/* The record's line with these members behind its own; the caller frees. */
char *refusal_line_join(const char *line, const char *members);
/* The record's line, an object, with these members behind its own. */
void refusal_line_print(FILE *to, const char *line, const char *members);

#endif
