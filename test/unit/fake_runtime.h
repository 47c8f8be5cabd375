#ifndef NUMAFIT_TEST_FAKE_RUNTIME_H
#define NUMAFIT_TEST_FAKE_RUNTIME_H

#include <codec/placement_json.h>
#include <io/loop.h>
#include <nri/runtime.h>
#include <nri/session.h>
#include <numafit/cpuset.h>
#include <numafit/leases.h>
#include <numafit/nodeset.h>
#include <numafit/text.h>

#include <stdbool.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* A container runtime for tests: it listens on a socket for one plugin at a time, speaks NRI with
 * it, and shows it the containers that the test keeps. What answers mean for these is the test's:
 * it sets events, and says in configured() what runs. */

enum { FAKE_NAME_BYTES = 24, FAKE_SHARES_PER_CPU = 1024, FAKE_MILLI_PER_CPU = 1000 };

/* A container as the runtime has it; texts are "" where there is none. */
struct fake_container {
	bool runs;
	bool exclusive;     /* it was answered with CPUs of its own */
	unsigned cpu_milli; /* of a Guaranteed pod; 0: of a Burstable one */
	char id[FAKE_NAME_BYTES];
	char pod[FAKE_NAME_BYTES], sandbox[FAKE_NAME_BYTES]; /* "": as id, and as pod */
	char ns[FAKE_NAME_BYTES];                            /* "": default */
	char cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX];
	char placement[PLACEMENT_JSON_MAX], allocated[LEASE_TEXT_MAX]; /* its annotations */
	int64_t created_ns;
	const struct key_value *pod_annotations; /* those that its pod's author wrote */
	size_t nr_pod_annotations;
};

struct fake_runtime {
	struct loop *loop;
	struct nri_runtime_options options; /* of the next connection, as the three below */
	struct nri_runtime_events events;
	const char *nri_version; /* of one that takes updates unasked; NULL: it takes none */
	bool (*on_update)(void *ctx, const struct nri_update *updates, size_t nr);
	void (*on_closed)(void *ctx); /* NULL: nobody waits for that */
	bool silent;                  /* it sends nothing */
	struct listener *listener;
	struct stream *stream; /* NULL: no plugin is connected */
	struct nri_runtime *nri;
};

static inline void fake_runtime_flush(struct fake_runtime *f)
{
	const void *data;
	size_t len;

	while (f->stream && !f->silent && (len = nri_runtime_take(f->nri, &data)) > 0)
		(void)stream_write(f->stream, data, len);
}

static inline void fake_runtime_on_data(void *ctx, const void *data, size_t len)
{
	struct fake_runtime *f = ctx;

	if (nri_runtime_feed(f->nri, data, len) < 0)
		fail_msg("%s", nri_runtime_error(f->nri));
	fake_runtime_flush(f);
}

static inline void fake_runtime_on_closed(void *ctx, int error)
{
	struct fake_runtime *f = ctx;

	(void)error;
	f->stream = NULL;
	if (f->on_closed)
		f->on_closed(f->events.ctx);
}

static inline struct stream_events fake_runtime_on_accepted(void *ctx, struct stream *s)
{
	struct fake_runtime *f = ctx;

	nri_runtime_free(f->nri);
	f->nri = nri_runtime_new(&f->options, &f->events);
	if (f->nri_version)
		nri_runtime_accept_updates(f->nri, f->nri_version, f->on_update);
	f->stream = s;
	return (struct stream_events){f, fake_runtime_on_data, fake_runtime_on_closed};
}

/* Listen for a plugin. f has its loop, options and events. */
static inline void fake_runtime_listen(struct fake_runtime *f, const char *socket)
{
	f->listener = listener_new(f->loop, socket, 0600, f, fake_runtime_on_accepted, NULL);
	assert_non_null(f->listener);
}

/* Close the connection; the listener stays. */
static inline void fake_runtime_hang_up(struct fake_runtime *f)
{
	stream_close(f->stream);
	f->stream = NULL;
}

static inline void fake_runtime_call(
	struct fake_runtime *f, enum nri_call what, const struct nri_container *c)
{
	nri_runtime_call(f->nri, what, c);
	fake_runtime_flush(f);
}

/* What its protocol holds is freed; the loop frees listener and connection. */
static inline void fake_runtime_fini(struct fake_runtime *f)
{
	nri_runtime_free(f->nri);
	f->nri = NULL;
}

/* The container as a message shows it, valid as long as both are. */
static inline struct nri_container fake_container_shown(
	const struct fake_container *b, struct key_value annotation[2])
{
	const char *pod = *b->pod ? b->pod : b->id;
	struct nri_container c = {
		.sandbox_id = *b->sandbox ? b->sandbox : pod,
		.pod_uid = pod,
		.pod_ns = *b->ns ? b->ns : "default",
		.pod_name = pod,
		.cgroup_parent = b->cpu_milli ? "/kubepods/pod1" : "/kubepods/burstable/pod1",
		.id = b->id,
		.name = "main",
		.cpus = b->cpus,
		.mems = b->mems,
		.pod_annotations = b->pod_annotations,
		.nr_pod_annotations = b->nr_pod_annotations,
		.annotations = annotation,
		.created_at_ns = b->created_ns,
	};

	c.resources.has_shares = c.resources.has_memory_limit = true;
	c.resources.cpu_shares =
		b->cpu_milli ? FAKE_SHARES_PER_CPU * b->cpu_milli / FAKE_MILLI_PER_CPU : 100;
	c.resources.memory_limit = INT64_C(1) << 30;
	if (*b->placement)
		annotation[c.nr_annotations++] =
			(struct key_value){NRI_PLACEMENT_ANNOTATION, b->placement};
	if (*b->allocated)
		annotation[c.nr_annotations++] =
			(struct key_value){NRI_ALLOCATED_ANNOTATION, b->allocated};
	return c;
}

/* It starts as it was answered. */
static inline void fake_container_start(struct fake_container *b, const struct nri_answer *a)
{
	assert_true(a->nr_annotations == 1 && *a->cpus && *a->mems);
	assert_true(text_copy(b->cpus, sizeof b->cpus, a->cpus));
	assert_true(text_copy(b->mems, sizeof b->mems, a->mems));
	assert_true(text_copy(b->placement, sizeof b->placement, a->annotations[0].value));
	b->runs = true;
}

static inline void fake_container_update(struct fake_container *b, const struct nri_update *u)
{
	assert_true(text_copy(b->cpus, sizeof b->cpus, u->cpus));
	assert_true(text_copy(b->mems, sizeof b->mems, u->mems));
}

/* Its cpuset as a set. */
static inline struct cpuset fake_container_cpus(const struct fake_container *b)
{
	struct cpuset cpus;

	assert_int_equal(cpuset_parse(&cpus, b->cpus, strlen(b->cpus), NULL), 0);
	return cpus;
}

/* No container runs on a CPU that another one has for itself. */
static inline void fake_container_assert_apart(
	const struct fake_container *a, const struct fake_container *b)
{
	if (a == b || !a->runs || !b->runs || !a->exclusive)
		return;
	struct cpuset x = fake_container_cpus(a), y = fake_container_cpus(b);

	if (cpuset_intersects(&x, &y))
		fail_msg("%s has %s for itself, %s runs on %s", a->id, a->cpus, b->id, b->cpus);
}

#endif
