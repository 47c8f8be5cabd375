/* What a start would find, for numafit-extender --check-config. */
#include "extender.h"

#include <apiserver/auth.h>
#include <errno.h>
#include <io/http_server_listen.h>
#include <numafit/host_kind.h>
#include <numafit/text.h>
#include <string.h>

static int extender_check_listen(const struct extender_config *c, struct err *e)
{
	return http_check_address(c->listen, HTTP_ADDRESS_HERE, e);
}

static bool is_every_address(const char *address)
{
	return address[0] == ':' || strncmp(address, "[::]:", strlen("[::]:")) == 0 ||
	       strncmp(address, "0.0.0.0:", strlen("0.0.0.0:")) == 0;
}

static int extender_check_metrics(const struct extender_config *c, struct err *e)
{
	const char *address = c->metrics_address, *port = strrchr(address, ':');

	if (!*address)
		return 0;
	int rc = http_check_address(address, HTTP_ADDRESS_HERE, e);
	if (rc || text_equal(port, ":0") || !text_equal(port, strrchr(c->listen, ':')) ||
		!(text_equal(address, c->listen) || is_every_address(address) ||
			is_every_address(c->listen)))
		return rc;
	return err_set(e, EADDRINUSE, "%s: listen has that port", address);
}

static int extender_check_page(const struct extender_config *c, struct err *e)
{
	char buf[ADDRESS_MAX];

	return *c->ui_address ? http_check_address(host_as_address(c->ui_address, buf, sizeof buf),
					HTTP_ADDRESS_HERE, e)
			      : 0;
}

/* With the files that it names. */
static int extender_check_kubeconfig(const struct extender_config *c, struct err *e)
{
	const struct api_options o = {.kubeconfig = c->kubeconfig, .context = c->context};

	if (!*c->kubeconfig) /* as a pod of the cluster, and that is not here */
		return 0;
	struct auth *a = auth_new(&o, e);
	auth_free(a);
	return a ? 0 : -e->code;
}

/* What a start would find beyond what the file says by itself. */
void extender_check_here(const struct extender *x, struct mistakes *all)
{
	const struct extender_config *c = &x->config;
	const struct {
		const char *key;
		int (*check)(const struct extender_config *c, struct err *e);
	} checks[] = {
		{"listen", extender_check_listen},
		{"metrics.address", extender_check_metrics},
		{"ui.address", extender_check_page},
		{"kubeconfig", extender_check_kubeconfig},
	};
	struct err e;

	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
		if (checks[i].check(c, &e)) {
			(void)err_add(&e, 0, "%s", checks[i].key);
			mistakes_add_key(all, checks[i].key, &e);
		}
	tls_check(x, all);
}
