/* CFS quotas of containers with CPUs of their own and of their pods, in a daemon whose cgroups are
 * files of a folder. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sweep_rig.h"

static const char of_pod[] = "sys/fs/cgroup/kubepods/podp1/cpu.max";
static const char of_container[] = "sys/fs/cgroup/kubepods/podp1/c1/cpu.max";
static const char four_cpus[] = "400000 100000", lifted[] = "max";

static const char *quota(const struct rig *r, const char *name)
{
	const char *text = content(r, name);

	return strncmp(text, lifted, strlen(lifted)) == 0 ? lifted : text;
}

static bool pod_is_lifted(struct rig *r)
{
	return text_equal(quota(r, of_pod), lifted);
}

static bool pod_has_its_quota(struct rig *r)
{
	return text_equal(quota(r, of_pod), four_cpus);
}

static const struct kept_list *noted(const struct rig *r)
{
	return &ledger_view(engine_ledger(r->d.engine))->kept[KEPT_QUOTAS];
}

static void start_to_release(struct rig *r)
{
	stop_daemon(r);
	read_machine(r, machine);
	r->mode = MODE_RELEASE;
	start_daemon(r);
}

/* What the kubelet has set of a pod of 4 CPUs, before its container is made. */
static struct rig *begin(bool keeps)
{
	struct rig *r = rig_new_by(true, "v0.12.5", true);

	r->keeps_quotas = keeps;
	if (keeps) {
		stop_daemon(r);
		read_machine(r, machine);
		start_daemon(r);
	}
	put(r, of_pod, "400000 100000\n");
	put(r, "sys/fs/cgroup/kubepods/burstable/podp0/cpu.max", "50000 100000\n");
	return r;
}

static void a_pod_with_cpus_of_its_own_has_none_and_others_keep_theirs(void **state)
{
	struct rig *r = begin(false);

	(void)state;
	struct box *log = start_box(r, 0, 0);
	put_cgroup(r, log, "cpu.max", "50000 100000\n");
	(void)start_box(r, 1, 4);
	assert_string_equal(quota(r, of_container), lifted); /* by the answer */
	wait_until(r, pod_is_lifted);
	assert_int_equal(noted(r)->nr, 1);
	assert_string_equal(noted(r)->at[0].was, four_cpus);
	assert_string_equal(quota_status(&r->d).use, "lift");
	assert_int_equal(quota_status(&r->d).pods, 1);
	assert_string_equal(
		quota(r, "sys/fs/cgroup/kubepods/burstable/podp0/cpu.max"), "50000 100000");
	assert_string_equal(
		quota(r, "sys/fs/cgroup/kubepods/burstable/podp0/c0/cpu.max"), "50000 100000");
	rig_free(r);
}

static bool twice_is_noted(struct rig *r)
{
	return pod_is_lifted(r) && noted(r)->nr && text_equal(noted(r)->at[0].was, "600000 100000");
}

static void what_another_program_sets_is_noted_and_lifted_again(void **state)
{
	struct rig *r = begin(false);

	(void)state;
	(void)start_box(r, 1, 4);
	wait_until(r, pod_is_lifted);
	put(r, of_pod, "400000 100000\n"); /* systemd, at daemon-reload */
	wait_until(r, pod_is_lifted);
	put(r, of_pod, "600000 100000\n"); /* the kubelet, at a resize */
	wait_until(r, twice_is_noted);
	assert_int_equal(quota_status(&r->d).rewritten, 2);
	put(r, of_container, "400000 100000\n");
	stop_daemon(r); /* a container's is looked at when the daemon starts */
	read_machine(r, machine);
	start_daemon(r);
	wait_until(r, twice_is_noted);
	while (!text_equal(quota(r, of_container), lifted))
		wait_until(r, twice_is_noted);
	rig_free(r);
}

static bool is_forgotten(struct rig *r)
{
	return pod_has_its_quota(r) && !noted(r)->nr;
}

static void a_resize_to_a_part_of_a_cpu_gives_it_back(void **state)
{
	struct rig *r = begin(false);
	struct box *b = start_box(r, 1, 4);
	struct key_value annotation[2];

	(void)state;
	wait_until(r, pod_is_lifted);
	struct nri_container c = shown(r, b, annotation);
	c.resources.cpu_shares = 3 * FAKE_SHARES_PER_CPU / 2;
	r->outstanding++;
	fake_runtime_call(&r->runtime, NRI_CALL_UPDATE, &c);
	wait_until(r, is_quiet);
	assert_false(held(r, b)->decision.exclusive);
	wait_until(r, is_forgotten);
	rig_free(r);
}

static bool the_runtime_has_the_kubelets_quota(struct rig *r)
{
	return r->box[1].quota == 400000;
}

static bool set_after_a_reload(void *ctx, const struct nri_update *updates, size_t nr)
{
	struct rig *r = ctx;

	r->d.settings.quota_use = QUOTA_KEEP;
	return on_set(ctx, updates, nr);
}

/* The runtime sets what numafitd has asked for before exclusiveCPUs.cfsQuota was changed. */
static void an_update_that_lifts_a_quota_is_made_good_if_quotas_are_kept_by_then(void **state)
{
	struct rig *r = begin(false);
	struct box *b = start_box(r, 1, 4);

	(void)state;
	wait_until(r, pod_is_lifted);
	sweep_stop(&r->d); /* nobody looks at what is in force */
	nri_runtime_accept_updates(r->runtime.nri, r->runtime.nri_version, set_after_a_reload);
	engine_must_update(r->d.engine, b->c.id);
	updater_note_change(&r->d);
	wait_until(r, the_runtime_has_the_kubelets_quota);
	assert_int_equal(r->unasked, 2);
	rig_free(r);
}

static void a_restart_knows_what_was_and_mode_release_gives_it_back(void **state)
{
	struct rig *r = begin(false);

	(void)state;
	(void)start_box(r, 1, 4);
	wait_until(r, pod_is_lifted);
	stop_daemon(r);
	read_machine(r, machine);
	start_daemon(r);
	assert_int_equal(noted(r)->nr, 1);
	put(r, of_pod, "400000 100000\n");
	wait_until(r, pod_is_lifted);
	start_to_release(r);
	assert_string_equal(quota(r, of_pod), four_cpus);
	assert_string_equal(quota(r, of_container), four_cpus);
	assert_int_equal(noted(r)->nr, 0);
	rig_free(r);
}

/* The runtime never had the answer of the first one, and repeats what it was given before. */
static void mode_release_once_more_has_the_runtime_set_the_quota_that_came_back(void **state)
{
	struct rig *r = begin(false);
	struct box *b = start_box(r, 1, 4);

	(void)state;
	wait_until(r, pod_is_lifted);
	r->shows_placement = true;
	for (unsigned i = 0; i < 2; i++) {
		b->quota = -1;
		start_to_release(r);
		assert_string_equal(quota(r, of_container), four_cpus);
		assert_int_equal(b->quota, 400000);
	}
	rig_free(r);
}

static void where_the_kubelet_sets_none_there_is_none_after_mode_release(void **state)
{
	struct rig *r = begin(false);

	(void)state;
	put(r, of_pod, "max 100000\n"); /* cpuCFSQuota: false */
	(void)start_box(r, 1, 4);
	start_to_release(r);
	assert_string_equal(quota(r, of_pod), lifted);
	assert_string_equal(quota(r, of_container), lifted);
	rig_free(r);
}

/* Resized while nobody listened: the kubelet's newer quota is not taken back. */
static void mode_release_keeps_what_the_kubelet_has_set_since(void **state)
{
	struct rig *r = begin(false);
	struct box *b = start_box(r, 1, 4);

	(void)state;
	wait_until(r, pod_is_lifted);
	stop_daemon(r);
	put(r, of_container, "50000 100000\n");
	b->quota = 50000;
	read_machine(r, machine);
	r->mode = MODE_RELEASE;
	start_daemon(r);
	assert_string_equal(quota(r, of_container), "50000 100000");
	rig_free(r);
}

static void keep_touches_none_and_gives_back_what_an_earlier_life_lifted(void **state)
{
	struct rig *r = begin(true);

	(void)state;
	(void)start_box(r, 1, 4);
	put(r, of_container, "400000 100000\n");
	pass_rounds(r, start_box(r, 0, 0));
	assert_true(pod_has_its_quota(r));
	assert_int_equal(quota_status(&r->d).pods, 0);
	r->keeps_quotas = false;
	stop_daemon(r);
	read_machine(r, machine);
	start_daemon(r);
	wait_until(r, pod_is_lifted);
	r->keeps_quotas = true;
	stop_daemon(r);
	read_machine(r, machine);
	start_daemon(r);
	wait_until(r, is_forgotten);
	assert_string_equal(quota(r, of_container), four_cpus);
	rig_free(r);
}

static bool none_is_noted(struct rig *r)
{
	return noted(r)->nr == 0;
}

static bool all_is_as_held(struct rig *r)
{
	return all_are_as_held(r) && text_equal(quota(r, of_container), four_cpus);
}

static void an_update_with_keep_sets_the_kubelets(void **state)
{
	struct rig *r = begin(false);
	struct box *b = start_box(r, 1, 4);

	(void)state;
	wait_until(r, pod_is_lifted);
	r->keeps_quotas = true;
	stop_daemon(r);
	read_machine(r, machine);
	start_daemon(r);
	wait_until(r, is_forgotten);
	set_cpus(r, b, "0-1"); /* by another program */
	wait_until(r, all_is_as_held);
	assert_true(r->set);
	rig_free(r);
}

static void the_pod_goes_and_nothing_is_left_of_it(void **state)
{
	struct rig *r = begin(false);
	struct box *b = start_box(r, 1, 4);

	(void)state;
	wait_until(r, pod_is_lifted);
	call(r, NRI_CALL_STOP, b);
	b->c.runs = false;
	call(r, NRI_CALL_REMOVE, b);
	wait_until(r, is_quiet);
	remove_tree(r, "sys/fs/cgroup/kubepods/podp1");
	call(r, NRI_CALL_REMOVE_POD, b);
	wait_until(r, none_is_noted);
	rig_free(r);
}

/* The kubelet makes another sandbox for a pod whose sandbox has died; the pod's cgroup stays. */
static void a_pod_whose_sandbox_is_made_anew_keeps_what_it_had(void **state)
{
	struct rig *r = begin(false);
	struct box *b = start_box(r, 1, 4);

	(void)state;
	wait_until(r, pod_is_lifted);
	b->c.runs = false;
	call(r, NRI_CALL_STOP, b); /* before the sweep looks at it */
	call(r, NRI_CALL_STOP_POD, b);
	wait_until(r, is_forgotten);
	(void)start_box(r, 1, 4);
	wait_until(r, pod_is_lifted);
	assert_string_equal(noted(r)->at[0].was, four_cpus);
	rig_free(r);
}

/* What the kubelet has set while nobody listened is not what it would be for the CPUs it has. */
static void a_container_that_was_resized_and_is_not_known_to_be_keeps_its_quota(void **state)
{
	static const char *const others[] = {"600000 100000", "200000 100000"};
	struct rig *r = begin(false);

	(void)state;
	(void)start_box(r, 1, 4);
	wait_until(r, pod_is_lifted);
	for (unsigned i = 0; i < 2; i++) {
		put(r, of_container, others[i]);
		stop_daemon(r);
		put(r, of_pod, others[i]);
		read_machine(r, machine);
		start_daemon(r);
		wait_until(r, pod_is_lifted);
		assert_string_equal(quota(r, of_container), others[i]);
	}
	rig_free(r);
}

static void the_same_value_again_and_again_is_recorded_once(void **state)
{
	struct rig *r = begin(false);

	(void)state;
	(void)start_box(r, 1, 4);
	wait_until(r, pod_is_lifted);
	const unsigned before = count_lines(r, "journal", "\"op\":\"quota\"");
	for (unsigned i = 0; i < 5; i++) {
		put(r, of_pod, "400000 100000\n");
		wait_until(r, pod_is_lifted);
	}
	assert_int_equal(quota_status(&r->d).rewritten, 5);
	assert_int_equal(count_lines(r, "journal", "\"op\":\"quota\""), before);
	rig_free(r);
}

/* A runtime's client may have it anywhere. */
static void a_cgroup_that_is_not_named_after_the_pod_keeps_its_quota(void **state)
{
	static const char slice[] = "sys/fs/cgroup/custom/cpu.max";
	struct rig *r = begin(false);
	struct box *b = &r->box[1];

	(void)state;
	put(r, slice, "800000 100000\n");
	(void)place_box(r, 1, 4, "/custom/c1");
	call(r, NRI_CALL_POST_START, b);
	wait_until(r, is_quiet);
	assert_true(held(r, b)->decision.exclusive);
	pass_rounds(r, start_box(r, 0, 0));
	assert_string_equal(quota(r, slice), "800000 100000");
	rig_free(r);
}

static bool has_failed(struct rig *r)
{
	return quota_status(&r->d).problem != NULL;
}

static bool has_succeeded(struct rig *r)
{
	return !has_failed(r) && pod_is_lifted(r);
}

/* A folder in the file's place is what root cannot write either. */
static void what_cannot_be_lifted_is_shown_and_tried_again(void **state)
{
	struct rig *r = begin(false);
	char path[PATH_BYTES];

	(void)state;
	(void)snprintf(path, sizeof path, "%s/%s", r->root, of_pod);
	assert_int_equal(remove(path) || mkdir(path, 0755), 0);
	(void)start_box(r, 1, 4);
	wait_until(r, has_failed);
	assert_int_equal(rmdir(path), 0);
	put(r, of_pod, "400000 100000\n");
	wait_until(r, has_succeeded);
	rig_free(r);
}

static void without_a_writable_cgroup_it_is_containers_alone(void **state)
{
	struct rig *r = begin(false);
	char path[PATH_BYTES];

	(void)state;
	stop_daemon(r);
	(void)snprintf(path, sizeof path, "%s/sys/fs/cgroup/cgroup.procs", r->root);
	assert_int_equal(remove(path), 0);
	read_machine(r, machine);
	start_daemon(r);
	(void)start_box(r, 1, 4);
	assert_string_equal(quota(r, of_container), lifted);
	assert_true(pod_has_its_quota(r));
	assert_non_null(quota_status(&r->d).containers_alone);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_with_cpus_of_its_own_has_none_and_others_keep_theirs),
		cmocka_unit_test(what_another_program_sets_is_noted_and_lifted_again),
		cmocka_unit_test(a_resize_to_a_part_of_a_cpu_gives_it_back),
		cmocka_unit_test(
			an_update_that_lifts_a_quota_is_made_good_if_quotas_are_kept_by_then),
		cmocka_unit_test(a_restart_knows_what_was_and_mode_release_gives_it_back),
		cmocka_unit_test(
			mode_release_once_more_has_the_runtime_set_the_quota_that_came_back),
		cmocka_unit_test(where_the_kubelet_sets_none_there_is_none_after_mode_release),
		cmocka_unit_test(mode_release_keeps_what_the_kubelet_has_set_since),
		cmocka_unit_test(keep_touches_none_and_gives_back_what_an_earlier_life_lifted),
		cmocka_unit_test(an_update_with_keep_sets_the_kubelets),
		cmocka_unit_test(the_pod_goes_and_nothing_is_left_of_it),
		cmocka_unit_test(a_pod_whose_sandbox_is_made_anew_keeps_what_it_had),
		cmocka_unit_test(
			a_container_that_was_resized_and_is_not_known_to_be_keeps_its_quota),
		cmocka_unit_test(the_same_value_again_and_again_is_recorded_once),
		cmocka_unit_test(a_cgroup_that_is_not_named_after_the_pod_keeps_its_quota),
		cmocka_unit_test(what_cannot_be_lifted_is_shown_and_tried_again),
		cmocka_unit_test(without_a_writable_cgroup_it_is_containers_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
