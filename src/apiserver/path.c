#include <apiserver/path.h>

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

void path_add_escaped(struct text *t, const char *text)
{
	for (; *text; text++)
		text_add(t, is_unreserved(*text) ? "%c" : "%%%02X", (unsigned char)*text);
}
