#ifndef NUMAFIT_CLI_REDACT_JSON_H
#define NUMAFIT_CLI_REDACT_JSON_H

#include <stddef.h>

/* A document or a line of numafitd's log without anything that identifies a cluster: each value is
 * treated by its key (one table), never by a search in its text.
 *   - Names and ids (namespaces, pods, containers, claims, resources, devices, classes, uids,
 *     container ids, cgroups) become words such as pod-3. A name of one kind has one word in all
 *     texts, so that a journal still folds and replays.
 *   - Values of fixed sets, numbers, CPUs and NUMA nodes stay.
 *   - All other text (errors, messages, addresses, paths, annotations, keys that the table lacks) is
 *     left out: "" in a document, (left-out) in a line of the log.
 * Of the settings those that are any text are left out, but for the namespaces, which have words.
 */
struct redaction;

struct redaction *redaction_new(void);
void redaction_free(struct redaction *r);
/* The redacted text, without a newline at its end; the caller frees it. Text that is neither a
 * document nor a line of KEY=VALUE is left out. Texts with whole ids come before the log, which has
 * the first 12 characters of ids. */
char *redaction_apply(struct redaction *r, const char *text);
/* How many names there are. */
size_t redaction_names(const struct redaction *r);

#endif
