#include <kubelet/pods_pb.h>
#include <codec/pod_spec.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "kubelet_wire.h"

static const uint64_t MiB = UINT64_C(1) << 20, GiB = UINT64_C(1) << 30;
static const char train_uid[] = "9f0c2b7e-6f61-4d0a-8a5f-0d2a6f7c1b11";

static struct known_pod pod_named(const char *name, struct arena *a)
{
	struct known_pod pod;
	struct err e;
	int rc = pods_pod_decode(recorded(name, a), a, &pod, &e);

	if (rc)
		fail_msg("%s: %s", name, e.text);
	return pod;
}

static struct pods_event event_named(const char *name, struct arena *a)
{
	struct pods_event event;

	assert_int_equal(pods_event_decode(recorded(name, a), a, &event, NULL), 0);
	return event;
}

static void gos_events_are_read(void **state)
{
	static const struct {
		const char *name;
		enum pods_event_type type;
		const char *uid; /* NULL: no pod */
		unsigned containers;
	} cases[] = {
		{"event_added", PODS_ADDED, train_uid, 4},
		{"event_modified", PODS_MODIFIED, "u-2", 1},
		{"event_deleted", PODS_DELETED, train_uid, 0},
		{"event_synced", PODS_SYNCED, NULL, 0},
		{"event_unknown", PODS_UNKNOWN, NULL, 0},
		{"event_negative", PODS_UNKNOWN, NULL, 0},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct pods_event event = event_named(cases[i].name, *state);
		struct known_pod pod;

		assert_int_equal(event.type, cases[i].type);
		assert_int_equal(pods_pod_decode(event.pod, *state, &pod, NULL),
			cases[i].uid ? 0 : -EBADMSG);
		if (!cases[i].uid)
			continue;
		assert_string_equal(pod.pod.uid, cases[i].uid);
		assert_string_equal(pod.pod.uid, cases[i].uid);
		assert_int_equal(pod.pod.nr, cases[i].containers);
	}
}

static void a_pod_has_its_names_and_annotations(void **state)
{
	struct known_pod p = pod_named("pod", *state);

	assert_string_equal(p.pod.ns, "ml");
	assert_string_equal(p.pod.name, "train-0");
	assert_string_equal(p.pod.sandbox_id, "");
	assert_int_equal(p.pod.source, POD_FROM_KUBELET);
	assert_int_equal(p.pod.nr_annotations, 1); /* those of nobody here are left out */
	assert_string_equal(pod_annotation(&p.pod, "numafit.io/numa-hint"), "{\"v\":1}");
	assert_null(pod_annotation(&p.pod, "kubernetes.io/config.source"));
	assert_false(p.pod.totals.known);
}

static void containers_come_in_the_order_of_their_admission(void **state)
{
	static const struct {
		const char *name;
		enum container_kind kind;
		uint64_t cpu_milli;
	} want[] = {
		{"setup", CONTAINER_INIT, 500},
		{"proxy", CONTAINER_SIDECAR, 1500},
		{"app", CONTAINER_APP, 4000},
		{"log", CONTAINER_APP, 0},
	};
	struct known_pod p = pod_named("pod", *state);

	assert_int_equal(p.pod.nr, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_string_equal(p.pod.container[i].name, want[i].name);
		assert_int_equal(p.pod.container[i].kind, want[i].kind);
		assert_int_equal(p.pod.container[i].cpu_milli, want[i].cpu_milli);
	}
}

static void assert_memory(const struct ask *c, const struct memory_ask *want, unsigned nr)
{
	struct memory_ask got[TOPO_KINDS];

	assert_int_equal(ask_memory(c, got), nr);
	for (unsigned i = 0; i < nr; i++) {
		assert_int_equal(got[i].page_bytes, want[i].page_bytes);
		assert_int_equal(got[i].bytes, want[i].bytes);
	}
}

static void memory_and_huge_pages_are_bytes(void **state)
{
	struct known_pod p = pod_named("pod", *state);
	const struct memory_ask app[] = {{0, 16 * GiB}, {2 * MiB, 64 * MiB}, {GiB, 2 * GiB}};
	const struct memory_ask proxy = {0, 1500 * 1000 * 1000}; /* its limit: none requested */

	assert_memory(&p.pod.container[1], &proxy, 1);
	assert_memory(&p.pod.container[2], app, 3);
	assert_memory(&p.pod.container[3], NULL, 0);
}

static void extended_resources_are_named(void **state)
{
	static const char *const want[] = {
		"another.example/nic", "numafit.io/cpu", "vendor.example/gpu"};
	struct known_pod p = pod_named("pod", *state);
	const struct ask *app = &p.pod.container[2], *log = app + 1;

	assert_int_equal(p.nr_resources, 3); /* neither kubernetes.io/odd nor ephemeral-storage */
	for (unsigned i = 0; i < 3; i++)
		assert_string_equal(p.resource[i], want[i]);
	assert_int_equal(p.pod.container[0].nr_devices, 0);
	assert_int_equal(app->nr_devices, 2);
	assert_int_equal(app->device[0].resource, 1);
	assert_int_equal(app->device[0].count, 4);
	assert_int_equal(app->device[1].resource, 2);
	assert_int_equal(app->device[1].count, 2);
	assert_int_equal(log->nr_devices, 2);
	assert_int_equal(log->device[0].resource, 0);
	assert_int_equal(log->device[1].count, 1);
}

static void the_qos_class_is_that_of_the_status_or_is_computed(void **state)
{
	static const struct {
		const char *name;
		enum qos qos;
		bool pod_level;
	} cases[] = {
		{"pod", QOS_BURSTABLE, false},
		{"pod_guaranteed", QOS_GUARANTEED, false},
		{"pod_told", QOS_BEST_EFFORT, false},
		{"pod_level", QOS_GUARANTEED, true},
		{"pod_best_effort", QOS_BEST_EFFORT, false},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct known_pod p = pod_named(cases[i].name, *state);

		assert_int_equal(p.pod.qos, cases[i].qos);
		assert_int_equal(p.pod.qos, cases[i].qos);
		assert_int_equal(p.pod.pod_level, cases[i].pod_level);
	}
}

/* Messages written by hand */

struct writer {
	unsigned char *at;
	size_t len;
};

static void put_length(struct writer *w, size_t len)
{
	do
		w->at[w->len++] = (unsigned char)((len & 0x7f) | (len > 0x7f ? 0x80 : 0));
	while (len >>= 7);
}

static void put_field(struct writer *w, unsigned field, const void *data, size_t len)
{
	put_length(w, field << 3 | 2);
	put_length(w, len);
	memcpy(w->at + w->len, data, len);
	w->len += len;
}

static const unsigned char metadata[] = {0x0a, 5, 0x2a, 3, 'u', '-', '1'};

/* A pod with that uid and this spec. */
static struct blob pod_of(const struct writer *spec, struct arena *a)
{
	struct writer pod = {arena_alloc(a, spec->len + 64), sizeof metadata};

	memcpy(pod.at, metadata, sizeof metadata);
	put_field(&pod, 2, spec->at, spec->len);
	return (struct blob){pod.at, pod.len};
}

static struct blob pod_with_containers(size_t nr, struct arena *a)
{
	struct writer spec = {arena_array(a, nr, 8), 0};

	for (size_t i = 0; i < nr; i++)
		put_field(&spec, i % 2 ? 2 : 20, "\x0a\x01x", 3);
	return pod_of(&spec, a);
}

/* One container that is limited to nr resources, each of that quantity. */
static struct blob pod_with_limits(
	size_t nr, const char *name, const char *quantity, struct arena *a)
{
	enum { ENTRY_MAX = 300 };
	struct writer limits = {arena_array(a, nr + 1, ENTRY_MAX), 0};
	struct writer wrapped = {arena_array(a, nr + 2, ENTRY_MAX), 0};
	struct writer spec = {arena_array(a, nr + 3, ENTRY_MAX), 0};

	for (size_t i = 0; i < nr; i++) {
		struct writer entry = {arena_alloc(a, ENTRY_MAX), 0};
		struct writer amount = {arena_alloc(a, ENTRY_MAX), 0};
		char key[ENTRY_MAX / 2];
		int len = snprintf(key, sizeof key, "%s%zu", name, i);

		put_field(&amount, 1, quantity, strlen(quantity));
		put_field(&entry, 1, key, (size_t)(nr > 1 ? len : len - 1));
		put_field(&entry, 2, amount.at, amount.len);
		put_field(&limits, 1, entry.at, entry.len);
	}
	put_field(&wrapped, 1, "c", 1);
	put_field(&wrapped, 8, limits.at, limits.len);
	put_field(&spec, 2, wrapped.at, wrapped.len);
	return pod_of(&spec, a);
}

static void a_pod_with_too_many_parts_is_refused(void **state)
{
	const struct {
		struct blob pod;
		const char *text; /* NULL: fine */
	} cases[] = {
		{pod_with_containers(POD_SPEC_CONTAINERS_MAX, *state), NULL},
		{pod_with_containers(POD_SPEC_CONTAINERS_MAX + 1, *state),
			"pod /: 513 containers, more than 512"},
		{pod_with_limits(POD_SPEC_RESOURCES_MAX, "storage-", "1", *state), NULL},
		{pod_with_limits(POD_SPEC_RESOURCES_MAX + 1, "storage-", "1", *state),
			"pod /: container c: 65 requests or limits, more than 64"},
		{pod_with_limits(POD_DEVICES_MAX, "a.b/c", "1", *state), NULL},
		{pod_with_limits(POD_DEVICES_MAX + 1, "a.b/c", "1", *state),
			"pod /: container c: a.b/c16: more than 16 device resources"},
		{pod_with_limits(1, "cpu", "-1", *state),
			"pod /: container c: limits: cpu: quantity \"-1\" is negative"},
		{pod_with_limits(1, "hugepages-odd", "1", *state),
			"pod /: container c: limits: hugepages-odd: no size of huge pages"},
		{pod_with_limits(1, "memory", "", *state),
			"pod /: container c: limits: memory: \"\" is not a quantity such as 500m, "
			"2, "
			"1.5 or 16Gi"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct known_pod pod;
		struct err e = {0};
		int rc = pods_pod_decode(cases[i].pod, *state, &pod, &e);

		assert_int_equal(rc == 0, !cases[i].text);
		if (cases[i].text)
			assert_string_equal(e.text, cases[i].text);
	}
}

static void a_pod_without_a_uid_is_refused(void **state)
{
	static const unsigned char no_uid[] = {0x0a, 3, 0x0a, 1, 'n'};
	struct known_pod pod;

	assert_int_equal(pods_pod_decode((struct blob){NULL, 0}, *state, &pod, NULL), -EBADMSG);
	assert_int_equal(pods_pod_decode((struct blob){no_uid, sizeof no_uid}, *state, &pod, NULL),
		-EBADMSG);
	assert_int_equal(
		pods_pod_decode((struct blob){metadata, sizeof metadata}, *state, &pod, NULL), 0);
}

/* An event with a pod of len bytes that we skip, such as environment variables. */
static struct blob event_with_ballast(size_t len, struct arena *a)
{
	enum { STATUS_MESSAGE = 3, HEAD_MAX = 64 };
	struct writer spec = {arena_alloc(a, len + HEAD_MAX), 0};
	struct writer event = {arena_alloc(a, len + 3 * HEAD_MAX), 0};
	void *ballast = memset(arena_alloc(a, len), 'x', len);

	put_field(&spec, STATUS_MESSAGE, ballast, len);
	struct blob pod = pod_of(&spec, a);
	put_field(&event, 2, pod.data, pod.len);
	return (struct blob){event.at, event.len};
}

static void a_pod_of_16_mib_is_read(void **state)
{
	enum { BALLAST = (16 << 20) - 64 };
	struct arena making, a;
	struct pods_event event;
	struct known_pod pod;

	(void)state;
	arena_init(&making, 6 * (size_t)BALLAST);
	arena_init(&a, PODS_MEMORY_MAX);
	struct blob in = event_with_ballast(BALLAST, &making);
	assert_int_equal(pods_event_decode(in, &a, &event, NULL), 0);
	assert_int_equal(pods_pod_decode(event.pod, &a, &pod, NULL), 0);
	assert_string_equal(pod.pod.uid, "u-1");
	arena_fini(&a);
	arena_fini(&making);
}

/* 16 MiB of annotations without a byte in them are the most memory for each byte on the wire. */
static void a_pod_that_bursts_the_arena_is_refused(void **state)
{
	enum { SIZE = 16 << 20, EMPTY_BYTES = 2, ANNOTATIONS = 12 };
	struct writer meta = {xcalloc(1, SIZE), 0}, pod = {xcalloc(1, SIZE + 64), 0};
	struct known_pod out;
	struct arena a;
	struct err e;

	(void)state;
	while (meta.len + EMPTY_BYTES <= SIZE - 64)
		put_field(&meta, ANNOTATIONS, "", 0);
	put_field(&pod, 1, meta.at, meta.len);
	arena_init(&a, PODS_MEMORY_MAX);
	assert_int_equal(pods_pod_decode((struct blob){pod.at, pod.len}, &a, &out, &e), -EBADMSG);
	assert_true(a.given <= PODS_MEMORY_MAX);
	arena_fini(&a);
	free(meta.at);
	free(pod.at);
}

static void a_message_that_does_not_fit_the_arena_is_refused(void **state)
{
	enum { ROOM = 64 << 10 };
	struct blob in = recorded("pod", *state);
	char *room = arena_alloc(*state, ROOM);
	struct known_pod pod;
	unsigned failed = 0;
	struct arena a;

	for (size_t len = 0; len <= ROOM; len += 16) {
		arena_init_fixed(&a, room, len);
		int rc = pods_pod_decode(in, &a, &pod, NULL);

		assert_true(rc == 0 || (len < ROOM && (rc == -EBADMSG || rc == -ENOMEM)));
		failed += rc != 0;
	}
	assert_true(failed > 0);
}

static void text_that_is_not_utf8_is_refused(void **state)
{
	static const unsigned char odd[] = {0x0a, 3, 0x2a, 1, 0xff};
	struct known_pod pod;
	struct err e;

	assert_int_equal(
		pods_pod_decode((struct blob){odd, sizeof odd}, *state, &pod, &e), -EBADMSG);
	assert_string_equal(e.text, "ObjectMeta.uid is not UTF-8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_ARENA(gos_events_are_read),
		ON_ARENA(a_pod_has_its_names_and_annotations),
		ON_ARENA(containers_come_in_the_order_of_their_admission),
		ON_ARENA(memory_and_huge_pages_are_bytes),
		ON_ARENA(extended_resources_are_named),
		ON_ARENA(the_qos_class_is_that_of_the_status_or_is_computed),
		ON_ARENA(a_pod_with_too_many_parts_is_refused),
		ON_ARENA(a_pod_without_a_uid_is_refused),
		cmocka_unit_test(a_pod_of_16_mib_is_read),
		cmocka_unit_test(a_pod_that_bursts_the_arena_is_refused),
		ON_ARENA(a_message_that_does_not_fit_the_arena_is_refused),
		ON_ARENA(text_that_is_not_utf8_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
