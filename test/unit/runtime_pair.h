#ifndef RUNTIME_PAIR_H
#define RUNTIME_PAIR_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "nri_wire.h"
#include <nri/nri_pb.h>
#include <nri/runtime.h>
#include <nri/session.h>
#include <numafit/text.h>

enum { MANY = 1000, LOG = 4096 };

static void note(char *log, const char *word, const char *what)
{
	size_t len = strlen(log);

	if (len < LOG)
		(void)snprintf(log + len, LOG - len, "%s %s;", word, what);
}

/* A runtime and a plugin whose bytes go from one to the other in memory. */
struct pair {
	struct nri_runtime *runtime;
	struct nri_session *session;
	struct nri_handler handler;
	char calls[LOG];    /* calls of the plugin */
	char answered[LOG]; /* what the runtime was answered */
	size_t nr_running;
	uint32_t subscribed;
	size_t step; /* bytes that go over at a time; 0: all */
	struct nri_cpuset update;
	bool with_update;
};

static void on_configured(void *ctx, const char *name, const char *index, uint32_t events)
{
	struct pair *p = ctx;

	assert_string_equal(name, "numafit");
	assert_string_equal(index, "50");
	p->subscribed = events;
}

static void on_answered(void *ctx, enum nri_call call, const struct nri_answer *a)
{
	static const char *const names[] = {"synchronize", "run-pod", "create", "post-create",
		"post-start", "update", "stop", "remove", "stop-pod", "remove-pod"};
	char text[256];
	struct text t;

	text_init(&t, text, sizeof text);
	if (a->status)
		text_add(&t, "%d %s", a->status, a->message);
	if (*a->cpus || *a->mems)
		text_add(&t, "cpus %s mems %s", a->cpus, a->mems);
	for (size_t i = 0; i < a->nr_annotations; i++)
		text_add(&t, " %s=%s", a->annotations[i].key, a->annotations[i].value);
	for (size_t i = 0; i < a->nr_updates; i++)
		text_add(&t, " set %s %s %s%s", a->updates[i].container_id, a->updates[i].cpus,
			a->updates[i].mems, a->updates[i].ignore_failure ? " or not" : "");
	note(((struct pair *)ctx)->answered, names[call], text);
}

static struct nri_container container(const char *id, unsigned cpus)
{
	return (struct nri_container){.sandbox_id = "s1",
		.pod_uid = "u1",
		.pod_ns = "default",
		.pod_name = "pod1",
		.cgroup_parent = "/kubepods/podu1",
		.id = id,
		.name = "main",
		.cpus = "",
		.mems = "",
		.resources = {.has_shares = true, .cpu_shares = cpus * 1024u}};
}

static const struct nri_runtime_options variants[] = {
	{"containerd", "v2.3.4", false, 0},
	{"containerd", "v1.7.24", true, 0},
	{"containerd", "v2.3.4", false, 7},
	{"cri-o", "1.34.0", true, 1},
};
enum { NR_VARIANTS = sizeof variants / sizeof *variants };

#endif
