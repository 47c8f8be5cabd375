#ifndef NUMAFIT_ENGINE_H
#define NUMAFIT_ENGINE_H

#include <numafit/budget.h>
#include <numafit/decision.h>
#include <numafit/leases.h>
#include <numafit/ledger.h>
#include <numafit/request.h>
#include <numafit/settings.h>
#include <numafit/vec.h>

/* Events in, decisions out. The engine owns the ledger, hands every change to its record hook
 * before it happens, and says which running containers must be moved along with it. */

/* One change, as the journal keeps it: a fold of all records is the ledger. */
enum record_op {
	RECORD_GRANT,   /* request and decision (admit true): the container holds it from now on */
	RECORD_HOLD,    /* parts: a pod's, held for its containers until it goes; container_id is
			   the sandbox's */
	RECORD_REFUSE,  /* request and decision (admit false): nothing changes; kept for explain */
	RECORD_RELEASE, /* container_id: it is gone, and holds nothing any more or waits again */
	RECORD_LIVE,    /* container_id: it was created; the grant is no longer tentative */
	/* The kubelet's side; container_id is "" but for POD_GONE. */
	RECORD_ALLOCATE, /* lease: these tokens are given out, new ones under that name */
	RECORD_SHOWN,    /* lease: PodResources shows these tokens as given out */
	RECORD_GIVE_UP,  /* lease: no container comes for these tokens */
	RECORD_LEASE,    /* lease: one as it is, when a journal starts anew */
	RECORD_POD_GONE, /* container_id is the pod's uid: no container of it is to come */
	RECORD_QUOTA,    /* container_id is the pod's uid, quota: its cgroup's is lifted, or not
			    any more */
	/* A container that runs is being moved: it has what it had, and what decision says, from
	 * then on; then what decision said alone, or what it had before alone. */
	RECORD_MOVE,
	RECORD_MOVED,
	RECORD_MOVE_BACK,
	RECORD_QUIET, /* container_id is a file of the kernel's, quiet: what it had, which is
			 changed, or not any more */
	NR_RECORD_OPS
};
extern const char *const record_op_words[NR_RECORD_OPS]; /* "grant", "hold", "refuse", ... */

/* What is held for one container of a pod; the request has no container id. */
struct record_part {
	struct request request;
	struct decision decision;
};

/* What a container's memory is known to be. */
struct defrag_figure {
	const char *container_id;
	uint64_t bytes; /* that it uses */
};
/* What a plan of moves (defrag.h) was made by, beside the ledger: enough to make it again. */
struct move_basis {
	const struct pod *pod; /* for which room is made; NULL: for none */
	unsigned moves;        /* at most */
	uint64_t trials;       /* at most */
	const struct defrag_figure *figures;
	size_t nr_figures;
};

/* What admit() gives the nr parts of a pod, as they are recorded: what the pod has as one comes
 * first, as the other parts are of it. */
void record_parts(const struct pod *pod, const struct decision *decisions, size_t nr,
	struct record_part *parts);

struct record {
	uint64_t seq;
	int64_t time_ms; /* since the epoch, as given with the event */
	enum record_op op;
	const char *cause; /* the event: "create", "update", "synchronize", "stop", "remove", ... */
	const char *container_id;
	const struct request *request;   /* GRANT and REFUSE */
	const struct decision *decision; /* these, and MOVE */
	const struct pod *pod; /* HOLD, REFUSE of a whole pod, and MOVE: what it was decided for,
				  or NULL */
	const struct move_basis *basis; /* MOVE, of a plan's first one; or NULL. Its pod is `pod` */
	const struct record_part *parts; /* HOLD: record_parts() */
	size_t nr_parts;
	const struct lease *lease;
	const struct kept_note *quota, *quiet; /* QUOTA, QUIET */
	struct cpuset pool;                    /* the shared pool once this is done */
	bool in_one_line; /* HOLD: it is of no use in several lines of a journal */
};

struct engine_hooks {
	void *ctx;
	/* mandatory: make the record last. 0, or a negative errno with text: the change does not
	 * happen, and a container that waits for it is refused with that text. -EMSGSIZE: it is
	 * longer than a record can be, or than a line when it is to be in one. */
	int (*record)(void *ctx, const struct record *r, struct err *e);
	/* optional: whose the tokens are of a container that runs already. Without it nobody is
	 * asked. */
	enum token_owner (*owner)(void *ctx, const struct request *req);
	/* optional: a number that nobody can guess, for the name of a lease of tokens. Without it
	 * the name is the time. */
	uint32_t (*nonce)(void *ctx);
	/* optional: called after a record was folded into the ledger or, for REFUSE, passed by. */
	void (*done)(void *ctx, const struct record *r);
};

/* A running container whose cpuset must be set anew. container_id is borrowed from the ledger
 * and valid until the engine's next event. */
struct update {
	const char *container_id;
	struct cpuset cpus;
	struct nodeset mems;
	struct cpuset in_force; /* what cpus come to below a cgroup that bounds it; empty: cpus */
	bool any_wider;         /* any set that has those, or none, does as well as cpus */
	bool moving;            /* it is being moved: what it runs with is right */
	bool untouched;         /* it is to have no cpuset from us; any does */
	bool without_quota;     /* it is to have no CFS quota */
	int64_t quota_us;       /* it is to have that one; 0: nothing is said of it */
};
struct update_list {
	VEC(struct update);
};

/* What the annotation of a container that runs already says about it. */
struct placement {
	bool exclusive, preferred;
	enum topology_policy policy;
	struct cpuset cpus;
	struct nodeset mems, nodes;
	bool has_nodes;
	bool has_advice; /* a scheduler's advice was looked at, with that verdict */
	enum advice_verdict advice;
	const char *wishes; /* wishes_print()'s, for people: it is written and not read; NULL */
};

struct engine;

/* t and s are borrowed and outlive the engine; s may change, see engine_settings_changed(). */
struct engine *engine_new(
	const struct topo *t, const struct settings *s, const struct engine_hooks *hooks);
void engine_free(struct engine *g);
const struct ledger *engine_ledger(const struct engine *g);

/* Fold a record from an earlier life into the ledger; no hook is called. 0, or the error of
 * ledger_fits(): the record contradicts what came before it. */
int engine_replay(struct engine *g, const struct record *r, struct err *e);

/* All folded records are those of a mode that places nothing, by a numafit that did not say so in
 * each: no entry is in force (PLACED_IN_SHADOW), but for shares of claims. No record says so: the
 * journal must start anew (engine_dump()). */
void engine_nothing_was_in_force(struct engine *g);

/* The records that lead from an empty ledger to the present one, for a journal that starts anew:
 * every entry as a grant. 0, or the first negative return of record(). */
int engine_dump(struct engine *g, int64_t now_ms,
	int (*record)(void *ctx, const struct record *r, struct err *e), void *ctx, struct err *e);

/* Another engine in the same state, on the caller's copies of machine and settings, which are
 * borrowed; it records nothing, and shares no memory with the first. The caller frees. NULL: an
 * entry of the first cannot be taken over, the text says why. */
struct engine *engine_copy(
	struct engine *g, const struct topo *t, const struct settings *s, struct err *e);

/* A pod's sandbox is being started. When its containers are known (pod->container), all of them are
 * decided now and held, in one record, until the pod goes; *d says whether it may start. Else *d
 * admits it. So it does when that takes more working memory than there is, or a longer record than
 * a journal takes: in pod scope one of several lines, else a line. Then d->apart says so, and so do
 * the decisions for its containers, which are decided one by one. Running containers that must make
 * room are updated with the next reply that can carry updates, before any container of the pod
 * runs.
 */
void engine_run_pod(struct engine *g, int64_t now_ms, const struct pod *pod, struct decision *d);
/* A container is being created. *d is the answer, admitted or refused. When admitted, *ups gains
 * the running containers that must make room, each at most once, never the new one. An entry of the
 * same pod and container name is a dead predecessor, or what is held for it by its pod: its CPUs
 * and memory pass on when the same is asked for, else they are released first. d->reasons live
 * until the engine's next event. What the ledger knows of the container goes into *req: why it is
 * not decided with its pod, its kind and its place. req->owner is the caller's to say. */
void engine_create(struct engine *g, int64_t now_ms, struct request *req, struct decision *d,
	struct update_list *ups);
/* What was decided for a container that is being created, or held for a pod whose sandbox is being
 * started, cannot be put in force: it is given up, and *d refuses it with that text
 * (UnexpectedAdmissionError). What its pod holds for the container goes on waiting for it. */
void engine_take_back(struct engine *g, int64_t now_ms, const struct request *req, const char *why,
	struct decision *d);
void engine_take_back_pod(struct engine *g, int64_t now_ms, const struct pod *pod, const char *why,
	struct decision *d);
/* The runtime names a container that exists: it was created, has started or is updated. A container
 * that is not in the ledger is adopted as in a Synchronize, and its own update comes with those of
 * the next event; unless its end was reported (engine_release(), engine_forget()): the end of a
 * short-lived container can overtake its start. */
void engine_live(struct engine *g, int64_t now_ms, const struct request *req,
	const struct placement *placed);
/* Somebody else changes the container's resources. False when it is unknown, or left as it runs and
 * neither its CPUs nor what it asks for change: no answer is needed. What it is to run with is else
 * in *d, and *ups gains the others that must move along: it keeps what it has when the
 * request needs the same (a kubelet that rewrites cpusets), else it grows or shrinks in place
 * (resize.h); or the change is refused (d->admit false), and all stays as it was. */
bool engine_update(struct engine *g, int64_t now_ms, const struct request *req, struct decision *d,
	struct update_list *ups);
/* Its process has ended. Unknown ids are fine. *ups gains those that get room back or that could
 * not be updated before. */
void engine_release(struct engine *g, int64_t now_ms, const char *cause, const char *container_id,
	struct update_list *ups);
/* The same for an event whose reply carries no updates. */
void engine_forget(struct engine *g, int64_t now_ms, const char *cause, const char *container_id);
/* The pod's sandbox is gone, and every container that it still had in the ledger; tokens that wait
 * for its containers can be given up when no other sandbox of it has any. */
void engine_release_pod(struct engine *g, int64_t now_ms, const char *cause, const struct pod *pod);

/* Give up what was answered and has not been seen to exist since the last such call: a creation
 * that failed elsewhere, which some runtimes do not report. Call it once in a while, longer than
 * any creation takes; a container that comes after all is adopted. Returns how many were given up.
 */
unsigned engine_expire(struct engine *g, int64_t now_ms);

/* Its process runs: from here on the runtime applies its updates. Unknown ids are fine. */
void engine_started(struct engine *g, int64_t now_ms, const char *container_id);

/* In shadow the kubelet decides, and we compare. What we would have decided, without a look at its
 * cpuset, is in *ours; what its cpuset says becomes the ledger's truth, or one disagreement would
 * lead to the next. */
struct comparison {
	bool compared; /* false: the request has no cpuset, the kubelet's managers are off */
	bool agrees;
	char text[DECISION_MESSAGE_MAX]; /* of a disagreement: what each of the two has */
};
/* What a container's cpuset means where the kubelet sets it: as many CPUs as it asks for to itself
 * are its own. */
struct placement placement_in_force(
	const struct topo *t, const struct settings *s, const struct request *req);
void engine_shadow(struct engine *g, int64_t now_ms, const struct request *req,
	struct decision *ours, struct comparison *c);

/* Why somebody should look at what a container runs with before its report is believed. */
enum doubt {
	DOUBT_NONE,
	DOUBT_AGE,    /* it is as old as the container, of a runtime that forgets */
	DOUBT_CONTENT /* it is not what the ledger has, or not what the last update said */
};
/* said is what the container's annotation says, or NULL. */
enum doubt engine_doubts(const struct engine *g, const struct request *req,
	const struct placement *said, bool runtime_forgets);

/* All that runs, and nothing else: what is gone is released, what is unknown is adopted from its
 * cpuset and placement, ordered by creation, then id, and only then others are placed; what runs
 * outside its grant is put back. */
struct inventory {
	const struct request *requests;
	const struct placement *const *placed; /* what the annotation of each says, or NULL */
	size_t nr;
	const char *const *sandbox_ids; /* pods that are there, with containers or without */
	size_t nr_sandboxes;
	const char *const *pod_uids; /* theirs, likewise; NULL: not known */
};
/* *ups gains every container whose cpuset must be set, or may have to be: what is in force is not
 * known (request.in_force) and the report says nothing but what was at the creation, or is in the
 * ledger. Such a one has what the ledger says. */
void engine_synchronize(
	struct engine *g, int64_t now_ms, const struct inventory *what, struct update_list *ups);

/* A value of the kernel is about to be changed, or was given back (numafit/kept.h). 0; else the
 * change could not be recorded, and is not to be done. */
int engine_note_kept(struct engine *g, int64_t now_ms, enum kept_kind kind, const char *key,
	const struct kept_note *n, struct err *e);

/* What an unread container of a Synchronize runs with: req has its cpuset and numbers. It must be
 * updated when that is not what it is to have, and grows or shrinks in place when its numbers have
 * changed. Unknown ids are fine. */
void engine_note_in_force(struct engine *g, int64_t now_ms, const struct request *req);

/* What a pod's spec and the kubelet's PodResources alone say of one of the pod's containers. */
struct container_facts {
	enum container_kind kind;
	unsigned place; /* as in struct ask */
	enum pod_source source;
	bool pod_level;  /* its pod has resources of its own, */
	bool guaranteed; /* of which the container has a part for itself */
	bool has_devices;
	enum devices_shown devices;
	const char *shares; /* as in struct request; the kubelet may show these later, too */
};
/* The facts of a container have become known, or have changed, after its entry was made: the entry
 * has them from now on. Where they change how many CPUs the running container has for itself, or
 * on which claims the container runs, the container is placed anew, and never refused: its update
 * is due, and the search spends *b, of which each container of the event has its share. A container
 * that is part of a pod that was decided as a whole has these facts already, and one that does not
 * run yet gets them once it does. True if the entry has changed. */
bool engine_join_facts(struct engine *g, int64_t now_ms, const char *container_id,
	const struct container_facts *facts, struct budget *b);

/* Moves of running containers: one at a time. Whoever asks for one sets its cpuset, and says when
 * that is done; until then it is not updated, a change of its resources is refused, and what it
 * runs with is no drift. */

/* It is to have *to, for which there is that basis, or NULL, and until the end of the move what it
 * has as well; containers in the pool that no cgroup bounds are to be updated before it runs there.
 * 0; as ledger_may_move(), or what the record hook says, with text: nothing has happened then. */
int engine_begin_move(struct engine *g, int64_t now_ms, const char *container_id,
	const struct decision *to, const struct move_basis *basis, struct err *e);
/* The move that is under way has ended: it has what it was to have alone, or `back`, what it had
 * before. 0; -ENOENT: there is none, as the container is gone or the machine has changed; or what
 * the record hook says: it goes on having both. */
int engine_end_move(struct engine *g, int64_t now_ms, bool back, struct err *e);
/* What the runtime itself says of running containers, before anybody looks into their cgroups: *ups
 * gains those that were moved, and of which it has another cpuset. It was away, or we were, when it
 * was to learn of the move, and would set the old place again with whatever it updates next. Of
 * runtimes that report each container as it was created these are all that were ever moved. */
void engine_correct_moved(
	const struct engine *g, const struct request *reported, size_t nr, struct update_list *ups);

/* ResourceClaims (shares.h). */

/* The kubelet prepares the claim: its shares are decided, recorded and held, until
 * engine_unprepare(). What is held already stays as it is, and is for the pods that it is reserved
 * for by now. 0; -EPERM: *d says why one of the shares is refused, and no new one is held; -EBUSY:
 * it was allocated anew, and containers run on what it was; -EINVAL: a device that is none of this
 * machine, or names that no claim has (claim_check_names()); E2BIG; or what the record hook says,
 * with text. Containers in the shared pool are updated later. */
struct resource_claim;
int engine_prepare(struct engine *g, int64_t now_ms, const struct resource_claim *c,
	struct decision *d, struct err *e);
/* Whether it would be held if nothing else were. */
bool engine_could_hold(struct engine *g, const struct resource_claim *c);
/* Whether nothing needs the claim any more: 0; -EBUSY with text: a container has its shares, be it
 * one that was created and does not run yet. */
int engine_may_unprepare(const struct engine *g, const char *claim_uid, struct err *e);
/* Nothing of it is held any more. 0, also where nothing was; or engine_may_unprepare()'s error. */
int engine_unprepare(struct engine *g, int64_t now_ms, const char *claim_uid, struct err *e);
/* Nobody unprepares claims, as the driver is off: nothing is held any more of those on which no
 * container runs. */
void engine_end_unused_claims(struct engine *g, int64_t now_ms);

/* The kubelet's device plugin: tokens of numafit.io/cpu. */

/* The kubelet gives these tokens to a container, it does not say to which. *annotation, of
 * LEASE_TEXT_MAX bytes, is what the container is to come with. Tokens that are given out already
 * are given again. 0; as ledger_may_promise() and leases_may_allocate(); or what the record hook
 * says: nothing has happened then, and the pod is refused with the text. */
int engine_allocate(struct engine *g, int64_t now_ms, const struct tokenset *tokens,
	char *annotation, struct err *e);
/* PodResources shows these tokens, and no others, as given out. What it does not show and nobody
 * waits for any more is given up, once no answer has shown it for a while; a running container that
 * could not claim its tokens before (a journal was lost) has them now. Returns how many were given
 * up. */
unsigned engine_see_tokens(struct engine *g, int64_t now_ms, const struct tokenset *shown);

/* The settings that the engine borrows were changed in place, those that a running daemon can
 * change (settings_reload()). They count for what is decided from here on: what holds something
 * keeps it. One option has left a trace in the ledger: with strict-cpu-reservation the shared pool
 * has no reserved CPU, without it all of them. So the pool changes, and what runs in it must be
 * updated. No record says so: the journal must start anew (engine_dump()).
 * 0; -EBUSY with text: no CPU would be left in the pool. Nothing has changed then, and the settings
 * must be put back. */
int engine_settings_changed(struct engine *g, struct err *e);

/* What drifts away from the ledger: containers that run otherwise, and the machine itself. */

/* What the container of an entry is to be given; engine_give() when the runtime is answered so. */
struct update engine_give(struct engine *g, const struct holding *h);
struct update engine_placement_of(const struct engine *g, const struct holding *h);
/* Whether what it was found with will do for that. */
bool engine_suits(const struct engine *g, const struct update *want, const struct cpuset *cpus,
	struct nodeset mems);
/* What the container is to run with now, into *want. False when it is not seen to exist, or is
 * none that is updated. */
bool engine_wants(const struct engine *g, const char *container_id, struct update *want);
/* Its cpuset must be updated, with the next reply that can carry it or by engine_take_updates(). */
void engine_must_update(struct engine *g, const char *container_id);
/* The containers that must be updated and are seen to exist, into *ups: they count as updated.
 * Those without CPUs of their own come first, for they may have to leave the CPUs that the others
 * get. Where the others have to leave CPUs instead, both are on these until all are updated. */
void engine_take_updates(struct engine *g, struct update_list *ups);

/* The machine has become *t, borrowed from here on; the one before may be freed. It has the same
 * NUMA nodes and kinds of memory, but other CPUs are online or other amounts of memory there
 * (ledger_set_topo()). Who lost CPUs gets others around those that are left, as a resize does
 * (resize.h), or else stays with fewer and decision.message says why; who had lost some gets them
 * back. All that move must be updated. No record says so, a fold of the records ends here: the
 * journal must start anew (engine_dump()); done() is called for each that has moved, with the cause
 * "hotplug". */
void engine_set_topo(struct engine *g, int64_t now_ms, const struct topo *t);

/* The records of an earlier life are folded, with its settings and on its machine: from here on the
 * settings that the engine borrows are those of now, any of which may have changed, and the machine
 * is *t. As engine_set_topo(): what runs on CPUs that are reserved now moves as if they had gone
 * offline, and what is booked beyond the memory that is left is booked no more. The cause is
 * "restart". */
void engine_take_effect(struct engine *g, int64_t now_ms, const struct topo *t);
/* Whether a container has lost CPUs and has no others for them yet: engine_take_effect() looks for
 * some, even where neither settings nor machine have changed. */
bool engine_lacks_cpus(const struct engine *g);

#endif
