#include <numafit/sched.h>

#include <numafit/qos.h>
#include <numafit/text.h>
#include <stdlib.h>
#include <string.h>

#define uthash_malloc(bytes)  xrealloc(NULL, 1, bytes)
#define uthash_fatal(message) abort() /* never: xrealloc() does not fail */
#include <uthash.h>

/* By itself, as kinds move when the table grows. Its key is the kind's name. */
struct resource_entry {
	unsigned number;
	UT_hash_handle hh;
};

const char *const sched_code_words[NR_SCHED_CODES] = {
	[SCHED_SUCCESS] = "Success",
	[SCHED_ERROR] = "Error",
	[SCHED_UNSCHEDULABLE] = "Unschedulable",
	[SCHED_UNRESOLVABLE] = "UnschedulableAndUnresolvable",
};

static struct resource_kind resource_kind_of(const char *name)
{
	bool prefixed = strstr(name, "kubernetes.io/") != NULL;
	struct resource_kind k = {
		.native = prefixed || !strchr(name, '/'),
		.huge_page = text_behind(name, "hugepages-"),
		.attachable = text_behind(name, "attachable-volumes-"),
	};

	k.extended = !k.native && !text_behind(name, "requests.");
	k.of_nodes = k.extended || k.huge_page || k.attachable || prefixed;
	return k;
}

void resource_table_init(struct resource_table *t)
{
	static const char *const usual[NR_USUAL_RESOURCES] = {
		[RESOURCE_CPU] = "cpu",
		[RESOURCE_MEMORY] = "memory",
		[RESOURCE_EPHEMERAL_STORAGE] = "ephemeral-storage",
		[RESOURCE_PODS] = "pods",
		[RESOURCE_STORAGE] = "storage",
	};

	*t = (struct resource_table){0};
	for (unsigned i = 0; i < NR_USUAL_RESOURCES; i++) {
		(void)resource_number(t, usual[i]);
		t->at[i].of_nodes = i != RESOURCE_STORAGE;
	}
}

void resource_table_fini(struct resource_table *t)
{
	struct resource_entry *entry, *next;

	HASH_ITER(hh, t->by_name, entry, next)
	{
		HASH_DEL(t->by_name, entry);
		free(entry);
	}
	for (size_t i = 0; i < t->nr; i++)
		free(t->at[i].name);
	vec_fini(t);
}

bool resource_find(const struct resource_table *t, const char *name, unsigned *number)
{
	struct resource_entry *entry;

	HASH_FIND_STR(t->by_name, name, entry);
	if (entry)
		*number = entry->number;
	return entry;
}

static unsigned enter_resource(struct resource_table *t, const char *name, bool of_pods)
{
	struct resource_entry *entry = xcalloc(1, sizeof *entry);
	struct resource_kind *k = vec_push(t);

	*k = resource_kind_of(name);
	k->name = xstrdup(name);
	k->of_pods = of_pods;
	t->nr_of_pods += of_pods;
	entry->number = (unsigned)t->nr - 1;
	HASH_ADD_KEYPTR(hh, t->by_name, k->name, strlen(k->name), entry);
	return entry->number;
}

unsigned resource_number(struct resource_table *t, const char *name)
{
	unsigned number;

	if (!resource_find(t, name, &number))
		return enter_resource(t, name, false);
	if (t->at[number].of_pods) {
		t->at[number].of_pods = false;
		t->nr_of_pods--;
	}
	return number;
}

bool resource_number_of_pod(struct resource_table *t, const char *name, unsigned *number)
{
	if (resource_find(t, name, number))
		return true;
	if (t->nr_of_pods >= RESOURCES_OF_PODS_MAX)
		return false;
	*number = enter_resource(t, name, true);
	return true;
}

const struct quantity *amounts_find(const struct amounts *a, unsigned resource)
{
	for (unsigned i = 0; i < a->nr; i++)
		if (a->at[i].resource == resource)
			return &a->at[i].q;
	return NULL;
}

enum qos sched_pod_qos(const struct sched_pod *p)
{
	static const unsigned resource[NR_QOS_RESOURCES] = {RESOURCE_CPU, RESOURCE_MEMORY};
	struct qos_sums sums = {0};

	for (unsigned i = 0; i < p->nr_containers; i++) {
		struct qos_said said;

		for (unsigned r = 0; r < NR_QOS_RESOURCES; r++) {
			said.request[r] = amounts_find(&p->container[i].requests, resource[r]);
			said.limit[r] = amounts_find(&p->container[i].limits, resource[r]);
		}
		qos_add(&sums, &said);
	}
	return qos_of(&sums);
}
