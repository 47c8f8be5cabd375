/* The shared pool as bounds of the kubelet's cgroups: written before anybody runs on what they give
 * up, watched, and given back. */
#include "pool.h"
#include "confined.h"
#include "daemon.h"
#include "pool_state.h"
#include "updater.h"

#include <io/file.h>
#include <io/log.h>
#include <mover/moves.h>
#include <numafit/bounds.h>
#include <numafit/text.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* AGAIN_MS: between two attempts at what could not be written. Another program that writes a cgroup
 * over and over is answered REWRITES_MAX times in a row, and then at that pace. WATCHED_SPARE: that
 * many cgroups that are gone may be watched meanwhile. */
enum { AGAIN_MS = 1000, REWRITES_MAX = 10, WATCHED_SPARE = 64 };

static struct bounds *bounds_of(const struct daemon *d)
{
	return d->engine ? ledger_view(engine_ledger(d->engine))->bounds : NULL;
}

/* Choosing */

/* Whether cgroups can enforce the pool of this system. */
static int try_cgroups(struct daemon *d, const char *root, struct err *e)
{
	struct cgroups c;

	if (!d->topo.this_machine)
		return err_set(e, ENOTSUP, "the machine is not this one: its cgroups are not here");
	int rc = cgroups_find(root, &c, e);
	if (rc)
		return rc;
	if (!c.v2)
		return err_set(e, ENOTSUP,
			"the cgroup hierarchy with cpusets is of version 1, in which a cgroup does "
			"not bound those below it");
	d->follow.pool->tree.v2 = true;
	(void)text_copy(d->follow.pool->tree.root, sizeof d->follow.pool->tree.root, c.root);
	return cgroup_check_writable(&d->follow.pool->tree, e);
}

int pool_choose(struct daemon *d, const char *root, struct err *e)
{
	const bool places = d->settings.mode == MODE_MANAGE || d->settings.mode == MODE_RELEASE;
	enum pool_enforced asked = d->settings.pool_enforced;
	char why[512];

	d->follow.pool = xcalloc(1, sizeof *d->follow.pool);
	d->follow.pool->left = SIZE_MAX;
	int rc = places ? try_cgroups(d, root, e) : -ECANCELED;
	bool by_updates = rc || asked == POOL_BY_UPDATES;
	d->settings.pool_enforced = by_updates ? POOL_BY_UPDATES : POOL_BY_CGROUPS;
	if (!places || asked == POOL_BY_UPDATES)
		return 0;
	if (rc && asked == POOL_BY_CGROUPS)
		return err_add(e, rc, "sharedPool.enforce: cgroup");
	if (rc)
		(void)text_copy(
			d->follow.pool->why_updates, sizeof d->follow.pool->why_updates, e->text);
	if (rc && d->topo.this_machine)
		log_line(LOG_INFO, "pool-by-updates",
			"reason=%s text=\"the runtime updates containers of the shared pool one "
			"after another\"",
			log_text(why, sizeof why, e->text));
	return 0;
}

/* Watching */

static const char *file_of(const struct pool_bounds *p, const char *path, char *buf, size_t cap)
{
	(void)snprintf(buf, cap, "%s%s/cpuset.cpus", p->tree.root, path);
	return buf;
}

/* Whether the cgroup was found with another set than was written, so that it is to be written
 * again. It may have left the tree. */
static bool note_if_changed(struct daemon *d, struct bounds_node *n)
{
	struct pool_bounds *p = d->follow.pool;
	struct cpuset found;
	int rc = cgroup_read_cpus(&p->tree, bounds_path(n), &found, NULL);

	if (file_is_gone(rc)) {
		(void)bounds_note_gone(bounds_of(d), n);
		return false;
	}
	if (rc) /* it is not what was written: it may have CPUs that this machine has not */
		found = (struct cpuset){0};
	if (!bounds_note_found(bounds_of(d), n, &found, &d->topo.cpus))
		return false;
	p->rewritten++;
	return true;
}

static void log_rewritten(const struct watched_file *f)
{
	char path[512];

	log_line(LOG_WARN, "pool-rewritten",
		"cgroup=%s text=\"another program has changed its cpuset.cpus; it is written again\" "
		"action=\"none needed if this is systemd; else see what sets AllowedCPUs or cpuset.cpus "
		"there\"",
		log_text(path, sizeof path, f->key));
}

static void on_bound_touched(void *ctx, struct watched_file *f)
{
	struct daemon *d = ctx;
	struct bounds *b = bounds_of(d);
	struct bounds_node *n = b ? bounds_find(b, f->key) : NULL;

	if (!n || f->rewrites >= REWRITES_MAX || !note_if_changed(d, n))
		return;
	if (!f->logged)
		log_rewritten(f);
	f->logged = true;
	if (++f->rewrites == REWRITES_MAX)
		loop_timer_set(d->follow.pool->again, AGAIN_MS);
	pool_follow_event(d);
}

static void forget_unbounded(struct daemon *d)
{
	struct watched_files *w = &d->follow.pool->watched;

	for (size_t i = w->nr; i-- > 0;)
		if (!bounds_find(bounds_of(d), w->at[i].key))
			watched_files_remove(w, w->at[i].key);
}

static void watch_cgroup(struct daemon *d, const char *path)
{
	struct pool_bounds *p = d->follow.pool;
	char file[2 * CGROUP_PATH_MAX], shown[512];

	if (p->watch_failed || watched_files_find(&p->watched, path))
		return;
	if (p->watched.nr > WATCHED_SPARE + 2 * bounds_count(bounds_of(d)))
		forget_unbounded(d);
	if (watched_files_add(&p->watched, path, file_of(p, path, file, sizeof file)) ||
		!cgroup_is_there(&p->tree, path))
		return;
	p->watch_failed = true;
	log_line(LOG_WARN, "pool-not-watched",
		"cgroup=%s text=\"changes by other programs are noticed every sweepInterval only\" action=\"raise "
		"fs.inotify.max_user_watches and max_user_instances\"",
		log_text(shown, sizeof shown, path));
}

/* Nobody waits for it: it is done once the event is answered. */
static void watch_soon(struct pool_bounds *p, const char *path)
{
	*vec_push(&p->to_watch) = xstrdup(path);
	loop_timer_set(p->watch_due, 0);
}

static void watch_written(void *ctx)
{
	struct daemon *d = ctx;
	struct pool_bounds *p = d->follow.pool;

	while (p->to_watch.nr) {
		auto_free char *path = p->to_watch.at[--p->to_watch.nr];

		watch_cgroup(d, path);
	}
}

/* Writing */

static int write_set(const struct pool_bounds *p, const struct bounds_write *w, struct err *e)
{
	char list[CPUSET_TEXT_MAX];
	const char *text = cpuset_format(&w->cpus, list, sizeof list);
	int rc = cgroup_write(&p->tree, w->path, "cpuset.cpus", text, e);

	/* before its first delegated unit systemd may not have enabled the controller there */
	if (rc == -ENOENT && !w->is_container && !w->is_idle &&
		cgroup_is_there(&p->tree, w->path)) {
		rc = cgroup_enable(&p->tree, w->path, "cpuset", e);
		if (!rc)
			rc = cgroup_write(&p->tree, w->path, "cpuset.cpus", text, e);
	}
	return rc;
}

/* What became of a plan. */
enum outcome { WRITTEN, PLAN_ANEW, WRITE_FAILED };

/* What a set loses does not wait for one that cannot be written; *e is of the first that cannot. */
static enum outcome make_writes(struct daemon *d, const struct bounds_writes *all, struct err *e)
{
	struct pool_bounds *p = d->follow.pool;
	const struct bounds_write *failed = NULL;

	for (size_t i = 0; i < all->nr && !(failed && failed->phase < all->at[i].phase); i++) {
		const struct bounds_write *w = &all->at[i];

		int rc = write_set(p, w, failed ? NULL : e);
		if (file_is_gone(rc) && bounds_note_gone(bounds_of(d), w->node))
			return PLAN_ANEW;
		if (file_is_gone(rc)) { /* it comes with its container, which then is reported */
			p->any_due = true;
		} else if (rc) {
			failed = failed ? failed : w;
		} else {
			p->writes++;
			bounds_note_written(bounds_of(d), w->node, &w->cpus);
			if (!w->is_container)
				watch_soon(p, w->path);
		}
	}
	return failed ? WRITE_FAILED : WRITTEN;
}

/* Logged once, until a write succeeds: what is refused gives up what was due. */
static void note_problem(struct pool_bounds *p, const struct err *e, bool wrote)
{
	char why[512];

	p->failed = e != NULL;
	if (!e && !wrote)
		return;
	if (e && !p->problem.code)
		log_line(LOG_ERROR, "pool-not-enforced",
			"error=%s text=\"containers that would get CPUs for themselves are refused "
			"meanwhile\" action=\"let numafitd write the kubelet's cgroups, or set "
			"sharedPool.enforce to updates and restart it\"",
			log_text(why, sizeof why, e->text));
	if (!e && p->problem.code)
		log_line(LOG_INFO, "pool-enforced-again", "cgroups=%s", p->tree.root);
	p->problem = e ? *e : (struct err){0};
}

int pool_follow(struct daemon *d, struct err *e)
{
	const struct ledger_view *now = ledger_view(engine_ledger(d->engine));
	struct pool_bounds *p = d->follow.pool;
	enum outcome outcome = PLAN_ANEW;

	if (d->settings.mode == MODE_RELEASE) /* pool_give_back() has written all */
		return 0;
	if (!now->bounds || (!p->any_due && !p->failed && bounds_serial(now->bounds) == p->serial &&
				    cpuset_equal(&p->pool, &now->pool)))
		return 0;
	if (d->follow.moves &&
		mover_is_copying(moves_mover(d->follow.moves))) { /* a write would wait for it */
		p->any_due = p->failed = true;
		loop_timer_set(p->again, AGAIN_MS); /* where no event comes after it */
		return err_set(e, EBUSY,
			"the memory of a container is being moved, and no cpuset can be set before "
			"that is done: try again in some seconds");
	}
	const uint64_t writes = p->writes;
	const bool was_behind = p->failed;
	p->any_due = false;
	while (outcome == PLAN_ANEW) {
		struct bounds_writes all = {0};

		bounds_plan(now->bounds, &now->pool, &d->topo.cpus, &all);
		outcome = make_writes(d, &all, e);
		vec_fini(&all);
	}
	note_problem(p, outcome == WRITTEN ? NULL : e, p->writes != writes);
	if (outcome == WRITE_FAILED) {
		loop_timer_set(p->again, AGAIN_MS);
		return -e->code;
	}
	p->serial = bounds_serial(now->bounds);
	p->pool = now->pool;
	if (was_behind) /* updates wait for it */
		updater_note_change(d);
	return 0;
}

int pool_follow_create(struct daemon *d, const char *container_id, struct err *e)
{
	const struct ledger_view *now = ledger_view(engine_ledger(d->engine));
	int rc = pool_follow(d, e);

	return rc && bounds_is_bounded(now->bounds, container_id, &now->pool) ? 0 : rc;
}

static bool holds_cpus(const struct ledger *l, const char *pod_uid)
{
	for (size_t i = ledger_first_of_pod(l, pod_uid); i < ledger_count(l); i++) {
		const struct holding *h = ledger_at_by_pod(l, i);

		if (!text_equal(h->request.pod.uid, pod_uid))
			break;
		if (h->decision.exclusive)
			return true;
	}
	return false;
}

int pool_follow_pod(struct daemon *d, const char *pod_uid, struct err *e)
{
	int rc = pool_follow(d, e);

	return rc && holds_cpus(engine_ledger(d->engine), pod_uid) ? rc : 0;
}

void pool_follow_event(struct daemon *d)
{
	struct err e = {0};

	(void)pool_follow(d, &e);
}

bool pool_is_enforced(const struct daemon *d)
{
	return !bounds_of(d) || !d->follow.pool->failed;
}

static void try_again(void *ctx)
{
	struct daemon *d = ctx;
	struct pool_bounds *p = d->follow.pool;

	if (!bounds_of(d))
		return;
	for (size_t i = 0; i < p->watched.nr; i++) {
		struct watched_file *f = p->watched.at[i].file;
		bool was_held = f->rewrites >= REWRITES_MAX;
		struct bounds_node *n = was_held ? bounds_find(bounds_of(d), f->key) : NULL;

		f->rewrites = 0;
		if (n)
			(void)note_if_changed(d, n);
	}
	pool_follow_event(d);
}

bool pool_look_at_next(struct daemon *d)
{
	struct pool_bounds *p = d->follow.pool;
	struct bounds *b = bounds_of(d);

	if (!b)
		return false;
	struct bounds_node *n = bounds_next(b, &p->left);
	if (!n) {
		p->left = SIZE_MAX;
		forget_unbounded(d);
	}
	if (!n || note_if_changed(d, n)) /* what is due all the time is tried once a round */
		pool_follow_event(d);
	return n != NULL;
}

void pool_note_earlier(struct daemon *d, enum pool_enforced earlier)
{
	if (d->follow.pool)
		d->follow.pool->was_by_cgroups = earlier == POOL_BY_CGROUPS;
}

void pool_start(struct daemon *d)
{
	if (d->follow.pool->was_by_cgroups && !bounds_of(d)) /* or updates would have no effect */
		pool_give_back(d);
	watched_files_start(&d->follow.pool->watched, d->loop, on_bound_touched, d);
	d->follow.pool->again = loop_timer_new(d->loop, try_again, d);
	d->follow.pool->watch_due = loop_timer_new(d->loop, watch_written, d);
	d->follow.pool->any_due = true;
	if (bounds_of(d))
		log_line(LOG_INFO, "pool-by-cgroups",
			"cgroups=%s text=\"the shared pool is what the kubelet's cgroups are bounded "
			"to\"",
			d->follow.pool->tree.root);
}

void pool_stop(struct daemon *d)
{
	struct pool_bounds *p = d->follow.pool;

	if (!p)
		return;
	watched_files_stop(&p->watched);
	for (size_t i = 0; i < p->to_watch.nr; i++)
		free(p->to_watch.at[i]);
	vec_fini(&p->to_watch);
	loop_timer_close(p->again);
	loop_timer_close(p->watch_due);
	free(p);
	d->follow.pool = NULL;
}

const struct cgroup_tree *pool_tree(const struct daemon *d)
{
	return &d->follow.pool->tree;
}

/* CPUs that the pool leaves to nobody. */
static unsigned idle_cpus(const struct ledger *l)
{
	struct cpuset all = ledger_shareable_cpus(l);
	struct cpuset idle = cpuset_minus(all, &ledger_view(l)->held);

	idle = cpuset_minus(idle, &ledger_view(l)->pool);
	return cpuset_count(&idle);
}

struct status_pool pool_status(const struct daemon *d)
{
	const struct ledger *l = engine_ledger(d->engine);
	const struct bounds *b = ledger_view(l)->bounds;
	const struct pool_bounds *p = d->follow.pool;
	struct status_pool s = {
		.enforced = pool_enforced_words[b ? POOL_BY_CGROUPS : POOL_BY_UPDATES],
		.idle = idle_cpus(l),
	};

	confined_status(d, &s);
	if (!p)
		return s;
	s.cgroups = b ? bounds_count(b) : 0;
	s.writes = p->writes;
	s.rewritten = p->rewritten;
	s.problem = p->problem.code ? p->problem.text : NULL;
	s.why_updates = *p->why_updates ? p->why_updates : NULL;
	return s;
}
