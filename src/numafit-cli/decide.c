#include <numafit-cli/verbs.h>

#include <host/discover.h>
#include <numafit-cli/questions.h>

static int load_named_machine(const char *name, struct topo *out, struct err *e)
{
	return machine_load(name, out, NULL, NULL, e);
}

static int decide_question(const struct decide_items *d, size_t i, const struct steps *steps,
	struct arena *a, struct json_t **result, struct err *e)
{
	(void)steps;
	return decide_item_answer(d, i, load_named_machine, a, result, e);
}

static int run_decide(const struct call *c)
{
	static const struct question_verb verb = {decide_question, decide_item_check};

	return questions_run(&verb, c);
}

static const struct option_row rows[] = {QUESTION_CHECK_ROW, {0}};

const struct command verb_decide = {
	.name = "decide",
	.summary = "answer placement questions from a file, or check recorded answers",
	.about =
		"Answer placement questions as the kubelet's resource managers would: one JSON object "
		"on each line, or one JSON array of them; one JSON line out for each, in the same "
		"order. Without FILE, or with -, they are read from the standard input.\n"
		"\n"
		"A question is known by its keys; those below are broken into lines. It may have a \"name\", which is in its answer, and \"expected\", the result that --check compares with.\n"
		"\n"
		"A pod's containers come to a node whose kubelet decides: the steps are \"admit\" with a v1.Pod, \"start\" with \"uid\" and \"containers\" (names), and \"remove\" with \"uid\". \"machine\" is a name as for numafit topology --machine, \"settings\" are the kubelet's:\n"
		"  {\"machine\": \"kep3545-8\", \"settings\": {\"topologyManagerPolicy\": \"restricted\",\n"
		"     \"cpuManagerPolicy\": \"static\", \"reservedSystemCPUs\": \"0\"},\n"
		"   \"steps\": [{\"op\": \"admit\", \"pod\": {\"metadata\": {\"uid\": \"a\"}, \"spec\":\n"
		"     {\"containers\": [{\"name\": \"c\", \"resources\": {\"limits\":\n"
		"       {\"cpu\": 4, \"memory\": \"1Gi\"}}}]}}}]}\n"
		"\n"
		"The same node as numafitd decides: the steps are what a container runtime reports, \"run-pod\" (with \"pod\", a v1.Pod, where its containers are known), \"create\", \"live\", \"update\", \"stop\", \"remove\", \"stop-pod\", \"remove-pod\" and \"sync\" (with \"containers\"); the settings are numafitd's. Each step has \"sandbox_id\", and of a container what is not as in its pod: \"container_name\", \"cpu_milli\", \"memory\", \"qos\":\n"
		"  {\"machine\": \"kep3545-8\", \"settings\": {\"topologyManagerPolicy\": \"restricted\"},\n"
		"   \"steps\": [{\"op\": \"create\", \"sandbox_id\": \"db\", \"qos\": \"Guaranteed\",\n"
		"     \"cpu_milli\": 4000, \"memory\": [{\"bytes\": 1073741824}]},\n"
		"    {\"op\": \"stop\", \"sandbox_id\": \"db\"}]}\n"
		"\n"
		"A machine can be described in the question: NUMA nodes, distances, and of each CPU its number, core, socket, NUMA node and uncore cache. With \"reasons\": true the answers say what there was to choose from:\n"
		"  {\"machine\": {\"nodes\": [{\"id\": 0, \"memory\": 8589934592},\n"
		"      {\"id\": 1, \"memory\": 8589934592}],\n"
		"     \"distances\": {\"0\": [10, 21], \"1\": [21, 10]},\n"
		"     \"cpus\": [[0, 0, 0, 0, 0], [1, 1, 0, 0, 0], [2, 2, 1, 1, 1], [3, 3, 1, 1, 1]]},\n"
		"   \"settings\": {}, \"reasons\": true,\n"
		"   \"steps\": [{\"op\": \"create\", \"sandbox_id\": \"db\", \"cpu_milli\": 1000}]}\n"
		"\n"
		"The kubelet's merge of NUMA hints alone, by what the hints of each resource follow from (\"cpu\", \"mem\", \"device\", or \"any\"):\n"
		"  {\"nodes\": [0, 1], \"policy\": \"restricted\", \"options\": {},\n"
		"   \"distances\": {\"0\": [10, 20], \"1\": [20, 10]},\n"
		"   \"families\": [{\"kind\": \"cpu\", \"cap\": {\"0\": 8, \"1\": 8},\n"
		"                 \"avail\": {\"0\": 6, \"1\": 8}, \"request\": 8},\n"
		"                {\"kind\": \"device\", \"all\": {\"gpu0\": [0], \"gpu1\": [1]},\n"
		"                 \"avail\": [\"gpu1\"], \"request\": 1}]}\n"
		"which is answered by\n"
		"  {\"result\":{\"affinity\":[1],\"preferred\":true,\"admit\":true}}\n"
		"\n"
		"Its CPU manager alone: which CPUs it takes of those that are available; mode is \"packed\", or \"distributed\" in groups of cpu_group_size:\n"
		"  {\"cpus_fields\": [\"cpu\", \"core\", \"socket\", \"numa\", \"uncore\"],\n"
		"   \"cpus\": [[0, 0, 0, 0, 0], [1, 1, 0, 0, 0], [2, 0, 0, 0, 0], [3, 1, 0, 0, 0]],\n"
		"   \"num_cores\": 2, \"num_sockets\": 1, \"mode\": \"packed\", \"want\": 2,\n"
		"   \"available\": [0, 1, 3], \"cpu_group_size\": 1, \"spread\": false, \"uncore\": false}\n"
		"\n"
		"Its memory manager alone: pods come and go with the NUMA nodes (\"affinities\") that were chosen for them; the steps are \"add\", \"start\" and \"remove\":\n"
		"  {\"nodes\": [{\"id\": 0, \"memory\": 8589934592}, {\"id\": 1, \"memory\": 8589934592}],\n"
		"   \"reserved_memory\": [{\"numaNode\": 0, \"limits\": {\"memory\": \"1Gi\"}}],\n"
		"   \"node_reservation\": {\"memory\": \"1Gi\"},\n"
		"   \"steps\": [{\"op\": \"add\", \"scope\": \"container\",\n"
		"     \"affinities\": {\"c\": {\"mask\": [1], \"preferred\": true}},\n"
		"     \"pod\": {\"metadata\": {\"name\": \"a\", \"namespace\": \"d\", \"uid\": \"a\"}, \"spec\":\n"
		"       {\"containers\": [{\"name\": \"c\", \"resources\": {\"limits\":\n"
		"         {\"cpu\": \"1\", \"memory\": \"2Gi\"}}}]}}}]}",
	.options = rows,
	.operand = QUESTION_OPERAND,
	.examples = {{"numafit decide questions.jsonl", "answer each line of a file"},
		{"echo '{\"machine\": \"kep3545-4\", \"settings\": {}, \"steps\": []}' | numafit decide",
			"answer one from a pipe"},
		{"numafit decide --check recorded.jsonl", "compare with what is expected there"}},
	.exits = QUESTION_EXITS,
	.run = run_decide,
};
