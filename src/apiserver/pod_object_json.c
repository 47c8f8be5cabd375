#include <apiserver/pod_object_json.h>

#include <codec/pod_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/text.h>

/* pkg/kubelet/types/pod_update.go, ConfigMirrorAnnotationKey: its value is the static pod's uid. */
static const char mirror[] = "kubernetes.io/config.mirror";

static void take_static_uid(struct pod_spec *s)
{
	for (size_t i = 0; i < s->nr_annotations; i++)
		if (text_equal(s->annotations[i].key, mirror) && *s->annotations[i].value) {
			s->uid = s->annotations[i].value;
			s->owner = POD_OWNER_NODE;
		}
}

int pod_object_json_read(const json_t *pod, struct arena *a, struct known_pod *out, struct err *e)
{
	const json_t *metadata = json_object_get(pod, "metadata");
	const char *ns = json_string_value(json_object_get(metadata, "namespace"));
	const char *name = json_string_value(json_object_get(metadata, "name"));
	struct pod_spec s;
	int rc = pod_json_read(pod, a, &s, e);

	if (!rc)
		take_static_uid(&s);
	if (!rc && !*s.uid)
		rc = err_set(e, EINVAL, "no v1.Pod with a uid");
	if (!rc)
		rc = pod_spec_known(&s, POD_FROM_API_SERVER, a, out, e);
	return rc ? err_add(e, rc, "pod %.64s/%.64s", ns ? ns : "", name ? name : "") : 0;
}
