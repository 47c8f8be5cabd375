#include <numafit-cli/status_source.h>

#include <codec/config_yaml.h>
#include <codec/flat_yaml.h>
#include <errno.h>
#include <io/file.h>
#include <numafit/mem.h>
#include <numafit/text.h>

static int read_status_config(const char *path, struct settings *s, struct err *e)
{
	struct config_sections sections;
	size_t len;
	auto_free char *text = NULL;
	int rc = file_read_waiting(path, FLAT_YAML_BYTES_MAX, &text, &len, e);

	if (rc)
		return rc;
	/* no section has a runDirectory: it is the same for every node */
	rc = config_yaml_read(s, text, len, NULL, &sections, e);
	return rc ? err_add(e, rc, "%s", path) : 0;
}

static int socket_path(const struct status_source *s, char *buf, struct err *e)
{
	auto_free struct settings *settings = xcalloc(1, sizeof *settings);
	struct text t;

	settings_init(settings);
	int rc = s->config ? read_status_config(s->config, settings, e) : 0;
	text_init(&t, buf, STATUS_PATH_MAX);
	if (s->socket)
		text_add(&t, "%s", s->socket);
	else
		text_add(&t, "%s/numafitd.sock",
			s->directory ? s->directory : settings->run_directory);
	return t.cut ? err_set(e, ENAMETOOLONG, "the socket's path is longer than %d bytes",
			       STATUS_PATH_MAX - 1)
		     : rc;
}

int status_source_path(const struct call *c, const struct status_source *s, char *buf)
{
	struct err e = {0};

	if ((s->socket != NULL) + (s->config != NULL) + (s->directory != NULL) > 1)
		return call_misused(c, "--run-directory, --socket and --config exclude each other");
	return socket_path(s, buf, &e) ? status_source_fail(c, &e) : -1;
}

int status_source_fail(const struct call *c, const struct err *e)
{
	(void)call_fail(c, EXIT_CANNOT, e);
	if (e->code != ENOENT && e->code != ECONNREFUSED && e->code != EACCES)
		return EXIT_CANNOT;
	(void)fputs(
		"Check that numafitd runs on this node, that you may open its socket (root may), and "
		"that\nits runDirectory is the one above (--run-directory DIR, --socket PATH or "
		"--config FILE\nname another). ",
		stderr);
	advise_kubectl(stderr, "status");
	return EXIT_CANNOT;
}
