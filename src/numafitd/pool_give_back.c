/* All CPUs back for the kubelet's cgroups, wherever an earlier life has bounded one. */
#include "daemon.h"
#include "pool.h"
#include "pool_state.h"

#include <io/log.h>
#include <numafit/text.h>

#include <dirent.h>
#include <errno.h>
#include <string.h>

/* How deep the kubelet's own cgroup may be: its --cgroup-root is above it. */
enum { ROOT_DEPTH = 4 };

/* Cgroups by their names (pkg/kubelet/cm/cgroup_manager_linux.go): "kubepods" and
 * "kubepods.slice", that of a QoS class, those of pods. */
enum kind { ELSEWHERE, KUBELETS, CLASS, POD };

static bool ends_in(const char *name, const char *tail)
{
	size_t n = strlen(name), len = strlen(tail);

	return n >= len && text_equal(name + n - len, tail);
}

static enum kind kind_of(const char *name)
{
	if (text_equal(name, "kubepods") || ends_in(name, "kubepods.slice"))
		return KUBELETS;
	if (text_equal(name, "burstable") || text_equal(name, "besteffort") ||
		ends_in(name, "-burstable.slice") || ends_in(name, "-besteffort.slice"))
		return CLASS;
	return text_behind(name, "pod") || strstr(name, "-pod") ? POD : ELSEWHERE;
}

struct walk {
	const struct cgroup_tree *tree;
	const struct cpuset *all;
	unsigned widened, failed;
	struct err e;
};

/* The kernel lets no set become empty while tasks are below it: then it has all CPUs. */
static void widen(struct walk *k, const char *path)
{
	struct cpuset found;
	char list[CPUSET_TEXT_MAX];

	if (cgroup_read_cpus(k->tree, path, &found, NULL) || cpuset_empty(&found) ||
		cpuset_within(k->all, &found))
		return;
	int rc = cgroup_write(k->tree, path, "cpuset.cpus", "\n", NULL);
	if (rc)
		rc = cgroup_write(k->tree, path, "cpuset.cpus",
			cpuset_format(k->all, list, sizeof list), &k->e);
	k->widened += !rc;
	k->failed += rc && rc != -ENOENT;
}

static void look_below(struct walk *k, const char *path, enum kind above, unsigned depth);

static void look_at(
	struct walk *k, const char *path, const char *name, enum kind above, unsigned depth)
{
	enum kind kind = kind_of(name);

	if (above == ELSEWHERE && kind == KUBELETS)
		look_below(k, path, KUBELETS, depth);
	else if (above == ELSEWHERE && depth < ROOT_DEPTH)
		look_below(k, path, ELSEWHERE, depth + 1);
	if (above == ELSEWHERE || (kind != CLASS && kind != POD))
		return;
	widen(k, path);
	if (kind == CLASS)
		look_below(k, path, CLASS, depth);
}

static void look_below(struct walk *k, const char *path, enum kind above, unsigned depth)
{
	char full[2 * CGROUP_PATH_MAX], below[CGROUP_PATH_MAX];
	struct dirent *entry;
	struct text t;

	text_init(&t, full, sizeof full);
	text_add(&t, "%s%s", k->tree->root, path);
	DIR *dir = t.cut ? NULL : opendir(full);
	while (dir && (entry = readdir(dir))) {
		text_init(&t, below, sizeof below);
		text_add(&t, "%s/%s", path, entry->d_name);
		if (entry->d_type == DT_DIR && *entry->d_name != '.' && !t.cut)
			look_at(k, below, entry->d_name, above, depth);
	}
	if (dir)
		(void)closedir(dir);
}

void pool_give_back(struct daemon *d)
{
	struct walk k = {.tree = &d->follow.pool->tree, .all = &d->topo.cpus};
	char why[2 * sizeof k.e.text];

	if (!*k.tree->root)
		return;
	look_below(&k, "", ELSEWHERE, 0);
	if (k.widened)
		log_line(LOG_INFO, "pool-given-back",
			"cgroups=%u text=\"the kubelet's cgroups have all CPUs again\"", k.widened);
	if (k.failed)
		log_line(LOG_ERROR, "pool-not-given-back",
			"cgroups=%u error=%s action=\"let numafitd write the kubelet's cgroups, or "
			"write all CPUs into their cpuset.cpus\"",
			k.failed, log_text(why, sizeof why, k.e.text));
}
