#ifndef NUMAFIT_HOST_CPUFREQ_H
#define NUMAFIT_HOST_CPUFREQ_H

#include <host/tunable.h>
#include <numafit/cpuset.h>
#include <numafit/settings.h>

/* A CPU's frequency and idle states (Documentation/admin-guide/pm/cpufreq.rst, cpuidle.rst). */

enum { CPU_IDLE_STATES_MAX = 16, CPU_VALUES_MAX = 4 + CPU_IDLE_STATES_MAX };
struct cpu_value {
	char file[TUNABLE_FILE_MAX];
	char want[PROFILE_WORD_MAX]; /* "": the profile does not name it */
	bool of_clock;               /* CPUs that share a clock have one value */
};
/* What a CPU has that a profile can set, in the order in which it is to be set, with what this one
 * (NULL: none) wants. Reads the latencies of the CPU's idle states. Returns their number. */
unsigned cpufreq_values(const struct tunables *t, unsigned cpu, const struct frequency_profile *p,
	struct cpu_value out[CPU_VALUES_MAX]);
/* The CPUs that share a clock with that one, itself among them, into *out; alone where the kernel says
 * nothing of clocks. 0, or -errno with text when what it says cannot be read. */
int cpufreq_together(
	const struct tunables *t, unsigned cpu, struct cpuset *out, struct err *e);
/* The folder of that CPU's files, with a slash at its end. */
void cpufreq_folder(unsigned cpu, char folder[TUNABLE_FILE_MAX]);

#endif
