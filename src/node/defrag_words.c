#include <numafit/defrag.h>
#include <numafit/text.h>

void defrag_print(const struct topo *t, const struct defrag_plan *plan, const struct pod *reader,
	enum pod_names names, struct text *to)
{
	char nodes[NODESET_TEXT_MAX], bytes[TEXT_SIZE_MAX];

	for (unsigned i = 0; i < plan->nr; i++) {
		const struct defrag_move *m = &plan->move[i];
		const struct request *r = &m->from->request;
		const unsigned cpus = cpuset_count(&m->to.cpus);

		text_add(to, "%s", i ? ", then " : "moving ");
		if (!reader || pod_may_name(names, reader, &r->pod))
			text_add(to, "%s/%s/%s", r->pod.ns, r->pod.name, r->ask.name);
		else
			text_add(to, "a container of another namespace");
		text_add(to, " to NUMA node %s (%u CPU%s, %s of memory)",
			nodeset_format(
				decision_nodes_used(t, &m->to), &t->ids, nodes, sizeof nodes),
			cpus, text_plural(cpus), text_size_rounded(bytes, m->cost.bytes));
	}
}
