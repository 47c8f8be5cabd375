#include <host/discover.h>

#include <codec/machine_text.h>
#include <errno.h>
#include <host/machine_find.h>
#include <host/machine_hwloc.h>
#include <host/machine_numa.h>
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

/* What libnuma has to add to what hwloc found, and where they differ. */
static void check_this(struct topo *t, void (*note)(void *ctx, const char *text), void *ctx)
{
	struct topo numa;
	struct err doubt = {0};

	if (machine_from_numa(&numa, &doubt) == 0) {
		machine_borrow_distances(t, &numa);
		if (note)
			machine_compare(t, &numa, note, ctx);
	} else if (note) {
		(void)err_add(&doubt, 0, "this machine could not be checked with libnuma");
		note(ctx, doubt.text);
	}
}

static int load_hwloc(enum hwloc_place place, const char *path, struct topo *out,
	void (*note)(void *ctx, const char *text), void *ctx, struct err *e)
{
	topo_init(out, path);
	int rc = machine_from_hwloc(place, path, out, e);
	if (!rc && place == PLACE_THIS)
		check_this(out, note, ctx);
	if (!rc)
		rc = topo_seal(out, e);
	return rc ? err_add(e, rc, "%s", place == PLACE_THIS ? "this machine" : path) : 0;
}

static int load_path(const char *path, struct topo *out, struct err *e)
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
		rc = load_hwloc(PLACE_TREE, path, out, NULL, NULL, e);
	else if (len > suffix && strcmp(path + len - suffix, xml) == 0)
		rc = load_hwloc(PLACE_XML, path, out, NULL, NULL, e);
	else
		rc = load_text(path, out, e);
	if (rc)
		return rc;
	memcpy(out->name, name, sizeof name);
	return 0;
}

int machine_load(const char *what, struct topo *out, void (*note)(void *ctx, const char *text),
	void *ctx, struct err *e)
{
	auto_free char *found = NULL;
	struct topo t;
	int rc;

	if (strcmp(what, "this") == 0) {
		rc = load_hwloc(PLACE_THIS, what, &t, note, ctx, e);
	} else if (strchr(what, '/')) {
		rc = load_path(what, &t, e);
	} else {
		found = machine_find(what, e);
		rc = found ? load_path(found, &t, e) : -ENOENT;
	}
	if (rc == 0)
		*out = t;
	return rc;
}
