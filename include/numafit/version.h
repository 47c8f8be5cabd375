#ifndef NUMAFIT_VERSION_H
#define NUMAFIT_VERSION_H

/* The one place that says which release this is. */
#define NUMAFIT_VERSION "0.1.0"

#endif
