#ifndef NUMAFIT_NUMAFITD_BESIDE_H
#define NUMAFIT_NUMAFITD_BESIDE_H

struct daemon;

/* A kubelet whose own managers are static turns manage into shadow, loudly, unless the
 * settings want it otherwise. */
void beside_kubelet(struct daemon *d);

#endif
