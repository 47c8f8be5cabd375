#include "gain.h"

#include "arms.h"

#include <jansson.h>

static json_t *arm_of(const struct gain *g, unsigned i)
{
	const struct arm *a = &g->arm[i];
	char cpus[CPUSET_TEXT_MAX], pool[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX];

	return json_pack("{s:s, s:s, s:s, s:s, s:b, s:b}", "arm", arm_names[i], "cpus",
		cpuset_format(&a->cpus, cpus, sizeof cpus), "mems",
		nodeset_format(a->mems, &g->topo->ids, mems, sizeof mems), "pool",
		cpuset_format(&a->pool, pool, sizeof pool), "memory_bound", (int)a->binds_memory,
		"quota", (int)(a->quota && g->cgroups));
}

static json_t *figure_of(const struct gain *g, unsigned load, unsigned arm, unsigned f)
{
	static const char *const words[] = {[VERDICT_FEW] = "too-few-runs",
		[VERDICT_SAME] = "no-difference",
		[VERDICT_BETTER] = "better",
		[VERDICT_WORSE] = "worse"};
	const struct figure_kind *k = &load_kinds[load].figure[f];
	const struct outcome *o = &g->of[load][arm];
	struct spread s = gain_spread(g, load, arm, f), ours = gain_spread(g, load, ARM_NUMAFIT, f);
	json_t *values = json_array();

	for (unsigned i = 0; i < o->nr; i++)
		json_array_append_new(values, json_real(o->value[f][i]));
	json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:o}", "load",
		load_kinds[load].name, "figure", k->name, "unit", k->unit, "better",
		k->more ? "more" : "less", "arm", arm_names[arm], "median", s.median, "min", s.min,
		"max", s.max, "values", values);
	if (arm != ARM_NUMAFIT)
		json_object_set_new(
			j, "numafit", json_string(words[verdict_of(&ours, &s, k->more)]));
	return j;
}

static json_t *place_of(const struct gain *g, unsigned load, unsigned arm)
{
	const struct outcome *o = &g->of[load][arm];
	json_t *pages = json_object(), *j;
	char id[NUMBER_TEXT_MAX];

	for (unsigned n = 0; n < g->topo->ids.nr; n++)
		if (o->pages[n]) {
			(void)snprintf(id, sizeof id, "%u", g->topo->ids.id[n]);
			json_object_set_new(pages, id, json_integer((json_int_t)o->pages[n]));
		}
	j = json_pack("{s:s, s:s, s:i, s:o}", "load", load_kinds[load].name, "arm", arm_names[arm],
		"runs", (int)o->nr, "pages", pages);
	if (g->cgroups)
		json_object_set_new(j, "nr_throttled", json_integer((json_int_t)o->throttled));
	if (o->nr_remote)
		json_object_set_new(j, "remote", json_real(o->remote / o->nr_remote));
	return j;
}

static json_t *machine_of(const struct gain *g)
{
	char reserved[CPUSET_TEXT_MAX];

	return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:I, s:f, s:s, s:b}", "machine",
		g->topo->name, "numa_nodes", (int)g->topo->ids.nr, "cpus", (int)g->topo->nr_cpus,
		"asked_cpus", (int)g->ask_cpus, "held_cpus", (int)g->held_cpus, "runs",
		(int)g->runs, "bytes", (json_int_t)g->bytes, "seconds", g->seconds, "reserved",
		cpuset_format(&g->reserved, reserved, sizeof reserved), "cgroups", (int)g->cgroups);
}

char *gain_json(const struct gain *g)
{
	json_t *j = machine_of(g), *arms = json_array(), *figures = json_array(),
	       *places = json_array(), *notes = json_array();

	for (unsigned a = 0; a < NR_ARMS; a++)
		if (g->arm[a].there)
			json_array_append_new(arms, arm_of(g, a));
	for (unsigned load = 0; load < NR_LOADS; load++)
		for (unsigned a = 0; a < NR_ARMS; a++) {
			if (!g->runs_load[load] || !g->arm[a].there)
				continue;
			json_array_append_new(places, place_of(g, load, a));
			for (unsigned f = 0; f < load_kinds[load].nr_figures; f++)
				json_array_append_new(figures, figure_of(g, load, a, f));
		}
	for (unsigned i = 0; i < g->nr_notes; i++)
		json_array_append_new(notes, json_string(g->note[i]));
	json_object_set_new(j, "arms", arms);
	json_object_set_new(j, "figures", figures);
	json_object_set_new(j, "places", places);
	json_object_set_new(j, "notes", notes);
	char *text = json_dumps(j, JSON_INDENT(1));

	json_decref(j);
	return text;
}
