#include <numafit-cli/verbs.h>

#include <errno.h>
#include <numafit-cli/ask.h>
#include <numafit-cli/output.h>
#include <numafit-cli/status_source.h>
#include <numafit-cli/terminal.h>
#include <numafit-cli/top_frame.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	FILTER_MAX = 64,
	SILENT_MS = 5000,
	COLUMNS_ELSE = 80,
	COLUMNS_LEAST = 20,
	COLUMNS_MOST = 1000
};

struct options {
	struct status_source source;
	const char *ns;
	uint64_t interval_ms;
};

/* A status with the memory that it lies in. */
struct look {
	struct arena arena;
	struct status status;
	bool is_there;
};

static void look_fini(struct look *l)
{
	if (l->is_there)
		arena_fini(&l->arena);
	l->is_there = false;
}

/* Read the document in the place of what was there; what cannot be read leaves that. */
static int look_read(struct look *l, const char *document, size_t len, struct err *e)
{
	struct look new = {.is_there = true};

	arena_init(&new.arena, STATUS_JSON_MAX);
	int rc = status_json_parse(document, len, &new.arena, &new.status, e);
	if (rc) {
		look_fini(&new);
		return err_add(e, rc, "the daemon's answer is no status document");
	}
	look_fini(l);
	*l = new;
	return 0;
}

/* One frame, where nobody looks on */

static int given_columns(void)
{
	const char *given = getenv("COLUMNS");
	uint64_t columns;

	if (!given || text_u64(given, strlen(given), COLUMNS_MOST, &columns, NULL))
		return COLUMNS_ELSE;
	return columns < COLUMNS_LEAST ? COLUMNS_LEAST : (int)columns;
}

static int print_once(const struct call *c, const struct options *o, const char *path)
{
	const struct top_view view = {.columns = given_columns(), .ns = o->ns, .filter = ""};
	auto_free char *document = NULL;
	struct look look = {0};
	struct frame f;
	size_t len;
	struct err e = {0};
	int rc = ask_daemon(path, "status", &document, &len, &e);

	if (!rc)
		rc = look_read(&look, document, len, &e);
	if (rc)
		return status_source_fail(c, &e);
	top_frame(&f, &look.status, &view);
	for (size_t i = 0; i < f.nr; i++)
		(void)puts(f.at[i].text);
	frame_fini(&f);
	look_fini(&look);
	return EXIT_DONE;
}

/* The live view */

struct top {
	const struct options *o;
	const char *path;
	struct terminal terminal;
	struct top_view view;
	char filter[FILTER_MAX];
	size_t shown; /* containers in the last frame */
	struct look look;
	struct question question;
	uint64_t asked_ms; /* when */
	struct err problem;
	bool quit;
};

static uint64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * MS_PER_S + (uint64_t)now.tv_nsec / NS_PER_MS;
}

static void draw(struct top *t)
{
	struct frame f;

	t->view.columns = t->terminal.columns;
	t->view.rows = t->terminal.rows;
	t->view.problem = t->problem.code ? t->problem.text : NULL;
	top_frame(&f, t->look.is_there ? &t->look.status : NULL, &t->view);
	terminal_draw(&t->terminal, &f);
	t->view.scroll = f.scroll;
	t->shown = f.shown;
	frame_fini(&f);
}

static void ask(struct top *t, uint64_t now)
{
	struct err e = {0};

	t->asked_ms = now;
	if (question_ask(&t->question, t->path, "status", &e))
		t->problem = e;
}

static void take_answer(struct top *t)
{
	struct err e = {0};
	int rc = question_take(&t->question, &e);

	if (rc > 0)
		return;
	if (!rc)
		rc = look_read(&t->look, t->question.answer, t->question.len, &e);
	t->problem = rc ? e : (struct err){0};
	question_close(&t->question);
}

static void give_up_question(struct top *t)
{
	question_close(&t->question);
	(void)err_set(&t->problem, ETIMEDOUT, "numafitd at %s is silent for %d seconds", t->path,
		SILENT_MS / MS_PER_S);
}

static void scroll_to(struct top *t, int64_t line)
{
	t->view.scroll = line < 0 ? 0 : (size_t)line;
}

/* The text of the filter as it is typed. */
static void type_filter(struct top *t, int key)
{
	size_t len = strlen(t->filter);

	t->view.scroll = 0;
	if (key == '\r' || key == '\n')
		t->view.typing = false;
	else if (key == KEY_BACKSPACE || key == '\b')
		t->filter[len ? len - 1 : 0] = '\0';
	else if (key >= ' ' && key <= '~' && len + 1 < sizeof t->filter)
		t->filter[len] = (char)key;
}

static void clear_filter(struct top *t)
{
	memset(t->filter, 0, sizeof t->filter);
	t->view.typing = false;
}

static void sort_otherwise(struct top *t)
{
	t->view.order = (t->view.order + 1) % NR_TOP_ORDERS;
	t->view.scroll = 0;
}

static void press(struct top *t, int key)
{
	int64_t at = (int64_t)t->view.scroll, page = (int64_t)t->shown;

	if (key == KEY_ESCAPE)
		clear_filter(t);
	else if (t->view.typing)
		type_filter(t, key);
	else if (key == 'q')
		t->quit = true;
	else if (key == 's')
		sort_otherwise(t);
	else if (key == '/')
		t->view.typing = true;
	else if (key == 'j' || key == KEY_DOWN)
		scroll_to(t, at + 1);
	else if (key == 'k' || key == KEY_UP)
		scroll_to(t, at - 1);
	else if (key == ' ' || key == KEY_PAGE_DOWN)
		scroll_to(t, at + page);
	else if (key == KEY_PAGE_UP)
		scroll_to(t, at - page);
	else if (key == 'g' || key == KEY_HOME)
		scroll_to(t, 0);
	else if (key == 'G' || key == KEY_END)
		scroll_to(t, INT32_MAX);
}

/* From one frame to the next one: until a key is pressed, an answer comes or it is time to ask. */
static void live_once(struct top *t)
{
	uint64_t now = now_ms(), asked_for = now - t->asked_ms;
	bool waits = t->question.fd >= 0;
	uint64_t patience = waits ? SILENT_MS : t->o->interval_ms;

	if (asked_for >= patience && waits)
		give_up_question(t);
	else if (asked_for >= patience)
		ask(t, now);
	draw(t);
	if (t->question.fd >= 0 && !waits)
		patience = SILENT_MS;
	asked_for = now - t->asked_ms;
	uint64_t ms = asked_for < patience ? patience - asked_for : 0;
	if (terminal_wait(&t->terminal, t->question.fd, (int)number_min(ms, INT32_MAX)))
		take_answer(t);
	for (int key; (key = terminal_key(&t->terminal)) != KEY_NONE;)
		press(t, key);
}

static int run_live(const struct call *c, const struct options *o, const char *path)
{
	struct top t = {.o = o, .path = path, .question.fd = -1};
	struct err e = {0};

	t.view = (struct top_view){.ns = o->ns, .filter = t.filter, .has_keys = true};
	if (terminal_open(&t.terminal, &e))
		return call_fail(c, EXIT_CANNOT, &e);
	ask(&t, now_ms());
	while (!t.quit && !t.terminal.ended)
		live_once(&t);
	terminal_close(&t.terminal);
	question_close(&t.question);
	look_fini(&t.look);
	if (t.terminal.signal)
		(void)raise(t.terminal.signal);
	return EXIT_DONE;
}

static int run_top(const struct call *c)
{
	struct options o = {.interval_ms = MS_PER_S};
	char path[STATUS_PATH_MAX];
	int code = call_read(c, &o);

	if (code < 0)
		code = status_source_path(c, &o.source, path);
	if (code >= 0)
		return code;
	return terminal_is_there() ? run_live(c, &o, path) : print_once(c, &o, path);
}

static const struct option_row rows[] = {
	{.name = "interval",
		.value = "DURATION",
		.help = "from one look to the next one, such as 5s (default 1s)",
		.read = option_duration,
		.at = offsetof(struct options, interval_ms)},
	NAMESPACE_ROW(struct options),
	STATUS_SOURCE_ROWS(struct options),
	{0},
};

const struct command verb_top = {
	.name = "top",
	.summary = "watch this node: which container has which CPUs",
	.about =
		"Draw the NUMA nodes of this node with a character for each CPU and a bar for each "
		"memory, and list the containers below, again each second. A letter is a container "
		"with CPUs of its own; \".\" are those of the shared pool, \"#\" reserved ones, \"+\" "
		"those that are held for containers to come, \"_\" those in no cpuset. MEMORY is what "
		"was asked for, with huge pages behind a plus.\n"
		"\n"
		"Keys: q ends it; s sorts by name, CPUs, memory or NUMA node; / filters by what is "
		"typed then, of namespace, pod and container (Enter keeps the filter, Esc clears it); "
		"j, k, arrows and page keys scroll. Where the output or the input is no terminal, one "
		"frame is printed, as wide as COLUMNS says (80). With NO_COLOR set there are no "
		"colours.",
	.options = rows,
	.examples = {{"numafit top", "this node, again each second"},
		{"numafit top -n inference --interval 5s", "one namespace, every five seconds"},
		{"COLUMNS=200 numafit top | cat", "one frame, 200 columns wide"},
		{"kubectl -n numafit-system exec -it POD -- numafit top",
			"another node, in numafitd's pod there"}},
	.exits = {[EXIT_CANNOT] = "no daemon answers, where one frame is printed; or the terminal "
				  "cannot be used"},
	.run = run_top,
};
