#ifndef NUMAFIT_CLI_POD_FILE_H
#define NUMAFIT_CLI_POD_FILE_H

#include <numafit-cli/workload_json.h>
#include <command/command.h>

/* A pod in a file as kubectl takes it. */
struct pod_file {
	struct workload workload;
	struct arena arena; /* of the workload */
};

/* Read it from the file at path, YAML or JSON; "-" is the standard input. -1, and p ends with
 * pod_file_fini(); else the exit code: what is wrong has been printed. */
int pod_file_read(const struct call *c, const char *path, struct pod_file *p);
void pod_file_fini(struct pod_file *p);

#endif
