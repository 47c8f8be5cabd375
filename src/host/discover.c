#include <host/discover.h>

#include <codec/machine_text.h>
#include <errno.h>
#include <host/machine_find.h>
#include <host/machine_hwloc.h>
#include <host/machine_kernel.h>
#include <host/machine_numa.h>
#include <host/machine_tree.h>
#include <io/file.h>
#include <numafit/mem.h>
#include <string.h>
#include <sys/stat.h>

static int load_text(const char *path, struct topo *out, struct err *e)
{
	auto_free char *text = NULL;
	size_t len;
	int rc = file_read_waiting(path, MACHINE_TEXT_MAX, &text, &len, e);

	if (rc)
		return rc;
	rc = machine_text_parse(text, len, out, e);
	return rc ? err_add(e, rc, "%s", path) : 0;
}

/* libnuma's answers beside what was read from the same kernel's files. */
static void check_this(const struct topo *t, const struct correction_sink *to)
{
	struct correction unchecked = {.kind = CORRECTION_UNCHECKED, .source = SOURCE_LIBNUMA};
	struct topo numa;

	if (machine_from_numa(&numa, &unchecked.why) == 0)
		machine_compare(t, &numa, SOURCE_LIBNUMA, to);
	else
		correction_send(to, &unchecked);
}

static int load_hwloc(enum hwloc_place place, const char *path, struct topo *out,
	const struct correction_sink *to, struct err *e)
{
	auto_free struct topo *hwloc = xcalloc(1, sizeof *hwloc);

	topo_init(hwloc, path);
	topo_init(out, path);
	int rc = machine_from_hwloc(place, path, hwloc, to, e);
	if (!rc && place == PLACE_XML)
		*out = *hwloc;
	else if (!rc)
		rc = machine_from_kernel(place == PLACE_TREE ? path : "", hwloc, out, to, e);
	if (!rc && cpuset_empty(&out->cpus) && !cpuset_empty(&out->nodeless))
		rc = err_set(e, EINVAL, "none of its CPUs belongs to a NUMA node");
	if (!rc && place == PLACE_TREE)
		rc = machine_tree_compare(path, out, e);
	if (!rc && place == PLACE_THIS && to->note)
		check_this(out, to);
	if (!rc)
		rc = topo_seal(out, e);
	return rc ? err_add(e, rc, "%s", place == PLACE_THIS ? "this machine" : path) : 0;
}

static int load_path(
	const char *path, struct topo *out, const struct correction_sink *to, struct err *e)
{
	static const char xml[] = ".xml";
	size_t len = strlen(path), suffix = sizeof xml - 1;
	char name[TOPO_NAME_MAX];
	struct stat st;

	int rc = machine_name_from_path(path, name, e);
	if (rc)
		return rc;
	if (stat(path, &st) != 0)
		return err_set(e, errno, "%s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		rc = load_hwloc(PLACE_TREE, path, out, to, e);
	else if (len > suffix && strcmp(path + len - suffix, xml) == 0)
		rc = load_hwloc(PLACE_XML, path, out, to, e);
	else
		rc = load_text(path, out, e);
	if (rc)
		return rc;
	memcpy(out->name, name, sizeof name);
	return 0;
}

int machine_load(const char *what, struct topo *out,
	void (*note)(void *ctx, const struct correction *c), void *ctx, struct err *e)
{
	const struct correction_sink to = {note, ctx};
	auto_free char *found = NULL;
	struct topo t;
	int rc;

	if (strcmp(what, "this") == 0) {
		rc = load_hwloc(PLACE_THIS, what, &t, &to, e);
	} else if (strchr(what, '/')) {
		rc = load_path(what, &t, &to, e);
	} else {
		found = machine_find(what, e);
		rc = found ? load_path(found, &t, &to, e) : -ENOENT;
	}
	if (rc == 0)
		*out = t;
	return rc;
}
