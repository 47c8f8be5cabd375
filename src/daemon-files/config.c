/* Where settings come from: the file, the command line, and what the node is. */
#include <daemon-files/config.h>

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

enum { LABELS_BYTES_MAX = 256 << 10, VERSION_BYTES_MAX = 4096, KEPT_MODE = 0600 };

/* What is left in the run directory for a later life. */
static const char labels_file[] = "node-labels", kubelet_file[] = "kubelet-version";

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

static void name_kept_file(
	char path[PATH_MAX], const char *directory, const char *name, const char *suffix)
{
	(void)snprintf(path, PATH_MAX, "%s/%s%s", directory, name, suffix);
}

/* Those that an earlier life had: "KEY=VALUE", line by line. */
static bool find_labels(struct config *c, const char *directory)
{
	char path[PATH_MAX], *rest, *line;
	auto_free char *text = NULL;

	name_kept_file(path, directory, labels_file, "");
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

static int write_labels(int fd, const void *ctx)
{
	const struct config *c = ctx;

	for (size_t i = 0; i < c->labels.nr; i++)
		if (dprintf(fd, "%s=%s\n", c->labels.at[i].key, c->labels.at[i].value) < 0)
			return -errno;
	return 0;
}

static int write_kubelet(int fd, const void *ctx)
{
	return dprintf(fd, "%s\n", (const char *)ctx) < 0 ? -errno : 0;
}

/* All of it or nothing: whoever ends us in between finds what was there before. */
static int keep_in_file(const char *directory, const char *name,
	int (*write)(int fd, const void *ctx), const void *ctx, struct err *e)
{
	char path[PATH_MAX], new[PATH_MAX];

	name_kept_file(path, directory, name, "");
	name_kept_file(new, directory, name, ".new");
	int fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, KEPT_MODE);
	int rc = fd < 0 ? -errno : write(fd, ctx);

	if (fd >= 0 && close(fd) < 0 && !rc)
		rc = -errno;
	if (!rc && rename(new, path) < 0)
		rc = -errno;
	return rc ? err_set(e, -rc, "%s: %s", path, strerror(-rc)) : 0;
}

/* What an earlier life was said. */
static void find_kubelet(struct config *c, const char *directory)
{
	char path[PATH_MAX];
	auto_free char *text = NULL;

	name_kept_file(path, directory, kubelet_file, "");
	if (file_read(path, VERSION_BYTES_MAX, &text, NULL, NULL))
		return;
	c->kubelet = kubernetes_of_kubelet(text);
	if (c->kubelet)
		c->kubelet_from = KUBELET_REMEMBERED;
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
	if (rc)
		return rc;
	c->by_kubelet = s->cpu_options.kubernetes == KUBERNETES_AUTO;
	if (c->by_kubelet && c->kubelet_from == KUBELET_UNKNOWN)
		find_kubelet(c, s->run_directory);
	if (c->by_kubelet)
		s->cpu_options.kubernetes = c->kubelet ? c->kubelet : KUBERNETES_NEWEST;
	return 0;
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
	int rc = keep_in_file(directory, labels_file, write_labels, c, e);

	return rc ? rc : 1;
}

int config_take_kubelet(
	struct config *c, const char *kubelet_version, const char *directory, struct err *e)
{
	enum kubernetes_version version = kubernetes_of_kubelet(kubelet_version);
	bool known = c->kubelet_from == KUBELET_SAID, same = version == c->kubelet;

	c->kubelet = version;
	c->kubelet_from = KUBELET_SAID;
	if (known && same)
		return 0;
	return keep_in_file(directory, kubelet_file, write_kubelet, kubelet_version, e);
}

void config_fini(struct config *c)
{
	forget_labels(c);
	vec_fini(&c->labels);
	free(c->text);
}
