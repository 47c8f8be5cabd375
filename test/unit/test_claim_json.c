#include <apiserver/claim_json.h>

#include <codec/api_json.h>
#include <errno.h>
#include <io/file.h>
#include <numafit/mem.h>
#include <numafit/text.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { BYTES_MAX = 1 << 20, TEXT_MAX = 64 << 10, BAD_MAX = 4096 };

/* A claim and what it was read from. */
struct reading {
	struct json_t *object;
	struct arena arena;
	struct resource_claim claim;
	struct err e;
	int rc;
};

/* Cases are written with ' for ". */
static void read_claim_within(struct reading *r, const char *text, size_t limit)
{
	auto_free char *copy = xstrdup(text);

	*r = (struct reading){0};
	for (char *c = copy; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	if (api_json_parse(copy, strlen(copy), &r->object, &r->e))
		fail_msg("%s: %s", r->e.text, text);
	arena_init(&r->arena, limit);
	r->rc = claim_json_read(r->object, &r->arena, &r->claim, &r->e);
}

static void read_claim(struct reading *r, const char *text)
{
	read_claim_within(r, text, CLAIM_JSON_BYTES_MAX);
}

static void done(struct reading *r)
{
	arena_fini(&r->arena);
	api_json_free(r->object);
}

#define META "'metadata':{'name':'c','namespace':'ns','uid':'u-1'}"

/* A claim whose allocation has this as its devices, and is for those pods. */
static void read_devices(struct reading *r, const char *devices, const char *reserved)
{
	auto_free char *text = NULL;

	assert_true(asprintf(&text,
			    "{" META ",'status':{'allocation':{'devices':%s},'reservedFor':%s}}",
			    devices, reserved) > 0);
	read_claim(r, text);
}

/* One share of request r with that capacity. */
#define RESULT(request, capacity)                                                                  \
	"{'driver':'numafit.io','request':'" request "','pool':'n1','device':'numa0',"             \
	"'consumedCapacity':{" capacity "}}"
#define SHARE_ID(id, capacity)                                                                     \
	"{'driver':'numafit.io','request':'r','pool':'n1','device':'numa0','shareID':'" id "',"    \
	"'consumedCapacity':{" capacity "}}"

static void a_share_has_cpus_and_kinds_of_memory_in_order(void **state)
{
	struct reading r;

	(void)state;
	read_devices(&r,
		"{'results':[" SHARE_ID("s-1",
			"'hugepages_1Gi':'2Gi','cpu':'4','hugepages_2Mi':4194304,'memory':'8Gi',"
			"'hugepages_64Ki':'0'") "]}",
		"[{'resource':'pods','name':'p','uid':'pod-1'}]");
	assert_int_equal(r.rc, 0);
	assert_string_equal(r.claim.uid, "u-1");
	assert_string_equal(r.claim.ns, "ns");
	assert_string_equal(r.claim.name, "c");
	assert_null(r.claim.pod_claim_name);
	assert_int_equal(r.claim.nr, 1);
	const struct claim_share *s = r.claim.share;
	assert_string_equal(s->request, "r");
	assert_string_equal(s->pool, "n1");
	assert_string_equal(s->device, "numa0");
	assert_string_equal(s->share_id, "s-1");
	assert_int_equal(s->cpus, 4);
	assert_int_equal(s->nr_memory, 3);
	assert_int_equal(s->memory[0].page_bytes, 0);
	assert_int_equal(s->memory[0].bytes, UINT64_C(8) << 30);
	assert_int_equal(s->memory[1].page_bytes, 2 << 20);
	assert_int_equal(s->memory[1].bytes, 4 << 20);
	assert_int_equal(s->memory[2].page_bytes, 1 << 30);
	assert_int_equal(s->memory[2].bytes, UINT64_C(2) << 30);
	assert_false(s->whole_cores);
	assert_false(s->shared);
	assert_int_equal(r.claim.nr_pods, 1);
	assert_string_equal(r.claim.pod_uid[0], "pod-1");
	done(&r);
}

static void results_of_other_drivers_and_admin_access_are_passed_by(void **state)
{
	struct reading r;

	(void)state;
	read_devices(&r,
		"{'results':[{'driver':'gpu.example.com','request':'g','pool':'n1',"
		"'device':'gpu0','consumedCapacity':{'cpu':'-1'}},"
		"{'driver':'numafit.io','adminAccess':true},"
		"{'driver':'numafit.io','adminAccess':false,'request':'r','pool':'n1',"
		"'device':'numa3','consumedCapacity':{'cpu':'1'}}]}",
		"null");
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.claim.nr, 1);
	assert_string_equal(r.claim.share->device, "numa3");
	assert_null(r.claim.share->share_id);
	assert_int_equal(r.claim.nr_pods, 0);
	done(&r);
}

static void consumers_that_are_no_pods_are_counted(void **state)
{
	struct reading r;

	(void)state;
	read_devices(&r, "{}",
		"[{'resource':'pods','name':'a','uid':'1'},{'resource':'jobs','uid':'2'},"
		"{'apiGroup':'example.com','resource':'pods','uid':'3'},"
		"{'apiGroup':'','resource':'pods','name':'b','uid':'4'},{},"
		"{'resource':'pods','name':'a','uid':'1'}]");
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.claim.nr, 0);
	assert_int_equal(r.claim.nr_pods, 2);
	assert_string_equal(r.claim.pod_uid[0], "1");
	assert_string_equal(r.claim.pod_uid[1], "4");
	assert_int_equal(r.claim.nr_others, 3);
	assert_string_equal(r.claim.other.resource, "jobs");
	done(&r);
}

#define OPAQUE(members)                                                                            \
	"'opaque':{'driver':'numafit.io','parameters':{'apiVersion':'numafit.io/v1',"              \
	"'kind':'ClaimParameters'" members "}}"
#define FROM_CLASS(requests, members)                                                              \
	"{'source':'FromClass','requests':[" requests "]," OPAQUE(members) "}"
#define FROM_CLAIM(requests, members)                                                              \
	"{'source':'FromClaim','requests':[" requests "]," OPAQUE(members) "}"

static void parameters_count_for_their_requests_the_claims_own_last(void **state)
{
	static const struct {
		const char *config;
		const char
			*want; /* of three shares: W for wholeCores, S for shared, - for neither */
	} rows[] = {
		{"[]", "- - -"},
		{"null", "- - -"},
		{"[" FROM_CLAIM("", ",'wholeCores':true") "]", "W W W"},
		{"[{'source':'FromClaim'," OPAQUE(",'shared':true") "}]", "S S S"},
		{"[" FROM_CLAIM("'a'", ",'wholeCores':true,'shared':true") "]", "WS - -"},
		/* a request's name stands for its subrequests */
		{"[" FROM_CLAIM("'b'", ",'shared':true") "]", "- S S"},
		{"[" FROM_CLAIM("'b/two'", ",'shared':true") "]", "- - S"},
		{"[" FROM_CLAIM("'b/tw','bb',''", ",'shared':true") "]", "- - -"},
		/* whatever their order is */
		{"[" FROM_CLAIM("", ",'shared':false") "," FROM_CLASS(
			 "", ",'shared':true,'wholeCores':true") "]",
			"W W W"},
		{"[" FROM_CLASS("", ",'shared':true") "," FROM_CLAIM("'a'", "") "]", "S S S"},
		{"[" FROM_CLAIM("", ",'shared':true") "," FROM_CLAIM("'a'", ",'shared':false") "]",
			"- S S"},
		/* others' are none of our business */
		{"[{'source':'FromClaim','opaque':{'driver':'x','parameters':[7]}}]", "- - -"},
		{"[{'source':'FromClaim','somethingNew':{}}]", "- - -"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		auto_free char *devices = NULL;
		char got[16] = "";
		struct reading r;
		struct text t;

		assert_true(
			asprintf(&devices,
				"{'results':[" RESULT("a",
					"'cpu':1") ",{'driver':'numafit.io',"
						   "'request':'b/one','pool':'n1','device':'numa1',"
						   "'consumedCapacity':{'cpu':1}},{'driver':'numafit.io',"
						   "'request':'b/two','pool':'n1','device':'numa2',"
						   "'consumedCapacity':{'cpu':1}}],'config':%s}",
				rows[i].config) > 0);
		read_devices(&r, devices, "[]");
		if (r.rc)
			fail_msg("%s: %s", rows[i].config, r.e.text);
		text_init(&t, got, sizeof got);
		for (size_t s = 0; s < r.claim.nr; s++)
			text_add(&t, "%s%s%s%s", s ? " " : "",
				r.claim.share[s].whole_cores ? "W" : "",
				r.claim.share[s].shared ? "S" : "",
				r.claim.share[s].whole_cores || r.claim.share[s].shared ? "" : "-");
		if (!text_equal(got, rows[i].want))
			fail_msg("%s: %s, not %s", rows[i].config, got, rows[i].want);
		done(&r);
	}
}

static void a_claim_that_is_not_allocated_is_to_be_asked_for_again(void **state)
{
	static const char *const texts[] = {"{" META "}", "{" META ",'status':{}}",
		"{" META ",'status':null}", "{" META ",'status':{'allocation':null}}"};
	struct reading r;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		read_claim(&r, texts[i]);
		assert_int_equal(r.rc, -EAGAIN);
		assert_non_null(strstr(r.e.text, "it is not allocated yet"));
		done(&r);
	}
}

#define DEVICES(d)      "{" META ",'status':{'allocation':{'devices':{" d "}}}}"
#define RESULTS(r)      DEVICES("'results':[" r "]")
#define CONFIG(c)       DEVICES("'config':[" c "]")
#define AT_RESULT(text) "resourceclaim ns/c: status: allocation.devices: results[0]: " text
#define AT_CONFIG(text) "resourceclaim ns/c: status: allocation.devices: config[0]: " text
#define CAPACITY(c)     RESULTS(RESULT("r", c))
#define AT_CAPACITY(t)  AT_RESULT("consumedCapacity: " t)
#define PARAMETERS(p)                                                                              \
	CONFIG("{'source':'FromClaim','opaque':{'driver':'numafit.io','parameters':" p "}}")
#define AT_PARAMETERS(t) AT_CONFIG("opaque: parameters: " t)
#define KIND             "'apiVersion':'numafit.io/v1','kind':'ClaimParameters'"

static void what_is_wrong_is_said_with_its_place(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"{}", "resourceclaim /: metadata: namespace: should be a name, is nothing"},
		{"{'metadata':[]}", "resourceclaim /: metadata: should be an object, is a list"},
		{"{'metadata':{'namespace':'n','name':7}}",
			"resourceclaim n/: metadata: name: should be a string, is an integer"},
		{"{'metadata':{'namespace':'n','name':'c'}}",
			"resourceclaim n/c: metadata: uid: should be a name, is nothing"},
		{"{'metadata':{'namespace':'n','name':'c','uid':'../../etc'}}",
			"resourceclaim n/c: metadata: uid: \"../../etc\" is no uid"},
		{"{'metadata':{'namespace':'n','name':'c','uid':'u','annotations':["
		 "]}}",
			"resourceclaim n/c: metadata: annotations: should be an object, is a list"},
		{"{'metadata':{'namespace':'n','name':'c','uid':'u','annotations':{"
		 "'resource.kubernetes.io/pod-claim-name':{}}}}",
			"resourceclaim n/c: metadata: resource.kubernetes.io/pod-claim-name: should "
			"be a string, is an object"},
		{"{" META ",'status':7}",
			"resourceclaim ns/c: status: should be an object, is an integer"},
		{"{" META ",'status':{'allocation':[]}}",
			"resourceclaim ns/c: status: allocation: should be an object, is a list"},
		{"{" META ",'status':{'allocation':{'devices':7}}}",
			"resourceclaim ns/c: status: allocation: devices: should be an object, is an "
			"integer"},
		{DEVICES("'results':{}"),
			"resourceclaim ns/c: status: allocation.devices: results: should be a list, "
			"is an object"},
		{RESULTS("[[[]]]"), AT_RESULT("should be an object, is a list")},
		{RESULTS("{}"), AT_RESULT("driver: should be a name, is nothing")},
		{RESULTS("{'driver':'numafit.io','adminAccess':'yes'}"),
			AT_RESULT("adminAccess: should be true or false, is a string")},
		{RESULTS("{'driver':'numafit.io'}"),
			AT_RESULT("request: should be a name, is nothing")},
		{RESULTS("{'driver':'numafit.io','request':'r'}"),
			AT_RESULT("pool: should be a name, is nothing")},
		{RESULTS("{'driver':'numafit.io','request':'r','pool':'p','device':''}"),
			AT_RESULT("device: should be a name, is nothing")},
		{RESULTS("{'driver':'numafit.io','request':'r','pool':'p','device':'d','shareID':7}"),
			AT_RESULT("shareID: should be a string, is an integer")},
		{RESULTS("{'driver':'numafit.io','request':'r','pool':'p','device':'d',"
			 "'shareID':'a/b'}"),
			AT_RESULT("shareID: \"a/b\" is no uid")},
		{RESULTS("{'driver':'numafit.io','request':'r','pool':'p','device':'d',"
			 "'consumedCapacity':[]}"),
			AT_RESULT("consumedCapacity: should be an object, is a list")},
		{CAPACITY(""), AT_CAPACITY("cpu: should be 1 at least")},
		{CAPACITY("'cpu':'0'"), AT_CAPACITY("cpu: should be 1 at least")},
		{CAPACITY("'cpu':'2500m'"), AT_CAPACITY("cpu: it is not a whole number")},
		{CAPACITY("'cpu':1.5"), AT_CAPACITY("cpu: it is not a whole number")},
		{CAPACITY("'cpu':'-2'"), AT_CAPACITY("cpu: it is negative")},
		{CAPACITY("'cpu':'-500m'"), AT_CAPACITY("cpu: it is negative")},
		{CAPACITY("'cpu':true"), AT_CAPACITY("cpu: should be a quantity, is true")},
		{CAPACITY("'cpu':null"), AT_CAPACITY("cpu: should be a quantity, is null")},
		{CAPACITY("'cpu':'99999999999999999999999999'"),
			AT_CAPACITY("cpu: it is more than a machine has")},
		{CAPACITY("'cpu':'1','memory':'1E'"),
			AT_CAPACITY("memory: it is more than a machine has")},
		{CAPACITY("'cpu':'1','memory':'1e3000'"),
			AT_CAPACITY("memory: it is more than a machine has")},
		{CAPACITY("'cpu':'1','memory':'100m'"),
			AT_CAPACITY("memory: it is not a whole number")},
		{CAPACITY("'cpu':'1','hugepages_1Gi':'1Gi','hugepages_1024Mi':'1Gi'"),
			AT_CAPACITY("hugepages_1024Mi: this kind of memory is there twice")},
		{CAPACITY("'cpu':'1','hugepages_':'1Gi'"),
			AT_CAPACITY("hugepages_: no capacity of that name is known")},
		{CAPACITY("'cpu':'1','numafit.io/cpu':'1'"),
			AT_CAPACITY("numafit.io/cpu: no capacity of that name is known")},
		{RESULTS(SHARE_ID("s", "'cpu':1") "," SHARE_ID("s", "'cpu':1")),
			"resourceclaim ns/c: status: allocation.devices: results[1]: device numa0, "
			"shareID s: it is there twice"},
		{DEVICES("'config':{}"),
			"resourceclaim ns/c: status: allocation.devices: config: should be a list, "
			"is an object"},
		{CONFIG("7"), AT_CONFIG("should be an object, is an integer")},
		{CONFIG("{'opaque':[]}"), AT_CONFIG("opaque: should be an object, is a list")},
		{CONFIG("{'opaque':{'driver':7}}"),
			AT_CONFIG("opaque: driver: should be a string, is an integer")},
		{CONFIG("{'opaque':{'driver':'numafit.io'}}"),
			AT_CONFIG("source: should be \"FromClass\" or \"FromClaim\", is \"\"")},
		{CONFIG("{'source':'FromClaim','requests':[7],'opaque':{'driver':'numafit.io'}}"),
			AT_CONFIG("requests[0]: should be a string, is an integer")},
		{CONFIG("{'source':'FromClaim','opaque':{'driver':'numafit.io'}}"),
			AT_PARAMETERS("should be an object, is nothing")},
		{PARAMETERS("[]"), AT_PARAMETERS("should be an object, is a list")},
		{PARAMETERS("{}"),
			AT_PARAMETERS("apiVersion: should be \"numafit.io/v1\", is \"\"")},
		{PARAMETERS("{'apiVersion':'numafit.io/v2'}"),
			AT_PARAMETERS("apiVersion: should be \"numafit.io/v1\", is "
				      "\"numafit.io/v2\"")},
		{PARAMETERS("{'apiVersion':'numafit.io/v1','kind':'x'}"),
			AT_PARAMETERS("kind: should be \"ClaimParameters\", is \"x\"")},
		{PARAMETERS("{" KIND ",'wholecores':true}"),
			AT_PARAMETERS("unknown key \"wholecores\"")},
		{PARAMETERS("{" KIND ",'shared':'true'}"),
			AT_PARAMETERS("shared: should be true or false, is a string")},
		{"{" META ",'status':{'allocation':{},'reservedFor':{}}}",
			"resourceclaim ns/c: status: reservedFor: should be a list, is an object"},
		{"{" META ",'status':{'allocation':{},'reservedFor':[[]]}}",
			"resourceclaim ns/c: status: reservedFor[0]: should be an object, is a list"},
		{"{" META ",'status':{'allocation':{},'reservedFor':[{'resource':'pods'}]}}",
			"resourceclaim ns/c: status: reservedFor[0]: uid: should be a name, is "
			"nothing"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct reading r;

		read_claim(&r, rows[i].text);
		assert_int_equal(r.rc, -EINVAL);
		assert_string_equal(r.e.text, rows[i].want);
		done(&r);
	}
}

static void add_shares(struct text *t, unsigned nr)
{
	text_add(t, "{" META ",'status':{'allocation':{'devices':{'results':[");
	for (unsigned i = 0; i < nr; i++)
		text_add(t,
			"%s{'driver':'numafit.io','request':'r','pool':'p','device':'d%u',"
			"'consumedCapacity':{'cpu':1}}",
			i ? "," : "", i);
	text_add(t, "]}}}}");
}

static void add_pods(struct text *t, unsigned nr)
{
	text_add(t, "{" META ",'status':{'allocation':{},'reservedFor':[");
	for (unsigned i = 0; i < nr; i++)
		text_add(t, "%s{'resource':'pods','uid':'p%u'}", i ? "," : "", i);
	text_add(t, "]}}");
}

static void add_kinds(struct text *t, unsigned nr)
{
	text_add(t, "{" META ",'status':{'allocation':{'devices':{'results':[{'driver':"
		    "'numafit.io','request':'r','pool':'p','device':'d','consumedCapacity':{"
		    "'cpu':1");
	for (unsigned i = 1; i <= nr; i++)
		text_add(t, ",'hugepages_%uMi':'%uMi'", 1U << i, 1U << i);
	text_add(t, "}}]}}}}");
}

static void more_than_there_can_be_is_refused(void **state)
{
	static const struct {
		void (*add)(struct text *t, unsigned nr);
		unsigned most;
	} rows[] = {{add_shares, CLAIM_SHARES_MAX}, {add_pods, CLAIM_PODS_MAX},
		{add_kinds, TOPO_KINDS}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (unsigned over = 0; over <= 1; over++) {
			auto_free char *buf = xcalloc(1, TEXT_MAX);
			struct reading r;
			struct text t;

			text_init(&t, buf, TEXT_MAX);
			rows[i].add(&t, rows[i].most + over);
			assert_false(t.cut);
			read_claim(&r, buf);
			assert_int_equal(r.rc, over ? -E2BIG : 0);
			done(&r);
		}
}

static void a_name_or_uid_that_is_too_long_is_refused(void **state)
{
	char text[BAD_MAX];
	struct reading r;

	(void)state;
	for (int over = 0; over <= 1; over++) {
		(void)snprintf(text, sizeof text,
			"{'metadata':{'namespace':'n','name':'c','uid':'%0*d'}}",
			CLAIM_UID_MAX - 1 + over, 0);
		read_claim(&r, text);
		assert_int_equal(r.rc, over ? -EINVAL : -EAGAIN);
		done(&r);
		(void)snprintf(text, sizeof text,
			"{'metadata':{'namespace':'n','name':'%0*d','uid':'u'}}", 253 + over, 0);
		read_claim(&r, text);
		assert_int_equal(r.rc, over ? -EINVAL : -EAGAIN);
		done(&r);
	}
}

static void an_arena_that_is_too_small_is_an_error(void **state)
{
	enum { SMALL = 100, LARGER = CLAIM_SHARES_MAX * sizeof(struct claim_share) + SMALL };
	static const size_t limits[] = {SMALL, LARGER};
	struct reading r;

	(void)state;
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		read_claim_within(&r, CAPACITY("'cpu':1"), limits[i]);
		assert_int_equal(r.rc, -ENOMEM);
		done(&r);
	}
}

static const struct json_t *by_name(const struct json_t *list, size_t nr, const char *name)
{
	struct api_meta meta;

	for (size_t i = 0; i < nr; i++) {
		api_json_meta(api_json_item(list, i), &meta);
		if (text_equal(meta.name, name))
			return api_json_item(list, i);
	}
	fail_msg("there is no claim %s", name);
	return NULL;
}

/* What a real cluster 1.37.1 has allocated. */
static void recorded_claims_are_read(void **state)
{
	static const struct {
		const char *name, *pod_claim_name;
		size_t nr;
		const char *request, *device;
		uint64_t cpus, bytes;
	} rows[] = {
		{"c1-numa-57rjf", "numa", 1, "numa", "node2", 4, UINT64_C(8) << 30},
		{"shared", NULL, 1, "numa", "node0", 2, 0},
		{"g1-numa-4fdhc", "numa", 1, "numa", "node2", 4, UINT64_C(8) << 30},
		{"h1-numa-zfbnz", "numa", 2, "b", "node2", 6, 0},
		{"p1-numa-tq7mg", "numa", 1, "numa/whole", "node3", 12, 0},
		{"e1-extended-resources-cxl7v", NULL, 4, "container-0-request-2", "node6", 1, 0},
		{"four", NULL, 0, NULL, NULL, 0, 0}, /* another driver's */
	};
	auto_free char *text = NULL;
	struct json_t *list;
	struct api_list all;
	size_t len;

	(void)state;
	assert_int_equal(
		file_read("test/golden/resourceclaims.json", BYTES_MAX, &text, &len, NULL), 0);
	assert_int_equal(api_json_parse(text, len, &list, NULL), 0);
	assert_int_equal(api_json_list(list, &all, NULL), 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct resource_claim claim;
		struct err e = {0};
		struct arena a;

		arena_init(&a, CLAIM_JSON_BYTES_MAX);
		if (claim_json_read(by_name(list, all.nr, rows[i].name), &a, &claim, &e))
			fail_msg("%s", e.text);
		assert_true(text_equal(claim.pod_claim_name, rows[i].pod_claim_name));
		assert_int_equal(claim.nr, rows[i].nr);
		assert_int_equal(claim.nr_pods, 1);
		if (claim.nr) {
			const struct claim_share *last = &claim.share[claim.nr - 1];

			assert_string_equal(last->request, rows[i].request);
			assert_string_equal(last->device, rows[i].device);
			assert_int_equal(last->cpus, rows[i].cpus);
			assert_int_equal(last->nr_memory, rows[i].bytes != 0);
			assert_int_equal(last->memory[0].bytes, rows[i].bytes);
		}
		arena_fini(&a);
	}
	api_json_free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_share_has_cpus_and_kinds_of_memory_in_order),
		cmocka_unit_test(results_of_other_drivers_and_admin_access_are_passed_by),
		cmocka_unit_test(consumers_that_are_no_pods_are_counted),
		cmocka_unit_test(parameters_count_for_their_requests_the_claims_own_last),
		cmocka_unit_test(a_claim_that_is_not_allocated_is_to_be_asked_for_again),
		cmocka_unit_test(what_is_wrong_is_said_with_its_place),
		cmocka_unit_test(more_than_there_can_be_is_refused),
		cmocka_unit_test(a_name_or_uid_that_is_too_long_is_refused),
		cmocka_unit_test(an_arena_that_is_too_small_is_an_error),
		cmocka_unit_test(recorded_claims_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
