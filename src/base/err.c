#include <numafit/err.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, int code, const char *fmt, ...)
{
	if (e) {
		va_list ap;

		e->code = code;
		va_start(ap, fmt);
		(void)vsnprintf(e->text, sizeof e->text, fmt, ap);
		va_end(ap);
	}
	return -code;
}

int err_add(struct err *e, int rc, const char *fmt, ...)
{
	if (e) {
		char inner[sizeof e->text];
		va_list ap;

		memcpy(inner, e->text, sizeof inner);
		va_start(ap, fmt);
		int len = vsnprintf(e->text, sizeof e->text, fmt, ap);
		va_end(ap);
		size_t left =
			len >= 0 && (size_t)len < sizeof e->text ? sizeof e->text - (size_t)len : 0;
		if (left && snprintf(e->text + len, left, ": %s", inner) < 0)
			e->text[len] = '\0';
	}
	return rc;
}
