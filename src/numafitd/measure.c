/* What is counted for metrics alone: a few additions beside each of the runtime's events. */
#include "daemon.h"

void measure_began(void *ctx)
{
	struct daemon *d = ctx;

	d->measured.began_ns = loop_monotonic_ns() - d->measured.waited_ns;
	d->measured.waited_ns = 0;
}

void measure_ended(void *ctx, enum nri_event event)
{
	static const enum metrics_hook hooks[NR_NRI_EVENTS] = {
		[NRI_EVENT_NONE] = HOOK_SYNCHRONIZE,
		[NRI_EVENT_RUN_POD] = HOOK_RUN_POD,
		[NRI_EVENT_STOP_POD] = HOOK_REMOVE_POD,
		[NRI_EVENT_REMOVE_POD] = HOOK_REMOVE_POD,
		[NRI_EVENT_CREATE] = HOOK_CREATE,
		[NRI_EVENT_POST_CREATE] = HOOK_LIVE,
		[NRI_EVENT_POST_START] = HOOK_STARTED,
		[NRI_EVENT_UPDATE] = HOOK_UPDATE,
		[NRI_EVENT_STOP] = HOOK_STOP,
		[NRI_EVENT_REMOVE] = HOOK_REMOVE,
	};
	struct daemon *d = ctx;

	histogram_add(&d->measured.metrics.hook[hooks[event]],
		loop_monotonic_ns() - d->measured.began_ns);
}

void measure_verdict(struct daemon *d, const struct decision *dec)
{
	enum metrics_verdict v = dec->admit ? VERDICT_ADMITTED : VERDICT_REFUSED;

	d->measured.metrics.verdicts[dec->policy][v]++;
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
