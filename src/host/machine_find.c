#include <host/machine_find.h>

#include <codec/machine_text.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <numafit/vec.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
	bool beside_us; /* the path starts at the executable's folder */
	const char *path;
} homes[] = {
	{false, "test/machines"},            /* the source tree */
	{true, "../../test/machines"},       /* build/VARIANT/numafit */
	{true, "../share/numafit/machines"}, /* installed */
};
enum { NR_HOMES = sizeof homes / sizeof *homes };

/* What may follow a name; nothing: a directory, known by what a recorded tree always has. */
static const char *const suffixes[] = {".machine", ".xml", ""};
enum { NR_SUFFIXES = sizeof suffixes / sizeof *suffixes };
static const char tree_mark[] = "/sys";

__attribute__((format(printf, 1, 2))) static char *format_string(const char *fmt, ...)
{
	char *s = NULL;
	va_list ap;

	va_start(ap, fmt);
	int len = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (len < 0)
		abort();
	return s;
}

/* The path of home i; the caller frees. */
static char *home_path(unsigned i)
{
	char self[PATH_MAX];

	if (!homes[i].beside_us)
		return xstrdup(homes[i].path);
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
	self[len < 0 ? 0 : len] = '\0';
	const char *slash = strrchr(self, '/');
	return format_string("%.*s/%s", slash ? (int)(slash - self) : 0, self, homes[i].path);
}

/* The length of the machine's name that a file of this name holds: a suffix less, if there is one.
 */
static size_t name_length(const char *file, size_t len)
{
	for (unsigned i = 0; i < NR_SUFFIXES; i++) {
		size_t suffix = strlen(suffixes[i]);

		if (len > suffix && memcmp(file + len - suffix, suffixes[i], suffix) == 0)
			return len - suffix;
	}
	return len;
}

int machine_name_from_path(const char *path, char name[TOPO_NAME_MAX], struct err *e)
{
	size_t end = strlen(path);

	while (end > 1 && path[end - 1] == '/')
		end--;
	const char *slash = memrchr(path, '/', end);
	const char *file = slash ? slash + 1 : path;
	size_t len = name_length(file, (size_t)(path + end - file));
	if (!machine_text_is_name(file, len))
		return err_set(e, EINVAL,
			"%s: a machine is called like its file: use up to %d letters, digits, '.', "
			"'_' and '-'",
			path, TOPO_NAME_MAX - 1);
	memcpy(name, file, len);
	name[len] = '\0';
	return 0;
}

struct names {
	VEC(char *);
};

static int compare_machine_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The name is ours from here on; one that is in two homes is listed once. */
static void names_add(struct names *names, char *name)
{
	for (size_t i = 0; i < names->nr; i++)
		if (strcmp(names->at[i], name) == 0) {
			free(name);
			return;
		}
	*vec_push(names) = name;
}

static void list_home(const char *home, struct names *names)
{
	DIR *d = opendir(home);
	const struct dirent *entry;

	while (d && (entry = readdir(d))) {
		size_t whole = strlen(entry->d_name), len = name_length(entry->d_name, whole);
		auto_free char *tree = format_string("%s/%s%s", home, entry->d_name, tree_mark);

		if (entry->d_name[0] != '.' && (len < whole || access(tree, F_OK) == 0))
			names_add(names, format_string("%.*s", (int)len, entry->d_name));
	}
	if (d)
		(void)closedir(d);
}

/* An error that names all machines there are. */
static void not_found(const char *name, struct err *e)
{
	struct names names = {0};

	for (unsigned i = 0; i < NR_HOMES; i++) {
		auto_free char *home = home_path(i);

		list_home(home, &names);
	}
	if (names.nr)
		qsort(names.at, names.nr, sizeof *names.at, compare_machine_names);
	auto_free char *list = xstrdup("this");
	for (size_t i = 0; i < names.nr; i++) {
		char *longer = format_string("%s, %s", list, names.at[i]);

		free(list);
		list = longer;
		free(names.at[i]);
	}
	vec_fini(&names);
	(void)err_set(e, ENOENT,
		"no machine \"%s\": the names known here are %s (recorded machines are looked "
		"for in %s, and beside the program in %s and %s)",
		name, list, homes[0].path, homes[1].path, homes[2].path);
}

char *machine_find(const char *name, struct err *e)
{
	for (unsigned i = 0; i < NR_HOMES; i++) {
		auto_free char *home = home_path(i);

		for (unsigned f = 0; f < NR_SUFFIXES; f++) {
			auto_free char *path = format_string("%s/%s%s", home, name, suffixes[f]);
			auto_free char *mark =
				format_string("%s%s", path, *suffixes[f] ? "" : tree_mark);

			if (access(mark, F_OK) == 0)
				return steal(path);
		}
	}
	not_found(name, e);
	return NULL;
}
