/* What is set, and changes nothing beside the other settings. */
#include <core/settings_row.h>

#include <numafit/kubernetes.h>

#define NODE_LIMIT TOPOLOGY_OPTIONS ".max-allowable-numa-nodes"

static bool has_no_policy(const struct settings *s)
{
	return s->topology_policy == POLICY_NONE;
}

static bool is_pod_scope_idle(const struct settings *s)
{
	return s->topology_scope == SCOPE_POD && has_no_policy(s);
}

static bool is_closest_idle(const struct settings *s)
{
	return s->prefer_closest_numa_nodes &&
	       (has_no_policy(s) || s->topology_policy == POLICY_SINGLE_NUMA_NODE);
}

/* The kubelet has a limit without it, too. */
static bool is_node_limit_idle(const struct settings *s)
{
	const struct row *row;
	unsigned i = 0;

	while ((row = settings_row(i)) && !text_equal(row->key, NODE_LIMIT))
		i++;
	return row && settings_option_given(s, row) && has_no_policy(s);
}

static bool is_strategy_idle(const struct settings *s)
{
	return s->allocation_strategy != ALLOCATION_NONE && has_no_policy(s);
}

/* It says where distributed CPUs are taken first, too, by newer kubelets. */
static bool is_socket_idle(const struct settings *s)
{
	const struct cpu_options *o = &s->cpu_options;

	return o->align_by_socket && has_no_policy(s) &&
	       !(o->distribute_cpus_across_numa &&
		       kubernetes_has(o->kubernetes, RULE_DISTRIBUTES_IN_SOCKET));
}

static bool is_strict_idle(const struct settings *s)
{
	return s->cpu_options.strict_cpu_reservation && !settings_reserved_cpu_count(s);
}

static bool is_system_reserved_idle(const struct settings *s)
{
	return s->system_reserved_cpu_milli && !cpuset_empty(&s->reserved_cpus);
}

static bool is_kube_reserved_idle(const struct settings *s)
{
	return s->kube_reserved_cpu_milli && !cpuset_empty(&s->reserved_cpus);
}

static bool is_beta_gate_idle(const struct settings *s)
{
	return !s->gates.topology_beta_options;
}

#define NO_POLICY "topologyManagerPolicy is none"

static const struct {
	struct idle_setting found;
	bool (*is)(const struct settings *s);
} rows[] = {
	{{"topologyManagerScope", NO_POLICY}, is_pod_scope_idle},
	{{TOPOLOGY_OPTIONS ".prefer-closest-numa-nodes",
		 "only the policies best-effort and restricted look at distances"},
		is_closest_idle},
	{{NODE_LIMIT, NO_POLICY}, is_node_limit_idle},
	{{TOPOLOGY_OPTIONS ".numa-allocation-strategy", NO_POLICY}, is_strategy_idle},
	{{CPU_OPTIONS ".align-by-socket", NO_POLICY}, is_socket_idle},
	{{CPU_OPTIONS ".strict-cpu-reservation", "no CPUs are reserved"}, is_strict_idle},
	{{"systemReserved.cpu", "reservedSystemCPUs counts"}, is_system_reserved_idle},
	{{"kubeReserved.cpu", "reservedSystemCPUs counts"}, is_kube_reserved_idle},
	{{GATES ".TopologyManagerPolicyBetaOptions", "the Topology Manager has no beta options"},
		is_beta_gate_idle},
};
_Static_assert(sizeof rows / sizeof *rows <= IDLE_SETTINGS_MAX, "one for each row");

unsigned settings_idle(const struct settings *s, struct idle_setting found[IDLE_SETTINGS_MAX])
{
	unsigned nr = 0;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].is(s))
			found[nr++] = rows[i].found;
	return nr;
}
