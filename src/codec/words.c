#include <codec/words.h>

#include <errno.h>
#include <string.h>

/* A reservation of each kind on each node is the longest. */
enum { SETTING_TEXT_MAX = 16 << 10 };

const char *policy_word(unsigned policy)
{
	return topology_policy_name((enum topology_policy)policy);
}

const char *container_kind_word(unsigned kind)
{
	return container_kind_name((enum container_kind)kind);
}

const char *qos_word(unsigned qos)
{
	return qos_name((enum qos)qos);
}

const char *source_word(unsigned source)
{
	return decision_source_name((enum decision_source)source);
}

const char *op_word(unsigned op)
{
	return record_op_name((enum record_op)op);
}

int words_of_settings(
	const struct settings *s, struct arena *a, struct word_list *out, struct err *e)
{
	char value[SETTING_TEXT_MAX];
	struct setting_doc doc;
	struct key_value *list;
	unsigned nr = 0;

	while (settings_doc(nr, &doc))
		nr++;
	list = arena_array(a, nr, sizeof *list);
	for (unsigned i = 0;
		list && i < nr && settings_doc(i, &doc) && settings_get(s, i, value, sizeof value);
		i++) {
		list[i].key = doc.key;
		list[i].value = arena_strndup(a, value, strlen(value));
		if (!list[i].value)
			list = NULL;
	}
	if (!list)
		return err_set(e, ENOMEM, "the settings do not fit into %zu bytes", a->limit_bytes);
	*out = (struct word_list){list, nr};
	return 0;
}
