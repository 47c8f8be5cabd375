/* The names of a ResourceClaim: which ones Kubernetes allows. */
#include <numafit/resource_claim.h>

#include <errno.h>
#include <string.h>

enum { LABEL_MAX = 63, SUBDOMAIN_MAX = 253 };

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* A label (DNS-1123), or, with dots, a subdomain. */
static bool is_dns_name(const char *s, size_t len, size_t max, bool dots)
{
	if (len == 0 || len > max)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool inside = i > 0 && i < len - 1 && s[i - 1] != '.' && s[i + 1] != '.';

		if (!is_alphanumeric(s[i]) && !(inside && (s[i] == '-' || (dots && s[i] == '.'))))
			return false;
	}
	return true;
}

static bool is_label(const char *s)
{
	return is_dns_name(s, strlen(s), LABEL_MAX, false);
}

bool claim_uid_is_valid(const char *uid, size_t len)
{
	return is_dns_name(uid, len, CLAIM_UID_MAX - 1, true);
}

/* Of a firstAvailable list it has a '/' in it. */
bool claim_request_is_valid(const char *request)
{
	const size_t len = strcspn(request, "/");

	return is_dns_name(request, len, LABEL_MAX, false) &&
	       (!request[len] || is_label(request + len + 1));
}

int claim_check_ref(const char *ns, const char *uid, const char *name, struct err *e)
{
	if (!claim_uid_is_valid(uid, strlen(uid)))
		return err_set(e, EINVAL, "\"%.80s\" is no uid of a claim", uid);
	if (!is_label(ns))
		return err_set(e, EINVAL, "\"%.80s\" is no namespace", ns);
	if (!is_dns_name(name, strlen(name), SUBDOMAIN_MAX, true))
		return err_set(e, EINVAL, "\"%.80s\" is no name of a claim", name);
	return 0;
}

int claim_check_names(const struct resource_claim *c, struct err *e)
{
	int rc = claim_check_ref(c->ns, c->uid, c->name, e);

	if (rc)
		return rc;
	if (c->pod_claim_name && !is_label(c->pod_claim_name))
		return err_set(e, EINVAL, "\"%.80s\" is no name that a pod has for a claim",
			c->pod_claim_name);
	for (size_t i = 0; i < c->nr; i++)
		if (!claim_request_is_valid(c->share[i].request))
			return err_set(e, EINVAL, "\"%.80s\" is no name of a request",
				c->share[i].request);
	return 0;
}
