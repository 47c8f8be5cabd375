#ifndef NRI_PB_RIG_H
#define NRI_PB_RIG_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "nri_wire.h"
#include <nri/nri_runtime_pb.h>

/* Messages in an arena, for test_nri_pb*.c. */

static const uint64_t MiB = UINT64_C(1) << 20, GiB = UINT64_C(1) << 30;

static int arena_setup(void **state)
{
	struct arena *a = xcalloc(1, sizeof *a);

	arena_init(a, TTRPC_MEMORY_MAX);
	*state = a;
	return 0;
}

static int arena_teardown(void **state)
{
	arena_fini(*state);
	free(*state);
	return 0;
}

static void put_container(struct bytes *out, unsigned field, const char *id, const char *pod,
	unsigned container_state, struct bytes *resources)
{
	struct bytes c = {0}, linux = {0};

	put_text(&c, 1, id);
	put_text(&c, 2, pod);
	put_number(&c, 4, container_state);
	put_message(&linux, 3, resources);
	put_text(&linux, 5, "kubepods-burstable-pod1.slice:cri-containerd:c");
	put_message(&c, 11, &linux);
	put_message(out, field, &c);
}

static void put_pod(struct bytes *out, unsigned field, const char *id, const char *cgroup_parent)
{
	struct bytes pod = {0}, linux = {0};

	put_text(&pod, 1, id);
	put_text(&linux, 3, cgroup_parent);
	put_message(&pod, 8, &linux);
	put_message(out, field, &pod);
}

static struct blob blob_of(const struct bytes *b)
{
	return (struct blob){b->at, b->len};
}

#define in_arena(test) cmocka_unit_test_setup_teardown(test, arena_setup, arena_teardown)

#endif
