#ifndef NUMAFIT_APISERVER_KUBECONFIG_YAML_H
#define NUMAFIT_APISERVER_KUBECONFIG_YAML_H

#include <numafit/arena.h>
#include <numafit/err.h>
#include <stdbool.h>
#include <stddef.h>

/* One context of a kubeconfig (client-go's tools/clientcmd/api/v1; YAML or JSON): its cluster and
 * its user. Keys that are not below are passed over. */

enum {
	KUBECONFIG_BYTES_MAX = 1 << 20,
	KUBECONFIG_ENTRIES_MAX = 1024 /* clusters, users, contexts: of each */
};

/* What is not said is NULL. Of a file and its text (the -data key, decoded) only one is there. File
 * names are as they stand: relative to the kubeconfig's folder. */
struct kubeconfig {
	const char *server; /* always there */
	const char *server_name, *proxy;
	bool insecure;
	const char *ca_file, *ca;
	const char *cert_file, *cert, *key_file, *key;
	const char *token_file, *token; /* of these too: the file goes before */
	struct arena strings;
};

/* Read the len bytes at text; context NULL or "": the current one. 0, and kubeconfig_fini() ends
 * it; -E2BIG: too many bytes; -ENOENT: no such context, or what it names is not there; -ENOTSUP: it
 * asks for what we do not do (plugins, passwords, impersonation), and the text says what to do
 * instead; -EINVAL for all else, with the line. No text holds a secret. */
int kubeconfig_yaml_read(
	struct kubeconfig *k, const char *text, size_t len, const char *context, struct err *e);
/* A struct of zeros is fine. */
void kubeconfig_fini(struct kubeconfig *k);

#endif
