#include <io/watched_files.h>

#include <numafit/mem.h>
#include <numafit/text.h>

void watched_files_start(struct watched_files *w, struct loop *loop,
	void (*touched)(void *ctx, struct watched_file *f), void *ctx)
{
	*w = (struct watched_files){.loop = loop, .touched = touched, .ctx = ctx};
}

static size_t position_of_key(const struct watched_files *w, const char *key)
{
	return text_position(w->at, w->nr, sizeof *w->at, key);
}

struct watched_file *watched_files_find(const struct watched_files *w, const char *key)
{
	size_t i = position_of_key(w, key);

	return i < w->nr && text_equal(w->at[i].key, key) ? w->at[i].file : NULL;
}

static void on_touched_file(void *ctx)
{
	struct watched_file *f = ctx;

	f->of->touched(f->of->ctx, f);
}

bool watched_files_add(struct watched_files *w, const char *key, const char *path)
{
	struct watched_file *f = watched_files_find(w, key);

	if (f)
		return f->watch;
	f = xcalloc(1, sizeof *f);
	f->of = w;
	f->key = xstrdup(key);
	f->watch = watch_new_file(w->loop, path, on_touched_file, f);
	*vec_insert(w, position_of_key(w, key)) = (struct watched_key){f->key, f};
	return f->watch;
}

static void remove_at(struct watched_files *w, size_t i)
{
	struct watched_file *f = w->at[i].file;

	vec_remove(w, i);
	watch_close(f->watch);
	free(f->key);
	free(f);
}

void watched_files_remove(struct watched_files *w, const char *key)
{
	if (watched_files_find(w, key))
		remove_at(w, position_of_key(w, key));
}

void watched_files_stop(struct watched_files *w)
{
	while (w->nr)
		remove_at(w, w->nr - 1);
	vec_fini(w);
}
