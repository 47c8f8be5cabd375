/* Koordinator's resource-status, by its scheduler: {"cpuset":"0-3","numaNodeResources":[{"node":0,
 * "resources":{"cpu":"4"}}]}, and resource-spec, by a pod's author: how its CPUs are to lie.
 * koordlet lets the cpuset win over the NUMA nodes, and looks at those only when CPUs are among
 * their resources; so do we. */
#include <codec/advice_parts.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>

/* Its name for CPUs that are lent to batch jobs, in thousandths. */
static const char batch_cpu[] = "kubernetes.io/batch-cpu";

static int koordinator_read_cpuset(
	const json_t *list, const struct advice_reading *r, struct advice *out, struct err *e)
{
	struct cpuset *cpus = arena_alloc(r->arena, sizeof *cpus);

	if (!cpus)
		return err_set(e, ENOMEM, "too large");
	if (!json_is_string(list))
		return json_want("a string", list, e);
	int rc = cpuset_parse(cpus, json_string_value(list), json_string_length(list), e);
	if (!rc && !cpuset_empty(cpus))
		out->cpus = cpus;
	return rc;
}

static int koordinator_read_share(json_t *share, struct advice_reading *r, struct err *e)
{
	const json_t *node = json_object_get(share, "node");
	json_t *resources = json_object_get(share, "resources");
	json_int_t id = json_integer_value(node);

	if (!json_is_integer(node))
		return err_add(e, json_want("an integer", node, e), "node");
	if (id < 0 || id > NODE_ID_MAX)
		return err_set(e, ERANGE, "node: %lld is no NUMA node", (long long)id);
	advice_add_node(&r->all, r->t, (unsigned)id);
	return resources ? advice_add_resources(r, (unsigned)id, resources, e) : 0;
}

static bool has_cpus(const struct advice_reading *r)
{
	for (size_t i = 0; i < r->nr_amounts; i++)
		if (r->amount[i].amount && (text_equal(r->amount[i].resource, "cpu") ||
						   text_equal(r->amount[i].resource, batch_cpu)))
			return true;
	return false;
}

int advice_koordinator_status_read(struct advice_reading *r, struct advice *out, struct err *e)
{
	const json_t *cpuset = json_object_get(r->json, "cpuset");
	const json_t *shares = json_object_get(r->json, "numaNodeResources");
	int rc = cpuset ? koordinator_read_cpuset(cpuset, r, out, e) : 0;

	if (rc)
		return err_add(e, rc, "cpuset");
	if (shares && !json_is_array(shares))
		return err_add(e, json_want("a list", shares, e), "numaNodeResources");
	for (size_t i = 0; i < json_array_size(shares); i++) {
		rc = koordinator_read_share(json_array_get(shares, i), r, e);
		if (rc)
			return err_add(e, rc, "numaNodeResources: element %zu", i);
	}
	if (out->cpus) {
		struct cpuset here = cpuset_and(*out->cpus, &r->t->cpus);

		r->all = (struct advice_container){.nodes = topo_nodes_of(r->t, &here)};
	} else if (!has_cpus(r) && !r->all.has_unknown) {
		return 0;
	}
	return advice_for_all(r, out, e);
}

/* A word of a key and what it means; the table ends with NULL. */
struct word {
	const char *word;
	unsigned value;
};
static const struct word binds[] = {
	{"", ADVICE_CPUS_ANY},
	{"Default", ADVICE_CPUS_ANY},
	{"FullPCPUs", ADVICE_CPUS_FULL_CORES},
	{"SpreadByPCPUs", ADVICE_CPUS_SPREAD},
	{"ConstrainedBurst", ADVICE_CPUS_BURST},
	{0},
};
static const struct word aparts[] = {
	{"", ADVICE_APART_NONE},
	{"None", ADVICE_APART_NONE},
	{"PCPULevel", ADVICE_APART_CORE},
	{"NUMANodeLevel", ADVICE_APART_NODE},
	{0},
};

/* The value of a key that may be absent. */
static int koordinator_read_word(
	const json_t *root, const char *key, const struct word *words, unsigned *out, struct err *e)
{
	const json_t *v = json_object_get(root, key);

	if (v && !json_is_string(v))
		return err_add(e, json_want("a string", v, e), "%s", key);
	for (; v && words->word; words++)
		if (text_equal(words->word, json_string_value(v))) {
			*out = words->value;
			return 0;
		}
	return v ? err_set(e, EINVAL, "%s: there is no \"%.64s\"", key, json_string_value(v)) : 0;
}

int advice_koordinator_spec_read(struct advice_reading *r, struct advice *out, struct err *e)
{
	unsigned required = 0, preferred = 0, apart = 0;
	int rc = koordinator_read_word(r->json, "requiredCPUBindPolicy", binds, &required, e);

	if (!rc)
		rc = koordinator_read_word(r->json, "preferredCPUBindPolicy", binds, &preferred, e);
	if (!rc)
		rc = koordinator_read_word(
			r->json, "preferredCPUExclusivePolicy", aparts, &apart, e);
	out->cpus_required = (enum advice_cpus)required;
	out->cpus_preferred = (enum advice_cpus)preferred;
	out->apart = (enum advice_apart)apart;
	return rc;
}
