#include <apiserver/observed_json.h>

#include <codec/nrt_write_json.h>
#include <jansson.h>
#include <stdio.h>

enum { AMOUNT_MAX = 24, KIND_NAME_MAX = TEXT_SIZE_MAX + 16 };

static void observed_put_amount(json_t *amounts, const char *resource, uint64_t amount)
{
	char text[AMOUNT_MAX];

	(void)snprintf(text, sizeof text, "%llu", (unsigned long long)amount);
	if (amount)
		(void)json_object_set_new(amounts, resource, json_string(text));
}

static json_t *observed_amounts(const struct observed *o, unsigned node)
{
	json_t *amounts = json_object();
	char kind[KIND_NAME_MAX];

	observed_put_amount(amounts, "cpu", cpuset_count_and(&o->topo->node[node].cpus, &o->cpus));
	for (unsigned k = 0; k < o->topo->nr_kinds; k++) {
		(void)topo_kind_name(o->topo, k, kind, sizeof kind);
		observed_put_amount(amounts, kind, o->bytes[k][node]);
	}
	for (size_t i = 0; i < o->nr_devices; i++)
		observed_put_amount(amounts, o->devices[i].resource, o->devices[i].on[node]);
	return amounts;
}

char *observed_json_write(const struct observed *o)
{
	if (cpuset_empty(&o->cpus))
		return NULL;
	json_t *zones = json_array();
	nodeset_each (n, o->topo->nodes) {
		json_t *amounts = observed_amounts(o, n);
		char zone[NRT_ZONE_NAME_MAX];

		if (json_object_size(amounts))
			(void)json_array_append_new(
				zones, json_pack("{s:s,s:O}", "zone", nrt_zone_name(zone, n),
					       "amount", amounts));
		json_decref(amounts);
	}
	char *text = json_dumps(zones, JSON_COMPACT);
	json_decref(zones);
	return text;
}

char *observed_json_patch(const char *uid, const char *value)
{
	json_t *patch = json_pack("{s:{s:s*,s:{s:s?}}}", "metadata", "uid", uid, "annotations",
		OBSERVED_ANNOTATION, value);
	char *text = patch ? json_dumps(patch, JSON_COMPACT) : NULL;

	json_decref(patch);
	return text;
}
