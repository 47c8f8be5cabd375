#ifndef NUMAFIT_TEST_ADVICE_RANDOM_H
#define NUMAFIT_TEST_ADVICE_RANDOM_H

#include "core_random.h"

#include <codec/advice_json.h>
#include <numafit/mem.h>

#include <string.h>

/* Annotations of all kinds, made up at random: what is wrong with each is known. Include it after
 * <cmocka.h>. */

enum { ADVICE_LINE_MAX = 4096 };

/* The pod, node and time that they are written for, where a valid hint is valid. */
struct advice_author {
	const struct topo *t;
	const char *node, *uid, *container;
	int64_t now_ms, skew_ms;
	uint64_t generation;
	unsigned ttl_s; /* at least */
};

struct made {
	const char *key;
	char text[ADVICE_LINE_MAX];
	struct nodeset nodes;
	bool known; /* what must come of it */
	enum advice_verdict want;
};

/* A valid hint of ours, which is changed in one thing before it is written. */
struct draft {
	struct advice h;
	struct advice_container c;
	struct advice_amount amount;
};

static inline void draft_valid(
	const struct advice_author *by, struct random *r, struct nodeset nodes, struct draft *d)
{
	d->amount = (struct advice_amount){0, "cpu", random_below(r, 64000)};
	d->c = (struct advice_container){.name = random_chance(r, 50) ? "*" : by->container,
		.nodes = nodes,
		.distance_x100 = random_below(r, 3000)};
	d->amount.node = nodeset_next(d->c.nodes, 0);
	if (random_chance(r, 50)) {
		d->c.amount = &d->amount;
		d->c.nr_amounts = 1;
	}
	d->h = (struct advice){.node = by->node,
		.uid = by->uid,
		.generation = by->generation,
		.at_ms = by->now_ms - (int64_t)random_below(r, 30000),
		.ttl_s = by->ttl_s + random_below(r, 60),
		.mode = random_chance(r, 50) ? ADVICE_PREFER : ADVICE_REQUIRE,
		.scope = random_chance(r, 50) ? SCOPE_POD : SCOPE_CONTAINER,
		.container = &d->c,
		.nr_containers = 1};
}

/* Break one thing of it. Returns what must come of it. */
static inline enum advice_verdict spoil(
	const struct advice_author *by, struct random *r, struct draft *d)
{
	switch (random_below(r, 6)) {
	case 0:
		d->h.node = random_chance(r, 50) ? "another" : "worker-00";
		return ADVICE_REJECTED_NODE;
	case 1:
		d->h.uid = "ffffffff-0000-4000-8000-000000000001";
		return ADVICE_REJECTED_UID;
	case 2:
		d->h.at_ms = by->now_ms + by->skew_ms + 3600000 + random_below(r, 1000000);
		return ADVICE_REJECTED_CLOCK;
	case 3:
		d->h.at_ms = by->now_ms - (int64_t)d->h.ttl_s * 1000 - 1 - random_below(r, 1000000);
		return ADVICE_REJECTED_EXPIRED;
	case 4:
		d->h.generation = by->generation + 1 - 2 * random_below(r, 2);
		return ADVICE_ACCEPTED_STALE;
	default:
		return ADVICE_ACCEPTED;
	}
}

/* One or a few bytes of the text become others. */
static inline void garble(struct random *r, char *text)
{
	static const char bytes[] = "{}[]\":,0123456789-.eE\\ \n\x01\xff\xc3xnull*";
	size_t len = strlen(text);

	for (unsigned i = 1 + random_below(r, 4); i && len; i--) {
		size_t at = random_below(r, (unsigned)len);

		switch (random_below(r, 3)) {
		case 0:
			text[at] = bytes[random_below(r, sizeof bytes - 1)];
			break;
		case 1:
			len = at;
			text[len] = '\0';
			break;
		default:
			memmove(text + at, text + at + 1, len - at);
			len--;
		}
	}
}

/* Another project's hint for these NUMA nodes. */
static inline const char *others(struct random *r, struct nodeset nodes, char *buf, size_t cap)
{
	static const struct form {
		const char *key, *before, *each, *between, *after;
	} forms[] = {
		{"scheduling.koordinator.sh/resource-status", "{\"numaNodeResources\":[",
			"{\"node\":@,\"resources\":{\"cpu\":\"2\"}}", ",", "]}"},
		{"katalyst.kubewharf.io/numa_bind_result", "", "@", ",", ""},
		{"volcano.sh/topology-decision", "{\"numa\":{",
			"\"@\":{\"cpu\":\"2\",\"memory\":\"1Gi\"}", ",", "}}"},
		{"topology.crane.io/topology-result", "[",
			"{\"name\":\"node@\",\"type\":\"Node\","
			"\"resources\":{\"capacity\":{\"cpu\":\"1\"}}}",
			",", "]"},
		{"godel.bytedance.com/micro-topology", "", "@:cpu=2,memory=1Gi", ";", ""},
	};
	const struct form *f = &forms[random_below(r, sizeof forms / sizeof *forms)];
	const char *between = "";
	struct text t;

	text_init(&t, buf, cap);
	text_add(&t, "%s", f->before);
	nodeset_each (n, nodes) {
		const char *at = strchr(f->each, '@');

		text_add(&t, "%s%.*s%u%s", between, (int)(at - f->each), f->each, n, at + 1);
		between = f->between;
	}
	text_add(&t, "%s", f->after);
	assert_false(t.cut);
	return f->key;
}

/* A hint for those NUMA nodes, or what is nearly one. */
static inline void make_annotation(
	const struct advice_author *by, struct random *r, struct nodeset nodes, struct made *m)
{
	auto_free char *written = NULL;
	struct draft d;

	draft_valid(by, r, nodes, &d);
	m->known = true;
	m->nodes = nodes;
	m->key = ADVICE_KEY;
	m->want = ADVICE_ACCEPTED;
	if (random_chance(r, 30)) {
		m->key = others(r, m->nodes, m->text, sizeof m->text);
	} else {
		m->want = spoil(by, r, &d);
		assert_int_equal(advice_json_write(&d.h, by->t, &written, NULL), 0);
		(void)text_copy(m->text, sizeof m->text, written);
		if (random_chance(r, 10)) {
			m->text[strlen("{\"v\":")] = '7';
			m->want = ADVICE_REJECTED_VERSION;
		}
	}
	if (random_chance(r, 40)) {
		garble(r, m->text);
		m->known = false;
	}
}

#endif
