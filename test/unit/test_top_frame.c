#include <numafit-cli/top_frame.h>

#include <numafit-cli/terminal.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Two NUMA nodes of eight CPUs with two threads each, and six containers. */
enum { GIB_SHIFT = 30, NR_NODES = 2, TEXT_MAX = 1 << 16 };
#define GIB(n) ((uint64_t)(n) << GIB_SHIFT)

static const struct status_threads threads[NR_NODES][2] = {
	{{{{0x0f}}}, {{{0x0f00}}}}, {{{{0xf0}}}, {{{0xf000}}}}};
static const struct status_memory memory[NR_NODES] = {
	{"memory", GIB(16), GIB(4)}, {"memory", GIB(16), GIB(16)}};
static const struct status_node nodes[NR_NODES] = {{.id = 0,
							   .has_socket = true,
							   .threads = threads[0],
							   .nr_threads = 2,
							   .memory = &memory[0],
							   .nr_memory = 1},
	{.id = 1,
		.has_socket = true,
		.socket = 1,
		.threads = threads[1],
		.nr_threads = 2,
		.memory = &memory[1],
		.nr_memory = 1}};
#define SHARED .qos = QOS_BURSTABLE, .cpus = "0,6-7,14-15", .mems = "0-1", .preferred = true
#define OWN    .qos = QOS_GUARANTEED, .exclusive = true, .preferred = true
static struct status_container containers[] = {
	{.ns = "shop", .pod = "web-1", .container = "nginx", .id = "5", SHARED, .cpu_milli = 500},
	{.ns = "shop",
		.pod = "db",
		.container = "postgres",
		.id = "3",
		OWN,
		.cpus = "1-2,9-10",
		.mems = "0",
		.cpu_milli = 4000,
		.memory = GIB(8)},
	{.ns = "ai",
		.pod = "train",
		.container = "worker",
		.id = "2",
		OWN,
		.cpus = "4-5,12-13",
		.mems = "1",
		.cpu_milli = 4000,
		.memory = GIB(4),
		.hugepages = GIB(8)},
	{.ns = "shop", .pod = "web-0", .container = "nginx", .id = "4", SHARED, .cpu_milli = 500},
	{.ns = "ai",
		.pod = "one",
		.container = "main",
		.id = "1",
		OWN,
		.cpus = "3,11",
		.mems = "0",
		.cpu_milli = 2000,
		.memory = GIB(1)},
	{.ns = "shop", .pod = "web-2", .container = "nginx", .id = "6", SHARED, .cpu_milli = 500},
};
enum { NR_CONTAINERS = sizeof containers / sizeof *containers };
static struct key_value settings[] = {{"mode", "manage"}, {"topologyManagerPolicy", "restricted"}};

static struct status status_of_node(void)
{
	return (struct status){.info = {.version = "0.1.0",
				       .connection = "ready",
				       .runtime = "containerd v2.1",
				       .uptime_ms = 93784000},
		.machine = "two",
		.settings = {settings, sizeof settings / sizeof *settings},
		.pool = {{0xc0c1}},
		.reserved = {{0x1}},
		.held = {{0x3e3e}},
		.nodes = nodes,
		.nr_nodes = NR_NODES,
		.containers = containers,
		.nr_containers = NR_CONTAINERS};
}

/* The frame's lines; all of them are printable and within the view. */
static const char *drawn(const struct status *st, const struct top_view *v, struct frame *f)
{
	static char text[TEXT_MAX];
	struct text t;

	top_frame(f, st, v);
	text_init(&t, text, sizeof text);
	for (size_t i = 0; i < f->nr; i++) {
		text_add(&t, "%s\n", f->at[i].text);
		assert_in_range(strlen(f->at[i].text), 0, v->columns);
		for (const char *c = f->at[i].text; *c; c++)
			assert_in_range((unsigned char)*c, ' ', '~');
	}
	assert_true(!v->rows || f->nr <= (size_t)v->rows);
	assert_false(t.cut);
	return text;
}

static void assert_drawn(const struct status *st, const struct top_view *v, const char *want)
{
	struct frame f;

	assert_string_equal(drawn(st, v, &f), want);
	frame_fini(&f);
}

static void eighty_columns_and_24_lines_have_picture_and_table(void **state)
{
	const struct top_view v = {.columns = 80, .rows = 24, .filter = "", .has_keys = true};
	struct status st = status_of_node();

	(void)state;
	assert_drawn(&st, &v,
		"numafitd 0.1.0 on two, up 1d2h; manage, restricted; runtime containerd v2.1: rea\n"
		"CPUs that no container uses now: 8 (free, outside the shared pool)\n"
		"socket 0\n"
		"+- node 0 ----------+\n"
		"|  0 # c c a        |\n"
		"|  8 _ c c a        |\n"
		"| mem ======..  75% |\n"
		"+-------------------+\n"
		"socket 1\n"
		"+- node 1 ----------+\n"
		"|  4 b b . .        |\n"
		"| 12 b b . .        |\n"
		"| mem ........   0% |\n"
		"+-------------------+\n"
		"16 CPUs   a... own: 10   . shared: 4   # reserved: 1   _ in no cpuset: 1\n"
		"6 containers by name\n"
		"   POD         CONTAINER  CPUS        OWN     NODES  MEMORY   MEMS  REQUEST\n"
		"a  ai/one      main       3,11        yes     0      1Gi      0     2\n"
		"b  ai/train    worker     4-5,12-13   yes     1      4Gi+8Gi  1     4\n"
		"c  shop/db     postgres   1-2,9-10    yes     0      8Gi      0     4\n"
		".  shop/web-0  nginx      shared (5)  shared  -      -        0-1   500m\n"
		".  shop/web-1  nginx      shared (5)  shared  -      -        0-1   500m\n"
		".  shop/web-2  nginx      shared (5)  shared  -      -        0-1   500m\n"
		"q quit   s sort   / filter   j k scroll\n");
}

static void a_wide_view_has_all_columns(void **state)
{
	const struct top_view v = {.columns = 200, .rows = 60, .filter = "", .has_keys = true};
	struct status st = status_of_node();
	struct frame f;
	const char *text = drawn(&st, &v, &f);

	(void)state;
	assert_int_equal(f.nr, 60);
	assert_int_equal(f.shown, NR_CONTAINERS);
	assert_non_null(strstr(text,
		"   POD         CONTAINER  CPUS        OWN     NODES  MEMORY   MEMS  REQUEST  QOS        "
		" PREFERRED  WISHES\n"));
	assert_non_null(strstr(text, "runtime containerd v2.1: ready\n"));
	frame_fini(&f);
}

static void few_lines_have_no_picture_and_the_table_says_what_is_more(void **state)
{
	struct top_view v = {.columns = 40, .rows = 10, .filter = "", .has_keys = true};
	struct status st = status_of_node();

	(void)state;
	assert_drawn(&st, &v,
		"numafitd 0.1.0 on two, up 1d2h; manage, \n"
		"node  0 #cca _cca mem  75%\n"
		"node  1 bb.. bb.. mem   0%\n"
		"16 CPUs   a... own: 10   . shared: 4   #\n"
		"6 containers by name; 3 more\n"
		"   POD         CONTAINER  CPUS\n"
		"a  ai/one      main       3,11\n"
		"b  ai/train    worker     4-5,12-13\n"
		"c  shop/db     postgres   1-2,9-10\n"
		"q quit   s sort   / filter   j k scroll\n");
	v.rows = 7;
	v.scroll = 99;
	struct frame f;
	assert_non_null(strstr(drawn(&st, &v, &f), "\n6 containers by name; 4 above\n"));
	assert_int_equal(f.scroll, 4);
	frame_fini(&f);
}

static void a_node_without_anything_for_containers_is_not_drawn(void **state)
{
	const struct top_view v = {.columns = 80, .filter = ""};
	const struct status_node more[] = {nodes[0], {.id = 250}, nodes[1]};
	struct status st = status_of_node();
	struct frame f;

	(void)state;
	st.nodes = more;
	st.nr_nodes = sizeof more / sizeof *more;
	const char *text = drawn(&st, &v, &f);
	assert_null(strstr(text, "250"));
	assert_null(strstr(text, "without CPUs"));
	assert_non_null(strstr(text, "+- node 1 --"));
	frame_fini(&f);
}

static void every_size_is_drawn_within_its_bounds(void **state)
{
	struct top_view v = {.filter = "", .has_keys = true};
	struct status st = status_of_node();
	struct frame f;

	(void)state;
	for (v.columns = 1; v.columns < 130; v.columns += 3)
		for (v.rows = 3; v.rows < 40; v.rows++) {
			(void)drawn(&st, &v, &f);
			assert_int_equal(f.nr, v.rows);
			frame_fini(&f);
		}
}

static void containers_are_sorted_as_the_view_says(void **state)
{
	static const char *const first[NR_TOP_ORDERS][2] = {
		[TOP_BY_NAME] = {"a  ai/one", "b  ai/train"},
		[TOP_BY_CPUS] = {"b  ai/train", "c  shop/db"},
		[TOP_BY_MEMORY] = {"b  ai/train", "c  shop/db"},
		[TOP_BY_NODE] = {"a  ai/one", "c  shop/db"},
	};
	struct top_view v = {.columns = 80, .filter = ""};
	struct status st = status_of_node();
	struct frame f;

	(void)state;
	for (v.order = 0; v.order < NR_TOP_ORDERS; v.order++) {
		const char *text = drawn(&st, &v, &f), *at = strstr(text, first[v.order][0]);

		assert_non_null(at);
		assert_true(strncmp(strchr(at, '\n') + 1, first[v.order][1],
				    strlen(first[v.order][1])) == 0);
		frame_fini(&f);
	}
}

static void the_filter_keeps_letters_and_columns_as_they_are(void **state)
{
	struct top_view v = {
		.columns = 80, .rows = 24, .filter = "DB/p", .typing = true, .has_keys = true};
	struct status st = status_of_node();
	struct frame f;
	const char *text = drawn(&st, &v, &f);

	(void)state;
	assert_non_null(strstr(text, "\n6 containers by name, with \"DB/p\": 1\n"));
	assert_non_null(strstr(text, "\nc  shop/db  postgres"));
	assert_non_null(strstr(text, "\n/DB/p_   Enter keeps it, Esc clears it\n"));
	assert_null(strstr(text, "ai/one"));
	frame_fini(&f);
	v.filter = "";
	v.ns = "ai";
	text = drawn(&st, &v, &f);
	assert_non_null(strstr(text, "\n6 containers by name, namespace ai: 2\n"));
	frame_fini(&f);
}

static void what_keeps_containers_from_their_cpus_stands_on_top(void **state)
{
	const struct top_view v = {.columns = 60, .filter = ""};
	struct status st = status_of_node();
	struct frame f;

	(void)state;
	st.info.connection = "connecting";
	st.info.journal = "/run/numafit/journal: No space left on device";
	st.info.offline = (struct cpuset){{0x30000}};
	const char *text = drawn(&st, &v, &f);
	assert_non_null(strstr(text, "\nthe runtime is not connected: containers start unpinned\n"
				     "/run/numafit/journal: No space left on device\n"
				     "CPUs that nobody may use: 16-17 (offline)\n"));
	assert_int_equal(f.at[1].style, FRAME_WARNING);
	frame_fini(&f);
}

static void a_daemon_that_is_away_is_said_with_what_it_said_last(void **state)
{
	const struct top_view v = {
		.columns = 60, .filter = "", .problem = "cannot connect to /run/s: \033[2J"};
	struct status st = status_of_node();
	struct frame f;

	(void)state;
	assert_drawn(NULL, &v, "numafit top\ncannot connect to /run/s: ?[2J\nIt is asked again.\n");
	st.info.connection = "connecting";
	const char *text = drawn(&st, &v, &f);
	assert_non_null(
		strstr(text, "\ncannot connect to /run/s: ?[2J\n"
			     "It is asked again; what is below was so when it last\n  answered.\n"
			     "CPUs that no container uses now"));
	assert_null(strstr(text, "the runtime is not connected"));
	frame_fini(&f);
}

/* drawn() looks at each character. */
static void nothing_that_a_container_is_called_commands_the_terminal(void **state)
{
	static const struct status_container hostile[] = {
		{.ns = "a\033[2J",
			.pod = "b\033]0;x\007",
			.container = "c\xc2\x9b"
				     "2J\n\r",
			.id = "\t",
			OWN,
			.cpus = "1",
			.mems = "\033c",
			.wishes = "\x9d\x80"},
		{.ns = "", .pod = "", .container = "", .id = "", SHARED},
	};
	const struct top_view v = {.columns = 200, .filter = ""};
	struct status st = status_of_node();
	struct frame f;

	(void)state;
	st.containers = hostile;
	st.nr_containers = sizeof hostile / sizeof *hostile;
	st.machine = "\033[31m";
	st.info.runtime = "\033P\033\\";
	assert_non_null(strstr(drawn(&st, &v, &f), "a?[2J/b?]0;x?"));
	frame_fini(&f);
}

static void a_status_of_an_older_daemon_has_no_picture(void **state)
{
	const struct top_view v = {.columns = 80, .filter = ""};
	struct status_node old[NR_NODES] = {nodes[0], nodes[1]};
	struct status st = status_of_node();
	struct frame f;

	(void)state;
	old[0].nr_threads = old[1].nr_threads = 0;
	st.nodes = old;
	st.held = (struct cpuset){0};
	const char *text = drawn(&st, &v, &f);
	assert_non_null(strstr(text, ": rea\n6 containers by name\n"));
	assert_null(strstr(text, "node"));
	frame_fini(&f);
}

static void sequences_of_bytes_are_keys(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		int key;
	} rows[] = {
		{"q", 1, 'q'},
		{"\033[A", 3, KEY_UP},
		{"\033OB", 3, KEY_DOWN},
		{"\033[5~x", 4, KEY_PAGE_UP},
		{"\033[1;5A", 6, KEY_NONE},
		{"\033[200~", 6, KEY_NONE},
		{"\033x", 1, KEY_ESCAPE},
		{"\033\033", 1, KEY_ESCAPE},
		{"\033", 0, KEY_NONE},
		{"\033[", 0, KEY_NONE},
		{"\033[6", 0, KEY_NONE},
		{"", 0, KEY_NONE},
		{"\177", 1, KEY_BACKSPACE},
		{"\xc3", 1, 0xc3},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int key = -1;

		assert_int_equal(key_read(rows[i].bytes, strlen(rows[i].bytes), &key), rows[i].len);
		assert_int_equal(key, rows[i].key);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eighty_columns_and_24_lines_have_picture_and_table),
		cmocka_unit_test(a_wide_view_has_all_columns),
		cmocka_unit_test(few_lines_have_no_picture_and_the_table_says_what_is_more),
		cmocka_unit_test(a_node_without_anything_for_containers_is_not_drawn),
		cmocka_unit_test(every_size_is_drawn_within_its_bounds),
		cmocka_unit_test(containers_are_sorted_as_the_view_says),
		cmocka_unit_test(the_filter_keeps_letters_and_columns_as_they_are),
		cmocka_unit_test(what_keeps_containers_from_their_cpus_stands_on_top),
		cmocka_unit_test(a_daemon_that_is_away_is_said_with_what_it_said_last),
		cmocka_unit_test(nothing_that_a_container_is_called_commands_the_terminal),
		cmocka_unit_test(a_status_of_an_older_daemon_has_no_picture),
		cmocka_unit_test(sequences_of_bytes_are_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
