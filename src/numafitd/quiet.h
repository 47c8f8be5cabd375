#ifndef NUMAFIT_NUMAFITD_QUIET_H
#define NUMAFIT_NUMAFITD_QUIET_H

#include <codec/status_json.h>
#include <numafit/engine.h>

struct daemon;
struct quiet;

/* Interrupts are kept off CPUs of containers that wish for it, and these CPUs have frequency profiles
 * (numafit.io/quiet). Done by a timer, step by step, after the events that make it due, and once more in
 * each round of the sweep. What a file of the kernel had is in the journal before it is changed, and
 * comes back. */

/* On the system under root ("/"). In mode release all that was changed is given back from here on. */
void quiet_start(struct daemon *d, const char *root);
void quiet_stop(struct daemon *d);

/* A record was made; all entries, or the settings, may have changed; a round of the sweep ends. */
void quiet_note_record(struct daemon *d, const struct record *r);
void quiet_note_all(struct daemon *d);
void quiet_look_again(struct daemon *d);

/* For status and metrics; false: nobody may wish for it, and nothing is changed. Its texts are valid
 * until the next event. */
bool quiet_status(const struct daemon *d, struct status_quiet *out);

#endif
