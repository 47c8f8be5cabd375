/* The kubelet's device plugin calls -> the engine's leases, and the ledger -> the kubelet's list.
 */
#include "reply.h"
#include "services_state.h"

#include <io/fault.h>
#include <io/log.h>
#include <numafit/text.h>

#include <errno.h>

static int tokens_list(
	void *ctx, struct arena *a, struct plugin_device **out, size_t *nr, struct err *e)
{
	struct services *v = ctx;
	struct token_reports all;
	int rc = ledger_report_tokens(engine_ledger(v->d->engine), a, &all);

	*out = rc ? NULL : arena_array(a, all.nr, sizeof **out);
	if (!*out)
		return err_set(e, ENOMEM, "the list of tokens needs more memory than it may have");
	for (size_t i = 0; i < all.nr; i++)
		(*out)[i] = (struct plugin_device){
			all.at[i].id, all.at[i].healthy, (int)all.at[i].node_id};
	*nr = all.nr;
	return 0;
}

static size_t tokens_on_prefer(
	void *ctx, const struct preferred_ask *ask, struct arena *a, const char **out)
{
	struct services *v = ctx;
	const struct token_wish wish = {
		.available = ask->available.id,
		.nr_available = ask->available.nr,
		.must_include = ask->must_include.id,
		.nr_must_include = ask->must_include.nr,
		.size = ask->size,
	};

	struct budget budget = budget_of(v->d->settings.merge_visit_budget);

	return tokens_prefer(
		ledger_view(engine_ledger(v->d->engine))->topo, &wish, &budget, a, out);
}

static int tokens_of(
	const struct daemon *d, const struct device_ids *ids, struct tokenset *out, struct err *e)
{
	*out = (struct tokenset){0};
	for (size_t i = 0; i < ids->nr; i++) {
		struct token k;
		int rc = tokens_parse(&d->topo.ids, ids->id[i], &k, e);

		if (rc)
			return rc;
		tokenset_add(out, k);
	}
	return 0;
}

/* What the container gets with its tokens: what our NRI half reads, and what may help itself. */
static int answer_with(struct daemon *d, const char *annotation, struct nodeset nodes,
	struct arena *a, struct allocate_answer *out, struct err *e)
{
	struct key_value *pairs = arena_array(a, 2, sizeof *pairs);

	if (!pairs)
		return err_set(e, ENOMEM, "the answer needs more memory than it may have");
	pairs[0] = (struct key_value){NRI_ALLOCATED_ANNOTATION, in_arena(a, annotation)};
	pairs[1] = (struct key_value){"NUMAFIT_NUMA_NODES", nodes_text(d, a, nodes)};
	*out = (struct allocate_answer){
		.annotation = &pairs[0], .nr_annotations = 1, .env = &pairs[1], .nr_env = 1};
	return *pairs[0].value && *pairs[1].value
		       ? 0
		       : err_set(e, ENOMEM, "the answer needs more memory than it may have");
}

static void log_allocation(const struct daemon *d, const struct tokenset *tokens, const char *error)
{
	char list[TOKENSET_TEXT_MAX], why[512];

	(void)tokenset_format(tokens, &d->topo.ids, list, sizeof list);
	if (error)
		log_line(LOG_WARN, "allocate-refused", "tokens=%s error=%s", list,
			log_text(why, sizeof why, error));
	else
		log_line(LOG_DEBUG, "allocated", "tokens=%s", list);
}

static int tokens_allocate(void *ctx, const struct device_ids *ids, struct arena *a,
	struct allocate_answer *out, struct err *e)
{
	struct services *v = ctx;
	char annotation[LEASE_TEXT_MAX];
	struct tokenset tokens;

	fault_point(FAULT_TO_ALLOCATE);
	int rc = tokens_of(v->d, ids, &tokens, e);
	if (!rc)
		rc = engine_allocate(v->d->engine, loop_wall_ms(), &tokens, annotation, e);
	if (!rc)
		rc = answer_with(v->d, annotation, tokens.nodes, a, out, e);
	log_allocation(v->d, &tokens, rc ? e->text : NULL);
	if (!rc && v->pod_resources)
		(void)pod_resources_refresh(v->pod_resources);
	fault_point(FAULT_ALLOCATED);
	return rc ? err_add(e, rc, "numafit") : 0;
}

/* The last moment at which the kubelet can be made to wait: behind it only the runtime's question
 * can, and it is not asked while the runtime has no connection. */
static int tokens_pre_start(void *ctx, const struct device_ids *ids, struct err *e)
{
	struct services *v = ctx;

	(void)ids;
	if (nri_conn_state(v->d->runtime.conn) == NRI_READY)
		return 0;
	return err_set(e, EAGAIN,
		"numafit: the container runtime is not connected to numafitd (nri.socketPath %s); "
		"the container waits until it is, or it would start unpinned",
		v->d->settings.nri_socket);
}

static void watched(void *ctx, unsigned nr_streams)
{
	struct services *v = ctx;

	if (v->registration)
		registration_watched(v->registration, nr_streams);
}

const struct device_plugin_handler tokens_handler = {
	.devices = tokens_list,
	.prefer = tokens_on_prefer,
	.allocate = tokens_allocate,
	.pre_start = tokens_pre_start,
	.watched = watched,
};

void tokens_seen(struct services *v, const struct pods_held *held)
{
	struct tokenset shown = {0};
	struct token k;

	for (size_t p = 0; p < held->nr; p++)
		for (size_t c = 0; c < held->pod[p].nr; c++) {
			const struct container_held *of = &held->pod[p].container[c];

			for (size_t i = 0; i < of->nr_devices; i++)
				if (text_equal(of->device[i].resource, TOKEN_RESOURCE) &&
					!tokens_parse(&v->d->topo.ids, of->device[i].id, &k, NULL))
					tokenset_add(&shown, k);
		}
	unsigned nr = engine_see_tokens(v->d->engine, loop_wall_ms(), &shown);
	if (nr)
		log_line(LOG_INFO, "tokens-given-up",
			"tokens=%u text=\"no container came for them, and the kubelet shows them "
			"no "
			"more\"",
			nr);
}
