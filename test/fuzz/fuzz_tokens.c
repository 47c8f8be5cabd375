/* Ids of tokens, sets of them and the annotation that a container comes with: what is read is what
 * would be written, and nothing that was never given out is granted. */
#include <numafit/leases.h>

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct settings settings;
static struct topo machine;
static struct leases *leases;

/* Two nodes of four CPUs, 0 and 8; three tokens of each are given out. */
static void build(void)
{
	struct tokenset given = {0};
	uint64_t name;

	topo_init(&machine, "two");
	(void)topo_add_node(&machine, 0, NULL);
	(void)topo_add_node(&machine, 8, NULL);
	for (unsigned c = 0; c < 8; c++)
		(void)topo_add_cpu(&machine, c, c / 4, c, 0, c / 4, NULL);
	(void)topo_set_memory(&machine, 0, 0, 1 << 30, NULL);
	if (topo_seal(&machine, NULL))
		abort();
	leases = leases_new(&machine, &settings);
	for (uint16_t i = 0; i < 6; i++)
		tokenset_add(&given, (struct token){i / 3, i % 3});
	if (leases_may_allocate(leases, 7, &given, &name, NULL))
		abort();
	(void)leases_allocate(leases, 7, &given, name);
}

static void read_id(const char *text)
{
	char again[TOKEN_ID_MAX];
	struct token k;

	if (tokens_parse(&machine.ids, text, &k, NULL) == 0 &&
		strcmp(tokens_format(&machine.ids, k, again, sizeof again), text) != 0)
		abort();
}

static void read_set(const char *text)
{
	char again[TOKENSET_TEXT_MAX];
	struct tokenset s;

	if (tokenset_parse(&s, &machine.ids, text, NULL) == 0 &&
		strcmp(tokenset_format(&s, &machine.ids, again, sizeof again), text) != 0)
		abort();
}

static void read_annotation(const char *text)
{
	static const struct lease_user user = {"c", "main", "u", "ns", "pod"};
	struct tokenset leased, claimed;
	struct lease_claim c;

	for (uint64_t nr = 0; nr < 8; nr++) {
		if (leases_examine(leases, text, &user, nr, &c, NULL))
			continue;
		leases_tokens(leases, &leased, &claimed);
		if (tokenset_count(&c.tokens) != nr || c.name != 7)
			abort();
		tokenset_each (k, &c.tokens)
			if (!tokenset_has(&leased, k))
				abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!leases)
		build();
	memcpy(text, data, size);
	text[size] = '\0';
	read_id(text);
	read_set(text);
	read_annotation(text);
	free(text);
	return 0;
}
