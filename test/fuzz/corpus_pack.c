/* The corpus of a fuzzer as one text that shows what changes, and back.
 * usage: corpus_pack unpack FILE DIR     DIR is emptied, and gets a file for each input of FILE
 *        corpus_pack pack DIR FILE       the other way, in the order of names
 * An input is a line "input NAME", and lines that begin with "|": the bytes after it and a newline,
 * or, where it ends with a backslash, without a newline. \\ is a backslash, \xHH any byte. */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, LINE_BYTES = 96, HEX = 16 };

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, "\n");
	exit(1);
}

static FILE *must_open(const char *path, const char *mode)
{
	FILE *f = fopen(path, mode);

	if (!f)
		die("%s: %s", path, strerror(errno));
	return f;
}

static void must_close(FILE *f, const char *path)
{
	if (ferror(f) || fclose(f))
		die("%s: %s", path, strerror(errno));
}

static FILE *open_in(const char *dir, const char *name, const char *mode)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	return must_open(path, mode);
}

static int is_input(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static void empty(const char *dir)
{
	struct dirent **list = NULL;
	char path[PATH_BYTES];

	if (mkdir(dir, 0777) && errno != EEXIST)
		die("%s: %s", dir, strerror(errno));
	int nr = scandir(dir, &list, is_input, alphasort);

	for (int i = 0; i < nr; i++) {
		(void)snprintf(path, sizeof path, "%s/%s", dir, list[i]->d_name);
		(void)unlink(path);
		free(list[i]);
	}
	free(list);
}

/* One line without its "|" and newline. */
static void unpack_line(FILE *to, const char *at, const char *file, unsigned line)
{
	for (; *at; at++) {
		char digits[3] = {0}, *end;

		if (*at != '\\') {
			(void)putc(*at, to);
			continue;
		}
		if (!*++at)
			return; /* without a newline */
		if (*at == '\\') {
			(void)putc('\\', to);
			continue;
		}
		(void)strncpy(digits, at + (*at == 'x'), 2);
		unsigned long byte = strtoul(digits, &end, HEX);
		if (*at != 'x' || end != digits + 2)
			die("%s:%u: \\\\, \\xHH or a backslash at the end is expected", file, line);
		(void)putc((int)byte, to);
		at += 2;
	}
	(void)putc('\n', to);
}

static void unpack(const char *file, const char *dir)
{
	static const char head[] = "input ";
	FILE *from = must_open(file, "r"), *to = NULL;
	char *text = NULL;
	size_t cap = 0;
	ssize_t len;

	empty(dir);
	for (unsigned line = 1; (len = getline(&text, &cap, from)) > 0; line++) {
		if (text[len - 1] == '\n')
			text[len - 1] = '\0';
		if (strncmp(text, head, sizeof head - 1) == 0 && !strchr(text, '/')) {
			if (to)
				must_close(to, dir);
			to = open_in(dir, text + sizeof head - 1, "wbx");
		} else if (to && *text == '|') {
			unpack_line(to, text + 1, file, line);
		} else {
			die("%s:%u: \"input NAME\" or \"|...\" is expected", file, line);
		}
	}
	if (to)
		must_close(to, dir);
	free(text);
	must_close(from, file);
}

static void pack_input(FILE *to, FILE *from)
{
	int c, col = 0;

	while ((c = getc(from)) != EOF) {
		if (!col++)
			(void)putc('|', to);
		if (c == '\n')
			(void)putc('\n', to);
		else if (c == '\\')
			(void)fputs("\\\\", to);
		else if (c < ' ' || c > '~')
			(void)fprintf(to, "\\x%02x", (unsigned)c);
		else
			(void)putc(c, to);
		if (c == '\n')
			col = 0;
		else if (col == LINE_BYTES) {
			(void)fputs("\\\n", to);
			col = 0;
		}
	}
	if (col)
		(void)fputs("\\\n", to);
}

static void pack(const char *dir, const char *file)
{
	struct dirent **list = NULL;
	int nr = scandir(dir, &list, is_input, alphasort);

	if (nr < 0)
		die("%s: %s", dir, strerror(errno));
	FILE *to = must_open(file, "w");

	for (int i = 0; i < nr; i++) {
		FILE *from = open_in(dir, list[i]->d_name, "rb");

		(void)fprintf(to, "input %s\n", list[i]->d_name);
		pack_input(to, from);
		must_close(from, list[i]->d_name);
		free(list[i]);
	}
	free(list);
	must_close(to, file);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "unpack") == 0)
		unpack(argv[2], argv[3]);
	else if (argc == 4 && strcmp(argv[1], "pack") == 0)
		pack(argv[2], argv[3]);
	else
		die("usage: corpus_pack unpack FILE DIR | pack DIR FILE");
	return 0;
}
