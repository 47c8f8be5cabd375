#include <numafit/once.h>

#include <numafit/text.h>

bool once_is_new(struct once *o, const char *text)
{
	char *place = o->text[o->nr % ONCE_MAX];

	for (unsigned i = 0; i < ONCE_MAX && i < o->nr; i++)
		if (text_equal(o->text[i], text))
			return false;
	(void)text_copy(place, sizeof o->text[0], text);
	o->nr++;
	return true;
}
