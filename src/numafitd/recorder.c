#include "cluster.h"
#include "daemon.h"
#include "decision_log.h"
#include "gather.h"
#include "pool.h"
#include "quiet.h"
#include "self.h"
#include "services.h"

#include <daemon-files/check_config.h>
#include <codec/journal_json.h>
#include <codec/machine_text.h>
#include <dra-driver/driver.h>
#include <io/fault.h>
#include <io/log.h>
#include <numafit/text.h>
#include <numafit/version.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* What was written must be read again, and a line of a pod with many containers is several times as
 * long once it is. */
enum { LINE_ARENA_BYTES = 16 * JOURNAL_TEXT_MAX, BOOT_ID_MAX = 64, RETRY_MS = 1000 };

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
	static char line[JOURNAL_TEXT_MAX + 1]; /* of the loop's thread, like all here */
	struct daemon *d = ctx;
	size_t cap = r->in_one_line ? JOURNAL_LINE_MAX + 1 : sizeof line;
	int len = journal_json_record(r, &d->topo.ids, line, cap, e);

	if (len < 0) /* too long: that is no fault of the journal's */
		return len;
	int rc = journal_append(d->recorder.journal, line, (size_t)len, e);
	d->measured.metrics.journal_writes += !rc;
	d->measured.metrics.journal_errors += rc < 0;
	return rc;
}

/* An entry that is too long for any record is found running once more, at the next start. */
static int dump_record(void *ctx, const struct record *r, struct err *e)
{
	char id[64], why[2 * sizeof e->text];
	int rc = append_record(ctx, r, e);

	if (rc != -EMSGSIZE)
		return rc;
	log_line(LOG_WARN, "journal-entry-left-out",
		"id=%s error=%s action=\"none needed: it is taken over from the runtime, should "
		"numafitd be started anew\"",
		log_text(id, sizeof id, r->container_id), log_text(why, sizeof why, e->text));
	return 0;
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
		.says_placed_by = true,
		.core_rule = d->settings.cpu_options.core_rule,
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
		rc = journal_append(d->recorder.journal, line, (size_t)rc, e);
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
		{ENOENT, "make runDirectory, or mount its file system"},
	};

	for (size_t i = 0; i < sizeof remedies / sizeof *remedies; i++)
		if (remedies[i].error == error)
			return remedies[i].text;
	return "repair the file system of runDirectory, or choose another one";
}

/* Without entries no pool is known: without entries a record that releases nobody does. */
static int append_pool(struct daemon *d, struct err *e)
{
	const struct ledger *l = engine_ledger(d->engine);
	const struct record r = {
		.time_ms = loop_wall_ms(),
		.op = RECORD_RELEASE,
		.cause = "snapshot",
		.container_id = "",
		.pool = ledger_view(l)->pool,
	};

	return ledger_count(l) ? 0 : append_record(d, &r, e);
}

static int claim_run_directory_late(struct daemon *d, struct err *e);

/* The records so far, for `numafit explain`: it can do without. */
static void keep_previous(const struct daemon *d)
{
	struct err e;
	char buf[2 * sizeof e.text];

	if (journal_keep(d->run.journal_path, JOURNAL_PREVIOUS, &e) < 0)
		log_line(LOG_WARN, "journal-not-kept",
			"error=%s action=\"none needed: numafit explain knows less of the past\"",
			log_text(buf, sizeof buf, e.text));
}

/* What keeps a new journal from its place: a run directory that is not ours yet, or a journal there
 * that is to be set aside. */
static int make_way(struct daemon *d, struct err *e)
{
	int rc = d->run.lock < 0 ? claim_run_directory_late(d, e) : 0;

	if (!rc && d->recorder.aside)
		rc = journal_set_aside(d->run.journal_path, d->recorder.aside, e);
	if (!rc)
		d->recorder.aside = NULL;
	return rc;
}

/* A new journal that starts with the ledger as it is, in the place of the one in use. */
static int start_journal_over(struct daemon *d, struct err *e)
{
	struct journal *old = d->recorder.journal;
	int rc = make_way(d, e);

	if (rc)
		return rc;
	d->recorder.journal = journal_create(d->run.journal_path, e);
	rc = d->recorder.journal ? 0 : -e->code;
	if (d->recorder.journal) {
		rc = append_header(d, e);
		if (!rc)
			rc = engine_dump(d->engine, loop_wall_ms(), dump_record, d, e);
		if (!rc)
			rc = append_pool(d, e);
		if (!rc)
			keep_previous(d);
		if (!rc)
			rc = journal_publish(d->recorder.journal, e);
	}
	if (rc) {
		journal_close(d->recorder.journal);
		d->recorder.journal = old;
		return rc;
	}
	journal_close(old);
	run_directory_share(d);
	d->recorder.behind = false;
	d->recorder.rotate_at_bytes = 2 * journal_size(d->recorder.journal);
	if (d->recorder.rotate_at_bytes < d->settings.journal_max_bytes)
		d->recorder.rotate_at_bytes = d->settings.journal_max_bytes;
	return 0;
}

/* Logged once, not for every container that is refused for it. */
static void note_journal_failure(struct daemon *d, const struct err *e)
{
	char buf[2 * sizeof e->text];

	if (!d->recorder.error.code)
		log_line(LOG_ERROR, "journal-not-written",
			"error=%s action=\"%s; what cannot be recorded is refused\"",
			log_text(buf, sizeof buf, e->text), remedy(e->code));
	d->recorder.error = *e;
}

static void note_journal_success(struct daemon *d)
{
	if (d->recorder.error.code)
		log_line(LOG_INFO, "journal-written-again", "file=%s", d->run.journal_path);
	d->recorder.error = (struct err){0};
}

static void rotate_later(struct daemon *d, const struct err *e)
{
	char buf[2 * sizeof e->text];

	if (d->recorder.behind && d->run.lock < 0 && !run_directory_may_come(-e->code)) {
		d->recorder.verdict = *e;
		loop_stop(d->loop);
		return;
	}
	if (d->recorder.behind) {
		note_journal_failure(d, e);
		loop_timer_set(d->recorder.rotate, RETRY_MS);
		return;
	}
	log_line(LOG_ERROR, "journal-rotate", "error=%s action=\"%s\"",
		log_text(buf, sizeof buf, e->text), remedy(e->code));
	d->recorder.rotate_at_bytes = 2 * journal_size(d->recorder.journal);
}

/* In a turn of the loop of its own: no container waits for it. */
static void rotate(void *ctx)
{
	struct daemon *d = ctx;
	uint64_t before = journal_size(d->recorder.journal);
	struct err e;

	if (start_journal_over(d, &e) < 0) {
		rotate_later(d, &e);
		return;
	}
	note_journal_success(d);
	log_line(LOG_INFO, "journal-rotate", "bytes_before=%llu bytes=%llu",
		(unsigned long long)before, (unsigned long long)journal_size(d->recorder.journal));
}

void recorder_write_anew(struct daemon *d)
{
	d->recorder.behind = true; /* until it is written */
	rotate(d);
}

/* What could be written now would contradict what is missing before it. */
static int refuse_behind(const struct daemon *d, struct err *e)
{
	/* a record that had no room in a line is no fault of the journal's, and is missing all the
	 * same */
	const int code = d->recorder.error.code ? d->recorder.error.code : EIO;

	return err_set(e, code, "%s%s%s",
		d->recorder.journal
			? "an earlier change is missing in it, and it cannot be written anew"
			: "it cannot be written since numafitd has started",
		*d->recorder.error.text ? ": " : "", d->recorder.error.text);
}

static int record(void *ctx, const struct record *r, struct err *e)
{
	struct daemon *d = ctx;
	struct err why;

	fault_point(FAULT_TO_APPEND);
	int rc = d->recorder.behind ? refuse_behind(d, &why) : append_record(d, r, &why);
	d->recorder.unrecorded = rc < 0;
	if (rc) {
		if (!d->recorder.behind && rc != -EMSGSIZE)
			note_journal_failure(d, &why);
		return err_set(e, why.code, "journal: %s", why.text);
	}
	fault_point(FAULT_APPENDED);
	note_journal_success(d);
	if (journal_size(d->recorder.journal) > d->recorder.rotate_at_bytes)
		loop_timer_set(d->recorder.rotate, 0);
	return 0;
}

void recorder_count_change(struct daemon *d)
{
	const struct ledger *l = engine_ledger(d->engine);
	const struct topo *t = ledger_view(l)->topo;
	uint64_t left = cpuset_count(&t->cpus);

	nodeset_each (n, t->nodes)
		for (unsigned k = 0; k < t->nr_kinds; k++)
			left += ledger_view(l)->memory.node[n].free[k];
	if (left == d->recorder.free_before &&
		cpuset_equal(&ledger_view(l)->held, &d->recorder.held_before))
		return;
	d->recorder.generation++;
	d->recorder.free_before = left;
	d->recorder.held_before = ledger_view(l)->held;
}

/* A container that is gone is gone, whether that could be recorded or not. */
static void done(void *ctx, const struct record *r)
{
	struct daemon *d = ctx;

	fault_point(FAULT_COMMITTED);
	if (d->recorder.unrecorded && !d->recorder.behind) {
		d->recorder.behind = true;
		loop_timer_set(d->recorder.rotate, 0);
	}
	recorder_count_change(d);
	log_record(d, r);
	self_note_change(d);
	quiet_note_record(d, r);
	services_note_change(d);
	dra_note_change(d->dra);
	cluster_note_change(d);
}

/* What reading the old journal found. */
struct reading {
	struct daemon *d;
	bool has_header;
	bool has_other_keys; /* its settings are not all known here */
	bool says_placed_by; /* as of struct journal_header */
	const char *foreign; /* why it is not ours, a suffix for the file that is set aside */
};

static enum token_owner token_owner(void *ctx, const struct request *req)
{
	return gather_token_owner(ctx, req);
}

static uint32_t nonce(void *ctx)
{
	uint32_t n = 0;

	(void)ctx;
	(void)!getrandom(&n, sizeof n, GRND_NONBLOCK); /* there long before any container is */
	return n;
}

static void new_engine(struct daemon *d)
{
	const struct engine_hooks hooks = {
		.ctx = d, .record = record, .owner = token_owner, .nonce = nonce, .done = done};

	engine_free(d->engine);
	d->engine = engine_new(d->machine ? d->machine : &d->topo, &d->settings, &hooks);
}

/* Whether they may be one machine at two times: CPUs and memory come and go. */
static bool may_be_the_same(const struct topo *a, const struct topo *b)
{
	return text_equal(a->name, b->name) && a->nr_kinds == b->nr_kinds &&
	       memcmp(&a->ids, &b->ids, sizeof a->ids) == 0 &&
	       memcmp(a->distance, b->distance, sizeof a->distance) == 0 &&
	       memcmp(a->page_bytes, b->page_bytes, sizeof a->page_bytes) == 0;
}

static bool is_unchanged(const struct topo *a, const struct topo *b)
{
	bool same = cpuset_equal(&a->cpus, &b->cpus) && cpuset_equal(&a->isolated, &b->isolated) &&
		    nodeset_equal(a->device_memory, b->device_memory);

	nodeset_each (n, a->nodes)
		same = same &&
		       memcmp(a->node[n].memory, b->node[n].memory, sizeof a->node[n].memory) == 0;
	return same;
}

/* Fold on the machine as it was: what was held on CPUs that are offline by now is in the records,
 * too. False when it is another machine. */
static bool take_machine_of(struct daemon *d, const struct journal_header *h)
{
	auto_free struct topo *t = xcalloc(1, sizeof *t);

	if (machine_text_parse(h->topology, strlen(h->topology), t, NULL) < 0)
		return h->fingerprint == topo_fingerprint(&d->topo);
	if (!may_be_the_same(t, &d->topo))
		return false;
	d->machine = steal(t);
	return true;
}

/* And with the settings as they were, all of them: what they allowed may not be allowed now.
 * Another numafit may have had some that this one does not know. */
static void take_settings_of(struct reading *r, const struct journal_header *h, struct arena *a)
{
	auto_free struct settings *then = xcalloc(1, sizeof *then);

	r->has_other_keys = settings_of_words(&h->settings, a, then, NULL) < 0;
	then->cpu_options.core_rule = h->core_rule;
	if (!r->has_other_keys)
		r->d->settings = *then;
}

static bool reserves_the_same(const struct settings *a, const struct settings *b)
{
	return cpuset_equal(&a->reserved_cpus, &b->reserved_cpus) &&
	       a->device_memory == b->device_memory &&
	       a->nr_reserved_memory == b->nr_reserved_memory &&
	       memcmp(a->reserved_memory, b->reserved_memory,
		       a->nr_reserved_memory * sizeof *a->reserved_memory) == 0;
}

/* The records are folded: settings and machine become what they are now, and what conflicts with
 * that moves. */
static void take_effect(struct daemon *d, const struct settings *now)
{
	bool changed = d->machine && !is_unchanged(d->machine, &d->topo);
	bool reserved = !reserves_the_same(&d->settings, now);

	pool_note_earlier(d, d->settings.pool_enforced);
	d->settings = *now;
	if (changed)
		log_line(
			LOG_WARN, "hotplug", "text=\"CPUs or memory have come or gone meanwhile\"");
	if (reserved)
		log_line(LOG_INFO, "reserved-changed",
			"text=\"other CPUs or memory are for containers than before: those that "
			"have "
			"them move\"");
	if (!changed && !reserved && engine_settings_changed(d->engine, NULL) == 0 &&
		!engine_lacks_cpus(d->engine)) /* CPUs may have gone and come back meanwhile */
		return;
	engine_take_effect(d->engine, loop_wall_ms(), &d->topo);
	free(d->machine);
	d->machine = NULL;
}

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
	if (!take_machine_of(r->d, &h)) {
		r->foreign = "other-machine";
		return err_set(e, ESTALE, "it was written on another machine (%s)", h.machine);
	}
	take_settings_of(r, &h, a);
	r->says_placed_by = h.says_placed_by;
	new_engine(r->d);
	return 0;
}

static int recorder_fold_line(void *ctx, char *text, size_t len, struct err *e)
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

static void set_aside(struct daemon *d, const struct reading *r, const struct err *why)
{
	const char *suffix = r->foreign          ? r->foreign
			     : r->has_other_keys ? "other-version"
						 : "damaged";
	bool expected = r->foreign || r->has_other_keys;
	char buf[2 * sizeof why->text];

	log_line(expected ? LOG_WARN : LOG_ERROR, "journal-set-aside",
		"file=%s.%s reason=%s action=\"none needed: placements are taken over from the "
		"running containers\"",
		d->run.journal_path, suffix, log_text(buf, sizeof buf, why->text));
	free(d->machine);
	d->machine = NULL;
	new_engine(d);
	d->recorder.aside = suffix;
}

/* The journal of an earlier life, into the engine. */
static void fold(struct daemon *d)
{
	auto_free struct settings *now = xcalloc(1, sizeof *now);
	struct reading r = {.d = d};
	struct err why;

	*now = d->settings;
	int lines = journal_read(d->run.journal_path, recorder_fold_line, &r, &why);
	if (lines <= 0)
		d->settings = *now;
	if (lines < 0)
		set_aside(d, &r, &why);
	if (lines <= 0)
		return;
	if (!r.says_placed_by && (d->settings.mode == MODE_SHADOW || d->settings.mode == MODE_OFF))
		engine_nothing_was_in_force(d->engine);
	take_effect(d, now);
	log_line(LOG_INFO, "journal-folded", "file=%s lines=%d containers=%zu", d->run.journal_path,
		lines, ledger_count(engine_ledger(d->engine)));
}

/* The run directory may be there by now. Its journal is of use as long as the runtime has not
 * reported what runs: then that is in the ledger. */
static int claim_run_directory_late(struct daemon *d, struct err *e)
{
	int rc = run_directory_claim(d, e);

	if (rc)
		return rc;
	if (d->measured.counters.connects)
		d->recorder.aside = "found-late";
	else
		fold(d);
	return 0;
}

int recorder_start(struct daemon *d, struct err *e)
{
	d->recorder.generation =
		(uint64_t)loop_wall_ms(); /* beyond all that an earlier life counted */
	new_engine(d);
	d->recorder.rotate = loop_timer_new(d->loop, rotate, d);
	if (d->run.lock >= 0)
		fold(d);
	int rc = start_journal_over(d, e);
	if (!rc || !run_directory_may_come(rc))
		return rc;
	d->recorder.behind = true; /* no container is placed until it is written */
	rotate_later(d, e);
	return 0;
}

void recorder_stop(struct daemon *d)
{
	engine_free(d->engine);
	free(d->machine);
	journal_close(d->recorder.journal);
}
