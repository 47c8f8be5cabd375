#ifndef NUMAFIT_CODEC_FAMILIES_JSON_H
#define NUMAFIT_CODEC_FAMILIES_JSON_H

#include <codec/policy_json.h>

/* The question `families`: the same as merge (merge_json.h), with what each manager's hints follow
 * from instead of the hints: "families" in place of "providers", each of them one of
 *   {"kind": "cpu", "cap": {id: CPUs}, "avail": {id: CPUs}, "request": CPUs}
 *   {"kind": "mem", "state": {id: {"assign": blocks, "cells": [ids], "alloc": {type: bytes},
 *     "free": {type: bytes}}}, "request": {type: bytes}}
 *   {"kind": "device" or "dev", "all": {device: [ids]|null}, "avail": [devices], "request": nr} */

struct families_question {
	struct policy_question put_to;
	const struct family *families;
	size_t nr_families;
};

/* Read it from the object; families and what they point to live in *a. Returns as
 * merge_json_read() does. */
int families_json_read(
	struct json_t *item, struct arena *a, struct families_question *q, struct err *e);

/* Read it, merge, and give the answer as *result (a new reference). 0; -EINVAL, -ERANGE, -ENOMEM:
 * no answer, the text says why. */
int families_json_answer(
	struct json_t *item, struct arena *a, struct json_t **result, struct err *e);

#endif
