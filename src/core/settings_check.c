#include <core/settings_row.h>

#include <errno.h>
#include <numafit/cpus.h>
#include <numafit/host_kind.h>
#include <numafit/policy.h>
#include <numafit/advice.h>

/* What no key alone can show. Of reservedMemory there is one struct for each type of each entry. */

enum { TYPE_MAX = sizeof((struct reserved_memory *)NULL)->type };

/* What is checked, and what has been found: with a list all mistakes, else the first one. */
struct checking {
	const struct settings *s;
	const struct topo *t; /* NULL: no machine */
	struct mistakes *all;
	struct err *e;
	int rc; /* of the first one */
};

/* rc is of a check of that key; true: the next one is due. */
static bool settings_go_on(struct checking *c, const char *key, int rc)
{
	if (!rc)
		return true;
	if (c->all)
		mistakes_add_key(c->all, key, c->e);
	c->rc = c->rc ? c->rc : rc;
	return c->all;
}

/* The options under that key whose feature gate is off; it does not matter what they are set to
 * (kubelet CheckPolicyOptionAvailable of both managers). place: what the text begins with, or NULL.
 */
static bool check_gates(struct checking *c, const char *group, const char *place)
{
	const struct row *row;

	for (unsigned i = 0; (row = settings_row(i)); i++) {
		const char *name = text_behind(row->key, group);

		if (!name || !row->gate || !settings_option_given(c->s, row) ||
			*(const bool *)((const char *)c->s + row->gate->at))
			continue;
		int rc = err_set(c->e, EINVAL, "%s not enabled, but option \"%s\" provided",
			row->gate->options, name);
		if (place)
			(void)err_add(c->e, rc, "%s", place);
		if (!settings_go_on(c, row->key, rc))
			return false;
	}
	return true;
}

/* The CPU manager with the policy none takes no options at all (cpumanager NewNonePolicy). */
static int check_no_cpu_options(const struct settings *s, struct err *e)
{
	char list[sizeof e->text] = "";
	const struct row *row;
	struct text t;

	text_init(&t, list, sizeof list);
	for (unsigned i = 0; (row = settings_row(i)); i++) {
		const char *name = text_behind(row->key, CPU_OPTIONS ".");

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
static bool check_kubelet_options(struct checking *c)
{
	static const char place[] = "new static policy error";
	const struct settings *s = c->s;
	int rc = 0;

	/* with the policy none it does not look at its options */
	if (s->topology_policy != POLICY_NONE && !check_gates(c, TOPOLOGY_OPTIONS ".", NULL))
		return false;
	if (c->t)
		rc = policy_check_nodes(
			s->topology_policy, c->t->ids.nr, s->max_allowable_numa_nodes, c->e);
	if (!settings_go_on(c, TOPOLOGY_OPTIONS ".max-allowable-numa-nodes", rc))
		return false;
	if (s->cpu_manager_policy == MANAGER_NONE)
		return settings_go_on(c, CPU_OPTIONS, check_no_cpu_options(s, c->e));
	if (!check_gates(c, CPU_OPTIONS ".", place))
		return false;
	rc = c->t ? cpus_check_options(c->t, &s->cpu_options, s->topology_policy, c->e) : 0;
	return settings_go_on(c, CPU_OPTIONS, rc ? err_add(c->e, rc, place) : 0);
}

/* kubelet cmd/kubelet/app getReservedCPUs() */
static int check_reserved_cpus_exist(const struct settings *s, const struct topo *t, struct err *e)
{
	struct cpuset missing = cpuset_minus(s->reserved_cpus, &t->cpus);
	char list[SETTING_SHOWN];

	return cpuset_empty(&missing)
		       ? 0
		       : err_set(e, EINVAL, "reservedSystemCPUs: %s has no CPU %s", t->name,
				 cpuset_format(&missing, list, sizeof list));
}

static int check_reserved_cpus(const struct settings *s, const struct topo *t, struct err *e)
{
	int rc = check_reserved_cpus_exist(s, t, e);

	if (rc)
		return rc;
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

const char *settings_pool_minimum_text(const struct settings *s, char buf[POOL_MINIMUM_TEXT_MAX])
{
	struct text t;

	text_init(&t, buf, POOL_MINIMUM_TEXT_MAX);
	if (s->shared_pool_minimum)
		text_add(&t, "sharedPoolMinimum is %u", s->shared_pool_minimum);
	else
		text_add(&t, "and always keeps 1 (sharedPoolMinimum is 0)");
	return buf;
}

/* At 1, the least, a machine of one CPU is served as well as it can be. */
static int check_pool_minimum(const struct settings *s, const struct topo *t, struct err *e)
{
	unsigned reserved =
		s->cpu_options.strict_cpu_reservation ? settings_reserved_cpu_count(s) : 0;
	unsigned minimum = settings_pool_minimum(s);

	if (s->cpu_manager_policy == MANAGER_NONE || minimum == 1 ||
		minimum + reserved < t->nr_cpus)
		return 0;
	return err_set(e, EINVAL,
		"sharedPoolMinimum: with %u CPU%s kept shared%s no container could have one for "
		"itself: %s has %u CPU%s",
		minimum, text_plural(minimum), reserved ? " beside the reserved ones" : "", t->name,
		t->nr_cpus, text_plural(t->nr_cpus));
}

static int check_tokens(const struct settings *s, struct err *e)
{
	if (s->device_plugin && s->cpu_manager_policy != MANAGER_STATIC)
		return err_set(e, EINVAL,
			"devicePlugin.enabled: its tokens stand for CPUs that containers have for "
			"themselves: cpuManagerPolicy must be static");
	return 0;
}

/* Only the pod's owner shows whether another pod would come. */
static int check_eviction(const struct settings *s, struct err *e)
{
	if (s->refusal_action == REFUSAL_EVICT && !s->pods_watch)
		return err_set(e, EINVAL,
			"refusalAction: evict needs to know what made a pod: podsWatch.enabled "
			"must "
			"be true");
	return 0;
}

/* What is on a pod already is in what the API server lists, and without the devices that it has an
 * observation would say that it has none. */
static int check_observed(const struct settings *s, struct err *e)
{
	if (s->observed_placement == OBSERVED_KAI && !(s->pods_watch && s->pod_resources))
		return err_set(e, EINVAL,
			"observedPlacement: kai needs to know what pods have: podsWatch.enabled "
			"and podResources.enabled must be true");
	return 0;
}

/* Which devices a claim has come to is in what PodResources shows. */
static int check_device_claims(const struct settings *s, struct err *e)
{
	if (s->device_claims && !s->pod_resources)
		return err_set(e, EINVAL,
			"deviceClaims.enabled needs to know which devices containers have: "
			"podResources.enabled must be true");
	return 0;
}

static int check_advice_order(const struct settings *s, struct err *e)
{
	enum advice_format format[NR_ADVICE_FORMATS];
	int rc = advice_order_parse(s->advice_order, format, e);

	return rc < 0 ? rc : 0;
}

static int check_pod_level(const struct settings *s, struct err *e)
{
	if (s->gates.pod_level_resource_managers && !s->gates.pod_level_resources)
		return err_set(e, EINVAL,
			"PodLevelResourceManagers is enabled, but depends on features that are "
			"disabled: [PodLevelResources]"); /* the kubelet's words */
	return 0;
}

static int check_pods_are_known(const struct settings *s, struct err *e)
{
	if (s->gates.pod_level_resource_managers && s->pods_api == PODS_API_OFF && !s->pods_watch)
		return err_set(e, EINVAL,
			GATES ".PodLevelResourceManagers: no runtime says what a pod has as "
			      "resources of its own: podsAPI.enabled (true or auto) or "
			      "podsWatch.enabled must be set as well");
	return 0;
}

static int check_wishes(const struct settings *s, struct err *e)
{
	if (s->wishes_allowed & WISHES_CPUS_UNTOUCHED)
		return err_set(e, EINVAL,
			"podWishes.allowed: cpus=untouched is not for all pods: allow it in a section "
			"of " NAMESPACES);
	return 0;
}

static int check_profile(const struct frequency_profile *p, struct err *e)
{
	if (!*p->name)
		return err_set(e, EINVAL, "name is missing");
	if (!*p->governor && !*p->energy_performance && !p->min_mhz && !p->max_mhz &&
		!p->limits_idle)
		return err_set(e, EINVAL, "profile \"%s\" sets nothing", p->name);
	if (p->max_mhz && p->min_mhz > p->max_mhz)
		return err_set(e, EINVAL, "minMHz %u is above maxMHz %u", p->min_mhz, p->max_mhz);
	return 0;
}

static int check_profiles(const struct settings *s, struct err *e)
{
	for (unsigned i = 0; i < s->profiles.nr; i++) {
		int rc = check_profile(&s->profiles.at[i], e);

		if (!rc && profiles_find(&s->profiles, s->profiles.at[i].name) != i)
			rc = err_set(e, EINVAL, "another one is called \"%s\", too",
				s->profiles.at[i].name);
		if (rc)
			return err_add(e, rc, PROFILES ".%u", i);
	}
	return 0;
}

static int check_namespaces(const struct settings *s, struct err *e)
{
	for (unsigned i = 0; i < s->namespaces.nr; i++) {
		const char *profile = wishes_quiet_profile(&s->namespaces.at[i].wishes);

		if (*profile && profiles_find(&s->profiles, profile) == s->profiles.nr)
			return err_set(e, EINVAL,
				NAMESPACES ".%u.wishes.quiet: " PROFILES " has no \"%s\"", i,
				profile);
		if (!*s->namespaces.at[i].names)
			return err_set(e, EINVAL,
				NAMESPACES ".%u: which namespaces it is for is missing: names", i);
		if (s->namespaces.at[i].reserved && !settings_reserved_cpu_count(s))
			return err_set(e, EINVAL,
				NAMESPACES ".%u.reserved: no CPU is reserved: set "
					   "reservedSystemCPUs, or systemReserved.cpu",
				i);
	}
	return 0;
}

/* The page has no password: whoever reaches it may read it. */
static int check_ui_address(const struct settings *s, struct err *e)
{
	if (!*s->ui_address || s->ui_insecure || host_kind_of(s->ui_address) == HOST_LOOPBACK)
		return 0;
	return err_set(e, EINVAL,
		"ui.address: \"%s\" is no loopback address, such as 127.0.0.1:9466; another one "
		"takes ui.insecure: true",
		s->ui_address);
}

static const struct {
	const char *key;
	int (*check)(const struct settings *s, struct err *e);
} checks[] = {
	{"podWishes.allowed", check_wishes},
	{NAMESPACES, check_namespaces},
	{PROFILES, check_profiles},
	{"devicePlugin.enabled", check_tokens},
	{"refusalAction", check_eviction},
	{"observedPlacement", check_observed},
	{"deviceClaims.enabled", check_device_claims},
	{"schedulerHint.order", check_advice_order},
	{"ui.address", check_ui_address},
	{GATES ".PodLevelResourceManagers", check_pod_level},
	{GATES ".PodLevelResourceManagers", check_pods_are_known},
};

/* Entry by entry, first by themselves, then on the machine. */
static bool check_reserved_memory(struct checking *c)
{
	for (int fits = 0; fits <= (c->t ? 1 : 0); fits++)
		for (unsigned i = 0; i < c->s->nr_reserved_memory; i++) {
			const struct reserved_memory *r = &c->s->reserved_memory[i];
			char key[sizeof RESERVED "." + TEXT_SIZE_MAX];
			struct text t;

			if (fits && !(r->has_node && *r->type))
				continue; /* that has been said */
			text_init(&t, key, sizeof key);
			text_add(&t, RESERVED ".%u", r->entry);
			if (!settings_go_on(c, key,
				    fits ? check_entry_fits(r, c->t, c->e)
					 : check_entry(c->s, r, c->e)))
				return false;
		}
	return true;
}

static int settings_check_all(struct checking *c)
{
	if (!check_kubelet_options(c))
		return c->rc;
	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
		if (!settings_go_on(c, checks[i].key, checks[i].check(c->s, c->e)))
			return c->rc;
	if (check_reserved_memory(c) && c->t)
		(void)settings_go_on(c,
			cpuset_empty(&c->s->reserved_cpus) ? "systemReserved"
							   : "reservedSystemCPUs",
			check_reserved_cpus(c->s, c->t, c->e));
	return c->rc;
}

int settings_check_kubelet(const struct settings *s, const struct topo *t, struct err *e)
{
	struct checking c = {.s = s, .t = t, .e = e};
	int rc = check_pod_level(s, e);

	if (!rc)
		rc = check_reserved_cpus_exist(s, t, e);
	if (!rc)
		(void)check_kubelet_options(&c);
	return rc ? rc : c.rc;
}

int settings_check(const struct settings *s, const struct topo *t, struct err *e)
{
	return settings_check_all(&(struct checking){.s = s, .t = t, .e = e});
}

int settings_check_daemon(
	const struct settings *s, const struct topo *t, struct mistakes *all, struct err *e)
{
	struct checking c = {.s = s, .t = t, .all = all, .e = e};

	if (settings_go_on(&c, "mergeVisitBudget", check_budget(s, e)) &&
		(!t || settings_go_on(&c, "sharedPoolMinimum", check_pool_minimum(s, t, e))))
		(void)settings_check_all(&c);
	return c.rc;
}
