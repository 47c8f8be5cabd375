#ifndef NUMAFIT_APISERVER_EVENT_JSON_H
#define NUMAFIT_APISERVER_EVENT_JSON_H

#include <numafit/advice.h>
#include <numafit/pod.h>

/* A core/v1 Event about a pod, as `kubectl describe pod` shows it. */

enum {
	EVENT_MESSAGE_MAX = 1024, /* bytes of UTF-8, by the API server (NoteLengthLimit) */
	EVENT_NAME_MAX = 253,     /* of an object (DNS-1123 subdomain) */
	EVENT_JSON_MAX = 32 << 10
};

/* Refusals go first: schedulers read them, and a pod's author alone can cause any number of the
 * others. */
enum event_rank { EVENT_OF_REFUSAL, EVENT_OF_ADVICE };

struct pod_event {
	enum event_rank rank;
	bool warning;
	const char *reason;  /* a word for programs: "TopologyAffinityError" */
	const char *message; /* for people; what is too long is cut between two characters */
	const char *about;   /* texts about the same are one event, the last of them; NULL: only
				equal texts are */
	const char *ns, *pod, *uid;
	const char *container; /* NULL: the pod as a whole */
	enum container_kind kind;
	/* on a scheduler's hint, as the annotation numafit.io/hint-verdict; ADVICE_NONE: it is not
	 * about one */
	enum advice_verdict verdict;
};

/* How often it was, and when; ms since the epoch. */
struct event_times {
	int64_t first_ms, last_ms;
	unsigned nr;
};

/* The object as JSON, for the caller to free. node: where we are. unique: another number for each
 * event of this node; it makes the object's name, so that one sent twice is one. */
char *event_json_format(const struct pod_event *event, const struct event_times *times,
	const char *node, uint64_t unique);
/* The message as it is sent: well-formed UTF-8 of EVENT_MESSAGE_MAX bytes at most. */
void event_message(char out[EVENT_MESSAGE_MAX + 1], const char *message);

#endif
