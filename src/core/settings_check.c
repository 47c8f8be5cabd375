#include <core/settings_row.h>

#include <errno.h>
#include <numafit/cpus.h>
#include <numafit/policy.h>
#include <numafit/advice.h>

/* What no key alone can show. Of reservedMemory there is one struct for each type of each entry. */

enum { TYPE_MAX = sizeof((struct reserved_memory *)NULL)->type };

/* The options under that key whose feature gate is off; it does not matter what they are set to
 * (kubelet CheckPolicyOptionAvailable of both managers). */
static int check_gates(const struct settings *s, const char *group, struct err *e)
{
	const struct row *row;

	for (unsigned i = 0; (row = settings_row(i)); i++) {
		const char *name = settings_behind(row->key, group);

		if (!name || !row->gate || !settings_option_given(s, row))
			continue;
		if (!*(const bool *)((const char *)s + row->gate->at))
			return err_set(e, EINVAL, "%s not enabled, but option \"%s\" provided",
				row->gate->options, name);
	}
	return 0;
}

/* The CPU manager with the policy none takes no options at all (cpumanager NewNonePolicy). */
static int check_no_cpu_options(const struct settings *s, struct err *e)
{
	char list[sizeof e->text] = "";
	const struct row *row;
	struct text t;

	text_init(&t, list, sizeof list);
	for (unsigned i = 0; (row = settings_row(i)); i++) {
		const char *name = settings_behind(row->key, CPU_OPTIONS ".");

		if (name && settings_option_given(s, row)) {
			text_add(&t, "%s%s:", t.len ? " " : "", name);
			row->kind->print(row, (const char *)s + row->at, &t);
		}
	}
	return t.len ? err_set(e, EINVAL,
			       "new none policy error: None policy: received unsupported "
			       "options=map[%s]",
			       list)
		     : 0;
}

/* What the kubelet would refuse to start with, in its order and words: options of its Topology
 * Manager whose feature gate is off (not looked at with the policy none), more NUMA nodes than
 * max-allowable-numa-nodes, then options of its CPU manager whose gate is off or that do not go
 * together (cpus_check_options()). */
static int check_kubelet_options(const struct settings *s, const struct topo *t, struct err *e)
{
	int rc = 0;

	if (s->topology_policy != POLICY_NONE) /* else it does not look at its options */
		rc = check_gates(s, TOPOLOGY_OPTIONS ".", e);
	if (!rc && t)
		rc = policy_check_nodes(
			s->topology_policy, t->ids.nr, s->max_allowable_numa_nodes, e);
	if (rc)
		return rc;
	if (s->cpu_manager_policy == MANAGER_NONE)
		return check_no_cpu_options(s, e);
	rc = check_gates(s, CPU_OPTIONS ".", e);
	if (!rc && t)
		rc = cpus_check_options(t, &s->cpu_options, s->topology_policy, e);
	return rc ? err_add(e, rc, "new static policy error") : 0;
}

static int check_reserved_cpus(const struct settings *s, const struct topo *t, struct err *e)
{
	struct cpuset missing = cpuset_minus(s->reserved_cpus, &t->cpus);
	char list[SETTING_SHOWN];

	if (!cpuset_empty(&missing))
		return err_set(e, EINVAL, "reservedSystemCPUs: %s has no CPU %s", t->name,
			cpuset_format(&missing, list, sizeof list));
	if (settings_reserved_cpu_count(s) >= t->nr_cpus)
		return err_set(e, EINVAL, "%s: no CPU is left for containers",
			cpuset_empty(&s->reserved_cpus) ? "systemReserved.cpu, kubeReserved.cpu"
							: "reservedSystemCPUs");
	return 0;
}

/* An entry against the others: it is whole, and says nothing twice (as the kubelet's
 * validation_reserved_memory.go). */
static int check_entry(const struct settings *s, const struct reserved_memory *r, struct err *e)
{
	if (!r->has_node)
		return err_set(e, EINVAL, "reservedMemory.%u: numaNode is missing", r->entry);
	if (!*r->type)
		return err_set(e, EINVAL, "reservedMemory.%u: limits is missing", r->entry);
	for (const struct reserved_memory *o = s->reserved_memory; o < r; o++)
		if (o->node_id == r->node_id && text_equal(o->type, r->type))
			return err_set(e, EINVAL,
				"reservedMemory.%u: %s of NUMA node %u is reserved in entry %u "
				"already",
				r->entry, r->type, r->node_id, o->entry);
	return 0;
}

static int check_entry_fits(const struct reserved_memory *r, const struct topo *t, struct err *e)
{
	int node = node_index(&t->ids, r->node_id);
	char name[TYPE_MAX + TEXT_SIZE_MAX], size[TEXT_SIZE_MAX], room[TEXT_SIZE_MAX];
	unsigned kind = 0;

	while (kind < t->nr_kinds &&
		!text_equal(topo_kind_name(t, kind, name, sizeof name), r->type))
		kind++;
	if (node < 0)
		return err_set(e, EINVAL,
			"reservedMemory.%u: the reserved memory configuration references a NUMA "
			"node %u "
			"that does not exist on this machine",
			r->entry, r->node_id);
	if (kind == t->nr_kinds)
		return err_set(
			e, EINVAL, "reservedMemory.%u: the machine has no %s", r->entry, r->type);
	uint64_t left = t->node[node].memory[kind];

	for (unsigned k = 1; !kind && k < t->nr_kinds; k++)
		left -= t->node[node].memory[k]; /* topo_seal(): huge pages are within the memory */
	if (r->bytes > left)
		return err_set(e, EINVAL,
			"reservedMemory.%u: %s of %s are reserved, NUMA node %u has %s", r->entry,
			text_size(size, r->bytes), r->type, r->node_id, text_size(room, left));
	return 0;
}

static int check_budget(const struct settings *s, struct err *e)
{
	if (!s->merge_visit_budget)
		return err_set(e, EINVAL,
			"mergeVisitBudget: 0 is no bound, and a container that is created would "
			"wait for as long as it takes: numafitd takes 1 to %d",
			MERGE_VISIT_BUDGET_MAX);
	if (s->merge_visit_budget > MERGE_VISIT_BUDGET_MAX)
		return err_set(e, EINVAL,
			"mergeVisitBudget: %llu steps may take longer than the runtime waits for a "
			"container: numafitd takes 1 to %d",
			(unsigned long long)s->merge_visit_budget, MERGE_VISIT_BUDGET_MAX);
	return 0;
}

int settings_check_daemon(const struct settings *s, const struct topo *t, struct err *e)
{
	int rc = check_budget(s, e);

	return rc ? rc : settings_check(s, t, e);
}

int settings_check(const struct settings *s, const struct topo *t, struct err *e)
{
	enum advice_format format[NR_ADVICE_FORMATS];
	int rc = check_kubelet_options(s, t, e);

	if (rc)
		return rc;
	if (s->device_plugin && s->cpu_manager_policy != MANAGER_STATIC)
		return err_set(e, EINVAL,
			"devicePlugin.enabled: its tokens stand for CPUs that containers have for "
			"themselves: cpuManagerPolicy must be static");
	/* only the pod's owner shows whether another pod would come */
	if (s->refusal_action == REFUSAL_EVICT && !s->pods_watch)
		return err_set(e, EINVAL,
			"refusalAction: evict needs to know what made a pod: podsWatch.enabled "
			"must "
			"be true");
	rc = advice_order_parse(s->advice_order, format, e);
	if (rc < 0)
		return rc;
	if (s->gates.pod_level_resource_managers) /* in the table, but not in the daemon */
		return err_set(e, EINVAL,
			GATES ".PodLevelResourceManagers: true is not there yet, only false is");
	rc = 0;
	for (unsigned i = 0; !rc && i < s->nr_reserved_memory; i++)
		rc = check_entry(s, &s->reserved_memory[i], e);
	for (unsigned i = 0; t && !rc && i < s->nr_reserved_memory; i++)
		rc = check_entry_fits(&s->reserved_memory[i], t, e);
	return rc || !t ? rc : check_reserved_cpus(s, t, e);
}
