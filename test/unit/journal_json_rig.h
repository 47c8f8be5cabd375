#ifndef NUMAFIT_TEST_JOURNAL_JSON_RIG_H
#define NUMAFIT_TEST_JOURNAL_JSON_RIG_H

#include <codec/journal_json.h>

#include <errno.h>
#include <numafit/text.h>
#include <numafit/version.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A record with every member filled, and how two are compared. */

enum { LINE_MAX_BYTES = 256 << 10, RANDOM_RECORDS = 3000, ARENA_BYTES = 1 << 20 };
static char line[LINE_MAX_BYTES];

static const struct request web = {
	.container_id = "c1",
	.ask.name = "web",
	.pod = {.sandbox_id = "s1",
		.uid = "u1",
		.ns = "default",
		.name = "p1",
		.qos = QOS_GUARANTEED},
	.created_at_ns = 7,
	.ask.cpu_milli = 2000,
	.ask.cpu_limit_milli = 2000,
	.ask.nr_memory = 1,
	.ask.memory = {{0, 1 << 20}},
	.cpus = "",
	.mems = "",
	.placement = "not kept",
};
static const struct decision granted = {
	.admit = true,
	.policy = POLICY_RESTRICTED,
	.exclusive = true,
	.cpus = {{0xc}},
	.mems = {2},
	.has_affinity = true,
	.nodes = {2},
	.preferred = true,
	.nr_blocks = 1,
	.blocks = {{0, {2}, 1 << 20}},
};
static const struct record grant = {3, 1700000000000, RECORD_GRANT, "create", "c1", &web, &granted,
	NULL, NULL, NULL, 0, NULL, NULL, NULL, {{3}}, false};

#define START "{\"seq\":1,\"time_ms\":1,\"cause\":\"stop\",\"container_id\":\"c1\",\"pool\":\"0\","
static const struct {
	const char *line;
	int rc;
	const char *says;
} refused[] = {
	{"", -EINVAL, "not JSON"},
	{"[1]", -EINVAL, "should be an object, is a list"},
	{"{\"time_ms\":1}", -EINVAL, "seq is missing"},
	{START "\"op\":\"take\"}", -EINVAL, "op: there is no \"take\""},
	{START "\"op\":\"quota\"}", -EINVAL, "op: \"quota\" has a quota"},
	{START "\"op\":\"live\",\"quota\":{\"cgroup\":\"/p\",\"was\":\"\"}}", -EINVAL,
		"op: \"live\" does not have a quota"},
	{START "\"op\":\"quiet\"}", -EINVAL, "op: \"quiet\" has what was kept"},
	{START "\"op\":\"live\",\"quiet\":{\"was\":\"0-3\"}}", -EINVAL,
		"op: \"live\" does not have what was kept"},
	{START "\"op\":\"grant\"}", -EINVAL, "\"grant\" has a request and a decision"},
	{START "\"op\":\"release\",\"request\":{}}", -EINVAL, "request: container_name is missing"},
	{"{\"seq\":\"18446744073709551616\"}", -ERANGE, "seq: "},
	{"{\"seq\":1,\"time_ms\":\"1\"}", -EINVAL, "time_ms: should be an integer, is a string"},
	{START "\"op\":\"live\",\"op\":\"live\"}", -EINVAL, "duplicate"},
};

/* grant_line with one thing changed */
static const struct {
	const char *from, *to;
	int rc;
	const char *says;
} changed[] = {
	{"\"op\":\"grant\"", "\"op\":\"refuse\"", -EINVAL, "admit contradicts op \"refuse\""},
	{"\"op\":\"grant\"", "\"op\":\"release\"", -EINVAL, "\"release\" does not have a request"},
	{"\"kind\":0", "\"kind\":8", -ERANGE, "decision: blocks: element 0: kind: 8 is above 7"},
	{"\"pool\":", "\"pod\":{\"pod_level\":false,\"containers\":[]},\"pool\":", -EINVAL,
		"op: \"grant\" does not have a pod"},
	{"\"mems\":\"8\"", "\"mems\":\"9\"", -ENOENT, "decision: mems: there is no NUMA node 9"},
	{"\"cpus\":\"2-3\"", "\"cpus\":\"3-2\"", -EINVAL, "decision: cpus: list"},
	{"\"message\":\"\"", "\"message\":\"\",\"reason\":\"Bad\"", -EINVAL,
		"reason: there is no \"Bad\""},
	{"\"qos\":\"Guaranteed\"", "\"qos\":\"guaranteed\"", -EINVAL,
		"request: qos: there is no \"guaranteed\""},
	{"\"memory\":[", "\"memory\":[1,", -EINVAL,
		"request: memory: element 0: should be an object, is an integer"},
	{"\"memory\":[", "\"memory\":[0,0,0,0,0,0,0,0,", -ERANGE,
		"memory: has 9 elements, more than 8"},
};

/* Of another numafit, with keys that this one does not know; or no header at all. */
static const struct {
	const char *line;
	int rc;
	const char *says;
} headers[] = {
	{"{\"journal\":1,\"version\":\"9\",\"boot_id\":\"b\",\"machine\":\"m\","
	 "\"fingerprint\":1,\"settings\":{}}",
		-ENOTSUP, "it has format 1, numafit " NUMAFIT_VERSION " reads format 3 only"},
	{"{\"journal\":4}", -ENOTSUP, "it has format 4"},
	{"{\"seq\":1}", -EINVAL, "journal is missing"},
	{"{\"journal\":3,\"version\":\"1\",\"boot_id\":\"b\",\"machine\":\"m\","
	 "\"fingerprint\":4294967296,\"settings\":{}}",
		-ERANGE, "fingerprint: "},
	{"{\"journal\":3,\"version\":\"1\",\"boot_id\":\"b\",\"machine\":\"m\","
	 "\"fingerprint\":1,\"settings\":{\"mode\":1}}",
		-EINVAL, "settings: mode: "},
	{"{\"journal\":3,\"version\":\"1\",\"boot_id\":\"b\",\"machine\":\"m\","
	 "\"fingerprint\":1,\"settings\":{}}",
		-EINVAL, "topology is missing"},
};

#endif
