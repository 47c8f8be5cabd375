#include <numafit-extender/binding_json.h>

#include <jansson.h>

char *binding_json_write(const struct binding *b)
{
	json_t *annotations = json_object();
	int bad = 0;

	for (size_t i = 0; i < b->nr_annotations; i++)
		bad |= json_object_set_new(
			annotations, b->annotation[i].key, json_string(b->annotation[i].value));
	json_t *root = json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:o*}, s:{s:s, s:s, s:s}}",
		"apiVersion", "v1", "kind", "Binding", "metadata", "name", b->name, "namespace",
		b->ns, "uid", b->uid, "annotations", b->nr_annotations ? annotations : NULL,
		"target", "apiVersion", "v1", "kind", "Node", "name", b->node);
	char *text = bad || !root ? NULL : json_dumps(root, JSON_COMPACT);

	if (!b->nr_annotations)
		json_decref(annotations);
	json_decref(root);
	return text;
}
