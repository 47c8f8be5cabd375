/* Records of all kinds, at random: each is the same once it was written and read. */
#include "journal_json_rig.h"

static const struct node_ids ids = {.nr = 6, .id = {0, 8, 250, 251, 254, 255}};

/* xorshift64: the same records each time */
static uint64_t seed = 0x9e3779b97f4a7c15;
static uint64_t random_u64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static unsigned below(unsigned nr)
{
	return (unsigned)(random_u64() % nr);
}

/* Numbers of all sizes, the largest ones among them. */
static uint64_t any_u64(void)
{
	return below(8) ? random_u64() >> below(64) : UINT64_MAX - below(2);
}

/* Strings with everything that JSON must escape, and with characters of each length. */
static const char *any_string(void)
{
	static const char *const words[] = {"", "web", "a\"b\\c/", "\x01\x1f\x7f\n\r\t\b\f",
		"caf\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "{\"a\":[]}",
		"b6d1c2f0-0000-4000-8000-000000000001", "\xef\xbf\xbd"};

	return words[below(sizeof words / sizeof *words)];
}

static struct cpuset any_cpus(void)
{
	struct cpuset set = {0};

	for (unsigned i = 0; i < CPUSET_WORDS; i++)
		set.w[i] = below(2) ? 0 : random_u64() & random_u64();
	return set;
}

static struct nodeset any_nodes(void)
{
	return (struct nodeset){random_u64() & nodeset_first(ids.nr).bits};
}

static struct pod_totals any_totals(void)
{
	if (below(2))
		return (struct pod_totals){0};
	return (struct pod_totals){true, any_u64(), any_u64()};
}

/* Devices of some resources, the same as long as no other call is made. */
static const struct device_resource *any_attached(size_t nr)
{
	static struct device devices[POD_DEVICES_MAX][3];
	static struct device_resource attached[POD_DEVICES_MAX];

	for (size_t i = 0; i < nr; i++) {
		attached[i] = (struct device_resource){any_string(), below(4), devices[i]};
		for (size_t k = 0; k < attached[i].nr; k++)
			devices[i][k] = (struct device){
				any_string(), below(2), below(2), any_nodes(), below(2)};
	}
	return attached;
}

/* A scheduler's advice, the same as long as no other call is made with that place; or NULL. */
static const struct advice_ask *any_advice(unsigned place)
{
	static struct advice_ask hints[5];

	hints[place] = (struct advice_ask){below(NR_ADVICE_VERDICTS), below(NR_ADVICE_MODES),
		below(2), any_nodes(), any_cpus()};
	return below(2) ? &hints[place] : NULL;
}

/* A pod that is known, or NULL. */
static const struct pod *any_pod(unsigned nr)
{
	static struct ask containers[4];
	static struct ask own;
	static struct pod pod;
	size_t nr_attached = below(POD_DEVICES_MAX + 1);

	memset(containers, 0, sizeof containers);
	pod = (struct pod){.pod_level = below(2),
		.nr = nr,
		.container = containers,
		.attached = any_attached(nr_attached),
		.nr_attached = nr_attached,
		.has_policy = below(2)};
	if (pod.has_policy)
		pod.policy = below(NR_POLICIES);
	for (unsigned i = 0; i < nr; i++) {
		containers[i].name = any_string();
		containers[i].kind = below(NR_CONTAINER_KINDS);
		containers[i].cpu_milli = any_u64();
		containers[i].nr_memory = below(TOPO_KINDS + 1);
		for (unsigned m = 0; m < containers[i].nr_memory; m++)
			containers[i].memory[m] = (struct memory_ask){any_u64(), any_u64()};
		containers[i].nr_devices = nr_attached ? below(POD_DEVICES_MAX + 1) : 0;
		for (unsigned m = 0; m < containers[i].nr_devices; m++)
			containers[i].device[m] =
				(struct device_ask){below((unsigned)nr_attached), any_u64()};
		containers[i].tokens = below(2) ? any_u64() : 0;
		containers[i].guaranteed = below(2);
		containers[i].has_devices = below(2);
		containers[i].wishes_nodes = below(2);
		containers[i].wishes.movable = below(NR_WISH_MOVABLE);
		containers[i].advice = any_advice(i);
	}
	own = (struct ask){.name = "",
		.cpu_milli = any_u64(),
		.nr_memory = 1,
		.memory = {{0, any_u64()}},
		.guaranteed = below(2),
		.whole_pod = below(2)};
	pod.own = below(2) ? &own : NULL;
	return below(2) ? &pod : NULL;
}

static struct request any_request(const char *id)
{
	struct request r = {
		.container_id = id,
		.ask.name = any_string(),
		.ask.kind = below(NR_CONTAINER_KINDS),
		.ask.place = below(9),
		.pod = {.sandbox_id = any_string(),
			.uid = any_string(),
			.ns = any_string(),
			.name = any_string(),
			.qos = below(NR_QOS),
			.pod_level = below(2),
			.totals = any_totals()},
		.ask.guaranteed = below(2),
		.ask.has_devices = below(2),
		.ask.devices = below(NR_DEVICES_SHOWN),
		.ask.wishes_nodes = below(2),
		.ask.wishes.movable = below(NR_WISH_MOVABLE),
		.created_at_ns = (int64_t)any_u64(),
		.ask.cpu_milli = any_u64(),
		.ask.cpu_limit_milli = any_u64(),
		.ask.nr_memory = below(TOPO_KINDS + 1),
		.cpus = any_string(),
		.mems = any_string(),
		.allocated = below(2) ? any_string() : NULL,
		.apart = below(NR_POD_APARTS),
		.owner = below(NR_TOKEN_OWNERS),
		.claims = below(NR_CLAIMS_KNOWN),
		.ask.advice = any_advice(4),
		.pod.has_policy = below(2),
	};

	if (r.pod.has_policy)
		r.pod.policy = below(NR_POLICIES);
	for (unsigned i = 0; i < r.ask.nr_memory; i++)
		r.ask.memory[i] = (struct memory_ask){any_u64(), any_u64()};
	return r;
}

static const struct reasons *any_reasons(void)
{
	static struct reasons r;

	memset(&r, 0, sizeof r);
	r.nr = 1 + below(REASONS_RESOURCES);
	for (unsigned i = 0; i < r.nr; i++) {
		r.resource[i].kind = below(FAMILY_CAPACITY + 1);
		r.resource[i].masks = any_u64();
		r.resource[i].smallest = below(NODES_MAX);
		r.resource[i].nr_best = below(REASONS_BEST + 1);
		for (unsigned m = 0; m < r.resource[i].nr_best; m++)
			r.resource[i].best[m] = any_nodes();
	}
	r.affinity = (struct hint){any_nodes(), below(2), below(2)};
	r.cut_short = below(2);
	return below(4) ? &r : NULL;
}

static struct decision any_decision(bool admit)
{
	static const char *const reasons[] = {"TopologyAffinityError", "UnexpectedAdmissionError"};
	struct decision d = {
		.admit = admit,
		.source = below(NR_DECISION_SOURCES),
		.policy = below(NR_POLICIES),
		.exclusive = below(2),
		.cpus = any_cpus(),
		.mems = any_nodes(),
		.has_affinity = below(2),
		.preferred = below(2),
		.nr_blocks = below(TOPO_KINDS + 1),
		.placed_by = (enum placed_by)below(NR_PLACED_BY),
		.left_on = any_cpus(),
		.within_pod = below(2),
		.lost_cpus = below(2),
		.moved_ms = below(2) ? (int64_t)any_u64() : 0,
		.apart = below(NR_POD_APARTS),
		.cut_short = below(2),
		.steps = below(2) ? any_u64() : 0,
		.reason = admit ? NULL : decision_reason(reasons[below(2)]),
		.reasons = any_reasons(),
	};

	if (d.has_affinity)
		d.nodes = any_nodes();
	if (below(2))
		d.advice = (struct advice_result){true, below(NR_ADVICE_VERDICTS),
			below(NR_ADVICE_VERDICTS), below(NR_ADVICE_MODES), any_nodes(),
			any_nodes()};
	for (unsigned i = 0; i < d.nr_blocks; i++)
		d.blocks[i] = (struct memory_block){below(TOPO_KINDS), any_nodes(), any_u64()};
	(void)text_copy(d.message, sizeof d.message, any_string());
	return d;
}

static void assert_same_totals(const struct pod_totals *a, const struct pod_totals *b)
{
	assert_int_equal(a->known, b->known);
	assert_int_equal(a->cpu_milli, b->cpu_milli);
	assert_int_equal(a->memory_bytes, b->memory_bytes);
}

static void assert_same_attached(
	const struct device_resource *a, size_t nr_a, const struct device_resource *b, size_t nr_b)
{
	assert_int_equal(nr_a, nr_b);
	for (size_t i = 0; i < nr_a; i++) {
		assert_string_equal(a[i].name, b[i].name);
		assert_int_equal(a[i].nr, b[i].nr);
		for (size_t k = 0; k < a[i].nr; k++) {
			const struct device *x = &a[i].device[k], *y = &b[i].device[k];

			assert_string_equal(x->id, y->id);
			assert_int_equal(x->has_topology, y->has_topology);
			assert_int_equal(x->placed, y->placed);
			assert_true(nodeset_equal(x->nodes, y->nodes));
			assert_int_equal(x->healthy, y->healthy);
		}
	}
}

static void assert_same_advice(const struct advice_ask *a, const struct advice_ask *b)
{
	assert_int_equal(!a, !b);
	if (!a)
		return;
	assert_int_equal(a->so_far, b->so_far);
	assert_int_equal(a->mode, b->mode);
	assert_int_equal(a->repair, b->repair);
	assert_true(nodeset_equal(a->asked, b->asked));
}

static void assert_same_flags(const struct ask *a, const struct ask *b)
{
	assert_int_equal(a->has_devices, b->has_devices);
	assert_int_equal(a->devices, b->devices);
	assert_int_equal(a->wishes_nodes, b->wishes_nodes);
	assert_int_equal(a->wishes.movable, b->wishes.movable);
}

static void assert_same_own(const struct ask *a, const struct ask *b)
{
	assert_int_equal(!a, !b);
	if (!a)
		return;
	assert_int_equal(a->cpu_milli, b->cpu_milli);
	assert_true(ask_same_memory(a, b));
	assert_int_equal(a->guaranteed, b->guaranteed);
	assert_int_equal(a->whole_pod, b->whole_pod);
}

static void assert_same_pod(const struct pod *a, const struct pod *b)
{
	assert_int_equal(!a, !b);
	if (!a)
		return;
	assert_int_equal(a->pod_level, b->pod_level);
	assert_same_own(a->own, b->own);
	assert_int_equal(a->has_policy, b->has_policy);
	assert_int_equal(a->policy, b->policy);
	assert_int_equal(a->nr, b->nr);
	for (unsigned i = 0; i < a->nr; i++) {
		assert_string_equal(a->container[i].name, b->container[i].name);
		assert_int_equal(a->container[i].kind, b->container[i].kind);
		assert_int_equal(a->container[i].guaranteed, b->container[i].guaranteed);
		assert_same_flags(&a->container[i], &b->container[i]);
		assert_int_equal(a->container[i].cpu_milli, b->container[i].cpu_milli);
		assert_int_equal(a->container[i].nr_memory, b->container[i].nr_memory);
		assert_memory_equal(a->container[i].memory, b->container[i].memory,
			sizeof a->container[i].memory);
		assert_int_equal(a->container[i].tokens, b->container[i].tokens);
		assert_same_advice(a->container[i].advice, b->container[i].advice);
		assert_int_equal(a->container[i].nr_devices, b->container[i].nr_devices);
		for (unsigned k = 0; k < a->container[i].nr_devices; k++) {
			assert_int_equal(a->container[i].device[k].resource,
				b->container[i].device[k].resource);
			assert_int_equal(
				a->container[i].device[k].count, b->container[i].device[k].count);
		}
	}
	assert_same_attached(a->attached, a->nr_attached, b->attached, b->nr_attached);
}

static void assert_same_request(const struct request *a, const struct request *b)
{
	assert_same_totals(&a->pod.totals, &b->pod.totals);
	assert_string_equal(a->container_id, b->container_id);
	assert_string_equal(a->ask.name, b->ask.name);
	assert_int_equal(a->ask.kind, b->ask.kind);
	assert_int_equal(a->ask.place, b->ask.place);
	assert_int_equal(a->apart, b->apart);
	assert_int_equal(a->owner, b->owner);
	assert_string_equal(a->pod.sandbox_id, b->pod.sandbox_id);
	assert_string_equal(a->pod.uid, b->pod.uid);
	assert_string_equal(a->pod.ns, b->pod.ns);
	assert_string_equal(a->pod.name, b->pod.name);
	assert_int_equal(a->pod.qos, b->pod.qos);
	assert_int_equal(a->pod.pod_level, b->pod.pod_level);
	assert_int_equal(a->ask.guaranteed, b->ask.guaranteed);
	assert_same_flags(&a->ask, &b->ask);
	assert_int_equal(a->ask.whole_pod, b->ask.whole_pod);
	assert_int_equal(a->created_at_ns, b->created_at_ns);
	assert_int_equal(a->ask.cpu_milli, b->ask.cpu_milli);
	assert_int_equal(a->ask.cpu_limit_milli, b->ask.cpu_limit_milli);
	assert_int_equal(a->ask.nr_memory, b->ask.nr_memory);
	assert_memory_equal(a->ask.memory, b->ask.memory, sizeof a->ask.memory);
	assert_string_equal(a->cpus, b->cpus);
	assert_string_equal(a->mems, b->mems);
	assert_null(a->placement);
	assert_same_advice(a->ask.advice, b->ask.advice);
	assert_int_equal(a->pod.has_policy, b->pod.has_policy);
	assert_int_equal(a->pod.policy, b->pod.policy);
	assert_int_equal(!a->allocated, !b->allocated);
	assert_string_equal(a->allocated ? a->allocated : "", b->allocated ? b->allocated : "");
	assert_same_attached(
		a->pod.attached, a->pod.nr_attached, b->pod.attached, b->pod.nr_attached);
}

static void assert_same_lease(const struct lease *a, const struct lease *b)
{
	assert_int_equal(!a, !b);
	if (!a)
		return;
	assert_int_equal(a->name, b->name);
	assert_int_equal(a->since_ms, b->since_ms);
	assert_int_equal(a->claimed, b->claimed);
	assert_int_equal(a->shown, b->shown);
	assert_memory_equal(&a->tokens, &b->tokens, sizeof a->tokens);
	assert_string_equal(a->user.container_id, b->user.container_id);
	assert_string_equal(a->user.container_name, b->user.container_name);
	assert_string_equal(a->user.pod_uid, b->user.pod_uid);
	assert_string_equal(a->user.pod_ns, b->user.pod_ns);
	assert_string_equal(a->user.pod_name, b->user.pod_name);
}

static void assert_same_decision(const struct decision *a, const struct decision *b)
{
	assert_int_equal(a->admit, b->admit);
	assert_int_equal(a->source, b->source);
	assert_int_equal(a->policy, b->policy);
	assert_int_equal(a->exclusive, b->exclusive);
	assert_int_equal(a->within_pod, b->within_pod);
	assert_true(cpuset_equal(&a->cpus, &b->cpus));
	assert_int_equal(a->mems.bits, b->mems.bits);
	assert_int_equal(a->has_affinity, b->has_affinity);
	assert_int_equal(a->nodes.bits, b->nodes.bits);
	assert_int_equal(a->preferred, b->preferred);
	assert_int_equal(a->cut_short, b->cut_short);
	assert_true(a->steps == b->steps);
	assert_int_equal(a->nr_blocks, b->nr_blocks);
	assert_int_equal(a->lease, b->lease);
	assert_int_equal(a->placed_by, b->placed_by);
	assert_true(cpuset_equal(&a->left_on, &b->left_on));
	assert_int_equal(a->lost_cpus, b->lost_cpus);
	assert_true(a->moved_ms == b->moved_ms);
	assert_int_equal(a->apart, b->apart);
	assert_int_equal(a->advice.looked_at, b->advice.looked_at);
	assert_int_equal(a->advice.verdict, b->advice.verdict);
	assert_int_equal(a->advice.cause, b->advice.cause);
	assert_int_equal(a->advice.mode, b->advice.mode);
	assert_true(nodeset_equal(a->advice.asked, b->advice.asked));
	assert_true(nodeset_equal(a->advice.given, b->advice.given));
	for (unsigned i = 0; i < a->nr_blocks; i++) {
		assert_int_equal(a->blocks[i].kind, b->blocks[i].kind);
		assert_int_equal(a->blocks[i].nodes.bits, b->blocks[i].nodes.bits);
		assert_int_equal(a->blocks[i].bytes, b->blocks[i].bytes);
	}
	assert_ptr_equal(a->reason, b->reason);
	assert_string_equal(a->message, b->message);
	assert_int_equal(!a->reasons, !b->reasons);
	if (a->reasons)
		assert_memory_equal(a->reasons, b->reasons, sizeof *a->reasons);
}

static void assert_same_record(const struct record *a, const struct record *b)
{
	assert_int_equal(a->seq, b->seq);
	assert_int_equal(a->time_ms, b->time_ms);
	assert_int_equal(a->op, b->op);
	assert_string_equal(a->cause, b->cause);
	assert_string_equal(a->container_id, b->container_id);
	assert_true(cpuset_equal(&a->pool, &b->pool));
	assert_int_equal(!a->request, !b->request);
	assert_int_equal(!a->decision, !b->decision);
	if (a->request)
		assert_same_request(a->request, b->request);
	if (a->decision)
		assert_same_decision(a->decision, b->decision);
	assert_same_pod(a->pod, b->pod);
	assert_same_lease(a->lease, b->lease);
	assert_int_equal(a->nr_parts, b->nr_parts);
	for (size_t i = 0; i < a->nr_parts; i++) {
		struct request read = a->parts[i].request;

		assert_null(read.container_id);
		read.container_id = "";
		assert_same_request(&read, &b->parts[i].request);
		assert_same_decision(&a->parts[i].decision, &b->parts[i].decision);
	}
}

static struct lease any_lease(void)
{
	struct lease l = {.name = any_u64(),
		.since_ms = (int64_t)any_u64(),
		.claimed = below(2),
		.shown = below(2)};

	(void)text_copy(l.user.container_id, sizeof l.user.container_id, any_string());
	(void)text_copy(l.user.pod_uid, sizeof l.user.pod_uid, any_string());
	(void)text_copy(l.user.pod_name, sizeof l.user.pod_name, any_string());
	for (unsigned i = 0; i < below(9); i++)
		tokenset_add(&l.tokens, (struct token){below(ids.nr), below(CPUSET_BITS)});
	return l;
}

static void any_record_comes_back_bit_for_bit(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RANDOM_RECORDS; i++) {
		enum record_op op = below(NR_RECORD_OPS);
		bool decided = op == RECORD_GRANT || op == RECORD_REFUSE;
		bool has_decision = decided || op == RECORD_MOVE;
		const char *id = any_string();
		struct request req = any_request(id);
		struct decision d = any_decision(op != RECORD_REFUSE);
		unsigned nr_parts = below(4);
		bool whole = op == RECORD_HOLD && nr_parts && below(2);
		const struct pod *pod = op == RECORD_REFUSE || (op == RECORD_HOLD && nr_parts)
						? any_pod(nr_parts - whole)
						: NULL;
		struct record_part parts[3];
		for (unsigned p = 0; p < 3; p++) {
			parts[p] = (struct record_part){any_request(""), any_decision(true)};
			parts[p].decision.source = SOURCE_HELD;
			parts[p].request.ask.whole_pod = whole && !p;
		}
		struct lease lease = any_lease();
		const struct defrag_figure figures[2] = {
			{any_string(), any_u64()}, {any_string(), any_u64()}};
		const struct move_basis basis = {
			NULL, below(DEFRAG_MOVES_MAX + 1), any_u64(), figures, below(3)};
		const struct kept_note quota = {any_string(), any_string()};
		const struct kept_note quiet = {NULL, any_string()};
		if (decided) {
			req.pod.nr_attached = below(POD_DEVICES_MAX + 1);
			req.pod.attached = any_attached(req.pod.nr_attached);
		}
		struct record r = {any_u64(), (int64_t)any_u64(), op, any_string(), id,
			decided ? &req : NULL, has_decision ? &d : NULL, pod,
			op == RECORD_MOVE && below(2) ? &basis : NULL,
			op == RECORD_HOLD ? parts : NULL, op == RECORD_HOLD ? nr_parts : 0,
			op >= RECORD_ALLOCATE && op <= RECORD_LEASE ? &lease : NULL,
			op == RECORD_QUOTA ? &quota : NULL, op == RECORD_QUIET ? &quiet : NULL,
			any_cpus(), false};
		struct decoded_record back;
		struct arena a;
		struct err e;

		arena_init(&a, ARENA_BYTES);
		int len = journal_json_record(&r, &ids, line, sizeof line, &e);
		assert_true(len > 0);
		assert_int_equal(strlen(line), len);
		assert_null(strchr(line, '\n'));
		if (journal_json_parse(line, (size_t)len, &ids, &a, &back, &e))
			fail_msg("%s: %s", e.text, line);
		assert_same_record(&back.record, &r);
		arena_fini(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_record_comes_back_bit_for_bit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
