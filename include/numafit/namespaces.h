#ifndef NUMAFIT_NAMESPACES_H
#define NUMAFIT_NAMESPACES_H

#include <numafit/settings.h>

/* What the operator says of the pods of some namespaces, section by section (setting `namespaces`).
 * Of several sections for one namespace all count; where they contradict each other, the last one.
 */

/* Whether one of the section's patterns fits the name of a namespace. */
bool namespace_section_is_for(const struct namespace_section *n, const char *ns);
/* Bits of WISHES_CPUS, ...: what pods of the namespace may wish for beside what all pods may. */
unsigned namespaces_allow(const struct namespaces *all, const char *ns);
/* *w, which a container of the namespace wishes for, with what its sections say: their defaults
 * where *w says nothing, then what they force. */
void namespaces_obey(const struct namespaces *all, const char *ns, struct wishes *w);

#endif
