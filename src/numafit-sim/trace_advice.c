#include <numafit-sim/trace_advice.h>

#include <errno.h>
#include <numafit/text.h>
#include <string.h>

enum { TTL_DEFAULT_S = 120 };

/* Whether the NUMA nodes exist is for the machine that the trace is played on, and for advice they
 * need not. */
static int trace_advice_read_numa(
	struct trace_advice *h, const char *value, struct arena *strings, struct err *e)
{
	struct cpuset ids;
	int rc = cpuset_parse(&ids, value, strlen(value), e);

	if (rc)
		return rc;
	if (cpuset_empty(&ids))
		return err_set(e, EINVAL, "the list is empty");
	h->numa = arena_strndup(strings, value, strlen(value));
	return h->numa ? 0 : err_set(e, E2BIG, "the trace is too large");
}

static int trace_advice_read_mode(
	struct trace_advice *h, const char *value, struct arena *strings, struct err *e)
{
	int mode = advice_mode_from_name(value);

	(void)strings;
	if (mode != ADVICE_PREFER && mode != ADVICE_REQUIRE)
		return err_set(e, EINVAL, "\"%.80s\" is not one of prefer, require", value);
	h->mode = (enum advice_mode)mode;
	return 0;
}

static int trace_advice_read_ttl(
	struct trace_advice *h, const char *value, struct arena *strings, struct err *e)
{
	size_t len = strlen(value);
	uint64_t seconds;

	(void)strings;
	if (!len || value[len - 1] != 's')
		return err_set(
			e, EINVAL, "\"%.80s\" is not a number of seconds such as 60s", value);
	int rc = text_u64(value, len - 1, ADVICE_TTL_MAX_S, &seconds, e);
	if (rc)
		return rc;
	if (!seconds)
		return err_set(e, ERANGE, "should be 1s at least");
	h->ttl_s = (unsigned)seconds;
	return 0;
}

static int trace_advice_read_gen(
	struct trace_advice *h, const char *value, struct arena *strings, struct err *e)
{
	(void)strings;
	return text_u64(value, strlen(value), INT64_MAX, &h->generation, e);
}

/* What can be wrong with the advice itself, not with what it asks for. */
static int trace_advice_read_wrong(
	struct trace_advice *h, const char *value, struct arena *strings, struct err *e)
{
	(void)strings;
	for (unsigned v = ADVICE_REJECTED_FORMAT; v <= ADVICE_REJECTED_EXPIRED; v++) {
		const char *word = strchr(advice_verdict_name((enum advice_verdict)v), ':');

		if (text_equal(word + 1, value)) {
			h->wrong = (enum advice_verdict)v;
			return 0;
		}
	}
	return err_set(e, EINVAL,
		"\"%.80s\" is not one of format, version, uid, node, clock, expired", value);
}

static const struct key {
	const char *name;
	int (*read)(
		struct trace_advice *h, const char *value, struct arena *strings, struct err *e);
} keys[] = {
	{"numa", trace_advice_read_numa},
	{"mode", trace_advice_read_mode},
	{"ttl", trace_advice_read_ttl},
	{"gen", trace_advice_read_gen},
	{"wrong", trace_advice_read_wrong},
};
enum { NR_KEYS = sizeof keys / sizeof *keys };

int trace_advice_read(struct trace_advice *h, const char *key, const char *value,
	struct arena *strings, struct err *e)
{
	if (!h->ttl_s)
		*h = (struct trace_advice){.mode = ADVICE_PREFER, .ttl_s = TTL_DEFAULT_S};
	for (unsigned i = 0; i < NR_KEYS; i++)
		if (text_equal(keys[i].name, key))
			return keys[i].read(h, value, strings, e);
	return err_set(e, EINVAL, "unknown key; a hint has numa, mode, ttl, gen, wrong");
}
