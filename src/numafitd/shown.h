#ifndef NUMAFIT_NUMAFITD_SHOWN_H
#define NUMAFIT_NUMAFITD_SHOWN_H

#include <stddef.h>
#include <stdint.h>

struct daemon;

/* A document that clients may ask for over and over. It takes long to make where many containers
 * are, and the runtime waits meanwhile. All zero: it was not made yet. */
struct shown_document {
	char *text;                          /* NULL: it is too large, or was not made yet */
	size_t len;                          /* of text, in bytes, without the NUL */
	uint64_t made_ns, took_ns, event_ns; /* event_ns: of the runtime's last event by then */
};

/* Bring it up to date by make(), which returns a text that is to be freed, or NULL: it is too
 * large; its length goes to *len. A tenth of the time goes into all documents at most, or half of
 * it while the runtime's events come one after another. */
void shown_look(struct shown_document *k, const struct daemon *d,
	char *(*make)(const struct daemon *d, size_t *len));

#endif
