/* The DRA driver in the daemon: claims are read again, survive a lost journal, and are published.
 */
#include "dra_cases.h"

/* Reading again */

static void a_claim_that_was_deleted_is_given_back(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);
	const struct api_claim *stays =
		put_claim(r, 1, (struct api_claim){"u2", "c2", .device = {"numa0"}, .cpus = {2}});

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	assert_prepared(r, prepare(r, stays), stays);
	r->claim[0].uid = "u3"; /* it was made anew */
	read_again(r);
	UNTIL(r, nr_held(r) == 1);
	assert_held(r, 1);
	assert_non_null(held(r, stays, 0));
	assert_false(is_there(r, cdi_file("u1")));
	assert_true(is_there(r, cdi_file("u2")));
	rig_free(r);
}

/* It is on another node since then, and nobody unprepares it here. */
static void a_claim_that_another_node_has_by_now_is_given_back(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	r->claim[0].pool[0] = "n2";
	read_again(r);
	UNTIL(r, !r->d.dra->tasks.nr);
	assert_held(r, 0);
	assert_false(is_there(r, cdi_file("u1")));
	rig_free(r);
}

/* The end of the container gives the claim back, and not the next look at the claim, which would be
 * half a minute later. */
static void a_claim_that_was_deleted_is_kept_for_a_container_that_runs(void **state)
{
	enum { NEXT_LOOK_MS = 30000 };
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	struct box *b = create(r, 0, "p0", 0, "numafit.io/claim=u1-0");
	r->claim[0].uid = NULL;
	read_again(r);
	UNTIL(r, r->d.dra->tasks.nr && *r->d.dra->tasks.at[0]->why);
	assert_held(r, 1);
	const uint64_t stopped_ms = loop_monotonic_ms();
	stop(r, b);
	UNTIL(r, nr_held(r) == 0);
	assert_true(loop_monotonic_ms() - stopped_ms < NEXT_LOOK_MS / 2);
	assert_held(r, 0);
	rig_free(r);
}

static void a_claim_is_kept_while_the_api_server_is_away(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	r->status = 500;
	read_again(r);
	let_pass(r, 50);
	assert_held(r, 1);
	rig_free(r);
}

/* The kubelet prepares a claim once, for whichever pod comes first. */
static void a_pod_that_comes_later_gets_in_after_one_refusal(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	r->claim[0].pod = "p1";
	(void)create(r, 0, "p1", 0, "numafit.io/claim=u1-0");
	assert_non_null(strstr(r->refusal, "is not reserved for this pod"));
	UNTIL(r, r->claims_read == 2 && !r->d.dra->tasks.nr);
	struct box *b = create(r, 1, "p1", 0, "numafit.io/claim=u1-0");
	assert_string_equal(r->refusal, "");
	assert_int_equal(fake_container_cpus(&b->c).w[0], held(r, c, 0)->decision.cpus.w[0]);
	assert_held(r, 1);
	rig_free(r);
}

/* More CPUs than the machine has: decided as a whole, the pod would be refused. */
static const char pod_with_a_claim[] =
	"{\"metadata\":{\"uid\":\"p1\",\"namespace\":\"shop\",\"name\":\"p1\"},\"spec\":{"
	"\"nodeName\":\"n1\",\"containers\":[{\"name\":\"main\",\"resources\":{"
	"\"limits\":{\"cpu\":\"64\",\"memory\":\"1Gi\"},\"claims\":[{\"name\":\"cpus\"}]}}]}}";

/* Its claim is read by the time its containers come, so that none is refused. */
static void a_pod_that_comes_later_has_its_claim_read_at_its_sandbox(void **state)
{
	struct rig *r = rig_new();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	r->pod = pod_with_a_claim;
	start_daemon(r);
	UNTIL(r, r->d.api_pods && api_pods_find(r->d.api_pods, "p1"));
	assert_prepared(r, prepare(r, c), c);
	assert_int_equal(r->claims_read, 1);
	r->claim[0].pod = "p1";
	run_pod(r, 0, "p1");
	assert_string_equal(r->refusal, "");
	assert_int_equal(ledger_count(ledger_of(r)), 1); /* nothing is held for its containers */
	UNTIL(r, r->claims_read == 2 && !r->d.dra->tasks.nr);
	assert_string_equal(held(r, c, 0)->request.for_pods, "p1");
	struct box *b = create(r, 0, "p1", 0, "numafit.io/claim=u1-0");
	assert_string_equal(r->refusal, "");
	assert_int_equal(fake_container_cpus(&b->c).w[0], held(r, c, 0)->decision.cpus.w[0]);
	run_pod(r, 1, "p1"); /* it is known by now */
	let_pass(r, 50);
	assert_int_equal(r->claims_read, 2);
	rig_free(r);
}

static void a_pod_that_has_no_right_is_refused_each_time(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	for (unsigned i = 0; i < 2; i++) {
		(void)create(r, i, "stranger", 0, "numafit.io/claim=u1-0");
		assert_non_null(strstr(r->refusal, "is not reserved for this pod"));
		UNTIL(r, r->claims_read == 2 + i && !r->d.dra->tasks.nr);
	}
	rig_free(r);
}

/* In a storm of pods each would have the claims of all others read again. */
static void a_claim_from_a_template_is_not_read_again_for_another_pod(void **state)
{
	struct rig *r = begin();
	const struct pod pod = {.uid = "p2", .ns = "shop", .name = "p2"};
	const struct api_claim *c = put_claim(r, 0, four_on_4);
	const struct api_claim *own = put_claim(r, 1,
		(struct api_claim){
			"u2", "c2", .device = {"numa0"}, .cpus = {2}, .from_template = true});

	(void)state;
	assert_prepared(r, prepare(r, own), own);
	dra_note_pod(r->d.dra, &pod);
	assert_int_equal(r->d.dra->tasks.nr, 0);
	assert_prepared(r, prepare(r, c), c);
	dra_note_pod(r->d.dra, &pod);
	assert_int_equal(r->d.dra->tasks.nr, 1);
	UNTIL(r, r->claims_read == 3 && !r->d.dra->tasks.nr);
	restart_daemon(r); /* the journal has it, too */
	const unsigned before = r->claims_read;
	dra_note_pod(r->d.dra, &pod);
	UNTIL(r, r->claims_read > before && !r->d.dra->tasks.nr);
	assert_held(r, 2);
	assert_true(held(r, own, 0)->request.for_one_pod);
	assert_false(held(r, c, 0)->request.for_one_pod);
	rig_free(r);
}

static void files_of_claims_that_are_not_held_are_swept_at_the_start(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	write_text(r, cdi_file("u9"), "{}");
	write_text(r, "cdi/vendor.com-gpu.json", "{}");
	make_directory(r, metadata_of("u9"));
	restart_daemon(r);
	assert_false(is_there(r, cdi_file("u9")));
	assert_false(is_there(r, metadata_of("u9")));
	assert_true(is_there(r, "cdi/vendor.com-gpu.json"));
	assert_true(is_there(r, cdi_file("u1")));
	assert_true(is_there(r, metadata_of("u1")));
	rig_free(r);
}

/* Without the journal */

static void a_lost_journal_loses_no_claim(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	struct box *b = create(r, 0, "p0", 0, "numafit.io/claim=u1-0");
	restart_daemon_without_journal(r);
	UNTIL(r, nr_held(r) == 1 && !r->d.dra->tasks.nr);
	assert_cpus(r, c, 0, 1, 4);
	UNTIL(r, fake_container_cpus(&b->c).w[0] == held(r, c, 0)->decision.cpus.w[0]);
	assert_held(r, 1);
	assert_true(is_there(r, cdi_file("u1")));
	(void)create_plain(r, 1, "plain", 4);
	assert_prepared(r, prepare(r, c), c); /* nothing changes */
	stop(r, b);
	assert_unprepared(r, unprepare(r, c), "u1");
	assert_held(r, 0);
	rig_free(r);
}

static void a_claim_of_a_lost_journal_waits_for_the_api_server_and_for_room(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	r->status = 503;
	restart_daemon_without_journal(r);
	UNTIL(r, r->d.dra->tasks.nr && *r->d.dra->tasks.at[0]->why);
	assert_true(is_there(r, cdi_file("u1")));
	(void)create(r, 0, "p0", 0, "numafit.io/claim=u1-0");
	assert_non_null(strstr(r->refusal, "is not prepared on this node"));
	struct box *b = create_plain(r, 1, "plain", 8); /* all of the claim's NUMA node */
	r->status = 0;
	UNTIL(r, r->d.dra->tasks.nr && strstr(r->d.dra->tasks.at[0]->why, "0 CPUs"));
	stop(r, b);
	UNTIL(r, nr_held(r) == 1);
	assert_cpus(r, c, 0, 1, 4);
	rig_free(r);
}

static void a_claim_of_a_lost_journal_that_is_for_nobody_is_not_held(void **state)
{
	static const struct api_claim now[] = {
		{"u3", "c1", .device = {"numa4"}, .cpus = {4}},            /* made anew */
		{"u1", "c1", .pod = "", .device = {"numa4"}, .cpus = {4}}, /* for no pod */
		{"u1", "c1", .not_allocated = true},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof now / sizeof *now; i++) {
		struct rig *r = begin();
		const struct api_claim *c = put_claim(r, 0, four_on_4);

		assert_prepared(r, prepare(r, c), c);
		r->claim[0] = now[i];
		restart_daemon_without_journal(r);
		UNTIL(r, !is_there(r, cdi_file("u1")));
		assert_false(is_there(r, metadata_of("u1")));
		assert_held(r, 0);
		rig_free(r);
	}
}

static void an_unprepare_ends_what_would_hold_a_claim_of_a_lost_journal(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	assert_prepared(r, prepare(r, c), c);
	r->silent = true;
	restart_daemon_without_journal(r);
	UNTIL(r, r->kept);
	assert_unprepared(r, unprepare(r, c), "u1");
	assert_int_equal(r->d.dra->tasks.nr, 0);
	assert_false(is_there(r, cdi_file("u1")));
	assert_held(r, 0);
	rig_free(r);
}

/* The slice */

/* The NUMA nodes as they are published, with their CPUs: "4:8 0:7". */
static const char *published(struct rig *r)
{
	static char out[64];
	struct slice_node node[SLICE_DEVICES_MAX];
	size_t nr = dra_wanted(r->d.dra, node);
	struct text t;

	text_init(&t, out, sizeof out);
	for (size_t i = 0; i < nr; i++)
		text_add(&t, "%s%u:%u", i ? " " : "", (unsigned)node[i].node_id,
			(unsigned)node[i].cpus);
	return out;
}

/* Prepare a claim of so many CPUs of that NUMA node, and see what is published then. */
static const char *after(struct rig *r, unsigned i, const char *device, unsigned cpus)
{
	static char name[CLAIMS][2][8];
	struct api_claim c = {
		.uid = name[i][0], .name = name[i][1], .device = {device}, .cpus = {cpus}};

	(void)snprintf(name[i][0], sizeof name[i][0], "u%u", i);
	(void)snprintf(name[i][1], sizeof name[i][1], "c%u", i);
	(void)put_claim(r, i, c);
	assert_prepared(r, prepare(r, &r->claim[i]), &r->claim[i]);
	return published(r);
}

static void a_numa_node_on_several_sockets_has_no_socket(void **state)
{
	struct rig *r = begin();
	struct slice_node node[SLICE_DEVICES_MAX];

	(void)state;
	assert_true(dra_wanted(r->d.dra, node) > 0);
	assert_false(node[0].many_sockets);
	const struct topo *t = ledger_view(engine_ledger(r->d.engine))->topo;
	struct topo *crossing = &r->d.topo; /* which the ledger has by reference */

	assert_ptr_equal(t, crossing);
	for (unsigned n = 0; n < t->ids.nr; n++)
		crossing->cpu[cpuset_next(&t->node[n].cpus, 0)].socket = 7;
	const size_t nr = dra_wanted(r->d.dra, node);
	for (size_t i = 0; i < nr; i++)
		assert_true(node[i].many_sockets && !node[i].socket);
	rig_free(r);
}

static void the_numa_node_with_least_left_comes_first(void **state)
{
	struct rig *r = begin();

	(void)state;
	assert_string_equal(published(r), "0:7 4:8");
	assert_string_equal(after(r, 0, "numa4", 4), "4:8 0:7"); /* 4 of them are left, and 7 */
	assert_string_equal(after(r, 1, "numa0", 3), "4:8 0:7"); /* as many */
	assert_string_equal(after(r, 2, "numa0", 1), "4:8 0:7"); /* one less: not worth a change */
	assert_string_equal(after(r, 3, "numa0", 1), "0:7 4:8");
	assert_string_equal(after(r, 4, "numa4", 3), "0:7 4:8");
	assert_string_equal(after(r, 5, "numa4", 1), "4:8 0:7"); /* 0 and 2 */
	rig_free(r);
}

static void or_the_one_with_most_left(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	r->order = "least-allocated";
	start_daemon(r);
	assert_string_equal(published(r), "0:7 4:8");
	assert_string_equal(after(r, 0, "numa0", 1), "4:8 0:7"); /* 8 are left, and 6 */
	assert_string_equal(after(r, 1, "numa4", 3), "4:8 0:7"); /* 5 and 6 */
	assert_string_equal(after(r, 2, "numa4", 1), "0:7 4:8"); /* 4 and 6 */
	rig_free(r);
}

static void what_containers_have_is_not_published(void **state)
{
	struct rig *r = begin();

	(void)state;
	struct box *b = create_plain(r, 0, "plain", 8);
	assert_string_equal(published(r), "0:7");
	stop(r, b);
	(void)create_plain(r, 0, "plain", 3);
	assert_int_equal(strlen(published(r)), strlen("0:7 4:8"));
	rig_free(r);
}

static void the_slice_is_written_in_that_order(void **state)
{
	struct rig *r = begin();

	(void)state;
	(void)after(r, 0, "numa4", 4);
	UNTIL(r, strstr(r->slice, "\"numa4\"") && strstr(r->slice, "\"numa0\"") &&
			 strstr(r->slice, "\"numa4\"") < strstr(r->slice, "\"numa0\""));
	rig_free(r);
}

/* Its end */

static void a_daemon_that_stops_answers_what_waits(void **state)
{
	struct rig *r = begin();
	const struct api_claim *c = put_claim(r, 0, four_on_4);

	(void)state;
	r->silent = true;
	const struct dra_call *call = begin_prepare(r, c);
	UNTIL(r, r->kept);
	stop_daemon(r);
	UNTIL(r, call->over);
	start_daemon(r);
	r->silent = false;
	assert_prepared(r, prepare(r, c), c);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_claim_that_was_deleted_is_given_back),
		cmocka_unit_test(a_claim_that_another_node_has_by_now_is_given_back),
		cmocka_unit_test(a_claim_that_was_deleted_is_kept_for_a_container_that_runs),
		cmocka_unit_test(a_claim_is_kept_while_the_api_server_is_away),
		cmocka_unit_test(a_pod_that_comes_later_gets_in_after_one_refusal),
		cmocka_unit_test(a_pod_that_comes_later_has_its_claim_read_at_its_sandbox),
		cmocka_unit_test(a_pod_that_has_no_right_is_refused_each_time),
		cmocka_unit_test(a_claim_from_a_template_is_not_read_again_for_another_pod),
		cmocka_unit_test(files_of_claims_that_are_not_held_are_swept_at_the_start),
		cmocka_unit_test(a_lost_journal_loses_no_claim),
		cmocka_unit_test(a_claim_of_a_lost_journal_waits_for_the_api_server_and_for_room),
		cmocka_unit_test(a_claim_of_a_lost_journal_that_is_for_nobody_is_not_held),
		cmocka_unit_test(an_unprepare_ends_what_would_hold_a_claim_of_a_lost_journal),
		cmocka_unit_test(a_numa_node_on_several_sockets_has_no_socket),
		cmocka_unit_test(the_numa_node_with_least_left_comes_first),
		cmocka_unit_test(or_the_one_with_most_left),
		cmocka_unit_test(what_containers_have_is_not_published),
		cmocka_unit_test(the_slice_is_written_in_that_order),
		cmocka_unit_test(a_daemon_that_stops_answers_what_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
