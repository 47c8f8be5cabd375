#ifndef NUMAFIT_IO_JOURNAL_H
#define NUMAFIT_IO_JOURNAL_H

#include <numafit/err.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* An append-only file of texts, a line each, with its checksum: "<crc32c as 8 hex digits>
 * <text>\n", one write(2) a line, never synced: the page cache outlives kill -9, and a reboot ends
 * all containers anyway. What is in a text is the caller's matter; it holds no newline. A text that
 * is too long for one line has several: all but the last are "<crc32c>+<piece>\n", the checksum
 * that of
 * "+<piece>", and the last one, which is like any other line, commits them: without it the pieces
 * before it count as nothing. */
struct journal;

enum { JOURNAL_LINE_MAX = 256 << 10, JOURNAL_TEXT_MAX = 16 * JOURNAL_LINE_MAX };

/* Read every whole text of the file at path in order. text is without checksums, its pieces put
 * together, NUL terminated, and may be changed. A negative return of line() ends the reading and is
 * returned. What is torn at the end (a last line without a newline, or whose checksum does not
 * match, pieces that no line commits) is passed over. Returns the number of texts; 0 also when
 * there is no file; -EBADMSG with the line's number for damage anywhere else; -EINVAL: it is no
 * file; -errno when it cannot be read. */
int journal_read(const char *path, int (*line)(void *ctx, char *text, size_t len, struct err *e),
	void *ctx, struct err *e);

/* The same of what is open, a pipe or a file, to its end; errors call it `name`. */
int journal_read_stream(FILE *f, const char *name,
	int (*line)(void *ctx, char *text, size_t len, struct err *e), void *ctx, struct err *e);

/* Start a new file beside path; lines are appended to it, and journal_publish() puts it in the
 * place of the old one. Until then the old one is untouched. NULL with text on error. */
struct journal *journal_create(const char *path, struct err *e);
int journal_publish(struct journal *j, struct err *e);
/* Before that, let the old one go on beside the new one as path.SUFFIX, replacing one that is
 * there. 0 (also when there is no old one) or -errno. */
int journal_keep(const char *path, const char *suffix, struct err *e);
/* Append one text, in as many lines as it takes. 0; -EMSGSIZE beyond JOURNAL_TEXT_MAX, -EINVAL for
 * a newline in it; -errno of write(2): then the file is cut back to where it was, so that nothing
 * half is left. */
int journal_append(struct journal *j, const char *text, size_t len, struct err *e);
/* The same lines, written to any file: for a copy of a journal whose texts are changed. 0; -EMSGSIZE,
 * -EINVAL as above, -EIO. */
int journal_write_text(FILE *to, const char *text, size_t len, struct err *e);
/* Bytes in the file; 0 of NULL. */
uint64_t journal_size(const struct journal *j);
/* Close; a file that was not published is removed. NULL is fine. */
void journal_close(struct journal *j);

/* What is kept of the journal before the present one: path.1. */
#define JOURNAL_PREVIOUS "1"

/* Move what is at path aside to path.SUFFIX, so that a new one can start. An older one there is
 * replaced or, if it is a directory, set aside in its turn. 0 (also when there was none) or -errno.
 */
int journal_set_aside(const char *path, const char *suffix, struct err *e);

#endif
