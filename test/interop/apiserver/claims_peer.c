#include <apiserver/claim_get.h>
#include <apiserver/slice_publisher.h>

#include <codec/fields_json.h>
#include <numafit/mem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Our side of the tests of claims against a real API server: it keeps a ResourceSlice there until
 * it is killed, and prints events; or reads a claim and prints what it has. usage: claims_peer
 * publish KUBECONFIG NODE CPUS...    of a NUMA node each; -CPUS: it is closed claims_peer get
 * KUBECONFIG NAMESPACE NAME UID */

enum { INTERVAL_MS = 50, PUBLISH_ARGS = 5, GET_ARGS = 6, SOCKET_NODES = 2 };

struct peer {
	struct loop *l;
	char **cpus; /* NULL ends them */
	int rc;
};

static void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	(void)ctx;
	(void)printf("%s%s: %s\n", event, bad ? "!" : "", text);
	(void)fflush(stdout);
}

static size_t wanted(void *ctx, struct slice_node *out)
{
	const struct peer *p = ctx;
	size_t nr = 0;

	for (; p->cpus[nr] && nr < SLICE_DEVICES_MAX; nr++) {
		long cpus = strtol(p->cpus[nr], NULL, 10);

		out[nr] = (struct slice_node){.node_id = (unsigned)nr,
			.socket = (unsigned)nr / SOCKET_NODES,
			.nr_caches = 2,
			.threads = 2,
			.cpus = (uint64_t)labs(cpus),
			.nr_memory = 3,
			.memory = {{0, (UINT64_C(62) << 30) + 1}, {2 << 20, 64 << 20},
				{1 << 30, 0}},
			.closed = cpus < 0};
	}
	return nr;
}

static void publish(struct peer *p, struct api *a, char **argv)
{
	const struct slice_publisher_options o = {.node = argv[0], .interval_ms = INTERVAL_MS};
	const struct slice_publisher_handler handler = {p, wanted, on_event};

	p->cpus = &argv[1];
	struct slice_publisher *publisher = slice_publisher_new(p->l, a, &o, &handler);
	loop_run(p->l); /* until it is killed */
	slice_publisher_close(publisher);
}

static void print_share(const struct claim_share *s)
{
	(void)printf("share request=%s pool=%s device=%s id=%s cpus=%llu", s->request, s->pool,
		s->device, s->share_id ? s->share_id : "", (unsigned long long)s->cpus);
	for (unsigned i = 0; i < s->nr_memory; i++)
		(void)printf(" memory%llu=%llu", (unsigned long long)s->memory[i].page_bytes,
			(unsigned long long)s->memory[i].bytes);
	(void)printf("%s%s\n", s->whole_cores ? " wholeCores" : "", s->shared ? " shared" : "");
}

static void on_claim(void *ctx, const struct claim_answer *answer)
{
	static const char *const words[NR_CLAIM_GOT] = {"got", "gone", "not now", "refused"};
	struct peer *p = ctx;

	(void)printf("%s: %s\n", words[answer->got], answer->text);
	if (answer->got == CLAIM_GOT) {
		const struct resource_claim *c = &answer->claim;

		(void)printf("claim %s/%s uid=%s pod-claim-name=%s\n", c->ns, c->name, c->uid,
			c->pod_claim_name ? c->pod_claim_name : "");
		for (size_t i = 0; i < c->nr; i++)
			print_share(&c->share[i]);
		for (size_t i = 0; i < c->nr_pods; i++)
			(void)printf("pod %s\n", c->pod_uid[i]);
	}
	p->rc = 0;
	loop_stop(p->l);
}

static void get(struct peer *p, struct api *a, char **argv)
{
	(void)claim_get(a, argv[0], argv[1], argv[2], p, on_claim);
	loop_run(p->l);
}

int main(int argc, char **argv)
{
	struct peer p = {.rc = EXIT_FAILURE};
	bool publishes = argc >= PUBLISH_ARGS && !strcmp(argv[1], "publish");
	struct api_options o = {.user_agent = "claims-peer", .ctx = &p, .on_event = on_event};
	struct err e = {0};

	if (!publishes && (argc != GET_ARGS || strcmp(argv[1], "get") != 0)) {
		(void)fprintf(stderr, "usage: claims_peer publish KUBECONFIG NODE CPUS...\n"
				      "       claims_peer get KUBECONFIG NAMESPACE NAME UID\n");
		return EXIT_FAILURE;
	}
	json_seed();
	o.kubeconfig = argv[2];
	p.l = loop_new();
	struct api *a = api_new(p.l, &o, &e);
	if (!a)
		(void)fprintf(stderr, "%s\n", e.text);
	else if (publishes)
		publish(&p, a, &argv[3]);
	else
		get(&p, a, &argv[3]);
	api_free(a);
	loop_free(p.l);
	return p.rc;
}
