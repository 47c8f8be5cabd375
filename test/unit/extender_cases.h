#ifndef NUMAFIT_TEST_EXTENDER_CASES_H
#define NUMAFIT_TEST_EXTENDER_CASES_H

#include <numafit/nrt_fingerprint.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "extender_rig.h"

/* What the cases of numafit-extender share beside its rig: made-up nodes and pods, and what they
 * are asked. */

static const char *const both[] = {"n1", "n2", NULL};

static inline int setup(void **state)
{
	struct rig *r = xcalloc(1, sizeof *r);

	rig_init(r);
	rig_put(r, NODES, rig_node("n1"));
	rig_put(r, NODES, rig_node("n2"));
	rig_put(r, REPORTS, rig_report("n1", 7, 2, 6, ""));
	rig_put(r, REPORTS, rig_report("n2", 8, 2, 3, ""));
	*state = r;
	return 0;
}

static inline int teardown(void **state)
{
	struct rig *r = *state;

	rig_fini(r);
	free(r);
	return 0;
}

static inline void start(struct rig *r)
{
	rig_start(r);
	rig_await_ready(r);
}

static inline void filter(struct rig *r, json_t *pod, const char *wanted)
{
	auto_free char *args = rig_args(pod, both);

	assert_int_equal(rig_ask(r, "/scheduler/filter", args), FAKE_OK);
	assert_string_equal(r->answer, wanted);
}

static inline void prioritize(struct rig *r, json_t *pod)
{
	auto_free char *args = rig_args(pod, both);

	assert_int_equal(rig_ask(r, "/prioritize", args), FAKE_OK);
}

static inline void preempt(struct rig *r, json_t *pod, const char *victims, const char *wanted)
{
	auto_free char *text = json_dumps(pod, JSON_COMPACT), *args = NULL;

	assert_true(
		asprintf(&args, "{\"Pod\":%s,\"NodeNameToMetaVictims\":%s}", text, victims) > 0);
	assert_int_equal(rig_ask(r, "/preempt", args), FAKE_OK);
	assert_string_equal(r->answer, wanted);
}

static inline void bind_pod(struct rig *r, const char *pod, const char *node, const char *wanted)
{
	auto_free char *args = rig_bind_args(pod, node);

	assert_int_equal(rig_ask(r, "/bind", args), FAKE_OK);
	assert_string_equal(r->answer, wanted);
}

static inline void await_metric(struct rig *r, const char *line)
{
	do
		assert_int_equal(rig_ask(r, "/metrics", NULL), FAKE_OK);
	while (!strstr(r->answer, line));
}

/* A pod that waits for a node, known to the watch. */
static inline json_t *new_pod(struct rig *r, const char *name, int cpus)
{
	rig_put(r, PODS, rig_pod(name, cpus, "owner"));
	return rig_find(&r->list[PODS], name);
}

static inline const char *hint_of(const struct rig *r)
{
	return json_string_value(json_object_get(
		json_object_get(json_object_get(r->binding, "metadata"), "annotations"),
		"numafit.io/numa-hint"));
}

#define FITS_N1                                                                                    \
	"{\"Nodes\":null,\"NodeNames\":[\"n1\"],\"FailedNodes\":{\"n2\":\"numafit: cannot align "  \
	"container\"},\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}"
#define FITS_NONE                                                                                  \
	"{\"Nodes\":null,\"NodeNames\":[],\"FailedNodes\":{\"n1\":\"numafit: cannot align "        \
	"container\",\"n2\":\"numafit: cannot align "                                              \
	"container\"},\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}"
#define FITS_BOTH                                                                                  \
	"{\"Nodes\":null,\"NodeNames\":[\"n1\",\"n2\"],\"FailedNodes\":{},"                        \
	"\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}"
#define OK "{\"Error\":\"\"}"

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static inline void put_refusal_event(
	struct rig *r, const char *name, const char *ns, const char *type, const char *node)
{
	const char *uid = json_string_value(json_object_get(
		json_object_get(rig_find(&r->list[PODS], name), "metadata"), "uid"));
	char event[16];

	(void)snprintf(event, sizeof event, "e%zu", json_array_size(r->list[EVENTS].items));
	rig_put(r, EVENTS,
		json_pack("{s{ssss}s{ssss}sssss{ss}}", "metadata", "name", event, "namespace", ns,
			"involvedObject", "kind", "Pod", "uid", uid, "type", type,
			"reportingComponent", "numafitd", "source", "host", node));
}

#endif
