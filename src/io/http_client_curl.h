#ifndef NUMAFIT_IO_HTTP_CLIENT_CURL_H
#define NUMAFIT_IO_HTTP_CLIENT_CURL_H

#include <numafit/err.h>

#define CURL_DISABLE_TYPECHECK /* its macros would replace the members below */
#include <curl/curl.h>

/* What we call of libcurl, without the "curl_". */
#define LIBCURL_FUNCTIONS(X)                                                                       \
	X(global_init)                                                                             \
	X(version_info)                                                                            \
	X(easy_init)                                                                               \
	X(easy_duphandle)                                                                          \
	X(easy_setopt)                                                                             \
	X(easy_getinfo)                                                                            \
	X(easy_strerror)                                                                           \
	X(easy_cleanup)                                                                            \
	X(multi_init)                                                                              \
	X(multi_setopt)                                                                            \
	X(multi_add_handle)                                                                        \
	X(multi_remove_handle)                                                                     \
	X(multi_assign)                                                                            \
	X(multi_socket_action)                                                                     \
	X(multi_info_read)                                                                         \
	X(multi_cleanup)                                                                           \
	X(slist_append)                                                                            \
	X(slist_free_all)                                                                          \
	X(url)                                                                                     \
	X(url_strerror)                                                                            \
	X(url_set)                                                                                 \
	X(url_get)                                                                                 \
	X(url_cleanup)                                                                             \
	X(free)

struct libcurl {
#define LIBCURL_MEMBER(name) __typeof__(curl_##name) *name;
	LIBCURL_FUNCTIONS(LIBCURL_MEMBER)
#undef LIBCURL_MEMBER
};

/* The library, loaded at the first call and for good. NULL with text (ENOSYS): it is not there, is
 * too old, or lacks TLS or a resolver that does not block. From the loop's thread only. */
const struct libcurl *libcurl_load(struct err *e);

/* What became of a call that did not end well, in http_events' codes: code is libcurl's, detail
 * its words (""), os_errno the system's (0), peer the other side. Returns the code. */
int libcurl_refusal(const struct libcurl *curl, CURLcode code, const char *detail, long os_errno,
	const char *peer, struct err *e);

#endif
