#include <daemon-files/kubelet_state_json.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <numafit/text.h>

enum { POLICY_NAME_MAX = 64 };

struct checkpoint {
	char policy[POLICY_NAME_MAX];
};

static const struct field rows[] = {
	FIELD("policyName", CHARS, offsetof(struct checkpoint, policy), .max = POLICY_NAME_MAX),
};
static const struct fields fields = FIELDS(rows, struct checkpoint);

int kubelet_state_json_parse(const char *text, size_t len, bool *is_static, struct err *e)
{
	struct checkpoint c = {0};

	if (len > KUBELET_STATE_MAX)
		return err_set(e, ENOMEM, "longer than %d bytes", KUBELET_STATE_MAX);
	int rc = fields_parse(text, len, &fields, &c, &(struct fields_context){0}, e);
	if (!rc) /* the CPU manager writes it small, the memory manager large */
		*is_static = text_equal(c.policy, "static") || text_equal(c.policy, "Static");
	return rc;
}
