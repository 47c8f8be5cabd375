/* Where a container's cgroup is, by the words in which its runtime has it. */
#include <numafit/cgroup_path.h>

#include <numafit/text.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

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

static bool leads_up(const char *path)
{
	for (const char *at = path; *at; at += strspn(at, "/")) {
		size_t n = strcspn(at, "/");

		if (n == 2 && memcmp(at, "..", 2) == 0)
			return true;
		at += n;
	}
	return false;
}

int cgroup_path(const char *cgroups_path, char *buf, size_t cap, struct err *e)
{
	const char *colon = *cgroups_path == '/' ? NULL : strchr(cgroups_path, ':');
	const char *second = colon ? strchr(colon + 1, ':') : NULL;
	struct text t;
	int rc = 0;

	if (!*cgroups_path || leads_up(cgroups_path)) /* it might lead out of here */
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

int cgroup_path_above(const char *cgroups_path, char *buf, size_t cap, struct err *e)
{
	int rc = cgroup_path(cgroups_path, buf, cap, e);
	char *last = rc ? NULL : strrchr(buf, '/');

	if (rc)
		return rc;
	if (last == buf)
		return err_set(e, EINVAL, "cgroup \"%s\" has none above it", cgroups_path);
	*last = '\0';
	return 0;
}

/* Whether the last name of the path is the word, or a slice's whose last part is the word:
 * "kubepods-WORD.slice". */
static bool is_named(const char *path, const char *word)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t n = strlen(name), len = strlen(word);

	if (text_equal(name, word))
		return true;
	return n > len + SUFFIX && ends_in_slice(name, n) && name[n - SUFFIX - len - 1] == '-' &&
	       strncmp(name + n - SUFFIX - len, word, len) == 0;
}

bool cgroup_is_pods(const char *directory, const char *pod_uid)
{
	char word[CGROUP_PATH_MAX];
	struct text t;

	text_init(&t, word, sizeof word);
	text_add(&t, "pod%s", pod_uid);
	if (!*pod_uid || t.cut)
		return false;
	if (is_named(directory, word))
		return true;
	for (char *at = word; *at; at++)
		*at = *at == '-' ? '_' : *at;
	return is_named(directory, word);
}

bool cgroup_is_class(const char *directory)
{
	return is_named(directory, "burstable") || is_named(directory, "besteffort");
}
