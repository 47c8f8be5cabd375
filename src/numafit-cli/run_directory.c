#include <numafit-cli/run_directory.h>

#include <dirent.h>
#include <errno.h>
#include <numafit/text.h>
#include <string.h>

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

void advise_on_journal(FILE *to, const char *directory, const struct err *e)
{
	if (e->code == EACCES || e->code == EPERM)
		(void)fputs("Only root may read the daemon's journal.\n", to);
	if (e->code == ENOENT)
		(void)fprintf(to,
			"numafitd has not run here since the last boot, or its runDirectory is not "
			"%s\n(--run-directory names another).\n",
			directory);
	if (e->code == ENOTSUP)
		(void)fputs("Use the numafit that belongs to the numafitd which wrote it.\n", to);
	list_set_aside(to, directory);
}
