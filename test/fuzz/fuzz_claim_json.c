#include <stddef.h>
#include <stdint.h>

#include <apiserver/claim_json.h>
#include <codec/api_json.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

static void check_share(const struct claim_share *s)
{
	CHECK(*s->request && *s->pool && *s->device && s->cpus && s->nr_memory <= TOPO_KINDS);
	CHECK(!s->share_id || (*s->share_id && strlen(s->share_id) < CLAIM_UID_MAX));
	for (unsigned i = 0; i < s->nr_memory; i++) {
		CHECK(s->memory[i].bytes);
		CHECK(!i || s->memory[i - 1].page_bytes < s->memory[i].page_bytes);
	}
}

/* Sums over all shares stay numbers. */
static void check_sums(const struct resource_claim *c)
{
	uint64_t cpus = 0, bytes = 0;

	for (size_t i = 0; i < c->nr; i++) {
		CHECK(!__builtin_add_overflow(cpus, c->share[i].cpus, &cpus));
		for (unsigned k = 0; k < c->share[i].nr_memory; k++)
			CHECK(!__builtin_add_overflow(bytes, c->share[i].memory[k].bytes, &bytes));
	}
}

static void check_claim(const struct resource_claim *c)
{
	CHECK(*c->uid && strlen(c->uid) < CLAIM_UID_MAX && !strchr(c->uid, '/'));
	CHECK(*c->ns && *c->name);
	CHECK(c->nr <= CLAIM_SHARES_MAX && c->nr_pods <= CLAIM_PODS_MAX);
	for (size_t i = 0; i < c->nr; i++)
		check_share(&c->share[i]);
	check_sums(c);
	for (size_t i = 0; i < c->nr_pods; i++)
		CHECK(*c->pod_uid[i] && !strchr(c->pod_uid[i], '/'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct resource_claim claim;
	struct json_t *v = NULL;
	struct err e = {0};
	struct arena a;

	if (api_json_parse((const char *)data, size, &v, &e))
		return 0;
	arena_init(&a, CLAIM_JSON_BYTES_MAX);
	if (claim_json_read(v, &a, &claim, &e) < 0)
		CHECK(e.code && e.text[0]);
	else
		check_claim(&claim);
	arena_fini(&a);
	api_json_free(v);
	return 0;
}
