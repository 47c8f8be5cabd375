#include <codec/config_yaml.h>

#include <codec/flat_yaml.h>
#include <numafit/text.h>

#include <errno.h>

static int take(void *ctx, const char *path, const char *value, unsigned line, struct err *e)
{
	struct settings *s = ctx;

	/* a map or list whose lines are all commented out looks like a key without value */
	if (text_equal(value, "") && settings_is_group(path))
		return 0;
	if (!value)
		return err_set(e, EINVAL,
			"line %u: %.64s: an empty map or list does not belong here", line, path);
	int rc = settings_set(s, path, value, e);

	return rc < 0 ? err_add(e, rc, "line %u", line) : 0;
}

int config_yaml_read(struct settings *s, const char *text, size_t len, struct err *e)
{
	struct settings read = *s;
	int rc = flat_yaml_read(text, len, take, &read, e);

	if (!rc)
		*s = read;
	return rc;
}
