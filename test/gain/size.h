#ifndef NUMAFIT_GAIN_SIZE_H
#define NUMAFIT_GAIN_SIZE_H

#include "gain.h"

/* How much memory a measurement takes, where the caller says nothing (0): four times the last-level
 * caches of the container's CPUs and 256 MiB at least, a power of two, but no more than a quarter
 * of what is free on the NUMA node that has least. Notes say where that is too little for the
 * caches, or what the caller wants is more. */
void size_memory(struct gain *g, bool quick);

#endif
