/* base: how much is told; a setting for operators, a filter for the log */
#ifndef NUMAFIT_LOG_LEVEL_H
#define NUMAFIT_LOG_LEVEL_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

#endif
