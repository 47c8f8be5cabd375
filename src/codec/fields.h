#ifndef NUMAFIT_CODEC_FIELDS_H
#define NUMAFIT_CODEC_FIELDS_H

#include <numafit/nodeset.h>
#include <numafit/text.h>
#include <numafit/tokens.h>

/* A struct and its JSON object, both ways, from one table: a row for every member, in the order in
 * which they are written. The same struct always gives the same bytes, without a newline and
 * without the heap. Reading them back: fields_json.h. */

enum field_type {
	FIELD_BOOL,     /* bool */
	FIELD_WHETHER,  /* an enum, as a bool: whether its value is max */
	FIELD_UNSIGNED, /* unsigned, or uint32_t, which is the same */
	FIELD_U64,    /* uint64_t; above INT64_MAX a string of digits, as JSON readers stop there */
	FIELD_I64,    /* int64_t */
	FIELD_STRING, /* const char *; NULL is written as "" unless the row is optional */
	FIELD_CHARS,  /* char[max] */
	FIELD_NAME,   /* an enum, as the word of its value: one of the max words */
	FIELD_CPUS,   /* struct cpuset, as a kernel list */
	FIELD_NODES,  /* struct nodeset, as a kernel list of ids */
	FIELD_TOKENS, /* struct tokenset, as tokenset_format() has it */
	FIELD_OBJECT, /* a struct, by the rows in fields */
	FIELD_POINTER, /* pointer to a struct, by the rows in fields; NULL and optional: absent */
	FIELD_ARRAY,   /* structs in place, at most max; their number is the unsigned at count */
	FIELD_LIST,    /* pointer to structs; their number is the size_t at count */
	FIELD_MAP,     /* pointer to struct key_value, likewise; an object of strings */
	FIELD_STRINGS  /* pointer to const char *, likewise; null is "". Not written. */
};

struct field {
	const char *key;
	enum field_type type;
	size_t at;
	bool optional; /* may be absent: zeros; written unless it is a NULL string or pointer, an
			  empty array, list or FIELD_CHARS, an empty FIELD_CPUS or FIELD_NODES, a
			  FIELD_U64 or FIELD_I64 of 0, a FIELD_BOOL or FIELD_WHETHER of false, or
			  the first word of a FIELD_NAME */
	bool has_flag; /* the bool at `flag` says whether it is there at all */
	size_t flag, count;
	unsigned max;             /* FIELD_UNSIGNED: the largest value, 0: any */
	const char *const *words; /* FIELD_NAME: of its max values */
	/* FIELD_NAME: the value `newer` is written as the word of the value `older`, for readers
	 * that know no other; 0: none is. A FIELD_WHETHER in a later row says which of the two it
	 * is. */
	unsigned newer, older;
	const struct fields *fields;
	/* args_json.h */
	const char *go; /* its type there */
	bool map;       /* FIELD_LIST: {"cpu": 2} does as well as [{row 0: "cpu", row 1: 2}] */
};

struct fields {
	const struct field *row;
	size_t nr, size; /* rows; bytes of the struct */
	const char *go;  /* args_json.h: the struct's type there */
};
/* FIELD("qos", NAME, offsetof(struct pod, qos), .words = qos_words, .max = NR_QOS) */
#define FIELD(key_, type_, at_, ...)                                                               \
	{                                                                                          \
		.key = (key_), .type = FIELD_##type_, .at = (at_), ##__VA_ARGS__                   \
	}
#define FIELDS(rows, T)                                                                            \
	{                                                                                          \
		.row = (rows), .nr = sizeof(rows) / sizeof *(rows), .size = sizeof(T)              \
	}

/* *from as a JSON object, appended to *t; ids (NULL without FIELD_NODES and such) name the NUMA
 * nodes. What does not fit shows in t->cut. Each byte that is not UTF-8 becomes a question mark. */
void fields_write(
	struct text *t, const struct fields *f, const void *from, const struct node_ids *ids);
/* The string as JSON, appended likewise. */
void fields_write_string(struct text *t, const char *s);

#endif
