#ifndef NUMAFIT_NUMAFITD_CLUSTER_H
#define NUMAFIT_NUMAFITD_CLUSTER_H

#include <daemon-files/metrics_text.h>
#include <codec/status_json.h>
#include <numafit/admit.h>
#include <numafit/pod_store.h>

struct daemon;

/* What speaks with the API server, as far as the settings switch it on. What is there
 * already stays. Credentials that cannot be used are logged, and tried again: with backoff, and as
 * soon as their file changes. */
void cluster_start(struct daemon *d);
/* Before loop_free(). */
void cluster_stop(struct daemon *d);
/* Settings that its parts copy are others. */
void cluster_settings_changed(struct daemon *d);
/* Something was recorded, or devices have changed: reports may be others. */
void cluster_note_change(struct daemon *d);
/* The container, or the pod, of *q was decided on, and answered; refusal is what the runtime was
 * answered. */
void cluster_note_decision(struct daemon *d, const struct admit_question *q,
	const struct decision *dec, const char *refusal);
/* An annotation of the pod is not followed for the container, which gets what it would get without:
 * `annotation`, because pods may not have this wish, or for the reason in `odd`. With ask NULL the
 * annotation is for a container that the pod does not have. */
void cluster_note_ignored_wish(const struct daemon *d, const struct pod *pod, const struct ask *ask,
	const char *annotation, const char *odd);
/* Moves of running containers, in words, after which the refused pod would be admitted. */
void cluster_note_moves(struct daemon *d, const struct pod *pod, const char *words);
void cluster_note_pod_gone(struct daemon *d, const char *pod_uid);
/* For `numafit status`; false: there is none. The text is borrowed until the next turn. */
bool cluster_status(const struct daemon *d, struct status_apiserver *out);
/* For the metrics; zeros where there is none. */
void cluster_metrics(const struct daemon *d, struct metrics_cluster *out);

#endif
