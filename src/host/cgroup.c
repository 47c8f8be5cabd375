#include <host/cgroup.h>

#include <dirent.h>
#include <errno.h>
#include <io/fault.h>
#include <io/file.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	MOUNT_LINE_MAX = 64 << 10,
	LIST_MAX = CPUSET_TEXT_MAX,
	CONTROLLERS_MAX = 1024,
	CONTROLLER_TEXT_MAX = 32
};

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

static int path_under(const char *root, const char *path, char *buf, size_t cap, struct err *e)
{
	size_t len = strlen(root);
	struct text t;

	while (len && root[len - 1] == '/')
		len--;
	text_init(&t, buf, cap);
	text_add(&t, "%.*s%s", (int)len, root, path);
	return t.cut ? err_set(e, ENAMETOOLONG, "%s%s: the path is too long", root, path) : 0;
}

enum { CPUSET, CPU, MEMORY, PIDS, NR_CONTROLLERS };
static const char *const controllers[NR_CONTROLLERS] = {"cpuset", "cpu", "memory", "pids"};

/* What was found, by version. */
struct trees {
	struct cgroup_tree of[2][NR_CONTROLLERS];
};

static int look_at_mount(
	const char *root, const struct mount *m, struct trees *found, struct err *e)
{
	bool is_v1 = text_equal(m->type, "cgroup"), is_v2 = text_equal(m->type, "cgroup2");
	/* it shows the hierarchy from its top, or, in a cgroup namespace, from above */
	bool is_whole = text_equal(m->root, "/") || text_behind(m->root, "/..");
	char path[CGROUP_PATH_MAX], file[CGROUP_PATH_MAX + sizeof "/cgroup.controllers"],
		list[CONTROLLERS_MAX];

	if ((!is_v1 && !is_v2) || !is_whole)
		return 0;
	int rc = path_under(root, m->point, path, sizeof path, e);
	if (rc)
		return rc;
	(void)snprintf(file, sizeof file, "%s/cgroup.controllers", path);
	if (is_v2 && file_read_into(file, list, sizeof list, NULL) < 0)
		*list = '\0';
	for (unsigned i = 0; i < NR_CONTROLLERS; i++) {
		struct cgroup_tree *t = &found->of[is_v2][i];

		if (!has_word(is_v2 ? list : m->options, is_v2 ? " \n" : ",", controllers[i]))
			continue;
		t->v2 = is_v2;
		memcpy(t->root, path, sizeof path);
	}
	return 0;
}

/* A controller is in one of the two at a time. */
static struct cgroup_tree tree_of(const struct trees *found, unsigned controller)
{
	return found->of[!*found->of[false][controller].root][controller];
}

/* There is no bound for all lines: a node with thousands of containers has megabytes of overlays.
 * A longer line than those of cgroups are is passed over. */
static int look_at_mounts(const char *root, FILE *mounts, struct trees *found, struct err *e)
{
	auto_free char *line = NULL;
	struct mount m;
	size_t cap = 0;
	ssize_t len;
	int rc = 0;

	while (!rc && (len = getline(&line, &cap, mounts)) >= 0) {
		if (len > MOUNT_LINE_MAX)
			continue;
		line[strcspn(line, "\n")] = '\0';
		rc = parse_mount(line, &m) ? look_at_mount(root, &m, found, e) : 0;
	}
	if (!rc && !feof(mounts))
		rc = err_set(e, errno, "/proc/self/mountinfo: %s", strerror(errno));
	return rc;
}

static int read_mounts(const char *root, const char *path, struct trees *found, struct err *e)
{
	FILE *mounts = fopen(path, "re");

	if (!mounts)
		return err_set(e, errno, "%s: %s", path, strerror(errno));
	int rc = look_at_mounts(root, mounts, found, e);
	(void)fclose(mounts);
	return rc;
}

int cgroups_find(const char *root, struct cgroups *out, struct err *e)
{
	struct trees found = {0};
	char path[CGROUP_PATH_MAX];
	int rc = path_under(root, "/proc/self/mountinfo", path, sizeof path, e);

	if (!rc)
		rc = read_mounts(root, path, &found, e);
	if (rc)
		return rc;
	const struct cgroup_tree cpuset = tree_of(&found, CPUSET);
	if (!*cpuset.root)
		return err_set(e, ENOENT, "%s: no mounted cgroup hierarchy has cpusets", path);
	out->v2 = cpuset.v2;
	memcpy(out->root, cpuset.root, sizeof out->root);
	out->cpu = tree_of(&found, CPU);
	out->memory = tree_of(&found, MEMORY);
	out->pids = tree_of(&found, PIDS);
	return 0;
}

/* Values */

int cgroup_file_path(const struct cgroup_tree *t, const char *directory, const char *file,
	char *buf, size_t cap, struct err *e)
{
	struct text path;

	if (!*t->root)
		return err_set(e, ENOENT, "%s: no such controller", file);
	text_init(&path, buf, cap);
	text_add(&path, "%s%s/%s", t->root, directory, file);
	return path.cut ? err_set(e, ENAMETOOLONG, "%s%s: the path is too long", t->root, directory)
			: 0;
}

int cgroup_check_writable(const struct cgroup_tree *t, struct err *e)
{
	char path[2 * CGROUP_PATH_MAX];
	int rc = cgroup_file_path(t, "", "cgroup.procs", path, sizeof path, e);

	if (rc)
		return rc;
	return access(path, W_OK) == 0 ? 0 : err_set(e, errno, "%s: %s", t->root, strerror(errno));
}

bool cgroup_is_there(const struct cgroup_tree *t, const char *directory)
{
	char path[2 * CGROUP_PATH_MAX];

	return cgroup_file_path(t, directory, ".", path, sizeof path, NULL) == 0 &&
	       access(path, F_OK) == 0;
}

int cgroup_enable(
	const struct cgroup_tree *t, const char *directory, const char *controller, struct err *e)
{
	char above[CGROUP_PATH_MAX], text[CONTROLLER_TEXT_MAX];

	(void)snprintf(text, sizeof text, "+%s", controller);
	int rc = cgroup_write(t, "", "cgroup.subtree_control", text, e);
	for (const char *at = strchr(directory + 1, '/'); at && !rc; at = strchr(at + 1, '/')) {
		(void)snprintf(above, sizeof above, "%.*s", (int)(at - directory), directory);
		rc = cgroup_write(t, above, "cgroup.subtree_control", text, e);
	}
	return rc;
}

int cgroup_read_cpus(
	const struct cgroup_tree *t, const char *directory, struct cpuset *out, struct err *e)
{
	char path[2 * CGROUP_PATH_MAX], list[LIST_MAX];
	int rc = cgroup_file_path(t, directory, "cpuset.cpus", path, sizeof path, e);

	if (!rc)
		rc = file_read_into(path, list, sizeof list, e);
	return rc < 0 ? rc : cpuset_parse(out, list, (size_t)rc, e);
}

int cgroup_write(const struct cgroup_tree *t, const char *directory, const char *file,
	const char *text, struct err *e)
{
	char path[2 * CGROUP_PATH_MAX];
	int rc = cgroup_file_path(t, directory, file, path, sizeof path, e);

	if (rc)
		return rc;
	fault_point(FAULT_TO_WRITE_CGROUP);
	rc = file_set(path, text, e);
	fault_point(FAULT_CGROUP_WRITTEN);
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

static int read_below(const char *root, const char *cgroups_path, const char *file, char *buf,
	size_t cap, struct err *e)
{
	char below[CGROUP_PATH_MAX], path[2 * CGROUP_PATH_MAX];
	struct text t;
	int rc = cgroup_path(cgroups_path, below, sizeof below, e);

	if (rc)
		return rc;
	text_init(&t, path, sizeof path);
	text_add(&t, "%s%s/%s", root, below, file);
	return t.cut ? err_set(e, ENAMETOOLONG, "%s%s: the path is too long", root, below)
		     : file_read_into(path, buf, cap, e);
}

static int read_cpuset_cpus(const struct cgroups *c, const char *cgroups_path, unsigned file,
	struct cpuset *out, struct err *e)
{
	char list[LIST_MAX];
	int rc = read_below(c->root, cgroups_path, files[c->v2][file], list, sizeof list, e);

	if (rc < 0)
		return rc;
	rc = cpuset_parse(out, list, (size_t)rc, e);
	return rc ? err_add(e, rc, "%s", files[c->v2][file]) : 0;
}

static int read_cpuset_mems(const struct cgroups *c, const char *cgroups_path, unsigned file,
	const struct node_ids *ids, struct nodeset *out, struct err *e)
{
	char list[LIST_MAX];
	int rc = read_below(c->root, cgroups_path, files[c->v2][file], list, sizeof list, e);

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
	int rc = read_cpuset_cpus(c, cgroups_path, CPUS, &s.cpus, e);

	if (!rc)
		rc = read_cpuset_mems(c, cgroups_path, MEMS, ids, &s.mems, e);
	if (!rc)
		rc = read_cpuset_cpus(c, cgroups_path, EFFECTIVE_CPUS, &s.effective_cpus, e);
	if (!rc)
		rc = read_cpuset_mems(c, cgroups_path, EFFECTIVE_MEMS, ids, &s.effective_mems, e);
	if (!rc)
		*out = s;
	return rc;
}

/* Limits (sched-bwc.rst, memory.rst; cgroup-v2.rst: "max" is none) */

enum { NUMBERS_MAX = 64 };
/* v1 has no word for "no limit" of memory: it says the largest number of whole pages there is. */
static const uint64_t no_memory_limit = INT64_MAX / 65536 * 65536 - 65536;

/* The number at that place of the text, whose words it takes apart; UINT64_MAX when there is no
 * limit.
 */
static int parse_limit(char *text, const char *file, unsigned at, uint64_t *out, struct err *e)
{
	char *save = NULL, *word = NULL;

	for (unsigned i = 0; i <= at; i++)
		word = strtok_r(i ? NULL : text, " \n", &save);
	if (!word)
		return err_set(e, EINVAL, "%s has not enough numbers", file);
	*out = UINT64_MAX;
	if (text_equal(word, "max") || *word == '-')
		return 0;
	int rc = text_u64(word, strlen(word), UINT64_MAX, out, e);
	return rc ? err_add(e, -EINVAL, "%s", file) : 0;
}

/* One number of a container's file, UINT64_MAX for none. */
static int read_limit(const struct cgroup_tree *t, const char *cgroups_path, const char *file,
	unsigned at, uint64_t *out, struct err *e)
{
	char text[NUMBERS_MAX];

	if (!*t->root)
		return err_set(e, ENOENT, "%s: no such controller", file);
	int rc = read_below(t->root, cgroups_path, file, text, sizeof text, e);
	if (rc < 0)
		return rc;
	return parse_limit(text, file, at, out, e);
}

static const char *const quota_files[2] = {"cpu.cfs_quota_us", "cpu.max"},
			 *const period_files[2] = {"cpu.cfs_period_us", "cpu.max"};

const char *cgroup_quota_file(const struct cgroup_tree *cpu)
{
	return quota_files[cpu->v2];
}

static int read_line(const struct cgroup_tree *cpu, const char *directory, const char *file,
	char text[CGROUP_QUOTA_MAX], struct err *e)
{
	char path[2 * CGROUP_PATH_MAX];
	int rc = cgroup_file_path(cpu, directory, file, path, sizeof path, e);

	if (!rc)
		rc = file_read_into(path, text, CGROUP_QUOTA_MAX, e);
	if (rc < 0)
		return rc;
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

/* As parse_limit(), which leaves the text as it is. */
static int limit_in(const char *text, const char *file, unsigned at, uint64_t *out, struct err *e)
{
	char words[CGROUP_QUOTA_MAX];

	(void)text_copy(words, sizeof words, text);
	return parse_limit(words, file, at, out, e);
}

int cgroup_read_quota(const struct cgroup_tree *cpu, const char *directory,
	struct cgroup_quota *out, struct err *e)
{
	const char *quota_file = quota_files[cpu->v2], *period_file = period_files[cpu->v2];
	char period[CGROUP_QUOTA_MAX];
	int rc = read_line(cpu, directory, quota_file, out->text, e);

	if (!rc)
		rc = limit_in(out->text, quota_file, 0, &out->quota_us, e);
	if (!rc && !cpu->v2)
		rc = read_line(cpu, directory, period_file, period, e);
	if (!rc)
		rc = limit_in(
			cpu->v2 ? out->text : period, period_file, cpu->v2, &out->period_us, e);
	if (!rc)
		out->limited = out->quota_us != CGROUP_NO_QUOTA;
	return rc;
}

int cgroup_write_quota(
	const struct cgroup_tree *cpu, const char *directory, const char *text, struct err *e)
{
	return cgroup_write(cpu, directory, quota_files[cpu->v2], text, e);
}

void cgroup_quota_text(const struct cgroup_tree *cpu, uint64_t quota_us, uint64_t period_us,
	char text[CGROUP_QUOTA_MAX])
{
	static const char *const none[2] = {"-1", "max"};
	struct text t;

	text_init(&t, text, CGROUP_QUOTA_MAX);
	if (quota_us == CGROUP_NO_QUOTA)
		text_add(&t, "%s", none[cpu->v2]);
	else
		text_add(&t, "%llu", (unsigned long long)quota_us);
	if (cpu->v2)
		text_add(&t, " %llu", (unsigned long long)period_us);
}

int cgroup_read_limits(const struct cgroups *c, const char *cgroups_path,
	struct linux_resources *out, struct err *e)
{
	static const char *const memory[2] = {"memory.limit_in_bytes", "memory.max"};
	uint64_t quota_us, period_us, bytes;
	int rc = read_limit(&c->cpu, cgroups_path, quota_files[c->cpu.v2], 0, &quota_us, e);

	if (!rc)
		rc = read_limit(
			&c->cpu, cgroups_path, period_files[c->cpu.v2], c->cpu.v2, &period_us, e);
	if (!rc)
		rc = read_limit(&c->memory, cgroups_path, memory[c->memory.v2], 0, &bytes, e);
	if (rc)
		return rc;
	*out = (struct linux_resources){0};
	if (quota_us <= INT64_MAX) {
		out->has_quota = out->has_period = true;
		out->cpu_quota = (int64_t)quota_us;
		out->cpu_period = period_us;
	}
	if (bytes < no_memory_limit) {
		out->has_memory_limit = true;
		out->memory_limit = (int64_t)bytes;
	}
	return 0;
}

static bool has_tasks(const struct cgroups *c, const char *cgroups_path)
{
	uint64_t nr;

	return read_limit(&c->pids, cgroups_path, "pids.current", 0, &nr, NULL) == 0 && nr;
}

/* Whether there are cgroups in it. */
static bool has_cgroups_below(const struct cgroups *c, const char *cgroups_path)
{
	char below[CGROUP_PATH_MAX], path[2 * CGROUP_PATH_MAX];
	bool found = false;

	if (cgroup_path(cgroups_path, below, sizeof below, NULL))
		return false;
	(void)snprintf(path, sizeof path, "%s%s", c->root, below);
	DIR *d = opendir(path);
	for (const struct dirent *f; d && !found && (f = readdir(d));)
		found = f->d_type == DT_DIR && *f->d_name != '.';
	if (d)
		(void)closedir(d);
	return found;
}

int cgroup_first_process(
	const struct cgroups *c, const char *cgroups_path, uint64_t *pid, struct err *e)
{
	enum { PROCESSES_MAX = 16 << 10 };
	char text[PROCESSES_MAX];
	int rc = read_below(c->root, cgroups_path, "cgroup.procs", text, sizeof text, e);

	*pid = 0;
	if (rc == 0 && (c->v2 || has_cgroups_below(c, cgroups_path)))
		return err_set(e, ESRCH, "%s: it has no process of its own", cgroups_path);
	if (rc <= 0)
		return rc;
	rc = text_u64(text, strcspn(text, "\n"), UINT64_MAX, pid, e);
	return rc ? err_add(e, rc, "cgroup.procs") : 0;
}

bool cgroup_has_processes(const struct cgroups *c, const char *cgroups_path)
{
	char text[CONTROLLERS_MAX];
	int rc =
		read_below(c->root, cgroups_path, files[c->v2][PROCESSES], text, sizeof text, NULL);

	if (rc == -EFBIG)
		return true;
	if (c->v2)
		return rc > 0 && has_word(text, "\n", "populated 1");
	/* v1 leaves out processes that the reader's PID namespace does not have: as those of other
	 * containers, seen from numafitd's */
	return rc > 0 || (rc == 0 && has_tasks(c, cgroups_path));
}
