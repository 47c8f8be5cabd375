/* What a start would find, for numafitd --check-config. */
#include <daemon-files/check_config.h>

#include <apiserver/auth.h>
#include <io/file.h>
#include <io/http_server_listen.h>
#include <numafit/host_kind.h>
#include <numafit/text.h>
#include <daemon-files/beside.h>
#include <daemon-files/kubelet_config_yaml.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool run_directory_may_come(int rc)
{
	/* a path that leads nowhere, and another daemon: no waiting helps */
	return rc != -EBUSY && rc != -ENOTDIR && rc != -ELOOP && rc != -ENAMETOOLONG &&
	       rc != -EINVAL && rc != -EISDIR;
}

bool run_directory_next_writer(const char *dir, unsigned *at, struct err *e)
{
	char journal[PATH_MAX];
	const struct {
		int (*check)(const char *path, struct err *e);
		const char *path;
	} checks[] = {{file_check_own, dir}, {file_check_own, journal}, {file_check_parents, dir}};

	(void)snprintf(journal, sizeof journal, "%s/journal", dir);
	while (*at < sizeof checks / sizeof *checks) {
		const unsigned i = (*at)++;

		if (checks[i].check(checks[i].path, e) == -EPERM)
			return true;
	}
	return false;
}

static int check_metrics_address(const struct settings *s, struct err *e)
{
	return *s->metrics_address ? http_check_address(s->metrics_address, HTTP_ADDRESS_HERE, e)
				   : 0;
}

static int check_ui_port(const struct settings *s, struct err *e)
{
	char buf[ADDRESS_MAX];

	return *s->ui_address ? http_check_address(host_as_address(s->ui_address, buf, sizeof buf),
					HTTP_ADDRESS_HERE, e)
			      : 0;
}

/* A kubeconfig that is missing may come later, with the files that the kubeconfig names. */
static int check_kubeconfig(const struct settings *s, struct err *e)
{
	int rc = auth_check(s->kubeconfig, s->kube_context, e);

	return rc < 0 ? rc : 0;
}

/* It is made when it is not there, and waited for when it cannot be made. */
static int check_run_directory(const struct settings *s, struct err *e)
{
	static const char socket[] = "/numafitd.sock";
	struct stat st;

	if (strlen(s->run_directory) + sizeof socket > SETTINGS_SOCKET_MAX)
		return err_set(e, ENAMETOOLONG,
			"\"%s\" is too long for the path of a socket in it: %zu bytes at most",
			s->run_directory, SETTINGS_SOCKET_MAX - sizeof socket);
	int rc = stat(s->run_directory, &st) < 0 ? -errno : 0;
	if (!rc && !S_ISDIR(st.st_mode))
		rc = -ENOTDIR;
	return rc && !run_directory_may_come(rc)
		       ? err_set(e, -rc, "%s: %s", s->run_directory, strerror(-rc))
		       : 0;
}

static int read_kubelet_config(
	const struct settings *s, struct report_policy *policy, struct err *e)
{
	auto_free char *text = NULL;
	size_t len;
	int rc = file_read(s->kubelet_config, KUBELET_CONFIG_BYTES_MAX, &text, &len, e);

	if (rc)
		return rc;
	rc = kubelet_config_yaml_read(text, len, policy, e);
	return rc ? err_add(e, rc, "%s", s->kubelet_config) : 0;
}

/* A start goes on without it. */
static int check_kubelet_config(const struct settings *s, struct err *e)
{
	struct report_policy policy;
	int rc = read_kubelet_config(s, &policy, e);

	return rc == -ENOENT ? 0 : rc;
}

static const struct {
	const char *key;
	int (*check)(const struct settings *s, struct err *e);
} checks[] = {
	{"metrics.address", check_metrics_address},
	{"ui.address", check_ui_port},
	{"apiServer.kubeconfig", check_kubeconfig},
	{"runDirectory", check_run_directory},
	{"kubeletConfigFile", check_kubelet_config},
};

void check_config(const struct settings *s, struct mistakes *all)
{
	struct err e;

	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
		int rc = checks[i].check(s, &e);

		if (rc) {
			(void)err_add(&e, rc, "%s", checks[i].key);
			mistakes_add_key(all, checks[i].key, &e);
		}
	}
}

/* Where the kubelet's own managers are, or will be, static. */
static void print_kubelet_conflict(const struct settings *s, const char *setting)
{
	struct report_policy policy = {0};

	if (setting)
		(void)printf(
			"warning: the kubelet's %s is static in %s: numafitd starts in mode %s; "
			"set it to none, or besideStaticKubelet to manage\n",
			setting, s->kubelet_root, mode_words[beside_mode(s, setting)]);
	else if (s->mode == MODE_MANAGE && read_kubelet_config(s, &policy, NULL) == 0 &&
		 policy.cpu_manager == MANAGER_STATIC)
		(void)printf("warning: the kubelet's cpuManagerPolicy is static in %s: once the "
			     "kubelet has started with it, numafitd's mode is %s\n",
			s->kubelet_config, mode_words[beside_mode(s, "cpuManagerPolicy")]);
}

static void print_writers(const struct settings *s)
{
	struct err e;

	for (unsigned at = 0; run_directory_next_writer(s->run_directory, &at, &e);)
		(void)printf(
			"warning: runDirectory: %s: numafitd believes what is there\n", e.text);
}

void check_config_print(const struct settings *s, const struct topo *t,
	const struct settings *asked, const struct config_sections *of_file)
{
	char sections[CONFIG_SECTIONS_TEXT_MAX];
	const char *setting = s->mode == MODE_MANAGE ? beside_static_manager(s, NULL) : NULL;
	struct idle_setting idle[IDLE_SETTINGS_MAX];
	struct err e;

	(void)printf("config ok: mode %s, policy %s, machine %s with %u NUMA node%s and %u CPU%s\n",
		mode_words[beside_mode(s, setting)], topology_policy_words[s->topology_policy],
		t->name, t->ids.nr, text_plural(t->ids.nr), t->nr_cpus, text_plural(t->nr_cpus));
	(void)fputs(config_sections_text(of_file, sections), stdout);
	if (auth_check(s->kubeconfig, s->kube_context, &e) > 0)
		(void)printf("apiServer.kubeconfig not checked: %s\n", e.text);
	print_kubelet_conflict(s, setting);
	print_writers(s);
	for (unsigned i = 0, nr = settings_idle(asked, idle); i < nr; i++)
		(void)printf("warning: %s: it changes no decision: %s\n", idle[i].key, idle[i].why);
	if (s->mode == MODE_SHADOW && (s->nrt || s->numatopology) &&
		access(s->kubelet_config, R_OK) < 0)
		(void)printf(
			"warning: kubeletConfigFile: %s: %s: schedulers do not get the kubelet's "
			"policy\n",
			s->kubelet_config, strerror(errno));
}
