#ifndef NUMAFIT_QUESTIONS_FAMILIES_JSON_H
#define NUMAFIT_QUESTIONS_FAMILIES_JSON_H

#include <questions/policy_json.h>

/* The question `families`: what the hints of each manager follow from, for the Topology Manager's
 * policy. Beside the keys of policy_json.h it has a list "families", each of them one of
 *   {"kind": "cpu", "cap": {id: CPUs}, "avail": {id: CPUs}, "request": CPUs}
 *   {"kind": "mem", "state": {id: {"assign": blocks, "cells": [ids], "alloc": {type: bytes},
 *     "free": {type: bytes}}}, "request": {type: bytes}}
 *   {"kind": "device" or "dev", "all": {device: [ids]|null}, "avail": [devices], "request": nr}
 *   {"kind": "rule", "ground": [ids]}    a family itself (family_rule_json.h)
 *   {"kind": "any"}, {"kind": "none"}    no preference; cannot be satisfied
 * The first three become what the managers make of them (cpus.h, memory.h, devices.h). Besides they
 * may have
 *   cpu     "reusable": {id: CPUs}       held by the pod's earlier init containers, not in avail
 *           "sockets": {id: socket}      align-by-socket is on
 *   mem     "reusable": [{"nodes": [ids], "bytes": {type: bytes}}]
 *   device  "reusable": [devices]
 * One family at most prefers a number of sockets. */

struct families_question {
	struct policy_question put_to;
	const struct family *families;
	size_t nr_families;
};

/* Read it from the object; families and what they point to live in *a. 0; 1: the kubelet would not
 * start with these options, its words are in *e; -EINVAL, -ERANGE, -ENOMEM: cannot be read, the
 * text leads to the place. *q is written only on 0. */
int families_json_read(
	struct json_t *item, struct arena *a, struct families_question *q, struct err *e);

/* Read it, merge, and give the answer as *result (a new reference). 0; -EINVAL, -ERANGE, -ENOMEM:
 * no answer, the text says why. */
int families_json_answer(
	struct json_t *item, struct arena *a, struct json_t **result, struct err *e);

#endif
