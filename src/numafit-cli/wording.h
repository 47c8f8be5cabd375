#ifndef NUMAFIT_CLI_WORDING_H
#define NUMAFIT_CLI_WORDING_H

#include <numafit/diagnosis.h>
#include <numafit/engine.h>
#include <stdio.h>

/* Decisions in words for people who run a node and have never seen the code: one labelled line for
 * each thing. NUMA nodes and CPUs have the kernel's numbers. */

/* Where a decision was made. */
struct scene {
	FILE *to;
	const struct topo *t;
	const struct settings *s;
	const struct cpuset *pool; /* the shared pool as it is now; NULL: that says nothing of it */
	bool wide;                 /* also what only those need who look into a decision */
};

/* "  label     text", broken into lines where it is long; control characters come out as "?". */
void wording_print(FILE *to, const char *label, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The text as it is, but for control characters. */
void wording_print_plain(FILE *to, const char *text);

enum { WORDING_TIME_MAX = 40 };
/* "2026-11-21 13:05:56.123 UTC" */
const char *wording_time(int64_t ms, char buf[WORDING_TIME_MAX]);

/* "accepted", "accepted, spilled", "refused", ...: what came of it, in a word or two. */
const char *wording_verdict(const struct decision *d);
/* What was asked for. */
void wording_print_request(const struct scene *x, const struct request *req);
/* The devices that this container of the pod has been given already (pod->attached). */
void wording_print_devices_of(const struct scene *x, const struct pod *pod, const struct ask *c);
/* The tokens of numafit.io/cpu that the container came with, if it did. */
void wording_print_tokens(
	const struct scene *x, const struct request *req, const struct decision *d);
/* What a whole pod asked for: its containers where they are known, else their sums. */
void wording_print_pod(const struct scene *x, const struct pod *pod);
/* What it was given; nothing for a refusal. */
void wording_print_grant(
	const struct scene *x, const struct request *req, const struct decision *d);
/* Why it is, or is not, on as few NUMA nodes as can be: what each resource had to offer. */
void wording_print_reasons(
	const struct scene *x, const struct decision *d, const struct reasons *r);
/* Why it was refused, in numbers, and what would help, then the kubelet's words. *q as in
 * diagnose(). */
void wording_print_refusal(const struct scene *x, const struct decision *d,
	const struct diagnosis *why, const struct admit_question *q);

#endif
