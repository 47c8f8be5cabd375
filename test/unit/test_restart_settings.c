/* Settings that have changed while the daemon was away, and a machine that has: its own recorder
 * folds a journal that was written with others. Nothing of it is lost, what conflicts with what is
 * in force now moves, and the runtime gets the updates. Every setting that needs a restart has a
 * row. */
#include "restart_rig.h"

/* A setting that needs a restart. */
struct row {
	const char *key, *value; /* value NULL: another journal or another machine is meant */
	const char *moves;       /* containers whose cpuset changes, each followed by a space */
};
static const struct row rows[] = {
	{"mode", "shadow", ""}, {"besideStaticKubelet", "manage", ""},
	{"kubeletRootDirectory", "/var/lib/other", ""},
	{"kubeletConfigFile", "/etc/kubelet.yaml", ""},
	{"reservedSystemCPUs", "0-1,32-33", "shared own "},
	{"systemReserved.cpu", "4", "shared own "}, {"kubeReserved.cpu", "4", "shared own "},
	{"reservedMemory", NULL, ""}, {"deviceMemory", "include", ""}, {"nodeName", "other", ""},
	{"nri.socketPath", "/run/other.sock", ""}, {"nri.pluginIndex", "77", ""},
	{"nri.failurePolicy", "drop-and-proceed", ""}, {"devicePlugin.enabled", "false", ""},
	{"devicePlugin.preStartContainer", "false", ""}, {"podResources.enabled", "true", ""},
	{"podsAPI.enabled", "false", ""}, {"apiServer.kubeconfig", "/etc/kubeconfig", ""},
	{"apiServer.context", "other", ""}, {"podsWatch.enabled", "true", ""},
	{"deviceClaims.enabled", "true", ""}, {"claims.enabled", "true", ""},
	{"claims.cdiDirectory", "/other", ""}, {"events.enabled", "true", ""},
	{"nodeResourceTopology.enabled", "true", ""}, {"numatopology.enabled", "true", ""},
	{"metrics.address", "", ""}, {"ui.address", "127.0.0.1:0", ""},
	{"ui.insecure", "true", ""}, {"sharedPool.enforce", "updates", ""},
	{"runDirectory", NULL, ""}, /* another journal */
	{"machine", NULL, ""},      /* another machine's journal is set aside */
};
enum { NR_ROWS = sizeof rows / sizeof *rows };

static void every_setting_that_needs_a_restart_has_a_row(void **state)
{
	struct setting_doc doc;

	(void)state;
	for (unsigned i = 0; settings_doc(i, &doc); i++) {
		bool found = doc.reloadable;

		for (size_t k = 0; k < NR_ROWS; k++)
			found = found || strcmp(doc.key, rows[k].key) == 0;
		if (!found)
			fail_msg("what becomes of a journal when %s changes?", doc.key);
	}
}

static void change(struct settings *s, const struct row *row)
{
	struct err e;

	if (strstr(row->key, "Reserved.cpu"))
		s->reserved_cpus = (struct cpuset){0};
	if (strstr(row->key, "deviceClaims."))
		s->pod_resources = true;
	if (settings_set(s, row->key, row->value, &e))
		fail_msg("%s", e.text);
}

static void no_changed_setting_takes_a_container_its_cpus(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR_ROWS; i++) {
		if (!rows[i].value)
			continue;
		struct world *w = world_new();
		const struct settings before = w->d.settings;
		struct settings after = before;

		print_message("%s\n", rows[i].key);
		change(&after, &rows[i]);
		restart_with(w, &after);
		assert_updated(w, rows[i].moves);
		restart_with(w, &w->d.settings); /* what was written anew is read again */
		assert_updated(w, "");
		restart_with(w, &before);
		assert_lease_is_kept(w);
		world_free(w);
	}
}

static void waiting_tokens_are_kept_when_the_reserved_cpus_change(void **state)
{
	struct world *w = world_new();
	struct settings s = w->d.settings;

	(void)state;
	s.reserved_cpus = list("0-3,32-35,20-21"); /* 20: a CPU of the node whose tokens wait */
	restart_with(w, &s);
	assert_lease_is_kept(w);
	world_free(w);
}

/* Fewer CPUs online than the journal knows, and other reserved ones, at once. */
static void machine_and_settings_may_change_together(void **state)
{
	struct world *w = world_new();
	const struct topo whole = w->d.topo;
	const struct settings before = w->d.settings;
	struct cpuset offline = list("0-2,32,40");
	struct topo *less = machine_without(&whole, &offline, (struct nodeset){0});
	struct settings s = before;

	(void)state;
	s.reserved_cpus = list("3,33");
	end(w);
	w->d.topo = *less;
	for (size_t i = 0; i < w->nr; i++) { /* the kernel takes them out of every cpuset */
		struct running *r = &w->running[i];
		struct cpuset now = list(r->cpus);

		now = cpuset_and(now, &less->cpus);
		(void)cpuset_format(&now, r->cpus, sizeof r->cpus);
	}
	start(w);
	end(w); /* once more at the old settings: CPU 0 is reserved and offline */
	w->d.settings = s;
	start(w);
	assert_nothing_is_lost(w);
	synchronize(w);
	end(w);
	w->d.topo = whole;
	w->d.settings = before;
	start(w);
	assert_nothing_is_lost(w);
	synchronize(w);
	assert_lease_is_kept(w);
	world_free(w);
	free(less);
}

static void only_a_damaged_journal_is_called_damaged(void **state)
{
	struct world *w = world_new();
	struct settings s = w->d.settings;

	(void)state;
	end(w);
	FILE *f = fopen(w->d.run.journal_path, "a");
	assert_non_null(f);
	assert_true(fputs("{\"seq\":1}\n{\"seq\":2}\n", f) >= 0 && fclose(f) == 0);
	s.reserved_cpus = list("0-1");
	w->d.settings = s;
	start(w);
	assert_int_equal(set_aside, 1);
	w->nr = 0;
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_setting_that_needs_a_restart_has_a_row),
		cmocka_unit_test(no_changed_setting_takes_a_container_its_cpus),
		cmocka_unit_test(waiting_tokens_are_kept_when_the_reserved_cpus_change),
		cmocka_unit_test(machine_and_settings_may_change_together),
		cmocka_unit_test(only_a_damaged_journal_is_called_damaged),
	};

	json_seed();
	log_set_sink(look_at_log);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
