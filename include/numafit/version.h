/* base: the one place that says which numafit this is */
#ifndef NUMAFIT_VERSION_H
#define NUMAFIT_VERSION_H

#define NUMAFIT_VERSION "0.2.0"
#define NUMAFIT_DATE    "2026-11-26" /* the day it was made, for the man pages */

#endif
