/* Feed every file of a fuzzer's corpus to it once, without libFuzzer: what was found stays fixed,
 * and under the sanitizers the parsers see their corpus in every test run.
 * usage: replay/NAME CORPUS     (a folder that corpus_pack has unpacked) */
#include <dirent.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 64 << 20 };

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
	printf("%s 1 - %u inputs of %s\n1..1\n", fed ? "ok" : "not ok", fed, argv[1]);
	return !fed;
}
