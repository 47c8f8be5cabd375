#include <ui/guard.h>

#include <numafit/host_kind.h>
#include <numafit/text.h>

/* RFC 9110, 15 */
enum { UI_FORBIDDEN = 403, UI_NOT_ALLOWED = 405 };

const char ui_headers[] =
	"Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
	"img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
	"frame-ancestors 'none'\n"
	"X-Content-Type-Options: nosniff\n"
	"Referrer-Policy: no-referrer\n"
	"Cross-Origin-Resource-Policy: same-origin\n"
	"Cross-Origin-Opener-Policy: same-origin\n"
	"Cache-Control: no-store";

static bool reads_only(const struct ui_visit *v)
{
	return text_equal(v->method, "GET") || text_equal(v->method, "HEAD");
}

static bool host_is_ours(const struct ui_visit *v)
{
	enum host_kind kind = host_kind_of(v->host);

	return kind == HOST_LOOPBACK || (v->any_address && kind == HOST_ADDRESS);
}

/* Programs that are no browsers send no such header; "none" is a reader who typed the address. */
static bool site_is_ours(const struct ui_visit *v)
{
	return !text_behind(v->path, "/api/") || !*v->site || text_equal(v->site, "same-origin") ||
	       text_equal(v->site, "none");
}

static const struct ui_rule {
	bool (*holds)(const struct ui_visit *v);
	int status;
	const char *why;
} ui_rules[] = {
	{reads_only, UI_NOT_ALLOWED, "only GET and HEAD\n"},
	{host_is_ours, UI_FORBIDDEN,
		"this page is for http://localhost/ and loopback addresses, with any port\n"},
	{site_is_ours, UI_FORBIDDEN, "another site's page may not read this\n"},
};

int ui_guard(const struct ui_visit *v, const char **why)
{
	for (size_t i = 0; i < sizeof ui_rules / sizeof *ui_rules; i++)
		if (!ui_rules[i].holds(v)) {
			*why = ui_rules[i].why;
			return ui_rules[i].status;
		}
	return 0;
}
