#ifndef NUMAFIT_UI_ASSETS_H
#define NUMAFIT_UI_ASSETS_H

#include <stdbool.h>
#include <stddef.h>

/* The files of the pages, which are part of the programs: each program has those of its own page.
 */
struct ui_page;
extern const struct ui_page ui_node_page, ui_cluster_page;

struct ui_asset {
	const char *path, *type; /* of its URL; Content-Type */
	const char *at;
	size_t len;
};

/* The page's file at that path into *out; false: there is none. */
bool ui_asset_find(const struct ui_page *page, const char *path, struct ui_asset *out);

#endif
