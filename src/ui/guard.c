/* Who may read a page, and who may have an extender act: a table of rules each. */
#include <ui/guard.h>

#include <numafit/host_kind.h>
#include <numafit/text.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* RFC 9110, 15 */
enum { UI_FORBIDDEN = 403, UI_NOT_ALLOWED = 405, UI_TYPE = 415 };

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

static bool posts(const struct ui_visit *v)
{
	return text_equal(v->method, "POST");
}

static bool host_is_ours(const struct ui_visit *v)
{
	enum host_kind kind = host_kind_of(v->host);

	return v->hosts == UI_HOSTS_ANY || kind == HOST_LOOPBACK ||
	       (v->hosts == UI_HOSTS_ADDRESSES && kind == HOST_ADDRESS);
}

/* Programs that are no browsers send no such header; "none" is a reader who typed the address. */
static bool site_is_ours(const struct ui_visit *v)
{
	return !*v->site || text_equal(v->site, "same-origin") || text_equal(v->site, "none");
}

/* A link from another site may lead to the page, but not to its data. */
static bool site_may_read(const struct ui_visit *v)
{
	return !text_behind(v->path, "/api/") || site_is_ours(v);
}

/* RFC 9110, 8.3.1: in any case of letters, with parameters or without */
static bool type_is_json(const struct ui_visit *v)
{
	static const char json[] = "application/json";
	size_t len = sizeof json - 1;

	return strncasecmp(v->type, json, len) == 0 && strchr("; \t", v->type[len]);
}

struct ui_rule {
	bool (*holds)(const struct ui_visit *v);
	int status;
	const char *why;
};
static const char not_here[] =
	"this is for http://localhost/ and loopback addresses, with any port\n";
static const struct ui_rule ui_rules[] = {
	{reads_only, UI_NOT_ALLOWED, "only GET and HEAD\n"},
	{host_is_ours, UI_FORBIDDEN, not_here},
	{site_may_read, UI_FORBIDDEN, "another site's page may not read this\n"},
	{NULL, 0, NULL},
};
static const struct ui_rule call_rules[] = {
	{posts, UI_NOT_ALLOWED, "POST is expected\n"},
	{host_is_ours, UI_FORBIDDEN, not_here},
	{site_is_ours, UI_FORBIDDEN, "another site's page may not call this\n"},
	{type_is_json, UI_TYPE, "Content-Type: application/json is expected\n"},
	{NULL, 0, NULL},
};

static int ui_judge(const struct ui_rule *rule, const struct ui_visit *v, const char **why)
{
	for (; rule->holds; rule++)
		if (!rule->holds(v)) {
			*why = rule->why;
			return rule->status;
		}
	return 0;
}

int ui_guard(const struct ui_visit *v, const char **why)
{
	return ui_judge(ui_rules, v, why);
}

int ui_guard_call(const struct ui_visit *v, const char **why)
{
	return ui_judge(call_rules, v, why);
}
