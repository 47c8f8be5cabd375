#include <stddef.h>
#include <stdint.h>

#include <apiserver/kubeconfig_yaml.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct kubeconfig *k)
{
	if (!k->server || !*k->server)
		abort();
	if ((k->ca && k->ca_file) || (k->cert && k->cert_file) || (k->key && k->key_file) ||
		(k->token && k->token_file))
		abort();
	if ((k->cert || k->cert_file) != (k->key || k->key_file))
		abort();
	if (k->insecure && (k->ca || k->ca_file))
		abort();
}

/* The first line may name a context: "# name". */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = {0};
	struct kubeconfig k;
	char context[16] = "";
	const uint8_t *end = memchr(data, '\n', size);
	size_t len = end ? (size_t)(end - data) : 0;

	if (len > 2 && len < sizeof context && data[0] == '#')
		memcpy(context, data + 2, len - 2);
	int rc = kubeconfig_yaml_read(&k, (const char *)data, size, context, &e);
	if (rc) {
		if (!e.code || !e.text[0])
			abort();
		return 0;
	}
	check(&k);
	kubeconfig_fini(&k);
	return 0;
}
