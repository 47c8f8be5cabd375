#ifndef NUMAFIT_IO_FILE_H
#define NUMAFIT_IO_FILE_H

#include <numafit/err.h>
#include <stdbool.h>
#include <stddef.h>

/* Files that are read whole, be they as long as their size says or, like the kernel's, of no size
 * at all. What is longer than the caller wants is an error, and never a piece of it. Errors are
 * open(2)'s and read(2)'s, and -EFBIG; the text begins with the path. */

/* Whether only root and this process's user can write what is at path, and it is no symbolic link.
 * 0; -EPERM with text that begins with the path and says who else can; -errno (-ENOENT: nothing is
 * there). */
int file_check_own(const char *path, struct err *e);
/* Whether only root and this process's user can move away what is at path: they own each directory
 * above the place that path leads to, and others can write none of these, or it is sticky (as
 * /tmp). Returns as file_check_own() does, of the first directory that is otherwise. */
int file_check_parents(const char *path, struct err *e);
/* All of path, at most max bytes, into *text with a NUL behind it, which the caller frees; *len
 * (len may be NULL) is how many there are, NULs among them. 0, or -errno with text. Nobody is
 * waited for: of a FIFO that is what is in it, and -EAGAIN when a writer has it open and has
 * written nothing. */
int file_read(const char *path, size_t max, char **text, size_t *len, struct err *e);
/* The same for a caller that may wait: of a FIFO that is all up to its end. Never on a loop that
 * turns. */
int file_read_waiting(const char *path, size_t max, char **text, size_t *len, struct err *e);
/* As file_read() into buf of cap bytes, without heap: at most cap - 1, and at most INT_MAX. Their
 * number; else buf holds nothing. */
int file_read_into(const char *path, char *buf, size_t cap, struct err *e);

/* Set a file that is there, the kernel's or one like it, to the text by one write(2). 0, or -errno
 * with text: open(2)'s and write(2)'s. */
int file_set(const char *path, const char *text, struct err *e);

/* Of an error (-errno): the file, or what a file of the kernel is of, is there no more. */
bool file_is_gone(int rc);

#endif
