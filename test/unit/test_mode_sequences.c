/* The daemon's modes one after the other, with containers that come in each of them: what runs once
 * the mode is manage is what a daemon would give that starts in manage and finds the same
 * containers, and what numafitd has pinned stays where it is. The modes are a tree, each branch of
 * which begins with what its stem has left: containers as the runtime has them, and the journal.
 * MODES_DEPTH=4 MODES_LOST=1 test all sequences of four modes with each journal kept and lost. */
#include <io/journal.h>
#include <numafit-cli/journal_fold.h>
#include <numafit/settings.h>

#include "live_rig.h"

enum { DEPTH_MAX = 4, UNITS = 32, SETTING_BYTES = 64, JOURNAL_MAX = 4 << 20 };

/* What comes in each mode. */
struct kind {
	const char *name;
	unsigned cpu_milli; /* of a Guaranteed pod; 0: of a Burstable one */
	bool by_kubelet;    /* a static kubelet gives it CPUs where numafitd does not */
	/* it comes in mode manage alone: where a container that was found running has CPUs of its
	 * own beside the pool's, the journal alone knows which are its own */
	bool in_manage;
	struct key_value wish[2]; /* annotations of its pod */
};
static const struct kind kinds[] = {
	{"own", 2000, false, false, {{0}}},
	{"kubelets", 2000, true, false, {{0}}},
	{"half", 1500, false, false, {{0}}},
	{"shared", 0, false, false, {{0}}},
	{"both", 2000, false, true, {{"numafit.io/cpus", "own+shared"}}},
	{"pool", 1000, false, false, {{"numafit.io/cpus", "shared"}}},
	{"near", 0, false, false, {{"numafit.io/spread", "one-node"}}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

struct unit {
	struct fake_container c;
	const struct kind *kind;
};

/* What a sequence of modes has left. */
struct state {
	struct unit unit[UNITS];
	unsigned nr;
	char *journal; /* NULL: there is none */
	size_t journal_len;
};

struct world {
	struct rig *r;
	struct unit *unit; /* of the runtime now */
	unsigned nr;
	bool synchronized, answered;
	struct unit *asked;
	enum on_adopt on_adopt;
	char set_mode[SETTING_BYTES], set_adopt[SETTING_BYTES];
	char path[256]; /* the modes so far, for messages */
	unsigned checked, starts;
};

/* The runtime */

static struct unit *unit_of(struct world *w, const char *id)
{
	for (unsigned i = 0; i < w->nr; i++)
		if (text_equal(w->unit[i].c.id, id))
			return &w->unit[i];
	return NULL;
}

static struct nri_container shown(const struct unit *u, struct key_value annotation[2])
{
	struct nri_container c = fake_container_shown(&u->c, annotation);

	c.pod_annotations = u->kind->wish;
	c.nr_pod_annotations = u->kind->wish[0].key != NULL;
	c.resources.cpu_period = 100000;
	return c;
}

static void apply_updates(struct world *w, const struct nri_update *u, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct unit *of = unit_of(w, u[i].container_id);

		if (of)
			fake_container_update(&of->c, &u[i]);
	}
}

static void on_unit_answer(void *ctx, enum nri_call what, const struct nri_answer *a)
{
	struct world *w = ctx;

	if (a->status)
		fail_msg("%s: %s", w->path, a->message);
	apply_updates(w, a->updates, a->nr_updates);
	w->synchronized = w->synchronized || what == NRI_CALL_SYNCHRONIZE;
	w->answered = true;
	if (what == NRI_CALL_CREATE && *a->cpus)
		fake_container_start(&w->asked->c, a);
	if (what == NRI_CALL_CREATE)
		w->asked->c.runs = true;
	loop_stop(w->r->loop);
}

static bool on_unasked(void *ctx, const struct nri_update *updates, size_t nr)
{
	apply_updates(ctx, updates, nr);
	return true;
}

static void synchronize(void *ctx, const char *name, const char *index, uint32_t events)
{
	struct world *w = ctx;
	struct nri_container list[UNITS];
	struct key_value annotation[UNITS][2];

	(void)name, (void)index, (void)events;
	for (unsigned i = 0; i < w->nr; i++)
		list[i] = shown(&w->unit[i], annotation[i]);
	nri_runtime_synchronize(w->r->runtime.nri, list, w->nr);
}

static void call_unit(struct world *w, enum nri_call what, struct unit *u)
{
	struct key_value annotation[2];
	const struct nri_container c = shown(u, annotation);

	w->answered = false;
	w->asked = u;
	fake_runtime_call(&w->r->runtime, what, &c);
	run_until(w->r, &w->answered);
}

/* A container of each kind. The static kubelet gives out CPUs as if it were alone. */
static void live(struct world *w, enum mode mode, unsigned depth)
{
	for (unsigned k = 0; k < KINDS; k++) {
		struct unit *u = &w->unit[w->nr];

		if (kinds[k].in_manage && mode != MODE_MANAGE)
			continue;
		assert_true(w->nr < UNITS);
		*u = (struct unit){.c = {.cpu_milli = kinds[k].cpu_milli, .created_ns = 1 + w->nr},
			.kind = &kinds[k]};
		(void)snprintf(u->c.id, sizeof u->c.id, "%s%u", kinds[k].name, depth);
		if (kinds[k].by_kubelet && mode != MODE_MANAGE) {
			(void)snprintf(u->c.cpus, sizeof u->c.cpus, "%u,%u", 1 + depth, 33 + depth);
			(void)snprintf(u->c.mems, sizeof u->c.mems, "0");
		}
		call_unit(w, NRI_CALL_CREATE, u);
		w->nr++;
		call_unit(w, NRI_CALL_POST_CREATE, u);
		call_unit(w, NRI_CALL_POST_START, u);
	}
}

/* Journals */

static void read_journal(struct world *w, struct state *s)
{
	FILE *f = fopen(w->r->daemon.journal, "re");

	s->journal = NULL;
	if (!f)
		return;
	s->journal = malloc(JOURNAL_MAX);
	s->journal_len = fread(s->journal, 1, JOURNAL_MAX, f);
	assert_true(s->journal_len < JOURNAL_MAX);
	(void)fclose(f);
}

static void put_journal(struct world *w, const struct state *s, bool lost)
{
	char command[PATH_MAX + 32];

	(void)snprintf(command, sizeof command, "rm -rf '%s'", w->r->daemon.run);
	assert_int_equal(system(command), 0);
	if (lost || !s->journal)
		return;
	assert_int_equal(mkdir(w->r->daemon.run, 0700), 0);
	FILE *f = fopen(w->r->daemon.journal, "we");
	assert_non_null(f);
	assert_int_equal(fchmod(fileno(f), 0600), 0);
	assert_int_equal(fwrite(s->journal, 1, s->journal_len, f), s->journal_len);
	assert_int_equal(fclose(f), 0);
}

/* A life in that mode, which begins with a Synchronize. */
static void start(struct world *w, enum mode mode, struct state *s, bool lost)
{
	put_journal(w, s, lost);
	w->unit = s->unit;
	w->nr = s->nr;
	w->synchronized = false;
	(void)snprintf(w->set_mode, sizeof w->set_mode, "mode=%s", mode_words[mode]);
	w->r->daemon.setting[0] = w->set_mode;
	launch(w->r, NULL);
	read_log(w->r);
	run_until(w->r, &w->synchronized);
	w->starts++;
}

/* What must hold */

static bool has_own(const struct holding *h)
{
	return h->decision.exclusive && !decision_is_left(&h->decision);
}

/* What runs is what the ledger has, and no container runs on CPUs that another one holds. */
static void runs_as_held(const struct world *w, const struct state *s, struct journal_fold *f)
{
	const struct ledger *l = engine_ledger(f->engine);
	struct err e = {0};

	if (ledger_check(l, &e) < 0)
		fail_msg("%s: %s", w->path, e.text);
	for (unsigned i = 0; i < s->nr; i++) {
		const struct fake_container *c = &s->unit[i].c;
		const struct holding *h = ledger_find(l, c->id);
		char want[CPUSET_TEXT_MAX];

		if (!h) {
			fail_msg("%s: the ledger lacks %s", w->path, c->id);
			return;
		}
		if (decision_is_left(&h->decision))
			continue;
		const struct cpuset cpus = ledger_cpus_of(l, h), on = fake_container_cpus(c);
		if (!cpuset_equal(&cpus, &on))
			fail_msg("%s: %s runs on %s, and is held to have %s", w->path, c->id,
				c->cpus, cpuset_format(&cpus, want, sizeof want));
	}
	for (unsigned i = 0; i < s->nr; i++)
		for (unsigned k = 0; k < s->nr; k++) {
			const struct holding *a = ledger_find(l, s->unit[i].c.id);
			const struct holding *b = ledger_find(l, s->unit[k].c.id);
			const struct cpuset on = fake_container_cpus(&s->unit[k].c);

			if (i != k && has_own(a) && !decision_is_left(&b->decision) &&
				cpuset_intersects(&a->decision.cpus, &on))
				fail_msg("%s: %s runs on CPUs of %s", w->path, s->unit[k].c.id,
					s->unit[i].c.id);
		}
}

static struct journal_fold fold_of(const struct world *w)
{
	struct journal_fold f;
	struct err e = {0};

	if (journal_fold(&f, w->r->daemon.journal, NULL, NULL, &e) < 0)
		fail_msg("%s: %s", w->path, e.text);
	return f;
}

static void is_same(const struct world *w, const char *id, const struct ledger *kept,
	const struct ledger *fresh)
{
	const struct holding *a = ledger_find(kept, id), *b = ledger_find(fresh, id);
	const struct cpuset x = ledger_cpus_of(kept, a), y = ledger_cpus_of(fresh, b);
	char has[CPUSET_TEXT_MAX], wants[CPUSET_TEXT_MAX];

	bool same = a->decision.exclusive == b->decision.exclusive &&
		    decision_is_left(&a->decision) == decision_is_left(&b->decision) &&
		    nodeset_equal(a->decision.mems, b->decision.mems);
	if (a->decision.exclusive)
		same = same && cpuset_equal(&a->decision.cpus, &b->decision.cpus);
	if (decision_is_left(&a->decision))
		same = same && cpuset_equal(&a->decision.left_on, &b->decision.left_on);
	if (!same)
		fail_msg("%s: %s has %s%s, a fresh start gives %s%s (%s; %s)", w->path, id,
			has_own(a) ? "for itself " : "", cpuset_format(&x, has, sizeof has),
			has_own(b) ? "for itself " : "", cpuset_format(&y, wants, sizeof wants),
			a->decision.message, b->decision.message);
}

/* What numafitd had pinned, and still ran so, was not moved. */
static void pinned_stay(
	const struct world *w, const struct state *before, const struct state *after)
{
	for (unsigned i = 0; i < before->nr; i++) {
		const struct fake_container *a = &before->unit[i].c, *b = &after->unit[i].c;
		struct node_ids ids = {.nr = 4, .id = {0, 1, 2, 3}};
		struct placement p;

		if (!*a->placement || placement_json_parse(a->placement, &ids, &p, NULL))
			continue;
		const struct cpuset on = fake_container_cpus(a);
		if (p.exclusive && cpuset_equal(&on, &p.cpus) && !text_equal(a->cpus, b->cpus))
			fail_msg("%s: %s was pinned to %s, and was moved to %s", w->path, a->id,
				a->cpus, b->cpus);
	}
}

static void is_as_a_fresh_start(
	struct world *w, const struct state *before, const struct state *now)
{
	struct state fresh = *before;
	struct journal_fold kept = fold_of(w);

	runs_as_held(w, now, &kept);
	pinned_stay(w, before, now);
	end(w->r, SIGTERM);
	start(w, MODE_MANAGE, &fresh, true);
	struct journal_fold anew = fold_of(w);
	runs_as_held(w, &fresh, &anew);
	for (unsigned i = 0; i < now->nr; i++)
		is_same(w, now->unit[i].c.id, engine_ledger(kept.engine),
			engine_ledger(anew.engine));
	journal_fold_fini(&kept);
	journal_fold_fini(&anew);
	end(w->r, SIGTERM);
	w->checked++;
}

/* Mode release takes nothing from containers that numafitd has never placed. */
static void others_keep_theirs(
	const struct world *w, const struct state *before, const struct state *after)
{
	if (strstr(w->path, mode_words[MODE_MANAGE]))
		return;
	for (unsigned i = 0; i < before->nr; i++)
		if (!text_equal(before->unit[i].c.cpus, after->unit[i].c.cpus))
			fail_msg("%s: %s had %s, and was given %s", w->path, before->unit[i].c.id,
				before->unit[i].c.cpus, after->unit[i].c.cpus);
}

static unsigned number_of(const char *variable, unsigned unless)
{
	const char *text = getenv(variable);

	return text ? (unsigned)atoi(text) : unless;
}

static void go_on(struct world *w, const struct state *stem, unsigned depth);

static void try_mode(
	struct world *w, const struct state *stem, unsigned depth, enum mode mode, bool lost)
{
	static struct state branches[DEPTH_MAX], before;
	struct state *s = &branches[depth];
	const size_t len = strlen(w->path);

	before = *stem;
	*s = *stem;
	(void)snprintf(
		w->path + len, sizeof w->path - len, " %s%s", lost ? "-" : "", mode_words[mode]);
	start(w, mode, s, lost);
	if (mode == MODE_MANAGE && depth) {
		const struct state now = *s;

		is_as_a_fresh_start(w, &before, &now);
		*s = *stem;
		start(w, mode, s, lost);
	}
	if (mode == MODE_RELEASE)
		others_keep_theirs(w, &before, s);
	live(w, mode, depth);
	if (mode == MODE_MANAGE) {
		struct journal_fold f = fold_of(w);

		s->nr = w->nr;
		runs_as_held(w, s, &f);
		journal_fold_fini(&f);
	}
	s->nr = w->nr;
	end(w->r, SIGTERM);
	read_journal(w, s);
	go_on(w, s, depth + 1);
	free(s->journal);
	w->path[len] = '\0';
}

static void go_on(struct world *w, const struct state *stem, unsigned depth)
{
	const bool lose = number_of("MODES_LOST", 0);
	const unsigned all = number_of("MODES_DEPTH", 3);

	if (depth >= all || depth >= DEPTH_MAX)
		return;
	for (enum mode mode = 0; mode <= MODE_RELEASE; mode++)
		for (int lost = 0; lost <= (lose && depth); lost++)
			if (depth + 1 < all || mode == MODE_MANAGE)
				try_mode(w, stem, depth, mode, lost);
}

static struct world *world_new(enum on_adopt on_adopt)
{
	struct world *w = calloc(1, sizeof *w);

	w->r = rig_new();
	w->on_adopt = on_adopt;
	w->r->runtime.events = (struct nri_runtime_events){
		.ctx = w, .configured = synchronize, .answered = on_unit_answer};
	w->r->runtime.on_update = on_unasked;
	(void)snprintf(w->set_adopt, sizeof w->set_adopt, "onAdopt=%s",
		on_adopt == ADOPT_LEAVE ? "leave" : "place");
	w->r->daemon.setting[1] = w->set_adopt;
	w->r->daemon.setting[2] = "podWishes.allowed=cpus,spread";
	w->r->daemon.setting[3] = "sharedPoolStep=1";
	w->r->daemon.setting[4] = "memoryManagerPolicy=Static";
	return w;
}

static void play(enum on_adopt on_adopt)
{
	struct world *w = world_new(on_adopt);
	struct state *nothing = calloc(1, sizeof *nothing);

	go_on(w, nothing, 0);
	print_message("%u states of manage checked, %u starts\n", w->checked, w->starts);
	assert_true(w->checked);
	rig_free(w->r);
	free(nothing);
	free(w);
}

static void what_runs_in_manage_is_what_a_fresh_start_gives(void **state)
{
	(void)state;
	play(ADOPT_PLACE);
}

static void likewise_where_what_runs_is_left(void **state)
{
	(void)state;
	play(ADOPT_LEAVE);
}

/* A journal without what an older numafit did not write. */
struct older {
	FILE *to;
	unsigned unsaid;
};

static int write_as_older(void *ctx, char *text, size_t len, struct err *e)
{
	static const char *const words[] = {
		"\"says_placed_by\":true,", "\"placed_by\":\"shadow\","};
	struct older *o = ctx;

	for (unsigned i = 0; i < 2; i++)
		for (char *at; (at = strstr(text, words[i])); o->unsaid++) {
			memmove(at, at + strlen(words[i]), strlen(at + strlen(words[i])) + 1);
			len -= strlen(words[i]);
		}
	return journal_write_text(o->to, text, len, e);
}

static void make_journal_older(const struct world *w)
{
	const char *journal = w->r->daemon.journal;
	char new[PATH_MAX + 64];
	struct older o = {0};

	(void)snprintf(new, sizeof new, "%s.older", journal);
	o.to = fopen(new, "we");
	assert_non_null(o.to);
	assert_true(journal_read(journal, write_as_older, &o, NULL) > 0);
	assert_int_equal(fclose(o.to), 0);
	assert_int_equal(rename(new, journal), 0);
	assert_true(o.unsaid >= KINDS); /* of all that come in shadow, and the header */
}

/* An older numafit did not say who has placed a container: not in mode shadow nor off. */
static void so_is_what_an_older_numafit_has_entered(void **state)
{
	static const enum mode modes[] = {MODE_SHADOW, MODE_OFF};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct world *w = world_new(ADOPT_PLACE);
		struct state *s = calloc(1, sizeof *s), *before = calloc(1, sizeof *before);

		(void)snprintf(w->path, sizeof w->path, "older %s", mode_words[modes[i]]);
		start(w, modes[i], s, true);
		live(w, modes[i], 0);
		s->nr = w->nr;
		end(w->r, SIGTERM);
		make_journal_older(w);
		read_journal(w, s);
		*before = *s;
		start(w, MODE_MANAGE, s, false);
		await_log(w->r, "event=journal-folded");
		is_as_a_fresh_start(w, before, s);
		rig_free(w->r);
		free(s->journal);
		free(s);
		free(before);
		free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_runs_in_manage_is_what_a_fresh_start_gives),
		cmocka_unit_test(likewise_where_what_runs_is_left),
		cmocka_unit_test(so_is_what_an_older_numafit_has_entered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
