#ifndef NUMAFIT_TEST_FAKE_CLAIMS_H
#define NUMAFIT_TEST_FAKE_CLAIMS_H

#include "fake_api.h"

/* What an API server says of ResourceClaims of namespace shop, and of the little else that a DRA
 * driver asks for. */

enum { SHARES = 3, API_OK = 200 };
#define API_CLAIMS "/apis/resource.k8s.io/v1/namespaces/shop/resourceclaims/"

/* A claim as the API server has it. */
struct api_claim {
	const char *uid, *name; /* uid NULL: there is none */
	const char *
		pod; /* the uid of the pod that it is reserved for; NULL: "p0"; "": there is none */
	bool not_allocated;
	const char *pool[SHARES];   /* of each share; NULL: ours */
	const char *request;        /* NULL: "cpus" */
	const char *device[SHARES]; /* NULL: no more */
	unsigned cpus[SHARES];
	const char *memory; /* of each share; NULL: none */
	bool from_template, admin_access;
	const char *reserved_for; /* JSON of the list, instead of that pod; NULL: that pod */
};

static inline void api_claim_add_results(
	struct text *t, const struct api_claim *c, const char *pool)
{
	for (unsigned i = 0; i < SHARES && c->device[i]; i++)
		text_add(t,
			"%s{\"driver\":\"numafit.io\",\"request\":\"%s\",\"pool\":\"%s\",\"device\":"
			"\"%s\",%s\"shareID\":\"share-%s-%u\",\"consumedCapacity\":{\"cpu\":\"%u\"%s%s%s}}",
			i ? "," : "", c->request ? c->request : "cpus", c->pool[i] ? c->pool[i] : pool,
			c->device[i], c->admin_access ? "\"adminAccess\":true," : "", c->uid, i,
			c->cpus[i], c->memory ? ",\"memory\":\"" : "", c->memory ? c->memory : "",
			c->memory ? "\"" : "");
}

/* The claim, which is allocated; pool: ours. */
static inline void api_claim_answer(struct fake_ask *q, const struct api_claim *c, const char *pool)
{
	char body[4096];
	struct text t;

	text_init(&t, body, sizeof body);
	text_add(&t,
		"{\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"shop\",\"uid\":"
		"\"%s\"%s},\"status\":{\"allocation\":{\"devices\":{\"results\":[",
		c->name, c->uid,
		c->from_template
			? ",\"annotations\":{\"resource.kubernetes.io/pod-claim-name\":\"numa\"}"
			: "");
	api_claim_add_results(&t, c, pool);
	if (c->not_allocated)
		*strstr(body, ",\"status\"") = '\0';
	if (c->not_allocated)
		(void)strcat(body, "}");
	else if (c->reserved_for)
		text_add(&t, "]}},\"reservedFor\":%s}}", c->reserved_for);
	else if (c->pod && !*c->pod)
		text_add(&t, "]}}}}");
	else
		text_add(&t,
			"]}},\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"%s\"}]}}",
			c->pod ? c->pod : "p0");
	assert_false(t.cut);
	fake_api_answer(q, API_OK, NULL, body);
}

static inline void api_status_answer(struct fake_ask *q, int code, const char *message)
{
	char body[256];

	(void)snprintf(body, sizeof body,
		"{\"kind\":\"Status\",\"code\":%d,\"reason\":\"%s\",\"message\":\"%s\"}", code,
		code == 404 ? "NotFound" : "Unavailable", message);
	fake_api_answer(q, code, NULL, body);
}

/* No ResourceSlice is there; a watch goes on, and shows nothing. */
static inline void api_no_slices_answer(struct fake_ask *q)
{
	if (!strstr(q->path, "watch="))
		fake_api_answer(q, API_OK, NULL,
			"{\"kind\":\"ResourceSliceList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":"
			"[]}");
}

/* That pod is all that there is; a watch goes on, and shows nothing. */
static inline void api_pod_answer(struct fake_ask *q, const char *pod)
{
	char body[2048];

	if (strstr(q->path, "watch="))
		return;
	(void)snprintf(body, sizeof body,
		"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[%s]}",
		pod);
	fake_api_answer(q, API_OK, NULL, body);
}

static inline void api_node_answer(struct fake_ask *q)
{
	fake_api_answer(q, API_OK, NULL,
		"{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"uid\":\"node-uid\"},\"status\":"
		"{\"nodeInfo\":{\"kubeletVersion\":\"v1.37.1\"}}}");
}

#endif
