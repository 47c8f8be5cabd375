#ifndef NUMAFIT_EXTENDER_EXTENDER_YAML_H
#define NUMAFIT_EXTENDER_EXTENDER_YAML_H

#include <numafit/arena.h>
#include <numafit/log_level.h>
#include <numafit/mistakes.h>
#include <numafit/sched_cluster.h>

/* numafit-extender's config file:
 *
 *	apiVersion: numafit.io/v1
 *	kind: ExtenderConfiguration
 *	listen: :9467                  # every key is in the table of extender_doc()
 *	tls: {certFile: tls.crt, keyFile: tls.key, clientCAFile: ca.crt}
 *	metrics: {address: ":9468"}
 *	ui: {address: "127.0.0.1:9469", poolLabel: example.com/pool}
 *	plugins:                       # names and arguments are upstream's
 *	- name: NodeResourceTopologyMatch
 *	  weight: 2
 *	  args:
 *	    scoringStrategy: {type: LeastNUMANodes}
 *	    cache: {foreignPodsDetect: None}
 *	hint: {ttl: 2m, mode: prefer}
 *
 * What is not there has its default; an empty file says nothing, and without plugins there is
 * NodeResourceTopologyMatch with LeastNUMANodes. */

enum extender_stale { STALE_HOLD, STALE_PASS };

struct extender_config {
	const char *listen, *cert_file, *key_file, *client_ca_file; /* files: "": none */
	const char *metrics_address;                                /* "": none of its own */
	const char *ui_address; /* of the page of the cluster; "": none */
	const char *pool_label; /* by which its nodes are grouped; "": by none */
	bool ui_insecure;       /* that may be another address than a loopback one */
	const char *kubeconfig, *context;
	bool insecure; /* every client is served, though none has shown a certificate */
	uint64_t request_bytes_max, held_bytes_max, api_timeout_ms, refusal_delay_ms, score_max;
	bool advice, avoid;
	uint64_t advice_ttl_ms, assume_ms;
	unsigned advice_mode; /* of enum advice_mode */
	unsigned stale;       /* of enum extender_stale */
	unsigned log_level;
	unsigned log_format; /* of enum log_format */
	struct sched_profile profile;
	struct sched_cluster_args cluster;
	struct resource_table names; /* that the profile's resources are numbered by */
	struct arena arena;
};

/* The len bytes at text. 0, and extender_config_fini() ends it; -EINVAL, -ERANGE, -E2BIG, -ENOMEM:
 * the text names line, key, value and what was expected. With a list (e is not NULL then) all
 * mistakes are added to it, and *out is, on error as well, what was right, until
 * extender_config_fini(). */
int extender_yaml_read(const char *text, size_t len, struct extender_config *out,
	struct mistakes *all, struct err *e);
void extender_config_fini(struct extender_config *c);

/* One key, for people: its value in force, "" for nothing. Row i; false: there are no more. */
enum { EXTENDER_TYPE_MAX = 128, EXTENDER_VALUE_MAX = 4096 };
struct extender_doc {
	const char *key, *fallback, *help;
	char type[EXTENDER_TYPE_MAX], value[EXTENDER_VALUE_MAX];
};
bool extender_doc(const struct extender_config *c, unsigned i, struct extender_doc *out);

#endif
