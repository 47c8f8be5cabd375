/* An NRI plugin on numafitd's own session that pins every container to CPU 0 and NUMA node 0: what
 * an answer costs that needs no decision. usage: constant SOCKET */
#include <nri/nri_conn.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void synchronize(void *ctx, const struct nri_inventory *what, struct nri_reply *reply)
{
	(void)ctx, (void)what, (void)reply;
}

static int run_pod(void *ctx, const struct pod *pod, struct err *e)
{
	(void)ctx, (void)pod, (void)e;
	return 0;
}

static int create(void *ctx, const struct request *req, struct nri_reply *reply, struct err *e)
{
	(void)ctx, (void)req, (void)e;
	reply->adjust = true;
	reply->cpus = "0";
	reply->mems = "0";
	return 0;
}

static void update_or_stop(void *ctx, const struct request *req, struct nri_reply *reply)
{
	(void)ctx, (void)req, (void)reply;
}

static void hear(void *ctx, const struct request *req)
{
	(void)ctx, (void)req;
}

static void remove_pod(void *ctx, const struct pod *pod)
{
	(void)ctx, (void)pod;
}

static void stop(void *ctx)
{
	loop_stop(ctx);
}

int main(int argc, char **argv)
{
	static const struct nri_handler handler = {
		.synchronize = synchronize,
		.run_pod = run_pod,
		.create = create,
		.update = update_or_stop,
		.stop = update_or_stop,
		.remove = hear,
		.live = hear,
		.started = hear,
		.remove_pod = remove_pod,
	};

	if (argc != 2) {
		(void)fputs("usage: constant SOCKET\n", stderr);
		return EXIT_FAILURE;
	}
	struct loop *l = loop_new();
	struct nri_conn *c = nri_conn_new(l,
		&(struct nri_conn_options){
			.plugin = {.name = "constant", .index = "50"}, .socket = argv[1]},
		&handler);

	if (loop_on_signal(l, SIGTERM, stop, l) < 0)
		return EXIT_FAILURE;
	loop_run(l);
	nri_conn_close(c);
	loop_free(l);
	return EXIT_SUCCESS;
}
