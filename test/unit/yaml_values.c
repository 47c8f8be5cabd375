/* Every value of the YAML on standard input with its path, list elements by number: "0.metadata.name
 * numafitd", the first number being the document's. A key that is there twice is an error. For tests
 * that are scripts, which compile it themselves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

static yaml_document_t doc;

static const char *text(yaml_node_t *n)
{
	if (n->type != YAML_SCALAR_NODE)
		exit(3);
	return (const char *)n->data.scalar.value;
}

static void walk(int at, const char *path)
{
	yaml_node_t *n = yaml_document_get_node(&doc, at);
	char below[4096];

	if (n->type == YAML_SCALAR_NODE) {
		printf("%s ", path);
		for (const char *c = text(n); *c; c++)
			*c == '\n' ? (void)printf("\\n") : (void)putchar(*c);
		putchar('\n');
	}
	for (int i = 0; n->type == YAML_SEQUENCE_NODE && n->data.sequence.items.start + i < n->data.sequence.items.top; i++) {
		snprintf(below, sizeof below, "%s.%d", path, i);
		walk(n->data.sequence.items.start[i], below);
	}
	if (n->type != YAML_MAPPING_NODE)
		return;
	for (yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top; p++) {
		const char *key = text(yaml_document_get_node(&doc, p->key));

		for (yaml_node_pair_t *q = n->data.mapping.pairs.start; q < p; q++)
			if (!strcmp(key, text(yaml_document_get_node(&doc, q->key))))
				exit(fprintf(stderr, "%s.%s: twice\n", path, key) ? 4 : 4);
		snprintf(below, sizeof below, "%s.%s", path, key);
		walk(p->value, below);
	}
}

int main(void)
{
	yaml_parser_t parser;
	char path[16];

	yaml_parser_initialize(&parser);
	yaml_parser_set_input_file(&parser, stdin);
	for (int i = 0;; i++) {
		if (!yaml_parser_load(&parser, &doc))
			return fprintf(stderr, "line %zu: %s\n", parser.problem_mark.line + 1, parser.problem), 1;
		if (!yaml_document_get_root_node(&doc))
			return 0;
		snprintf(path, sizeof path, "%d", i);
		walk(1, path);
		yaml_document_delete(&doc);
	}
}
