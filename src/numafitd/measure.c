/* What is counted for metrics alone: a few additions beside each of the runtime's events. */
#include "daemon.h"

static void count_hook(struct daemon *d, enum metrics_hook hook, uint64_t from_ns)
{
	histogram_add(&d->measured.metrics.hook[hook], loop_monotonic_ns() - from_ns);
}

static void timed_synchronize(void *ctx, const struct nri_inventory *what, struct nri_reply *reply)
{
	struct daemon *d = ctx;
	uint64_t from = loop_monotonic_ns();

	d->runtime.mode_handler->synchronize(d, what, reply);
	count_hook(d, HOOK_SYNCHRONIZE, from);
}

static int timed_run_pod(void *ctx, const struct pod *pod, struct err *e)
{
	struct daemon *d = ctx;
	uint64_t from = loop_monotonic_ns();
	int rc = d->runtime.mode_handler->run_pod(d, pod, e);

	count_hook(d, HOOK_RUN_POD, from);
	return rc;
}

static int timed_create(
	void *ctx, const struct request *req, struct nri_reply *reply, struct err *e)
{
	struct daemon *d = ctx;
	uint64_t from = loop_monotonic_ns();
	int rc = d->runtime.mode_handler->create(d, req, reply, e);

	count_hook(d, HOOK_CREATE, from);
	return rc;
}

static void timed_update(void *ctx, const struct request *req, struct nri_reply *reply)
{
	struct daemon *d = ctx;
	uint64_t from = loop_monotonic_ns();

	d->runtime.mode_handler->update(d, req, reply);
	count_hook(d, HOOK_UPDATE, from);
}

static void timed_stop(void *ctx, const struct request *req, struct nri_reply *reply)
{
	struct daemon *d = ctx;
	uint64_t from = loop_monotonic_ns();

	d->runtime.mode_handler->stop(d, req, reply);
	count_hook(d, HOOK_STOP, from);
}

static void timed_remove(void *ctx, const struct request *req)
{
	struct daemon *d = ctx;
	uint64_t from = loop_monotonic_ns();

	d->runtime.mode_handler->remove(d, req);
	count_hook(d, HOOK_REMOVE, from);
}

static void timed_live(void *ctx, const struct request *req)
{
	struct daemon *d = ctx;
	uint64_t from = loop_monotonic_ns();

	d->runtime.mode_handler->live(d, req);
	count_hook(d, HOOK_LIVE, from);
}

static void timed_started(void *ctx, const struct request *req)
{
	struct daemon *d = ctx;
	uint64_t from = loop_monotonic_ns();

	d->runtime.mode_handler->started(d, req);
	count_hook(d, HOOK_STARTED, from);
}

static void timed_remove_pod(void *ctx, const struct pod *pod)
{
	struct daemon *d = ctx;
	uint64_t from = loop_monotonic_ns();

	d->runtime.mode_handler->remove_pod(d, pod);
	count_hook(d, HOOK_REMOVE_POD, from);
}

struct nri_handler measure_hooks(struct daemon *d, const struct nri_handler *of)
{
	d->runtime.mode_handler = of;
	return (struct nri_handler){
		.ctx = d,
		.synchronize = timed_synchronize,
		.run_pod = timed_run_pod,
		.create = timed_create,
		.update = timed_update,
		.stop = timed_stop,
		.remove = timed_remove,
		.live = timed_live,
		.started = timed_started,
		.remove_pod = timed_remove_pod,
	};
}

void measure_verdict(struct daemon *d, const struct decision *dec)
{
	struct metrics_counters *m = &d->measured.metrics;

	(dec->admit ? m->admitted : m->refused)[dec->policy]++;
}

void measure_admission(
	struct daemon *d, const struct request *req, const struct decision *dec, uint64_t took_ns)
{
	const struct settings *s = &d->settings;
	struct metrics_counters *m = &d->measured.metrics;
	bool cpus = s->cpu_manager_policy == MANAGER_STATIC && request_exclusive_cpus(req);
	bool memory = s->memory_manager_policy == MANAGER_STATIC && request_pins_memory(req);

	measure_verdict(d, dec);
	histogram_add(&m->admission, took_ns);
	m->cpu_pins += cpus;
	m->cpu_pins_refused += cpus && !dec->admit;
	m->memory_pins += memory;
	m->memory_pins_refused += memory && !dec->admit;
}
