#ifndef TEST_DRA_CASES_H
#define TEST_DRA_CASES_H

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dra_daemon_rig.h"

#include <apiserver/pods.h>
#include <io/fault.h>

/* What the cases of the DRA driver share beside its rig. */

static const struct api_claim four_on_4 = {
	"u1", "c1", .device = {"numa4"}, .cpus = {4}, .memory = "1Gi"};

/* The API server has that claim. */
static inline const struct api_claim *put_claim(struct rig *r, unsigned i, struct api_claim c)
{
	r->claim[i] = c;
	return &r->claim[i];
}

static inline void assert_cpus(const struct rig *r, const struct api_claim *c, unsigned place,
	unsigned node, unsigned cpus)
{
	const struct holding *h = held(r, c, place);

	assert_non_null(h);
	assert_int_equal(cpuset_count(&h->decision.cpus), cpus);
	assert_int_equal(cpuset_count_and(&h->decision.cpus, &r->d.topo.node[node].cpus), cpus);
}

/* The time has come at which all claims that are held are read again. */
static inline void read_again(struct rig *r)
{
	const unsigned before = r->claims_read;

	*r->d.dra->refreshed = '\0';
	r->d.dra->round_ms = 0;
	UNTIL(r, r->claims_read > before);
}

#endif
