/* A container runtime for tests of the status page: containers of any name, one after the other,
 * and then it stays connected until it is killed. usage: ui_runtime SOCKET <LIST    a line
 * "NAMESPACE|POD|CONTAINER|MILLI|MIB" each; Guaranteed, or with 0 MILLI Burstable */
#include "../unit/fake_runtime.h"

#include <numafit/mem.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { PARTS = 5, LINE_BYTES = 1024, ID_BYTES = 16, CONTAINERS = 4096 };

struct wanted {
	char line[LINE_BYTES], id[ID_BYTES];
	char *part[PARTS];
};

static struct player {
	struct fake_runtime runtime;
	struct wanted *at;
	size_t nr, next;
} player;

static struct nri_container shown(const struct wanted *w)
{
	const long milli = strtol(w->part[3], NULL, 10);
	struct nri_container c = {
		.sandbox_id = w->id,
		.pod_uid = w->id,
		.pod_ns = w->part[0],
		.pod_name = w->part[1],
		.name = w->part[2],
		.id = w->id,
		.cgroup_parent = milli ? "/kubepods/pod1" : "/kubepods/burstable/pod1",
		.cpus = "",
		.mems = "",
	};

	c.resources.has_shares = c.resources.has_memory_limit = true;
	c.resources.cpu_shares =
		milli ? (uint64_t)(FAKE_SHARES_PER_CPU * milli / FAKE_MILLI_PER_CPU) : 100;
	c.resources.memory_limit = strtol(w->part[4], NULL, 10) << 20;
	return c;
}

static void play_next(void)
{
	struct nri_container c;

	if (player.next == player.nr) {
		(void)puts("played");
		(void)fflush(stdout);
		player.next++;
	}
	if (player.next > player.nr)
		return;
	c = shown(&player.at[player.next++]);
	fake_runtime_call(&player.runtime, NRI_CALL_CREATE, &c);
}

static void on_answered(void *ctx, enum nri_call what, const struct nri_answer *a)
{
	(void)ctx;
	if (what == NRI_CALL_CREATE && !a->status) {
		const struct nri_container c = shown(&player.at[player.next - 1]);

		fake_runtime_call(&player.runtime, NRI_CALL_POST_CREATE, &c);
		return;
	}
	if (what == NRI_CALL_CREATE || what == NRI_CALL_POST_CREATE || what == NRI_CALL_SYNCHRONIZE)
		play_next();
}

static void on_plugin_configured(void *ctx, const char *name, const char *index, uint32_t events)
{
	(void)ctx, (void)name, (void)index, (void)events;
	nri_runtime_synchronize(player.runtime.nri, NULL, 0);
}

static void read_wanted(void)
{
	player.at = xcalloc(CONTAINERS, sizeof *player.at);
	while (player.nr < CONTAINERS) {
		struct wanted *w = &player.at[player.nr];
		char *at = w->line;

		if (!fgets(w->line, sizeof w->line, stdin))
			return;
		w->line[strcspn(w->line, "\n")] = '\0';
		for (unsigned i = 0; i < PARTS; i++)
			w->part[i] = at ? strsep(&at, "|") : w->line + strlen(w->line);
		(void)snprintf(w->id, sizeof w->id, "c%zu", player.nr++);
	}
}

static void stop_playing(void *ctx)
{
	loop_stop(ctx);
}

int main(int argc, char **argv)
{
	struct fake_runtime *f = &player.runtime;

	if (argc != 2)
		return 2;
	read_wanted();
	f->loop = loop_new();
	(void)loop_on_signal(f->loop, SIGTERM, stop_playing, f->loop);
	f->options = (struct nri_runtime_options){.name = "containerd", .version = "2.1.0"};
	f->events = (struct nri_runtime_events){
		.ctx = f, .configured = on_plugin_configured, .answered = on_answered};
	fake_runtime_listen(f, argv[1]);
	loop_run(f->loop);
	fake_runtime_fini(f);
	loop_free(f->loop);
	free(player.at);
	return 0;
}
