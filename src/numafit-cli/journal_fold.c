#include <numafit-cli/journal_fold.h>

#include <codec/machine_text.h>
#include <errno.h>
#include <io/journal.h>
#include <numafit/text.h>
#include <string.h>

enum { HEADER_BYTES_MAX = 4 << 20, RECORD_BYTES_MAX = 16 * JOURNAL_TEXT_MAX };

struct folding {
	struct journal_fold *f;
	int (*record)(void *ctx, const struct journal_fold *f, const struct record *r,
		const char *line, struct err *e);
	void *ctx;
};

static int begin_fold(struct journal_fold *f, const char *line, size_t len, struct err *e)
{
	const struct engine_hooks none = {0}; /* what is only entered needs no hook */
	struct journal_header *h = &f->header;
	int rc = journal_json_parse_header(line, len, &f->arena, h, e);

	if (!rc)
		rc = machine_text_parse(h->topology, strlen(h->topology), &f->topo, e);
	if (!rc && topo_fingerprint(&f->topo) != h->fingerprint)
		rc = err_set(e, EINVAL, "topology: it is not the machine of the fingerprint");
	if (!rc)
		rc = settings_of_words(&h->settings, &f->arena, &f->settings, e);
	f->settings.cpu_options.core_rule = h->core_rule;
	if (!rc)
		f->engine = engine_new(&f->topo, &f->settings, &none);
	return rc;
}

static int fold_record(
	struct folding *x, const char *line, size_t len, struct arena *a, struct err *e)
{
	static struct decoded_record decoded;
	struct journal_fold *f = x->f;
	int rc = journal_json_parse(line, len, &f->topo.ids, a, &decoded, e);

	if (!rc && x->record)
		rc = x->record(x->ctx, f, &decoded.record, line, e);
	if (!rc)
		rc = engine_replay(f->engine, &decoded.record, e);
	if (rc)
		return rc;
	f->nr_records++;
	f->last_ms = decoded.record.time_ms;
	return 0;
}

static int fold_journal_line(void *ctx, char *line, size_t len, struct err *e)
{
	struct folding *x = ctx;
	struct arena a;

	if (!x->f->engine)
		return begin_fold(x->f, line, len, e);
	arena_init(&a, RECORD_BYTES_MAX);
	int rc = fold_record(x, line, len, &a, e);
	arena_fini(&a);
	return rc;
}

int journal_fold(struct journal_fold *f, const char *path,
	int (*record)(void *ctx, const struct journal_fold *f, const struct record *r,
		const char *line, struct err *e),
	void *ctx, struct err *e)
{
	struct folding x = {f, record, ctx};

	memset(f, 0, sizeof *f);
	arena_init(&f->arena, HEADER_BYTES_MAX);
	int rc = text_equal(path, "-") ? journal_read_stream(stdin, "-", fold_journal_line, &x, e)
				       : journal_read(path, fold_journal_line, &x, e);
	if (rc < 0)
		return rc;
	return f->engine ? 0 : err_set(e, ENOENT, "%s: there is no journal", path);
}

void journal_fold_fini(struct journal_fold *f)
{
	engine_free(f->engine);
	arena_fini(&f->arena);
}
