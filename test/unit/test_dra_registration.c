/* The sockets by which a kubelet finds a DRA driver, and what it says through them. */
#include "dra_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <kubelet/dra_registration.h>
#include <kubelet/plugin_registration_pb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { LOOK_MS = 20, NR_EVENTS = 256, TICK_MS = 1, NEVER_MS = 30000 };

#define GET_INFO PLUGIN_REGISTRATION_PATH("GetInfo")
#define NOTIFY   PLUGIN_REGISTRATION_PATH("NotifyRegistrationStatus")

struct logged {
	bool bad;
	const char *event;
	char text[sizeof((struct err *)0)->text];
};

struct world {
	struct dra_world base;
	struct loop_timer *tick;
	char registry[PATH_MAX], plugins[PATH_MAX], directory[PATH_MAX];
	char ours[PATH_MAX], offer[PATH_MAX];
	struct dra_registration_options options;
	struct dra_registration *r;
	struct logged logged[NR_EVENTS];
	unsigned nr_logged;
	bool over;
};

static void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	assert_true(w->nr_logged < NR_EVENTS);
	struct logged *t = &w->logged[w->nr_logged++];
	t->bad = bad;
	t->event = event;
	(void)snprintf(t->text, sizeof t->text, "%s", text);
	loop_stop(w->base.l);
}

static void on_tick(void *ctx)
{
	struct world *w = ctx;

	loop_timer_set(w->tick, TICK_MS);
	loop_stop(w->base.l);
}

static void on_over(void *ctx)
{
	struct world *w = ctx;

	w->over = true;
}

/* To see what does not happen. */
static void run_for(struct world *w, unsigned ms)
{
	struct loop_timer *t = loop_timer_new(w->base.l, on_over, w);

	w->over = false;
	loop_timer_set(t, ms);
	UNTIL(&w->base, w->over);
	loop_timer_close(t);
}

static void join(char path[PATH_MAX], const char *directory, const char *name)
{
	assert_true(snprintf(path, PATH_MAX, "%s/%s", directory, name) < PATH_MAX);
}

static void name_paths(struct world *w)
{
	join(w->plugins, w->base.dir, "plugins");
	join(w->registry, w->base.dir, "plugins_registry");
	join(w->directory, w->plugins, "numafit.io");
	join(w->ours, w->directory, "dra.sock");
	join(w->offer, w->registry, "numafit.io-reg.sock");
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);

	dra_world_init(&w->base);
	name_paths(w);
	assert_int_equal(mkdir(w->plugins, 0750), 0);
	assert_int_equal(mkdir(w->registry, 0750), 0);
	w->tick = loop_timer_new(w->base.l, on_tick, w);
	loop_timer_set(w->tick, TICK_MS);
	w->options = (struct dra_registration_options){.registry = w->registry,
		.directory = w->directory,
		.driver = "numafit.io",
		.look_ms = LOOK_MS};
	*state = w;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static void remove_tree(const char *path)
{
	enum { NR_FDS = 8 };

	assert_int_equal(nftw(path, remove_one, NR_FDS, FTW_DEPTH | FTW_PHYS), 0);
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	dra_world_hang_up(&w->base);
	dra_registration_close(w->r);
	rpc_server_free(w->base.server);
	rpc_pump_free(w->base.pump);
	loop_free(w->base.l);
	remove_tree(w->base.dir);
	free(w);
	return 0;
}

static void begin(struct world *w)
{
	struct dra_registration_handler handler = {w, on_event};

	w->r = dra_registration_new(w->base.l, w->base.server, &w->options, &handler);
}

static bool is(const struct world *w, enum dra_registration_state state)
{
	return dra_registration_state(w->r) == state;
}

static const struct logged *last(const struct world *w)
{
	static const struct logged nothing = {.event = ""};

	return w->nr_logged ? &w->logged[w->nr_logged - 1] : &nothing;
}

static void assert_last(const struct world *w, bool bad, const char *event, const char *part)
{
	assert_string_equal(last(w)->event, event);
	assert_int_equal(last(w)->bad, bad);
	assert_non_null(strstr(last(w)->text, part));
}

static void until_offered(struct world *w)
{
	UNTIL(&w->base, is(w, DRA_REGISTRATION_OFFERED));
	assert_true(exists(w->ours) && exists(w->offer));
}

/* The kubelet. */

static void ask(struct world *w)
{
	static const char *const versions[] = {"v1.DRAPlugin", "v1beta1.DRAPlugin",
		"v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"};
	struct plugin_info info = {"DRAPlugin", "numafit.io", w->ours, versions, 4};
	struct seen *s = call_at(&w->base, w->offer, GET_INFO, (struct blob){0});
	struct blob want;
	struct arena a;

	arena_init(&a, PATH_MAX);
	assert_int_equal(plugin_info_encode(&info, &a, &want, NULL), 0);
	assert_int_equal(s->code, RPC_OK);
	assert_true(is_message(s, want));
	arena_fini(&a);
	assert_true(is(w, DRA_REGISTRATION_ASKED));
}

static void say_yes(struct world *w)
{
	assert_int_equal(
		call_at(&w->base, w->offer, NOTIFY, (struct blob){"\x08\x01", 2})->code, RPC_OK);
	assert_true(is(w, DRA_REGISTRATION_UP));
}

/* words: up to 127 bytes */
static void say_no(struct world *w, const char *words)
{
	char message[128 + 2];
	size_t len = strlen(words);

	message[0] = 0x12;
	message[1] = (char)len;
	memcpy(message + 2, words, len);
	assert_int_equal(
		call_at(&w->base, w->offer, NOTIFY, (struct blob){message, len ? len + 2 : 0})
			->code,
		RPC_OK);
	assert_true(is(w, DRA_REGISTRATION_REFUSED));
}

static void begin_and_go_up(struct world *w)
{
	begin(w);
	until_offered(w);
	ask(w);
	say_yes(w);
}

/* The cases. */

static void both_sockets_are_offered_and_the_kubelet_takes_them(void **state)
{
	struct world *w = *state;

	begin(w);
	assert_true(is(w, DRA_REGISTRATION_WAITING));
	until_offered(w);
	assert_last(w, false, "claims-plugin-offered", w->offer);
	ask(w);
	assert_int_equal(w->nr_logged, 1);
	say_yes(w);
	assert_last(w, false, "claims-plugin-up", "numafit.io");
	/* the driver's own socket answers, too: with what is not served there */
	assert_int_equal(
		call_at(&w->base, w->ours, "/x.Y/Z", (struct blob){0})->code, RPC_UNIMPLEMENTED);
	dra_world_hang_up(&w->base);
	dra_registration_close(steal(w->r));
	assert_false(exists(w->ours) || exists(w->offer));
}

static void a_directory_with_slashes_at_its_end_is_the_same(void **state)
{
	struct world *w = *state;
	char registry[PATH_MAX + 2], directory[PATH_MAX + 2];

	(void)snprintf(registry, sizeof registry, "%s//", w->registry);
	(void)snprintf(directory, sizeof directory, "%s/", w->directory);
	w->options.registry = registry;
	w->options.directory = directory;
	begin_and_go_up(w);
}

static void a_refusal_is_logged_once_with_the_kubelets_words(void **state)
{
	struct world *w = *state;

	begin(w);
	until_offered(w);
	for (unsigned n = 0; n < 3; n++) { /* the kubelet tries again */
		ask(w);
		say_no(w, "no handler for DRAPlugin");
		assert_last(w, true, "claims-plugin-refused", "no handler for DRAPlugin");
		assert_int_equal(w->nr_logged, 2);
	}
	ask(w);
	say_no(w, "");
	assert_last(w, true, "claims-plugin-refused", "does not say why");
	ask(w);
	say_yes(w);
	assert_int_equal(w->nr_logged, 4);
}

static void a_kubelet_that_starts_anew_asks_anew(void **state)
{
	struct world *w = *state;

	begin_and_go_up(w);
	ask(w);
	say_yes(w);
	assert_int_equal(w->nr_logged, 2);
	ask(w);
	say_no(w, "no");
}

static void a_status_that_is_garbage_changes_nothing(void **state)
{
	struct world *w = *state;

	begin_and_go_up(w);
	assert_int_equal(call_at(&w->base, w->offer, NOTIFY, (struct blob){"\x12\x05x", 3})->code,
		RPC_INVALID_ARGUMENT);
	assert_true(is(w, DRA_REGISTRATION_UP));
}

static void a_removed_offer_is_made_again_and_is_a_new_one(void **state)
{
	struct world *w = *state;

	w->options.look_ms = NEVER_MS; /* it is seen, not looked for */
	begin_and_go_up(w);
	assert_int_equal(unlink(w->offer), 0);
	until_offered(w);
	assert_last(w, false, "claims-plugin-offered", w->offer);
	ask(w);
	say_yes(w);
}

static void a_removed_socket_of_the_driver_is_made_again_beside_the_offer(void **state)
{
	struct world *w = *state;

	w->options.look_ms = NEVER_MS;
	begin_and_go_up(w);
	assert_int_equal(unlink(w->ours), 0);
	UNTIL(&w->base, exists(w->ours));
	assert_true(is(w, DRA_REGISTRATION_UP));
	assert_int_equal(w->nr_logged, 2);
}

static void wiped_directories_are_filled_again(void **state)
{
	struct world *w = *state;

	w->options.look_ms = NEVER_MS;
	begin_and_go_up(w);
	remove_tree(w->directory);
	UNTIL(&w->base, exists(w->ours));
	assert_int_equal(unlink(w->ours), 0);
	assert_int_equal(unlink(w->offer), 0);
	until_offered(w);
}

static void a_registry_that_is_gone_is_waited_for(void **state)
{
	struct world *w = *state;

	begin_and_go_up(w);
	remove_tree(w->registry);
	UNTIL(&w->base, is(w, DRA_REGISTRATION_WAITING));
	assert_last(w, true, "claims-plugin-no-directory", w->registry);
	run_for(w, 5 * LOOK_MS);
	assert_int_equal(w->nr_logged, 3);
	assert_true(exists(w->ours));
	assert_int_equal(mkdir(w->registry, 0750), 0);
	until_offered(w);
	ask(w);
	say_yes(w);
}

static void a_replaced_registry_is_used(void **state)
{
	struct world *w = *state;
	char aside[PATH_MAX + sizeof ".aside"];

	(void)snprintf(aside, sizeof aside, "%s.aside", w->registry);
	w->options.look_ms = NEVER_MS;
	begin_and_go_up(w);
	assert_int_equal(rename(w->registry, aside), 0);
	UNTIL(&w->base, is(w, DRA_REGISTRATION_WAITING));
	assert_int_equal(mkdir(w->registry, 0750), 0);
	until_offered(w);
}

static void all_of_the_kubelets_directories_may_be_missing(void **state)
{
	struct world *w = *state;

	remove_tree(w->plugins);
	remove_tree(w->registry);
	begin(w);
	UNTIL(&w->base, w->nr_logged);
	assert_last(w, true, "claims-plugin-no-directory", w->directory);
	assert_int_equal(mkdir(w->plugins, 0750), 0);
	UNTIL(&w->base, w->nr_logged == 2);
	assert_last(w, true, "claims-plugin-no-directory", w->registry);
	assert_false(exists(w->ours)); /* not before it can be found */
	assert_int_equal(mkdir(w->registry, 0750), 0);
	until_offered(w);
}

static void files_in_place_of_directories_are_reported(void **state)
{
	struct world *w = *state;

	remove_tree(w->registry);
	(void)close(open(w->registry, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	begin(w);
	UNTIL(&w->base, w->nr_logged);
	assert_last(w, true, "claims-plugin-no-directory", "is not a directory");
	assert_int_equal(unlink(w->registry), 0);
	remove_tree(w->plugins);
	(void)close(open(w->plugins, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	UNTIL(&w->base, strstr(last(w)->text, "cannot be made"));
	assert_last(w, true, "claims-plugin-no-directory", w->directory);
}

/* A socket as an instance of the driver leaves it that was killed, or keeps it. */
static int leave_socket(const char *path, bool listens)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(strlen(path) < sizeof address.sun_path);
	memcpy(address.sun_path, path, strlen(path));
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
	if (listens)
		assert_int_equal(listen(fd, 1), 0);
	else
		(void)close(fd);
	return fd;
}

static void sockets_of_a_dead_instance_are_replaced(void **state)
{
	struct world *w = *state;

	assert_int_equal(mkdir(w->directory, 0750), 0);
	(void)leave_socket(w->ours, false);
	(void)leave_socket(w->offer, false);
	begin_and_go_up(w);
}

static void another_instance_is_waited_for(void **state)
{
	struct world *w = *state;

	int fd = leave_socket(w->offer, true);
	begin(w);
	UNTIL(&w->base, w->nr_logged);
	assert_last(w, true, "claims-plugin-no-socket", "another instance");
	assert_true(is(w, DRA_REGISTRATION_WAITING));
	run_for(w, 5 * LOOK_MS);
	assert_int_equal(w->nr_logged, 1);
	(void)close(fd);
	until_offered(w);
}

static void what_is_no_socket_is_left_alone(void **state)
{
	struct world *w = *state;

	assert_int_equal(mkdir(w->directory, 0750), 0);
	(void)close(open(w->ours, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	begin(w);
	UNTIL(&w->base, w->nr_logged);
	assert_last(w, true, "claims-plugin-no-socket", "has to be removed");
	assert_true(exists(w->ours));
	assert_false(exists(w->offer)); /* the kubelet would find nobody behind it */
	assert_int_equal(unlink(w->ours), 0);
	until_offered(w);
}

static void a_path_that_is_too_long_for_a_socket_is_reported(void **state)
{
	struct world *w = *state;
	char name[80];

	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	join(w->directory, w->plugins, name);
	begin(w);
	UNTIL(&w->base, w->nr_logged);
	assert_last(w, true, "claims-plugin-no-socket", "shorter path");
}

static void a_path_that_is_not_utf8_is_not_told(void **state)
{
	struct world *w = *state;

	join(w->directory, w->plugins, "\xff");
	join(w->ours, w->directory, "dra.sock");
	begin(w);
	until_offered(w);
	assert_int_equal(
		call_at(&w->base, w->offer, GET_INFO, (struct blob){0})->code, RPC_INTERNAL);
}

static void it_may_be_closed_before_it_has_begun(void **state)
{
	struct world *w = *state;

	begin(w);
	dra_registration_close(steal(w->r));
	dra_registration_close(NULL);
	assert_false(exists(w->directory));
}

static void each_state_has_a_name(void **state)
{
	static const char *const names[] = {"waiting", "offered", "asked", "refused", "up"};

	(void)state;
	for (enum dra_registration_state s = 0; s < NR_DRA_REGISTRATION_STATES; s++)
		assert_string_equal(dra_registration_state_name(s), names[s]);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(both_sockets_are_offered_and_the_kubelet_takes_them),
		WITH_WORLD(a_directory_with_slashes_at_its_end_is_the_same),
		WITH_WORLD(a_refusal_is_logged_once_with_the_kubelets_words),
		WITH_WORLD(a_kubelet_that_starts_anew_asks_anew),
		WITH_WORLD(a_status_that_is_garbage_changes_nothing),
		WITH_WORLD(a_removed_offer_is_made_again_and_is_a_new_one),
		WITH_WORLD(a_removed_socket_of_the_driver_is_made_again_beside_the_offer),
		WITH_WORLD(wiped_directories_are_filled_again),
		WITH_WORLD(a_registry_that_is_gone_is_waited_for),
		WITH_WORLD(a_replaced_registry_is_used),
		WITH_WORLD(all_of_the_kubelets_directories_may_be_missing),
		WITH_WORLD(files_in_place_of_directories_are_reported),
		WITH_WORLD(sockets_of_a_dead_instance_are_replaced),
		WITH_WORLD(another_instance_is_waited_for),
		WITH_WORLD(what_is_no_socket_is_left_alone),
		WITH_WORLD(a_path_that_is_too_long_for_a_socket_is_reported),
		WITH_WORLD(a_path_that_is_not_utf8_is_not_told),
		WITH_WORLD(it_may_be_closed_before_it_has_begun),
		cmocka_unit_test(each_state_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
