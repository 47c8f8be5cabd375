#include <numafit-sim/report.h>

#include <codec/fields.h>
#include <codec/advice.h>
#include <errno.h>
#include <io/loop.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <string.h>

enum { WRONG_BY_S = 60 * 60 };

/* Our advice with all that can be wrong in it: codec/advice_json.h writes no such thing. */
struct spoken {
	unsigned version, ttl_s;
	const char *node, *uid, *mode;
	uint64_t generation;
	int64_t at_ms;
	struct spoken_containers {
		struct spoken_container {
			const char *numa;
		} all;
	} containers;
};

static const struct field container_rows[] = {
	FIELD("numa", STRING, offsetof(struct spoken_container, numa)),
};
static const struct fields container_fields = FIELDS(container_rows, struct spoken_container);
static const struct field containers_rows[] = {
	FIELD("*", OBJECT, offsetof(struct spoken_containers, all), .fields = &container_fields),
};
static const struct fields containers_fields = FIELDS(containers_rows, struct spoken_containers);

#define AT(member) offsetof(struct spoken, member)
static const struct field spoken_rows[] = {
	FIELD("v", UNSIGNED, AT(version)),
	FIELD("node", STRING, AT(node)),
	FIELD("uid", STRING, AT(uid)),
	FIELD("gen", U64, AT(generation), .optional = true),
	FIELD("at", I64, AT(at_ms)),
	FIELD("ttl", UNSIGNED, AT(ttl_s)),
	FIELD("mode", STRING, AT(mode)),
	FIELD("containers", OBJECT, AT(containers), .fields = &containers_fields),
};
static const struct fields spoken_fields = FIELDS(spoken_rows, struct spoken);

static void spoil_advice(struct spoken *s, enum advice_verdict wrong)
{
	if (wrong == ADVICE_REJECTED_VERSION)
		s->version++;
	if (wrong == ADVICE_REJECTED_UID)
		s->uid = "00000000-0000-4000-8000-000000000000"; /* no sandbox has number 0 */
	if (wrong == ADVICE_REJECTED_NODE)
		s->node = "another-node";
	if (wrong == ADVICE_REJECTED_CLOCK)
		s->at_ms += WRONG_BY_S * (int64_t)MS_PER_S;
	if (wrong == ADVICE_REJECTED_EXPIRED)
		s->at_ms -= (s->ttl_s + WRONG_BY_S) * (int64_t)MS_PER_S;
}

static const char too_large[] = "the pods' annotations are too large";

static int write_spoken_advice(struct sim_node *n, const struct container *c,
	const struct trace_advice *h, const char **out, struct err *e)
{
	struct spoken s = {.version = ADVICE_VERSION,
		.node = n->name,
		.uid = c->pod_uid,
		.generation = h->generation,
		.at_ms = loop_wall_ms(),
		.ttl_s = h->ttl_s,
		.mode = advice_mode_words[h->mode],
		.containers.all.numa = h->numa};
	char buf[CPUSET_TEXT_MAX + 1024];
	struct text t;

	spoil_advice(&s, h->wrong);
	text_init(&t, buf, sizeof buf);
	fields_write(&t, &spoken_fields, &s, NULL);
	if (h->wrong == ADVICE_REJECTED_FORMAT)
		t.len--; /* the last brace */
	*out = t.cut ? NULL : arena_strndup(&n->texts, buf, t.len);
	return *out ? 0 : err_set(e, E2BIG, too_large);
}

int advised_annotate(
	struct sim_node *n, struct container *c, const struct trace_step *step, struct err *e)
{
	struct key_value *list = arena_array(&n->texts, step->nr_annotations + 1, sizeof *list);
	size_t nr = step->nr_annotations;

	if (!list)
		return err_set(e, E2BIG, too_large);
	memcpy(list, step->annotation, nr * sizeof *list);
	if (step->advice.numa) {
		list[nr].key = ADVICE_KEY;
		int rc = write_spoken_advice(n, c, &step->advice, &list[nr++].value, e);

		if (rc)
			return rc;
	}
	c->annotations = list;
	c->nr_annotations = nr;
	return 0;
}

/* The NUMA nodes that the entry names, also one that is not there. */
static const char *asked_of(const struct advice_container *entry, struct sim_node *n)
{
	char buf[NODESET_TEXT_MAX + sizeof ",1023"];
	struct text t;

	nodeset_format(entry->nodes, &n->topo->ids, buf, NODESET_TEXT_MAX);
	text_init(&t, buf + strlen(buf), sizeof buf - strlen(buf));
	if (entry->has_unknown)
		text_add(&t, "%s%u", *buf ? "," : "", entry->unknown_id);
	return arena_strndup(&n->texts, buf, strlen(buf));
}

void advised_read(struct sim_node *n, struct container *c)
{
	const struct pod pod = {.annotations = c->annotations, .nr_annotations = c->nr_annotations};
	const struct advice_container *entry = NULL;
	const struct advice_source *source;
	struct advice h;
	struct arena a;

	arena_init(&a, ADVICE_ARENA_BYTES);
	int rc = advice_find(&pod, ADVICE_ABOUT_NODES, &(struct advice_order){0},
		&(struct advice_context){n->topo, &a}, &source, &h, NULL);

	if (rc < 0)
		c->advised = (struct advised){.asked = "-", .mode = "-"};
	if (rc > 0)
		entry = advice_for(&h, c->name);
	if (entry)
		c->advised = (struct advised){.asked = asked_of(entry, n),
			.mode = h.mode ? advice_mode_words[h.mode] : "-"};
	arena_fini(&a);
}

/* "...; scheduler's hint rejected:not-fit)": how a refusal ends. */
static const char *verdict_in(const char *text)
{
	char word[64];

	for (unsigned v = ADVICE_REJECTED_FORMAT; v < NR_ADVICE_VERDICTS; v++) {
		const char *name = advice_verdict_words[(enum advice_verdict)v];

		(void)snprintf(word, sizeof word, "hint %s)", name);
		if (strstr(text, word))
			return name;
	}
	return NULL;
}

void advised_note(const struct sim_node *n, struct container *c, const char *refusal)
{
	struct advised *h = &c->advised;

	if (refusal) {
		h->verdict = verdict_in(refusal);
		return;
	}
	h->given = container_nodes(n->topo, c);
	if (c->placed && c->says.has_advice)
		h->verdict = advice_verdict_words[c->says.advice];
}

void advised_print(FILE *out, const struct sim_node *n)
{
	static const char form[] = "%-23s %-8s %-6s %-8s %s\n";
	char name[2 * SIM_NAME_MAX], given[NODESET_TEXT_MAX];
	bool any = false;

	for (size_t i = 0; i < n->nr; i++) {
		const struct container *c = n->at[i];
		const struct advised *h = &c->advised;

		if (!h->asked)
			continue;
		if (!any) {
			fputc('\n', out);
			fprintf(out, form, "POD/CONTAINER", "MODE", "ASKED", "GIVEN",
				"THE HINT'S VERDICT");
		}
		any = true;
		(void)snprintf(name, sizeof name, "%s/%s", c->pod, c->name);
		nodeset_format(h->given, &n->topo->ids, given, sizeof given);
		fprintf(out, form, name, h->mode, h->asked,
			c->state == CONTAINER_REFUSED ? "refused"
			: *given                      ? given
						      : "-",
			h->verdict ? h->verdict : "-");
	}
}
