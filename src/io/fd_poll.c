#include <io/fd_poll.h>

#include <io/loop_uv.h>
#include <numafit/mem.h>
#include <stdlib.h>

struct fd_poll {
	uv_poll_t uv;
	int events;
	void (*ready)(void *ctx);
	void *ctx;
};

static void poll_ready(uv_poll_t *uv, int status, int events)
{
	struct fd_poll *p = (struct fd_poll *)uv;

	(void)status, (void)events;
	p->ready(p->ctx);
}

void fd_poll_start(struct fd_poll *p)
{
	(void)uv_poll_start(&p->uv, p->events, poll_ready);
}

void fd_poll_stop(struct fd_poll *p)
{
	(void)uv_poll_stop(&p->uv);
}

struct fd_poll *fd_poll_new(
	struct loop *l, int fd, enum fd_event event, void (*fire)(void *ctx), void *ctx)
{
	struct fd_poll *p = xcalloc(1, sizeof *p);

	p->events = event == FD_READABLE ? UV_READABLE : UV_DISCONNECT;
	p->ready = fire;
	p->ctx = ctx;
	if (uv_poll_init(loop_uv(l), &p->uv, fd)) {
		free(p);
		return NULL;
	}
	fd_poll_start(p);
	return p;
}

void fd_poll_close(struct fd_poll *p)
{
	if (p)
		uv_close((uv_handle_t *)&p->uv, loop_free_handle);
}
