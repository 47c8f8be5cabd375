#include <host/tunable.h>

#include <io/fault.h>
#include <io/file.h>
#include <numafit/text.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WHOLE_PATH_MAX = TUNABLE_PATH_MAX + TUNABLE_FILE_MAX };

/* The first of the folders that is there and has something in it that can be written, else the last one
 * that is there. The kernel lets nobody write into /proc/irq itself. */
static void find_folder(const char *root, const char *const folders[2], const char *within,
	char path[TUNABLE_PATH_MAX], struct err *why)
{
	const char *slash = text_equal(root, "/") ? "" : "/";

	*path = '\0';
	*why = (struct err){0};
	(void)err_set(why, ENOENT, "%s%s%s: there is none", root, slash, folders[1]);
	for (unsigned i = 0; i < 2 && why->code; i++) {
		char at[TUNABLE_PATH_MAX], inner[WHOLE_PATH_MAX];

		if (snprintf(at, sizeof at, "%s%s%s", root, slash, folders[i]) >= (int)sizeof at ||
			access(at, F_OK) < 0)
			continue;
		(void)text_copy(path, TUNABLE_PATH_MAX, at);
		(void)snprintf(inner, sizeof inner, "%s%s", at, within);
		if (access(inner, W_OK) == 0)
			*why = (struct err){0};
		else
			(void)err_set(why, errno, "%s: %s", inner, strerror(errno));
	}
}

void tunables_find(
	const char *root, struct tunables *out, struct err *irqs_why, struct err *cpus_why)
{
	static const char *const irqs[] = {"host/" TUNABLE_IRQS, TUNABLE_IRQS},
				 *const cpus[] = {"host/" TUNABLE_CPUS, TUNABLE_CPUS};

	find_folder(root, irqs, "/default_smp_affinity", out->irqs, irqs_why);
	find_folder(root, cpus, "", out->cpus, cpus_why);
}

static int path_of(
	const struct tunables *t, const char *file, char path[WHOLE_PATH_MAX], struct err *e)
{
	const char *of_irqs = text_behind(file, TUNABLE_IRQS "/"),
		   *of_cpus = text_behind(file, TUNABLE_CPUS "/");
	const char *rest = of_irqs ? of_irqs : of_cpus, *folder = of_irqs ? t->irqs : t->cpus;

	/* a name may come from a journal */
	if (!rest || strstr(rest, "..") || strlen(file) >= TUNABLE_FILE_MAX)
		return err_set(e, EINVAL, "%.64s is no file of interrupts or CPUs", file);
	if (!*folder)
		return err_set(e, ENOENT, "/%s: %s", file, strerror(ENOENT));
	(void)snprintf(path, WHOLE_PATH_MAX, "%s/%s", folder, rest);
	return 0;
}

int tunable_read(
	const struct tunables *t, const char *file, char *text, size_t cap, struct err *e)
{
	char path[WHOLE_PATH_MAX];
	int rc = path_of(t, file, path, e);

	if (!rc)
		rc = file_read_into(path, text, cap, e);
	if (rc < 0)
		return rc;
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

int tunable_write(const struct tunables *t, const char *file, const char *text, struct err *e)
{
	char path[WHOLE_PATH_MAX];
	int rc = path_of(t, file, path, e);

	if (rc)
		return rc;
	fault_point(FAULT_TO_WRITE_TUNABLE);
	rc = file_set(path, text, e);
	fault_point(FAULT_TUNABLE_WRITTEN);
	return rc;
}
