#include <numafit/steps.h>

#include <stdarg.h>
#include <stdio.h>

enum { STEP_TEXT_MAX = 512 };

void steps_add(const struct steps *s, const char *fmt, ...)
{
	char line[STEP_TEXT_MAX];
	va_list args;

	if (!s)
		return;
	va_start(args, fmt);
	(void)vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	s->line(s->ctx, line);
}
