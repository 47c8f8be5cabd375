#include <numafit/quantity.h>

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { QUANTITY_BYTES = 4096 };

/* A number of thousandths is the number of wholes, rounded up. */
static void check_counts(struct quantity q)
{
	uint64_t whole, milli;

	if (quantity_count(q, QUANTITY_MILLI, &milli, NULL))
		return;
	assert(quantity_count(q, QUANTITY_WHOLE, &whole, NULL) == 0);
	assert(whole == milli / QUANTITY_MILLIS + (milli % QUANTITY_MILLIS != 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[QUANTITY_BYTES + 1], again[QUANTITY_TEXT_MAX];
	struct quantity q, read;

	if (size > QUANTITY_BYTES)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (quantity_parse(&q, text, NULL))
		return 0;
	assert(q.nano < QUANTITY_NANOS);
	check_counts(q);
	/* what is written is read as the same; what is 0 less itself, too */
	assert(quantity_parse(&read, quantity_text(again, q), NULL) == 0);
	assert(quantity_compare(q, read) == 0);
	assert(quantity_is_zero(quantity_sub(q, read)));
	return 0;
}
