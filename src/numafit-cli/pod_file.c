#include <numafit-cli/pod_file.h>

#include <numafit-cli/object_yaml.h>
#include <errno.h>
#include <io/file.h>
#include <numafit/text.h>

enum { POD_FILE_BYTES_MAX = 4 << 20 };

int pod_file_read(const struct call *c, const char *path, struct pod_file *p)
{
	auto_free char *text = NULL, *json = NULL;
	struct workload *w = &p->workload;
	struct err e;
	size_t len;

	if (file_read_waiting(text_equal(path, "-") ? "/dev/stdin" : path, OBJECT_YAML_BYTES_MAX,
		    &text, &len, &e))
		return call_fail(c, EXIT_CANNOT, &e);
	bool is_json = text[strspn(text, " \t\r\n")] == '{';
	int rc = is_json ? 0 : object_yaml_to_json(text, len, &json, &e);
	arena_init(&p->arena, POD_FILE_BYTES_MAX);
	if (!rc)
		rc = workload_json_read(
			is_json ? text : json, is_json ? len : strlen(json), &p->arena, w, &e);
	if (rc) {
		arena_fini(&p->arena);
		(void)err_add(&e, rc, "%s", path);
		return call_fail(c, EXIT_USAGE, &e);
	}
	if (w->nr > 1)
		(void)fprintf(stderr,
			"numafit %s: note: %s has %u objects that make pods: this is about the "
			"first one, %s %s\n",
			c->command->name, path, w->nr, w->kind, w->name);
	if (w->device)
		(void)fprintf(stderr,
			"numafit %s: note: devices are not looked at (%s): this is about CPUs and "
			"memory\n",
			c->command->name, w->device);
	w->pod.sandbox_id = w->pod.uid = w->pod.name = w->name;
	return -1;
}

void pod_file_fini(struct pod_file *p)
{
	workload_fini(&p->workload);
	arena_fini(&p->arena);
}
