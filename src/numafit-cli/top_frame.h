#ifndef NUMAFIT_CLI_TOP_FRAME_H
#define NUMAFIT_CLI_TOP_FRAME_H

#include <codec/status_json.h>
#include <numafit/vec.h>

/* What `numafit top` shows, as lines of text: made of a status and of how it is looked at, without
 * a terminal. A line has printable ASCII alone and is never longer than the view is wide. */

enum top_order { TOP_BY_NAME, TOP_BY_CPUS, TOP_BY_MEMORY, TOP_BY_NODE, NR_TOP_ORDERS };

struct top_view {
	int columns, rows; /* of the terminal; rows 0: as many as are needed */
	const char *ns;    /* only containers of that namespace; NULL: all */
	const char
		*filter; /* only those that have this text in their names, whatever the case; "" */
	bool typing;     /* the filter is being typed */
	bool has_keys;   /* the last line says which keys there are */
	enum top_order order;
	size_t scroll;       /* containers above the first one that is shown */
	const char *problem; /* why the daemon does not answer; NULL: it does */
};

enum frame_style {
	FRAME_PLAIN,
	FRAME_TITLE,
	FRAME_WARNING,
	FRAME_HEADING,
	FRAME_NOTE,
	NR_FRAME_STYLES
};
struct frame_line {
	char *text;
	enum frame_style style;
};
struct frame {
	VEC(struct frame_line);
	size_t scroll; /* the view's, so that no line below the last container is shown */
	size_t shown;  /* containers */
};

/* The frame of the status (NULL: there is none yet); the caller calls frame_fini(). */
void top_frame(struct frame *f, const struct status *st, const struct top_view *v);
void frame_fini(struct frame *f);

#endif
