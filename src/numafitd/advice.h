#ifndef NUMAFIT_NUMAFITD_ADVICE_H
#define NUMAFIT_NUMAFITD_ADVICE_H

#include <numafit/advice.h>
#include <numafit/engine.h>

struct daemon;

/* The formats that are looked for, the first one first. */
struct advice_formats {
	enum advice_format format[NR_ADVICE_FORMATS];
	unsigned nr;
};

/* What schedulers have left in a pod's annotations, for the merge; only in mode manage.
 * The node's name and the order of formats, from the settings. 0, or -EINVAL with text. */
int advice_start(struct daemon *d, struct err *e);
/* schedulerHint.order, which was checked, is another one. */
void advice_settings_changed(struct daemon *d);
/* A scheduler's advice for the container and its pod's topology policy, into *req, from *a. */
void advice_of_container(struct daemon *d, struct request *req, struct arena *a);
/* The same for each container of the pod, all of which are known, into *pod. */
void advice_of_pod(struct daemon *d, struct pod *pod, struct arena *a);
/* The verdict goes into the counters. */
void advice_count(struct daemon *d, const struct decision *dec);

#endif
