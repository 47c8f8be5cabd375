#ifndef NUMAFIT_CODEC_CONFIG_YAML_H
#define NUMAFIT_CODEC_CONFIG_YAML_H

#include <numafit/settings.h>

/* The config file: settings.h's keys as YAML, nested where they have dots. */

/* Put what the len bytes at text say into *s; keys that are not there keep their value, so start
 * from settings_init(). An empty file says nothing. 0, or -EINVAL and others of settings_set() and
 * flat_yaml_read(): the text names line, key, value and what was expected, and *s is unchanged. */
int config_yaml_read(struct settings *s, const char *text, size_t len, struct err *e);

#endif
