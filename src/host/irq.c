#include <host/irq.h>

#include <host/cpumask.h>
#include <numafit/text.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NUMBER_MAX = 10, NIBBLE_BITS = 4, GROUP_NIBBLES = 8 };

bool irq_file(const char *number, char file[TUNABLE_FILE_MAX])
{
	const size_t len = strlen(number);

	if (!len || len > NUMBER_MAX || number[strspn(number, "0123456789")])
		return false;
	(void)snprintf(file, TUNABLE_FILE_MAX, TUNABLE_IRQS "/%s/smp_affinity_list", number);
	return true;
}

static void format_mask(const struct cpuset *cpus, struct text *to)
{
	static const char digits[] = "0123456789abcdef";

	for (unsigned i = CPUSET_BITS / NIBBLE_BITS; i-- > 0;) {
		const unsigned nibble =
			cpus->w[i * NIBBLE_BITS / 64] >> (i * NIBBLE_BITS % 64) & 0xf;

		if (!nibble && !to->len && i)
			continue;
		text_add(to, "%c%s", digits[nibble], i && i % GROUP_NIBBLES == 0 ? "," : "");
	}
}

static bool is_mask(const char *file)
{
	return text_equal(file, IRQ_DEFAULT);
}

int irq_parse(const char *file, const char *text, struct cpuset *out, struct err *e)
{
	int rc = is_mask(file) ? cpumask_parse(text, out, e)
			       : cpuset_parse(out, text, strlen(text), e);

	return rc ? err_add(e, rc, "/%s", file) : 0;
}

const char *irq_format(const char *file, const struct cpuset *cpus, char text[IRQ_TEXT_MAX])
{
	struct text t;

	if (!is_mask(file))
		return cpuset_format(cpus, text, IRQ_TEXT_MAX);
	text_init(&t, text, IRQ_TEXT_MAX);
	format_mask(cpus, &t);
	return text;
}
