#include <daemon-files/cdi_json.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <io/file.h>
#include <limits.h>
#include <numafit/mem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define UID_  "a1c3ee55-4ca0-4fb0-9732-1e353b9cc659"
#define SPEC  "cdi/numafit.io-claim_" UID_ ".json"
#define FILE_ "/numafit.io-metadata.json"

enum { TEXT_MAX = 1 << 20 };

struct world {
	char dir[64], cdi[PATH_MAX], metadata[PATH_MAX];
	struct cdi_options options;
};

static const struct claim_share shares[] = {
	{.request = "numa", .pool = "n1", .device = "numa2"},
	{.request = "other/large", .device = "numa3"},
	{.request = "numa", .pool = "n1", .device = "numa8"},
};
static const unsigned nodes[] = {2, 3, 8};

static struct resource_claim claim_of(size_t nr)
{
	return (struct resource_claim){
		.uid = UID_, .ns = "default", .name = "c1", .nr = nr, .share = shares};
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);
	const char *tmp = getenv("TMPDIR");

	(void)snprintf(w->dir, sizeof w->dir, "%s/test_cdi.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->dir));
	(void)snprintf(w->cdi, sizeof w->cdi, "%s/cdi", w->dir);
	(void)snprintf(w->metadata, sizeof w->metadata, "%s/metadata", w->dir);
	w->options = (struct cdi_options){w->cdi, w->metadata, "n1"};
	*state = w;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static void remove_tree(const char *path)
{
	enum { NR_FDS = 8 };

	assert_int_equal(nftw(path, remove_one, NR_FDS, FTW_DEPTH | FTW_PHYS), 0);
}

static int teardown(void **state)
{
	struct world *w = *state;

	remove_tree(w->dir);
	free(w);
	return 0;
}

static void name(const struct world *w, const char *file, char path[PATH_MAX])
{
	assert_true(snprintf(path, PATH_MAX, "%s/%s", w->dir, file) < PATH_MAX);
}

static bool exists(const struct world *w, const char *file)
{
	char path[PATH_MAX];

	name(w, file, path);
	return access(path, F_OK) == 0;
}

static void make_directory(const struct world *w, const char *file)
{
	char path[PATH_MAX];

	name(w, file, path);
	assert_int_equal(mkdir(path, 0755), 0);
}

static void make_file(const struct world *w, const char *file)
{
	char path[PATH_MAX];

	name(w, file, path);
	int fd = open(path, O_CREAT | O_WRONLY | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
}

/* Where blanks stand in JSON is nobody's business: they are not compared. In want, @ is the
 * directory. */
static void assert_file(const struct world *w, const char *file, const char *want)
{
	auto_free char *text = NULL, *expected = xcalloc(strlen(want) * sizeof w->dir + 1, 1);
	char path[PATH_MAX], *to = expected;
	struct stat st;

	name(w, file, path);
	assert_int_equal(file_read(path, TEXT_MAX, &text, NULL, NULL), 0);
	for (; *want; want++)
		to = *want == '@' ? stpcpy(to, w->dir) : (*to = *want, to + 1);
	to = text;
	for (const char *from = text; *from; from++)
		if (*from != ' ' && *from != '\n')
			*to++ = *from;
	*to = '\0';
	assert_string_equal(text, expected);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
}

static void write_claim(const struct world *w, const struct resource_claim *c)
{
	struct err e = {0};

	assert_int_equal(cdi_write(&w->options, c, nodes, &e), 0);
	assert_string_equal(e.text, "");
}

static void a_share_has_its_numa_node_and_its_metadata(void **state)
{
	struct world *w = *state;
	struct resource_claim c = claim_of(1);
	mode_t before = umask(077); /* it changes nothing */

	write_claim(w, &c);
	(void)umask(before);
	assert_file(w, SPEC,
		"{\"cdiVersion\":\"0.5.0\",\"kind\":\"numafit.io/claim\",\"devices\":[{\"name\":"
		"\"" UID_ "-0\",\"containerEdits\":{\"env\":[\"NUMAFIT_CLAIM_NUMA_NODE_"
		"a1c3ee55_4ca0_4fb0_9732_1e353b9cc659=2\"],\"mounts\":[{\"hostPath\":\"@/metadata/" UID_
		"/numa" FILE_ "\",\"containerPath\":\"/var/run/kubernetes.io/"
		"dra-device-attributes/resourceclaims/c1/numa" FILE_ "\",\"options\":[\"ro\","
		"\"bind\"]}]}}]}");
	assert_file(w, "metadata/" UID_ "/numa" FILE_,
		"{\"apiVersion\":\"metadata.resource.k8s.io/v1beta1\",\"kind\":\"DeviceMetadata\","
		"\"metadata\":{\"name\":\"c1\",\"namespace\":\"default\",\"uid\":\"" UID_ "\","
		"\"generation\":1},\"requests\":[{\"name\":\"numa\",\"devices\":[{\"driver\":"
		"\"numafit.io\",\"pool\":\"n1\",\"name\":\"numa2\",\"attributes\":{"
		"\"resource.kubernetes.io/numaNode\":{\"int\":2}}}]}]}");
}

static void several_shares_have_a_variable_each_and_their_requests_a_file_each(void **state)
{
	struct world *w = *state;
	struct resource_claim c = claim_of(3);

	c.pod_claim_name = "mine";
	write_claim(w, &c);
#define DEVICE(place, node, base)                                                                  \
	"{\"name\":\"" UID_ "-" place "\",\"containerEdits\":{\"env\":[\"NUMAFIT_CLAIM_NUMA_NODE_" \
	"a1c3ee55_4ca0_4fb0_9732_1e353b9cc659_" place "=" node "\"],\"mounts\":[{\"hostPath\":"    \
	"\"@/metadata/" UID_ "/" base FILE_ "\",\"containerPath\":\"/var/run/kubernetes.io/"       \
	"dra-device-attributes/resourceclaimtemplates/mine/" base FILE_ "\",\"options\":[\"ro\","  \
	"\"bind\"]}]}}"
	assert_file(w, SPEC,
		"{\"cdiVersion\":\"0.5.0\",\"kind\":\"numafit.io/claim\",\"devices\":[" DEVICE("0",
			"2",
			"numa") "," DEVICE("1", "3", "other") "," DEVICE("2", "8", "numa") "]}");
#undef DEVICE
#define HEAD                                                                                       \
	"{\"apiVersion\":\"metadata.resource.k8s.io/v1beta1\",\"kind\":\"DeviceMetadata\","        \
	"\"metadata\":{\"name\":\"c1\",\"namespace\":\"default\",\"uid\":\"" UID_ "\","            \
	"\"generation\":1},\"podClaimName\":\"mine\",\"requests\":"
#define DEVICE(name, node)                                                                         \
	"{\"driver\":\"numafit.io\",\"pool\":\"n1\",\"name\":\"" name "\",\"attributes\":{"        \
	"\"resource.kubernetes.io/numaNode\":{\"int\":" node "}}}"
	assert_file(w, "metadata/" UID_ "/numa" FILE_,
		HEAD "[{\"name\":\"numa\",\"devices\":[" DEVICE("numa2", "2") "," DEVICE(
			"numa8", "8") "]}]}");
	assert_file(w, "metadata/" UID_ "/other" FILE_,
		HEAD "[{\"name\":\"other/large\",\"devices\":[" DEVICE("numa3", "3") "]}]}");
}

static void without_a_directory_for_them_there_are_no_metadata(void **state)
{
	struct world *w = *state;
	struct resource_claim c = claim_of(1);

	w->options.metadata = NULL;
	write_claim(w, &c);
	assert_file(w, SPEC,
		"{\"cdiVersion\":\"0.5.0\",\"kind\":\"numafit.io/claim\",\"devices\":[{\"name\":"
		"\"" UID_ "-0\",\"containerEdits\":{\"env\":[\"NUMAFIT_CLAIM_NUMA_NODE_"
		"a1c3ee55_4ca0_4fb0_9732_1e353b9cc659=2\"]}}]}");
	assert_false(exists(w, "metadata"));
	assert_int_equal(cdi_remove(&w->options, UID_, NULL), 0);
	assert_false(exists(w, SPEC));
}

static void what_was_there_before_is_replaced(void **state)
{
	struct world *w = *state;
	struct resource_claim three = claim_of(3), one = claim_of(1);

	make_directory(w, "cdi");
	make_file(w, SPEC ".new"); /* of a life that ended amid a write */
	write_claim(w, &one);
	auto_free char *before = NULL, *after = NULL;
	char path[PATH_MAX];
	name(w, SPEC, path);
	assert_int_equal(file_read(path, TEXT_MAX, &before, NULL, NULL), 0);
	write_claim(w, &three);
	write_claim(w, &one);
	assert_int_equal(file_read(path, TEXT_MAX, &after, NULL, NULL), 0);
	assert_string_equal(before, after);
	assert_false(exists(w, SPEC ".new"));
}

static void a_claim_without_shares_has_no_file(void **state)
{
	struct world *w = *state;
	struct resource_claim none = claim_of(0), one = claim_of(1);

	write_claim(w, &none);
	assert_false(exists(w, "cdi"));
	write_claim(w, &one);
	write_claim(w, &none);
	assert_false(exists(w, SPEC) || exists(w, "metadata/" UID_));
}

/* Every text that would become the name of a file. */
static void what_is_no_name_in_kubernetes_is_refused_and_nothing_is_written(void **state)
{
	static char label_64[65], uid_64[65], subdomain_254[255];
	static const char *const requests[] = {"", "/", "a/", "/b", "..", "../x", "a/..", "a/b/c",
		"A", "a_b", "a.b", "-a", "a-", "a\nb", "\xff", label_64};
	static const char *const uids[] = {
		"", "..", "../x", "a/b", "a..b", ".a", "a.", "A", "a_b", "*", "a\x01", uid_64};
	static const char *const names[] = {"", "..", "a/../b", "a.-b", "a-.b", "C", subdomain_254};
	struct world *w = *state;
	struct claim_share share = shares[0];
	struct resource_claim c;
	struct err e;

	memset(label_64, 'a', sizeof label_64 - 1);
	memset(uid_64, 'a', sizeof uid_64 - 1);
	memset(subdomain_254, 'a', sizeof subdomain_254 - 1);
	for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
		c = claim_of(1);
		share.request = requests[i];
		c.share = &share;
		assert_int_equal(cdi_write(&w->options, &c, nodes, &e), -EINVAL);
		assert_non_null(strstr(e.text, "is no name of a request"));
		c = claim_of(1);
		c.pod_claim_name = requests[i];
		assert_int_equal(cdi_write(&w->options, &c, nodes, &e), -EINVAL);
		assert_non_null(strstr(e.text, "is no name that a pod has for a claim"));
	}
	for (size_t i = 0; i < sizeof uids / sizeof uids[0]; i++) {
		c = claim_of(1);
		c.uid = uids[i];
		assert_int_equal(cdi_write(&w->options, &c, nodes, &e), -EINVAL);
		assert_non_null(strstr(e.text, "is no uid of a claim"));
		/* it never had any */
		assert_int_equal(cdi_remove(&w->options, uids[i], &e), 0);
	}
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		c = claim_of(1);
		c.name = names[i];
		assert_int_equal(cdi_write(&w->options, &c, nodes, &e), -EINVAL);
		assert_non_null(strstr(e.text, "is no name of a claim"));
	}
	assert_false(exists(w, "cdi") || exists(w, "metadata"));
}

static void the_longest_names_there_are_fit(void **state)
{
	static char label_63[64], uid_63[64], subdomain_253[254], request[128];
	struct world *w = *state;
	struct claim_share share = shares[0];
	struct resource_claim c = claim_of(1);

	memset(label_63, 'a', sizeof label_63 - 1);
	memset(uid_63, 'a', sizeof uid_63 - 1);
	memset(subdomain_253, 'a', sizeof subdomain_253 - 1);
	(void)snprintf(request, sizeof request, "%s/%s", label_63, label_63);
	share.request = request;
	c.share = &share;
	c.uid = uid_63;
	c.name = subdomain_253;
	c.pod_claim_name = label_63;
	write_claim(w, &c);
	assert_int_equal(cdi_remove(&w->options, uid_63, NULL), 0);
}

/* Names that are in the files alone. */
static void a_device_that_is_not_utf8_is_refused_and_leaves_no_half_of_a_file(void **state)
{
	static const char file[] = "metadata/" UID_ "/numa" FILE_;
	struct world *w = *state;
	struct claim_share share = shares[0];
	struct resource_claim c = claim_of(1);
	struct err e;

	share.device = "\xff";
	c.share = &share;
	assert_int_equal(cdi_write(&w->options, &c, nodes, &e), -EINVAL);
	assert_non_null(strstr(e.text, "is not UTF-8"));
	assert_int_equal(strncmp(e.text, w->dir, strlen(w->dir)), 0);
	assert_false(exists(w, file) || exists(w, SPEC));
	c = claim_of(1);
	c.ns = "\xff";
	assert_int_equal(cdi_write(&w->options, &c, nodes, &e), -EINVAL);
	assert_false(exists(w, file) || exists(w, SPEC));
}

/* Whatever cannot be written: the text begins with the path, and no half of a file is left. */
static void errors_begin_with_the_path(void **state)
{
	struct world *w = *state;
	struct resource_claim c = claim_of(1);
	char path[PATH_MAX];
	struct err e;

	name(w, "no/cdi", w->cdi);
	assert_int_equal(cdi_write(&w->options, &c, nodes, &e), -ENOENT);
	assert_int_equal(strncmp(e.text, w->cdi, strlen(w->cdi)), 0);
	name(w, "no/metadata", w->metadata);
	assert_int_equal(cdi_write(&w->options, &c, nodes, &e), -ENOENT);
	assert_int_equal(strncmp(e.text, w->metadata, strlen(w->metadata)), 0);
	name(w, "cdi", w->cdi);
	name(w, "metadata", w->metadata);
	make_directory(w, "cdi");
	make_directory(w, SPEC); /* a directory in its place */
	assert_int_equal(cdi_write(&w->options, &c, nodes, &e), -EISDIR);
	name(w, SPEC, path);
	assert_int_equal(strncmp(e.text, path, strlen(path)), 0);
	assert_false(exists(w, SPEC ".new"));
	assert_true(cdi_remove(&w->options, UID_, &e) < 0);
	assert_int_equal(strncmp(e.text, path, strlen(path)), 0);
	remove_tree(w->cdi);
	make_file(w, "cdi"); /* and a file in place of a directory */
	assert_int_equal(cdi_write(&w->options, &c, nodes, &e), -ENOTDIR);
	assert_int_equal(cdi_remove(&w->options, UID_, &e), -ENOTDIR);
	assert_int_equal(cdi_sweep(&w->options, NULL, NULL, &e), -ENOTDIR);
	assert_int_equal(strncmp(e.text, w->cdi, strlen(w->cdi)), 0);
}

static ino_t inode_of(const struct world *w, const char *file)
{
	char path[PATH_MAX];
	struct stat st;

	name(w, file, path);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void what_says_the_same_is_not_written_anew(void **state)
{
	struct world *w = *state;
	struct resource_claim c = claim_of(1);
	static const unsigned elsewhere[] = {9, 9, 9, 9};

	write_claim(w, &c);
	const ino_t before = inode_of(w, SPEC);
	write_claim(w, &c);
	assert_int_equal(inode_of(w, SPEC), before);
	assert_int_equal(cdi_write(&w->options, &c, elsewhere, NULL), 0);
	assert_int_not_equal(inode_of(w, SPEC), before);
}

static void a_path_that_is_too_long_is_refused(void **state)
{
	static char path[2 * PATH_MAX];
	struct world *w = *state;
	struct resource_claim c = claim_of(1);
	struct err e;

	memset(path, 'a', sizeof path - 1);
	w->options.directory = path;
	assert_int_equal(cdi_write(&w->options, &c, nodes, &e), -ENAMETOOLONG);
	assert_int_equal(cdi_remove(&w->options, UID_, &e), -ENAMETOOLONG);
	w->options.directory = w->cdi;
	w->options.metadata = path;
	assert_int_equal(cdi_write(&w->options, &c, nodes, &e), -ENAMETOOLONG);
	assert_int_equal(cdi_remove(&w->options, UID_, &e), -ENAMETOOLONG);
}

static void a_claim_that_is_removed_leaves_nothing_and_may_have_been_none(void **state)
{
	struct world *w = *state;
	struct resource_claim c = claim_of(3);

	assert_int_equal(cdi_remove(&w->options, UID_, NULL), 0);
	write_claim(w, &c);
	c.uid = "another";
	write_claim(w, &c);
	for (unsigned n = 0; n < 2; n++)
		assert_int_equal(cdi_remove(&w->options, UID_, NULL), 0);
	assert_false(exists(w, SPEC) || exists(w, "metadata/" UID_));
	assert_true(exists(w, "cdi/numafit.io-claim_another.json"));
	assert_true(exists(w, "metadata/another/other" FILE_));
}

/* A link in place of a claim's metadata is removed, and not what it leads to. */
static void links_are_not_followed(void **state)
{
	struct world *w = *state;
	char path[PATH_MAX];

	make_directory(w, "precious");
	make_file(w, "precious/file");
	make_directory(w, "metadata");
	name(w, "metadata/" UID_, path);
	assert_int_equal(symlink("../precious", path), 0);
	assert_int_equal(cdi_remove(&w->options, UID_, NULL), 0);
	assert_false(exists(w, "metadata/" UID_));
	assert_true(exists(w, "precious/file"));
}

static unsigned nr_named;

static bool keep_one(void *ctx, const struct cdi_found *claim)
{
	unsigned *nr_asked = ctx;

	++*nr_asked;
	assert_int_equal(claim->ns != NULL, claim->name != NULL);
	nr_named += claim->name != NULL;
	if (claim->name) {
		assert_string_equal(claim->ns, claim_of(1).ns);
		assert_string_equal(claim->name, claim_of(1).name);
	}
	return strcmp(claim->uid, "kept") == 0;
}

static void a_sweep_removes_what_is_not_kept_and_is_ours(void **state)
{
	static const char *const uids[] = {"kept", "gone-1", "gone-2"};
	static const char *const others[] = {"cdi/gpu.json", "cdi/numafit.io-claim_..json",
		"cdi/numafit.io-claim_x.yaml", "metadata/README_"};
	struct world *w = *state;
	struct resource_claim c = claim_of(3);
	unsigned nr_asked = 0;

	assert_int_equal(cdi_sweep(&w->options, keep_one, &nr_asked, NULL), 0);
	for (unsigned n = 0; n < 3; n++) {
		c.uid = uids[n];
		write_claim(w, &c);
	}
	for (unsigned n = 0; n < sizeof others / sizeof others[0]; n++)
		make_file(w, others[n]);
	make_file(w, "cdi/numafit.io-claim_kept.json.new");
	nr_named = 0;
	make_directory(w, "metadata/gone-3"); /* and no specification yet */
	assert_int_equal(cdi_sweep(&w->options, keep_one, &nr_asked, NULL), 3);
	assert_int_equal(nr_asked, 4);
	assert_int_equal(nr_named, 3); /* gone-3 has no metadata yet */
	assert_true(exists(w, "cdi/numafit.io-claim_kept.json"));
	assert_true(exists(w, "metadata/kept/numa" FILE_));
	assert_false(exists(w, "cdi/numafit.io-claim_kept.json.new"));
	assert_false(exists(w, "cdi/numafit.io-claim_gone-1.json") || exists(w, "metadata/gone-1"));
	assert_false(exists(w, "metadata/gone-2") || exists(w, "metadata/gone-3"));
	for (unsigned n = 0; n < sizeof others / sizeof others[0]; n++)
		assert_true(exists(w, others[n]));
	w->options.metadata = NULL;
	assert_int_equal(cdi_sweep(&w->options, keep_one, &nr_asked, NULL), 0);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(a_share_has_its_numa_node_and_its_metadata),
		WITH_WORLD(several_shares_have_a_variable_each_and_their_requests_a_file_each),
		WITH_WORLD(without_a_directory_for_them_there_are_no_metadata),
		WITH_WORLD(what_was_there_before_is_replaced),
		WITH_WORLD(a_claim_without_shares_has_no_file),
		WITH_WORLD(what_is_no_name_in_kubernetes_is_refused_and_nothing_is_written),
		WITH_WORLD(the_longest_names_there_are_fit),
		WITH_WORLD(a_device_that_is_not_utf8_is_refused_and_leaves_no_half_of_a_file),
		WITH_WORLD(errors_begin_with_the_path),
		WITH_WORLD(what_says_the_same_is_not_written_anew),
		WITH_WORLD(a_path_that_is_too_long_is_refused),
		WITH_WORLD(a_claim_that_is_removed_leaves_nothing_and_may_have_been_none),
		WITH_WORLD(links_are_not_followed),
		WITH_WORLD(a_sweep_removes_what_is_not_kept_and_is_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
