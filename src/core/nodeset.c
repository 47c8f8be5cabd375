#include <numafit/nodeset.h>

#include <errno.h>
#include <numafit/cpuset.h>

/* A list of NUMA node ids has the grammar of a CPU list, and ids stay below CPUSET_BITS. */
_Static_assert((int)NODE_ID_MAX < (int)CPUSET_BITS, "node ids fit into the list parser's set");

int node_index(const struct node_ids *ids, unsigned id)
{
	for (unsigned i = 0; i < ids->nr; i++)
		if (ids->id[i] == id)
			return (int)i;
	return -1;
}

struct nodeset nodeset_of_list(const struct node_ids *ids, struct node_id_list list)
{
	struct nodeset set = {0};

	for (size_t i = 0; i < list.nr; i++) {
		const bool is_id = list.id[i] >= 0 && list.id[i] <= NODE_ID_MAX;
		const int node = is_id ? node_index(ids, (unsigned)list.id[i]) : -1;

		if (node >= 0)
			set = nodeset_or(set, nodeset_of((unsigned)node));
	}
	return set;
}

bool node_id_list_equal(struct node_id_list a, struct node_id_list b)
{
	bool same = a.nr == b.nr;

	for (size_t i = 0; same && i < a.nr; i++)
		same = a.id[i] == b.id[i];
	return same;
}

int nodeset_parse(
	struct nodeset *out, const struct node_ids *ids, const char *s, size_t len, struct err *e)
{
	struct nodeset set = {0};
	struct cpuset listed;
	int rc = cpuset_parse(&listed, s, len, e);

	if (rc)
		return rc;
	cpuset_each (id, &listed) {
		int node = node_index(ids, id);

		if (node < 0)
			return err_set(e, ENOENT, "there is no NUMA node %u", id);
		set.bits |= nodeset_of((unsigned)node).bits;
	}
	*out = set;
	return 0;
}

const char *nodeset_format(struct nodeset s, const struct node_ids *ids, char *buf, size_t cap)
{
	struct cpuset listed = {0};

	nodeset_each (node, s)
		if (node < ids->nr)
			cpuset_add(&listed, ids->id[node]);
	return cpuset_format(&listed, buf, cap);
}
