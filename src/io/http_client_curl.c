#include <io/http_client_curl.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum { VERSION_MIN = 0x075700 }; /* 7.87: CURLOPT_QUICK_EXIT */
#define VERSION_MIN_TEXT "7.87"

static int find_libcurl_functions(void *library, struct libcurl *curl, struct err *e)
{
	static const char *const names[] = {
#define NAME(name) "curl_" #name,
		LIBCURL_FUNCTIONS(NAME)
#undef NAME
	};
	enum { NR = sizeof names / sizeof *names };
	void *found[NR];

	_Static_assert(sizeof found == sizeof *curl, "one pointer for each name");
	for (unsigned i = 0; i < NR; i++) {
		found[i] = dlsym(library, names[i]);
		if (!found[i])
			return err_set(e, ENOSYS,
				"libcurl lacks %s(): " VERSION_MIN_TEXT " or newer is needed",
				names[i]);
	}
	memcpy(curl, found, sizeof found); /* C has no cast from an object to a function */
	return 0;
}

static int check_libcurl_version(const struct libcurl *curl, struct err *e)
{
	const curl_version_info_data *v = curl->version_info(CURLVERSION_NOW);

	if (v->version_num < VERSION_MIN)
		return err_set(e, ENOSYS, "libcurl is %s: " VERSION_MIN_TEXT " or newer is needed",
			v->version);
	if (!(v->features & CURL_VERSION_SSL))
		return err_set(e, ENOSYS, "libcurl %s was built without TLS", v->version);
	/* without it a name server that is away would stop the loop */
	if (!(v->features & CURL_VERSION_ASYNCHDNS))
		return err_set(e, ENOSYS,
			"libcurl %s was built without the threaded resolver or c-ares", v->version);
	return 0;
}

const struct libcurl *libcurl_load(struct err *e)
{
	static struct libcurl curl;
	static bool loaded;

	if (loaded)
		return &curl;
	void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		(void)err_set(e, ENOSYS,
			"%s: install libcurl (Debian and Ubuntu: libcurl4, others: libcurl)",
			dlerror());
		return NULL;
	}
	struct libcurl found;
	int rc = find_libcurl_functions(library, &found, e);
	if (!rc)
		rc = check_libcurl_version(&found, e);
	if (!rc && found.global_init(CURL_GLOBAL_DEFAULT))
		rc = err_set(e, ENOSYS, "libcurl cannot be used: it does not start");
	if (rc) {
		(void)dlclose(library);
		return NULL;
	}
	curl = found;
	loaded = true;
	return &curl;
}

enum { TOO_LARGE = 100 }; /* CURLE_TOO_LARGE since 8.6, which curl.h may be older than */

/* One code of libcurl's can mean many things: then its words decide. The first row that fits. */
static const struct {
	CURLcode code;
	const char *says; /* NULL: anything */
	int error;
} refusals[] = {
	{CURLE_URL_MALFORMAT, NULL, EINVAL},
	{CURLE_LOGIN_DENIED, NULL, EINVAL}, /* credentials in the URL */
	{CURLE_COULDNT_RESOLVE_HOST, NULL, EHOSTUNREACH},
	{CURLE_COULDNT_RESOLVE_PROXY, NULL, EHOSTUNREACH},
	{CURLE_COULDNT_CONNECT, NULL, EHOSTUNREACH}, {CURLE_PROXY, NULL, EHOSTUNREACH},
	{CURLE_RECV_ERROR, "CONNECT", EHOSTUNREACH}, {CURLE_OPERATION_TIMEDOUT, NULL, ETIMEDOUT},
	{CURLE_PEER_FAILED_VERIFICATION, NULL, EACCES}, {CURLE_SSL_CERTPROBLEM, NULL, EACCES},
	{CURLE_SSL_CACERT_BADFILE, NULL, EACCES},
	/* TLS: the other side says why it will not, or it just goes away */
	{CURLE_SSL_CONNECT_ERROR, " alert ", EACCES}, {CURLE_RECV_ERROR, " alert ", EACCES},
	{CURLE_SEND_ERROR, " alert ", EACCES},
	{CURLE_SSL_CONNECT_ERROR, "SSL_ERROR_SYSCALL", ECONNRESET},
	{CURLE_SSL_CONNECT_ERROR, "reset by peer", ECONNRESET},
	{CURLE_SSL_CONNECT_ERROR, "unexpected eof", ECONNRESET},
	{CURLE_SSL_CONNECT_ERROR, NULL, EPROTO}, {CURLE_RECV_ERROR, "chunk", EPROTO},
	{CURLE_RECV_ERROR, NULL, ECONNRESET}, {CURLE_SEND_ERROR, NULL, ECONNRESET},
	{CURLE_GOT_NOTHING, NULL, ECONNRESET}, {CURLE_PARTIAL_FILE, NULL, ECONNRESET},
	{(CURLcode)TOO_LARGE, NULL, EMSGSIZE},
	{CURLE_OUT_OF_MEMORY, NULL, EMSGSIZE}, /* what it called its limits before 8.6 */
};

int libcurl_refusal(const struct libcurl *curl, CURLcode code, const char *detail, long os_errno,
	const char *peer, struct err *e)
{
	int error = EPROTO;

	if (code == CURLE_COULDNT_CONNECT && os_errno)
		detail = strerror((int)os_errno);
	if (!*detail)
		detail = curl->easy_strerror(code);
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		if (refusals[i].code != code ||
			(refusals[i].says && !strstr(detail, refusals[i].says)))
			continue;
		error = refusals[i].error;
		break;
	}
	if (code == CURLE_COULDNT_CONNECT && (os_errno == ECONNREFUSED || os_errno == ETIMEDOUT))
		error = (int)os_errno;
	return err_set(e, error, "%s: %s", peer, detail);
}
