#ifndef NUMAFIT_NUMAFITD_SHADOW_H
#define NUMAFIT_NUMAFITD_SHADOW_H

#include <nri/session.h>

struct daemon;

/* What the modes that place nothing do with the runtime's events. */
extern const struct nri_handler shadow_handler, off_handler, release_handler;

#endif
