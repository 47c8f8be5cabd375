#include <codec/slice_json.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/cpuset.h>
#include <numafit/nodeset.h>
#include <stdlib.h>
#include <string.h>

#define STANDARD "resource.kubernetes.io/"

enum { ATTRIBUTE_TEXT_MAX = 64 }; /* DeviceAttributeMaxValueLength */

/* A name that has to be there. */
static int read_name(const json_t *object, const char *key, const char **out, struct err *e)
{
	int rc = json_member_string(object, key, out, e);

	if (!rc && (!*out || !**out))
		return err_set(e, EINVAL, "%s: should be a name, is nothing", key);
	if (!rc && strlen(*out) > SLICE_NAME_MAX)
		return err_set(e, EINVAL, "%s: a name of more than %d bytes", key, SLICE_NAME_MAX);
	return rc;
}

static int read_number(
	const json_t *object, const char *key, json_int_t min, uint64_t *out, struct err *e)
{
	const json_t *v = json_member(object, key);

	if (!json_is_integer(v))
		return err_add(e, json_want("an integer", v, e), "%s", key);
	if (json_integer_value(v) < min)
		return err_set(e, EINVAL, "%s: %lld is less than %lld", key,
			(long long)json_integer_value(v), (long long)min);
	*out = (uint64_t)json_integer_value(v);
	return 0;
}

/* Where a device is */

static void note_node(struct cpuset *ids, const json_t *id)
{
	const json_int_t node = json_is_integer(id) ? json_integer_value(id) : -1;

	if (node >= 0 && node <= NODE_ID_MAX)
		cpuset_add(ids, (unsigned)node);
}

static int read_nodes(
	const json_t *attributes, struct arena *a, struct node_id_list *out, struct err *e)
{
	const json_t *value = json_member(attributes, STANDARD "numaNode");
	const json_t *list = json_member(value, "ints");
	struct cpuset ids = {0}; /* a list of NUMA nodes has the ids of a CPU list */

	*out = (struct node_id_list){0};
	note_node(&ids, json_member(value, "int"));
	for (size_t i = 0; i < json_array_size(list); i++)
		note_node(&ids, json_array_get(list, i));
	const unsigned nr = cpuset_count(&ids);
	if (!nr || nr > NODES_MAX)
		return 0;
	int64_t *id = arena_array(a, nr, sizeof *id);
	if (!id)
		return err_set(e, ENOMEM, "attributes: they need more memory than they may have");
	out->id = id;
	cpuset_each (node, &ids)
		id[out->nr++] = node;
	return 0;
}

static const char *attribute_text(const json_t *attributes, const char *key)
{
	const char *text = json_string_value(json_member(json_member(attributes, key), "string"));

	return text && *text && strlen(text) <= ATTRIBUTE_TEXT_MAX ? text : NULL;
}

static int read_device(const json_t *v, struct arena *a, struct slice_device *out, struct err *e)
{
	const char *name = NULL;
	json_t *attributes = NULL;

	if (!json_is_object(v))
		return json_want("an object", v, e);
	int rc = read_name(v, "name", &name, e);
	if (!rc)
		rc = json_member_object(v, "attributes", &attributes, e);
	*out = (struct slice_device){.name = name};
	if (!rc)
		rc = read_nodes(attributes, a, &out->nodes, e);
	if (rc)
		return rc;
	if (!out->nodes.nr)
		out->bus = attribute_text(attributes, STANDARD "pciBusID")
				   ?: attribute_text(attributes, STANDARD "pcieRoot");
	return 0;
}

/* Devices */

static int by_name(const void *a, const void *b)
{
	const struct slice_device *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int read_devices(const json_t *list, struct arena *a, struct slice *out, struct err *e)
{
	size_t nr = json_array_size(list);
	struct slice_device *device = arena_array(a, nr, sizeof *device);

	if (nr > SLICE_DEVICES_MAX)
		return err_set(e, E2BIG, "devices: %zu of them, a slice has at most %d", nr,
			SLICE_DEVICES_MAX);
	if (nr && !device)
		return err_set(e, ENOMEM, "devices: they need more memory than they may have");
	for (size_t i = 0; i < nr; i++) {
		int rc = read_device(json_array_get(list, i), a, &device[i], e);

		if (rc)
			return err_add(e, rc, "devices[%zu]", i);
	}
	if (nr)
		qsort(device, nr, sizeof *device, by_name);
	for (size_t i = 1; i < nr; i++)
		if (by_name(&device[i - 1], &device[i]) == 0)
			return err_set(e, EINVAL, "devices: %.64s is there twice", device[i].name);
	out->device = device;
	out->nr = nr;
	return 0;
}

static int read_pool(const json_t *spec, struct slice *out, struct err *e)
{
	json_t *pool = NULL;
	int rc = json_member_object(spec, "pool", &pool, e);

	if (!rc)
		rc = read_name(pool, "name", &out->pool, e);
	if (!rc)
		rc = read_number(pool, "generation", 0, &out->generation, e);
	if (!rc)
		rc = read_number(pool, "resourceSliceCount", 1, &out->nr_slices, e);
	return rc ? err_add(e, rc, "pool") : 0;
}

static int read_spec(const json_t *spec, struct arena *a, struct slice *out, struct err *e)
{
	json_t *devices = NULL;
	int rc = read_name(spec, "driver", &out->driver, e);

	if (!rc)
		rc = read_pool(spec, out, e);
	if (!rc)
		rc = json_member_list(spec, "devices", &devices, e);
	if (!rc)
		rc = read_devices(devices, a, out, e);
	return rc ? err_add(e, rc, "spec") : 0;
}

int slice_json_read(const json_t *object, struct arena *a, struct slice *out, struct err *e)
{
	json_t *metadata = NULL, *spec = NULL;
	struct slice s = {0};
	int rc = json_member_object(object, "metadata", &metadata, e);

	if (!rc)
		rc = read_name(metadata, "name", &s.name, e);
	if (!rc)
		rc = json_member_object(object, "spec", &spec, e);
	if (!rc)
		rc = read_spec(spec, a, &s, e);
	if (rc)
		return err_add(e, rc, "resourceslice %.64s", s.name ? s.name : "");
	*out = s;
	return 0;
}
