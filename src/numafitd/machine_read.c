/* The machine that the settings name, and what is said of corrections in it. */
#include "machine_read.h"

#include "daemon.h"

#include <host/discover.h>
#include <io/log.h>
#include <stdio.h>

int machine_read(struct daemon *d, struct topo *t, struct err *e)
{
	struct corrections found = {0};
	int rc = machine_load(d->settings.machine, t, corrections_add, &found, e);

	if (!rc && !corrections_equal(&found, &d->corrections)) {
		struct corrections before = d->corrections;

		d->corrections = found;
		found = before;
		rc = 1;
	}
	corrections_fini(&found);
	return rc;
}

void machine_log_corrections(const struct daemon *d)
{
	char text[CORRECTION_TEXT_MAX], quoted[2 * CORRECTION_TEXT_MAX];

	for (size_t i = 0; i < d->corrections.nr; i++) {
		const struct correction *c = &d->corrections.at[i];
		const char *why = log_text(quoted, sizeof quoted, correction_text(c, text));

		if (correction_is_doubt(c))
			log_line(LOG_WARN, "machine-doubtful",
				"kind=%s node=%u says=%s text=%s action=\"compare numafit topology "
				"with /sys/devices/system/node/node*/cpulist\"",
				correction_kind_words[c->kind], c->node,
				machine_source_words[c->source], why);
		else
			log_line(LOG_WARN, "machine-corrected",
				"kind=%s node=%u says=%s text=%s action=\"none is needed: numafitd "
				"goes by the kernel's files, as the kubelet does\"",
				correction_kind_words[c->kind], c->node,
				machine_source_words[c->source], why);
	}
}

void machine_print_corrections(const struct daemon *d)
{
	char text[CORRECTION_TEXT_MAX];

	for (size_t i = 0; i < d->corrections.nr; i++)
		(void)printf(
			"warning: machine: %s\n", correction_text(&d->corrections.at[i], text));
}
