#include <io/digest.h>

#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <string.h>

int digest(const void *data, size_t len, unsigned char out[DIGEST_BYTES])
{
	memset(out, 0, DIGEST_BYTES);
	return gnutls_hash_fast(GNUTLS_DIG_SHA256, data, len, out) ? -EIO : 0;
}

const char *digest_text(const void *data, size_t len, char text[DIGEST_TEXT_MAX])
{
	unsigned char all[DIGEST_BYTES];

	text[0] = '\0';
	if (digest(data, len, all))
		return text;
	for (unsigned i = 0; i < DIGEST_SHOWN / 2; i++)
		(void)snprintf(text + 2 * i, DIGEST_TEXT_MAX - 2 * i, "%02x", all[i]);
	return text;
}
