#ifndef NUMAFIT_HOST_MACHINE_FIND_H
#define NUMAFIT_HOST_MACHINE_FIND_H

#include <numafit/topo.h>

/* Where machines with a name are kept, and how their files are called. */

/* The path of the machine with this name: a .machine or .xml file or a directory; the caller frees.
 * NULL when there is none; the text lists those that there are. */
char *machine_find(const char *name, struct err *e);

/* The name of the machine at path: its last part without .machine or .xml. 0; -EINVAL when that
 * cannot be a machine's name. */
int machine_name_from_path(const char *path, char name[TOPO_NAME_MAX], struct err *e);

#endif
