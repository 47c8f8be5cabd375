#include <numafit-sim/device_table.h>

#include <errno.h>
#include <kubelet/pods_server_pb.h>
#include <numafit/text.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_BYTES_MAX = 16 << 20, POD_BYTES_MAX = 4 << 20 };

static void sim_pod_free(struct sim_pod *p)
{
	vec_fini(&p->given);
	vec_fini(&p->annotations);
	arena_fini(&p->arena);
	free(p);
}

void device_table_fini(struct device_table *d)
{
	for (size_t i = 0; i < d->nr; i++)
		sim_pod_free(d->at[i]);
	for (unsigned r = 0; r < d->nr_rows; r++) {
		free(d->row[r].name);
		arena_fini(&d->row[r].arena);
	}
	vec_fini(d);
}

/* Rows */

int device_table_find(const struct device_table *d, const char *resource)
{
	for (unsigned r = 0; r < d->nr_rows; r++)
		if (text_equal(d->row[r].name, resource))
			return (int)r;
	return -1;
}

int device_table_row(struct device_table *d, const char *resource, struct err *e)
{
	int found = device_table_find(d, resource);

	if (found >= 0)
		return found;
	if (d->nr_rows == POD_DEVICES_MAX)
		return err_set(
			e, E2BIG, "%.80s: more than %d resources", resource, POD_DEVICES_MAX);
	d->row[d->nr_rows].name = xstrdup(resource);
	arena_init(&d->row[d->nr_rows].arena, ROW_BYTES_MAX);
	return (int)d->nr_rows++;
}

int device_row_find(const struct device_row *row, const char *id)
{
	for (unsigned i = 0; i < row->nr; i++)
		if (text_equal(row->device[i].id, id))
			return (int)i;
	return -1;
}

static int compare_device_ids(const void *a, const void *b)
{
	const struct device *x = a, *y = b;

	return strcmp(x->id, y->id);
}

/* What would bring a kubelet down at its next start, or end pods there. */
static int check_given(const struct device_table *d, unsigned row, const struct device *list,
	unsigned nr, struct err *e)
{
	for (size_t i = 0; i < d->nr; i++)
		for (size_t g = 0; g < d->at[i]->given.nr; g++) {
			const struct given *of = &d->at[i]->given.at[g];

			for (size_t k = 0; k < of->ids.nr && of->row == row; k++) {
				const struct device key = {.id = of->ids.id[k]};
				const struct device *at =
					nr ? bsearch(&key, list, nr, sizeof key, compare_device_ids)
					   : NULL;

				if (!at || !at->healthy)
					return err_set(e, EINVAL,
						"device %s of pod %s has become %s", of->ids.id[k],
						d->at[i]->spec.pod.name,
						at ? "unhealthy" : "missing");
			}
		}
	return 0;
}

static struct device device_from_plugin(
	const struct topo *t, const struct plugin_device *from, struct arena *a)
{
	int node =
		from->node == DEVICE_WITHOUT_NODE ? -1 : node_index(&t->ids, (unsigned)from->node);

	return (struct device){
		.id = arena_strndup(a, from->id, strlen(from->id)),
		.has_topology = from->node != DEVICE_WITHOUT_NODE,
		.placed = from->node != DEVICE_WITHOUT_NODE,
		.nodes = node < 0 ? (struct nodeset){0} : nodeset_of((unsigned)node),
		.healthy = from->healthy,
	};
}

int device_table_replace(struct device_table *d, unsigned row, const struct plugin_device *list,
	size_t nr, struct err *e)
{
	struct arena a;
	int rc = 0;

	arena_init(&a, ROW_BYTES_MAX);
	struct device *new = arena_array(&a, nr, sizeof *new);
	if (!new)
		rc = err_set(e, EINVAL, "%zu devices are too many", nr);
	for (size_t i = 0; i < nr && !rc; i++) {
		new[i] = device_from_plugin(d->topo, &list[i], &a);
		if (!new[i].id)
			rc = err_set(e, EINVAL, "%zu devices are too many", nr);
	}
	if (!rc && nr)
		qsort(new, nr, sizeof *new, compare_device_ids);
	for (size_t i = 1; i < nr && !rc; i++)
		if (compare_device_ids(&new[i - 1], &new[i]) == 0)
			rc = err_set(e, EINVAL, "device %.64s is there twice", new[i].id);
	if (!rc)
		rc = check_given(d, row, new, (unsigned)nr, e);
	if (rc) {
		arena_fini(&a);
		return err_add(e, rc, "%s", d->row[row].name);
	}
	arena_fini(&d->row[row].arena);
	d->row[row].arena = a;
	d->row[row].device = new;
	d->row[row].nr = (unsigned)nr;
	return 0;
}

void device_table_stop(struct device_table *d, unsigned row)
{
	for (unsigned i = 0; i < d->row[row].nr; i++)
		d->row[row].device[i].healthy = false;
}

/* The devices of that resource, as many as the trace says on each node. */
static int make_up_row(struct device_table *d, const char *resource,
	const struct trace_devices *from, size_t nr, struct arena *a, struct err *e)
{
	int row = device_table_row(d, resource, e);
	const char *kind = strrchr(resource, '/') + 1;
	size_t room = 0, at = 0;

	if (row < 0)
		return row;
	for (size_t i = 0; i < nr; i++)
		room += from[i].count;
	struct plugin_device *list = arena_array(a, room, sizeof *list);
	for (size_t i = 0; i < nr && list; i++)
		for (uint64_t k = 0; k < from[i].count; k++) {
			char id[TRACE_NAME_MAX + 2 * TEXT_SIZE_MAX];

			if (!text_equal(from[i].resource, resource))
				continue;
			if (from[i].node_id == TRACE_WITHOUT_NODE)
				snprintf(id, sizeof id, "%.*s-%u", TRACE_NAME_MAX, kind,
					(unsigned)k);
			else
				snprintf(id, sizeof id, "%.*s-%u-%u", TRACE_NAME_MAX, kind,
					from[i].node_id, (unsigned)k);
			list[at++] = (struct plugin_device){arena_strndup(a, id, strlen(id)), true,
				from[i].node_id == TRACE_WITHOUT_NODE ? DEVICE_WITHOUT_NODE
								      : (int)from[i].node_id};
		}
	return list ? device_table_replace(d, (unsigned)row, list, at, e)
		    : err_set(e, E2BIG, "%s: too many devices", resource);
}

int device_table_make_up(
	struct device_table *d, const struct trace_devices *from, size_t nr, struct err *e)
{
	struct arena a;
	int rc = 0;

	arena_init(&a, ROW_BYTES_MAX);
	for (size_t i = 0; i < nr && !rc; i++) {
		if (from[i].node_id != TRACE_WITHOUT_NODE &&
			node_index(&d->topo->ids, from[i].node_id) < 0)
			rc = err_set(e, EINVAL, "%s: machine %s has no NUMA node %u",
				from[i].resource, d->topo->name, from[i].node_id);
		else if (device_table_find(d, from[i].resource) < 0)
			rc = make_up_row(d, from[i].resource, from, nr, &a, e);
	}
	arena_fini(&a);
	return rc;
}

/* Pods */

struct sim_pod *device_table_add_pod(
	struct device_table *d, const struct known_pod *spec, struct err *e)
{
	struct sim_pod *p = xcalloc(1, sizeof *p);
	struct blob bytes;

	arena_init(&p->arena, POD_BYTES_MAX);
	int rc = pods_pod_encode(spec, &p->arena, &bytes, e);
	if (!rc)
		rc = pods_pod_decode(bytes, &p->arena, &p->spec, e);
	for (unsigned i = 0; i < p->spec.nr_resources && !rc; i++) {
		int row = i < POD_DEVICES_MAX
				  ? device_table_row(d, p->spec.resource[i], e)
				  : err_set(e, E2BIG, "more than %d resources", POD_DEVICES_MAX);

		if (row < 0)
			rc = row;
		else
			p->row[i] = (unsigned)row;
	}
	if (rc) {
		sim_pod_free(p);
		return NULL;
	}
	*vec_push(d) = p;
	return p;
}

void device_table_remove_pod(struct device_table *d, struct sim_pod *p)
{
	for (size_t i = 0; i < d->nr; i++)
		if (d->at[i] == p) {
			vec_remove(d, i);
			sim_pod_free(p);
			return;
		}
}

struct sim_pod *device_table_pod(const struct device_table *d, const char *uid)
{
	for (size_t i = 0; i < d->nr; i++)
		if (text_equal(d->at[i]->spec.pod.uid, uid))
			return d->at[i];
	return NULL;
}

int sim_pod_container(const struct sim_pod *p, const char *name)
{
	const struct pod *ask = &p->spec.pod;

	for (unsigned i = 0; i < ask->nr; i++)
		if (text_equal(ask->container[i].name, name))
			return (int)i;
	return -1;
}

/* What a pod keeps is bounded by what one message can hold: its arena has room for that. */
static const char *sim_pod_keep_text(struct sim_pod *p, const char *s)
{
	const char *kept = arena_strndup(&p->arena, s, strlen(s));

	return kept ? kept : "";
}

void sim_pod_give(struct sim_pod *p, unsigned container, unsigned row, const struct device_ids *ids)
{
	const char **id = arena_array(&p->arena, ids->nr, sizeof *id);

	for (size_t i = 0; id && i < ids->nr; i++)
		id[i] = sim_pod_keep_text(p, ids->id[i]);
	*vec_push(&p->given) = (struct given){container, row, {id, id ? ids->nr : 0}};
}

void sim_pod_annotate(
	struct sim_pod *p, unsigned container, const struct key_value *pairs, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		*vec_push(&p->annotations) = (struct given_annotation){container,
			{sim_pod_keep_text(p, pairs[i].key), sim_pod_keep_text(p, pairs[i].value)}};
}
