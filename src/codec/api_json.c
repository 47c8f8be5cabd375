#include <codec/api_json.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <numafit/text.h>
#include <string.h>

/* The annotation of the bookmark that ends what was there when a watch began (apimachinery's
 * meta/v1). */
#define INITIAL_EVENTS_END "k8s.io/initial-events-end"

/* jansson goes no deeper than 2,048 levels (JSON_PARSER_MAX_DEPTH). */
int api_json_parse(const char *text, size_t len, json_t **out, struct err *e)
{
	json_error_t where;
	json_t *value = json_loadb(text, len, JSON_ALLOW_NUL, &where);

	if (!value)
		return err_set(e, EINVAL, "not JSON: byte %d: %s", where.position, where.text);
	if (!json_is_object(value)) {
		json_decref(value);
		return err_set(e, EINVAL, "should be a JSON object, is a list");
	}
	*out = value;
	return 0;
}

void api_json_free(json_t *v)
{
	json_decref(v);
}

static const char *string_at(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

static unsigned unsigned_at(const json_t *object, const char *key, unsigned max)
{
	json_int_t n = json_integer_value(json_object_get(object, key));

	if (n < 0)
		return 0;
	return n > max ? max : (unsigned)n;
}

void api_json_meta(const json_t *object, struct api_meta *out)
{
	const json_t *meta = json_object_get(object, "metadata");
	const json_t *annotations = json_object_get(meta, "annotations");

	*out = (struct api_meta){
		.ns = string_at(meta, "namespace"),
		.name = string_at(meta, "name"),
		.uid = string_at(meta, "uid"),
		.version = string_at(meta, "resourceVersion"),
		.initial_events_end =
			text_equal(string_at(annotations, INITIAL_EVENTS_END), "true"),
	};
}

const char *api_json_kubelet_version(const json_t *node)
{
	const json_t *status = json_object_get(node, "status");

	return string_at(json_object_get(status, "nodeInfo"), "kubeletVersion");
}

int api_json_labels(const json_t *object, struct arena *a, const struct key_value **out, size_t *nr)
{
	json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
	struct key_value *list = arena_array(a, json_object_size(labels), sizeof *list);

	*nr = 0;
	*out = list;
	if (!list)
		return json_object_size(labels) ? -ENOMEM : 0;
	for (void *it = json_object_iter(labels); it; it = json_object_iter_next(labels, it)) {
		const char *key = json_object_iter_key(it);

		list[(*nr)++] = (struct key_value){key, string_at(labels, key)};
	}
	return 0;
}

bool api_json_status(const json_t *v, struct api_status *out)
{
	if (!text_equal(string_at(v, "kind"), "Status"))
		return false;
	*out = (struct api_status){
		.code = (int)unsigned_at(v, "code", INT_MAX),
		.reason = string_at(v, "reason"),
		.message = string_at(v, "message"),
		.retry_after_s =
			unsigned_at(json_object_get(v, "details"), "retryAfterSeconds", UINT_MAX),
	};
	return true;
}

static const json_t *causes_of(const json_t *status)
{
	return json_object_get(json_object_get(status, "details"), "causes");
}

static bool has_cause_with(const json_t *status, const char *key, const char *value)
{
	const json_t *causes = causes_of(status);

	for (size_t i = 0; i < json_array_size(causes); i++)
		if (text_equal(string_at(json_array_get(causes, i), key), value))
			return true;
	return false;
}

bool api_json_has_cause(const json_t *status, const char *cause)
{
	return has_cause_with(status, "reason", cause);
}

bool api_json_blames(const json_t *status, const char *field)
{
	return has_cause_with(status, "field", field);
}

/* The cause's message is all that names the manager, as a Go string: conflict with "kubectl" using
 * v1 (apimachinery's managedfields/internal/conflict.go). */
static bool read_manager(const char *message, char *out)
{
	const char *from = strchr(message, '"'), *to = from ? strchr(from + 1, '"') : NULL;

	if (!to || to - from - 1 > API_MANAGER_MAX)
		return false;
	(void)memcpy(out, from + 1, (size_t)(to - from - 1));
	out[to - from - 1] = '\0';
	return true;
}

bool api_json_conflict(const json_t *status, struct api_conflict *out)
{
	const json_t *causes = causes_of(status);

	for (size_t i = 0; i < json_array_size(causes); i++) {
		const json_t *cause = json_array_get(causes, i);

		if (!text_equal(string_at(cause, "reason"), "FieldManagerConflict"))
			continue;
		out->field = string_at(cause, "field");
		if (read_manager(string_at(cause, "message"), out->manager))
			return true;
	}
	return false;
}

static int check_items(const json_t *items, struct err *e)
{
	for (size_t i = 0; i < json_array_size(items); i++)
		if (!json_is_object(json_array_get(items, i)))
			return err_add(e, json_want("an object", json_array_get(items, i), e),
				"items: element %zu", i);
	return 0;
}

int api_json_list(const json_t *v, struct api_list *out, struct err *e)
{
	const json_t *meta = json_object_get(v, "metadata"), *items = json_object_get(v, "items");

	if (!items || !(json_is_array(items) || json_is_null(items))) /* null: Go's empty list */
		return err_add(e, json_want("a list", items, e), "items");
	if (!*string_at(meta, "resourceVersion"))
		return err_set(e, EINVAL, "metadata.resourceVersion is missing");
	int rc = check_items(items, e);
	if (rc)
		return rc;
	*out = (struct api_list){
		.version = string_at(meta, "resourceVersion"),
		.more = string_at(meta, "continue"),
		.nr = json_array_size(items),
	};
	return 0;
}

json_t *api_json_item(const json_t *list, size_t i)
{
	return json_array_get(json_object_get(list, "items"), i);
}

static enum api_event_type event_type(const char *word)
{
	static const char *const words[] = {
		[API_ADDED] = "ADDED",
		[API_MODIFIED] = "MODIFIED",
		[API_DELETED] = "DELETED",
		[API_BOOKMARK] = "BOOKMARK",
		[API_ERROR] = "ERROR",
	};
	enum api_event_type t = API_ADDED;

	while (t < API_OTHER && !text_equal(words[t], word))
		t++;
	return t;
}

int api_json_event(const json_t *v, struct api_event *out, struct err *e)
{
	json_t *object = json_object_get(v, "object");
	const char *type = string_at(v, "type");
	struct api_event event = {.type = event_type(type), .object = object};

	if (!*type)
		return err_set(e, EINVAL, "a watch event without a type");
	if (!json_is_object(object))
		return err_add(e, json_want("an object", object, e), "the object of a watch event");
	api_json_meta(object, &event.meta);
	if (event.type == API_ERROR && !api_json_status(object, &event.status))
		return err_set(e, EINVAL, "a watch event of type ERROR without a Status");
	*out = event;
	return 0;
}
