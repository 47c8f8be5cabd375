#include <numafit-cli/run_directory.h>

#include <dirent.h>
#include <errno.h>
#include <io/journal.h>
#include <numafit/text.h>
#include <string.h>
#include <sys/stat.h>

const char *journal_path(const char *directory, const char *suffix, char buf[RUN_PATH_MAX])
{
	struct text t;

	text_init(&t, buf, RUN_PATH_MAX);
	text_add(&t, "%s/journal%s%s", directory, suffix ? "." : "", suffix ? suffix : "");
	return buf;
}

/* Why numafitd puts a journal aside instead of reading it, by the end of the name. */
static const struct {
	const char *suffix, *why;
} set_aside[] = {
	{"damaged", "it could not be read"},
	{"other-boot", "it was written before the last boot"},
	{"other-machine", "it was written on another machine"},
	{"other-version", "it was written by a numafit with another journal format"},
};

void list_set_aside(FILE *to, const char *directory)
{
	static const char prefix[] = "journal.";
	DIR *dir = opendir(directory);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		for (size_t i = 0; i < sizeof set_aside / sizeof *set_aside; i++)
			if (strncmp(entry->d_name, prefix, sizeof prefix - 1) == 0 &&
				text_equal(entry->d_name + sizeof prefix - 1, set_aside[i].suffix))
				(void)fprintf(to,
					"numafitd has set %s/%s aside: %s. Containers that ran "
					"then "
					"were taken over from what runs.\n",
					directory, entry->d_name, set_aside[i].why);
	if (dir)
		(void)closedir(dir);
}

void advise_kubectl(FILE *to, const char *verb)
{
	(void)fprintf(to,
		"In a cluster, ask from where kubectl reaches it:\n  kubectl numafit %s %s\n"
		"or, without that plugin, in numafitd's pod on the node:\n"
		"  kubectl -n numafit-system exec POD -- numafit %s\n",
		verb, text_equal(verb, "explain") ? "POD -n NS" : "NODE", verb);
}

void advise_on_journal(FILE *to, const char *verb, const char *directory, const struct err *e)
{
	if (e->code == EACCES || e->code == EPERM) {
		(void)fputs("Root may read the daemon's journal, and the group that numafitd's "
			    "setting journalGroup\nnames. ",
			to);
		advise_kubectl(to, verb);
	}
	if (e->code == ENOENT)
		(void)fprintf(to,
			"numafitd has not run here since the last boot, or its runDirectory is not "
			"%s\n(--run-directory names another).\n",
			directory);
	if (e->code == ENOTSUP)
		(void)fputs("Use the numafit that belongs to the numafitd which wrote it.\n", to);
	list_set_aside(to, directory);
}

/* Which file is the present journal: its inode, or 0. */
static ino_t present_journal(const char *directory)
{
	char path[RUN_PATH_MAX];
	struct stat st;

	return stat(journal_path(directory, NULL, path), &st) ? 0 : st.st_ino;
}

const char *const journal_suffixes[NR_JOURNALS] = {JOURNAL_PREVIOUS, NULL};

int journals_gather(const struct call *c, const char *directory, const struct gathering *g,
	struct journal_fold f[NR_JOURNALS])
{
	char path[RUN_PATH_MAX];
	struct err e[NR_JOURNALS];
	int rc[NR_JOURNALS];
	ino_t present;

	do {
		journals_fini(f);
		g->forget(g->ctx);
		present = present_journal(directory);
		for (unsigned i = 0; i < NR_JOURNALS; i++)
			rc[i] = journal_fold(&f[i],
				journal_path(directory, journal_suffixes[i], path), g->record,
				g->ctx, &e[i]);
	} while (present != present_journal(directory));
	for (unsigned i = 0; i < NR_JOURNALS; i++) {
		if (!rc[i] || (rc[i] == -ENOENT && journal_suffixes[i]) ||
			(i + 1 < NR_JOURNALS && rc[i] == -EACCES && rc[NR_JOURNALS - 1] == rc[i]))
			continue; /* nothing, or the same of the present one */
		(void)call_fail(c, EXIT_CANNOT, &e[i]);
		if (!journal_suffixes[i])
			advise_on_journal(stderr, c->command->name, directory, &e[i]);
	}
	return rc[NR_JOURNALS - 1];
}

void journals_fini(struct journal_fold f[NR_JOURNALS])
{
	for (unsigned i = 0; i < NR_JOURNALS; i++) {
		journal_fold_fini(&f[i]);
		memset(&f[i], 0, sizeof f[i]);
	}
}
