#ifndef NUMAFIT_NUMAFITD_STATUS_PAGE_H
#define NUMAFIT_NUMAFITD_STATUS_PAGE_H

#include <numafit/admit.h>

struct daemon;

/* The status page of this node over HTTP, where ui.address says; an address that cannot be had is
 * logged, and tried again. */
void status_page_start(struct daemon *d);
void status_page_stop(struct daemon *d);

/* A decision was made for that cause ("create"), for the page to show; why: the line that a refusal
 * was answered with, or "". */
void status_page_note(const struct daemon *d, const struct request *req, const struct decision *dec,
	const char *cause, const char *why);
/* A pod was refused as a whole, as its sandbox started. */
void status_page_note_pod(
	const struct daemon *d, const struct pod *pod, const struct decision *dec, const char *why);

#endif
