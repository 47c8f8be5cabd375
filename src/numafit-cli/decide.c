#include <numafit-cli/verbs.h>

#include <host/discover.h>
#include <numafit-cli/questions.h>

static const char help[] =
	"usage: numafit decide [--check] [FILE|-]\n"
	"\n"
	"Answer placement questions as the kubelet's resource managers would: one JSON object on "
	"each\n"
	"line, or one JSON array of them; one JSON line out for each, in the same order.\n"
	"\n"
	"  --check   compare with the \"expected\" of each question: print the differences and the "
	"count\n"
	"  --help    this text\n"
	"\n"
	"A question has the keys of one of these forms:\n"
	"  a merge of NUMA hints, by what the hints of each resource follow from:\n"
	"    {\"nodes\": [0, 1], \"policy\": \"restricted\", \"options\": {}, "
	"\"distances\": {\"0\": [10, 20], \"1\": [20, 10]},\n"
	"     \"families\": [{\"kind\": \"cpu\", \"cap\": {\"0\": 8, \"1\": 8}, "
	"\"avail\": {\"0\": 6, \"1\": 8}, \"request\": 8},\n"
	"                  {\"kind\": \"device\", \"all\": {\"gpu0\": [0], \"gpu1\": [1]}, "
	"\"avail\": [\"gpu1\"], \"request\": 1}]}\n"
	"  CPUs: cpus_fields, cpus, mode and more; memory: nodes, node_reservation, steps;\n"
	"  a whole node: machine, settings, steps. src/codec/*_json.h has every key.\n"
	"\n"
	"Exit code: 0; 1 when a question could not be answered or an answer was not the expected "
	"one.\n";

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

int verb_decide(int argc, char **argv)
{
	static const struct question_verb verb = {
		"decide", help, .answer = decide_question, .check = decide_item_check};

	return questions_run(&verb, argc, argv);
}
