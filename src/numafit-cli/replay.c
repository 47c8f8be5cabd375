#include <numafit-cli/verbs.h>

#include <questions/diff_json.h>
#include <getopt.h>
#include <io/journal.h>
#include <numafit-cli/again.h>
#include <numafit-cli/journal_fold.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <stdio.h>

static const char help[] =
	"usage: numafit replay FILE|-\n"
	"\n"
	"Decide everything in a journal of numafitd once more, on the machine, with the settings "
	"and\n"
	"from the state that it records, and compare the decisions byte for byte. It needs "
	"nothing\n"
	"but the file, and changes nothing: a journal from any node can be replayed anywhere.\n"
	"\n"
	"  FILE    a journal (/run/numafit/journal, or the one before it, journal.1); - for stdin\n"
	"  --help  this text\n"
	"\n"
	"For each difference it prints the record's number, what differs, what is recorded and "
	"what\n"
	"is decided now. Containers that were taken over running, that inherited their place, or "
	"that\n"
	"were carried over from an earlier journal were not decided there; they count as records.\n"
	"\n"
	"Exit code: 0 every decision is the same; 1 some differ; 2 the journal cannot be read.\n";

struct replay {
	unsigned decided, differing;
	const struct record *at;
	void *work; /* ADMIT_ARENA_BYTES */
};

static void print_record_difference(
	void *ctx, const char *path, const char *wanted, const char *got)
{
	const struct replay *x = ctx;

	(void)printf("seq %llu: %s: wanted %s, got %s\n", (unsigned long long)x->at->seq,
		*path ? path : "record", wanted, got);
}

static int replay_record(void *ctx, const struct journal_fold *f, const struct record *r,
	const char *line, struct err *e)
{
	static char again[JOURNAL_TEXT_MAX + 1];
	struct replay *x = ctx;
	struct answer answer;
	struct arena a;

	arena_init_fixed(&a, x->work, ADMIT_ARENA_BYTES);
	if (!decide_again(engine_ledger(f->engine), &f->settings, r, &a, &answer))
		return 0;
	x->decided++;
	x->at = r;
	int rc = journal_json_record(&answer.record, &f->topo.ids, again, sizeof again, e);
	if (rc < 0)
		return rc;
	x->differing += json_diff_texts(line, again, print_record_difference, x) > 0;
	return 0;
}

static int replay_journal(const char *path)
{
	auto_free struct journal_fold *f = xcalloc(1, sizeof *f);
	auto_free void *work = xcalloc(1, ADMIT_ARENA_BYTES);
	struct replay x = {.work = work};
	struct err e;
	int rc =
		journal_fold(f, text_equal(path, "-") ? "/dev/stdin" : path, replay_record, &x, &e);

	if (rc)
		(void)fprintf(stderr, "numafit replay: %s\n", e.text);
	if (f->engine)
		(void)printf("%u records, %u decided again, %u differ\n", f->nr_records, x.decided,
			x.differing);
	journal_fold_fini(f);
	if (x.differing)
		return EXIT_FAILED;
	return rc ? EXIT_USAGE : EXIT_DONE;
}

int verb_replay(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	int c;

	optind = 0; /* main() hands on its own arguments: start over */
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c != 'h')
			return EXIT_USAGE;
		(void)fputs(help, stdout);
		return EXIT_DONE;
	}
	if (argc - optind == 1)
		return replay_journal(argv[optind]);
	(void)fputs("numafit replay: one FILE is expected; see numafit replay --help\n", stderr);
	return EXIT_USAGE;
}
