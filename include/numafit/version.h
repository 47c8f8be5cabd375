/* base: the one place that says which numafit this is */
#ifndef NUMAFIT_VERSION_H
#define NUMAFIT_VERSION_H

#define NUMAFIT_VERSION "0.1.0"
#define NUMAFIT_DATE    "2026-11-23" /* the day it was made, for the man pages */

#endif
