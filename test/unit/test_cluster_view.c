/* The document of the cluster's page: rows, what has changed since, samples, refusals. */
#include <numafit-extender/cluster_view.h>

#include <jansson.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { EPOCH = 77 };

struct fixture {
	struct resource_table names;
	struct sched_cluster *cluster;
	struct cluster_view *view;
	json_t *document;
	struct cluster_seen seen; /* the document's */
};

static int setup(void **state)
{
	static const struct sched_cluster_args args = {
		.over_reserve = true, .foreign = FOREIGN_PODS_ALL, .assume_ms = 1000};
	struct fixture *f = xcalloc(1, sizeof *f);

	resource_table_init(&f->names);
	f->cluster = sched_cluster_new(&args, &f->names);
	f->view = cluster_view_new(EPOCH);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	json_decref(f->document);
	cluster_view_free(f->view);
	sched_cluster_free(f->cluster);
	resource_table_fini(&f->names);
	free(f);
	return 0;
}

static void add_node(struct fixture *f, const char *name, const char *pool)
{
	const struct sched_node node = {.name = name};

	sched_cluster_put_node(f->cluster, &node);
	cluster_view_put_node(f->view, name, pool);
}

static void remove_node(struct fixture *f, const char *name)
{
	sched_cluster_remove_node(f->cluster, name);
	cluster_view_remove_node(f->view, name);
}

/* NUMA nodes of these ids with 16 CPUs and 64 GiB, of which cpus[i] and cpus[i] GiB are left. */
static void report(
	struct fixture *f, const char *node, const uint8_t *id, const int *cpus, unsigned nr)
{
	struct sched_topology *t = sched_topology_new(id, nr);

	for (unsigned z = 0; z < nr; z++) {
		const struct quantity all = {16, 0}, left = {cpus[z], 900000000},
				      memory = {INT64_C(64) << 30, 0},
				      memory_left = {(int64_t)cpus[z] << 30, 0};

		sched_topology_resource(t, z, RESOURCE_CPU, &(struct zone_amounts){all, all, left});
		sched_topology_resource(
			t, z, RESOURCE_MEMORY, &(struct zone_amounts){memory, memory, memory_left});
	}
	sched_cluster_put_report(f->cluster, node, &(struct sched_report){.topology = t}, 1);
}

static void look(struct fixture *f)
{
	size_t at = 0;

	while (cluster_view_look(f->view, f->cluster, &at, 3))
		;
}

/* What a reader gets who has seen that. */
static json_t *read_since(struct fixture *f, const struct cluster_seen *seen)
{
	static const uint64_t binds[] = {3, 4};
	static const char *const words[] = {"bound-with-hint", "bound"};
	const struct cluster_figures figures = {.now_ms = 5,
		.version = "1.2.3",
		.pool_label = "a\"label",
		.unready = "",
		.requests = 6,
		.asked = 7,
		.left_out = 8,
		.avoided = 9,
		.binds = binds,
		.bind_words = words,
		.nr_binds = 2};
	json_error_t e;
	size_t len;
	auto_free char *text = cluster_view_json(f->view, &figures, seen, &len);

	assert_non_null(text);
	assert_int_equal(strlen(text), len);
	json_decref(f->document);
	f->document = json_loads(text, JSON_REJECT_DUPLICATES, &e);
	if (!f->document)
		fail_msg("%s: %s", e.text, text);
	auto_free char *query = NULL;
	assert_true(asprintf(&query, "since=%s",
			    json_string_value(json_object_get(f->document, "at"))) > 0);
	f->seen = cluster_seen_read(query);
	return f->document;
}

static json_t *read_all(struct fixture *f)
{
	json_t *v = read_since(f, &(struct cluster_seen){0});

	assert_true(json_is_true(json_object_get(v, "all")));
	return v;
}

/* The member as text; the caller frees. */
static char *text_of(json_t *v, const char *key)
{
	return json_dumps(json_object_get(v, key), JSON_COMPACT | JSON_ENCODE_ANY);
}

static void check(struct fixture *f, const char *key, const char *wanted)
{
	auto_free char *text = text_of(f->document, key);

	if (!text_equal(text, wanted))
		fail_msg("%s: %s", key, text);
}

static void a_row_says_what_each_numa_node_has_left(void **state)
{
	static const uint8_t usual[] = {0, 1}, odd[] = {2, 5};
	static const int some[] = {3, 16};
	struct fixture *f = *state;

	add_node(f, "n1", "batch");
	report(f, "n1", usual, some, 2);
	look(f);
	(void)read_all(f);
	check(f, "nodes", "[[\"n1\",\"batch\",0,[3,16],16,[3072,16384],65536,3]]");
	check(f, "gone", "[]");
	check(f, "pool_label", "\"a\\\"label\"");
	check(f, "binds", "{\"bound-with-hint\":3,\"bound\":4}");
	check(f, "nodes_left_out", "8");
	check(f, "pod_cpus", "8");
	report(f, "n1", odd, some, 2);
	look(f);
	(void)read_all(f);
	check(f, "nodes", "[[\"n1\",\"batch\",0,[3,16],16,[3072,16384],65536,3,[2,5]]]");
}

static void numa_nodes_of_different_sizes_have_a_number_each(void **state)
{
	static const uint8_t id[] = {0, 1};
	struct fixture *f = *state;
	struct sched_topology *t = sched_topology_new(id, 2);

	add_node(f, "n1", "");
	for (unsigned z = 0; z < 2; z++) {
		const struct quantity all = {z ? 8 : 4, 0}, left = {z ? -1 : 4, 0};

		sched_topology_resource(t, z, RESOURCE_CPU, &(struct zone_amounts){all, all, left});
	}
	sched_cluster_put_report(f->cluster, "n1", &(struct sched_report){.topology = t}, 1);
	look(f);
	(void)read_all(f);
	/* less than nothing is nothing, and no memory is listed */
	check(f, "nodes", "[[\"n1\",\"\",0,[4,0],[4,8],[0,0],0,4]]");
}

/* A pod that another scheduler has bound, and that the node's report does not name. */
static void bind_stranger(struct fixture *f, const char *node)
{
	static const struct amount asks[] = {{RESOURCE_CPU, {2, 0}}, {RESOURCE_MEMORY, {1, 0}}};
	static const struct sched_container container = {
		.name = "c", .requests = {asks, 2}, .limits = {asks, 2}};
	static const struct sched_pod pod = {.ns = "a",
		.name = "p",
		.uid = "u",
		.qos = QOS_GUARANTEED,
		.container = &container,
		.nr_containers = 1};

	sched_cluster_put_pod(
		f->cluster, &(struct sched_bound){.pod = &pod, .node = node, .pending = true}, 2);
}

static void stale_nodes_and_those_without_a_report_differ_from_others(void **state)
{
	static const uint8_t id[] = {0};
	static const int all[] = {16};
	struct fixture *f = *state;

	add_node(f, "n1", "");
	look(f);
	(void)read_all(f);
	check(f, "nodes", "[[\"n1\",\"\",2,[],0,[],0,0]]");
	report(f, "n1", id, all, 1);
	bind_stranger(f, "n1");
	look(f);
	(void)read_all(f);
	json_t *row = json_array_get(json_object_get(f->document, "nodes"), 0);
	assert_int_equal(json_integer_value(json_array_get(row, 2)), 1);
	sched_cluster_remove_report(f->cluster, "n1");
	look(f);
	(void)read_all(f);
	check(f, "nodes", "[[\"n1\",\"\",2,[],0,[],0,0]]");
}

static void a_node_that_was_not_looked_at_yet_has_no_report(void **state)
{
	struct fixture *f = *state;

	add_node(f, "n1", "");
	(void)read_all(f);
	check(f, "nodes", "[[\"n1\",\"\",2,[],0,[],0,0]]");
}

static void who_has_seen_a_revision_is_sent_what_has_changed_since(void **state)
{
	static const uint8_t id[] = {0};
	static const int left[] = {1, 2, 3};
	struct fixture *f = *state;

	for (unsigned i = 0; i < 3; i++) {
		const char name[] = {(char)('a' + i), '\0'};

		add_node(f, name, "");
		report(f, name, id, &left[i], 1);
	}
	look(f);
	assert_int_equal(json_array_size(json_object_get(read_all(f), "nodes")), 3);
	(void)read_since(f, &f->seen);
	check(f, "all", "false");
	check(f, "nodes", "[]");
	check(f, "samples", ""); /* missing: as before */
	check(f, "refusals", "");
	struct cluster_seen before = f->seen;
	report(f, "b", id, &left[2], 1);
	report(f, "c", id, &left[2], 1); /* as before */
	remove_node(f, "a");
	look(f);
	(void)read_since(f, &before);
	check(f, "all", "false");
	check(f, "nodes", "[[\"b\",\"\",0,[3],16,[3072],65536,3]]");
	check(f, "gone", "[\"a\"]");
	add_node(f, "a", "");
	(void)read_since(f, &before); /* it went, and has come back */
	check(f, "gone", "[\"a\"]");
	assert_int_equal(json_array_size(json_object_get(f->document, "nodes")), 2);
	(void)read_since(f, &f->seen);
	check(f, "nodes", "[]");
	check(f, "gone", "[]");
}

static void another_pool_is_a_change(void **state)
{
	struct fixture *f = *state;

	add_node(f, "n", "one");
	add_node(f, "m", "one");
	look(f);
	(void)read_all(f);
	add_node(f, "n", "two");
	add_node(f, "m", "one");
	(void)read_since(f, &f->seen);
	check(f, "nodes", "[[\"n\",\"two\",2,[],0,[],0,0]]");
}

static void who_has_seen_another_life_or_too_little_is_sent_everything(void **state)
{
	enum { MORE_THAN_KEPT = 1100 };
	struct fixture *f = *state;
	char name[16];

	add_node(f, "n", "");
	(void)read_all(f);
	struct cluster_seen old = f->seen, other = {EPOCH + 1, f->seen.revision},
			    future = {EPOCH, f->seen.revision + 1};
	assert_int_equal(old.epoch, EPOCH);
	(void)read_since(f, &other);
	check(f, "all", "true");
	(void)read_since(f, &future);
	check(f, "all", "true");
	for (unsigned i = 0; i < MORE_THAN_KEPT; i++) {
		(void)snprintf(name, sizeof name, "gone-%u", i);
		add_node(f, name, "");
		remove_node(f, name);
	}
	(void)read_since(f, &old);
	check(f, "all", "true");
	check(f, "gone", "[]");
	check(f, "nodes", "[[\"n\",\"\",2,[],0,[],0,0]]");
}

static void a_list_drops_the_nodes_that_it_does_not_name(void **state)
{
	enum { NODES = 200 };
	struct fixture *f = *state;
	char name[16];

	for (unsigned i = 0; i < NODES; i++) {
		(void)snprintf(name, sizeof name, "n%u", i);
		add_node(f, name, "");
	}
	(void)read_all(f);
	cluster_view_begin(f->view);
	add_node(f, "n7", "");
	cluster_view_sweep(f->view);
	(void)read_since(f, &f->seen);
	assert_int_equal(json_array_size(json_object_get(f->document, "gone")), NODES - 1);
	(void)read_all(f);
	check(f, "nodes", "[[\"n7\",\"\",2,[],0,[],0,0]]");
}

static void the_samples_of_the_last_hour_are_kept(void **state)
{
	static const uint8_t id[] = {0, 1};
	static const int left[] = {4, 8};
	struct fixture *f = *state;

	add_node(f, "n1", "");
	add_node(f, "n2", "");
	report(f, "n1", id, left, 2);
	look(f);
	cluster_view_sample(f->view, 1000);
	(void)read_all(f);
	check(f, "samples", "[[1000,2,12,4,32]]");
	for (int64_t i = 2; i <= CLUSTER_SAMPLES + 5; i++)
		cluster_view_sample(f->view, i * 1000);
	(void)read_since(f, &f->seen);
	json_t *samples = json_object_get(f->document, "samples");
	assert_int_equal(json_array_size(samples), CLUSTER_SAMPLES);
	for (size_t i = 0; i < CLUSTER_SAMPLES; i++)
		assert_int_equal(json_integer_value(json_array_get(json_array_get(samples, i), 0)),
			(i + 6) * 1000);
	(void)read_since(f, &f->seen);
	check(f, "samples", "");
}

static void refuse(struct fixture *f, const char *uid, enum cluster_refusal_kind kind, int64_t ms)
{
	cluster_view_refused(f->view, &(struct cluster_refusal){.time_ms = ms,
					      .kind = kind,
					      .uid = uid,
					      .ns = "shop",
					      .pod = uid,
					      .node = kind == REFUSED_NOWHERE ? "" : "n1"});
}

static const char *refused_pod(struct fixture *f, size_t i)
{
	return json_string_value(json_object_get(
		json_array_get(json_object_get(f->document, "refusals"), i), "pod"));
}

static void refusals_are_kept_newest_first_and_counted_by_kind(void **state)
{
	struct fixture *f = *state;
	char uid[16];

	refuse(f, "a", REFUSED_TOPOLOGY, 1);
	refuse(f, "b", REFUSED_NOWHERE, 2);
	refuse(f, "a", REFUSED_HINT, 3);
	refuse(f, "b", REFUSED_NOWHERE, 4); /* asked again */
	(void)read_all(f);
	check(f, "refusals",
		"[{\"time_ms\":4,\"kind\":\"no-node\",\"namespace\":\"shop\",\"pod\":\"b\",\"node\":"
		"\"\",\"times\":2},"
		"{\"time_ms\":3,\"kind\":\"NUMAHint\",\"namespace\":\"shop\",\"pod\":\"a\",\"node\":"
		"\"n1\",\"times\":1},"
		"{\"time_ms\":1,\"kind\":\"TopologyAffinityError\",\"namespace\":\"shop\",\"pod\":"
		"\"a\",\"node\":\"n1\",\"times\":1}]");
	check(f, "refused",
		"{\"TopologyAffinityError\":1,\"SMTAlignmentError\":0,\"UnexpectedAdmissionError\":"
		"0,\"CreateContainerError\":0,\"NUMAHint\":1,\"other\":0,\"no-node\":2}");
	for (unsigned i = 0; i < CLUSTER_REFUSALS + 3; i++) {
		(void)snprintf(uid, sizeof uid, "p%u", i);
		refuse(f, uid, REFUSED_TOPOLOGY, 10 + i);
	}
	(void)read_since(f, &f->seen);
	assert_int_equal(
		json_array_size(json_object_get(f->document, "refusals")), CLUSTER_REFUSALS);
	assert_string_equal(refused_pod(f, 0), "p52");
	assert_string_equal(refused_pod(f, CLUSTER_REFUSALS - 1), "p3");
	refuse(f, "p3", REFUSED_TOPOLOGY, 100); /* the oldest one becomes the newest */
	(void)read_all(f);
	assert_string_equal(refused_pod(f, 0), "p3");
	assert_string_equal(refused_pod(f, CLUSTER_REFUSALS - 1), "p4");
}

static void a_refusals_kind_comes_from_the_word_that_kubernetes_has(void **state)
{
	static const struct {
		const char *reason;
		enum cluster_refusal_kind kind;
	} rows[] = {
		{"TopologyAffinityError", REFUSED_TOPOLOGY},
		{"SMTAlignmentError", REFUSED_SMT},
		{"UnexpectedAdmissionError", REFUSED_ADMISSION},
		{"CreateContainerError", REFUSED_CREATION},
		{"NUMAHint", REFUSED_HINT},
		{"NUMARefused", REFUSED_OTHER},
		{"", REFUSED_OTHER},
		{"no-node", REFUSED_OTHER}, /* that is a word of ours */
		{"topologyaffinityerror", REFUSED_OTHER},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(cluster_refusal_kind_of(rows[i].reason), rows[i].kind);
}

static void hints_are_counted_by_verdict_and_an_event_once(void **state)
{
	struct fixture *f = *state;

	cluster_view_hint(f->view, 1, "repaired");
	cluster_view_hint(f->view, 1, "repaired");
	cluster_view_hint(f->view, 2, "repaired");
	cluster_view_hint(f->view, 3, "rejected:farther");
	cluster_view_hint(f->view, 4, "none");
	cluster_view_hint(f->view, 5, "");
	cluster_view_hint(f->view, 6, "repaired\":1");
	for (uint64_t i = 100; i < 100 + 4096; i++)
		cluster_view_hint(f->view, i, "rejected:uid");
	cluster_view_hint(f->view, 1, "repaired"); /* that is too long ago */
	(void)read_all(f);
	check(f, "hints",
		"{\"accepted-stale\":0,\"repaired\":3,\"repaired:cpus\":0,\"rejected:format\":0,\"rejected:version\":"
		"0,\"rejected:uid\":4096,\"rejected:node\":0,\"rejected:clock\":0,\"rejected:"
		"expired\":0,\"rejected:numa\":0,\"rejected:not-fit\":0,\"rejected:not-"
		"narrowest\":0,\"rejected:farther\":1,\"rejected:policy\":0,\"rejected:foreign-"
		"cpuset\":0}");
}

/* Whatever is in a name, the document can be read, and the name is in it as it was. */
static void hostile_names_stay_text(void **state)
{
	static const char *const names[] = {"<img src=x onerror=alert(1)>", "\"],[\"", "a\\",
		"\x01\x02\t\n", "</script>", "\xe2\x80\xae!"};
	enum { LONG = 70000 };
	struct fixture *f = *state;
	char *longest = xcalloc(LONG, 1);

	memset(longest, '"', LONG - 1);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		add_node(f, names[i], names[i]);
		cluster_view_refused(f->view, &(struct cluster_refusal){.uid = names[i],
						      .ns = names[i],
						      .pod = names[i],
						      .node = names[i]});
	}
	add_node(f, longest, longest);
	refuse(f, longest, REFUSED_OTHER, 1);
	look(f);
	json_t *rows = json_object_get(read_all(f), "nodes"), *row;
	size_t at;
	json_array_foreach(rows, at, row)
	{
		const char *name = json_string_value(json_array_get(row, 0));
		bool known = text_equal(name, longest);

		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			known = known || text_equal(name, names[i]);
		assert_true(known);
		assert_string_equal(json_string_value(json_array_get(row, 1)), name);
	}
	assert_int_equal(at, sizeof names / sizeof *names + 1);
	assert_string_equal(refused_pod(f, 1), names[5]);
	(void)read_since(f, &f->seen);
	cluster_view_remove_node(f->view, names[1]);
	(void)read_since(f, &f->seen);
	check(f, "gone", "[\"\\\"],[\\\"\"]");
	free(longest);
}

static void a_cluster_that_is_too_large_has_no_document(void **state)
{
	enum { MANY = 40, LONG = 500000 };
	struct fixture *f = *state;
	char *name = xcalloc(LONG + 16, 1);
	size_t len;

	memset(name, 'x', LONG);
	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(name + LONG, 16, "%u", i);
		add_node(f, name, "");
	}
	free(name);
	assert_null(cluster_view_json(f->view,
		&(struct cluster_figures){.version = "", .pool_label = "", .unready = ""},
		&(struct cluster_seen){0}, &len));
}

static void nodes_may_come_and_go_while_they_are_looked_at(void **state)
{
	static const uint8_t id[] = {0};
	static const int left[] = {5};
	enum { NODES = 300 };
	struct fixture *f = *state;
	char name[16];
	size_t at = 0;

	for (unsigned i = 0; i < NODES; i++) {
		(void)snprintf(name, sizeof name, "n%u", i);
		add_node(f, name, "");
		report(f, name, id, left, 1);
	}
	for (unsigned i = 0; cluster_view_look(f->view, f->cluster, &at, 1); i++) {
		(void)snprintf(name, sizeof name, "n%u", i);
		if (i % 2)
			remove_node(f, name);
		(void)snprintf(name, sizeof name, "m%u", i);
		if (i < NODES)
			add_node(f, name, "");
	}
	look(f);
	unsigned reported = 0;
	json_t *row;
	size_t i;
	json_array_foreach(json_object_get(read_all(f), "nodes"), i, row) reported +=
		json_integer_value(json_array_get(row, 2)) == 0;
	assert_int_equal(reported, NODES / 2);
}

static void what_a_reader_has_seen_is_read_from_the_query(void **state)
{
	static const struct {
		const char *query;
		struct cluster_seen seen;
	} rows[] = {
		{"since=12.34", {12, 34}},
		{"since=18446744073709551615.1", {UINT64_MAX, 1}},
		{"", {0}},
		{"since=", {0}},
		{"since=12", {0}},
		{"since=.1", {0}},
		{"since=a.b", {0}},
		{"from=1.2", {0}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct cluster_seen seen = cluster_seen_read(rows[i].query);

		if (seen.epoch != rows[i].seen.epoch || seen.revision != rows[i].seen.revision)
			fail_msg("%s", rows[i].query);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_row_says_what_each_numa_node_has_left),
		T(numa_nodes_of_different_sizes_have_a_number_each),
		T(stale_nodes_and_those_without_a_report_differ_from_others),
		T(a_node_that_was_not_looked_at_yet_has_no_report),
		T(who_has_seen_a_revision_is_sent_what_has_changed_since),
		T(another_pool_is_a_change),
		T(who_has_seen_another_life_or_too_little_is_sent_everything),
		T(a_list_drops_the_nodes_that_it_does_not_name),
		T(the_samples_of_the_last_hour_are_kept),
		T(refusals_are_kept_newest_first_and_counted_by_kind),
		T(a_refusals_kind_comes_from_the_word_that_kubernetes_has),
		T(hints_are_counted_by_verdict_and_an_event_once),
		T(hostile_names_stay_text),
		T(a_cluster_that_is_too_large_has_no_document),
		T(nodes_may_come_and_go_while_they_are_looked_at),
		cmocka_unit_test(what_a_reader_has_seen_is_read_from_the_query),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
