#ifndef NUMAFIT_TEXT_H
#define NUMAFIT_TEXT_H

#include <numafit/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text in bounded buffers, and the small grammars that Kubernetes writes numbers in, quantities
 * apart (quantity.h). */

/* A writer over the caller's buffer. What does not fit is dropped and remembered in cut;
 * the buffer always holds a string. */
struct text {
	char *at;
	size_t cap, len;
	bool cut;
};

void text_init(struct text *t, char *buf, size_t cap);
void text_add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for the len bytes at s, and for a number, on the way of every create: without a format
 * to read. */
void text_put(struct text *t, const char *s, size_t len);
void text_put_u64(struct text *t, uint64_t number);

/* The ending of the noun behind a number: "" for 1, else "s". Each count in a sentence is printed
 * with it: "%u CPU%s". */
static inline const char *text_plural(uint64_t nr)
{
	return nr == 1 ? "" : "s";
}

/* What of s stands behind the prefix, or NULL where s does not begin with it. */
const char *text_behind(const char *s, const char *prefix);

/* The place of s in a list of nr words, or -1. */
int text_index(const char *const *words, unsigned nr, const char *s);

/* Where the text stands, or would stand, in an array of nr elements of size bytes that is sorted by
 * a char * at the beginning of each. */
size_t text_position(const void *sorted, size_t nr, size_t size, const char *s);

/* Copy the string s (NULL: "") into dst of cap bytes. Returns whether all of it fitted. */
bool text_copy(char *dst, size_t cap, const char *s);
/* Whether the two strings are equal; NULL counts as "". */
bool text_equal(const char *a, const char *b);
/* Whether the pattern of len bytes fits all of s: * stands for any bytes, ? for any one. */
bool text_fits(const char *s, const char *pattern, size_t len);
/* The next word of the list, between spaces: *len bytes at the returned place, and *list is moved
 * behind them. NULL: there are no more; *list NULL is an empty list. */
const char *text_next_word(const char **list, size_t *len);
/* Whether it is one of the list's words. */
bool text_has_word(const char *list, const char *word);
/* Whether the len bytes at s are well-formed UTF-8 (no surrogates, no overlong forms). */
bool text_is_utf8(const char *s, size_t len);
/* Read the first character of the len bytes at s (len is not 0). Return its length; *code is its
 * number in Unicode, or TEXT_NO_CHARACTER (length 1) for a byte with which no well-formed UTF-8
 * begins. */
enum { TEXT_NO_CHARACTER = 0x110000 };
size_t text_character(const char *s, size_t len, uint32_t *code);
/* True if a terminal or a web page that is given the character shows it, and does nothing else:
 * false for control characters (of ASCII, newline and tab among them, and U+0080 to U+009F), for
 * those that turn the direction of the text or break lines, for marks and tags that cannot be seen,
 * and for TEXT_NO_CHARACTER. */
bool text_is_shown(uint32_t code);
/* Make the string one that can be shown, and that is UTF-8 (one that was cut may end within a
 * character): each byte of what text_is_shown() refuses becomes a question mark; newlines stay with
 * TEXT_LINES. */
enum text_lines { TEXT_ONE_LINE, TEXT_LINES };
void text_make_shown(char *s, enum text_lines lines);

/* The decimal number that is exactly the len bytes at s, at most max, into *out.
 * 0; -EINVAL when it is no such number, -ERANGE when it is above max. */
int text_u64(const char *s, size_t len, uint64_t max, uint64_t *out, struct err *e);
/* "true"/"false" and the other words of Go's ParseBool (1 t T TRUE True 0 f F FALSE False),
 * which is what the kubelet accepts in its option maps. 0 or -EINVAL. */
int text_bool(const char *s, bool *out, struct err *e);

enum { TEXT_SIZE_MAX = 32 };
/* bytes as people read them and Kubernetes parses them: the largest binary suffix that divides
 * it without a rest ("16Gi", "1536Mi", "1000"). Returns buf, of TEXT_SIZE_MAX bytes. */
const char *text_size(char *buf, uint64_t bytes);
/* The same for people alone: a number of more than four digits has the largest suffix instead, and
 * two decimals, rounded down ("135.75Gi", not "139008Mi"). */
const char *text_size_rounded(char *buf, uint64_t bytes);

/* CRC-32C (Castagnoli) of the len bytes at data: the journal's checksum. */
uint32_t text_crc32c(const void *data, size_t len);

#endif
