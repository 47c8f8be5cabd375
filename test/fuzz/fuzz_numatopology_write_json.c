#include <stddef.h>
#include <stdint.h>

#include <assert.h>
#include <codec/fields_json.h>
#include <codec/numatopology_json.h>
#include <codec/numatopology_json.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX = 1 << 20, CPUS = 16 };

/* A machine of CPUS CPUs, each held by a container whose names are the bytes from there on when the
 * byte of that number is odd; CPU 0 is nobody's. */
static struct ledger *make_ledger(
	const char *text, size_t len, const struct topo *t, const struct settings *s)
{
	struct ledger *l = ledger_new(t, s);

	for (unsigned cpu = 1; cpu < CPUS && cpu < len; cpu++) {
		const char *name = text + cpu;
		const struct request req = {.container_id = name,
			.ask.name = name + 1,
			.pod = {.sandbox_id = name, .uid = name, .ns = text, .name = name},
			.cpus = "",
			.mems = ""};
		struct decision d = {.admit = true, .exclusive = true};

		cpuset_add(&d.cpus, cpu);
		if (!(*name & 1) || ledger_fits(l, &req, &d, NULL) < 0)
			continue;
		struct cpuset pool = ledger_pool_without(l, &d.cpus);
		assert(ledger_set_pool(l, &pool, NULL) == 0);
		ledger_commit(l, &req, &d);
	}
	return l;
}

/* Whatever the names, our own reader finds the same free CPUs. */
static void check(const char *text, const struct topo *t, const struct ledger *l, struct arena *a)
{
	struct cpuset left = cpuset_minus(t->cpus, &ledger_view(l)->held);
	struct volcano_node read;
	json_t *v;

	assert(json_parse(text, strlen(text), &v, NULL) == 0);
	assert(numatopology_json_read(v, a, &read, NULL) == 0);
	assert(read.nr_cpus == CPUS && cpuset_equal(&read.free, &left));
	json_decref(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct settings s = {.mode = MODE_MANAGE};
	static struct topo t;
	struct arena a;

	topo_init(&t, "fuzz");
	(void)topo_add_node(&t, 0, NULL);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		(void)topo_add_cpu(&t, cpu, 0, cpu, 0, 0, NULL);
	(void)topo_seal(&t, NULL);
	arena_init(&a, MEMORY_MAX);
	char *names = arena_strndup(&a, (const char *)data, size);
	if (names) {
		struct ledger *l = make_ledger(names, strlen(names), &t, &s);
		const struct report r = {.node_name = "n", .node_uid = "u", .topo = &t};
		char *text = numatopology_json_write(&r, l, &s, size);

		assert(text);
		check(text, &t, l, &a);
		free(text);
		ledger_free(l);
	}
	arena_fini(&a);
	return 0;
}
