/* Every decision in one line. */
#include "decision_log.h"
#include "daemon.h"

#include <io/log.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <ui/recent.h>

const char *hints_text(const struct decision *dec, char buf[HINTS_TEXT_MAX])
{
	struct text t;

	text_init(&t, buf, HINTS_TEXT_MAX);
	for (unsigned i = 0; dec->reasons && i < dec->reasons->nr; i++) {
		const struct reasons_resource *h = &dec->reasons->resource[i];

		text_add(&t, t.len ? " %s:" : "%s:", h->resource);
		if (h->smallest)
			text_add(&t, "%u/%u", h->smallest, h->preferred_size);
		else
			text_add(&t, "-/%u", h->preferred_size);
	}
	return buf;
}

static const char *memory_policy_of(
	const struct daemon *d, const struct request *req, const struct decision *dec)
{
	struct request could = *req;

	could.no_memory_policy = false;
	const enum wish_memory policy = decision_memory_policy(&d->settings, &could, dec);
	if (!dec->admit || !policy)
		return "none";
	return req->no_memory_policy ? "not-applied" : wish_memory_words[policy];
}

void note_recent(const struct daemon *d, const struct request *req, const struct decision *dec,
	const char *cause, const char *why)
{
	const struct recent_note n = {loop_wall_ms(), cause, why};

	if (d->show.recent)
		recent_add(d->show.recent, &n, req, dec);
}

void log_decision(const struct daemon *d, const struct request *req, const struct decision *dec,
	const char *cause, const char *why, size_t nr_updates, uint64_t took_ns)
{
	char pod[512], name[256], cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX],
		nodes[NODESET_TEXT_MAX] = "none";
	char hints[HINTS_TEXT_MAX], quoted_hints[HINTS_TEXT_MAX + 2],
		message[2 * DECISION_MESSAGE_MAX], wished[WISHES_TEXT_MAX],
		quoted_wishes[WISHES_TEXT_MAX + 2], because[2 * sizeof((struct err *)0)->text];

	struct text t;

	text_init(&t, wished, sizeof wished);
	wishes_print(&req->ask.wishes, &t);
	if (dec->has_affinity)
		nodeset_format(dec->nodes, &d->topo.ids, nodes, sizeof nodes);
	log_line(dec->admit ? LOG_INFO : LOG_WARN, "decision",
		"cause=%s namespace=%s pod=%s container=%s id=%.12s qos=%s verdict=%s policy=%s "
		"exclusive=%s cpus=%s mems=%s "
		"nodes=%s preferred=%s source=%s apart=%s hints=%s hint=%s wishes=%s memory_policy=%s reason=%s message=%s "
		"why=%s updates=%zu took_us=%llu",
		cause, req->pod.ns, log_text(pod, sizeof pod, req->pod.name),
		log_text(name, sizeof name, req->ask.name), req->container_id,
		qos_words[req->pod.qos], dec->admit ? "admitted" : "refused",
		topology_policy_words[dec->policy],
		request_shares_in_pod(req, dec) ? "pod"
		: dec->exclusive                ? "yes"
						: "no",
		cpuset_format(&dec->cpus, cpus, sizeof cpus),
		nodeset_format(dec->mems, &d->topo.ids, mems, sizeof mems), nodes,
		dec->preferred ? "yes" : "no", decision_source_words[dec->source],
		pod_apart_words[dec->apart],
		log_text(quoted_hints, sizeof quoted_hints, hints_text(dec, hints)),
		dec->advice.looked_at ? advice_verdict_words[dec->advice.verdict] : "none",
		t.len ? log_text(quoted_wishes, sizeof quoted_wishes, wished) : "none",
		memory_policy_of(d, req, dec), dec->reason ? dec->reason : "none",
		log_text(message, sizeof message, dec->message),
		log_text(because, sizeof because, why), nr_updates,
		(unsigned long long)(took_ns / NS_PER_US));
	note_recent(d, req, dec, cause, why);
}

/* A change that the engine made on its own account: who was adopted, who is gone. */
void log_record(void *ctx, const struct record *r)
{
	struct daemon *d = ctx;

	d->measured.counters.released += r->op == RECORD_RELEASE;
	if (r->op == RECORD_RELEASE)
		log_line(LOG_INFO, "released", "cause=%s id=%.12s", r->cause, r->container_id);
	if (r->op == RECORD_GRANT && text_equal(r->cause, "adopt")) {
		d->measured.counters.adopted++;
		log_decision(d, r->request, r->decision, "adopt", "", 0, 0);
	}
	if (text_equal(r->cause, "hotplug") || text_equal(r->cause, "restart")) {
		d->measured.counters.relocated++;
		log_decision(d, r->request, r->decision, r->cause, "", 0, 0);
	}
}

void log_event(void *ctx, bool bad, const char *event, const char *text)
{
	char buf[1024];

	(void)ctx;
	log_line(bad ? LOG_WARN : LOG_INFO, event, "text=%s", log_text(buf, sizeof buf, text));
}
