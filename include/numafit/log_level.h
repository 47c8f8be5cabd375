/* base: what is logged, and in which form; settings for operators, a filter for the log */
#ifndef NUMAFIT_LOG_LEVEL_H
#define NUMAFIT_LOG_LEVEL_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
/* logFormat. auto: journal where systemd has connected stderr with journald, else text. */
enum log_format { LOG_FORMAT_AUTO, LOG_FORMAT_TEXT, LOG_FORMAT_JSON, LOG_FORMAT_JOURNAL };

#endif
