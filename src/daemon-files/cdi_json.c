#include <daemon-files/cdi_json.h>

#include <codec/fields_json.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <io/file.h>
#include <jansson.h>
#include <limits.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <numafit/vec.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FILE_MODE = 0644, /* every container's user reads them */
	DIRECTORY_MODE = 0755,
	VARIABLE_MAX = 128,
	METADATA_MAX = 256 * 1024,
	REMOVE_FDS = 8
};

static const char cdi_prefix[] = "numafit.io-claim_", cdi_suffix[] = ".json";
static const char unfinished_suffix[] = ".new"; /* no runtime takes it for a specification */
static const char metadata_file[] = CLAIM_DRIVER "-metadata.json";
/* as k8s.io/dynamic-resource-allocation api/metadata has it */
static const char container_directory[] = "/var/run/kubernetes.io/dra-device-attributes";

/* Of a firstAvailable list it has a '/' in it: what is before that is the request of the claim. */
static size_t base_length(const char *request)
{
	return strcspn(request, "/");
}

/* Paths. */

struct cdi_path {
	char at[PATH_MAX];
};

static int __attribute__((format(printf, 3, 4)))
path_make(struct cdi_path *p, struct err *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int len = vsnprintf(p->at, sizeof p->at, fmt, ap);
	va_end(ap);
	if (len < 0 || (size_t)len >= sizeof p->at)
		return err_set(e, ENAMETOOLONG, "%.80s...: the path is too long", p->at);
	return 0;
}

static int path_of_spec(
	struct cdi_path *p, const struct cdi_options *o, const char *uid, struct err *e)
{
	return path_make(p, e, "%s/%s%s%s", o->directory, cdi_prefix, uid, cdi_suffix);
}

static int path_of_metadata(struct cdi_path *p, const struct cdi_options *o, const char *uid,
	const char *request, struct err *e)
{
	return path_make(p, e, "%s/%s/%.*s/%s", o->metadata, uid, (int)base_length(request),
		request, metadata_file);
}

static int path_in_container(
	struct cdi_path *p, const struct resource_claim *c, const char *request, struct err *e)
{
	return path_make(p, e, "%s/%s/%s/%.*s/%s", container_directory,
		c->pod_claim_name ? "resourceclaimtemplates" : "resourceclaims",
		c->pod_claim_name ? c->pod_claim_name : c->name, (int)base_length(request), request,
		metadata_file);
}

/* Files. */

static int cdi_error(int error, const char *path, struct err *e)
{
	return err_set(e, error, "%s: %s", path, strerror(error));
}

static int write_whole(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		ssize_t n = write(fd, text, left);

		if (n < 0 && errno != EINTR)
			return -errno;
		text += n > 0 ? n : 0;
		left -= n > 0 ? (size_t)n : 0;
	}
	return fchmod(fd, FILE_MODE) < 0 ? -errno : 0; /* whatever the umask */
}

/* Runtimes watch the directory: what is there already is not written anew. */
static bool is_written(const char *path, const char *text)
{
	auto_free char *there = NULL;

	return file_read(path, METADATA_MAX, &there, NULL, NULL) == 0 && text_equal(there, text);
}

/* All of it or nothing. */
static int put_file(const char *path, const char *text, struct err *e)
{
	struct cdi_path unfinished;
	int rc = path_make(&unfinished, e, "%s%s", path, unfinished_suffix);

	if (rc || is_written(path, text))
		return rc;
	(void)unlink(unfinished.at); /* of a life that ended amid this */
	int fd = open(
		unfinished.at, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
	rc = fd < 0 ? -errno : write_whole(fd, text);
	if (fd >= 0 && close(fd) < 0 && !rc)
		rc = -errno;
	if (!rc && rename(unfinished.at, path) < 0)
		rc = -errno;
	if (!rc)
		return 0;
	if (fd >= 0)
		(void)unlink(unfinished.at);
	return cdi_error(-rc, path, e);
}

/* The value is its own from here on. */
static int put_json(const char *path, json_t *value, struct err *e)
{
	char *text = value ? json_dumps(value, JSON_INDENT(2)) : NULL;
	int rc = text ? put_file(path, text, e)
		      : err_set(e, EINVAL, "%s: a name is not UTF-8", path);

	free(text);
	json_decref(value);
	return rc;
}

static int make_directory(const char *path, struct err *e)
{
	return mkdir(path, DIRECTORY_MODE) < 0 && errno != EEXIST ? cdi_error(errno, path, e) : 0;
}

static int remove_file(const char *path, struct err *e)
{
	return unlink(path) < 0 && errno != ENOENT ? cdi_error(errno, path, e) : 0;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

static int remove_directory(const char *path, struct err *e)
{
	if (nftw(path, remove_entry, REMOVE_FDS, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT)
		return 0;
	return cdi_error(errno, path, e);
}

/* Metadata. */

static json_t *metadata_device(
	const struct cdi_options *o, const struct claim_share *s, unsigned node)
{
	return json_pack("{s:s, s:s, s:s, s:{s:{s:I}}}", "driver", CLAIM_DRIVER, "pool",
		s->pool ? s->pool : o->node_name, "name", s->device, "attributes",
		"resource.kubernetes.io/numaNode", "int", (json_int_t)node);
}

/* The shares of one request, of which share first is the first. */
static json_t *metadata_request(const struct cdi_options *o, const struct resource_claim *c,
	size_t first, const unsigned *node)
{
	const char *request = c->share[first].request;
	json_t *devices = json_array();

	for (size_t i = first; i < c->nr; i++) {
		if (!text_equal(c->share[i].request, request))
			continue;
		if (json_array_append_new(devices, metadata_device(o, &c->share[i], node[i])) < 0) {
			json_decref(devices);
			return NULL;
		}
	}
	return json_pack("{s:s, s:o}", "name", request, "devices", devices);
}

static json_t *metadata_of(const struct cdi_options *o, const struct resource_claim *c,
	size_t first, const unsigned *node)
{
	return json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:i}, s:s*, s:[o]}", "apiVersion",
		"metadata.resource.k8s.io/v1beta1", "kind", "DeviceMetadata", "metadata", "name",
		c->name, "namespace", c->ns, "uid", c->uid, "generation", 1, "podClaimName",
		c->pod_claim_name, "requests", metadata_request(o, c, first, node));
}

static bool is_first_of_request(const struct resource_claim *c, size_t share)
{
	for (size_t i = 0; i < share; i++)
		if (text_equal(c->share[i].request, c->share[share].request))
			return false;
	return true;
}

static int write_request(const struct cdi_options *o, const struct resource_claim *c, size_t first,
	const unsigned *node, struct err *e)
{
	const char *request = c->share[first].request;
	struct cdi_path directory, file;
	int rc = path_make(&directory, e, "%s/%s/%.*s", o->metadata, c->uid,
		(int)base_length(request), request);

	if (!rc)
		rc = path_of_metadata(&file, o, c->uid, request, e);
	if (!rc)
		rc = make_directory(directory.at, e);
	return rc ? rc : put_json(file.at, metadata_of(o, c, first, node), e);
}

static int write_metadata(const struct cdi_options *o, const struct resource_claim *c,
	const unsigned *node, struct err *e)
{
	struct cdi_path directory;
	int rc = path_make(&directory, e, "%s/%s", o->metadata, c->uid);

	if (!rc)
		rc = make_directory(o->metadata, e);
	if (!rc)
		rc = make_directory(directory.at, e);
	for (size_t i = 0; !rc && i < c->nr; i++)
		if (is_first_of_request(c, i))
			rc = write_request(o, c, i, node, e);
	return rc;
}

/* The specification. */

static void name_variable(char name[VARIABLE_MAX], const struct resource_claim *c, size_t place)
{
	struct text t;

	text_init(&t, name, VARIABLE_MAX);
	text_add(&t, "NUMAFIT_CLAIM_NUMA_NODE_%s", c->uid);
	if (c->nr > 1)
		text_add(&t, "_%zu", place);
	for (char *at = name; *at; at++)
		if (*at == '-' || *at == '.')
			*at = '_';
}

static int add_mount(json_t *edits, const struct cdi_options *o, const struct resource_claim *c,
	size_t place, struct err *e)
{
	const char *request = c->share[place].request;
	struct cdi_path here, inside;
	int rc = path_of_metadata(&here, o, c->uid, request, e);

	if (!rc)
		rc = path_in_container(&inside, c, request, e);
	if (!rc && json_object_set_new(edits, "mounts",
			   json_pack("[{s:s, s:s, s:[s, s]}]", "hostPath", here.at, "containerPath",
				   inside.at, "options", "ro", "bind")) < 0)
		rc = err_set(e, EINVAL, "%s: is not UTF-8", here.at);
	return rc;
}

static int add_device(json_t *devices, const struct cdi_options *o, const struct resource_claim *c,
	size_t place, unsigned node, struct err *e)
{
	char name[CLAIM_UID_MAX + VARIABLE_MAX], variable[VARIABLE_MAX];
	char value[VARIABLE_MAX + VARIABLE_MAX];

	name_variable(variable, c, place);
	(void)snprintf(name, sizeof name, "%s-%zu", c->uid, place);
	(void)snprintf(value, sizeof value, "%s=%u", variable, node);
	json_t *edits = json_pack("{s:[s]}", "env", value);
	int rc = o->metadata ? add_mount(edits, o, c, place, e) : 0;
	if (rc)
		json_decref(edits);
	else
		(void)json_array_append_new(
			devices, json_pack("{s:s, s:o}", "name", name, "containerEdits", edits));
	return rc;
}

static int write_spec(const struct cdi_options *o, const struct resource_claim *c,
	const unsigned *node, struct err *e)
{
	json_t *devices = json_array();
	struct cdi_path path;
	int rc = path_of_spec(&path, o, c->uid, e);

	for (size_t i = 0; !rc && i < c->nr; i++)
		rc = add_device(devices, o, c, i, node[i], e);
	if (!rc)
		rc = make_directory(o->directory, e);
	if (rc) {
		json_decref(devices);
		return rc;
	}
	return put_json(path.at,
		json_pack("{s:s, s:s, s:o}", "cdiVersion", "0.5.0", "kind", CLAIM_CDI_KIND,
			"devices", devices),
		e);
}

/* What it mounts has to be there first. */
int cdi_write(const struct cdi_options *o, const struct resource_claim *claim, const unsigned *node,
	struct err *e)
{
	int rc = claim_check_names(claim, e);

	if (!rc && claim->nr == 0) /* a specification without a device is none */
		return cdi_remove(o, claim->uid, e);
	if (!rc && o->metadata)
		rc = write_metadata(o, claim, node, e);
	return rc ? rc : write_spec(o, claim, node, e);
}

int cdi_remove(const struct cdi_options *o, const char *uid, struct err *e)
{
	struct cdi_path path;
	int rc;

	if (!claim_uid_is_valid(uid, strlen(uid))) /* no file was written for it */
		return 0;
	rc = path_of_spec(&path, o, uid, e);
	if (!rc)
		rc = remove_file(path.at, e);
	if (rc || !o->metadata)
		return rc;
	rc = path_make(&path, e, "%s/%s", o->metadata, uid);
	return rc ? rc : remove_directory(path.at, e);
}

/* Files of claims that are no more. */

struct found_uid {
	char uid[CLAIM_UID_MAX];
};
struct found_uids {
	VEC(struct found_uid);
};

static void found_add(struct found_uids *found, const char *uid, size_t len)
{
	if (!claim_uid_is_valid(uid, len))
		return; /* not of ours */
	for (size_t i = 0; i < found->nr; i++)
		if (strlen(found->at[i].uid) == len && memcmp(found->at[i].uid, uid, len) == 0)
			return;
	memcpy(vec_push(found)->uid, uid, len);
}

static bool ends_with(const char *s, const char *end)
{
	size_t len = strlen(s), n = strlen(end);

	return len >= n && strcmp(s + len - n, end) == 0;
}

static int found_in_specs(DIR *d, const char *name, struct found_uids *found)
{
	const char *uid = text_behind(name, cdi_prefix);

	if (!uid)
		return 0;
	if (ends_with(uid, unfinished_suffix))
		return unlinkat(dirfd(d), name, 0) < 0 && errno != ENOENT ? -errno : 0;
	if (ends_with(uid, cdi_suffix))
		found_add(found, uid, strlen(uid) - strlen(cdi_suffix));
	return 0;
}

static int found_in_metadata(DIR *d, const char *name, struct found_uids *found)
{
	(void)d;
	found_add(found, name, strlen(name));
	return 0;
}

static int find_uids(const char *directory,
	int (*found_in)(DIR *d, const char *name, struct found_uids *found),
	struct found_uids *found, struct err *e)
{
	DIR *d = opendir(directory);
	int rc = 0;

	if (!d)
		return errno == ENOENT ? 0 : cdi_error(errno, directory, e);
	for (const struct dirent *entry; !rc && (entry = readdir(d));)
		rc = found_in(d, entry->d_name, found);
	(void)closedir(d);
	return rc ? cdi_error(-rc, directory, e) : 0;
}

/* Any of the claim's metadata, as JSON; NULL: there is none that can be read. */
static json_t *read_metadata(const struct cdi_options *o, const char *uid)
{
	struct cdi_path path;
	json_t *value = NULL;
	DIR *d = NULL;

	if (o->metadata && !path_make(&path, NULL, "%s/%s", o->metadata, uid))
		d = opendir(path.at);
	for (const struct dirent *entry; d && !value && (entry = readdir(d));) {
		char *text = NULL;
		size_t len;

		if (claim_request_is_valid(entry->d_name) &&
			!path_of_metadata(&path, o, uid, entry->d_name, NULL) &&
			!file_read(path.at, METADATA_MAX, &text, &len, NULL))
			(void)json_parse(text, len, &value, NULL);
		free(text);
	}
	if (d)
		(void)closedir(d);
	return value;
}

/* What the metadata say of the claim, borrowed from them. */
static struct cdi_found found_claim(const char *uid, const json_t *metadata)
{
	const json_t *of = json_member(metadata, "metadata");
	struct cdi_found out = {.uid = uid};
	const char *said = NULL;

	(void)json_member_string(of, "uid", &said, NULL);
	(void)json_member_string(of, "namespace", &out.ns, NULL);
	(void)json_member_string(of, "name", &out.name, NULL);
	if (!text_equal(said, uid) || !out.ns || !out.name ||
		claim_check_ref(out.ns, uid, out.name, NULL))
		out.ns = out.name = NULL;
	return out;
}

int cdi_sweep(const struct cdi_options *o, bool (*keep)(void *ctx, const struct cdi_found *claim),
	void *ctx, struct err *e)
{
	struct found_uids found = {0};
	int rc = find_uids(o->directory, found_in_specs, &found, e), nr = 0;

	if (!rc && o->metadata)
		rc = find_uids(o->metadata, found_in_metadata, &found, e);
	for (size_t i = 0; !rc && i < found.nr; i++) {
		json_t *metadata = read_metadata(o, found.at[i].uid);
		const struct cdi_found claim = found_claim(found.at[i].uid, metadata);
		bool kept = keep(ctx, &claim);

		json_decref(metadata);
		if (kept)
			continue;
		rc = cdi_remove(o, found.at[i].uid, e);
		nr++;
	}
	vec_fini(&found);
	return rc ? rc : nr;
}
