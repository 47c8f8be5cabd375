#include <codec/numatopology_json.h>

#include <jansson.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_TEXT_MAX = 24 };

static json_t *cpu_list(const struct cpuset *cpus)
{
	char list[CPUSET_TEXT_MAX];

	return json_string(cpuset_format(cpus, list, sizeof list));
}

static json_t *policies(const struct report *r)
{
	bool is_static = r->policy.cpu_manager == MANAGER_STATIC;

	if (!r->has_policy)
		return json_object();
	return json_pack("{s:s,s:s}", "CPUManagerPolicy", is_static ? "static" : "none",
		"TopologyManagerPolicy", topology_policy_words[r->policy.policy]);
}

static json_t *reserved(const struct report *r, const struct settings *s)
{
	char count[NUMBER_TEXT_MAX];

	(void)snprintf(
		count, sizeof count, "%u", cpuset_count_and(&s->reserved_cpus, &r->topo->cpus));
	return json_pack("{s:s}", "cpu", count);
}

static json_t *numatopology_free_cpus(const struct report *r, const struct ledger *l)
{
	struct cpuset promised = ledger_promised_cpus(l, NULL);
	struct cpuset left = cpuset_minus(r->topo->cpus, &ledger_view(l)->held);

	left = cpuset_minus(left, &promised);
	return json_pack("{s:{s:o,s:i}}", "cpu", "allocatable", cpu_list(&left), "capacity",
		(int)r->topo->nr_cpus);
}

/* CPUs */

/* The number of each CPU's core within its socket, by the core's lowest CPU. */
static void number_cores(const struct topo *t, unsigned *core)
{
	unsigned nr_on[CPUSET_BITS] = {0};

	cpuset_each (cpu, &t->cpus) {
		const struct topo_cpu *c = &t->cpu[cpu];

		core[cpu] = c->core == cpu ? nr_on[c->socket]++ : core[c->core];
	}
}

/* Zeros are left out, as the exporter's are. */
static void numatopology_set_number(json_t *object, const char *key, unsigned value)
{
	if (value)
		(void)json_object_set_new(object, key, json_integer(value));
}

static json_t *cpu_detail(const struct topo *t)
{
	unsigned core[CPUSET_BITS] = {0};
	json_t *detail = json_object();

	number_cores(t, core);
	cpuset_each (cpu, &t->cpus) {
		json_t *one = json_object();
		char id[NUMBER_TEXT_MAX];

		(void)snprintf(id, sizeof id, "%u", cpu);
		numatopology_set_number(one, "numa", t->ids.id[t->cpu[cpu].node]);
		numatopology_set_number(one, "socket", t->cpu[cpu].socket);
		numatopology_set_number(one, "core", core[cpu]);
		(void)json_object_set_new(detail, id, one);
	}
	return detail;
}

/* Who has which */

static int compare_holdings(const void *a, const void *b)
{
	const struct holding *x = *(const struct holding *const *)a,
			     *y = *(const struct holding *const *)b;
	int rc = strcmp(x->request.pod.uid, y->request.pod.uid);

	if (!rc)
		rc = (x->request.ask.place > y->request.ask.place) -
		     (x->request.ask.place < y->request.ask.place);
	return rc ? rc : strcmp(x->request.container_id, y->request.container_id);
}

/* Containers with CPUs of their own, pod by pod; what a pod has as one has no container's name. */
static json_t *pod_allocations(const struct ledger *l)
{
	size_t nr = 0, room = ledger_count(l);
	const struct holding **list = xcalloc(room + 1, sizeof *list);
	json_t *pods = json_array(), *pod = NULL;

	for (size_t i = 0; i < room; i++)
		if (ledger_at(l, i)->decision.exclusive && !ledger_at(l, i)->decision.within_pod &&
			!holding_is_share(ledger_at(l, i)))
			list[nr++] = ledger_at(l, i);
	qsort(list, nr, sizeof *list, compare_holdings);
	for (size_t i = 0; i < nr; i++) {
		const struct pod *p = &list[i]->request.pod;

		if (!i || !text_equal(list[i - 1]->request.pod.uid, p->uid)) {
			pod = json_pack("{s:s,s:s,s:s,s:[]}", "uid", p->uid, "name", p->name,
				"namespace", p->ns, "containerAllocations");
			(void)json_array_append_new(pods, pod);
		}
		(void)json_array_append_new(json_object_get(pod, "containerAllocations"),
			json_pack("{s:s,s:{s:o}}", "name", list[i]->request.ask.name, "allocations",
				"cpu", cpu_list(&list[i]->decision.cpus)));
	}
	free(list);
	return pods;
}

char *numatopology_json_write(
	const struct report *r, const struct ledger *l, const struct settings *s, uint64_t beat)
{
	char moves[NUMBER_TEXT_MAX];

	(void)snprintf(moves, sizeof moves, "%llu", (unsigned long long)beat);
	json_t *metadata = json_pack("{s:s,s:{s:s},s:[{s:s,s:s,s:s,s:s}]}", "name", r->node_name,
		"annotations", "numafit.io/beat", moves, "ownerReferences", "apiVersion", "v1",
		"kind", "Node", "name", r->node_name, "uid", r->node_uid);
	if (!metadata)
		return NULL;
	json_t *object = json_pack("{s:s,s:s,s:o,s:{s:o,s:o,s:o,s:o,s:o}}", "apiVersion",
		"nodeinfo.volcano.sh/v1alpha1", "kind", "Numatopology", "metadata", metadata,
		"spec", "policies", policies(r), "resReserved", reserved(r, s), "numares",
		numatopology_free_cpus(r, l), "cpuDetail", cpu_detail(r->topo), "podAllocations",
		pod_allocations(l));
	char *text = json_dumps(object, JSON_COMPACT);
	json_decref(object);
	return text;
}
