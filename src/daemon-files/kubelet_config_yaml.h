#ifndef NUMAFIT_NUMAFITD_KUBELET_CONFIG_YAML_H
#define NUMAFIT_NUMAFITD_KUBELET_CONFIG_YAML_H

#include <numafit/report.h>

/* The kubelet's own rules, from its config file (KubeletConfiguration, kubelet.config.k8s.io/
 * v1beta1; YAML or JSON): the policies of its Topology and CPU managers. Of the rest nothing is
 * looked at, whatever YAML it is. Flags and drop-in files, which would come on top, are not seen.
 *
 * What is not said is at the kubelet's default. 0; -EINVAL: no YAML, another kind of object, or a
 * value that the kubelet would not start with, with its key; -E2BIG. *out is written on success. */
enum { KUBELET_CONFIG_BYTES_MAX = 1 << 20 };
int kubelet_config_yaml_read(
	const char *text, size_t len, struct report_policy *out, struct err *e);

#endif
