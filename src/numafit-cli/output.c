#include <numafit-cli/output.h>

#include <errno.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <string.h>
#include <unistd.h>

int option_output(const struct option_row *o, void *member, char *value, struct err *e)
{
	static const char *const words[] = {[OUTPUT_TEXT] = "text",
		[OUTPUT_TABLE] = "table",
		[OUTPUT_WIDE] = "wide",
		[OUTPUT_JSON] = "json"};
	unsigned known;
	int rc = option_word(o, &known, value, e);

	for (unsigned i = 0; !rc && i < sizeof words / sizeof *words; i++)
		if (text_equal(words[i], value))
			*(enum output *)member = (enum output)i;
	return rc;
}

int option_json(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o, (void)value, (void)e;
	*(enum output *)member = OUTPUT_JSON;
	return 0;
}

int option_duration(const struct option_row *o, void *member, char *value, struct err *e)
{
	static const char units[] = "smhd";
	static const uint64_t ms_of[] = {MS_PER_S, S_PER_MIN * MS_PER_S,
		MIN_PER_H * S_PER_MIN * MS_PER_S, UINT64_C(24) * MIN_PER_H * S_PER_MIN * MS_PER_S};
	enum { NUMBER_MAX = 1000000 };
	uint64_t sum = 0, number;

	(void)o;
	for (const char *c = value; *c || c == value;) {
		size_t len = strspn(c, "0123456789");
		const char *unit = c[len] ? strchr(units, c[len]) : NULL;

		if (!unit || text_u64(c, len, NUMBER_MAX, &number, NULL))
			return err_set(e, EINVAL,
				"\"%.64s\" is not a duration such as 90s, 15m, 1h30m or 2d", value);
		sum += number * ms_of[unit - units];
		c += len + 1;
	}
	if (!sum)
		return err_set(e, EINVAL, "\"%.64s\" is no time", value);
	*(uint64_t *)member = sum;
	return 0;
}

/* How much of the line of len bytes goes into that many columns: up to the last blank within them,
 * or else the first one behind. */
static size_t break_line(const char *line, size_t len, size_t columns)
{
	size_t at = columns;

	if (len <= columns)
		return len;
	while (at && line[at] != ' ')
		at--;
	if (!at)
		for (at = columns; at < len && line[at] != ' ';)
			at++;
	return at;
}

void print_lines(FILE *to, char *text, int columns)
{
	enum { INDENT = 2 };

	text_make_shown(text, TEXT_LINES);
	while (*text) {
		size_t len = strcspn(text, "\n"), room = columns ? (size_t)columns : len;

		for (int indent = 0;; indent = INDENT) {
			size_t part = break_line(text, len, room - (size_t)indent);

			(void)fprintf(to, "%*s%.*s\n", indent, "", (int)part, text);
			text += part;
			len -= part;
			if (!len)
				break;
			text++; /* the blank */
			len--;
		}
		text += *text == '\n';
	}
}

enum { WATCH_S = 2 };

void print_correction(void *ctx, const struct correction *c)
{
	const struct correction_lines *lines = ctx;
	char buf[CORRECTION_TEXT_MAX];

	(void)fprintf(lines->to, "%s%s: %s\n", lines->before,
		correction_is_doubt(c) ? "doubtful" : "corrected", correction_text(c, buf));
}

void screen_clear(void)
{
	if (isatty(STDOUT_FILENO) && !fflush(stdout))
		(void)dprintf(STDOUT_FILENO, "\033[H\033[2J");
}

bool watch_wait(void)
{
	if (fflush(stdout))
		return false;
	(void)sleep(WATCH_S);
	return true;
}
