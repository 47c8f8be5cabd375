/* What a pod's author may wish for: the annotations, what the operator allows of them, and what
 * they mean for CPUs. */
#include <codec/wishes.h>
#include <numafit/cpus.h>
#include <numafit/advice.h>
#include <numafit/arena.h>
#include <numafit/mem.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core_machine.h"
#include "core_random.h"

#include <errno.h>

enum { ARENA = 1 << 20, ALL = WISHES_CPUS | WISHES_CORES | WISHES_NUMA_NODES | WISHES_SPREAD };

static const struct node_ids ids = {.nr = 2, .id = {0, 4}};
static const char *unknown = "refuse"; /* podWishes.unknown */

struct read {
	struct settings s;
	struct arena a;
	struct ask ask;
	struct wishes_ignored ignored;
};

/* What two annotations come to for the container "web". */
static void take(struct read *r, const char *allowed, const char *key, const char *value,
	const char *key2, const char *value2)
{
	const struct key_value annotations[] = {{key, value}, {key2, value2}};
	const struct pod pod = {.annotations = annotations, .nr_annotations = key2 ? 2 : 1};
	const struct wishes_reader reader = {&r->s, &ids, false};

	settings_init(&r->s);
	assert_int_equal(settings_set(&r->s, "podWishes.allowed", allowed, NULL), 0);
	assert_int_equal(settings_set(&r->s, "podWishes.unknown", unknown, NULL), 0);
	assert_int_equal(settings_set(&r->s, "frequencyProfiles",
				 "name=fast governor=performance; name=slow maxMHz=800", NULL),
		0);
	arena_init(&r->a, ARENA);
	r->ask = (struct ask){.name = "web"};
	wishes_take(&reader, &pod, &r->ask, &r->a, &r->ignored);
}

static void each_value_is_read(void **state)
{
	static const struct {
		const char *key, *value;
		struct wishes want;
	} table[] = {
		{"numafit.io/cpus", "own", {.cpus = WISH_CPUS_OWN}},
		{"numafit.io/cpus", "shared", {.cpus = WISH_CPUS_SHARED}},
		{"numafit.io/cpus", "own+shared", {.cpus = WISH_CPUS_OWN_SHARED}},
		{"numafit.io/cores", "whole", {.cores = WISH_CORES_WHOLE}},
		{"cores.numafit.io/web", "one-thread", {.cores = WISH_CORES_ONE_THREAD}},
		{"cores.numafit.io/other", "one-thread", {0}},
		{"numafit.io/isolated", "prefer", {.isolated = WISH_ISOLATED_PREFER}},
		{"isolated.numafit.io/web", "require", {.isolated = WISH_ISOLATED_REQUIRE}},
		{"numafit.io/spread", "any", {.spread = WISH_SPREAD_ANY}},
		{"spread.numafit.io/web", "one-node", {.spread = WISH_SPREAD_ONE_NODE}},
		{"numafit.io/spread", "one-node,strict-memory", {.spread = WISH_SPREAD_STRICT}},
		{"numafit.io/memory-policy", "bind", {.memory = WISH_MEMORY_BIND}},
		{"numafit.io/memory-policy", "interleave", {.memory = WISH_MEMORY_INTERLEAVE}},
		{"numafit.io/memory-policy", "preferred", {.memory = WISH_MEMORY_PREFERRED}},
		{"memory-policy.numafit.io/web", "local", {.memory = WISH_MEMORY_LOCAL}},
		{"numafit.io/movable", "true", {.movable = WISH_MOVABLE_YES}},
		{"movable.numafit.io/web", "false", {.movable = WISH_MOVABLE_NO}},
		{"numafit.io/rdt-class", "Gold_1", {.rdt_class = "Gold_1"}},
		{"blockio-class.numafit.io/web", "slow.disk-2", {.blockio_class = "slow.disk-2"}},
		{"numafit.io/quiet", "irq", {.quiet = "irq"}},
		{"quiet.numafit.io/web", "frequency=fast", {.quiet = "frequency=fast"}},
		{"numafit.io/quiet", "irq,frequency=fast", {.quiet = "irq,frequency=fast"}},
		{"irq-load-balancing.crio.io", "disable", {.quiet = "irq"}},
		{"irq-load-balancing.crio.io", "true", {.quiet = "irq"}},
		{"irq-load-balancing.crio.io", "enable", {0}},
		{"cpu-load-balancing.crio.io", "disable", {.isolated = WISH_ISOLATED_PREFER}},
		{"cpu-shared.crio.io/web", "enable", {.cpus = WISH_CPUS_OWN_SHARED}},
		{"cpu-shared.crio.io/other", "enable", {0}},
		{"cpu-quota.crio.io", "disable", {0}},
		{"example.com/cpus", "shared", {0}},
		{"numafit.io/cpus/web", "shared", {0}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct read r;

		take(&r,
			"cpus,cores,isolated,numa-nodes,spread,memory-policy,rdt-class,blockio-class,"
			"quiet",
			table[i].key, table[i].value, NULL, NULL);
		assert_memory_equal(&r.ask.wishes, &table[i].want, sizeof table[i].want);
		assert_null(r.ask.odd_wish);
		assert_null(r.ignored.annotation);
		arena_fini(&r.a);
	}
}

static void a_wish_for_one_container_comes_before_one_for_all(void **state)
{
	struct read r;

	(void)state;
	take(&r, "cpus", "numafit.io/cpus", "own+shared", "cpus.numafit.io/web", "shared");
	assert_int_equal(r.ask.wishes.cpus, WISH_CPUS_SHARED);
	arena_fini(&r.a);
	take(&r, "cpus", "cpus.numafit.io/web", "shared", "numafit.io/cpus", "own+shared");
	assert_int_equal(r.ask.wishes.cpus, WISH_CPUS_SHARED);
	arena_fini(&r.a);
}

static void our_own_words_come_before_those_of_cri_o(void **state)
{
	struct read r;

	(void)state;
	take(&r, "quiet", "irq-load-balancing.crio.io", "disable", "numafit.io/quiet",
		"frequency=fast");
	assert_string_equal(r.ask.wishes.quiet, "frequency=fast");
	assert_null(r.ask.odd_wish);
	arena_fini(&r.a);
	take(&r, "quiet", "cpu-c-states.crio.io", "disable", "numafit.io/quiet", "irq");
	assert_string_equal(r.ask.wishes.quiet, "irq");
	assert_null(r.ask.odd_wish);
	arena_fini(&r.a);
}

static void words_of_cri_o_without_an_equal_say_what_to_write_instead(void **state)
{
	static const char *const keys[] = {"cpu-c-states.crio.io", "cpu-freq-governor.crio.io"};
	struct read r;

	(void)state;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		take(&r, "quiet", keys[i], "performance", NULL, NULL);
		assert_non_null(strstr(r.ask.odd_wish, keys[i]));
		assert_non_null(strstr(r.ask.odd_wish, "write numafit.io/quiet: frequency="));
		arena_fini(&r.a);
	}
}

/* refused: with podWishes.unknown: refuse; else the text is for log, event and what-if alone. */
static void annotations_that_nothing_follows_are_said(void **state)
{
	static const struct {
		const char *allowed, *key, *value;
		bool refused;
		const char *says;
	} table[] = {
		{"quiet", "irq-load-balancing.crio.io", "housekeeping", true,
			"annotation irq-load-balancing.crio.io: \"housekeeping\" is none of the values "
			"of CRI-O's that numafit follows: disable, enable"},
		{"quiet", "irq-load-balancing.crio.io/web", "housekeeping", true, "is none of"},
		{"quiet,isolated", "cpu-load-balancing.crio.io/web", "no", true,
			"\"no\" is none of"},
		{"none", "cpu-quota.crio.io", "half", true, "\"half\" is none of"},
		{"cpus", "cpu-shared.crio.io/web", "yes", true, "\"yes\" is none of"},
		{"cpus", "cpu-shared.crio.io", "enable", true, "is none that numafit knows"},
		{"quiet", "cpu-c-states.crio.io/web", "disable", true, "write numafit.io/quiet"},
		{"quiet", "irq-loadbalancing.crio.io", "disable", true,
			"did you mean irq-load-balancing.crio.io?"},
		{"quiet", "irq-loadbalancing.crio.io/web", "disable", true,
			"did you mean irq-load-balancing.crio.io/web?"},
		{"cores", "irq-loadbalancing.crio.io", "disable", false,
			"did you mean irq-load-balancing.crio.io?"},
		{"cores", "numafit.io/core", "whole", true,
			"annotation numafit.io/core is none that numafit knows; did you mean "
			"numafit.io/cores?"},
		{"cores", "core.numafit.io/web", "whole", true,
			"did you mean cores.numafit.io/web?"},
		{"quiet", "numafit.io/core", "whole", false, "did you mean numafit.io/cores?"},
		{"none", "numafit.io/numa-hints", "{}", true, "did you mean numafit.io/numa-hint?"},
		{"none", "numa-hint.numafit.io/web", "{}", true,
			"did you mean numafit.io/numa-hint?"},
		/* near to no key: perhaps of a later version */
		{"none", "numafit.io/something-else", "x", false, "is none that numafit knows"},
		{"none", "numafit.io/", "x", false, "is none that numafit knows"},
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof table / sizeof *table; i++) {
		const size_t at = i / 2;
		const bool ignore = i % 2, refused = table[at].refused && !ignore;
		struct read r;

		unknown = ignore ? "ignore" : "refuse";
		take(&r, table[at].allowed, table[at].key, table[at].value, NULL, NULL);
		const char *said = refused ? r.ask.odd_wish : r.ignored.odd;
		if (!said || !strstr(said, table[at].says))
			fail_msg("%s: %s", table[at].key, said ? said : "nothing");
		assert_null(refused ? r.ignored.odd : r.ask.odd_wish);
		arena_fini(&r.a);
	}
	unknown = "refuse";
}

static void annotations_of_others_are_not_said(void **state)
{
	static const char *const keys[] = {"numafit.io/placement", "numafit.io/allocated",
		"numafit.io/numa-hint", "numafit.io/topology-policy", "umask.crio.io",
		"core.numafit.io/other", "irq-load-balancing.crio.io/other", "xnumafit.io/core",
		"numafit.io.example.com/core", "cpu-quota.example.com/x", "cpu-x"};
	struct read r;

	(void)state;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		take(&r, "cores,quiet", keys[i], "housekeeping", NULL, NULL);
		assert_null(r.ask.odd_wish);
		assert_null(r.ignored.odd);
		arena_fini(&r.a);
	}
}

static void c_states_that_cri_o_leaves_enabled_are_no_wish(void **state)
{
	struct read r;

	(void)state;
	take(&r, "quiet", "cpu-c-states.crio.io", "enable", NULL, NULL);
	assert_null(r.ask.odd_wish);
	assert_null(r.ignored.odd);
	assert_string_equal(r.ask.wishes.quiet, "");
	arena_fini(&r.a);
}

static void a_form_of_cri_o_for_one_container_comes_before_the_plain_one(void **state)
{
	struct read r;

	(void)state;
	take(&r, "quiet", "irq-load-balancing.crio.io/web", "disable", NULL, NULL);
	assert_string_equal(r.ask.wishes.quiet, "irq");
	arena_fini(&r.a);
	take(&r, "quiet", "irq-load-balancing.crio.io", "disable", "irq-load-balancing.crio.io/web",
		"enable");
	assert_string_equal(r.ask.wishes.quiet, "");
	arena_fini(&r.a);
	take(&r, "isolated", "cpu-load-balancing.crio.io/web", "disable",
		"cpu-load-balancing.crio.io", "enable");
	assert_int_equal(r.ask.wishes.isolated, WISH_ISOLATED_PREFER);
	assert_null(r.ask.odd_wish);
	arena_fini(&r.a);
}

static void what_is_not_allowed_counts_as_not_there(void **state)
{
	static const struct {
		const char *allowed, *key, *value;
		bool counts;
	} table[] = {
		{"none", "numafit.io/cpus", "own", true}, /* as it is anyway */
		{"none", "numafit.io/cpus", "shared", false},
		{"none", "numafit.io/cpus", "nonsense", false},
		{"cpus=shared", "numafit.io/cpus", "shared", true},
		{"cpus=shared", "numafit.io/cpus", "own+shared", false},
		{"cpus", "numafit.io/cpus", "own+shared", true},
		{"cpus", "numafit.io/cores", "whole", false},
		{"cores", "numafit.io/spread", "nonsense", false},
		{"cores", "numafit.io/isolated", "require", false},
		{"cores", "numafit.io/numa-nodes", "0", false},
		{"cores", "numafit.io/rdt-class", "gold", false},
		{"cores", "numafit.io/rdt-class", "..", false},
		{"cores", "irq-load-balancing.crio.io", "disable", false},
		{"cpus=shared", "cpu-shared.crio.io/web", "enable", false},
		{"cores", "cpu-c-states.crio.io", "disable", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct read r;

		take(&r, table[i].allowed, table[i].key, table[i].value, NULL, NULL);
		assert_null(r.ask.odd_wish);
		assert_null(r.ask.advice);
		assert_int_equal(!r.ignored.annotation, table[i].counts);
		assert_int_equal(r.ask.wishes.cpus || r.ask.wishes.cores || r.ask.wishes.spread,
			table[i].counts);
		arena_fini(&r.a);
	}
}

static void a_value_that_is_none_is_named_with_those_that_there_are(void **state)
{
	static const struct {
		const char *allowed, *key, *value, *text;
	} table[] = {
		{"cpus=shared", "numafit.io/cpus", "mine",
			"annotation numafit.io/cpus: \"mine\" is none of own, shared"},
		{"cpus", "cpus.numafit.io/web", "",
			"annotation cpus.numafit.io/web: \"\" is none of own, shared, own+shared"},
		{"cores", "numafit.io/cores", "Whole",
			"annotation numafit.io/cores: \"Whole\" is none of whole, one-thread"},
		{"none", "numafit.io/movable", "no",
			"annotation numafit.io/movable: \"no\" is none of false, true"},
		{"spread", "numafit.io/spread", "one-node, strict-memory",
			"annotation numafit.io/spread: \"one-node, strict-memory\" is none of any, "
			"one-node, one-node,strict-memory"},
		{"numa-nodes", "numafit.io/numa-nodes", "",
			"annotation numafit.io/numa-nodes: \"\" is no list of NUMA nodes, such as 0 or "
			"0-1: it is empty"},
		{"memory-policy", "numafit.io/memory-policy", "bind:0",
			"annotation numafit.io/memory-policy: \"bind:0\" is none of bind, interleave, "
			"preferred, local"},
		{"quiet", "numafit.io/quiet", "frequency",
			"annotation numafit.io/quiet: \"frequency\" is none of irq, frequency=PROFILE, "
			"irq,frequency=PROFILE"},
		{"quiet", "numafit.io/quiet", "frequency=fast,irq",
			"annotation numafit.io/quiet: \"frequency=fast,irq\" is none of irq, "
			"frequency=PROFILE, irq,frequency=PROFILE"},
		{"quiet", "quiet.numafit.io/web", "irq,frequency=fastest",
			"annotation quiet.numafit.io/web: \"irq,frequency=fastest\" names a profile "
			"that frequencyProfiles does not have; it has fast, slow"},
		{"rdt-class", "numafit.io/rdt-class", "../gold",
			"annotation numafit.io/rdt-class: \"../gold\" is no name of a class: up to 31 "
			"letters, digits, '.', '-' and '_', the first one a letter or a digit"},
		{"rdt-class", "numafit.io/rdt-class", "-gold",
			"annotation numafit.io/rdt-class: \"-gold\" is no name of a class: up to 31 "
			"letters, digits, '.', '-' and '_', the first one a letter or a digit"},
		{"blockio-class", "blockio-class.numafit.io/web", "",
			"annotation blockio-class.numafit.io/web: \"\" is no name of a class: up to 31 "
			"letters, digits, '.', '-' and '_', the first one a letter or a digit"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct read r;

		take(&r, table[i].allowed, table[i].key, table[i].value, NULL, NULL);
		assert_string_equal(r.ask.odd_wish, table[i].text);
		arena_fini(&r.a);
	}
}

/* Of what somebody writes to do harm nothing is obeyed, and what is said of it is short. */
static void hostile_values_are_refused_and_nothing_else(void **state)
{
	enum { TRIES = 500, LONG = 5000 };
	char *value = calloc(1, LONG + 1);
	struct random random = {23};

	(void)state;
	for (unsigned i = 0; i < TRIES; i++) {
		static const char *const keys[] = {"numafit.io/cpus", "cores.numafit.io/web",
			"numafit.io/numa-nodes", "numafit.io/spread", "numafit.io/rdt-class",
			"numafit.io/memory-policy", "numafit.io/quiet"};
		const unsigned key = i % (sizeof keys / sizeof *keys);
		const unsigned len = random_below(&random, i % 10 ? 40 : LONG);
		struct read r;

		for (unsigned k = 0; k < len; k++)
			value[k] = (char)(1 + random_below(&random, 255));
		value[len] = '\0';
		take(&r, "cpus,cores,numa-nodes,spread,rdt-class,memory-policy,quiet", keys[key],
			value, NULL, NULL);
		if ((key == 2 || wishes_is_class(value)) && !r.ask.odd_wish) { /* one by chance */
			arena_fini(&r.a);
			continue;
		}
		assert_non_null(r.ask.odd_wish);
		assert_true(strlen(r.ask.odd_wish) < 400);
		assert_null(r.ask.advice);
		assert_memory_equal(&r.ask.wishes, &(struct wishes){0}, sizeof r.ask.wishes);
		arena_fini(&r.a);
	}
	free(value);
}

static void unknown_values_are_passed_over_where_the_operator_wants_that(void **state)
{
	const struct key_value annotation = {"numafit.io/cores", "half"};
	const struct pod pod = {.annotations = &annotation, .nr_annotations = 1};
	struct read r = {.ask.name = "web"};
	const struct wishes_reader reader = {&r.s, &ids, false};

	(void)state;
	settings_init(&r.s);
	assert_int_equal(settings_set(&r.s, "podWishes.allowed", "cores", NULL), 0);
	assert_int_equal(settings_set(&r.s, "podWishes.unknown", "ignore", NULL), 0);
	arena_init(&r.a, ARENA);
	wishes_take(&reader, &pod, &r.ask, &r.a, &r.ignored);
	assert_null(r.ask.odd_wish);
	assert_string_equal(r.ignored.odd,
		"annotation numafit.io/cores: \"half\" is none of whole, one-thread");
	arena_fini(&r.a);
}

static void annotations_for_containers_that_the_pod_does_not_have_are_named(void **state)
{
	static const struct ask containers[] = {{.name = "web"}, {.name = "db"}, {.name = "proxy"}};
	static const struct {
		const char *key[3], *want;
	} cases[] = {
		{{"cores.numafit.io/web", "cpu-shared.crio.io/db", "numafit.io/cores"}, NULL},
		{{"example.com/gone", "numafit.io/gone", "irq-load-balancing.crio.io"}, NULL},
		{{"cores.numafit.io/weeb"},
			"annotation cores.numafit.io/weeb names a container that the pod does not "
			"have; did you mean web?"},
		{{"core.numafit.io/logger", "numafit.io/cores", "cpu-quota.crio.io/logger"},
			"annotation core.numafit.io/logger names a container that the pod does not "
			"have (so does 1 more)"},
		{{"irq-load-balancing.crio.io/prxy", "spread.numafit.io/", "cpus.numafit.io/x"},
			"annotation irq-load-balancing.crio.io/prxy names a container that the pod "
			"does not have; did you mean proxy? (so do 2 more)"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct key_value notes[3] = {{0}};
		struct pod pod = {.annotations = notes, .container = containers, .nr = 3};
		struct arena a;

		for (; pod.nr_annotations < 3 && cases[i].key[pod.nr_annotations];
			pod.nr_annotations++)
			notes[pod.nr_annotations].key = cases[i].key[pod.nr_annotations];
		arena_init(&a, ARENA);
		const char *got = wishes_of_no_container(&pod, &a);
		if (!got || !cases[i].want)
			assert_ptr_equal(got, cases[i].want);
		else
			assert_string_equal(got, cases[i].want);
		pod.nr = 0; /* its containers are not known */
		assert_null(wishes_of_no_container(&pod, &a));
		arena_fini(&a);
	}
}

static void a_pod_may_say_whether_it_is_moved_whatever_it_may_wish_for(void **state)
{
	struct read r;

	(void)state;
	take(&r, "none", "numafit.io/movable", "false", NULL, NULL);
	assert_int_equal(r.ask.wishes.movable, WISH_MOVABLE_NO);
	assert_null(r.ignored.annotation);
	arena_fini(&r.a);
}

static void numa_nodes_are_judged_as_a_schedulers_hint(void **state)
{
	struct read r;

	(void)state;
	take(&r, "numa-nodes", "numafit.io/numa-nodes", "4", NULL, NULL);
	assert_int_equal(r.ask.advice->asked.bits, 2); /* the second one */
	assert_int_equal(r.ask.advice->so_far, ADVICE_ACCEPTED);
	assert_int_equal(r.ask.advice->mode, ADVICE_PREFER);
	assert_true(r.ask.wishes_nodes);
	arena_fini(&r.a);
	take(&r, "numa-nodes", "numafit.io/numa-nodes", "0,7", NULL, NULL);
	assert_int_equal(r.ask.advice->so_far, ADVICE_REJECTED_NUMA);
	assert_null(r.ask.odd_wish);
	arena_fini(&r.a);
}

static void a_schedulers_hint_comes_before_a_wish_for_numa_nodes(void **state)
{
	const struct key_value annotation = {"numafit.io/numa-nodes", "4"};
	const struct pod pod = {.annotations = &annotation, .nr_annotations = 1};
	const struct advice_ask hint = {.asked = {1}};
	struct read r = {.ask = {.name = "web", .advice = &hint}};
	const struct wishes_reader reader = {&r.s, &ids, false};

	(void)state;
	settings_init(&r.s);
	arena_init(&r.a, ARENA);
	wishes_take(&reader, &pod, &r.ask, &r.a, &r.ignored);
	assert_ptr_equal(r.ask.advice, &hint);
	assert_false(r.ask.wishes_nodes);
	arena_fini(&r.a);
}

static void what_is_allowed_is_read_and_printed(void **state)
{
	static const struct {
		const char *text;
		unsigned bits;
		const char *printed;
	} table[] = {
		{"none", 0, "none"},
		{"cpus", WISHES_CPUS, "cpus"},
		{"spread, cpus=shared", WISHES_SPREAD | WISHES_CPUS_SHARED, "cpus=shared,spread"},
		{"cpus,cores,numa-nodes,spread", ALL, "cpus,cores,numa-nodes,spread"},
	};
	static const char *const wrong[] = {
		"", "cpu", "cpus,", ",cores", "cpus;cores", "none,cpus"};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		char buf[WISHES_TEXT_MAX];
		unsigned bits = ~0U;
		struct text t;

		assert_int_equal(wishes_allowed_parse(table[i].text, &bits, NULL), 0);
		assert_int_equal(bits, table[i].bits);
		text_init(&t, buf, sizeof buf);
		wishes_allowed_print(bits, &t);
		assert_string_equal(buf, table[i].printed);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		unsigned bits = 77;
		struct err e;

		assert_int_equal(wishes_allowed_parse(wrong[i], &bits, &e), -EINVAL);
		assert_int_equal(bits, 77);
		assert_non_null(strstr(e.text, "is none of cpus, cpus=shared"));
	}
}

static struct cpuset set(const char *list)
{
	struct cpuset cpus;

	assert_int_equal(cpuset_parse(&cpus, list, strlen(list), NULL), 0);
	return cpus;
}

static void assert_set(struct cpuset is, const char *list)
{
	const struct cpuset want = set(list);

	assert_true(cpuset_equal(&is, &want));
}

/* The machine's cores are 0 and 32, 1 and 33, ... */
static void one_thread_shows_the_first_of_each_core_and_holds_all(void **state)
{
	struct topo *t = machine_of_eight();
	const struct wishes one = {.cores = WISH_CORES_ONE_THREAD},
			    whole = {.cores = WISH_CORES_WHOLE};
	const struct cpuset held = set("4-5,36-37"), shown = set("4-5"), odd = set("4,38");

	(void)state;
	assert_set(wishes_shown_cpus(&one, t, &held), "4-5");
	assert_set(wishes_shown_cpus(&whole, t, &held), "4-5,36-37");
	assert_set(wishes_held_cpus(&one, t, &shown, 4), "4-5,36-37");
	assert_set(wishes_held_cpus(&one, t, &odd, 2), "4,38"); /* not given so */
	assert_set(wishes_held_cpus(&whole, t, &held, 4), "4-5,36-37");
	free(t);
}

static void whole_cores_are_taken_of_cores_that_are_free_as_a_whole(void **state)
{
	struct topo *t = machine_of_eight();
	const struct wishes none = {0}, whole = {.cores = WISH_CORES_WHOLE};
	const struct cpuset free_cpus = set("4-6,36,38,60");
	const struct cpu_options of_node = {0};
	const struct cpu_options without = wishes_cpu_options(&none, &of_node),
				 with = wishes_cpu_options(&whole, &of_node);

	(void)state;
	assert_set(cpus_usable(t, &without, &free_cpus), "4-6,36,38,60");
	assert_set(cpus_usable(t, &with, &free_cpus), "4,6,36,38");
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_value_is_read),
		cmocka_unit_test(a_wish_for_one_container_comes_before_one_for_all),
		cmocka_unit_test(our_own_words_come_before_those_of_cri_o),
		cmocka_unit_test(words_of_cri_o_without_an_equal_say_what_to_write_instead),
		cmocka_unit_test(annotations_that_nothing_follows_are_said),
		cmocka_unit_test(annotations_of_others_are_not_said),
		cmocka_unit_test(a_form_of_cri_o_for_one_container_comes_before_the_plain_one),
		cmocka_unit_test(c_states_that_cri_o_leaves_enabled_are_no_wish),
		cmocka_unit_test(what_is_not_allowed_counts_as_not_there),
		cmocka_unit_test(a_value_that_is_none_is_named_with_those_that_there_are),
		cmocka_unit_test(hostile_values_are_refused_and_nothing_else),
		cmocka_unit_test(unknown_values_are_passed_over_where_the_operator_wants_that),
		cmocka_unit_test(annotations_for_containers_that_the_pod_does_not_have_are_named),
		cmocka_unit_test(a_pod_may_say_whether_it_is_moved_whatever_it_may_wish_for),
		cmocka_unit_test(numa_nodes_are_judged_as_a_schedulers_hint),
		cmocka_unit_test(a_schedulers_hint_comes_before_a_wish_for_numa_nodes),
		cmocka_unit_test(what_is_allowed_is_read_and_printed),
		cmocka_unit_test(one_thread_shows_the_first_of_each_core_and_holds_all),
		cmocka_unit_test(whole_cores_are_taken_of_cores_that_are_free_as_a_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
