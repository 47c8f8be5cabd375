#include <picture/blocks.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Four NUMA nodes of two cores with two threads on two sockets, and one with memory alone. */
static const struct cpuset threads[4][2] = {
	{{{0x3}}, {{0x300}}}, {{{0xc}}, {{0xc00}}}, {{{0x30}}, {{0x3000}}}, {{{0xc0}}, {{0xc000}}}};
static const struct block_node nodes[] = {
	{.id = 0,
		.sockets = {{1}},
		.threads = threads[0],
		.nr_threads = 2,
		.has_memory = true,
		.alone = 0.5},
	{.id = 1, .sockets = {{2}}, .threads = threads[1], .nr_threads = 2},
	{.id = 4,
		.sockets = {{1}},
		.threads = threads[2],
		.nr_threads = 2,
		.has_memory = true,
		.together = 0.25},
	{.id = 12, .sockets = {{2}}, .threads = threads[3], .nr_threads = 2, .has_memory = true},
	{.id = 20, .has_memory = true, .alone = 1},
};
enum { NR_NODES = sizeof nodes / sizeof *nodes, WIDE = 120, NARROW = 30 };

static char *drawn(void (*draw)(FILE *, const struct blocks *), size_t nr, int columns)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	draw(out, &(struct blocks){nodes, nr, "aabb..#_aabb..__", columns});
	assert_int_equal(fclose(out), 0);
	return text;
}

static void nodes_are_drawn_socket_by_socket_those_without_cpus_last(void **state)
{
	char *text = drawn(blocks_draw, NR_NODES, WIDE);

	(void)state;
	assert_string_equal(text, "socket 0\n"
				  "+- node 0 ----------+ +- node 4 ----------+\n"
				  "|  0 a a            | |  4 . .            |\n"
				  "|  8 a a            | | 12 . .            |\n"
				  "| mem ====....  50% | | mem ~~......  25% |\n"
				  "+-------------------+ +-------------------+\n"
				  "socket 1\n"
				  "+- node 1 ----------+ +- node 12 ---------+\n"
				  "|  2 b b            | |  6 # _            |\n"
				  "| 10 b b            | | 14 _ _            |\n"
				  "|                   | | mem ........   0% |\n"
				  "+-------------------+ +-------------------+\n"
				  "without CPUs\n"
				  "+- node 20 ---------+\n"
				  "| mem ======== 100% |\n"
				  "+-------------------+\n");
	free(text);
}

static void blocks_that_do_not_fit_beside_each_other_follow_below(void **state)
{
	char *text = drawn(blocks_draw, 3, NARROW);

	(void)state;
	assert_memory_equal(text,
		"socket 0\n"
		"+- node 0 ----------+\n"
		"|  0 a a            |\n",
		strlen("socket 0\n") + 2 * strlen("+- node 0 ----------+\n"));
	free(text);
}

static void a_node_is_a_line_where_there_are_few(void **state)
{
	char *narrow = drawn(blocks_draw_lines, NR_NODES, NARROW);
	char *wide = drawn(blocks_draw_lines, NR_NODES, 2 * NARROW);

	(void)state;
	assert_string_equal(narrow, "node  0 aa aa mem  50%\n"
				    "node  1 bb bb\n"
				    "node  4 .. .. mem  25%\n"
				    "node 12 #_ __ mem   0%\n"
				    "node 20 mem 100%\n");
	assert_string_equal(wide, "node  0 aa aa mem  50%   node 12 #_ __ mem   0%\n"
				  "node  1 bb bb            node 20 mem 100%\n"
				  "node  4 .. .. mem  25%\n");
	free(narrow);
	free(wide);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_are_drawn_socket_by_socket_those_without_cpus_last),
		cmocka_unit_test(blocks_that_do_not_fit_beside_each_other_follow_below),
		cmocka_unit_test(a_node_is_a_line_where_there_are_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
