/* The runtime's events -> the engine's, and its decisions -> the runtime's words. Nothing is
 * decided here; every decision is told in one log line. */
#include "daemon.h"

#include <codec/placement_json.h>
#include <io/log.h>
#include <numafit/text.h>

#include <errno.h>
#include <string.h>

enum { HINTS_TEXT_MAX = 512, NS_PER_US = 1000 };

static const char *cpus_text(struct arena *a, const struct cpuset *cpus)
{
	char text[CPUSET_TEXT_MAX];

	cpuset_format(cpus, text, sizeof text);
	const char *copy = arena_strndup(a, text, strlen(text));
	return copy ? copy : "";
}

static const char *nodes_text(const struct daemon *d, struct arena *a, struct nodeset nodes)
{
	char text[NODESET_TEXT_MAX];

	nodeset_format(nodes, &d->topo.ids, text, sizeof text);
	const char *copy = arena_strndup(a, text, strlen(text));
	return copy ? copy : "";
}

static void add_updates(struct daemon *d, const struct update_list *ups, struct nri_reply *reply)
{
	struct nri_cpuset *list = arena_array(reply->arena, ups->nr, sizeof *list);
	size_t nr = 0;

	for (; list && nr < ups->nr; nr++)
		list[nr] = (struct nri_cpuset){
			.container_id = arena_strndup(reply->arena, ups->at[nr].container_id,
				strlen(ups->at[nr].container_id)),
			.cpus = cpus_text(reply->arena, &ups->at[nr].cpus),
			.mems = nodes_text(d, reply->arena, ups->at[nr].mems),
		};
	reply->updates = list;
	reply->nr_updates = nr;
	d->counters.updates += nr;
}

/* "cpu:1/1 memory:2/1": of each resource the fewest NUMA nodes with enough free now, and the fewest
 * that could have enough; "-" when no number of nodes has enough now. */
static const char *hints_text(const struct decision *dec, char buf[HINTS_TEXT_MAX])
{
	struct text t;

	text_init(&t, buf, HINTS_TEXT_MAX);
	for (unsigned i = 0; dec->reasons && i < dec->reasons->nr; i++) {
		const struct reasons_resource *h = &dec->reasons->resource[i];

		text_add(&t, t.len ? " %s:" : "%s:", h->resource);
		if (h->smallest)
			text_add(&t, "%u/%u", h->smallest, h->preferred_size);
		else
			text_add(&t, "-/%u", h->preferred_size);
	}
	return buf;
}

static void log_decision(struct daemon *d, const struct request *req, const struct decision *dec,
	const char *cause, size_t nr_updates, uint64_t took_ns)
{
	char pod[512], name[256], cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX],
		nodes[NODESET_TEXT_MAX] = "none";
	char hints[HINTS_TEXT_MAX], quoted_hints[HINTS_TEXT_MAX + 2],
		message[2 * DECISION_MESSAGE_MAX];

	if (dec->has_affinity)
		nodeset_format(dec->nodes, &d->topo.ids, nodes, sizeof nodes);
	log_line(dec->admit ? LOG_INFO : LOG_WARN, "decision",
		"cause=%s namespace=%s pod=%s container=%s id=%.12s qos=%s verdict=%s policy=%s "
		"exclusive=%s cpus=%s mems=%s "
		"nodes=%s preferred=%s source=%s hints=%s reason=%s message=%s updates=%zu "
		"took_us=%llu",
		cause, req->pod.ns, log_text(pod, sizeof pod, req->pod.name),
		log_text(name, sizeof name, req->container_name), req->container_id,
		qos_name(req->pod.qos), dec->admit ? "admitted" : "refused",
		topology_policy_name(dec->policy), dec->exclusive ? "yes" : "no",
		cpuset_format(&dec->cpus, cpus, sizeof cpus),
		nodeset_format(dec->mems, &d->topo.ids, mems, sizeof mems), nodes,
		dec->preferred ? "yes" : "no", decision_source_name(dec->source),
		log_text(quoted_hints, sizeof quoted_hints, hints_text(dec, hints)),
		dec->reason ? dec->reason : "none", log_text(message, sizeof message, dec->message),
		nr_updates, (unsigned long long)(took_ns / NS_PER_US));
}

static struct placement placement_of(const struct decision *dec)
{
	return (struct placement){
		.exclusive = dec->exclusive,
		.preferred = dec->preferred,
		.policy = dec->policy,
		.cpus = dec->cpus,
		.mems = dec->mems,
		.nodes = dec->nodes,
		.has_nodes = dec->has_affinity,
	};
}

/* The text of a refusal ends in the pod's events: say who refuses, and what was missing. */
static int refuse(const struct decision *dec, struct err *e)
{
	char hints[HINTS_TEXT_MAX];

	return err_set(e, EPERM, "numafit: %s: %s (policy %s; NUMA nodes needed now/at best: %s)",
		dec->reason ? dec->reason : "refused", dec->message,
		topology_policy_name(dec->policy), hints_text(dec, hints));
}

/* A pod that is known container by container is decided now, before any of them runs. */
static int on_run_pod(void *ctx, const struct pod *pod, struct err *e)
{
	struct daemon *d = ctx;
	struct decision dec;

	if (d->settings.mode == MODE_OFF)
		return 0;
	engine_run_pod(d->engine, loop_wall_ms(), pod, &dec);
	d->counters.refused += !dec.admit;
	return dec.admit ? 0 : refuse(&dec, e);
}

static int on_create(void *ctx, const struct request *req, struct nri_reply *reply, struct err *e)
{
	struct daemon *d = ctx;
	uint64_t from = loop_monotonic_ns();
	struct update_list ups = {0};
	struct decision dec;

	if (d->settings.mode == MODE_OFF)
		return 0;
	engine_create(d->engine, loop_wall_ms(), req, &dec, &ups);
	add_updates(d, &ups, reply);
	d->counters.creates++;
	d->counters.refused += !dec.admit;
	log_decision(d, req, &dec, "create", ups.nr, loop_monotonic_ns() - from);
	vec_fini(&ups);
	if (!dec.admit)
		return refuse(&dec, e);

	struct placement placed = placement_of(&dec);
	char text[PLACEMENT_JSON_MAX];
	placement_json_format(&placed, &d->topo.ids, text, sizeof text);
	reply->adjust = true;
	reply->cpus = cpus_text(reply->arena, &dec.cpus);
	reply->mems = nodes_text(d, reply->arena, dec.mems);
	reply->annotation = (struct key_value){
		NRI_PLACEMENT_ANNOTATION, arena_strndup(reply->arena, text, strlen(text))};
	if (!*reply->cpus || !reply->annotation.value) /* an empty list would leave it unpinned */
		return err_set(e, ENOMEM, "numafit: the answer needs more memory than it may have");
	return 0;
}

static void on_update(void *ctx, const struct request *req, struct nri_reply *reply)
{
	struct daemon *d = ctx;
	struct update_list ups = {0};
	struct update keep;

	if (d->settings.mode == MODE_OFF || !engine_update(d->engine, req->container_id, &keep))
		return;
	*vec_push(&ups) = keep;
	add_updates(d, &ups, reply);
	vec_fini(&ups);
}

static void on_stop(void *ctx, const struct request *req, struct nri_reply *reply)
{
	struct daemon *d = ctx;
	struct update_list ups = {0};

	if (d->settings.mode == MODE_OFF)
		return;
	engine_release(d->engine, loop_wall_ms(), "stop", req->container_id, &ups);
	add_updates(d, &ups, reply);
	vec_fini(&ups);
}

/* Nearly always a stop came before, and nothing is left to give back. */
static void on_remove(void *ctx, const struct request *req)
{
	struct daemon *d = ctx;

	if (d->settings.mode == MODE_MANAGE)
		engine_forget(d->engine, loop_wall_ms(), "remove", req->container_id);
}

static void on_remove_pod(void *ctx, const struct pod *pod)
{
	struct daemon *d = ctx;

	if (d->settings.mode == MODE_MANAGE)
		engine_release_pod(d->engine, loop_wall_ms(), "pod-gone", pod->sandbox_id);
}

static void on_live(void *ctx, const struct request *req)
{
	struct daemon *d = ctx;

	if (d->settings.mode == MODE_MANAGE)
		engine_live(d->engine, loop_wall_ms(), req);
}

/* What the containers' annotations claim; a claim that cannot be read is none. */
static const struct placement **read_placements(
	struct daemon *d, const struct request *containers, size_t nr)
{
	const struct placement **placed = xcalloc(nr, sizeof *placed);

	for (size_t i = 0; i < nr; i++) {
		struct placement p, *copy;
		char id[64], why[512];
		struct err e;

		if (!containers[i].placement)
			continue;
		if (placement_json_parse(containers[i].placement, &d->topo.ids, &p, &e) < 0) {
			log_line(LOG_WARN, "placement-ignored", "id=%s error=%s",
				log_text(id, sizeof id, containers[i].container_id),
				log_text(why, sizeof why, e.text));
			continue;
		}
		copy = xcalloc(1, sizeof *copy);
		*copy = p;
		placed[i] = copy;
	}
	return placed;
}

static void free_placements(const struct placement **placed, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		mem_free_slot(&placed[i]);
	free(placed);
}

static const char **sandbox_ids(const struct pod *pods, size_t nr)
{
	const char **ids = xcalloc(nr, sizeof *ids);

	for (size_t i = 0; i < nr; i++)
		ids[i] = pods[i].sandbox_id;
	return ids;
}

static void on_synchronize(void *ctx, const struct nri_inventory *what, struct nri_reply *reply)
{
	struct daemon *d = ctx;
	uint64_t from = loop_monotonic_ns();
	struct update_list ups = {0};

	d->counters.connects++;
	if (d->settings.mode == MODE_OFF)
		return;
	const struct placement **placed = read_placements(d, what->containers, what->nr);
	const char **sandboxes = sandbox_ids(what->pods, what->nr_pods);
	const struct inventory running = {
		what->containers, placed, what->nr, sandboxes, what->nr_pods};
	engine_synchronize(d->engine, loop_wall_ms(), &running, &ups);
	add_updates(d, &ups, reply);
	log_line(LOG_INFO, "synchronized",
		"pods=%zu containers=%zu held=%zu updates=%zu took_us=%llu", what->nr_pods, what->nr,
		ledger_count(engine_ledger(d->engine)), ups.nr,
		(unsigned long long)((loop_monotonic_ns() - from) / NS_PER_US));
	vec_fini(&ups);
	free(sandboxes);
	free_placements(placed, what->nr);
}

static void on_event(void *ctx, const char *event, const char *text)
{
	bool bad = text_equal(event, "nri-disconnected") || text_equal(event, "nri-call-refused");
	char buf[512];

	(void)ctx;
	log_line(bad ? LOG_WARN : LOG_INFO, event, "text=%s", log_text(buf, sizeof buf, text));
}

/* A change that the engine made on its own account: who was adopted, who is gone. */
void wiring_done(void *ctx, const struct record *r)
{
	struct daemon *d = ctx;

	d->counters.released += r->op == RECORD_RELEASE;
	if (r->op == RECORD_RELEASE)
		log_line(LOG_INFO, "released", "cause=%s id=%.12s", r->cause, r->container_id);
	if (r->op == RECORD_GRANT && text_equal(r->cause, "adopt")) {
		d->counters.adopted++;
		log_decision(d, r->request, r->decision, "adopt", 0, 0);
	}
}

/* Only who decides may hold containers back when it hangs. */
static struct nri_failure_policy failure_policy(const struct settings *s)
{
	if (s->mode != MODE_MANAGE)
		return (struct nri_failure_policy){0};
	return (struct nri_failure_policy){
		.fail_request = s->nri_failure_policy & FAILURE_FAIL_REQUEST,
		.keep_connected = s->nri_failure_policy & FAILURE_KEEP_CONNECTED,
	};
}

/* The runtime that started us is gone, or has dropped us, and ends us if it still can. */
static void on_connection_ended(void *ctx)
{
	struct daemon *d = ctx;

	loop_stop(d->loop);
}

void wiring_start(struct daemon *d)
{
	const bool launched = d->launch.name;
	const struct nri_conn_options options = {
		.plugin = {.name = launched ? d->launch.name : "numafit",
			.index = launched ? d->launch.index : d->settings.nri_index,
			.launched = launched,
			.on_failure = failure_policy(&d->settings)},
		.socket = d->settings.nri_socket,
		.seed = loop_monotonic_ns(),
		.fd = d->launch.fd,
		.ended = on_connection_ended,
	};

	d->handler = (struct nri_handler){
		.ctx = d,
		.synchronize = on_synchronize,
		.run_pod = on_run_pod,
		.create = on_create,
		.update = on_update,
		.stop = on_stop,
		.remove = on_remove,
		.live = on_live,
		.remove_pod = on_remove_pod,
		.on_event = on_event,
	};
	d->conn = nri_conn_new(d->loop, &options, &d->handler);
}
