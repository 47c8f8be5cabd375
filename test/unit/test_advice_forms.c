/* Other projects' hints, which annotation counts, and whatever else may stand in one. */
#include <codec/advice.h>

#include "core_families.h"

#include <codec/fields_json.h>
#include <codec/advice_json.h>
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "advice_random.h"
#include "advice_rig.h"

enum { LINE_MAX = 4096, SEED = 20261121, ANNOTATIONS = 20000, NODES = 8 };
enum { NOW_MS = 1755655644, SKEW_MS = 5000, GENERATION = 40 };

static struct topo machine;

static int set_up(void **state)
{
	(void)state;
	rig_machine(NODES, &machine);
	return 0;
}

/* "1:cpu=4000 1:memory=8589934592" */
static const char *amounts_text(const struct advice *h, char *buf, size_t cap)
{
	struct text t;

	text_init(&t, buf, cap);
	for (size_t i = 0; h->nr_containers && i < h->container->nr_amounts; i++)
		text_add(&t, "%s%u:%s=%llu", i ? " " : "", h->container->amount[i].node,
			h->container->amount[i].resource,
			(unsigned long long)h->container->amount[i].amount);
	return buf;
}

/* What else it says. */
static const char *says_text(const struct advice *h, char *buf, size_t cap)
{
	char list[CPUSET_TEXT_MAX];
	struct text t;

	text_init(&t, buf, cap);
	if (h->cpus)
		text_add(&t, "cpus %s", cpuset_format(h->cpus, list, sizeof list));
	if (h->has_policy)
		text_add(&t, "policy %s", topology_policy_words[h->policy]);
	if (h->cpus_required || h->cpus_preferred || h->apart)
		text_add(&t, "bind %u/%u/%u", h->cpus_required, h->cpus_preferred, h->apart);
	return buf;
}

static void compare(const char *value, const json_t *record, const char *key, const char *got)
{
	const char *want = json_string_value(json_object_get(record, key));

	if (want && !text_equal(want, got))
		fail_msg("%s: %s: wanted \"%s\", got \"%s\"", value, key, want, got);
}

static void check_record(const json_t *record)
{
	const char *value = json_string_value(json_object_get(record, "value"));
	const struct advice_source *s =
		advice_source_of(json_string_value(json_object_get(record, "key")));
	struct arena a;
	const struct advice_context c = rig_context(&machine, &a);
	char buf[LINE_MAX];
	struct advice h = {0};
	struct err e = {0};

	assert_non_null(s);
	int rc = advice_read(s, value, &c, &h, &e);
	if (json_object_get(record, "error")) {
		assert_int_equal(advice_read_verdict(rc), ADVICE_REJECTED_FORMAT);
		assert_true(e.text[0]);
	} else {
		if (rc)
			fail_msg("%s: %s", value, e.text);
		assert_int_equal(h.format, s->format);
		compare(value, record, "numa",
			h.nr_containers
				? nodeset_format(h.container->nodes, &machine.ids, buf, sizeof buf)
				: "");
		compare(value, record, "amounts", amounts_text(&h, buf, sizeof buf));
		compare(value, record, "says", says_text(&h, buf, sizeof buf));
	}
	arena_fini(&a);
}

static void recorded_hints_of_other_schedulers_are_read(void **state)
{
	FILE *in = fopen("test/golden/hints_others.jsonl", "re");
	char line[LINE_MAX];
	unsigned nr = 0;

	(void)state;
	assert_non_null(in);
	for (; fgets(line, sizeof line, in); nr++) {
		json_t *record = NULL;

		assert_int_equal(json_parse(line, strlen(line), &record, NULL), 0);
		check_record(record);
		json_decref(record);
	}
	(void)fclose(in);
	assert_int_equal(nr, 34);
}

#define KOORDINATOR "scheduling.koordinator.sh/resource-status"
#define SPEC        "scheduling.koordinator.sh/resource-spec"
#define KATALYST    "katalyst.kubewharf.io/numa_bind_result"
#define VOLCANO     "volcano.sh/topology-decision"
#define CRANE       "topology.crane.io/topology-result"
#define GODEL       "godel.bytedance.com/micro-topology"

static const struct {
	const char *key, *value, *says;
} refused[] = {
	{KOORDINATOR, "[]", "should be an object, is a list"},
	{KOORDINATOR, "{\"cpuset\":7}", "cpuset: should be a string"},
	{KOORDINATOR, "{\"cpuset\":\"3-1\"}", "cpuset: list \"3-1\": 3-1 runs backwards"},
	{KOORDINATOR, "{\"cpuset\":\"5000\"}", "cpuset: "},
	{KOORDINATOR, "{\"numaNodeResources\":{}}", "numaNodeResources: should be a list"},
	{KOORDINATOR, "{\"numaNodeResources\":[{}]}", "element 0: node: should be an integer"},
	{KOORDINATOR, "{\"numaNodeResources\":[{\"node\":-1}]}", "node: -1 is no NUMA node"},
	{KOORDINATOR, "{\"numaNodeResources\":[{\"node\":0,\"resources\":[]}]}",
		"resources of NUMA node 0: should be an object"},
	{KOORDINATOR, "{\"numaNodeResources\":[{\"node\":0,\"resources\":{\"cpu\":1.5}}]}",
		"cpu of NUMA node 0: should be a quantity, is a fraction"},
	{SPEC, "\"FullPCPUs\"", "should be an object"},
	{SPEC, "{\"requiredCPUBindPolicy\":\"fullpcpus\"}", "there is no \"fullpcpus\""},
	{SPEC, "{\"preferredCPUExclusivePolicy\":1}", "should be a string"},
	{KATALYST, "", "names no NUMA node"},
	{KATALYST, "0,", "should follow 0"},
	{KATALYST, "node0", "list"},
	{VOLCANO, "{}", "numa: should be an object, is nothing"},
	{VOLCANO, "{\"numa\":{\"x\":{}}}", "NUMA node \"x\""},
	{VOLCANO, "{\"numa\":{\"0\":7}}", "resources of NUMA node 0: should be an object"},
	{VOLCANO, "{\"numa\":{\"0\":{},\"0\":{}}}", "duplicate"},
	{"volcano.sh/numa-topology-policy", "single", "there is no topology policy \"single\""},
	{ADVICE_POLICY_KEY, "", "there is no topology policy"},
	{CRANE, "{}", "should be a list"},
	{CRANE, "[{\"name\":\"node0\"}]", "zone 0: type: should be \"Node\""},
	{CRANE, "[{\"name\":\"zone0\",\"type\":\"Node\"}]",
		"name: should be \"node\" and a number"},
	{CRANE, "[{\"name\":\"node\",\"type\":\"Node\"}]", "NUMA node \"\""},
	{CRANE, "[{\"name\":\"node0x\",\"type\":\"Node\"}]", "NUMA node \"0x\""},
	{CRANE, "[{\"name\":\"node0\",\"type\":\"Node\"}]", "resources.capacity.cpu: should be"},
	{CRANE, "[7]", "type: should be"},
	{GODEL, "0", "one colon should stand"},
	{GODEL, "0:", "should be RESOURCE=QUANTITY"},
	{GODEL, "0:cpu", "should be RESOURCE=QUANTITY"},
	{GODEL, "0:a:b=1", "one colon should stand"},
	{GODEL, "0:cpu=1=1", "is not a quantity"},
	{GODEL, "0:=1", "a resource without a name"},
	{GODEL, "0:cpu=1;", "NUMA node \"\""},
	{GODEL, "9999:cpu=1", "NUMA node \"9999\""},
	{GODEL, "0:cpu=-1", "cpu of NUMA node 0: "},
};

static void a_malformed_foreign_hint_is_refused_with_a_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct arena a;
		const struct advice_context c = rig_context(&machine, &a);
		struct advice h;
		struct err e = {0};
		int rc =
			advice_read(advice_source_of(refused[i].key), refused[i].value, &c, &h, &e);

		if (advice_read_verdict(rc) != ADVICE_REJECTED_FORMAT ||
			!strstr(e.text, refused[i].says))
			fail_msg("%s: %d: %s", refused[i].value, rc, e.text);
		arena_fini(&a);
	}
}

static void a_hint_keeps_cpus_that_the_machine_lacks(void **state)
{
	const struct advice_facts facts = {.t = &machine};
	struct arena a;
	const struct advice_context c = rig_context(&machine, &a);
	struct advice h;

	(void)state;
	assert_int_equal(
		advice_read(advice_source_of(KOORDINATOR), "{\"cpuset\":\"1000\"}", &c, &h, NULL),
		0);
	assert_int_equal(advice_check(&h, &facts, NULL), ADVICE_REJECTED_FOREIGN_CPUSET);
	arena_fini(&a);
}

/* Which one counts. */

static const struct key_value annotations[] = {
	{"godel.bytedance.com/micro-topology", "null"},
	{"topology.crane.io/topology-result", "[{\"name\":\"node3\",\"type\":\"Node\","
					      "\"resources\":{\"capacity\":{\"cpu\":\"1\"}}}]"},
	{VOLCANO, "{\"numa\":{\"2\":{}}}"},
	{KOORDINATOR, "{}"},
	{KATALYST, "1"},
	{"volcano.sh/numa-topology-policy", "restricted"},
	{ADVICE_POLICY_KEY, "best-effort"},
	{SPEC, "{\"requiredCPUBindPolicy\":\"FullPCPUs\"}"},
};
enum { NR_ANNOTATIONS = sizeof annotations / sizeof *annotations };

static const struct precedence {
	size_t from; /* annotations that come before are not there */
	unsigned nr;
	enum advice_format order[3];
	int want;
	const char *key;
	uint64_t nodes;
} precedences[] = {
	{0, 0, {0}, 1, KATALYST, 2}, /* Koordinator's says nothing */
	{0, 2, {ADVICE_CRANE, ADVICE_VOLCANO}, 1, CRANE, 8},
	{2, 2, {ADVICE_CRANE, ADVICE_VOLCANO}, 1, VOLCANO, 4},
	{0, 2, {ADVICE_GODEL, ADVICE_KOORDINATOR}, 0, NULL, 0},
	{0, 1, {ADVICE_NUMAFIT}, 0, NULL, 0},
	{5, 0, {0}, 0, NULL, 0},
};

static void the_first_form_with_an_annotation_counts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof precedences / sizeof *precedences; i++) {
		const struct precedence *p = &precedences[i];
		const struct pod pod = {.annotations = annotations + p->from,
			.nr_annotations = NR_ANNOTATIONS - p->from};
		const struct advice_order order = {p->nr ? p->order : NULL, p->nr};
		const struct advice_source *source = NULL;
		struct arena a;
		const struct advice_context c = rig_context(&machine, &a);
		struct advice h;

		assert_int_equal(
			advice_find(&pod, ADVICE_ABOUT_NODES, &order, &c, &source, &h, NULL),
			p->want);
		assert_true(text_equal(source ? source->key : NULL, p->key));
		if (p->want)
			assert_int_equal(h.container->nodes.bits, p->nodes);
		arena_fini(&a);
	}
}

static void policies_and_cpus_are_found_apart_from_nodes(void **state)
{
	const struct pod pod = {.annotations = annotations, .nr_annotations = NR_ANNOTATIONS};
	const struct advice_order all = {0}, *order = &all;
	struct arena a;
	const struct advice_context c = rig_context(&machine, &a);
	struct advice h;

	(void)state;
	assert_int_equal(advice_find(&pod, ADVICE_ABOUT_POLICY, order, &c, NULL, &h, NULL), 1);
	assert_int_equal(h.policy, POLICY_BEST_EFFORT); /* ours is the first one */
	assert_int_equal(h.nr_containers, 0);
	assert_int_equal(advice_find(&pod, ADVICE_ABOUT_CPUS, order, &c, NULL, &h, NULL), 1);
	assert_int_equal(h.cpus_required, ADVICE_CPUS_FULL_CORES);
	arena_fini(&a);
}

static void an_unreadable_hint_hides_the_forms_after_it(void **state)
{
	static const struct key_value list[] = {{KATALYST, "1"}, {KOORDINATOR, "bad"}};
	const struct pod pod = {.annotations = list, .nr_annotations = 2};
	const struct advice_order all = {0};
	const struct advice_source *source = NULL;
	struct arena a;
	const struct advice_context c = rig_context(&machine, &a);
	struct advice h;
	struct err e = {0};

	(void)state;
	assert_int_equal(advice_find(&pod, ADVICE_ABOUT_NODES, &all, &c, &source, &h, &e), -EINVAL);
	assert_string_equal(source->key, KOORDINATOR);
	assert_int_equal(strncmp(e.text, "not JSON", 8), 0);
	arena_fini(&a);
}

/* Annotations made up at random. */

static const struct advice_author author = {.t = &machine,
	.node = "worker-0",
	.uid = "b6d1c2f0-0000-4000-8000-000000000001",
	.container = "web",
	.now_ms = NOW_MS,
	.skew_ms = SKEW_MS,
	.generation = GENERATION,
	.ttl_s = 30};

/* From the annotation to the ruling, as admission would have it. */
static void rule(const char *key, const char *text, const struct advice_merge *merge, bool repair,
	struct advice_ruling *out)
{
	const struct key_value annotation = {key, text};
	const struct pod pod = {.annotations = &annotation, .nr_annotations = 1};
	const struct advice_facts facts = {.node = author.node,
		.uid = author.uid,
		.now_ms = NOW_MS,
		.skew_ms = SKEW_MS,
		.generation = GENERATION,
		.t = &machine};
	const struct advice_order order = {0};
	struct arena a;
	const struct advice_context c = rig_context(&machine, &a);
	struct advice h, untouched;
	struct advice_terms terms = {.mode = ADVICE_PREFER, .repair = repair};
	const struct advice_container *mine = NULL;

	memset(&h, 'x', sizeof h);
	memcpy(&untouched, &h, sizeof h);
	int rc = advice_find(&pod, ADVICE_ABOUT_NODES, &order, &c, NULL, &h, NULL);
	if (rc != 1)
		assert_memory_equal(&h, &untouched, sizeof h);
	if (rc < 0)
		terms.so_far = advice_read_verdict(rc);
	if (rc == 1) {
		terms.so_far = advice_check(&h, &facts, NULL);
		terms.mode = advice_mode_of(ADVICE_PREFER, h.mode);
		mine = advice_for(&h, "web");
	}
	*out = (struct advice_ruling){.answer = merge->without};
	if (mine || advice_is_rejection(terms.so_far))
		advice_judge(merge, mine ? mine->nodes : (struct nodeset){0}, &terms, out);
	arena_fini(&a);
}

/* The state of a machine, as the families of a container's resources on it, and the answer. */
static void random_state(struct random *r, struct families *x, struct advice_merge *m)
{
	struct arena a;

	random_families(r, NODES, 1 + random_below(r, 3), x);
	for (unsigned f = 0; f < x->nr; f++)
		(void)text_copy(x->family[f].resource, sizeof x->family[f].resource, "x");
	*m = (struct advice_merge){.policy = (enum topology_policy)random_below(r, NR_POLICIES),
		.space = &x->machine.space,
		.family = x->family,
		.nr = x->nr};
	arena_init(&a, ADVICE_ARENA_BYTES);
	assert_int_equal(policy_merge_families(m->policy, m->space, m->family, m->nr,
				 &(struct budget){.endless = true}, &a, &m->without),
		0);
	arena_fini(&a);
}

static bool fits(const struct families *x, struct nodeset mask)
{
	for (unsigned f = 0; f < x->nr; f++)
		if (x->family[f].kind != FAMILY_ANY && !family_has(&x->family[f], mask))
			return false;
	return true;
}

static void check(const struct families *x, const struct advice_merge *m, const struct made *made,
	const struct advice_ruling *r)
{
	const struct hint *without = &m->without.affinity, *with = &r->answer.affinity;
	bool accepted = r->verdict == ADVICE_ACCEPTED || r->verdict == ADVICE_ACCEPTED_STALE;

	/* never anybody in or out, never wider, never less preferred, never what does not fit */
	assert_int_equal(r->answer.admit, m->without.admit);
	if (!accepted)
		assert_true(rig_same_answer(&r->answer, &m->without));
	if (accepted && !without->any) {
		assert_int_equal(nodeset_count(with->mask), nodeset_count(without->mask));
		assert_int_equal(with->preferred, without->preferred);
		assert_true(nodeset_equal(with->mask, without->mask) || fits(x, with->mask));
	}
	if (!made->known)
		return;
	/* what is wrong with it is reported, whatever the machine's state */
	if (advice_is_rejection(made->want))
		assert_int_equal(r->verdict, made->want);
	else
		assert_int_equal(r->asked.bits, made->nodes.bits);
	if (accepted)
		assert_int_equal(r->verdict, made->want);
}

static void no_random_annotation_breaks_the_readers(void **state)
{
	static struct families x;
	static struct made made;
	unsigned seen[NR_ADVICE_VERDICTS] = {0};
	struct random r = {SEED};
	struct advice_merge m;

	(void)state;
	for (unsigned i = 0; i < ANNOTATIONS; i++) {
		bool repair = random_chance(&r, 50);
		struct advice_ruling got, again;

		if (i % 20 == 0)
			random_state(&r, &x, &m);
		make_annotation(&author, &r, random_nodes(&r, NODES), &made);
		rule(made.key, made.text, &m, repair, &got);
		rule(made.key, made.text, &m, repair, &again);
		assert_true(rig_same_ruling(&got, &again));
		check(&x, &m, &made, &got);
		seen[got.verdict]++;
	}
	for (unsigned v = 0; v < NR_ADVICE_VERDICTS; v++)
		if (v != ADVICE_REJECTED_FOREIGN_CPUSET && v != ADVICE_REPAIRED_CPUS && !seen[v])
			fail_msg("%s did not occur", advice_verdict_words[(enum advice_verdict)v]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recorded_hints_of_other_schedulers_are_read),
		cmocka_unit_test(a_malformed_foreign_hint_is_refused_with_a_reason),
		cmocka_unit_test(a_hint_keeps_cpus_that_the_machine_lacks),
		cmocka_unit_test(the_first_form_with_an_annotation_counts),
		cmocka_unit_test(policies_and_cpus_are_found_apart_from_nodes),
		cmocka_unit_test(an_unreadable_hint_hides_the_forms_after_it),
		cmocka_unit_test(no_random_annotation_breaks_the_readers),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
