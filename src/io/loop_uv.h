#ifndef NUMAFIT_IO_LOOP_UV_H
#define NUMAFIT_IO_LOOP_UV_H

#include <io/loop.h>
#include <uv.h>

/* For the files of io/ that hang handles of their own on the loop. Each such object is one heap
 * block that begins with its handle, whose data stays NULL: loop_free() closes and frees it like
 * its own. */
uv_loop_t *loop_uv(struct loop *l);
/* For uv_close(): frees such an object. */
void loop_free_handle(uv_handle_t *h);

#endif
