#include <stddef.h>
#include <stdint.h>

#include <codec/fields_json.h>
#include <questions/policy_json.h>
#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A refusal has a reason; a machine that was read has its nodes in order. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct policy_question q = {0};
	json_t *item = NULL;
	struct err e = {0};

	if (json_parse((const char *)data, size, &item, &e))
		return 0;
	int rc = policy_json_machine(item, &q, &e);
	for (unsigned i = 1; !rc && i < q.ids.nr; i++)
		if (q.ids.id[i - 1] >= q.ids.id[i])
			abort();
	if (!rc)
		rc = policy_json_start(item, &q, &e);
	if (rc && !e.text[0])
		abort();
	json_decref(item);
	return 0;
}
