#include <io/inbox.h>

#include <io/loop_uv.h>
#include <numafit/mem.h>
#include <numafit/number.h>

#include <assert.h>

struct item {
	void *what;
	int value;
};

/* Begins with its libuv handle, like all that belongs to a loop. */
struct inbox {
	uv_async_t uv;
	void (*came)(void *ctx, void *what, int value);
	void *ctx;
	uv_mutex_t lock; /* of all below */
	uv_cond_t room, something;
	size_t capacity, first, nr; /* a ring: first is the oldest of nr */
	struct item ring[];
};

/* Those that are there now and not what comes meanwhile: others on the loop have their turn too. */
static size_t inbox_handle_present(struct inbox *in)
{
	uv_mutex_lock(&in->lock);
	size_t nr = in->nr;

	for (size_t n = 0; n < nr; n++) {
		struct item i = in->ring[in->first];

		assert(in->nr);
		in->first = (in->first + 1) % in->capacity;
		in->nr--;
		uv_cond_signal(&in->room);
		uv_mutex_unlock(&in->lock);
		in->came(in->ctx, i.what, i.value);
		uv_mutex_lock(&in->lock);
	}
	bool more = in->nr;
	uv_mutex_unlock(&in->lock);
	if (more)
		(void)uv_async_send(&in->uv);
	return nr;
}

static void inbox_woken(uv_async_t *uv)
{
	(void)inbox_handle_present((struct inbox *)uv);
}

struct inbox *inbox_new(
	struct loop *l, size_t capacity, void (*came)(void *ctx, void *what, int value), void *ctx)
{
	struct inbox *in = xcalloc(1, sizeof *in + capacity * sizeof in->ring[0]);

	assert(capacity);
	in->came = came;
	in->ctx = ctx;
	in->capacity = capacity;
	if (uv_async_init(loop_uv(l), &in->uv, inbox_woken) || uv_mutex_init(&in->lock) ||
		uv_cond_init(&in->room) || uv_cond_init(&in->something))
		abort(); /* out of memory or of descriptors at the start */
	return in;
}

void inbox_put(struct inbox *in, void *what, int value)
{
	uv_mutex_lock(&in->lock);
	while (in->nr == in->capacity)
		uv_cond_wait(&in->room, &in->lock);
	in->ring[(in->first + in->nr) % in->capacity] = (struct item){what, value};
	bool wake = !in->nr++;
	uv_cond_signal(&in->something);
	uv_mutex_unlock(&in->lock);
	if (wake)
		(void)uv_async_send(&in->uv);
}

size_t inbox_wait(struct inbox *in, unsigned timeout_ms)
{
	uint64_t now = loop_monotonic_ns(), until = now + (uint64_t)timeout_ms * NS_PER_MS;

	uv_mutex_lock(&in->lock);
	for (; !in->nr && now < until; now = loop_monotonic_ns())
		(void)uv_cond_timedwait(&in->something, &in->lock, until - now);
	uv_mutex_unlock(&in->lock);
	return inbox_handle_present(in);
}

static void inbox_free_handle(uv_handle_t *h)
{
	struct inbox *in = (struct inbox *)h;

	uv_cond_destroy(&in->something);
	uv_cond_destroy(&in->room);
	uv_mutex_destroy(&in->lock);
	free(in);
}

void inbox_close(struct inbox *in)
{
	if (in)
		uv_close((uv_handle_t *)&in->uv, inbox_free_handle);
}
