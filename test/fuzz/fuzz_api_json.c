#include <stddef.h>
#include <stdint.h>

#include <codec/api_json.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_meta(const struct api_meta *m)
{
	if (!m->ns || !m->name || !m->uid || !m->version)
		abort();
}

static void check_status(const struct json_t *v)
{
	struct api_status s;
	struct api_conflict c;

	if (api_json_status(v, &s) && (!s.reason || !s.message || s.code < 0))
		abort();
	if (api_json_conflict(v, &c) && (!c.field || strlen(c.manager) > API_MANAGER_MAX))
		abort();
}

static void check_list(const struct json_t *v)
{
	struct api_list list;
	struct api_meta meta;
	struct err e = {0};

	if (api_json_list(v, &list, &e) < 0) {
		if (!e.text[0])
			abort();
		return;
	}
	if (!*list.version || !list.more)
		abort();
	for (size_t i = 0; i < list.nr; i++) {
		if (!api_json_item(v, i))
			abort();
		api_json_meta(api_json_item(v, i), &meta);
		check_meta(&meta);
	}
}

static void check_event(const struct json_t *v)
{
	struct api_event event;
	struct err e = {0};

	if (api_json_event(v, &event, &e) < 0) {
		if (!e.text[0])
			abort();
		return;
	}
	check_meta(&event.meta);
	if (!event.object || event.type > API_OTHER)
		abort();
	if (event.type == API_ERROR && !event.status.message)
		abort();
}

/* Whatever an object is taken for, it is that as a whole, or there is a reason why it is not. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_t *v = NULL;
	struct err e = {0};

	if (api_json_parse((const char *)data, size, &v, &e) < 0) {
		if (v || !e.text[0])
			abort();
		return 0;
	}
	check_status(v);
	check_list(v);
	check_event(v);
	api_json_free(v);
	return 0;
}
