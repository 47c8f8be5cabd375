#include <command/safe_output.h>
#include <numafit-cli/verbs.h>

#include <codec/machine_text.h>
#include <codec/status_json.h>
#include <host/discover.h>
#include <io/file.h>
#include <io/journal.h>
#include <numafit-cli/ask.h>
#include <numafit-cli/output.h>
#include <numafit-cli/redact_json.h>
#include <numafit-cli/output.h>
#include <numafit-cli/run_directory.h>
#include <numafit-cli/tar.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <numafit/version.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define FOLDER "numafit-bundle/"
enum {
	JOURNAL_BYTES_MAX = 1 << 30,
	STATUS_BYTES_MAX = 64 << 20,
	WHY_MAX = 512,
	BUNDLE_MODE = 0600
};

struct options {
	const char *directory, *output;
	bool redact;
};

struct bundle {
	const struct options *options;
	const char *directory;
	struct redaction *names; /* NULL: nothing is redacted */
};

/* What is in it: one file each, which make() writes to `to`. 0, or -errno with text: it is left
 * out. */
struct bundle_part {
	const char *name, *what;
	int (*make)(struct bundle *b, const struct bundle_part *p, FILE *to, struct err *e);
	const char *from; /* the question to the daemon, or the journal's suffix */
	bool may_lack;    /* that it is not there is nothing special */
};

/* Texts */

/* One document or line of a log, as it is or redacted. */
static void put_text(const struct bundle *b, const char *text, FILE *to)
{
	auto_free char *redacted = NULL;

	if (b->names)
		redacted = redaction_apply(b->names, text);
	(void)fputs(redacted ? redacted : text, to);
}

static int ask_for(const struct bundle *b, const char *word, char **answer, struct err *e)
{
	char path[PATH_MAX];
	size_t len;

	(void)snprintf(path, sizeof path, "%s/numafitd.sock", b->directory);
	return ask_daemon(path, word, answer, &len, e);
}

/* Parts */

static int make_machine(struct bundle *b, const struct bundle_part *p, FILE *to, struct err *e)
{
	auto_free struct topo *t = xcalloc(1, sizeof *t);
	auto_free char *buf = xcalloc(MACHINE_TEXT_MAX, 1);
	struct correction_lines comments = {to, "# "};
	struct text out;
	int rc = machine_load("this", t, print_correction, &comments, e);

	(void)b, (void)p;
	if (rc)
		return rc;
	text_init(&out, buf, MACHINE_TEXT_MAX);
	machine_text_write(t, &out);
	(void)fputs(buf, to);
	return 0;
}

static int make_answer(struct bundle *b, const struct bundle_part *p, FILE *to, struct err *e)
{
	auto_free char *answer = NULL;
	int rc = ask_for(b, p->from, &answer, e);

	if (rc < 0)
		return rc;
	for (char *line = answer, *rest; *line; line = rest) {
		rest = line + strcspn(line, "\n");
		rest += *rest ? 1 : 0;
		if (rest[-1] == '\n')
			rest[-1] = '\0';
		if (text_equal(p->from, "metrics")) /* names and labels are all numafit's own */
			(void)fputs(line, to);
		else
			put_text(b, line, to);
		(void)fputc('\n', to);
	}
	return 0;
}

static int make_settings(struct bundle *b, const struct bundle_part *p, FILE *to, struct err *e)
{
	auto_free char *answer = NULL;
	struct status st;
	struct arena a;
	int rc = ask_for(b, p->from, &answer, e);

	if (rc < 0)
		return rc;
	if (b->names) {
		char *redacted = redaction_apply(b->names, answer);

		free(answer);
		answer = redacted;
	}
	arena_init(&a, STATUS_BYTES_MAX);
	rc = status_json_parse(answer, strlen(answer), &a, &st, e);
	for (size_t i = 0; !rc && i < st.settings.nr; i++)
		(void)fprintf(to, "%s: %s\n", st.settings.at[i].key, st.settings.at[i].value);
	arena_fini(&a);
	return rc;
}

struct journal_copy {
	const struct bundle *b;
	FILE *to;
};

static int copy_line(void *ctx, char *text, size_t len, struct err *e)
{
	const struct journal_copy *c = ctx;

	(void)len;
	auto_free char *redacted = redaction_apply(c->b->names, text);
	return journal_write_text(c->to, redacted, strlen(redacted), e);
}

static int make_journal(struct bundle *b, const struct bundle_part *p, FILE *to, struct err *e)
{
	char path[RUN_PATH_MAX];
	struct journal_copy copy = {b, to};
	auto_free char *text = NULL;
	size_t len = 0;

	(void)journal_path(b->directory, p->from, path);
	if (access(path, R_OK) < 0)
		return err_set(e, errno, "%s: %s", path, strerror(errno));
	if (b->names) {
		int rc = journal_read(path, copy_line, &copy, e);
		return rc < 0 ? rc : 0;
	}
	int rc = file_read(path, JOURNAL_BYTES_MAX, &text, &len, e);
	if (!rc)
		(void)fwrite(text, 1, len, to);
	return rc;
}

/* Whole ids come before the log, which has how they begin. */
static const struct bundle_part parts[] = {
	{"machine.txt", "this machine, as numafit topology --export prints it", make_machine, NULL,
		false},
	{"settings.txt", "numafitd's settings in force", make_settings, "status", false},
	{"status.json", "what numafitd holds, as numafit status --json prints it", make_answer,
		"status", false},
	{"metrics.txt", "what numafitd counts, as Prometheus reads it", make_answer, "metrics",
		false},
	{"journal.1", "what was decided before numafitd was last started", make_journal, "1", true},
	{"journal", "what was decided since; numafit replay decides it again", make_journal, NULL,
		false},
	{"log.txt", "numafitd's last log lines", make_answer, "log", false},
};
enum { NR_PARTS = sizeof parts / sizeof *parts };

/* The archive */

struct made {
	char *data;
	size_t len;
	struct err why; /* it is not there; code 0: it is */
};

static void make_part(struct bundle *b, const struct bundle_part *p, struct made *m)
{
	FILE *to = open_memstream(&m->data, &m->len);

	if (!to)
		abort();
	m->why = (struct err){0};
	int rc = p->make(b, p, to, &m->why);
	(void)fclose(to);
	m->why.code = rc < 0 ? -rc : 0;
	if (!rc)
		return;
	free(m->data);
	m->data = NULL;
}

static void describe(const struct bundle *b, const struct made made[NR_PARTS], time_t now, FILE *to)
{
	struct utsname u = {0};
	char when[sizeof "2026-01-01T00:00:00Z"];
	struct tm tm;

	(void)uname(&u);
	(void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	(void)fprintf(to, "numafit %s\nmade %s\nkernel %s %s\n", NUMAFIT_VERSION, when, u.release,
		u.machine);
	if (b->names)
		(void)fprintf(to,
			"redacted: %zu name%s or id%s replaced by words such as pod-3; messages, "
			"errors, addresses, paths and settings of any text are left out\n",
			redaction_names(b->names), text_plural(redaction_names(b->names)),
			text_plural(redaction_names(b->names)));
	else
		(void)fprintf(
			to, "not redacted: it names pods (numafit bundle --redact does not)\n");
	(void)fputc('\n', to);
	for (unsigned i = 0; i < NR_PARTS; i++)
		(void)fprintf(to, "%-13s %s%s%s\n", parts[i].name, parts[i].what,
			made[i].why.code ? "; NOT HERE: " : "",
			!made[i].why.code ? ""
			: b->names        ? strerror(made[i].why.code)
					  : made[i].why.text);
}

static void add_about(
	const struct bundle *b, const struct made made[NR_PARTS], time_t now, FILE *to)
{
	char *text = NULL;
	size_t len;
	FILE *about = open_memstream(&text, &len);

	if (!about)
		abort();
	describe(b, made, now, about);
	(void)fclose(about);
	tar_add(to, FOLDER "about.txt", text, len, now);
	free(text);
}

static void put_parts(struct bundle *b, FILE *to)
{
	struct made made[NR_PARTS] = {0};
	time_t now = time(NULL);
	char name[TAR_NAME_MAX + 1];

	for (unsigned i = 0; i < NR_PARTS; i++) {
		make_part(b, &parts[i], &made[i]);
		if (made[i].why.code && !(parts[i].may_lack && made[i].why.code == ENOENT))
			(void)fprintf(stderr, "numafit bundle: %s is left out: %s\n", parts[i].name,
				made[i].why.text);
	}
	add_about(b, made, now, to);
	for (unsigned i = 0; i < NR_PARTS; i++) {
		(void)snprintf(name, sizeof name, FOLDER "%s", parts[i].name);
		if (!made[i].why.code)
			tar_add(to, name, made[i].data, made[i].len, now);
		free(made[i].data);
	}
	tar_end(to);
}

/* A file of that name must not be there: a bundle is what there was at a time. *path is the file's,
 * or NULL: standard output. */
static FILE *open_bundle(
	const struct options *o, char name[NAME_MAX], const char **path, struct err *e)
{
	time_t now = time(NULL);
	struct tm tm;

	if (o->output && text_equal(o->output, "-")) {
		if (!isatty(STDOUT_FILENO))
			return safe_output_raw();
		(void)err_set(
			e, EINVAL, "an archive is not for a terminal: numafit bundle -o - >FILE");
		return NULL;
	}
	(void)strftime(name, NAME_MAX, "numafit-bundle-%Y%m%d-%H%M%S.tar", gmtime_r(&now, &tm));
	*path = o->output ? o->output : name;
	int fd = open(*path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, BUNDLE_MODE);
	FILE *to = fd < 0 ? NULL : fdopen(fd, "w");

	if (!to)
		(void)err_set(e, errno, "%s: %s", *path, strerror(errno));
	return to;
}

/* All of it, or no file: half an archive would be taken for a bundle. */
static int close_bundle(FILE *to, const char *path, struct err *e)
{
	bool failed = fflush(to) || ferror(to);
	int why = errno;

	if (path && fclose(to) && !failed) {
		failed = true;
		why = errno;
	}
	if (!failed)
		return 0;
	if (path)
		(void)unlink(path);
	return err_set(e, EIO, "the archive cannot be written: %s", strerror(why));
}

static int write_bundle(const struct call *c, struct bundle *b)
{
	char name[NAME_MAX];
	struct err e = {0};
	const char *path = NULL;
	FILE *to = open_bundle(b->options, name, &path, &e);

	if (!to)
		return call_fail(c, EXIT_CANNOT, &e);
	put_parts(b, to);
	if (close_bundle(to, path, &e))
		return call_fail(c, EXIT_CANNOT, &e);
	if (path)
		(void)printf("%s\n", path);
	return EXIT_DONE;
}

static int run_bundle(const struct call *c)
{
	struct options o = {0};
	int code = call_read(c, &o);

	if (code >= 0)
		return code;
	struct bundle b = {.options = &o, .directory = o.directory ? o.directory : RUN_DIRECTORY};
	b.names = o.redact ? redaction_new() : NULL;
	code = write_bundle(c, &b);
	if (b.names)
		redaction_free(b.names);
	return code;
}

static const struct option_row rows[] = {
	{.letter = 'o',
		.name = "output",
		.value = "FILE",
		.help = "the archive, a file that is not there yet; - is the standard output "
			"(default numafit-bundle-TIME.tar, here)",
		.read = option_text,
		.at = offsetof(struct options, output),
		.completes = COMPLETE_FILE},
	{.name = "redact",
		.help = "replace names and ids of namespaces, pods, containers, claims and devices by "
			"words, and leave out all other text that is not numafit's own",
		.read = option_flag,
		.at = offsetof(struct options, redact)},
	{.name = "run-directory",
		.value = "DIR",
		.help = "numafitd's runDirectory (default " RUN_DIRECTORY ")",
		.read = option_text,
		.at = offsetof(struct options, directory),
		.completes = COMPLETE_DIRECTORY},
	{0},
};

const struct command verb_bundle = {
	.name = "bundle",
	.summary = "gather what a bug report needs in one archive",
	.about =
		"Gather in one tar archive what somebody needs who looks for a fault: the machine as text, "
		"numafitd's settings, status and metrics, both journals, and its last log lines. No file "
		"of credentials is read. What cannot be had is left out, and about.txt in the archive says "
		"why.\n"
		"\n"
		"With --redact one name has one word everywhere, so that the journals can still be "
		"explained and replayed. Messages and errors are left out, as are the node's name, "
		"addresses, paths, annotations and labels: explain and replay decide again, and so find "
		"out why a pod was refused.",
	.options = rows,
	.examples = {{"numafit bundle --redact", "of this node, into a file here"},
		{"kubectl -n numafit-system exec numafitd-x7k2p -- numafit bundle -o - >worker-3.tar",
			"of another node"},
		{"tar -xf worker-3.tar && numafit replay numafit-bundle/journal",
			"decide again what was decided there"}},
	.exits = {[EXIT_DONE] = "the archive is written, maybe without some parts",
		[EXIT_CANNOT] = "it cannot be written"},
	.run = run_bundle,
};
