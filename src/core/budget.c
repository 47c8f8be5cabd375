#include <numafit/budget.h>
#include <numafit/number.h>

enum { ASIDE = 8 }; /* one of so many steps */

static struct budget bounded(uint64_t steps, uint64_t aside)
{
	return (struct budget){.given = steps, .left = steps, .given_aside = aside, .aside = aside};
}

struct budget budget_of(uint64_t steps)
{
	return steps ? bounded(steps - steps / ASIDE, steps / ASIDE)
		     : (struct budget){.endless = true};
}

struct budget budget_all_of(uint64_t steps)
{
	return bounded(steps, 0);
}

struct budget budget_share(const struct budget *of, unsigned nr, unsigned i)
{
	uint64_t later = nr - i - 1;

	if (of->endless)
		return *of;
	/* half is divided evenly; of the other half the first ones have what they need of it */
	return bounded(of->left - number_min(of->given / 2 / nr * later, of->left),
		of->aside / (later + 1));
}

struct budget budget_part(const struct budget *of, unsigned parts, unsigned all)
{
	if (of->endless)
		return *of;
	return bounded(of->left / all * parts + of->left % all * parts / all, of->aside);
}

struct budget budget_take_aside(struct budget *of, uint64_t most)
{
	if (!of->endless) {
		most = number_min(of->aside, most);
		of->aside -= most;
	}
	return bounded(most, 0);
}

void budget_return(struct budget *of, const struct budget *part)
{
	of->cut = of->cut || part->cut;
	if (of->endless)
		return;
	/* a part may have been given a last step that the whole did not have */
	of->left -= number_min(of->left, part->given - part->left);
	of->aside -= part->given_aside - part->aside;
}

void budget_return_aside(struct budget *of, const struct budget *part)
{
	if (!of->endless)
		of->aside += part->left;
}
