#include <numafit-cli/verbs.h>

#include <codec/journal_json.h>
#include <errno.h>
#include <io/journal.h>
#include <numafit-cli/ask.h>
#include <numafit-cli/output.h>
#include <numafit-cli/pod_file.h>
#include <numafit-cli/status_source.h>
#include <numafit-cli/whatif_moves.h>
#include <numafit-cli/wording.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	MOVES_DEFAULT = 3,
	DOCUMENT_BYTES_MAX = 1 << 20,
	PLAN_WAIT_S = 120, /* on a large machine a plan takes seconds */
	LOOK_US = 500 * 1000
};

struct options {
	struct status_source source;
	const char *file;
	uint64_t moves;
	bool apply, show;
	enum output output;
};

static int read_defrag_moves(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o;
	int rc = text_u64(value, strlen(value), DEFRAG_MOVES_MAX, member, e);
	return rc || *(uint64_t *)member ? rc : err_set(e, EINVAL, "1 at least");
}

/* The question */

/* -1: go on, and the caller frees *out; else the exit code. */
static int make_question(const struct call *c, const struct options *o, char **out)
{
	static const struct node_ids none; /* the file names no NUMA nodes */
	const size_t cap = JOURNAL_LINE_MAX;
	auto_free char *line = xcalloc(1, cap);
	struct pod_file file;
	struct text t;
	struct err e;

	text_init(&t, line, cap);
	text_add(&t, "defrag %s %llu", o->apply ? "apply" : "plan", (unsigned long long)o->moves);
	if (o->file) {
		int code = pod_file_read(c, o->file, &file);
		if (code >= 0)
			return code;
		text_add(&t, " ");
		int len = journal_json_refused(
			NULL, &file.workload.pod, &none, line + t.len, cap - t.len, &e);
		pod_file_fini(&file);
		if (len < 0)
			return call_fail(c, EXIT_USAGE, &e);
	}
	*out = steal(line);
	return -1;
}

/* What is printed */

static void print_aim(const struct moves *m)
{
	if (!m->pod && !m->not_preferred) {
		(void)puts("each container with CPUs of its own is on as few NUMA nodes as on an "
			   "empty machine");
		return;
	}
	if (!m->pod) {
		(void)printf("%llu container%s with CPUs of %s own %s not on as few NUMA nodes as "
			     "on an empty machine\n",
			(unsigned long long)m->not_preferred, text_plural(m->not_preferred),
			m->not_preferred == 1 ? "its" : "their",
			m->not_preferred == 1 ? "is" : "are");
		return;
	}
	(void)printf("room for ");
	wording_print_plain(stdout, m->pod);
	(void)putchar('\n');
}

static void print_plan(const struct moves *m, const struct options *o)
{
	char bytes[TEXT_SIZE_MAX];

	print_aim(m);
	if (m->found && !m->nr) {
		(void)puts("nothing has to be moved");
		return;
	}
	if (!m->found) {
		(void)printf("no %llu move%s of running containers would help%s\n",
			(unsigned long long)o->moves, text_plural(o->moves),
			m->cut ? ", as far as was looked" : "");
		return;
	}
	(void)printf("%u move%s, %s of memory, %u CPU%s, some ", m->nr, text_plural(m->nr),
		text_size_rounded(bytes, m->bytes), m->cpus, text_plural(m->cpus));
	moves_print_time(m->ms);
	(void)printf("%s:\n", m->cut ? " (there may be a cheaper way)" : "");
	moves_print_list(m);
	if (m->pod)
		(void)puts("then it fits, on as few NUMA nodes as on an empty machine");
	else
		(void)printf("then %llu of them would be left\n",
			(unsigned long long)m->not_preferred_then);
	if (m->cannot) {
		(void)printf("numafitd cannot make these moves: ");
		wording_print_plain(stdout, m->cannot);
		(void)putchar('\n');
	} else if (!o->apply) {
		(void)puts("the same with --apply makes them");
	}
}

/* Asking */

static int ask_for(const char *path, const char *question, char **document, struct arena *a,
	struct moves *m, struct err *e)
{
	size_t len;
	int rc = ask_daemon_patiently(path, question, PLAN_WAIT_S, document, &len, e);

	return rc ? rc : moves_json_parse(*document, len, a, m, e);
}

/* A line for each move that has ended since. Returns how many have. */
static unsigned print_ended(const struct moves *m, unsigned printed)
{
	for (; printed < m->nr && m->at[printed].state > MOVE_UNDER_WAY; printed++) {
		(void)printf("%u of %u: ", printed + 1, m->nr);
		moves_print_name(&m->at[printed]);
		(void)printf(" %s", move_state_words[m->at[printed].state]);
		if (m->at[printed].why) {
			(void)printf(": ");
			wording_print_plain(stdout, m->at[printed].why);
		}
		(void)putchar('\n');
		(void)fflush(stdout);
	}
	return printed;
}

/* As it goes on; a program has the document of its end alone. */
static int follow(const struct options *o, const char *path, struct moves *m, struct err *e)
{
	unsigned printed = 0;
	bool ended = false;
	struct arena a;
	int rc = 0;

	while (!rc && !ended) {
		auto_free char *document = NULL;

		arena_init(&a, DOCUMENT_BYTES_MAX);
		rc = ask_for(path, "defrag show", &document, &a, m, e);
		ended = !rc && m->state != MOVES_UNDER_WAY;
		if (!rc && o->output != OUTPUT_JSON)
			printed = print_ended(m, printed);
		else if (ended)
			(void)fputs(document, stdout);
		arena_fini(&a);
		if (!rc && !ended)
			(void)usleep(LOOK_US);
	}
	return rc;
}

static int print_answer(const struct options *o, const char *path, const char *document,
	struct moves *m, struct err *e)
{
	const bool begun = o->apply && m->state == MOVES_UNDER_WAY;

	if (o->output == OUTPUT_JSON && !begun)
		(void)fputs(document, stdout); /* which ends its line */
	else if (o->show)
		moves_print_list(m);
	else if (o->output != OUTPUT_JSON)
		print_plan(m, o);
	return begun ? follow(o, path, m, e) : 0;
}

static enum exit_code code_of(const struct options *o, const struct moves *m)
{
	if (o->apply && m->cannot && m->nr)
		return EXIT_CANNOT;
	return m->found && m->state != MOVES_FAILED ? EXIT_DONE : EXIT_NO;
}

static int run_defrag(const struct call *c)
{
	struct options o = {.moves = MOVES_DEFAULT};
	auto_free struct moves *m = xcalloc(1, sizeof *m);
	auto_free char *question = NULL, *document = NULL;
	struct err e = {0};
	char path[STATUS_PATH_MAX];
	struct arena a;
	int code = call_read(c, &o);

	if (code < 0 && o.show && (o.apply || o.file))
		code = call_misused(c, "--show stands alone");
	if (code < 0)
		code = status_source_path(c, &o.source, path);
	if (code < 0 && !o.show)
		code = make_question(c, &o, &question);
	if (code >= 0)
		return code;
	arena_init(&a, DOCUMENT_BYTES_MAX);
	int rc = ask_for(path, o.show ? "defrag show" : question, &document, &a, m, &e);
	if (!rc)
		rc = print_answer(&o, path, document, m, &e);
	code = rc == -EREMOTEIO ? call_fail(c, EXIT_CANNOT, &e)
	       : rc             ? status_source_fail(c, &e)
				: (int)code_of(&o, m);
	arena_fini(&a);
	return code;
}

#define AT(member) offsetof(struct options, member)
static const struct option_row rows[] = {
	{.letter = 'f',
		.name = "for",
		.value = "FILE",
		.help = "make room for this pod, as for kubectl, YAML or JSON, or one of a "
			"Deployment or another object with a pod's template; - is the standard "
			"input. Its annotations are not looked at. Without it: put containers "
			"together that are on more NUMA nodes than they need",
		.read = option_text,
		.at = AT(file),
		.completes = COMPLETE_FILE},
	{.name = "moves",
		.value = "N",
		.help = "move at most so many containers, up to 8 (default 3)",
		.read = read_defrag_moves,
		.at = AT(moves)},
	{.name = "apply",
		.help = "make the moves, and print each as it ends (defragment.mode on-demand or "
			"auto)",
		.read = option_flag,
		.at = AT(apply)},
	{.name = "show",
		.help = "the moves that were made last, or are under way",
		.read = option_flag,
		.at = AT(show)},
	OUTPUT_ROWS(struct options, "text|json"),
	STATUS_SOURCE_ROWS(struct options),
	{0},
};
#undef AT

const struct command verb_defrag = {
	.name = "defrag",
	.summary = "make room by moving running containers",
	.about =
		"Ask numafitd on this node which running containers with CPUs of their own would have "
		"to be moved to other NUMA nodes so that a pod fits on as few as on an empty machine, "
		"or so that those fit which do not now. With --apply they are moved: CPUs and memory, "
		"while they run. Containers with devices, huge pages, claims or a place that was asked "
		"for stay, and so do those of pods with numafit.io/movable: \"false\".",
	.options = rows,
	.examples = {{"numafit defrag", "what moves would put together"},
		{"numafit defrag --for web.yaml", "what would have to be moved for this pod"},
		{"numafit defrag --for web.yaml --apply", "and move it"},
		{"numafit defrag --show", "how far that is"}},
	.exits = {[EXIT_DONE] = "there is a plan, nothing has to be moved, or all was moved",
		[EXIT_NO] = "no moves would help, or one was undone",
		[EXIT_CANNOT] = "no daemon answers, or it cannot move containers here"},
	.run = run_defrag,
};
