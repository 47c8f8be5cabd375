#ifndef NUMAFIT_UI_DOCUMENT_H
#define NUMAFIT_UI_DOCUMENT_H

#include <codec/fields.h>
#include <numafit/err.h>

/* *from as a JSON document, as fields_write() has it; the caller frees. NULL: it would be longer
 * than UI_DOCUMENT_MAX bytes. */
enum { UI_DOCUMENT_MAX = 16 << 20 };
char *ui_document(const struct fields *f, const void *from, const struct node_ids *ids);
/* {"error":"..."}, with the error's text; the caller frees. */
char *ui_error_json(const struct err *e);

#endif
