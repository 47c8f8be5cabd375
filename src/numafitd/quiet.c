/* Interrupts and frequencies of CPUs whose containers wish for quiet: round after round all that is
 * to be changed, or to come back, is looked at. */
#include "quiet.h"
#include "daemon.h"

#include <host/cpufreq.h>
#include <host/irq.h>
#include <io/file.h>
#include <io/log.h>
#include <numafit/quiet.h>
#include <numafit/text.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* A round begins so long after the first event that makes it due; then it works step by step, and
 * between steps the loop serves whoever waits. */
enum { GATHER_MS = 20, TURN_NS = 1000 * 1000, PAUSE_MS = 1, AGAIN_MS = 1000 };

enum step {
	LOOK_FOR_BALANCER,
	LOOK_AT_DEFAULT,
	LOOK_AT_INTERRUPTS,
	LOOK_AT_GONE,
	LOOK_AT_CPUS,
	ROUND_ENDS
};

/* What one round finds. */
struct quiet_figures {
	unsigned moved, unmovable; /* interrupts */
	unsigned moved_back;       /* by another program, since the round before */
	unsigned clock_shared;     /* CPUs whose clock is left as others have it */
	struct err problem;        /* the first one; code 0: none */
};

struct quiet {
	const char *root;
	struct tunables tunables;
	struct err irqs_why, cpus_why; /* why they cannot be written; code 0: they can */
	struct loop_timer *turn;
	bool turns, again; /* a round is under way, and another one is due after it */
	enum step step;
	DIR *folder;            /* that the step reads */
	char *at;               /* what it looked at last; NULL: nothing yet */
	unsigned cpu;           /* the next one */
	struct quiet_plan plan; /* of this round, or the last one; its profiles: */
	struct frequency_profiles profiles;
	struct cpuset irq_before; /* plan.irq of the round before */
	bool irq_changed;         /* since then, or nobody knows */
	struct kept_list wrote;   /* affinities that we wrote in this life: `was` is what */
	bool looked_for_balancer, has_balancer;
	struct quiet_figures now, last;
	uint64_t rewritten;
	size_t at_release; /* files that are to be given back */
	bool said_rewritten, said_why;
};

static const struct kept_list *kept(const struct daemon *d)
{
	return &ledger_view(engine_ledger(d->engine))->kept[KEPT_QUIET];
}

static bool is_at_work(const struct daemon *d)
{
	const struct quiet *q = d->follow.quiet;

	return kept(d)->nr || !cpuset_empty(&q->plan.irq) || !cpuset_empty(&q->plan.frequency);
}

static void note_problem(struct quiet *q, const struct err *e)
{
	if (!q->now.problem.code)
		q->now.problem = *e;
}

static int keep(struct daemon *d, const char *file, const char *was, struct err *e)
{
	const struct kept *k = kept_find(kept(d), file);
	const struct kept_note note = {NULL, was};

	if (k ? text_equal(k->was, was) : !*was)
		return 0;
	return engine_note_kept(d->engine, loop_wall_ms(), KEPT_QUIET, file, &note, e);
}

static void note_written(struct quiet *q, const char *file, const char *text)
{
	if (*text || kept_find(&q->wrote, file))
		kept_note(&q->wrote, file, &(const struct kept_note){NULL, text});
}

static void forget(struct daemon *d, const char *file)
{
	note_written(d->follow.quiet, file, "");
	(void)keep(d, file, "", NULL); /* what cannot be recorded is given back once more */
}

/* Interrupts */

/* One interrupt as this round has it. */
struct look {
	const char *file;
	char text[IRQ_TEXT_MAX]; /* as found */
	struct cpuset found, was, want;
	bool kept;
	bool changed; /* it is not what we wrote */
};

/* What we wrote in this life; false: nothing. */
static bool find_written(const struct quiet *q, const char *file, struct cpuset *out)
{
	const struct kept *k = kept_find(&q->wrote, file);

	return k && !irq_parse(file, k->was, out, NULL);
}

static int read_interrupt(const struct daemon *d, struct look *k, struct err *e)
{
	const struct quiet *q = d->follow.quiet;
	const struct cpuset *online = &d->topo.cpus;
	const struct kept *old = kept_find(kept(d), k->file);
	struct cpuset was, wrote;
	int rc = tunable_read(&q->tunables, k->file, k->text, sizeof k->text, e);

	if (!rc)
		rc = irq_parse(k->file, k->text, &k->found, e);
	if (rc)
		return rc;
	k->was = k->found;
	k->kept = old;
	k->changed = find_written(q, k->file, &wrote) && !cpuset_equal(&k->found, &wrote);
	/* What another program has set since we did is what comes back; but for what is within the
	 * old affinity, which may be a balancer's narrower choice. What was set while we were away
	 * looks the same as what we had set. */
	if (old && !irq_parse(k->file, old->was, &was, NULL) &&
		(!k->changed || cpuset_within(&k->found, &was)))
		k->was = was;
	k->want = quiet_affinity(&k->was, &q->plan.irq, online);
	return 0;
}

/* A write of what is there changes nothing, and fails for an interrupt that the kernel manages, or
 * that is one CPU's. */
static bool can_move(const struct quiet *q, const struct look *k)
{
	return k->kept || tunable_write(&q->tunables, k->file, k->text, NULL) == 0;
}

static int move(struct daemon *d, const struct look *k, struct err *e)
{
	char was[IRQ_TEXT_MAX], want[IRQ_TEXT_MAX];
	bool back = cpuset_equal(&k->want, &k->was);
	int rc = back ? 0 : keep(d, k->file, irq_format(k->file, &k->was, was), e);

	if (!rc)
		rc = tunable_write(&d->follow.quiet->tunables, k->file,
			irq_format(k->file, &k->want, want), e);
	if (rc)
		return rc;
	if (back)
		forget(d, k->file);
	else
		note_written(d->follow.quiet, k->file, want);
	return 0;
}

static void count(struct quiet *q, const struct look *k, bool kept_off)
{
	if (text_equal(k->file, IRQ_DEFAULT)) /* it is none itself */
		return;
	q->now.moved += kept_off;
	q->now.unmovable += !kept_off;
}

static void look_at_interrupt(struct daemon *d, const char *file)
{
	struct quiet *q = d->follow.quiet;
	struct look k = {.file = file};
	struct err e;
	int rc = read_interrupt(d, &k, &e);
	const bool hit = !rc && cpuset_intersects(&k.found, &q->plan.irq);
	const bool ends = cpuset_equal(&k.want, &k.was);

	if (rc && file_is_gone(rc))
		forget(d, file);
	else if (rc)
		note_problem(q, &e);
	if (rc)
		return;
	q->now.moved_back += hit && k.kept && k.changed;
	if (cpuset_equal(&k.want, &k.found)) {
		if (k.kept && ends)
			forget(d, file);
		if (hit || (k.kept && !ends))
			count(q, &k, !hit);
	} else if (!hit && !(k.kept && (q->irq_changed || ends))) {
		if (k.kept) /* a narrower choice, which does as well */
			count(q, &k, true);
	} else if (!can_move(q, &k)) {
		count(q, &k, false);
	} else {
		rc = move(d, &k, &e);
		if (rc)
			note_problem(q, &e);
		if (!ends)
			count(q, &k, !rc);
	}
}

/* The next name in the folder; NULL: there is none any more, and it is closed. */
static const char *next_name(struct quiet *q, const char *path)
{
	DIR *folder = q->folder ? q->folder : opendir(path);
	const struct dirent *entry = folder ? readdir(folder) : NULL;

	if (folder && !entry) {
		(void)closedir(folder);
		folder = NULL;
	}
	q->folder = folder;
	return entry ? entry->d_name : NULL;
}

/* Whether there is something to do, or to undo, where nothing can be written. */
static void note_why_not(
	struct daemon *d, const char *folder, const struct cpuset *wished, const struct err *why)
{
	const struct kept *k = kept_after(kept(d), folder);

	if (!cpuset_empty(wished) || (k && text_behind(k->key, folder)))
		note_problem(d->follow.quiet, why);
}

/* It moves interrupts by itself, and does not know of our containers. */
static enum step look_for_balancer(struct daemon *d)
{
	struct quiet *q = d->follow.quiet;
	char path[PATH_MAX], name[sizeof "irqbalance\n"] = "";

	if (q->looked_for_balancer || cpuset_empty(&q->plan.irq))
		return LOOK_AT_DEFAULT;
	(void)snprintf(path, sizeof path, "%s/proc", q->root);
	const char *pid = next_name(q, path);
	if (!pid) {
		q->looked_for_balancer = true;
		return LOOK_AT_DEFAULT;
	}
	(void)snprintf(path, sizeof path, "%s/proc/%s/comm", q->root, pid);
	if (*pid < '0' || *pid > '9' || file_read_into(path, name, sizeof name, NULL) < 0 ||
		!text_equal(name, "irqbalance\n"))
		return LOOK_FOR_BALANCER;
	q->has_balancer = true;
	log_line(LOG_WARN, "irqbalance-runs",
		"pid=%s text=\"it moves interrupts, too, and to CPUs of containers that wish for "
		"none\" action=\"stop it, or have it leave CPUs alone that containers are given "
		"(IRQBALANCE_BANNED_CPULIST)\"",
		pid);
	return LOOK_FOR_BALANCER;
}

static enum step look_at_default(struct daemon *d)
{
	struct quiet *q = d->follow.quiet;

	if (q->irqs_why.code) {
		note_why_not(d, TUNABLE_IRQS "/", &q->plan.irq, &q->irqs_why);
		return LOOK_AT_CPUS;
	}
	look_at_interrupt(d, IRQ_DEFAULT);
	return LOOK_AT_INTERRUPTS;
}

static enum step look_at_interrupts(struct daemon *d)
{
	struct quiet *q = d->follow.quiet;
	const char *name;
	char file[TUNABLE_FILE_MAX];
	struct err e;

	errno = 0;
	name = next_name(q, q->tunables.irqs);
	if (!name && errno) {
		(void)err_set(&e, errno, "%s: %s", q->tunables.irqs, strerror(errno));
		note_problem(q, &e);
	}
	if (!name)
		return LOOK_AT_GONE;
	if (irq_file(name, file))
		look_at_interrupt(d, file);
	return LOOK_AT_INTERRUPTS;
}

/* Interrupts whose devices are gone, one after another. */
static enum step look_at_gone(struct daemon *d)
{
	struct quiet *q = d->follow.quiet;
	const struct kept *k = kept_after(kept(d), q->at ? q->at : TUNABLE_IRQS "/");
	char text[IRQ_TEXT_MAX];

	free(q->at);
	q->at = k && text_behind(k->key, TUNABLE_IRQS "/") ? xstrdup(k->key) : NULL;
	if (!q->at)
		return LOOK_AT_CPUS;
	if (file_is_gone(tunable_read(&q->tunables, q->at, text, sizeof text, NULL)))
		forget(d, q->at);
	return LOOK_AT_GONE;
}

/* CPUs */

/* Whether all CPUs that share that one's clock are to have the same profile. */
static bool has_own_clock(const struct quiet *q, unsigned cpu)
{
	struct cpuset together;

	if (cpufreq_together(&q->tunables, cpu, &together, NULL))
		return false; /* nobody knows */
	cpuset_each (other, &together)
		if (!cpuset_has(&q->plan.frequency, other) ||
			q->plan.profile[other] != q->plan.profile[cpu])
			return false;
	return true;
}

/* What is to be written, and whether that ends it: what was there comes back. */
struct cpu_write {
	struct cpu_value *value;
	bool back, done;
};

/* What of the CPU's values is otherwise than it is to be, recorded before any is changed: one may
 * change another. Returns their number. */
static unsigned plan_writes(struct daemon *d, bool online, struct cpu_value *values, unsigned nr,
	struct cpu_write writes[CPU_VALUES_MAX])
{
	struct quiet *q = d->follow.quiet;
	unsigned nr_writes = 0;

	for (unsigned i = 0; i < nr; i++) {
		struct cpu_value *v = &values[i];
		const struct kept *k = kept_find(kept(d), v->file);
		const bool back = k && !*v->want;
		char found[PROFILE_WORD_MAX];
		struct err e;

		if (back)
			(void)text_copy(v->want, sizeof v->want, k->was);
		if (!*v->want)
			continue;
		int rc = tunable_read(&q->tunables, v->file, found, sizeof found, &e);
		if (!rc && !text_equal(found, v->want)) {
			rc = k ? 0 : keep(d, v->file, found, &e);
			writes[nr_writes] = (struct cpu_write){v, back, false};
			nr_writes += !rc;
		} else if (!rc && back) {
			forget(d, v->file);
		}
		if (file_is_gone(rc) && back && online) /* with its driver, as it seems */
			forget(d, v->file);
		else if (rc && online)
			note_problem(q, &e);
	}
	return nr_writes;
}

/* Twice: a lowest frequency above the old highest one may only be set after the new one. */
static void write_values(struct daemon *d, bool online, struct cpu_write *writes, unsigned nr)
{
	enum { TRIES = 2 };
	struct err e;

	for (unsigned try = 1; try <= TRIES; try++)
		for (unsigned i = 0; i < nr; i++) {
			struct cpu_write *w = &writes[i];

			if (w->done)
				continue;
			w->done = !tunable_write(
				&d->follow.quiet->tunables, w->value->file, w->value->want, &e);
			if (w->done && w->back)
				forget(d, w->value->file);
			if (!w->done && try == TRIES && online)
				note_problem(d->follow.quiet, &e);
		}
}

/* An offline CPU has no profile: what it had comes back as far as the kernel takes it, which it
 * does where another CPU has the same clock, and else when it is online again. */
static void look_at_cpu(struct daemon *d, unsigned cpu)
{
	struct quiet *q = d->follow.quiet;
	const bool online = cpuset_has(&d->topo.cpus, cpu);
	const struct frequency_profile *p = online && cpuset_has(&q->plan.frequency, cpu)
						    ? &q->profiles.at[q->plan.profile[cpu]]
						    : NULL;
	struct cpu_value values[CPU_VALUES_MAX];
	struct cpu_write writes[CPU_VALUES_MAX];
	const unsigned nr = cpufreq_values(&q->tunables, cpu, p, values);
	const bool shared = p && !has_own_clock(q, cpu);

	for (unsigned i = 0; i < nr && shared; i++)
		if (values[i].of_clock)
			*values[i].want = '\0';
	q->now.clock_shared += shared;
	write_values(d, online, writes, plan_writes(d, online, values, nr, writes));
}

static bool concerns(const struct daemon *d, unsigned cpu)
{
	char folder[TUNABLE_FILE_MAX];

	cpufreq_folder(cpu, folder);
	const struct kept *k = kept_after(kept(d), folder);
	return cpuset_has(&d->follow.quiet->plan.frequency, cpu) ||
	       (k && text_behind(k->key, folder));
}

static enum step look_at_cpus(struct daemon *d)
{
	struct quiet *q = d->follow.quiet;

	if (q->cpus_why.code) {
		note_why_not(d, TUNABLE_CPUS "/", &q->plan.frequency, &q->cpus_why);
		return ROUND_ENDS;
	}
	while (q->cpu < CPUSET_BITS && !concerns(d, q->cpu))
		q->cpu++;
	if (q->cpu == CPUSET_BITS)
		return ROUND_ENDS;
	look_at_cpu(d, q->cpu++);
	return LOOK_AT_CPUS;
}

/* Rounds */

static enum step (*const steps[ROUND_ENDS])(struct daemon *d) = {
	[LOOK_FOR_BALANCER] = look_for_balancer,
	[LOOK_AT_DEFAULT] = look_at_default,
	[LOOK_AT_INTERRUPTS] = look_at_interrupts,
	[LOOK_AT_GONE] = look_at_gone,
	[LOOK_AT_CPUS] = look_at_cpus,
};

static void close_all(struct quiet *q)
{
	if (q->folder)
		(void)closedir(q->folder);
	q->folder = NULL;
	free(q->at);
	q->at = NULL;
}

static void begin_round(struct daemon *d, const struct quiet_plan *plan)
{
	struct quiet *q = d->follow.quiet;

	close_all(q);
	q->irq_changed = q->irq_changed || !cpuset_equal(&q->plan.irq, &plan->irq);
	q->plan = *plan;
	q->profiles = d->settings.profiles;
	if (q->irq_changed)
		q->looked_for_balancer = q->has_balancer = false;
	q->now = (struct quiet_figures){0};
	q->step = LOOK_FOR_BALANCER;
	q->cpu = 0;
	q->turns = true;
}

static void log_round(const struct quiet *q)
{
	char cpus[CPUSET_TEXT_MAX], why[2 * sizeof q->now.problem.text];

	if (!cpuset_equal(&q->plan.irq, &q->irq_before) && !q->irqs_why.code)
		log_line(LOG_INFO, "interrupts-moved", "quiet=\"%s\" moved=%u unmovable=%u",
			cpuset_format(&q->plan.irq, cpus, sizeof cpus), q->now.moved,
			q->now.unmovable);
	if (q->now.moved_back && !q->said_rewritten)
		log_line(LOG_WARN, "interrupts-moved-back",
			"interrupts=%u quiet=\"%s\" text=\"another program, such as irqbalance, had "
			"moved them to quiet CPUs; they are kept off again\" action=\"have it leave "
			"CPUs alone that containers are given (IRQBALANCE_BANNED_CPULIST)\"",
			q->now.moved_back, cpuset_format(&q->plan.irq, cpus, sizeof cpus));
	if (q->now.problem.code && !q->last.problem.code)
		log_line(LOG_ERROR, "quiet-not-in-force",
			"error=%s text=\"an interrupt or a frequency could not be set, or given back; it "
			"is tried again\" action=\"for a file of a CPU, compare frequencyProfiles with "
			"what /sys/devices/system/cpu/cpu*/cpufreq offers\"",
			log_text(why, sizeof why, q->now.problem.text));
	if (!q->now.problem.code && q->last.problem.code)
		log_line(LOG_INFO, "quiet-in-force-again", "cpus=\"%s\"",
			cpuset_format(&q->plan.frequency, cpus, sizeof cpus));
}

/* Mode release: whether all has come back. */
static void log_release(struct daemon *d)
{
	struct quiet *q = d->follow.quiet;

	if (kept(d)->nr)
		log_line(LOG_ERROR, "quiet-not-given-back",
			"files=%zu text=\"interrupts and frequencies that were changed are not yet as "
			"before; it is tried again\" action=\"do not remove numafitd, nor its journal, "
			"before event=quiet-given-back\"",
			kept(d)->nr);
	else if (q->at_release)
		log_line(LOG_INFO, "quiet-given-back", "files=%zu", q->at_release);
	if (kept(d)->nr)
		loop_timer_set(q->turn, AGAIN_MS);
}

static void end_round(struct daemon *d)
{
	struct quiet *q = d->follow.quiet;

	log_round(q);
	q->said_rewritten = q->said_rewritten || q->now.moved_back;
	q->irq_before = q->plan.irq;
	q->irq_changed = false;
	q->rewritten += q->now.moved_back;
	q->last = q->now;
	q->turns = false;
	if (d->settings.mode == MODE_RELEASE)
		log_release(d);
	else if (q->again)
		loop_timer_set(q->turn, GATHER_MS);
}

static void quiet_turn(void *ctx)
{
	struct daemon *d = ctx;
	struct quiet *q = d->follow.quiet;
	const uint64_t until = loop_monotonic_ns() + TURN_NS;

	if (!q->turns) {
		struct quiet_plan plan = {0};

		q->again = false;
		if (d->settings.mode == MODE_MANAGE)
			quiet_plan_make(engine_ledger(d->engine), &d->settings, &plan);
		begin_round(d, &plan);
		if (!is_at_work(d))
			q->step = ROUND_ENDS;
	}
	while (q->step != ROUND_ENDS && loop_monotonic_ns() < until &&
		nri_conn_is_idle(d->runtime.conn))
		q->step = steps[q->step](d);
	if (q->step != ROUND_ENDS)
		loop_timer_set(q->turn, PAUSE_MS);
	else
		end_round(d);
}

static bool may_be_wished(const struct settings *s)
{
	bool may = s->wishes_allowed & WISHES_QUIET;

	for (unsigned i = 0; i < s->namespaces.nr; i++)
		may = may || s->namespaces.at[i].allowed & WISHES_QUIET ||
		      *s->namespaces.at[i].wishes.quiet;
	return may;
}

static void log_why_not(const char *what, const struct err *e)
{
	char why[2 * sizeof e->text];

	if (e->code)
		log_line(LOG_WARN, "quiet-not-in-force",
			"of=%s error=%s text=\"pods may wish for it and do not get it, and what was changed before "
			"does not come back\" action=\"let numafitd write there "
			"(deploy/components/quiet), or take quiet out of podWishes.allowed\"",
			what, log_text(why, sizeof why, e->text));
}

/* Once, when it begins to matter. */
static void say_why_not(struct daemon *d)
{
	struct quiet *q = d->follow.quiet;

	if (q->said_why || !(may_be_wished(&d->settings) || kept(d)->nr))
		return;
	log_why_not("interrupts", &q->irqs_why);
	log_why_not("frequencies", &q->cpus_why);
	q->said_why = true;
}

void quiet_note_all(struct daemon *d)
{
	struct quiet *q = d->follow.quiet;

	if (!q || d->settings.mode != MODE_MANAGE)
		return;
	say_why_not(d);
	if (!q->turns && !q->again)
		loop_timer_set(q->turn, GATHER_MS);
	q->again = true;
}

void quiet_look_again(struct daemon *d)
{
	if (d->follow.quiet && is_at_work(d))
		quiet_note_all(d);
}

void quiet_note_record(struct daemon *d, const struct record *r)
{
	if (!d->follow.quiet || r->quiet || r->quota)
		return;
	if (is_at_work(d) || (r->request && *r->request->ask.wishes.quiet))
		quiet_note_all(d);
}

/* Start and status */

void quiet_start(struct daemon *d, const char *root)
{
	if ((d->settings.mode != MODE_MANAGE && d->settings.mode != MODE_RELEASE) ||
		!d->topo.this_machine)
		return;
	struct quiet *q = xcalloc(1, sizeof *q);

	d->follow.quiet = q;
	q->root = text_equal(root, "/") ? "" : root;
	tunables_find(root, &q->tunables, &q->irqs_why, &q->cpus_why);
	q->turn = loop_timer_new(d->loop, quiet_turn, d);
	q->irq_changed = true; /* another life may have left anything */
	q->at_release = kept(d)->nr;
	say_why_not(d);
	loop_timer_set(q->turn, GATHER_MS);
}

void quiet_stop(struct daemon *d)
{
	struct quiet *q = d->follow.quiet;

	if (!q)
		return;
	loop_timer_close(q->turn);
	close_all(q);
	kept_fini(&q->wrote);
	free(q);
	d->follow.quiet = NULL;
}

bool quiet_status(const struct daemon *d, struct status_quiet *out)
{
	const struct quiet *q = d->follow.quiet;

	if (!q || (!is_at_work(d) && !may_be_wished(&d->settings)))
		return false;
	*out = (struct status_quiet){
		.irq_cpus = q->plan.irq,
		.frequency_cpus = q->plan.frequency,
		.moved = q->last.moved,
		.unmovable = q->last.unmovable,
		.clock_shared = q->last.clock_shared,
		.rewritten = q->rewritten,
		.irqbalance = q->has_balancer,
		.interrupts_not = q->irqs_why.code ? q->irqs_why.text : NULL,
		.frequencies_not = q->cpus_why.code ? q->cpus_why.text : NULL,
		.problem = q->last.problem.code ? q->last.problem.text : NULL,
	};
	return true;
}
