/* A kubelet on this node whose own managers place containers, too. */
#include "beside.h"
#include "daemon.h"

#include <numafitd/kubelet_state_json.h>
#include <io/file.h>
#include <io/log.h>
#include <numafit/text.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *file, *setting;
} managers[] = {
	{"cpu_manager_state", "cpuManagerPolicy"},
	{"memory_manager_state", "memoryManagerPolicy"},
};

static bool is_static(const struct daemon *d, const char *file)
{
	char path[SETTINGS_PATH_MAX * 2], why[512];
	auto_free char *text = NULL;
	bool found = false;
	struct err e;
	size_t len;

	(void)snprintf(path, sizeof path, "%s/%s", d->settings.kubelet_root, file);
	int rc = file_read(path, KUBELET_STATE_MAX, &text, &len, &e);
	if (!rc)
		rc = kubelet_state_json_parse(text, len, &found, &e);
	if (rc && rc != -ENOENT) /* a manager that was never static has none */
		log_line(LOG_WARN, "kubelet-state-ignored", "file=%s error=%s", path,
			log_text(why, sizeof why, e.text));
	return found;
}

void beside_kubelet(struct daemon *d)
{
	const char *setting = NULL;

	for (size_t i = 0; i < sizeof managers / sizeof *managers && !setting; i++)
		if (is_static(d, managers[i].file))
			setting = managers[i].setting;
	if (!setting || d->settings.mode != MODE_MANAGE)
		return;
	if (d->settings.beside_static_kubelet == BESIDE_SHADOW)
		d->settings.mode = MODE_SHADOW;
	log_line(LOG_WARN, "kubelet-manages-too",
		"mode=%s setting=%s text=\"the kubelet's manager is static and would fight with "
		"numafit's placement\" action=\"set the kubelet's %s to none, or numafit's "
		"besideStaticKubelet to manage\"",
		mode_name(d->settings.mode), setting, setting);
}
