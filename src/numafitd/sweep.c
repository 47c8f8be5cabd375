/* What is really in force: the containers' cgroups, and the machine's CPUs and memory. All of it is
 * read by a timer, and so never inside one of the runtime's events. */
#include "sweep.h"
#include "cluster.h"
#include "confined.h"
#include "daemon.h"
#include "machine_read.h"
#include "pool.h"
#include "quiet.h"
#include "quota.h"
#include "services.h"
#include "updater.h"

#include <dra-driver/driver.h>
#include <host/cgroup.h>
#include <host/device_memory.h>
#include <host/isolated.h>
#include <host/hotplug.h>
#include <io/fault.h>
#include <io/log.h>
#include <numafit/text.h>

#include <errno.h>
#include <string.h>

/* A turn's work, and the pause between two, in which the loop serves whoever waits. */
enum { TURN_NS = 1000 * 1000, PAUSE_MS = 1 };
/* Rounds in which discovery reads the machine again because its NUMA nodes list other CPUs. */
enum { DOUBTS_MAX = 60 };

/* What a container was found with. */
enum finding { AS_PLACED, OTHERWISE, NARROWED };

/* A container that was not found as placed the last time, or that the runtime's client has changed
 * since. */
struct drift {
	char *container_id;
	uint32_t seen;    /* checksum of what was found and what was wanted; 0: nothing yet */
	bool noted;       /* counted and logged */
	bool counted;     /* as a drift */
	bool by_a_client; /* the runtime's client has changed it meanwhile */
	bool runs;        /* its process was there, and the runtime had not reported that */
	bool was_placed;  /* since then it was found as placed, perhaps only because the runtime
			     applies updates after our answer */
};

enum step {
	LOOK_AT_CPUS,
	LOOK_AT_MEMORY,
	LOOK_AT_POOL,
	LOOK_AT_QUOTAS,
	LOOK_AT_CONTAINERS,
	UPDATE,
	ROUND_ENDS
};

struct sweep {
	const char *root;
	struct loop_timer *timer;
	enum step step;
	unsigned node;      /* the next one to look at */
	struct hotplug now; /* as far as it was read in this round */
	struct topo known;  /* the machine with every CPU that has been online */
	bool settled;       /* it was read alike twice, a round apart: one reading, while CPUs come
			       and go, may have a part from before and a part from after */
	unsigned doubts;    /* rounds in a row in which a node listed a CPU that it has elsewhere */
	char *at;           /* the container that was looked at last; NULL: none */
	char problem[sizeof((struct err *)0)->text]; /* the last one of the machine that was logged
						      */
	struct {
		VEC(struct drift);
	} drifts;
};

/* Containers */

static struct drift *find_drift(struct sweep *s, const char *container_id)
{
	for (size_t i = 0; i < s->drifts.nr; i++)
		if (text_equal(s->drifts.at[i].container_id, container_id))
			return &s->drifts.at[i];
	return NULL;
}

static struct drift *get_drift(struct sweep *s, const char *container_id)
{
	struct drift *d = find_drift(s, container_id);

	if (!d) {
		d = vec_push(&s->drifts);
		d->container_id = xstrdup(container_id);
	}
	return d;
}

static void drop_drift(struct sweep *s, struct drift *d)
{
	free(d->container_id);
	vec_remove(&s->drifts, (size_t)(d - s->drifts.at));
}

static void drop_drifts(struct sweep *s)
{
	while (s->drifts.nr)
		drop_drift(s, &s->drifts.at[s->drifts.nr - 1]);
	vec_fini(&s->drifts);
}

static void note_as_placed(struct daemon *d, const char *container_id)
{
	struct drift *drift = find_drift(d->follow.sweep, container_id);

	if (drift && drift->by_a_client && !drift->was_placed) {
		drift->was_placed = true;
	} else if (drift) {
		d->measured.metrics.healed += drift->counted;
		drop_drift(d->follow.sweep, drift);
	}
}

void sweep_note_update(struct daemon *d, const char *container_id)
{
	/* without rounds nobody would look at it, nor forget it */
	if (!d->follow.sweep || !d->settings.sweep_interval_ms)
		return;
	struct drift *drift = get_drift(d->follow.sweep, container_id);
	drift->by_a_client = true;
	drift->was_placed = false;
}

/* What one look at a container finds. */
struct look {
	const struct holding *h;
	struct update want;
	struct cgroup_cpuset found;
	struct err odd; /* code: what it has is no cpuset of this machine */
};

static const struct cpuset *wanted_in_force(const struct look *k)
{
	return cpuset_empty(&k->want.in_force) ? &k->want.cpus : &k->want.in_force;
}

/* Where only what is effective differs, the machine or a cgroup above leaves it less: setting it
 * again would change nothing. */
static enum finding sweep_judge(const struct engine *g, const struct look *k)
{
	if (k->want.untouched) /* another manager may give the container fewer CPUs */
		return AS_PLACED;
	if (k->odd.code || !engine_suits(g, &k->want, &k->found.cpus, k->found.mems))
		return OTHERWISE;
	return cpuset_equal(&k->found.effective_cpus, wanted_in_force(k)) &&
			       nodeset_equal(k->found.effective_mems, k->want.mems)
		       ? AS_PLACED
		       : NARROWED;
}

static uint32_t checksum(const struct look *k)
{
	const struct cpuset cpus[] = {k->want.cpus, k->found.cpus, k->found.effective_cpus};
	const struct nodeset mems[] = {k->want.mems, k->found.mems, k->found.effective_mems};
	uint32_t sum =
		text_crc32c(cpus, sizeof cpus) ^ text_crc32c(k->odd.text, strlen(k->odd.text));

	sum = (sum << 1 | sum >> 31) ^ text_crc32c(mems, sizeof mems);
	return sum ? sum : 1;
}

static void log_drift(
	const struct daemon *d, const struct look *k, enum finding f, const struct drift *drift)
{
	const struct cpuset *cpus = f == NARROWED ? &k->found.effective_cpus : &k->found.cpus;
	struct nodeset mems = f == NARROWED ? k->found.effective_mems : k->found.mems;
	char pod[512], name[256], odd[512], want_cpus[CPUSET_TEXT_MAX], found_cpus[CPUSET_TEXT_MAX],
		want_mems[NODESET_TEXT_MAX], found_mems[NODESET_TEXT_MAX];

	log_line(LOG_WARN, f == NARROWED ? "cpuset-narrowed" : "drift",
		"namespace=%s pod=%s container=%s id=%.12s cpus=%s mems=%s found_cpus=%s "
		"found_mems=%s error=%s who=\"%s\"",
		k->h->request.pod.ns, log_text(pod, sizeof pod, k->h->request.pod.name),
		log_text(name, sizeof name, k->h->request.ask.name), k->h->request.container_id,
		cpuset_format(&k->want.cpus, want_cpus, sizeof want_cpus),
		nodeset_format(k->want.mems, &d->topo.ids, want_mems, sizeof want_mems),
		cpuset_format(cpus, found_cpus, sizeof found_cpus),
		nodeset_format(mems, &d->topo.ids, found_mems, sizeof found_mems),
		k->odd.code ? log_text(odd, sizeof odd, k->odd.text) : "none",
		f == NARROWED        ? "the machine, or a cgroup above"
		: drift->by_a_client ? "the runtime's client"
				     : "another program");
}

/* Found twice in the same way, a round apart: an update that is on its way has arrived by then. */
static void act_on(struct daemon *d, const struct look *k, enum finding f)
{
	struct drift *drift = get_drift(d->follow.sweep, k->h->request.container_id);
	uint32_t seen = checksum(k);

	if (drift->seen != seen) {
		drift->seen = seen;
		drift->noted = false;
		return;
	}
	if (!cgroup_has_processes(d->follow.in_force.cgroups, k->h->request.cgroup))
		return; /* it has ended, which the runtime will report */
	if (!drift->noted) {
		d->measured.counters.drifted += f == OTHERWISE;
		log_drift(d, k, f, drift);
		drift->noted = true;
		drift->counted = f == OTHERWISE;
	}
	if (f == OTHERWISE)
		engine_must_update(d->engine, k->h->request.container_id);
}

/* A container that waits for its start to be updated once more. A runtime that is taking us in as
 * a plugin does not report a start to us: processes that are there twice, a round apart, say so. */
static void notice_start(struct daemon *d, const struct holding *h)
{
	if (!cgroup_has_processes(d->follow.in_force.cgroups, h->request.cgroup))
		return;
	struct drift *drift = get_drift(d->follow.sweep, h->request.container_id);
	if (drift->runs)
		engine_started(d->engine, loop_wall_ms(), h->request.container_id);
	drift->runs = true;
}

static void sweep_look_at(struct daemon *d, const struct holding *h)
{
	struct look k = {.h = h};

	if (h->request.cgroup && h->starting && h->misplaced)
		notice_start(d, h);
	if (!h->request.cgroup || h->misplaced || updater_is_updating(d, h->request.container_id) ||
		!engine_wants(d->engine, h->request.container_id, &k.want))
		return;
	int rc = cgroup_read(
		d->follow.in_force.cgroups, h->request.cgroup, &d->topo.ids, &k.found, &k.odd);
	enum finding f = rc == -ENOENT ? AS_PLACED : sweep_judge(d->engine, &k);
	if (rc == 0 && f != OTHERWISE && !k.want.untouched)
		confined_look_at(d, h, wanted_in_force(&k), &k.found);
	if (f == AS_PLACED)
		note_as_placed(d, h->request.container_id);
	else
		act_on(d, &k, f);
}

static enum step look_at_next_container(struct daemon *d)
{
	struct sweep *s = d->follow.sweep;
	const struct holding *h = ledger_after(engine_ledger(d->engine), s->at ? s->at : "");
	char *at = h ? xstrdup(h->request.container_id) : NULL;

	free(s->at);
	s->at = at;
	if (!h)
		return UPDATE;
	sweep_look_at(d, h);
	return LOOK_AT_CONTAINERS;
}

static void forget_the_gone(struct daemon *d)
{
	struct sweep *s = d->follow.sweep;

	for (size_t i = s->drifts.nr; i-- > 0;)
		if (!ledger_find(engine_ledger(d->engine), s->drifts.at[i].container_id))
			drop_drift(s, &s->drifts.at[i]);
}

/* The machine */

static void log_machine_problem(struct sweep *s, const char *text)
{
	char buf[2 * sizeof s->problem];

	if (!text_equal(s->problem, text) && *text)
		log_line(LOG_WARN, "machine-not-read", "error=%s", log_text(buf, sizeof buf, text));
	(void)text_copy(s->problem, sizeof s->problem, text);
}

/* Only discovery knows where CPUs are that were offline since the start. */
static int learn(struct daemon *d, struct err *e)
{
	struct sweep *s = d->follow.sweep;
	auto_free struct topo *t = xcalloc(1, sizeof *t);
	int rc = machine_read(d, t, e);

	if (rc < 0)
		return rc;
	if (rc)
		machine_log_corrections(d);
	if (t->nr_kinds != d->topo.nr_kinds || memcmp(&t->ids, &d->topo.ids, sizeof t->ids) != 0)
		return err_set(e, ENOTSUP,
			"there are other NUMA nodes or kinds of memory than before: they are used "
			"from the next start of numafitd on");
	t->this_machine = d->topo.this_machine;
	(void)text_copy(t->name, sizeof t->name, d->topo.name);
	s->settled = topo_fingerprint(t) == topo_fingerprint(&s->known);
	s->known = *t;
	return 0;
}

static int check_machine(const struct daemon *d, const struct topo *t, struct err *e)
{
	struct cpuset left = cpuset_minus(t->cpus, &d->settings.reserved_cpus);

	return cpuset_empty(&left)
		       ? err_set(e, ENODEV, "no CPU is online but for those of reservedSystemCPUs")
		       : 0;
}

static void log_change(const struct topo *before, const struct topo *t)
{
	struct cpuset gone = cpuset_minus(before->cpus, &t->cpus),
		      come = cpuset_minus(t->cpus, &before->cpus);
	char offline[CPUSET_TEXT_MAX], online[CPUSET_TEXT_MAX];

	log_line(LOG_WARN, "hotplug", "offline=%s online=%s cpus=%u memory_bytes=%llu",
		cpuset_format(&gone, offline, sizeof offline),
		cpuset_format(&come, online, sizeof online), t->nr_cpus,
		(unsigned long long)topo_memory_of(t, t->nodes, 0));
}

/* From here on the machine is *t, which is the daemon's. */
static void take_machine(struct daemon *d, struct topo *t)
{
	struct topo *before = d->machine;

	log_change(&d->topo, t);
	engine_set_topo(d->engine, loop_wall_ms(), t);
	d->topo = *t;
	d->machine = t;
	free(before);
	recorder_write_anew(d);
	recorder_count_change(d);
	pool_follow_event(d);
	services_note_change(d);
	dra_note_change(d->dra);
	cluster_note_change(d);
}

/* The machine as it is now, into *t, by what is known of it. learnt: in this round already. */
static int apply_known(struct daemon *d, bool learnt, struct topo *t, struct err *e)
{
	struct sweep *s = d->follow.sweep;
	int rc = hotplug_apply(&s->known, &s->now, t, e);

	if (rc != -ENXIO || learnt)
		return rc;
	rc = learn(d, e);
	return rc ? rc : hotplug_apply(&s->known, &s->now, t, e);
}

/* A machine whose nodes list CPUs in another way than discovery has them for as long as this does
 * so always: some firmware lists one with two nodes. */
static bool is_doubtful(struct daemon *d)
{
	struct sweep *s = d->follow.sweep;

	if (!hotplug_contradicts(&d->topo, &s->now)) {
		s->doubts = 0;
		return false;
	}
	if (s->doubts <= DOUBTS_MAX && s->doubts++ == DOUBTS_MAX)
		log_line(LOG_WARN, "machine-odd",
			"text=\"a NUMA node lists CPUs that discovery has on another one\" "
			"action=\"compare numafit topology with "
			"/sys/devices/system/node/node*/cpulist\"");
	return s->doubts <= DOUBTS_MAX;
}

static int follow_machine(struct daemon *d, struct err *e)
{
	auto_free struct topo *t = xcalloc(1, sizeof *t);

	struct sweep *s = d->follow.sweep;
	struct err odd = {0};

	if (is_doubtful(d))
		s->settled = false;
	if (s->settled && !hotplug_differs(&d->topo, &s->now))
		return 0;
	bool again = !s->settled;
	/* what cannot be read again is followed by what is known */
	int rc_odd = again ? learn(d, &odd) : 0;
	if (rc_odd == -ENOTSUP)
		s->settled = true; /* so it will be said until the next start */
	int rc = apply_known(d, again, t, e);
	if (!rc)
		rc = check_machine(d, t, e);
	if (rc)
		return rc;
	if (hotplug_differs(&d->topo, &s->now) || topo_fingerprint(t) != topo_fingerprint(&d->topo))
		take_machine(d, steal(t));
	if (rc_odd)
		*e = odd;
	return rc_odd;
}

static enum step look_at_cpus(struct daemon *d)
{
	struct sweep *s = d->follow.sweep;
	struct err e;

	s->node = 0;
	if (hotplug_read_cpus(s->root, &s->now.online, &e) == 0)
		return LOOK_AT_MEMORY;
	log_machine_problem(s, e.text);
	return LOOK_AT_POOL;
}

static enum step look_at_memory(struct daemon *d)
{
	struct sweep *s = d->follow.sweep;
	struct err e = {0};
	int rc = hotplug_read_node(s->root, &d->topo, s->node, &s->now, &e);

	if (!rc && ++s->node < d->topo.ids.nr)
		return LOOK_AT_MEMORY;
	if (!rc) { /* the last of all: a driver says so before it brings memory online */
		s->now.device_memory = nodeset_or(
			d->topo.device_memory, device_memory_read(s->root, &d->topo.ids));
		s->now.isolated = isolated_read(text_equal(s->root, "/") ? "" : s->root);
		rc = follow_machine(d, &e);
	}
	log_machine_problem(s, rc ? e.text : "");
	return LOOK_AT_POOL;
}

/* Rounds */

static enum step look_at_pool(struct daemon *d)
{
	return pool_look_at_next(d) ? LOOK_AT_POOL : LOOK_AT_QUOTAS;
}

static enum step look_at_quotas(struct daemon *d)
{
	return quota_look_at_next(d) ? LOOK_AT_QUOTAS : LOOK_AT_CONTAINERS;
}

static enum step look_at_containers(struct daemon *d)
{
	/* without a connection no end of a container is known, and none could be updated */
	bool can = d->follow.in_force.cgroups && nri_conn_state(d->runtime.conn) == NRI_READY;

	return can ? look_at_next_container(d) : UPDATE;
}

static enum step end_round(struct daemon *d)
{
	forget_the_gone(d);
	confined_end_round(d);
	quiet_look_again(d);
	updater_note_change(d);
	return ROUND_ENDS;
}

static enum step (*const steps[ROUND_ENDS])(struct daemon *d) = {
	[LOOK_AT_CPUS] = look_at_cpus,
	[LOOK_AT_MEMORY] = look_at_memory,
	[LOOK_AT_POOL] = look_at_pool,
	[LOOK_AT_QUOTAS] = look_at_quotas,
	[LOOK_AT_CONTAINERS] = look_at_containers,
	[UPDATE] = end_round,
};

static void next_round(struct daemon *d)
{
	struct sweep *s = d->follow.sweep;

	if (d->settings.sweep_interval_ms) {
		loop_timer_set(s->timer, d->settings.sweep_interval_ms);
		return;
	}
	loop_timer_stop(s->timer);
	drop_drifts(s); /* by the next round, if there is one, they are old */
}

static void sweep_turn(void *ctx)
{
	struct daemon *d = ctx;
	struct sweep *s = d->follow.sweep;
	uint64_t until = loop_monotonic_ns() + TURN_NS;

	while (nri_conn_is_idle(d->runtime.conn) && s->step != ROUND_ENDS &&
		loop_monotonic_ns() < until)
		s->step = steps[s->step](d);
	if (s->step != ROUND_ENDS) {
		loop_timer_set(s->timer, PAUSE_MS);
		return;
	}
	s->step = LOOK_AT_CPUS;
	next_round(d);
}

void sweep_start(struct daemon *d, const char *root)
{
	if (d->settings.mode != MODE_MANAGE || !d->settings.sweep_interval_ms)
		return;
	if (!d->topo.this_machine) {
		log_line(LOG_INFO, "sweep-off",
			"text=\"the machine is not this one: its cgroups are not here\"");
		return;
	}
	d->follow.sweep = xcalloc(1, sizeof *d->follow.sweep);
	d->follow.sweep->root = root;
	d->follow.sweep->known = d->topo;
	d->follow.confined.root = root;
	d->follow.sweep->timer = loop_timer_new(d->loop, sweep_turn, d);
	next_round(d);
}

void sweep_settings_changed(struct daemon *d)
{
	if (!d->follow.sweep && d->topo.this_machine)
		sweep_start(d, fault_root());
	else if (d->follow.sweep &&
		 d->follow.sweep->step == LOOK_AT_CPUS) /* else when this round ends */
		next_round(d);
}

void sweep_stop(struct daemon *d)
{
	struct sweep *s = d->follow.sweep;

	if (!s)
		return;
	loop_timer_close(s->timer);
	drop_drifts(s);
	free(s->at);
	free(s);
	d->follow.sweep = NULL;
}
