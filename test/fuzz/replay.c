/* Feed every file of a fuzzer's corpus to it once, without libFuzzer: what was found stays fixed,
 * and under the sanitizers the parsers see their corpus in every test run. Then feed texts whose
 * reading costs the square of their length where a parser or a library has no limit: a parser that
 * takes CPU_SECONDS for all of them, or more stack than a thread has, is killed.
 * usage: replay/NAME CORPUS     (a folder that corpus_pack has unpacked) */
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 64 << 20, HOSTILE_BYTES = 256 << 10, CPU_SECONDS = 120 };

/* A text begins with `begin` and repeats `each`, with another number and `rest` behind it unless
 * rest is NULL. */
static const struct {
	const char *begin, *each, *rest;
} hostile[] = {
	{"", "[", NULL},
	{"a: ", "[", NULL},
	{"a: ", "[\n", NULL},
	{"", "{\"a\":", NULL},
	{"", "{a: ", NULL},
	{"", "- ", NULL},
	{"", "? ", NULL},
	{"a: [", "&a", " x,"},
	{"", "%TAG !a", "! x\n"},
	{"{", "\"a\":1,", NULL},
	{"{", "\"a", "\":1,"},
	{"", "a", ": 1\n"},
	{"{\"a\":\"", "\\u0041", NULL},
	{"{\"a\":", "1", NULL},
	{"{\"a\":1e", "9", NULL},
	{"", "{}\n", NULL},
	{"", "a=\"b\" ", NULL},
};

/* The file's bytes in a block of just their size, so that ASan sees a read beyond the end. */
static int feed(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f || fseek(f, 0, SEEK_END) || ftell(f) > INPUT_MAX) {
		perror(path);
		return -1;
	}
	size_t size = (size_t)ftell(f);
	uint8_t *data = malloc(size + !size);

	rewind(f);
	int rc = data && fread(data, 1, size, f) == size ? LLVMFuzzerTestOneInput(data, size) : -1;
	free(data);
	fclose(f);
	return rc;
}

static int feed_hostile(void)
{
	const struct rlimit limit = {CPU_SECONDS, CPU_SECONDS};
	uint8_t *data = malloc(HOSTILE_BYTES);
	char piece[32];
	int rc = data && setrlimit(RLIMIT_CPU, &limit) == 0 ? 0 : -1;

	for (size_t i = 0; !rc && i < sizeof hostile / sizeof *hostile; i++) {
		size_t len = strlen(hostile[i].begin);

		printf("# %zu: %s%s...\n", i, hostile[i].begin, hostile[i].each);
		fflush(stdout);
		memcpy(data, hostile[i].begin, len);
		for (unsigned nr = 0;; nr++) {
			const char *rest = hostile[i].rest;
			size_t more = (size_t)(rest ? snprintf(piece, sizeof piece, "%s%u%s",
							      hostile[i].each, nr, rest)
						    : snprintf(piece, sizeof piece, "%s",
							      hostile[i].each));

			if (len + more > HOSTILE_BYTES)
				break;
			memcpy(data + len, piece, more);
			len += more;
		}
		rc = LLVMFuzzerTestOneInput(data, len);
	}
	free(data);
	return rc;
}

int main(int argc, char **argv)
{
	char path[PATH_MAX];
	unsigned fed = 0;
	DIR *corpus = argc == 2 ? opendir(argv[1]) : NULL;

	if (!corpus) {
		perror(argc == 2 ? argv[1] : "usage: replay CORPUS");
		return 1;
	}
	for (struct dirent *entry; (entry = readdir(corpus));) {
		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
		printf("# %s\n", path);
		fflush(stdout); /* the last name is the one that it crashed on */
		if (feed(path))
			return 1;
		fed++;
	}
	closedir(corpus);
	printf("%s 1 - %u inputs of %s\n", fed ? "ok" : "not ok", fed, argv[1]);
	bool bounded = feed_hostile() == 0;

	printf("%s 2 - texts that nest, repeat and never end\n1..2\n", bounded ? "ok" : "not ok");
	return !fed || !bounded;
}
