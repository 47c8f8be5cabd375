#ifndef NUMAFIT_COMMAND_SAFE_OUTPUT_H
#define NUMAFIT_COMMAND_SAFE_OUTPUT_H

#include <stdio.h>

/* The one way out of a program for what people read. Names of pods, annotations, files and answers
 * of other programs are printed all over; whatever is printed to stdout or stderr, a terminal gets
 * no command from it. A character that text_is_shown() refuses, but newline and tab, is written as
 * \uXXXX (two of them above U+FFFF), a byte that is not UTF-8 as \xXX. JSON stays the same JSON by
 * this. */

/* From now on stdout and stderr escape. Once, at the program's start; later calls change nothing.
 */
void safe_output_begin(void);
/* Write all buffered bytes of stdout and stderr. 0; -errno of the first write to stdout that failed
 * since the program began, also if later calls have changed errno. */
int safe_output_end(void);
/* The stream of standard output as it is, for an archive. */
FILE *safe_output_raw(void);

#endif
