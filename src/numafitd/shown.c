/* Documents that are made once for all who ask at about the same time. */
#include "shown.h"
#include "daemon.h"

#include <io/fault.h>
#include <numafit/number.h>

#include <stdlib.h>

/* Times what a document took it is not made anew, while nothing happens and after an event: of the
 * DOCUMENTS together one is made in a tenth, or in half, of the time. One that takes no longer than
 * QUICK_NS is always made anew after an event. */
enum { DOCUMENTS = 2, REST = 10 * DOCUMENTS - 1, REST_AFTER = 2 * DOCUMENTS - 1 };
enum { QUICK_NS = 2 * NS_PER_MS };

static uint64_t rest_ns(const struct shown_document *k, const struct daemon *d)
{
	if (k->event_ns == d->measured.began_ns)
		return REST * k->took_ns;
	return k->took_ns > QUICK_NS ? REST_AFTER * k->took_ns : 0;
}

void shown_look(struct shown_document *k, const struct daemon *d,
	char *(*make)(const struct daemon *d, size_t *len))
{
	const uint64_t now = loop_monotonic_ns();

	if (k->made_ns && now - k->made_ns < rest_ns(k, d))
		return;
	free(k->text);
	k->text = make(d, &k->len);
	k->event_ns = d->measured.began_ns;
	k->made_ns = loop_monotonic_ns();
	k->took_ns = number_max(
		k->made_ns - now, fault_time_ms("NUMAFIT_FAULT_DOCUMENT_MS", 0) * NS_PER_MS);
}
