#ifndef NUMAFIT_APISERVER_AUTH_H
#define NUMAFIT_APISERVER_AUTH_H

#include <apiserver/api.h>
#include <io/http_client.h>

/* Where the API server is, how it proves that, and how we prove our identity: from a kubeconfig, or
 * from what a pod of the cluster finds. Most of it stands in files that change while we run: tokens
 * live an hour, certificates a while longer. */
struct auth;

enum { AUTH_AGE_MS = 60000 }; /* so long are they believed: as client-go does it */

/* By the kubeconfig, context and service of o. NULL with text: see api_new(). */
struct auth *auth_new(const struct api_options *o, struct err *e);
/* Whether a kubeconfig that is still to be used is one that we could use: by what it says itself,
 * as the files that it names come and go. 0; 1 with text: it cannot be read here; or -errno with
 * text: bad YAML, no such context, a plugin, a URL that is none. kubeconfig "": 0. */
int auth_check(const char *kubeconfig, const char *context, struct err *e);
/* NULL is fine. */
void auth_free(struct auth *a);

/* Whether AUTH_AGE_MS have passed since auth_new() or the last auth_renew(), which is then due. */
bool auth_is_old(const struct auth *a);
/* Read all of it anew; also after a 401, or when TLS was refused. 1: auth_trust() is another one,
 * to be given to http_client_trust(); 0: it is as it was; -errno with text: everything is as it
 * was, and good until the server says otherwise. */
int auth_renew(struct auth *a, struct err *e);

/* All of these are good until the next auth_renew(). */
const char *auth_url(const struct auth *a); /* "https://10.0.0.1:443": paths follow behind it */
const struct http_trust *auth_trust(const struct auth *a);
/* "Authorization: Bearer ...", one of http_ask's headers; NULL: we have no token. */
const char *auth_header(const struct auth *a);

#endif
