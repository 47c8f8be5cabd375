/* Where settings come from: the file, the command line, and what the node is. */
#include "config.h"

#include <codec/flat_yaml.h>
#include <io/file.h>
#include <numafit/text.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LABELS_BYTES_MAX = 256 << 10, LABELS_MODE = 0600 };

void config_usual_name(char name[NODE_NAME_MAX])
{
	const char *given = getenv("NODE_NAME");

	name[0] = '\0';
	if (given && *given)
		(void)text_copy(name, NODE_NAME_MAX, given);
	else
		(void)gethostname(name, NODE_NAME_MAX - 1);
	for (char *c = name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
}

int config_read_file(struct config *c, struct err *e)
{
	char *text;
	size_t len;

	if (!c->from.file)
		return 0;
	int rc = file_read_waiting(c->from.file, FLAT_YAML_BYTES_MAX, &text, &len, e);
	if (rc)
		return err_add(e, rc, "config file");
	bool same = c->text && len == c->from.len && memcmp(text, c->text, len) == 0;
	free(c->text);
	c->from.text = c->text = text;
	c->from.len = len;
	return !same;
}

static void forget_labels(struct config *c)
{
	for (size_t i = 0; i < c->labels.nr; i++) {
		free((void *)(uintptr_t)c->labels.at[i].key);
		free((void *)(uintptr_t)c->labels.at[i].value);
	}
	c->labels.nr = 0;
}

static void keep_labels(struct config *c, const struct key_value *labels, size_t nr)
{
	forget_labels(c);
	for (size_t i = 0; i < nr; i++)
		*vec_push(&c->labels) =
			(struct key_value){xstrdup(labels[i].key), xstrdup(labels[i].value)};
	c->knows_labels = true;
}

static void name_labels_file(char path[PATH_MAX], const char *directory, const char *suffix)
{
	(void)snprintf(path, PATH_MAX, "%s/node-labels%s", directory, suffix);
}

/* Those that an earlier life had: "KEY=VALUE", line by line. */
static bool find_labels(struct config *c, const char *directory)
{
	char path[PATH_MAX], *rest, *line;
	auto_free char *text = NULL;

	name_labels_file(path, directory, "");
	if (file_read(path, LABELS_BYTES_MAX, &text, NULL, NULL))
		return false;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *equals = strchr(line, '=');

		if (!equals)
			continue;
		*equals = '\0';
		*vec_push(&c->labels) = (struct key_value){xstrdup(line), xstrdup(equals + 1)};
	}
	return c->knows_labels = true;
}

static int write_labels(const struct config *c, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, LABELS_MODE), rc = 0;

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < c->labels.nr && !rc; i++)
		if (dprintf(fd, "%s=%s\n", c->labels.at[i].key, c->labels.at[i].value) < 0)
			rc = -errno;
	if (close(fd) < 0 && !rc)
		rc = -errno;
	return rc;
}

/* All of them or none: whoever ends us in between finds what was there before. */
static int save_labels(const struct config *c, const char *directory, struct err *e)
{
	char path[PATH_MAX], new[PATH_MAX];

	name_labels_file(path, directory, "");
	name_labels_file(new, directory, ".new");
	int rc = write_labels(c, new);

	if (!rc && rename(new, path) < 0)
		rc = -errno;
	return rc ? err_set(e, -rc, "%s: %s", path, strerror(-rc)) : 0;
}

int config_read(
	struct config *c, struct settings *s, struct config_sections *sections, struct err *e)
{
	char name[NODE_NAME_MAX];
	struct config_node node = {.name = name};
	int rc;

	config_usual_name(name);
	do {
		node.knows_labels = c->knows_labels;
		node.labels = c->labels.at;
		node.nr_labels = c->labels.nr;
		rc = config_settings(s, &c->from, &node, sections, e);
	} while (
		!rc && sections->by_labels && !c->knows_labels && find_labels(c, s->run_directory));
	return rc;
}

static bool are_known(const struct config *c, const struct key_value *labels, size_t nr)
{
	bool same = c->knows_labels && c->labels.nr == nr;

	for (size_t i = 0; i < nr && same; i++) {
		bool has = false;

		for (size_t k = 0; k < nr && !has; k++)
			has = text_equal(labels[i].key, c->labels.at[k].key) &&
			      text_equal(labels[i].value, c->labels.at[k].value);
		same = has;
	}
	return same;
}

void config_give_labels(struct config *c, const struct key_value *labels, size_t nr)
{
	keep_labels(c, labels, nr);
	c->labels_given = true;
}

int config_take_labels(struct config *c, const struct key_value *labels, size_t nr,
	const char *directory, struct err *e)
{
	if (c->labels_given || are_known(c, labels, nr))
		return 0;
	keep_labels(c, labels, nr);
	int rc = save_labels(c, directory, e);

	return rc ? rc : 1;
}

void config_fini(struct config *c)
{
	forget_labels(c);
	vec_fini(&c->labels);
	free(c->text);
}
