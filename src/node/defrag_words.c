#include <numafit/defrag.h>

void defrag_print(const struct topo *t, const struct defrag_plan *plan, struct text *to)
{
	char nodes[NODESET_TEXT_MAX], bytes[TEXT_SIZE_MAX];

	for (unsigned i = 0; i < plan->nr; i++) {
		const struct defrag_move *m = &plan->move[i];
		const struct request *r = &m->from->request;
		const unsigned cpus = cpuset_count(&m->to.cpus);

		text_add(to, "%s%s/%s/%s to NUMA node %s (%u CPU%s, %s of memory)",
			i ? ", then " : "moving ", r->pod.ns, r->pod.name, r->ask.name,
			nodeset_format(
				decision_nodes_used(t, &m->to), &t->ids, nodes, sizeof nodes),
			cpus, cpus == 1 ? "" : "s", text_size_rounded(bytes, m->cost.bytes));
	}
}
