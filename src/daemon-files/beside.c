/* A kubelet on this node whose own managers place containers, too. */
#include <daemon-files/beside.h>

#include <daemon-files/kubelet_state_json.h>
#include <io/file.h>
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

static bool is_static(const char *path, struct err *e)
{
	auto_free char *text = NULL;
	bool found = false;
	size_t len;
	int rc = file_read(path, KUBELET_STATE_MAX, &text, &len, e);

	if (!rc)
		rc = kubelet_state_json_parse(text, len, &found, e);
	else if (rc == -ENOENT) /* a manager that was never static has none */
		e->code = 0;
	return found;
}

const char *beside_static_manager(
	const struct settings *s, void (*unread)(const char *path, const struct err *e))
{
	const char *setting = NULL;

	for (size_t i = 0; i < sizeof managers / sizeof *managers && !setting; i++) {
		char path[SETTINGS_PATH_MAX * 2];
		struct err e = {0};

		(void)snprintf(path, sizeof path, "%s/%s", s->kubelet_root, managers[i].file);
		if (is_static(path, &e))
			setting = managers[i].setting;
		if (e.code && unread)
			unread(path, &e);
	}
	return setting;
}

enum mode beside_mode(const struct settings *s, const char *setting)
{
	bool both = setting && s->mode == MODE_MANAGE;

	return both && s->beside_static_kubelet == BESIDE_SHADOW ? MODE_SHADOW : s->mode;
}
