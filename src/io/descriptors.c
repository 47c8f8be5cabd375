#include <io/descriptors.h>

#include <sys/resource.h>

uint64_t descriptors_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	const struct rlimit raised = {limit.rlim_max, limit.rlim_max};
	return setrlimit(RLIMIT_NOFILE, &raised) ? limit.rlim_cur : raised.rlim_cur;
}
