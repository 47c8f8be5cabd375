#ifndef NUMAFIT_UI_ASSETS_H
#define NUMAFIT_UI_ASSETS_H

#include <stdbool.h>
#include <stddef.h>

/* The files of the status page, which are part of the program. */
struct ui_asset {
	const char *path, *type; /* of its URL; Content-Type */
	const char *at;
	size_t len;
};

/* The file at that path into *out; false: there is none. */
bool ui_asset_find(const char *path, struct ui_asset *out);

#endif
