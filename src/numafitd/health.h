#ifndef NUMAFIT_NUMAFITD_HEALTH_H
#define NUMAFIT_NUMAFITD_HEALTH_H

#include <stdbool.h>

struct daemon;

/* Whether the daemon can do its work, for "livez" and "readyz". */
struct health_verdict {
	bool ok;
	char failures[1024]; /* a line for each reason, or "" */
	char all[2048];      /* a line for each check */
};
void health_check(const struct daemon *d, const char *which, struct health_verdict *out);

#endif
