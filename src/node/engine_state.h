#ifndef NUMAFIT_NODE_ENGINE_STATE_H
#define NUMAFIT_NODE_ENGINE_STATE_H

#include <numafit/admit.h>
#include <numafit/engine.h>

/* What the engine's files share. */

struct apart_pod {
	char *sandbox_id;
	enum pod_apart why;
};
enum { APART_PODS_MAX = 1024 };
enum { ENDED_MAX = 256 }; /* many more than end while one start is reported */

struct engine {
	const struct topo *t;
	const struct settings *s;
	struct engine_hooks hooks;
	struct ledger *ledger;
	uint64_t seq;
	/* Tokens that PodResources has not shown since that time, and since one before (not part of
	 * the state: it is gone over from anew). */
	struct tokenset missed, missed_before;
	int64_t missed_since_ms;
	/* Sandboxes of pods that are decided container by container, those that came last (not part
	 * of the state: the decisions for their containers say so, too). */
	struct {
		VEC(struct apart_pod);
	} apart;
	/* Containers whose end was reported, those that ended last; NULL: there were no more (not
	 * part of the state: ids are never used again). */
	char *ended[ENDED_MAX];
	unsigned next_ended;
	void *work;         /* ADMIT_ARENA_BYTES for one decision */
	struct arena arena; /* over them */
};

/* engine_record.c: record, then apply. A record that cannot be kept changes nothing and its error
 * is returned, except that a container that is gone is gone, and one that runs runs: `must` is for
 * those. */
int engine_change(struct engine *g, struct record *r, bool must, struct err *e);
/* A record of that kind, with the pool as it is. */
/* The record's own part where a value of the kernel is to be changed, or was given back. */
void engine_record_kept(
	struct record *r, enum kept_kind kind, const char *key, const struct kept_note *n);
struct record engine_record_of(const struct engine *g, int64_t now_ms, enum record_op op,
	const char *cause, const char *container_id);

/* Whether decisions are put in force: the mode is manage. */
static inline bool engine_places(const struct engine *g)
{
	return g->s->mode == MODE_MANAGE;
}

/* engine_steps.c, to the end but for one. The entry is gone, or waits again; the pool takes its
 * CPUs back if `grow`. */
void engine_drop(
	struct engine *g, int64_t now_ms, const char *cause, const char *container_id, bool grow);
/* The same when its pod is gone, too: what was held for the container does not wait for it. */
void engine_drop_for_good(
	struct engine *g, int64_t now_ms, const char *cause, const struct holding *h);
/* The entry's request once more, with another id, its texts from *a. */
struct request engine_request_in(
	struct arena *a, const struct holding *h, const char *container_id);
/* The entry's request once more, with another id, in the engine's arena: it outlives the entry
 * until the next decision. */
struct request engine_request_of(
	struct engine *g, const struct holding *h, const char *container_id);
/* Whether the container comes with tokens that it may have, which are that owner's; a decision that
 * gives it CPUs of its own then takes them. */
bool engine_claims(const struct engine *g, const struct request *req, enum token_owner owner,
	struct decision *d);
/* engine_pod.c: a refusal of a whole pod is kept for explain, if it can be. */
void engine_record_pod_refusal(
	struct engine *g, int64_t now_ms, const struct pod *pod, const struct decision *d);
/* Why the container is not decided with its pod, which was known. */
enum pod_apart engine_apart(const struct engine *g, const struct request *req);
/* The pod's sandbox is gone: nothing of that kind is to be known of it. */
void engine_forget_apart(struct engine *g, const char *sandbox_id);
/* Whose the tokens are of a container that runs, if it came with any. */
enum token_owner engine_token_owner(const struct engine *g, const struct request *req);
/* The same of one that is taken over: what is shown later is looked at then. */
enum token_owner engine_owner_of_running(const struct engine *g, const struct request *req);
/* engine_tokens.c: no sandbox of the pod has a container any more. */
void engine_pod_is_gone(struct engine *g, int64_t now_ms, const char *cause, const char *pod_uid);
/* admit() with the engine's own arena. */
void engine_decide(
	struct engine *g, const struct request *req, struct budget *b, struct decision *d);
/* engine_update() with the budget of another event. */
bool engine_update_within(struct engine *g, int64_t now_ms, const struct request *req,
	struct budget *b, struct decision *d, struct update_list *ups);
/* Set d->placed_by of an admitted decision that is about to be recorded, by the mode. */
void engine_say_who_placed(const struct engine *g, const struct request *req, struct decision *d);
/* Record the decision and enter it, the pool moved out of its way; refuse what cannot be recorded,
 * unless the container runs already (`must`): no other one gets what it has, recorded or not. */
void engine_settle(struct engine *g, int64_t now_ms, const char *cause, const struct request *req,
	struct decision *d, bool must);
/* After an event whose reply carries no updates: if the pool has moved, those that run on it are
 * updated with the next one that does. */
void engine_update_later(struct engine *g, const struct cpuset *pool_before);
/* Every running container but one whose cpuset must be updated: those of the shared pool when it
 * has moved since, and those that could not be updated before. */
void engine_collect_updates(struct engine *g, const struct cpuset *pool_before,
	const char *not_container_id, struct update_list *ups);
/* What a dead predecessor, or its pod, leaves to the container: true with *d. Who has no name has
 * none: two nameless containers may well run at once. Of which kind it is, only its pod's spec
 * said: that goes into *req. */
bool engine_inherit(struct engine *g, int64_t now_ms, struct request *req, struct decision *d);
/* engine_move.c: its move, if there is one, has ended where it was to go, as far as it goes on at
 * all. */
void engine_end_move_of(
	struct engine *g, int64_t now_ms, const char *cause, const char *container_id);
/* engine.c: whether the container's end was reported a short while ago. */
bool engine_has_ended(const struct engine *g, const char *container_id);
/* It was seen to exist. */
void engine_mark_live(struct engine *g, int64_t now_ms, const char *container_id);
/* engine_sync.c: what the container runs with becomes what it holds, as its placement says; or,
 * when that cannot be, it is decided anew, and put into the shared pool when that refuses it. With
 * onAdopt: leave one that was never placed (it has no placement annotation, and is not `ours`: the
 * ledger did not have it either) runs on as it does, unless others hold CPUs that it is confined
 * to. */
void engine_adopt(struct engine *g, int64_t now_ms, const char *cause, const struct request *req,
	const struct placement *placed, bool ours, struct budget *b);
/* engine_in_force.c: the CPUs that somebody has confined it to; none when it may run on all that
 * are online. */
struct cpuset engine_confined_to(const struct engine *g, const struct request *req);
/* Whether the request's cpuset is that one. */
bool engine_runs_as(const struct engine *g, const struct request *req, const struct update *want);
/* Whether the ledger counts and not the request, which is a report that may be as old as the
 * container; said is what its annotation says, or NULL. */
bool engine_knows_better(
	const struct engine *g, const struct request *req, const struct placement *said);
/* Whether what the one holds is what the other needs: only exclusive CPUs and pinned memory are
 * held. The runtime's numbers are those of the cgroup, and a spec's may be finer. */
bool holding_suits(const struct holding *h, const struct request *of_runtime);
/* What only the spec of its pod says of the container, which the entry has, into *req. */
void engine_learn(const struct holding *h, struct request *req);
/* A pod whose spec is not known may have resources of its own (gate PodLevelResourceManagers), and
 * a runtime shows them as those of each of its containers: together these get no more CPUs for
 * themselves than the pod's sandbox says, and one that would is taken as a container without any
 * (pod_level). Before it is decided by itself. */
void engine_bound_by_pod(const struct engine *g, struct request *req);
/* Whether it has fewer CPUs of its own than it asks for. */
bool holding_lacks_cpus(const struct holding *h);

#endif
