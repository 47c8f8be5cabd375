#include <stddef.h>
#include <stdint.h>

#include <assert.h>
#include <codec/fields_json.h>
#include <daemon-files/cdi_json.h>
#include <dirent.h>
#include <io/file.h>
#include <jansson.h>
#include <limits.h>
#include <numafit/arena.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX = 1 << 20, NAMES = 7 };
enum { UID, NAMESPACE, NAME, POD_CLAIM_NAME, REQUEST, DEVICE, REQUEST_2 };

static char top[64], cdi[128], metadata[128];

static void remove_top(void)
{
	(void)rmdir(cdi);
	(void)rmdir(metadata);
	(void)rmdir(top);
}

static void make_top(void)
{
	const char *tmp = getenv("TMPDIR");

	(void)snprintf(top, sizeof top, "%s/fuzz_cdi.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(top))
		abort();
	(void)snprintf(cdi, sizeof cdi, "%s/cdi", top);
	(void)snprintf(metadata, sizeof metadata, "%s/metadata", top);
	(void)atexit(remove_top);
}

/* The name of one thing in it, or "" when there is none; more than one are a fault. */
static void only_entry(const char *directory, char name[NAME_MAX + 1])
{
	DIR *d = opendir(directory);

	*name = '\0';
	for (const struct dirent *entry; d && (entry = readdir(d));) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		assert(!*name);
		(void)snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
	}
	if (d)
		(void)closedir(d);
}

static void check_spec(const char *uid)
{
	char name[NAME_MAX + 1], path[PATH_MAX];
	char *text = NULL;
	size_t len;
	json_t *v;

	only_entry(cdi, name);
	(void)snprintf(path, sizeof path, "numafit.io-claim_%s.json", uid);
	assert(strcmp(name, path) == 0);
	(void)snprintf(path, sizeof path, "%s/%s", cdi, name);
	assert(file_read(path, MEMORY_MAX, &text, &len, NULL) == 0);
	assert(json_parse(text, len, &v, NULL) == 0);
	assert(json_array_size(json_object_get(v, "devices")) == 2);
	json_decref(v);
	free(text);
	only_entry(metadata, name);
	assert(strcmp(name, uid) == 0);
}

static bool keep_none(void *ctx, const struct cdi_found *claim)
{
	(void)ctx, (void)claim;
	return false;
}

/* The input is names, each up to a NUL. Whatever they are, there is nothing but the claim's files,
 * they can be read, and none is left when it is removed. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned node[] = {0, 7};
	struct cdi_options o = {cdi, metadata, "n1"};
	const char *text[NAMES];
	char left[NAME_MAX + 1];
	struct arena a;

	if (!*top)
		make_top();
	arena_init(&a, MEMORY_MAX);
	for (unsigned i = 0; i < NAMES; i++) {
		size_t len = size ? strnlen((const char *)data, size) : 0;

		text[i] = arena_strndup(&a, size ? (const char *)data : "", len);
		assert(text[i]);
		len += len < size; /* the NUL */
		size -= len;
		data += len;
	}
	struct claim_share share[] = {{.request = text[REQUEST], .device = text[DEVICE]},
		{.request = text[REQUEST_2], .pool = text[NAMESPACE], .device = "numa7"}};
	struct resource_claim c = {.uid = text[UID],
		.ns = text[NAMESPACE],
		.name = text[NAME],
		.pod_claim_name = *text[POD_CLAIM_NAME] ? text[POD_CLAIM_NAME] : NULL,
		.nr = 2,
		.share = share};
	if (cdi_write(&o, &c, node, NULL) == 0) {
		check_spec(c.uid);
		assert(cdi_remove(&o, c.uid, NULL) == 0);
	}
	assert(cdi_sweep(&o, keep_none, NULL, NULL) >= 0);
	only_entry(cdi, left);
	assert(!*left);
	only_entry(metadata, left);
	assert(!*left);
	arena_fini(&a);
	return 0;
}
