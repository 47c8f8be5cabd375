#ifndef NUMAFIT_CLI_REDACT_JSON_H
#define NUMAFIT_CLI_REDACT_JSON_H

#include <stddef.h>

/* What identifies pods (namespaces, names of pods, containers and claims, uids, container ids) is
 * replaced by words such as pod-3: one name has one word in all texts, so that a journal still
 * folds and replays. Texts are read twice: all of them to learn the names, and then to replace
 * these.
 *
 * A text is a JSON document or a line of numafitd's log. A value whose key identifies (namespace,
 * pod, container_id, ...) is replaced as a whole. In other values that are sentences or paths each
 * word that is a name is; names of one or two characters, and numbers, are left there. Ids are
 * replaced wherever they stand, in part too (a log has their first 12 characters, cgroups have uids
 * with '_'). What a document says under machine, topology and settings stays as it is, but for the
 * names in the setting namespaces.
 */
struct redaction;

struct redaction *redaction_new(void);
void redaction_free(struct redaction *r);
/* Learn the names in one document or one line of a log; what is neither has none. */
void redaction_learn(struct redaction *r, const char *text);
/* The text without them, without a newline at its end; the caller frees. */
char *redaction_apply(const struct redaction *r, const char *text);
/* How many names there are. */
size_t redaction_names(const struct redaction *r);

#endif
