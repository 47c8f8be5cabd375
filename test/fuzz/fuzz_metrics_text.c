#include <stddef.h>
#include <stdint.h>

#include <daemon-files/metrics_text.h>
#include <numafit/mem.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The value of a label, from its opening quote to behind the closing one; NULL: it does not end. */
static const char *behind_value(const char *at)
{
	for (at++; *at != '"'; at++) {
		if (*at == '\\')
			at++;
		if (!*at || *at == '\n')
			return NULL;
	}
	return at + 1;
}

/* Every line is a comment, or a name, whole labels, and a value. */
static void check_line(const char *at, const char *end)
{
	if (*at == '#')
		return;
	while (at < end && *at != ' ') {
		at = *at == '"' ? behind_value(at) : at + 1;
		if (!at)
			abort();
	}
	if (at >= end || at[1] < '0' || at[1] > '9')
		abort();
}

/* Whatever strings and numbers come from elsewhere, the text is one that Prometheus can read. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free struct topo *t = xcalloc(1, sizeof *t);
	auto_free struct settings *s = xcalloc(1, sizeof *s);
	auto_free struct snapshot *snapshot = xcalloc(1, sizeof *snapshot);
	auto_free char *version = xcalloc(size + 1, 1);
	size_t len;

	if (size)
		memcpy(version, data, size);
	topo_init(t, "fuzz");
	if (topo_add_node(t, size % NODES_MAX, NULL) < 0 ||
		topo_add_cpu(t, 0, 0, 0, 0, 0, NULL) < 0 || topo_seal(t, NULL) < 0)
		return 0;
	settings_init(s);
	snapshot->topo = t;
	memcpy(&snapshot->node[0], data, size < sizeof snapshot->node[0] ? size : 0);
	struct metrics m = {.version = version, .settings = s, .snapshot = snapshot};
	if (size >= sizeof m.measured)
		memcpy(&m.measured, data, sizeof m.measured);
	auto_free char *text = metrics_text(&m, &len);
	if (len != strlen(text) || !text_is_utf8(text, len) || text[len - 1] != '\n')
		abort();
	for (const char *at = text, *end; *at; at = end + 1) {
		end = strchr(at, '\n');
		check_line(at, end);
	}
	return 0;
}
