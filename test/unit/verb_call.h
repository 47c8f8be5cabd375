#ifndef NUMAFIT_TEST_UNIT_VERB_CALL_H
#define NUMAFIT_TEST_UNIT_VERB_CALL_H

#include <command/command.h>

/* A verb as `numafit` calls it: argv[0] is the verb. Its exit code. */
static inline int verb_call(const struct command *verb, int argc, char **argv)
{
	static const struct program numafit = {.name = "numafit"};
	const struct call c = {&numafit, verb, argc, argv};

	return verb->run(&c);
}

#endif
