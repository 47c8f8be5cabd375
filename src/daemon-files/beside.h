#ifndef NUMAFIT_DAEMON_FILES_BESIDE_H
#define NUMAFIT_DAEMON_FILES_BESIDE_H

#include <numafit/settings.h>

/* The setting of the kubelet by which one of its own managers is static, as its state files have
 * it; NULL: none is. unread: gets the name of a file that cannot be read, and why; may be NULL. */
const char *beside_static_manager(
	const struct settings *s, void (*unread)(const char *path, const struct err *e));
/* The mode beside a kubelet with that setting (NULL: none): manage is shadow there, unless the
 * settings want it otherwise. */
enum mode beside_mode(const struct settings *s, const char *setting);

#endif
