/* What containers really run with: their cgroups, read where the runtime's report may be wrong or
 * old. In a Synchronize as many as there is time for, the others in rounds of the loop after it. */
#include "daemon.h"
#include "reply.h"
#include "updater.h"

#include <host/cgroup.h>
#include <io/log.h>
#include <numafit/text.h>

#include <string.h>

/* All reads of one Synchronize together: 2 s is what the runtime waits. Then a turn's work, and the
 * pause between two, in which the loop serves whoever waits. */
enum { LOOK_NS = 200 * 1000 * 1000, TURN_NS = 1000 * 1000, PAUSE_MS = 1, ARENA_BYTES = 64 << 10 };

struct in_force_reader {
	struct cgroups cgroups;
	struct loop_timer *timer;
	struct {
		VEC(char *);
	} unread; /* containers that there was no time for */
};

static void take_numbers_in_force(
	struct request *req, const struct holding *h, const struct linux_resources *limits)
{
	const struct request held = h ? h->request : *req;

	if (h && request_has_limits(&held, limits)) { /* what is known is finer than what is read */
		req->ask.cpu_milli = held.ask.cpu_milli;
		req->ask.cpu_limit_milli = held.ask.cpu_limit_milli;
		req->ask.nr_memory = held.ask.nr_memory;
		memcpy(req->ask.memory, held.ask.memory, sizeof req->ask.memory);
	} else if (!request_has_limits(req, limits)) {
		request_take_limits(req, limits);
	}
}

/* Numbers of others than Guaranteed containers decide nothing. False: the ledger knows better than
 * the request. */
static bool read_numbers_in_force(struct daemon *d, struct request *req, const struct holding *h)
{
	struct linux_resources limits;

	if (req->pod.qos != QOS_GUARANTEED)
		return true;
	if (cgroup_read_limits(d->follow.in_force.cgroups, req->cgroup, &limits, NULL) < 0)
		return !h;
	take_numbers_in_force(req, h, &limits);
	return true;
}

/* The cpuset that is in force becomes the request's, and so do the numbers if the runtime forgets.
 * False: it cannot be read. */
static bool read_into(struct daemon *d, struct request *req, bool numbers, const struct holding *h,
	struct arena *a)
{
	struct cgroup_cpuset found;

	if (!d->follow.in_force.cgroups || !req->cgroup ||
		cgroup_read(d->follow.in_force.cgroups, req->cgroup, &d->topo.ids, &found, NULL) <
			0)
		return false;
	/* in v1 one that nobody has set has those of the cgroup above it */
	if (!*req->cpus && cpuset_equal(&found.cpus, &d->topo.cpus))
		return !numbers || read_numbers_in_force(d, req, h);
	const char *cpus = cpus_text(a, &found.cpus), *mems = nodes_text(d, a, found.mems);
	if ((!*cpus && !cpuset_empty(&found.cpus)) ||
		(numbers && !read_numbers_in_force(d, req, h)))
		return false;
	req->cpus = cpus;
	req->mems = mems;
	return true;
}

/* Those that nobody else may run beside, or that are left where they run, are looked at first. */
static bool owns_cpus(
	const struct request *req, const struct placement *said, const struct holding *h)
{
	return request_exclusive_cpus(req) || (said && said->exclusive) ||
	       (h && (h->decision.exclusive || decision_is_left(&h->decision)));
}

static void forget_unread(struct in_force_reader *r)
{
	for (size_t i = 0; i < r->unread.nr; i++)
		free(r->unread.at[i]);
	r->unread.nr = 0;
}

static void look_at_cgroup(struct daemon *d, struct request *req, const struct placement *said,
	bool late, struct arena *a, struct looks *n)
{
	const struct holding *h = ledger_find(engine_ledger(d->engine), req->container_id);
	bool forgets = nri_conn_forgets(d->runtime.conn);
	/* where others place containers our ledger does not know better than a report */
	bool ledger_counts = forgets && d->settings.mode == MODE_MANAGE;
	enum doubt doubt = engine_doubts(d->engine, req, said, forgets);

	if (doubt == DOUBT_NONE)
		return;
	if (!late && read_into(d, req, forgets, h, a)) {
		n->read++;
	} else if (late && ledger_counts && d->follow.in_force.cgroups && req->cgroup) {
		req->in_force = IN_FORCE_UNREAD;
		*vec_push(&d->follow.in_force.reader->unread) = xstrdup(req->container_id);
		loop_timer_set(d->follow.in_force.reader->timer, PAUSE_MS);
		n->later++;
	} else if (ledger_counts && doubt == DOUBT_CONTENT) {
		req->in_force = IN_FORCE_UNKNOWN;
		n->unknown++;
	}
}

struct looks in_force_look(struct daemon *d, struct request *requests,
	const struct placement *const *said, size_t nr, struct arena *a)
{
	const struct ledger *l = engine_ledger(d->engine);
	uint64_t from = loop_monotonic_ns();
	struct looks n = {0};

	if (d->follow.in_force.reader)
		forget_unread(d->follow.in_force.reader);
	for (unsigned pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < nr; i++) {
			const struct holding *h = ledger_find(l, requests[i].container_id);

			if (owns_cpus(&requests[i], said[i], h) == (pass == 0))
				look_at_cgroup(d, &requests[i], said[i],
					loop_monotonic_ns() - from >= d->follow.in_force.budget_ns,
					a, &n);
		}
	if (n.unknown)
		log_line(LOG_WARN, "in-force-unknown",
			"containers=%zu text=\"the runtime may have forgotten what it set, and "
			"their "
			"cgroups cannot be read: they are set again as the journal has it\"",
			n.unknown);
	return n;
}

static void look_later(struct daemon *d, const char *id)
{
	const struct holding *h = ledger_find(engine_ledger(d->engine), id);
	struct arena a;

	if (!h)
		return;
	struct request req = h->request;
	req.container_id = id; /* the entry may be replaced */
	req.cpus = req.mems = "";
	arena_init(&a, ARENA_BYTES);
	if (read_into(d, &req, true, h, &a))
		engine_note_in_force(d->engine, loop_wall_ms(), &req);
	else
		engine_must_update(d->engine, id);
	arena_fini(&a);
}

static void read_unread(void *ctx)
{
	struct daemon *d = ctx;
	struct in_force_reader *r = d->follow.in_force.reader;
	uint64_t until = loop_monotonic_ns() + TURN_NS;

	while (nri_conn_is_idle(d->runtime.conn) && r->unread.nr && loop_monotonic_ns() < until) {
		auto_free char *id = r->unread.at[--r->unread.nr];

		look_later(d, id);
	}
	if (r->unread.nr)
		loop_timer_set(r->timer, PAUSE_MS);
	else
		updater_note_change(d);
}

void in_force_start(struct daemon *d, const char *root)
{
	char buf[512];
	struct err e;

	if (!d->topo.this_machine || d->settings.mode == MODE_RELEASE)
		return;
	d->follow.in_force.reader = xcalloc(1, sizeof *d->follow.in_force.reader);
	d->follow.in_force.budget_ns = LOOK_NS;
	d->follow.in_force.reader->timer = loop_timer_new(d->loop, read_unread, d);
	if (cgroups_find(root, &d->follow.in_force.reader->cgroups, &e) == 0)
		d->follow.in_force.cgroups = &d->follow.in_force.reader->cgroups;
	else
		log_line(LOG_WARN, "no-cgroups",
			"error=%s action=\"let numafitd see the host's /sys/fs/cgroup: until then "
			"nobody notices who changes containers' cpusets, or that the runtime has "
			"forgotten them\"",
			log_text(buf, sizeof buf, e.text));
}

void in_force_stop(struct daemon *d)
{
	struct in_force_reader *r = d->follow.in_force.reader;

	if (!r)
		return;
	loop_timer_close(r->timer);
	forget_unread(r);
	vec_fini(&r->unread);
	free(r);
	d->follow.in_force.reader = NULL;
	d->follow.in_force.cgroups = NULL;
}
