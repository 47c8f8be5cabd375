#ifndef NUMAFIT_TEST_ENGINE_TOKENS_CASES_H
#define NUMAFIT_TEST_ENGINE_TOKENS_CASES_H

#include <numafit/engine.h>

#include "core_tokens.h"

#include <errno.h>

/* What the cases of tokens share: pods that come with tokens, and the kubelet that gave them. */

/* How many tokens of the node the kubelet could give to somebody, by its list. */
static inline unsigned healthy_on(const struct node *n, unsigned node)
{
	struct token_reports all;
	struct tokenset leased, claimed;
	unsigned nr = 0;
	struct arena a;

	leases_tokens(ledger_view(engine_ledger(n->g))->leases, &leased, &claimed);
	arena_init(&a, 1 << 20);
	assert_int_equal(ledger_report_tokens(engine_ledger(n->g), &a, &all), 0);
	for (size_t i = 0; i < all.nr; i++) {
		struct token k;

		assert_int_equal(tokens_parse(&n->t->ids, all.at[i].id, &k, NULL), 0);
		nr += k.node == node && all.at[i].healthy && !tokenset_has(&leased, k);
	}
	arena_fini(&a);
	return nr;
}

#endif
