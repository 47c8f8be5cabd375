#ifndef NUMAFITD_DAEMON_H
#define NUMAFITD_DAEMON_H

#include <codec/config_yaml.h>
#include <codec/metrics_text.h>
#include <codec/status_json.h>
#include <io/journal.h>
#include <io/loop.h>
#include <nri/nri_conn.h>
#include <numafit/engine.h>
#include <numafit/pod_store.h>
#include <numafit/report.h>

/* All parts of one running numafitd. main.c builds it; the other files each wire one pair. */
struct daemon {
	struct settings settings; /* in force */
	/* What file and command line asked for when these came into force; sections as they were
	 * read last. */
	struct settings asked;
	struct config_sections sections;
	struct config *config;
	struct reload *reload;
	struct topo topo;     /* as it is now */
	struct topo *machine; /* what the engine borrows once topo has changed; NULL: topo */
	struct loop *loop;
	struct engine *engine;
	struct nri_conn *conn;
	struct nri_handler handler;
	struct status_server *status;
	int lock; /* descriptor that keeps a second daemon out */
	/* What the runtime tells a plugin that it starts itself (NRI pkg/api/plugin.go): the
	 * connection, name and index. name is NULL when it did not. */
	struct {
		int fd;
		const char *name, *index;
	} launch;
	char journal_path[SETTINGS_PATH_MAX + sizeof "/journal"];
	char status_path[SETTINGS_PATH_MAX + sizeof "/numafitd.sock"];
	struct journal *journal;
	struct loop_timer *rotate, *expire;
	struct sweep *sweep;              /* NULL: there is none */
	struct in_force_reader *in_force; /* likewise */
	const struct cgroups *cgroups;    /* its own, where containers are seen; NULL: nowhere */
	uint64_t in_force_ns;             /* how long a Synchronize may read them */
	struct teller *teller;            /* likewise */
	/* Grows whenever other CPUs or other memory are free, over restarts too: what schedulers
	 * say that they have seen. */
	uint64_t generation;
	struct cpuset held_before;
	uint64_t free_before;
	char node_name[NODE_NAME_MAX];
	enum advice_format advice_format[NR_ADVICE_FORMATS]; /* the first one first */
	unsigned nr_advice_formats;
	struct services *services; /* NULL: there are none */
	struct cluster *cluster;   /* likewise */
	struct api_pods *api_pods; /* those that the API server tells of; likewise */
	uint64_t rotate_at_bytes;
	const char *aside;        /* the journal that is there is set aside under that name first */
	struct err verdict;       /* why the daemon has ended itself; code 0: it has not */
	struct err journal_error; /* told, and nothing was written since; code 0: all is well */
	bool unrecorded;          /* the record at hand could not be written */
	bool journal_behind;      /* the ledger went on without it: it must be written anew */
	struct status_counters counters;
	struct metrics_counters measured;
	const struct nri_handler *mode_handler; /* whose times are taken */
	struct metrics_server *metrics;         /* NULL: nobody is served */
	uint64_t started_ns;
	bool warned_of_cpuset;
};

/* run_directory.c: the run directory is made where it is not there, and locked: only one daemon can
 * hold it (d->lock). The paths in it are named in any case. 0; -EBUSY: another daemon runs with it;
 * -errno with text. */
int run_directory_claim(struct daemon *d, struct err *e);
/* Whether what failed so may go well later: a disk that is full or read-only, a directory that is
 * not there yet. */
bool run_directory_may_come(int rc);

/* recorder.c: the engine's records and the journal file. */

/* Build the engine: fold the journal of an earlier life if there is one, and start a new journal
 * with what came out. A journal that cannot be used is set aside, loudly; the runtime's Synchronize
 * then reports what runs. Where no journal can be written, the log says so, nothing is placed, and
 * it is tried again, with the run directory's claim if need be; the daemon ends itself (d->verdict)
 * when that is another daemon's by then. 0, or -errno where no waiting helps. */
int recorder_start(struct daemon *d, struct err *e);
void recorder_stop(struct daemon *d);
/* The machine or what is held may be another one than before. */
void recorder_count_change(struct daemon *d);
/* The ledger is no longer what its records lead to: start a new journal with it now, and until that
 * has succeeded record nothing. */
void recorder_write_anew(struct daemon *d);

/* wiring.c: the runtime's events and the engine. */
void wiring_start(struct daemon *d);

/* reply.c: the texts of an answer, copied to *a; "" when its limit is reached. */
const char *in_arena(struct arena *a, const char *text);
const char *cpus_text(struct arena *a, const struct cpuset *cpus);
const char *nodes_text(const struct daemon *d, struct arena *a, struct nodeset nodes);
/* The updates as the runtime is told them, in reply->arena. */
void add_updates(struct daemon *d, const struct update_list *ups, struct nri_reply *reply);
/* The pods that are there: those whose sandbox has a process or a container. Runtimes list stopped
 * sandboxes, too; where none is told to have a process, all count. The strings are the inventory's.
 */
struct sandboxes {
	size_t nr;
	const char **id, **pod_uid;
};
struct sandboxes sandboxes_of(const struct nri_inventory *what);
void sandboxes_free(struct sandboxes *s);
/* advice.c: what schedulers have left in a pod's annotations, for the merge; only in mode manage.
 * The node's name and the order of formats, from the settings. 0, or -EINVAL with text. */
int advice_start(struct daemon *d, struct err *e);
/* schedulerHint.order, which was checked, is another one. */
void advice_settings_changed(struct daemon *d);
/* A scheduler's advice for the container and its pod's topology policy, into *req, from *a. */
void advice_of_container(struct daemon *d, struct request *req, struct arena *a);
/* The same for each container of the pod, all of which are known, into *pod. */
void advice_of_pod(struct daemon *d, struct pod *pod, struct arena *a);
/* The verdict goes into the counters. */
void advice_count(struct daemon *d, const struct decision *dec);

/* services.c: what speaks with the kubelet, as far as the settings switch it on; in mode shadow
 * without the device plugin, and not in mode off. 0, or -errno with text: gRPC cannot start. */
int services_start(struct daemon *d, struct err *e);
/* Before loop_free(). */
void services_stop(struct daemon *d);
/* For `numafit status`; false: there are none. */
bool services_status(const struct daemon *d, struct status_kubelet *out);
/* Something was recorded: the kubelet's list may be another one. */
void services_note_change(struct daemon *d);
/* Somebody has told of the pod: what the kubelet gives to it is asked for. */
void services_note_pod(struct daemon *d, const struct known_pod *pod);
/* The devices of the node, and who has them, into *f, from *a. */
void services_report(const struct daemon *d, struct report_facts *f, struct arena *a);
/* gather.c: the stage before a decision. What is known of the container or the pod beside what the
 * runtime says goes into the request, from *a: nobody is asked and waited for. */

enum { GATHER_BYTES = 4 << 20 }; /* for a pod */
/* Its devices, a scheduler's advice, and whose the tokens are that it comes with. */
void gather_container(struct daemon *d, struct request *req, struct arena *a);
/* Its containers with their devices and advice, or pod->apart: why they are decided one by one.
 * What the kubelet gives to it is asked for. */
void gather_pod(struct daemon *d, struct pod *pod, struct arena *a);
/* Whose the tokens are that the container comes with. What PodResources has not shown yet is asked
 * for; where that is off in the settings, what it shows is heeded all the same, but nobody waits
 * for it. */
enum token_owner gather_token_owner(struct daemon *d, const struct request *req);

/* reload.c: settings that change while the daemon runs. */

/* Read the config file again when it changes, or is swapped like a ConfigMap's, and on SIGHUP. What
 * is wrong changes nothing, and is told; what needs a restart is told, too. reloaded is called each
 * time that a file was put in force. 0, or -errno with text. */
int reload_start(struct daemon *d, void (*reloaded)(struct daemon *d), struct err *e);
void reload_stop(struct daemon *d);
/* Whether the file has sections by labels: somebody should ask for the node's. */
bool reload_wants_labels(const struct daemon *d);
/* The node's labels, as the API server has them now: others than before choose other sections. When
 * they are known for the first time and choose what needs a restart, the daemon ends itself, to be
 * started again with them; not where the runtime has started it, which would not do so again. */
void reload_set_labels(struct daemon *d, const struct key_value *labels, size_t nr);
/* Why the daemon has ended itself: 0, nothing of that, or -EAGAIN with text. */
int reload_verdict(const struct daemon *d, struct err *e);
/* For `numafit status`; false: there is no file. The texts are borrowed until the next turn. */
bool reload_status(const struct daemon *d, struct status_config *out);

/* cluster.c: what speaks with the API server, as far as the settings switch it on. What is there
 * already stays. Credentials that cannot be used are told, and tried again: with backoff, and as
 * soon as their file changes. */
void cluster_start(struct daemon *d);
/* Before loop_free(). */
void cluster_stop(struct daemon *d);
/* Settings that its parts copy are others. */
void cluster_settings_changed(struct daemon *d);
/* Something was recorded, or devices have changed: reports may be others. */
void cluster_note_change(struct daemon *d);
/* A container, or the pod as a whole (container NULL), was decided on; refusal is what the runtime
 * was told. */
void cluster_note_decision(struct daemon *d, const struct pod *pod, const char *container,
	enum container_kind kind, const struct decision *dec, const char *refusal);
void cluster_note_pod_gone(struct daemon *d, const char *pod_uid);
/* For `numafit status`; false: there is none. The text is borrowed until the next turn. */
bool cluster_status(const struct daemon *d, struct status_apiserver *out);
/* For the metrics; zeros where there is none. */
void cluster_metrics(const struct daemon *d, struct metrics_cluster *out);

/* shadow.c: what the modes that place nothing do with the runtime's events. */
extern const struct nri_handler shadow_handler, off_handler, release_handler;

/* in_force.c: what containers run with on the system under root ("/"), where a Synchronize needs to
 * know. On this machine only. */
void in_force_start(struct daemon *d, const char *root);
void in_force_stop(struct daemon *d);
/* How many containers were read, or are to be later, and of how many nobody knows. */
struct looks {
	size_t read, later, unknown;
};
/* Of a Synchronize: where a report is in doubt (engine_doubts()) what is in force becomes the
 * request's cpuset and numbers, with texts in *a; what there was no time for is read later, and
 * told where it is to run if need be. said has what each annotation says, or NULL. */
struct looks in_force_look(struct daemon *d, struct request *requests,
	const struct placement *const *said, size_t nr, struct arena *a);

/* sweep.c: what is in force on the system under root ("/") against the ledger, a bit in each turn
 * of the loop, a round every sweepInterval. Containers that run otherwise are told again, CPUs and
 * memory that come and go are taken into account. Only in mode manage, and on this machine. */
void sweep_start(struct daemon *d, const char *root);
void sweep_stop(struct daemon *d);
/* sweepInterval is another one. */
void sweep_settings_changed(struct daemon *d);
/* The runtime's client has changed the container's resources. */
void sweep_note_update(struct daemon *d, const char *container_id);

/* teller.c: UpdateContainers without being asked for. Only in mode manage. */
void teller_start(struct daemon *d);
void teller_stop(struct daemon *d);
/* Containers may have to be told where they are to run, and no reply is at hand. */
void teller_note_change(struct daemon *d);
/* The container is being told, and the runtime has not answered yet. */
bool teller_is_telling(const struct daemon *d, const char *container_id);

/* beside.c: a kubelet whose own managers are static turns manage into shadow, loudly, unless the
 * settings want it otherwise. */
void beside_kubelet(struct daemon *d);

/* decision_log.c: "cpu:1/1 memory:2/1": of each resource the fewest NUMA nodes with enough free
 * now, and the fewest that could have enough; "-" when no number of nodes has enough now. */
enum { HINTS_TEXT_MAX = 512 };
const char *hints_text(const struct decision *dec, char buf[HINTS_TEXT_MAX]);
void log_decision(const struct daemon *d, const struct request *req, const struct decision *dec,
	const char *cause, size_t nr_updates, uint64_t took_ns);
/* The engine's done hook: counts and logs what happened on the engine's own account. */
void log_record(void *ctx, const struct record *r);
/* An event of a part that speaks with somebody else; bad: somebody must act. */
void log_event(void *ctx, bool bad, const char *event, const char *text);

/* status.c: the unix socket that `numafit status` asks. What may go well later (see
 * run_directory_may_come()) is logged and tried again. 0, or -errno with text. */
int status_start(struct daemon *d, struct err *e);
void status_stop(struct daemon *d);
/* What it answers; the caller frees. NULL: it would be too large. */
char *status_document(const struct daemon *d);

/* measure.c: what is counted for metrics alone. */

/* The mode's handler, with the time that each of its answers takes. */
struct nri_handler measure_hooks(struct daemon *d, const struct nri_handler *of);
/* The policy's verdict about a pod, or a container. */
void measure_verdict(struct daemon *d, const struct decision *dec);
/* The decision about a container that is being created; req is what it asked for. */
void measure_admission(
	struct daemon *d, const struct request *req, const struct decision *dec, uint64_t took_ns);

/* metrics.c: metrics and health over HTTP, where metrics.address says; an address that cannot be
 * had is told, and tried again. */
void metrics_start(struct daemon *d);
void metrics_stop(struct daemon *d);

/* health.c: whether the daemon can do its work, for "livez" and "readyz". */
struct health_verdict {
	bool ok;
	char failures[1024]; /* a line for each reason, or "" */
	char all[2048];      /* a line for each check */
};
void health_check(const struct daemon *d, const char *which, struct health_verdict *out);

#endif
