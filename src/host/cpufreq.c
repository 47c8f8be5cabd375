#include <host/cpufreq.h>

#include <numafit/text.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KHZ_PER_MHZ = 1000, NUMBER_MAX = 24 };

void cpufreq_folder(unsigned cpu, char folder[TUNABLE_FILE_MAX])
{
	(void)snprintf(folder, TUNABLE_FILE_MAX, TUNABLE_CPUS "/cpu%u/", cpu);
}

static struct cpu_value *add_value(struct cpu_value *list, unsigned *nr, unsigned cpu, const char *name)
{
	struct cpu_value *v = &list[(*nr)++];
	struct text t;

	*v = (struct cpu_value){0};
	text_init(&t, v->file, sizeof v->file);
	text_add(&t, TUNABLE_CPUS "/cpu%u/%s", cpu, name);
	return v;
}

static void want_mhz(struct cpu_value *v, unsigned mhz)
{
	if (mhz)
		(void)snprintf(v->want, sizeof v->want, "%u", mhz * KHZ_PER_MHZ);
}

static void add_clock(
	struct cpu_value *list, unsigned *nr, unsigned cpu, const struct frequency_profile *p)
{
	unsigned first = *nr;

	/* the governor first: another one may change what the last one is */
	(void)text_copy(add_value(list, nr, cpu, "cpufreq/scaling_governor")->want, PROFILE_WORD_MAX,
		p->governor);
	want_mhz(add_value(list, nr, cpu, "cpufreq/scaling_max_freq"), p->max_mhz);
	want_mhz(add_value(list, nr, cpu, "cpufreq/scaling_min_freq"), p->min_mhz);
	(void)text_copy(add_value(list, nr, cpu, "cpufreq/energy_performance_preference")->want,
		PROFILE_WORD_MAX, p->energy_performance);
	while (first < *nr)
		list[first++].of_clock = true;
}

static void add_idle_states(const struct tunables *t, struct cpu_value *list, unsigned *nr,
	unsigned cpu, const struct frequency_profile *p)
{
	for (unsigned state = 0; state < CPU_IDLE_STATES_MAX; state++) {
		char file[TUNABLE_FILE_MAX], name[TUNABLE_FILE_MAX / 2], latency[NUMBER_MAX];

		(void)snprintf(file, sizeof file, TUNABLE_CPUS "/cpu%u/cpuidle/state%u/latency", cpu,
			state);
		if (tunable_read(t, file, latency, sizeof latency, NULL) < 0)
			break;
		(void)snprintf(name, sizeof name, "cpuidle/state%u/disable", state);
		struct cpu_value *v = add_value(list, nr, cpu, name);
		if (p->limits_idle && strtoul(latency, NULL, 10) > p->idle_latency_us)
			(void)text_copy(v->want, sizeof v->want, "1");
	}
}

unsigned cpufreq_values(const struct tunables *t, unsigned cpu, const struct frequency_profile *p,
	struct cpu_value out[CPU_VALUES_MAX])
{
	static const struct frequency_profile none;
	unsigned nr = 0;

	add_clock(out, &nr, cpu, p ? p : &none);
	add_idle_states(t, out, &nr, cpu, p ? p : &none);
	return nr;
}

/* CPUs by their numbers, with spaces between them. */
int cpufreq_together(const struct tunables *t, unsigned cpu, struct cpuset *out, struct err *e)
{
	enum { LIST_MAX = CPUSET_BITS * sizeof "1023" };
	char file[TUNABLE_FILE_MAX], list[LIST_MAX + 1], *save = NULL;
	struct cpuset all = {0};

	cpuset_add(&all, cpu);
	(void)snprintf(file, sizeof file, TUNABLE_CPUS "/cpu%u/cpufreq/affected_cpus", cpu);
	int rc = tunable_read(t, file, list, sizeof list, e);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	for (char *word = rc ? NULL : strtok_r(list, " ", &save); word;
		word = strtok_r(NULL, " ", &save)) {
		uint64_t other;

		if (text_u64(word, strlen(word), CPUSET_BITS - 1, &other, NULL) == 0)
			cpuset_add(&all, (unsigned)other);
	}
	*out = all;
	return 0;
}
