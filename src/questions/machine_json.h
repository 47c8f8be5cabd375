#ifndef NUMAFIT_QUESTIONS_MACHINE_JSON_H
#define NUMAFIT_QUESTIONS_MACHINE_JSON_H

#include <numafit/arena.h>
#include <numafit/devices.h>
#include <numafit/pod.h>
#include <numafit/topo.h>

struct json_t; /* jansson's */

/* The machine of a question, described where it stands
 *   {"nodes": [{"id", "memory": bytes, "hugepages": {type: pages}}], "distances": {id: row},
 *    "cpus": [[cpu, core, socket, numa, uncore]],
 *    "devices": {resource: [{"id", "nodes": [ids]|null, "healthy"}]}}
 * or by its name; such a machine has no devices. "cpus_fields", "num_cores" and "num_sockets" may
 * be there, too: they follow from the rest. A node may say "device_memory": true, and
 * the machine "isolated": "4-7", CPUs that the kernel's scheduler leaves alone. */

struct machine {
	struct topo topo;
	unsigned nr_resources;
	struct device_resource resource[POD_DEVICES_MAX]; /* by name */
};

/* Who reads files finds a machine by its name: this is lent by the program. */
typedef int machine_loader(const char *name, struct topo *out, struct err *e);

/* Read it into *m, all zeros before, whose parts live in *a (names are borrowed from the text).
 * load is NULL where machines have no names. 0; -EINVAL, -ERANGE, -ENOMEM with the place; the
 * loader's error. */
int machine_json_read(
	struct json_t *v, machine_loader *load, struct arena *a, struct machine *m, struct err *e);

#endif
