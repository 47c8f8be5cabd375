#include <questions/node_events_json.h>

#include <codec/fields_json.h>
#include <codec/journal_json.h>
#include <codec/placement_json.h>
#include <codec/pod_json.h>
#include <codec/wishes.h>
#include <questions/policy_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/engine.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <string.h>

/* One decision with its reasons. */
enum { RECORD_BYTES_MAX = 256 << 10 };

/* A pod and a container as a step has them. */
struct input {
	bool has_qos, has_cpu, has_memory;
	struct request request;
	const char *placement;
};

struct run {
	const struct topo *t;
	const struct settings *s;
	bool reasons;
	struct engine *engine;
	struct arena *arena;
	char *line; /* RECORD_BYTES_MAX */
	struct {
		VEC(struct pod *);
	} pods;                  /* in the arena */
	json_t *parts, *adopted; /* of this step, as recorded */
	struct update_list updates;
};

/* Reading */

#define AT(member) offsetof(struct memory_ask, member)
static const struct field ask_rows[] = {
	FIELD("page_bytes", U64, AT(page_bytes), .optional = true),
	FIELD("bytes", U64, AT(bytes)),
};
static const struct fields ask_fields = FIELDS(ask_rows, struct memory_ask);
#undef AT

#define AT(member) offsetof(struct pod_totals, member)
static const struct field totals_rows[] = {
	FIELD("cpu_milli", U64, AT(cpu_milli)),
	FIELD("memory_bytes", U64, AT(memory_bytes)),
};
static const struct fields totals_fields = FIELDS(totals_rows, struct pod_totals);
#undef AT

#define AT(member) offsetof(struct input, member)
static const struct field input_rows[] = {
	FIELD("sandbox_id", STRING, AT(request.pod.sandbox_id), .optional = true),
	FIELD("pod_uid", STRING, AT(request.pod.uid), .optional = true),
	FIELD("pod_namespace", STRING, AT(request.pod.ns), .optional = true),
	FIELD("pod_name", STRING, AT(request.pod.name), .optional = true),
	FIELD("qos", NAME, AT(request.pod.qos), .has_flag = true, .flag = AT(has_qos),
		.words = qos_words, .max = NR_QOS),
	FIELD("totals", OBJECT, AT(request.pod.totals), .has_flag = true,
		.flag = AT(request.pod.totals.known), .fields = &totals_fields),
	FIELD("container_id", STRING, AT(request.container_id), .optional = true),
	FIELD("container_name", STRING, AT(request.ask.name), .optional = true),
	FIELD("created_at_ns", I64, AT(request.created_at_ns), .optional = true),
	FIELD("cpu_milli", U64, AT(request.ask.cpu_milli), .has_flag = true, .flag = AT(has_cpu)),
	FIELD("cpu_limit_milli", U64, AT(request.ask.cpu_limit_milli), .optional = true),
	FIELD("memory", ARRAY, AT(request.ask.memory), .count = AT(request.ask.nr_memory),
		.has_flag = true, .flag = AT(has_memory), .max = TOPO_KINDS, .fields = &ask_fields),
	FIELD("cpus", STRING, AT(request.cpus), .optional = true),
	FIELD("mems", STRING, AT(request.mems), .optional = true),
	FIELD("placement", STRING, AT(placement), .optional = true),
};
static const struct fields input_fields = FIELDS(input_rows, struct input);
#undef AT

#define POD_KEYS "sandbox_id", "pod_uid", "pod_namespace", "pod_name", "qos", "totals", "pod"
#define CONTAINER_KEYS                                                                             \
	POD_KEYS, "container_id", "container_name", "created_at_ns", "cpu_milli",                  \
		"cpu_limit_milli", "memory", "cpus", "mems"
static const char *const pod_keys[] = {"op", POD_KEYS, NULL};
static const char *const container_keys[] = {"op", CONTAINER_KEYS, NULL};
static const char *const running_keys[] = {CONTAINER_KEYS, "placement", NULL};
static const char *const sync_keys[] = {"op", "containers", "sandboxes", NULL};

static const char *first_string(const char *a, const char *b, const char *c)
{
	return a ? a : b ? b : c;
}

static const struct pod *events_find_pod(const struct run *r, const char *sandbox_id)
{
	for (size_t i = r->pods.nr; i-- > 0;)
		if (text_equal(r->pods.at[i]->sandbox_id, sandbox_id))
			return r->pods.at[i];
	return NULL;
}

/* What the step does not say of the pod: from its v1.Pod, or from the run-pod before. */
static void complete_pod(
	const json_t *v, const struct pod *spec, const struct pod *before, struct input *input)
{
	const json_t *metadata = json_object_get(v, "metadata");
	struct pod *p = &input->request.pod;
	const struct pod zeros = {0}, *known = before ? before : &zeros;
	const struct pod *of = v ? spec : known; /* where its containers are */
	const char *uid = json_string_value(json_object_get(metadata, "uid"));

	p->uid = first_string(p->uid, uid, known->uid);
	p->sandbox_id = first_string(p->sandbox_id, p->uid, "");
	p->uid = first_string(p->uid, p->sandbox_id, "");
	p->ns = first_string(p->ns, json_string_value(json_object_get(metadata, "namespace")),
		first_string(known->ns, "default", NULL));
	p->name = first_string(p->name, json_string_value(json_object_get(metadata, "name")),
		first_string(known->name, p->uid, NULL));
	p->nr = of->nr;
	p->container = of->container;
	p->pod_level = of->pod_level;
	p->own = of->own;
	if (!input->has_qos)
		p->qos = v || before ? of->qos : QOS_GUARANTEED;
	if (!p->totals.known)
		p->totals = known->totals;
}

/* Of the annotations of its v1.Pod. */
static void take_wishes(const struct run *r, struct pod *spec)
{
	struct ask *containers = (struct ask *)(uintptr_t)spec->container; /* made for this step */
	const struct wishes_reader reader = {r->s, &r->t->ids, r->s->topology_scope == SCOPE_POD};
	struct wishes_ignored ignored;

	for (size_t i = 0; i < spec->nr; i++)
		wishes_take(&reader, spec, &containers[i], r->arena, &ignored);
}

static int events_read_input(
	struct run *r, json_t *v, const char *const *keys, struct input *input, struct err *e)
{
	const json_t *pod = json_object_get(v, "pod");
	struct pod spec;
	const struct fields_context context = {.ids = &r->t->ids, .arena = r->arena};
	int rc = json_want_object(v, keys, e);

	*input = (struct input){0};
	if (!rc)
		rc = fields_read(v, &input_fields, input, &context, e);
	if (rc)
		return rc;
	if (pod)
		rc = pod_json_read_ask(pod, NULL, 0, r->arena, r->s, &spec, e);
	if (rc)
		return err_add(e, rc, "pod");
	if (pod) {
		const char *said = spec.ns && *spec.ns ? spec.ns : NULL;

		spec.ns = first_string(input->request.pod.ns, said, "default");
		take_wishes(r, &spec);
	}
	const char *sandbox =
		first_string(input->request.pod.sandbox_id, input->request.pod.uid, "");
	complete_pod(pod, &spec, events_find_pod(r, sandbox), input);
	return 0;
}

static int events_read_pod(struct run *r, json_t *step, struct input *input, struct err *e)
{
	int rc = events_read_input(r, step, pod_keys, input, e);

	if (!rc && !*input->request.pod.sandbox_id)
		rc = err_set(e, EINVAL, "sandbox_id is missing");
	return rc;
}

/* What the pod's spec says that the container asks for. */
static void ask_as_in_spec(const struct ask *c, struct input *input)
{
	struct request *req = &input->request;

	if (!input->has_cpu)
		req->ask.cpu_milli = c->cpu_milli;
	if (!input->has_memory)
		req->ask.nr_memory = ask_memory(c, req->ask.memory);
	req->ask.wishes = c->wishes;
	req->ask.odd_wish = c->odd_wish;
	req->ask.advice = c->advice;
}

static int events_name_container(struct run *r, struct request *req, struct err *e)
{
	const char *sandbox = req->pod.sandbox_id;

	req->ask.name = first_string(req->ask.name, "main", NULL);
	if (!req->container_id) {
		size_t cap = strlen(sandbox) + strlen(req->ask.name) + sizeof ".";
		char *id = arena_alloc(r->arena, cap);
		struct text t;

		if (!id)
			return err_set(e, ENOMEM, "too large");
		text_init(&t, id, cap);
		text_add(&t, "%s%s%s", sandbox, *sandbox ? "." : "", req->ask.name);
		req->container_id = id;
	}
	if (!*req->container_id || strchr(req->container_id, '/'))
		return err_set(e, EINVAL, "container_id: \"%.64s\": should be a word without '/'",
			req->container_id);
	return 0;
}

static int events_read_container(
	struct run *r, json_t *v, const char *const *keys, struct input *input, struct err *e)
{
	struct request *req = &input->request;
	int rc = events_read_input(r, v, keys, input, e);

	if (!rc)
		rc = events_name_container(r, req, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < req->pod.nr; i++)
		if (text_equal(req->pod.container[i].name, req->ask.name))
			ask_as_in_spec(&req->pod.container[i], input);
	req->cpus = first_string(req->cpus, "", NULL);
	req->mems = first_string(req->mems, "", NULL);
	return 0;
}

/* Decisions, as the journal holds them */

static json_t *decision_json(const struct run *r, const struct decision *d)
{
	const struct record record = {
		.op = d->admit ? RECORD_GRANT : RECORD_REFUSE,
		.cause = "",
		.container_id = "",
		.decision = d,
	};
	json_t *line = NULL;
	int len = journal_json_record(&record, &r->t->ids, r->line, RECORD_BYTES_MAX, NULL);

	if (len < 0 || json_parse(r->line, (size_t)len, &line, NULL))
		abort(); /* our own writing, and a decision has its limits */
	json_t *decision = json_incref(json_object_get(line, "decision"));
	json_decref(line);
	if (!r->reasons)
		(void)json_object_del(decision, "reasons");
	return decision;
}

static void add_decision(const struct run *r, const struct decision *d, json_t *to)
{
	(void)json_object_update_new(to, decision_json(r, d));
}

static int on_record(void *ctx, const struct record *record, struct err *e)
{
	struct run *r = ctx;

	(void)e;
	for (size_t i = 0; i < record->nr_parts; i++) {
		const struct record_part *part = &record->parts[i];
		json_t *v = json_pack("{s:s, s:s}", "container_name", part->request.ask.name,
			"kind", container_kind_words[part->request.ask.kind]);

		add_decision(r, &part->decision, v);
		(void)json_array_append_new(r->parts, v);
	}
	if (record->op == RECORD_GRANT && text_equal(record->cause, "adopt")) {
		json_t *v = json_pack("{s:s}", "container_id", record->container_id);

		add_decision(r, record->decision, v);
		(void)json_array_append_new(r->adopted, v);
	}
	return 0;
}

/* Steps */

static int step_run_pod(struct run *r, json_t *step, json_t *result, struct err *e)
{
	struct pod *known = arena_alloc(r->arena, sizeof *known);
	struct decision d;
	struct input input;
	int rc = known ? events_read_pod(r, step, &input, e) : err_set(e, ENOMEM, "too large");

	if (rc)
		return rc;
	*known = input.request.pod;
	*vec_push(&r->pods) = known;
	engine_run_pod(r->engine, 0, known, &d);
	(void)json_object_set_new(result, "admit", json_boolean(d.admit));
	if (!d.admit)
		add_decision(r, &d, result);
	else if (known->container)
		(void)json_object_set(result, "parts", r->parts);
	return 0;
}

static int step_create(struct run *r, json_t *step, json_t *result, struct err *e)
{
	struct decision d;
	struct input input;
	int rc = events_read_container(r, step, container_keys, &input, e);

	if (rc)
		return rc;
	engine_create(r->engine, 0, &input.request, &d, &r->updates);
	add_decision(r, &d, result);
	return 0;
}

static int step_live(struct run *r, json_t *step, json_t *result, struct err *e)
{
	struct input input;
	int rc = events_read_container(r, step, container_keys, &input, e);

	(void)result;
	if (rc)
		return rc;
	engine_live(r->engine, 0, &input.request, NULL);
	engine_started(r->engine, 0, input.request.container_id);
	return 0;
}

/* What the step does not say stays as it is. */
static void ask_as_held(const struct holding *h, struct input *input)
{
	struct request *req = &input->request;

	if (!input->has_qos)
		req->pod.qos = h->request.pod.qos;
	if (!input->has_cpu)
		req->ask.cpu_milli = h->request.ask.cpu_milli;
	if (!input->has_memory) {
		req->ask.nr_memory = h->request.ask.nr_memory;
		memcpy(req->ask.memory, h->request.ask.memory, sizeof req->ask.memory);
	}
}

static int step_update(struct run *r, json_t *step, json_t *result, struct err *e)
{
	struct decision d;
	struct input input;
	int rc = events_read_container(r, step, container_keys, &input, e);

	if (rc)
		return rc;
	const struct holding *h = ledger_find(engine_ledger(r->engine), input.request.container_id);
	if (h)
		ask_as_held(h, &input);
	if (engine_update(r->engine, 0, &input.request, &d, &r->updates))
		add_decision(r, &d, result);
	return 0;
}

static int step_stop(struct run *r, json_t *step, json_t *result, struct err *e)
{
	struct input input;
	int rc = events_read_container(r, step, container_keys, &input, e);

	(void)result;
	if (!rc)
		engine_release(r->engine, 0, "stop", input.request.container_id, &r->updates);
	return rc;
}

static int events_step_remove(struct run *r, json_t *step, json_t *result, struct err *e)
{
	struct input input;
	int rc = events_read_container(r, step, container_keys, &input, e);

	(void)result;
	if (!rc)
		engine_forget(r->engine, 0, "remove", input.request.container_id);
	return rc;
}

static int step_pod_gone(struct run *r, json_t *step, json_t *result, struct err *e)
{
	struct input input;
	int rc = events_read_pod(r, step, &input, e);

	(void)result;
	if (!rc)
		engine_release_pod(r->engine, 0, "pod-gone", &input.request.pod);
	return rc;
}

/* All that runs, as it is read. */
struct running {
	struct request *requests;
	const struct placement **placed;
	const char **sandboxes;
	struct placement *placements;
};

static int events_read_running(
	struct run *r, const json_t *list, struct running *all, struct err *e)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct input input;
		int rc = events_read_container(r, json_array_get(list, i), running_keys, &input, e);

		if (!rc && input.placement)
			rc = placement_json_parse(
				input.placement, &r->t->ids, &all->placements[i], e);
		if (rc)
			return err_add(e, rc, "containers: element %zu", i);
		all->requests[i] = input.request;
		all->placed[i] = input.placement ? &all->placements[i] : NULL;
		all->sandboxes[i] = input.request.pod.sandbox_id;
	}
	return 0;
}

static int events_read_sandboxes(const json_t *list, const char **ids, struct err *e)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		ids[i] = json_string_value(json_array_get(list, i));
		if (!ids[i])
			return err_add(e, json_want("a string", json_array_get(list, i), e),
				"sandboxes: element %zu", i);
	}
	return 0;
}

static int events_synchronize(struct run *r, const json_t *containers, const json_t *sandboxes,
	struct running *all, struct err *e)
{
	struct inventory what = {
		.requests = all->requests,
		.placed = all->placed,
		.nr = json_array_size(containers),
		.sandbox_ids = all->sandboxes,
		.nr_sandboxes = json_array_size(sandboxes ? sandboxes : containers),
	};
	int rc = events_read_running(r, containers, all, e);

	if (!rc && sandboxes)
		rc = events_read_sandboxes(sandboxes, all->sandboxes, e);
	if (!rc)
		engine_synchronize(r->engine, 0, &what, &r->updates);
	return rc;
}

static int step_sync(struct run *r, json_t *step, json_t *result, struct err *e)
{
	const json_t *containers = json_object_get(step, "containers"),
		     *sandboxes = json_object_get(step, "sandboxes");
	size_t nr = json_array_size(containers), nr_sandboxes = json_array_size(sandboxes);
	int rc = json_only_keys(step, sync_keys, e);

	if (rc)
		return rc;
	if (!json_is_array(containers))
		return err_add(e, json_want("a list", containers, e), "containers");
	if (sandboxes && !json_is_array(sandboxes))
		return err_add(e, json_want("a list", sandboxes, e), "sandboxes");
	struct running all = {
		.requests = xcalloc(nr, sizeof *all.requests),
		.placed = xcalloc(nr, sizeof *all.placed),
		.placements = xcalloc(nr, sizeof *all.placements),
		.sandboxes = xcalloc(nr + nr_sandboxes, sizeof *all.sandboxes),
	};
	rc = events_synchronize(r, containers, sandboxes, &all, e);
	free(all.requests);
	free(all.placed);
	free(all.placements);
	free(all.sandboxes);
	(void)json_object_set(result, "adopted", r->adopted);
	return rc;
}

static const struct {
	const char *op;
	int (*run)(struct run *r, json_t *step, json_t *result, struct err *e);
} ops[] = {
	{"run-pod", step_run_pod},
	{"create", step_create},
	{"live", step_live},
	{"update", step_update},
	{"stop", step_stop},
	{"remove", events_step_remove},
	{"stop-pod", step_pod_gone},
	{"remove-pod", step_pod_gone},
	{"sync", step_sync},
};
enum { NR_OPS = sizeof ops / sizeof *ops };

static size_t events_find_op(const char *op)
{
	size_t i = 0;

	while (i < NR_OPS && !text_equal(op, ops[i].op))
		i++;
	return i;
}

bool node_events_has(const char *op)
{
	return op && events_find_op(op) < NR_OPS;
}

/* What must be updated with the reply, and the pool then. */
static void end_of_answer(const struct run *r, json_t *result)
{
	char cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX];
	json_t *updates = json_array();

	for (size_t i = 0; i < r->updates.nr; i++) {
		const struct update *u = &r->updates.at[i];

		(void)json_array_append_new(
			updates, json_pack("{s:s, s:s, s:s}", "container_id", u->container_id,
					 "cpus", cpuset_format(&u->cpus, cpus, sizeof cpus), "mems",
					 nodeset_format(u->mems, &r->t->ids, mems, sizeof mems)));
	}
	(void)json_object_set_new(result, "updates", updates);
	(void)json_object_set_new(result, "pool",
		json_string(cpuset_format(
			&ledger_view(engine_ledger(r->engine))->pool, cpus, sizeof cpus)));
}

static int events_run_step(struct run *r, json_t *step, json_t *result, struct err *e)
{
	const char *op = json_string_value(json_object_get(step, "op"));

	if (!node_events_has(op))
		return err_set(e, EINVAL,
			"op \"%.32s\" is not one of a runtime's events: run-pod, create, live, "
			"update, "
			"stop, remove, stop-pod, remove-pod, sync",
			op ? op : "");
	r->parts = json_array();
	r->adopted = json_array();
	int rc = ops[events_find_op(op)].run(r, step, result, e);
	if (!rc)
		end_of_answer(r, result);
	json_decref(r->parts);
	json_decref(r->adopted);
	vec_fini(&r->updates);
	return rc;
}

int node_events_answer(const struct topo *t, const struct settings *s, bool reasons,
	const json_t *steps, struct arena *a, json_t *results, struct err *e)
{
	auto_free char *line = xcalloc(1, RECORD_BYTES_MAX);
	struct run r = {.t = t, .s = s, .reasons = reasons, .arena = a, .line = line};
	int rc = 0;

	r.engine = engine_new(t, s, &(const struct engine_hooks){.ctx = &r, .record = on_record});
	for (size_t i = 0; i < json_array_size(steps) && !rc; i++) {
		json_t *result = json_object();

		rc = events_run_step(&r, json_array_get(steps, i), result, e);
		(void)json_array_append_new(results, result);
		if (rc)
			rc = err_add(e, rc, "element %zu", i);
	}
	engine_free(r.engine);
	vec_fini(&r.pods);
	return rc;
}
