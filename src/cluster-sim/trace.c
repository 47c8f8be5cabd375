#include <cluster-sim/trace.h>

#include <errno.h>
#include <numafit/number.h>
#include <numafit/quantity.h>
#include <numafit/text.h>
#include <stdio.h>

#define GI (UINT64_C(1) << 30)
#define MI (UINT64_C(1) << 20)

uint64_t pod_memory_page(enum pod_memory m)
{
	static const uint64_t page[NR_POD_MEMORIES] = {0, 2 * MI, GI};

	return page[m];
}

void cluster_trace_fini(struct cluster_trace *t)
{
	vec_fini(&t->shapes);
	vec_fini(&t->pods);
}

static bool shapes_are_alike(const struct pod_shape *a, const struct pod_shape *b)
{
	return strcmp(a->family, b->family) == 0 && a->qos == b->qos &&
	       a->nr_containers == b->nr_containers && a->cpu_milli == b->cpu_milli &&
	       memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* Its number, or SHAPES_MAX: there are too many. */
static unsigned enter_shape(struct cluster_trace *t, const struct pod_shape *s)
{
	unsigned i = 0;

	while (i < t->shapes.nr && !shapes_are_alike(&t->shapes.at[i], s))
		i++;
	if (i == t->shapes.nr && i < SHAPES_MAX)
		*vec_push(&t->shapes) = *s;
	return i;
}

static int by_arrival(const void *a, const void *b)
{
	const struct trace_pod *x = a, *y = b;

	if (x->at_ms != y->at_ms)
		return x->at_ms < y->at_ms ? -1 : 1;
	if (x->life_ms != y->life_ms)
		return x->life_ms < y->life_ms ? -1 : 1;
	return (x->shape > y->shape) - (x->shape < y->shape);
}

static void sort_by_arrival(struct cluster_trace *t)
{
	if (t->pods.nr)
		qsort(t->pods.at, t->pods.nr, sizeof *t->pods.at, by_arrival);
}

/* Made up. */

enum { CHOICES = 5 };
struct family {
	const char *name;
	unsigned share; /* of a hundred pods */
	enum qos qos;
	unsigned containers_max;     /* 1 to so many */
	unsigned cpu_milli[CHOICES]; /* ascending */
	unsigned memory_mi_per_cpu;
	unsigned huge_half_gi_max, huge_gi_max; /* of a container, in units of that size */
	double life_hours;                      /* their mean, before the stretching */
	double by_day;   /* how much fewer come in the dead of night: 0 to 1 */
	bool in_batches; /* many at once, every ten minutes */
};
static const struct family families[] = {
	{"web", 25, QOS_BURSTABLE, 2, {250, 500, 1000, 2000, 2000}, 2048, 0, 0, 4, 0.9, false},
	{"telco", 15, QOS_GUARANTEED, 2, {2000, 2000, 4000, 4000, 8000}, 1024, 0, 1, 12, 0.2,
		false},
	{"db", 15, QOS_GUARANTEED, 1, {2000, 4000, 4000, 6000, 8000}, 6144, 2, 0, 12, 0.1, false},
	{"ai", 15, QOS_GUARANTEED, 1, {8000, 12000, 24000, 32000, 48000}, 3072, 0, 0, 6, 0.5,
		false},
	{"hpc", 30, QOS_GUARANTEED, 1, {4000, 8000, 12000, 16000, 32000}, 2048, 0, 0, 4, 0.3, true},
};
enum { NR_FAMILIES = sizeof families / sizeof *families, PERCENT = 100, PEAK_HOUR = 14 };
enum { BATCH_MS = 600 * MS_PER_S, FIRST_HOUR_MS = MS_PER_HOUR };

enum { HALF_BITS = 32, MANTISSA_BITS = 53 };

/* xorshift64* (Vigna 2016). */
struct dice {
	uint64_t x;
};

static uint64_t dice_roll(struct dice *d)
{
	d->x ^= d->x >> 12;
	d->x ^= d->x << 25;
	d->x ^= d->x >> 27;
	return d->x * UINT64_C(0x2545F4914F6CDD1D);
}

static unsigned dice_below(struct dice *d, unsigned n)
{
	return (unsigned)((dice_roll(d) >> HALF_BITS) * n >> HALF_BITS);
}

static double dice_fraction(struct dice *d)
{
	return (double)(dice_roll(d) >> (2 * HALF_BITS - MANTISSA_BITS)) /
	       (double)(UINT64_C(1) << MANTISSA_BITS);
}

static const struct family *draw_family(struct dice *d)
{
	const struct family *f = families;
	unsigned at = dice_below(d, PERCENT);

	while (at >= f->share)
		at -= f++->share;
	return f;
}

static struct pod_shape draw_shape(struct dice *d, const struct family *f, unsigned cpu_milli_max)
{
	struct pod_shape s = {.qos = f->qos};
	unsigned nr = 1;

	(void)text_copy(s.family, sizeof s.family, f->name);
	s.nr_containers = 1 + dice_below(d, f->containers_max);
	while (nr < CHOICES && f->cpu_milli[nr] <= cpu_milli_max)
		nr++;
	s.cpu_milli = f->cpu_milli[dice_below(d, nr)];
	s.bytes[POD_MEMORY] = s.cpu_milli * f->memory_mi_per_cpu / MS_PER_S * MI;
	s.bytes[POD_HUGE_2MI] = dice_below(d, f->huge_half_gi_max + 1) * (GI / 2);
	s.bytes[POD_HUGE_1GI] = dice_below(d, f->huge_gi_max + 1) * GI;
	return s;
}

/* A time of the day: likeliest at the peak hour. */
static int64_t draw_time(struct dice *d, const struct family *f)
{
	for (;;) {
		double at = dice_fraction(d) * DAY_HOURS;
		double off = (at < PEAK_HOUR ? PEAK_HOUR - at : at - PEAK_HOUR) / PEAK_HOUR;

		if (dice_fraction(d) < 1 - f->by_day * off)
			return (int64_t)(at * MS_PER_HOUR);
	}
}

struct draft {
	const struct family *family;
	double cpus, life_ms;
	unsigned shape;
};

/* A pod that lives L is there, at any moment of a day of D to which it comes within [-L, D), with
 * the likelihood L / (D + L). */
static double cpus_in_use(const struct draft *list, size_t nr, double stretch)
{
	double all = 0;

	for (size_t i = 0; i < nr; i++) {
		double life = list[i].life_ms * stretch;

		all += list[i].cpus * life / ((double)DAY_MS + life);
	}
	return all;
}

static double stretch_for(const struct draft *list, size_t nr, double cpus)
{
	enum { HALVINGS = 40, STRETCH_MAX = 64 };
	double low = 0, high = STRETCH_MAX;

	for (unsigned i = 0; i < HALVINGS; i++) {
		double mid = (low + high) / 2;

		if (cpus_in_use(list, nr, mid) < cpus)
			low = mid;
		else
			high = mid;
	}
	return high;
}

/* When it comes: what came before midnight and still runs counts from midnight on. */
static struct trace_pod settle_arrival(struct dice *d, const struct draft *draft, double stretch)
{
	double life = draft->life_ms * stretch;
	double since = dice_fraction(d) * ((double)DAY_MS + life) - life;
	struct trace_pod p = {.shape = draft->shape};

	if (since < 0) {
		p.at_ms = (int64_t)(dice_fraction(d) * FIRST_HOUR_MS);
		p.life_ms = (int64_t)(life + since) + MS_PER_S;
		return p;
	}
	p.at_ms = draw_time(d, draft->family);
	if (draft->family->in_batches)
		p.at_ms -= p.at_ms % BATCH_MS;
	p.life_ms = (int64_t)life + MS_PER_S;
	return p;
}

void cluster_trace_make(struct cluster_trace *t, const struct trace_plan *plan)
{
	struct dice d = {plan->seed * UINT64_C(0x9E3779B97F4A7C15) | 1};
	auto_free struct draft *list = xcalloc(plan->nr_pods, sizeof *list);

	*t = (struct cluster_trace){0};
	for (unsigned i = 0; i < plan->nr_pods; i++) {
		const struct family *f = draw_family(&d);
		struct pod_shape s = draw_shape(&d, f, plan->cpu_milli_max);

		list[i] = (struct draft){
			.family = f,
			.cpus = (double)s.cpu_milli * s.nr_containers / MS_PER_S,
			.life_ms = (dice_fraction(&d) + dice_fraction(&d)) * f->life_hours *
				   MS_PER_HOUR,
			.shape = enter_shape(t, &s),
		};
	}
	double stretch = stretch_for(list, plan->nr_pods, plan->cpus);
	for (unsigned i = 0; i < plan->nr_pods; i++)
		*vec_push(&t->pods) = settle_arrival(&d, &list[i], stretch);
	sort_by_arrival(t);
}

/* Read. */

enum { WORD_MAX = 64, LINE_WORDS_MIN = 7, LINE_WORDS_MAX = 9, PODS_MAX = 10000000 };
enum { CPU_MILLI_MAX = 1 << 30 };
#define BYTES_MAX (INT64_C(1) << 50)

struct line {
	char word[LINE_WORDS_MAX][WORD_MAX];
	unsigned nr;
};

static int split_words(struct line *l, const char *s, size_t len, struct err *e)
{
	const char *end = s + len;

	for (l->nr = 0;; l->nr++) {
		while (s < end && (*s == ' ' || *s == '\t' || *s == '\r'))
			s++;
		if (s == end || *s == '#')
			return 0;
		const char *from = s;
		while (s < end && *s != ' ' && *s != '\t' && *s != '\r' && *s != '#')
			s++;
		if (l->nr == LINE_WORDS_MAX)
			return err_set(e, EINVAL, "more than %d words", LINE_WORDS_MAX);
		size_t size = (size_t)(s - from);
		if (size >= WORD_MAX || memchr(from, '\0', size))
			return err_set(e, EINVAL, "word %u is no word", l->nr + 1);
		memcpy(l->word[l->nr], from, size);
		l->word[l->nr][size] = '\0';
	}
}

static int read_trace_seconds(const char *word, const char *what, int64_t *ms, struct err *e)
{
	enum { LIFE_MAX_S = 365 * DAY_HOURS * 3600 };
	uint64_t seconds;
	int rc = text_u64(word, strlen(word), LIFE_MAX_S, &seconds, e);

	if (!rc)
		*ms = (int64_t)seconds * MS_PER_S;
	return rc ? err_add(e, rc, "%s", what) : 0;
}

/* CPUs, and of each kind of memory as much as there are words for. */
static int read_shape_amounts(
	struct pod_shape *s, char (*word)[WORD_MAX], unsigned nr, struct err *e)
{
	static const char *const names[] = {"memory", "hugepages-2Mi", "hugepages-1Gi"};
	uint64_t amount;
	int rc = quantity_parse_count(word[0], QUANTITY_MILLI, &amount, e);

	if (!rc && amount > CPU_MILLI_MAX)
		rc = err_set(e, ERANGE, "\"%s\" is more than any machine has", word[0]);
	if (rc)
		return err_add(e, rc, "cpu");
	s->cpu_milli = amount;
	for (unsigned m = 0; m + 1 < nr; m++) {
		rc = quantity_parse_count(word[1 + m], QUANTITY_WHOLE, &amount, e);
		if (!rc && amount > BYTES_MAX)
			rc = err_set(e, ERANGE, "\"%s\" is more than any machine has", word[1 + m]);
		if (rc)
			return err_add(e, rc, "%s", names[m]);
		s->bytes[m] = amount;
	}
	return 0;
}

static int read_shape(struct pod_shape *s, struct line *l, struct err *e)
{
	enum { FAMILY = 2, QOS, CONTAINERS, CPU };
	int qos = text_index(qos_words, NR_QOS, l->word[QOS]);
	uint64_t nr = 0;

	*s = (struct pod_shape){.qos = (enum qos)qos};
	if (!text_copy(s->family, sizeof s->family, l->word[FAMILY]))
		return err_set(e, EINVAL, "family: \"%s\" is longer than %d", l->word[FAMILY],
			FAMILY_NAME_MAX - 1);
	if (qos != QOS_GUARANTEED && qos != QOS_BURSTABLE)
		return err_set(e, EINVAL, "QoS class: \"%s\" is neither Guaranteed nor Burstable",
			l->word[QOS]);
	int rc = text_u64(
		l->word[CONTAINERS], strlen(l->word[CONTAINERS]), SHAPE_CONTAINERS_MAX, &nr, e);
	if (rc || !nr)
		return rc ? err_add(e, rc, "containers")
			  : err_set(e, EINVAL, "containers: there is one at least");
	s->nr_containers = (unsigned)nr;
	return read_shape_amounts(s, l->word + CPU, l->nr - CPU, e);
}

static int read_trace_line(struct cluster_trace *t, const char *s, size_t len, struct err *e)
{
	struct trace_pod p;
	struct pod_shape shape;
	struct line l;
	int rc = split_words(&l, s, len, e);

	if (rc || !l.nr)
		return rc;
	if (l.nr < LINE_WORDS_MIN)
		return err_set(
			e, EINVAL, "%u words, at least %d are expected", l.nr, LINE_WORDS_MIN);
	rc = read_trace_seconds(l.word[0], "arrival", &p.at_ms, e);
	if (!rc)
		rc = read_trace_seconds(l.word[1], "lifetime", &p.life_ms, e);
	if (!rc)
		rc = read_shape(&shape, &l, e);
	if (rc)
		return rc;
	if (p.at_ms >= DAY_MS)
		return err_set(e, ERANGE, "arrival: it is not within a day");
	p.shape = enter_shape(t, &shape);
	if (p.shape == SHAPES_MAX || t->pods.nr == PODS_MAX)
		return err_set(e, E2BIG, "more than %d different shapes, or %d pods", SHAPES_MAX,
			PODS_MAX);
	*vec_push(&t->pods) = p;
	return 0;
}

int cluster_trace_read(struct cluster_trace *t, const char *text, size_t len, struct err *e)
{
	const char *end = text + len;
	unsigned line = 1;
	int rc = 0;

	*t = (struct cluster_trace){0};
	for (; text < end && !rc; line++) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t size = newline ? (size_t)(newline - text) : (size_t)(end - text);

		rc = read_trace_line(t, text, size, e);
		if (rc)
			(void)err_add(e, rc, "line %u", line);
		text += size + 1;
	}
	if (!rc && !t->pods.nr)
		rc = err_set(e, EINVAL, "there is no pod in it");
	if (rc)
		cluster_trace_fini(t);
	sort_by_arrival(t);
	return rc;
}
