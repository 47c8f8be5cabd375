#include <io/http_client_curl.h>

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* What is found instead of libcurl. */
static const char *instead;

/* The loader's, for the files under test. */
__attribute__((visibility("default"))) void *dlopen(const char *name, int flags)
{
	void *(*real)(const char *, int);
	void *found = dlsym(RTLD_NEXT, "dlopen");

	memcpy(&real, &found, sizeof real);
	return real(instead ? instead : name, flags);
}

static void a_library_that_is_not_libcurl_is_an_error(void **state)
{
	static const struct {
		const char *library, *says;
	} cases[] = {
		{"libnone.so.4", "libnone.so.4"},
		{"libnone.so.4", "install libcurl (Debian and Ubuntu: libcurl4"},
		{"libm.so.6", "libcurl lacks curl_global_init()"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct err e = {0};

		instead = cases[i].library;
		assert_null(libcurl_load(&e));
		assert_int_equal(e.code, ENOSYS);
		if (!strstr(e.text, cases[i].says))
			fail_msg("%s", e.text);
	}
	instead = NULL;
}

static void libcurl_is_loaded_once(void **state)
{
	struct err e = {0};
	const struct libcurl *curl = libcurl_load(&e);

	(void)state;
	if (!curl)
		fail_msg("%s", e.text);
	instead = "libnone.so.4";
	assert_ptr_equal(libcurl_load(&e), curl);
}

static void the_error_of_libcurl_is_taken_from_code_detail_and_errno(void **state)
{
	static const struct {
		CURLcode code;
		const char *detail;
		long os_errno;
		int error;
		const char *text;
	} cases[] = {
		{CURLE_COULDNT_CONNECT, "x", ECONNREFUSED, ECONNREFUSED, "p: Connection refused"},
		{CURLE_COULDNT_CONNECT, "x", ETIMEDOUT, ETIMEDOUT, "p: Connection timed out"},
		{CURLE_COULDNT_CONNECT, "x", ENETUNREACH, EHOSTUNREACH,
			"p: Network is unreachable"},
		{CURLE_COULDNT_CONNECT, "x", 0, EHOSTUNREACH, "p: x"},
		{CURLE_RECV_ERROR, "tlsv13 alert certificate required", 0, EACCES,
			"p: tlsv13 alert certificate required"},
		{CURLE_RECV_ERROR, "Connection reset by peer", 0, ECONNRESET,
			"p: Connection reset by peer"},
		{CURLE_SSL_CONNECT_ERROR, "unexpected eof while reading", 0, ECONNRESET,
			"p: unexpected eof while reading"},
		{CURLE_SSL_CONNECT_ERROR, "wrong version number", 0, EPROTO,
			"p: wrong version number"},
		{(CURLcode)100, "x", 0, EMSGSIZE, "p: x"}, /* CURLE_TOO_LARGE */
		{CURLE_WEIRD_SERVER_REPLY, "", 0, EPROTO, "p: Weird server reply"},
	};
	const struct libcurl *curl = libcurl_load(NULL);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct err e = {0};

		assert_int_equal(libcurl_refusal(curl, cases[i].code, cases[i].detail,
					 cases[i].os_errno, "p", &e),
			-cases[i].error);
		assert_string_equal(e.text, cases[i].text);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_library_that_is_not_libcurl_is_an_error),
		cmocka_unit_test(libcurl_is_loaded_once),
		cmocka_unit_test(the_error_of_libcurl_is_taken_from_code_detail_and_errno),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
