#ifndef NUMAFIT_NUMAFITD_BESIDE_H
#define NUMAFIT_NUMAFITD_BESIDE_H

#include <numafit/settings.h>

struct daemon;

/* The setting of the kubelet by which one of its own managers is static, as its state files have
 * it; NULL: none is. unread: gets the name of a file that cannot be read, and why; may be NULL. */
const char *beside_static_manager(
	const struct settings *s, void (*unread)(const char *path, const struct err *e));
/* The mode beside a kubelet with that setting (NULL: none): manage is shadow there, unless the
 * settings want it otherwise. */
enum mode beside_mode(const struct settings *s, const char *setting);
/* Put it in force, with a line in the log. */
void beside_kubelet(struct daemon *d);

#endif
