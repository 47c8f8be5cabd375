#include <host/cgroup.h>

#include <errno.h>
#include <io/file.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

/* A node has a few hundred mounts, with containers' overlays a few thousand. */
enum { MOUNTS_MAX = 4 << 20, LIST_MAX = CPUSET_TEXT_MAX, CONTROLLERS_MAX = 1024 };

/* Mounts (proc_pid_mountinfo(5)) */

/* ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [OPTIONAL...] - TYPE SOURCE SUPEROPTIONS */
enum { FIELD_ROOT = 3, FIELD_POINT = 4, FIELDS = 5 };
struct mount {
	const char *root, *point, *type, *options;
};

/* Cut the line into words; false when it is not such a line. */
static bool parse_mount(char *line, struct mount *m)
{
	char *field[FIELDS], *save = NULL, *tail = strstr(line, " - ");

	if (!tail)
		return false;
	*tail = '\0';
	tail += strlen(" - ");
	for (unsigned i = 0; i < FIELDS; i++)
		if (!(field[i] = strtok_r(i ? NULL : line, " ", &save)))
			return false;
	m->root = field[FIELD_ROOT];
	m->point = field[FIELD_POINT];
	m->type = strtok_r(tail, " ", &save);
	m->options = strtok_r(NULL, " ", &save) ? strtok_r(NULL, " ", &save) : NULL;
	return m->type && m->options;
}

/* Whether a list of words, separated by any of `between`, has that word. */
static bool has_word(const char *list, const char *between, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; *at; at += strspn(at, between)) {
		size_t n = strcspn(at, between);

		if (n == len && strncmp(at, word, n) == 0)
			return true;
		at += n;
	}
	return false;
}

static int under(const char *root, const char *path, char *buf, size_t cap, struct err *e)
{
	size_t len = strlen(root);
	struct text t;

	while (len && root[len - 1] == '/')
		len--;
	text_init(&t, buf, cap);
	text_add(&t, "%.*s%s", (int)len, root, path);
	return t.cut ? err_set(e, ENAMETOOLONG, "%s%s: the path is too long", root, path) : 0;
}

static bool v2_has_cpuset(const char *directory)
{
	char path[CGROUP_PATH_MAX + sizeof "/cgroup.controllers"], list[CONTROLLERS_MAX];

	(void)snprintf(path, sizeof path, "%s/cgroup.controllers", directory);
	return file_read_into(path, list, sizeof list, NULL) >= 0 &&
	       has_word(list, " \n", "cpuset");
}

/* Whether the mount shows the hierarchy from its top, or, in a cgroup namespace, from above. */
static bool is_whole(const struct mount *m)
{
	return text_equal(m->root, "/") || strncmp(m->root, "/..", strlen("/..")) == 0;
}

static int look_at(const char *root, const struct mount *m, struct cgroups *v1, struct cgroups *v2,
	struct err *e)
{
	bool is_v1 = text_equal(m->type, "cgroup") && has_word(m->options, ",", "cpuset");
	bool is_v2 = text_equal(m->type, "cgroup2");
	char path[CGROUP_PATH_MAX];

	if ((!is_v1 && !is_v2) || !is_whole(m))
		return 0;
	int rc = under(root, m->point, path, sizeof path, e);
	if (!rc && is_v1)
		memcpy(v1->root, path, sizeof path);
	if (!rc && is_v2 && v2_has_cpuset(path))
		memcpy(v2->root, path, sizeof path);
	return rc;
}

int cgroups_find(const char *root, struct cgroups *out, struct err *e)
{
	struct cgroups v1 = {0}, v2 = {.v2 = true};
	char path[CGROUP_PATH_MAX], *save = NULL;
	auto_free char *text = xcalloc(1, MOUNTS_MAX);
	int rc = under(root, "/proc/self/mountinfo", path, sizeof path, e);

	if (!rc)
		rc = file_read_into(path, text, MOUNTS_MAX, e);
	if (rc < 0)
		return rc;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct mount m;

		rc = parse_mount(line, &m) ? look_at(root, &m, &v1, &v2, e) : 0;
		if (rc)
			return rc;
	}
	if (!*v1.root && !*v2.root)
		return err_set(e, ENOENT, "%s: no mounted cgroup hierarchy has cpusets", path);
	*out = *v1.root ? v1 : v2;
	return 0;
}

/* Paths */

static const char slice_suffix[] = ".slice";
enum { SUFFIX = sizeof slice_suffix - 1 };

static bool ends_in_slice(const char *name, size_t len)
{
	return len > SUFFIX && memcmp(name + len - SUFFIX, slice_suffix, SUFFIX) == 0;
}

/* "a-b.slice" lies in "a.slice"; "-.slice" is the root. */
static int add_slices(struct text *t, const char *slice, size_t len, struct err *e)
{
	size_t name = len - SUFFIX;

	if (!ends_in_slice(slice, len) || memchr(slice, '/', len))
		return err_set(e, EINVAL, "\"%.*s\" is not a slice", (int)len, slice);
	if (name == 1 && *slice == '-')
		return 0;
	for (size_t i = 0; i <= name; i++) {
		bool at_end = i == name, dash = !at_end && slice[i] == '-';

		if ((at_end || dash) && (!i || slice[i - 1] == '-'))
			return err_set(e, EINVAL, "\"%.*s\" is not a slice", (int)len, slice);
		if (at_end || dash)
			text_add(t, "/%.*s%s", (int)i, slice, slice_suffix);
	}
	return 0;
}

/* SLICE:PREFIX:NAME */
static int add_unit(
	struct text *t, const char *path, const char *prefix, const char *name, struct err *e)
{
	static const char otherwise[] = "system.slice"; /* runc's, when none is named */
	int prefix_len = (int)(name - 1 - prefix);
	size_t len = (size_t)(prefix - 1 - path);
	int rc = len ? add_slices(t, path, len, e)
		     : add_slices(t, otherwise, sizeof otherwise - 1, e);

	if (!rc && (!*name || strchr(prefix, '/')))
		return err_set(e, EINVAL, "cgroup \"%s\": no unit is named", path);
	if (!rc && ends_in_slice(name, strlen(name)))
		text_add(t, "/%s", name);
	else if (!rc)
		text_add(t, "/%.*s%s%s.scope", prefix_len, prefix, prefix_len ? "-" : "", name);
	return rc;
}

/* Nobody leads us out of the hierarchy. */
static bool climbs(const char *path)
{
	return has_word(path, "/", "..");
}

int cgroup_path(const char *cgroups_path, char *buf, size_t cap, struct err *e)
{
	const char *colon = *cgroups_path == '/' ? NULL : strchr(cgroups_path, ':');
	const char *second = colon ? strchr(colon + 1, ':') : NULL;
	struct text t;
	int rc = 0;

	if (!*cgroups_path || climbs(cgroups_path))
		return err_set(e, EINVAL, "\"%s\" is no cgroup of a container", cgroups_path);
	text_init(&t, buf, cap);
	if (second)
		rc = add_unit(&t, cgroups_path, colon + 1, second + 1, e);
	else
		text_add(&t, "%s%s", *cgroups_path == '/' ? "" : "/", cgroups_path);
	if (!rc && t.cut)
		return err_set(
			e, ENAMETOOLONG, "cgroup \"%s\": the path is too long", cgroups_path);
	return rc;
}

/* Files (Documentation/admin-guide/cgroup-v1/cpusets.rst, cgroup-v2.rst) */

enum { CPUS, EFFECTIVE_CPUS, MEMS, EFFECTIVE_MEMS, PROCESSES, NR_FILES };
static const char *const files[2][NR_FILES] = {
	{"cpuset.cpus", "cpuset.effective_cpus", "cpuset.mems", "cpuset.effective_mems",
		"cgroup.procs"},
	{"cpuset.cpus", "cpuset.cpus.effective", "cpuset.mems", "cpuset.mems.effective",
		"cgroup.events"},
};

static int file_path(const struct cgroups *c, const char *cgroups_path, unsigned file,
	char buf[2 * CGROUP_PATH_MAX], struct err *e)
{
	char below[CGROUP_PATH_MAX];
	struct text t;
	int rc = cgroup_path(cgroups_path, below, sizeof below, e);

	if (rc)
		return rc;
	text_init(&t, buf, 2 * CGROUP_PATH_MAX);
	text_add(&t, "%s%s/%s", c->root, below, files[c->v2][file]);
	return t.cut ? err_set(e, ENAMETOOLONG, "%s%s: the path is too long", c->root, below) : 0;
}

static int read_file(const struct cgroups *c, const char *cgroups_path, unsigned file, char *buf,
	size_t cap, struct err *e)
{
	char path[2 * CGROUP_PATH_MAX];
	int rc = file_path(c, cgroups_path, file, path, e);

	return rc ? rc : file_read_into(path, buf, cap, e);
}

static int read_cpus(const struct cgroups *c, const char *cgroups_path, unsigned file,
	struct cpuset *out, struct err *e)
{
	char list[LIST_MAX];
	int rc = read_file(c, cgroups_path, file, list, sizeof list, e);

	if (rc < 0)
		return rc;
	rc = cpuset_parse(out, list, (size_t)rc, e);
	return rc ? err_add(e, rc, "%s", files[c->v2][file]) : 0;
}

static int read_mems(const struct cgroups *c, const char *cgroups_path, unsigned file,
	const struct node_ids *ids, struct nodeset *out, struct err *e)
{
	char list[LIST_MAX];
	int rc = read_file(c, cgroups_path, file, list, sizeof list, e);

	if (rc < 0)
		return rc;
	rc = nodeset_parse(out, ids, list, (size_t)rc, e);
	/* not to be mistaken for a file that is gone */
	return rc ? err_add(e, rc == -ENOENT ? -EINVAL : rc, "%s", files[c->v2][file]) : 0;
}

int cgroup_read(const struct cgroups *c, const char *cgroups_path, const struct node_ids *ids,
	struct cgroup_cpuset *out, struct err *e)
{
	struct cgroup_cpuset s;
	int rc = read_cpus(c, cgroups_path, CPUS, &s.cpus, e);

	if (!rc)
		rc = read_mems(c, cgroups_path, MEMS, ids, &s.mems, e);
	if (!rc)
		rc = read_cpus(c, cgroups_path, EFFECTIVE_CPUS, &s.effective_cpus, e);
	if (!rc)
		rc = read_mems(c, cgroups_path, EFFECTIVE_MEMS, ids, &s.effective_mems, e);
	if (!rc)
		*out = s;
	return rc;
}

bool cgroup_has_processes(const struct cgroups *c, const char *cgroups_path)
{
	char text[CONTROLLERS_MAX];
	int rc = read_file(c, cgroups_path, PROCESSES, text, sizeof text, NULL);

	if (rc == -EFBIG)
		return true;
	return rc > 0 && (!c->v2 || has_word(text, "\n", "populated 1"));
}
