/* A config file that changes while containers run: they do not notice, who comes later does. The
 * daemon is the real program; this test is its container runtime, the reader of its log, and the
 * kubelet that swaps its ConfigMap. */
#include "reload_rig.h"

#include <io/digest.h>

static void assert_in_force(struct rig *r, const char *key, const char *value, const char *refused)
{
	struct status st;
	struct arena a;
	bool found = false;

	ask_status(r, &a, &st);
	for (size_t i = 0; i < st.settings.nr; i++)
		if (text_equal(st.settings.at[i].key, key)) {
			assert_string_equal(st.settings.at[i].value, value);
			found = true;
		}
	assert_true(found);
	assert_non_null(st.info.config);
	assert_string_equal(st.info.config->file, r->config);
	if (!refused)
		assert_null(st.info.config->refused);
	else if (!st.info.config->refused || !strstr(st.info.config->refused, refused))
		fail_msg("refused: %s", st.info.config->refused);
	arena_fini(&a);
}

static const struct swapped {
	const char *text;
	const char *policy, *refused; /* in force then; NULL: as before; what is said */
	bool strict;
} texts[] = {
	{"topologyManagerPolicy: restricted\n", "restricted", NULL, false},
	{"topologyManagerPolicy: single\n", NULL, "line 1: topologyManagerPolicy: ", false},
	{"topologyManagerPolicy: none\n"
	 "cpuManagerPolicyOptions: {strict-cpu-reservation: 'true', full-pcpus-only: 'true'}\n",
		"none", NULL, true},
	{"mode: [\n", NULL, "did not find expected", true},
	{"topologyManagerPolicy: best-effort\ncpuManagerPolicy: none\nmemoryManagerPolicy: None\n"
	 "sharedPoolStep: 4\nonAdopt: leave\n",
		"best-effort", NULL, false},
	{"logLevel: info\ncpuManagerPolicyOptions: {align-by-socket: 'true'}\n", NULL,
		"Alpha-level Options not enabled", false},
	{"nodes:\n- names: [other]\n  settings:\n    topologyManagerPolicy: x\n", NULL,
		"line 4: topologyManagerPolicy: ", false},
	{"topologyManagerScope: pod\nunmatchedNodes: as-above\nnodes:\n"
	 "- names: ['*']\n  settings: {topologyManagerPolicy: single-numa-node}\n"
	 "featureGates: {TopologyManagerPolicyAlphaOptions: true}\n"
	 "topologyManagerPolicyOptions: {numa-allocation-strategy: least-allocated}\n"
	 "cpuManagerPolicyOptions: {strict-cpu-reservation: 'true'}\n",
		"single-numa-node", NULL, true},
	{"refusalAction: evict\n", NULL, "refusalAction: evict needs", true},
};
enum { NR_TEXTS = sizeof texts / sizeof *texts, SWAPS = 50 };

static void reloaded_settings_apply_to_new_containers_and_to_the_shared_pool(void **state)
{
	struct rig *r = *state;
	struct fake_container before[BOXES];
	const char *policy = "restricted";
	char id[FAKE_NAME_BYTES];

	hold_config(r, "topologyManagerPolicy: best-effort\n");
	begin(r, NULL);
	for (unsigned i = 0; i < 3; i++) {
		(void)snprintf(id, sizeof id, "own%u", i);
		assert_non_null(create(r, id, 2 + i));
		(void)snprintf(id, sizeof id, "any%u", i);
		assert_non_null(create(r, id, 0));
	}
	assert_true(runs_on_cpu_0(&r->box[1]));
	memcpy(before, r->box, sizeof before);
	for (unsigned i = 0; i < SWAPS; i++) {
		const struct swapped *s = &texts[i % NR_TEXTS];

		policy = s->policy ? s->policy : policy;
		swap_config(r, s->text);
		const char *line = await_line(r, "config-re"); /* -loaded or -fused */
		if (s->refused && !strstr(line, s->refused))
			fail_msg("%s: %s", s->text, line);
		if (!s->refused && strncmp(line, "config-reloaded", 15) != 0)
			fail_msg("%s: %s", s->text, line);
		assert_newcomer(r, policy, s->strict);
		for (unsigned b = 0; b < 3;
			b++) { /* with its reply, or before, what shares the pool */
			assert_memory_equal(&r->box[2 * b], &before[2 * b], sizeof *before);
			assert_int_equal(runs_on_cpu_0(&r->box[2 * b + 1]), !s->strict);
		}
		if (i < NR_TEXTS)
			assert_in_force(r, "topologyManagerPolicy", policy, s->refused);
	}
	assert_int_equal(count_log(r, "config-reloaded") + count_log(r, "config-refused"), SWAPS);
}

/* The records of both journals decide the same once more. */
static void assert_replays(const struct rig *r)
{
	char command[3 * PATH_MAX];

	for (unsigned i = 0; i < 2; i++) {
		(void)snprintf(command, sizeof command, "%.*snumafit replay %s%s >%s/replay 2>&1",
			(int)(strrchr(r->daemon.program, '/') + 1 - r->daemon.program),
			r->daemon.program, r->daemon.journal, i ? ".1" : "", r->daemon.dir);
		assert_int_equal(system(command), 0);
	}
}

static void journals_replay_and_restarts_fold_across_changes(void **state)
{
	static const char *const changes[] = {
		"cpuManagerPolicyOptions: {strict-cpu-reservation: 'true'}\n",
		"cpuManagerPolicy: none\n",
		"topologyManagerPolicy: single-numa-node\n",
	};
	struct rig *r = *state;
	struct fake_container before[BOXES];

	hold_config(r, "topologyManagerPolicy: restricted\n");
	begin(r, NULL);
	assert_non_null(create(r, "own", 2));
	assert_non_null(create(r, "any", 0));
	assert_non_null(create(r, "own2", 3));
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		memcpy(before, r->box, sizeof before);
		swap_config(r, changes[i]);
		(void)await_line(r, "config-reloaded");
		assert_newcomer(r, i == 2 ? "single-numa-node" : "best-effort", i == 0);
		assert_replays(r);
		end(r, i % 2 ? SIGKILL : SIGTERM);
		/* the file changes while nobody looks, and back */
		swap_config(r, i ? changes[i - 1] : "logLevel: info\n");
		begin(r, NULL);
		(void)await_line(r, "journal-folded");
		for (unsigned own = 0; own <= 2; own += 2)
			assert_memory_equal(&r->box[own], &before[own], sizeof *before);
		assert_newcomer(r, "best-effort", i == 1);
		assert_replays(r);
	}
}

static void mode_release_gives_back_what_was_pinned(void **state)
{
	struct rig *r = *state;
	struct fake_container *own, *any, *other = &r->box[BOXES - 1];

	begin(r, NULL);
	own = create(r, "own", 2);
	any = create(r, "any", 0);
	*other = (struct fake_container){.id = "other", .cpus = "3", .mems = "0", .runs = true};
	end(r, SIGKILL);
	assert_int_equal(unlink(r->daemon.journal), 0); /* the annotations are enough */
	r->daemon.setting[0] = "mode=release";
	r->updates = 0;
	begin(r, NULL);
	(void)await_line(r, "pins-released");
	assert_int_equal(r->updates, 2);
	assert_string_equal(own->cpus, any->cpus);
	assert_true(runs_on_cpu_0(own)); /* which is reserved */
	assert_string_equal(other->cpus, "3");
	end(r, SIGTERM);
}

static void a_signal_reads_a_file_that_is_written_in_place(void **state)
{
	struct rig *r = *state;
	struct fake_container *own;

	(void)snprintf(r->config, sizeof r->config, "%s.yaml", r->directory);
	r->daemon.config = r->config;
	write_text(r->config, "topologyManagerPolicy: none\n");
	begin(r, NULL);
	own = create(r, "own", 2);
	assert_non_null(own);
	assert_true(has_policy(own, "none"));
	assert_int_equal(kill(r->daemon.pid, SIGHUP), 0);
	assert_non_null(strstr(await_line(r, "config-reloaded"), "keys=0 changed=nothing"));
	write_text(
		r->config, "topologyManagerPolicy: restricted\nschedulerHint: {order: volcano}\n");
	assert_int_equal(kill(r->daemon.pid, SIGHUP), 0);
	assert_non_null(strstr(await_line(r, "config-reloaded"),
		"keys=2 changed=\"topologyManagerPolicy: none -> restricted; schedulerHint.order: "
		"numafit,koordinator,katalyst,volcano,crane,godel -> volcano\""));
	assert_newcomer(r, "restricted", false);
	write_text(r->config, "topologyManagerPolicy: none\nnri:\n  socketPath: x\n");
	assert_int_equal(kill(r->daemon.pid, SIGHUP), 0);
	assert_non_null(strstr(await_line(r, "config-refused"), "line 3: nri.socketPath"));
	assert_newcomer(r, "restricted", false);
	assert_in_force(r, "topologyManagerPolicy", "restricted", "line 3: nri.socketPath");
}

static void a_setting_that_needs_a_restart_is_named_and_not_applied(void **state)
{
	struct rig *r = *state;
	struct status st;
	struct arena a;

	hold_config(r, "sharedPoolMinimum: 1\n");
	begin(r, NULL);
	swap_config(r, "mode: shadow\nkubeReserved: {cpu: 4}\ntopologyManagerPolicy: restricted\n");
	assert_non_null(strstr(await_line(r, "config-reloaded"), "keys=1 changed="));
	assert_non_null(
		strstr(await_line(r, "config-needs-restart"), "keys=\"mode, kubeReserved.cpu\""));
	assert_newcomer(r, "restricted", false);
	assert_in_force(r, "mode", "manage", NULL);
	ask_status(r, &a, &st);
	assert_string_equal(st.info.config->restart, "mode, kubeReserved.cpu");
	assert_int_equal(st.info.config->reloads, 1);
	arena_fini(&a);
	swap_config(r, "topologyManagerPolicy: none\n");
	(void)await_line(r, "config-reloaded");
	assert_newcomer(r, "none", false);
	assert_int_equal(count_log(r, "config-needs-restart"), 1);
}

/* What is right by itself, but not beside what cannot change before a restart. */
static void settings_that_contradict_each_other_are_refused(void **state)
{
	struct rig *r = *state;

	hold_config(r, "devicePlugin: {enabled: true}\nkubeletRootDirectory: /nowhere\n");
	begin(r, NULL);
	swap_config(r,
		"kubeletRootDirectory: /nowhere\ncpuManagerPolicy: none\nsharedPoolMinimum: 3\n");
	assert_non_null(strstr(await_line(r, "config-refused"),
		"with what needs a restart as it is: devicePlugin.enabled"));
	assert_in_force(r, "sharedPoolMinimum", "1", "devicePlugin.enabled");
}

static void a_file_that_vanishes_is_an_error_and_not_the_defaults(void **state)
{
	struct rig *r = *state;
	char away[PATH_MAX + 64];

	(void)snprintf(away, sizeof away, "%s.away", r->config);
	hold_config(r, "topologyManagerPolicy: none\n");
	begin(r, NULL);
	rig_must(rename(r->config, away) == 0, away);
	assert_non_null(strstr(await_line(r, "config-refused"), "No such file or directory"));
	assert_newcomer(r, "none", false);
	rig_must(rename(away, r->config) == 0, away);
	(void)await_line(r, "config-reloaded");
	assert_in_force(r, "topologyManagerPolicy", "none", NULL);
	assert_int_equal(count_log(r, "config-refused"), 1);
}

static void the_pool_keeps_a_cpu_when_all_others_are_held(void **state)
{
	struct rig *r = *state;

	hold_config(r, "sharedPoolStep: 0\n");
	r->daemon.setting[0] = "topologyManagerPolicy=none";
	begin(r, NULL);
	assert_non_null(create(r, "most", 31));
	assert_non_null(create(r, "more", 32));
	swap_config(r, "cpuManagerPolicyOptions: {strict-cpu-reservation: 'true'}\n");
	const char *line = await_line(r, "config-re");
	if (!strstr(line, "config-refused") || !strstr(line, "none would be left in it"))
		fail_msg("%s", line);
	assert_in_force(r, "cpuManagerPolicyOptions.strict-cpu-reservation", "", "reserved CPUs");
}

static void a_setting_that_changes_nothing_is_logged_when_it_is_read(void **state)
{
	struct rig *r = *state;
	const char *line;

	hold_config(r, "topologyManagerPolicy: none\ntopologyManagerScope: pod\n");
	begin(r, NULL);
	line = await_line(r, "level=warn event=setting-changes-nothing");
	assert_non_null(strstr(line, "key=topologyManagerScope text=\"it changes no decision: "
				     "topologyManagerPolicy is none\""));
	swap_config(r, "topologyManagerPolicy: single-numa-node\ntopologyManagerPolicyOptions: "
		       "{prefer-closest-numa-nodes: \"true\"}\n");
	assert_non_null(strstr(await_line(r, "setting-changes-nothing"),
		"key=topologyManagerPolicyOptions.prefer-closest-numa-nodes"));
	swap_config(r, "topologyManagerPolicy: restricted\n");
	(void)await_line(r, "config-reloaded");
	assert_int_equal(count_log(r, "setting-changes-nothing"), 2);
}

static uint64_t time_until_in_force(struct rig *r, char digest[DIGEST_TEXT_MAX])
{
	struct status st;
	struct arena a;

	ask_status(r, &a, &st);
	assert_non_null(st.info.config);
	uint64_t waits = st.info.config->waits_ms;

	rig_must(strlen(st.info.config->digest) == DIGEST_SHOWN, "digest");
	memcpy(digest, st.info.config->digest, DIGEST_TEXT_MAX);
	arena_fini(&a);
	return waits;
}

static void a_change_waits_for_the_turn_of_the_node(void **state)
{
	struct rig *r = *state;
	char before[DIGEST_TEXT_MAX], digest[DIGEST_TEXT_MAX];

	hold_config(r, "topologyManagerPolicy: restricted\n");
	r->daemon.setting[0] = "nodeName=worker-1";
	begin(r, NULL);
	assert_int_equal(time_until_in_force(r, before), 0);
	swap_config(r, "topologyManagerPolicy: none\nrolloutDelay: 24h\n");
	(void)await_line(r, "config-waits");
	assert_newcomer(r, "restricted", false);
	uint64_t waits = time_until_in_force(r, digest);
	assert_in_range(waits, 1, UINT64_C(24) * 3600 * 1000);
	assert_string_equal(digest, before);
	/* the same change, once more: it is another file, and has the same turn */
	swap_config(r, "rolloutDelay: 24h\ntopologyManagerPolicy: none\n");
	(void)await_line(r, "config-waits");
	assert_in_range(time_until_in_force(r, digest), waits - 60000, waits + 60000);
	/* what is wrong is refused at once, and what was there before is in force without a wait */
	swap_config(r, "topologyManagerPolicy: nobody\n");
	(void)await_line(r, "config-refused");
	assert_int_equal(time_until_in_force(r, digest), 0);
	swap_config(r, "topologyManagerPolicy: restricted\n");
	(void)await_line(r, "config-reloaded");
	assert_newcomer(r, "restricted", false);
	/* a signal waits for nothing */
	swap_config(r, "topologyManagerPolicy: none\nrolloutDelay: 24h\n");
	(void)await_line(r, "config-waits");
	assert_int_equal(kill(r->daemon.pid, SIGHUP), 0);
	(void)await_line(r, "config-reloaded");
	assert_newcomer(r, "none", false);
	assert_int_equal(time_until_in_force(r, digest), 0);
	assert_string_not_equal(digest, before);
	/* the new file's delay counts */
	swap_config(r, "topologyManagerPolicy: best-effort\n");
	(void)await_line(r, "config-reloaded");
	swap_config(r, "topologyManagerPolicy: restricted\nrolloutDelay: 2s\n");
	(void)await_line(r, "config-waits");
	(void)await_line(r, "config-reloaded");
	assert_newcomer(r, "restricted", false);
}

static void nodes_have_their_turns_evenly_over_the_delay(void **state)
{
	enum { NODES = 1000, PARTS = 10, PART_MS = 60000 };
	unsigned in[PARTS] = {0};
	char name[32];

	(void)state;
	for (unsigned i = 0; i < NODES; i++) {
		(void)snprintf(name, sizeof name, "worker-%u", i);
		uint64_t turn = reload_turn_of_node(PARTS * PART_MS, name);

		assert_true(turn < PARTS * PART_MS);
		assert_int_equal(reload_turn_of_node(PARTS * PART_MS, name), turn);
		in[turn / PART_MS]++;
	}
	for (unsigned i = 0; i < PARTS; i++)
		assert_in_range(in[i], NODES / PARTS * 3 / 4, NODES / PARTS * 5 / 4);
	assert_int_equal(reload_turn_of_node(0, "worker-1"), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(reloaded_settings_apply_to_new_containers_and_to_the_shared_pool),
		CASE(journals_replay_and_restarts_fold_across_changes),
		CASE(mode_release_gives_back_what_was_pinned),
		CASE(a_signal_reads_a_file_that_is_written_in_place),
		CASE(a_setting_that_needs_a_restart_is_named_and_not_applied),
		CASE(settings_that_contradict_each_other_are_refused),
		CASE(a_file_that_vanishes_is_an_error_and_not_the_defaults),
		CASE(the_pool_keeps_a_cpu_when_all_others_are_held),
		CASE(a_setting_that_changes_nothing_is_logged_when_it_is_read),
		CASE(a_change_waits_for_the_turn_of_the_node),
		cmocka_unit_test(nodes_have_their_turns_evenly_over_the_delay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
