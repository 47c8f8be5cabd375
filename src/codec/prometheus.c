#include <codec/prometheus.h>

#include <ctype.h>
#include <inttypes.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <string.h>

enum { FIRST_CAP = 32 << 10, SECONDS_MAX = 32 };

struct metric_writer {
	struct text *t;
	const struct metric *metric;
	bool begun; /* its HELP and TYPE are written */
};

/* Backslash, quote and newline are escaped, as the format says; what is no UTF-8, and so would cost
 * the whole scrape, becomes question marks. */
static void add_value(struct text *t, const char *value)
{
	bool whole = text_is_utf8(value, strlen(value));

	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			text_add(t, "\\%c", *value);
		else if (*value == '\n')
			text_add(t, "\\n");
		else
			text_add(t, "%c", whole || isascii((unsigned char)*value) ? *value : '?');
	}
}

/* Exactly, without floating point: "0.0000125", "3". */
static const char *print_seconds(char buf[SECONDS_MAX], uint64_t ns, bool nine_digits)
{
	struct text t;

	text_init(&t, buf, SECONDS_MAX);
	text_add(&t, "%" PRIu64 ".%09" PRIu64, ns / NS_PER_S, ns % NS_PER_S);
	while (!nine_digits && buf[t.len - 1] == '0')
		buf[--t.len] = '\0';
	if (buf[t.len - 1] == '.')
		buf[--t.len] = '\0';
	return buf;
}

/* The name, with what a histogram has behind it, and the labels; le: NULL, or one more. */
static void begin_line(
	struct metric_writer *w, const char *suffix, const struct label *labels, const char *le)
{
	static const char *const kinds[] = {
		[COUNTER] = "counter", [GAUGE] = "gauge", [HISTOGRAM] = "histogram"};
	const struct metric *f = w->metric;
	const char *before = "{";

	if (!w->begun)
		text_add(w->t, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name,
			kinds[f->kind]);
	w->begun = true;
	text_add(w->t, "%s%s", f->name, suffix);
	for (; labels->name; labels++) {
		text_add(w->t, "%s%s=\"", before, labels->name);
		add_value(w->t, labels->value);
		text_add(w->t, "\"");
		before = ",";
	}
	if (le)
		text_add(w->t, "%sle=\"%s\"", before, le);
	text_add(w->t, le || *before == ',' ? "} " : " ");
}

void metric_sample(struct metric_writer *w, const struct label *labels, uint64_t value)
{
	char text[SECONDS_MAX];

	begin_line(w, "", labels, NULL);
	if (w->metric->value == METRIC_NS)
		text_add(w->t, "%s\n", print_seconds(text, value, w->metric->nine_digits));
	else if (w->metric->value == METRIC_MILLI)
		text_add(w->t, "%s\n", print_seconds(text, value * NS_PER_MS, false));
	else
		text_add(w->t, "%" PRIu64 "\n", value);
}

static void add_histogram(
	struct metric_writer *w, const struct label *labels, const struct histogram *h)
{
	bool nine = w->metric->nine_digits;
	char bound[SECONDS_MAX];
	uint64_t nr = 0;

	for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++) {
		nr += h->within[i];
		begin_line(w, "_bucket", labels, print_seconds(bound, histogram_bound_ns(i), nine));
		text_add(w->t, "%" PRIu64 "\n", nr);
	}
	nr += h->beyond;
	begin_line(w, "_bucket", labels, "+Inf");
	text_add(w->t, "%" PRIu64 "\n", nr);
	begin_line(w, "_sum", labels, NULL);
	text_add(w->t, "%s\n", print_seconds(bound, h->sum_ns, nine));
	begin_line(w, "_count", labels, NULL);
	text_add(w->t, "%" PRIu64 "\n", nr);
}

/* The value of type T at p. */
#define VALUE(T, p) (*(T const *)(const void *)(p))

static void add_series(struct metric_writer *w, struct label *labels, const char *p)
{
	switch (w->metric->value) {
	case METRIC_U64:
	case METRIC_NS:
	case METRIC_MILLI:
		metric_sample(w, labels, VALUE(uint64_t, p));
		return;
	case METRIC_UNSIGNED:
		metric_sample(w, labels, VALUE(unsigned, p));
		return;
	case METRIC_BOOL:
		metric_sample(w, labels, VALUE(bool, p));
		return;
	case METRIC_HISTOGRAM:
		add_histogram(w, labels, (const void *)p);
		return;
	case METRIC_IS_NULL:
		metric_sample(w, labels, !VALUE(void *, p));
		return;
	case METRIC_NOT_NULL:
		metric_sample(w, labels, VALUE(void *, p) != NULL);
		return;
	case METRIC_ONE:
		labels[0] = (struct label){w->metric->label[0].name, VALUE(char *, p)};
		if (labels[0].value)
			metric_sample(w, labels, 1);
		return;
	}
}

static void add_metric(struct metric_writer *w, const char *from)
{
	const struct metric *f = w->metric;
	const struct metric_label *l = f->label;

	for (unsigned i = 0; i < (l[0].nr ? l[0].nr : 1); i++) {
		if (f->has_flag && !VALUE(bool, from + f->flag + i * f->flag_step))
			continue;
		for (unsigned j = 0; j < (l[1].nr ? l[1].nr : 1); j++) {
			struct label labels[METRIC_LABELS_MAX + 1] = {{NULL, NULL}};

			if (l[0].nr)
				labels[0] = (struct label){l[0].name, l[0].words[i]};
			if (l[1].nr)
				labels[1] = (struct label){l[1].name, l[1].words[j]};
			add_series(w, labels, from + f->at + i * l[0].step + j * l[1].step);
		}
	}
}

/* Into a buffer that doubles until it is large enough. */
char *prometheus_text(const struct metric *rows, size_t nr, const void *from, size_t *len)
{
	struct text t = {.cut = true};

	for (size_t cap = FIRST_CAP; t.cut; cap *= 2) {
		free(t.at);
		text_init(&t, xcalloc(cap, 1), cap);
		for (size_t i = 0; i < nr; i++) {
			struct metric_writer w = {&t, &rows[i], false};

			if (rows[i].each)
				rows[i].each(&w, from);
			else
				add_metric(&w, from);
		}
	}
	*len = t.len;
	return t.at;
}
