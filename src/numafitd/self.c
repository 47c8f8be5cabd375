/* What a container can read of what it has. */
#include "self.h"
#include "daemon.h"
#include "reply.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <io/file.h>
#include <io/log.h>
#include <limits.h>
#include <numafit/ledger.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	GATHER_MS = 200,
	AT_ONCE = 64, /* files that are looked at in one turn of the loop */
	FOLDERS_MODE = 0711,
	FOLDER_MODE = 0755,
	FILE_MODE = 0444,
	SELF_TEXT_MAX = CPUSET_TEXT_MAX + 2 * NODESET_TEXT_MAX + 128
};

struct self_files {
	struct loop_timer *timer;
	char folders[SETTINGS_PATH_MAX + sizeof "/self"];
	bool any;      /* there are folders */
	bool turns;    /* a round is under way, */
	bool again;    /* and another one is due after it */
	size_t at;     /* the round's next entry of the ledger */
	DIR *there;    /* then its list of folders */
	bool said_why; /* what went wrong is logged */
};

const struct key_value *self_variables(
	const struct daemon *d, const struct update *given, struct arena *a, size_t *nr)
{
	/* of a wide cpuset it has what the cgroups above leave */
	const struct cpuset *cpus =
		cpuset_empty(&given->in_force) ? &given->cpus : &given->in_force;
	const struct nodeset nodes = topo_nodes_of(&d->topo, cpus);
	const struct key_value all[] = {
		{"NUMAFIT_CPUS", cpus_text(a, cpus)},
		{"NUMAFIT_MEMS", nodes_text(d, a, given->mems)},
		{"NUMAFIT_NUMA_NODES", nodes_text(d, a, nodes)},
	};
	struct key_value *list = arena_array(a, sizeof all / sizeof *all, sizeof *list);

	if (list)
		memcpy(list, all, sizeof all);
	*nr = list ? sizeof all / sizeof *all : 0;
	return list;
}

static void print_lines(const struct key_value *variables, size_t nr, struct text *to)
{
	for (size_t i = 0; i < nr; i++)
		text_add(to, "%s=%s\n", variables[i].key, variables[i].value);
}

/* A container sees it whole, as it was or as it is. */
static int write_file(const char *folder, const char *lines, struct err *e)
{
	char path[PATH_MAX], new_path[PATH_MAX];
	size_t len = strlen(lines);

	(void)snprintf(path, sizeof path, "%s/self", folder);
	(void)snprintf(new_path, sizeof new_path, "%s/.self", folder);
	(void)unlink(new_path); /* of a life that ended amid this */
	int fd = open(new_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
	int rc = fd < 0 ? -errno : 0;
	if (!rc && write(fd, lines, len) != (ssize_t)len)
		rc = -EIO;
	if (!rc && fchmod(fd, FILE_MODE) < 0) /* whatever the umask */
		rc = -errno;
	if (fd >= 0)
		(void)close(fd);
	if (!rc && rename(new_path, path) < 0)
		rc = -errno;
	return rc ? err_set(e, -rc, "%s: %s", path, strerror(-rc)) : 0;
}

static void say_once(struct self_files *s, const struct err *e)
{
	char why[2 * sizeof e->text];

	if (!s->said_why)
		log_line(LOG_WARN, "self-file-failed",
			"error=%s text=\"containers have no file that says what they have, or an old "
			"one; their environment does\" action=\"make room in runDirectory\"",
			log_text(why, sizeof why, e->text));
	s->said_why = true;
}

/* False: an id that is no name of a file has none. */
static bool folder_of(const struct self_files *s, const char *container_id, char path[PATH_MAX])
{
	struct text t;

	text_init(&t, path, PATH_MAX - sizeof "/.self");
	text_add(&t, "%s/%s", s->folders, container_id);
	return *container_id && *container_id != '.' && !strchr(container_id, '/') && !t.cut;
}

const char *self_give(struct daemon *d, const char *container_id, const struct key_value *variables,
	size_t nr, struct arena *a)
{
	struct self_files *s = d->follow.self;
	char folder[PATH_MAX], lines[SELF_TEXT_MAX];
	struct err e = {0};
	struct text t;

	if (!s || !folder_of(s, container_id, folder))
		return NULL;
	text_init(&t, lines, sizeof lines);
	print_lines(variables, nr, &t);
	if (mkdir(s->folders, FOLDERS_MODE) < 0 && errno != EEXIST)
		(void)err_set(&e, errno, "%s: %s", s->folders, strerror(errno));
	else if (mkdir(folder, FOLDER_MODE) < 0 && errno != EEXIST)
		(void)err_set(&e, errno, "%s: %s", folder, strerror(errno));
	else
		(void)write_file(folder, lines, &e);
	if (e.code) {
		say_once(s, &e);
		return NULL;
	}
	s->any = true;
	return arena_strndup(a, folder, strlen(folder));
}

/* Rounds */

static void follow(struct daemon *d, const struct holding *h)
{
	enum { ARENA_BYTES = 64 << 10 };
	char folder[PATH_MAX], path[PATH_MAX], was[SELF_TEXT_MAX], is[SELF_TEXT_MAX];
	struct update want;
	struct arena a;
	struct text t;
	struct err e;
	size_t nr;

	if (!engine_wants(d->engine, h->request.container_id, &want) || want.untouched ||
		!folder_of(d->follow.self, h->request.container_id, folder))
		return;
	(void)snprintf(path, sizeof path, "%.*s/self", (int)(sizeof path - sizeof "/self"), folder);
	if (file_read_into(path, was, sizeof was, &e) < 0) /* most have none */
		return;
	arena_init(&a, ARENA_BYTES);
	const struct key_value *variables = self_variables(d, &want, &a, &nr);
	text_init(&t, is, sizeof is);
	print_lines(variables, nr, &t);
	if (variables && !text_equal(was, is) && write_file(folder, is, &e))
		say_once(d->follow.self, &e);
	arena_fini(&a);
}

static void remove_folder(const struct self_files *s, const char *id)
{
	static const char *const files[] = {"/self", "/.self", ""};
	char folder[PATH_MAX], path[PATH_MAX];

	if (!folder_of(s, id, folder))
		return;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		(void)snprintf(path, sizeof path, "%.*s%s", (int)(sizeof path - sizeof "/.self"),
			folder, files[i]);
		(void)(*files[i] ? unlink(path) : rmdir(path));
	}
}

/* Of entries of the ledger. True: there are more. */
static bool look_at_entries(struct daemon *d)
{
	struct self_files *s = d->follow.self;
	const struct ledger *l = engine_ledger(d->engine);

	for (unsigned i = 0; i < AT_ONCE && s->at < ledger_count(l); i++)
		follow(d, ledger_at(l, s->at++));
	return s->at < ledger_count(l);
}

/* Of containers that are gone. True: there may be more. */
static bool look_at_folders(struct daemon *d)
{
	struct self_files *s = d->follow.self;
	const struct dirent *entry = NULL;
	DIR *there = s->there ? s->there : opendir(s->folders);

	for (unsigned i = 0; i < AT_ONCE && there && (entry = readdir(there)); i++)
		if (*entry->d_name != '.' && !ledger_find(engine_ledger(d->engine), entry->d_name))
			remove_folder(s, entry->d_name);
	s->there = there;
	return entry;
}

static void self_turn(void *ctx)
{
	struct daemon *d = ctx;
	struct self_files *s = d->follow.self;

	if ((!s->there && look_at_entries(d)) || look_at_folders(d)) {
		loop_timer_set(s->timer, 0);
		return;
	}
	if (s->there)
		(void)closedir(s->there);
	s->there = NULL;
	s->at = 0;
	s->turns = s->again;
	s->again = false;
	if (s->turns)
		loop_timer_set(s->timer, GATHER_MS);
}

void self_note_change(struct daemon *d)
{
	struct self_files *s = d->follow.self;

	if (!s || !s->any)
		return;
	if (s->turns) {
		s->again = true;
		return;
	}
	s->turns = true;
	loop_timer_set(s->timer, GATHER_MS);
}

void self_start(struct daemon *d)
{
	struct self_files *s = xcalloc(1, sizeof *s);

	s->timer = loop_timer_new(d->loop, self_turn, d);
	(void)snprintf(s->folders, sizeof s->folders, "%s/self", d->settings.run_directory);
	s->any = access(s->folders, F_OK) == 0;
	d->follow.self = s;
}

void self_stop(struct daemon *d)
{
	if (!d->follow.self)
		return;
	if (d->follow.self->there)
		(void)closedir(d->follow.self->there);
	loop_timer_close(d->follow.self->timer);
	free(d->follow.self);
	d->follow.self = NULL;
}
