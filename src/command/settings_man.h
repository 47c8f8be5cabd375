#ifndef NUMAFIT_COMMAND_SETTINGS_MAN_H
#define NUMAFIT_COMMAND_SETTINGS_MAN_H

#include <stdio.h>

/* The man page numafitd.yaml(5), made from the table of settings. */
void settings_man_print(FILE *to);

#endif
