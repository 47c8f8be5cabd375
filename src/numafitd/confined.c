/* Containers of the shared pool that may run on fewer CPUs than the pool has, by a cgroup above
 * them or by an inherited CPU affinity. */
#include "confined.h"
#include "daemon.h"

#include <host/affinity.h>
#include <io/log.h>
#include <numafit/text.h>

#include <stdio.h>

static const struct {
	enum log_level level;
	const char *why, *action;
} kinds[NR_CONFINED_BY] = {
	[CONFINED_BY_CGROUP] = {LOG_WARN, "a cgroup above the containers has fewer CPUs",
		"see which slice or cgroup above the container sets AllowedCPUs or cpuset.cpus"},
	[CONFINED_BY_AFFINITY] = {LOG_WARN,
		"their processes have a CPU affinity, as those that a confined container runtime "
		"starts",
		"remove CPUAffinity from the container runtime's systemd unit and from "
		"system.conf, or update runc to 1.2.7, 1.3.1 or later; then restart the runtime "
		"and create these pods again"},
	[CONFINED_BY_PROCESS] = {LOG_INFO,
		"their processes have a CPU affinity that is not the container runtime's",
		"none if the programs pin themselves; if the runtime was confined when these pods "
		"were created, create the pods again"},
};

static void note_confined(struct confined_kind *k, const struct cpuset *cpus, const char *name)
{
	if (k->now++)
		return;
	k->cpus = *cpus;
	(void)text_copy(k->example, sizeof k->example, name);
}

/* The CPUs that the first process in the container's cgroup may run on. False: not known. */
static bool read_affinity(struct daemon *d, const struct holding *h, struct cpuset *out)
{
	struct confined *c = &d->follow.confined;
	uint64_t pid;

	if (cgroup_first_process(d->follow.in_force.cgroups, h->request.cgroup, &pid, NULL))
		return false;
	c->hidden = c->hidden || !pid;
	if (!pid || affinity_read(d->follow.confined.root, pid, out, NULL))
		return false;
	c->seen = true;
	return true;
}

/* Who has given the process a CPU affinity. The runtime's own affinity, less what the container's
 * cgroup lacks, is inherited; where the runtime's process cannot be seen, any affinity counts as
 * inherited. */
static enum confined_by who_confines(
	const struct daemon *d, const struct cpuset *may, const struct cpuset *in_force)
{
	const struct confined *c = &d->follow.confined;
	const struct cpuset inherited = cpuset_and(c->runtime_cpus, in_force);

	return !c->runtime || cpuset_equal(&inherited, may) ? CONFINED_BY_AFFINITY
							    : CONFINED_BY_PROCESS;
}

void confined_look_at(struct daemon *d, const struct holding *h, const struct cpuset *wanted,
	const struct cgroup_cpuset *found)
{
	struct confined_kind *kind = d->follow.confined.kind;
	const struct cpuset in_force = cpuset_and(found->effective_cpus, wanted);
	char name[CONFINED_NAME_MAX];
	struct cpuset may;

	if (h->decision.exclusive || decision_is_left(&h->decision) ||
		!cgroup_has_processes(d->follow.in_force.cgroups, h->request.cgroup))
		return;
	(void)snprintf(name, sizeof name, "%s/%s/%s", h->request.pod.ns, h->request.pod.name,
		h->request.ask.name);
	if (!cpuset_equal(&in_force, wanted)) {
		note_confined(&kind[CONFINED_BY_CGROUP], &in_force, name);
		return;
	}
	if (!read_affinity(d, h, &may))
		return;
	may = cpuset_and(may, &in_force);
	if (!cpuset_equal(&may, &in_force))
		note_confined(&kind[who_confines(d, &may, &in_force)], &may, name);
}

/* Some containers of the pool are to run on just these CPUs: those that keep to one NUMA node, or
 * on reserved CPUs. numafitd's own container may be such a container. */
static bool are_given_in_pool(const struct ledger *l, const struct cpuset *cpus)
{
	bool given = cpuset_equal(&ledger_view(l)->pool, cpus);

	for (size_t i = 0; i < ledger_count(l) && !given; i++) {
		const struct holding *h = ledger_at(l, i);
		const struct cpuset part = ledger_cpus_of(l, h);

		given = !h->decision.exclusive && cpuset_equal(&part, cpus);
	}
	return given;
}

/* numafitd's own process stands for the containers whose processes it cannot see, if numafitd runs
 * in the pool, too. */
static void look_at_ourselves(struct daemon *d)
{
	struct confined *c = &d->follow.confined;
	const struct ledger *l = engine_ledger(d->engine);
	struct cpuset may;

	if (!c->hidden || c->seen || c->kind[CONFINED_BY_CGROUP].now ||
		affinity_read(d->follow.confined.root, 0, &may, NULL))
		return;
	may = cpuset_and(may, &ledger_view(l)->pool);
	if (!cpuset_empty(&may) && !are_given_in_pool(l, &may))
		note_confined(&c->kind[CONFINED_BY_AFFINITY], &may, "numafitd");
}

static void log_confined(enum confined_by by, const struct confined_kind *k)
{
	char name[2 * CONFINED_NAME_MAX], cpus[CPUSET_TEXT_MAX];

	log_line(kinds[by].level, "pool-confined",
		"by=%s containers=%llu example=%s cpus=%s text=\"containers of the shared pool run "
		"on fewer CPUs than the pool has: %s\" action=\"%s\"",
		confined_by_words[by], (unsigned long long)k->shown,
		log_text(name, sizeof name, k->example), cpuset_format(&k->cpus, cpus, sizeof cpus),
		kinds[by].why, kinds[by].action);
}

/* Logged once for each process of the runtime, as its containers may inherit what confines it. */
static void look_at_runtime(struct daemon *d)
{
	struct confined *c = &d->follow.confined;
	const uint64_t pid = nri_conn_peer(d->runtime.conn), before = c->runtime;
	char list[CPUSET_TEXT_MAX];
	struct cpuset may;

	c->runtime = pid && affinity_read(c->root, pid, &may, NULL) == 0 ? pid : 0;
	if (!c->runtime)
		return;
	c->runtime_cpus = cpuset_and(may, &d->topo.cpus);
	if (pid != before && !cpuset_equal(&c->runtime_cpus, &d->topo.cpus))
		log_line(LOG_INFO, "runtime-confined",
			"pid=%llu cpus=%s text=\"the container runtime may not run on all CPUs: its "
			"containers inherit a CPUAffinity of its systemd unit, unless runc is 1.2.7, "
			"1.3.1 or later, and do not inherit AllowedCPUs\" action=\"none, unless "
			"event=pool-confined follows\"",
			(unsigned long long)pid,
			cpuset_format(&c->runtime_cpus, list, sizeof list));
}

void confined_end_round(struct daemon *d)
{
	struct confined *c = &d->follow.confined;

	look_at_runtime(d);
	look_at_ourselves(d);
	for (enum confined_by by = 0; by < NR_CONFINED_BY; by++) {
		struct confined_kind *k = &c->kind[by];

		k->shown = k->before ? k->now : 0;
		if (k->shown && !k->logged)
			log_confined(by, k);
		if (!k->shown && k->logged)
			log_line(LOG_INFO, "pool-not-confined", "by=%s", confined_by_words[by]);
		k->logged = k->shown;
		k->before = k->now;
		k->now = 0;
	}
	c->hidden = c->seen = false;
}

void confined_status(const struct daemon *d, struct status_pool *out)
{
	for (enum confined_by by = 0; by < NR_CONFINED_BY; by++) {
		const struct confined_kind *k = &d->follow.confined.kind[by];

		if (k->shown)
			out->confined[out->nr_confined++] =
				(struct status_confined){by, k->shown, k->cpus, k->example};
	}
}
