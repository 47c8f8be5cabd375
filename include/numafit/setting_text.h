/* core: which settings have values of any text; in settings.c. */
#ifndef NUMAFIT_SETTING_TEXT_H
#define NUMAFIT_SETTING_TEXT_H

#include <stdbool.h>

/* True if a value of the setting may be any text: a name, an address, a path, or sections with names.
 * True as well for a key that settings.c does not have. */
bool setting_is_any_text(const char *key);

#endif
