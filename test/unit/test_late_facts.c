/* Facts of a pod that only its spec has, and that come after numafitd has found the pod's
 * containers running: what is in force then is what is in force where the facts were there from the
 * beginning. A daemon whose journal is lost, with cgroups that are files of a folder. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <apiserver/pod_object_json.h>
#include <codec/fields_json.h>
#include <kubelet/pods.h>
#include <numafitd/services.h>
#include <numafitd/services_state.h>

#include <jansson.h>

#include "sweep_rig.h"

enum { ARENA_MAX = 1 << 20, CONTAINERS = 2 };

/* What the kubelet's Pods API has said, in the place of its client. */
static struct known_pod known;
static bool is_known;

const struct known_pod *pods_find(const struct pods *p, const char *uid)
{
	(void)p;
	return is_known && text_equal(uid, known.pod.uid) ? &known : NULL;
}

bool pods_synced(const struct pods *p)
{
	(void)p;
	return is_known;
}

/* The client's other functions, which nothing calls here. */
struct pods *pods_new(struct loop *l, struct rpc_pump *pump, const struct pods_options *o,
	const struct pods_handler *h)
{
	(void)l, (void)pump, (void)o, (void)h;
	return NULL;
}

void pods_close(struct pods *p)
{
	(void)p;
}

size_t pods_count(const struct pods *p)
{
	(void)p;
	return 0;
}

/* Containers alone, which runs on CPUs 2-3, and shares, on 4-7. As a runtime shows them they ask
 * for 2 CPUs, and for so many; 0: for a part of one. */
struct row {
	const char *fact, *spec; /* of the pod; 's have the place of \"s */
	unsigned shows;
	bool gate; /* PodLevelResourceManagers */
	/* what is to be known and in force: */
	bool alone_has_own, shares_has_own, quota_stays;
	enum container_kind kind; /* of shares */
	bool devices;             /* likewise */
};
#define OWN   "'resources':{'limits':{'cpu':'6','memory':'1Gi'}},"
#define ALONE "{'name':'alone','resources':{'limits':{'cpu':'2','memory':'1Gi'}}}"
#define BURST "'requests':{'cpu':'100m'}"
static const struct row rows[] = {
	{"the pod has resources of its own, and shares them out",
		OWN "'containers':[" ALONE ",{'name':'shares'}]", 6, true, true, false, true,
		CONTAINER_APP, false},
	{"the pod has resources of its own, and the kubelet does not share them out",
		OWN "'containers':[" ALONE ",{'name':'shares'}]", 6, false, false, false, true,
		CONTAINER_APP, false},
	{"the pod has none of its own", "'containers':[" ALONE ",{'name':'shares'}]", 4, true, true,
		true, false, CONTAINER_APP, false},
	{"a container is a sidecar",
		"'initContainers':[{'name':'shares','restartPolicy':'Always','resources':{'limits':"
		"{'cpu':'4','memory':'1Gi'}}}],'containers':[" ALONE "]",
		4, true, true, true, false, CONTAINER_SIDECAR, false},
	{"a container is an init container",
		"'initContainers':[{'name':'shares','resources':{'limits':{'cpu':'4','memory':'1Gi'"
		"}}}],'containers':[" ALONE "]",
		4, true, true, true, false, CONTAINER_INIT, false},
	{"a container has devices",
		"'containers':[" ALONE
		",{'name':'shares','resources':{'limits':{'cpu':'4','memory':"
		"'1Gi','example.com/gpu':'1'}}}]",
		4, true, true, true, false, CONTAINER_APP, true},
	{"a container has claims",
		"'containers':[" ALONE ",{'name':'shares','resources':{'claims':[{'name':'x'}],"
		"'limits':{'cpu':'4','memory':'1Gi'}}}]",
		4, true, true, true, false, CONTAINER_APP, true},
};

/* What came of it. */
struct outcome {
	struct cpuset cpus[CONTAINERS]; /* held; empty: of the shared pool */
	char in_force[CONTAINERS][LIST_BYTES];
	char quota[LIST_BYTES];
	struct ask ask[CONTAINERS];
	bool pod_level[CONTAINERS];
};

struct world {
	struct rig *r;
	struct services services;
	struct arena a;
	json_t *document; /* its strings are those of the pod */
};

static const char of_pod[] = "sys/fs/cgroup/kubepods/podp1/cpu.max";

static void read_spec(struct world *w, const struct row *row)
{
	char text[2048];

	(void)snprintf(text, sizeof text,
		"{'metadata':{'uid':'p1','namespace':'default','name':'p1'},'spec':{%s},"
		"'status':{'qosClass':'Guaranteed'}}",
		row->spec);
	for (char *at = text; (at = strchr(at, '\''));)
		*at = '"';
	arena_init(&w->a, ARENA_MAX);
	assert_int_equal(json_parse(text, strlen(text), &w->document, NULL), 0);
	assert_int_equal(pod_object_json_read(w->document, &w->a, &known, NULL), 0);
}

static struct box *box_of_pod(struct rig *r, unsigned i, const char *name, unsigned shows)
{
	struct box *b = name_box(r, i, shows);

	b->name = name;
	(void)snprintf(b->c.pod, sizeof b->c.pod, "p1");
	(void)snprintf(b->cgroup, sizeof b->cgroup, "/kubepods/podp1/c%u", i);
	return b;
}

/* A container that an earlier numafitd has pinned, whose journal is lost. */
static void runs(struct rig *r, unsigned i, const char *name, unsigned shows, const char *cpus)
{
	struct box *b = box_of_pod(r, i, name, shows);

	(void)snprintf(b->c.placement, sizeof b->c.placement,
		"{\"v\":1,\"policy\":\"best-effort\",\"exclusive\":true,\"cpus\":\"%s\",\"mems\":\"0\","
		"\"nodes\":\"0\",\"preferred\":true}",
		cpus);
	(void)snprintf(b->c.cpus, sizeof b->c.cpus, "%s", cpus);
	(void)snprintf(b->c.mems, sizeof b->c.mems, "0");
	b->c.cpu_milli = FAKE_MILLI_PER_CPU * shows;
	b->c.runs = true;
	b->c.created_ns = 1 + i;
	set_cpus(r, b, cpus);
	set_mems(r, b, "0");
	set_populated(r, b, true);
	put_cgroup(r, b, "cpu.max", "max 100000\n");
}

static void make_ready(struct world *w, const struct row *row)
{
	w->r = rig_new_by(true, "v0.12.5", true);
	stop_daemon(w->r);
	write_file(w->r, "journal", "");
	read_machine(w->r, machine);
	read_spec(w, row);
	w->services = (struct services){.d = &w->r->d, .pods = (struct pods *)&w->services};
	w->r->forgets = true; /* it shows the cpusets of the creation */
	put(w->r, of_pod, "600000 100000\n");
	w->r->d.services = &w->services;
	w->r->gate = row->gate;
}

static void begin(struct world *w, const struct row *row)
{
	make_ready(w, row);
	runs(w->r, 1, "alone", 2, "2-3");
	runs(w->r, 2, "shares", row->shows, "4-7");
	start_daemon(w->r);
}

static void finish(struct world *w)
{
	w->r->d.services = NULL;
	rig_free(w->r);
	json_decref(w->document);
	arena_fini(&w->a);
}

static struct outcome outcome_of(struct rig *r)
{
	struct outcome o = {0};

	for (unsigned i = 0; i < CONTAINERS; i++) {
		const struct holding *h = held(r, &r->box[1 + i]);
		char name[PATH_BYTES / 2];

		assert_non_null(h);
		o.cpus[i] = h->decision.exclusive ? h->decision.cpus : (struct cpuset){0};
		o.ask[i] = h->request.ask;
		o.pod_level[i] = h->request.pod.pod_level;
		(void)snprintf(
			name, sizeof name, "sys/fs/cgroup%s/cpuset.cpus", r->box[1 + i].cgroup);
		(void)snprintf(o.in_force[i], sizeof o.in_force[i], "%s", content(r, name));
	}
	(void)snprintf(o.quota, sizeof o.quota, "%s", content(r, of_pod));
	return o;
}

/* All that is due is done: updates, and quotas by what the ledger says of the pod. */
static bool is_settled(struct rig *r)
{
	const bool limited = strncmp(content(r, of_pod), "max", 3) != 0;
	const bool unlimited = ledger_pod_is_unlimited(engine_ledger(r->d.engine), "p1");

	return !ledger_view(engine_ledger(r->d.engine))->nr_misplaced && limited != unlimited &&
	       is_quiet(r);
}

static struct outcome play(const struct row *row, bool late)
{
	struct world w = {0};
	struct outcome o;

	is_known = !late;
	begin(&w, row);
	wait_until(w.r, is_settled);
	if (late) {
		is_known = true;
		services_pod_changed(&w.r->d, &known);
		wait_until(w.r, is_settled);
	}
	o = outcome_of(w.r);
	finish(&w);
	return o;
}

static void what_comes_late_is_in_force_as_if_it_had_been_there(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *row = &rows[i];

		for (unsigned late = 0; late <= 1; late++) {
			const struct outcome o = play(row, late), first = play(row, false);
			const char *when = late ? "late" : "early";

			if (cpuset_empty(&o.cpus[0]) == row->alone_has_own ||
				cpuset_empty(&o.cpus[1]) == row->shares_has_own)
				fail_msg("%s (%s): alone runs on %s, shares on %s", row->fact, when,
					o.in_force[0], o.in_force[1]);
			if ((strncmp(o.quota, "max", 3) != 0) != row->quota_stays)
				fail_msg(
					"%s (%s): the pod's quota is %s", row->fact, when, o.quota);
			if (o.ask[1].kind != row->kind || o.ask[1].has_devices != row->devices)
				fail_msg("%s (%s): kind %u, devices %d", row->fact, when,
					o.ask[1].kind, o.ask[1].has_devices);
			for (unsigned c = 0; c < CONTAINERS; c++) {
				assert_true(cpuset_equal(&o.cpus[c], &first.cpus[c]));
				assert_string_equal(o.in_force[c], first.in_force[c]);
				assert_int_equal(o.ask[c].kind, first.ask[c].kind);
				assert_int_equal(o.ask[c].place, first.ask[c].place);
				assert_int_equal(o.ask[c].guaranteed, first.ask[c].guaranteed);
				assert_int_equal(o.pod_level[c], first.pod_level[c]);
			}
		}
	}
}

static void what_comes_between_create_and_start_is_in_force_once_the_container_runs(void **state)
{
	struct world w = {0};
	struct box *b;

	(void)state;
	is_known = false;
	make_ready(&w, &rows[0]);
	start_daemon(w.r);
	b = box_of_pod(w.r, 2, "shares", rows[0].shows);
	call(w.r, NRI_CALL_CREATE, b);
	wait_until(w.r, is_quiet);
	assert_true(held(w.r, b)->decision.exclusive);
	is_known = true;
	services_pod_changed(&w.r->d, &known);
	assert_true(held(w.r, b)->decision.exclusive); /* its answer is on its way */
	call(w.r, NRI_CALL_POST_START, b);
	wait_until(w.r, is_settled);
	assert_false(held(w.r, b)->decision.exclusive);
	assert_true(held(w.r, b)->request.pod.pod_level);
	assert_string_equal(content(w.r, of_pod), "600000 100000");
	finish(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_comes_late_is_in_force_as_if_it_had_been_there),
		cmocka_unit_test(
			what_comes_between_create_and_start_is_in_force_once_the_container_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
