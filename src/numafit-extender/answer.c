/* An answer to kube-scheduler, and what is counted of it. */
#include "extender.h"

#include <io/log.h>
#include <numafit/number.h>

enum { ANSWER_OK = 200 };

void answer_json(struct http_exchange *exchange, const char *body, size_t len)
{
	http_answer_send(exchange, ANSWER_OK, "application/json", body, len, NULL);
}

void answer_count(
	struct extender *x, enum extender_verb verb, enum extender_result result, uint64_t since_ns)
{
	uint64_t ns = loop_monotonic_ns() - since_ns;

	x->measured.requests[verb][result]++;
	histogram_add(&x->measured.duration[verb], ns);
	log_line(LOG_DEBUG, "request", "verb=%s result=%u us=%llu", extender_verb_name(verb),
		(unsigned)result, (unsigned long long)(ns / NS_PER_US));
}
