/* The bounds of cgroups, held against the kernel's rules on trees of all kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <numafit/bounds.h>
#include <numafit/cgroup_path.h>
#include <numafit/text.h>

#include <stdio.h>
#include <stdlib.h>

#include "core_random.h"

enum { NR_CPUS = 24, PODS = 12, CONTAINERS = 4, DIRECTORIES = 128 };

/* A kernel's tree of cgroups */

struct directory {
	char path[CGROUP_PATH_MAX];
	struct cpuset cpus; /* what was written, or nothing */
};

struct container {
	struct request req;
	char id[32], cgroup[256];
	bool there, shares, runs, left;
	bool both;                     /* it has CPUs of its own and those of the pool */
	size_t restarts, pod_restarts; /* when it was created, and its pod came */
	struct cpuset own;             /* its own, or what it is left on */
	struct cpuset within;          /* of the pool it has those, if it wishes for that */
	struct cpuset given;           /* what the runtime sets once it starts; nothing: no set */
};

struct pod_of_test {
	char uid[32];
	unsigned class; /* 0: Guaranteed, 1: Burstable, 2: BestEffort, 3: not of the kubelet */
	bool there, is_known_gone;
	size_t restarts;
	struct container c[CONTAINERS];
};

struct rig {
	struct random random;
	struct bounds *b;
	struct cpuset all, pool;
	bool systemd;
	unsigned next;
	struct directory dir[DIRECTORIES];
	size_t nr_dirs;
	struct pod_of_test pod[PODS];
	bool disturbed;  /* another program has written, and nobody has seen that yet */
	bool any_due;    /* a write is to be made once its cgroup is there */
	uint64_t serial; /* of the tree, and the pool, for which all was written */
	struct cpuset followed;
	size_t writes, refusals, restarts, swaps;
};

static struct directory *directory(struct rig *r, const char *path)
{
	for (size_t i = 0; i < r->nr_dirs; i++)
		if (text_equal(r->dir[i].path, path))
			return &r->dir[i];
	return NULL;
}

static void make_directories(struct rig *r, const char *path)
{
	char part[CGROUP_PATH_MAX];

	for (const char *at = strchr(path + 1, '/');; at = strchr(at + 1, '/')) {
		size_t n = at ? (size_t)(at - path) : strlen(path);

		memcpy(part, path, n);
		part[n] = '\0';
		if (!directory(r, part)) {
			assert_true(r->nr_dirs < DIRECTORIES);
			r->dir[r->nr_dirs] = (struct directory){0};
			(void)text_copy(r->dir[r->nr_dirs++].path, CGROUP_PATH_MAX, part);
		}
		if (!at)
			return;
	}
}

static void remove_directory(struct rig *r, const char *path)
{
	struct directory *d = directory(r, path);

	if (d)
		*d = r->dir[--r->nr_dirs];
}

/* cgroup-v2.rst: what the set and the one in force above have in common, else all of the latter. */
static struct cpuset in_force(struct rig *r, const char *path)
{
	char above[CGROUP_PATH_MAX];
	const struct directory *d = directory(r, path);

	if (!*path)
		return r->all;
	(void)text_copy(above, sizeof above, path);
	*strrchr(above, '/') = '\0';
	struct cpuset parents = in_force(r, above);
	assert_non_null(d);
	struct cpuset cpus = cpuset_and(d->cpus, &parents);
	return cpuset_empty(&cpus) ? parents : cpus;
}

static const char *path_of(const struct container *c, char *buf)
{
	assert_int_equal(cgroup_path(c->cgroup, buf, CGROUP_PATH_MAX, NULL), 0);
	return buf;
}

static void enter(struct rig *r, const struct container *c)
{
	if (c->both || !cpuset_empty(&c->within))
		bounds_enter_in_part(r->b, &c->req, c->both ? &c->own : NULL, &c->within);
	else
		bounds_enter(r->b, &c->req, c->shares ? NULL : &c->own);
}

/* What one that shares the pool has of it, beside what is its own. */
static struct cpuset its_part(const struct rig *r, const struct container *c)
{
	struct cpuset part = cpuset_and(c->within, &r->pool);
	bool exact;

	if (cpuset_empty(&part) || (bounds_shares(r->b, c->id, &exact) && exact))
		part = r->pool;
	return c->both ? cpuset_or(part, &c->own) : part;
}

/* What the runtime is answered. */
static struct cpuset answer(const struct rig *r, const struct container *c, bool exact)
{
	if (!c->shares && !c->both)
		return c->own;
	if (exact)
		return its_part(r, c);
	return cpuset_empty(&c->within) ? r->all : c->within;
}

/* What must hold at any time: nobody of the pool runs on a CPU that a running container has for
 * itself, and this one runs on all of its own. */
static void check(struct rig *r, bool settled)
{
	char path[CGROUP_PATH_MAX];
	struct cpuset owned = {0};

	if (r->disturbed)
		return;
	for (unsigned i = 0; i < PODS * CONTAINERS; i++) {
		const struct container *c = &r->pod[i / CONTAINERS].c[i % CONTAINERS];

		if (!c->there || !c->runs || c->shares || c->left)
			continue;
		owned = cpuset_or(owned, &c->own);
		struct cpuset has = in_force(r, path_of(c, path));
		if (c->both ? !cpuset_within(&c->own, &has) : !cpuset_equal(&has, &c->own))
			fail_msg("%s does not have its own CPUs", path);
	}
	for (unsigned i = 0; i < PODS * CONTAINERS; i++) {
		const struct container *c = &r->pod[i / CONTAINERS].c[i % CONTAINERS];

		const struct cpuset others = c->both ? cpuset_minus(owned, &c->own) : owned,
				    want = its_part(r, c);

		if (!c->there || !c->runs || !(c->shares || c->both))
			continue;
		struct cpuset has = in_force(r, path_of(c, path));
		if (cpuset_intersects(&has, &others))
			fail_msg("%s runs on a CPU that another one has for itself", path);
		if (settled && !cpuset_equal(&has, &want))
			fail_msg("%s does not run on the pool", path);
	}
}

/* A pod with CPUs of its own alone has these. */
static void check_pods(struct rig *r)
{
	char path[CGROUP_PATH_MAX];

	for (struct pod_of_test *p = r->pod; p < r->pod + PODS; p++) {
		struct cpuset owned = {0};
		bool shares = false;

		*path = '\0';
		for (struct container *c = p->c; c < p->c + CONTAINERS; c++) {
			shares = shares || (c->there && (c->shares || c->both));
			if (c->there && !c->shares) {
				owned = cpuset_or(owned, &c->own);
				(void)path_of(c, path);
			}
		}
		if (!*path || shares || p->class == 3)
			continue;
		*strrchr(path, '/') = '\0';
		struct cpuset has = in_force(r, path);
		if (!cpuset_equal(&has, &owned))
			fail_msg("%s has other CPUs than its containers", path);
	}
}

/* All CPUs but those that containers have for themselves, be they running or not yet. */
static void move_pool(struct rig *r)
{
	r->pool = r->all;
	for (unsigned i = 0; i < PODS * CONTAINERS; i++) {
		const struct container *c = &r->pod[i / CONTAINERS].c[i % CONTAINERS];

		if (c->there && !c->shares && !c->left)
			r->pool = cpuset_minus(r->pool, &c->own);
	}
}

/* One write; false: the plan is to be made anew. */
static bool write_one(struct rig *r, const struct bounds_write *w)
{
	struct directory *d = directory(r, w->path);

	if (!d && bounds_note_gone(r->b, w->node))
		return false;
	r->any_due = r->any_due || !d;
	if (!d)
		return true;
	assert_false(cpuset_empty(&w->cpus));
	d->cpus = w->cpus;
	bounds_note_written(r->b, w->node, &w->cpus);
	r->writes++;
	check(r, false);
	return true;
}

enum outcome { DONE, ANEW, FAILED };

/* As numafitd does: what a set loses does not wait for another one that cannot be written. */
static enum outcome make_writes(struct rig *r, const struct bounds_writes *w, const char *broken)
{
	const struct bounds_write *failed = NULL;

	for (size_t i = 0; i < w->nr && !(failed && failed->phase < w->at[i].phase); i++) {
		if (broken && text_equal(w->at[i].path, broken))
			failed = &w->at[i];
		else if (!write_one(r, &w->at[i]))
			return ANEW;
	}
	return failed ? FAILED : DONE;
}

/* Make all writes that are due, but for one cgroup's that cannot be written; whether all were made.
 */
static bool enforce(struct rig *r, const char *broken)
{
	enum outcome outcome = ANEW;

	if (!r->any_due && bounds_serial(r->b) == r->serial && cpuset_equal(&r->pool, &r->followed))
		return true;
	r->any_due = false;
	while (outcome == ANEW) {
		struct bounds_writes w = {0};

		bounds_plan(r->b, &r->pool, &r->all, &w);
		outcome = make_writes(r, &w, broken);
		vec_fini(&w);
	}
	r->any_due = r->any_due || outcome == FAILED;
	r->serial = bounds_serial(r->b);
	r->followed = r->pool;
	return outcome == DONE;
}

/* Nothing is left to write but what is to come with its container. */
static void check_plan(struct rig *r)
{
	struct bounds_writes w = {0};

	bounds_plan(r->b, &r->pool, &r->all, &w);
	for (size_t i = 0; i < w.nr; i++)
		if (directory(r, w.at[i].path) || bounds_note_gone(r->b, w.at[i].node))
			fail_msg("%s is still to be written", w.at[i].path);
	vec_fini(&w);
}

/* What happens */

static void name_cgroup(struct rig *r, const struct pod_of_test *p, struct container *c)
{
	static const char *const class_dirs[] = {"", "/burstable", "/besteffort"};
	static const char *const class_slices[] = {"", "-burstable", "-besteffort"};
	char uid[32];

	(void)text_copy(uid, sizeof uid, p->uid);
	if (p->class == 3) {
		(void)snprintf(c->cgroup, sizeof c->cgroup,
			r->systemd ? "system.slice:cri-containerd:%s" : "/other/%s", c->id);
		return;
	}
	if (!r->systemd) {
		(void)snprintf(c->cgroup, sizeof c->cgroup, "/kubepods%s/pod%s/%s",
			class_dirs[p->class], uid, c->id);
		return;
	}
	for (char *at = uid; *at; at++)
		*at = *at == '-' ? '_' : *at;
	(void)snprintf(c->cgroup, sizeof c->cgroup, "kubepods%s-pod%s.slice:cri-containerd:%s",
		class_slices[p->class], uid, c->id);
}

/* Never all of them: the pool is not empty. */
static struct cpuset some_of(struct rig *r, const struct cpuset *from, unsigned nr)
{
	struct cpuset cpus = {0};

	for (unsigned cpu = 0; nr && cpuset_count(&cpus) + 1 < cpuset_count(from) && cpu < NR_CPUS;
		cpu++)
		if (cpuset_has(from, cpu) && random_chance(&r->random, 60)) {
			cpuset_add(&cpus, cpu);
			nr--;
		}
	return cpus;
}

static void end(struct rig *r, struct container *c)
{
	char path[CGROUP_PATH_MAX];

	bounds_leave(r->b, c->id);
	c->there = c->runs = false;
	remove_directory(r, path_of(c, path));
	move_pool(r);
}

/* The daemon was killed: its journal has the containers, and nobody knows what is set. */
static void restart(struct rig *r)
{
	bounds_free(r->b);
	r->b = bounds_new();
	r->any_due = true;
	r->restarts++;
	for (unsigned i = 0; i < PODS * CONTAINERS; i++) {
		const struct container *c = &r->pod[i / CONTAINERS].c[i % CONTAINERS];

		if (c->there)
			enter(r, c);
	}
}

/* Sets of an earlier life: the sweep looks at each cgroup, and has containers updated. */
static void sweep(struct rig *r)
{
	char path[CGROUP_PATH_MAX];
	struct bounds_node *n;
	size_t left = SIZE_MAX;

	while ((n = bounds_next(r->b, &left))) {
		const struct directory *d = directory(r, bounds_path(n));

		for (unsigned i = 0; i < PODS * CONTAINERS; i++) {
			const struct container *c = &r->pod[i / CONTAINERS].c[i % CONTAINERS];

			if (c->there && !c->shares && !c->both && text_equal(bounds_path(n), path_of(c, path)))
				fail_msg("%s has its set from the runtime", path);
		}
		if (d)
			(void)bounds_note_found(r->b, n, &d->cpus, &r->all);
	}
	assert_true(enforce(r, NULL));
	r->disturbed = false;
	for (unsigned i = 0; i < PODS * CONTAINERS; i++) {
		const struct container *c = &r->pod[i / CONTAINERS].c[i % CONTAINERS];
		bool exact;

		if (c->there && c->runs && bounds_shares(r->b, c->id, &exact))
			directory(r, path_of(c, path))->cpus = answer(r, c, exact);
	}
}

/* own: NULL: whatever comes. */
static void create(
	struct rig *r, struct pod_of_test *p, struct container *c, const struct cpuset *own)
{
	char path[CGROUP_PATH_MAX];
	bool exact = true;

	*c = (struct container){
		.there = true, .restarts = r->restarts, .pod_restarts = p->restarts};
	(void)snprintf(c->id, sizeof c->id, "c%u", r->next++);
	name_cgroup(r, p, c);
	c->left = !own && random_chance(&r->random, 5);
	c->own = own ? *own : some_of(r, &r->pool, 1 + random_below(&r->random, 4));
	if (c->left && random_chance(&r->random, 50))
		c->own = r->all;
	c->shares = !own && !c->left && (cpuset_empty(&c->own) || random_chance(&r->random, 60));
	c->left = c->left && !cpuset_empty(&c->own);
	c->shares = !c->left && (c->shares || cpuset_empty(&c->own));
	c->both = !c->left && !c->shares && random_chance(&r->random, 20);
	if (c->shares && random_chance(&r->random, 20))
		c->within = some_of(r, &r->all, 8);
	c->req = (struct request){
		.container_id = c->id, .cgroup = c->cgroup, .pod = {.uid = p->uid}};
	move_pool(r);
	enter(r, c);
	assert_int_equal(bounds_shares(r->b, c->id, &exact), c->shares || c->both);
	bounds_give(r->b, c->id, &r->pool);
	c->given = answer(r, c, exact);
	/* its pod's sandbox runs by now */
	(void)path_of(c, path);
	*strrchr(path, '/') = '\0';
	make_directories(r, path);
	const char *broken = r->nr_dirs && random_chance(&r->random, 10)
				     ? r->dir[random_below(&r->random, (unsigned)r->nr_dirs)].path
				     : NULL;
	char broken_path[CGROUP_PATH_MAX];
	(void)text_copy(broken_path, sizeof broken_path, broken);
	if (!enforce(r, broken ? broken_path : NULL)) {
		r->refusals++;
		if (random_chance(&r->random, 50)) { /* it is refused */
			end(r, c);
		} else { /* or never answered, as the daemon was killed */
			c->there = false;
			move_pool(r);
			restart(r);
		}
		assert_true(enforce(r, NULL));
	}
}

/* The runtime makes its cgroup; numafitd learns that, and goes over what is not set yet. */
static void start(struct rig *r, struct container *c)
{
	char path[CGROUP_PATH_MAX];

	make_directories(r, path_of(c, path));
	directory(r, path)->cpus = c->given;
	c->runs = true;
	/* what it was given may be old by now; then one that nothing bounds is right after a write
	 */
	r->disturbed = strstr(c->cgroup, "kubepods") != NULL;
	assert_true(enforce(r, NULL));
	r->disturbed = false;
	/* what it was given, or its pod had while it was idle, the life before knew */
	if (c->restarts != r->restarts || c->pod_restarts != r->restarts)
		sweep(r);
}

/* It gets CPUs for itself, or gives them up. The runtime sets them once it is answered. */
static void resize(struct rig *r, struct container *c)
{
	char path[CGROUP_PATH_MAX];

	if (c->left || c->both || !cpuset_empty(&c->within))
		return;
	bool shares = !c->shares;
	struct cpuset own = some_of(r, &r->pool, 3);
	if (!shares && cpuset_empty(&own))
		return;
	c->runs = false; /* until it has what it was answered */
	c->shares = shares;
	c->own = shares ? (struct cpuset){0} : own;
	move_pool(r);
	bounds_enter(r->b, &c->req, c->shares ? NULL : &c->own);
	assert_true(enforce(r, NULL));
	bool exact = true;
	(void)bounds_shares(r->b, c->id, &exact);
	bounds_give(r->b, c->id, &r->pool);
	directory(r, path_of(c, path))->cpus = !c->shares ? c->own : exact ? r->pool : r->all;
	c->runs = true;
}

static void end_pod(struct rig *r, struct pod_of_test *p)
{
	char path[CGROUP_PATH_MAX] = "";

	for (unsigned i = 0; i < CONTAINERS; i++)
		if (p->c[i].there) {
			(void)path_of(&p->c[i], path);
			end(r, &p->c[i]);
		}
	if (*path && p->class != 3) {
		*strrchr(path, '/') = '\0';
		remove_directory(r, path);
	}
	p->there = false;
	p->is_known_gone = random_chance(&r->random, 50);
	if (!p->is_known_gone) /* nobody says so */
		return;
	bounds_forget_pod(r->b, p->uid);
	assert_true(!*path || p->class == 3 || !bounds_find(r->b, path));
}

/* Another program writes a set. That is seen at once, or once the sweep looks. */
static void disturb(struct rig *r)
{
	struct directory *d =
		r->nr_dirs ? &r->dir[random_below(&r->random, (unsigned)r->nr_dirs)] : NULL;
	struct bounds_node *n = d ? bounds_find(r->b, d->path) : NULL;
	const struct cpuset nothing = {0}, some = some_of(r, &r->all, 6);
	const struct cpuset *const sets[] = {&r->all, &nothing, &some};

	for (unsigned i = 0; n && i < PODS * CONTAINERS; i++) {
		char path[CGROUP_PATH_MAX];
		const struct container *c = &r->pod[i / CONTAINERS].c[i % CONTAINERS];

		if (c->there && text_equal(path_of(c, path), d->path))
			return; /* the runtime's, which is updated */
	}
	if (!n)
		return;
	d->cpus = *sets[random_below(&r->random, 3)];
	r->disturbed = true;
	if (random_chance(&r->random, 50) && bounds_note_found(r->b, n, &d->cpus, &r->all))
		assert_true(enforce(r, NULL));
}

/* All of the pool becomes a container's own, while another one's CPUs become the pool. */
static void swap(struct rig *r, struct pod_of_test *p, struct container *c)
{
	const struct cpuset own = r->pool;

	for (unsigned i = 0; i < PODS * CONTAINERS; i++) {
		struct container *o = &r->pod[i / CONTAINERS].c[i % CONTAINERS];

		if (!o->there || o->shares || o->left)
			continue;
		r->swaps++;
		end(r, o);
		create(r, p, c, &own);
		return;
	}
}

static void one_event(struct rig *r)
{
	struct pod_of_test *p = &r->pod[random_below(&r->random, PODS)];
	struct container *c = &p->c[random_below(&r->random, CONTAINERS)];
	const size_t restarts = r->restarts;

	if (!p->there) { /* a static pod comes again with its uid */
		const bool again = p->is_known_gone && random_chance(&r->random, 20);
		const struct pod_of_test before = *p;

		*p = (struct pod_of_test){.there = true,
			.class = random_below(&r->random, 4),
			.restarts = r->restarts};
		(void)snprintf(p->uid, sizeof p->uid, "a-%u-b", r->next++);
		if (again) {
			p->class = before.class;
			(void)text_copy(p->uid, sizeof p->uid, before.uid);
		}
	}
	if (random_chance(&r->random, 3))
		end_pod(r, p);
	else if (!c->there && random_chance(&r->random, 3))
		swap(r, p, c);
	else if (!c->there)
		create(r, p, c, NULL);
	else if (!c->runs)
		start(r, c);
	else if (random_chance(&r->random, 20))
		resize(r, c);
	else if (random_chance(&r->random, 60))
		end(r, c);
	else if (random_chance(&r->random, 80))
		disturb(r);
	else
		restart(r);
	assert_true(enforce(r, NULL));
	if (restarts != r->restarts || r->disturbed)
		sweep(r);
	check(r, true);
	check_plan(r);
	check_pods(r);
}

/* Through refused writes and kills between any two of them, too. */
static void no_container_runs_on_cpus_that_another_one_has_for_itself(void **state)
{
	const char *seed = getenv("SEED"), *rounds = getenv("ROUNDS");
	unsigned nr = rounds ? (unsigned)atoi(rounds) : 40;
	size_t swaps = 0;

	(void)state;
	for (unsigned round = 0; round < nr; round++) {
		struct rig *r = xcalloc(1, sizeof *r);

		r->random.state = (seed ? (uint64_t)atoi(seed) : 1) * 100003 + round;
		r->systemd = round % 2;
		for (unsigned cpu = 0; cpu < NR_CPUS; cpu++)
			cpuset_add(&r->all, cpu);
		r->pool = r->all;
		r->b = bounds_new();
		for (unsigned i = 0; i < 300; i++)
			one_event(r);
		for (unsigned i = 0; i < PODS; i++)
			end_pod(r, &r->pod[i]);
		assert_true(enforce(r, NULL));
		assert_true(r->writes > 20);
		swaps += r->swaps;
		assert_true(bounds_count(r->b) <= PODS); /* pods that nobody said are gone */
		bounds_free(r->b);
		free(r);
	}
	assert_true(swaps >= nr / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_container_runs_on_cpus_that_another_one_has_for_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
