#include "daemon.h"

#include <codec/journal_json.h>
#include <codec/machine_text.h>
#include <io/fault.h>
#include <io/log.h>
#include <numafit/text.h>
#include <numafit/version.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { LINE_ARENA_BYTES = 1 << 20, BOOT_ID_MAX = 64, RETRY_MS = 1000 };

static void read_boot_id(char id[BOOT_ID_MAX])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? 0 : read(fd, id, BOOT_ID_MAX - 1);

	if (fd >= 0)
		(void)close(fd);
	id[len > 0 ? len : 0] = '\0';
	id[strcspn(id, "\n")] = '\0';
}

static int append_record(void *ctx, const struct record *r, struct err *e)
{
	static char line[JOURNAL_LINE_MAX]; /* of the loop's thread, like all here */
	struct daemon *d = ctx;
	int len = journal_json_record(r, &d->topo.ids, line, sizeof line, e);

	return len < 0 ? len : journal_append(d->journal, line, (size_t)len, e);
}

static int append_header(struct daemon *d, struct err *e)
{
	static char line[JOURNAL_LINE_MAX], machine[JOURNAL_LINE_MAX];
	char boot_id[BOOT_ID_MAX];
	struct journal_header h = {
		.version = NUMAFIT_VERSION,
		.boot_id = boot_id,
		.machine = d->topo.name,
		.fingerprint = topo_fingerprint(&d->topo),
		.topology = machine,
	};
	struct arena a;
	struct text t;

	text_init(&t, machine, sizeof machine);
	machine_text_write(&d->topo, &t);
	read_boot_id(boot_id);
	arena_init(&a, LINE_ARENA_BYTES);
	int rc = words_of_settings(&d->settings, &a, &h.settings, e);
	if (!rc)
		rc = journal_json_header(&h, line, sizeof line, e);
	if (rc > 0)
		rc = journal_append(d->journal, line, (size_t)rc, e);
	arena_fini(&a);
	return rc;
}

static const char *remedy(int error)
{
	static const struct {
		int error;
		const char *text;
	} remedies[] = {
		{ENOSPC, "make room on the file system of runDirectory"},
		{EDQUOT, "raise the quota on the file system of runDirectory"},
		{EROFS, "mount the file system of runDirectory writable"},
		{EACCES, "let numafitd write in runDirectory"},
	};

	for (size_t i = 0; i < sizeof remedies / sizeof *remedies; i++)
		if (remedies[i].error == error)
			return remedies[i].text;
	return "mend the file system of runDirectory, or choose another one";
}

/* Who holds nothing tells no pool: without entries a record that releases nobody does. */
static int append_pool(struct daemon *d, struct err *e)
{
	const struct ledger *l = engine_ledger(d->engine);
	const struct record r = {
		.time_ms = loop_wall_ms(),
		.op = RECORD_RELEASE,
		.cause = "snapshot",
		.container_id = "",
		.pool = *ledger_pool(l),
	};

	return ledger_count(l) ? 0 : append_record(d, &r, e);
}

/* The records so far, for `numafit explain`: it can do without. */
static void keep_previous(const struct daemon *d)
{
	struct err e;
	char buf[2 * sizeof e.text];

	if (journal_keep(d->journal_path, JOURNAL_PREVIOUS, &e) < 0)
		log_line(LOG_WARN, "journal-not-kept",
			"error=%s action=\"none needed: numafit explain knows less of the past\"",
			log_text(buf, sizeof buf, e.text));
}

/* A new journal that starts with the ledger as it is, in the place of the one in use. */
static int start_over(struct daemon *d, struct err *e)
{
	struct journal *old = d->journal;
	int rc = -EIO;

	d->journal = journal_create(d->journal_path, e);
	if (d->journal) {
		rc = append_header(d, e);
		if (!rc)
			rc = engine_dump(d->engine, loop_wall_ms(), append_record, d, e);
		if (!rc)
			rc = append_pool(d, e);
		if (!rc)
			keep_previous(d);
		if (!rc)
			rc = journal_publish(d->journal, e);
	}
	if (rc) {
		journal_close(d->journal);
		d->journal = old;
		return rc;
	}
	journal_close(old);
	d->journal_behind = false;
	d->rotate_at_bytes = 2 * journal_size(d->journal);
	if (d->rotate_at_bytes < d->settings.journal_max_bytes)
		d->rotate_at_bytes = d->settings.journal_max_bytes;
	return 0;
}

/* Told once, not for every container that it refuses. */
static void tell_failure(struct daemon *d, const struct err *e)
{
	char buf[2 * sizeof e->text];

	if (!d->journal_error.code)
		log_line(LOG_ERROR, "journal-not-written",
			"error=%s action=\"%s: until then containers are refused\"",
			log_text(buf, sizeof buf, e->text), remedy(e->code));
	d->journal_error = *e;
}

static void tell_success(struct daemon *d)
{
	if (d->journal_error.code)
		log_line(LOG_INFO, "journal-written-again", "file=%s", d->journal_path);
	d->journal_error = (struct err){0};
}

static void rotate_later(struct daemon *d, const struct err *e)
{
	char buf[2 * sizeof e->text];

	if (d->journal_behind) {
		tell_failure(d, e);
		loop_timer_set(d->rotate, RETRY_MS);
		return;
	}
	log_line(LOG_ERROR, "journal-rotate", "error=%s action=\"%s\"",
		log_text(buf, sizeof buf, e->text), remedy(e->code));
	d->rotate_at_bytes = 2 * journal_size(d->journal);
}

/* In a turn of the loop of its own: no container waits for it. */
static void rotate(void *ctx)
{
	struct daemon *d = ctx;
	uint64_t before = journal_size(d->journal);
	struct err e;

	if (start_over(d, &e) < 0) {
		rotate_later(d, &e);
		return;
	}
	tell_success(d);
	log_line(LOG_INFO, "journal-rotate", "bytes_before=%llu bytes=%llu",
		(unsigned long long)before, (unsigned long long)journal_size(d->journal));
}

/* What could be written now would contradict what is missing before it. */
static int refuse_behind(const struct daemon *d, struct err *e)
{
	return err_set(e, d->journal_error.code,
		"an earlier change is missing in it, and it cannot be written anew: %s",
		d->journal_error.text);
}

static int record(void *ctx, const struct record *r, struct err *e)
{
	struct daemon *d = ctx;
	struct err why;

	fault_point(FAULT_TO_APPEND);
	int rc = d->journal_behind ? refuse_behind(d, &why) : append_record(d, r, &why);
	d->unrecorded = rc < 0;
	if (rc) {
		if (!d->journal_behind && why.code != EMSGSIZE)
			tell_failure(d, &why);
		return err_set(e, why.code, "journal: %s", why.text);
	}
	fault_point(FAULT_APPENDED);
	tell_success(d);
	if (journal_size(d->journal) > d->rotate_at_bytes)
		loop_timer_set(d->rotate, 0);
	return 0;
}

/* A container that is gone is gone, whether that could be recorded or not. */
static void done(void *ctx, const struct record *r)
{
	struct daemon *d = ctx;

	fault_point(FAULT_COMMITTED);
	if (d->unrecorded && !d->journal_behind) {
		d->journal_behind = true;
		loop_timer_set(d->rotate, 0);
	}
	wiring_done(d, r);
}

/* What reading the old journal found. */
struct reading {
	struct daemon *d;
	bool has_header;
	const char *foreign; /* why it is not ours, a suffix for the file that is set aside */
};

static int check_header(
	struct reading *r, const char *text, size_t len, struct arena *a, struct err *e)
{
	char boot_id[BOOT_ID_MAX];
	struct journal_header h;
	int rc = journal_json_parse_header(text, len, a, &h, e);

	if (rc == -ENOTSUP)
		r->foreign = "other-version";
	if (rc)
		return rc;
	read_boot_id(boot_id);
	if (!text_equal(h.boot_id, boot_id)) {
		r->foreign = "other-boot";
		return err_set(e, ESTALE, "it was written before the last boot");
	}
	if (h.fingerprint != topo_fingerprint(&r->d->topo)) {
		r->foreign = "other-machine";
		return err_set(e, ESTALE, "it was written on another machine (%s)", h.machine);
	}
	return 0;
}

static int fold_line(void *ctx, char *text, size_t len, struct err *e)
{
	static struct decoded_record decoded;
	struct reading *r = ctx;
	struct arena a;
	int rc;

	arena_init(&a, LINE_ARENA_BYTES);
	if (!r->has_header) {
		rc = check_header(r, text, len, &a, e);
		r->has_header = true;
	} else {
		rc = journal_json_parse(text, len, &r->d->topo.ids, &a, &decoded, e);
		if (!rc)
			rc = engine_replay(r->d->engine, &decoded.record, e);
	}
	arena_fini(&a);
	return rc;
}

static void new_engine(struct daemon *d)
{
	const struct engine_hooks hooks = {.ctx = d, .record = record, .done = done};

	engine_free(d->engine);
	d->engine = engine_new(&d->topo, &d->settings, &hooks);
}

static int set_aside(
	struct daemon *d, const struct reading *r, const struct err *why, struct err *e)
{
	const char *suffix = r->foreign ? r->foreign : "damaged";
	char buf[2 * sizeof why->text];

	log_line(r->foreign ? LOG_WARN : LOG_ERROR, "journal-set-aside",
		"file=%s.%s reason=%s action=\"none needed: placements are taken over from the "
		"running containers\"",
		d->journal_path, suffix, log_text(buf, sizeof buf, why->text));
	new_engine(d);
	return journal_set_aside(d->journal_path, suffix, e);
}

int recorder_start(struct daemon *d, struct err *e)
{
	struct reading r = {.d = d};
	struct err why;

	new_engine(d);
	d->rotate = loop_timer_new(d->loop, rotate, d);
	int lines = journal_read(d->journal_path, fold_line, &r, &why);
	if (lines < 0) {
		int rc = set_aside(d, &r, &why, e);

		if (rc)
			return rc;
	} else if (lines > 0) {
		log_line(LOG_INFO, "journal-folded", "file=%s lines=%d containers=%zu",
			d->journal_path, lines, ledger_count(engine_ledger(d->engine)));
	}
	return start_over(d, e);
}

void recorder_stop(struct daemon *d)
{
	engine_free(d->engine);
	journal_close(d->journal);
}
