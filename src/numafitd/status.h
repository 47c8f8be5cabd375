#ifndef NUMAFIT_NUMAFITD_STATUS_H
#define NUMAFIT_NUMAFITD_STATUS_H

#include <numafit/err.h>

struct daemon;
struct shown_document;

/* The unix socket that `numafit status` asks. What may go well later (see
 * run_directory_may_come()) is logged and tried again. 0, or -errno with text. */
int status_start(struct daemon *d, struct err *e);
void status_stop(struct daemon *d);
/* What it answers; the caller frees. NULL: it would be too large. */
char *status_document(const struct daemon *d);
/* The same for clients that may ask over and over; until the next call. */
const struct shown_document *status_shown(struct daemon *d);

/* The status page, where ui.address says. */
void status_page_start(struct daemon *d);
void status_page_stop(struct daemon *d);

#endif
