#ifndef NUMAFIT_CLI_STATUS_SOURCE_H
#define NUMAFIT_CLI_STATUS_SOURCE_H

#include <command/command.h>
#include <numafit-cli/run_directory.h>
#include <numafit/settings.h>

/* Where a verb that asks the daemon finds it: at most one of these is given. */
struct status_source {
	const char *socket, *config, *directory;
};
enum { STATUS_PATH_MAX = SETTINGS_PATH_MAX + 16 };

/* The rows of its options, for a struct with a member `source`. */
#define STATUS_SOURCE_ROWS(type)                                                                   \
	{.name = "run-directory",                                                                  \
		.value = "DIR",                                                                    \
		.help = "numafitd's runDirectory (default " RUN_DIRECTORY ")",                     \
		.read = option_text,                                                               \
		.at = offsetof(type, source.directory),                                            \
		.completes = COMPLETE_DIRECTORY},                                                  \
		{.name = "socket",                                                                 \
			.value = "PATH",                                                           \
			.help = "the daemon's socket (default " RUN_DIRECTORY "/numafitd.sock)",   \
			.read = option_text,                                                       \
			.at = offsetof(type, source.socket),                                       \
			.completes = COMPLETE_FILE},                                               \
	{                                                                                          \
		.letter = 'c', .name = "config", .value = "FILE",                                  \
		.help = "the daemon's config file, which may name another runDirectory",           \
		.read = option_text, .at = offsetof(type, source.config),                          \
		.completes = COMPLETE_FILE                                                         \
	}

/* The path of the daemon's socket into buf of STATUS_PATH_MAX bytes. -1: go on; else the exit code,
 * and what is wrong is printed. */
int status_source_path(const struct call *c, const struct status_source *s, char *buf);
/* Print why the daemon did not answer, and what to check; EXIT_CANNOT. */
int status_source_fail(const struct call *c, const struct err *e);

#endif
