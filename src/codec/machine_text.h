#ifndef NUMAFIT_CODEC_MACHINE_TEXT_H
#define NUMAFIT_CODEC_MACHINE_TEXT_H

#include <numafit/text.h>
#include <numafit/topo.h>

/* A machine as text that a person can write: one line for a NUMA node, '#' starts a comment.
 *
 *   machine NAME                  first; NAME of letters, digits, '.', '_' and '-'
 *   offline LIST                  before any node: CPUs of the lines below that are left out
 *   isolated LIST                 likewise: CPUs that the kernel's scheduler leaves alone
 *                                 (isolcpus=, isolated cpuset partitions)
 *   node ID WORD VALUE ...        a NUMA node by its kernel id; ids ascend
 *   cpus LIST WORD VALUE ...      more CPUs of the node above
 *   distances                     then one row of numbers for every node, in the nodes' order;
 *                                 without: 10 from a node to itself, 20 to any other
 *
 * On a node line, in any order, each at most once:
 *   memory QUANTITY               ("64Gi"), huge pages included; none: 0
 *   device-memory QUANTITY        instead of memory: it belongs to a device, such as a GPU
 *   hugepages-SIZE COUNT          how many pages of that size ("hugepages-2Mi 512")
 *   cpus LIST                     ("0-7,64-71"); a node without has memory only
 * and where cpus is given:
 *   socket ID                     none: 0
 *   smt N                         threads of a core; none: 1. The list, as it is written, is N runs
 *                                 of equal length: the first threads of all cores, then the second
 *                                 ones, as Linux usually numbers them
 *   l3 N                          cores that share a last-level cache; none: all of the line's
 *   uncore ID                     the number of the line's (first) last-level cache; none: one more
 *                                 than any before. Two lines that name the same one share it */
enum { MACHINE_TEXT_MAX = 1 << 20 };

/* The len bytes at text as a sealed machine. 0; -EINVAL, -ERANGE, -EEXIST: the text of the error
 * says in which line, and of which word or node, the fault is; -EFBIG beyond MACHINE_TEXT_MAX. */
int machine_text_parse(const char *text, size_t len, struct topo *out, struct err *e);

/* The machine in that form; reading it again gives an equal one. A buffer of MACHINE_TEXT_MAX bytes
 * holds any. */
void machine_text_write(const struct topo *t, struct text *out);

/* Whether name can stand in a machine line. */
bool machine_text_is_name(const char *name, size_t len);

#endif
