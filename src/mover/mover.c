/* Moves of running containers. The ledger says what a container has meanwhile, so that whatever
 * happens amid a move leaves it CPUs and memory that nobody else has; each step can be made twice.
 */
#include <mover/mover.h>

#include <host/cgroup_memory.h>
#include <host/mems_write.h>
#include <io/log.h>
#include <mover/planner.h>
#include <numafit/cgroup_path.h>
#include <numafit/move_rate.h>
#include <numafit/number.h>
#include <numafit/text.h>

#include <errno.h>
#include <string.h>

enum {
	AGAIN_MS = 1000, /* what could not be recorded is tried again then, */
	WAIT_MS = 50,    /* and so is what waits for the runtime's updates */
	WAITS_MAX = 600
};

/* A move of the plan at hand. */
struct planned_move {
	char *ns, *pod, *container, *id;
	struct decision from, to;
	struct move_nodes nodes;
	uint64_t bytes, took_ns;
	uint64_t left; /* bytes that the kernel has left where they were */
	enum move_state state;
	char why[sizeof((struct err *)0)->text];
};

/* What is to happen when the write of cpuset.mems is done, or the timer is. */
enum mover_step { MOVER_IDLE, MOVER_BEGINS, MOVER_GOES, MOVER_GOES_BACK, MOVER_ENDS };

struct mover {
	struct mover_world w;
	struct mems_write *write;
	struct loop_timer *timer;
	enum mover_step step;
	bool back; /* MOVER_ENDS: where it came from */
	unsigned waits;
	struct mems_written written; /* what came of the last write, while its end waits */
	char *pod_of_plan;
	const struct planned *made_by; /* while its first move begins; NULL */
	unsigned nr, at;
	struct planned_move move[DEFRAG_MOVES_MAX];
	struct move_rate rate;
	struct mover_counters counters;
	struct {
		uint64_t at_ns, bytes;
	} progress; /* of the move under way, as it was read last */
	struct move_uses uses;
};

static const struct ledger *ledger_of(const struct mover *m)
{
	return engine_ledger(*m->w.engine);
}

static const struct topo *topo_now(const struct mover *m)
{
	return ledger_view(ledger_of(m))->topo;
}

static const struct moving *moving_of(const struct mover *m)
{
	return ledger_view(ledger_of(m))->moving;
}

static const struct holding *holding_of(const struct mover *m)
{
	return ledger_find(ledger_of(m), m->move[m->at].id);
}

/* Whether the container is still on its way: it may have ended, or lost CPUs on the way. */
static bool is_on_its_way(const struct mover *m)
{
	return m->at < m->nr && ledger_is_moving(ledger_of(m), m->move[m->at].id);
}

/* Writing */

static int directory_of(const struct mover *m, char path[CGROUP_PATH_MAX], struct err *e)
{
	const struct holding *h = holding_of(m);

	if (!h || !h->request.cgroup)
		return err_set(e, ENOENT, "its cgroup is not known");
	return cgroup_path(h->request.cgroup, path, CGROUP_PATH_MAX, e);
}

/* What of these CPUs it runs on, by its wishes. */
static int write_cpus(const struct mover *m, const struct cpuset *cpus, struct err *e)
{
	const struct holding *h = holding_of(m);
	char path[CGROUP_PATH_MAX], list[CPUSET_TEXT_MAX];
	int rc = directory_of(m, path, e);

	if (rc)
		return rc;
	const struct cpuset shown = wishes_shown_cpus(&h->request.ask.wishes, topo_now(m), cpus);
	return cgroup_write(
		m->w.cpuset, path, "cpuset.cpus", cpuset_format(&shown, list, sizeof list), e);
}

static int start_to_write_mems(const struct mover *m, struct nodeset mems, struct err *e)
{
	char path[CGROUP_PATH_MAX], list[NODESET_TEXT_MAX];
	int rc = directory_of(m, path, e);

	if (rc)
		return rc;
	return mems_write_start(m->write, m->w.cpuset, path,
		nodeset_format(mems, &topo_now(m)->ids, list, sizeof list), e);
}

/* Bytes that it has by now on NUMA nodes that it comes from, or goes to. */
static uint64_t bytes_on(const struct mover *m, struct nodeset nodes)
{
	char path[CGROUP_PATH_MAX];
	struct cgroup_memory memory;

	if (!m->w.memory || directory_of(m, path, NULL) ||
		cgroup_memory_read(m->w.memory, path, topo_now(m), &memory, NULL))
		return 0;
	return cgroup_memory_on(&memory, nodes).moves;
}

/* Bytes that are still where it is to have none. */
static uint64_t bytes_to_move(const struct mover *m)
{
	const struct planned_move *p = &m->move[m->at];

	return bytes_on(m, nodeset_minus(p->from.mems, p->to.mems));
}

/* Steps */

/* Whether to come back later, as the runtime may be updating containers; not for ever, with one
 * that always does. */
static bool waits_for_runtime(struct mover *m)
{
	if (m->w.is_updating(m->w.ctx) && m->waits++ < WAITS_MAX) {
		loop_timer_set(m->timer, WAIT_MS);
		return true;
	}
	m->waits = 0;
	return false;
}

static void begin_next(struct mover *m);

static void log_move(const struct mover *m, enum log_level level, const char *event)
{
	const struct planned_move *p = &m->move[m->at];
	char cpus[CPUSET_TEXT_MAX], name[512], why[2 * sizeof p->why];

	log_line(level, event,
		"namespace=%s pod=%s container=%s id=%.12s from_nodes=%s to_nodes=%s cpus=%s "
		"memory=%llu left=%llu took_ms=%llu error=%s",
		p->ns, log_text(name, sizeof name, p->pod), p->container, p->id, p->nodes.from,
		p->nodes.to, cpuset_format(&p->to.cpus, cpus, sizeof cpus),
		(unsigned long long)p->bytes, (unsigned long long)p->left,
		(unsigned long long)(p->took_ns / NS_PER_MS),
		log_text(why, sizeof why, *p->why ? p->why : "none"));
}

static void end_plan(struct mover *m)
{
	m->step = MOVER_IDLE;
	m->at = m->nr;
}

static void fail_move(struct mover *m, const struct err *e)
{
	struct planned_move *p = &m->move[m->at];

	if (!*p->why)
		(void)text_copy(p->why, sizeof p->why, e->text);
}

/* Its cgroup goes before its end is reported. */
static bool has_ended(const struct mover *m)
{
	char path[CGROUP_PATH_MAX];

	return !directory_of(m, path, NULL) && !cgroup_is_there(m->w.cpuset, path);
}

/* The container, or what it was to have, is not there any more: what is left of it has what the
 * ledger says. */
static void leave_move(struct mover *m)
{
	struct planned_move *p = &m->move[m->at];

	p->state = MOVE_GONE;
	(void)text_copy(p->why, sizeof p->why,
		"the container has ended or was resized, or the machine has changed");
	log_move(m, LOG_INFO, "move-left");
	m->w.must_update(m->w.ctx, p->id);
	end_plan(m);
}

/* It has what it is to have, in the kernel: so it is in the ledger, and in the runtime, whose spec
 * would bring back the old CPUs and NUMA nodes otherwise. */
static void end_move(struct mover *m)
{
	struct planned_move *p = &m->move[m->at];
	struct err e;

	if (engine_end_move(*m->w.engine, loop_wall_ms(), m->back, &e)) {
		m->step = MOVER_ENDS;
		loop_timer_set(m->timer, AGAIN_MS);
		return;
	}
	(void)m->w.follow_pool(m->w.ctx, &e);
	if (m->back && has_ended(m)) {
		leave_move(m);
		return;
	}
	m->w.must_update(m->w.ctx, p->id);
	p->state = m->back ? MOVE_UNDONE : MOVE_DONE;
	if (m->back) {
		m->counters.undone++;
		log_move(m, LOG_WARN, "move-undone");
		end_plan(m);
		return;
	}
	m->counters.moved++;
	m->counters.bytes += p->bytes;
	m->counters.ns += p->took_ns;
	log_move(m, LOG_INFO, "moved");
	m->at++;
	begin_next(m);
}

/* Back to what it had: its memory first, as far as it has left. */
static void go_back(struct mover *m, const struct err *why)
{
	struct err e = {0};

	fail_move(m, why);
	m->back = true;
	m->step = MOVER_GOES_BACK;
	if (start_to_write_mems(m, m->move[m->at].from.mems, &e) == 0)
		return;
	(void)write_cpus(m, &m->move[m->at].from.cpus, &e);
	end_move(m);
}

/* Its memory is where it was to go, or the kernel has refused that. */
static void after_mems(struct mover *m)
{
	const struct mems_written *w = &m->written;
	struct planned_move *p = &m->move[m->at];
	struct err e = w->error;

	if (!is_on_its_way(m)) {
		leave_move(m);
		return;
	}
	if (waits_for_runtime(m))
		return;
	if (m->step == MOVER_GOES_BACK) {
		(void)write_cpus(m, &p->from.cpus, &e); /* what the pod's cgroup leaves it, else */
		end_move(m);
		return;
	}
	p->took_ns = w->ns;
	if (w->rc || write_cpus(m, &p->to.cpus, &e)) {
		go_back(m, &e);
		return;
	}
	p->left = bytes_to_move(m);
	move_rate_note(&m->rate, p->bytes, w->ns);
	m->back = false;
	end_move(m);
}

static void on_mems_written(void *ctx, const struct mems_written *w)
{
	struct mover *m = ctx;

	m->written = *w;
	if (m->step != MOVER_IDLE)
		after_mems(m);
}

/* The container may run on both from here on: nobody else runs on what it gets. */
static void widen_and_go(struct mover *m)
{
	struct planned_move *p = &m->move[m->at];
	const struct cpuset both = cpuset_or(p->from.cpus, &p->to.cpus);
	struct err e = {0};

	m->step = MOVER_GOES;
	m->back = false;
	int rc = m->w.follow_pool(m->w.ctx, &e);
	if (!rc)
		rc = write_cpus(m, &both, &e);
	if (!rc)
		rc = start_to_write_mems(m, p->to.mems, &e);
	if (rc)
		go_back(m, &e);
}

/* The plan was made for a node that may have changed since. */
static void give_up_plan(struct mover *m, const struct err *e)
{
	m->move[m->at].state = MOVE_UNDONE;
	fail_move(m, e);
	log_move(m, LOG_INFO, "move-not-begun");
	end_plan(m);
}

/* With what the plan was made by, as long as that is the node that there is. */
static int begin_move(struct mover *m, struct err *e)
{
	const struct planned_move *p = &m->move[m->at];
	const struct planned *by = m->made_by;
	struct move_basis basis;

	if (by && by->question->generation == m->w.generation(m->w.ctx)) {
		basis = (struct move_basis){by->pod, by->question->moves, by->question->trials,
			by->figures, by->nr_figures};
		int rc = engine_begin_move(*m->w.engine, loop_wall_ms(), p->id, &p->to, &basis, e);
		if (rc != -EMSGSIZE)
			return rc;
	}
	return engine_begin_move(*m->w.engine, loop_wall_ms(), p->id, &p->to, NULL, e);
}

static void begin_next(struct mover *m)
{
	struct planned_move *p = &m->move[m->at];
	struct err e = {0};

	if (m->at == m->nr) {
		end_plan(m);
		return;
	}
	m->step = MOVER_BEGINS;
	if (waits_for_runtime(m)) /* or what the container gets would be set for others again */
		return;
	const struct holding *h = holding_of(m);
	const bool is_as_planned =
		h && !h->starting && cpuset_equal(&h->decision.cpus, &p->from.cpus);
	int rc = is_as_planned ? 0
			       : err_set(&e, EAGAIN,
					 "the container is gone, does not run yet, or has other "
					 "CPUs by now");
	if (!rc && m->w.is_updating(m->w.ctx))
		rc = err_set(&e, EAGAIN, "the runtime updates containers all the time");
	if (rc || begin_move(m, &e)) {
		give_up_plan(m, &e);
		return;
	}
	p->state = MOVE_UNDER_WAY;
	m->progress.at_ns = 0;
	p->bytes = bytes_to_move(m);
	move_uses_note(&m->uses, loop_monotonic_ns(), p->bytes);
	log_move(m, LOG_INFO, "move-begins");
	widen_and_go(m);
}

static void on_timer(void *ctx)
{
	struct mover *m = ctx;

	if (m->step == MOVER_BEGINS)
		begin_next(m);
	else if (m->step == MOVER_GOES || m->step == MOVER_GOES_BACK)
		after_mems(m);
	else if (m->step == MOVER_ENDS && is_on_its_way(m))
		end_move(m);
	else if (m->step == MOVER_ENDS)
		leave_move(m);
}

/* Plans */

static void forget_plan(struct mover *m)
{
	for (unsigned i = 0; i < m->nr; i++) {
		struct planned_move *p = &m->move[i];

		free(p->ns);
		free(p->pod);
		free(p->container);
		free(p->id);
	}
	memset(m->move, 0, sizeof m->move);
	free(steal(m->pod_of_plan));
	m->nr = m->at = 0;
}

static void add_move(struct mover *m, const struct holding *h, const struct decision *from,
	const struct decision *to, uint64_t bytes)
{
	const struct topo *t = topo_now(m);
	struct planned_move *p = &m->move[m->nr++];

	p->ns = xstrdup(h->request.pod.ns);
	p->pod = xstrdup(h->request.pod.name);
	p->container = xstrdup(h->request.ask.name);
	p->id = xstrdup(h->request.container_id);
	p->from = *from;
	p->to = *to;
	p->from.reasons = p->to.reasons = NULL;
	p->bytes = bytes;
	(void)nodeset_format(
		decision_nodes_used(t, from), &t->ids, p->nodes.from, sizeof p->nodes.from);
	(void)nodeset_format(decision_nodes_used(t, to), &t->ids, p->nodes.to, sizeof p->nodes.to);
}

bool mover_is_busy(const struct mover *m)
{
	return m->step != MOVER_IDLE || moving_of(m);
}

bool mover_is_copying(const struct mover *m)
{
	return mems_write_is_busy(m->write);
}

int mover_make(struct mover *m, const struct planned *p, const char *pod, struct err *e)
{
	const struct defrag_plan *plan = &p->plan;
	int rc = m->w.can(m->w.ctx, e);

	if (rc)
		return rc;
	if (mover_is_busy(m))
		return err_set(e, EBUSY, "containers are being moved: numafit defrag --show");
	forget_plan(m);
	m->pod_of_plan = *pod ? xstrdup(pod) : NULL;
	for (unsigned i = 0; i < plan->nr; i++) {
		const struct defrag_move *one = &plan->move[i];

		add_move(m, one->from, &one->from->decision, &one->to, one->cost.bytes);
	}
	m->made_by = p;
	begin_next(m);
	m->made_by = NULL;
	return 0;
}

/* Of an earlier life: what it had written of the move is not known, and all is written again. */
static void resume(struct mover *m)
{
	const struct moving *was = moving_of(m);
	const struct holding *h = ledger_find(ledger_of(m), was->container_id);
	struct err e;

	forget_plan(m);
	add_move(m, h, &was->from, &was->to, 0);
	m->move[0].state = MOVE_UNDER_WAY;
	m->move[0].bytes = bytes_to_move(m);
	if (m->w.can(m->w.ctx, &e)) { /* and so the runtime is to set what it had before */
		fail_move(m, &e);
		m->back = true;
		end_move(m);
		return;
	}
	log_move(m, LOG_INFO, "move-goes-on");
	widen_and_go(m);
}

void mover_note_synchronized(struct mover *m)
{
	struct err e;

	if (!moving_of(m))
		return;
	if (m->step == MOVER_IDLE)
		resume(m);
	else if (m->step == MOVER_GOES && is_on_its_way(m) && !mover_is_copying(m))
		/* another program may have set it */
		(void)write_cpus(m, &holding_of(m)->decision.cpus, &e);
}

/* What is shown */

uint64_t mover_expected_ms(const struct mover *m, uint64_t bytes)
{
	return (uint64_t)(move_rate_seconds(&m->rate, bytes) * MS_PER_S);
}

static enum moves_state state_of(const struct mover *m)
{
	if (m->step != MOVER_IDLE)
		return MOVES_UNDER_WAY;
	for (unsigned i = 0; i < m->nr; i++)
		if (m->move[i].state != MOVE_DONE)
			return MOVES_FAILED;
	return MOVES_DONE;
}

/* To read it takes the kernel tens of ms while pages move. */
static uint64_t bytes_moved(struct mover *m, const struct planned_move *p)
{
	const uint64_t now = loop_monotonic_ns();

	if (!m->progress.at_ns || now - m->progress.at_ns > NS_PER_S) {
		m->progress.bytes = number_min(bytes_on(m, p->to.mems), p->bytes);
		m->progress.at_ns = now;
	}
	return m->progress.bytes;
}

static struct move_line line_of(struct mover *m, const struct planned_move *p)
{
	const bool moves = p->state == MOVE_UNDER_WAY && p == &m->move[m->at];

	return (struct move_line){
		.ns = p->ns,
		.pod = p->pod,
		.container = p->container,
		.id = p->id,
		.bytes = p->bytes,
		.ms = p->took_ns ? p->took_ns / NS_PER_MS : mover_expected_ms(m, p->bytes),
		.moved = moves                   ? bytes_moved(m, p)
			 : p->state == MOVE_DONE ? p->bytes
						 : 0,
		.from_cpus = p->from.cpus,
		.to_cpus = p->to.cpus,
		.from_nodes = p->nodes.from,
		.to_nodes = p->nodes.to,
		.state = p->state,
		.why = *p->why ? p->why : NULL,
	};
}

bool mover_show(struct mover *m, struct moves *out)
{
	if (!m->nr)
		return false;
	*out = (struct moves){
		.found = true, .state = state_of(m), .pod = m->pod_of_plan, .nr = m->nr};
	for (unsigned i = 0; i < m->nr; i++) {
		out->at[i] = line_of(m, &m->move[i]);
		out->bytes += out->at[i].bytes;
		out->ms += out->at[i].ms;
		out->cpus += cpuset_count(&m->move[i].to.cpus);
	}
	return true;
}

const struct move_uses *mover_uses(const struct mover *m)
{
	return &m->uses;
}

struct mover_counters mover_counters(const struct mover *m)
{
	return m->counters;
}

struct mover *mover_new(const struct mover_world *w)
{
	struct mover *m = xcalloc(1, sizeof *m);

	m->w = *w;
	m->write = mems_write_new(w->loop, on_mems_written, m);
	m->timer = loop_timer_new(w->loop, on_timer, m);
	return m;
}

void mover_free(struct mover *m)
{

	if (!m)
		return;
	m->step = MOVER_IDLE;
	mems_write_free(m->write);
	loop_timer_close(m->timer);
	forget_plan(m);
	move_uses_fini(&m->uses);
	free(m);
}
