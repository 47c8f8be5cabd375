#ifndef NUMAFIT_CLI_OBJECT_YAML_H
#define NUMAFIT_CLI_OBJECT_YAML_H

#include <numafit/err.h>
#include <stddef.h>

/* A file of Kubernetes objects, as people write it for kubectl, as JSON: the API server's own form
 * of them. */

enum { OBJECT_YAML_BYTES_MAX = 4 << 20 };

/* The len bytes at text, of which each document that is not empty becomes an element of a JSON
 * list. What is not quoted, and is a number, true, false or null in JSON, is one there, too; all
 * else is a string. JSON is YAML, and comes out as it is. Anchors, aliases, and keys that are no
 * scalars are refused. *json is the caller's to free. 0; -E2BIG: too many bytes, or beyond
 * the limits of codec/flat_yaml.h; -EINVAL with the line. */
int object_yaml_to_json(const char *text, size_t len, char **json, struct err *e);

#endif
