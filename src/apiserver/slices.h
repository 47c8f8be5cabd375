#ifndef NUMAFIT_APISERVER_SLICES_H
#define NUMAFIT_APISERVER_SLICES_H

#include <apiserver/api.h>
#include <numafit/slice_store.h>

/* The ResourceSlices of the node as the API server has them, kept at hand by a watch that sees no
 * others: nobody ever waits for it. What is kept of a slice is where its devices are. */
struct api_slices;

/* api_slices_close() is not for these callbacks. */
struct api_slices_handler {
	void *ctx;
	/* mandatory: devices may be known now that were not, or elsewhere than before */
	void (*changed)(void *ctx);
	/* mandatory, for the log, once for what lasts: a reflector's, as "slices-watch-waiting",
	 * "slices-watch-synced", "slices-watch-lost", and "slices-watch-odd-slice" (one that cannot
	 * be read or kept, with its reason). */
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
};

struct api_slices *api_slices_new(
	struct api *a, const char *node, const struct api_slices_handler *handler);
/* NULL: not known. Valid until the loop's next turn. */
const struct slice_device *api_slices_find(
	const struct api_slices *s, const char *driver, const char *pool, const char *device);
struct slice_counts api_slices_count(const struct api_slices *s);
/* Whether all that there are have come, and the watch is there. */
bool api_slices_synced(const struct api_slices *s);
/* NULL is fine. */
void api_slices_close(struct api_slices *s);

#endif
