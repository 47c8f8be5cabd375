#ifndef NUMAFIT_CLI_STATUS_VIEW_H
#define NUMAFIT_CLI_STATUS_VIEW_H

#include <codec/status_json.h>
#include <numafit/text.h>

/* What the verbs that show a status to people have in common. */

/* "1d2h": the two largest units. Returns buf, of UPTIME_TEXT_MAX bytes. */
enum { UPTIME_TEXT_MAX = 32 };
const char *uptime_text(uint64_t ms, char *buf);
/* The value in force of the setting with that key; "?": there is none. */
const char *status_setting(const struct status *st, const char *key);
/* "yes", "shared", "its pod's", "left": whose CPUs the container runs on. */
const char *status_own_words(const struct status_container *c);
/* What is wrong while no runtime is connected; NULL: one is. */
const char *status_disconnected(const struct status *st);
/* All CPUs that are online and of a NUMA node; empty with an older daemon. */
struct cpuset status_cpus(const struct status *st);
/* Sentence i about CPUs that are not for everybody, each with its CPUs and why: "CPUs that nobody
 * may use: 4-5 (offline)". Appended to *t; false behind the last one. One that holds for no CPU is
 * empty. */
bool status_unused_cpus(const struct status *st, unsigned i, struct text *t);
enum { UNUSED_TEXT_MAX = 4 * CPUSET_TEXT_MAX };

/* The containers by namespace, pod and name, of that namespace (NULL: all). How many; the caller
 * frees *list. */
size_t status_containers_by_name(
	const struct status *st, const char *ns, const struct status_container ***list);
/* Order of two containers by namespace, pod, name and id. */
int status_compare_names(const struct status_container *a, const struct status_container *b);

#endif
