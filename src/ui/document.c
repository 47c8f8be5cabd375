#include <ui/document.h>

#include <numafit/mem.h>

enum { UI_FIRST_CAP = 64 << 10 };

char *ui_document(const struct fields *f, const void *from, const struct node_ids *ids)
{
	struct text t = {.cut = true};

	for (size_t cap = UI_FIRST_CAP; t.cut && cap <= UI_DOCUMENT_MAX; cap *= 2) {
		free(t.at);
		text_init(&t, xcalloc(cap, 1), cap);
		fields_write(&t, f, from, ids);
	}
	if (!t.cut)
		return t.at;
	free(t.at);
	return NULL;
}

static const struct field error_rows[] = {
	FIELD("error", CHARS, offsetof(struct err, text), .max = sizeof((struct err *)0)->text)};
static const struct fields error_fields = FIELDS(error_rows, struct err);

char *ui_error_json(const struct err *e)
{
	return ui_document(&error_fields, e, NULL);
}
