#include <numafit-cli/config_file.h>

#include <codec/flat_yaml.h>
#include <io/file.h>

char *config_file_text(const char *path, size_t *len, struct err *e)
{
	char *text = NULL;

	(void)file_read_waiting(path, FLAT_YAML_BYTES_MAX, &text, len, e);
	return text;
}
