#ifndef TEST_KUBELET_WIRE_H
#define TEST_KUBELET_WIRE_H

#include <codec/blob.h>
#include <numafit/arena.h>
#include <numafit/mem.h>
#include <stdio.h>
#include <string.h>

/* Recorded messages of the kubelet's APIs, by name (test/golden/kubelet_wire.txt), and arenas. */

enum { WIRE_ARENA_MAX = 64 << 20 };

static unsigned char hex_byte(const char *at)
{
	char digits[] = {at[0], at[1], '\0'}, *end;
	unsigned long value = strtoul(digits, &end, 16);

	assert_ptr_equal(end, digits + 2);
	return (unsigned char)value;
}

static struct blob from_hex(const char *hex, struct arena *a)
{
	size_t len = strcspn(hex, "-\n") / 2;
	unsigned char *bytes = arena_alloc(a, len);

	for (size_t i = 0; i < len; i++)
		bytes[i] = hex_byte(hex + 2 * i);
	return (struct blob){bytes, len};
}

/* The recorded message of that name, in the arena. */
static struct blob recorded(const char *name, struct arena *a)
{
	struct blob found = {0};
	auto_free char *line = NULL;
	size_t room = 0, len = strlen(name);
	FILE *f = fopen("test/golden/kubelet_wire.txt", "r");

	assert_non_null(f);
	while (!found.data && getline(&line, &room, f) > 0)
		if (strncmp(line, name, len) == 0 && line[len] == ' ')
			found = from_hex(line + len + 1, a);
	fclose(f);
	if (!found.data)
		fail_msg("no %s in the golden file", name);
	return found;
}

static inline void assert_bytes(struct blob got, const char *name, struct arena *a)
{
	struct blob want = recorded(name, a);

	assert_int_equal(got.len, want.len);
	assert_memory_equal(got.data, want.data, want.len);
}

static int arena_setup(void **state)
{
	struct arena *a = xcalloc(1, sizeof *a);

	arena_init(a, WIRE_ARENA_MAX);
	*state = a;
	return 0;
}

static int arena_teardown(void **state)
{
	arena_fini(*state);
	free(*state);
	return 0;
}

#define ON_ARENA(test) cmocka_unit_test_setup_teardown(test, arena_setup, arena_teardown)

#endif
