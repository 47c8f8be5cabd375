/* Reads a ResourceClaim as the API server has the object. */
#include <apiserver/claim_json.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/request.h>
#include <stdlib.h>
#include <string.h>

/* No machine has as much, and CLAIM_SHARES_MAX times as much is still a number. */
#define CLAIM_SHARE_CPUS_MAX  (INT64_C(1) << 24)
#define CLAIM_SHARE_BYTES_MAX (INT64_C(1) << 56)

enum { CLAIM_NAME_MAX = 253 };

static int claim_too_large(struct err *e)
{
	return err_set(e, ENOMEM, "a ResourceClaim that is too large");
}

/* A text that has to be there. */
static int claim_read_name(const json_t *object, const char *key, const char **out, struct err *e)
{
	int rc = json_member_string(object, key, out, e);

	if (!rc && (!*out || !**out))
		return err_set(e, EINVAL, "%s: should be a name, is nothing", key);
	if (!rc && strlen(*out) > CLAIM_NAME_MAX)
		return err_set(e, EINVAL, "%s: a name of more than %d bytes", key, CLAIM_NAME_MAX);
	return rc;
}

/* The uid of a claim, of a pod or of a share. */
static int claim_read_uid(const json_t *object, const char *key, const char **out, struct err *e)
{
	int rc = claim_read_name(object, key, out, e);

	if (!rc && !claim_uid_is_valid(*out, strlen(*out)))
		return err_set(e, EINVAL, "%s: \"%.64s\" is no uid", key, *out);
	return rc;
}

static int claim_read_bool(const json_t *object, const char *key, bool *out, struct err *e)
{
	const json_t *v = json_member(object, key);

	if (v && !json_is_boolean(v))
		return err_add(e, json_want("true or false", v, e), "%s", key);
	if (v)
		*out = json_is_true(v);
	return 0;
}

/* What a share has */

static int claim_add_memory(
	struct claim_share *s, uint64_t page_bytes, uint64_t bytes, struct err *e)
{
	unsigned i = s->nr_memory;

	if (!bytes)
		return 0;
	if (s->nr_memory == TOPO_KINDS)
		return err_set(e, E2BIG, "more than %d kinds of memory", TOPO_KINDS);
	while (i > 0 && s->memory[i - 1].page_bytes > page_bytes)
		i--;
	if (i > 0 && s->memory[i - 1].page_bytes == page_bytes)
		return err_set(e, EINVAL, "this kind of memory is there twice");
	memmove(&s->memory[i + 1], &s->memory[i], (s->nr_memory++ - i) * sizeof *s->memory);
	s->memory[i] = (struct memory_ask){page_bytes, bytes};
	return 0;
}

static int claim_read_amount(const json_t *v, int64_t max, uint64_t *out, struct err *e)
{
	struct quantity q;
	int rc = json_quantity(v, &q, e);

	if (rc)
		return rc;
	if (q.whole < 0)
		return err_set(e, EINVAL, "it is negative");
	if (q.whole > max)
		return err_set(e, EINVAL, "it is more than a machine has");
	if (q.nano)
		return err_set(e, EINVAL, "it is not a whole number");
	*out = (uint64_t)q.whole;
	return 0;
}

static int claim_read_capacity(
	const char *name, const json_t *v, struct claim_share *s, struct err *e)
{
	const char *size = text_behind(name, CLAIM_CAPACITY_HUGEPAGES);
	uint64_t page_bytes = size ? page_bytes_from_name(size) : 0, bytes = 0;

	if (text_equal(name, CLAIM_CAPACITY_CPU))
		return claim_read_amount(v, CLAIM_SHARE_CPUS_MAX, &s->cpus, e);
	if (!page_bytes && !text_equal(name, CLAIM_CAPACITY_MEMORY))
		return err_set(e, EINVAL, "no capacity of that name is known");
	int rc = claim_read_amount(v, CLAIM_SHARE_BYTES_MAX, &bytes, e);
	return rc ? rc : claim_add_memory(s, page_bytes, bytes, e);
}

static int claim_read_capacities(const json_t *result, struct claim_share *s, struct err *e)
{
	json_t *capacities = NULL;
	int rc = json_member_object(result, "consumedCapacity", &capacities, e);
	void *it = rc ? NULL : json_object_iter(capacities);

	for (; it && !rc; it = json_object_iter_next(capacities, it)) {
		const char *name = json_object_iter_key(it);

		rc = claim_read_capacity(name, json_object_iter_value(it), s, e);
		if (rc)
			return err_add(e, rc, "consumedCapacity: %.64s", name);
	}
	if (!rc && !s->cpus)
		return err_set(e, EINVAL,
			"consumedCapacity: " CLAIM_CAPACITY_CPU ": should be 1 at least");
	return rc;
}

/* Results */

static int claim_read_share(const json_t *result, struct claim_share *s, struct err *e)
{
	int rc = claim_read_name(result, "request", &s->request, e);

	if (!rc)
		rc = claim_read_name(result, "pool", &s->pool, e);
	if (!rc)
		rc = claim_read_name(result, "device", &s->device, e);
	if (!rc && json_member(result, "shareID"))
		rc = claim_read_uid(result, "shareID", &s->share_id, e);
	return rc ? rc : claim_read_capacities(result, s, e);
}

/* Whether the result is a device of ours, and a share: adminAccess looks at devices that others
 * have, and takes nothing of them. */
static int claim_is_share(const json_t *result, bool *is_ours, bool *admin, struct err *e)
{
	const char *driver = NULL;

	if (!json_is_object(result))
		return json_want("an object", result, e);
	int rc = claim_read_name(result, "driver", &driver, e);
	if (!rc)
		rc = claim_read_bool(result, "adminAccess", admin, e);
	*is_ours = !rc && text_equal(driver, CLAIM_DRIVER);
	return rc;
}

static int claim_check_twice(const struct resource_claim *claim, struct err *e)
{
	const struct claim_share *last = &claim->share[claim->nr - 1];

	for (const struct claim_share *s = claim->share; s < last; s++)
		if (text_equal(s->share_id, last->share_id) && text_equal(s->pool, last->pool) &&
			text_equal(s->device, last->device))
			return err_set(e, EINVAL, "device %.64s, shareID %.64s: it is there twice",
				s->device, s->share_id ? s->share_id : "");
	return 0;
}

static int claim_read_result(
	const json_t *result, struct claim_share *share, struct resource_claim *out, struct err *e)
{
	bool is_ours = false, admin = false;
	int rc = claim_is_share(result, &is_ours, &admin, e);

	out->nr_looked_at += is_ours && admin;
	if (rc || !is_ours || admin)
		return rc;
	if (out->nr == CLAIM_SHARES_MAX)
		return err_set(e, E2BIG, "more than %d shares", CLAIM_SHARES_MAX);
	rc = claim_read_share(result, &share[out->nr], e);
	if (rc)
		return rc;
	out->nr++;
	return claim_check_twice(out, e);
}

static int claim_read_results(
	const json_t *devices, struct claim_share *share, struct resource_claim *out, struct err *e)
{
	json_t *results = NULL;
	int rc = json_member_list(devices, "results", &results, e);

	out->share = share;
	for (size_t i = 0; !rc && i < json_array_size(results); i++) {
		rc = claim_read_result(json_array_get(results, i), share, out, e);
		if (rc)
			return err_add(e, rc, "results[%zu]", i);
	}
	return rc;
}

/* Configurations */

/* What one configuration says. */
struct claim_config {
	bool is_ours, from_claim;
	json_t *requests; /* NULL: all */
	json_t *parameters;
};

static int claim_want_word(
	const json_t *parameters, const char *key, const char *word, struct err *e)
{
	const char *said = NULL;
	int rc = json_member_string(parameters, key, &said, e);

	if (!rc && !text_equal(said, word))
		return err_set(e, EINVAL, "%s: should be \"%s\", is \"%.64s\"", key, word,
			said ? said : "");
	return rc;
}

static int claim_read_parameters(json_t *parameters, struct claim_share *s, struct err *e)
{
	static const char *const keys[] = {"apiVersion", "kind", "wholeCores", "shared", NULL};
	int rc = json_want_object(parameters, keys, e);

	if (!rc)
		rc = claim_want_word(parameters, "apiVersion", CLAIM_DRIVER "/v1", e);
	if (!rc)
		rc = claim_want_word(parameters, "kind", "ClaimParameters", e);
	if (!rc)
		rc = claim_read_bool(parameters, "wholeCores", &s->whole_cores, e);
	if (!rc)
		rc = claim_read_bool(parameters, "shared", &s->shared, e);
	return rc ? err_add(e, rc, "opaque: parameters") : 0;
}

static int claim_read_config_requests(const json_t *v, struct claim_config *out, struct err *e)
{
	int rc = json_member_list(v, "requests", &out->requests, e);

	for (size_t i = 0; !rc && i < json_array_size(out->requests); i++) {
		const json_t *request = json_array_get(out->requests, i);

		if (!json_is_string(request))
			rc = err_add(e, json_want("a string", request, e), "requests[%zu]", i);
	}
	return rc;
}

/* Of what is not for our driver nothing else is looked at. */
static int claim_read_config(const json_t *v, struct claim_config *out, struct err *e)
{
	const char *driver = NULL, *source = NULL;
	struct claim_share scratch = {0};
	json_t *opaque = NULL;

	*out = (struct claim_config){0};
	if (!json_is_object(v))
		return json_want("an object", v, e);
	int rc = json_member_object(v, "opaque", &opaque, e);
	if (!rc && (rc = json_member_string(opaque, "driver", &driver, e)))
		return err_add(e, rc, "opaque");
	if (rc || !text_equal(driver, CLAIM_DRIVER))
		return rc;
	rc = json_member_string(v, "source", &source, e);
	if (!rc && !text_equal(source, "FromClaim") && !text_equal(source, "FromClass"))
		return err_set(e, EINVAL,
			"source: should be \"FromClass\" or \"FromClaim\", is \"%.64s\"",
			source ? source : "");
	if (!rc)
		rc = claim_read_config_requests(v, out, e);
	out->is_ours = true;
	out->from_claim = text_equal(source, "FromClaim");
	out->parameters = json_member(opaque, "parameters");
	return rc ? rc : claim_read_parameters(out->parameters, &scratch, e);
}

/* The name of a request stands for all its subrequests, too. */
static bool claim_config_is_for(const struct claim_config *c, const char *request)
{
	for (size_t i = 0; i < json_array_size(c->requests); i++) {
		const char *rest =
			text_behind(request, json_string_value(json_array_get(c->requests, i)));

		if (rest && (!*rest || *rest == '/'))
			return true;
	}
	return !json_array_size(c->requests);
}

static int claim_apply_configs(
	const json_t *list, bool from_claim, struct claim_share *share, size_t nr, struct err *e)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct claim_config c;
		int rc = claim_read_config(json_array_get(list, i), &c, e);

		if (rc)
			return err_add(e, rc, "config[%zu]", i);
		if (!c.is_ours || c.from_claim != from_claim)
			continue;
		for (size_t s = 0; s < nr; s++)
			if (claim_config_is_for(&c, share[s].request))
				(void)claim_read_parameters(c.parameters, &share[s], NULL);
	}
	return 0;
}

/* Whatever their order is, what the claim says is later than what its class says. */
static int claim_read_configs(
	const json_t *devices, struct claim_share *share, size_t nr, struct err *e)
{
	json_t *list = NULL;
	int rc = json_member_list(devices, "config", &list, e);

	if (!rc)
		rc = claim_apply_configs(list, false, share, nr, e);
	return rc ? rc : claim_apply_configs(list, true, share, nr, e);
}

/* Pods */

static bool claim_has_pod(const struct resource_claim *claim, const char *uid)
{
	for (size_t i = 0; i < claim->nr_pods; i++)
		if (text_equal(claim->pod_uid[i], uid))
			return true;
	return false;
}

/* A consumer that is no pod: of these the first one has a name in texts. */
static int claim_note_other(
	const json_t *v, struct claim_consumer c, struct resource_claim *out, struct err *e)
{
	int rc = json_member_string(v, "name", &c.name, e);

	if (!rc && !out->nr_others++)
		out->other = (struct claim_consumer){
			c.group ? c.group : "", c.resource ? c.resource : "", c.name ? c.name : ""};
	return rc;
}

static int claim_read_consumer(
	const json_t *v, const char **pod, struct resource_claim *out, struct err *e)
{
	const char *group = NULL, *resource = NULL, *uid = NULL;

	if (!json_is_object(v))
		return json_want("an object", v, e);
	int rc = json_member_string(v, "apiGroup", &group, e);
	if (!rc)
		rc = json_member_string(v, "resource", &resource, e);
	if (rc)
		return rc;
	if ((group && *group) || !text_equal(resource, "pods"))
		return claim_note_other(v, (struct claim_consumer){group, resource, NULL}, out, e);
	rc = claim_read_uid(v, "uid", &uid, e);
	if (rc || claim_has_pod(out, uid))
		return rc;
	if (out->nr_pods == CLAIM_PODS_MAX)
		return err_set(e, E2BIG, "more than %d pods", CLAIM_PODS_MAX);
	pod[out->nr_pods++] = uid;
	return 0;
}

static int claim_read_pods(
	const json_t *status, struct arena *a, struct resource_claim *out, struct err *e)
{
	json_t *list = NULL;
	int rc = json_member_list(status, "reservedFor", &list, e);
	const char **pod = arena_array(a, CLAIM_PODS_MAX, sizeof *pod);

	if (rc)
		return rc;
	if (!pod)
		return claim_too_large(e);
	out->pod_uid = pod;
	for (size_t i = 0; i < json_array_size(list); i++) {
		rc = claim_read_consumer(json_array_get(list, i), pod, out, e);
		if (rc)
			return err_add(e, rc, "reservedFor[%zu]", i);
	}
	return 0;
}

/* The object */

static int claim_read_allocation(
	const json_t *status, struct arena *a, struct resource_claim *out, struct err *e)
{
	json_t *allocation = NULL, *devices = NULL;
	struct claim_share *share = arena_array(a, CLAIM_SHARES_MAX, sizeof *share);
	int rc = json_member_object(status, "allocation", &allocation, e);

	if (rc)
		return rc;
	if (!allocation)
		return err_set(e, EAGAIN, "allocation: it is not allocated yet");
	if (!share)
		return claim_too_large(e);
	rc = json_member_object(allocation, "devices", &devices, e);
	if (rc)
		return err_add(e, rc, "allocation");
	rc = claim_read_results(devices, share, out, e);
	if (!rc)
		rc = claim_read_configs(devices, share, out->nr, e);
	return rc ? err_add(e, rc, "allocation.devices") : 0;
}

static int claim_read_metadata(const json_t *object, struct resource_claim *out, struct err *e)
{
	json_t *metadata = NULL, *annotations = NULL;
	int rc = json_member_object(object, "metadata", &metadata, e);

	if (rc)
		return rc;
	rc = claim_read_name(metadata, "namespace", &out->ns, e);
	if (!rc)
		rc = claim_read_name(metadata, "name", &out->name, e);
	if (!rc)
		rc = claim_read_uid(metadata, "uid", &out->uid, e);
	if (!rc)
		rc = json_member_object(metadata, "annotations", &annotations, e);
	if (!rc)
		rc = json_member_string(annotations, "resource.kubernetes.io/pod-claim-name",
			&out->pod_claim_name, e);
	return rc ? err_add(e, rc, "metadata") : 0;
}

int claim_json_read(
	const json_t *object, struct arena *a, struct resource_claim *out, struct err *e)
{
	struct resource_claim claim = {0};
	json_t *status = NULL;
	int rc = claim_read_metadata(object, &claim, e);

	if (!rc)
		rc = json_member_object(object, "status", &status, e);
	if (!rc && (rc = claim_read_allocation(status, a, &claim, e)))
		(void)err_add(e, rc, "status");
	if (!rc && (rc = claim_read_pods(status, a, &claim, e)))
		(void)err_add(e, rc, "status");
	if (rc)
		return err_add(e, rc, "resourceclaim %.64s/%.64s", claim.ns ? claim.ns : "",
			claim.name ? claim.name : "");
	*out = claim;
	return 0;
}
