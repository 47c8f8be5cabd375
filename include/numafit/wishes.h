#ifndef NUMAFIT_WISHES_H
#define NUMAFIT_WISHES_H

#include <numafit/cpuset.h>
#include <numafit/nodeset.h>
#include <numafit/err.h>
#include <numafit/text.h>
#include <numafit/topo.h>

/* What a pod's author may wish for a container beside its resources: annotations under numafit.io/
 * (codec/wishes.h), as far as the operator lets pods have them (podWishes.allowed). A wish chooses
 * how what was asked for is given. It never gives more CPUs than were asked for, nor anything of
 * another container. */

enum wish_cpus {
	WISH_CPUS_UNSAID,     /* as the kubelet's static CPU manager has it */
	WISH_CPUS_OWN,        /* likewise */
	WISH_CPUS_SHARED,     /* those of the shared pool, whatever it asks for */
	WISH_CPUS_OWN_SHARED, /* the whole CPUs of its request for itself, and the shared pool as
				well */
	WISH_CPUS_UNTOUCHED,  /* no cpuset from us: it is in the shared pool as far as cgroups above
				 it keep it there */
	WISH_CPUS_UNBOUNDED,  /* likewise, and nothing keeps it in there; an operator's alone */
	WISH_CPUS_RESERVED,   /* the CPUs that are reserved for the system; an operator's alone */
	NR_WISH_CPUS
};
enum wish_cores {
	WISH_CORES_UNSAID,
	WISH_CORES_WHOLE,      /* no other container has a thread of its cores */
	WISH_CORES_ONE_THREAD, /* likewise; and its cpuset has one thread of each of them */
	NR_WISH_CORES
};
/* CPUs that the kernel's scheduler leaves alone (struct topo). */
enum wish_isolated {
	WISH_ISOLATED_UNSAID,  /* it gets them when there are no others */
	WISH_ISOLATED_PREFER,  /* it gets others when there are none of these */
	WISH_ISOLATED_REQUIRE, /* it gets no others */
	NR_WISH_ISOLATED
};
/* Of a container that shares the pool. */
enum wish_spread {
	WISH_SPREAD_UNSAID,
	WISH_SPREAD_ANY,      /* all CPUs of the pool */
	WISH_SPREAD_ONE_NODE, /* those of one NUMA node */
	WISH_SPREAD_STRICT,   /* and the memory of that NUMA node alone */
	NR_WISH_SPREADS
};
/* How the kernel chooses the NUMA node of a page, among those that the container's memory is pinned
 * to (set_mempolicy(2)), of a process that does not choose itself. */
enum wish_memory {
	WISH_MEMORY_UNSAID,
	WISH_MEMORY_BIND,       /* any of them, the nearest first, and no other */
	WISH_MEMORY_INTERLEAVE, /* one after another */
	WISH_MEMORY_PREFERRED,  /* them first, others rather than none */
	WISH_MEMORY_LOCAL,      /* that of the CPU that the thread runs on */
	NR_WISH_MEMORIES
};
/* Whether it may be moved to other NUMA nodes while it runs (defrag.h). Read whatever pods may wish
 * for: it is about the container alone, and one that stays where it was put takes nothing of
 * others. */
enum wish_movable {
	WISH_MOVABLE_UNSAID, /* as defragment.movable has it */
	WISH_MOVABLE_NO,     /* never */
	WISH_MOVABLE_YES,    /* also by itself (defragment.mode: auto) */
	NR_WISH_MOVABLE
};
/* In the annotations' words; "" for what is not said. Operators' are in the journal alone. */
extern const char *const wish_cpus_words[NR_WISH_CPUS];         /* "", "own", "shared", ... */
extern const char *const wish_cores_words[NR_WISH_CORES];       /* "", "whole", "one-thread" */
extern const char *const wish_isolated_words[NR_WISH_ISOLATED]; /* "", "prefer", "require" */
extern const char *const wish_spread_words[NR_WISH_SPREADS];    /* "", "any", "one-node", ... */
extern const char *const wish_memory_words[NR_WISH_MEMORIES];   /* "", "bind", ... */
extern const char *const wish_movable_words[NR_WISH_MOVABLE];   /* "", "false", "true" */

/* A class of the runtime's configuration, or a frequency profile, with its end. */
enum { WISH_CLASS_MAX = 32 };
/* What is to keep still on CPUs of its own, with its end: "irq,frequency=PROFILE". */
enum { WISH_QUIET_MAX = sizeof "irq,frequency=" + WISH_CLASS_MAX };

/* A plain value; zeros wish for nothing. */
struct wishes {
	enum wish_cpus cpus;
	enum wish_cores cores;
	enum wish_isolated isolated;
	enum wish_spread spread;
	enum wish_memory memory;
	enum wish_movable movable;
	char rdt_class[WISH_CLASS_MAX]; /* "": none is wished for */
	char blockio_class[WISH_CLASS_MAX];
	char quiet[WISH_QUIET_MAX]; /* of a container with CPUs of its own; see wishes_quiet_irq()
				     */
};

enum { WISHES_TEXT_MAX = 384 }; /* of what follows, with its end */
/* "cpus=shared cores=whole"; nothing where nothing is wished for. */
void wishes_print(const struct wishes *w, struct text *to);
/* A wish by the name that it has in annotations, and what its values are. */
enum wish_type {
	WISH_OF_WORDS, /* words[1] to words[nr - 1]; an enum of struct wishes */
	WISH_OF_NODES, /* a list of NUMA nodes, which struct wishes has not: ask.advice */
	WISH_OF_TEXT   /* is_value(); a text of struct wishes */
};
struct wish_row {
	const char *name;
	unsigned bit; /* of WISHES_CPUS, ...; 0: all pods may have it */
	enum wish_type type;
	size_t at, size; /* in struct wishes; not of WISH_OF_NODES */
	const char *const *words;
	unsigned nr;
	bool (*is_value)(const char *text); /* of WISH_OF_TEXT; and what one that is none is not: */
	const char *form;                   /* "no name of a class", "none of a, b" */
};
enum { NR_WISH_ROWS = 10 };
extern const struct wish_row wish_rows[NR_WISH_ROWS];
/* The row of that name, or NULL. */
const struct wish_row *wish_row_of(const char *name);
/* Which of the row's words the text is; 1 for a text that is none of words and may be a value; 0:
 * it is none. Whether a list of NUMA nodes is one is not looked at. */
unsigned wish_value(const struct wish_row *row, const char *text);
/* *w wishes for that, which wish_value() has found to be one. Not of WISH_OF_NODES. */
void wish_enter(struct wishes *w, const struct wish_row *row, const char *text);
/* What *of wishes for is wished for in *w as well; without `force` only what *w says nothing of. */
void wishes_lay_over(struct wishes *w, const struct wishes *of, bool force);

struct cpu_options; /* settings.h */

/* The options by which the CPUs of such a container are taken: with a wish for cores those of
 * full-pcpus-only, by core, and none that scatters threads. */
struct cpu_options wishes_cpu_options(const struct wishes *w, const struct cpu_options *of_node);
/* Whether it gets no cpuset from us: neither CPUs nor NUMA nodes of its memory. */
static inline bool wishes_untouched(const struct wishes *w)
{
	return w->cpus == WISH_CPUS_UNTOUCHED || w->cpus == WISH_CPUS_UNBOUNDED;
}
/* Whether it is given whole cores, by its wish or by the node's options. */
bool wishes_whole_cores(const struct wishes *w, const struct cpu_options *of_node);
/* The CPUs of its own that a container's cpuset has, of those that it holds: with one-thread the
 * lowest one of each core. */
struct cpuset wishes_shown_cpus(
	const struct wishes *w, const struct topo *t, const struct cpuset *held);
/* The reverse: the nr CPUs that it holds whose cpuset has these; these themselves where it was not
 * given one thread of each core. */
struct cpuset wishes_held_cpus(
	const struct wishes *w, const struct topo *t, const struct cpuset *shown, unsigned nr);

/* podWishes.allowed: names of wishes, or NAME=VALUE for that value of one alone. */
enum {
	WISHES_CPUS = 1,
	WISHES_CPUS_SHARED = 2,
	WISHES_CORES = 4,
	WISHES_NUMA_NODES = 8,
	WISHES_SPREAD = 16,
	WISHES_MEMORY_POLICY = 32,
	WISHES_RDT_CLASS = 64,
	WISHES_BLOCKIO_CLASS = 128,
	WISHES_CPUS_UNTOUCHED = 256, /* of sections of `namespaces` alone */
	WISHES_ISOLATED = 512,
	WISHES_QUIET = 1024
};
/* Whether a pod's author may have that value of the row, which is a known one, where these wishes
 * are allowed. What the kubelet would give anyway may be said by all. */
bool wish_is_allowed(const struct wish_row *row, unsigned value, unsigned allowed);
/* Whether that is a name of a class: letters, digits, '.', '-' and '_', of which the first one is a
 * letter or a digit; shorter than WISH_CLASS_MAX. */
bool wishes_is_class(const char *name);
/* Whether interrupts are to keep off its CPUs. */
bool wishes_quiet_irq(const struct wishes *w);
/* The frequency profile that its CPUs are to have; "": none. */
const char *wishes_quiet_profile(const struct wishes *w);
/* "cpus=shared,numa-nodes", or "none", to those bits. 0, or -EINVAL: the text says which word is
 * wrong, and what there is. */
int wishes_allowed_parse(const char *text, unsigned *out, struct err *e);
void wishes_allowed_print(unsigned allowed, struct text *to);

#endif
