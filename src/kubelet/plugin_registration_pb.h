#ifndef NUMAFIT_KUBELET_PLUGIN_REGISTRATION_PB_H
#define NUMAFIT_KUBELET_PLUGIN_REGISTRATION_PB_H

#include <codec/blob.h>
#include <numafit/arena.h>
#include <numafit/err.h>
#include <stdbool.h>

/* The messages by which the kubelet gets to know a plugin that it has found by its socket: GetInfo
 * asks with the empty message, and NotifyRegistrationStatus is answered with it. */

#define PLUGIN_REGISTRATION_PATH(method) "/pluginregistration.Registration/" method

struct plugin_info {
	const char *type; /* "DRAPlugin" */
	const char *name;
	const char *endpoint; /* path of the socket that serves its API */
	const char *const *version;
	size_t nr_versions;
};
/* The answer to GetInfo. 0; -EILSEQ: a string is not UTF-8; -ENOMEM. */
int plugin_info_encode(
	const struct plugin_info *info, struct arena *a, struct blob *out, struct err *e);

struct plugin_status {
	bool registered;
	const char *error; /* why it is not; "" where the kubelet says nothing */
};
/* The request of NotifyRegistrationStatus. 0; -EBADMSG with text. */
int plugin_status_decode(
	struct blob message, struct arena *a, struct plugin_status *out, struct err *e);

#endif
