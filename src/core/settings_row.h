#ifndef NUMAFIT_CORE_SETTINGS_ROW_H
#define NUMAFIT_CORE_SETTINGS_ROW_H

#include <numafit/settings.h>
#include <numafit/text.h>

/* The table of settings from the inside: a row for each key, and what the kinds of values that rows
 * have can do. For settings*.c, and for other programs' tables of settings. */

enum {
	SETTING_SHOWN = 64, /* bytes of somebody's key or value in an error's text */
	MILLI = 1000
}; /* of a CPU */

struct row;
struct amount;

/* What one kind of value has of its own. */
struct kind {
	/* Text to the field at out, which stays as it is on error. */
	int (*parse)(const struct row *row, const char *value, void *out, struct err *e);
	void (*print)(const struct row *row, const void *in, struct text *to);
	const char *type;                                         /* for people */
	void (*describe)(const struct row *row, struct text *to); /* instead of type */
	const struct amount *amount; /* of a number, a size, a duration */
	bool whole_text; /* parse() words its errors in full, without the key in front */
};

/* A feature gate that an option needs, and how the kubelet calls the options behind it. */
struct gate {
	size_t at; /* a bool in struct settings */
	const char *options;
};

struct row {
	const char *key;
	const struct kind *kind;
	size_t at, size;      /* the field in struct settings, or another program's */
	const char *fallback; /* "" leaves the field zero */
	const char *help;
	const char *unit;         /* of a number: what is counted; NULL: nothing */
	bool automatic;           /* a number that may be "auto" instead, which is max + 1 */
	uint64_t min, max;        /* of a number; of an enum the first word that can be said */
	const char *const *words; /* of an enum, in its order */
	bool option;              /* one that is given or not: options_given */
	const struct gate *gate;  /* of an option; NULL: it needs none */
	bool locked;              /* of a feature gate: it can only be what it is */
	bool optional;            /* a text that may be empty, though it is not by default */
	bool restart;             /* it is read at the start, and never again */
};

extern const struct kind kind_word, kind_number, kind_duration, kind_size, kind_cpus,
	kind_cpu_amount, kind_text, kind_path, kind_two_digits, kind_bool, kind_bool_option,
	kind_nodes_option, kind_strategy_option, kind_gate, kind_reserved, kind_wishes,
	kind_namespaces, kind_profiles;

/* What the row's value may be, for people. */
void row_describe(const struct row *row, struct text *to);

/* Row i of the table, or NULL when there are no more. */
const struct row *settings_row(unsigned i);
/* Whether the option of that row was given. */
bool settings_option_given(const struct settings *s, const struct row *row);

#define TOPOLOGY_OPTIONS "topologyManagerPolicyOptions"
#define CPU_OPTIONS      "cpuManagerPolicyOptions"
#define GATES            "featureGates"
#define RESERVED         "reservedMemory"
#define NAMESPACES       "namespaces"
#define PROFILES         "frequencyProfiles"

/* Of "LIST.3.rest" the number, below max, and ".rest", or "" where nothing is behind it; NULL: it is no
 * key of an entry. */
const char *row_entry(const char *key, const char *list, unsigned max, unsigned *entry);

/* A key under reservedMemory, as settings_set() and settings_is_group(). */
int reserved_set(struct settings *s, const char *key, const char *value, struct err *e);
bool reserved_is_group(const char *key);

/* A list of sections, which are structs of one type with values by name: key by key in a file
 * ("LIST.0.name"), and in one line for --set and the journal: "name=a force=true; name=b". */

struct section_key {
	const char *name;
	/* value into *section; rest: what is behind the name, as in "names.0" and "wishes.cpus", or
	 * "". 0 or -errno with text. */
	int (*take)(void *section, const char *rest, const char *value, struct err *e);
	enum { SECTION_VALUE, SECTION_LIST, SECTION_MAP } is;
};
struct sections {
	const char *list;
	size_t at;          /* in struct settings: an unsigned, how many there are, */
	size_t first, size; /* and in there the first section, and each one's size */
	unsigned max;
	const struct section_key *keys;
	unsigned nr_keys;
	const char *has; /* which keys, for people */
	/* in one line: a key that is none of keys; NULL: that is an error */
	int (*take_other)(void *section, const char *name, const char *value, struct err *e);
};
extern const struct sections namespaces_sections, profiles_sections;

/* A key under the list, as settings_set() and settings_is_group(). */
int sections_set(
	const struct sections *k, struct settings *s, const char *key, const char *value, struct err *e);
bool sections_is_group(const struct sections *k, const char *key);
/* All of them in one line, into the struct at out; it stays as it is on error. */
int sections_parse(const struct sections *k, const char *value, void *out, struct err *e);

#endif
