#include <ui/whatif.h>

#include <codec/journal_json.h>
#include <codec/moves_json.h>
#include <codec/refusal_line.h>
#include <errno.h>
#include <numafit/answer.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/quantity.h>
#include <numafit/request.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

enum { UI_VALUE_MAX = 64, UI_NAME_MAX = 24, UI_RECORD_MAX = 256 << 10 };

/* The question */

static int read_ui_cpus(struct ui_question *q, const char *rest, const char *value, struct err *e)
{
	(void)rest;
	return quantity_parse_count(value, QUANTITY_MILLI, &q->cpu_milli, e);
}

static int read_ui_memory(struct ui_question *q, const char *rest, const char *value, struct err *e)
{
	(void)rest;
	return ask_read_memory(q->memory, &q->nr_memory, 0, value, e);
}

static int read_ui_pages(struct ui_question *q, const char *rest, const char *value, struct err *e)
{
	uint64_t page_bytes = page_bytes_from_name(rest);

	return page_bytes ? ask_read_memory(q->memory, &q->nr_memory, page_bytes, value, e)
			  : err_set(e, EINVAL, "%s is no page size", rest);
}

static int read_ui_containers(
	struct ui_question *q, const char *rest, const char *value, struct err *e)
{
	uint64_t nr = 0;

	(void)rest;
	if (text_u64(value, strlen(value), UI_CONTAINERS_MAX, &nr, NULL) || !nr)
		return err_set(e, ERANGE,
			"%s: a number of 1 to %d is expected; numafit whatif takes more", value,
			UI_CONTAINERS_MAX);
	q->containers = (unsigned)nr;
	return 0;
}

static int read_ui_word(
	const char *const *words, unsigned nr, const char *value, unsigned *out, struct err *e)
{
	int i = text_index(words, nr, value);

	if (i < 0)
		return err_set(e, EINVAL, "there is no \"%s\"", value);
	*out = (unsigned)i;
	return 0;
}

static int read_ui_qos(struct ui_question *q, const char *rest, const char *value, struct err *e)
{
	(void)rest;
	unsigned word = q->qos;
	int rc = read_ui_word(qos_words, NR_QOS, value, &word, e);

	q->qos = word;
	return rc;
}

static int read_ui_policy(struct ui_question *q, const char *rest, const char *value, struct err *e)
{
	(void)rest;
	unsigned word = 0;
	int rc = read_ui_word(topology_policy_words, NR_POLICIES, value, &word, e);

	q->has_policy = !rc;
	q->policy = word;
	return rc;
}

static const struct ui_parameter {
	const char *name; /* one that ends with '-' has a rest behind it */
	int (*read)(struct ui_question *q, const char *rest, const char *value, struct err *e);
} ui_parameters[] = {
	{"cpus", read_ui_cpus},
	{"memory", read_ui_memory},
	{"hugepages-", read_ui_pages},
	{"containers", read_ui_containers},
	{"qos", read_ui_qos},
	{"policy", read_ui_policy},
};

/* What is behind the parameter's own name; NULL: the name is another one's. */
static const char *rest_of_ui_name(const struct ui_parameter *p, const char *name)
{
	const char *rest = text_behind(name, p->name);

	return rest && (!*rest == (p->name[strlen(p->name) - 1] != '-')) ? rest : NULL;
}

/* No name and no value needs an escape: none has more than letters, digits, dots and dashes. */
static int read_ui_pair(struct ui_question *q, const char *pair, size_t len, struct err *e)
{
	char name[UI_VALUE_MAX] = "";

	if (len >= sizeof name)
		return err_set(e, EINVAL, "\"%.16s...\" is too long", pair);
	memcpy(name, pair, len);
	char *value = strchr(name, '=');

	if (value)
		*value++ = '\0';
	for (size_t i = 0; i < sizeof ui_parameters / sizeof *ui_parameters; i++) {
		const struct ui_parameter *p = &ui_parameters[i];
		const char *rest = rest_of_ui_name(p, name);

		if (!rest)
			continue;
		int rc = value && *value ? p->read(q, rest, value, e) : 0;
		return rc ? err_add(e, rc, "%s", name) : 0;
	}
	return err_set(e, EINVAL,
		"what may be asked for is cpus, memory, hugepages-SIZE, containers, qos and policy");
}

static bool asks_for_memory(const struct ui_question *q)
{
	for (unsigned i = 0; i < q->nr_memory; i++)
		if (q->memory[i].bytes)
			return true;
	return false;
}

int ui_question_read(const char *query, struct ui_question *out, struct err *e)
{
	struct ui_question q = {.containers = 1, .qos = QOS_GUARANTEED};
	int rc = 0;

	while (*query && !rc) {
		size_t len = strcspn(query, "&");

		rc = len ? read_ui_pair(&q, query, len, e) : 0;
		query += len + (query[len] == '&');
	}
	const bool asks = q.cpu_milli || asks_for_memory(&q);

	if (!rc && !asks && q.qos == QOS_GUARANTEED)
		rc = err_set(e, EINVAL, "a Guaranteed pod asks for CPUs or memory");
	if (!rc && asks && q.qos == QOS_BEST_EFFORT)
		rc = err_set(e, EINVAL, "a BestEffort pod asks for neither CPUs nor memory");
	if (!rc)
		*out = q;
	return rc;
}

/* The answer */

/* The pod in question, of containers that are alike. */
struct ui_pod {
	struct pod pod;
	struct ask container[UI_CONTAINERS_MAX];
	char name[UI_CONTAINERS_MAX][UI_NAME_MAX];
};

static void imagine_ui_pod(const struct ui_question *q, struct ui_pod *x)
{
	struct ask typed = {.nr_memory = q->nr_memory}, one = {.cpu_milli = q->cpu_milli};

	memcpy(typed.memory, q->memory, sizeof typed.memory);
	one.nr_memory = ask_memory(&typed, one.memory);
	x->pod = (struct pod){.sandbox_id = "whatif",
		.uid = "whatif",
		.ns = "whatif",
		.name = "whatif",
		.qos = q->qos,
		.nr = q->containers,
		.container = x->container};
	for (unsigned i = 0; i < q->containers; i++) {
		(void)snprintf(x->name[i], sizeof x->name[i], "container-%u", i);
		x->container[i] = one;
		x->container[i].name = x->name[i];
	}
}

static int settings_for_question(
	const struct ui_node *node, const struct ui_question *q, struct settings *s, struct err *e)
{
	*s = *node->settings;
	if (!q->has_policy || q->policy == s->topology_policy)
		return 0;
	s->topology_policy = q->policy;
	return settings_check(s, ledger_view(node->ledger)->topo, e);
}

/* The moves that would make room, as a JSON object; NULL: there are none. */
static char *moves_members(const struct ui_node *node, const struct admit_question *q)
{
	const struct topo *t = ledger_view(q->ledger)->topo;
	const struct defrag_question asked = {.engine = node->engine,
		.topo = t,
		.settings = q->settings,
		.pod = q->pod,
		.moves = q->settings->defrag.moves_per_plan,
		.trials = node->trials};
	auto_free struct defrag_plan *plan = xcalloc(1, sizeof *plan);
	auto_free struct moves *m = xcalloc(1, sizeof *m);
	struct move_nodes words[DEFRAG_MOVES_MAX];

	if (!node->engine || q->settings->defrag.mode == DEFRAG_OFF ||
		defrag_plan(&asked, plan, NULL) || !plan->nr)
		return NULL;
	moves_of_plan(t, plan, words, m);
	return moves_json_format(m);
}

/* The record's line, with what a refusal has besides. */
static char *answer_line(const struct ui_node *node, const struct admit_question *q,
	const struct answer *answer, struct err *e)
{
	auto_free char *line = xcalloc(UI_RECORD_MAX, 1), *members = NULL, *moves = NULL;
	struct diagnosis why;

	if (journal_json_record(&answer->record, &ledger_view(q->ledger)->topo->ids, line,
		    UI_RECORD_MAX, e) < 0)
		return NULL;
	if (answer->decision.admit)
		return steal(line);
	diagnose_with_remedies(q, &answer->decision, REMEDIES_QUICKLY, NULL, &why);
	members = refusal_members(q, &answer->decision, &why);
	moves = moves_members(node, q);
	auto_free char *both = moves ? refusal_line_join(members, moves) : NULL;
	return refusal_line_join(line, both ? both : members);
}

char *ui_whatif(const struct ui_node *node, const struct ui_question *q, struct err *e)
{
	auto_free struct settings *s = xcalloc(1, sizeof *s);
	auto_free struct ui_pod *pod = xcalloc(1, sizeof *pod);
	auto_free void *work = xcalloc(1, ADMIT_ARENA_BYTES);
	struct budget b = budget_of(node->steps);
	struct answer answer;
	struct arena a;

	if (settings_for_question(node, q, s, e))
		return NULL;
	imagine_ui_pod(q, pod);
	const struct admit_question asked = {node->ledger, s, .pod = &pod->pod};
	arena_init_fixed(&a, work, ADMIT_ARENA_BYTES);
	answer_pod(&asked, &b, &a, &answer);
	if (b.cut) {
		(void)err_set(e, EBUSY,
			"this question takes more steps than an answer may: its best answer may not be the "
			"right one; numafit whatif on the node has the same options, and more");
		return NULL;
	}
	answer.record.cause = "whatif";
	answer.record.time_ms = node->now_ms;
	return answer_line(node, &asked, &answer, e);
}
