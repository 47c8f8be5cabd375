#ifndef NUMAFIT_NUMAFITD_CONFINED_H
#define NUMAFIT_NUMAFITD_CONFINED_H

#include <codec/status_json.h>
#include <host/cgroup.h>

struct daemon;
struct holding;

/* Containers of the shared pool that may run on fewer CPUs than the pool gives them: a cgroup above
 * has fewer (AllowedCPUs), their processes have the container runtime's CPU affinity (CPUAffinity
 * of its systemd unit; containerd 11345), or another CPU affinity, as a program that pins itself
 * has, which is no fault. The ledger and the cgroups below look right
 * then. The sweep looks at each container once a round; a finding counts once two rounds in a row
 * have it, as a cpuset may be on its way. */

/* The findings of one kind (enum confined_by). */
struct confined_kind {
	uint64_t now, before, shown; /* containers: in this round, the last one, and reported */
	struct cpuset cpus;          /* that the first of them may run on */
	char example[CONFINED_NAME_MAX];
	bool logged;
};
struct confined {
	const char *root; /* of the system: "/" */
	struct confined_kind kind[NR_CONFINED_BY];
	/* The runtime's process as the last round saw it, and the CPUs that the process may run on;
	 * 0: the process cannot be seen. */
	uint64_t runtime;
	struct cpuset runtime_cpus;
	bool hidden; /* in this round: processes of another PID namespace, whose affinity */
	bool seen;   /* cannot be read; processes whose affinity was read */
};

/* Compare one shared container with the CPUs that it should run on; found is what its cgroup has.
 */
void confined_look_at(struct daemon *d, const struct holding *h, const struct cpuset *wanted,
	const struct cgroup_cpuset *found);
/* All were looked at: report, and log what begins and ends. Where no container's processes can be
 * seen, numafitd's own count for them, as the same runtime has started numafitd. */
void confined_end_round(struct daemon *d);
/* For status and metrics: the kinds that there are now. */
void confined_status(const struct daemon *d, struct status_pool *out);

#endif
