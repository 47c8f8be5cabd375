/* Writes an event about a pod as the API server's JSON. */
#include <apiserver/event_json.h>

#include <codec/fields.h>
#include <ctype.h>
#include <inttypes.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <string.h>
#include <time.h>

static const char component[] = "numafitd";
enum {
	UID_MAX = 128,
	TIME_MAX = sizeof "2026-01-02T03:04:05Z",
	FIELD_PATH_MAX = sizeof "spec.initContainers{}" + EVENT_NAME_MAX,
	UNIQUE_DIGITS = 16,
	UTF8_TAIL_MAX = 3
};

struct annotations {
	enum advice_verdict verdict;
};
struct metadata {
	char name[EVENT_NAME_MAX + 1], ns[EVENT_NAME_MAX + 1];
	const struct annotations *annotations; /* NULL: none */
};
struct object {
	const char *api_version, *kind, *field_path;
	char name[EVENT_NAME_MAX + 1], ns[EVENT_NAME_MAX + 1], uid[UID_MAX + 1];
};
struct source {
	const char *component;
	char host[EVENT_NAME_MAX + 1];
};
struct form {
	const char *api_version, *kind, *type, *reporter;
	struct metadata metadata;
	struct object object;
	struct source source;
	char reason[UID_MAX + 1], message[EVENT_MESSAGE_MAX + 1];
	char first[TIME_MAX], last[TIME_MAX];
	unsigned count;
};

static const struct field annotation_rows[] = {
	FIELD("numafit.io/hint-verdict", NAME, offsetof(struct annotations, verdict),
		.words = advice_verdict_words, .max = NR_ADVICE_VERDICTS),
};
static const struct fields annotation_fields = FIELDS(annotation_rows, struct annotations);

#define AT(member) offsetof(struct metadata, member)
static const struct field metadata_rows[] = {
	FIELD("name", CHARS, AT(name), .max = EVENT_NAME_MAX + 1),
	FIELD("namespace", CHARS, AT(ns), .max = EVENT_NAME_MAX + 1),
	FIELD("annotations", POINTER, AT(annotations), .optional = true,
		.fields = &annotation_fields),
};
static const struct fields metadata_fields = FIELDS(metadata_rows, struct metadata);
#undef AT

#define AT(member) offsetof(struct object, member)
static const struct field object_rows[] = {
	FIELD("apiVersion", STRING, AT(api_version)),
	FIELD("kind", STRING, AT(kind)),
	FIELD("namespace", CHARS, AT(ns), .max = EVENT_NAME_MAX + 1),
	FIELD("name", CHARS, AT(name), .max = EVENT_NAME_MAX + 1),
	FIELD("uid", CHARS, AT(uid), .max = UID_MAX + 1),
	FIELD("fieldPath", STRING, AT(field_path), .optional = true),
};
static const struct fields object_fields = FIELDS(object_rows, struct object);
#undef AT

#define AT(member) offsetof(struct source, member)
static const struct field source_rows[] = {
	FIELD("component", STRING, AT(component)),
	FIELD("host", CHARS, AT(host), .max = EVENT_NAME_MAX + 1),
};
static const struct fields source_fields = FIELDS(source_rows, struct source);
#undef AT

/* Without an eventTime it is one of the older kind, which the kubelet writes, too. */
#define AT(member) offsetof(struct form, member)
static const struct field form_rows[] = {
	FIELD("apiVersion", STRING, AT(api_version)),
	FIELD("kind", STRING, AT(kind)),
	FIELD("metadata", OBJECT, AT(metadata), .fields = &metadata_fields),
	FIELD("involvedObject", OBJECT, AT(object), .fields = &object_fields),
	FIELD("type", STRING, AT(type)),
	FIELD("reason", CHARS, AT(reason), .max = UID_MAX + 1),
	FIELD("message", CHARS, AT(message), .max = EVENT_MESSAGE_MAX + 1),
	FIELD("source", OBJECT, AT(source), .fields = &source_fields),
	FIELD("firstTimestamp", CHARS, AT(first), .max = TIME_MAX),
	FIELD("lastTimestamp", CHARS, AT(last), .max = TIME_MAX),
	FIELD("count", UNSIGNED, AT(count)),
	FIELD("reportingComponent", STRING, AT(reporter)),
	FIELD("reportingInstance", CHARS, AT(source.host), .max = EVENT_NAME_MAX + 1),
};
static const struct fields form_fields = FIELDS(form_rows, struct form);
#undef AT

void event_message(char out[EVENT_MESSAGE_MAX + 1], const char *message)
{
	size_t len = strnlen(message, EVENT_MESSAGE_MAX + 1), tail = 0;

	if (len > EVENT_MESSAGE_MAX) {
		len = EVENT_MESSAGE_MAX;
		while (tail < UTF8_TAIL_MAX && !text_is_utf8(message, len - tail))
			tail++;
		len -= tail;
	}
	(void)memcpy(out, message, len);
	out[len] = '\0';
	text_make_shown(out, TEXT_ONE_LINE);
}

/* Names end in a letter or a digit, also where they are cut, and before the dot. */
static void put_name(char out[EVENT_NAME_MAX + 1], const char *pod, uint64_t unique)
{
	size_t len = strnlen(pod, EVENT_NAME_MAX - 1 - UNIQUE_DIGITS);
	struct text t;

	while (len && !isalnum((unsigned char)pod[len - 1]))
		len--;
	text_init(&t, out, EVENT_NAME_MAX + 1);
	text_add(&t, "%.*s.%0*" PRIx64, (int)len, pod, UNIQUE_DIGITS, unique);
}

static void put_time(char out[TIME_MAX], int64_t ms)
{
	time_t s = (time_t)(ms / MS_PER_S);
	struct tm tm;

	if (!gmtime_r(&s, &tm) || !strftime(out, TIME_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm))
		*out = '\0';
}

/* As the kubelet has it (pkg/kubelet/container/ref.go); NULL: the pod as a whole. */
static const char *field_path(char out[FIELD_PATH_MAX], const struct pod_event *event)
{
	struct text t;

	if (!event->container)
		return NULL;
	text_init(&t, out, FIELD_PATH_MAX);
	text_add(&t, "spec.%s{%s}", event->kind == CONTAINER_APP ? "containers" : "initContainers",
		event->container);
	return out;
}

char *event_json_format(const struct pod_event *event, const struct event_times *times,
	const char *node, uint64_t unique)
{
	struct form f = {
		.api_version = "v1",
		.kind = "Event",
		.type = event->warning ? "Warning" : "Normal",
		.reporter = component,
		.object = {.api_version = "v1", .kind = "Pod"},
		.source = {.component = component},
		.count = times->nr,
	};
	const struct annotations annotations = {event->verdict};
	char path[FIELD_PATH_MAX];
	struct text t;

	f.metadata.annotations = event->verdict != ADVICE_NONE ? &annotations : NULL;
	put_name(f.metadata.name, event->pod, unique);
	(void)text_copy(f.metadata.ns, sizeof f.metadata.ns, event->ns);
	(void)text_copy(f.object.ns, sizeof f.object.ns, event->ns);
	(void)text_copy(f.object.name, sizeof f.object.name, event->pod);
	(void)text_copy(f.object.uid, sizeof f.object.uid, event->uid);
	f.object.field_path = field_path(path, event);
	(void)text_copy(f.reason, sizeof f.reason, event->reason);
	event_message(f.message, event->message);
	(void)text_copy(f.source.host, sizeof f.source.host, node);
	put_time(f.first, times->first_ms);
	put_time(f.last, times->last_ms);
	text_init(&t, xcalloc(1, EVENT_JSON_MAX), EVENT_JSON_MAX);
	fields_write(&t, &form_fields, &f, NULL);
	return t.at;
}
