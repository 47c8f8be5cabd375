#include <daemon-files/cdi_json.h>
#include <kubelet/dra_plugin.h>
#include <kubelet/dra_registration.h>

#include <numafit/mem.h>
#include <numafit/text.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Our side of the interop tests of what a kubelet and a container runtime see of claims: a driver
 * of one device (src/kubelet/dra_*), which prints what happens to its registration. What it answers
 * depends on the claim's name: "refused", "slow", "ill" (from its Prepare to its Unprepare the
 * device is unhealthy), or any other. And the files of a claim (src/daemon-files/cdi_json.h).
 * usage: dra_peer serve REGISTRY DIRECTORY
 *        dra_peer write CDI METADATA      the files of a claim of three shares */

enum { REQUEST_MAX = 4 << 20, SLOW_MS = 100, HEALTH_TIMEOUT_S = 60, MS = 1000, CDI_MAX = 256 };

struct peer {
	struct loop *l;
	struct dra_plugin *plugin;
	bool ill;
};

/* A Prepare that is answered later. */
struct slow {
	struct loop_timer *timer;
	struct dra_job *job;
	char cdi[CDI_MAX];
};

static void answer_prepared(struct dra_job *job, const char *cdi)
{
	static const char *const request = "numa";
	struct dra_device device = {.request = &request,
		.nr_requests = 1,
		.pool = "n1",
		.device = "numa0",
		.cdi = &cdi,
		.nr_cdi = 1,
		.share_id = "6d5b1c4e-0000-4000-8000-000000000001"};

	dra_prepared(job, &device, 1);
}

static void answer_slow(void *ctx)
{
	struct slow *s = ctx;

	answer_prepared(s->job, s->cdi);
	loop_timer_close(s->timer);
	free(s);
}

static void answer_later(struct peer *p, struct dra_job *job, const char *cdi)
{
	struct slow *s = xcalloc(1, sizeof *s);

	s->job = job;
	(void)text_copy(s->cdi, sizeof s->cdi, cdi);
	s->timer = loop_timer_new(p->l, answer_slow, s);
	loop_timer_set(s->timer, SLOW_MS);
}

static void set_health(struct peer *p, const struct dra_claim_ref *ref, bool ill)
{
	if (!text_equal(ref->name, "ill"))
		return;
	p->ill = ill;
	dra_plugin_health_changed(p->plugin);
}

static void prepare(void *ctx, struct dra_job *job, const struct dra_claim_ref *ref)
{
	struct peer *p = ctx;
	char cdi[CDI_MAX];

	(void)snprintf(cdi, sizeof cdi, "numafit.io/claim=%s-0", ref->uid);
	set_health(p, ref, true);
	if (text_equal(ref->name, "refused"))
		dra_failed(job, "no room on NUMA node 0");
	else if (text_equal(ref->name, "slow"))
		answer_later(p, job, cdi);
	else
		answer_prepared(job, cdi);
}

static void unprepare(void *ctx, struct dra_job *job, const struct dra_claim_ref *ref)
{
	set_health(ctx, ref, false);
	if (text_equal(ref->name, "refused"))
		dra_failed(job, "it is in use");
	else
		dra_unprepared(job);
}

static size_t health(void *ctx, struct arena *a, struct dra_health **out)
{
	struct peer *p = ctx;

	*out = arena_array(a, 1, sizeof **out);
	if (!*out)
		return 0;
	**out = (struct dra_health){
		"n1", "numa0", !p->ill, loop_wall_ms() / MS, HEALTH_TIMEOUT_S, NULL};
	return 1;
}

static void print_event(void *ctx, bool bad, const char *event, const char *text)
{
	(void)ctx;
	(void)printf("%s %s %s\n", event, bad ? "bad" : "good", text);
	(void)fflush(stdout);
}

static void stop(void *ctx)
{
	loop_stop(ctx);
}

static int serve(const char *registry, const char *directory)
{
	struct rpc_server_options options = {.request_max = REQUEST_MAX};
	struct peer peer = {0};
	struct dra_plugin_handler handler = {&peer, prepare, unprepare, health};
	struct dra_registration_handler events = {NULL, print_event};
	struct dra_registration_options where = {
		.registry = registry, .directory = directory, .driver = CLAIM_DRIVER};
	struct err e;

	peer.l = loop_new();
	(void)loop_on_signal(peer.l, SIGTERM, stop, peer.l);
	struct rpc_pump *pump = rpc_pump_new(peer.l, &e);
	if (!pump)
		return 1;
	struct rpc_server *server = rpc_server_new(pump, &options);
	peer.plugin = dra_plugin_new(server, &handler);
	struct dra_registration *r = dra_registration_new(peer.l, server, &where, &events);
	loop_run(peer.l);
	dra_registration_close(r);
	rpc_server_free(server);
	dra_plugin_free(peer.plugin);
	rpc_pump_free(pump);
	loop_free(peer.l);
	return 0;
}

static int write_files(const char *cdi, const char *metadata)
{
	static const struct claim_share share[] = {
		{.request = "numa", .pool = "n1", .device = "numa2"},
		{.request = "other/large", .pool = "n1", .device = "numa3"},
		{.request = "numa", .pool = "n1", .device = "numa8"},
	};
	static const struct resource_claim claim = {.uid = "a1c3ee55-4ca0-4fb0-9732-1e353b9cc659",
		.ns = "default",
		.name = "pod-numa-x7k2p",
		.pod_claim_name = "mine",
		.nr = sizeof share / sizeof share[0],
		.share = share};
	static const unsigned node[] = {2, 3, 8};
	struct cdi_options o = {cdi, metadata, "n1"};
	struct err e = {0};

	if (cdi_write(&o, &claim, node, &e) == 0)
		return 0;
	(void)fprintf(stderr, "%s\n", e.text);
	return 1;
}

int main(int argc, char **argv)
{
	enum { NR_ARGUMENTS = 4 };
	static const struct {
		const char *name;
		int (*run)(const char *first, const char *second);
	} verbs[] = {{"serve", serve}, {"write", write_files}};

	for (size_t i = 0; argc == NR_ARGUMENTS && i < sizeof verbs / sizeof verbs[0]; i++)
		if (text_equal(verbs[i].name, argv[1]))
			return verbs[i].run(argv[2], argv[3]);
	(void)fprintf(stderr, "usage: dra_peer serve REGISTRY DIRECTORY | write CDI METADATA\n");
	return 2;
}
