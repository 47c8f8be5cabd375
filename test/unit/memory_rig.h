#ifndef NUMAFIT_TEST_MEMORY_RIG_H
#define NUMAFIT_TEST_MEMORY_RIG_H

#include <numafit/memory.h>

#include "core_machine.h"
#include "core_random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

/* Accounts of memory on machines of a few nodes. */

enum { NODES = 5, SETS = 1 << NODES, WORK_BYTES = 4 << 20, HELD_MAX = 24 };

static inline struct topo *machine(unsigned nodes, uint64_t memory, uint64_t huge)
{
	struct topo *t = malloc(sizeof *t);

	topo_init(t, "m");
	for (unsigned n = 0; n < nodes; n++)
		assert_int_equal(topo_add_node(t, 2 * n, NULL), n);
	assert_int_equal(topo_add_cpu(t, 0, 0, 0, 0, 0, NULL), 0);
	for (unsigned n = 0; n < nodes; n++) {
		assert_int_equal(topo_set_memory(t, n, 0, memory, NULL), 0);
		if (huge)
			assert_int_equal(topo_set_memory(t, n, GIB(1), huge, NULL), 0);
	}
	assert_int_equal(topo_seal(t, NULL), 0);
	return t;
}

static inline void reserve(struct settings *s, unsigned node_id, const char *type, uint64_t bytes)
{
	struct reserved_memory *r = &s->reserved_memory[s->nr_reserved_memory++];

	*r = (struct reserved_memory){.has_node = true, .node_id = node_id, .bytes = bytes};
	(void)snprintf(r->type, sizeof r->type, "%s", type);
}

#endif
