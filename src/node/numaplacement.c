#include <numafit/numaplacement.h>

#include <numafit/mem.h>
#include <numafit/nrt_fingerprint.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

uint64_t numaplacement_hash(const char *ns, const char *pod, const char *container)
{
	const char *const part[] = {ns, pod, container};
	enum { PARTS = sizeof part / sizeof *part };
	size_t len = 0;

	for (unsigned i = 0; i < PARTS; i++)
		len += strlen(part[i]) + 1;
	auto_free char *text = xcalloc(len, 1);
	char *at = text;
	for (unsigned i = 0; i < PARTS; i++) {
		memcpy(at, part[i], strlen(part[i]));
		at += strlen(part[i]) + 1;
	}
	return xxh64(text, len - 1, 0);
}

static int by_hash(const void *a, const void *b)
{
	const struct placed_container *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* Each container once. -EEXIST: one of them is on two nodes. */
static int drop_repeated(struct placed_container *list, size_t *nr)
{
	size_t kept = 0;

	for (size_t i = 0; i < *nr; i++) {
		if (!kept || list[kept - 1].hash != list[i].hash)
			list[kept++] = list[i];
		else if (list[kept - 1].node != list[i].node)
			return -EEXIST;
	}
	*nr = kept;
	return 0;
}

/* LEB89: numbers in base 64, written in characters that need no escape in JSON, XML or HTML. The
 * first 64 of them end a number; before it come digits of base 25, highest first, in the others. */
static const char leb89[] = "!#$%'()*+,-./0123456789:;=?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdef"
			    "ghijklmnopqrstuvwxyz{|}~";
enum { ENDS = 64, DIGITS = sizeof leb89 - 1 - ENDS, LEB89_MAX = 16 };
_Static_assert(DIGITS == 25, "89 characters");

/* The number at the end of room for LEB89_MAX characters; where it begins. */
static char *put_leb89(char *end, uint64_t v)
{
	if (v < ENDS) {
		*--end = leb89[v];
		return end;
	}
	v -= ENDS;
	*--end = leb89[v % ENDS];
	v /= ENDS;
	do
		*--end = leb89[ENDS + v % DIGITS];
	while (v /= DIGITS);
	return end;
}

/* The places of the node's containers in the list: the first one, then from each to the next. */
static const char *vector_of(const struct placed_container *list, size_t nr, unsigned node,
	size_t nr_there, struct arena *a)
{
	char *vector = arena_array(a, nr_there + 1, LEB89_MAX), *at = vector;
	size_t before = 0;

	for (size_t i = 0; i < nr && vector; i++) {
		char number[LEB89_MAX], *end = number + sizeof number;

		if (list[i].node != node)
			continue;
		char *begin = put_leb89(end, i - before);
		memcpy(at, begin, (size_t)(end - begin));
		at += end - begin;
		before = i;
	}
	return vector;
}

int numaplacement_pack(struct placed_container *list, size_t nr, unsigned nr_nodes, struct arena *a,
	struct numaplacement *out)
{
	struct numaplacement packed = {0};
	size_t nr_on[NODES_MAX] = {0};
	unsigned busiest = 0;

	if (nr)
		qsort(list, nr, sizeof *list, by_hash);
	int rc = drop_repeated(list, &nr);
	if (rc)
		return rc;
	for (size_t i = 0; i < nr; i++)
		nr_on[list[i].node]++;
	for (unsigned n = 1; n < nr_nodes; n++)
		if (nr_on[n] > nr_on[busiest])
			busiest = n;
	for (unsigned n = 0; n < nr_nodes; n++) {
		if (!nr_on[n] || n == busiest)
			continue;
		packed.vector[n] = vector_of(list, nr, n, nr_on[n], a);
		if (!packed.vector[n])
			return -ENOMEM;
	}
	(void)snprintf(packed.metadata, sizeof packed.metadata,
		"npv0v001::ve=leb89::cc=%zu::nn=%u::bn=%u", nr, nr_nodes, busiest);
	*out = packed;
	return 0;
}
