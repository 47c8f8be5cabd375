#ifndef NUMAFITD_DAEMON_H
#define NUMAFITD_DAEMON_H

#include <codec/status_json.h>
#include <io/journal.h>
#include <io/loop.h>
#include <nri/nri_conn.h>
#include <numafit/engine.h>

/* All parts of one running numafitd. main.c builds it; the other files each wire one pair. */
struct daemon {
	struct settings settings;
	struct topo topo;
	struct loop *loop;
	struct engine *engine;
	struct nri_conn *conn;
	struct nri_handler handler;
	struct listener *status;
	int lock; /* descriptor that keeps a second daemon out */
	/* What the runtime tells a plugin that it starts itself (NRI pkg/api/plugin.go): the
	 * connection, name and index. name is NULL when it did not. */
	struct {
		int fd;
		const char *name, *index;
	} launch;
	char journal_path[SETTINGS_PATH_MAX + sizeof "/journal"];
	char status_path[SETTINGS_PATH_MAX + sizeof "/numafitd.sock"];
	struct journal *journal;
	struct loop_timer *rotate;
	uint64_t rotate_at_bytes;
	struct status_counters counters;
	uint64_t started_ns;
};

/* recorder.c: the engine's records and the journal file. */

/* Build the engine: fold the journal of an earlier life if there is one, and start a new journal
 * with what came out. A journal that cannot be used is set aside, loudly; the runtime's Synchronize
 * then tells what runs. 0, or -errno when no journal can be written. */
int recorder_start(struct daemon *d, struct err *e);
void recorder_stop(struct daemon *d);

/* wiring.c: the runtime's events and the engine. */
void wiring_start(struct daemon *d);
/* The engine's done hook: counts and logs what happened on the engine's own account. */
void wiring_done(void *ctx, const struct record *r);

/* status.c: the unix socket that `numafit status` asks. */
int status_start(struct daemon *d, struct err *e);

#endif
