#ifndef NUMAFIT_CODEC_PROMETHEUS_H
#define NUMAFIT_CODEC_PROMETHEUS_H

#include <numafit/histogram.h>
#include <stdbool.h>
#include <stddef.h>

/* What a program measures, as Prometheus reads it (text format 0.0.4), from one table: a row is a
 * metric's name with all its series, and says where in a struct the values are. */
#define PROMETHEUS_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum metric_kind { COUNTER, GAUGE, HISTOGRAM };

/* What is there, and so what is written. */
enum metric_value {
	METRIC_U64,
	METRIC_UNSIGNED,
	METRIC_BOOL,  /* 1 or 0 */
	METRIC_NS,    /* uint64_t, as seconds */
	METRIC_MILLI, /* uint64_t, thousandths */
	METRIC_HISTOGRAM,
	METRIC_IS_NULL,  /* a pointer: 1 if it is NULL, else 0 */
	METRIC_NOT_NULL, /* the other way */
	METRIC_ONE /* const char *, as the value of the first label; the metric's is 1. NULL: none
		    */
};

/* A dimension of the values: nr of them, step bytes from one to the next, named by words. */
struct metric_label {
	const char *name;
	const char *const *words;
	unsigned nr;
	size_t step;
};

struct metric_writer;

enum { METRIC_LABELS_MAX = 2 };
struct metric {
	const char *name, *help;
	enum metric_kind kind;
	enum metric_value value;
	size_t at; /* of the first value */
	struct metric_label label[METRIC_LABELS_MAX];
	/* A series is shown only where the bool at flag is true: one for all, or one for each word
	 * of the first label, flag_step bytes apart. */
	bool has_flag;
	size_t flag, flag_step;
	bool nine_digits; /* of seconds all nine are written, zeros, too */
	/* Instead of all that: metric_sample() for each series. */
	void (*each)(struct metric_writer *w, const void *from);
};

#define METRIC_ROW(name_, kind_, value_, at_, help_, ...)                                          \
	{                                                                                          \
		.name = (name_), .help = (help_), .kind = (kind_), .value = METRIC_##value_,       \
		.at = (at_), ##__VA_ARGS__                                                         \
	}
#define METRIC_EACH(name_, kind_, fn, help_)                                                       \
	{                                                                                          \
		.name = (name_), .help = (help_), .kind = (kind_), .each = (fn)                    \
	}
/* .label = {METRIC_LABEL("verb", verb_names, sizeof(uint64_t))} */
#define METRIC_LABEL(name_, words_, step_)                                                         \
	{                                                                                          \
		.name = (name_), .words = (words_), .nr = sizeof(words_) / sizeof *(words_),       \
		.step = (step_)                                                                    \
	}

struct label {
	const char *name, *value;
};
/* One series of the metric at hand; labels ends with one without a name. A metric without a series
 * is left out. */
void metric_sample(struct metric_writer *w, const struct label *labels, uint64_t value);
#define NO_LABELS   ((const struct label[]){{NULL, NULL}})
#define LABELS(...) ((const struct label[]){__VA_ARGS__, {NULL, NULL}})

/* The text of the nr metrics, of *len bytes; the caller frees. The same values give the same text;
 * what in a label's value is not UTF-8 becomes '?'. */
char *prometheus_text(const struct metric *rows, size_t nr, const void *from, size_t *len);

#endif
