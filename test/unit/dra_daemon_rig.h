#ifndef NUMAFIT_TEST_DRA_DAEMON_RIG_H
#define NUMAFIT_TEST_DRA_DAEMON_RIG_H

#include <numafitd/cluster.h>
#include <numafitd/daemon.h>
#include <numafitd/services_state.h>

#include <codec/machine_text.h>
#include <daemon-files/config.h>
#include <dra-driver/driver_state.h>
#include <kubelet/grpc_client.h>
#include <numafit-cli/journal_fold.h>
#include <numafit/shares.h>

#include "fake_runtime.h"

#include "dra_wire.h"
#include "fake_claims.h"

#include <ftw.h>
#include <sys/stat.h>

/* The daemon's parts in one process, started as its main() starts them: with an API server that has
 * ResourceClaims, a kubelet that calls the DRA driver over its socket, and a container runtime. */

enum { CLAIMS = 6, BOXES = 6, CALLS = 16, POLL_MS = 2, ARENA_BYTES = 1 << 20, PATH_BYTES = 300 };

static const char machine[] = "machine two\n"
			      "node 0 memory 8Gi cpus 0-7\n"
			      "node 4 memory 8Gi cpus 8-15 socket 1\n";

/* One call of the kubelet. */
struct dra_call {
	struct rig *r;
	struct rpc_call *call; /* NULL: it is over */
	bool over;
	enum rpc_code code;
	unsigned char message[4096];
	size_t len;
	unsigned lines_then; /* of the journal, that prepare a share, when the answer came */
};

struct box {
	struct fake_container c;
	const char *cdi[SHARES];
	size_t nr_cdi;
};

struct rig {
	struct daemon d;
	struct config config;
	char dir[64], socket[96], plugin[160];
	struct fake_api api;
	struct api_claim claim[CLAIMS];
	bool silent; /* a GET of a claim is not answered: it is kept */
	struct fake_ask *kept;
	int status; /* a GET of a claim is answered with that; 0: it is not */
	unsigned claims_read;
	char slice[4096]; /* that was written last */
	unsigned slices_written;
	struct fake_runtime runtime;
	bool synchronized;
	struct box box[BOXES], *asked;
	unsigned outstanding;
	char refusal[512];      /* of the last create; "": it was admitted */
	struct box *comes_amid; /* it is created before UpdateContainers has an effect */
	struct dra_call call[CALLS];
	unsigned nr_calls;
	struct arena a;
	struct loop_timer *poll;
	const char *prepare_wait; /* NULL: the default */
	const char *order;        /* likewise */
	const char *pod;          /* that the API server has, in JSON; NULL: nobody watches pods */
};

/* Whatever happens, the condition is looked at every few ms. */
#define UNTIL(r, condition)                                                                        \
	do {                                                                                       \
		while (!(condition)) {                                                             \
			loop_timer_set((r)->poll, POLL_MS);                                        \
			loop_run((r)->d.loop);                                                     \
		}                                                                                  \
	} while (0)

static inline void on_poll(void *ctx)
{
	struct rig *r = ctx;

	loop_stop(r->d.loop);
}

/* Some turns of the loop, for what is not to happen. */
static inline void let_pass(struct rig *r, unsigned ms)
{
	const uint64_t until = loop_monotonic_ms() + ms;

	UNTIL(r, loop_monotonic_ms() >= until);
}

/* Files */

static inline const char *path_of(const struct rig *r, const char *name)
{
	static char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, "%s/%s", r->dir, name);
	return path;
}

static inline bool is_there(const struct rig *r, const char *name)
{
	return access(path_of(r, name), F_OK) == 0;
}

static inline void make_directory(const struct rig *r, const char *name)
{
	assert_int_equal(mkdir(path_of(r, name), 0755), 0);
}

static inline void write_text(const struct rig *r, const char *name, const char *text)
{
	FILE *f = fopen(path_of(r, name), "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* How many lines of the file have these words. */
static inline unsigned count_lines(const struct rig *r, const char *name, const char *words)
{
	char line[8192];
	unsigned nr = 0;
	FILE *f = fopen(path_of(r, name), "r");

	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		nr += strstr(line, words) != NULL;
	(void)fclose(f);
	return nr;
}

/* The CDI file of the claim, by its uid. */
static inline const char *cdi_file(const char *uid)
{
	static char name[128];

	(void)snprintf(name, sizeof name, "cdi/numafit.io-claim_%s.json", uid);
	return name;
}

static inline const char *metadata_of(const char *uid)
{
	static char name[128];

	(void)snprintf(name, sizeof name, "kubelet/plugins/numafit.io/metadata/%s", uid);
	return name;
}

/* Journal lines that hold a share. */
static inline unsigned count_prepared(const struct rig *r)
{
	return count_lines(r, "journal", "\"prepare\"");
}

/* The API server */

static inline void serve_claim(struct rig *r, struct fake_ask *q, const char *name)
{
	if (r->status) {
		api_status_answer(q, r->status, "not now");
		return;
	}
	for (unsigned i = 0; i < CLAIMS; i++)
		if (r->claim[i].uid && text_equal(r->claim[i].name, name)) {
			api_claim_answer(q, &r->claim[i], r->d.node_name);
			return;
		}
	api_status_answer(q, 404, "resourceclaims not found");
}

static inline void serve_slices(struct rig *r, struct fake_ask *q)
{
	if (text_equal(q->method, "GET")) {
		api_no_slices_answer(q);
		return;
	}
	(void)text_copy(r->slice, sizeof r->slice, q->body);
	r->slices_written++;
	api_status_answer(q, 500, "it is not passed on");
}

static inline void serve(void *ctx, struct fake_ask *q)
{
	const char *claim = text_behind(q->path, API_CLAIMS);
	struct rig *r = ctx;

	if (claim) {
		assert_string_equal(q->method, "GET");
		r->claims_read++;
		if (r->silent)
			r->kept = q;
		else
			serve_claim(r, q, claim);
	} else if (strstr(q->path, "/resourceslices")) {
		serve_slices(r, q);
	} else if (strstr(q->path, "/api/v1/nodes/n1")) {
		api_node_answer(q);
	} else if (r->pod && text_behind(q->path, "/api/v1/pods?")) {
		api_pod_answer(q, r->pod);
	} else {
		fail_msg("%s %s", q->method, q->path);
	}
}

/* The GET that is kept is answered, unless its connection is gone. */
static inline void answer_kept(struct rig *r)
{
	r->silent = false;
	for (struct fake_ask *q = r->api.first; q; q = q->next)
		if (q == r->kept) {
			serve_claim(r, q, strrchr(q->path, '/') + 1);
			break;
		}
	r->kept = NULL;
}

/* The kubelet */

static inline void on_message(void *ctx, const void *data, size_t len)
{
	struct dra_call *c = ctx;

	assert_true(len <= sizeof c->message);
	if (len)
		memcpy(c->message, data, len);
	c->len = len;
	c->lines_then = count_prepared(c->r);
}

static inline void on_over(void *ctx, enum rpc_code code, const char *text)
{
	struct dra_call *c = ctx;

	(void)text;
	c->call = NULL;
	c->code = code;
	c->over = true;
}

static inline struct dra_call *begin_call(
	struct rig *r, const char *method, const struct api_claim *claim)
{
	const struct dra_claim_ref ref = {"shop", claim->uid, claim->name};
	const struct blob message = dra_wire_request(&r->a, &ref, 1);
	const struct rpc_request request = {.socket = r->plugin,
		.method = method,
		.kind = RPC_UNARY,
		.data = message.data,
		.len = message.len};
	struct dra_call *c = &r->call[r->nr_calls++];
	const struct rpc_call_events events = {c, on_message, on_over};
	struct err e = {0};

	assert_true(r->nr_calls <= CALLS);
	*c = (struct dra_call){.r = r};
	/* with two pumps in one process gRPC takes a second to end a server */
	c->call = rpc_call_start(r->d.services->pump, &request, &events, &e);
	assert_string_equal(e.text, "");
	return c;
}

static inline struct dra_call *begin_prepare(struct rig *r, const struct api_claim *claim)
{
	return begin_call(r, DRA_PLUGIN_PATH("v1", "NodePrepareResources"), claim);
}

static inline struct dra_call *begin_unprepare(struct rig *r, const struct api_claim *claim)
{
	return begin_call(r, DRA_PLUGIN_PATH("v1", "NodeUnprepareResources"), claim);
}

static inline struct dra_call *prepare(struct rig *r, const struct api_claim *claim)
{
	struct dra_call *c = begin_prepare(r, claim);

	UNTIL(r, c->over);
	return c;
}

static inline struct dra_call *unprepare(struct rig *r, const struct api_claim *claim)
{
	struct dra_call *c = begin_unprepare(r, claim);

	UNTIL(r, c->over);
	return c;
}

/* The call was answered, and what is said of its claim is these bytes. */
static inline void assert_answer(
	struct rig *r, const struct dra_call *c, const char *uid, struct blob want)
{
	const struct dra_claim_answer answer = {uid, want};
	struct blob all;

	assert_true(c->over);
	assert_int_equal(c->code, RPC_OK);
	assert_int_equal(dra_answers_encode(&answer, 1, &r->a, &all, NULL), 0);
	if (c->len != all.len || memcmp(c->message, all.data, all.len) != 0)
		fail_msg("the answer is another one: %.*s", (int)c->len, (const char *)c->message);
}

static inline void assert_prepared(
	struct rig *r, const struct dra_call *c, const struct api_claim *claim)
{
	const char *request = claim->request ? claim->request : "cpus";
	char cdi[SHARES][128], id[SHARES][64];
	const char *cdi_list[SHARES];
	struct dra_device device[SHARES];
	struct blob want;
	size_t nr = 0;

	for (; nr < SHARES && claim->device[nr]; nr++) {
		(void)snprintf(cdi[nr], sizeof cdi[nr], "numafit.io/claim=%s-%zu", claim->uid, nr);
		(void)snprintf(id[nr], sizeof id[nr], "share-%s-%zu", claim->uid, nr);
		cdi_list[nr] = cdi[nr];
		device[nr] = (struct dra_device){.request = &request,
			.nr_requests = 1,
			.pool = "n1",
			.device = claim->device[nr],
			.cdi = &cdi_list[nr],
			.nr_cdi = 1,
			.share_id = id[nr]};
	}
	assert_int_equal(dra_prepared_encode(device, nr, DRA_V1, &r->a, &want, NULL), 0);
	assert_answer(r, c, claim->uid, want);
}

static inline void assert_unprepared(struct rig *r, const struct dra_call *c, const char *uid)
{
	assert_answer(r, c, uid, (struct blob){0});
}

/* The call was answered, and its claim failed with these words. */
static inline void assert_failed(const struct dra_call *c, const char *words)
{
	assert_true(c->over);
	assert_int_equal(c->code, RPC_OK);
	if (!memmem(c->message, c->len, words, strlen(words)))
		fail_msg("not \"%s\": %.*s", words, (int)c->len, (const char *)c->message);
	assert_non_null(memmem(c->message, c->len, "numafit: ", strlen("numafit: ")));
	assert_null(memmem(c->message, c->len, "numafit: numafit: ", strlen("numafit: numafit: ")));
}

/* The time of the claim's task is up, as if the clock had gone on. */
static inline void time_is_up(struct rig *r, const char *uid)
{
	struct dra *v = r->d.dra;

	for (size_t i = 0; i < v->tasks.nr; i++)
		if (text_equal(v->tasks.at[i]->uid, uid))
			v->tasks.at[i]->until_ms = loop_monotonic_ms();
	loop_timer_set(v->look, 1);
}

/* The runtime */

static inline void on_configured(void *ctx, const char *name, const char *index, uint32_t events);

static inline struct nri_container shown(const struct box *b, struct key_value annotation[2])
{
	struct nri_container c = fake_container_shown(&b->c, annotation);

	c.pod_ns = "shop";
	c.cdi = b->cdi;
	c.nr_cdi = b->nr_cdi;
	return c;
}

static inline void on_answered(void *ctx, enum nri_call call, const struct nri_answer *a)
{
	struct rig *r = ctx;

	for (size_t i = 0; i < a->nr_updates; i++)
		for (unsigned k = 0; k < BOXES; k++)
			if (r->box[k].c.runs &&
				text_equal(r->box[k].c.id, a->updates[i].container_id))
				fake_container_update(&r->box[k].c, &a->updates[i]);
	if (call == NRI_CALL_SYNCHRONIZE) {
		r->synchronized = true;
		return;
	}
	r->outstanding--;
	if (call == NRI_CALL_CREATE || call == NRI_CALL_RUN_POD)
		(void)text_copy(r->refusal, sizeof r->refusal, a->status ? a->message : "");
	if (call == NRI_CALL_CREATE && !a->status)
		fake_container_start(&r->asked->c, a);
}

static inline void send_call(struct rig *r, enum nri_call what, struct box *b)
{
	struct key_value annotation[2];
	const struct nri_container c = shown(b, annotation);

	r->outstanding++;
	r->asked = b;
	fake_runtime_call(&r->runtime, what, &c);
}

/* UpdateContainers */
static inline bool on_set(void *ctx, const struct nri_update *updates, size_t nr)
{
	struct rig *r = ctx;

	if (r->comes_amid) {
		send_call(r, NRI_CALL_CREATE, steal(r->comes_amid));
		return true;
	}
	for (size_t i = 0; i < nr; i++)
		for (unsigned k = 0; k < BOXES; k++)
			if (r->box[k].c.runs && text_equal(r->box[k].c.id, updates[i].container_id))
				fake_container_update(&r->box[k].c, &updates[i]);
	return true;
}

static inline void on_configured(void *ctx, const char *name, const char *index, uint32_t events)
{
	struct rig *r = ctx;
	struct nri_container list[BOXES];
	struct key_value annotation[BOXES][2];
	size_t nr = 0;

	(void)name, (void)index, (void)events;
	for (unsigned i = 0; i < BOXES; i++)
		if (r->box[i].c.runs) {
			list[nr] = shown(&r->box[i], annotation[nr]);
			nr++;
		}
	nri_runtime_synchronize(r->runtime.nri, list, nr);
}

static inline void runtime_calls(struct rig *r, enum nri_call what, struct box *b)
{
	send_call(r, what, b);
	UNTIL(r, !r->outstanding);
}

static inline struct box *name_box(
	struct rig *r, unsigned i, const char *pod, unsigned cpus, const char *cdi)
{
	struct box *b = &r->box[i];

	*b = (struct box){
		.c.cpu_milli = cpus * FAKE_MILLI_PER_CPU, .cdi = {cdi}, .nr_cdi = cdi != NULL};
	(void)snprintf(b->c.id, sizeof b->c.id, "c%u", i);
	(void)snprintf(b->c.pod, sizeof b->c.pod, "%s", pod);
	return b;
}

static inline struct box *create(
	struct rig *r, unsigned i, const char *pod, unsigned cpus, const char *cdi)
{
	struct box *b = name_box(r, i, pod, cpus, cdi);

	runtime_calls(r, NRI_CALL_CREATE, b);
	if (!*r->refusal)
		runtime_calls(r, NRI_CALL_POST_START, b);
	return b;
}

/* The sandbox of that pod, which is Burstable to the runtime. */
static inline void run_pod(struct rig *r, unsigned i, const char *pod)
{
	struct box *b = &r->box[i];

	*b = (struct box){0};
	(void)snprintf(b->c.id, sizeof b->c.id, "c%u", i);
	(void)snprintf(b->c.pod, sizeof b->c.pod, "%s", pod);
	runtime_calls(r, NRI_CALL_RUN_POD, b);
}

/* A container of that pod with CPUs of its own. */
static inline struct box *create_plain(struct rig *r, unsigned i, const char *pod, unsigned cpus)
{
	struct box *b = create(r, i, pod, cpus, NULL);

	assert_string_equal(r->refusal, "");
	return b;
}

static inline void stop(struct rig *r, struct box *b)
{
	b->c.runs = false;
	runtime_calls(r, NRI_CALL_STOP, b);
}

/* The ledger */

static inline const struct ledger *ledger_of(const struct rig *r)
{
	return engine_ledger(r->d.engine);
}

static inline unsigned nr_held(const struct rig *r)
{
	return (unsigned)ledger_view(ledger_of(r))->nr_shares;
}

static inline const struct holding *held(
	const struct rig *r, const struct api_claim *c, unsigned place)
{
	return shares_find(ledger_of(r), c->uid, place);
}

/* So many shares are held, in the ledger and by what the journal leads to. */
static inline void assert_held(const struct rig *r, unsigned nr)
{
	struct journal_fold f;
	struct err e = {0};

	if (ledger_check(ledger_of(r), &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(nr_held(r), nr);
	if (journal_fold(&f, r->d.run.journal_path, NULL, NULL, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(ledger_view(engine_ledger(f.engine))->nr_shares, nr);
	journal_fold_fini(&f);
}

/* Life */

static inline void set(struct rig *r, const char *key, const char *value)
{
	struct err e = {0};

	if (settings_set(&r->d.settings, key, value, &e))
		fail_msg("%s", e.text);
}

static inline void set_all(struct rig *r)
{
	struct settings *s = &r->d.settings;

	settings_init(s);
	s->mode = MODE_MANAGE;
	s->sweep_interval_ms = 0; /* it looks for cgroups that there are not */
	set(r, "reservedSystemCPUs", "0");
	set(r, "nri.socketPath", r->socket);
	set(r, "runDirectory", r->dir);
	set(r, "kubeletRootDirectory", path_of(r, "kubelet"));
	set(r, "podsAPI.enabled", "false");
	set(r, "apiServer.kubeconfig", r->api.kubeconfig);
	set(r, "claims.enabled", "true");
	set(r, "claims.cdiDirectory", path_of(r, "cdi"));
	if (r->prepare_wait)
		set(r, "claims.prepareWait", r->prepare_wait);
	if (r->order)
		set(r, "claims.order", r->order);
	if (r->pod)
		set(r, "podsWatch.enabled", "true");
}

static inline void start_daemon(struct rig *r)
{
	struct daemon *d = &r->d;
	struct err e = {0};

	*d = (struct daemon){.run.lock = -1, .configured.config = &r->config, .loop = d->loop};
	set_all(r);
	(void)text_copy(d->node_name, sizeof d->node_name, "n1");
	assert_int_equal(machine_text_parse(machine, strlen(machine), &d->topo, NULL), 0);
	if (run_directory_claim(d, &e) || recorder_start(d, &e) || services_start(d, &e))
		fail_msg("%s", e.text);
	wiring_start(d);
	cluster_start(d);
	d->dra->round_ms = UINT64_MAX; /* claims are read again when a test says so */
	UNTIL(r, r->synchronized && access(r->plugin, F_OK) == 0);
}

static inline void stop_daemon(struct rig *r)
{
	wiring_stop(&r->d);
	cluster_stop(&r->d);
	services_stop(&r->d);
	recorder_stop(&r->d);
	(void)close(r->d.run.lock);
	r->d.run.lock = -1;
	fake_runtime_hang_up(&r->runtime);
	r->synchronized = false;
}

/* What nobody waits for any more is not waited for here. */
static inline void hang_up(struct rig *r)
{
	for (unsigned i = 0; i < r->nr_calls; i++)
		rpc_call_cancel(steal(r->call[i].call));
	r->nr_calls = 0;
}

static inline void restart_daemon(struct rig *r)
{
	hang_up(r);
	stop_daemon(r);
	start_daemon(r);
}

/* And its journal is gone. */
static inline void restart_daemon_without_journal(struct rig *r)
{
	char journal[PATH_BYTES];

	(void)text_copy(journal, sizeof journal, r->d.run.journal_path);
	hang_up(r);
	stop_daemon(r);
	assert_int_equal(unlink(journal), 0);
	start_daemon(r);
}

static inline struct rig *rig_new(void)
{
	struct rig *r = calloc(1, sizeof *r);

	(void)signal(SIGPIPE, SIG_IGN);
	(void)strcpy(r->dir, "/tmp/numafit-dra-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	(void)snprintf(r->socket, sizeof r->socket, "%s/nri.sock", r->dir);
	(void)snprintf(
		r->plugin, sizeof r->plugin, "%s/kubelet/plugins/numafit.io/dra.sock", r->dir);
	make_directory(r, "kubelet");
	make_directory(r, "kubelet/plugins");
	make_directory(r, "kubelet/plugins_registry");
	arena_init(&r->a, ARENA_BYTES);
	r->d.loop = loop_new();
	r->poll = loop_timer_new(r->d.loop, on_poll, r);
	fake_api_init_on(&r->api, r->d.loop);
	r->api.ctx = r;
	r->api.serve = serve;
	r->runtime = (struct fake_runtime){.loop = r->d.loop,
		.options = {"containerd", "v2.3.4", false, 0},
		.events = {r, on_configured, on_answered},
		.nri_version = "v0.12.5",
		.on_update = on_set};
	fake_runtime_listen(&r->runtime, r->socket);
	return r;
}

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st, (void)flag, (void)at;
	return remove(path);
}

static inline void rig_free(struct rig *r)
{
	hang_up(r);
	stop_daemon(r);
	fake_api_fini_on(&r->api);
	loop_free(r->d.loop);
	fake_runtime_fini(&r->runtime);
	arena_fini(&r->a);
	config_fini(&r->config);
	(void)nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(r);
}

/* With the daemon running. */
static inline struct rig *begin(void)
{
	struct rig *r = rig_new();

	start_daemon(r);
	return r;
}

#endif
